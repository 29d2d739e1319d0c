//! Agents: programs beside servers that say how these are (`agent-check`).
//!
//! An agent is asked by connecting, and answers one line of words: `up`, `down`, `fail`, `stopped` (with a reason behind `#`), `ready`,
//! `drain`, `maint`, `50%`, `weight:50%`, `maxconn:30`. What it does not mention stays as it is, and so does everything when it does
//! not answer at all.

use super::stream::Stream;
use super::{CheckStatus, LastCheck};
use crate::farm::Farm;
use crate::server::Server;
use crate::state::AdminOrder;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Asks a server's agent now and then, for ever.
pub(super) async fn watch(farm: Arc<Farm>, server: Arc<Server>) {
    let inter = server.settings().agent.inter;
    loop {
        let asked = Instant::now();
        if server.is_asked()
            && let Ok(Some(line)) = timeout(inter, ask(&server)).await
            // An operator may have said meanwhile that it shall not count.
            && server.is_asked()
        {
            heed(&farm, &server, &line, asked.elapsed());
        }
        sleep(inter).await;
    }
}

/// What the agent says: one line.
async fn ask(server: &Server) -> Option<String> {
    let aim = server.aim();
    let destination = server.address().destination()?;
    let port = aim.agent_port.or(destination.fixed_port())?;
    let address = SocketAddr::new(aim.agent_address.unwrap_or(destination.ip), port);
    let mut stream = Stream::to(address).await.ok()?;
    stream.send(&aim.agent_send).await.ok()?;
    let mut bytes = Vec::new();
    while !bytes.contains(&b'\n') && !bytes.contains(&b'\r') && bytes.len() < MOST_BYTES {
        if stream.receive(&mut bytes).await.ok()? == 0 {
            break;
        }
    }
    let line = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    Some(String::from_utf8_lossy(line).into_owned())
}

/// Does what a line says.
fn heed(farm: &Farm, server: &Arc<Server>, line: &str, duration: Duration) {
    let now = Instant::now().into_std();
    *server.agent_said() = line.to_owned();
    let (words, reason) = line.split_once('#').unwrap_or((line, ""));
    for word in words.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
        match word {
            "up" => {
                let check =
                    LastCheck { status: CheckStatus::L7Ok, info: "via agent : up".into(), duration, ..LastCheck::default() };
                farm.record_agent(server, true, check.to_string(), now);
            }
            "down" | "fail" | "stopped" => {
                let info = if reason.is_empty() { word.to_owned() } else { format!("{word} ({reason})") };
                farm.record_agent(
                    server,
                    false,
                    format!(", reason: Layer7 invalid response, info: \"{}\"", info.replace('"', "'")),
                    now,
                );
            }
            "ready" => farm.set_admin(server, AdminOrder::Ready, now),
            "drain" => farm.set_admin(server, AdminOrder::Drain, now),
            "maint" => farm.set_admin(server, AdminOrder::Maint, now),
            _ => match word.split_once(':') {
                Some(("maxconn", limit)) => {
                    if let Ok(limit) = limit.parse() {
                        farm.set_maxconn(server, limit);
                    }
                }
                Some(("weight", weight)) => set_weight(farm, server, weight, now),
                None if word.ends_with('%') => set_weight(farm, server, word, now),
                _ => {}
            },
        }
    }
}

/// A weight, or a percentage of what the server's line says.
fn set_weight(farm: &Farm, server: &Arc<Server>, text: &str, now: std::time::Instant) {
    let whole = u64::from(server.settings().weight);
    let weight = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<u64>().ok().map(|percent| (whole * percent.min(MOST_PERCENT)).div_ceil(100)),
        None => text.parse::<u64>().ok(),
    };
    if let Some(weight) =
        weight.and_then(|weight| u32::try_from(weight).ok()).filter(|weight| *weight <= 256 && *weight != server.weight())
    {
        farm.set_weight(server, weight, now);
    }
}

/// What is read of an answer.
const MOST_BYTES: usize = 4096;
const MOST_PERCENT: u64 = 25_600;

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
            heed(&farm, server, line, Duration::ZERO);
            (server.operation(), server.admin().is_drain(), server.weight(), server.maxconn())
        };
        assert_eq!(after("75%"), (Operation::Running, false, 38, 9));
        assert_eq!(after("drain weight:10,maxconn:3"), (Operation::Running, true, 10, 3));
        assert_eq!(after("what:ever 300000000000% weight:x maxconn:"), (Operation::Running, true, 10, 3));
        assert_eq!(after("ready down#broken \"disk\""), (Operation::Stopped, false, 10, 3));
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
        timeout(std::time::Duration::from_secs(20), story).await.unwrap();
        watching.abort();
        assert_eq!(*server.agent_said(), "up");
    }
}
