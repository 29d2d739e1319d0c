//! A client that sends exactly what the test writes, and parses responses as RFC 9112 requires, leniently in nothing.

use super::PATIENCE;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A connection to a server.
pub struct Client {
    reader: BufReader<TcpStream>,
}

/// A response.
#[derive(Clone, Default, Debug)]
pub struct Response {
    /// The status; 0 when the connection was closed instead.
    pub status: u16,
    /// The status line.
    pub line: String,
    /// Fields in order, names as they came.
    pub fields: Vec<(String, String)>,
    /// The body, without chunks' frames.
    pub body: Vec<u8>,
    /// Fields after a chunked body.
    pub trailers: Vec<(String, String)>,
}

/// Sends a request on a connection of its own.
pub fn get(address: SocketAddr, path: &str) -> Response {
    Client::connect(address).get(path, &[])
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Client {
        Client::over(TcpStream::connect_timeout(&address, PATIENCE).unwrap())
    }

    /// Talks over this connection.
    pub fn over(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { reader: BufReader::new(stream) }
    }

    /// The socket.
    pub fn stream(&mut self) -> &mut TcpStream {
        self.reader.get_mut()
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.reader.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends a GET with these fields beside Host, and reads the response.
    pub fn get(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        let mut request = format!("GET {path} HTTP/1.1\r\nHost: test\r\n");
        fields.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
        self.send(request + "\r\n");
        self.response("GET")
    }

    /// Reads the final response to a request of that method.
    pub fn response(&mut self, method: &str) -> Response {
        loop {
            let head = self.head();
            if head.status == 101 || !(100..200).contains(&head.status) {
                return self.with_body(head, method);
            }
        }
    }

    /// Reads a head, also of an interim response.
    pub fn head(&mut self) -> Response {
        let line = self.line();
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let fields = if status == 0 { Vec::new() } else { self.fields() };
        Response { status, line, fields, ..Response::default() }
    }

    /// Reads everything until the other side closes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.reader.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Reads as many bytes as there is room for.
    pub fn read(&mut self, room: &mut [u8]) {
        self.reader.read_exact(room).unwrap();
    }

    /// True if the other side has closed, when it has nothing more to send.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.reader.fill_buf(), Ok([]))
    }

    /// Reads the body that follows a head, as the answer to a request of that method.
    pub fn with_body(&mut self, mut response: Response, method: &str) -> Response {
        if response.status == 0 || method == "HEAD" || matches!(response.status, 101 | 204 | 304) {
            return response;
        }
        if response.field("transfer-encoding").is_some_and(|codings| codings.ends_with("chunked")) {
            while let Some(chunk) = self.chunk() {
                response.body.extend(chunk);
            }
            response.trailers = self.fields();
        } else if let Some(length) = response.field("content-length") {
            response.body = vec![0; length.parse().unwrap()];
            self.reader.read_exact(&mut response.body).unwrap();
        } else {
            response.body = self.rest();
        }
        response
    }

    /// Reads a chunk; `None` for the last one, whose trailers follow.
    pub fn chunk(&mut self) -> Option<Vec<u8>> {
        let line = self.line();
        let size = usize::from_str_radix(line.split(';').next().unwrap(), 16).unwrap();
        if size == 0 {
            return None;
        }
        let mut data = vec![0; size];
        self.reader.read_exact(&mut data).unwrap();
        assert_eq!(self.line(), "", "a chunk ends with a line's end");
        Some(data)
    }

    fn fields(&mut self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { return fields };
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// A line without its end; empty when the connection was closed.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line).unwrap();
        let text = String::from_utf8_lossy(&line);
        match text.strip_suffix("\r\n") {
            Some(line) => line.to_owned(),
            None => {
                assert_eq!(text, "", "a line without its end");
                String::new()
            }
        }
    }
}

impl Response {
    /// The value of a field; of several, the first.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
