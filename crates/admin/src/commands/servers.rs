//! Backends and their servers listed.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use std::sync::Arc;
use std::time::Instant;
use terse_balance::report::{self, CONNECTIONS_HEADER};
use terse_proxy::plan::Backend;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "show servers state",
        usage: "show servers state [<backend>]",
        summary: "show the state of servers, in the form that files of states have",
        level: Level::User,
        run: show_state,
    },
    Command {
        name: "show servers conn",
        usage: "show servers conn [<backend>]",
        summary: "show the connections of servers: those in use, and limits of idle ones",
        level: Level::User,
        run: show_connections,
    },
    Command {
        name: "show default-server",
        usage: "show default-server [<backend>]",
        summary: "list what the 'from' of servers may name",
        level: Level::User,
        run: show_templates,
    },
    Command {
        name: "show backend",
        usage: "show backend",
        summary: "list the backends",
        level: Level::User,
        run: |call| {
            let backends = call.context.plan.backends.now();
            let names = backends.iter().map(|backend| format!("{}\n", backend.name));
            Ok(Answer::Text(std::iter::once("# name\n".to_owned()).chain(names).collect()))
        },
    },
];

/// All backends, or the named one.
fn backends(call: &Call<'_>) -> Result<Vec<Arc<Backend>>, Message> {
    Ok(match call.args.first() {
        None => call.context.plan.backends.now().to_vec(),
        Some(name) => vec![call.backend(name).ok_or_else(|| Message::error("Can't find backend."))?],
    })
}

fn show_templates(call: &mut Call<'_>) -> Outcome {
    let mut text = String::new();
    for backend in backends(call)? {
        let mut mark = '*';
        for template in backend.farm.settings().templates() {
            let (slash, name) = template.map_or(("", ""), |name| ("/", name));
            text.push_str(&format!("{mark} {}{slash}{name}\n", backend.name));
            mark = ' ';
        }
    }
    Ok(Answer::Text(text))
}

fn show_connections(call: &mut Call<'_>) -> Outcome {
    let mut text = format!("{CONNECTIONS_HEADER}\n");
    for backend in backends(call)? {
        for server in backend.farm.servers().iter() {
            text.push_str(&report::connections_line(&backend.farm, server));
            text.push('\n');
        }
    }
    Ok(Answer::Text(text))
}

fn show_state(call: &mut Call<'_>) -> Outcome {
    let backends = backends(call)?;
    let now = Instant::now();
    let mut text = format!("{}\n", report::STATE_HEADER);
    for backend in backends {
        for server in backend.farm.servers().iter() {
            text.push_str(&report::state_line(&backend.farm, server, now));
            text.push('\n');
        }
    }
    Ok(Answer::Text(text))
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn states_of_all_or_one() {
        let mut talk = Talk::new(WEB);
        let all = talk.says("show servers state");
        let lines: Vec<_> = all.trim_end().lines().collect();
        assert_eq!((lines[0], lines.len()), ("1", 6));
        assert!(lines[1].starts_with("# be_id be_name srv_id srv_name srv_addr srv_op_state "), "{all}");
        assert!(lines[2].starts_with("3 be 1 a 127.0.0.1 2 0 1 1 ") && lines[4].starts_with("3 be 3 c 127.0.0.1 0 5 "), "{all}");
        let one = talk.says("show servers state raw");
        assert_eq!(one.trim_end().lines().count(), 3);
        assert_eq!(talk.says("show servers state nope"), "Can't find backend.\n\n");
    }

    #[test]
    fn connections_of_all_or_one() {
        let mut talk = Talk::new(WEB);
        let all = talk.says("show servers conn");
        assert!(all.starts_with("# bkname/svname bkid/svid addr port - purge_delay served "), "{all}");
        assert!(all.contains("\nbe/b 3/2 127.0.0.1 2 - 5000 0 0 0 0 0 0 0 -1 0\n"), "{all}");
        assert!(all.contains("\nraw/r ") && !talk.says("show servers conn be").contains("raw/"));
        assert_eq!(talk.says("show servers conn nope"), "Can't find backend.\n\n");
    }

    #[test]
    fn backends_are_listed() {
        assert_eq!(Talk::new(WEB).says("show backend"), "# name\nbe\nraw\nempty\n\n");
    }
}
