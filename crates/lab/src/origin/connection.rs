//! A connection: request, response, request, until one side closes; or, where the client begins with its preface, HTTP/2.

mod http2;

use super::answer::{Answer, Framing, head};
use super::catalog::{Action, Catalog, ENTRIES, Item};
use super::made::Blocks;
use super::request::{BodyLength, Found, Request, find};
use super::tally::Tally;
use super::validators::{SUM_START, add_to_sum};
use bytes::{Buf, BytesMut};
use std::cell::OnceCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use terse_http::h2::PREFACE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server of the origin.
#[derive(Debug)]
pub(super) struct Server {
    /// From 0.
    pub(super) number: usize,
    pub(super) catalog: Rc<Catalog>,
    pub(super) blocks: Rc<OnceCell<Blocks>>,
    pub(super) tally: Arc<Tally>,
    pub(super) turns: Rc<Turns>,
    pub(super) only_http2: bool,
}

/// Of large answers, one sends a piece between two looks at other connections: a small one waits for 64 KB at most.
#[derive(Default, Debug)]
pub(super) struct Turns(tokio::sync::Mutex<()>);

impl Turns {
    async fn next(&self) {
        let _held = self.0.lock().await;
        tokio::task::yield_now().await;
    }
}

/// Serves a connection to its end.
pub(super) async fn serve(socket: TcpStream, server: Rc<Server>) {
    let _ = socket.set_nodelay(true);
    let mut connection = Connection { socket, input: BytesMut::new(), output: Vec::new(), server };
    // An error here is a client that went away: its business.
    if let Ok(true) = connection.is_http2().await {
        let Connection { socket, input, server, .. } = connection;
        let _ = http2::serve(socket, input, server).await;
        return;
    }
    while let Ok(true) = connection.exchange().await {}
}

struct Connection {
    socket: TcpStream,
    input: BytesMut,
    output: Vec<u8>,
    server: Rc<Server>,
}

/// Work for a request, free of the bytes it was read from.
struct Job {
    what: What,
    body: Option<BodyLength>,
    head_only: bool,
    modern: bool,
    close: bool,
    expects: bool,
}

enum What {
    Answer(Answer),
    /// These lines, followed by the request's body.
    Echo(String),
    Sink,
    Raw(Vec<u8>),
    /// To this protocol.
    Upgrade(String),
}

impl Connection {
    /// True if the client speaks HTTP/2: its preface comes first.
    async fn is_http2(&mut self) -> io::Result<bool> {
        loop {
            let known = self.input.len().min(PREFACE.len());
            if self.input[..known] != PREFACE[..known] {
                return Ok(self.server.only_http2);
            }
            if known == PREFACE.len() {
                return Ok(true);
            }
            if self.socket.read_buf(&mut self.input).await? == 0 {
                return Ok(false);
            }
        }
    }

    /// Reads a request and answers it; true if another may follow.
    async fn exchange(&mut self) -> io::Result<bool> {
        let job = loop {
            if !self.input.is_empty() {
                match find(&self.input) {
                    Found::Head(request, length) => {
                        let job = self.server.job(&request);
                        self.input.advance(length);
                        break job;
                    }
                    Found::Partial => {}
                    Found::Invalid => return self.refuse().await,
                }
            }
            if self.socket.read_buf(&mut self.input).await? == 0 {
                return Ok(false);
            }
        };
        if job.expects {
            self.socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let Some(length) = job.body else { return self.refuse().await };
        let answer = match job.what {
            What::Answer(answer) if answer.pace.hasty => {
                self.send(&answer, job.head_only, !job.modern, job.close).await?;
                self.body(length, |_| ()).await?;
                return Ok(!job.close);
            }
            What::Answer(answer) => {
                self.body(length, |_| ()).await?;
                answer
            }
            What::Echo(lines) => {
                let mut text = lines.into_bytes();
                text.push(b'\n');
                self.body(length, |part| text.extend_from_slice(part)).await?;
                Answer::new(200, "text/plain", text)
            }
            What::Sink => {
                let (mut bytes, mut sum) = (0, SUM_START);
                self.body(length, |part| {
                    bytes += part.len();
                    sum = part.iter().fold(sum, |sum, byte| add_to_sum(sum, *byte));
                })
                .await?;
                Answer::new(200, "application/json", format!("{{\"bytes\":{bytes},\"sum\":\"{sum:016x}\"}}\n"))
            }
            What::Raw(bytes) => {
                self.body(length, |_| ()).await?;
                self.socket.write_all(&bytes).await?;
                return Ok(false);
            }
            What::Upgrade(protocol) => return self.tunnel(&protocol).await,
        };
        if answer.pace.mute {
            return Ok(false);
        }
        let close = job.close || answer.pace.close || (answer.framing == Framing::Close);
        self.send(&answer, job.head_only, !job.modern, close).await?;
        if answer.pace.resets && answer.pace.cut.is_some() {
            // Closed with this set, it is reset.
            rustix::net::sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO))?;
        }
        Ok(!close && answer.pace.cut.is_none())
    }

    async fn refuse(&mut self) -> io::Result<bool> {
        self.send(&Answer::new(400, "text/plain", "not a request\n"), false, false, true).await?;
        Ok(false)
    }

    async fn send(&mut self, answer: &Answer, head_only: bool, old: bool, close: bool) -> io::Result<()> {
        if !answer.pace.delay.is_zero() {
            tokio::time::sleep(answer.pace.delay).await;
        }
        self.output.clear();
        self.output.extend_from_slice(&answer.head);
        if close {
            self.output.extend_from_slice(b"Connection: close\r\n");
        } else if old {
            self.output.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        self.output.extend_from_slice(self.server.name().as_bytes());
        if !head_only {
            self.send_body(answer).await?;
        }
        self.socket.write_all(&self.output).await
    }

    /// Puts the body after the head, and sends all except the rest that is left in the output at the end.
    async fn send_body(&mut self, answer: &Answer) -> io::Result<()> {
        let piece = match (answer.framing, answer.pace.piece) {
            (Framing::Chunks(chunk), _) => chunk,
            (_, 0) => PIECE_BYTES,
            (_, piece) => piece,
        };
        let end = answer.pace.cut.unwrap_or(u64::MAX).min(answer.body.bytes);
        let mut at = 0;
        while at < end {
            if at > 0 && !answer.pace.pause.is_zero() {
                self.flush().await?;
                tokio::time::sleep(answer.pace.pause).await;
            }
            let mut left = piece.min(usize::try_from(end - at).unwrap_or(usize::MAX));
            if let Framing::Chunks(_) = answer.framing {
                self.output.extend_from_slice(format!("{left:x}\r\n").as_bytes());
            }
            while left > 0 {
                let put = answer.body.put(at, left.min(PIECE_BYTES), &mut self.output);
                if put == 0 {
                    return Ok(());
                }
                (at, left) = (at + put as u64, left - put);
                if self.output.len() >= PIECE_BYTES {
                    self.flush().await?;
                    self.server.turns.next().await;
                }
            }
            if let Framing::Chunks(_) = answer.framing {
                self.output.extend_from_slice(b"\r\n");
            }
        }
        if matches!(answer.framing, Framing::Chunks(_)) && answer.pace.cut.is_none() {
            self.output.extend_from_slice(b"0\r\n");
            self.output.extend_from_slice(answer.trailers.as_bytes());
            self.output.extend_from_slice(b"\r\n");
        }
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }

    /// Reads a request's body.
    async fn body(&mut self, length: BodyLength, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        match length {
            BodyLength::Bytes(bytes) => self.take(bytes, &mut take).await,
            BodyLength::Chunked => loop {
                let line = self.line().await?;
                let digits = line.split(|b| *b == b';').next().unwrap_or_default();
                let size = std::str::from_utf8(digits).ok().and_then(|d| u64::from_str_radix(d.trim(), 16).ok());
                match size {
                    None => return Err(io::ErrorKind::InvalidData.into()),
                    Some(0) => {
                        while !self.line().await?.is_empty() {}
                        return Ok(());
                    }
                    Some(size) => {
                        self.take(size, &mut take).await?;
                        self.line().await?;
                    }
                }
            },
        }
    }

    async fn take(&mut self, bytes: u64, take: &mut impl FnMut(&[u8])) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            if self.input.is_empty() && self.socket.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let part = self.input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            take(&self.input[..part]);
            self.input.advance(part);
            left -= part as u64;
        }
        Ok(())
    }

    /// A line, without its end.
    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.input.iter().position(|b| *b == b'\n') {
                let line = self.input.split_to(end + 1);
                return Ok(line.trim_ascii_end().to_vec());
            }
            if self.input.len() > LINE_BYTES_MOST || self.socket.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Switches protocols, and sends back the bytes that come until the other side is done.
    async fn tunnel(&mut self, protocol: &str) -> io::Result<bool> {
        let head = head(101, &[("Connection", "Upgrade"), ("Upgrade", protocol)]) + self.server.name();
        self.socket.write_all(head.as_bytes()).await?;
        loop {
            self.socket.write_all(&self.input).await?;
            self.input.clear();
            if self.socket.read_buf(&mut self.input).await? == 0 {
                return Ok(false);
            }
        }
    }
}

impl Server {
    /// The last lines of every head: which server it was.
    fn name(&self) -> &str {
        NAMES.get(self.number).copied().unwrap_or("\r\n")
    }

    fn job(&self, request: &Request<'_>) -> Job {
        let count = self.tally.request(self.number);
        let what = match self.catalog.find(request.path()) {
            None => What::Answer(Answer::new(404, "text/plain", "nothing here\n")),
            Some(Item::Fresh(variants)) => What::Answer(variant(variants, count, request.modern)),
            Some(Item::Static(asset)) if request.is_unconditional() => What::Answer(asset.whole()),
            Some(Item::Static(asset)) => What::Answer(asset.answer(request)),
            Some(Item::Action(action)) => self.act(*action, request, count),
        };
        Job {
            what,
            body: request.body(),
            head_only: request.method == "HEAD",
            modern: request.modern,
            close: request.wants_close(),
            expects: request.field("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")),
        }
    }

    fn act(&self, action: Action, request: &Request<'_>, count: u64) -> What {
        let parameter = |name: &str| request.query().find(|(n, _)| n == name).map(|(_, value)| value);
        match action {
            Action::Index => What::Answer(Answer::new(200, "text/html; charset=utf-8", index())),
            Action::Made => {
                let made = self.blocks.get_or_init(|| Blocks::new(self.catalog.seed())).answer(request, count);
                What::Answer(made.unwrap_or_else(|why| Answer::new(400, "text/plain", why + "\n")))
            }
            Action::Echo => What::Echo(request.lines()),
            Action::Sink => What::Sink,
            Action::Tally => What::Answer(match parameter("key") {
                Some(key) => Answer::new(200, "text/plain", format!("{}\n", self.tally.key(&key))),
                None => Answer::new(200, "application/json", self.tally.json()),
            }),
            Action::Raw => What::Raw(parameter("bytes").unwrap_or_default().as_bytes().to_vec()),
            Action::Upgrade => match request.field("upgrade") {
                Some(protocol) => What::Upgrade(protocol.to_owned()),
                None => What::Answer(Answer::new(400, "text/plain", "nothing to upgrade to\n")),
            },
        }
    }
}

/// Returns a variant, stamped; without chunks for a client that knows none.
fn variant(variants: &[Answer], count: u64, modern: bool) -> Answer {
    let mut answer = variants[count as usize % variants.len()].clone();
    answer.body.count = count;
    if !modern && matches!(answer.framing, Framing::Chunks(_)) {
        answer.framing = Framing::Close;
        let head = String::from_utf8_lossy(&answer.head).replace("Transfer-Encoding: chunked\r\n", "");
        answer.head = head.into();
    }
    answer
}

/// The index page; its script fetches everything once and fills in the sizes as the browser saw them.
fn index() -> String {
    let rows: String = ENTRIES
        .iter()
        .map(|entry| {
            format!("<tr><td><a href=\"{0}\">{0}</a></td><td>{1}</td></tr>\n", entry.path, entry.about.replace('&', "&amp;"))
        })
        .collect();
    include_str!("index.html").replace("<!-- rows -->", &rows)
}

/// So much is collected before it is written, and so much of a body is taken at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A chunk's size line or a trailer is never longer.
const LINE_BYTES_MOST: usize = 16 * 1024;

const NAMES: [&str; 8] = [
    "X-Origin: 1\r\n\r\n",
    "X-Origin: 2\r\n\r\n",
    "X-Origin: 3\r\n\r\n",
    "X-Origin: 4\r\n\r\n",
    "X-Origin: 5\r\n\r\n",
    "X-Origin: 6\r\n\r\n",
    "X-Origin: 7\r\n\r\n",
    "X-Origin: 8\r\n\r\n",
];
