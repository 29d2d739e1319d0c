//! A server that does what the test tells it, also what no server should: it can break off anywhere, be killed, and come back.
//!
//! Its port stays its own while it is down. The socket stays bound and only stops to listen, so that no other process can take it.

use super::PATIENCE;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

/// A server: a thread that accepts, and one for each connection.
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    serve: Box<dyn Fn(&mut Connection) + Send + Sync>,
    accepted: AtomicUsize,
    served: AtomicUsize,
    open: Mutex<Vec<Weak<TcpStream>>>,
    seen: Mutex<Vec<Request>>,
    is_up: AtomicBool,
}

/// A connection that the server has accepted.
pub struct Connection {
    /// Number of connections accepted before it.
    pub number: usize,
    stream: Arc<TcpStream>,
    reader: BufReader<Half>,
    shared: Arc<Shared>,
}

/// A request as it came.
#[derive(Clone, Default, Debug)]
pub struct Request {
    /// The connection that it came on, from 0.
    pub connection: usize,
    /// Its method.
    pub method: String,
    /// Its target.
    pub target: String,
    /// The first line.
    pub line: String,
    /// Fields in order, names as they came.
    pub fields: Vec<(String, String)>,
    /// The body, without chunks' frames.
    pub body: Vec<u8>,
    /// Fields after a chunked body.
    pub trailers: Vec<(String, String)>,
}

struct Half(Arc<TcpStream>);

impl Read for Half {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Server {
    /// A server each of whose connections is served by `serve`, and closed when that returns.
    pub fn start(serve: impl Fn(&mut Connection) + Send + Sync + 'static) -> Server {
        let shared = Shared {
            serve: Box::new(serve),
            accepted: AtomicUsize::new(0),
            served: AtomicUsize::new(0),
            open: Mutex::default(),
            seen: Mutex::default(),
            is_up: AtomicBool::new(false),
        };
        let mut server = Server { listener: Port::new().0, shared: Arc::new(shared), accepting: None };
        server.revive();
        server
    }

    /// A server that answers each request with its name.
    pub fn named(name: &'static str) -> Server {
        Server::answering(move |_| ok(name))
    }

    /// A server that answers each request with the bytes that `answer` gives, on connections that stay open.
    pub fn answering<T: AsRef<[u8]>>(answer: impl Fn(&Request) -> T + Send + Sync + 'static) -> Server {
        Server::start(move |connection| {
            while let Some(request) = connection.request() {
                if !connection.send(answer(&request)) {
                    return;
                }
            }
        })
    }

    /// A server that answers each request with this body.
    pub fn body(body: &str) -> Server {
        let answer = ok(body);
        Server::answering(move |_| answer.clone())
    }

    /// Address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Number of connections that it has accepted.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(SeqCst)
    }

    /// Number of them that are open on this side.
    pub fn open(&self) -> usize {
        self.accepted() - self.shared.served.load(SeqCst)
    }

    /// Requests whose heads it has read.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Stops to listen and resets every connection: from outside, the death of a process.
    pub fn kill(&mut self) {
        self.stop_listening();
        for stream in self.shared.open.lock().unwrap().drain(..).filter_map(|stream| stream.upgrade()) {
            // The thread that serves it wakes up, and its close is a reset.
            let _ = SockRef::from(&*stream).set_linger(Some(std::time::Duration::ZERO));
            let _ = stream.shutdown(Shutdown::Read);
        }
    }

    /// Stops to listen; connections that are there go on.
    pub fn stop_listening(&mut self) {
        self.shared.is_up.store(false, SeqCst);
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        self.accepting.take().map(JoinHandle::join);
    }

    /// Listens, again on the same port.
    pub fn revive(&mut self) {
        rustix::net::listen(&self.listener, BACKLOG).unwrap();
        self.shared.is_up.store(true, SeqCst);
        let (listener, shared) = (self.listener.try_clone().unwrap(), Arc::clone(&self.shared));
        self.accepting = Some(std::thread::spawn(move || accept(&listener, &shared)));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port of 127.0.0.1 that no other socket gets, for as long as this lives; a program that is told of it can listen there.
pub struct Port(TcpListener);

impl Port {
    /// A free one.
    #[allow(clippy::new_without_default, reason = "it takes something from the system")]
    pub fn new() -> Port {
        let bind = |port: u16| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_reuse_address(true).unwrap();
            socket.bind(&SocketAddr::from(([127, 0, 0, 1], port)).into()).unwrap();
            TcpListener::from(socket)
        };
        // The kernel takes back a port that it has chosen when the socket stops to listen, but not a port that was asked for.
        let chosen = bind(0);
        Port(bind(chosen.local_addr().unwrap().port()))
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming().map_while(Result::ok) {
        let stream = Arc::new(stream);
        let number = {
            let mut open = shared.open.lock().unwrap();
            // The thread that kills the server holds this lock afterwards: it would miss a connection that is accepted now.
            if !shared.is_up.load(SeqCst) {
                return;
            }
            open.retain(|stream| stream.strong_count() > 0);
            open.push(Arc::downgrade(&stream));
            shared.accepted.fetch_add(1, SeqCst)
        };
        let shared = Arc::clone(shared);
        let serve = move || {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let _ = stream.set_nodelay(true);
            let served = Served(Arc::clone(&shared));
            let reader = BufReader::new(Half(Arc::clone(&stream)));
            let mut connection = Connection { number, stream, reader, shared };
            (connection.shared.clone().serve)(&mut connection);
            drop((connection, served));
        };
        std::thread::Builder::new().stack_size(STACK_BYTES).spawn(serve).unwrap();
    }
}

/// A counted connection whose thread ends, also by a panic.
struct Served(Arc<Shared>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.served.fetch_add(1, SeqCst);
    }
}

impl Connection {
    /// Reads a request with its body; `None` at the end of the connection. A client that waits for 100 is told to go on.
    pub fn request(&mut self) -> Option<Request> {
        let mut request = self.head()?;
        if request.field("expect").is_some() && !self.send("HTTP/1.1 100 Continue\r\n\r\n") {
            return None;
        }
        self.body(&mut request)?;
        Some(request)
    }

    /// Reads a request's head.
    pub fn head(&mut self) -> Option<Request> {
        let line = self.line()?;
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let fields = self.fields()?;
        let request = Request { connection: self.number, method, target, line, fields, ..Request::default() };
        self.shared.seen.lock().unwrap().push(request.clone());
        Some(request)
    }

    /// Reads the body of a request whose head was read.
    pub fn body(&mut self, request: &mut Request) -> Option<()> {
        if request.field("transfer-encoding").is_some() {
            while let Some(chunk) = self.chunk()? {
                request.body.extend(chunk);
            }
            request.trailers = self.fields()?;
        } else if let Some(length) = request.field("content-length") {
            request.body = self.bytes(length.parse().unwrap())?;
        }
        Some(())
    }

    /// Reads a chunk; `Some(None)` for the last one, whose trailers follow.
    pub fn chunk(&mut self) -> Option<Option<Vec<u8>>> {
        let line = self.line()?;
        let size = usize::from_str_radix(&line, 16).unwrap_or_else(|_| panic!("a chunk's size: {line:?}"));
        if size == 0 {
            return Some(None);
        }
        let data = self.bytes(size)?;
        assert_eq!(self.line()?, "", "a chunk ends with a line's end");
        Some(Some(data))
    }

    /// Reads so many bytes.
    pub fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Reads the bytes that have come, once there are some; 0 bytes at the end of the connection.
    pub fn some(&mut self, room: &mut [u8]) -> usize {
        self.reader.read(room).unwrap_or(0)
    }

    /// Reads everything until the other side closes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = self.reader.read_to_end(&mut bytes);
        bytes
    }

    /// Waits until the other side has closed or sends something; true when it has closed.
    pub fn is_closed(&mut self) -> bool {
        match self.reader.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// Sends bytes; false when the other side has gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        (&*self.stream).write_all(bytes.as_ref()).is_ok()
    }

    /// Closes the sending side; bytes from the other side are still read.
    pub fn finish(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Makes the close that follows a reset.
    pub fn reset(&mut self) {
        let _ = SockRef::from(&*self.stream).set_linger(Some(std::time::Duration::ZERO));
    }

    fn fields(&mut self) -> Option<Vec<(String, String)>> {
        let mut fields = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { return line.is_empty().then_some(fields) };
            fields.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// A line without its end.
    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        line.strip_suffix("\r\n").map(str::to_owned)
    }
}

impl Request {
    /// The value of a field; of several, the first.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.every(name).next()
    }

    /// The values of all fields of that name.
    pub fn every(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A response with a length.
pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// More than any test connects at once.
const BACKLOG: i32 = 4096;

/// Scripts are not deep, and there may be thousands of them.
const STACK_BYTES: usize = 1 << 20;
