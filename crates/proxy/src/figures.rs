//! A stream's figures: bytes each way, work of coders, and its phase.
//!
//! They are cells of an object that the stream shares with its counting parts and with the worker's registry. So they are
//! right at every moment, also where the serving future is [dropped](crate::exchange::cancel), and `show sess` reads them.

use crate::facts::Decoding;
use crate::phase::body::Broke;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::time::Instant;
use terse_balance::{Claim, Server};
use terse_compress::decode::Decompressor;
use terse_compress::decode::counters::Outcome;
use terse_compress::{Compressor, Level, Recall};
use terse_message::Phase;

/// A stream's figures.
#[derive(Debug)]
pub struct Figures {
    /// The number of the stream, unique in the process.
    pub id: Cell<u64>,
    /// When it began; `None` where no stream is open.
    pub start: Cell<Option<Instant>>,
    /// Bytes that the client sent: head and body.
    pub bytes_in: Cell<u64>,
    /// Bytes that the client was sent.
    pub bytes_out: Cell<u64>,
    /// Those of them that went before the head of the final answer.
    pub head_at: Cell<u64>,
    /// Bytes of the server's answer: head and body.
    pub bytes_from_server: Cell<u64>,
    /// Bytes that the server was sent: head and body.
    pub bytes_to_server: Cell<u64>,
    /// Bytes from the client and to it that were counted while they passed (`option contstats`).
    pub metered: (Cell<u64>, Cell<u64>),
    /// Bytes into and out of the compressor of the response.
    pub compressed: Cell<(u64, u64)>,
    /// Its compression level.
    pub level: Cell<Level>,
    /// Result of the lookup in the memory of compressed bodies.
    pub recall: Cell<Option<Recall>>,
    /// Outcome of the decoding of coded bodies, where any is to be decoded.
    pub decoding: Cell<Decoding>,
    /// The phase of the stream.
    pub phase: Cell<Phase>,
    /// The slot of the server that counts it ([`Server::slot`]).
    pub server: Cell<Option<usize>>,
    /// The socket of the connection to that server.
    pub server_socket: Cell<Option<RawFd>>,
    /// The number of the backend, once it is chosen.
    pub backend: Cell<Option<usize>>,
}

impl Figures {
    /// Whether no byte of the final answer has gone to the client.
    pub fn has_sent_nothing(&self) -> bool {
        self.bytes_out.get() == self.head_at.get()
    }
}

impl Figures {
    /// The stream is open, and can be listed and ended.
    pub fn open(&self, id: u64, start: Instant) {
        self.id.set(id);
        self.start.set(Some(start));
    }

    /// The stream has ended.
    pub fn close(&self) {
        self.start.set(None);
    }

    /// Whether a stream is open.
    pub fn is_open(&self) -> bool {
        self.start.get().is_some()
    }

    /// The figures of a stream that nothing has been done for.
    pub fn clear(&self) {
        let Figures { id, start, bytes_in, bytes_out, head_at, bytes_from_server, bytes_to_server, .. } = self;
        id.set(0);
        start.set(None);
        for bytes in [bytes_in, bytes_out, head_at, bytes_from_server, bytes_to_server, &self.metered.0, &self.metered.1] {
            bytes.set(0);
        }
        self.compressed.set((0, 0));
        self.level.set(Level(0));
        self.recall.set(None);
        self.decoding.set(Decoding::default());
        self.phase.set(Phase::Request);
        self.server.set(None);
        self.server_socket.set(None);
        self.backend.set(None);
    }
}

impl Default for Figures {
    fn default() -> Figures {
        Figures {
            id: Cell::new(0),
            start: Cell::new(None),
            bytes_in: Cell::new(0),
            bytes_out: Cell::new(0),
            head_at: Cell::new(0),
            bytes_from_server: Cell::new(0),
            bytes_to_server: Cell::new(0),
            metered: Default::default(),
            compressed: Cell::new((0, 0)),
            level: Cell::new(Level(0)),
            recall: Cell::new(None),
            decoding: Cell::default(),
            phase: Cell::new(Phase::Request),
            server: Cell::new(None),
            server_socket: Cell::new(None),
            backend: Cell::new(None),
        }
    }
}

/// Adds to a figure.
pub fn add(figure: &Cell<u64>, more: u64) {
    figure.set(figure.get() + more);
}

/// The right of a stream to use a server. As long as it lasts, the stream is among those that end with the server.
pub struct Attached {
    claim: Claim,
    figures: Rc<Figures>,
}

impl Attached {
    /// Counts a stream among those of the claim's server.
    pub fn new(claim: Claim, figures: &Rc<Figures>) -> Attached {
        figures.server.set(Some(claim.server().slot()));
        Attached { claim, figures: figures.clone() }
    }

    /// The server.
    pub fn server(&self) -> &std::sync::Arc<Server> {
        self.claim.server()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.figures.server.set(None);
        self.figures.server_socket.set(None);
    }
}

/// The coder of a response's body. When it is dropped, its work is added to the figures.
pub struct CountedCoder {
    coder: Compressor,
    figures: Rc<Figures>,
}

impl CountedCoder {
    /// A coder whose figures are a stream's.
    pub fn new(coder: Compressor, figures: &Rc<Figures>) -> CountedCoder {
        CountedCoder { coder, figures: figures.clone() }
    }
}

impl Deref for CountedCoder {
    type Target = Compressor;

    fn deref(&self) -> &Compressor {
        &self.coder
    }
}

impl DerefMut for CountedCoder {
    fn deref_mut(&mut self) -> &mut Compressor {
        &mut self.coder
    }
}

impl Drop for CountedCoder {
    fn drop(&mut self) {
        let (coder, figures) = (&self.coder, &self.figures);
        figures.compressed.set((coder.bytes_in(), coder.bytes_out()));
        figures.level.set(coder.level());
        figures.recall.set(coder.recall().or(figures.recall.get()));
    }
}

/// The decoder of a body. When it is dropped, its work is added to the figures.
pub struct CountedDecoder<'a> {
    /// The decoder.
    pub decoder: Box<Decompressor>,
    /// Why it has broken off, if it has.
    fault: Option<terse_compress::decode::Fault>,
    figures: &'a Figures,
    of_request: bool,
}

impl<'a> CountedDecoder<'a> {
    /// Of a request's body or a response's.
    pub fn new(decoder: Box<Decompressor>, figures: &'a Figures, of_request: bool) -> CountedDecoder<'a> {
        CountedDecoder { decoder, fault: None, figures, of_request }
    }
}

impl CountedDecoder<'_> {
    /// Notes why the body could not be decoded, where that is why it has not gone on.
    pub fn note(&mut self, result: &Result<(), Broke>) {
        if let Err(Broke::Decoder(fault)) = result {
            self.fault = Some(*fault);
        }
    }
}

impl Drop for CountedDecoder<'_> {
    fn drop(&mut self) {
        let (bytes_in, bytes_out) = (self.decoder.bytes_in(), self.decoder.bytes_out());
        self.figures.decoded(self.of_request, Outcome::Decoded { bytes_in, bytes_out, fault: self.fault });
    }
}

impl Figures {
    /// Records the outcome of the request's body or the response's.
    pub fn decoded(&self, of_request: bool, outcome: Outcome) {
        let mut decoding = self.decoding.get();
        match of_request {
            true => decoding.request = Some(outcome),
            false => decoding.response = Some(outcome),
        }
        self.decoding.set(decoding);
    }
}
