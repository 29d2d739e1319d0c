//! Opening one socket.

use super::unix::{self, Pending};
use super::{Endpoint, Options, Wanted};
use crate::process::sys;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// The action that failed, and the system's error.
type Failure = (&'static str, io::Error);

/// Opens a socket that listens. A unix socket still has to be published. `own` sockets let others beside them on their address.
pub(super) fn open(wanted: &Wanted, own: bool) -> Result<(OwnedFd, Option<Pending>), Failure> {
    let options = &wanted.options;
    match &wanted.endpoint {
        Endpoint::Ip(address) => Ok((tcp(*address, options, own)?, None)),
        Endpoint::Unix(path) => unix::open(path, backlog(options), &options.file).map(|(socket, pending)| (socket, Some(pending))),
        Endpoint::Abstract(name) => Ok((abstract_name(name, options)?, None)),
        Endpoint::Inherited(number) => Ok((inherited(*number, options)?, None)),
    }
}

/// Makes a socket that was handed over fit its line: changes the settings that can be changed while it listens.
pub(super) fn reuse(socket: &OwnedFd, wanted: &Wanted) -> Result<(), Failure> {
    sign(socket, &wanted.options)?;
    let socket = SockRef::from(socket);
    socket.set_nonblocking(true).map_err(|e| ("cannot make socket non-blocking", e))?;
    socket.listen(backlog(&wanted.options)).map_err(|e| ("cannot listen to socket", e))
}

fn tcp(address: SocketAddr, options: &Options, own: bool) -> Result<OwnedFd, Failure> {
    let socket = new(Domain::for_address(address))?;
    set(&socket, address, options, own).map_err(|e| ("cannot set the socket's options", e))?;
    socket.bind(&address.into()).map_err(|e| ("cannot bind socket", e))?;
    let socket = OwnedFd::from(socket);
    sign(&socket, options)?;
    SockRef::from(&socket).listen(backlog(options)).map_err(|e| ("cannot listen to socket", e))?;
    Ok(socket)
}

fn set(socket: &Socket, address: SocketAddr, options: &Options, own: bool) -> io::Result<()> {
    // Connections of the process before, even closed ones, must not keep the address busy.
    socket.set_reuse_address(true)?;
    // Also on shared sockets: a process that replaces this one may bind the same address while this one listens.
    socket.set_reuse_port(own || !options.shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(options.v6only.unwrap_or(false))?;
    }
    if let Some(interface) = &options.interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    if options.transparent {
        sys::set_transparent(socket, address.is_ipv6())?;
    }
    if let Some(mss) = options.mss {
        socket.set_tcp_mss(mss)?;
    }
    // Connections inherit both.
    if let Some(time) = options.user_timeout {
        socket.set_tcp_user_timeout(Some(time))?;
    }
    if let Some(algorithm) = &options.congestion {
        socket.set_tcp_congestion(algorithm.as_bytes())?;
    }
    if options.defer_accept {
        sys::set_defer_accept(socket)?;
    }
    if options.save_syn > 0 {
        sys::set_save_syn(socket, options.save_syn)?;
    }
    if options.fast_open {
        sys::set_fast_open(socket, backlog(options))?;
    }
    Ok(())
}

fn abstract_name(name: &[u8], options: &Options) -> Result<OwnedFd, Failure> {
    let failed = |e| ("cannot bind UNIX socket", e);
    let socket = new(Domain::UNIX)?;
    let mut path = vec![0];
    path.extend_from_slice(name);
    let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(&path);
    socket.bind(&SockAddr::unix(path).map_err(failed)?).map_err(failed)?;
    socket.listen(backlog(options)).map_err(|e| ("cannot listen to socket", e))?;
    Ok(socket.into())
}

/// Has the segments of a socket's connections signed, where the line sets it.
fn sign(socket: &OwnedFd, options: &Options) -> Result<(), Failure> {
    let Some(signature) = &options.signature else { return Ok(()) };
    let address = SockRef::from(socket).local_addr().map(|address| address.as_socket());
    let signed = address.and_then(|address| address.map_or(Ok(()), |address| signature.sign_all(socket, address)));
    signed.map_err(|e| ("cannot have segments signed", e))
}

/// Takes an inherited socket as it is: its address, queue and most of its options are the starter's. It only begins to listen if it does not yet.
fn inherited(number: i32, options: &Options) -> Result<OwnedFd, Failure> {
    let failed = |e| ("cannot use inherited socket", e);
    let descriptor = sys::duplicate(number).map_err(failed)?;
    let socket = SockRef::from(&descriptor);
    let domain = socket.domain().map_err(failed)?;
    if socket.r#type().map_err(failed)? != Type::STREAM || ![Domain::IPV4, Domain::IPV6, Domain::UNIX].contains(&domain) {
        return Err(failed(io::Error::other("not a TCP or unix stream socket")));
    }
    socket.set_nonblocking(true).map_err(|e| ("cannot make socket non-blocking", e))?;
    sign(&descriptor, options)?;
    if !socket.is_listener().map_err(failed)? {
        socket.listen(backlog(options)).map_err(|e| ("cannot listen to socket", e))?;
    }
    Ok(descriptor)
}

pub(super) fn new(domain: Domain) -> Result<Socket, Failure> {
    Socket::new(domain, Type::STREAM.nonblocking().cloexec(), None).map_err(|e| ("cannot create receiving socket", e))
}

pub(super) fn backlog(options: &Options) -> i32 {
    options.backlog.map_or(BACKLOG, |backlog| i32::try_from(backlog).unwrap_or(i32::MAX))
}

/// The kernel lowers it to `net.core.somaxconn`, whose default is the same.
const BACKLOG: i32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn open(text: &str, options: Options) -> io::Result<OwnedFd> {
        let endpoint = Endpoint::parse(text, "").unwrap().remove(0);
        let wanted = Wanted { line: 0, owner: String::new(), endpoint, options, count: 1 };
        super::open(&wanted, true).map(|(socket, _)| socket).map_err(|(_, error)| error)
    }

    #[test]
    fn options_reach_the_socket() {
        let options = Options {
            v6only: Some(true),
            interface: Some("lo".into()),
            mss: Some(1000),
            user_timeout: Some(Duration::from_secs(9)),
            congestion: Some("reno".into()),
            defer_accept: true,
            save_syn: 2,
            fast_open: true,
            ..Options::default()
        };
        let socket = match open("[::1]:0", options) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return,
            socket => socket.unwrap(),
        };
        let socket = SockRef::from(&socket);
        assert!(socket.only_v6().unwrap() && socket.is_listener().unwrap() && socket.reuse_port().unwrap());
        assert_eq!(socket.device().unwrap().as_deref(), Some(&b"lo"[..]));
        assert!(socket.nonblocking().unwrap());
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(9)));
        assert!(socket.tcp_congestion().unwrap().starts_with(b"reno"));
    }

    #[test]
    fn opening_packets_are_kept_where_that_is_wanted() {
        use std::os::fd::AsRawFd;
        for (mode, first) in [(0, None), (1, Some(0x45)), (2, Some(0))] {
            let socket: std::net::TcpListener =
                open("127.0.0.1:0", Options { save_syn: mode, ..Options::default() }).unwrap().into();
            socket.set_nonblocking(false).unwrap();
            let _client = std::net::TcpStream::connect(socket.local_addr().unwrap()).unwrap();
            let (server, _) = socket.accept().unwrap();
            // Version and length of the header of IPv4, or the empty addresses that Ethernet's header has on the loopback.
            let packet = terse_io::tcp_info::saved_syn(server.as_raw_fd());
            assert_eq!(packet.and_then(|packet| packet.first().copied()), first, "{mode}");
            assert_eq!(terse_io::tcp_info::saved_syn(server.as_raw_fd()), None, "it is given once");
        }
    }

    #[test]
    fn an_ipv6_socket_takes_ipv4_too_unless_told() {
        let socket = open("ipv6@:0", Options::default()).unwrap();
        assert!(!SockRef::from(&socket).only_v6().unwrap());
    }

    #[test]
    fn abstract_names_are_held_once() {
        let name = format!("abns@terse-test-{}", std::process::id());
        let _first = open(&name, Options::default()).unwrap();
        assert_eq!(open(&name, Options::default()).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn only_stream_sockets_can_be_inherited() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for number in [std::os::fd::AsRawFd::as_raw_fd(&file), std::os::fd::AsRawFd::as_raw_fd(&datagrams)] {
            assert!(open(&format!("fd@{number}"), Options::default()).is_err());
        }
    }
}
