//! Asking a process for its sockets over its stats socket.

use super::protocol::{BATCH, Control, MOST, RECORD_BYTES, REQUEST, Record};
use crate::sockets::Pool;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Asks the process behind that stats socket for everything that it listens on.
///
/// # Errors
/// It cannot be reached, does not answer in time, hands nothing over, or speaks another protocol.
pub fn receive(path: &Path) -> io::Result<Pool> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    receive_from(stream)
}

pub(super) fn receive_from(mut stream: UnixStream) -> io::Result<Pool> {
    stream.write_all(REQUEST)?;
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
        if receive_batch(&stream, &mut sockets, &mut records)? == 0 {
            return Err(io::Error::other(format!("it has announced {announced} sockets and sent {}", sockets.len())));
        }
        let so_far = i32::try_from(sockets.len()).unwrap_or(i32::MAX);
        stream.write_all(&so_far.to_ne_bytes())?;
    }
    let mut pool = Pool::default();
    let mut rest = &records[..];
    for socket in sockets {
        let record = Record::read(&mut rest).ok_or_else(|| io::Error::other("it speaks another protocol"))?;
        if record.namespace.is_empty() {
            pool.add(socket, (!record.interface.is_empty()).then_some(record.interface));
        }
    }
    Ok(pool)
}

/// One message; returns its length in bytes.
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
