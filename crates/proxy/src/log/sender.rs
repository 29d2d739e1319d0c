//! A worker's way out for log lines.
//!
//! Its sockets are not connected: one serves all targets of its family, a syslog server that is not there sends no error back to
//! it, and a daemon that was restarted is found again by its path with the next line.

use super::clock::Stamp;
use super::header::{self, Speaker};
use super::journal::{Journal, Outlet, Way};
use super::level::Level;
use super::sinks::Sinks;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with, sockopt};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One worker's sockets and buffers. To be made in the process that sends: lines carry its number.
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

    /// Sends a line to all targets that want it. Never waits.
    pub fn send(&mut self, journal: &Journal, level: Level, body: &[u8]) {
        self.send_structured(journal, level, b"", body);
    }

    /// The same, with the structured data that lines of RFC 5424 carry: `[id@1 name="value"]`.
    pub fn send_structured(&mut self, journal: &Journal, level: Level, structured_data: &[u8], body: &[u8]) {
        // The clock is read once, and not at all where no header shows it.
        let mut now = None;
        for outlet in &journal.outlets {
            let Some(priority) = outlet.admits(level) else { continue };
            if outlet.form.has_time() && now.is_none() {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
                self.stamp.turn_to(since);
                now = Some(since);
            }
            self.line.clear();
            let speaker = Speaker { host: journal.host.as_deref(), tag: &journal.tag, pid: &self.pid };
            header::write(&mut self.line, outlet.form, priority, &self.stamp, speaker, structured_data);
            finish(&mut self.line, body, outlet.len);
            self.deliver(outlet);
        }
    }

    /// Hands the finished line over, or counts it as dropped.
    fn deliver(&mut self, outlet: &Outlet) {
        let sent = match &outlet.way {
            Way::Descriptor(writer) => {
                writer.push(&self.line);
                return;
            }
            Way::Udp(address) => self.sockets.send_udp(&self.line, address),
            Way::Unix(address) => self.sockets.send_unix(&self.line, address),
        };
        if sent.is_err() {
            self.sinks.count_dropped();
        }
    }
}

/// Appends the body and the line feed, within `len` bytes in all.
fn finish(line: &mut Vec<u8>, body: &[u8], len: usize) {
    let room = len.saturating_sub(1);
    let end = body.iter().rposition(|byte| !matches!(byte, b'\n' | 0)).map_or(0, |last| last + 1);
    line.extend_from_slice(body.get(..end.min(room)).unwrap_or_default());
    line.truncate(room);
    line.push(b'\n');
}

/// One socket of each family, opened when it is first needed.
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

/// The socket of a family. Nothing is ever read from it, so it keeps no room for what is sent to it.
fn opened(slot: &mut Option<OwnedFd>, family: AddressFamily) -> rustix::io::Result<&OwnedFd> {
    match slot {
        Some(socket) => Ok(socket),
        None => {
            let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
            sockopt::set_socket_recv_buffer_size(&socket, 0)?;
            Ok(slot.insert(socket))
        }
    }
}

const FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
