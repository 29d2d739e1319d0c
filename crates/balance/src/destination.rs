//! Addresses of servers over IP, as lines and operators set them: parts may come from the client's destination.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// An address and a port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Destination {
    /// Address; an unspecified one stands for the address that the client asked for.
    pub ip: IpAddr,
    /// Port.
    pub port: Port,
}

/// A server's port.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Port {
    /// This one.
    Fixed(u16),
    /// The port that the client asked for, plus this: `+1000`, `-1000`, and 0 where a line has no port.
    Offset(i32),
}

impl Destination {
    /// Address and port, if they do not depend on clients.
    pub fn fixed(self) -> Option<SocketAddr> {
        self.fixed_port().filter(|_| !self.ip.is_unspecified()).map(|port| SocketAddr::new(self.ip, port))
    }

    /// Port, if it does not depend on clients.
    pub fn fixed_port(self) -> Option<u16> {
        match self.port {
            Port::Fixed(port) => Some(port),
            Port::Offset(_) => None,
        }
    }

    /// Address and port for a client that asked for this address, which is unknown for clients of unix sockets; `None`
    /// where no valid port results.
    pub fn of(self, asked: Option<SocketAddr>) -> Option<SocketAddr> {
        let ip = asked.map(|asked| asked.ip()).filter(|_| self.ip.is_unspecified()).unwrap_or(self.ip);
        let port = match self.port {
            Port::Fixed(port) => port,
            Port::Offset(offset) => u16::try_from(i32::from(asked?.port()) + offset).ok().filter(|port| *port != 0)?,
        };
        Some(SocketAddr::new(ip, port))
    }
}

impl From<SocketAddr> for Destination {
    fn from(address: SocketAddr) -> Destination {
        Destination { ip: address.ip(), port: Port::Fixed(address.port()) }
    }
}

impl Port {
    /// Parses `80`, `+1000`, `-1000`.
    ///
    /// # Errors
    /// The text of the fault. A distance that no port could have is a fault, as is a sign alone.
    pub fn parse(text: &str) -> Result<Port, String> {
        let port = match text.as_bytes().first() {
            Some(b'+' | b'-') => text.parse().ok().filter(|offset| (-MOST..=MOST).contains(offset)).map(Port::Offset),
            _ => text.parse().ok().map(Port::Fixed),
        };
        port.ok_or_else(|| format!("'{text}' is not a port"))
    }

    /// Port as a number. Offsets wrap, as in HAProxy: -1 is 65535.
    pub fn number(self) -> u16 {
        match self {
            Port::Fixed(port) => port,
            Port::Offset(offset) => offset as u16,
        }
    }
}

/// Largest distance of two ports.
const MOST: i32 = 65_535;

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip {
            IpAddr::V4(ip) => write!(f, "{ip}:{}", self.port),
            IpAddr::V6(ip) => write!(f, "[{ip}]:{}", self.port),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Port::Fixed(port) => write!(f, "{port}"),
            Port::Offset(offset) => write!(f, "{offset:+}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(ip: &str, port: &str) -> Destination {
        Destination { ip: ip.parse().unwrap(), port: Port::parse(port).unwrap() }
    }

    #[test]
    fn what_a_line_leaves_open_is_what_the_client_asked_for() {
        for (ip, port, asked, expected) in [
            ("10.0.0.1", "80", "10.0.0.9:8080", Some("10.0.0.1:80")),
            ("10.0.0.1", "+0", "10.0.0.9:8080", Some("10.0.0.1:8080")),
            ("10.0.0.1", "+1000", "10.0.0.9:8080", Some("10.0.0.1:9080")),
            ("10.0.0.1", "-1000", "10.0.0.9:8080", Some("10.0.0.1:7080")),
            ("10.0.0.1", "-8080", "10.0.0.9:8080", None),
            ("10.0.0.1", "-8081", "10.0.0.9:8080", None),
            ("10.0.0.1", "+57455", "10.0.0.9:8080", Some("10.0.0.1:65535")),
            ("10.0.0.1", "+57456", "10.0.0.9:8080", None),
            ("0.0.0.0", "80", "10.0.0.9:8080", Some("10.0.0.9:80")),
            ("::", "80", "10.0.0.9:8080", Some("10.0.0.9:80")),
            ("0.0.0.0", "+1", "[::9]:8080", Some("[::9]:8081")),
            ("::1", "-1", "10.0.0.9:8080", Some("[::1]:8079")),
        ] {
            let found = destination(ip, port).of(asked.parse().ok()).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{ip} {port} {asked}");
        }
    }

    #[test]
    fn of_unix_sockets_no_port_is_known() {
        assert_eq!(destination("10.0.0.1", "+1").of(None), None);
        assert_eq!(destination("10.0.0.1", "80").of(None), "10.0.0.1:80".parse().ok());
        assert_eq!(destination("0.0.0.0", "80").of(None), "0.0.0.0:80".parse().ok());
    }

    #[test]
    fn only_whole_addresses_are_fixed() {
        assert_eq!(destination("::1", "80").fixed(), "[::1]:80".parse().ok());
        assert_eq!((destination("::1", "+0").fixed(), destination("::", "80").fixed()), (None, None));
    }

    #[test]
    fn ports_as_they_are_written() {
        for (text, shown, number) in [("80", "80", 80), ("+1000", "+1000", 1000), ("-1000", "-1000", 64536), ("-0", "+0", 0)] {
            let port = Port::parse(text).unwrap();
            assert_eq!((port.to_string().as_str(), port.number()), (shown, number), "{text}");
        }
        for text in ["", "+", "-", "+x", "65536", "+65536", "-65536", "80 ", "1-2", "99999999999"] {
            assert!(Port::parse(text).is_err(), "{text}");
        }
        assert_eq!(destination("::1", "+0").to_string(), "[::1]:+0");
    }
}
