//! What `global` says about stats sockets.

use crate::page::Link;
use std::time::Duration;
use terse_config::{Config, Place, Setting};
use terse_proxy::settings::BindSettings;

/// What `global` says about stats sockets.
#[derive(Clone, Default, Debug)]
pub struct AdminSettings {
    /// `stats socket` lines: one entry for each address.
    pub sockets: Vec<StatsSocket>,
    /// `stats timeout`.
    pub timeout: Option<Duration>,
    /// `stats maxconn`.
    pub maxconn: Option<usize>,
    /// `stats-file`, and where that stands.
    pub stats_file: Option<(String, Place)>,
    /// What leads from statistics pages to the [`crate::Context`].
    pub link: Link,
}

impl AdminSettings {
    /// Takes what a configuration says about stats sockets and pages out of it.
    pub fn take(config: &mut Config) -> AdminSettings {
        let settings: AdminSettings = config.global.settings.take().unwrap_or_default();
        AdminSettings { link: config.shared.take().unwrap_or_default(), ..settings }
    }

    /// How long a client may be silent, and how long it may leave an answer unread: `stats timeout`, 10 s.
    pub fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// How many clients all sockets have at a time: `stats maxconn`, 10. The others wait in the kernel.
    pub fn maxconn(&self) -> usize {
        self.maxconn.unwrap_or(DEFAULT_MAXCONN)
    }
}

impl Setting for AdminSettings {
    fn inherit(&self) -> AdminSettings {
        self.clone()
    }
}

/// An address of a `stats socket` line.
#[derive(Clone, Debug)]
pub struct StatsSocket {
    /// The address, and what can be said about it as on a `bind` line.
    pub bind: BindSettings,
    /// `level`: what its clients may do.
    pub level: Level,
    /// `severity-output`: how its messages say how grave they are.
    pub severity: SeverityForm,
    /// `expose-fd listeners`: a process that takes this one's place may ask here for what it listens on.
    pub exposes_listeners: bool,
}

impl StatsSocket {
    /// The address as lists show it: a path with its family before it.
    pub fn address(&self) -> String {
        let address = &self.bind.address;
        if address.starts_with('/') { format!("unix@{address}") } else { address.clone() }
    }
}

/// What a client may do. The higher include the lower.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Level {
    /// Look at what is no secret.
    User,
    /// Look at everything, and clear peaks.
    #[default]
    Operator,
    /// Everything.
    Admin,
}

impl Level {
    /// The configuration's word.
    pub const fn word(self) -> &'static str {
        match self {
            Level::User => "user",
            Level::Operator => "operator",
            Level::Admin => "admin",
        }
    }

    /// The level of that word.
    pub fn of_word(word: &str) -> Option<Level> {
        [Level::User, Level::Operator, Level::Admin].into_iter().find(|level| level.word() == word)
    }
}

/// How messages say how grave they are.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SeverityForm {
    /// They do not.
    #[default]
    None,
    /// `[3]: `, as syslog counts.
    Number,
    /// `[err]: `
    Text,
}

impl SeverityForm {
    /// The form of a word of the configuration or of a command.
    pub fn of_word(word: &str) -> Option<SeverityForm> {
        match word {
            "none" => Some(SeverityForm::None),
            "number" => Some(SeverityForm::Number),
            "string" => Some(SeverityForm::Text),
            _ => None,
        }
    }
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_MAXCONN: usize = 10;
