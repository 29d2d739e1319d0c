//! Malformed messages: the last one of each proxy, for `show errors` on the stats socket.

use crate::facts::Facts;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use terse_http::h1::{self, Reading};
use terse_message::{Malformed, Request, Response};

/// A message whose head was refused.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// When it was refused.
    pub at: SystemTime,
    /// Number of malformed messages before it, over all proxies.
    pub event: u64,
    /// Why it was refused.
    pub flaw: Malformed,
    /// Its bytes that had come.
    pub bytes: Box<[u8]>,
    /// The client's address.
    pub client: Option<SocketAddr>,
    /// The frontend's name and number.
    pub frontend: (Arc<str>, u32),
    /// Of a response the backend's name and number, and the server's.
    pub origin: Option<Origin>,
    reading: Reading,
    method: Box<[u8]>,
}

/// The server whose response was refused.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The backend.
    pub backend: (Arc<str>, u32),
    /// The server, unless a script answered.
    pub server: Option<(Arc<str>, u32)>,
}

/// The place of a proxy's last malformed message.
#[derive(Default, Debug)]
pub struct Exhibit(Mutex<Option<Box<Evidence>>>);

impl Exhibit {
    /// The last malformed message.
    pub fn last(&self) -> Option<Box<Evidence>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, evidence: Evidence) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(evidence));
    }
}

impl Evidence {
    fn new(facts: &Facts, flaw: Malformed, bytes: &[u8], method: &[u8]) -> Evidence {
        let frontend = facts.frontend();
        Evidence {
            at: SystemTime::now(),
            event: EVENTS.fetch_add(1, Relaxed),
            flaw,
            bytes: bytes.get(..MOST_BYTES).unwrap_or(bytes).into(),
            client: facts.client,
            frontend: (frontend.name.clone(), frontend.id),
            origin: None,
            reading: frontend.reading,
            method: method.into(),
        }
    }

    /// The offset of the byte that it was refused for; where there is none, the number of bytes that had to come until it
    /// could be.
    pub fn position(&self) -> usize {
        culprit(self.flaw, &self.bytes).unwrap_or_else(|| self.least())
    }

    /// The number of bytes that had to come until it could be refused, less one.
    fn least(&self) -> usize {
        let is_bad = |len: usize| match self.bytes.get(..len) {
            Some(bytes) if self.origin.is_none() => h1::parse_request_with(bytes, &mut Request::default(), self.reading).is_err(),
            Some(bytes) => h1::parse_response(bytes, &self.method, &mut Response::default()).is_err(),
            None => true,
        };
        let (mut good, mut bad) = (0, self.bytes.len());
        while good + 1 < bad {
            let middle = good.midpoint(bad);
            if is_bad(middle) { bad = middle } else { good = middle }
        }
        good
    }
}

/// The offset of the first byte that has the flaw.
fn culprit(flaw: Malformed, bytes: &[u8]) -> Option<usize> {
    let first_line = bytes.split(|byte| *byte == b'\n').next()?;
    let word = |at: usize| first_line.iter().enumerate().filter(|(_, byte)| **byte == b' ').nth(at).map(|(at, _)| at + 1);
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    // The offset of each field, and its line.
    let fields = || {
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        ends.map(|start| (start, bytes[start..].split(|byte| *byte == b'\n').next().unwrap_or_default()))
    };
    match flaw {
        Malformed::Method => first_line.iter().position(|byte| !is_token(*byte)),
        Malformed::Target => {
            let start = word(0)?;
            let target = first_line[start..].split(|byte| *byte == b' ').next()?;
            Some(start + target.iter().position(|byte| !byte.is_ascii_graphic() || *byte == b'#').unwrap_or(0))
        }
        Malformed::Version => word(1),
        Malformed::FieldName => fields().find_map(|(start, line)| {
            let name = line.split(|byte| *byte == b':').next()?;
            Some(start + name.iter().position(|byte| !is_token(*byte) && *byte != b'\r')?)
        }),
        Malformed::FieldValue => fields().find_map(|(start, line)| {
            let value = line.strip_suffix(b"\r").unwrap_or(line);
            Some(start + value.iter().position(|byte| byte.is_ascii_control() && *byte != b'\t')?)
        }),
        Malformed::Folding => fields().find(|(_, line)| line.starts_with(b" ") || line.starts_with(b"\t")).map(|(start, _)| start),
        Malformed::LineEnd => bytes.iter().enumerate().find_map(|(at, byte)| match byte {
            b'\n' if at == 0 || bytes[at - 1] != b'\r' => Some(at),
            b'\r' if bytes.get(at + 1) != Some(&b'\n') => Some(at),
            _ => None,
        }),
        _ => None,
    }
}

/// Keeps a request's head.
pub fn request(facts: &Facts, flaw: Malformed, bytes: &[u8]) {
    facts.frontend().tally.exhibit.keep(Evidence::new(facts, flaw, bytes, b""));
}

/// Keeps a response's head.
pub fn response(facts: &Facts, flaw: Malformed, bytes: &[u8], method: &[u8]) {
    let Some(backend) = facts.backend() else { return };
    let server = facts.server.as_ref().map(|server| (Arc::from(&**server.name()), server.id()));
    let origin = Some(Origin { backend: (backend.name.clone(), backend.id), server });
    backend.tally.exhibit.keep(Evidence { origin, ..Evidence::new(facts, flaw, bytes, method) });
}

/// Number of malformed messages.
pub fn events() -> u64 {
    EVENTS.load(Relaxed)
}

static EVENTS: AtomicU64 = AtomicU64::new(0);

/// The most that is kept of a message: a buffer's usual size.
const MOST_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flaw_has_a_place() {
        for (flaw, head, place) in [
            (Malformed::Method, "BAD\r\n\r\n", Some(3)),
            (Malformed::Target, "GET /a\u{e9} HTTP/1.1\r\n\r\n", Some(6)),
            (Malformed::Target, "GET a HTTP/1.1\r\n\r\n", Some(4)),
            (Malformed::Version, "GET / HTTP/3.1\r\n\r\n", Some(6)),
            (Malformed::FieldName, "GET / HTTP/1.1\r\nA : b\r\n\r\n", Some(17)),
            (Malformed::FieldValue, "GET / HTTP/1.1\r\nA: \u{1}b\r\n\r\n", Some(19)),
            (Malformed::Folding, "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", Some(22)),
            (Malformed::LineEnd, "GET / HTTP/1.1\nA: b\r\n\r\n", Some(14)),
            (Malformed::Host, "GET / HTTP/1.1\r\n\r\n", None),
            (Malformed::Target, "", None),
        ] {
            assert_eq!(culprit(flaw, head.as_bytes()), place, "{head}");
        }
    }
}
