//! A proxy at work under its master: its listeners, its reloads, and the resources that it holds.

use crate::program::{Program, signal, wait_until};
use crate::{secure, tree};
use anyhow::{Context, Result, bail};
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};
use rustix::process::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Listener of a proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Door {
    /// HTTP/1 in clear text, and HTTP/2 by its preface.
    Web,
    /// TLS, either version by ALPN.
    Secure,
    /// HTTP/1 with a cache.
    Cached,
    /// Bytes as they are.
    Pass,
}

/// A proxy. Dropping it stops it and removes its files.
#[derive(Debug)]
pub(super) struct Proxy {
    program: Program,
    name: &'static str,
    /// A port for each door, and the socket that keeps it ours.
    doors: Vec<(OwnedFd, SocketAddr)>,
    folder: tempfile::TempDir,
    reloads: AtomicUsize,
}

/// Resources that a proxy holds when there is no work.
#[derive(Clone, Default, Debug)]
pub(super) struct Rest {
    pub(super) processes: usize,
    pub(super) descriptors: usize,
    pub(super) sessions: u64,
    pub(super) resident_bytes: u64,
    /// Memory of compressed bodies, by the proxy's own count.
    pub(super) bodies_bytes: u64,
}

impl Proxy {
    /// Starts a master with a worker's process, and waits until it serves.
    pub(super) fn start(program: &Path, is_terse: bool, origins: &[SocketAddr]) -> Result<Proxy> {
        let folder = tempfile::Builder::new().prefix("terse-soak-").tempdir()?;
        secure::write_certificate(&folder.path().join("site.pem"))?;
        let doors = (0..DOORS).map(|_| reserved()).collect::<Result<Vec<_>>>()?;
        let mut text = CONFIG.replace("${CODINGS}", if is_terse { "zstd br gzip" } else { "gzip" });
        text = text.replace("${SOCKET}", &folder.path().join(SOCKET).display().to_string());
        let names = ["${WEB}", "${SECURE}", "${CACHED}", "${PASS}"];
        for (name, address) in
            names.iter().zip(doors.iter().map(|(_, address)| address)).chain(["${ONE}", "${TWO}"].iter().zip(origins))
        {
            text = text.replace(name, &address.to_string());
        }
        fs::write(folder.path().join("proxy.cfg"), text)?;
        let log = fs::File::create(folder.path().join(LOG))?;
        let mut command = Command::new(program);
        command.args(["-W", "-db", "-f", "proxy.cfg"]).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let name = if is_terse { "terse" } else { "haproxy" };
        let mut proxy = Proxy { program: Program::start(command, None)?, name, doors, folder, reloads: AtomicUsize::new(0) };
        let is_ready = wait_until(PATIENCE, || proxy.command("show info").is_ok() || proxy.program.ended().is_some());
        if !is_ready || proxy.program.ended().is_some() {
            bail!("{} does not serve: {}", program.display(), proxy.said());
        }
        Ok(proxy)
    }

    /// Its column.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// True for the proxy that is judged.
    pub(super) fn is_terse(&self) -> bool {
        self.name == "terse"
    }

    /// Number of reloads.
    pub(super) fn reloads(&self) -> usize {
        self.reloads.load(Relaxed)
    }

    /// Address of a listener.
    pub(super) fn address(&self, door: Door) -> SocketAddr {
        self.doors[door as usize].1
    }

    /// Answer of the stats socket.
    pub(super) fn command(&self, line: &str) -> Result<String> {
        let mut socket = UnixStream::connect(self.folder.path().join(SOCKET)).context("the stats socket")?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.write_all(format!("{line}\n").as_bytes())?;
        let mut text = String::new();
        socket.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Exchanges the worker's process for another one.
    pub(super) fn reload(&self) -> Result<()> {
        let master = self.program.pid();
        let former: Vec<u32> = tree::pids(master).into_iter().skip(1).collect();
        signal(master, Signal::USR2);
        // The former one may still have work; that it ends at all is seen when there is none.
        let is_new = || tree::pids(master).iter().skip(1).any(|pid| !former.contains(pid));
        if !wait_until(PATIENCE, is_new) {
            bail!("no new process: {}", self.said());
        }
        self.reloads.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Resident bytes of all its processes.
    pub(super) fn resident_bytes(&self) -> u64 {
        tree::pids(self.program.pid()).into_iter().map(resident_bytes).sum()
    }

    /// Resources that it holds now.
    pub(super) fn rest(&self) -> Result<Rest> {
        let pids = tree::pids(self.program.pid());
        let table = self.command("show stat")?;
        Ok(Rest {
            processes: pids.len(),
            descriptors: pids.iter().map(|pid| descriptors(*pid)).sum(),
            sessions: sessions(&table),
            resident_bytes: pids.into_iter().map(resident_bytes).sum(),
            bodies_bytes: if self.is_terse() { bodies_bytes(&self.command("show compression")?) } else { 0 },
        })
    }

    /// Resources that it holds once it has been reloaded, before there was any work. Those that a process opens once and keeps are
    /// not left over.
    pub(super) fn warm(&self) -> Result<Rest> {
        let first = self.settled()?;
        self.reload()?;
        if !wait_until(PATIENCE, || self.rest().is_ok_and(|rest| rest.processes <= first.processes)) {
            bail!("the former process stays: {}", self.said());
        }
        self.settled()
    }

    /// Resources that it holds now, without work: the least of some looks, since checks of servers come and go.
    pub(super) fn settled(&self) -> Result<Rest> {
        let mut least = self.rest()?;
        for _ in 0..LOOKS {
            std::thread::park_timeout(Duration::from_millis(50));
            let rest = self.rest()?;
            least.descriptors = least.descriptors.min(rest.descriptors);
            least.resident_bytes = rest.resident_bytes;
        }
        Ok(least)
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.path().join(LOG)).unwrap_or_default()).trim().to_owned()
    }
}

impl Rest {
    /// More than there can be.
    pub(super) fn all() -> Rest {
        Rest { processes: usize::MAX, descriptors: usize::MAX, sessions: u64::MAX, ..Rest::default() }
    }

    /// Takes the lower figures of an earlier look: checks of servers and looks of ours come and go.
    pub(super) fn at_most(&mut self, earlier: &Rest) {
        self.processes = self.processes.min(earlier.processes);
        self.descriptors = self.descriptors.min(earlier.descriptors);
        self.sessions = self.sessions.min(earlier.sessions);
    }

    /// Messages about resources that are more than before, and about memory beyond twice a rival's and that of bodies.
    pub(super) fn left_over(&self, before: &Rest, beside: Option<u64>) -> Vec<String> {
        let mut left = Vec::new();
        if self.processes > before.processes {
            left.push(format!("{} processes more than before", self.processes - before.processes));
        }
        if self.descriptors > before.descriptors {
            left.push(format!("{} descriptors more than before", self.descriptors - before.descriptors));
        }
        if self.sessions > 0 {
            left.push(format!("{} sessions", self.sessions));
        }
        let most = beside.map(|beside| MOST_TIMES * beside + self.bodies_bytes);
        if let Some(most) = most.filter(|most| self.resident_bytes > *most) {
            let megabytes = |bytes: u64| bytes as f64 / 1e6;
            left.push(format!("{:.1} MB resident, of at most {:.1}", megabytes(self.resident_bytes), megabytes(most)));
        }
        left
    }
}

/// A port of 127.0.0.1 that no other program gets while the socket lives, except one that sets SO_REUSEPORT.
fn reserved() -> Result<(OwnedFd, SocketAddr)> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok((socket, address))
}

fn resident_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |entries| entries.count())
}

/// Sessions, and requests that wait, in all rows of `show stat`.
fn sessions(table: &str) -> u64 {
    let mut lines = table.lines();
    let names: Vec<_> = lines.next().unwrap_or_default().trim_start_matches("# ").split(',').collect();
    let places: Vec<_> = (0..names.len()).filter(|at| matches!(names[*at], "scur" | "qcur")).collect();
    let count = |line: &str| -> u64 {
        let cells: Vec<_> = line.split(',').collect();
        places.iter().filter_map(|at| cells.get(*at)?.parse::<u64>().ok()).sum()
    };
    lines.map(count).sum()
}

/// Bytes of the memories of bodies, of `show compression`.
fn bodies_bytes(said: &str) -> u64 {
    let rows = said.lines().skip_while(|line| !line.starts_with("# memory")).skip(1).take_while(|line| !line.is_empty());
    rows.filter_map(|row| row.split_whitespace().nth(2)?.parse::<u64>().ok()).sum()
}

const CONFIG: &str = include_str!("proxy.cfg");
const DOORS: usize = 4;
const SOCKET: &str = "stats.sock";
const LOG: &str = "log";
const PATIENCE: Duration = Duration::from_secs(30);

/// Looks before there is work.
const LOOKS: usize = 20;

/// Bound on a proxy's memory, as a multiple of HAProxy's.
const MOST_TIMES: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read() {
        let table = "# pxname,svname,qcur,qmax,scur,smax\nweb,FRONTEND,,,2,9\norigin,one,1,4,3,9\n";
        assert_eq!(sessions(table), 6);
        let said = "# jobs done\nthreads 3\n\n# memory limit bytes bodies\ncommon 64 12 1\nown 64 30 1\n\n# else a b\nx 1 7\n";
        assert_eq!(bodies_bytes(said), 42);
        assert!(resident_bytes(std::process::id()) > 1_000_000 && descriptors(std::process::id()) > 2);
    }

    #[test]
    fn what_is_left_over_is_named() {
        let before = Rest { processes: 2, descriptors: 20, sessions: 0, resident_bytes: 5, bodies_bytes: 0 };
        let after = Rest { descriptors: 22, sessions: 1, resident_bytes: 30_000_000, bodies_bytes: 10_000_000, ..before.clone() };
        assert_eq!(before.left_over(&before, Some(5)), Vec::<String>::new());
        assert_eq!(after.left_over(&before, Some(10_000_000)), ["2 descriptors more than before", "1 sessions"]);
        let left = after.left_over(&before, Some(9_000_000));
        assert_eq!(left.last().map(String::as_str), Some("30.0 MB resident, of at most 28.0"));
    }
}
