//! Conversation: its mode, the client's rights, the list of commands.

use crate::answer::{Answer, Message, Outcome};
use crate::client::{Client, Ending, Mode};
use crate::command::{Call, Command};
use crate::commands;
use crate::help;
use crate::settings::{Level, SeverityForm, StatsSocket};
use crate::words::{self, Word};
use terse_config::TimeUnit;
use terse_config::units::parse_time_in;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "help",
        usage: "help [<command>]",
        summary: "list all commands, or those that begin so",
        level: Level::User,
        run: |call| {
            let mut text = help::list(commands::FAMILIES, call.args);
            call.context.settings.link.guests().list(call.args, &mut text);
            Ok(Answer::Text(text))
        },
    },
    Command {
        name: "prompt",
        usage: "prompt [help | n | i | p | timed]*",
        summary: "ask for more commands, with a prompt",
        level: Level::User,
        run: prompt,
    },
    Command {
        name: "quit",
        usage: "quit",
        summary: "disconnect",
        level: Level::User,
        run: |call| {
            call.client.ending = Some(Ending::Close);
            Ok(Answer::Done)
        },
    },
    Command {
        name: "echo",
        usage: "echo <text>",
        summary: "answer with the text",
        level: Level::User,
        run: |call| match call.args.is_empty() {
            true => Ok(Answer::Done),
            false => Ok(Answer::Bytes([&*words::joined(call.args), b"\n"].concat())),
        },
    },
    Command {
        name: "operator",
        usage: "operator",
        summary: "give up what only the level admin may do",
        level: Level::Operator,
        run: |call| lower(call, Level::Operator),
    },
    Command {
        name: "user",
        usage: "user",
        summary: "give up what only the levels admin and operator may do",
        level: Level::User,
        run: |call| lower(call, Level::User),
    },
    Command {
        name: "experimental-mode",
        usage: "experimental-mode [on | off]",
        summary: "allow commands whose form may still change, or show whether they are allowed",
        level: Level::Admin,
        run: |call| switch(&mut call.client.experimental, "experimental-mode", call.args),
    },
    Command {
        name: "expert-mode",
        usage: "expert-mode [on | off]",
        summary: "allow commands for experts, or show whether they are allowed",
        level: Level::Admin,
        run: |call| switch(&mut call.client.expert, "expert-mode", call.args),
    },
    Command {
        name: "set timeout",
        usage: "set timeout cli <delay>",
        summary: "change how long this client may be silent",
        level: Level::User,
        run: set_timeout,
    },
    Command {
        name: "set severity-output",
        usage: "set severity-output none|number|string",
        summary: "change how messages say how grave they are",
        level: Level::User,
        run: set_severity,
    },
    Command {
        name: "show cli level",
        usage: "show cli level",
        summary: "show what this client may do",
        level: Level::User,
        run: |call| Ok(Answer::Text(format!("{}\n", call.client.level.word()))),
    },
    Command {
        name: "show cli sockets",
        usage: "show cli sockets",
        summary: "list the stats sockets",
        level: Level::User,
        run: show_sockets,
    },
];

pub(crate) fn prompt<C>(call: &mut Call<'_, C>) -> Outcome {
    let Client { mode, plain, timed, .. } = call.client;
    if call.args.is_empty() {
        *mode = if *mode == Mode::Prompt { *plain } else { Mode::Prompt };
    }
    for word in call.args {
        match word.as_str() {
            "n" if *plain == Mode::Single => *mode = Mode::Single,
            "i" => *mode = Mode::Interactive,
            "p" => *mode = Mode::Prompt,
            "timed" => (*mode, *timed) = (Mode::Prompt, !*timed),
            _ => return Ok(Answer::Text(PROMPT_HELP.into())),
        }
    }
    Ok(Answer::Done)
}

const PROMPT_HELP: &str = "\
Usage: prompt [help | n | i | p | timed]*
  help    this text
  n       one line is answered, then the connection closes; not at a master
  i       lines are answered one after the other
  p       the same with a prompt before each
  timed   the prompt shows how long the process runs, or no longer does
Without an argument: p, or if that was p, n; at a master i.
";

/// Sets a mode: every argument but `on` is off, as in HAProxy.
pub(crate) fn switch(mode: &mut bool, name: &str, args: &[Word]) -> Outcome {
    match args.first() {
        None => Ok(Answer::Said(Message::info(format!("{name} is {}", if *mode { "ON" } else { "OFF" })))),
        Some(word) => {
            *mode = word == "on";
            Ok(Answer::Done)
        }
    }
}

pub(crate) fn lower<C>(call: &mut Call<'_, C>, level: Level) -> Outcome {
    call.client.level = level;
    Ok(Answer::Done)
}

pub(crate) fn set_timeout<C>(call: &mut Call<'_, C>) -> Outcome {
    if call.arg(0) != "cli" {
        return Err(Message::error("'set timeout' only supports 'cli'."));
    }
    let word = call.args.get(1).ok_or_else(|| Message::error("Expects an integer value."))?;
    let time = parse_time_in(word, TimeUnit::Seconds).ok().filter(|time| !time.is_zero());
    call.client.timeout = time.ok_or_else(|| Message::error("Invalid timeout value."))?;
    Ok(Answer::Done)
}

pub(crate) fn set_severity<C>(call: &mut Call<'_, C>) -> Outcome {
    let form = SeverityForm::of_word(call.arg(0));
    call.client.severity = form.ok_or_else(|| Message::error("one of 'none', 'number', 'string' is a required argument"))?;
    Ok(Answer::Done)
}

fn show_sockets(call: &mut Call<'_>) -> Outcome {
    Ok(Answer::Text(sockets(&call.context.settings.sockets, "all")))
}

/// List of some sockets, with the processes that answer on them.
pub(crate) fn sockets(list: &[StatsSocket], processes: &str) -> String {
    let lines = list.iter().map(|socket| format!("{} {} {processes}\n", socket.address(), socket.level.word()));
    std::iter::once("# socket lvl processes\n".to_owned()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::Talk;
    use crate::settings::Level;
    use std::time::Duration;

    #[test]
    fn levels_only_go_down() {
        let mut talk = Talk::new("");
        assert_eq!(talk.says("show cli level"), "admin\n\n");
        assert_eq!(talk.says("operator"), "\n");
        assert_eq!(talk.says("disable server a/b"), "Permission denied\n\n");
        assert_eq!(talk.says("user"), "\n");
        assert_eq!(talk.says("operator"), "Permission denied\n\n");
        assert_eq!(talk.client.level, Level::User);
    }

    #[test]
    fn time_outs_count_in_seconds() {
        let mut talk = Talk::new("");
        assert_eq!(talk.says("set timeout cli 7"), "\n");
        assert_eq!(talk.client.timeout, Duration::from_secs(7));
        assert_eq!(talk.says("set timeout cli 2m"), "\n");
        assert_eq!(talk.client.timeout, Duration::from_secs(120));
        assert_eq!(talk.says("set timeout"), "'set timeout' only supports 'cli'.\n\n");
        assert_eq!(talk.says("set timeout cli"), "Expects an integer value.\n\n");
        assert_eq!(talk.says("set timeout cli 0"), "Invalid timeout value.\n\n");
    }

    #[test]
    fn severities_are_shown_on_request() {
        let mut talk = Talk::new("");
        assert_eq!(talk.says("set severity-output number"), "\n");
        assert_eq!(talk.says("set timeout x"), "[3]: 'set timeout' only supports 'cli'.\n\n");
        assert_eq!(talk.says("set severity-output string"), "\n");
        assert!(talk.says("nonsense").starts_with("[info]: Unknown command: 'nonsense'"));
        assert_eq!(talk.says("echo a  b"), "a b\n\n");
        assert_eq!(talk.says("set severity-output"), "[err]: one of 'none', 'number', 'string' is a required argument\n\n");
    }

    #[test]
    fn sockets_are_listed() {
        let mut talk = Talk::new("");
        assert_eq!(talk.says("show cli sockets"), "# socket lvl processes\nunix@/run/terse.sock admin all\n\n");
    }

    #[test]
    fn help_lists_all_or_some() {
        let mut talk = Talk::new("");
        let all = talk.says("help");
        assert!(all.starts_with("The following commands are valid at this level:\n  abort ssl ca-file "), "{all}");
        assert!(all.contains("\n  set server <bk>/<srv> ") && all.ends_with(": disconnect\n\n"), "{all}");
        assert!(!all.contains("_getsocks"));
        assert_eq!(talk.says("help show st").lines().count(), 7);
    }
}
