//! An origin server whose responses are bytes that the test writes.

use super::PATIENCE;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A server: a thread that accepts, and one for each connection.
pub struct Origin {
    listener: TcpListener,
    seen: Arc<Mutex<Vec<Request>>>,
    accepting: Option<JoinHandle<()>>,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// The connection that it came on, from 0.
    pub connection: usize,
    /// The request line.
    pub line: String,
    /// The whole head, with its line's ends.
    pub head: String,
    /// The body, if Content-Length announces one.
    pub body: Vec<u8>,
}

impl Origin {
    /// Starts a server that answers every request with the bytes that `answer` writes, on connections that stay open.
    pub fn start(answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (accepted, record, answer) = (listener.try_clone().unwrap(), Arc::clone(&seen), Arc::new(answer));
        let accept = move || {
            for (number, stream) in accepted.incoming().map_while(Result::ok).enumerate() {
                let (record, answer) = (Arc::clone(&record), Arc::clone(&answer));
                std::thread::spawn(move || serve(number, stream, &record, &*answer));
            }
        };
        Origin { listener, seen, accepting: Some(std::thread::spawn(accept)) }
    }

    /// A server that answers every request with this body.
    pub fn body(body: &'static str) -> Origin {
        Origin::start(move |_, stream| {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        })
    }

    /// Address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // On Linux this wakes the thread that accepts, and no client connects any more.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        self.accepting.take().map(JoinHandle::join);
    }
}

impl Request {
    /// The value of a field; of several, the first.
    pub fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields
            .map(|(field, value)| (field, value.trim()))
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

fn serve(connection: usize, mut stream: TcpStream, seen: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request, &mut TcpStream)) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(request) = read(connection, &mut reader) {
        seen.lock().unwrap().push(request.clone());
        answer(&request, &mut stream);
    }
}

fn read(connection: usize, reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head).ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let line = head.lines().next().unwrap_or_default().to_owned();
    let mut request = Request { connection, line, head, body: Vec::new() };
    let length = request.field("content-length").map_or(0, |length| length.parse().unwrap());
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}
