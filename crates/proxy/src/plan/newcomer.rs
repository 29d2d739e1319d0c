//! Servers that the stats socket adds to a plan.
//!
//! The plan itself stays as it is: a backend's servers lie beside it, in its farm ([`terse_balance::membership`]).

use super::introduction::{self, Surroundings};
use super::{Backend, Plan};
use crate::log::FormatText;
use crate::settings::Mode;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use terse_balance::keywords::base::Base;
use terse_balance::keywords::server;
use terse_balance::settings::ObservedLayer;
use terse_balance::{Farm, NotAdded, Server, ServerSettings};
use terse_config::{Diagnostic, Diagnostics, Environment, Place, Severity};
use terse_sample::Needs;
use terse_tls::{Connector, ServerTls};

impl Plan {
    /// Adds a server to a backend. `words`: the line's arguments, from the server's name on. Returns the remarks about it.
    /// Its address may use variables of the environment.
    ///
    /// # Errors
    /// The reason why it cannot be added, in HAProxy's words where it has some.
    pub fn add_server(&self, backend: &Arc<Backend>, words: &[String], environment: &Environment) -> Result<Vec<String>, String> {
        backend.takes_servers().map_err(|reason| format!("Backend does not support dynamic servers : {reason}."))?;
        let name = words.first().map(String::as_str).unwrap_or_default();
        if backend.farm.servers().iter().any(|server| **server.name() == *name) {
            return Err(NAME_TAKEN.into());
        }
        let place = Place { text: words.join(" ").into(), ..Place::nowhere() };
        let bases = |base: Option<Base<'_>>| match base {
            None => Ok(ServerSettings::default()),
            Some(base) => base.of(&self.backend_of(base, backend)?.farm),
        };
        let read = server::read_added(words, &place, &self.tls_defaults, environment, &bases);
        let (settings, remarks) = read.map_err(said)?;
        if settings.log.datagrams {
            return Err(format!("server '{name}' is reached over datagrams, which only 'mode log' sends"));
        }
        if let Some(guid) = &settings.guid
            && self.has_guid(&guid.name)
        {
            return Err(format!("'guid' : '{}' names something else already.", guid.name));
        }
        let leader = self.leader(&settings, backend)?;
        let mut diagnostics = Diagnostics::default();
        let introduction = {
            let surroundings =
                Surroundings { probe: &backend.farm.settings().probe, hop: backend.hop, mode: backend.mode, place: &place };
            let secure = |tls: &ServerTls, diagnostics: &mut Diagnostics| Connector::of_held(tls, &place, &self.vault, diagnostics);
            let mut compile = |text: &FormatText, diagnostics: &mut Diagnostics| {
                let format = self.language.format_of_stream(&text.text, Needs::REQUEST.or(Needs::SERVER));
                format.map_err(|reason| diagnostics.alert(&text.place, reason)).ok()
            };
            introduction::of(&settings, &surroundings, &secure, &mut compile, &mut diagnostics)
        };
        if diagnostics.worst() == Some(Severity::Alert) {
            let alerts = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Alert);
            return Err(alerts.map(text).collect::<Vec<_>>().join("\n"));
        }
        let observes = settings.observe.layer == Some(ObservedLayer::Responses);
        let added = backend.farm.enlist(settings, |server| introduction.give(server)).map_err(|refused| match refused {
            NotAdded::NameTaken => NAME_TAKEN.into(),
            NotAdded::NumberTaken(other) => format!("'id' : custom id already used by server '{other}'."),
        })?;
        backend.observes.fetch_or(observes, Relaxed);
        if let Some((farm, leader)) = leader {
            backend.farm.follow(&added, &leader, &farm, Instant::now());
        }
        Ok(remarks.into_iter().map(said).chain(diagnostics.iter().map(text)).collect())
    }

    /// Whether any object has that name of statistics.
    pub(super) fn has_guid(&self, name: &str) -> bool {
        let named = |guid: &Option<Arc<str>>| guid.as_deref() == Some(name);
        let server = |server: &Arc<Server>| server.settings().guid.as_ref().is_some_and(|guid| *guid.name == *name);
        self.frontends.iter().any(|front| named(&front.guid))
            || self.binds.iter().any(|bind| bind.settings.guid().as_deref() == Some(name))
            || self.backends.now().iter().any(|back| named(&back.guid) || back.farm.servers().iter().any(server))
    }

    /// The backend that a newcomer's `from` names.
    fn backend_of(&self, base: Base<'_>, own: &Arc<Backend>) -> Result<Arc<Backend>, String> {
        let Some(name) = base.backend() else { return Ok(own.clone()) };
        self.backends.now().named(name.as_bytes()).cloned().ok_or_else(|| base.no_backend())
    }

    /// The server whose state a newcomer is to take: a server of the configuration whose health is known.
    fn leader(&self, settings: &ServerSettings, backend: &Backend) -> Result<Option<Leader>, String> {
        let Some((track, _)) = &settings.track else { return Ok(None) };
        let (of, name) = track.rsplit_once('/').unwrap_or((&backend.name, track));
        let roll = self.backends.now();
        let Some(backend) = roll.named(of.as_bytes()) else {
            return Err(format!("unable to find required proxy '{of}' for tracking."));
        };
        let Some(leader) = backend.farm.servers().pick(|server| **server.name() == *name) else {
            return Err(format!("unable to find required server '{name}' for tracking."));
        };
        let settings = leader.settings();
        if leader.is_added() {
            return Err(format!("unable to use {of}/{name} for tracking as it is a dynamic server."));
        }
        if !settings.check.enabled && !settings.agent.enabled && settings.track.is_none() {
            return Err(format!("unable to use {of}/{name} for tracking as it does not have any check nor agent enabled."));
        }
        Ok(Some((backend.farm.clone(), leader.clone())))
    }
}

impl Backend {
    /// Whether servers can be added.
    ///
    /// # Errors
    /// The reason why not.
    pub fn takes_servers(&self) -> Result<(), String> {
        let of = || format!("{} '{}'", self.farm.kind(), self.name);
        if !self.farm.is_dynamic() {
            return Err(format!("{} uses a non dynamic load balancing method", of()));
        }
        if self.mode == Mode::Log {
            return Err(format!("{} uses mode log", of()));
        }
        Ok(())
    }
}

/// A server whose state another server takes, and its farm.
type Leader = (Arc<Farm>, Arc<Server>);

const NAME_TAKEN: &str = "Already exists a server with the same name in backend.";

fn said(fault: terse_config::Fault) -> String {
    match fault.hint {
        Some(hint) => format!("{} ({hint})", fault.reason),
        None => fault.reason,
    }
}

fn text(diagnostic: &Diagnostic) -> String {
    diagnostic.reason.clone()
}
