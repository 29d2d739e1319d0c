//! Handing this process's sockets over to the one that replaces it.

use super::protocol::{BATCH, Control, Record};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The sockets that may be handed over: a duplicate of each listener, until the process stops to listen.
#[derive(Debug, Default)]
pub struct Exported {
    sockets: Mutex<Vec<(OwnedFd, Record)>>,
}

impl Exported {
    /// Adds a socket, with the device that it is bound to.
    ///
    /// # Errors
    /// There is no descriptor left for the duplicate.
    pub fn add(&self, socket: &OwnedFd, interface: Option<&str>) -> io::Result<()> {
        let record = Record { namespace: String::new(), interface: interface.unwrap_or_default().to_owned() };
        let duplicate = socket.try_clone()?;
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).push((duplicate, record));
        Ok(())
    }

    /// A duplicate of each socket, with the device that it is bound to.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn duplicates(&self) -> io::Result<Vec<(OwnedFd, String)>> {
        let held = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().map(|(socket, record)| Ok((socket.try_clone()?, record.interface.clone()))).collect()
    }

    /// Closes the duplicates: a process that does not listen any more must not keep sockets open whose queues no task empties.
    pub fn close(&self) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Sends all of them to the process at the other end, which has asked. Blocks until that has confirmed them, and no longer than
    /// a second a batch.
    ///
    /// # Errors
    /// The other side went away or is silent; it got none of the sockets or all up to the last batch.
    pub fn send(&self, mut stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let sockets: Vec<(OwnedFd, Record)> = {
            let held = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
            held.iter().map(|(socket, record)| Ok((socket.try_clone()?, record.clone()))).collect::<io::Result<_>>()?
        };
        let count = i32::try_from(sockets.len()).unwrap_or(i32::MAX);
        io::Write::write_all(&mut stream, &count.to_ne_bytes())?;
        for batch in sockets.chunks(BATCH) {
            let descriptors: Vec<BorrowedFd<'_>> = batch.iter().map(|(socket, _)| socket.as_fd()).collect();
            let mut records = Vec::new();
            batch.iter().for_each(|(_, record)| record.write(&mut records));
            send_batch(stream, &descriptors, &records)?;
            stream.read_exact(&mut [0; 4])?;
        }
        Ok(())
    }
}

fn send_batch(mut stream: &UnixStream, descriptors: &[BorrowedFd<'_>], records: &[u8]) -> io::Result<()> {
    let mut space: Control = [MaybeUninit::uninit(); _];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for one message"));
    }
    let flags = SendFlags::NOSIGNAL;
    let sent = rustix::io::retry_on_intr(|| sendmsg(stream, &[IoSlice::new(records)], &mut control, flags))?;
    // The descriptors went with the first byte; records that did not fit follow plainly.
    io::Write::write_all(&mut stream, &records[sent..])
}

/// The new process waits for nothing else when it takes the sockets.
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::Endpoint;
    use crate::takeover::receive::pool;
    use std::net::TcpListener;

    fn hand_over(exported: &Exported) -> io::Result<crate::sockets::Pool> {
        let (old, new) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let receiver = scope.spawn(move || pool(&new));
            exported.send(&old)?;
            receiver.join().unwrap()
        })
    }

    #[test]
    fn sockets_arrive_with_what_is_said_about_them() {
        let exported = Exported::default();
        let listeners: Vec<TcpListener> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        for (listener, interface) in listeners.iter().zip([None, Some("lo"), None]) {
            exported.add(&listener.try_clone().unwrap().into(), interface).unwrap();
        }
        let mut pool = hand_over(&exported).unwrap();
        assert_eq!(pool.len(), 3);
        let endpoint = |at: usize| Endpoint::Ip(listeners[at].local_addr().unwrap());
        assert_eq!(pool.take(&endpoint(1), None, None, 9).len(), 0);
        assert_eq!(pool.take(&endpoint(1), None, Some("lo"), 9).len(), 1);
        assert_eq!(pool.take(&endpoint(2), None, None, 9).len(), 1);
    }

    #[test]
    fn who_closes_behind_the_last_message_has_handed_over() {
        use std::os::fd::AsFd;
        let (old, new) = UnixStream::pair().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut record = Vec::new();
        Record { namespace: String::new(), interface: String::new() }.write(&mut record);
        io::Write::write_all(&mut &old, &1i32.to_ne_bytes()).unwrap();
        send_batch(&old, &[listener.as_fd()], &record).unwrap();
        drop(old);
        assert_eq!(pool(&new).unwrap().len(), 1);
    }

    #[test]
    fn more_than_a_message_holds_come_in_batches() {
        let exported = Exported::default();
        let listener: OwnedFd = TcpListener::bind("127.0.0.1:0").unwrap().into();
        (0..BATCH + 8).for_each(|_| exported.add(&listener, None).unwrap());
        assert_eq!(hand_over(&exported).unwrap().len(), BATCH + 8);
    }

    #[test]
    fn nothing_is_left_to_send_once_closed() {
        let exported = Exported::default();
        exported.add(&TcpListener::bind("127.0.0.1:0").unwrap().into(), None).unwrap();
        exported.close();
        assert!(hand_over(&exported).unwrap().is_empty());
    }

    #[test]
    fn whoever_answers_otherwise_is_not_believed() {
        for (answer, expected) in
            [(&b""[..], "hands no sockets over"), (b"Unknown command", "another protocol"), (&[9, 0, 0, 0], "announced 9")]
        {
            let (mut old, new) = UnixStream::pair().unwrap();
            io::Write::write_all(&mut old, answer).unwrap();
            rustix::net::shutdown(&old, rustix::net::Shutdown::Write).unwrap();
            let error = pool(&new).unwrap_err().to_string();
            assert!(error.contains(expected), "{answer:?}: {error}");
        }
    }
}
