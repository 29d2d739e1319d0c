//! The proxy that hostile clients meet: where it listens, its figures and its log.

use crate::bench::rival::free_port;
use crate::client::Client;
use crate::program::{Program, wait_until};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use terse_http::h2::Glitch;

/// Names and values of `show info`.
pub(super) type Figures = BTreeMap<String, String>;

/// A proxy at work. Dropping it stops it and removes its files.
#[derive(Debug)]
pub(super) struct Proxy {
    program: Program,
    hostile: SocketAddr,
    friendly: SocketAddr,
    folder: tempfile::TempDir,
}

impl Proxy {
    /// Starts it on a core, and waits until it serves.
    pub(super) fn start(program: &Path, core: usize, origin: SocketAddr) -> Result<Proxy> {
        let folder = tempfile::Builder::new().prefix("terse-hostile-").tempdir()?;
        let (hostile, friendly) = (free_port()?, free_port()?);
        let text = CONFIG
            .replace("${SOCKET}", &folder.path().join(SOCKET).display().to_string())
            .replace("${HOSTILE}", &hostile.to_string())
            .replace("${FRIENDLY}", &friendly.to_string())
            .replace("${ORIGIN}", &origin.to_string());
        fs::write(folder.path().join("proxy.cfg"), text)?;
        let log = fs::File::create(folder.path().join(LOG))?;
        let mut command = Command::new(program);
        command.args(["-db", "-f", "proxy.cfg"]).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut proxy = Proxy { program: Program::start(command, Some(&[core]))?, hostile, friendly, folder };
        let is_ready = wait_until(PATIENCE, || {
            let answer = Client::connect(friendly, PATIENCE).and_then(|mut client| client.get("/tiny", &[]));
            answer.is_ok_and(|reply| reply.status == 200) || proxy.program.ended().is_some()
        });
        if !is_ready || proxy.program.ended().is_some() {
            bail!("{} does not serve: {}", program.display(), fs::read_to_string(proxy.log()).unwrap_or_default().trim());
        }
        Ok(proxy)
    }

    /// Where it speaks HTTP/2 in clear text.
    pub(super) fn hostile(&self) -> SocketAddr {
        self.hostile
    }

    /// Where it speaks HTTP/1.
    pub(super) fn friendly(&self) -> SocketAddr {
        self.friendly
    }

    /// The process that was started.
    pub(super) fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// What `show info` says.
    pub(super) fn figures(&self) -> Result<Figures> {
        let mut socket = UnixStream::connect(self.folder.path().join(SOCKET)).context("the stats socket")?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.write_all(b"show info\n")?;
        let mut text = String::new();
        socket.read_to_string(&mut text)?;
        Ok(figures(&text))
    }

    /// How many lines of the log name which limit.
    pub(super) fn lines_of_limits(&self) -> Result<BTreeMap<&'static str, usize>> {
        Ok(lines_of_limits(&String::from_utf8_lossy(&fs::read(self.log())?)))
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join(LOG)
    }
}

/// Lines `Name: value`.
fn figures(text: &str) -> Figures {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

fn lines_of_limits(text: &str) -> BTreeMap<&'static str, usize> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        // `head` is a word of others' lines, too: the longest name counts.
        let named = LIMITS.iter().map(|limit| limit.name()).filter(|name| line.contains(name));
        if let Some(name) = named.max_by_key(|name| name.len()) {
            *found.entry(name).or_default() += 1;
        }
    }
    found
}

const LIMITS: [Glitch; 14] = [
    Glitch::Unfinished,
    Glitch::Continuations,
    Glitch::HeaderBlock,
    Glitch::Head,
    Glitch::Ping,
    Glitch::Settings,
    Glitch::EmptyData,
    Glitch::TinyData,
    Glitch::WindowUpdate,
    Glitch::TinyWindow,
    Glitch::Priority,
    Glitch::ClosedStream,
    Glitch::GoAway,
    Glitch::Unknown,
];

const CONFIG: &str = "\
global
    nbthread 1
    maxconn 8000
    stats socket ${SOCKET} level admin
    log stdout format raw local0

defaults
    mode http
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    timeout http-request 1m
    http-reuse always

frontend hostile
    bind ${HOSTILE} proto h2
    log global
    option httplog
    option dontlog-normal
    compression algo gzip
    compression type application/javascript
    default_backend origin

frontend friendly
    bind ${FRIENDLY}
    default_backend origin

backend origin
    server origin ${ORIGIN}
";
const SOCKET: &str = "stats.sock";
const LOG: &str = "log";
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_lines_are_read() {
        let found = figures("Name: terse\nH2_glitches: 3\n\n");
        assert_eq!(found.get("H2_glitches").map(String::as_str), Some("3"));
        let lines = lines_of_limits("a PR-- pings\na PR-- header block\nb empty data\nc GET /\nd pings\n");
        assert_eq!(lines, BTreeMap::from([("empty data", 1), ("header block", 1), ("pings", 2)]));
    }
}
