//! A client that visits a proxy, and the answers that it expects.

use super::Done;
use super::proxy::{Door, Proxy};
use crate::client::{Client, Reply, Upload};
use crate::content::rng::Rng;
use crate::origin::Bodies;
use crate::secure::Secure;
use anyhow::{Context, Result, bail, ensure};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Protocol between a client and a proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// HTTP/1 in clear text.
    One,
    /// The same, where there is a cache.
    Cached,
    /// HTTP/1 through TLS.
    OneSecure,
    /// HTTP/2 by prior knowledge.
    Two,
    /// HTTP/2 through TLS.
    TwoSecure,
    /// HTTP/1 through a proxy that knows nothing of it.
    Pass,
}

/// A client of one kind.
pub(super) struct Visitor<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) rng: Rng,
    pub(super) bodies: Bodies,
    secures: &'a [Secure; 2],
    /// The connection that goes on.
    kept: Option<(Way, Client)>,
    done: Done,
}

/// A text of the origin: the request for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    pub(super) bytes: usize,
    pub(super) stamp: u64,
}

impl Text {
    /// Its path, with more parameters.
    pub(super) fn path(self, more: &str) -> String {
        format!("/made?type=text/html&bytes={}&stamp={}{more}", self.bytes, self.stamp)
    }
}

impl<'a> Visitor<'a> {
    /// A client without a connection.
    pub(super) fn new(proxy: &'a Proxy, secures: &'a [Secure; 2], seed: u64) -> Visitor<'a> {
        let bodies = Bodies::new(super::SEED);
        Visitor { proxy, rng: Rng::new(seed), bodies, secures, kept: None, done: Done::default() }
    }

    /// Adds the work done since the last call.
    pub(super) fn note_in(&mut self, all: &mut Done) {
        let done = std::mem::take(&mut self.done);
        all.answers += done.answers;
        all.bytes += done.bytes;
        all.coded += done.coded;
        all.again += done.again;
    }

    /// Gives its connection up.
    pub(super) fn leave(&mut self) {
        self.kept = None;
    }

    /// Notes a completed piece of work, with the bytes that came for it.
    pub(super) fn count(&mut self, bytes: usize) {
        self.done.answers += 1;
        self.done.bytes += bytes as u64;
    }

    /// A text of some size that was never asked for before.
    pub(super) fn text(&mut self) -> Text {
        let sizes = [300, 1_500, 4_000, 16_000, 40_000, 64_000, 132_000, 132_000, 300_000];
        // Large ones are rare, so that the pace is held.
        let bytes = if self.rng.percent(3) { 2_000_000 } else { sizes[self.rng.below(sizes.len())] };
        Text { bytes, stamp: self.rng.number() >> 1 }
    }

    /// Chooses a protocol.
    pub(super) fn way(&mut self, ways: &[Way]) -> Way {
        ways[self.rng.below(ways.len())]
    }

    /// A new connection.
    pub(super) fn connect(&self, way: Way, patience: Duration) -> Result<Client> {
        let [one, two] = self.secures;
        let address = self.proxy.address(way.door());
        match way {
            Way::One | Way::Cached | Way::Pass => Client::connect(address, patience),
            Way::OneSecure => Client::connect_secured(address, patience, one),
            Way::Two => Client::connect_http2(address, patience, None),
            Way::TwoSecure => Client::connect_http2(address, patience, Some(two)),
        }
    }

    /// Address of HTTP/1 in clear text.
    pub(super) fn web(&self) -> SocketAddr {
        self.proxy.address(Door::Web)
    }

    /// A socket there.
    pub(super) fn socket(&self) -> Result<TcpStream> {
        let socket = TcpStream::connect_timeout(&self.web(), PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(socket)
    }

    /// Gets a path.
    pub(super) fn get(&mut self, way: Way, path: &str, lines: &[&str]) -> Result<Reply> {
        self.ask(way, "GET", path, lines, Upload::None)
    }

    /// Asks on the connection that goes on, or on a new one. A request on a connection that ended before an answer began is sent
    /// again, as clients do. The connection must have been in use, or be one of HTTP/2 that its server gives up by GOAWAY.
    pub(super) fn ask(&mut self, way: Way, method: &str, path: &str, lines: &[&str], upload: Upload<'_>) -> Result<Reply> {
        let mut kept = self.kept.take().filter(|(kept, _)| *kept == way);
        for is_last in [false, false, true] {
            let is_new = kept.is_none();
            let mut client = match kept.take() {
                Some((_, client)) => client,
                None => self.connect(way, PATIENCE)?,
            };
            match client.ask(method, path, lines, upload) {
                Ok(reply) => {
                    self.count(reply.body.len());
                    self.done.coded += u64::from(reply.field("content-encoding").is_some());
                    let closes = |value: &str| value.eq_ignore_ascii_case("close");
                    let has_end = reply.field("content-length").or(reply.field("transfer-encoding")).is_some();
                    let goes_on = !reply.field("connection").is_some_and(closes) && !lines.contains(&CLOSE);
                    if goes_on && (has_end || reply.body.is_empty() || way.is_two()) {
                        self.kept = Some((way, client));
                    }
                    return Ok(reply);
                }
                Err(_) if !is_last && !client.has_begun() && (!is_new || client.is_given_up()) => self.done.again += 1,
                Err(error) => return Err(error).with_context(|| format!("{method} {path}")),
            }
        }
        bail!("{method} {path}: each connection was given up")
    }

    /// Gets a text, and compares it.
    pub(super) fn fetch(&mut self, way: Way, text: Text, more: &str, lines: &[&str]) -> Result<Reply> {
        let path = text.path(more);
        let reply = self.get(way, &path, lines)?;
        self.compare(&reply, &self.bodies.text(text.stamp, text.bytes)).with_context(|| path)?;
        Ok(reply)
    }

    /// Compares a reply's body, its coding undone.
    pub(super) fn compare(&self, reply: &Reply, body: &[u8]) -> Result<()> {
        ensure!(reply.status == 200, "status {}", reply.status);
        same(&reply.decoded()?, body)
    }
}

/// Compares bodies.
pub(super) fn same(found: &[u8], wanted: &[u8]) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let at = found.iter().zip(wanted).take_while(|(found, wanted)| found == wanted).count();
    bail!("WRONG BYTES from {at} on: {} of {} bytes", found.len(), wanted.len())
}

impl Way {
    fn door(self) -> Door {
        match self {
            Way::One | Way::Two => Door::Web,
            Way::Cached => Door::Cached,
            Way::OneSecure | Way::TwoSecure => Door::Secure,
            Way::Pass => Door::Pass,
        }
    }

    fn is_two(self) -> bool {
        matches!(self, Way::Two | Way::TwoSecure)
    }
}

/// The line of a client that wants no second answer.
pub(super) const CLOSE: &str = "Connection: close";

/// Nothing takes longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
