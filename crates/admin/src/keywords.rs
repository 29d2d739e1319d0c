//! The keywords of stats sockets, joined with those of the statistics page.

use crate::console;
use crate::page;
use crate::settings::{AdminSettings, Level, SeverityForm, StatsSocket};
use terse_config::{Args, Fault, Keyword, Kind, Scope, Sections};
use terse_proxy::keywords::bind;

/// All tables of this crate.
pub const KEYWORDS: &[&[Keyword]] = &[GLOBAL, page::keywords::KEYWORDS];

const GLOBAL: &[Keyword] = &[
    global(
        "stats socket",
        "<address>[,<address>]... [level user|operator|admin] [expose-fd listeners] [severity-output none|number|string] [<parameter>]...",
        "Answers commands on addresses; the parameters are those of 'bind'.",
        Kind::Done(socket),
    ),
    global("stats timeout", "<time>", "How long a client of a stats socket may be silent: 10 seconds.", Kind::Done(timeout)),
    global(
        "stats maxconn",
        "<number>",
        "The most clients of all stats sockets at a time: 10; more wait in the kernel.",
        Kind::Done(maxconn),
    ),
    global(
        "console",
        "<address> [user <user>:<password>] [host <name>]...",
        "Shows the statistics page on an address, at '/'. Without a user it is for looking, listens on loopback addresses alone, and answers \
         to 'localhost', addresses and these names.",
        Kind::Done(console::parse),
    ),
    global("stats-file", "<file>", "Counters go on from what 'dump stats-file' has written there.", Kind::Done(stats_file)),
    global(
        "stats bind-process",
        "<processes>",
        "The processes that answer.",
        Kind::Accepted("there is one process, and one thread of it serves all stats sockets"),
    ),
    global(
        "stats calculate-max-counters",
        "on|off",
        "Whether peaks are kept.",
        Kind::Accepted("peaks cost nothing, and are always kept"),
    ),
];

const fn global(name: &'static str, arguments: &'static str, summary: &'static str, kind: Kind) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind }
}

fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut AdminSettings {
    scope.section.settings.entry()
}

fn socket(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let (mut level, mut severity, mut exposes_listeners) = (Level::default(), SeverityForm::default(), false);
    let mut own = |args: &mut Args<'_>| {
        match args.peek() {
            Some("level") => {
                args.take();
                let word = args.need("<level>")?;
                level = Level::of_word(word).ok_or_else(|| args.fault(format!("'{word}' is not 'user', 'operator' or 'admin'")))?;
            }
            Some("severity-output") => {
                args.take();
                let word = args.need("<form>")?;
                let form = SeverityForm::of_word(word);
                severity = form.ok_or_else(|| args.fault(format!("'{word}' is not 'none', 'number' or 'string'")))?;
            }
            Some("expose-fd") => {
                args.take();
                match args.need("'listeners'")? {
                    "listeners" => exposes_listeners = true,
                    word => return Err(args.fault(format!("'{word}' is not 'listeners'"))),
                }
            }
            Some("process" | "thread") => {
                args.take();
                args.changes_nothing("one thread serves all stats sockets, and it is no worker");
                args.need("<workers>")?;
            }
            Some("ssl") => {
                args.take();
                return Err(args.fault("'ssl' is not supported: stats sockets are not spoken to over TLS"));
            }
            _ => return Ok(false),
        }
        Ok(true)
    };
    let binds = bind::read(args, scope, &mut own)?;
    let sockets = binds.into_iter().map(|bind| StatsSocket { bind, level, severity, exposes_listeners });
    settings(scope).sockets.extend(sockets);
    Ok(())
}

fn stats_file(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = args.place(&scope.place);
    let file = args.need("<file>")?.to_owned();
    args.end()?;
    settings(scope).stats_file = Some((file, place));
    Ok(())
}

fn timeout(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let time = args.time("<time>")?;
    if time.is_zero() {
        return Err(args.fault("a time-out of 0 would close every connection at once"));
    }
    settings(scope).timeout = Some(time);
    Ok(())
}

fn maxconn(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let number = args.integer("<number>", 1..=i64::from(i32::MAX))?;
    settings(scope).maxconn = usize::try_from(number).ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use terse_config::{Config, Environment, Loader, Settings, Source};

    fn load(text: &str) -> (Config, Vec<String>) {
        let variables = [("cli".to_owned(), "7".to_owned())].into();
        let environment = Environment { variables, ..Environment::default() };
        let loader = Loader { tables: KEYWORDS.to_vec(), environment };
        let (config, diagnostics) = loader.load(&[Source { name: "test".into(), bytes: text.into() }], Settings::default());
        (config, diagnostics.iter().map(|d| d.reason.clone()).collect())
    }

    fn global(lines: &str) -> AdminSettings {
        let (mut config, said) = load(&format!("global\n{lines}\n"));
        assert_eq!(said, [""; 0], "{lines}");
        config.global.settings.take().unwrap_or_default()
    }

    #[test]
    fn sockets_and_their_parameters() {
        let settings = global(
            " stats socket /run/t.sock mode 660 group adm level admin expose-fd listeners process 1\n\
             \x20stats socket fd@${cli} level user severity-output string\n stats socket ipv4@127.0.0.1:9999 name x backlog 3\n\
             \x20stats timeout 2m\n stats maxconn 3\n stats bind-process 1\n",
        );
        let [path, descriptor, tcp] = &settings.sockets[..] else { panic!("{:?}", settings.sockets) };
        assert_eq!((path.level, path.exposes_listeners, path.bind.mode), (Level::Admin, true, Some(0o660)));
        assert_eq!((path.bind.group.as_deref(), path.address()), (Some("adm"), "unix@/run/t.sock".into()));
        assert_eq!((descriptor.level, descriptor.severity), (Level::User, SeverityForm::Text));
        assert_eq!((descriptor.address(), descriptor.exposes_listeners), ("fd@7".into(), false));
        assert_eq!((tcp.level, tcp.bind.backlog, tcp.address()), (Level::Operator, Some(3), "ipv4@127.0.0.1:9999".into()));
        assert_eq!((settings.timeout(), settings.maxconn()), (std::time::Duration::from_secs(120), 3));
        let none = global("");
        assert_eq!((none.timeout(), none.maxconn()), (DEFAULT_TIME, 10));
    }

    const DEFAULT_TIME: std::time::Duration = std::time::Duration::from_secs(10);

    #[test]
    fn what_is_wrong_is_said() {
        for line in [
            "stats socket",
            "stats socket /x level root",
            "stats socket /x level",
            "stats socket /x expose-fd all",
            "stats socket /x severity-output loud",
            "stats socket /x ssl crt y",
            "stats socket 127.0.0.1",
            "stats timeout x",
            "stats timeout 0",
            "stats maxconn 0",
        ] {
            let said = load(&format!("global\n {line}\n")).1;
            assert_eq!(said.len(), 1, "{line}: {said:?}");
        }
    }

    #[test]
    fn the_tables_are_sound() {
        assert_eq!(terse_config::keyword::tables_are_sound(KEYWORDS), [""; 0]);
    }
}
