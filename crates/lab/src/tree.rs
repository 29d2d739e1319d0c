//! A program and everything that it has started: CPU time and memory, from /proc.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// The pids of a process and its descendants, it first.
pub fn pids(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in entries("/proc") {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(children.get(pid).into_iter().flatten());
        at += 1;
    }
    found
}

/// CPU time that they have used, user and kernel, as the scheduler counts it: in nanoseconds, over all threads that live.
///
/// A thread that ends takes its time with it; proxies keep their threads.
pub fn cpu_time(root: u32) -> Duration {
    let threads =
        pids(root).into_iter().flat_map(|pid| entries(&format!("/proc/{pid}/task")).into_iter().map(move |tid| (pid, tid)));
    let nanoseconds = threads.filter_map(|(pid, tid)| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Bytes of memory that are theirs alone, and bytes resident, shared pages in proportion to the number of processes that map them.
pub fn memory(root: u32) -> Memory {
    let mut memory = Memory::default();
    for pid in pids(root) {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        for line in text.lines() {
            let kilobytes = || line.split_whitespace().nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            match line.split(':').next() {
                Some("Private_Clean" | "Private_Dirty") => memory.own_bytes += kilobytes() * 1024,
                Some("Pss") => memory.proportional_bytes += kilobytes() * 1024,
                _ => {}
            }
        }
    }
    memory
}

/// See [`memory`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Memory {
    /// USS.
    pub own_bytes: u64,
    /// PSS.
    pub proportional_bytes: u64,
}

/// A process's name, as it shows in lists; empty when it is gone.
pub fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; after the last one come the state and the parent.
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The entries of a folder that are numbers.
fn entries(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_this_process() {
        let me = std::process::id();
        assert_eq!(pids(me)[0], me);
        let mut number = 1u64;
        let before = cpu_time(me);
        while cpu_time(me) < before + Duration::from_millis(5) {
            (0..10_000).for_each(|_| number = number.wrapping_mul(3));
        }
        assert!(std::hint::black_box(number) != 0 && memory(me).own_bytes > 100_000);
    }
}
