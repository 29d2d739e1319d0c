//! The proxy that hostile clients and servers meet: where it listens, its figures and its log.

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
    /// Starts it on a core before a good server and a hostile one, and waits until it serves.
    pub(super) fn start(program: &Path, core: usize, [origin, hostile_server]: [SocketAddr; 2]) -> Result<Proxy> {
        let folder = tempfile::Builder::new().prefix("terse-hostile-").tempdir()?;
        let (hostile, friendly) = (free_port()?, free_port()?);
        let text = CONFIG
            .replace("${SOCKET}", &folder.path().join(SOCKET).display().to_string())
            .replace("${HOSTILE}", &hostile.to_string())
            .replace("${FRIENDLY}", &friendly.to_string())
            .replace("${HOSTILE_SERVER}", &hostile_server.to_string())
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

    /// Where it speaks HTTP/2 in clear text, and HTTP/1.
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

    /// How many lines of the log name which cause of a connection's end.
    pub(super) fn causes(&self) -> Result<BTreeMap<String, usize>> {
        Ok(causes(&String::from_utf8_lossy(&fs::read(self.log())?)))
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

fn causes(text: &str) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for (_, cause) in text.lines().filter_map(|line| line.split_once("HTTP/2 connection closed: ")) {
        *found.entry(cause.trim_end_matches('.').to_owned()).or_default() += 1;
    }
    found
}

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
    bind ${HOSTILE}
    log global
    option httplog
    option dontlog-normal
    compression algo gzip
    compression type application/javascript
    use_backend hostile if { path_beg /server- }
    default_backend origin

frontend friendly
    bind ${FRIENDLY}
    default_backend origin

backend origin
    server origin ${ORIGIN}

backend hostile
    http-reuse safe
    server hostile ${HOSTILE_SERVER} proto h2
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
        let lines = causes(
            "a PR-- \"<BADREQ>\"\nweb HTTP/2 connection closed: pings\nServer b/s: HTTP/2 connection closed: pings.\n\
             Server b/s: HTTP/2 connection closed: WINDOW_UPDATE by 0.\n",
        );
        assert_eq!(lines, BTreeMap::from([("WINDOW_UPDATE by 0".into(), 1), ("pings".into(), 2)]));
    }
}
