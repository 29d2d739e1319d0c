//! Limits changed.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use crate::words::Word;
use std::sync::atomic::Ordering::Relaxed;

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
    Command {
        name: "set maxconn global",
        usage: "set maxconn global <number>",
        summary: "change how many clients' connections the process has at a time; 0 is as many as it can",
        level: Level::Admin,
        run: set_process,
    },
    Command {
        name: "set rate-limit",
        usage: "set rate-limit {connections|sessions|ssl-sessions|http-compression} global <number>",
        summary: "change how many connections the process accepts, or kilobytes it compresses, in a second; 0 is any number",
        level: Level::Admin,
        run: set_rate,
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

fn set_process(call: &mut Call<'_>) -> Outcome {
    let plan = &call.context.plan;
    let most = plan.process.maxconn;
    match number::<usize>(call.args.first().ok_or_else(|| Message::error(NO_NUMBER))?)? {
        limit if limit > most && most > 0 => return Err(Message::error("Value out of range.")),
        0 => plan.limits.connections.store(most, Relaxed),
        limit => plan.limits.connections.store(limit, Relaxed),
    }
    Ok(Answer::Done)
}

fn set_rate(call: &mut Call<'_>) -> Outcome {
    let limits = &call.context.plan.limits;
    let words: Vec<&str> = call.args.iter().map(Word::as_str).collect();
    let compression = &call.context.plan.process.compression.most_rate;
    let (set, rest): (&dyn Fn(u64), _) = match &words[..] {
        ["connections", "global", rest @ ..] => (&|most| limits.connection_rate.set(most), rest),
        ["sessions", "global", rest @ ..] => (&|most| limits.session_rate.set(most), rest),
        ["ssl-sessions", "global", rest @ ..] => (&|most| limits.tls_rate.set(most), rest),
        ["http-compression", "global", rest @ ..] => (&|most| compression.set(most), rest),
        _ => return Err(Message::error(RATES)),
    };
    let word = rest.first().ok_or_else(|| Message::error(NO_NUMBER))?;
    set(word.parse().map_err(|_| Message::error("Value out of range."))?);
    Ok(Answer::Done)
}

const NO_NUMBER: &str = "Expects an integer value.";
const RATES: &str = "'set rate-limit' only supports :\n   - 'connections global', connections of the process a second\n   \
    - 'sessions global', its sessions a second\n   - 'ssl-sessions global', its TLS sessions a second\n   \
    - 'http-compression global', kilobytes a second that are compressed";

fn number<T: std::str::FromStr>(word: &str) -> Result<T, Message> {
    word.parse().map_err(|_| Message::error(format!("<maxconn>: '{word}' is not a whole number.")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn of_a_server() {
        let mut talk = Talk::new(WEB);
        assert_eq!(talk.says("set maxconn server be/a 5"), "\n");
        assert_eq!(talk.context.plan.backends.now()[0].farm.servers()[0].maxconn(), 5);
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
    }

    #[test]
    fn of_the_process() {
        let mut talk = Talk::new(WEB);
        let limits = |talk: &Talk| {
            let limits = &talk.context.plan.limits;
            let rates = [&limits.connection_rate, &limits.session_rate, &limits.tls_rate].map(|rate| rate.limit());
            (limits.connections.load(Relaxed), rates)
        };
        assert_eq!(limits(&talk), (100, [0; 3]));
        for command in [
            "set maxconn global 3",
            "set rate-limit connections global 4",
            "set rate-limit sessions global 5",
            "set rate-limit ssl-sessions global 6",
            "set rate-limit http-compression global 7",
        ] {
            assert_eq!(talk.says(command), "\n", "{command}");
        }
        assert_eq!(limits(&talk), (3, [4, 5, 6]));
        let said = talk.says("show info");
        for line in [
            "Maxconn: 3",
            "Hard_maxconn: 100",
            "ConnRateLimit: 4",
            "SessRateLimit: 5",
            "SslRateLimit: 6",
            "CompressBpsRateLim: 7168",
        ] {
            assert!(said.lines().any(|own| own == line), "{line}: {said}");
        }
        for (command, answer) in [
            ("set maxconn global", "Expects an integer value.\n\n"),
            ("set maxconn global 101", "Value out of range.\n\n"),
            ("set rate-limit sessions global", "Expects an integer value.\n\n"),
            ("set rate-limit sessions global -1", "Value out of range.\n\n"),
            ("set rate-limit http-compression global", "Expects an integer value.\n\n"),
            ("set rate-limit http-compression global x", "Value out of range.\n\n"),
        ] {
            assert_eq!(talk.says(command), answer, "{command}");
        }
        assert!(talk.says("set rate-limit sessions frontend").starts_with("'set rate-limit' only supports :\n"));
        assert_eq!((talk.says("set maxconn global 0").as_str(), limits(&talk).0), ("\n", 100));
    }
}
