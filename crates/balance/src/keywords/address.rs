//! Addresses of servers: `10.0.0.1:80`, `[::1]:80`, `name:80`, `unix@/path`, `abns@name`, `abnsz@name`.

use crate::address::Address;
use crate::destination::{Destination, Port};
use crate::settings::{InitialAddress, Resolver};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address families that are wanted for a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    Any,
    V4,
    V6,
}

/// Address of a server in its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Spot {
    /// This address.
    Address(Address),
    /// The address of this name, which is still to be resolved.
    Name(HostName),
}

/// A name in the DNS, and a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct HostName {
    pub(super) host: String,
    pub(super) port: Port,
    family: Family,
}

/// Parses the address of a server of logs over datagrams (`udp@`); `None` when it is of another kind.
pub(super) fn datagrams(text: &str) -> Option<Result<Spot, String>> {
    let (kind, rest) = text.split_once('@')?;
    let family = match kind {
        "udp" => Family::Any,
        "udp4" => Family::V4,
        "udp6" => Family::V6,
        _ => return None,
    };
    Some(internet(rest, family))
}

/// Parses an address.
pub(super) fn parse(text: &str) -> Result<Spot, String> {
    // With a family or without, servers are reached over streams.
    let text = text.strip_prefix("stream+").unwrap_or(text);
    if text.starts_with('/') {
        return Ok(Spot::Address(Address::Unix(text.into())));
    }
    let (family, rest) = match text.split_once('@') {
        None => (Family::Any, text),
        Some(("ipv4" | "tcp4" | "stream+ipv4", rest)) => (Family::V4, rest),
        Some(("ipv6" | "tcp6" | "stream+ipv6", rest)) => (Family::V6, rest),
        Some(("ip" | "tcp" | "stream+ip", rest)) => (Family::Any, rest),
        Some(("unix" | "uxst" | "stream+unix", path)) => return Ok(Spot::Address(Address::Unix(path.into()))),
        Some(("abns", name)) => return abstract_name(name, ABSTRACT_BYTES).map(Spot::Address),
        Some(("abnsz", name)) => return abstract_name(name, 0).map(Spot::Address),
        Some((kind, _)) => return Err(format!("addresses of the kind '{kind}@' are not supported")),
    };
    internet(rest, family)
}

/// A name with NULs up to a length, which are part of it.
fn abstract_name(name: &str, length: usize) -> Result<Address, String> {
    let mut bytes = name.as_bytes().to_vec();
    if bytes.len() > ABSTRACT_BYTES {
        return Err(format!("abstract name '{name}' too long (max {ABSTRACT_BYTES})"));
    }
    bytes.resize(bytes.len().max(length), 0);
    Ok(Address::Abstract(bytes))
}

/// Size of abstract names, which `abns@` fills as listeners do.
const ABSTRACT_BYTES: usize = 107;

fn internet(text: &str, family: Family) -> Result<Spot, String> {
    // The port of a service is part of its DNS record (RFC 2782).
    let is_service = text.starts_with('_');
    let (host, port) = match is_service && !text.contains(':') {
        true => (text, Port::Fixed(0)),
        false => split_port(text)?,
    };
    let literal = match host {
        "" | "*" => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        host => host.parse::<Ipv4Addr>().map(IpAddr::V4).or_else(|_| host.parse::<Ipv6Addr>().map(IpAddr::V6)).ok(),
    };
    match literal {
        Some(ip) if family.has(ip) => Ok(Spot::Address(Destination { ip, port }.into())),
        Some(_) => Err(format!("could not resolve address '{host}'")),
        None => Ok(Spot::Name(HostName { host: host.to_owned(), port, family })),
    }
}

impl Family {
    fn has(self, ip: IpAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => ip.is_ipv4(),
            Family::V6 => ip.is_ipv6(),
        }
    }
}

impl HostName {
    /// First address, by the first method that finds one (`init-addr`). It is the unspecified one where the server may
    /// start without, or where a file of states, which is read later, may have it.
    pub(super) fn first_address(&self, methods: &[InitialAddress], resolver: Option<&Resolver>) -> Result<Address, String> {
        let methods = if methods.is_empty() { &[InitialAddress::System] } else { methods };
        let find = |method: &InitialAddress| match method {
            InitialAddress::Last => None,
            InitialAddress::None => Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            InitialAddress::Ip(ip) => Some(*ip),
            InitialAddress::System if self.host.starts_with('_') => None,
            InitialAddress::System => {
                let found =
                    resolver.and_then(|resolver| resolver.0.as_ref()).map(|resolve| resolve(&self.host)).unwrap_or_default();
                found.into_iter().find(|ip| self.family.has(*ip))
            }
        };
        let later = || methods.contains(&InitialAddress::Last).then_some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let ip =
            methods.iter().find_map(find).or_else(later).ok_or_else(|| format!("could not resolve address '{}'", self.host))?;
        Ok(Destination { ip, port: self.port }.into())
    }
}

/// The host, without brackets, and the port. The port is the part after the last colon: an IPv6 address needs brackets
/// only without it. No port, and 0, are the client's.
fn split_port(text: &str) -> Result<(&str, Port), String> {
    let (host, port) = match text.rfind(':') {
        Some(at) if !text.ends_with(']') => (&text[..at], &text[at + 1..]),
        _ => (text, ""),
    };
    let port = match port {
        "" | "0" => Port::Offset(0),
        port => Port::parse(port)?,
    };
    Ok((host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn parsed(text: &str) -> Result<String, String> {
        let hosts = |name: &str| if name == "localhost" { vec!["::1".parse().unwrap(), [127, 0, 0, 1].into()] } else { vec![] };
        let address = match parse(text)? {
            Spot::Address(address) => address,
            Spot::Name(name) => name.first_address(&[], Some(&Resolver(Some(Arc::new(hosts)))))?,
        };
        Ok(address.to_string())
    }

    #[test]
    fn addresses_of_every_kind() {
        for (text, address) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("ipv4@127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("2001:db8::1:80", "[2001:db8::1]:80"),
            ("localhost:8080", "[::1]:8080"),
            ("ipv4@localhost:8080", "127.0.0.1:8080"),
            ("127.0.0.1", "127.0.0.1:+0"),
            ("127.0.0.1:", "127.0.0.1:+0"),
            ("127.0.0.1:0", "127.0.0.1:+0"),
            ("127.0.0.1:+1000", "127.0.0.1:+1000"),
            ("[::1]:-1", "[::1]:-1"),
            ("[::1]", "[::1]:+0"),
            ("localhost", "[::1]:+0"),
            ("ipv4@localhost:-80", "127.0.0.1:-80"),
            (":", "0.0.0.0:+0"),
            ("*", "0.0.0.0:+0"),
            ("*:80", "0.0.0.0:80"),
            ("ipv4@:80", "0.0.0.0:80"),
            ("[::]:80", "[::]:80"),
            ("/run/a.sock", "unix@/run/a.sock"),
            ("unix@a.sock", "unix@a.sock"),
            ("abns@a", "abns@a"),
            ("abnsz@a", "abnsz@a"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(address), "{text}");
        }
    }

    #[test]
    fn abstract_names_fill_their_room() {
        let length = |text: &str| match parse(text) {
            Ok(Spot::Address(Address::Abstract(name))) => name.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!((length("abns@a"), length("abnsz@a")), (107, 1));
        assert!(parse(&format!("abns@{}", "a".repeat(108))).is_err());
    }

    #[test]
    fn first_addresses_come_from_the_first_method_that_has_one() {
        let Ok(Spot::Name(name)) = parse("nowhere:80") else { panic!() };
        let first = |methods: &[InitialAddress]| name.first_address(methods, None).map(|address| address.to_string());
        let ip = InitialAddress::Ip([10, 0, 0, 9].into());
        assert_eq!(first(&[InitialAddress::Last, InitialAddress::System, ip]).as_deref(), Ok("10.0.0.9:80"));
        assert_eq!(first(&[InitialAddress::System, InitialAddress::None]).as_deref(), Ok("0.0.0.0:80"));
        assert_eq!(first(&[InitialAddress::System, InitialAddress::Last]).as_deref(), Ok("0.0.0.0:80"), "judged later");
        assert!(first(&[]).unwrap_err().contains("could not resolve"));
        assert!(matches!(parse("_http._tcp.x"), Ok(Spot::Name(HostName { port: Port::Fixed(0), .. }))));
    }

    #[test]
    fn what_is_no_address_says_why() {
        for (text, why) in [
            ("127.0.0.1:+", "'+' is not a port"),
            ("127.0.0.1:+99999", "is not a port"),
            ("127.0.0.1:1-2", "is not a port"),
            ("::1", "could not resolve address ':'"),
            ("127.0.0.1:99999", "is not a port"),
            ("127.0.0.1:http", "is not a port"),
            ("nowhere:80", "could not resolve address 'nowhere'"),
            ("ipv6@127.0.0.1:80", "could not resolve"),
            ("fd@4", "'fd@' are not supported"),
        ] {
            let reason = parsed(text).unwrap_err();
            assert!(reason.contains(why), "{text}: {reason}");
        }
    }
}
