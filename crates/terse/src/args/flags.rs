//! The options, one entry each.

use super::{Action, Arguments, OldEnd, Service, VersionPart};
use rustix::process::Pid;

/// An option of the command line.
pub struct Flag {
    /// Name as written: `-f`.
    pub name: &'static str,
    /// Position of its value.
    pub value: Value,
    /// Effect in a sentence, for the help.
    pub summary: &'static str,
    /// Done, accepted or refused.
    pub effect: Effect,
}

/// Position of an option's value; the text names the value in the help.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// No value.
    None,
    /// The next argument.
    Word(&'static str),
    /// Glued to the option, in the same argument.
    Glued(&'static str),
    /// All arguments up to the next option.
    Words(&'static str),
}

/// The three kinds of option (the same as of keywords); an option that is done may look at its value in three ways.
#[derive(Clone, Copy)]
pub enum Effect {
    /// Done: the option has no value.
    Set(fn(&mut Arguments)),
    /// Done, with any text.
    Text(fn(&mut Arguments, &str)),
    /// Done, with a value that may be wrong. For [`Value::Words`] it is called for each argument.
    Parse(fn(&mut Arguments, &str) -> Result<(), String>),
    /// Accepted: it cannot change behaviour here; the reason.
    Accepted(&'static str),
    /// Refused: it is understood and not built; the alternative.
    Refused(&'static str),
}

impl Effect {
    /// Lets the option act on its value.
    pub(super) fn act(self, arguments: &mut Arguments, name: &'static str, value: &str) -> Result<(), String> {
        match self {
            Effect::Set(set) => set(arguments),
            Effect::Text(take) => take(arguments, value),
            Effect::Parse(parse) => parse(arguments, value)?,
            Effect::Accepted(why) => arguments.accepted.push((name, why)),
            Effect::Refused(why) => return Err(why.to_owned()),
        }
        Ok(())
    }
}

/// Returns every option that may be used, with its value and its effect, a line each, in groups.
pub fn help() -> String {
    let mut text = String::from(COMMANDS);
    for (title, flags) in GROUPS {
        text.push_str(&format!("\n{title}:\n"));
        for flag in *flags {
            let left = match flag.value {
                Value::None => flag.name.to_owned(),
                Value::Word(what) | Value::Words(what) => format!("{} {what}", flag.name),
                Value::Glued(what) => format!("{}{what}", flag.name),
            };
            let right = match flag.effect {
                Effect::Accepted(why) => format!("{}: {why}", flag.summary),
                Effect::Refused(_) => continue,
                _ => flag.summary.to_owned(),
            };
            text.push_str(&format!("  {left:<20} {right}\n"));
        }
    }
    text.push_str("\nAfter '--' all words are files, as after -f.\n");
    text
}

/// The ways to start the program, as `terse` without arguments lists them.
pub const COMMANDS: &str = "\
Usage: terse --to PORT       compresses in front of the server at this port, with a console at http://127.0.0.1:8404
       terse -f FILE         serves as this haproxy.cfg says; with -W, SIGUSR2 reloads it
       terse check FILE      says what is wrong with it, and what it does; for programs with --json
       terse top [URL]       shows a running process in the terminal; without a URL it asks the console
       terse health [URL]    ends with 0 where a process answers; without a URL it asks the console
       terse gzip [FILE]...  compresses files; 'terse gunzip' decompresses them
       terse -h              lists all options
";

/// Parses the value of `-dM`: a number, then names of switches to turn on or off, separated by commas.
fn memory_options(options: &str) -> Result<(), String> {
    let is_number = |word: &str| match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).is_ok(),
        None => word.parse::<i64>().is_ok(),
    };
    for (at, word) in options.split(',').enumerate() {
        let switch = word.strip_prefix("no-").unwrap_or(word);
        let known = word.is_empty() || MEMORY_SWITCHES.contains(&switch) || matches!(word, "cold-first" | "hot-first");
        if !(known || at == 0 && is_number(word)) {
            let all = MEMORY_SWITCHES.join(", ");
            return Err(format!("'{word}' is no option of memory, which are {all}, 'no-' before them, cold-first and hot-first"));
        }
    }
    Ok(())
}

/// Switches of HAProxy's own memory pools; with `no-` before the name they are off.
const MEMORY_SWITCHES: &[&str] = &["fail", "merge", "integrity", "global", "cache", "caller", "tag", "poison", "uaf", "backup"];

/// All options, in the groups of the help.
const GROUPS: &[(&str, &[Flag])] = &[
    ("Usual", USUAL),
    ("Without a file", QUICK),
    ("As a service", SERVICE),
    ("Finding faults, and for scripts", FAULTS),
    ("Accepted for the sake of scripts that start HAProxy", ACCEPTED),
];

/// All options.
pub(super) fn all() -> impl Iterator<Item = &'static Flag> {
    GROUPS.iter().flat_map(|(_, flags)| *flags)
}

/// Options that most users need.
const USUAL: &[Flag] = &[
    Flag {
        name: "-f",
        value: Value::Word("<file|folder>"),
        summary: "reads a file, or a folder's *.cfg in lexical order; may be repeated",
        effect: Effect::Text(|a, v| a.files.push(v.into())),
    },
    Flag {
        name: "-c",
        value: Value::None,
        summary: "checks the configuration and exits with 0, 1 (errors) or 2 (no listener)",
        effect: Effect::Set(|a| {
            if a.action == Action::Run {
                a.action = Action::Check;
            }
        }),
    },
    Flag {
        name: "-C",
        value: Value::Word("<folder>"),
        summary: "goes there before it reads files",
        effect: Effect::Text(|a, v| a.folder = Some(v.into())),
    },
    Flag { name: "-V", value: Value::None, summary: "says more; takes -q back", effect: Effect::Set(|a| a.verbose = true) },
    Flag { name: "-q", value: Value::None, summary: "says nothing", effect: Effect::Set(|a| a.quiet = true) },
    Flag { name: "-h", value: Value::None, summary: "prints this", effect: Effect::Set(|a| a.action = Action::Help) },
    Flag { name: "--help", value: Value::None, summary: "the same as -h", effect: Effect::Set(|a| a.action = Action::Help) },
    Flag {
        name: "-v",
        value: Value::None,
        summary: "prints the version",
        effect: Effect::Set(|a| a.action = Action::Version { long: false }),
    },
    Flag {
        name: "--version",
        value: Value::None,
        summary: "the same as -v",
        effect: Effect::Set(|a| a.action = Action::Version { long: false }),
    },
    Flag {
        name: "-vv",
        value: Value::None,
        summary: "prints the version and what is built in",
        effect: Effect::Set(|a| a.action = Action::Version { long: true }),
    },
];

/// Options that replace a configuration file.
const QUICK: &[Flag] = &[
    Flag {
        name: "--to",
        value: Value::Word("<address>"),
        summary: "compresses and balances for this server: PORT, HOST:PORT, https://HOST; may be repeated",
        effect: Effect::Parse(|a, v| a.quick.add_server(v)),
    },
    Flag {
        name: "--listen",
        value: Value::Word("<address>"),
        summary: "listens there; 127.0.0.1:8080 without it, :443 and :80 with --tls-dir",
        effect: Effect::Text(|a, v| a.quick.listen = Some(v.to_owned())),
    },
    Flag {
        name: "--tls-dir",
        value: Value::Word("<folder>"),
        summary: "speaks TLS with the folder's certificates: NAME.pem, or NAME.crt and NAME.key",
        effect: Effect::Text(|a, v| a.quick.certificates = Some(v.into())),
    },
    Flag {
        name: "--console",
        value: Value::Word("<address>|off"),
        summary: "shows the console there; 127.0.0.1:8404 without it, or the next port that is free",
        effect: Effect::Text(|a, v| a.quick.console = Some((v != "off").then(|| v.to_owned()))),
    },
    Flag {
        name: "--log",
        value: Value::Word("off"),
        summary: "logs no requests",
        effect: Effect::Parse(|a, v| match v {
            "off" => {
                a.quick.is_silent = true;
                Ok(())
            }
            other => Err(format!("'{other}' is not 'off'")),
        }),
    },
    Flag {
        name: "--print",
        value: Value::None,
        summary: "prints the haproxy.cfg that these options stand for, and ends",
        effect: Effect::Set(|a| a.action = Action::Print),
    },
];

/// Options to start a service with.
const SERVICE: &[Flag] = &[
    Flag {
        name: "-W",
        value: Value::None,
        summary: "starts a master, which starts the process that serves and reloads at SIGUSR2",
        effect: Effect::Set(|a| a.service = Service::Master),
    },
    Flag {
        name: "-Ws",
        value: Value::None,
        summary: "the same in the foreground, for systemd's Type=notify",
        effect: Effect::Set(|a| a.service = Service::Notify),
    },
    Flag {
        name: "-S",
        value: Value::Word("<address>[,<option>]..."),
        summary: "opens the master's command line; may be repeated",
        effect: Effect::Text(|a, v| a.master_sockets.push(v.to_owned())),
    },
    Flag { name: "-D", value: Value::None, summary: "goes to the background", effect: Effect::Set(|a| a.daemon = true) },
    Flag {
        name: "-p",
        value: Value::Word("<file>"),
        summary: "writes the process's number there",
        effect: Effect::Text(|a, v| a.pidfile = Some(v.into())),
    },
    Flag {
        name: "-sf",
        value: Value::Words("<pid>..."),
        summary: "when ready, tells these processes to finish and leave",
        effect: Effect::Parse(|a, v| old_process(a, OldEnd::Finish, v)),
    },
    Flag {
        name: "-st",
        value: Value::Words("<pid>..."),
        summary: "when ready, tells these processes to stop at once",
        effect: Effect::Parse(|a, v| old_process(a, OldEnd::Terminate, v)),
    },
    Flag {
        name: "-x",
        value: Value::Word("<socket>"),
        summary: "takes the listening sockets over from the process behind this stats socket",
        effect: Effect::Text(|a, v| a.takeover = Some(v.into())),
    },
    Flag {
        name: "-m",
        value: Value::Word("<MiB>"),
        summary: "limits the memory of the process",
        effect: Effect::Parse(|a, v| number(v).map(|n| a.memory_limit_mib = (n > 0).then_some(n))),
    },
    Flag {
        name: "-n",
        value: Value::Word("<connections>"),
        summary: "limits the connections of the process; goes before 'maxconn' in 'global'",
        effect: Effect::Parse(|a, v| number(v).map(|n| a.maxconn = (n > 0).then_some(n))),
    },
    Flag {
        name: "-N",
        value: Value::Word("<connections>"),
        summary: "limits the connections of each proxy that has no 'maxconn'",
        effect: Effect::Parse(|a, v| number(v).map(|n| a.proxy_maxconn = (n > 0).then_some(n))),
    },
    Flag {
        name: "-L",
        value: Value::Word("<name>"),
        summary: "the text of $HAPROXY_LOCALPEER; goes before 'localpeer'; the host's name otherwise",
        effect: Effect::Text(|a, v| a.localpeer = Some(v.to_owned())),
    },
    Flag {
        name: "-4",
        value: Value::None,
        summary: "asks name servers for IPv4 alone; goes before 'dns-accept-family'",
        effect: Effect::Set(|a| a.only_ipv4 = true),
    },
];

/// Options for troubleshooting and for scripts.
const FAULTS: &[Flag] = &[
    Flag {
        name: "-cc",
        value: Value::Word("<condition>"),
        summary: "evaluates a condition and exits with 0 (true), 1 (false) or 2 (error)",
        effect: Effect::Text(|a, v| a.action = Action::Condition(v.to_owned())),
    },
    Flag {
        name: "-d",
        value: Value::None,
        summary: "stays in the foreground and says more",
        effect: Effect::Set(|a| a.debug = true),
    },
    Flag { name: "-db", value: Value::None, summary: "stays in the foreground", effect: Effect::Set(|a| a.foreground = true) },
    Flag {
        name: "-dW",
        value: Value::None,
        summary: "does not start with warnings",
        effect: Effect::Set(|a| a.zero_warning = true),
    },
    Flag {
        name: "-vq",
        value: Value::None,
        summary: "prints the version's number alone",
        effect: Effect::Set(|a| a.action = Action::BareVersion(VersionPart::Whole)),
    },
    Flag {
        name: "-vqs",
        value: Value::None,
        summary: "the same without what follows a dash",
        effect: Effect::Set(|a| a.action = Action::BareVersion(VersionPart::Short)),
    },
    Flag {
        name: "-vqb",
        value: Value::None,
        summary: "its first two numbers",
        effect: Effect::Set(|a| a.action = Action::BareVersion(VersionPart::Branch)),
    },
    Flag {
        name: "-dK",
        value: Value::Glued("<class>[,...]"),
        summary: "prints the keywords of these classes (-dKhelp lists them)",
        effect: Effect::Text(|a, v| a.keyword_classes = Some(v.to_owned())),
    },
    Flag { name: "-dS", value: Value::None, summary: "does not use splice()", effect: Effect::Set(|a| a.no_splice = true) },
    Flag {
        name: "-dF",
        value: Value::None,
        summary: "does not forward past the stream",
        effect: Effect::Set(|a| a.no_fast_forward = true),
    },
    Flag {
        name: "-dR",
        value: Value::None,
        summary: "shares one socket among the workers instead of SO_REUSEPORT",
        effect: Effect::Set(|a| a.no_reuseport = true),
    },
    Flag { name: "-dD", value: Value::None, summary: "lets '.diag' lines speak", effect: Effect::Set(|a| a.diagnostic = true) },
    Flag {
        name: "-dZ",
        value: Value::None,
        summary: "copies what it forwards; as -dS",
        effect: Effect::Set(|a| a.no_zero_copy = true),
    },
    Flag {
        name: "-dV",
        value: Value::None,
        summary: "trusts any certificate of servers whose lines do not say 'verify'; goes before 'ssl-server-verify'",
        effect: Effect::Set(|a| a.trusts_servers = true),
    },
];

/// Options that scripts written for HAProxy may pass.
const ACCEPTED: &[Flag] = &[
    Flag {
        name: "-dM",
        value: Value::Glued("[<options>]"),
        summary: "checks memory",
        effect: Effect::Parse(|a, v| {
            match v {
                "help" => a.action = Action::Help,
                options => memory_options(options)?,
            }
            a.accepted.push(("-dM", "memory is never read before it is written"));
            Ok(())
        }),
    },
    Flag {
        name: "-dI",
        value: Value::None,
        summary: "allows forks",
        effect: Effect::Accepted("only checks by programs fork, and 'external-check' is their word"),
    },
    Flag {
        name: "-dG",
        value: Value::None,
        summary: "avoids getaddrinfo()",
        effect: Effect::Accepted("the system's lookup has no other way; 'resolvers' ask name servers themselves"),
    },
    Flag { name: "-de", value: Value::None, summary: "avoids epoll", effect: Effect::Accepted(ONE_POLLER) },
    Flag { name: "-dp", value: Value::None, summary: "avoids poll()", effect: Effect::Accepted(ONE_POLLER) },
    Flag { name: "-dk", value: Value::None, summary: "avoids kqueue", effect: Effect::Accepted(ONE_POLLER) },
    Flag { name: "-dv", value: Value::None, summary: "avoids event ports", effect: Effect::Accepted(ONE_POLLER) },
    Flag {
        name: "-dT",
        value: Value::None,
        summary: "avoids TLS in the kernel",
        effect: Effect::Accepted("TLS is never given to the kernel"),
    },
    Flag {
        name: "-dr",
        value: Value::None,
        summary: "starts with servers whose names cannot be resolved",
        effect: Effect::Refused("write 'default-server init-addr libc,none'"),
    },
    Flag {
        name: "-dC",
        value: Value::Glued("[<key>]"),
        summary: "prints the configuration",
        effect: Effect::Refused("not built; -c says what is wrong with a configuration, with the lines"),
    },
    Flag {
        name: "-dL",
        value: Value::None,
        summary: "lists shared libraries",
        effect: Effect::Refused("not built; see /proc/<pid>/maps or ldd"),
    },
    Flag {
        name: "-dA",
        value: Value::Glued("<file>"),
        summary: "archives shared libraries",
        effect: Effect::Refused("not built; see /proc/<pid>/maps or ldd"),
    },
    Flag {
        name: "-dc",
        value: Value::None,
        summary: "prints the choice of processors",
        effect: Effect::Refused("not built; -V prints how many workers run"),
    },
    Flag {
        name: "-dt",
        value: Value::Glued("[<traces>]"),
        summary: "prints traces",
        effect: Effect::Refused("not built; logs and the stats socket tell what happens"),
    },
];

const ONE_POLLER: &str = "epoll is the only poller";

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("'{word}' is not a number in range"))
}

fn old_process(arguments: &mut Arguments, end: OldEnd, word: &str) -> Result<(), String> {
    arguments.old_end = end;
    for word in word.split_ascii_whitespace() {
        let pid = word.parse().ok().filter(|&pid| pid > 0).and_then(Pid::from_raw);
        arguments.old.push(pid.ok_or_else(|| format!("'{word}' is not a process's number"))?);
    }
    Ok(())
}
