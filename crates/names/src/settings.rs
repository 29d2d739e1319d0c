//! Settings of name servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use terse_config::{Place, Setting};

/// A `resolvers` section.
#[derive(Clone, Debug)]
pub struct ResolversSettings {
    /// `nameserver`, `parse-resolv-conf`
    pub servers: Vec<NameServer>,
    /// `resolve_retries`: questions before the name is given up, 3.
    pub retries: u32,
    /// `timeout resolve`: time between two questions for a name, 1 s.
    pub interval: Duration,
    /// `timeout retry`: time limit of an answer, 1 s.
    pub patience: Duration,
    /// `accepted_payload_size`: bytes of a datagram, 512.
    pub payload_bytes: u16,
    /// `hold`
    pub hold: Hold,
}

/// `hold`: time for which an answer is believed after a worse one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hold {
    /// `valid`, 10 s: for `do-resolve`.
    pub valid: Duration,
    /// `obsolete`: time for which an address stays that answers do not name any more.
    pub obsolete: Duration,
    /// `nx`, 30 s: there is no such name.
    pub absent: Duration,
    /// `refused`, 30 s
    pub refused: Duration,
    /// `timeout`, 30 s
    pub timeout: Duration,
    /// `other`, 30 s
    pub other: Duration,
}

/// A name server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameServer {
    /// Its name in the section.
    pub name: Arc<str>,
    /// Its address.
    pub address: SocketAddr,
    /// Whether it is asked over TCP.
    pub stream: bool,
}

/// `dns-accept-family`, in the shared settings.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FamilySettings {
    /// Families of addresses that are asked for; `None`: those that the machine can reach (`auto`).
    pub accepted: Option<(bool, bool)>,
}

/// Names of sections in use, in the shared settings.
#[derive(Clone, Default, Debug)]
pub struct ResolversUses {
    /// The names, and their places.
    pub uses: Vec<(Arc<str>, Place)>,
}

impl Setting for ResolversUses {
    fn inherit(&self) -> ResolversUses {
        self.clone()
    }
}

impl Default for ResolversSettings {
    fn default() -> ResolversSettings {
        let second = Duration::from_secs(1);
        ResolversSettings {
            servers: Vec::new(),
            retries: 3,
            interval: second,
            patience: second,
            payload_bytes: 512,
            hold: Hold {
                valid: 10 * second,
                obsolete: Duration::ZERO,
                absent: 30 * second,
                refused: 30 * second,
                timeout: 30 * second,
                other: 30 * second,
            },
        }
    }
}

impl Setting for ResolversSettings {
    fn inherit(&self) -> ResolversSettings {
        self.clone()
    }
}

impl Setting for FamilySettings {
    fn inherit(&self) -> FamilySettings {
        *self
    }
}

impl ResolversSettings {
    /// The section `default`, where no file has one: the system's name servers.
    pub fn of_system() -> ResolversSettings {
        let text = std::fs::read_to_string(RESOLV_CONF).unwrap_or_default();
        ResolversSettings { servers: system_servers(&text), ..ResolversSettings::default() }
    }
}

/// The name servers of a `resolv.conf`.
pub(crate) fn system_servers(text: &str) -> Vec<NameServer> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        let address = words.next().filter(|word| *word == "nameserver").and(words.next())?;
        // A zone after a '%' belongs to link-local addresses, which have no other use here.
        let ip = address.split('%').next()?.parse().ok()?;
        Some(NameServer { name: address.into(), address: SocketAddr::new(ip, DNS_PORT), stream: false })
    };
    text.lines().filter_map(server).collect()
}

/// File in which the system keeps its name servers.
pub(crate) const RESOLV_CONF: &str = "/etc/resolv.conf";

/// RFC 1035 section 4.2
pub(crate) const DNS_PORT: u16 = 53;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_name_servers() {
        let text = "# made\nsearch a.b\nnameserver 10.0.0.1\n nameserver\t::1%lo x\nnameserver nonsense\noptions ndots:2\n";
        let servers: Vec<_> = system_servers(text).into_iter().map(|server| server.address.to_string()).collect();
        assert_eq!(servers, ["10.0.0.1:53", "[::1]:53"]);
    }
}
