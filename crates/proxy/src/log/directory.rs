//! The objects that targets name, with their tasks: rings, backends of logs, profiles.

use super::address::Address;
use super::balancer::Balancer;
use super::carrier::{Carrier, Peer};
use super::header::Form;
use super::journal::{self, Way};
use super::profile::Profile;
use super::ring::{Framing, Ring};
use super::sinks::Sinks;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use terse_balance::Farm;
use terse_config::{Place, near};
use terse_sample::Expr;
use terse_tls::Connector;

/// The objects that targets name.
#[derive(Debug)]
pub struct Directory {
    pub(super) sinks: Arc<Sinks>,
    rings: Vec<Arc<Ring>>,
    carriers: Vec<Carrier>,
    /// Rings that were made for servers over streams, by their addresses.
    implicit: HashMap<String, Arc<Ring>>,
    balancers: HashMap<Arc<str>, Arc<Balancer>>,
    profiles: HashMap<Arc<str>, Arc<Profile>>,
    /// `tune.bufsize`: size of rings without a size of their own.
    buffer_bytes: usize,
}

/// A name that nothing has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// The fault.
    pub reason: String,
    /// A similar name, if there is any.
    pub hint: Option<String>,
}

impl Directory {
    /// Creates an empty directory.
    pub fn new(sinks: &Arc<Sinks>, buffer_bytes: usize) -> Directory {
        Directory {
            sinks: sinks.clone(),
            rings: Vec::new(),
            carriers: Vec::new(),
            implicit: HashMap::new(),
            balancers: HashMap::new(),
            profiles: HashMap::new(),
            buffer_bytes,
        }
    }

    /// Adds a ring, and the servers that have its events.
    pub fn add_ring(&mut self, ring: Ring, servers: impl IntoIterator<Item = ServerOfRing>) {
        let ring = Arc::new(ring);
        for server in servers {
            let ServerOfRing { peer, framing, connect_timeout, server_timeout, max_events, connector } = server;
            let reader = ring.attach();
            let ring = ring.clone();
            self.carriers.push(Carrier { ring, reader, peer, framing, connect_timeout, server_timeout, max_events, connector });
        }
        self.rings.push(ring);
    }

    /// Adds a backend of logs, whose servers are set later.
    pub fn add_balancer(&mut self, name: &Arc<str>) {
        self.balancers.insert(name.clone(), Arc::default());
    }

    /// Adds a profile.
    pub fn add_profile(&mut self, profile: Profile) {
        self.profiles.insert(profile.name.clone(), Arc::new(profile));
    }

    /// Tells a backend of logs its servers. Those over streams get a ring each.
    pub fn settle(&mut self, name: &str, farm: &Arc<Farm>, key: Option<Expr>, place: &Place) {
        let Some(balancer) = self.balancers.get(name).cloned() else { return };
        let mut ways = Vec::with_capacity(farm.servers().len());
        for server in farm.servers().iter() {
            let words = server.settings().log;
            if words.datagrams {
                ways.push(Way::Server(server.clone()));
                continue;
            }
            let named = format!("{name}/{}", server.name());
            let description = format!("created from log backend declared into '{}' at line {}", place.file, place.line);
            let capacity = words.buffer_bytes.unwrap_or(self.buffer_bytes);
            let mut ring = Ring::new(named.into(), capacity, place.clone());
            ring.description = description;
            let framing = if words.octet_count { Framing::OctetCounting } else { Framing::Lines };
            let max_events = server.settings().pool.max_reuse.map(|reuse| u64::from(reuse) + 1);
            self.add_ring(ring, [ServerOfRing { framing, max_events, ..ServerOfRing::new(Peer::Server(server.clone())) }]);
            ways.extend(self.rings.last().cloned().map(Way::Ring));
        }
        balancer.set(farm.clone(), ways.into(), key);
    }

    /// The profile of that name.
    pub fn profile(&self, name: &str) -> Result<Arc<Profile>, Missing> {
        self.profiles.get(name).cloned().ok_or_else(|| missing("log-profile", name, self.profiles.keys().map(|name| &**name)))
    }

    /// The way to an address. Looks names up, which may take time; a server over a stream gets a ring.
    pub(super) fn way(&mut self, address: &Address, place: &Place) -> Result<Way, Missing> {
        match address {
            Address::Ring(name) => {
                let ring = self.rings.iter().find(|ring| *ring.name == **name).cloned();
                ring.map(Way::Ring).ok_or_else(|| missing("ring", name, self.rings.iter().map(|ring| &*ring.name)))
            }
            Address::Backend(name) => match self.balancers.get(&**name) {
                Some(balancer) => Ok(Way::Backend(balancer.clone())),
                None => Err(missing("backend in 'mode log'", name, self.balancers.keys().map(|name| &**name))),
            },
            Address::Stream(inner) => {
                self.implicit(address, inner, place).map(Way::Ring).map_err(|reason| Missing { reason, hint: None })
            }
            _ => Way::open(address, &self.sinks).map_err(|reason| Missing { reason, hint: None }),
        }
    }

    /// The ring of a server over a stream, made when it is first asked for.
    fn implicit(&mut self, address: &Address, inner: &Address, place: &Place) -> Result<Arc<Ring>, String> {
        let key = address.to_string();
        if let Some(ring) = self.implicit.get(&key) {
            return Ok(ring.clone());
        }
        let peer = Peer::Fixed(match inner {
            Address::Udp(address) => terse_balance::Address::Ip(*address),
            Address::UdpName { host, port, v6 } => terse_balance::Address::Ip(journal::look_up(host, *port, *v6)?),
            Address::Unix(path) => terse_balance::Address::Unix(path.clone()),
            other => return Err(format!("'{other}' is no address of a stream")),
        });
        let name: Arc<str> = format!("ring#{}", self.implicit.len() + 1).into();
        let description = format!("created from log directive declared into '{}' at line {}", place.file, place.line);
        let mut made = Ring::new(name, self.buffer_bytes, place.clone());
        made.description = description;
        self.add_ring(made, [ServerOfRing::new(peer)]);
        let ring = self.rings.last().cloned().ok_or("no ring")?;
        self.implicit.insert(key, ring.clone());
        Ok(ring)
    }

    /// The ring that an expression writes to. `made`: a missing ring is created, without a section.
    pub fn ring(&mut self, name: &str, made: bool, place: &Place) -> Result<Arc<Ring>, Missing> {
        let found = self.rings.iter().find(|ring| *ring.name == *name).cloned();
        match found {
            Some(ring) => Ok(ring),
            None if made => {
                let mut ring = Ring::new(name.into(), self.buffer_bytes, place.clone());
                ring.description = "what expressions leave behind ('debug')".into();
                ring.form = Some(Form::Raw);
                self.rings.push(Arc::new(ring));
                self.ring(name, false, place)
            }
            None => Err(missing("ring", name, self.rings.iter().map(|ring| &*ring.name))),
        }
    }

    /// The rings, and the carriers to run for them.
    pub fn into_parts(self) -> (Vec<Arc<Ring>>, Vec<Carrier>) {
        (self.rings, self.carriers)
    }
}

/// A server that has a ring's events.
#[derive(Debug)]
pub struct ServerOfRing {
    /// Its location.
    pub peer: Peer,
    /// Separation of the events on the stream.
    pub framing: Framing,
    /// `timeout connect`.
    pub connect_timeout: Duration,
    /// `timeout server`: time limit for the server to take something while events wait for it.
    pub server_timeout: Duration,
    /// Events after which another connection is made; `None`: any number.
    pub max_events: Option<u64>,
    /// TLS connector for it; `None` for a backend's server, which has its own.
    pub connector: Option<Arc<Connector>>,
}

impl ServerOfRing {
    /// A server with the default timeouts, for servers that no section sets.
    pub fn new(peer: Peer) -> ServerOfRing {
        ServerOfRing {
            peer,
            framing: Framing::Lines,
            connect_timeout: Duration::from_secs(1),
            server_timeout: Duration::from_secs(5),
            max_events: None,
            connector: None,
        }
    }
}

fn missing<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> Missing {
    let near = near::nearest(name, known);
    Missing { reason: format!("there is no {what} '{name}'"), hint: near::question(&near) }
}
