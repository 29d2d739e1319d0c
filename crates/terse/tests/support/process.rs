//! A process: its arguments and files, its output, its end.
#![allow(unsafe_code, reason = "listeners are inherited by number")]

use super::{PATIENCE, readable, until};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// A process, or the settings that it will be started with.
pub struct Terse {
    folder: TempDir,
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    listeners: HashMap<String, TcpListener>,
    inherited: Vec<OwnedFd>,
    has_configuration: bool,
    running: Option<Running>,
}

struct Running {
    child: Child,
    stdout: File,
    stderr: File,
}

/// A process that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Bytes on standard output.
    pub stdout: String,
    /// Bytes on standard error.
    pub stderr: String,
}

impl Terse {
    /// The program with this configuration.
    pub fn with(configuration: &str) -> Terse {
        Terse { has_configuration: true, ..Terse::bare() }.file("terse.cfg", configuration)
    }

    /// The program without a configuration.
    pub fn bare() -> Terse {
        // Unix sockets' paths are short: the folder's has to be shorter.
        let folder = tempfile::Builder::new().prefix("t").tempdir_in("/tmp").unwrap();
        let program = PathBuf::from(env!("CARGO_BIN_EXE_terse"));
        Terse {
            folder,
            program,
            arguments: Vec::new(),
            variables: Vec::new(),
            listeners: HashMap::new(),
            inherited: Vec::new(),
            has_configuration: false,
            running: None,
        }
    }

    /// Adds an option, with its values.
    pub fn arg(mut self, words: &[&str]) -> Terse {
        self.arguments.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Adds a variable of the environment.
    pub fn env(mut self, name: &str, value: &str) -> Terse {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts a file beside the configuration: `${dir}/<name>`.
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Terse {
        std::fs::write(self.path(name), content).unwrap();
        self
    }

    /// Opens a listener on a free port: `bind fd@${<name>}`.
    pub fn listen(self, name: &str) -> Terse {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // As many may wait as terse's own listeners let wait: the standard library's are 128.
        rustix::net::listen(&listener, 4096).unwrap();
        self.listener(name, listener)
    }

    /// Inherits this listener: `bind fd@${<name>}`.
    pub fn listener(mut self, name: &str, listener: TcpListener) -> Terse {
        let inherited = OwnedFd::from(listener.try_clone().unwrap());
        self.variables.push((name.to_owned(), inherited.as_raw_fd().to_string()));
        self.inherited.push(inherited);
        self.listeners.insert(name.to_owned(), listener);
        self
    }

    /// Another program in its place.
    pub fn program(mut self, path: &Path) -> Terse {
        self.program = path.to_owned();
        self
    }

    /// Starts the program under another name, through a link.
    pub fn named(mut self, name: &str) -> Terse {
        let link = self.path(name);
        std::os::unix::fs::symlink(&self.program, &link).unwrap();
        self.program = link;
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Terse {
        let output = |name: &str| File::create_new(self.path(name)).unwrap();
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(self.folder.path()).env("dir", self.folder.path());
        if self.has_configuration {
            command.arg("-f").arg(self.path("terse.cfg"));
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(output("stdout")).stderr(output("stderr"));
        let numbers: Vec<i32> = self.inherited.iter().map(AsRawFd::as_raw_fd).collect();
        let inherit = move || {
            for number in &numbers {
                // SAFETY: the descriptors are open until the process has been started: `self.inherited` owns them.
                let descriptor = unsafe { BorrowedFd::borrow_raw(*number) };
                rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec only fcntl() is called, which is safe there; nothing is allocated.
        unsafe { command.pre_exec(inherit) };
        let child = command.spawn().unwrap();
        self.inherited.clear();
        let read = |name: &str| File::open(self.path(name)).unwrap();
        self.running = Some(Running { child, stdout: read("stdout"), stderr: read("stderr") });
        self
    }

    /// Starts it and waits for its end.
    pub fn run(self) -> Finished {
        self.start().wait()
    }

    /// The path of a file beside the configuration.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Address of a listener.
    pub fn address(&self, name: &str) -> SocketAddr {
        self.listeners[name].local_addr().unwrap()
    }

    /// Closes this side's share of a listener: from now on the process alone keeps it open.
    pub fn let_go(&mut self, name: &str) -> SocketAddr {
        self.listeners.remove(name).unwrap().local_addr().unwrap()
    }

    /// The process's number.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.running().child)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        std::fs::read_to_string(self.path("stdout")).unwrap()
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        std::fs::read_to_string(self.path("stderr")).unwrap()
    }

    /// True if it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        self.running.as_mut().unwrap().child.try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn wait(mut self) -> Finished {
        let running = self.running.as_mut().unwrap();
        if running.child.try_wait().unwrap().is_none() {
            let process = pidfd_open(Pid::from_child(&running.child), PidfdFlags::empty()).unwrap();
            assert!(readable(process, PATIENCE), "the process does not end");
        }
        let status = running.child.wait().unwrap();
        let finished = Finished { status, stdout: text(&mut running.stdout), stderr: text(&mut running.stderr) };
        self.running = None;
        finished
    }

    /// Asks it to stop, as an operator would, and waits for its end.
    pub fn stop(self) -> Finished {
        self.catches_signals();
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Waits until the program handles SIGTERM itself: its sockets are there a moment before.
    fn catches_signals(&self) {
        let status = format!("/proc/{}/status", self.pid().as_raw_nonzero());
        until("the program to catch signals", || {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            // A process that has ended on its own shows none: its exit status is the caller's to judge.
            let caught =
                caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).filter(|_| !status.contains("State:\tZ"));
            caught.is_none_or(|mask| mask >> (Signal::TERM.as_raw() - 1) & 1 == 1).then_some(())
        });
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }
}

impl Finished {
    /// The number that it has ended with; `None` when a signal has killed it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails the test unless it has ended with this number.
    #[track_caller]
    pub fn expect(self, code: i32) -> Finished {
        let Finished { status, stdout, stderr } = &self;
        assert_eq!(status.code(), Some(code), "signal {:?}\nstdout: {stdout}\nstderr: {stderr}", status.signal());
        self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("stdout: {}\nstderr: {}", text(&mut self.stdout), text(&mut self.stderr));
        }
    }
}

/// The number that a file holds.
pub fn number_in(path: &Path) -> Option<i32> {
    std::fs::read_to_string(path).ok()?.strip_suffix('\n')?.parse().ok()
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
