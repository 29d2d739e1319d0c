//! The command line.
//!
//! HAProxy's: single-dash options of one to three letters in any order. Some have their value in the next argument (`-f FILE`),
//! some glued to them (`-dMno-merge`). Two take all arguments up to the next option (`-sf 12 13`). After `--` all arguments are
//! files. Every option is one entry of a table in [`flags`], from which the help is made too.
//!
//! Invariant: an option has its documented effect, cannot change anything here (and gives the reason), or is refused. Nothing is
//! silently ignored.

pub mod flags;
pub mod quick;

use flags::{Flag, Value};
use quick::Quick;
use rustix::process::Pid;
use std::ffi::OsString;
use std::path::PathBuf;
use terse_config::near::nearest;

/// A parsed command line.
#[derive(Clone, Default, Debug)]
pub struct Arguments {
    /// The name that the program was started under, without its folder.
    pub program: String,
    /// Action to take.
    pub action: Action,
    /// `-f` and the arguments after `--`: files and folders, in order.
    pub files: Vec<PathBuf>,
    /// `--to` and its companion options.
    pub quick: Quick,
    /// `-C`: folder that relative names start from.
    pub folder: Option<PathBuf>,
    /// `-V`: more output; takes `-q` back.
    pub verbose: bool,
    /// `-q`: no output.
    pub quiet: bool,
    /// `-d`: stay in the foreground, with more output.
    pub debug: bool,
    /// `-db`: stay in the foreground.
    pub foreground: bool,
    /// `-D`: go to the background.
    pub daemon: bool,
    /// `-W` and `-Ws`.
    pub service: Service,
    /// `-S`: addresses of the master's command line, each with its options after commas.
    pub master_sockets: Vec<String>,
    /// `-dW`: a warning is an error.
    pub zero_warning: bool,
    /// `-p`: file for the process's number.
    pub pidfile: Option<PathBuf>,
    /// `-m`: the limit of the process's data, in MiB.
    pub memory_limit_mib: Option<u64>,
    /// `-n`: connections of the process.
    pub maxconn: Option<u32>,
    /// `-N`: connections of a proxy that does not set `maxconn`.
    pub proxy_maxconn: Option<u32>,
    /// `-L`: the local peer's name.
    pub localpeer: Option<String>,
    /// `-4`: name servers are asked for IPv4 alone.
    pub only_ipv4: bool,
    /// `-dV`: certificates of servers are not verified where their lines do not set it.
    pub trusts_servers: bool,
    /// `-dK`: classes of keywords to print.
    pub keyword_classes: Option<String>,
    /// `-dD`: `.diag` lines of configurations are printed.
    pub diagnostic: bool,
    /// `-dS`: no `splice()`.
    pub no_splice: bool,
    /// `-dZ`: forwarded bytes are copied.
    pub no_zero_copy: bool,
    /// `-dF`: no fast forwarding.
    pub no_fast_forward: bool,
    /// `-dR`: no `SO_REUSEPORT`.
    pub no_reuseport: bool,
    /// `-sf` and `-st`: the processes that this one replaces.
    pub old: Vec<Pid>,
    /// The later of the two options on the line.
    pub old_end: OldEnd,
    /// `-x`: the stats socket of the process that hands its listening sockets over.
    pub takeover: Option<PathBuf>,
    /// Options that change nothing here, and the reasons.
    pub accepted: Vec<(&'static str, &'static str)>,
}

/// Action of the program.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Action {
    /// Serve.
    #[default]
    Run,
    /// `-c`: read the configuration and report its faults.
    Check,
    /// `--print`: write the configuration that `--to` amounts to.
    Print,
    /// `-cc`: evaluate a condition.
    Condition(String),
    /// `-v`: the version; `-vv`: also the features that are built in.
    Version {
        /// `-vv`.
        long: bool,
    },
    /// `-vq`, `-vqs`, `-vqb`: the version alone, shortened, its branch.
    BareVersion(VersionPart),
    /// `-h`.
    Help,
}

/// Part of the version to print, for scripts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VersionPart {
    /// The whole version.
    Whole,
    /// The part before a dash.
    Short,
    /// Its first two numbers.
    Branch,
}

/// Relation of the process to a supervisor.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Service {
    /// No supervisor.
    #[default]
    Plain,
    /// `-W`: a master process supervises the worker process.
    Master,
    /// `-Ws`: the same, in the foreground, for systemd's `Type=notify`.
    Notify,
}

/// Fate of the processes that this one replaces.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum OldEnd {
    /// `-sf`: they finish their work.
    #[default]
    Finish,
    /// `-st`: they stop at once.
    Terminate,
}

/// A command line that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misuse {
    /// The option or argument at fault; empty when an argument is missing altogether.
    pub word: String,
    /// Description of the fault.
    pub reason: String,
    /// A likely intention, if there is one.
    pub hint: Option<String>,
}

impl Misuse {
    fn new(word: &str, reason: impl Into<String>) -> Misuse {
        Misuse { word: word.to_owned(), reason: reason.into(), hint: None }
    }

    /// An argument that is no option: a file that lacks its `-f`, or an option by another program's name.
    fn unknown(word: &str) -> Misuse {
        let is_file = !word.starts_with('-') && (word.contains(['.', '/']) || std::path::Path::new(word).exists());
        let meant = match OTHER_OPTIONS.iter().find(|(other, _)| *other == word) {
            Some((_, ours)) => Some((*ours).to_owned()),
            None if is_file => Some(format!("-f {word}")),
            None => {
                let long = flags::all().map(|flag| flag.name).filter(|name| name.starts_with("--"));
                nearest(word, COMMANDS.into_iter().chain(long)).first().map(|name| (*name).to_owned())
            }
        };
        Misuse { hint: meant.map(|meant| format!("did you mean 'terse {meant}'?")), ..Misuse::new(word, "unknown option") }
    }
}

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.word.is_empty() {
            write!(f, "{}: ", self.word)?;
        }
        f.write_str(&self.reason)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}

impl Arguments {
    /// Parses the arguments of a command line, the first of which is the program's name.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, Misuse> {
        let mut words = words.into_iter().map(into_text).collect::<Result<Vec<_>, _>>()?.into_iter().peekable();
        let mut arguments = Arguments { program: base_name(words.next().as_deref().unwrap_or("terse")), ..Arguments::default() };
        while let Some(word) = words.next() {
            if word == "--" {
                arguments.files.extend(words.by_ref().map(PathBuf::from));
                break;
            }
            let flag = find(&word).ok_or_else(|| Misuse::unknown(&word))?;
            let mut act =
                |value: &str| flag.effect.act(&mut arguments, flag.name, value).map_err(|reason| Misuse::new(flag.name, reason));
            match flag.value {
                Value::None => act("")?,
                Value::Glued(_) => act(&word[flag.name.len()..])?,
                Value::Word(what) => {
                    let value = words.next().ok_or_else(|| Misuse::new(flag.name, format!("expects {what}")))?;
                    act(&value)?;
                }
                Value::Words(_) => {
                    act("")?;
                    while let Some(value) = words.next_if(|next| !next.starts_with('-')) {
                        act(&value)?;
                    }
                }
            }
            if arguments.answers_at_once() {
                return Ok(arguments);
            }
        }
        if arguments.quick.wants_a_server() || arguments.action == Action::Print && arguments.quick.servers.is_empty() {
            return Err(Misuse::new("", "no server (see --to)"));
        }
        if !arguments.quick.servers.is_empty() && !arguments.files.is_empty() {
            let hint = Some("'--print' writes the file that '--to' stands for".to_owned());
            return Err(Misuse { hint, ..Misuse::new("--to", "stands for a file, and does not go with others") });
        }
        let reads = matches!(arguments.action, Action::Run | Action::Check);
        if arguments.files.is_empty() && arguments.quick.servers.is_empty() && reads {
            return Err(Misuse::new("", "no configuration file (see -f)"));
        }
        Ok(arguments)
    }

    /// True if the process stays in the foreground, whatever the configuration sets.
    pub fn stays_in_foreground(&self) -> bool {
        (self.debug || self.foreground || self.service == Service::Notify) && !self.daemon
    }

    /// True if more than problems is to be reported.
    pub fn talks(&self) -> bool {
        self.verbose || self.debug
    }

    /// True for version and help, which end the parsing of the line at once.
    fn answers_at_once(&self) -> bool {
        matches!(self.action, Action::Version { .. } | Action::BareVersion(_) | Action::Help)
    }
}

/// Options of other programs, and their equivalents here.
const OTHER_OPTIONS: [(&str, &str); 8] = [
    ("-t", "-c -f FILE"),
    ("--config", "-f FILE"),
    ("--check", "-c -f FILE"),
    ("--test", "-c -f FILE"),
    ("run", "-f FILE"),
    ("start", "-D -f FILE"),
    ("help", "-h"),
    ("version", "-v"),
];

/// Commands of their own, which are no options.
const COMMANDS: [&str; 5] = ["check", "top", "health", "gzip", "gunzip"];

/// Finds the option that an argument names: the option itself, or the longest one with a glued value that the argument begins with.
fn find(word: &str) -> Option<&'static Flag> {
    let glued = |flag: &&Flag| matches!(flag.value, Value::Glued(_)) && word.starts_with(flag.name);
    flags::all().find(|flag| flag.name == word).or_else(|| flags::all().filter(glued).max_by_key(|flag| flag.name.len()))
}

fn into_text(word: OsString) -> Result<String, Misuse> {
    word.into_string().map_err(|word| Misuse::new(&word.to_string_lossy(), "not UTF-8"))
}

fn base_name(program: &str) -> String {
    program.rsplit('/').next().unwrap_or(program).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, Misuse> {
        Arguments::parse(std::iter::once("/usr/sbin/terse").chain(line.split(' ')).filter(|w| !w.is_empty()).map(OsString::from))
    }

    #[test]
    fn options_stand_in_any_order() {
        for line in ["-d -Ws -dM -dI -dW -f a.cfg -p pid", "-p pid -dW -f a.cfg -Ws -dI -d -dMno-merge,poison"] {
            let a = parse(line).unwrap();
            assert!(a.debug && a.zero_warning && a.service == Service::Notify, "{line}");
            assert_eq!(a.files, [PathBuf::from("a.cfg")]);
            assert_eq!(a.pidfile.as_deref(), Some("pid".as_ref()));
            assert_eq!(a.program, "terse");
        }
    }

    #[test]
    fn files_follow_options_and_dashes() {
        let a = parse("-f a -c -f b -- c -d").unwrap();
        assert_eq!(a.files, ["a", "b", "c", "-d"].map(PathBuf::from));
        assert_eq!(a.action, Action::Check);
        assert!(!a.debug, "behind -- all words are files");
    }

    #[test]
    fn old_processes_end_at_the_next_option() {
        let a = parse("-f a -sf 12 13 -x /run/sock").unwrap();
        assert_eq!(a.old.iter().map(|p| p.as_raw_nonzero().get()).collect::<Vec<_>>(), [12, 13]);
        assert_eq!((a.old_end, a.takeover), (OldEnd::Finish, Some("/run/sock".into())));
        assert_eq!(parse("-f a -sf -st 9").unwrap().old_end, OldEnd::Terminate);
        assert!(parse("-f a -sf").unwrap().old.is_empty(), "an empty list is what `pidof` gives when nothing runs");
        for bad in ["0", "12x", "99999999999"] {
            assert_eq!(parse(&format!("-f a -st {bad}")).unwrap_err().word, "-st");
        }
    }

    #[test]
    fn a_condition_needs_no_file() {
        let words = ["haproxy", "-dM", "-cc", "1 && 0"].map(OsString::from);
        assert_eq!(Arguments::parse(words).unwrap().action, Action::Condition("1 && 0".into()));
        assert_eq!(parse("-vv -nonsense").unwrap().action, Action::Version { long: true });
        assert_eq!(parse("--version").unwrap().action, Action::Version { long: false });
        assert_eq!(parse("-f a --help x").unwrap().action, Action::Help);
        assert_eq!(parse("-vqb").unwrap().action, Action::BareVersion(VersionPart::Branch));
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        assert_eq!(parse("").unwrap_err().to_string(), "no configuration file (see -f)");
        assert_eq!(parse("-f").unwrap_err().to_string(), "-f: expects <file|folder>");
        assert_eq!(parse("-f a -dQ").unwrap_err().to_string(), "-dQ: unknown option");
        assert_eq!(parse("-f a stray").unwrap_err().to_string(), "stray: unknown option");
        assert_eq!(parse("a.cfg").unwrap_err().to_string(), "a.cfg: unknown option (did you mean 'terse -f a.cfg'?)");
        assert_eq!(parse("--config a.cfg").unwrap_err().to_string(), "--config: unknown option (did you mean 'terse -f FILE'?)");
        for (word, meant) in [("chekc", "check"), ("gizp", "gzip"), ("--lisen", "--listen"), ("helth", "health")] {
            assert_eq!(parse(word).unwrap_err().to_string(), format!("{word}: unknown option (did you mean 'terse {meant}'?)"));
        }
        assert_eq!(parse("-f a -n many").unwrap_err().word, "-n");
        for junk in ["zork", "tag,zork", "no-cold-first", "q7", "tag,80", "0x"] {
            assert!(parse(&format!("-f a -dM{junk}")).unwrap_err().to_string().contains("is no option of memory"), "{junk}");
        }
        for options in ["", "80", "0x50,no-merge", "cold-first,integrity", ","] {
            assert_eq!(parse(&format!("-f a -dM{options}")).unwrap().accepted.len(), 1, "{options}");
        }
        assert_eq!(parse("--listen :80").unwrap_err().to_string(), "no server (see --to)");
        assert_eq!(parse("--to app").unwrap_err().to_string(), "--to: 'app' has no port");
        for port in ["99999", "0", "app:99999"] {
            let said = parse(&format!("--to {port}")).unwrap_err().to_string();
            assert!(said.ends_with("is not a port between 1 and 65535"), "{said}");
        }
        assert!(parse("--to 3000 -f a").unwrap_err().to_string().starts_with("--to: stands for a file"));
        assert_eq!(parse("--to 3000 --print").unwrap().action, Action::Print);
        assert_eq!(parse("-f a -W -S").unwrap_err().to_string(), "-S: expects <address>[,<option>]...");
    }

    #[test]
    fn verbose_takes_quiet_back_and_daemon_debug() {
        let a = parse("-q -V -D -f a").unwrap();
        assert!(a.verbose && a.daemon && !a.stays_in_foreground());
        assert!(parse("-db -f a").unwrap().stays_in_foreground());
    }
}
