//! Figures for Prometheus: `http-request use-service prometheus-exporter`.
//!
//! ```text
//! rule -> Exporter::start -> Serving: the answer's head -> pieces of the Dump, a chunk each, as the socket takes them -> the end
//! ```
//!
//! It is a service as those of scripts are: its answer goes through rules and compression, and a slow client holds it
//! back.
//!
//! Invariants:
//! * All samples of a metric are adjacent, as the format requires; so figures are read one by one, and no rows of
//!   servers are kept.
//! * An unknown value is `NaN`; a figure that a proxy of its mode does not count has no sample.
//! * A turn makes a bounded number of bytes, however many servers there are.

mod dump;
mod families;
mod own;
mod query;
mod text;

use crate::context::Context;
use crate::page::Link;
use dump::Dump;
use query::Query;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use terse_config::Settings;
use terse_proxy::rules::Flow;
use terse_proxy::script::{Applet, Play};
use terse_proxy::stream::Stream;
use tokio::net::UnixStream;

/// Name in `use-service`.
pub const NAME: &str = "prometheus-exporter";

/// The service, for a configuration that is being read.
pub fn service(shared: &mut Settings) -> Arc<dyn Applet> {
    Arc::new(Exporter { link: shared.entry::<Link>().clone() })
}

struct Exporter {
    link: Link,
}

impl Applet for Exporter {
    fn name(&self) -> &str {
        "<PROMEX>"
    }

    fn start(&self, stream: &mut Stream, socket: UnixStream) -> Box<dyn Play> {
        let target = stream.request.path_and_query();
        let query = target.iter().position(|byte| *byte == b'?').map_or(&b""[..], |at| &target[at + 1..]);
        let context = self.link.context();
        let (out, dump) = match (Query::parse(query), &context) {
            (Err(reason), _) => (short(400, "Bad Request", &reason), None),
            (Ok(_), None) => (short(503, "Service Unavailable", "the process is starting"), None),
            (Ok(query), Some(context)) => {
                let head = "HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\nContent-Type: text/plain; version=0.0.4\r\n\
                            Transfer-Encoding: chunked\r\n\r\n";
                let wanted = stream.request.method() != b"HEAD";
                (head.to_owned(), wanted.then(|| Dump::new(context, query)))
            }
        };
        Box::new(Serving { socket, out: out.into_bytes(), sent: 0, dump, context })
    }
}

/// An answer of one line.
fn short(status: u16, reason: &str, text: &str) -> String {
    let length = text.len() + 1;
    format!(
        "HTTP/1.1 {status} {reason}\r\nCache-Control: no-cache\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{text}\n"
    )
}

/// An answer that is being sent.
struct Serving {
    socket: UnixStream,
    /// Bytes to send now.
    out: Vec<u8>,
    sent: usize,
    /// The rest of the answer.
    dump: Option<Dump>,
    context: Option<Arc<Context>>,
}

impl Play for Serving {
    fn poll(&mut self, _: &mut Stream, task: &mut Task<'_>) -> Poll<Flow> {
        self.skip_request(task);
        for _ in 0..PIECES {
            while self.sent < self.out.len() {
                match self.socket.poll_write_ready(task) {
                    Poll::Ready(Ok(())) => {}
                    // The client has closed.
                    Poll::Ready(Err(_)) => return Poll::Ready(Flow::Next),
                    Poll::Pending => return Poll::Pending,
                }
                match self.socket.try_write(&self.out[self.sent..]) {
                    Ok(count) => self.sent += count,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => return Poll::Ready(Flow::Next),
                }
            }
            if !self.next_piece() {
                return Poll::Ready(Flow::Next);
            }
        }
        // Other tasks have a turn.
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Serving {
    /// Reads and drops the request: only its first line matters.
    fn skip_request(&self, task: &mut Task<'_>) {
        let mut bytes = [0; 1024];
        while let Poll::Ready(Ok(())) = self.socket.poll_read_ready(task) {
            match self.socket.try_read(&mut bytes) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Makes the next chunk, or the last one; false after that.
    fn next_piece(&mut self) -> bool {
        let (Some(dump), Some(context)) = (&mut self.dump, &self.context) else { return false };
        let mut text = String::new();
        dump.next(context, &mut text);
        (self.sent, self.out) = (0, Vec::new());
        match text.is_empty() {
            true => {
                self.dump = None;
                self.out.extend_from_slice(b"0\r\n\r\n");
            }
            false => {
                self.out.extend_from_slice(format!("{:x}\r\n", text.len()).as_bytes());
                self.out.extend_from_slice(text.as_bytes());
                self.out.extend_from_slice(b"\r\n");
            }
        }
        true
    }
}

/// Limit of chunks in a turn.
const PIECES: usize = 4;
