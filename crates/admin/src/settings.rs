//! Settings of stats sockets in `global`.

use crate::page::Link;
use std::time::Duration;
use terse_config::{Config, Place, Setting};
use terse_proxy::settings::BindSettings;

/// Settings of stats sockets in `global`.
#[derive(Clone, Default, Debug)]
pub struct AdminSettings {
    /// `stats socket` lines: an entry for each address.
    pub sockets: Vec<StatsSocket>,
    /// `stats timeout`.
    pub timeout: Option<Duration>,
    /// `stats maxconn`.
    pub maxconn: Option<usize>,
    /// `stats-file`, and its place in the configuration.
    pub stats_file: Option<(String, Place)>,
    /// Link from statistics pages to the [`crate::Context`].
    pub link: Link,
}

impl AdminSettings {
    /// Takes the settings of stats sockets and pages out of a configuration.
    pub fn take(config: &mut Config) -> AdminSettings {
        let settings: AdminSettings = config.global.settings.take().unwrap_or_default();
        AdminSettings { link: config.shared.take().unwrap_or_default(), ..settings }
    }

    /// Limit of a client's idle time, and of the time that it leaves an answer unread: `stats timeout`, 10 s.
    pub fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// Limit of concurrent clients of all sockets: `stats maxconn`, 10. The others wait in the kernel.
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
    /// The address, and its settings as on a `bind` line.
    pub bind: BindSettings,
    /// `level`: permission level of its clients.
    pub level: Level,
    /// `severity-output`: form of the severity of its messages.
    pub severity: SeverityForm,
    /// `expose-fd listeners`: a process that takes this one's place may ask here for the listening sockets.
    pub exposes_listeners: bool,
}

impl StatsSocket {
    /// Address as lists show it: a path with its family before it.
    pub fn address(&self) -> String {
        let address = &self.bind.address;
        if address.starts_with('/') { format!("unix@{address}") } else { address.clone() }
    }
}

/// Permission level of a client. The higher include the lower.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Level {
    /// Public figures.
    User,
    /// All figures, and clearing of peaks.
    #[default]
    Operator,
    /// Everything.
    Admin,
}

impl Level {
    /// Argument in the configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Level::User => "user",
            Level::Operator => "operator",
            Level::Admin => "admin",
        }
    }

    /// The level of that argument.
    pub fn of_word(word: &str) -> Option<Level> {
        [Level::User, Level::Operator, Level::Admin].into_iter().find(|level| level.word() == word)
    }
}

/// Form of the severity of messages.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SeverityForm {
    /// No severity.
    #[default]
    None,
    /// `[3]: `, in syslog's numbers.
    Number,
    /// `[err]: `
    Text,
}

impl SeverityForm {
    /// The form of an argument of the configuration or of a command.
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
