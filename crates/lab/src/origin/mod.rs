//! The origin: a server whose every answer is made up, for the demonstration, the benchmark and the tests.
//!
//! It shares a core with the load generator when something is measured, so all that can be prepared is prepared. A request that
//! asks for a whole body and sets no conditions costs a hash look-up, a copy, and one write. Everything else goes the long way
//! round.
//!
//! There are two kinds of bodies. Those under `/static/` never change and have validators (strong ETag, Last-Modified) and ranges.
//! The others, except `/again-chunked.js`, differ from request to request throughout, so that no memory of whole bodies can help a
//! proxy. [`catalog`] lists them.

mod answer;
pub mod catalog;
mod connection;
mod made;
mod request;
mod tally;
mod validators;

pub use made::Bodies;
pub use tally::Tally;

use crate::cores;
use catalog::Catalog;
pub use catalog::RELEASES;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// Settings of an origin.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses to listen on; port 0 takes a free one. Each is a server of its own to the eye: answers carry `X-Origin: 1` and so
    /// on.
    pub listen: Vec<SocketAddr>,
    /// Seed of the bodies.
    pub seed: u64,
    /// The core that its thread stays on.
    pub core: Option<usize>,
    /// True for HTTP/2 alone; else a client that begins with HTTP/2's preface speaks that, all others HTTP/1.
    pub only_http2: bool,
}

impl Options {
    /// So many servers on free ports of 127.0.0.1.
    pub fn local(servers: usize) -> Options {
        Options { listen: vec![SocketAddr::from(([127, 0, 0, 1], 0)); servers], seed: 1, core: None, only_http2: false }
    }
}

/// A running origin. Dropping it closes its sockets, whatever is under way on them.
#[derive(Debug)]
pub struct Origin {
    addresses: Vec<SocketAddr>,
    tally: Arc<Tally>,
    stop: watch::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    /// Listens, and serves on a thread of its own. It accepts when this returns.
    pub fn start(options: &Options) -> io::Result<Origin> {
        let listeners = options.listen.iter().map(TcpListener::bind).collect::<io::Result<Vec<_>>>()?;
        Origin::serve(listeners, options)
    }

    /// The same on sockets that listen already.
    pub fn serve(listeners: Vec<TcpListener>, options: &Options) -> io::Result<Origin> {
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        listeners.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
        let (stop, stopped) = watch::channel(());
        let tally = Arc::new(Tally::new(addresses.len()));
        let (started, start) = mpsc::channel();
        let (seed, core, tally_there) = (options.seed, options.core, Arc::clone(&tally));
        let only_http2 = options.only_http2;
        let thread = std::thread::Builder::new().name("origin".into()).spawn(move || {
            let result = core.map_or(Ok(()), cores::pin_this_thread);
            let failed = result.is_err();
            let _ = started.send(result);
            if !failed {
                run(listeners, (Catalog::new(seed), only_http2), tally_there, stopped);
            }
        })?;
        start.recv().unwrap_or_else(|_| Err(io::Error::other("the origin's thread died")))?;
        Ok(Origin { addresses, tally, stop, thread: Some(thread) })
    }

    /// Addresses that it listens on, in the order of [`Options::listen`].
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Counters of the origin.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Waits until it is stopped, which only the end of the process does.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.send_replace(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The sum that `/sink` answers of a body.
pub fn sum(body: &[u8]) -> u64 {
    validators::sum(body)
}

fn run(listeners: Vec<TcpListener>, (catalog, only_http2): (Catalog, bool), tally: Arc<Tally>, mut stopped: watch::Receiver<()>) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return eprintln!("origin: {error}"),
    };
    let (catalog, blocks, turns) = (Rc::new(catalog), Rc::default(), Rc::default());
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        for (number, listener) in listeners.into_iter().enumerate() {
            let server = Rc::new(connection::Server {
                number,
                catalog: Rc::clone(&catalog),
                blocks: Rc::clone(&blocks),
                tally: Arc::clone(&tally),
                turns: Rc::clone(&turns),
                only_http2,
            });
            tokio::task::spawn_local(accept(listener, server));
        }
        let _ = stopped.changed().await;
    });
}

async fn accept(listener: TcpListener, server: Rc<connection::Server>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return eprintln!("origin: {error}"),
    };
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                server.tally.connection(server.number);
                tokio::task::spawn_local(connection::serve(socket, Rc::clone(&server)));
            }
            // Out of descriptors, most likely: those that are open go on, and free some.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    }
}
