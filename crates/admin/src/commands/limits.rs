//! Limits changed.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "set maxconn server",
    usage: "set maxconn server <bk>/<srv> <number>",
    summary: "change how many requests a server has at a time; 0 is any number",
    level: Level::Admin,
    run: set_server,
}];

fn set_server(call: &mut Call<'_>) -> Outcome {
    let (backend, server) = call.server(0)?;
    let word = call.args.get(1).ok_or_else(|| Message::error("Require <maxconn>."))?;
    let maxconn = word.parse().map_err(|_| Message::error(format!("<maxconn>: '{word}' is not a whole number.")))?;
    backend.farm.set_maxconn(server, maxconn);
    Ok(Answer::Done)
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn of_a_server() {
        let mut talk = Talk::new(WEB);
        assert_eq!(talk.says("set maxconn server be/a 5"), "\n");
        assert_eq!(talk.context.plan.backends[0].farm.servers()[0].maxconn(), 5);
        assert_eq!(talk.says("set maxconn server be/a"), "Require <maxconn>.\n\n");
        assert_eq!(talk.says("set maxconn server be/a -1"), "<maxconn>: '-1' is not a whole number.\n\n");
        assert_eq!(talk.says("set maxconn server be"), "Require 'backend/server'.\n\n");
        assert!(talk.says("set maxconn frontend fe 3").starts_with("'set maxconn frontend' is not supported: "));
    }
}
