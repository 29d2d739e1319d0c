//! Answers as a request asks for them, for tests: `/made?bytes=...&chunk=...`.
//!
//! | parameter | what |
//! |---|---|
//! | `bytes` | length of the body (1000) |
//! | `kind` | `text` (a script, over and over; stamped, so that no two are the same), `noise` (does not compress), `zero` |
//! | `stamp` | the number that a text is stamped with, instead of the request's: the same number gives the same bytes ([`Bodies`]) |
//! | `type` | Content-Type (`text/plain`); empty: none |
//! | `chunk` | chunked, in chunks of so many bytes |
//! | `piece` | with a length: the bytes sent between two pauses |
//! | `pause_ms` | the pause between chunks or pieces |
//! | `delay_ms` | the pause before the head |
//! | `status` | 200 |
//! | `header` | a field, `Name:value`; may be given several times |
//! | `trailer` | the same after a chunked body |
//! | `early` | a status such as 103, sent before the answer |
//! | `length` | another Content-Length than the true one; `0` with `close=1`: none, the end of the connection ends the body |
//! | `cut` | the connection is closed after so many bytes of the body |
//! | `reset` | `1`: where it is cut, it is reset |
//! | `mute` | `1`: the connection is closed, and nothing is sent |
//! | `hasty` | `1`: the answer is sent before the request's body is read |
//! | `close` | `1`: the connection is closed after the answer, which announces it |

use super::answer::{Answer, Body, Framing, Pace, head};
use super::catalog::{noise, text};
use super::request::Request;
use bytes::Bytes;
use std::fmt::Write;
use std::rc::Rc;
use std::time::Duration;

/// Blocks that bodies are cut from.
#[derive(Debug)]
pub(super) struct Blocks {
    text: (Bytes, Rc<[usize]>),
    noise: Bytes,
    zero: Bytes,
}

impl Blocks {
    pub(super) fn new(seed: u64) -> Blocks {
        Blocks { text: text(seed), noise: noise(seed), zero: Bytes::from_static(&[0; 65536]) }
    }

    /// The answer to a request, which is the server's number `count`; why it cannot be made if it cannot.
    pub(super) fn answer(&self, request: &Request<'_>, count: u64) -> Result<Answer, String> {
        let wish = Wish::parse(request)?;
        let (block, stamps) = match wish.kind.as_str() {
            "text" => (self.text.0.clone(), Rc::clone(&self.text.1)),
            "noise" => (self.noise.clone(), Rc::default()),
            "zero" => (self.zero.clone(), Rc::default()),
            other => return Err(format!("kind={other}: text, noise or zero")),
        };
        let none = matches!(wish.status, 100..200 | 204 | 304);
        let count = wish.stamp.unwrap_or(count);
        let body = Body { block, stamps, count, start: 0, bytes: if none { 0 } else { wish.bytes } };
        let framing = match wish.chunk {
            Some(chunk) if request.modern => Framing::Chunks(chunk.max(1)),
            Some(_) => Framing::Close,
            None if wish.pace.close && wish.length == Some(0) => Framing::Close,
            None => Framing::Length,
        };
        Ok(Answer { head: wish.head(framing, none).into(), body, framing, pace: wish.pace, trailers: wish.trailers })
    }
}

/// The bodies that `/made` of an origin sends, for comparison.
#[derive(Debug)]
pub struct Bodies(Blocks);

impl Bodies {
    /// Of the origin with this seed.
    pub fn new(seed: u64) -> Bodies {
        Bodies(Blocks::new(seed))
    }

    /// The text with a stamp.
    pub fn text(&self, stamp: u64, bytes: usize) -> Vec<u8> {
        let (block, stamps) = &self.0.text;
        whole(&Body { block: block.clone(), stamps: Rc::clone(stamps), count: stamp, start: 0, bytes: bytes as u64 })
    }

    /// Bytes that do not compress.
    pub fn noise(&self, bytes: usize) -> Vec<u8> {
        whole(&Body { block: self.0.noise.clone(), bytes: bytes as u64, ..Body::default() })
    }
}

fn whole(body: &Body) -> Vec<u8> {
    let mut out = Vec::new();
    while body.put(out.len() as u64, usize::MAX, &mut out) > 0 {}
    out
}

/// The parameters.
struct Wish {
    bytes: u64,
    kind: String,
    stamp: Option<u64>,
    content_type: String,
    chunk: Option<usize>,
    pace: Pace,
    status: u16,
    fields: String,
    trailers: String,
    early: Option<u16>,
    length: Option<u64>,
}

impl Wish {
    fn parse(request: &Request<'_>) -> Result<Wish, String> {
        let mut wish = Wish {
            bytes: 1000,
            kind: "text".into(),
            stamp: None,
            content_type: "text/plain".into(),
            chunk: None,
            pace: Pace::default(),
            status: 200,
            fields: String::new(),
            trailers: String::new(),
            early: None,
            length: None,
        };
        for (name, value) in request.query() {
            let number = || value.parse::<u64>().map_err(|_| format!("{name}={value}: not a number"));
            match &*name {
                "bytes" => wish.bytes = number()?,
                "kind" => wish.kind = value.into_owned(),
                "stamp" => wish.stamp = Some(number()?),
                "type" => wish.content_type = value.into_owned(),
                "chunk" => wish.chunk = Some(number()? as usize),
                "piece" => wish.pace.piece = number()? as usize,
                "pause_ms" => wish.pace.pause = Duration::from_millis(number()?),
                "delay_ms" => wish.pace.delay = Duration::from_millis(number()?),
                "status" => wish.status = number()? as u16,
                "early" => wish.early = Some(number()? as u16),
                "length" => wish.length = Some(number()?),
                "cut" => wish.pace.cut = Some(number()?),
                "reset" => wish.pace.resets = value == "1",
                "mute" => wish.pace.mute = value == "1",
                "hasty" => wish.pace.hasty = value == "1",
                "close" => wish.pace.close = value == "1",
                "header" | "trailer" => {
                    let lines = if name == "header" { &mut wish.fields } else { &mut wish.trailers };
                    let (name, value) = value.split_once(':').ok_or("header and trailer are Name:value")?;
                    let _ = write!(lines, "{name}: {}\r\n", value.trim_start());
                }
                other => return Err(format!("{other}: no such parameter")),
            }
        }
        Ok(wish)
    }

    fn head(&self, framing: Framing, none: bool) -> String {
        let mut out = String::new();
        if let Some(early) = self.early {
            let _ = write!(out, "HTTP/1.1 {early} Early\r\nLink: </static/page.js>; rel=preload\r\n\r\n");
        }
        out.push_str(&head(self.status, &[]));
        if !self.content_type.is_empty() {
            let _ = write!(out, "Content-Type: {}\r\n", self.content_type);
        }
        out.push_str(&self.fields);
        match framing {
            _ if none => {}
            Framing::Length => {
                let _ = write!(out, "Content-Length: {}\r\n", self.length.unwrap_or(self.bytes));
            }
            Framing::Chunks(_) => out.push_str("Transfer-Encoding: chunked\r\n"),
            Framing::Close => {}
        }
        out
    }
}
