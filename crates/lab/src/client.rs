//! A client that waits: one request at a time on one connection, every byte counted.

mod http2;

use crate::secure::Secure;
use anyhow::{Context, Result, bail};
use http2::Http2;
use openssl::ssl::SslStream;
use rustix::net::{AddressFamily, SocketType, bind, socket};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use terse_compress::{Coding, decode};

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    /// True if it has resumed a session of an earlier connection.
    resumed: bool,
    /// Bytes that were read and belong to no answer yet.
    rest: Vec<u8>,
    host: String,
    /// The connection's state, where it speaks HTTP/2.
    http2: Option<Http2>,
    /// True if any byte of the awaited answer has come.
    has_begun: bool,
}

#[derive(Debug)]
enum Socket {
    Plain(TcpStream),
    /// Takes a piece, then pauses.
    Slow(TcpStream, usize, Duration),
    Secured(SslStream<TcpStream>),
}

/// A request's body, and the framing of its end. Over HTTP/2 both framings are the same.
#[derive(Clone, Copy, Debug)]
pub enum Upload<'a> {
    /// None.
    None,
    /// By a length.
    Length(&'a [u8]),
    /// By chunks of so many bytes.
    Chunks(&'a [u8], usize),
}

impl<'a> Upload<'a> {
    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Upload::None => None,
            Upload::Length(bytes) | Upload::Chunks(bytes, _) => Some(bytes),
        }
    }

    /// The body after its field, as HTTP/1 has them.
    fn encoded(self) -> Vec<u8> {
        match self {
            Upload::None => b"\r\n".to_vec(),
            Upload::Length(bytes) => [format!("Content-Length: {}\r\n\r\n", bytes.len()).as_bytes(), bytes].concat(),
            Upload::Chunks(bytes, size) => {
                let mut out = b"Transfer-Encoding: chunked\r\n\r\n".to_vec();
                for chunk in bytes.chunks(size.max(1)) {
                    out.extend(format!("{:x}\r\n", chunk.len()).as_bytes());
                    out.extend(chunk);
                    out.extend(b"\r\n");
                }
                out.extend(b"0\r\n\r\n");
                out
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(socket) => socket.read(into),
            Socket::Slow(socket, piece, pause) => {
                std::thread::park_timeout(*pause);
                let most = into.len().min(*piece);
                socket.read(&mut into[..most])
            }
            Socket::Secured(socket) => socket.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(socket) | Socket::Slow(socket, ..) => socket.write(bytes),
            Socket::Secured(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Plain(socket) | Socket::Slow(socket, ..) => socket.flush(),
            Socket::Secured(socket) => socket.flush(),
        }
    }
}

/// Names and values.
pub type FieldList = Vec<(String, String)>;

/// An answer, whole.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Names in small letters, and values.
    pub fields: FieldList,
    /// The body, chunks undone, its coding not.
    pub body: Vec<u8>,
    /// All bytes on the wire for it: head, body, chunk heads.
    pub wire_bytes: usize,
    /// From the request's first byte sent to the answer's last received.
    pub time: Duration,
}

impl Reply {
    /// The first field of that name (in small letters).
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The body with its content coding undone.
    pub fn decoded(&self) -> Result<Vec<u8>> {
        match self.field("content-encoding") {
            None | Some("identity") => Ok(self.body.clone()),
            Some("gzip") => gunzip(&self.body),
            Some("zstd") => decoded(Coding::Zstd, &self.body),
            Some("br") => decoded(Coding::Brotli, &self.body),
            Some(other) => bail!("content-encoding: {other}"),
        }
    }
}

impl Client {
    /// Connects; nothing may take longer than `patience` from here on.
    pub fn connect(address: SocketAddr, patience: Duration) -> Result<Client> {
        Ok(Client::of(Socket::Plain(connect(address, patience)?), false, address))
    }

    /// The same, and takes the bytes a piece at a time, with a pause before each.
    pub fn connect_slow(address: SocketAddr, patience: Duration, piece: usize, pause: Duration) -> Result<Client> {
        let socket = connect(address, patience)?;
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, piece)?;
        Ok(Client::of(Socket::Slow(socket, piece, pause), false, address))
    }

    fn of(socket: Socket, resumed: bool, address: SocketAddr) -> Client {
        Client { socket, resumed, rest: Vec::new(), host: address.to_string(), http2: None, has_begun: false }
    }

    /// The same, over TLS.
    pub fn connect_secured(address: SocketAddr, patience: Duration, secure: &Secure) -> Result<Client> {
        let (stream, resumed) = secure.shake(connect(address, patience)?)?;
        Ok(Client::of(Socket::Secured(stream), resumed, address))
    }

    /// The same, from an address of this machine.
    pub fn connect_secured_from(from: Ipv4Addr, to: SocketAddr, patience: Duration, secure: &Secure) -> Result<Client> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::from((from, 0)))?;
        rustix::net::connect(&socket, &to).with_context(|| format!("connecting to {to} from {from}"))?;
        let (stream, resumed) = secure.shake(patient(TcpStream::from(socket), patience)?)?;
        Ok(Client::of(Socket::Secured(stream), resumed, to))
    }

    /// The same over HTTP/2: by prior knowledge, or agreed on over TLS ([`Secure::for_http2`]).
    pub fn connect_http2(address: SocketAddr, patience: Duration, secure: Option<&Secure>) -> Result<Client> {
        let mut client = match secure {
            None => Client::connect(address, patience)?,
            Some(secure) => Client::connect_secured(address, patience, secure)?,
        };
        if let Socket::Secured(stream) = &client.socket {
            let agreed = stream.ssl().selected_alpn_protocol();
            if agreed != Some(b"h2") {
                bail!("the server speaks no HTTP/2, but {:?}", agreed.map(String::from_utf8_lossy));
            }
        }
        client.http2 = Some(Http2::begin(&mut client.socket)?);
        Ok(client)
    }

    /// True if it has resumed a session of an earlier connection.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// True if any byte of the last answer has come: a request on a connection that was in use is repeated where none has.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// True if it speaks HTTP/2, and its server takes no further requests on it.
    pub fn is_given_up(&self) -> bool {
        self.http2.as_ref().is_some_and(Http2::is_given_up)
    }

    /// Gets a path with these lines, each `Name: value`, in the request's head.
    pub fn get(&mut self, path: &str, lines: &[&str]) -> Result<Reply> {
        self.ask("GET", path, lines, Upload::None)
    }

    /// The same with any method and a body. The body is sent before anything is read, but for HTTP/2's frames.
    pub fn ask(&mut self, method: &str, path: &str, lines: &[&str], upload: Upload<'_>) -> Result<Reply> {
        self.has_begun = false;
        if let Some(http2) = &mut self.http2 {
            let asked = http2::Asked { method, host: &self.host, path, lines, body: upload.bytes() };
            return http2.ask(&mut self.socket, &asked, &mut self.has_begun);
        }
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        lines.iter().for_each(|line| request.extend([line, "\r\n"]));
        let begun = Instant::now();
        self.send(request.as_bytes())?;
        self.send(&upload.encoded())?;
        self.reply(method == "HEAD", begun)
    }

    /// Nothing may take longer from here on.
    pub fn set_patience(&mut self, patience: Duration) -> Result<()> {
        let socket = match &self.socket {
            Socket::Plain(socket) | Socket::Slow(socket, ..) => socket,
            Socket::Secured(stream) => stream.get_ref(),
        };
        socket.set_read_timeout(Some(patience))?;
        Ok(socket.set_write_timeout(Some(patience))?)
    }

    /// Sends bytes as they are, over HTTP/1.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.socket.write_all(bytes)?)
    }

    /// Reads until there are so many bytes.
    pub fn receive(&mut self, bytes: usize) -> Result<Vec<u8>> {
        self.take(bytes)
    }

    /// Takes an answer of HTTP/1; one to HEAD has no body.
    pub fn reply(&mut self, is_head: bool, begun: Instant) -> Result<Reply> {
        let (status, fields, mut wire_bytes) = self.head()?;
        let value = |name: &str| fields.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        let body = if is_head || matches!(status, 101 | 204 | 304) {
            Vec::new()
        } else if value("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            self.chunks(&mut wire_bytes)?
        } else if let Some(length) = value("content-length") {
            let length = length.parse().context("Content-Length")?;
            wire_bytes += length;
            self.take(length)?
        } else {
            let mut body = std::mem::take(&mut self.rest);
            self.socket.read_to_end(&mut body)?;
            wire_bytes += body.len();
            body
        };
        Ok(Reply { status, fields, body, wire_bytes, time: begun.elapsed() })
    }

    fn head(&mut self) -> Result<(u16, FieldList, usize)> {
        let mut wire_bytes = 0;
        loop {
            let line = self.line()?;
            wire_bytes += line.len() + 2;
            let status: u16 =
                line.split(' ').nth(1).and_then(|code| code.parse().ok()).with_context(|| format!("no status line: {line:?}"))?;
            let mut fields = Vec::new();
            loop {
                let line = self.line()?;
                wire_bytes += line.len() + 2;
                if line.is_empty() {
                    break;
                }
                let (name, value) = line.split_once(':').with_context(|| format!("no field: {line:?}"))?;
                fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            if !(100..200).contains(&status) || status == 101 {
                return Ok((status, fields, wire_bytes));
            }
        }
    }

    fn chunks(&mut self, wire_bytes: &mut usize) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                .with_context(|| format!("no chunk size: {line:?}"))?;
            *wire_bytes += line.len() + 2 + size;
            if size > 0 {
                body.extend(self.take(size)?);
            }
            loop {
                let line = self.line()?;
                *wire_bytes += line.len() + 2;
                if line.is_empty() {
                    break;
                }
            }
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn line(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
            }
            self.more()?;
        }
    }

    fn take(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut taken = std::mem::take(&mut self.rest);
        if taken.len() > bytes {
            self.rest = taken.split_off(bytes);
            return Ok(taken);
        }
        let have = taken.len();
        taken.resize(bytes, 0);
        self.socket.read_exact(&mut taken[have..])?;
        Ok(taken)
    }

    fn more(&mut self) -> Result<()> {
        let mut part = [0; 16 * 1024];
        match self.socket.read(&mut part)? {
            0 => bail!("the connection ended inside an answer"),
            read => {
                self.has_begun = true;
                self.rest.extend_from_slice(&part[..read]);
            }
        }
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Socket::Secured(socket) = &mut self.socket {
            // Without it the session could not be resumed.
            let _ = socket.shutdown();
        }
    }
}

fn connect(address: SocketAddr, patience: Duration) -> Result<TcpStream> {
    patient(TcpStream::connect_timeout(&address, patience).with_context(|| format!("connecting to {address}"))?, patience)
}

fn patient(socket: TcpStream, patience: Duration) -> Result<TcpStream> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(patience))?;
    socket.set_write_timeout(Some(patience))?;
    Ok(socket)
}

/// Undoes gzip.
pub fn gunzip(coded: &[u8]) -> Result<Vec<u8>> {
    use zlib_rs::{Inflate, InflateFlush, Status};
    let mut inflate = Inflate::new(true, GZIP_WINDOW_BITS);
    let (mut out, mut part) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let (read, written) = (inflate.total_in() as usize, inflate.total_out());
        let rest = coded.get(read..).unwrap_or_default();
        let status = inflate
            .decompress(rest, &mut part, InflateFlush::NoFlush)
            .map_err(|error| anyhow::anyhow!("gzip: {}", error.as_str()))?;
        let more = (inflate.total_out() - written) as usize;
        out.extend_from_slice(&part[..more]);
        match status {
            Status::StreamEnd if inflate.total_in() as usize == coded.len() => return Ok(out),
            Status::StreamEnd => bail!("gzip: bytes behind the end"),
            _ if more == 0 && inflate.total_in() as usize == read => bail!("gzip: cut off"),
            _ => {}
        }
    }
}

/// Undoes another coding, by the libraries that terse decodes with, which are not its coders.
fn decoded(coding: Coding, mut coded: &[u8]) -> Result<Vec<u8>> {
    let mut decoder = decode::decoder(coding).context("no decoder")?;
    let mut out = Vec::new();
    loop {
        let progress = decoder.push(coded, &mut out, 1 << 20).map_err(|flaw| anyhow::anyhow!("{}", flaw.name()))?;
        coded = &coded[progress.taken..];
        match progress.next {
            decode::Next::Room => {}
            decode::Next::Input if decoder.is_complete() => return Ok(out),
            decode::Next::Ended if coded.is_empty() => return Ok(out),
            decode::Next::Input => bail!("{}: cut off", coding.word()),
            decode::Next::Ended => bail!("{}: bytes behind the end", coding.word()),
        }
    }
}

/// 15, and 16 more for gzip's head and tail.
const GZIP_WINDOW_BITS: u8 = 31;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{Options, Origin};

    #[test]
    fn gets_each_framing_on_one_connection() {
        let origin = Origin::start(&Options::local(1)).unwrap();
        let mut client = Client::connect(origin.addresses()[0], Duration::from_secs(10)).unwrap();
        let whole = client.get("/made?bytes=30000", &[]).unwrap();
        let chunked = client.get("/made?bytes=30000&chunk=777&trailer=A:b", &[]).unwrap();
        assert_eq!((whole.body.len(), chunked.body.len()), (30_000, 30_000));
        assert!(chunked.wire_bytes > chunked.body.len() + 38 * 7);
        assert_eq!(client.get("/made?status=204", &[]).unwrap().status, 204);
        assert_eq!(client.get("/made?bytes=9&close=1&length=0", &[]).unwrap().body.len(), 9);
        assert_eq!((origin.tally().connections(0), origin.tally().requests(0)), (1, 4));
    }

    #[test]
    fn undoes_gzip() {
        let zlib_rs::DeflateConfig { .. } = zlib_rs::DeflateConfig::default();
        let text = crate::content::script::script(1, 200_000, 2048).bytes;
        let mut deflate = zlib_rs::Deflate::new(6, true, GZIP_WINDOW_BITS);
        let mut coded = vec![0; text.len()];
        assert_eq!(deflate.compress(&text, &mut coded, zlib_rs::DeflateFlush::Finish), Ok(zlib_rs::Status::StreamEnd));
        coded.truncate(deflate.total_out() as usize);
        assert_eq!(gunzip(&coded).unwrap(), text);
        assert!(gunzip(&coded[..coded.len() - 1]).is_err());
    }
}
