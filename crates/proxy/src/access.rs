//! Access of workers to connections: each by a listening socket of its own, or in turn by a shared socket.

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// A socket to accept from; it does not block.
#[derive(Debug)]
pub enum Listener {
    /// Over IPv4 or IPv6.
    Tcp(std::net::TcpListener),
    /// A unix socket.
    Unix(std::os::unix::net::UnixListener),
}

/// Access of a worker to the connections of a `bind` line.
#[derive(Debug)]
pub enum Access {
    /// By a socket of its own.
    Own(Listener),
    /// In turn with others, by a shared socket.
    Shared(Turn),
}

/// A worker's place in the round of those that accept on a shared socket. The worker that has the socket accepts a connection
/// and hands the socket on. So a connection wakes a single worker, and connections beyond a limit wait in the kernel and not
/// between two workers.
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
            // It is received below, or there is no worker to accept.
            let _ = first.send(listener);
        }
        senders.rotate_left(workers.min(1));
        inboxes.into_iter().zip(senders).map(|(inbox, next)| Turn { inbox, next }).collect()
    }

    /// The socket, when it is this worker's turn; `None` when there is none any more.
    pub(crate) async fn wait(&mut self) -> Option<Listener> {
        self.inbox.recv().await
    }

    /// The next worker's turn; gives the socket back when that has ended.
    pub(crate) fn pass(&self, listener: Listener) -> Option<Listener> {
        self.next.send(listener).err().map(|unsent| unsent.0)
    }
}
