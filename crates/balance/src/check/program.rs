//! Checks by a program (`option external-check`): it is started for each check, and its exit status decides the
//! outcome.
//!
//! The program gets nothing of this process: no descriptor, no environment but the description of the server. It has
//! its own process group, which is ended with it. Only `external-check` in `global` lets anything be started. A server
//! has one program at a time: while one that was ended still hangs in the kernel, checks find no turn and time out.

use super::attempt::Limits;
use super::running::Running;
use super::{CheckStatus, LastCheck, Surroundings};
use crate::address::Address;
use crate::exhaustion::{EXHAUSTION, Purpose};
use crate::farm::Farm;
use crate::server::Server;
use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use terse_config::{Place, Setting};
use terse_message::Protocol;
use tokio::time::{Instant, timeout_at};

/// `external-check` of `global`, wherever it is in the configuration.
#[derive(Clone, Default, Debug)]
pub struct Programs(Arc<Said>);

#[derive(Default, Debug)]
struct Said {
    allowed: AtomicBool,
    keeps_environment: AtomicBool,
}

impl Programs {
    /// Lets programs be started, with the environment of this process or without.
    pub fn allow(&self, keeps_environment: bool) {
        self.0.allowed.store(true, Relaxed);
        self.0.keeps_environment.store(keeps_environment, Relaxed);
    }
}

impl Setting for Programs {
    fn inherit(&self) -> Programs {
        self.clone()
    }
}

/// The program that checks servers.
#[derive(Clone, Default, Debug)]
pub struct Program {
    /// `external-check command`
    pub command: Option<Arc<str>>,
    /// `external-check path`: PATH.
    pub path: Option<Arc<str>>,
    /// Place of `option external-check` in the configuration.
    pub place: Option<Place>,
    /// Permission to start it.
    pub programs: Programs,
}

impl Program {
    /// Missing setting without which it cannot start, and the place to report.
    pub fn fault(&self) -> Option<(&Place, &'static str)> {
        let place = self.place.as_ref()?;
        match &self.command {
            None => Some((place, "'option external-check' names no program: add 'external-check command <file>'")),
            Some(_) if !self.programs.0.allowed.load(Relaxed) => Some((
                place,
                "'option external-check' starts programs, and nobody has allowed that: add 'external-check' to 'global'",
            )),
            Some(_) => None,
        }
    }
}

/// Address and mode of a backend for clients.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Entrance {
    /// `mode http`
    pub is_http: bool,
    /// The first address of a `listen` section.
    pub address: Option<String>,
    /// Port of that address; `None` for a socket of the file system.
    pub port: Option<String>,
}

/// Checks a server. `None`: this process has no descriptor left for it, which is no result about the server.
pub(super) async fn attempt(
    program: &Program,
    farm: &Farm,
    server: &Server,
    limits: Limits,
    surroundings: &dyn Surroundings,
) -> Option<LastCheck> {
    let started = Instant::now();
    let deadline = started + limits.answer.unwrap_or(limits.whole).min(limits.whole);
    let told = |status, code, info: String| LastCheck { status, code, info, duration: started.elapsed() };
    if let Some((_, fault)) = program.fault() {
        return Some(told(CheckStatus::ProgramError, 0, fault.into()));
    }
    // A program that hangs in the kernel keeps its turn.
    let outcome = timeout_at(deadline, async {
        let turn = server.program_turn().await.map_err(io::Error::other)?;
        let mut command = command(program, farm, server, surroundings);
        Running::start(move || command.spawn(), turn)?.ended().await
    });
    Some(match outcome.await {
        Err(_) => told(CheckStatus::ProgramTimeout, 0, String::new()),
        Ok(Err(error)) if EXHAUSTION.note(&error, Purpose::Check) => return None,
        Ok(Err(error)) => told(CheckStatus::ProgramError, 0, super::stream::described(&error)),
        Ok(Ok(status)) if status.success() => told(CheckStatus::ProgramOk, 0, String::new()),
        Ok(Ok(status)) => {
            let info = status.signal().map(|signal| format!("ended by signal {signal}")).unwrap_or_default();
            told(CheckStatus::ProgramError, u16::try_from(status.code().unwrap_or_default()).unwrap_or_default(), info)
        }
    })
}

/// Command for a server.
fn command(program: &Program, farm: &Farm, server: &Server, surroundings: &dyn Surroundings) -> Command {
    let name = program.command.as_deref().unwrap_or_default();
    let mut command = Command::new(name);
    if !program.programs.0.keeps_environment.load(Relaxed) {
        command.env_clear();
    }
    let (address, port) = match &*server.address() {
        Address::Ip(address) => (address.ip().to_string(), Some(address.port().to_string())),
        Address::AsAsked(to) => (to.ip.to_string(), Some(to.fixed_port().unwrap_or(0).to_string())),
        Address::Unix(path) => (path.display().to_string(), None),
        Address::Abstract(name) => (format!("@{}", name.escape_ascii()), None),
    };
    let Entrance { is_http, address: front, port: front_port } = surroundings.entrance(farm);
    let text = |word: &Option<String>| word.clone().unwrap_or_else(|| "NOT_USED".into());
    command.args([text(&front), text(&front_port), address.clone(), text(&port)]);
    let settings = server.settings();
    let protocol = match settings.protocol {
        Some(Protocol::Http2) => "h2",
        Some(Protocol::Http1) => "h1",
        None if is_http => "h1",
        None => "tcp",
    };
    for (name, value) in [
        ("PATH", program.path.as_deref().unwrap_or_default().to_owned()),
        ("HAPROXY_PROXY_NAME", farm.name().to_owned()),
        ("HAPROXY_PROXY_ID", farm.id().to_string()),
        ("HAPROXY_PROXY_ADDR", front.unwrap_or_default()),
        ("HAPROXY_PROXY_PORT", front_port.unwrap_or_default()),
        ("HAPROXY_SERVER_NAME", server.name().to_string()),
        ("HAPROXY_SERVER_ID", server.id().to_string()),
        ("HAPROXY_SERVER_ADDR", address),
        ("HAPROXY_SERVER_PORT", port.unwrap_or_default()),
        ("HAPROXY_SERVER_MAXCONN", settings.maxconn.to_string()),
        ("HAPROXY_SERVER_CURCONN", server.served().to_string()),
        ("HAPROXY_SERVER_SSL", u8::from(settings.tls.enabled).to_string()),
        ("HAPROXY_SERVER_PROTO", protocol.to_owned()),
    ] {
        command.env(name, value);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    command
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Nowhere, farm};
    use std::time::Duration;

    /// Outcome of a program that gets the arguments `NOT_USED NOT_USED 127.0.0.1 1`.
    async fn checked(lines: &str, allowed: bool, whole: Duration) -> LastCheck {
        let farm = farm(&format!("option external-check\n{lines}\nserver s 127.0.0.1:1 check"));
        let program = farm.script.program.as_ref().unwrap();
        if allowed {
            program.programs.allow(false);
        }
        let limits = Limits { whole, connect: None, answer: None };
        attempt(program, &farm, &farm.servers()[0], limits, &Nowhere).await.expect("a descriptor")
    }

    #[tokio::test]
    async fn statuses_speak_for_a_server() {
        let long = Duration::from_secs(20);
        for (lines, status, code, info) in [
            ("external-check command /bin/true", CheckStatus::ProgramOk, 0, ""),
            ("external-check command true\nexternal-check path /nowhere:/usr/bin:/bin", CheckStatus::ProgramOk, 0, ""),
            ("external-check command /bin/false", CheckStatus::ProgramError, 1, ""),
            // There is no file of the name NOT_USED.
            ("external-check command /bin/sh", CheckStatus::ProgramError, 2, ""),
            ("external-check command /nowhere", CheckStatus::ProgramError, 0, "No such file"),
        ] {
            let found = checked(lines, true, long).await;
            // Shells exit with 2 or 127 for a missing file.
            let code_fits = found.code == code || (code == 2 && found.code == 127);
            assert!(found.status == status && code_fits && found.info.contains(info), "{lines}: {found:?}");
        }
        let found = checked("external-check command /bin/true", false, long).await;
        assert!(found.status == CheckStatus::ProgramError && found.info.contains("add 'external-check' to 'global'"), "{found:?}");
        assert!(checked("", true, long).await.info.contains("add 'external-check command <file>'"));
    }

    #[tokio::test]
    async fn programs_that_take_too_long_are_ended() {
        let started = Instant::now();
        let found = checked("external-check command /usr/bin/yes", true, Duration::from_millis(20)).await;
        assert_eq!((found.status, found.code), (CheckStatus::ProgramTimeout, 0));
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
