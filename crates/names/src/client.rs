//! Asking: one question to all name servers of a section, and the first answer that is good.
//!
//! ```text
//!            +------------------ all have failed: the other family, then again, `resolve_retries` times ---+
//!            v                                                                                            |
//! question -> every name server at once -> the first good answer -------------------------> Answer        |
//!                                       -> an error: the last one counts ----------------------------------+
//! ```
//!
//! Who wants what is being asked already waits for that answer: a question is on its way once, whoever asks it.
//!
//! Each question has a socket of its own, connected to the name server, with a port and a number that nobody can guess (RFC 5452).

use crate::counters::{COUNTS, Count, Counters};
use crate::message::{self, Answer, Kind, Problem};
use crate::settings::{FamilySettings, Hold, NameServer, ResolversSettings};
use std::collections::HashMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A `resolvers` section at work. All threads share it.
#[derive(Debug)]
pub struct Resolvers {
    /// Its name.
    pub name: Arc<str>,
    pub(crate) settings: ResolversSettings,
    servers: Vec<Arc<Asked>>,
    families: FamilySettings,
    /// What `do-resolve` has learnt.
    known: Mutex<HashMap<(String, Families), Known>>,
    /// Questions on their way, by name and kind of record.
    asking: Mutex<HashMap<(String, Kind), Arc<Outcome>>>,
}

/// What a question comes to, for all who ask it at the same time.
type Outcome = OnceCell<Result<Answered, Status>>;

/// A share in a question that is on its way. One that leaves before the answer leaves the question to the others.
struct Share<'a> {
    resolvers: &'a Resolvers,
    key: (String, Kind),
    /// There until the share is dropped.
    outcome: Option<Arc<Outcome>>,
}

/// A name server, and what is counted for it.
#[derive(Debug)]
struct Asked {
    server: NameServer,
    counters: Counters,
}

/// An answer that is kept.
#[derive(Clone, Debug)]
struct Known {
    until: Instant,
    address: Option<IpAddr>,
}

/// Which addresses are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Families {
    /// Those of IPv4, and without one those of IPv6.
    V4First,
    /// Those of IPv6, and without one those of IPv4.
    V6First,
    /// Of IPv4 alone.
    V4,
    /// Of IPv6 alone.
    V6,
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// There is no such name.
    Absent,
    /// The name servers refuse.
    Refused,
    /// No name server answers.
    Timeout,
    /// Anything else.
    Other,
}

/// An answer, and who gave it.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) answer: Answer,
    /// `section/name server`
    pub(crate) by: String,
}

impl Resolvers {
    /// A section with its name servers.
    pub fn new(name: &str, settings: ResolversSettings, families: FamilySettings) -> Arc<Resolvers> {
        let asked = |server: &NameServer| Arc::new(Asked { server: server.clone(), counters: Counters::default() });
        let servers = settings.servers.iter().map(asked).collect();
        Arc::new(Resolvers { name: name.into(), settings, servers, families, known: Mutex::default(), asking: Mutex::default() })
    }

    /// What `show resolvers` shows of it.
    pub fn report(&self) -> String {
        let mut out = format!("Resolvers section {}\n", self.name);
        for asked in &self.servers {
            let _ = writeln!(out, " nameserver {}:", asked.server.name);
            asked.counters.write(&mut out);
        }
        out
    }

    /// Its name servers and their counts, in the order of [`COUNT_NAMES`](crate::COUNT_NAMES).
    pub fn counts(&self) -> impl Iterator<Item = (&str, [u64; COUNTS])> {
        self.servers.iter().map(|asked| (&*asked.server.name, asked.counters.values()))
    }

    /// An address of a name. An answer is kept for `hold valid`, a failure for `timeout retry`.
    pub async fn address(&self, name: &str, families: Families) -> Option<IpAddr> {
        let key = (message::normal(name), families);
        let now = Instant::now();
        if let Some(known) = self.known().get(&key).filter(|known| known.until > now) {
            return known.address;
        }
        let found = self.addresses(name, families).await;
        let address = found.ok().and_then(|answered| answered.answer.addresses.first().copied());
        let keep = if address.is_some() { self.settings.hold.valid } else { self.settings.patience };
        let mut known = self.known();
        if known.len() >= MOST_KNOWN {
            known.retain(|_, known| known.until > now);
        }
        if known.len() < MOST_KNOWN {
            known.insert(key, Known { until: now + keep, address });
        }
        address
    }

    /// The addresses of a name, of the family that is preferred, or without one of the other.
    pub(crate) async fn addresses(&self, name: &str, families: Families) -> Result<Answered, Status> {
        let (v4, v6) = self.families.accepted.unwrap_or_else(|| (true, reaches_v6()));
        let mut kinds = match families {
            Families::V4First => vec![Kind::A, Kind::Aaaa],
            Families::V6First => vec![Kind::Aaaa, Kind::A],
            Families::V4 => vec![Kind::A],
            Families::V6 => vec![Kind::Aaaa],
        };
        kinds.retain(|kind| if *kind == Kind::A { v4 } else { v6 });
        self.ask(name, &kinds).await
    }

    /// Asks for one kind of record, and for the next one where there is none.
    pub(crate) async fn ask(&self, name: &str, kinds: &[Kind]) -> Result<Answered, Status> {
        let mut last = Status::Other;
        for _ in 0..self.settings.retries.max(1) {
            for kind in kinds {
                match self.ask_once(name, *kind).await {
                    Ok(answered) => return Ok(answered),
                    Err(status) => last = status,
                }
                // Nobody answers the other question either.
                if last == Status::Timeout {
                    break;
                }
            }
            // Who has answered that there is none will not say otherwise a moment later.
            if last != Status::Timeout {
                break;
            }
        }
        Err(last)
    }

    async fn ask_once(&self, name: &str, kind: Kind) -> Result<Answered, Status> {
        let share = self.share(name, kind);
        match &share.outcome {
            Some(outcome) => outcome.get_or_init(|| self.ask_all(name, kind)).await.clone(),
            None => Err(Status::Other),
        }
    }

    /// A share in the question, which is on its way from now on if it was not.
    fn share(&self, name: &str, kind: Kind) -> Share<'_> {
        let key = (message::normal(name), kind);
        let outcome = self.asking().entry(key.clone()).or_default().clone();
        Share { resolvers: self, key, outcome: Some(outcome) }
    }

    async fn ask_all(&self, name: &str, kind: Kind) -> Result<Answered, Status> {
        let mut questions = JoinSet::new();
        for asked in &self.servers {
            let (asked, name) = (asked.clone(), name.to_owned());
            let (payload, patience) = (self.settings.payload_bytes, self.settings.patience);
            questions.spawn(async move {
                let _room = SOCKETS.acquire().await;
                let outcome = timeout(patience, asked.ask(&name, kind, payload)).await.unwrap_or(Err(Failure::Late));
                asked.count(&outcome);
                (asked, outcome)
            });
        }
        let mut last = Status::Other;
        while let Some(outcome) = questions.join_next().await {
            match outcome {
                Ok((asked, Ok(answer))) => {
                    return Ok(Answered { answer, by: format!("{}/{}", self.name, asked.server.name) });
                }
                Ok((_, Err(failure))) => last = failure.status(),
                Err(_) => {}
            }
        }
        Err(last)
    }

    fn asking(&self) -> MutexGuard<'_, HashMap<(String, Kind), Arc<Outcome>>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(String, Families), Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share<'_> {
    /// An answer is for those who have waited for it; the next one asks anew.
    fn drop(&mut self) {
        // Shares come and go under this lock only. Of two that leave at the same moment the second one finds itself alone.
        let mut asking = self.resolvers.asking();
        let Some(outcome) = self.outcome.take() else { return };
        let is_this = asking.get(&self.key).is_some_and(|known| Arc::ptr_eq(known, &outcome));
        let alone = Arc::strong_count(&outcome) <= 2;
        if is_this && (alone || outcome.initialized()) {
            asking.remove(&self.key);
        }
        drop(outcome);
    }
}

/// Why a name server gave no good answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    /// The question could not be sent.
    Unsent,
    /// Nothing came in time.
    Late,
    /// What came says so.
    Said(Problem),
}

/// The most sockets to name servers at a time, in the process: they take no descriptors that clients were promised.
pub const MOST_SOCKETS: usize = 64;

/// Room for sockets. Questions beyond wait, and that is no time of the name server's.
static SOCKETS: Semaphore = Semaphore::const_new(MOST_SOCKETS);

fn unopened(error: std::io::Error) -> Failure {
    EXHAUSTION.note(&error, Purpose::Resolve);
    Failure::Unsent
}

impl Failure {
    fn status(self) -> Status {
        match self {
            Failure::Late | Failure::Unsent => Status::Timeout,
            Failure::Said(Problem::Absent) => Status::Absent,
            Failure::Said(Problem::Refused) => Status::Refused,
            Failure::Said(_) => Status::Other,
        }
    }
}

impl Asked {
    async fn ask(&self, name: &str, kind: Kind, payload_bytes: u16) -> Result<Answer, Failure> {
        let id = random_id();
        let question = message::question(id, name, kind, payload_bytes).ok_or(Failure::Said(Problem::Malformed))?;
        self.counters.bump(Count::Sent);
        let over_stream = self.server.stream;
        let outcome = match over_stream {
            true => self.over_stream(&question, id, name, kind).await,
            false => self.over_datagrams(&question, id, name, kind, payload_bytes).await,
        };
        match outcome {
            // What was cut is asked for again where there is room (RFC 7766 section 5).
            Err(Failure::Said(Problem::Truncated)) if !over_stream => {
                self.counters.bump(Count::Truncated);
                self.over_stream(&question, id, name, kind).await
            }
            outcome => outcome,
        }
    }

    async fn over_datagrams(&self, question: &[u8], id: u16, name: &str, kind: Kind, payload: u16) -> Result<Answer, Failure> {
        let unsent = |_| Failure::Unsent;
        let any: SocketAddr = match self.server.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await.map_err(unopened)?;
        socket.connect(self.server.address).await.map_err(unsent)?;
        socket.send(question).await.map_err(unsent)?;
        let mut bytes = vec![0; usize::from(payload) + 1];
        loop {
            let length = socket.recv(&mut bytes).await.map_err(unsent)?;
            if length > usize::from(payload) {
                self.counters.bump(Count::TooLarge);
                return Err(Failure::Said(Problem::Other));
            }
            match message::answer(&bytes[..length], id, name, kind) {
                // Somebody guesses, or an old answer comes late: the right one may still come.
                Err(Problem::Foreign) => self.counters.bump(Count::Outdated),
                outcome => return outcome.map_err(Failure::Said),
            }
        }
    }

    /// Over a stream a message's length stands before it (RFC 1035 section 4.2.2).
    async fn over_stream(&self, question: &[u8], id: u16, name: &str, kind: Kind) -> Result<Answer, Failure> {
        let unsent = |_| Failure::Unsent;
        let mut stream = TcpStream::connect(self.server.address).await.map_err(unopened)?;
        let length = u16::try_from(question.len()).map_err(|_| Failure::Unsent)?;
        stream.write_all(&[&length.to_be_bytes(), question].concat()).await.map_err(unsent)?;
        let length = stream.read_u16().await.map_err(unsent)?;
        let mut bytes = vec![0; usize::from(length)];
        stream.read_exact(&mut bytes).await.map_err(unsent)?;
        message::answer(&bytes, id, name, kind).map_err(Failure::Said)
    }

    fn count(&self, outcome: &Result<Answer, Failure>) {
        match outcome {
            Ok(answer) => {
                self.counters.bump(Count::Valid);
                if answer.aliased {
                    self.counters.bump(Count::Aliases);
                }
            }
            Err(Failure::Unsent) => self.counters.bump(Count::SendErrors),
            Err(Failure::Late) => self.counters.bump(Count::Timeouts),
            Err(Failure::Said(problem)) => self.counters.bump(match problem {
                Problem::Absent => Count::Absent,
                Problem::Refused => Count::Refused,
                Problem::Malformed | Problem::Foreign => Count::Invalid,
                Problem::Truncated => Count::Truncated,
                Problem::Empty | Problem::Other => Count::Other,
            }),
        }
    }
}

impl Resolvers {
    /// Counts that an answer has changed a server.
    pub(crate) fn count_update(&self, by: &str) {
        let name = by.rsplit('/').next().unwrap_or_default();
        if let Some(asked) = self.servers.iter().find(|asked| *asked.server.name == *name) {
            asked.counters.bump(Count::Updates);
        }
    }
}

impl Hold {
    /// For how long the last good answer is believed.
    pub(crate) fn of(&self, status: Status) -> Duration {
        match status {
            Status::Absent => self.absent,
            Status::Refused => self.refused,
            Status::Timeout => self.timeout,
            Status::Other => self.other,
        }
    }
}

/// Whether packets to addresses of IPv6 have a way out. Nothing is sent.
fn reaches_v6() -> bool {
    let outside = SocketAddr::from((Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9));
    std::net::UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).and_then(|socket| socket.connect(outside)).is_ok()
}

/// A question's number.
fn random_id() -> u16 {
    let mut bytes = [0; 2];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(2) => u16::from_ne_bytes(bytes),
        // The port is still nobody's to guess.
        _ => Instant::now().elapsed().subsec_nanos() as u16,
    }
}

/// Names that `do-resolve` remembers.
const MOST_KNOWN: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::{a, reply};
    use simple_dns::RCODE;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    fn resolvers(servers: &[SocketAddr], stream: bool) -> Arc<Resolvers> {
        let server = |(i, address): (usize, &SocketAddr)| NameServer { name: format!("n{i}").into(), address: *address, stream };
        let settings = ResolversSettings {
            servers: servers.iter().enumerate().map(server).collect(),
            patience: Duration::from_millis(200),
            retries: 2,
            ..ResolversSettings::default()
        };
        Resolvers::new("r", settings, FamilySettings { accepted: Some((true, true)) })
    }

    async fn bound() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    /// Answers every question by what it makes of it.
    fn serve(socket: UdpSocket, make: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) {
        tokio::spawn(async move {
            let mut bytes = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
                for answer in make(&bytes[..length]) {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
    }

    #[tokio::test]
    async fn the_first_good_answer_counts() {
        let ((silent, first), (other, second)) = (bound().await, bound().await);
        serve(silent, |_| Vec::new());
        serve(other, |question| {
            let right = reply(question, &[("a.test", a([10, 0, 0, 7]))], RCODE::NoError);
            let mut wrong = reply(question, &[("a.test", a([6; 4]))], RCODE::NoError);
            wrong[0] ^= 1;
            vec![wrong, right]
        });
        let resolvers = resolvers(&[first, second], false);
        let answered = resolvers.ask("a.test", &[Kind::A]).await.unwrap();
        assert_eq!((answered.answer.addresses, answered.by.as_str()), (vec![IpAddr::from([10, 0, 0, 7])], "r/n1"));
        assert!(resolvers.report().contains("  outdated:    1"), "{}", resolvers.report());
        assert_eq!(resolvers.address("A.test.", Families::V4First).await, Some([10, 0, 0, 7].into()));
    }

    #[tokio::test]
    async fn one_question_is_asked_for_all_who_want_its_answer() {
        let (socket, address) = bound().await;
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let (go, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let socket = socket.into_std().unwrap();
            socket.set_nonblocking(false).unwrap();
            let mut bytes = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut bytes) {
                count.fetch_add(1, SeqCst);
                wait.recv().unwrap();
                let answer = reply(&bytes[..length], &[("a.test", a([10, 0, 0, 7]))], RCODE::NoError);
                socket.send_to(&answer, from).unwrap();
            }
        });
        let mut resolvers = resolvers(&[address], false);
        Arc::get_mut(&mut resolvers).unwrap().settings.patience = Duration::from_secs(15);
        let mut tasks = JoinSet::new();
        let want = |tasks: &mut JoinSet<Option<IpAddr>>| {
            let resolvers = resolvers.clone();
            tasks.spawn(async move { resolvers.address("a.test", Families::V4First).await })
        };
        // Who asks first leaves, and the others ask in its place.
        let first = want(&mut tasks);
        while asked.load(SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        (0..50).for_each(|_| drop(want(&mut tasks)));
        tokio::task::yield_now().await;
        first.abort();
        go.send(()).unwrap();
        go.send(()).unwrap();
        let mut found = Vec::new();
        while let Some(one) = tasks.join_next().await {
            found.extend(one.ok());
        }
        assert_eq!(found, [Some([10, 0, 0, 7].into()); 50]);
        assert_eq!(asked.load(SeqCst), 2);
        assert!(resolvers.asking().is_empty());
    }

    #[test]
    fn askers_that_leave_at_the_same_moment_leave_nothing() {
        let (resolvers, arrived) = (resolvers(&[], false), AtomicUsize::new(0));
        // Both look without sleeping, so that they leave within nanoseconds of each other.
        let meet = |times: &mut usize| {
            *times += 1;
            arrived.fetch_add(1, SeqCst);
            let mut looks = 0_u64;
            while arrived.load(SeqCst) < 2 * *times {
                looks += 1;
                if looks.is_multiple_of(1000) {
                    std::thread::yield_now();
                }
            }
        };
        let leave = |looks: bool| {
            let (mut times, mut left) = (0, 0);
            for _ in 0..50_000 {
                let share = resolvers.share("a.test", Kind::A);
                meet(&mut times);
                drop(share);
                meet(&mut times);
                if looks {
                    left += resolvers.asking().drain().count();
                }
                meet(&mut times);
            }
            left
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| leave(false));
            assert_eq!((leave(true), other.join().unwrap()), (0, 0));
        });
    }

    #[tokio::test]
    async fn why_there_is_none() {
        let ((silent, nobody), (refusing, refuser)) = (bound().await, bound().await);
        serve(silent, |_| Vec::new());
        serve(refusing, |question| vec![reply(question, &[], RCODE::Refused)]);
        let ask = |address| async move { resolvers(&[address], false).ask("a.test", &[Kind::A]).await.map(|_| ()) };
        assert_eq!(ask(nobody).await, Err(Status::Timeout));
        assert_eq!(ask(refuser).await, Err(Status::Refused));
    }

    #[tokio::test]
    async fn what_was_cut_is_asked_for_over_a_stream() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let socket = UdpSocket::bind(address).await.unwrap();
        serve(socket, |question| {
            let mut cut = reply(question, &[], RCODE::NoError);
            cut[2] |= 2;
            vec![cut]
        });
        tokio::spawn(async move {
            let (mut peer, _) = listener.accept().await.unwrap();
            let length = peer.read_u16().await.unwrap();
            let mut question = vec![0; usize::from(length)];
            peer.read_exact(&mut question).await.unwrap();
            let answer = reply(&question, &[("a.test", a([10, 0, 0, 8]))], RCODE::NoError);
            peer.write_all(&[&(answer.len() as u16).to_be_bytes(), &answer[..]].concat()).await.unwrap();
        });
        let answered = resolvers(&[address], false).ask("a.test", &[Kind::A]).await.unwrap();
        assert_eq!(answered.answer.addresses, [IpAddr::from([10, 0, 0, 8])]);
    }
}
