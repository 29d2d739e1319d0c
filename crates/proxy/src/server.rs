//! Connections to servers, and how they are made.

mod carrier;
mod idle;
mod need;

pub use carrier::{Carrier, Key, Lease, Leased, Making, Outcome, Told};
pub use idle::{Belonging, IdleConnections, Wanted};
pub use need::Held;

use crate::descriptors::Counted;
use crate::exchange::SharedConnection;
use crate::io::{Buffer, Timer, Transport, Wheel, clock};
use crate::settings::Options;
use crate::worker::{Cleared, Worker};
use socket2::SockRef;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use terse_balance::settings::{ServerSettings, SourceSettings};
use terse_balance::socks4;
use terse_balance::{Address, Destination, Server, connect_abstract};
use terse_compress::Within;
use terse_compress::budget;
use terse_tls::{Connector, RECORDS_MEMORY_BYTES, Request, Secured, Socket};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream, UnixStream};

/// A connection to a server.
pub struct ServerConnection {
    /// The socket, or a stream of a shared connection.
    pub io: Transport,
    /// Bytes that were read from it and have not yet gone on.
    pub buffer: Buffer,
    /// Its timer.
    pub timer: Timer,
    /// Its destination and identity, which determine the requests that it serves.
    pub terms: Terms,
    /// Requests that it has carried.
    pub requests: u64,
    /// When it has been idle long enough.
    pub idle_until: Instant,
    /// Its place in the count of its server's connections, or of those that its session keeps.
    pub held: Option<Held>,
    /// Its descriptors.
    pub counted: Option<Counted>,
}

/// Destination and identity of a connection, which determine the requests that it serves.
#[derive(Default)]
pub struct Terms {
    /// The server; `None` where a script is at the other end. Without a server it is not kept.
    pub server: Option<Arc<Server>>,
    /// The number of the server's moves when it was made ([`Server::moves`]).
    pub moves: u32,
    /// This end's address, over IP.
    pub local: Option<SocketAddr>,
    /// The session that made it, or that it belongs to.
    pub owner: u64,
    /// Whether its server knows a user by it: it serves its owner alone from then on.
    pub private: bool,
    /// The PROXY header that the server got: the connection serves no request with another header.
    pub announced: Option<Box<[u8]>>,
    /// The name that it was asked for by TLS: the connection serves no request for another.
    pub name: Option<Box<str>>,
    /// Its name (`pool-conn-name`): then it serves all requests for that name, whatever their TLS name.
    pub pool_name: Option<Box<str>>,
    /// Its destination, if that depends on the client's original destination: it serves no request of a client with another
    /// destination.
    pub asked: Option<Box<(Destination, SocketAddr)>>,
    /// The source address that the server sees (`usesrc`): it serves no request with another source address.
    pub guise: Option<Box<SocketAddr>>,
}

impl ServerConnection {
    /// A connection of a session, to no server yet.
    pub fn new(io: Transport, wheel: &Rc<Wheel>, owner: u64) -> ServerConnection {
        let terms = Terms { local: io.local(), owner, ..Terms::default() };
        ServerConnection::on(io, wheel, terms)
    }

    /// A connection to a service in this process, with its descriptors.
    pub fn to_service(io: UnixStream, wheel: &Rc<Wheel>, owner: u64, counted: Option<Counted>) -> ServerConnection {
        ServerConnection { counted, ..ServerConnection::new(Transport::Unix(io), wheel, owner) }
    }

    /// A connection on those terms.
    pub fn on(io: Transport, wheel: &Rc<Wheel>, terms: Terms) -> ServerConnection {
        ServerConnection {
            terms,
            io,
            buffer: Buffer::default(),
            timer: wheel.timer(),
            requests: 0,
            idle_until: clock::now(),
            held: None,
            counted: None,
        }
    }

    /// Sets the PROXY header, the TLS name, and the name of the connection.
    pub fn introduce(&mut self, announced: Option<Box<[u8]>>, name: Option<Box<str>>, pool_name: Option<Box<str>>) {
        let terms = &mut self.terms;
        (terms.announced, terms.name, terms.pool_name) = (announced, name, pool_name);
    }

    /// The facts of the connection of HTTP/2 whose stream this is; `None` where it is no stream.
    pub fn shared(&self) -> Option<SharedConnection> {
        self.io.stream().map(|stream| SharedConnection::new(stream.shared_connection()))
    }

    /// Its TLS, where it has some.
    pub fn tls(&self) -> Option<&Rc<Secured>> {
        self.io.tls()
    }

    /// The socket's descriptor, for queries of the kernel.
    pub fn descriptor(&self) -> RawFd {
        self.io.descriptor()
    }

    /// The socket, for its options.
    pub fn socket(&self) -> SockRef<'_> {
        self.io.socket()
    }

    /// Waits for the server's SETTINGS, where this is a stream of HTTP/2.
    pub async fn known(&self) {
        if let Some(stream) = self.io.stream() {
            stream.connection().known().await;
        }
    }

    /// Whether this is a stream of a shared connection.
    pub fn is_stream(&self) -> bool {
        self.io.stream().is_some()
    }

    /// Ends the connection at once, or its stream: nothing more of an exchange is waited for.
    pub fn abandon(&self) {
        self.io.reset();
    }

    /// Appends the header for the server before the connection's first byte; returns its length in bytes.
    pub fn announce(&self, out: &mut Vec<u8>) -> usize {
        // TLS begins after it.
        let is_first = self.requests == 0 && !matches!(self.io, Transport::Tls(_));
        let head = self.terms.announced.as_deref().filter(|_| is_first).unwrap_or_default();
        out.extend_from_slice(head);
        head.len()
    }
}

impl ServerConnection {
    /// Sends the PROXY header, where no other data does so.
    pub async fn say_first(&mut self) -> io::Result<()> {
        let Some(head) = self.terms.announced.clone() else { return Ok(()) };
        let mut said = 0;
        while said < head.len() {
            said += poll_fn(|cx| self.io.poll_write(cx, &head[said..])).await?;
        }
        Ok(())
    }

    /// Speaks TLS from here on; sends the PROXY header first. The caller sets the time limit. `made` is the result of the
    /// handshake, also when it failed.
    pub async fn secure(
        mut self: Box<Self>,
        connector: &Connector,
        request: Request<'_>,
        made: &mut Option<Rc<Secured>>,
        memory: &Arc<Within>,
    ) -> io::Result<Box<Self>> {
        let Some(mut socket) = self.io.into_plain() else { return Err(io::ErrorKind::AlreadyExists.into()) };
        if let Some(head) = self.terms.announced.as_deref() {
            match &mut socket {
                Socket::Tcp(io) => io.write_all(head).await?,
                Socket::Unix(io) => io.write_all(head).await?,
            }
        }
        let hold = connector.compresses_records().then(|| budget::hold(memory, RECORDS_MEMORY_BYTES)).flatten();
        let secured = Rc::new(connector.connect(socket, self.terms.name.as_deref(), request, hold)?);
        *made = Some(secured.clone());
        let failed = |_: terse_tls::Failure| io::Error::from(io::ErrorKind::ConnectionAborted);
        poll_fn(|cx| secured.poll_handshake(cx)).await.map_err(failed)?;
        self.io = Transport::Tls(secured);
        Ok(self)
    }
}

/// A connection that is wanted to a server.
#[derive(Clone, Copy)]
pub struct Errand<'a> {
    /// The server.
    pub server: &'a Arc<Server>,
    /// Its backend's.
    pub options: &'a Options,
    /// The session that wants it.
    pub owner: u64,
    /// The client's original destination.
    pub asked: Option<SocketAddr>,
    /// The address that the server is to see.
    pub guise: Option<SocketAddr>,
}

/// Makes a connection to a server. Idle connections make room for it where descriptors are few; where there are none, it
/// waits a while for others to end. The caller sets the time limit.
pub async fn connect(worker: &Rc<Worker>, errand: Errand<'_>) -> io::Result<Box<ServerConnection>> {
    let counted = worker.plan.descriptors.count(1);
    worker.spare_descriptors(Some(errand.server));
    let (mut tries, mut waits, wheel) = (1, 0, &worker.wheel);
    loop {
        let error = match connect_once(wheel, errand).await {
            Ok(mut connection) => {
                connection.counted = Some(counted);
                return Ok(connection);
            }
            Err(error) => error,
        };
        if clear(worker, Some(errand.server), &error, tries).await {
            tries += 1;
            continue;
        }
        if !is_out_of_descriptors(&error) || waits >= MOST_WAITS {
            return Err(error);
        }
        if waits == 0 {
            EXHAUSTION.note(&error, Purpose::Connect);
        }
        waits += 1;
        tokio::time::sleep(WAIT).await;
    }
}

/// Whether an attempt that has failed so many times is worth another: it was refused a descriptor, and an idle connection was
/// closed for it.
pub(crate) async fn clear(worker: &Worker, server: Option<&Server>, error: &io::Error, tries: usize) -> bool {
    if !is_out_of_descriptors(error) || tries >= MOST_TRIES {
        return false;
    }
    match worker.make_room(server) {
        Cleared::Here => true,
        Cleared::Elsewhere => {
            tokio::time::sleep(ELSEWHERE).await;
            true
        }
        Cleared::Nowhere => false,
    }
}

/// Attempts at a connection for which idle ones were closed: others may be quicker to take their descriptors.
pub const MOST_TRIES: usize = 100;

/// Waits of a connection for others to end, where there is no descriptor and nothing idle: half a second, and again at each
/// retry.
const MOST_WAITS: usize = 25;
const WAIT: Duration = Duration::from_millis(20);

/// Time for another worker to close an idle connection.
pub const ELSEWHERE: Duration = Duration::from_millis(2);

/// Whether the system has refused a descriptor.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

async fn connect_once(wheel: &Rc<Wheel>, errand: Errand<'_>) -> io::Result<Box<ServerConnection>> {
    let Errand { server, options, owner, asked, guise } = errand;
    // In this order: a connection to the new address that is taken for the old one is given up too early, not too late.
    let (moves, address) = (server.moves(), server.address());
    let mut led = None;
    let io = match &*address {
        Address::Ip(ip) => connect_to(server, *ip, guise).await?,
        // A name without an address is not where the client wanted to go.
        Address::AsAsked(destination) if destination.ip.is_unspecified() && server.name_in_dns().is_some() => {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        Address::AsAsked(destination) => {
            let to = destination.of(asked).ok_or(io::ErrorKind::AddrNotAvailable)?;
            led = Some(Box::new((*destination, to)));
            connect_to(server, to, guise).await?
        }
        Address::Unix(path) => Transport::Unix(UnixStream::connect(path).await?),
        Address::Abstract(name) => Transport::Unix(connect_abstract(name)?),
    };
    io.apply(options.server_probes.asked().as_ref(), options.no_linger);
    let (server, guise) = (Some(server.clone()), guise.map(Box::new));
    let mut connection = Box::new(ServerConnection::new(io, wheel, owner));
    connection.terms = Terms { server, moves, asked: led, guise, ..connection.terms };
    Ok(connection)
}

async fn connect_to(server: &Server, address: SocketAddr, guise: Option<SocketAddr>) -> io::Result<Transport> {
    let settings = server.settings();
    let (source, proxy) = (&settings.source, settings.socks4);
    let to = proxy.unwrap_or(address);
    let mut stream = match guise.filter(|guise| guise.is_ipv4() == to.is_ipv4()) {
        Some(guise) => connect_as(guise, settings, to).await?,
        None if *source == SourceSettings::default() && settings.signature.is_none() => TcpStream::connect(to).await?,
        None => connect_from(settings, to).await?,
    };
    if proxy.is_some() {
        Box::pin(socks4::ask(&mut stream, address)).await?;
    }
    let socket = SockRef::from(&stream);
    if let Some(time) = settings.user_timeout {
        socket.set_tcp_user_timeout(Some(time))?;
    }
    if let Some(algorithm) = &settings.congestion {
        socket.set_tcp_congestion(algorithm.as_bytes())?;
    }
    Ok(Transport::from_tcp(stream))
}

/// A socket of the address' family, at the network device that connections are to leave by; its segments are signed if that
/// is set.
fn socket(settings: &ServerSettings, to: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(interface) = &settings.source.interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    if let Some(signature) = &settings.signature {
        signature.sign(&socket, to.ip())?;
    }
    Ok(socket)
}

/// Connects from an address that need not be this machine's (`IP_TRANSPARENT`): answers must come back by way of it.
async fn connect_as(guise: SocketAddr, settings: &ServerSettings, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket(settings, to)?;
    // Linux keeps a single switch for both families.
    SockRef::from(&socket).set_ip_transparent_v4(true)?;
    socket.set_reuseaddr(true)?;
    socket.bind(guise)?;
    socket.connect(to).await
}

/// Connects from an address of this machine, from a range of its ports, or from a network device.
async fn connect_from(settings: &ServerSettings, to: SocketAddr) -> io::Result<TcpStream> {
    let source = &settings.source;
    let mut port = source.address.map_or(0, |address| address.port());
    loop {
        let socket = socket(settings, to)?;
        if let Some(address) = source.address {
            socket.set_reuseaddr(true)?;
            match socket.bind(SocketAddr::new(address.ip(), port)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && port < source.last_port => {
                    port += 1;
                    continue;
                }
                bound => bound?,
            }
        }
        match socket.connect(to).await {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)
                    && port < source.last_port =>
            {
                port += 1;
            }
            connected => return connected,
        }
    }
}
