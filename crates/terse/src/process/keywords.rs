//! Keywords of `global` for the process.

use super::settings::{Account, ProcessSettings, UnixDefaults, Who};
use super::workers::{self, ProcessorMap};
use rustix::thread::CapabilitySet;
use std::path::{Path, PathBuf};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections, Word};

/// The keywords that are done.
pub static KEYWORDS: &[Keyword] = &[
    done("user", "<name>", "The user that the process becomes once its sockets are open.", |args, scope| {
        let user = named(args, scope, "<name>")?;
        process(scope).user = Some(user);
        Ok(())
    }),
    done("group", "<name>", "The group that the process becomes once its sockets are open.", |args, scope| {
        let group = named(args, scope, "<name>")?;
        process(scope).group = Some(group);
        Ok(())
    }),
    done("uid", "<number>", "The user that the process becomes, by number.", |args, scope| {
        let user = numbered(args, scope)?;
        process(scope).user = Some(user);
        Ok(())
    }),
    done("gid", "<number>", "The group that the process becomes, by number.", |args, scope| {
        let group = numbered(args, scope)?;
        process(scope).group = Some(group);
        Ok(())
    }),
    done("chroot", "<folder>|auto", "The folder that becomes the process's root; 'auto' is an empty one.", |args, scope| {
        process(scope).chroot = Some(args.need("<folder>")?.to_owned());
        Ok(())
    }),
    done(
        "server-state-base",
        "<folder>",
        "Where files of servers' states are whose names do not begin with '/'.",
        |args, scope| {
            process(scope).states_folder = Some(args.need("<folder>")?.to_owned());
            Ok(())
        },
    ),
    done(
        "server-state-file",
        "<file>",
        "The states of servers, for backends with 'load-server-state-from-file global'.",
        |args, scope| {
            process(scope).states_file = Some(args.need("<file>")?.to_owned());
            Ok(())
        },
    ),
    done("daemon", "", "Goes to the background.", |_, scope| {
        process(scope).daemon = true;
        Ok(())
    }),
    done("quiet", "", "Says nothing on the terminal.", |_, scope| {
        process(scope).quiet = true;
        Ok(())
    }),
    done("debug", "", "Stays in the foreground: HAProxy's old word for -d.", |args, _| {
        args.warn("is written on the command line, as -d");
        Ok(())
    }),
    done("zero-warning", "", "Does not start with warnings.", |_, scope| {
        process(scope).zero_warning = true;
        Ok(())
    }),
    done(
        "master-worker",
        "[no-exit-on-failure]",
        "Starts a master, which starts the process that serves and reloads.",
        |args, scope| {
            if args.accept("no-exit-on-failure") {
                return Err(args.fault("a master does not go on without the process that serves"));
            }
            process(scope).master = true;
            Ok(())
        },
    ),
    done("mworker-max-reloads", "<number>", "After how many reloads a process that still drains is stopped.", |args, scope| {
        process(scope).most_reloads = Some(whole(args, "<number>", 0..=i64::from(i32::MAX))?);
        Ok(())
    }),
    done("pidfile", "<file>", "Where the process's number is written in the background or with -Ws.", |args, scope| {
        process(scope).pidfile = Some(args.need("<file>")?.to_owned());
        Ok(())
    }),
    done("maxconn", "<number>", "The most connections of the process.", |args, scope| {
        process(scope).maxconn = Some(whole(args, "<number>", 1..=100_000_000)?);
        Ok(())
    }),
    done(
        "maxpipes",
        "<number>",
        "The most pipes for 'option splice-...'; a quarter of the connections that may use them where nothing is said.",
        |args, scope| {
            process(scope).pipes = Some(whole(args, "<number>", 0..=1 << 24)?);
            Ok(())
        },
    ),
    done("nosplice", "", "No bytes go through pipes, whatever 'option splice-...' says; as -dS.", no_splice),
    done("tune.pipesize", "<bytes>", "How much a pipe holds; the system's default where nothing is said.", |args, scope| {
        let bytes = args.size("<bytes>")?;
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= 1 << 30);
        let bytes = bytes.ok_or_else(|| args.fault("expects a size up to 1g"))?;
        process(scope).pipe_bytes = Some(bytes).filter(|bytes| *bytes > 0);
        args.end()
    }),
    done("tune.disable-zero-copy-forwarding", "", "As 'nosplice': what is forwarded is copied.", no_splice),
    done("tune.disable-fast-forward", "", "As 'nosplice': what is forwarded is copied.", no_splice),
    done("ulimit-n", "<number>", "The most descriptors of the process.", |args, scope| {
        process(scope).descriptors = Some(whole(args, "<number>", 16..=1 << 30)?);
        Ok(())
    }),
    done("fd-hard-limit", "<number>", "The most descriptors when neither 'maxconn' nor 'ulimit-n' is said.", |args, scope| {
        process(scope).descriptors_most = Some(whole(args, "<number>", 16..=1 << 30)?);
        Ok(())
    }),
    done("tune.bufsize", "<bytes>", "The size of a buffer, and so of the largest head; 16384 by default.", |args, scope| {
        let bytes = args.size("<bytes>")?;
        let bytes = usize::try_from(bytes).ok().filter(|bytes| (1024..=1 << 24).contains(bytes));
        process(scope).buffer_bytes = Some(bytes.ok_or_else(|| args.fault("expects a size between 1024 and 16m"))?);
        Ok(())
    }),
    done(
        "tune.maxrewrite",
        "<bytes>",
        "Lets heads share 'tune.bufsize' with the bodies that wait behind them, but for so many bytes, at most half, that rules may add.",
        |args, scope| {
            process(scope).rewrite_bytes = Some(whole(args, "<bytes>", 0..=1 << 24)?);
            Ok(())
        },
    ),
    done(
        "tune.memory.buffers",
        "<bytes>",
        "The most bytes that may wait in the process; a quarter of the machine's or the container's memory by default.",
        |args, scope| {
            let bytes = args.size("<bytes>")?;
            let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes >= 1 << 20);
            process(scope).memory_bytes = Some(bytes.ok_or_else(|| args.fault("expects at least 1m"))?);
            Ok(())
        },
    ),
    switch("strict-limits", "", "Does not start when a limit cannot be raised; without it, that is a warning.", |_, scope| {
        process(scope).strict_limits = !scope.negated;
        Ok(())
    }),
    done("nbthread", "<number>", "How many workers there are; one a processor by default.", |args, scope| {
        process(scope).workers = Some(whole(args, "<number>", 1..=workers::MOST as i64)?);
        Ok(())
    }),
    done("nbproc", "1", "How many processes there are: one, as in HAProxy since 2.5.", |args, _| {
        if args.integer("<number>", 1..=64)? > 1 {
            return Err(args.fault("there is one process").hint("'nbthread' starts workers inside it"));
        }
        args.warn("is not needed any more: there always is one process");
        Ok(())
    }),
    done("thread-hard-limit", "<number>", "The most workers when 'nbthread' does not say.", |args, scope| {
        process(scope).workers_most = Some(whole(args, "<number>", 1..=workers::MOST as i64)?);
        Ok(())
    }),
    done("thread-groups", "<number>", "How 'cpu-map' counts workers; they are not grouped otherwise.", |args, scope| {
        process(scope).groups = Some(whole(args, "<number>", 1..=64)?);
        Ok(())
    }),
    done("cpu-map", "[auto:]<group>[/<workers>] <cpus>...", "The processors of workers.", |args, scope| {
        let first = args.position();
        let words: Vec<&str> = args.take_rest().iter().map(Word::as_str).collect();
        let map = ProcessorMap::parse(&words).map_err(|(word, reason)| Fault::new(first + word, reason))?;
        if workers::present(map.processors.clone()).is_none() {
            args.warn("there is no such processor here: these workers run on any");
        }
        process(scope).processors.push(map);
        Ok(())
    }),
    done("grace", "<time>", "The time between the signal and the drain.", |args, scope| {
        process(scope).grace = args.time("<time>")?;
        Ok(())
    }),
    done("hard-stop-after", "<time>", "The longest drain; what runs then is cut.", |args, scope| {
        process(scope).hard_stop_after = Some(args.time("<time>")?);
        Ok(())
    }),
    switch("set-dumpable", "[on|off|libs]", "Lets the kernel write the memory of a crashed process to a file.", |args, scope| {
        let on = match args.take() {
            None | Some("on" | "libs") => true,
            Some("off") => false,
            Some(_) => return Err(args.fault("expects 'on', 'off' or 'libs'")),
        };
        process(scope).dumpable = on && !scope.negated;
        Ok(())
    }),
    done("setcap", "<capability>[,...]", "Rights of root that are kept behind 'user'.", |args, scope| {
        let words = args.need("<capability>")?;
        for word in words.split(',') {
            let Some((_, right)) = CAPABILITIES.iter().find(|(name, _)| *name == word) else {
                let known = CAPABILITIES.map(|(name, _)| name).join(", ");
                return Err(args.fault(format!("'{word}' is not a capability that can be kept")).hint(format!("one of {known}")));
            };
            *process(scope).capabilities.get_or_insert(CapabilitySet::empty()) |= *right;
        }
        Ok(())
    }),
    switch("insecure-setuid-wanted", "", "Keeps the right to start programs that have more rights.", |_, scope| {
        process(scope).may_gain_rights = !scope.negated;
        Ok(())
    }),
    done("tune.renice.startup", "<nice>", "The process's priority while it starts: -20 (first) to 19.", |args, scope| {
        process(scope).nice.start = Some(whole(args, "<nice>", -20..=19)?);
        Ok(())
    }),
    done("tune.renice.runtime", "<nice>", "The process's priority once it runs: -20 (first) to 19.", |args, scope| {
        process(scope).nice.run = Some(whole(args, "<nice>", -20..=19)?);
        Ok(())
    }),
    switch("noreuseport", "", "Workers share each listening socket instead of having one each.", |_, scope| {
        process(scope).shared_sockets = !scope.negated;
        Ok(())
    }),
    done("localpeer", "<name>", "This peer's name, as $HAPROXY_LOCALPEER gives it.", |args, scope| {
        process(scope).localpeer = Some(args.need("<name>")?.to_owned());
        Ok(())
    }),
    done("description", "<text>...", "A text for people, in statistics.", |args, scope| {
        args.need("<text>")?;
        args.seek(1);
        process(scope).description = Some(args.take_rest().iter().map(Word::as_str).collect::<Vec<_>>().join(" "));
        Ok(())
    }),
    done("node", "<name>", "This machine's name in statistics; the host's name by default.", |args, scope| {
        process(scope).node = Some(args.need("<name>")?.to_owned());
        Ok(())
    }),
    done("default-path", "current|config|parent|origin <folder>", "Where relative names of files begin.", default_path),
    done("tune.http.maxhdr", "<number>", "The most fields of a head.", |args, _| {
        match args.integer("<number>", 1..=32767)? {
            more if more > MOST_FIELDS => args.warn(format!("a head has at most {MOST_FIELDS} fields: one with more is refused")),
            _ => args.changes_nothing("heads always have room for 128 fields"),
        }
        Ok(())
    }),
    done(
        "unix-bind",
        "[prefix <prefix>] [mode <mode>] [user <name>] [uid <number>] [group <name>] [gid <number>]",
        "What unix sockets of 'bind' lines start with.",
        |args, scope| {
            let mut unix = UnixDefaults::default();
            while let Some(word) = args.take() {
                match word {
                    "prefix" => unix.prefix = Some(args.need("<prefix>")?.to_owned()),
                    "mode" => unix.mode = Some(mode(args)?),
                    "user" => unix.user = Some(named(args, scope, "<name>")?),
                    "uid" => unix.user = Some(numbered(args, scope)?),
                    "group" => unix.group = Some(named(args, scope, "<name>")?),
                    "gid" => unix.group = Some(numbered(args, scope)?),
                    _ => return Err(args.fault(format!("'{word}' is not one of prefix, mode, user, uid, group, gid"))),
                }
            }
            process(scope).unix = unix;
            Ok(())
        },
    ),
];

pub(super) const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Done(parser) }
}

const fn switch(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Switch(parser) }
}

pub(super) fn process<'a>(scope: &'a mut Scope<'_>) -> &'a mut ProcessSettings {
    scope.section.settings.entry()
}

pub(super) fn whole<T: TryFrom<i64>>(args: &mut Args<'_>, what: &str, range: std::ops::RangeInclusive<i64>) -> Result<T, Fault> {
    T::try_from(args.integer(what, range)?).map_err(|_| args.fault(format!("{what} is out of range")))
}

fn no_splice(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    args.end()?;
    process(scope).no_splice = true;
    Ok(())
}

fn named(args: &mut Args<'_>, scope: &Scope<'_>, what: &str) -> Result<Account, Fault> {
    Ok(Account { who: Who::Name(args.need(what)?.to_owned()), place: scope.place.clone() })
}

fn numbered(args: &mut Args<'_>, scope: &Scope<'_>) -> Result<Account, Fault> {
    Ok(Account { who: Who::Number(whole(args, "<number>", 0..=i64::from(u32::MAX - 1))?), place: scope.place.clone() })
}

/// Changes the working folder, as HAProxy does; the caller that loads the configuration changes it back.
fn default_path(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let file = PathBuf::from(&*scope.place.file);
    let beside = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = match args.need("current, config, parent or origin")? {
        "current" => return Ok(()),
        "config" => beside.to_owned(),
        "parent" => beside.join(".."),
        "origin" => PathBuf::from(args.need("<folder>")?),
        word => return Err(args.fault(format!("expects current, config, parent or origin instead of '{word}'"))),
    };
    std::env::set_current_dir(&folder).map_err(|error| args.fault(format!("cannot go to '{}': {error}", folder.display())))
}

fn mode(args: &mut Args<'_>) -> Result<u32, Fault> {
    let word = args.need("<mode>")?;
    let mode = u32::from_str_radix(word, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| args.fault(format!("'{word}' is not a mode such as 660")))
}

/// The codec's.
const MOST_FIELDS: i64 = 128;

/// Capabilities that `setcap` can name.
const CAPABILITIES: [(&str, CapabilitySet); 3] = [
    ("cap_net_admin", CapabilitySet::NET_ADMIN),
    ("cap_net_raw", CapabilitySet::NET_RAW),
    ("cap_net_bind_service", CapabilitySet::NET_BIND_SERVICE),
];
