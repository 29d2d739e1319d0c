//! Examination of a library without running it in this process: for the check of a configuration.

use crate::cuda;
use crate::keeper::{Launch, account, become_account, seclude};
use crate::zlib::Library;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};
use terse_compress::engine::Source;

/// Argument that makes this program load a library and report its version.
pub const WORD: &str = "--engine-probe";

/// Version of a library, or a device's name.
///
/// # Errors
/// The reason why it cannot be an engine.
pub fn examine(launch: &Launch<'_>, source: &Source) -> Result<String, String> {
    let mut command = launch.command(WORD, source);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot be examined: {error}"))?;
    let mut said = Vec::new();
    let ends = child.stdout.take().is_some_and(|mut output| read_in_time(&mut output, &mut said));
    if !ends {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| format!("cannot be examined: {error}"))?;
    let text = String::from_utf8_lossy(&said);
    match (text.split_once(' '), ends) {
        (Some((FIT, version)), _) => Ok(version.to_owned()),
        (Some((UNFIT, reason)), _) => Err(reason.to_owned()),
        (_, false) => Err(format!("hangs when it is loaded: nothing for {} s", PATIENCE.as_secs())),
        (_, true) => Err(format!("ends the process that loads it ({status})")),
    }
}

/// Reads the whole output; false when it does not end in time.
fn read_in_time(output: &mut std::process::ChildStdout, said: &mut Vec<u8>) -> bool {
    let until = Instant::now() + PATIENCE;
    let mut part = [0; 512];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = rustix::event::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut polled = [rustix::event::PollFd::new(&*output, rustix::event::PollFlags::IN)];
        match rustix::io::retry_on_intr(|| rustix::event::poll(&mut polled, Some(&left))) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return false,
        }
        match output.read(&mut part) {
            Ok(0) => return true,
            Ok(length) if said.len() < MOST_SAID => said.extend_from_slice(&part[..length]),
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Runs the examining process; `words` are the arguments after [`WORD`].
pub fn answer(words: &[OsString]) -> ExitCode {
    let [source, user, group] = words else { return ExitCode::FAILURE };
    let (Some(user), Some(group)) = (account(user), account(group)) else { return ExitCode::FAILURE };
    let said = match keep_output(user, group) {
        Err(_) => return ExitCode::FAILURE,
        Ok(output) => output,
    };
    let looked = match Source::of(source) {
        Source::Cuda(number) => cuda::look(number),
        Source::Library(path) => Library::open(&path).map(|library| library.version()).map_err(|unfit| unfit.to_string()),
        Source::Unsaid => return ExitCode::FAILURE,
    };
    let text = match looked {
        Ok(version) => format!("{FIT} {version}"),
        Err(reason) => format!("{UNFIT} {reason}"),
    };
    match (&said).write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Gives up everything that a keeper gives up, except for the output of the answer. The library's own output goes
/// elsewhere.
fn keep_output(user: Option<u32>, group: Option<u32>) -> std::io::Result<std::fs::File> {
    // All descriptors but the standard ones are closed on the way, and standard input is not read.
    rustix::stdio::dup2_stdin(rustix::stdio::stdout())?;
    seclude()?;
    // A check without the rights to become that user runs as the caller's user.
    let _ = become_account(user, group);
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(output.into())
}

const FIT: &str = "fit";
const UNFIT: &str = "unfit";
const PATIENCE: Duration = Duration::from_secs(10);
const MOST_SAID: usize = 4096;
