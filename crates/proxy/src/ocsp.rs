//! Fetches answers about certificates' states (OCSP over HTTP, RFC 6960 appendix A), a few at a time, on the control thread.
//!
//! The questions, their times, and the validation of answers are `terse_tls`'s; this file has the HTTP request and its
//! answer.

use crate::log::{Level, Logger};
use crate::plan::Plan;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use terse_http::h1::{self, ChunkDecoder, Parsed, Step};
use terse_message::{BodyLength, Response};
use terse_names::Families;
use terse_tls::{Fetched, Question};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Fetches them for ever. An unexpected end is logged, and it begins again.
pub async fn run(plan: Arc<Plan>) {
    let mut logger = Logger::new(&plan.sinks);
    loop {
        let _ = tokio::spawn(fetch_all(plan.clone())).await;
        logger.send(&plan.journal, Level::Alert, b"<OCSP-UPDATE> ended by a fault of this program, begins again");
        plan.vault.give_up_questions();
        sleep(PATIENCE).await;
    }
}

/// Descriptors that this may have open at a time.
pub fn descriptors(plan: &Plan) -> usize {
    if plan.vault.has_questions() { MOST_AT_ONCE } else { 0 }
}

/// Returns only where a fault of this program has ended a fetch.
async fn fetch_all(plan: Arc<Plan>) {
    let mut logger = Logger::new(&plan.sinks);
    let mut asked = JoinSet::new();
    loop {
        let due = if asked.len() < MOST_AT_ONCE { plan.vault.due_question() } else { Err(PATIENCE) };
        let pause = match due {
            Ok(question) => {
                let plan = plan.clone();
                asked.spawn(async move {
                    let fetched = timeout(PATIENCE, fetch(&question, &plan)).await;
                    (question, fetched.unwrap_or(Err(Fetched::Http)))
                });
                continue;
            }
            Err(pause) => pause,
        };
        tokio::select! {
            Some(done) = asked.join_next() => {
                let Ok((question, fetched)) = done else { return };
                if let Some(line) = plan.vault.take_fetched(&question, fetched) {
                    logger.send(&plan.journal, Level::Notice, line.as_bytes());
                }
            }
            () = plan.vault.questions_change() => {}
            () = sleep(pause) => {}
        }
    }
}

async fn fetch(question: &Question, plan: &Plan) -> Result<Vec<u8>, Fetched> {
    let place = Place::parse(&question.url).ok_or(Fetched::Http)?;
    let proxy = plan.vault.questions_proxy();
    let stream = connect(proxy.unwrap_or(&place.address), plan).await.map_err(|_| Fetched::Http)?;
    let response = exchange(stream, &place.request(question, proxy.is_some())).await.map_err(|_| Fetched::Http)?;
    match response {
        (head, _) if head.status != 200 => Err(Fetched::Http),
        (head, body) => {
            let kind = head.fields.get(b"content-type").unwrap_or_default();
            let is_answer =
                kind.split(|byte| *byte == b';').next().is_some_and(|kind| kind.trim_ascii().eq_ignore_ascii_case(ANSWER));
            if is_answer { Ok(body) } else { Err(Fetched::OtherType) }
        }
    }
}

/// Parts of a URL.
struct Place<'u> {
    authority: &'u str,
    address: String,
    path: &'u str,
}

impl Place<'_> {
    fn parse(url: &str) -> Option<Place<'_>> {
        let rest = url.strip_prefix("http://").filter(|rest| rest.bytes().all(|byte| byte.is_ascii_graphic()))?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if has_port { authority.to_owned() } else { format!("{authority}:80") };
        (!authority.is_empty() && !authority.contains('@')).then_some(Place { authority, address, path })
    }

    /// In the target where that is short, so that caches can answer, or else in the body.
    fn request(&self, question: &Question, by_proxy: bool) -> Vec<u8> {
        let base = if by_proxy { format!("http://{}", self.authority) } else { String::new() };
        let path = if self.path.is_empty() { "/" } else { self.path };
        let encoded = terse_tls::base64(&question.der).replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let rest = format!("HTTP/1.1\r\nHost: {}\r\nAccept: application/ocsp-response\r\nConnection: close\r\n", self.authority);
        if encoded.len() < SHORT {
            return format!("GET {base}{}/{encoded} {rest}\r\n", path.trim_end_matches('/')).into_bytes();
        }
        let len = question.der.len();
        let head =
            format!("POST {base}{path} {rest}Content-Type: application/ocsp-request\r\nContent-Length: {len}\r\n\r\n").into_bytes();
        [head, question.der.clone()].concat()
    }
}

/// Connects to an address. Names are looked up by the section `resolvers default`, if there is one: it needs no files, which
/// the system's own way does not find under `chroot`. A responder that cannot be reached over IPv6 is tried over IPv4.
async fn connect(address: &str, plan: &Plan) -> io::Result<TcpStream> {
    let (name, port) = address.rsplit_once(':').ok_or(ErrorKind::InvalidInput)?;
    let port: u16 = port.parse().map_err(|_| ErrorKind::InvalidInput)?;
    let is_number = name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    let resolvers = plan.resolvers.iter().find(|resolvers| *resolvers.name == *"default" && !is_number);
    let known: Vec<SocketAddr> = match resolvers {
        Some(_) => Vec::new(),
        None => lookup_host(address).await?.collect(),
    };
    let mut last = ErrorKind::NotFound.into();
    for families in [Families::V6, Families::V4] {
        let found = match resolvers {
            Some(resolvers) => resolvers.address(name, families).await.map(|ip| SocketAddr::new(ip, port)),
            None => known.iter().find(|known| known.is_ipv6() == (families == Families::V6)).copied(),
        };
        let Some(found) = found else { continue };
        match timeout(CONNECTING, TcpStream::connect(found)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => {
                EXHAUSTION.note(&error, Purpose::Certificate);
                last = error;
            }
            Err(_) => last = ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

async fn exchange(mut stream: TcpStream, request: &[u8]) -> io::Result<(Response, Vec<u8>)> {
    stream.write_all(request).await?;
    let (mut response, mut bytes) = (Response::default(), Vec::new());
    loop {
        match h1::parse_response(&bytes, b"GET", &mut response).map_err(|_| ErrorKind::InvalidData)? {
            Parsed::Complete(n) => {
                bytes.drain(..n);
                if !matches!(response.status, 100..=199) {
                    break;
                }
            }
            Parsed::Partial => more(&mut stream, &mut bytes).await?,
        }
    }
    let body = match response.body {
        BodyLength::None => Vec::new(),
        BodyLength::Exact(len) => {
            let len = usize::try_from(len).ok().filter(|len| *len <= LARGEST_BYTES).ok_or(ErrorKind::InvalidData)?;
            while bytes.len() < len {
                more(&mut stream, &mut bytes).await?;
            }
            bytes.truncate(len);
            bytes
        }
        BodyLength::Framed => chunks(&mut stream, bytes).await?,
        BodyLength::UntilClose => {
            while more(&mut stream, &mut bytes).await.map_or_else(ended, |()| Ok(true))? {}
            bytes
        }
    };
    Ok((response, body))
}

/// Whether reading went on: not after the end of the connection, where that is the end of the body.
fn ended(error: io::Error) -> io::Result<bool> {
    if error.kind() == ErrorKind::UnexpectedEof { Ok(false) } else { Err(error) }
}

async fn chunks(stream: &mut TcpStream, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let (mut decoder, mut body) = (ChunkDecoder::default(), Vec::new());
    loop {
        let (used, step) = decoder.step(&bytes).map_err(|_| ErrorKind::InvalidData)?;
        match step {
            Step::Data(range) => {
                body.extend_from_slice(&bytes[range.clone()]);
                bytes.drain(..range.end);
            }
            Step::End => return Ok(body),
            Step::More => {
                bytes.drain(..used);
                if body.len() > LARGEST_BYTES {
                    return Err(ErrorKind::InvalidData.into());
                }
                more(stream, &mut bytes).await?;
            }
        }
    }
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<()> {
    if bytes.len() > LARGEST_BYTES {
        return Err(ErrorKind::InvalidData.into());
    }
    match stream.read_buf(bytes).await? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Fetches at a time.
const MOST_AT_ONCE: usize = 8;
/// Time limit of an answer, with its connection.
const PATIENCE: Duration = Duration::from_secs(15);
/// Time limit of a connection attempt: the other family's shall have its time, too.
const CONNECTING: Duration = Duration::from_secs(5);
/// The largest head, and the largest answer: usual ones have 2 KB.
const LARGEST_BYTES: usize = 64 * 1024;
/// RFC 5019 section 5: the longest request in a target.
const SHORT: usize = 255;
const ANSWER: &[u8] = b"application/ocsp-response";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        let parse = |url: &'static str| Place::parse(url).map(|place| (place.address, place.path));
        assert_eq!(parse("http://a.test"), Some(("a.test:80".into(), "")));
        assert_eq!(parse("http://a.test:8080/x/y"), Some(("a.test:8080".into(), "/x/y")));
        assert_eq!(parse("http://[::1]/x"), Some(("[::1]:80".into(), "/x")));
        for url in ["https://a.test", "http://", "http:///x", "http://a b/", "http://u@a.test/", "http://a.test/\r\nX: y"] {
            assert!(Place::parse(url).is_none(), "{url}");
        }
    }
}
