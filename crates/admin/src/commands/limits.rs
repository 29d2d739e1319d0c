//! Limits changed.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "set maxconn server",
        usage: "set maxconn server <bk>/<srv> <number>",
        summary: "change how many requests a server has at a time; 0 is any number",
        level: Level::Admin,
        run: set_server,
    },
    Command {
        name: "set maxconn frontend",
        usage: "set maxconn frontend <frontend> <number>",
        summary: "change how many connections a frontend has at a time; 0 is any number",
        level: Level::Admin,
        run: set_frontend,
    },
];

fn set_server(call: &mut Call<'_>) -> Outcome {
    let (backend, server) = call.server(0)?;
    let word = call.args.get(1).ok_or_else(|| Message::error("Require <maxconn>."))?;
    backend.farm.set_maxconn(&server, number(word)?);
    Ok(Answer::Done)
}

fn set_frontend(call: &mut Call<'_>) -> Outcome {
    let name = call.args.first().ok_or_else(|| Message::error("A frontend name is expected."))?;
    let frontend = call.frontend(name).ok_or_else(|| Message::error("No such frontend."))?;
    let word = call.args.get(1).ok_or_else(|| Message::error("Integer value expected."))?;
    frontend.tally.set_limit(number::<u32>(word)? as usize);
    Ok(Answer::Done)
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, Message> {
    word.parse().map_err(|_| Message::error(format!("<maxconn>: '{word}' is not a whole number.")))
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
    }

    #[test]
    fn of_a_frontend() {
        let mut talk = Talk::new(WEB);
        assert_eq!(talk.says("set maxconn frontend fe 5"), "\n");
        assert_eq!(talk.context.plan.frontends[0].tally.limit(), 5);
        assert_eq!(talk.says("set maxconn frontend #2 0"), "\n");
        assert_eq!(talk.context.plan.frontends[0].tally.limit(), 0);
        assert_eq!(talk.says("set maxconn frontend"), "A frontend name is expected.\n\n");
        assert_eq!(talk.says("set maxconn frontend be 1"), "No such frontend.\n\n");
        assert_eq!(talk.says("set maxconn frontend fe"), "Integer value expected.\n\n");
        assert_eq!(talk.says("set maxconn frontend fe x"), "<maxconn>: 'x' is not a whole number.\n\n");
        assert!(talk.says("set maxconn global 3").starts_with("'set maxconn global' is not supported: "));
    }
}
