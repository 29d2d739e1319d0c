//! Processes of programs: started, waited for and ended by a thread each.
//!
//! Starting a process takes as long as its file system does, and ending it as long as the kernel does: neither delays
//! the caller.
//!
//! ```text
//!   Running::start -> a thread: starts it, waits for its end, ends its group, reaps it -> Running::ended
//!   dropped before that: its group is killed at once, or as soon as there is one; the thread reaps it all the same
//! ```
//!
//! The number of threads is limited by turns: each thread holds a turn until its program is gone.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// A running program. Dropping it ends the program.
pub(super) struct Running {
    leash: Arc<Leash>,
    outcome: oneshot::Receiver<io::Result<ExitStatus>>,
}

impl Running {
    /// Has another thread start a program, which must lead a group of its own.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn start(
        spawn: impl FnOnce() -> io::Result<Child> + Send + 'static,
        turn: OwnedSemaphorePermit,
    ) -> io::Result<Running> {
        let (tell, outcome) = oneshot::channel();
        let leash = Arc::new(Leash::default());
        let running = Running { leash: leash.clone(), outcome };
        let attend = move || {
            let outcome = leash.attend(spawn);
            drop(turn);
            // A dropped check has no receiver.
            let _ = tell.send(outcome);
        };
        thread::Builder::new().name("check-program".into()).stack_size(STACK_BYTES).spawn(attend)?;
        Ok(running)
    }

    /// Waits for the end of the program.
    ///
    /// # Errors
    /// It could not be started, or its thread is gone.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        (&mut self.outcome).await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.leash.pull();
    }
}

/// State shared by the thread of a program and its caller.
#[derive(Default)]
struct Leash(Mutex<State>);

/// Progress of a program. A group's number is valid until its leader is reaped, which the lock prevents meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum State {
    #[default]
    Starting,
    Runs(Pid),
    /// It is reaped, or no longer wanted.
    Over,
}

impl Leash {
    /// Starts a program, waits for its end, and ends the processes that it has left in its group.
    fn attend(&self, spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<ExitStatus> {
        SEALED.call_once(seal);
        let mut child = spawn()?;
        let group = Pid::from_child(&child);
        {
            let mut state = self.lock();
            match *state {
                State::Over => kill(group),
                State::Starting | State::Runs(_) => *state = State::Runs(group),
            }
        }
        // It stays a zombie, and its number its own.
        let ended = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
        let mut state = self.lock();
        *state = State::Over;
        if ended.is_ok() {
            kill(group);
        }
        child.wait()
    }

    /// Ends a program that runs, or will run.
    fn pull(&self) {
        let mut state = self.lock();
        if let State::Runs(group) = *state {
            kill(group);
        }
        *state = State::Over;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kill(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
}

static SEALED: Once = Once::new();

/// Keeps inherited descriptors of this process from its programs; those that it has opened are kept from them anyway.
#[allow(unsafe_code, reason = "no crate has this call without it")]
fn seal() {
    // SAFETY: no memory is touched: each open descriptor from 3 on is closed when a program takes a process's place. A
    // kernel without the call leaves them as they are.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// Enough to start a program; address space alone.
const STACK_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::time::Duration;
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// A shell in a process group of its own.
    fn shell(script: &str) -> io::Result<Child> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0).spawn()
    }

    /// Number of live processes of a group, and whether its leader is there at all.
    fn members(group: u32) -> (usize, bool) {
        let stat = |entry: io::Result<std::fs::DirEntry>| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok();
        let stats = std::fs::read_dir("/proc").unwrap().filter_map(stat);
        let in_group = stats.filter(|stat| {
            let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
            fields[0] != "Z" && fields[2] == group.to_string()
        });
        (in_group.count(), std::path::Path::new(&format!("/proc/{group}")).exists())
    }

    async fn gone(group: u32) {
        let all = async {
            while members(group) != (0, false) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, all).await.unwrap_or_else(|_| panic!("{group}: {:?}", members(group)));
    }

    /// Starts a script; sends its process group once there is one.
    async fn started(script: &'static str, turns: &Arc<Semaphore>) -> (Running, mpsc::Receiver<u32>) {
        let (tell, group) = mpsc::channel();
        let spawn = move || shell(script).inspect(|child| tell.send(child.id()).unwrap());
        (Running::start(spawn, turns.clone().acquire_owned().await.unwrap()).unwrap(), group)
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_is_ended() {
        let turns = Arc::new(Semaphore::new(1));
        let (mut running, group) = started("sleep 1000 & exit 3", &turns).await;
        let status = timeout(PATIENCE, running.ended()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
        gone(group.recv_timeout(PATIENCE).unwrap()).await;
    }

    #[tokio::test]
    async fn what_is_dropped_is_ended_and_reaped() {
        let turns = Arc::new(Semaphore::new(1));
        let (running, group) = started("sleep 1000 & sleep 1000", &turns).await;
        let group = group.recv_timeout(PATIENCE).unwrap();
        assert!(turns.clone().try_acquire_owned().is_err() && members(group).1);
        drop(running);
        gone(group).await;
        drop(timeout(PATIENCE, turns.acquire()).await.unwrap().unwrap());
    }

    /// As on a file system that does not answer.
    #[tokio::test]
    async fn nobody_waits_for_a_slow_start() {
        let turns = Arc::new(Semaphore::new(1));
        let ((release, held), (tell, group)) = (mpsc::channel::<()>(), mpsc::channel());
        let spawn = move || {
            held.recv_timeout(PATIENCE).unwrap();
            shell("sleep 1000").inspect(|child| tell.send(child.id()).unwrap())
        };
        let mut running = Running::start(spawn, turns.clone().acquire_owned().await.unwrap()).unwrap();
        assert!(timeout(Duration::from_millis(10), running.ended()).await.is_err());
        drop(running);
        assert!(turns.try_acquire().is_err());
        release.send(()).unwrap();
        gone(group.recv_timeout(PATIENCE).unwrap()).await;
        drop(timeout(PATIENCE, turns.acquire()).await.unwrap().unwrap());
    }
}
