//! Addresses of log targets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use terse_config::Fault;

/// Destination of log lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// A syslog server, over UDP.
    Udp(SocketAddr),
    /// The same, by a name that is looked up once, when the target is opened.
    UdpName {
        /// The host's name.
        host: String,
        /// Its port.
        port: u16,
        /// `Some(true)`: it has to be an IPv6 address; `Some(false)`: an IPv4 address.
        v6: Option<bool>,
    },
    /// A datagram socket in the file system, such as `/dev/log`.
    Unix(PathBuf),
    /// A datagram socket in Linux's abstract namespace.
    Abstract(Vec<u8>),
    /// The same over a stream: TCP where the address is of UDP, a stream socket where it is of datagrams.
    Stream(Box<Address>),
    /// A `ring` section.
    Ring(String),
    /// A backend in `mode log`.
    Backend(String),
    /// A descriptor that the process was started with; 1 and 2 are `stdout` and `stderr`.
    Descriptor(i32),
}

impl Address {
    /// Parses an address whose variables are expanded; a fault is reported at `word`.
    pub fn parse(text: &str, word: usize) -> Result<Address, Fault> {
        let wrong = |reason: String| Fault::new(word, reason);
        match text {
            "stdout" => return Ok(Address::Descriptor(1)),
            "stderr" => return Ok(Address::Descriptor(2)),
            _ => {}
        }
        if text.starts_with('/') {
            return unix_path(text).map_err(wrong);
        }
        let Some((kind, rest)) = text.split_once('@') else { return internet(text, None).map_err(wrong) };
        match kind {
            "udp" => internet(rest, None).map_err(wrong),
            "udp4" | "ipv4" => internet(rest, Some(false)).map_err(wrong),
            "udp6" | "ipv6" => internet(rest, Some(true)).map_err(wrong),
            "unix" | "uxdg" => unix_path(rest).map_err(wrong),
            "abns" => abstract_name(rest).map_err(wrong),
            "fd" => match rest.parse::<i32>() {
                Ok(fd) if fd >= 0 => Ok(Address::Descriptor(fd)),
                _ => Err(wrong(format!("'{rest}' is not a file descriptor"))),
            },
            "tcp" => internet(rest, None).map(stream).map_err(wrong),
            "tcp4" => internet(rest, Some(false)).map(stream).map_err(wrong),
            "tcp6" => internet(rest, Some(true)).map(stream).map_err(wrong),
            "uxst" => unix_path(rest).map(stream).map_err(wrong),
            "ring" | "backend" if rest.is_empty() => Err(wrong("the name is empty".into())),
            "ring" => Ok(Address::Ring(rest.into())),
            "backend" => Ok(Address::Backend(rest.into())),
            _ => Err(wrong(format!("unknown kind of address '{kind}@'"))
                .hint("one of udp@ udp4@ udp6@ ipv4@ ipv6@ tcp@ tcp4@ tcp6@ unix@ uxdg@ uxst@ abns@ fd@ ring@ backend@, stdout, stderr, or a path")),
        }
    }
}

/// `addr`, `addr:port`, `[v6]:port`; the last colon begins the port, as everywhere in the language.
fn internet(text: &str, v6: Option<bool>) -> Result<Address, String> {
    if let Ok(ip) = text.parse::<Ipv6Addr>()
        && text.rsplit_once(':').is_none_or(|(head, _)| head.parse::<Ipv6Addr>().is_err())
    {
        return family(IpAddr::V6(ip), SYSLOG_PORT, v6);
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (text, ""),
    };
    let port = match port {
        "" => SYSLOG_PORT,
        digits => digits.parse().map_err(|_| format!("'{digits}' is not a port"))?,
    };
    let bare = host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return family(ip, port, v6);
    }
    match host {
        // Linux delivers datagrams to the unspecified address to the host itself.
        "" | "*" if v6 == Some(true) => Ok(Address::Udp((Ipv6Addr::UNSPECIFIED, port).into())),
        "" | "*" => Ok(Address::Udp((Ipv4Addr::UNSPECIFIED, port).into())),
        name if name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) => {
            Ok(Address::UdpName { host: name.into(), port, v6 })
        }
        other => Err(format!("'{other}' is neither an address nor a name")),
    }
}

fn stream(address: Address) -> Address {
    Address::Stream(Box::new(address))
}

fn family(ip: IpAddr, port: u16, v6: Option<bool>) -> Result<Address, String> {
    match v6 {
        Some(v6) if v6 != ip.is_ipv6() => Err(format!("'{ip}' is not an IPv{} address", if v6 { 6 } else { 4 })),
        _ => Ok(Address::Udp((ip, port).into())),
    }
}

fn unix_path(path: &str) -> Result<Address, String> {
    match path.len() {
        0 => Err("the path is empty".into()),
        1..=UNIX_PATH_LIMIT => Ok(Address::Unix(path.into())),
        len => Err(format!("the path is {len} bytes long; a socket's is at most {UNIX_PATH_LIMIT}")),
    }
}

fn abstract_name(name: &str) -> Result<Address, String> {
    match name.len() {
        0 => Err("the name is empty".into()),
        1..=UNIX_PATH_LIMIT => Ok(Address::Abstract(name.into())),
        len => Err(format!("the name is {len} bytes long; a socket's is at most {UNIX_PATH_LIMIT}")),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Udp(address) => write!(f, "udp@{address}"),
            Address::UdpName { host, port, .. } => write!(f, "udp@{host}:{port}"),
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Stream(address) => match &**address {
                Address::Udp(address) => write!(f, "tcp@{address}"),
                Address::UdpName { host, port, .. } => write!(f, "tcp@{host}:{port}"),
                Address::Unix(path) => write!(f, "uxst@{}", path.display()),
                other => other.fmt(f),
            },
            Address::Ring(name) => write!(f, "ring@{name}"),
            Address::Backend(name) => write!(f, "backend@{name}"),
            Address::Abstract(name) => write!(f, "abns@{}", String::from_utf8_lossy(name)),
            Address::Descriptor(fd) => write!(f, "fd@{fd}"),
        }
    }
}

/// Port of syslog servers (RFC 5426 section 3.3).
const SYSLOG_PORT: u16 = 514;

/// `sun_path` less its final zero.
const UNIX_PATH_LIMIT: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        Address::parse(text, 1).map_or_else(|fault| fault.reason, |address| address.to_string())
    }

    #[test]
    fn kinds() {
        for (text, expected) in [
            ("127.0.0.1", "udp@127.0.0.1:514"),
            ("127.0.0.1:1514", "udp@127.0.0.1:1514"),
            ("udp@127.0.0.1:", "udp@127.0.0.1:514"),
            ("ipv4@10.0.0.1:9", "udp@10.0.0.1:9"),
            ("::1:1514", "udp@[::1]:1514"),
            ("::1:", "udp@[::1]:514"),
            ("[::1]", "udp@[::1]:514"),
            ("udp6@[fe80::1]:9", "udp@[fe80::1]:9"),
            ("fe80::1", "udp@[fe80::1]:514"),
            (":514", "udp@0.0.0.0:514"),
            ("ipv6@:514", "udp@[::]:514"),
            ("syslog.example.org:514", "udp@syslog.example.org:514"),
            ("localhost", "udp@localhost:514"),
            ("/dev/log", "/dev/log"),
            ("unix@run/log", "run/log"),
            ("abns@logs", "abns@logs"),
            ("stdout", "fd@1"),
            ("stderr", "fd@2"),
            ("fd@7", "fd@7"),
            ("tcp@127.0.0.1", "tcp@127.0.0.1:514"),
            ("tcp6@[::1]:9", "tcp@[::1]:9"),
            ("tcp@localhost:9", "tcp@localhost:9"),
            ("uxst@/run/log", "uxst@/run/log"),
            ("ring@logs", "ring@logs"),
            ("backend@logs", "backend@logs"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn faults() {
        for (text, expected) in [
            ("127.0.0.1:x", "'x' is not a port"),
            ("127.0.0.1:99999", "'99999' is not a port"),
            ("ipv6@127.0.0.1", "'127.0.0.1' is not an IPv6 address"),
            ("ipv4@::1:514", "'::1' is not an IPv4 address"),
            ("a b", "'a b' is neither an address nor a name"),
            ("fd@x", "'x' is not a file descriptor"),
            ("fd@-1", "'-1' is not a file descriptor"),
            ("unix@", "the path is empty"),
            ("ring@", "the name is empty"),
            ("tcp@127.0.0.1:x", "'x' is not a port"),
            ("tcp6@127.0.0.1", "'127.0.0.1' is not an IPv6 address"),
            ("quic@1", "unknown kind of address 'quic@'"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert!(shown(&"/x".repeat(60)).contains("120 bytes"));
    }
}
