//! Addresses as `bind` and `stats socket` write them.
//!
//! ```text
//! [ipv4@|ipv6@|tcp@|tcp4@|tcp6@] [host|*] ":" port ["-" port]      TCP; no host or * is 0.0.0.0
//! [unix@|uxst@] path                                               a path begins with /
//! abns@name, abnsz@name                                            Linux's abstract names, padded or not
//! fd@number                                                        a socket that the starter has opened
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// Address to listen on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Endpoint {
    /// TCP.
    Ip(SocketAddr),
    /// A unix socket by its path.
    Unix(PathBuf),
    /// A unix socket by an abstract name: all bytes after the leading NUL.
    Abstract(Vec<u8>),
    /// A descriptor that the starter has opened.
    Inherited(i32),
}

impl Endpoint {
    /// The number of a descriptor that the starter has opened.
    pub fn descriptor(&self) -> Option<i32> {
        match self {
            Endpoint::Inherited(number) => Some(*number),
            _ => None,
        }
    }

    /// Parses an address; a range of ports makes several. `prefix` goes before the paths of unix sockets.
    ///
    /// # Errors
    /// The fault of the text.
    pub fn parse(text: &str, prefix: &str) -> Result<Vec<Endpoint>, String> {
        let (kind, rest) = match text.split_once('@') {
            Some((kind, rest)) if kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+') => (kind, rest),
            _ => ("", text),
        };
        match kind {
            "" if rest.starts_with('/') => unix(rest, prefix),
            "" | "tcp" | "stream+ipv4" | "stream+ipv6" => tcp(rest, Family::Any),
            "ipv4" | "tcp4" => tcp(rest, Family::V4),
            "ipv6" | "tcp6" => tcp(rest, Family::V6),
            "unix" | "uxst" | "stream+unix" => unix(rest, prefix),
            "abns" => Ok(vec![Endpoint::Abstract(padded(rest)?)]),
            "abnsz" => Ok(vec![Endpoint::Abstract(rest.as_bytes().to_vec())]),
            "fd" => match rest.parse() {
                Ok(number) if number >= 0 => Ok(vec![Endpoint::Inherited(number)]),
                _ => Err(format!("'{rest}' is not the number of a descriptor")),
            },
            "sockpair" => Err("'sockpair@' is between a master and its workers".into()),
            "quic4" | "quic6" | "quic" | "quic+fd" | "quic+ipv4" | "quic+ipv6" => Err("QUIC is not built".into()),
            "udp" | "udp4" | "udp6" => Err("datagrams are not listened to".into()),
            "mptcp" | "mptcp4" | "mptcp6" => Err("Multipath TCP is not built".into()),
            "rhttp" => Err("reverse HTTP is not built".into()),
            _ => Err(format!("'{kind}@' is not a known kind of address")),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Ip(address) => address.fmt(f),
            Endpoint::Unix(path) => path.display().fmt(f),
            Endpoint::Abstract(name) => write!(f, "abns@{}", String::from_utf8_lossy(name).trim_end_matches('\0')),
            Endpoint::Inherited(number) => write!(f, "fd@{number}"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Any,
    V4,
    V6,
}

impl Family {
    fn admits(self, ip: &IpAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => ip.is_ipv4(),
            Family::V6 => ip.is_ipv6(),
        }
    }
}

/// The last colon divides: IPv6 addresses may come without brackets.
fn tcp(text: &str, family: Family) -> Result<Vec<Endpoint>, String> {
    let Some((host, ports)) = text.rsplit_once(':') else { return Err(format!("missing port number: '{text}'")) };
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let port = |text: &str| text.parse::<u16>().map_err(|_| format!("'{text}' is not a port number"));
    let (first, last) = (port(first)?, port(last)?);
    if first > last {
        return Err(format!("invalid port range '{ports}'"));
    }
    let ip = resolve(host, family)?;
    Ok((first..=last).map(|port| Endpoint::Ip(SocketAddr::new(ip, port))).collect())
}

fn resolve(host: &str, family: Family) -> Result<IpAddr, String> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare {
        "" | "*" if family == Family::V6 => return Ok(Ipv6Addr::UNSPECIFIED.into()),
        "" | "*" => return Ok(Ipv4Addr::UNSPECIFIED.into()),
        _ => {}
    }
    let found = match bare.parse::<IpAddr>() {
        Ok(ip) => Some(ip).filter(|ip| family.admits(ip)),
        Err(_) => {
            let addresses = (bare, 0).to_socket_addrs().map_err(|_| format!("could not resolve address '{host}'"))?;
            addresses.map(|address| address.ip()).find(|ip| family.admits(ip))
        }
    };
    found.ok_or_else(|| format!("'{host}' has no address of that family"))
}

fn unix(path: &str, prefix: &str) -> Result<Vec<Endpoint>, String> {
    let path = format!("{prefix}{path}");
    match path.len() {
        0 => Err("missing path".into()),
        // The name that it comes up under, `<path>.<pid>.tmp`, has to fit into a socket's address too.
        length if length > PATH_BYTES => Err(format!("socket path '{path}' too long (max {PATH_BYTES})")),
        _ => Ok(vec![Endpoint::Unix(path.into())]),
    }
}

/// HAProxy fills the address up with NULs, which are part of an abstract name.
fn padded(name: &str) -> Result<Vec<u8>, String> {
    let mut bytes = name.as_bytes().to_vec();
    if bytes.len() > ABSTRACT_BYTES {
        return Err(format!("abstract name '{name}' too long (max {ABSTRACT_BYTES})"));
    }
    bytes.resize(ABSTRACT_BYTES, 0);
    Ok(bytes)
}

/// Longest path, in bytes, as in HAProxy: 107 less `.<pid>.tmp` with five digits.
const PATH_BYTES: usize = 97;

/// `sun_path` without the leading NUL.
const ABSTRACT_BYTES: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> String {
        let endpoints = Endpoint::parse(text, "").unwrap();
        assert_eq!(endpoints.len(), 1, "{text}");
        endpoints[0].to_string()
    }

    #[test]
    fn all_ways_to_write_an_address() {
        for (text, expected) in [
            (":80", "0.0.0.0:80"),
            ("*:80", "0.0.0.0:80"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("ipv4@:80", "0.0.0.0:80"),
            ("ipv6@:80", "[::]:80"),
            (":::80", "[::]:80"),
            ("[::1]:80", "[::1]:80"),
            ("2001:db8::1:443", "[2001:db8::1]:443"),
            ("tcp6@[::]:1", "[::]:1"),
            ("ipv4@localhost:80", "127.0.0.1:80"),
            ("/run/a@b", "/run/a@b"),
            ("unix@run/x", "run/x"),
            ("abns@name", "abns@name"),
            ("abnsz@name", "abns@name"),
            ("fd@7", "fd@7"),
        ] {
            assert_eq!(one(text), expected, "{text}");
        }
    }

    #[test]
    fn ranges_make_several() {
        let ports = Endpoint::parse("127.0.0.1:80-82", "").unwrap();
        assert_eq!(ports.iter().map(ToString::to_string).collect::<Vec<_>>(), ["127.0.0.1:80", "127.0.0.1:81", "127.0.0.1:82"]);
    }

    #[test]
    fn prefixes_go_before_paths_alone() {
        assert_eq!(Endpoint::parse("/x", "/jail").unwrap(), [Endpoint::Unix("/jail/x".into())]);
        assert_eq!(Endpoint::parse(":80", "/jail").unwrap(), Endpoint::parse(":80", "").unwrap());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("127.0.0.1", "missing port number"),
            (":http", "'http' is not a port number"),
            (":82-80", "invalid port range"),
            ("ipv6@127.0.0.1:80", "no address of that family"),
            ("fd@-1", "not the number of a descriptor"),
            ("fd@", "not the number of a descriptor"),
            ("quic4@:443", "QUIC"),
            ("sockpair@3", "master"),
            ("foo@:80", "'foo@'"),
            ("unix@", "missing path"),
        ] {
            let error = Endpoint::parse(text, "").unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(Endpoint::parse(&format!("/{}", "x".repeat(97)), "").is_err());
    }
}
