//! Notification of systemd, or of another supervisor that has set `NOTIFY_SOCKET`, about the state of the process (`sd_notify(3)`).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The way to the supervisor, opened while its path can still be reached.
#[derive(Debug, Default)]
pub struct Supervisor {
    socket: Option<UnixDatagram>,
}

impl Supervisor {
    /// Opens the socket that an environment variable names: a path, or an abstract name after `@`. A supervisor that cannot be
    /// reached counts as none.
    pub fn new(name: Option<&str>) -> Supervisor {
        let open = |name: &str| {
            let address = match name.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name)?,
                None => SocketAddr::from_pathname(name)?,
            };
            let socket = UnixDatagram::unbound()?;
            socket.connect_addr(&address)?;
            Ok::<_, std::io::Error>(socket)
        };
        Supervisor { socket: name.and_then(|name| open(name).ok()) }
    }

    /// The process serves.
    pub fn ready(&self) {
        self.tell(&format!("READY=1\nMAINPID={}\nSTATUS=Ready.\n", std::process::id()));
    }

    /// The process reads its configuration anew.
    pub fn reloading(&self) {
        let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
        let us = now.map_or(0, |now| std::time::Duration::from(now).as_micros());
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={us}\nSTATUS=Reloading Configuration.\n"));
    }

    /// Reports a failed reload: the process goes on as before.
    pub fn reload_failed(&self) {
        self.tell("READY=1\nSTATUS=Reload failed!\n");
    }

    /// The process has been told to stop.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=Stopping.\n");
    }

    fn tell(&self, text: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_ready() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let receiver = UnixDatagram::bind(&path).unwrap();
        Supervisor::new(path.to_str()).ready();
        let mut bytes = [0; 200];
        let length = receiver.recv(&mut bytes).unwrap();
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        assert_eq!(text, format!("READY=1\nMAINPID={}\nSTATUS=Ready.\n", std::process::id()));
    }

    #[test]
    fn a_reload_has_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let receiver = UnixDatagram::bind(&path).unwrap();
        Supervisor::new(path.to_str()).reloading();
        let mut bytes = [0; 200];
        let length = receiver.recv(&mut bytes).unwrap();
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        let us = text.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|rest| rest.split_once('\n')).unwrap().0;
        assert!(us.parse::<u64>().unwrap() > 0, "systemd takes Type=notify-reload with it only: {text}");
    }

    #[test]
    fn nobody_listens_nobody_is_told() {
        Supervisor::new(Some("/nonexistent/notify")).ready();
        Supervisor::new(None).stopping();
    }
}
