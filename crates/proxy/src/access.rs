//! How workers come to connections: each by a listening socket of its own, or in turn by one for all.

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// A socket to accept from; it does not block.
#[derive(Debug)]
pub enum Listener {
    /// Over IPv4 or IPv6.
    Tcp(std::net::TcpListener),
    /// A unix socket.
    Unix(std::os::unix::net::UnixListener),
}

/// How a worker comes to the connections of a `bind` line.
#[derive(Debug)]
pub enum Access {
    /// By a socket of its own.
    Own(Listener),
    /// In turn with others, by one socket for all.
    Shared(Turn),
}

/// A worker's place in the round of those that accept on one socket. Whoever has the socket accepts one connection and hands it on. So a
/// connection wakes one worker, and what exceeds a limit waits in the kernel and not between two workers.
#[derive(Debug)]
pub struct Turn {
    inbox: UnboundedReceiver<Listener>,
    next: UnboundedSender<Listener>,
}

impl Turn {
    /// A round of so many workers, which begins with the first.
    pub fn round(listener: Listener, workers: usize) -> Vec<Turn> {
        let (mut senders, inboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| mpsc::unbounded_channel()).unzip();
        if let Some(first) = senders.first() {
            // It is received below, or nobody is to accept.
            let _ = first.send(listener);
        }
        senders.rotate_left(workers.min(1));
        inboxes.into_iter().zip(senders).map(|(inbox, next)| Turn { inbox, next }).collect()
    }

    /// The socket, when it is this worker's turn; nothing when there is none any more.
    pub(crate) async fn wait(&mut self) -> Option<Listener> {
        self.inbox.recv().await
    }

    /// The next worker's turn; gives the socket back when that has ended.
    pub(crate) fn pass(&self, listener: Listener) -> Option<Listener> {
        self.next.send(listener).err().map(|unsent| unsent.0)
    }
}
