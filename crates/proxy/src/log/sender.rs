//! Sending of log lines by a worker.
//!
//! Its sockets are not connected: each serves all targets of its family, a syslog server that is not there sends no error
//! back to it, and a daemon that was restarted is found again by its path with the next line.

use super::clock::Stamp;
use super::header::{self, Heading};
use super::journal::{Journal, Outlet, Way};
use super::level::Level;
use super::message::Message;
use super::origin::Origin;
use super::profile::Profile;
use super::sinks::Sinks;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with, sockopt};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use terse_sample::LogFormat;

/// Sockets and buffers of a worker. To be made in the process that sends: lines carry its number.
pub struct Logger {
    sinks: Arc<Sinks>,
    sockets: Sockets,
    stamp: Stamp,
    line: Vec<u8>,
    pid: String,
}

impl Logger {
    /// Opens nothing yet: sockets are opened when a line needs them.
    pub fn new(sinks: &Arc<Sinks>) -> Logger {
        Logger {
            sockets: Sockets::default(),
            stamp: Stamp::new(sinks.zone().clone()),
            line: Vec::with_capacity(1024),
            pid: std::process::id().to_string(),
            sinks: Arc::clone(sinks),
        }
    }

    /// Opens the sockets that a log needs, while there are descriptors for them. A socket that cannot be opened now is tried
    /// with each line.
    pub fn open(&mut self, journal: &Journal) {
        for outlet in &journal.outlets {
            let _ = match &outlet.way {
                Way::Udp(SocketAddr::V4(_)) => opened(&mut self.sockets.v4, AddressFamily::INET).map(drop),
                Way::Udp(SocketAddr::V6(_)) => opened(&mut self.sockets.v6, AddressFamily::INET6).map(drop),
                Way::Unix(_) => opened(&mut self.sockets.unix, AddressFamily::UNIX).map(drop),
                Way::Descriptor(_) | Way::Ring(_) | Way::Server(_) | Way::Backend(_) => Ok(()),
            };
        }
    }

    /// Sends a line to all targets that want it. Never waits.
    pub fn send(&mut self, journal: &Journal, level: Level, body: &[u8]) {
        self.send_structured(journal, level, b"", body);
    }

    /// The same, with the structured data that lines of RFC 5424 carry: `[id@1 name="value"]`.
    pub fn send_structured(&mut self, journal: &Journal, level: Level, structured_data: &[u8], body: &[u8]) {
        let line = Line { level, structured_data, body };
        self.each(journal, level, |logger, outlet, priority| logger.send_to(journal, outlet, priority, &journal.tag, line));
    }

    /// Sends a line that log profiles may put into other words. `profile` stands before those of the targets. `write` writes a format
    /// of a profile.
    pub fn send_by_profiles(
        &mut self,
        journal: &Journal,
        line: Line<'_>,
        origin: Origin,
        profile: Option<&Profile>,
        write: &mut dyn FnMut(&LogFormat, &mut Vec<u8>),
    ) {
        let (mut body, mut structured_data) = (Vec::new(), Vec::new());
        self.each(journal, line.level, |logger, outlet, priority| {
            let profile = profile.or(outlet.profile.as_deref());
            let tag = profile.and_then(|profile| profile.tag.as_deref()).unwrap_or(&journal.tag);
            let step = profile.and_then(|profile| profile.of(origin));
            if step.is_some_and(|step| step.drop) {
                return;
            }
            let mut own = line;
            if let Some(format) = step.and_then(|step| step.format.as_ref()) {
                body.clear();
                write(format, &mut body);
                own.body = &body;
            }
            if let Some(format) = step.and_then(|step| step.structured_data.as_ref()) {
                structured_data.clear();
                write(format, &mut structured_data);
                own.structured_data = &structured_data;
            }
            if !own.body.is_empty() {
                logger.send_to(journal, outlet, priority, tag, own);
            }
        });
    }

    /// Relays a message, as a line.
    pub(super) fn relay(&mut self, journal: &Journal, message: &Message<'_>) {
        let form = message.form();
        self.turn_stamp();
        for outlet in &journal.outlets {
            let Some(priority) = outlet.admits_message(message.priority) else { continue };
            let form = if outlet.keeps_form { form } else { outlet.form };
            self.line.clear();
            header::write(&mut self.line, form, priority, &self.stamp, message.heading);
            finish(&mut self.line, message.text, outlet.len);
            self.deliver(&outlet.way, message.text);
        }
    }

    /// Counts received bytes that were no message.
    pub(super) fn count_dropped(&self) {
        self.sinks.count_dropped();
    }

    /// Visits the targets that want a line, with the priority that it carries there.
    fn each(&mut self, journal: &Journal, level: Level, mut visit: impl FnMut(&mut Logger, &Outlet, u8)) {
        // The clock is read once, and not at all where no header shows it.
        let mut timed = false;
        for outlet in &journal.outlets {
            let Some(priority) = outlet.admits(level) else { continue };
            if outlet.form.has_time() && !timed {
                self.turn_stamp();
                timed = true;
            }
            visit(self, outlet, priority);
        }
    }

    fn turn_stamp(&mut self) {
        self.stamp.turn_to(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO));
    }

    fn send_to(&mut self, journal: &Journal, outlet: &Outlet, priority: u8, tag: &str, line: Line<'_>) {
        self.line.clear();
        let heading = Heading {
            host: journal.host.as_deref().unwrap_or_default().as_bytes(),
            tag: tag.as_bytes(),
            pid: self.pid.as_bytes(),
            structured_data: line.structured_data,
            ..Heading::default()
        };
        header::write(&mut self.line, outlet.form, priority, &self.stamp, heading);
        finish(&mut self.line, line.body, outlet.len);
        self.deliver(&outlet.way, line.body);
    }

    /// Hands the finished line over, or counts it as dropped. `body`: its text, without its header.
    fn deliver(&mut self, way: &Way, body: &[u8]) {
        let sent = match way {
            Way::Descriptor(writer) => {
                writer.push(&self.line);
                return;
            }
            Way::Udp(address) => self.sockets.send_udp(&self.line, address).is_ok(),
            Way::Unix(address) => self.sockets.send_unix(&self.line, address).is_ok(),
            Way::Ring(ring) => ring.push(self.line.strip_suffix(b"\n").unwrap_or(&self.line)),
            Way::Server(server) => match server.address().destination().and_then(|destination| destination.of(None)) {
                Some(address) => self.sockets.send_udp(&self.line, &address).is_ok(),
                None => false,
            },
            // The ways of a backend's servers are no backends.
            Way::Backend(balancer) => match balancer.way(body) {
                Some(way) if !matches!(way, Way::Backend(_)) => return self.deliver(way, body),
                _ => false,
            },
        };
        if !sent {
            self.sinks.count_dropped();
        }
    }
}

/// A line on its way.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Its severity.
    pub level: Level,
    /// `[id@1 name="value"]`, for lines of RFC 5424.
    pub structured_data: &'a [u8],
    /// Its text.
    pub body: &'a [u8],
}

/// Appends the body and the line feed, within `len` bytes in all.
fn finish(line: &mut Vec<u8>, body: &[u8], len: usize) {
    let room = len.saturating_sub(1);
    let end = body.iter().rposition(|byte| !matches!(byte, b'\n' | 0)).map_or(0, |last| last + 1);
    line.extend_from_slice(body.get(..end.min(room)).unwrap_or_default());
    line.truncate(room);
    line.push(b'\n');
}

/// A socket of each family, opened when it is first needed.
#[derive(Default)]
struct Sockets {
    v4: Option<OwnedFd>,
    v6: Option<OwnedFd>,
    unix: Option<OwnedFd>,
}

impl Sockets {
    fn send_udp(&mut self, line: &[u8], address: &SocketAddr) -> rustix::io::Result<()> {
        let socket = match address {
            SocketAddr::V4(_) => opened(&mut self.v4, AddressFamily::INET)?,
            SocketAddr::V6(_) => opened(&mut self.v6, AddressFamily::INET6)?,
        };
        sendto(socket, line, FLAGS, address).map(drop)
    }

    fn send_unix(&mut self, line: &[u8], address: &SocketAddrUnix) -> rustix::io::Result<()> {
        sendto(opened(&mut self.unix, AddressFamily::UNIX)?, line, FLAGS, address).map(drop)
    }
}

/// The socket of a family.
fn opened(slot: &mut Option<OwnedFd>, family: AddressFamily) -> rustix::io::Result<&OwnedFd> {
    match slot {
        Some(socket) => Ok(socket),
        None => {
            let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
            let socket = socket.inspect_err(|error| {
                EXHAUSTION.note(&(*error).into(), Purpose::Log);
            })?;
            // The socket is never read, so it needs no receive buffer; a failure here does no harm.
            let _ = sockopt::set_socket_recv_buffer_size(&socket, 0);
            Ok(slot.insert(socket))
        }
    }
}

const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

#[cfg(test)]
mod tests {
    use super::super::formats::FormatText;
    use super::super::profile::{ProfileSettings, Step, StepSettings};
    use super::super::settings::HostName;
    use super::super::target::Target;
    use super::super::{Address, Directory, Facility, Form, Framing, Ring, Sampling};
    use super::*;
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;
    use terse_config::Place;

    fn target(address: Address) -> Target {
        Target {
            address,
            len: 1024,
            form: Some(Form::Priority),
            sampling: None,
            profile: None,
            facility: Facility::parse("local0").unwrap(),
            max_level: Level::Debug,
            min_level: Level::Emergency,
            place: Place { file: "test".into(), line: 1, text: "".into(), span: 0..0 },
        }
    }

    fn server() -> (UdpSocket, Target) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let target = target(Address::Udp(socket.local_addr().unwrap()));
        (socket, target)
    }

    fn sinks() -> Arc<Sinks> {
        Sinks::new(|_| Err(std::io::ErrorKind::NotFound.into()))
    }

    fn journal(targets: impl IntoIterator<Item = Target>, sinks: &Arc<Sinks>) -> Journal {
        let targets: Vec<_> = targets.into_iter().map(Arc::new).collect();
        Journal::open(&targets, "haproxy", None, &mut Directory::new(sinks, 16384)).unwrap()
    }

    fn received(socket: &UdpSocket) -> String {
        let mut buffer = vec![0; 65536];
        let len = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    }

    #[test]
    fn a_line_is_a_datagram_for_each_target() {
        let ((first, a), (second, b)) = (server(), server());
        let sinks = sinks();
        let journal = journal([Target { form: None, ..a }, b], &sinks);
        Logger::new(&sinks).send(&journal, Level::Info, b"fe be/s1 200\n\0\n");
        let line = received(&first);
        let (head, body) = line.split_once(": ").unwrap();
        assert!(head.starts_with("<134>") && head.ends_with(&format!(" haproxy[{}]", std::process::id())), "{line}");
        assert_eq!(head.len(), "<134>Feb  6 12:14:14 haproxy[]".len() + std::process::id().to_string().len());
        assert_eq!(body, "fe be/s1 200\n");
        assert_eq!(received(&second), "<134>fe be/s1 200\n");
        assert_eq!(sinks.dropped(), 0);
    }

    #[test]
    fn levels_filter_and_cap() {
        let (socket, target) = server();
        let sinks = sinks();
        let journal = journal([Target { max_level: Level::Notice, min_level: Level::Error, ..target }], &sinks);
        assert!(journal.wants(Level::Notice) && !journal.wants(Level::Info));
        let mut logger = Logger::new(&sinks);
        logger.send(&journal, Level::Info, b"not sent");
        logger.send(&journal, Level::Emergency, b"capped");
        logger.send(&journal, Level::Notice, b"as it is");
        assert_eq!(received(&socket), "<131>capped\n");
        assert_eq!(received(&socket), "<133>as it is\n");
    }

    #[test]
    fn long_lines_are_cut_with_their_line_feed_kept() {
        let (socket, target) = server();
        let sinks = sinks();
        let journal = journal([Target { len: 80, ..target }], &sinks);
        assert_eq!(journal.longest(), 80);
        Logger::new(&sinks).send(&journal, Level::Info, &[b'x'; 500]);
        assert_eq!(received(&socket), format!("<134>{}\n", "x".repeat(74)));
        let mut line = b"longer than its limit".to_vec();
        finish(&mut line, b"body", 6);
        assert_eq!(line, b"longe\n");
    }

    #[test]
    fn samples_are_counted_over_all_workers() {
        let (socket, target) = server();
        let sinks = sinks();
        let journal = journal([Target { sampling: Some(Sampling::parse("1,3:5").unwrap()), ..target }], &sinks);
        let mut workers = [Logger::new(&sinks), Logger::new(&sinks)];
        for n in 0..10 {
            workers[n % 2].send(&journal, Level::Info, n.to_string().as_bytes());
        }
        let lines: Vec<_> = (0..4).map(|_| received(&socket)).collect();
        assert_eq!(lines, ["<134>0\n", "<134>2\n", "<134>5\n", "<134>7\n"]);
    }

    #[test]
    fn host_and_structured_data() {
        let (socket, target) = server();
        let sinks = sinks();
        let targets = [Arc::new(Target { form: Some(Form::Rfc5424), ..target.clone() }), Arc::new(Target { form: None, ..target })];
        let host = HostName::Named("www".into());
        let journal = Journal::open(&targets, "tag", Some(&host), &mut Directory::new(&sinks, 16384)).unwrap();
        assert!(journal.shows_structured_data());
        Logger::new(&sinks).send_structured(&journal, Level::Info, b"[a@1 b=\"c\"]", b"body");
        let line = received(&socket);
        assert!(line.ends_with(&format!(" www tag {} - [a@1 b=\"c\"] body\n", std::process::id())), "{line}");
        let line = received(&socket);
        assert!(line.ends_with(&format!(" www tag[{}]: body\n", std::process::id())), "{line}");
    }

    #[test]
    fn a_server_that_is_not_there_disturbs_nobody() {
        let ((gone, dead), (socket, alive)) = (server(), server());
        drop(gone);
        let sinks = sinks();
        let journal = journal([dead, alive], &sinks);
        let mut logger = Logger::new(&sinks);
        for _ in 0..50 {
            logger.send(&journal, Level::Info, b"line");
            assert_eq!(received(&socket), "<134>line\n");
        }
        assert_eq!(sinks.dropped(), 0);
    }

    #[test]
    fn a_daemon_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let sinks = sinks();
        let journal = journal([target(Address::Unix(path.clone()))], &sinks);
        let mut logger = Logger::new(&sinks);
        logger.send(&journal, Level::Info, b"too early");
        assert_eq!(sinks.dropped(), 1);
        for _ in 0..2 {
            let daemon = UnixDatagram::bind(&path).unwrap();
            logger.send(&journal, Level::Info, b"line");
            let mut buffer = [0; 100];
            let len = daemon.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..len], b"<134>line\n");
            drop(daemon);
            std::fs::remove_file(&path).unwrap();
        }
        logger.send(&journal, Level::Info, b"too late");
        assert_eq!(sinks.dropped(), 2);
    }

    #[test]
    fn a_daemon_that_sleeps_costs_lines_not_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let _daemon = UnixDatagram::bind(&path).unwrap();
        let sinks = sinks();
        let journal = journal([target(Address::Unix(path))], &sinks);
        let mut logger = Logger::new(&sinks);
        // More than any socket buffer holds; a send that waited would never come back.
        for _ in 0..20_000 {
            logger.send(&journal, Level::Info, &[b'x'; 500]);
        }
        assert!(sinks.dropped() > 0);
    }

    #[test]
    fn what_cannot_be_opened_is_told_with_its_place() {
        let bad = Target { place: Place { line: 7, ..target(Address::Descriptor(9)).place }, ..target(Address::Descriptor(9)) };
        let errors = Journal::open(&[Arc::new(bad)], "haproxy", None, &mut Directory::new(&sinks(), 16384)).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert_eq!(errors[0].place.line, 7);
        assert!(errors[0].reason.starts_with("cannot log to descriptor 9"), "{}", errors[0].reason);
    }

    #[test]
    fn names_are_looked_up() {
        let (socket, _) = server();
        let port = socket.local_addr().unwrap().port();
        let sinks = sinks();
        let journal = journal([target(Address::UdpName { host: "localhost".into(), port, v6: Some(false) })], &sinks);
        Logger::new(&sinks).send(&journal, Level::Info, b"line");
        assert_eq!(received(&socket), "<134>line\n");
    }

    fn profile(steps: Vec<(Step, StepSettings)>) -> Profile {
        Profile::new("p".into(), Some("own"), &ProfileSettings { steps }, &mut |text| Some(LogFormat::text(&text.text)))
    }

    fn text(text: &str) -> Option<FormatText> {
        Some(FormatText { text: text.into(), place: Place::nowhere() })
    }

    #[test]
    fn a_profile_puts_a_targets_lines_into_other_words() {
        let ((plain, a), (profiled, b)) = (server(), server());
        let sinks = sinks();
        let mut directory = Directory::new(&sinks, 16384);
        let close = StepSettings { format: text("closed"), structured_data: text("[x@1]"), drop: false };
        let any = StepSettings { drop: true, ..StepSettings::default() };
        directory.add_profile(profile(vec![(Step::One(Origin::Close), close), (Step::Any, any)]));
        let b = Target { form: Some(Form::Rfc5424), profile: Some(("p".into(), Place::nowhere())), ..b };
        let journal = Journal::open(&[Arc::new(a), Arc::new(b)], "tag", None, &mut directory).unwrap();
        assert!(journal.has_profiles());
        let mut logger = Logger::new(&sinks);
        let line = Line { level: Level::Info, structured_data: b"", body: b"body" };
        let mut write = |format: &LogFormat, out: &mut Vec<u8>| out.extend_from_slice(format.as_text().unwrap());
        for origin in [Origin::Accept, Origin::Close] {
            logger.send_by_profiles(&journal, line, origin, None, &mut write);
            assert_eq!(received(&plain), "<134>body\n");
        }
        let line_of_profile = received(&profiled);
        assert!(line_of_profile.ends_with(&format!(" - own {} - [x@1] closed\n", std::process::id())), "{line_of_profile}");
        // The profile that a rule names precedes the targets' own; a line without text is not sent.
        let other = profile(vec![(Step::Any, StepSettings { format: text("other"), ..StepSettings::default() })]);
        logger.send_by_profiles(&journal, Line { body: b"", ..line }, Origin::HttpRequest, None, &mut write);
        logger.send_by_profiles(&journal, line, Origin::HttpRequest, Some(&other), &mut write);
        assert_eq!(received(&plain), "<134>other\n");
    }

    #[test]
    fn what_targets_name_must_be_there() {
        let sinks = sinks();
        let mut directory = Directory::new(&sinks, 16384);
        directory.add_ring(Ring::new("events".into(), 4096, Place::nowhere()), []);
        let named = |address| [Arc::new(target(address))];
        let mut refusal = |address| Journal::open(&named(address), "t", None, &mut directory).unwrap_err().remove(0);
        let missing = refusal(Address::Ring("event".into()));
        assert_eq!(missing.reason, "there is no ring 'event'");
        assert!(missing.hint.unwrap().contains("'events'"));
        assert_eq!(refusal(Address::Backend("b".into())).reason, "there is no backend in 'mode log' 'b'");
        let journal = Journal::open(&named(Address::Ring("events".into())), "t", None, &mut directory).unwrap();
        Logger::new(&sinks).send(&journal, Level::Info, b"line");
        let (rings, carriers) = directory.into_parts();
        let mut out = Vec::new();
        rings[0].copy(0, Framing::Lines, usize::MAX, &mut out);
        assert_eq!((out.as_slice(), carriers.len()), (&b"<134>line\n"[..], 0));
    }

    #[test]
    fn a_server_over_a_stream_has_one_ring_for_all_who_name_it() {
        let mut directory = Directory::new(&sinks(), 16384);
        let address = Address::parse("tcp@127.0.0.1:514", 0).unwrap();
        let targets = [Arc::new(target(address.clone())), Arc::new(target(address))];
        Journal::open(&targets, "t", None, &mut directory).unwrap();
        let (rings, carriers) = directory.into_parts();
        assert_eq!((rings.len(), carriers.len()), (1, 1));
        assert_eq!(&*rings[0].name, "ring#1");
    }
}
