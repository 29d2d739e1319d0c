//! The connection between a master and a worker: the worker's standard input.
//!
//! ```text
//! worker -> master   "_getsocks\n"    and then as in crate::takeover::protocol: the sockets of the worker before
//! worker -> master   "ready\n"        then the worker's own sockets, in the same way
//! either side ends: the other one reads its end. A worker without a master stops.
//! ```

use crate::sockets::Pool;
use crate::takeover::protocol::REQUEST;
use crate::takeover::receive;
use crate::takeover::send::Exported;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// The variable of the environment that tells a worker that it is one; it holds the number of reloads so far.
pub const VARIABLE: &str = "TERSE_WORKER";

/// A worker's side.
#[derive(Debug)]
pub struct Lifeline {
    stream: UnixStream,
    generation: u32,
}

/// What a worker says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// It wants the sockets of the worker before.
    Sockets,
    /// It serves, and hands its sockets over.
    Ready,
}

impl Lifeline {
    /// The lifeline of this process, if it is a master's worker.
    ///
    /// # Errors
    /// The environment says that there is one, and there is none.
    pub fn of_this_process() -> io::Result<Option<Lifeline>> {
        let Some(generation) = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()) else { return Ok(None) };
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        // Only a socket has an address.
        stream.local_addr()?;
        Ok(Some(Lifeline { stream, generation }))
    }

    /// Whether the master has started it for a reload: then the words that concern earlier processes are not for it.
    pub fn is_reload(&self) -> bool {
        self.generation > 0
    }

    /// The sockets of the worker before.
    ///
    /// # Errors
    /// The master is gone.
    pub fn sockets(&self) -> io::Result<Pool> {
        (&self.stream).write_all(REQUEST)?;
        receive::pool(&self.stream)
    }

    /// Tells the master that this worker serves, and hands its sockets over.
    ///
    /// # Errors
    /// The master is gone.
    pub fn ready(&self, sockets: &Exported) -> io::Result<()> {
        (&self.stream).write_all(READY)?;
        sockets.send(&self.stream)
    }

    /// Waits until the master is gone.
    pub async fn end(self) {
        let watch = || -> io::Result<tokio::net::UnixStream> {
            self.stream.set_nonblocking(true)?;
            tokio::net::UnixStream::from_std(self.stream)
        };
        if let Ok(stream) = watch() {
            let mut byte = [0];
            while stream.readable().await.is_ok() {
                match stream.try_read(&mut byte) {
                    Ok(0) => return,
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                    _ => {}
                }
            }
        }
    }
}

/// Reads what a worker says; `None` when it is gone.
///
/// # Errors
/// It says something else.
pub fn asked(mut stream: &UnixStream) -> io::Result<Option<Asked>> {
    // It is silent for as long as it serves.
    stream.set_read_timeout(None)?;
    let mut line = Vec::new();
    while line.len() < REQUEST.len() {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        line.extend(byte);
        match &line[..] {
            REQUEST => return Ok(Some(Asked::Sockets)),
            READY => return Ok(Some(Asked::Ready)),
            _ => {}
        }
    }
    Err(io::Error::other("it speaks another protocol"))
}

const READY: &[u8] = b"ready\n";
