//! The connection between a master and a worker: the worker's standard input.
//!
//! ```text
//! worker -> master   "_getsocks\n"    and then as in crate::takeover::protocol: the sockets of the worker before
//! worker -> master   "says\n"         u32: how many bytes follow; its version and a line feed; its messages so far
//! worker -> master   "ready\n"        then the worker's own sockets, in the same way
//! master -> worker   from then on: Manner::BYTES bytes and the descriptor of a client of the master's command line (SCM_RIGHTS)
//! either side ends: the other one reads its end. A worker without a master stops.
//! ```

use crate::sockets::Pool;
use crate::takeover::protocol::REQUEST;
use crate::takeover::receive;
use crate::takeover::send::Exported;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use terse_admin::Manner;
use tokio::io::Interest;

/// The variable of the environment that tells a worker that it is one; it holds the number of reloads so far.
pub const VARIABLE: &str = "TERSE_WORKER";

/// A worker's side.
#[derive(Debug)]
pub struct Lifeline {
    stream: UnixStream,
    generation: u32,
}

/// Report of a worker.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Words {
    /// Its version.
    pub version: String,
    /// Its messages, line by line.
    pub log: String,
}

/// Request or report of a worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Requests the sockets of the worker before.
    Sockets,
    /// Serves, and hands its sockets over.
    Ready,
    /// Its state so far.
    Says(Words),
}

impl Lifeline {
    /// Returns the lifeline of this process, if it is a master's worker.
    ///
    /// # Errors
    /// The environment names a lifeline, and there is none.
    pub fn of_this_process() -> io::Result<Option<Lifeline>> {
        let Some(generation) = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok()) else { return Ok(None) };
        let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        // Only a socket has an address.
        stream.local_addr()?;
        Ok(Some(Lifeline { stream, generation }))
    }

    /// True if the master has started it for a reload: then the arguments that concern earlier processes are not for it.
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

    /// Tells the master this program's version and its messages so far.
    ///
    /// # Errors
    /// The master is gone.
    pub fn say(&self, version: &str, log: &str) -> io::Result<()> {
        let text = format!("{version}\n{log}");
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        (&self.stream).write_all(&[SAYS, &length.to_ne_bytes(), text.as_bytes()].concat())
    }

    /// Hands on the clients that the master sends, until the master is gone.
    pub async fn attend(self, mut client: impl FnMut(UnixStream, Manner)) {
        let watch = || -> io::Result<tokio::net::UnixStream> {
            self.stream.set_nonblocking(true)?;
            tokio::net::UnixStream::from_std(self.stream)
        };
        let Ok(stream) = watch() else { return };
        while stream.readable().await.is_ok() {
            match stream.try_io(Interest::READABLE, || receive_client(&stream)) {
                Ok(Received::Client(connection, manner)) => client(connection, manner),
                Ok(Received::Nonsense) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(Received::End) | Err(_) => return,
            }
        }
    }
}

/// Sends a client to a worker that serves. Never blocks.
///
/// # Errors
/// The worker is gone, or has not taken those before.
pub fn send_client(lifeline: &UnixStream, client: &UnixStream, manner: Manner) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [client.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = retry_on_intr(|| sendmsg(lifeline, &[IoSlice::new(&manner.to_bytes())], &mut control, flags))?;
    // The kernel takes so few bytes as one.
    if sent == Manner::BYTES { Ok(()) } else { Err(io::Error::other("the lifeline is broken")) }
}

/// Message read by a worker.
enum Received {
    Client(UnixStream, Manner),
    Nonsense,
    End,
}

fn receive_client(stream: impl AsFd) -> io::Result<Received> {
    let mut bytes = [0; Manner::BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let read = retry_on_intr(|| recvmsg(&stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags))?.bytes;
    if read == 0 {
        return Ok(Received::End);
    }
    let descriptors = control.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let client = descriptors.flatten().next().map(UnixStream::from);
    Ok(match (client, Manner::of_bytes(bytes).filter(|_| read == bytes.len())) {
        (Some(client), Some(manner)) => Received::Client(client, manner),
        _ => Received::Nonsense,
    })
}

/// Reads a worker's message; `None` when it is gone.
///
/// # Errors
/// It is another message.
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
            SAYS => return words(stream).map(|words| Some(Asked::Says(words))),
            _ => {}
        }
    }
    Err(io::Error::other("it speaks another protocol"))
}

fn words(mut stream: &UnixStream) -> io::Result<Words> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_ne_bytes(length)).ok().filter(|length| *length <= WORDS_BYTES);
    let mut text = vec![0; length.ok_or_else(|| io::Error::other("it says too much"))?];
    stream.read_exact(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let (version, log) = text.split_once('\n').unwrap_or((&text, ""));
    Ok(Words { version: version.to_owned(), log: log.to_owned() })
}

const READY: &[u8] = b"ready\n";
const SAYS: &[u8] = b"says\n";

/// More than a [`crate::report::Report`] remembers.
const WORDS_BYTES: usize = 128 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Lifeline, UnixStream) {
        let (stream, master) = UnixStream::pair().unwrap();
        (Lifeline { stream, generation: 0 }, master)
    }

    #[test]
    fn words_arrive() {
        let (lifeline, master) = pair();
        lifeline.say("3.5", "one\ntwo\n").unwrap();
        drop(lifeline);
        let words = Words { version: "3.5".into(), log: "one\ntwo\n".into() };
        assert_eq!(asked(&master).unwrap(), Some(Asked::Says(words)));
        assert_eq!(asked(&master).unwrap(), None);
    }

    #[test]
    fn too_many_words_are_not_read() {
        let (lifeline, master) = pair();
        (&lifeline.stream).write_all(b"says\n\xff\xff\xff\xff").unwrap();
        assert!(asked(&master).is_err());
        (&lifeline.stream).write_all(b"_nonsense\n").unwrap();
        assert!(asked(&master).is_err());
    }

    #[test]
    fn clients_arrive_with_their_manners() {
        let (lifeline, master) = pair();
        let manner = Manner::of_bytes([2, 1, 0, 0, 1, 1]).unwrap();
        let (client, mut served) = UnixStream::pair().unwrap();
        send_client(&master, &client, manner).unwrap();
        // A descriptor that is no client's is passed over.
        (&master).write_all(&[9; Manner::BYTES]).unwrap();
        send_client(&master, &client, manner).unwrap();
        drop((master, client));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut manners = Vec::new();
        runtime.block_on(lifeline.attend(|mut client, manner| {
            client.write_all(b"x").unwrap();
            manners.push(manner);
        }));
        assert_eq!(manners, [manner; 2]);
        let mut read = Vec::new();
        served.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"xx");
    }

    #[test]
    fn a_worker_that_takes_nothing_is_not_waited_for() {
        let (_lifeline, master) = pair();
        let manner = Manner::of_bytes([0; Manner::BYTES]).unwrap();
        let (client, _served) = UnixStream::pair().unwrap();
        let refused = (0..100_000).find_map(|_| send_client(&master, &client, manner).err());
        assert!(refused.is_some());
    }
}
