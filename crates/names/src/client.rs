//! Queries: a question to all name servers of a section, and the first answer that is good.
//!
//! ```text
//!            +------------------ all have failed: the other family, then again, `resolve_retries` times ---+
//!            v                                                                                            |
//! question -> every name server at once -> the first good answer -------------------------> Answer        |
//!                                       -> an error: the last one counts ----------------------------------+
//! ```
//!
//! A task that needs the result of a question in flight waits for that answer. A question is in flight once, however many
//! tasks ask it.

use crate::counters::{COUNTS, Count};
use crate::known::Known;
use crate::line::{Failure, Line};
use crate::message::{self, Answer, Kind, Problem};
use crate::records;
use crate::settings::{FamilySettings, Hold, NameServer, ResolversSettings};
use std::collections::HashMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

/// A `resolvers` section at work. All threads share it.
#[derive(Debug)]
pub struct Resolvers {
    /// Its name.
    pub name: Arc<str>,
    pub(crate) settings: ResolversSettings,
    lines: Vec<Arc<Line>>,
    families: FamilySettings,
    known: Known,
    /// Questions on their way, by name and kind of record.
    asking: Mutex<HashMap<(String, Kind), Arc<Outcome>>>,
}

/// Outcome of a question, for all tasks that ask it at the same time.
type Outcome = OnceCell<Result<Answered, Status>>;

/// A share in a question that is in flight. A share that is dropped before the answer leaves the question to the others.
struct Share<'a> {
    resolvers: &'a Resolvers,
    key: (String, Kind),
    /// Set until the share is dropped.
    outcome: Option<Arc<Outcome>>,
}

/// Families of the wanted addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Families {
    /// Addresses of IPv4, and without one those of IPv6.
    V4First,
    /// Addresses of IPv6, and without one those of IPv4.
    V6First,
    /// Addresses of IPv4 alone.
    V4,
    /// Addresses of IPv6 alone.
    V6,
}

/// Reason why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// There is no such name.
    Absent,
    /// The name servers refuse.
    Refused,
    /// No name server answers.
    Timeout,
    /// Any other reason.
    Other,
}

/// An answer, and the name server that gave it.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) answer: Arc<Answer>,
    /// The name server.
    pub(crate) line: Arc<Line>,
}

impl Resolvers {
    /// A section with its name servers.
    pub fn new(name: &str, settings: ResolversSettings, families: FamilySettings) -> Arc<Resolvers> {
        let line = |server: &NameServer| Arc::new(Line::new(server, settings.payload_bytes, settings.patience));
        let lines = settings.servers.iter().map(line).collect();
        Arc::new(Resolvers { name: name.into(), settings, lines, families, known: Known::default(), asking: Mutex::default() })
    }

    /// Sends the questions of other tasks to its name servers, for ever. Until this runs, questions wait. It runs once.
    pub(crate) async fn serve(self: Arc<Resolvers>) {
        let mut tasks = JoinSet::new();
        for line in &self.lines {
            tasks.spawn(line.clone().serve());
        }
        while tasks.join_next().await.is_some() {}
    }

    /// The most descriptors that it has at a time: a socket for each name server, and a connection for truncated answers.
    pub fn descriptors(&self) -> usize {
        self.lines.iter().map(|line| if line.server.stream { 1 } else { 2 }).sum()
    }

    /// Its lines in `show resolvers`.
    pub fn report(&self) -> String {
        let mut out = format!("Resolvers section {}\n", self.name);
        for line in &self.lines {
            let _ = writeln!(out, " nameserver {}:", line.server.name);
            line.counters.write(&mut out);
        }
        out
    }

    /// Its name servers and their counts, in the order of [`COUNT_NAMES`](crate::COUNT_NAMES).
    pub fn counts(&self) -> impl Iterator<Item = (&str, [u64; COUNTS])> {
        self.lines.iter().map(|line| (&*line.server.name, line.counters.values()))
    }

    /// An address of a name, of several the next one at each call. An answer is kept for `hold valid`, a failure for
    /// `timeout retry`.
    pub async fn address(&self, name: &str, families: Families) -> Option<IpAddr> {
        let key = (message::normal(name), families);
        if let Some(found) = self.known.recall(&key) {
            return found;
        }
        let found = self.ask(name, &self.kinds(families)).await;
        match &found {
            Ok(answered) => self.learn(name, families, answered),
            Err(_) => self.known.remember(key.clone(), Vec::new(), self.settings.patience),
        }
        self.known.recall(&key).unwrap_or_else(|| found.ok()?.answer.addresses.first().copied())
    }

    /// Keeps a good answer for later questions: `do-resolve` and servers share their answers.
    fn learn(&self, name: &str, families: Families, answered: &Answered) {
        if !self.settings.hold.valid.is_zero() {
            let addresses = records::in_order(&answered.answer.addresses);
            self.known.remember((message::normal(name), families), addresses, self.settings.hold.valid);
        }
    }

    /// Kinds of records that are asked for, the preferred one first.
    fn kinds(&self, families: Families) -> Vec<Kind> {
        let mut kinds = match families {
            Families::V4First => vec![Kind::A, Kind::Aaaa],
            Families::V6First => vec![Kind::Aaaa, Kind::A],
            Families::V4 => vec![Kind::A],
            Families::V6 => vec![Kind::Aaaa],
        };
        kinds.retain(|kind| self.accepts(*kind == Kind::A));
        kinds
    }

    /// Whether addresses of a family are taken.
    pub(crate) fn accepts(&self, v4: bool) -> bool {
        let (accepts_v4, accepts_v6) = self.families.accepted.unwrap_or_else(|| (true, v4 || reaches_v6()));
        if v4 { accepts_v4 } else { accepts_v6 }
    }

    /// The addresses of a server's name, of the preferred family, or without one of the other. A failure may be an
    /// accident: the name is asked for again after `timeout retry`, as often as `resolve_retries` sets.
    pub(crate) async fn addresses(&self, name: &str, families: Families) -> Result<Answered, Status> {
        let answered = self.insist(name, &self.kinds(families)).await?;
        self.learn(name, families, &answered);
        Ok(answered)
    }

    /// The places of a service, asked for in the same way.
    pub(crate) async fn services(&self, name: &str) -> Result<Answered, Status> {
        self.insist(name, &[Kind::Service]).await
    }

    async fn insist(&self, name: &str, kinds: &[Kind]) -> Result<Answered, Status> {
        let mut last = Status::Other;
        for left in (0..self.settings.retries.max(1)).rev() {
            let again = match self.ask_in_turn(name, kinds).await {
                Ok(answered) => return Ok(answered),
                Err((status, asked)) => {
                    last = status;
                    asked + self.settings.patience
                }
            };
            if left > 0 {
                sleep_until(again).await;
            }
        }
        Err(last)
    }

    /// Asks for a client that waits. A name server that has answered will not answer otherwise a moment later.
    async fn ask(&self, name: &str, kinds: &[Kind]) -> Result<Answered, Status> {
        let mut last = Status::Other;
        for _ in 0..self.settings.retries.max(1) {
            match self.ask_in_turn(name, kinds).await {
                Ok(answered) => return Ok(answered),
                Err((status, _)) => last = status,
            }
            if last != Status::Timeout {
                break;
            }
        }
        Err(last)
    }

    /// Asks for a kind of record, and for the next one where there is none. An error has the time of the last question.
    async fn ask_in_turn(&self, name: &str, kinds: &[Kind]) -> Result<Answered, (Status, tokio::time::Instant)> {
        let mut last = (Status::Other, tokio::time::Instant::now());
        for kind in kinds {
            let asked = tokio::time::Instant::now();
            match self.ask_once(name, *kind).await {
                Ok(answered) => return Ok(answered),
                Err(status) => last = (status, asked),
            }
            // No name server answers the other question either.
            if last.0 == Status::Timeout {
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

    /// Takes a share in the question, which is sent now if it is not in flight.
    fn share(&self, name: &str, kind: Kind) -> Share<'_> {
        let key = (message::normal(name), kind);
        let outcome = self.asking().entry(key.clone()).or_default().clone();
        Share { resolvers: self, key, outcome: Some(outcome) }
    }

    async fn ask_all(&self, name: &str, kind: Kind) -> Result<Answered, Status> {
        let (mut questions, name) = (JoinSet::new(), Arc::<str>::from(name));
        for line in &self.lines {
            let (line, name) = (line.clone(), name.clone());
            questions.spawn(async move {
                let reply = line.ask(&name, kind).await;
                (line, reply)
            });
        }
        let mut last = None;
        while let Some(outcome) = questions.join_next().await {
            match outcome {
                Ok((line, Ok(answer))) => return Ok(Answered { answer: answer.into(), line }),
                // The error of a name server goes before the silence of another one.
                Ok((_, Err(failure))) => last = Some(failure.status()).filter(|said| *said != Status::Timeout).or(last),
                Err(_) => {}
            }
        }
        match last {
            None if !self.lines.is_empty() => Err(Status::Timeout),
            last => Err(last.unwrap_or(Status::Other)),
        }
    }

    fn asking(&self) -> MutexGuard<'_, HashMap<(String, Kind), Arc<Outcome>>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share<'_> {
    /// An answer is for the tasks that have waited for it; the next one asks anew.
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

impl Answered {
    /// Counts that it has changed a server.
    pub(crate) fn count_update(&self) {
        self.line.counters.bump(Count::Updates);
    }
}

impl Hold {
    /// Time for which the last good answer is believed.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::tests::{a, reply};
    use simple_dns::RCODE;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UdpSocket;

    fn settings(servers: &[SocketAddr], stream: bool) -> ResolversSettings {
        let server = |(i, address): (usize, &SocketAddr)| NameServer { name: format!("n{i}").into(), address: *address, stream };
        ResolversSettings {
            servers: servers.iter().enumerate().map(server).collect(),
            patience: Duration::from_millis(200),
            retries: 2,
            ..ResolversSettings::default()
        }
    }

    /// A section at work, as under [`crate::run`].
    fn at_work(settings: ResolversSettings) -> Arc<Resolvers> {
        let resolvers = Resolvers::new("r", settings, FamilySettings { accepted: Some((true, true)) });
        tokio::spawn(resolvers.clone().serve());
        resolvers
    }

    fn resolvers(servers: &[SocketAddr], stream: bool) -> Arc<Resolvers> {
        at_work(settings(servers, stream))
    }

    fn by(answered: &Answered) -> &str {
        &answered.line.server.name
    }

    fn counted(resolvers: &Resolvers, name: &str) -> u64 {
        let at = crate::COUNT_NAMES.iter().position(|known| *known == name).unwrap();
        resolvers.counts().map(|(_, counts)| counts[at]).sum()
    }

    async fn bound() -> (UdpSocket, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    /// Answers every question with the messages that `make` makes of it.
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
        assert_eq!((&answered.answer.addresses, by(&answered)), (&vec![IpAddr::from([10, 0, 0, 7])], "n1"));
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
        let resolvers = at_work(ResolversSettings { patience: Duration::from_secs(15), ..settings(&[address], false) });
        let mut tasks = JoinSet::new();
        let want = |tasks: &mut JoinSet<Option<IpAddr>>| {
            let resolvers = resolvers.clone();
            tasks.spawn(async move { resolvers.address("a.test", Families::V4First).await })
        };
        // The first asking task leaves, and the others ask in its place.
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
        let families = FamilySettings { accepted: Some((true, true)) };
        let (resolvers, arrived) = (Resolvers::new("r", settings(&[], false), families), AtomicUsize::new(0));
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

    #[tokio::test]
    async fn many_questions_share_a_socket_and_have_numbers_that_nobody_guesses() {
        let (socket, address) = bound().await;
        let resolvers = at_work(ResolversSettings { patience: Duration::from_secs(15), ..settings(&[address], false) });
        let mut tasks = JoinSet::new();
        for at in 0..COUNT {
            let resolvers = resolvers.clone();
            tasks.spawn(async move { (at, resolvers.ask(&format!("n{at}.test"), &[Kind::A]).await.unwrap()) });
        }
        let (mut questions, mut from) = (Vec::new(), Vec::new());
        let mut bytes = [0; 1500];
        while questions.len() < usize::from(COUNT) {
            let (length, asker) = socket.recv_from(&mut bytes).await.unwrap();
            questions.push(bytes[..length].to_vec());
            from.push(asker);
        }
        from.dedup();
        assert_eq!(from.len(), 1, "one socket");
        let numbers: Vec<u16> = questions.iter().map(|question| u16::from_be_bytes([question[0], question[1]])).collect();
        let distinct: std::collections::HashSet<u16> = numbers.iter().copied().collect();
        assert_eq!(distinct.len(), numbers.len(), "in flight each has its own");
        // Of random numbers, a fifth or so is as near to its neighbour as this; of numbers in a row, all are.
        let steps = numbers.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 6_000).count();
        assert!(steps < numbers.len() / 2, "{numbers:?}");
        assert!(numbers.iter().any(|number| *number < 0x6000) && numbers.iter().any(|number| *number > 0xa000), "{numbers:?}");
        // The last question is answered first, and each gets the answer to its own.
        for question in questions.iter().rev() {
            let name = simple_dns::Packet::parse(question).unwrap().questions[0].qname.to_string();
            let at: u8 = name.trim_start_matches('n').trim_end_matches(".test").parse().unwrap();
            socket.send_to(&reply(question, &[(&name, a([10, 0, 0, at]))], RCODE::NoError), from[0]).await.unwrap();
        }
        while let Some(found) = tasks.join_next().await {
            let (at, answered) = found.unwrap();
            assert_eq!(answered.answer.addresses, [IpAddr::from([10, 0, 0, at])]);
        }
        assert_eq!((counted(&resolvers, "sent"), counted(&resolvers, "valid")), (u64::from(COUNT), u64::from(COUNT)));
    }

    const COUNT: u8 = 200;

    /// An answer to another question, with a number that fits, is ignored; the next question leaves from another port.
    #[tokio::test]
    async fn answers_to_other_questions_do_not_count() {
        let (socket, address) = bound().await;
        let resolvers = at_work(ResolversSettings { patience: Duration::from_secs(15), ..settings(&[address], false) });
        let mut ports = Vec::new();
        for (round, name) in ["a.test", "b.test"].into_iter().enumerate() {
            let (asked, asking) = (resolvers.clone(), name.to_owned());
            let asker = tokio::spawn(async move { asked.ask(&asking, &[Kind::A]).await });
            let mut bytes = [0; 1500];
            let (length, from) = socket.recv_from(&mut bytes).await.unwrap();
            ports.push(from.port());
            let other = message::question(u16::from_be_bytes([bytes[0], bytes[1]]), "evil.test", Kind::A, 512).unwrap();
            let six = message::question(u16::from_be_bytes([bytes[0], bytes[1]]), name, Kind::Aaaa, 512).unwrap();
            let mut stale = reply(&bytes[..length], &[(name, a([6; 4]))], RCODE::NoError);
            stale[1] ^= 1;
            for wrong in [reply(&other, &[("evil.test", a([6; 4]))], RCODE::NoError), reply(&six, &[], RCODE::NoError), stale] {
                socket.send_to(&wrong, from).await.unwrap();
            }
            let right = reply(&bytes[..length], &[(name, a([10, 0, 0, 7]))], RCODE::NoError);
            socket.send_to(&right, from).await.unwrap();
            assert_eq!(asker.await.unwrap().unwrap().answer.addresses, [IpAddr::from([10, 0, 0, 7])]);
            assert_eq!(counted(&resolvers, "invalid"), 2 * (round as u64 + 1));
            assert_eq!(counted(&resolvers, "outdated"), round as u64 + 1);
        }
        assert_ne!(ports[0], ports[1]);
    }

    /// Answers are kept for `hold valid`: until then no question is sent again, and each request gets the next address.
    #[tokio::test]
    async fn known_answers_are_used_and_go_round() {
        let (socket, address) = bound().await;
        serve(socket, |question| {
            vec![reply(question, &[("a.test", a([10, 0, 0, 1])), ("a.test", a([10, 0, 0, 2]))], RCODE::NoError)]
        });
        let resolvers = resolvers(&[address], false);
        let mut found = Vec::new();
        for name in ["a.test", "A.test", "a.test.", "a.test"] {
            found.push(resolvers.address(name, Families::V4First).await.unwrap());
        }
        assert_eq!((found[0], found[1]), (found[2], found[3]));
        assert_ne!(found[0], found[1]);
        assert_eq!(counted(&resolvers, "sent"), 1);
        // Answers that are too old are asked for again.
        resolvers.known.expire();
        assert!(resolvers.address("a.test", Families::V4First).await.is_some());
        assert_eq!(counted(&resolvers, "sent"), 2);
        // `do-resolve` knows the answers that servers got, and those that are not kept are asked for each time.
        let (other, address) = bound().await;
        serve(other, |question| vec![reply(question, &[("a.test", a([10, 0, 0, 1]))], RCODE::NoError)]);
        let mut brief = settings(&[address], false);
        let kept = at_work(brief.clone());
        kept.addresses("a.test", Families::V4First).await.unwrap();
        assert_eq!(kept.address("a.test", Families::V4First).await, Some([10, 0, 0, 1].into()));
        assert_eq!(counted(&kept, "sent"), 1);
        brief.hold.valid = Duration::ZERO;
        let brief = at_work(brief);
        for _ in 0..2 {
            assert_eq!(brief.address("a.test", Families::V4First).await, Some([10, 0, 0, 1].into()));
        }
        assert_eq!(counted(&brief, "sent"), 2);
    }

    #[tokio::test]
    async fn failures_are_known_for_a_while() {
        let (socket, address) = bound().await;
        serve(socket, |question| vec![reply(question, &[], RCODE::NameError)]);
        let resolvers = at_work(ResolversSettings { patience: Duration::from_secs(15), ..settings(&[address], false) });
        for _ in 0..3 {
            assert_eq!(resolvers.address("a.test", Families::V4).await, None);
        }
        assert_eq!((counted(&resolvers, "sent"), counted(&resolvers, "nx")), (1, 1));
    }

    /// The error of a name server goes before the silence of another one.
    #[tokio::test]
    async fn a_refusal_beside_silence_is_a_refusal() {
        let ((silent, first), (refusing, second)) = (bound().await, bound().await);
        serve(silent, |_| Vec::new());
        serve(refusing, |question| vec![reply(question, &[], RCODE::Refused)]);
        let resolvers = resolvers(&[second, first], false);
        assert_eq!(resolvers.ask("a.test", &[Kind::A]).await.map(|_| ()), Err(Status::Refused));
        assert_eq!((counted(&resolvers, "refused"), counted(&resolvers, "timeout")), (1, 1));
    }

    /// A server's name is asked for again in spite of an error: that may be an accident.
    #[tokio::test]
    async fn servers_names_are_asked_for_again() {
        let (socket, address) = bound().await;
        let asked = AtomicUsize::new(0);
        serve(socket, move |question| {
            let rcode = if asked.fetch_add(1, SeqCst) < 2 { RCODE::NameError } else { RCODE::NoError };
            let records = [("a.test", a([10, 0, 0, 7]))];
            vec![reply(question, if rcode == RCODE::NoError { &records } else { &[] }, rcode)]
        });
        let resolvers = resolvers(&[address], false);
        let found = resolvers.addresses("a.test", Families::V4First).await.unwrap();
        assert_eq!((&found.answer.addresses, counted(&resolvers, "sent")), (&vec![IpAddr::from([10, 0, 0, 7])], 3));
    }

    /// Many questions over one TCP connection, and another connection when it ends.
    #[tokio::test]
    async fn a_connection_has_many_questions() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let resolvers = at_work(ResolversSettings { patience: Duration::from_secs(15), ..settings(&[address], true) });
        let mut tasks = JoinSet::new();
        for at in 0..4 {
            let resolvers = resolvers.clone();
            tasks.spawn(async move { resolvers.ask(&format!("n{at}.test"), &[Kind::A]).await.unwrap().answer.addresses[0] });
        }
        // The first connection ends after its first answer; the second one has the rest.
        for answers in [1, 3] {
            let (mut peer, _) = listener.accept().await.unwrap();
            let mut questions = Vec::new();
            while questions.len() < answers {
                let length = peer.read_u16().await.unwrap();
                let mut question = vec![0; usize::from(length)];
                peer.read_exact(&mut question).await.unwrap();
                questions.push(question);
            }
            for question in questions.iter().rev() {
                let name = simple_dns::Packet::parse(question).unwrap().questions[0].qname.to_string();
                let answer = reply(question, &[(&name, a([10, 0, 0, 7]))], RCODE::NoError);
                // In two pieces: a message that is cut in between waits for its rest.
                let framed = [&(answer.len() as u16).to_be_bytes(), &answer[..]].concat();
                peer.write_all(&framed[..5]).await.unwrap();
                peer.write_all(&framed[5..]).await.unwrap();
            }
        }
        let mut found = 0;
        while let Some(ip) = tasks.join_next().await {
            assert_eq!(ip.unwrap(), IpAddr::from([10, 0, 0, 7]));
            found += 1;
        }
        assert_eq!((found, counted(&resolvers, "valid"), resolvers.descriptors()), (4, 4, 1));
    }

    #[tokio::test]
    async fn where_nobody_listens_there_is_no_answer() {
        let address = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        for stream in [false, true] {
            let ask = resolvers(&[address], stream);
            assert_eq!(ask.ask("a.test", &[Kind::A]).await.map(|_| ()), Err(Status::Timeout));
        }
    }

    /// The truncated answer of a service counts without TCP; that of addresses does not.
    #[tokio::test]
    async fn what_was_cut_counts_for_services() {
        let (socket, address) = bound().await;
        serve(socket, |question| {
            let target = simple_dns::Name::new("h.test").unwrap().into_owned();
            let place = simple_dns::rdata::RData::SRV(simple_dns::rdata::SRV { priority: 1, weight: 2, port: 80, target });
            let mut cut = reply(question, &[("_a.test", place), ("_a.test", a([10, 0, 0, 7]))], RCODE::NoError);
            cut[2] |= 2;
            vec![cut]
        });
        let resolvers = resolvers(&[address], false);
        let found = resolvers.ask("_a.test", &[Kind::Service]).await.unwrap();
        assert_eq!((found.answer.services.len(), found.answer.services[0].port), (1, 80));
        assert_eq!(resolvers.ask("_a.test", &[Kind::A]).await.map(|_| ()), Err(Status::Other));
        assert_eq!((counted(&resolvers, "truncated"), counted(&resolvers, "valid")), (2, 1));
    }
}
