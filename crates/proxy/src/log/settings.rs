//! The settings of logs that a section's keywords make.

use super::formats::{self, FormatText};
use super::level::Level;
use super::origin::Steps;
use super::target::Target;
use std::sync::Arc;
use terse_config::{Place, Setting};

/// The log settings of a section. A proxy starts with all that its `defaults` hold; its own `log` lines are added to theirs.
#[derive(Clone, Default, Debug)]
pub struct LogSettings {
    /// The `log` lines, in order.
    pub lines: Vec<LogLine>,
    /// `log-tag`.
    pub tag: Option<String>,
    /// `log-send-hostname`, in `global`.
    pub host_name: Option<HostName>,
    /// Format of each transaction's line: `option httplog`, `option tcplog`, `log-format`.
    pub format: Option<TrafficFormat>,
    /// `log-format-sd`: the structured data of RFC 5424 lines.
    pub structured_data: Option<FormatText>,
    /// `error-log-format`: instead of `format` for connections that fail before there is a transaction.
    pub error_format: Option<FormatText>,
    /// `unique-id-format`.
    pub unique_id_format: Option<FormatText>,
    /// `unique-id-header`: the name of the header that carries it to the server.
    pub unique_id_header: Option<String>,
    /// `log-steps`: the steps at which transactions are logged; without it, at their end alone.
    pub steps: Option<Steps>,
    /// `option dontlognull`: connections without a byte are not logged.
    pub dont_log_null: bool,
    /// `option dontlog-normal`: only errors, timeouts, retries, redispatches and statuses from 500 are logged.
    pub dont_log_normal: bool,
    /// `option log-separate-errors`: those are logged at level `err`.
    pub separate_errors: bool,
    /// `option logasap`: logged when the server's head has come, without waiting for the end.
    pub as_soon_as_possible: bool,
    /// `capture request header` and `declare capture request`, in order; a capture's index is its number.
    pub request_captures: Vec<Capture>,
    /// `capture response header` and `declare capture response`, in order.
    pub response_captures: Vec<Capture>,
    /// `capture cookie`.
    pub cookie_capture: Option<CookieCapture>,
}

impl Setting for LogSettings {
    fn inherit(&self) -> LogSettings {
        self.clone()
    }
}

impl LogSettings {
    /// The targets of the section's lines, each `log global` replaced by the lines of `global`, none of them twice.
    pub fn targets(&self, global: &LogSettings) -> Vec<Arc<Target>> {
        let mut targets: Vec<Arc<Target>> = Vec::new();
        for line in &self.lines {
            match line {
                LogLine::Target(target) => targets.push(Arc::clone(target)),
                LogLine::Global => {
                    for line in &global.lines {
                        if let LogLine::Target(target) = line
                            && !targets.iter().any(|other| Arc::ptr_eq(other, target))
                        {
                            targets.push(Arc::clone(target));
                        }
                    }
                }
            }
        }
        targets
    }

    /// The level that a transaction is logged at, when it is to be logged at all. `trouble`: an error, a timeout, a retry, a redispatch,
    /// or a status from 500.
    pub fn level(&self, trouble: bool) -> Option<Level> {
        match trouble {
            true if self.separate_errors => Some(Level::Error),
            false if self.dont_log_normal => None,
            _ => Some(Level::Info),
        }
    }

    /// The text to compile for transactions, when there is any. In `mode tcp` the HTTP formats fall back to the TCP formats;
    /// the second value is then the keyword to warn of. Without a format, each connection is logged when it is accepted, and
    /// each further request when it begins ([`super::CONNECT_HTTP_FORMAT`]).
    pub fn traffic_format(&self, http: bool) -> (Option<FormatText>, Option<&'static str>) {
        let Some(format) = &self.format else { return (None, None) };
        let built_in = |text: &str, place: &Place| Some(FormatText { text: text.as_bytes().to_vec(), place: place.clone() });
        match format {
            TrafficFormat::Custom(text) => (Some(text.clone()), None),
            TrafficFormat::Http { clf: false, place } if http => (built_in(formats::HTTP_FORMAT, place), None),
            TrafficFormat::Http { clf: true, place } if http => (built_in(formats::HTTP_CLF_FORMAT, place), None),
            TrafficFormat::Https { place } if http => (built_in(formats::HTTPS_FORMAT, place), None),
            TrafficFormat::Https { place } => (
                built_in(formats::TCP_FORMAT, place),
                Some("'option httpslog' not usable here (needs 'mode http'). Falling back to 'option tcplog'"),
            ),
            TrafficFormat::Http { clf: false, place } => (
                built_in(formats::TCP_FORMAT, place),
                Some("'option httplog' not usable here (needs 'mode http'). Falling back to 'option tcplog'"),
            ),
            TrafficFormat::Http { clf: true, place } => (
                built_in(formats::TCP_CLF_FORMAT, place),
                Some("'option httplog clf' not usable here (needs 'mode http'). Falling back to 'option tcplog clf'"),
            ),
            TrafficFormat::Tcp { clf: false, place } => (built_in(formats::TCP_FORMAT, place), None),
            TrafficFormat::Tcp { clf: true, place } => (built_in(formats::TCP_CLF_FORMAT, place), None),
        }
    }
}

/// A `log` line.
#[derive(Clone, Debug)]
pub enum LogLine {
    /// `log global`: the lines of the `global` section.
    Global,
    /// A target of its own.
    Target(Arc<Target>),
}

/// The host's name in lines of RFC 3164 and RFC 5424.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostName {
    /// The system's.
    System,
    /// The name in the configuration.
    Named(String),
}

/// Format of a transaction's line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TrafficFormat {
    /// `option httplog [clf]`.
    Http {
        /// The common log format of web servers.
        clf: bool,
        /// Place of the keyword in the configuration.
        place: Place,
    },
    /// `option httpslog`.
    Https {
        /// Place of the keyword in the configuration.
        place: Place,
    },
    /// `option tcplog [clf]`.
    Tcp {
        /// In the manner of the common log format.
        clf: bool,
        /// Place of the keyword in the configuration.
        place: Place,
    },
    /// `log-format`.
    Custom(FormatText),
}

impl TrafficFormat {
    /// The words that ask for it.
    pub fn name(&self) -> &'static str {
        match self {
            TrafficFormat::Https { .. } => "option httpslog",
            TrafficFormat::Http { clf: false, .. } => "option httplog",
            TrafficFormat::Http { clf: true, .. } => "option httplog clf",
            TrafficFormat::Tcp { clf: false, .. } => "option tcplog",
            TrafficFormat::Tcp { clf: true, .. } => "option tcplog clf",
            TrafficFormat::Custom(_) => "log-format",
        }
    }
}

/// A slot for a value that is kept of a transaction for its log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    /// The header whose last value fills it, in lower case; `None`: actions fill it (`declare capture`).
    pub header: Option<String>,
    /// The most bytes that are kept; the end is cut.
    pub len: usize,
}

/// `capture cookie`: the first cookie whose text begins with the prefix is kept, of the request and of the response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CookieCapture {
    /// Begin of `name=value`. With `=` at its end it is the whole name of a cookie.
    pub prefix: String,
    /// The most bytes that are kept of `name=value`.
    pub len: usize,
}

#[cfg(test)]
mod tests {
    use super::super::{Address, Facility};
    use super::*;

    fn place() -> Place {
        Place { file: "test".into(), line: 1, text: "".into(), span: 0..0 }
    }

    fn line(fd: i32) -> LogLine {
        LogLine::Target(Arc::new(Target {
            address: Address::Descriptor(fd),
            len: 1024,
            form: None,
            sampling: None,
            profile: None,
            facility: Facility::parse("local0").unwrap(),
            max_level: Level::Debug,
            min_level: Level::Emergency,
            place: place(),
        }))
    }

    #[test]
    fn global_lines_come_once_and_in_their_place() {
        let global = LogSettings { lines: vec![line(3), line(4)], ..LogSettings::default() };
        let proxy = LogSettings { lines: vec![line(5), LogLine::Global, LogLine::Global], ..LogSettings::default() };
        let shown: Vec<_> = proxy.inherit().targets(&global).iter().map(|target| target.address.to_string()).collect();
        assert_eq!(shown, ["fd@5", "fd@3", "fd@4"]);
        assert!(LogSettings::default().targets(&global).is_empty());
    }

    #[test]
    fn http_formats_fall_back_in_tcp_mode() {
        let text = |format: TrafficFormat, http| {
            let settings = LogSettings { format: Some(format), ..LogSettings::default() };
            let (text, warning) = settings.traffic_format(http);
            (String::from_utf8(text.unwrap().text).unwrap(), warning.is_some())
        };
        assert_eq!(text(TrafficFormat::Http { clf: false, place: place() }, true), (formats::HTTP_FORMAT.into(), false));
        assert_eq!(text(TrafficFormat::Http { clf: false, place: place() }, false), (formats::TCP_FORMAT.into(), true));
        assert_eq!(text(TrafficFormat::Http { clf: true, place: place() }, false), (formats::TCP_CLF_FORMAT.into(), true));
        assert_eq!(text(TrafficFormat::Tcp { clf: false, place: place() }, true), (formats::TCP_FORMAT.into(), false));
        let custom = FormatText { text: b"%ci".to_vec(), place: place() };
        assert_eq!(text(TrafficFormat::Custom(custom), false), ("%ci".into(), false));
        assert_eq!(LogSettings::default().traffic_format(true), (None, None));
    }

    #[test]
    fn levels_of_transactions() {
        let mut settings = LogSettings::default();
        assert_eq!((settings.level(false), settings.level(true)), (Some(Level::Info), Some(Level::Info)));
        settings.separate_errors = true;
        settings.dont_log_normal = true;
        assert_eq!((settings.level(false), settings.level(true)), (None, Some(Level::Error)));
    }
}
