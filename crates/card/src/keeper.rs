//! The keeper: a process with one thread that starts the card's process, and kills it.
//!
//! ```text
//!  terse -> keeper   "s" and two descriptors: a socket and memory      kill what runs, start another one
//!  keeper -> terse   the number of the new process, how the one before ended
//!  terse -> keeper   "k"                                               kill what runs
//!  either ends       the other reads the end of its socket; a keeper kills what runs, and ends
//! ```
//!
//! It is started while terse has its first rights and paths, and gives the rights up at once. So it can start the
//! card's process again when terse cannot any more: in another root folder there is no program and no library to load.
#![allow(unsafe_code)]

use crate::memory::{Layout, Memory};
use crate::{cuda, worker};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use terse_compress::EngineSettings;
use terse_compress::engine::Source;

/// Argument that makes this program a keeper.
pub const WORD: &str = "--engine-keeper";

/// Settings of the process in which a library runs.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// Path of this program.
    pub program: &'a Path,
    /// User of the process, if another one.
    pub user: Option<u32>,
    /// Group of the process, if another one.
    pub group: Option<u32>,
    /// Environment variables that the process must not get.
    pub forget: &'a [&'a str],
    /// Whether the library's output is discarded.
    pub quiet: bool,
}

impl Launch<'_> {
    pub(crate) fn command(&self, word: &str, source: &Source) -> Command {
        let mut command = Command::new(self.program);
        let number = |number: Option<u32>| number.map_or_else(|| "-".into(), |number| number.to_string());
        command.arg(word).arg(source.word()).args([number(self.user), number(self.group)]);
        for name in self.forget {
            command.env_remove(name);
        }
        command.stdout(Stdio::null());
        if self.quiet {
            command.stderr(Stdio::null());
        }
        command
    }
}

/// Handle of a keeper in terse. Dropping it ends the keeper, and the card's process with it.
#[derive(Debug)]
pub struct Keeper {
    control: Option<OwnedFd>,
    child: Mutex<Child>,
}

/// A started card's process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Started {
    pub(crate) process: u32,
    /// End of the process before it, if that is known.
    pub(crate) before: Option<String>,
}

impl Keeper {
    /// Starts the keeper of an engine.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(launch: &Launch<'_>, settings: &EngineSettings) -> io::Result<Keeper> {
        let (mine, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        rustix::net::sockopt::set_socket_timeout(&mine, rustix::net::sockopt::Timeout::Recv, Some(PATIENCE))?;
        let mut command = launch.command(WORD, &settings.source);
        command.args([settings.threads, settings.jobs(), settings.largest].map(|number| number.to_string()));
        command.arg(settings.deadline.as_micros().to_string());
        command.arg0(format!("terse-engine: {}", settings.name)).stdin(theirs);
        Ok(Keeper { control: Some(mine), child: Mutex::new(command.spawn()?) })
    }

    /// Kills the card's process, if there is one, and starts another one.
    pub(crate) fn spawn(&self, socket: BorrowedFd<'_>, memory: BorrowedFd<'_>) -> io::Result<Started> {
        let control = self.control.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        send(control, START, &[socket, memory])?;
        let mut reply = [0; 8];
        let (_, length) = rustix::io::retry_on_intr(|| rustix::net::recv(control, &mut reply[..], RecvFlags::empty()))?;
        let ([a, b, c, d, e, f, g, h], 8) = (reply, length) else {
            return Err(io::Error::other("its keeper has ended"));
        };
        let (process, status) = (i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h]));
        match u32::try_from(process) {
            Ok(process) if process > 0 => Ok(Started { process, before: describe(status) }),
            _ => Err(io::Error::other("its keeper cannot start a process")),
        }
    }

    /// Kills the card's process.
    pub(crate) fn kill(&self) {
        if let Some(control) = &self.control {
            // If the keeper has ended, its process has ended too.
            let _ = send(control, KILL, &[]);
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.control = None;
        let _ = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

fn send(socket: &OwnedFd, word: u8, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::io::retry_on_intr(|| sendmsg(socket, &[IoSlice::new(&[word])], &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Description of a process's end, by its status of `wait`; `None` if it is not known.
fn describe(status: i32) -> Option<String> {
    match status {
        UNKNOWN => None,
        _ if libc::WIFSIGNALED(status) => Some(format!("ended by signal {}", libc::WTERMSIG(status))),
        _ => Some(format!("ended with status {}", libc::WEXITSTATUS(status))),
    }
}

/// Main loop of a keeper; `words` are the arguments after [`WORD`].
pub fn keep(words: &[OsString]) -> ExitCode {
    let Some(orders) = Orders::read(words) else {
        eprintln!("terse: {WORD} is for terse itself");
        return ExitCode::FAILURE;
    };
    if let Err(error) = settle(orders.user, orders.group) {
        eprintln!("terse: an engine's process cannot give up its rights: {error}");
        return ExitCode::FAILURE;
    }
    let (mut runs, mut undead) = (None, Vec::new());
    loop {
        match receive() {
            Ok(Some((START, descriptors))) => {
                let before = end(&mut runs, &mut undead);
                let [socket, memory] = descriptors;
                let (Some(socket), Some(memory)) = (socket, memory) else { break };
                let process = if undead.len() < MAX_UNDEAD { fork(&orders, socket, memory) } else { None };
                runs = process;
                let number = process.map_or(-1, |process| process.as_raw_nonzero().get());
                let reply = [number.to_ne_bytes(), before.to_ne_bytes()].concat();
                if rustix::net::send(rustix::stdio::stdin(), &reply, SendFlags::NOSIGNAL).is_err() {
                    break;
                }
            }
            Ok(Some((KILL, _))) => {
                if let Some(process) = runs {
                    let _ = kill_process(process, Signal::KILL);
                }
            }
            Ok(Some(_)) | Ok(None) | Err(_) => break,
        }
    }
    end(&mut runs, &mut undead);
    ExitCode::SUCCESS
}

/// Arguments of a keeper's command line.
struct Orders {
    source: Source,
    user: Option<u32>,
    group: Option<u32>,
    threads: usize,
    layout: Layout,
    deadline: Duration,
}

impl Orders {
    fn read(words: &[OsString]) -> Option<Orders> {
        let [source, user, group, threads, jobs, largest, deadline] = words else { return None };
        let number = |word: &OsString| word.to_str()?.parse::<usize>().ok();
        let layout = Layout { slots: number(jobs)?, largest: number(largest)? };
        let (user, group) = (account(user)?, account(group)?);
        let (threads, deadline) = (number(threads)?, Duration::from_micros(number(deadline)? as u64));
        Some(Orders { source: Source::of(source), user, group, threads, layout, deadline })
    }
}

/// The number of a user or group; `-`: none.
pub(crate) fn account(word: &OsString) -> Option<Option<u32>> {
    match word.as_bytes() {
        b"-" => Some(None),
        _ => word.to_str()?.parse().ok().map(Some),
    }
}

/// Keeps nothing of terse's: no descriptors but the standard streams, no rights, no signals that are meant for terse.
pub(crate) fn settle(user: Option<u32>, group: Option<u32>) -> io::Result<()> {
    seclude()?;
    become_account(user, group)
}

/// Keeps no descriptors but the standard streams, and ignores signals that are meant for terse.
pub(crate) fn seclude() -> io::Result<()> {
    close_inherited()?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    // The signals of a terminal and of a service manager go to all processes of a group; this process ends when terse
    // does.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2] {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let _ = rustix::process::setpgid(None, None);
    rustix::thread::set_no_new_privs(true)?;
    Ok(())
}

/// Becomes the user and the group that terse will be.
pub(crate) fn become_account(user: Option<u32>, group: Option<u32>) -> io::Result<()> {
    if let Some(group) = group {
        let _ = rustix::thread::set_thread_groups(&[]);
        let group = rustix::process::Gid::from_raw(group);
        rustix::thread::set_thread_res_gid(group, group, group)?;
    }
    if let Some(user) = user {
        let user = rustix::process::Uid::from_raw(user);
        rustix::thread::set_thread_res_uid(user, user, user)?;
    }
    Ok(())
}

/// Closes all descriptors above the standard streams. This process has opened nothing yet, so all of them were
/// inherited.
fn close_inherited() -> io::Result<()> {
    // SAFETY: numbers only, of which no value in this process owns one.
    if unsafe { libc::close_range(3, libc::c_uint::MAX, 0) } == 0 {
        return Ok(());
    }
    // Linux before 5.9.
    let open = std::fs::read_dir("/proc/self/fd")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    for number in open.filter(|number| *number >= 3).collect::<Vec<_>>() {
        // SAFETY: as above; the folder's own descriptor is closed by now.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// The next message, and its descriptors; none at the end.
fn receive() -> io::Result<Option<(u8, [Option<OwnedFd>; 2])>> {
    let mut word = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let (stream, flags) = (rustix::stdio::stdin(), RecvFlags::CMSG_CLOEXEC);
    let message = rustix::io::retry_on_intr(|| recvmsg(stream, &mut [IoSliceMut::new(&mut word)], &mut control, flags))?;
    let mut descriptors = [None, None];
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            descriptors.iter_mut().zip(received).for_each(|(place, descriptor)| *place = Some(descriptor));
        }
    }
    Ok((message.bytes > 0).then_some((word[0], descriptors)))
}

/// Kills the running process and waits for it a while. A process that hangs in a driver may outlive even this, and is
/// then one of the undead. Returns its status.
fn end(runs: &mut Option<Pid>, undead: &mut Vec<Pid>) -> i32 {
    undead.retain(|process| matches!(waitpid(Some(*process), WaitOptions::NOHANG), Ok(None)));
    let Some(process) = runs.take() else { return UNKNOWN };
    // It may have ended by itself: then that end is reported.
    for pause_ms in [0, 0, 1, 5, 20, 50, 100] {
        match waitpid(Some(process), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => return status.as_raw(),
            Ok(None) => {
                let _ = kill_process(process, Signal::KILL);
            }
            Err(_) => return UNKNOWN,
        }
        let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: pause_ms * 1_000_000 };
        let _ = rustix::event::poll(&mut [], Some(&pause));
    }
    undead.push(process);
    UNKNOWN
}

/// Starts the card's process.
fn fork(orders: &Orders, socket: OwnedFd, memory: OwnedFd) -> Option<Pid> {
    let keeper = rustix::process::getpid();
    // SAFETY: this process has one thread, so the new one finds every lock and the allocator as this thread left them.
    match unsafe { libc::fork() } {
        0 => {
            serve(orders, keeper, socket, memory);
            // SAFETY: ends the process at once; nothing of the keeper's is to be run again in its copy.
            unsafe { libc::_exit(1) }
        }
        number => Pid::from_raw(number).filter(|_| number > 0),
    }
}

/// Runs the card's process: [`worker::serve`].
fn serve(orders: &Orders, keeper: Pid, socket: OwnedFd, memory: OwnedFd) {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    // The keeper may have ended before that call.
    if rustix::process::getppid() != Some(keeper) {
        return;
    }
    let _ = rustix::thread::set_name(c"terse-card");
    let Ok(nothing) = std::fs::File::open("/dev/null") else { return };
    if rustix::stdio::dup2_stdin(nothing.as_fd()).is_err() || nothing.as_raw_fd() < 3 {
        return;
    }
    drop(nothing);
    if let Ok(memory) = Memory::attach(memory, orders.layout) {
        match &orders.source {
            Source::Cuda(number) => cuda::serve(*number, orders.threads, orders.deadline, &socket, &memory),
            Source::Library(path) => worker::serve(path, orders.threads, &socket, &memory),
            Source::Unsaid => {}
        }
    }
}

/// Limit of processes that were killed and have not ended: a device that holds so many does not let go of another
/// either.
const MAX_UNDEAD: usize = 8;

const START: u8 = b's';
const KILL: u8 = b'k';

/// Status of a process whose end is not known.
const UNKNOWN: i32 = -1;

/// Time limit of a keeper to start a process; killing one takes it 0.2 s at most.
const PATIENCE: Duration = Duration::from_secs(5);
