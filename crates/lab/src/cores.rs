//! Cores that threads and processes run on.

use rustix::thread::CpuSet;
use std::io;

/// Keeps this thread, and everything that it starts from now on, on one core.
pub fn pin_this_thread(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Runs something, such as starting a program, with this thread on these cores; then puts the thread back where it was. Processes
/// and threads that are started inherit the cores.
pub fn on_cores<T>(cores: &[usize], run: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = rustix::thread::sched_getaffinity(None)?;
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    rustix::thread::sched_setaffinity(None, &set)?;
    let result = run();
    rustix::thread::sched_setaffinity(None, &before)?;
    result
}

/// The cores that this process may use, in order.
pub fn available() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}
