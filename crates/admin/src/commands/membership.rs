//! Servers added, removed and renamed.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::context::Context;
use crate::settings::Level;
use std::sync::Arc;
use terse_balance::keywords::server::words_of_added;
use terse_balance::{NotRemoved, NotRenamed, Server};
use terse_config::Environment;
use terse_proxy::plan::{Backend, Plan};

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "add server help",
        usage: "add server help",
        summary: "list the words that an added server may have",
        level: Level::Admin,
        run: |_| {
            let words = words_of_added().map(|word| format!("{word}\n"));
            Ok(Answer::Text(std::iter::once("List of keywords supported for dynamic server:\n".into()).chain(words).collect()))
        },
    },
    Command {
        name: "add server",
        usage: "add server <bk>/<srv> <addr> [<parameter>...]",
        summary: "add a server, in maintenance and without checks",
        level: Level::Admin,
        run: add,
    },
    Command {
        name: "del server",
        usage: "del server <bk>/<srv>",
        summary: "remove a server that is in maintenance and has no requests",
        level: Level::Admin,
        run: delete,
    },
];

fn add(call: &mut Call<'_>) -> Outcome {
    let named = call.arg(0).split_once('/').filter(|(_, server)| !server.is_empty());
    let (backend, server) = named.ok_or_else(|| Message::error("Require 'backend/server'."))?;
    let backend = call.backend(backend).ok_or_else(|| Message::error("No such backend."))?;
    if call.args.iter().any(|word| std::str::from_utf8(word.bytes()).is_err()) {
        return Err(Message::error("A server's words have to be UTF-8."));
    }
    let words: Vec<String> = [server.to_owned()].into_iter().chain(call.args[1..].iter().map(|word| word.to_string())).collect();
    let environment = Environment { variables: call.context.host.environment().into_iter().collect(), ..Environment::default() };
    let mut said = call.context.plan.add_server(&backend, &words, &environment).map_err(Message::error)?;
    said.push("New server registered.".into());
    Ok(Answer::Said(Message::info(said.join("\n"))))
}

fn delete(call: &mut Call<'_>) -> Outcome {
    let (backend, server) = call.server(0)?;
    backend.farm.dismiss(&server).map_err(|refused| Message::error(why(refused)))?;
    Ok(Answer::Said(Message::info("Server deleted.")))
}

/// Gives a server another name (`set server ... name`).
pub(super) fn rename(backend: &Backend, server: &Server, name: &str) -> Outcome {
    let problem = match name {
        "" => Some("set server <b>/<s> name requires a new name."),
        name if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:.-".contains(&byte)) => {
            Some("Server name contains invalid characters.")
        }
        name if name.len() > MOST_NAME_BYTES => Some("Server name too long."),
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(Message::error(problem));
    }
    backend.farm.rename(server, name).map_err(|refused| Message::error(why_not_renamed(refused)))?;
    Ok(Answer::Said(Message::info("Server name updated.")))
}

/// HAProxy's.
const MOST_NAME_BYTES: usize = 63;

/// Whether a server can be removed now (`wait ... srv-removable`).
///
/// # Errors
/// The reason, and whether it may go away by itself.
pub(super) fn removable(context: &Context, named: &str) -> Result<(), (bool, &'static str)> {
    let Some((backend, server)) = named.split_once('/') else { return Err((false, "Require 'backend/server'.")) };
    let Some(backend) = find(&context.plan, backend) else { return Err((false, "No such backend.")) };
    let Some(server) = backend.farm.find_server(server) else { return Err((false, "No such server.")) };
    let server: &Arc<Server> = &server;
    backend.farm.removable(server).map_err(|refused| (refused == NotRemoved::Busy, why(refused)))
}

fn find(plan: &Plan, name: &str) -> Option<Arc<Backend>> {
    plan.backends.now().named(name.as_bytes()).cloned()
}

/// HAProxy's words.
const fn why(refused: NotRemoved) -> &'static str {
    match refused {
        NotRemoved::Referenced => "This server cannot be removed at runtime due to other configuration elements pointing to it.",
        NotRemoved::AtWork => "Only servers in maintenance mode can be deleted.",
        NotRemoved::Busy => "Server still has connections attached to it, cannot remove it.",
    }
}

/// HAProxy's words, where they exist.
const fn why_not_renamed(refused: NotRenamed) -> &'static str {
    match refused {
        NotRenamed::Referenced => "Cannot rename: server's name is statically referenced (use-server, track, or sample argument).",
        NotRenamed::AtWork => "Server must be in maintenance mode to be renamed (set server <b>/<s> state maint).",
        NotRenamed::NameTaken => "A server with the same name already exists in this backend.",
        NotRenamed::TooOften => "This server has had too many names.",
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn a_server_comes_and_goes() {
        let mut talk = Talk::new(WEB);
        let farm = talk.context.plan.backends.now()[0].farm.clone();
        let before = farm.servers().len();
        assert_eq!(talk.says("add server be/new 127.0.0.1:7 weight 3"), "New server registered.\n\n");
        let server = farm.find_server("new").unwrap().clone();
        assert_eq!((server.weight(), server.admin().is_maint(), farm.servers().len()), (3, true, before + 1));
        assert_eq!(talk.says("del server be/new"), "Server deleted.\n\n");
        assert_eq!((farm.servers().len(), server.is_gone()), (before, true));
        assert_eq!(talk.says("add server be/new 127.0.0.1:7 id 900"), "New server registered.\n\n");
        let again = farm.find_server("#900").unwrap().clone();
        assert_eq!(again.index(), server.index() + 1, "a number is given once");
        assert_ne!(again.slot(), server.slot(), "who holds a server holds its slot");
    }

    #[test]
    fn a_server_begins_with_what_it_asks_for() {
        let lines =
            "default-server weight 10 maxconn 4\ndefault-server name other weight 5\ndefault-server name checked healthcheck x";
        let mut talk = Talk::new(&format!("healthcheck x\n type tcp\n{WEB}\nbackend more\n{lines}\n"));
        for (from, said, weight) in [
            ("", "New server registered.", Some((1, 0))),
            ("from none", "New server registered.", Some((1, 0))),
            ("from be:", "New server registered.", Some((10, 4))),
            ("from srv:other maxconn 2", "New server registered.", Some((5, 2))),
            ("from srv:be/b", "New server registered.", Some((10, 20))),
            ("from srv:x", "'from': unknown server 'x' in backend 'more'", None),
            ("from be:x", "'from': unknown backend 'x'", None),
            ("from srv:checked", "'healthcheck' option is not accepted for dynamic server", None),
        ] {
            assert_eq!(talk.says(&format!("add server more/s 127.0.0.1:7 {from}")), format!("{said}\n\n"), "{from}");
            let backend = talk.context.plan.backends.now().named(b"more").unwrap().clone();
            let server = backend.farm.find_server("s").map(|server| (server.weight(), server.maxconn()));
            assert_eq!(server, weight, "{from}");
            talk.says("del server more/s");
        }
        assert_eq!(talk.says("show default-server"), "* more\n  more/checked\n  more/other\n\n");
        assert_eq!(talk.says("show default-server be"), "\n");
        assert_eq!(talk.says("show default-server x"), "Can't find backend.\n\n");
        let mut talk = Talk::new(&format!(
            "global\n tune.defaults.purge all\n{WEB}\nbackend more\n{lines}\n",
            lines = "default-server weight 3"
        ));
        assert_eq!(talk.says("show default-server"), "\n");
    }

    #[test]
    fn a_server_gets_another_name() {
        let mut talk = Talk::new(&format!("{WEB}\nbackend used\n server a 127.0.0.1:9\n use-server a if TRUE\n"));
        for (command, said) in [
            ("set server be/a name", "set server <b>/<s> name requires a new name."),
            ("set server be/a name x", "Server must be in maintenance mode to be renamed (set server <b>/<s> state maint)."),
            ("disable server be/a", ""),
            ("set server be/a name bad/name", "Server name contains invalid characters."),
            ("set server be/a name b", "A server with the same name already exists in this backend."),
            ("set server be/a name a", "Server name updated."),
            ("disable server used/a", ""),
            (
                "set server used/a name x",
                "Cannot rename: server's name is statically referenced (use-server, track, or sample argument).",
            ),
            ("set server be/a name blue", "Server name updated."),
            ("set server be/a state ready", "No such server."),
            ("enable server be/blue", ""),
            ("add server be/a 127.0.0.1:7", "New server registered."),
        ] {
            let end = if said.is_empty() { "" } else { "\n" };
            assert_eq!(talk.says(command), format!("{said}{end}\n"), "{command}");
        }
        assert!(talk.says("show servers state be").contains("\n3 be 1 blue 127.0.0.1 "));
        assert!(talk.says("show stat").contains("\nbe,blue,"));
        let long = "x".repeat(64);
        assert_eq!(talk.says(&format!("set server be/c name {long}")), "Server name too long.\n\n");
    }

    #[test]
    fn what_cannot_be_added_or_removed_is_said_in_haproxys_words() {
        let mut talk = Talk::new(WEB);
        for (command, said) in [
            ("add server", "Require 'backend/server'."),
            ("add server be/", "Require 'backend/server'."),
            ("add server x/s 127.0.0.1:1", "No such backend."),
            ("add server be/s", "'server' expects <name> and <addr>[:<port>] as arguments."),
            ("add server be/a 127.0.0.1:1", "Already exists a server with the same name in backend."),
            ("add server be/a/b 127.0.0.1:1", "character '/' is not permitted in server name 'a/b'."),
            ("add server be/s 127.0.0.1:1 resolvers x", "'resolvers' option is not accepted for dynamic server"),
            ("add server be/s 127.0.0.1:1 track be/b check", "unable to enable checks and tracking at the same time!"),
            (
                "add server be/s 127.0.0.1:1 track be/b",
                "unable to use be/b for tracking as it does not have any check nor agent enabled.",
            ),
            ("add server be/s 127.0.0.1:1 id 1", "'id' : custom id already used by server 'a'."),
            ("del server be/a", "Only servers in maintenance mode can be deleted."),
            ("del server be/x", "No such server."),
            ("del server x/a", "No such backend."),
        ] {
            assert_eq!(talk.says(command), format!("{said}\n\n"), "{command}");
        }
        assert!(talk.says("add server be/s 127.0.0.1:1 foo").contains("unknown parameter 'foo'"));
        assert!(talk.says("add server help").contains("\nweight\n"));
    }
}
