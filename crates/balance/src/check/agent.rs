//! Agents: programs beside servers that report their health (`agent-check`).
//!
//! An agent is asked by connecting, and answers a line of words: `up`, `down`, `fail`, `stopped` (with a reason after
//! `#`), `ready`, `drain`, `maint`, `50%`, `weight:50%`, `maxconn:30`. Of several words of a kind the last counts. A
//! setting that the answer does not mention stays as it is, and so does everything when there is no answer.

use super::stream::{Stream, described};
use super::{CheckStatus, LastCheck};
use crate::exhaustion::{EXHAUSTION, Purpose};
use crate::farm::Farm;
use crate::server::Server;
use crate::state::AdminOrder;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Asks a server's agent at intervals, for ever.
pub(super) async fn watch(farm: Arc<Farm>, server: Arc<Server>) {
    let inter = server.settings().agent.inter;
    loop {
        let asked = Instant::now();
        if server.is_asked() {
            let answer = ask(&farm, &server, asked + inter).await;
            // An operator may have stopped agent checks meanwhile.
            if server.is_asked() {
                heed(&farm, &server, answer, asked.elapsed());
            }
        }
        sleep(inter).await;
    }
}

/// Outcome of an agent check.
enum Answer {
    /// A line.
    Line(String),
    /// The agent has closed before the line's end.
    Incomplete,
    /// No answer, with the reason.
    None(CheckStatus, String),
    /// This process has no descriptor left to ask.
    Unasked,
}

async fn ask(farm: &Farm, server: &Server, deadline: Instant) -> Answer {
    let aim = server.aim();
    let Some(address) = server.address().destination().and_then(|destination| {
        let port = aim.agent_port.or(destination.fixed_port())?;
        Some(SocketAddr::new(aim.agent_address.unwrap_or(destination.ip), port))
    }) else {
        return Answer::None(CheckStatus::SocketError, String::new());
    };
    let broken = |status, error: &std::io::Error| Answer::None(status, described(error));
    let mut stream = match timeout_at(deadline, Stream::to(address)).await {
        Err(_) => return Answer::None(CheckStatus::L4Timeout, String::new()),
        Ok(Err(error)) if EXHAUSTION.note(&error, Purpose::Check) => return Answer::Unasked,
        Ok(Err(error)) => return broken(CheckStatus::L4Connection, &error),
        Ok(Ok(stream)) => stream,
    };
    let deadline = farm.settings().check_timeout.map_or(deadline, |limit| Instant::now() + limit);
    let talk = async {
        stream.send(&aim.agent_send).await?;
        let mut bytes = Vec::new();
        while !bytes.iter().any(|byte| ENDS.contains(byte)) {
            if bytes.len() >= MOST_BYTES || stream.receive(&mut bytes).await? == 0 {
                return Ok(if bytes.is_empty() { Answer::None(CheckStatus::L7Response, EMPTY.into()) } else { Answer::Incomplete });
            }
        }
        let line = bytes.split(|byte| ENDS.contains(byte)).next().unwrap_or_default();
        Ok(Answer::Line(String::from_utf8_lossy(line).into_owned()))
    };
    match timeout_at(deadline, talk).await {
        Err(_) => Answer::None(CheckStatus::L7Timeout, String::new()),
        Ok(Err(error)) => broken(CheckStatus::SocketError, &error),
        Ok(Ok(answer)) => answer,
    }
}

/// Carries out an agent's answer, and records it.
fn heed(farm: &Farm, server: &Arc<Server>, answer: Answer, duration: Duration) {
    let now = Instant::now().into_std();
    let (status, info) = match answer {
        Answer::Line(line) => obey(farm, server, &line, now),
        Answer::Incomplete => (server.last_agent().status, "Ignoring incomplete line from agent".into()),
        Answer::None(status, info) => (status, info),
        Answer::Unasked => return,
    };
    farm.record_agent(server, LastCheck { status, info, duration, ..LastCheck::default() }, now);
}

/// Carries out a line except for the health: returns that, and its description.
fn obey(farm: &Farm, server: &Arc<Server>, line: &str, now: std::time::Instant) -> (CheckStatus, String) {
    let said = Words::of(line);
    if let Some(order) = said.order {
        if let Some((_, up)) = said.health {
            farm.set_agent_health(server, up, now);
        }
        farm.set_admin(server, order, now);
    }
    let weighed = said.weight.map_or(Ok(()), |text| set_weight(farm, server, text, now));
    let limited = said.maxconn.map_or(Ok(()), |text| match text.parse() {
        Ok(limit) => {
            farm.set_maxconn(server, limit);
            Ok(())
        }
        Err(_) if text.starts_with(|first: char| first.is_ascii_digit()) => Err("Trailing garbage in maxconn string"),
        Err(_) => Err("maxconn string empty or preceded by garbage"),
    });
    let odd = said.odd.or(weighed.and(limited).err());
    match (said.health, odd) {
        (Some((word, up)), odd) => {
            let status = if up { CheckStatus::L7Ok } else { CheckStatus::L7Status };
            // An unknown word is reported in the place of a reason to be up.
            let is_told = !said.reason.is_empty() && (!up || odd.is_none());
            let reason = if is_told { Some(said.reason) } else { odd };
            (status, format!("via agent : {word}{}", reason.map_or(String::new(), |reason| format!(" ({reason})"))))
        }
        (None, Some(word)) if said.odd.is_some() => (CheckStatus::Checked, format!("agent reports an error : {word}")),
        (None, Some(warning)) => (CheckStatus::Checked, format!("agent warns : {warning}")),
        (None, None) => (CheckStatus::Checked, String::new()),
    }
}

/// The words of a line: of each kind the last, but the first unknown word.
#[derive(Default)]
struct Words<'a> {
    /// The word, and whether it means that the server is up.
    health: Option<(&'a str, bool)>,
    order: Option<AdminOrder>,
    weight: Option<&'a str>,
    maxconn: Option<&'a str>,
    odd: Option<&'a str>,
    /// Text after `#`.
    reason: &'a str,
}

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Words<'a> {
        let mut words = Words::default();
        let mut rest = line;
        loop {
            rest = rest.trim_start_matches(BLANKS);
            if let Some(reason) = rest.strip_prefix('#') {
                words.reason = reason.trim_start_matches([' ', '\t']);
                return words;
            }
            let (word, behind) = rest.split_at(rest.find(BLANKS).unwrap_or(rest.len()));
            if word.is_empty() {
                return words;
            }
            words.take(word);
            rest = behind;
        }
    }

    fn take(&mut self, word: &'a str) {
        let value = |name: &str| {
            let (start, value) = word.split_at_checked(name.len())?;
            start.eq_ignore_ascii_case(name).then_some(value)
        };
        match word.to_ascii_lowercase().as_str() {
            "up" => self.health = Some((word, true)),
            "down" | "stopped" | "fail" => self.health = Some((word, false)),
            "ready" => self.order = Some(AdminOrder::Ready),
            "drain" => self.order = Some(AdminOrder::Drain),
            "maint" => self.order = Some(AdminOrder::Maint),
            _ if word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('%') => self.weight = Some(word),
            _ => match (value("maxconn:"), value("weight:")) {
                (Some(limit), _) => self.maxconn = Some(limit),
                (_, Some(weight)) => self.weight = Some(weight),
                _ => self.odd = self.odd.or(Some(word)),
            },
        }
    }
}

/// Sets a weight, or a percentage of that of the server's line. The error is in HAProxy's words.
fn set_weight(farm: &Farm, server: &Arc<Server>, text: &str, now: std::time::Instant) -> Result<(), &'static str> {
    let whole = u64::from(server.settings().weight);
    let weight = match text.strip_suffix('%') {
        Some(percent) => {
            let percent: u64 = percent.parse().map_err(|_| "Trailing garbage in weight string")?;
            (whole * percent.min(MOST_PERCENT) / 100).min(MOST_WEIGHT)
        }
        None => text.parse().map_err(|_| "Trailing garbage in weight string")?,
    };
    let weight = u32::try_from(weight).ok().filter(|weight| u64::from(*weight) <= MOST_WEIGHT);
    let weight = weight.ok_or("Absolute weight can only be between 0 and 256 inclusive.")?;
    if weight != server.weight() {
        farm.set_weight(server, weight, now);
    }
    Ok(())
}

/// Report of an empty answer.
const EMPTY: &str = "TCPCHK got an empty response at step 2";
/// Ends of a line.
const ENDS: &[u8] = b"\r\n\0";
/// Separators of words.
const BLANKS: &[char] = &[' ', '\t', ','];
/// Limit of the bytes of an answer that are read.
const MOST_BYTES: usize = 4096;
const MOST_PERCENT: u64 = 25_600;
const MOST_WEIGHT: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{farm, logged};
    use crate::state::Operation;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    #[test]
    fn each_word_does_its_part_and_no_more() {
        let farm = farm("server s 10.0.0.1:80 weight 50 maxconn 9 agent-check agent-port 1");
        let server = &farm.servers()[0];
        let after = |line: &str| {
            heed(&farm, server, Answer::Line(line.to_owned()), Duration::ZERO);
            (server.operation(), server.admin().is_drain(), server.weight(), server.maxconn())
        };
        assert_eq!(after("75%"), (Operation::Running, false, 37, 9));
        assert_eq!(after("drain weight:10,maxconn:3"), (Operation::Running, true, 10, 3));
        assert_eq!(after("what:ever weight:x maxconn:"), (Operation::Running, true, 10, 3));
        assert_eq!(after("300000000000%").2, 256);
        assert_eq!(after("5%, 20% weight:10").2, 10);
        assert_eq!(after("ready down #broken \"disk\""), (Operation::Stopped, false, 10, 3));
        assert_eq!(after("100%"), (Operation::Stopped, false, 50, 3));
        assert_eq!(after("up"), (Operation::Running, false, 50, 3));
        assert_eq!(after("maint").0, Operation::Stopped);
    }

    #[tokio::test]
    async fn an_agent_is_asked_now_and_then() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let lines = format!("server s 127.0.0.1:1 agent-check agent-inter 10ms agent-port {port} agent-send hello\\n");
        let (farm, log) = logged(&lines);
        let server = farm.servers()[0].clone();
        let watching = tokio::spawn(watch(farm.clone(), server.clone()));
        let story = async {
            for answer in ["down # gone\n", "up\r\n"] {
                let (mut peer, _) = listener.accept().await.unwrap();
                let mut asked = Vec::new();
                while asked.len() < 6 {
                    tokio::io::AsyncReadExt::read_buf(&mut peer, &mut asked).await.unwrap();
                }
                assert_eq!(asked, b"hello\n");
                peer.write_all(answer.as_bytes()).await.unwrap();
                let word = if answer.starts_with('d') { "is DOWN, reason" } else { "is UP, reason" };
                log.written(word).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), story).await.unwrap();
        watching.abort();
        assert_eq!(server.last_agent().info, "via agent : up");
    }
}
