//! The log of a proxy: its targets, opened.

use super::address::Address;
use super::balancer::Balancer;
use super::directory::{Directory, Missing};
use super::header::Form;
use super::level::{Facility, Level};
use super::profile::Profile;
use super::ring::Ring;
use super::sampling::Sampling;
use super::settings::HostName;
use super::sinks::{Sinks, Writer};
use super::target::Target;
use rustix::net::SocketAddrUnix;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use terse_balance::Server;
use terse_config::Place;

/// The log of a proxy, or of the process. Workers share it: only the count that samples are taken by changes.
#[derive(Debug)]
pub struct Journal {
    pub(super) tag: Box<str>,
    pub(super) host: Option<Box<str>>,
    pub(super) outlets: Box<[Outlet]>,
    mildest: Option<Level>,
}

/// A target that cannot be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenError {
    /// Place of its line in the configuration.
    pub place: Place,
    /// Why not.
    pub reason: String,
    /// A similar name, if there is any.
    pub hint: Option<String>,
}

impl Journal {
    /// Opens targets: resolves names, which may take time, and finds descriptors. `host` is the value of `log-send-hostname`.
    /// Either all targets are opened, or every target that cannot be opened is reported.
    pub fn open(
        targets: &[Arc<Target>],
        tag: &str,
        host: Option<&HostName>,
        directory: &mut Directory,
    ) -> Result<Journal, Vec<OpenError>> {
        let default_form = if host.is_some() { Form::Rfc3164 } else { Form::Local };
        let mut outlets = Vec::with_capacity(targets.len());
        let mut errors = Vec::new();
        for target in targets {
            match Outlet::open(target, default_form, directory) {
                Ok(outlet) => outlets.push(outlet),
                Err(error) => errors.push(error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Journal {
            tag: tag.into(),
            host: host.map(host_name),
            mildest: outlets.iter().map(|outlet| outlet.max_level).max(),
            outlets: outlets.into(),
        })
    }

    /// Whether any target takes lines of that level: where none does, no line need be made.
    pub fn wants(&self, level: Level) -> bool {
        self.mildest.is_some_and(|mildest| level <= mildest)
    }

    /// Whether there is no target at all.
    pub fn is_empty(&self) -> bool {
        self.outlets.is_empty()
    }

    /// Whether a target has a profile: then its lines are not those of the others.
    pub fn has_profiles(&self) -> bool {
        self.outlets.iter().any(|outlet| outlet.profile.is_some())
    }

    /// Whether a target shows structured data: where none does, it need not be made.
    pub fn shows_structured_data(&self) -> bool {
        self.outlets.iter().any(|outlet| outlet.form == Form::Rfc5424)
    }

    /// The most bytes of a line that any target takes.
    pub fn longest(&self) -> usize {
        self.outlets.iter().map(|outlet| outlet.len).max().unwrap_or(0)
    }
}

/// A target, opened.
#[derive(Debug)]
pub(super) struct Outlet {
    pub(super) way: Way,
    pub(super) form: Form,
    /// Messages that are relayed keep their own form: the configuration sets no other.
    pub(super) keeps_form: bool,
    pub(super) len: usize,
    pub(super) profile: Option<Arc<Profile>>,
    facility: Facility,
    max_level: Level,
    min_level: Level,
    sampled: Option<Sampled>,
}

impl Outlet {
    fn open(target: &Target, default_form: Form, directory: &mut Directory) -> Result<Outlet, OpenError> {
        let told = |place: &Place| {
            let place = place.clone();
            move |Missing { reason, hint }: Missing| OpenError { place, reason, hint }
        };
        let way = directory.way(&target.address, &target.place).map_err(told(&target.place))?;
        let profile = match &target.profile {
            Some((name, place)) => Some(directory.profile(name).map_err(told(place))?),
            None => None,
        };
        // A ring's own form is the form of all that goes into it.
        let form = way.form().or(target.form);
        Ok(Outlet {
            way,
            form: form.unwrap_or(default_form),
            keeps_form: form.is_none(),
            len: target.len,
            profile,
            facility: target.facility,
            max_level: target.max_level,
            min_level: target.min_level,
            sampled: target.sampling.clone().map(|sampling| Sampled { sampling, count: AtomicU64::new(0) }),
        })
    }

    /// The priority that a relayed message carries here, unless it is not for this target. A message without a priority gets
    /// the target's facility and the level that RFC 3164 section 4.3.3 gives it.
    pub(super) fn admits_message(&self, priority: Option<(u8, u8)>) -> Option<u8> {
        let (facility, number) = priority.unzip();
        let level = number.and_then(|number| Level::ALL.get(usize::from(number)).copied()).unwrap_or(Level::Notice);
        let known = number.is_none() || level <= self.max_level;
        let wanted = known && self.sampled.as_ref().is_none_or(Sampled::takes_next);
        wanted.then(|| match facility {
            Some(facility) => facility << 3 | level.max(self.min_level) as u8,
            None => self.facility.priority(level.max(self.min_level)),
        })
    }

    /// The priority that a line of this level carries here, unless it is not for this target. Counts it where samples are taken.
    pub(super) fn admits(&self, level: Level) -> Option<u8> {
        let wanted = level <= self.max_level && self.sampled.as_ref().is_none_or(Sampled::takes_next);
        wanted.then(|| self.facility.priority(level.max(self.min_level)))
    }
}

/// The way of lines to a target.
#[derive(Debug)]
pub(super) enum Way {
    Udp(SocketAddr),
    Unix(SocketAddrUnix),
    Descriptor(Arc<Writer>),
    Ring(Arc<Ring>),
    /// A server of a backend, where it is now.
    Server(Arc<Server>),
    Backend(Arc<Balancer>),
}

impl Way {
    /// The form that everything has which goes there.
    fn form(&self) -> Option<Form> {
        match self {
            Way::Ring(ring) => ring.form,
            _ => None,
        }
    }

    pub(super) fn open(address: &Address, sinks: &Sinks) -> Result<Way, String> {
        match address {
            Address::Udp(address) => Ok(Way::Udp(*address)),
            Address::UdpName { host, port, v6 } => look_up(host, *port, *v6).map(Way::Udp),
            Address::Unix(path) => SocketAddrUnix::new(path.as_path()).map(Way::Unix).map_err(|error| error.to_string()),
            Address::Abstract(name) => SocketAddrUnix::new_abstract_name(name).map(Way::Unix).map_err(|error| error.to_string()),
            Address::Ring(_) | Address::Backend(_) | Address::Stream(_) => Err(format!("'{address}' is made, not opened")),
            Address::Descriptor(fd) => {
                sinks.writer(*fd).map(Way::Descriptor).map_err(|error| format!("cannot log to descriptor {fd}: {error}"))
            }
        }
    }
}

/// The first address of a name.
pub(super) fn look_up(host: &str, port: u16, v6: Option<bool>) -> Result<SocketAddr, String> {
    let mut found = (host, port).to_socket_addrs().map_err(|error| format!("could not resolve address '{host}': {error}"))?;
    found.find(|address| v6.is_none_or(|v6| v6 == address.is_ipv6())).ok_or_else(|| format!("'{host}' has no address of that kind"))
}

fn host_name(host: &HostName) -> Box<str> {
    match host {
        HostName::System => rustix::system::uname().nodename().to_string_lossy().into(),
        HostName::Named(name) => name.as_str().into(),
    }
}

/// Samples are taken of all workers' lines together.
#[derive(Debug)]
struct Sampled {
    sampling: Sampling,
    count: AtomicU64,
}

impl Sampled {
    fn takes_next(&self) -> bool {
        self.sampling.takes(self.count.fetch_add(1, Ordering::Relaxed))
    }
}
