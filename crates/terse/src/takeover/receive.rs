//! Asking a process for its sockets over its stats socket.

use super::protocol::{BATCH, Control, MOST, RECORD_BYTES, REQUEST, Record};
use super::send::Exported;
use crate::sockets::Pool;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Requests all listening sockets of the process at the other end of that stats socket.
///
/// # Errors
/// It cannot be reached, does not answer in time, hands nothing over, or speaks another protocol.
pub fn receive(path: &Path) -> io::Result<Pool> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(REQUEST)?;
    pool(&stream)
}

/// Receives sockets to listen on.
///
/// # Errors
/// As [`receive`].
pub fn pool(stream: &UnixStream) -> io::Result<Pool> {
    let mut pool = Pool::default();
    for (socket, record) in sockets(stream)? {
        if record.namespace.is_empty() {
            pool.add(socket, (!record.interface.is_empty()).then_some(record.interface));
        }
    }
    Ok(pool)
}

/// Receives sockets to be handed on.
///
/// # Errors
/// As [`receive`].
pub fn held(stream: &UnixStream) -> io::Result<Exported> {
    let exported = Exported::default();
    for (socket, record) in sockets(stream)? {
        exported.add(&socket, Some(&record.interface))?;
    }
    Ok(exported)
}

fn sockets(mut stream: &UnixStream) -> io::Result<Vec<(OwnedFd, Record)>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut announced = [0; 4];
    stream.read_exact(&mut announced).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            io::Error::other("it hands no sockets over (is 'expose-fd listeners' on its stats socket?)")
        }
        _ => error,
    })?;
    let announced = usize::try_from(i32::from_ne_bytes(announced)).ok().filter(|count| *count <= MOST);
    let announced = announced.ok_or_else(|| io::Error::other("it speaks another protocol"))?;
    let mut sockets: Vec<OwnedFd> = Vec::new();
    let mut records: Vec<u8> = Vec::new();
    while sockets.len() < announced {
        if receive_batch(stream, &mut sockets, &mut records)? == 0 {
            return Err(io::Error::other(format!("it has announced {announced} sockets and sent {}", sockets.len())));
        }
        let so_far = i32::try_from(sockets.len()).unwrap_or(i32::MAX);
        let told = stream.write_all(&so_far.to_ne_bytes());
        // HAProxy waits for no answer to its last message, and may have closed.
        if sockets.len() < announced {
            told?;
        }
    }
    let mut rest = &records[..];
    let mut record = || Record::read(&mut rest).ok_or_else(|| io::Error::other("it speaks another protocol"));
    sockets.into_iter().map(|socket| Ok((socket, record()?))).collect()
}

/// Receives a message; returns its length in bytes.
fn receive_batch(stream: &UnixStream, sockets: &mut Vec<OwnedFd>, records: &mut Vec<u8>) -> io::Result<usize> {
    let mut bytes = vec![0; BATCH * RECORD_BYTES];
    let mut space: Control = [MaybeUninit::uninit(); _];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message = rustix::io::retry_on_intr(|| recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags))?;
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            sockets.extend(received);
        }
    }
    records.extend_from_slice(&bytes[..message.bytes]);
    Ok(message.bytes)
}

/// The old process may be busy, but a start must not hang.
const PATIENCE: Duration = Duration::from_secs(5);
