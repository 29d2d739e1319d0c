//! Backends added and removed.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::context::Context;
use crate::settings::Level;
use terse_balance::guid::Guid;
use terse_proxy::plan::NotRemoved;
use terse_proxy::plan::build::Wanted;
use terse_proxy::settings::Mode;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "add backend",
        usage: "add backend <bk> from <defaults> [mode <mode>] [guid <guid>]",
        summary: "add a backend that begins with a section of defaults; it is not published",
        level: Level::Admin,
        run: add,
    },
    Command {
        name: "del backend",
        usage: "del backend <bk>",
        summary: "remove a backend that is not published and has neither servers nor streams",
        level: Level::Admin,
        run: delete,
    },
    Command {
        name: "show defaults",
        usage: "show defaults",
        summary: "list the sections of defaults that 'add backend' knows",
        level: Level::User,
        run: |call| {
            let names = call.context.plan.templates.names();
            Ok(Answer::Text(names.iter().map(|name| format!("{name}\n")).collect()))
        },
    },
];

fn add(call: &mut Call<'_>) -> Outcome {
    let refused = |text: &str| Err(Message::error(text.to_owned()));
    let name = call.arg(0);
    if name.is_empty() {
        return refused("Require backend name.");
    }
    if let Some(wrong) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !"_:.-".contains(*c)) {
        return refused(&format!("Invalid character '{wrong}' in backend name."));
    }
    if call.arg(1) != "from" || call.arg(2).is_empty() {
        return refused("Usage: add backend <name> from <defproxy>.");
    }
    let mut wanted = Wanted { name, from: call.arg(2), mode: None, guid: None };
    for pair in call.args[3..].chunks(2) {
        match pair {
            [word, mode] if word == "mode" && wanted.mode.is_none() => {
                wanted.mode = Some(match mode.as_str() {
                    "http" => Mode::Http,
                    "tcp" => Mode::Tcp,
                    "log" | "health" | "spop" | "peers" | "haterm" => {
                        return refused("Dynamic backends are compatible with only TCP or HTTP mode.");
                    }
                    _ => return refused("Unknown proxy mode."),
                });
            }
            [word, guid] if word == "guid" && wanted.guid.is_none() => {
                if !Guid::fits(guid) {
                    return refused(&format!("'{guid}' cannot be a name of statistics."));
                }
                wanted.guid = Some(guid);
            }
            _ => return refused("Usage: add backend <name> from <defproxy> [mode <px_mode>] [guid <val>]."),
        }
    }
    let said = call.context.plan.add_backend(wanted).map_err(Message::error)?;
    Ok(Answer::Said(Message::info(said.join("\n"))))
}

fn delete(call: &mut Call<'_>) -> Outcome {
    let plan = &call.context.plan;
    if call.args.len() > 1 {
        return Err(Message::error("Usage: del backend <name>."));
    }
    let backend = plan.backends.now().named(call.arg(0).as_bytes()).cloned().ok_or_else(|| Message::error(UNKNOWN))?;
    plan.remove_backend(&backend).map_err(|refused| Message::error(why(refused)))?;
    Ok(Answer::Said(Message::info("Backend deleted.")))
}

/// Whether a backend can be removed now (`wait ... be-removable`).
///
/// # Errors
/// The reason, and whether it may go away by itself.
pub(super) fn removable(context: &Context, named: &str) -> Result<(), (bool, &'static str)> {
    let backends = context.plan.backends.now();
    let backend = backends.named(named.as_bytes()).ok_or((false, UNKNOWN))?;
    context.plan.removable(backend).map_err(|refused| (refused == NotRemoved::Busy, why(refused)))
}

const UNKNOWN: &str = "No such backend.";

/// HAProxy's words.
const fn why(refused: NotRemoved) -> &'static str {
    match refused {
        NotRemoved::Gone => UNKNOWN,
        NotRemoved::Listen => "Cannot delete a listen section.",
        NotRemoved::HasTable => "Cannot remove a backend with stick-table.",
        NotRemoved::Referenced => "This proxy cannot be removed at runtime due to other configuration elements pointing to it.",
        NotRemoved::TakesLogs => "Only TCP or HTTP proxies can be removed at runtime.",
        NotRemoved::Published => "Backend must be unpublished prior to its deletion.",
        NotRemoved::HasServers => "Only a backend without server can be deleted.",
        NotRemoved::Busy => "Backend still has attached streams on it.",
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};
    use std::sync::atomic::Ordering::Relaxed;
    use terse_proxy::settings::Mode;

    const BASES: &str = "defaults plain\ndefaults web\n mode http\n balance leastconn\n retries 7\n default-server weight 9\n\
        defaults fixed from web\n balance static-rr\ndefaults lines\n mode log\ndefaults lost\n mode http\n log ring@none local0\n\
        defaults hashed\n mode http\n balance sticky\n";

    #[test]
    fn a_backend_comes() {
        let mut talk = Talk::new(&format!("{WEB}\n{BASES}"));
        let plan = talk.context.plan.clone();
        assert_eq!(talk.says("show defaults"), "plain\nweb\nfixed\nlines\nlost\nhashed\n\n");
        assert_eq!(talk.says("add backend new from web guid g:1"), "New backend registered.\n\n");
        assert_eq!(talk.says("show backend"), "# name\nbe\nraw\nempty\nnew\n\n");
        let new = plan.backends.now().named(b"new").unwrap().clone();
        assert_eq!((new.number, new.id, new.retries, new.mode), (3, 6, 7, Mode::Http));
        assert!(!new.is_published.load(Relaxed));
        assert_eq!(talk.says("add server new/s 127.0.0.1:7 from be:"), "New server registered.\n\n");
        assert!(talk.says("show servers state").contains("\n6 new 1 s 127.0.0.1 "));
        assert!(talk.says("show stat").ends_with(&talk.says("show stat new 6 -1").split_once('\n').unwrap().1));
        assert_eq!(talk.says("get weight new/s"), "9 (initial 9)\n\n");
        for (command, said) in [
            ("add backend new from web", "Error during backend creation : name is already used by other proxy 'backend new'."),
            (
                "add backend other from web guid g:1",
                "Error during backend creation : GUID insertion : 'g:1' names something else already.",
            ),
            ("disable server new/s; del server new/s; publish backend new; unpublish backend new", ""),
            ("del backend new", "Backend deleted."),
            ("add backend new from plain mode tcp", "New backend registered."),
        ] {
            let answer = talk.says(command);
            assert!(said.is_empty() || answer == format!("{said}\n\n"), "{command}: {answer}");
        }
        let again = plan.backends.now().named(b"new").unwrap().clone();
        assert_eq!((again.number, again.id, again.mode), (4, 7, Mode::Tcp), "numbers are given once");
        assert_eq!(
            talk.says("add backend rr from fixed"),
            "New backend registered (no support for dynamic servers: backend 'rr' uses a non dynamic load balancing method).\n\n"
        );
    }

    #[test]
    fn what_cannot_be_added_is_said_in_haproxys_words() {
        let mut talk = Talk::new(&format!("{WEB}\n{BASES}"));
        let usage = "Usage: add backend <name> from <defproxy> [mode <px_mode>] [guid <val>].";
        for (words, said) in [
            ("", "Require backend name."),
            ("a/b", "Invalid character '/' in backend name."),
            ("a", "Usage: add backend <name> from <defproxy>."),
            ("a from", "Usage: add backend <name> from <defproxy>."),
            ("a from web mode", usage),
            ("a from web mode http mode http", usage),
            ("a from web x y", usage),
            ("a from web mode x", "Unknown proxy mode."),
            ("a from web mode log", "Dynamic backends are compatible with only TCP or HTTP mode."),
            ("a from web guid /", "'/' cannot be a name of statistics."),
            ("a from none", "Cannot find default proxy 'none'."),
            ("a from plain", "Mode is required as 'plain' default proxy does not explicitly defines it."),
            ("a from lines", "Dynamic backends only support TCP or HTTP mode, whereas default proxy 'lines' uses 'mode log'."),
            ("fe from web", "Error during backend creation : name is already used by other proxy 'frontend fe'."),
            ("raw from web", "Error during backend creation : name is already used by other proxy 'proxy raw'."),
            ("web from web", "Error during backend creation : name is already used by other proxy 'defaults web'."),
            ("a from lost", "Error during backend creation : there is no ring 'none'."),
            (
                "a from hashed",
                "Error during backend creation : backend 'a': 'balance sticky' and 'balance log-hash' are for 'mode log'.",
            ),
        ] {
            assert_eq!(talk.says(&format!("add backend {words}")), format!("{said}\n\n"), "{words}");
        }
        let mut talk = Talk::new(&format!("global\n tune.defaults.purge\n{WEB}\n{BASES}"));
        assert_eq!(talk.says("show defaults"), "\n");
        assert_eq!(talk.says("add backend a from web"), "Cannot find default proxy 'web'.\n\n");
    }

    #[test]
    fn a_backend_goes() {
        let mut talk = Talk::new(WEB);
        let plan = talk.context.plan.clone();
        let empty = plan.backends.now().named(b"empty").unwrap().clone();
        let numbers = || plan.backends.now().iter().map(|backend| backend.number).collect::<Vec<_>>();
        assert_eq!(numbers(), [0, 1, 2]);
        assert_eq!(talk.says("del backend empty"), "Backend must be unpublished prior to its deletion.\n\n");
        assert_eq!(talk.says("unpublish backend empty"), "Backend unpublished.\n\n");
        empty.tally.of(1).enter();
        assert_eq!(talk.says("del backend empty"), "Backend still has attached streams on it.\n\n");
        empty.tally.of(1).current.sub(1);
        assert!(talk.says("show stat").contains("\nempty,BACKEND,"));
        assert_eq!(talk.says("del backend empty"), "Backend deleted.\n\n");
        assert_eq!((numbers(), std::sync::Arc::strong_count(&empty)), (vec![0, 1], 1));
        assert!(!talk.says("show stat").contains("\nempty,"));
        assert_eq!(talk.says("show backend"), "# name\nbe\nraw\n\n");
        assert_eq!(talk.says("del backend empty"), "No such backend.\n\n");
    }

    #[test]
    fn what_stays_is_said_in_haproxys_words() {
        let more = "backend table\n stick-table type ip size 10\nbackend served\n server s 127.0.0.1:9\n\
            backend lines\n mode log\nbackend twin\nfrontend twin\n stick-table type ip size 10\n";
        let mut talk = Talk::new(&format!("{WEB}\n{more}"));
        for (backend, said) in [
            ("none", "No such backend."),
            ("", "No such backend."),
            ("empty x", "Usage: del backend <name>."),
            ("raw", "Cannot delete a listen section."),
            ("table", "Cannot remove a backend with stick-table."),
            ("be", "This proxy cannot be removed at runtime due to other configuration elements pointing to it."),
            ("lines", "Only TCP or HTTP proxies can be removed at runtime."),
            ("served", "Backend must be unpublished prior to its deletion."),
        ] {
            assert_eq!(talk.says(&format!("del backend {backend}")), format!("{said}\n\n"), "{backend}");
        }
        talk.says("unpublish backend served");
        assert_eq!(talk.says("del backend served"), "Only a backend without server can be deleted.\n\n");
        talk.says("unpublish backend twin");
        assert_eq!(talk.says("del backend twin"), "Backend deleted.\n\n", "the table is the frontend's");
    }
}
