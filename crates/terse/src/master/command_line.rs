//! The sockets of `-S`: read like `stats socket` lines, opened like them, and the master's for as long as it lives.

use super::renewal::{self, Descriptors};
use crate::args::Arguments;
use crate::configuration::Configuration;
use crate::listening::{for_master, listener, serving};
use crate::sockets::{Pool, Sockets};
use crate::start::{Reasons, because};
use crate::version;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use terse_admin::master::{Office, Overseer};
use terse_admin::{AdminSettings, StatsSocket};
use terse_config::{Diagnostics, Environment, Loader, Settings, Source};
use terse_proxy::access::Listener;

/// Sockets that listen, each with the number of its `-S`.
pub type Listeners = Vec<(usize, Listener)>;

/// The master's command line, before a task answers on it.
pub struct CommandLine {
    sockets: Vec<StatsSocket>,
    listeners: Listeners,
    timeout: Duration,
    maxconn: usize,
    started: Instant,
}

impl CommandLine {
    /// Opens the sockets that `-S` names. `stats timeout` and `stats maxconn` apply here too.
    ///
    /// # Errors
    /// Values that cannot be parsed, sockets that cannot be opened.
    pub fn open(arguments: &Arguments, configuration: &Configuration, started: Instant) -> Result<CommandLine, Reasons> {
        let read: Vec<_> = arguments.master_sockets.iter().map(|text| read(text)).collect();
        let mut reasons: Reasons = read.iter().filter_map(|read| read.as_ref().err()).cloned().collect();
        let sockets: Vec<StatsSocket> = read.into_iter().flatten().collect();
        let mut diagnostics = Diagnostics::default();
        let wanted = for_master(&sockets, &configuration.process, arguments, &mut diagnostics);
        reasons.extend(said(&diagnostics).map(|reason| format!("-S: {reason}")));
        if !reasons.is_empty() {
            return Err(reasons);
        }
        let opened = Sockets::open(&wanted, &mut Pool::default());
        let mut opened = opened.map_err(|refusals| refusals.iter().map(ToString::to_string).collect::<Reasons>())?;
        opened.publish().map_err(|(path, error)| vec![format!("Cannot rename to {}: {error}", path.display())])?;
        let listeners = opened.list.into_iter().map(|listening| (listening.line, listener(listening))).collect();
        let admin: &AdminSettings = &configuration.admin;
        Ok(CommandLine { sockets, listeners, timeout: admin.timeout(), maxconn: admin.maxconn(), started })
    }

    /// Returns the command line of the program that this one replaces.
    ///
    /// # Errors
    /// Values that cannot be parsed, sockets that are not open any more.
    pub fn restored(arguments: &Arguments, kept: &Kept) -> Result<CommandLine, Reasons> {
        let sockets =
            arguments.master_sockets.iter().map(|text| read(text)).collect::<Result<_, _>>().map_err(|reason| vec![reason])?;
        let restored = kept.listeners.iter().map(|(line, number)| Ok((*line, serving(renewal::adopt(*number)?))));
        let listeners = restored.collect::<io::Result<_>>().map_err(because("The master's sockets are lost"))?;
        let age = Duration::from_millis(kept.age_ms);
        Ok(CommandLine {
            sockets,
            listeners,
            timeout: Duration::from_millis(kept.timeout_ms),
            maxconn: kept.maxconn,
            started: Instant::now().checked_sub(age).unwrap_or_else(Instant::now),
        })
    }

    /// Returns the sockets, the state that their clients see, and what a next program needs of it.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn into_parts(self, overseer: Arc<dyn Overseer>) -> io::Result<(Listeners, Office, Legacy)> {
        let CommandLine { sockets, listeners, timeout, maxconn, started } = self;
        let duplicate = |listener: &Listener| -> io::Result<OwnedFd> {
            Ok(match listener {
                Listener::Tcp(listener) => listener.try_clone()?.into(),
                Listener::Unix(listener) => listener.try_clone()?.into(),
            })
        };
        let duplicates = listeners.iter().map(|(line, listener)| Ok((*line, duplicate(listener)?))).collect::<io::Result<_>>()?;
        let conversations = Arc::default();
        let legacy = Legacy { listeners: duplicates, timeout, maxconn, started, conversations: Arc::clone(&conversations) };
        let (version, listed, pid) = (version::LANGUAGE.to_owned(), version::in_lists(), std::process::id());
        Ok((listeners, Office { version, listed, pid, started, sockets, timeout, maxconn, conversations, overseer }, legacy))
    }
}

/// State of the command line that a next program needs.
#[derive(Debug)]
pub struct Legacy {
    listeners: Vec<(usize, OwnedFd)>,
    timeout: Duration,
    maxconn: usize,
    started: Instant,
    conversations: Arc<()>,
}

impl Legacy {
    /// True if no client is connected.
    pub fn is_quiet(&self) -> bool {
        // The references of this value and of the office.
        Arc::strong_count(&self.conversations) <= 2
    }

    /// Returns the state to write down; the sockets are kept open.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn kept(&self, descriptors: &mut Descriptors) -> io::Result<Kept> {
        let listeners = self.listeners.iter().map(|(line, socket)| Ok((*line, descriptors.keep(socket.try_clone()?)?)));
        Ok(Kept {
            timeout_ms: self.timeout.as_millis().try_into().unwrap_or(u64::MAX),
            maxconn: self.maxconn,
            age_ms: self.started.elapsed().as_millis().try_into().unwrap_or(u64::MAX),
            listeners: listeners.collect::<io::Result<_>>()?,
        })
    }
}

/// The command line, as one program leaves it to the next.
#[derive(Serialize, Deserialize, Debug)]
pub struct Kept {
    /// `stats timeout`, in milliseconds.
    pub timeout_ms: u64,
    /// `stats maxconn`.
    pub maxconn: usize,
    /// Milliseconds since the master's start.
    pub age_ms: u64,
    /// Descriptors, each with the number of its `-S`.
    pub listeners: Vec<(usize, RawFd)>,
}

/// Parses a value of `-S`: the arguments of a `stats socket` line with commas for blanks. Its level is admin unless the value sets
/// another.
fn read(text: &str) -> Result<StatsSocket, String> {
    let refused = |reason: &str| Err(format!("-S {text}: {reason}"));
    if text.contains(['\n', '\r', '\0']) {
        return refused("it is more than a line");
    }
    let quoted = |word: &str| format!(" '{}'", word.replace('\'', r"'\''"));
    let mut words = text.split(',').filter(|word| !word.is_empty()).map(quoted);
    let Some(address) = words.next() else { return refused("it names no address") };
    let line = format!("global\n stats socket{address} level admin{}\n", words.collect::<String>());
    let loader = Loader { tables: terse_admin::KEYWORDS.to_vec(), environment: Environment::default() };
    let (mut config, diagnostics) = loader.load(&[Source { name: "-S".into(), bytes: line.into_bytes() }], Settings::default());
    if let Some(reason) = said(&diagnostics).next() {
        return refused(reason.strip_prefix("'stats socket' : ").unwrap_or(&reason));
    }
    match AdminSettings::take(&mut config).sockets.pop() {
        Some(socket) if socket.exposes_listeners => refused("'expose-fd': the master hands sockets to its workers by itself"),
        Some(socket) => Ok(socket),
        None => refused("it names no address"),
    }
}

fn said(diagnostics: &Diagnostics) -> impl Iterator<Item = String> {
    diagnostics.iter().map(|diagnostic| match &diagnostic.hint {
        Some(hint) => format!("{}; {hint}", diagnostic.reason),
        None => diagnostic.reason.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use terse_admin::Level;

    #[test]
    fn options_stand_behind_commas() {
        let socket = read("/run/it's here,,mode,600,level,operator,severity-output,number").unwrap();
        assert_eq!(
            (socket.address(), socket.bind.mode, socket.level),
            ("unix@/run/it's here".into(), Some(0o600), Level::Operator)
        );
        for address in ["fd@7", "127.0.0.1:1234", "abns@master"] {
            let socket = read(address).unwrap();
            assert_eq!((socket.address(), socket.level), (address.to_owned(), Level::Admin));
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("", "address"),
            (",", "address"),
            ("/x,level,root", "'root' is not"),
            ("/x,nonsense", "nonsense"),
            ("/x,expose-fd,listeners", "by itself"),
            ("/x\nlog :1", "more than a line"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(&format!("-S {text}: ")) && error.contains(expected), "{error}");
        }
    }
}
