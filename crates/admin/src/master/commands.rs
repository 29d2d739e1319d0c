//! The master's own commands.
//!
//! Those of [`CLIENT`] are about the client, whose commands may go to any process. The master takes them wherever they
//! would go, and answers nothing when they are done.

use super::{Office, Stage, Worker};
use crate::answer::{Answer, Message, Outcome, render};
use crate::client::{Client, Ending};
use crate::command::{self, Call, Command, Families};
use crate::commands::absent;
use crate::commands::conversation::{lower, prompt, set_severity, set_timeout, sockets, switch};
use crate::help;
use crate::settings::Level;
use crate::words::{MOST_WORDS, TooManyWords, Word};
use std::fmt::Write;
use std::time::Duration;
use terse_tls::Secret;

/// Whether the master takes a command that would go to a worker.
pub(super) fn is_about_the_client(words: &[Word]) -> bool {
    command::find_in(&[CLIENT], words).is_some()
}

/// Answer of the master to a command, as it is sent.
pub(super) fn answer(words: Result<Vec<Word>, TooManyWords>, client: &mut Client, office: &Office) -> Secret {
    let words = match words {
        Ok(words) if words.is_empty() => return Secret::default(),
        Ok(words) => words,
        Err(TooManyWords) => {
            let text = format!("Too many arguments. Commands must have at most {MOST_WORDS} arguments.");
            return render(Err(Message::error(text)), client.severity);
        }
    };
    let outcome = match command::find_in(FAMILIES, &words) {
        Some((command, _)) if command.level > client.level => Err(Message::denied()),
        Some((command, args)) => (command.run)(&mut Call { args, client, context: office }),
        None => Err(unknown(&words)),
    };
    match outcome {
        Ok(Answer::Done) => Secret::default(),
        outcome => render(outcome, client.severity),
    }
}

/// Message for an unknown command of the master.
fn unknown(words: &[Word]) -> Message {
    let known = command::find(words).map(|(command, _)| command.name);
    match known.or_else(|| absent::find(words).map(|absent| absent.name)) {
        Some(name) => Message::error(format!("'{name}' is a command of workers: write '@1' before it.")),
        None if words.first().is_some_and(|word| word == "mcli-debug-mode") => {
            Message::error("'mcli-debug-mode' is not supported: the master has no commands to debug it.")
        }
        None => help::unknown_in(FAMILIES, words),
    }
}

const FAMILIES: Families<Office> = &[CLIENT, OWN];

const CLIENT: &[Command<Office>] = &[
    Command {
        name: "prompt",
        usage: "prompt [help | i | p | timed]*",
        summary: "ask for commands with a prompt, or no longer",
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
        name: "operator",
        usage: "operator",
        summary: "give up what only the level admin may do, here and in workers",
        level: Level::Operator,
        run: |call| lower(call, Level::Operator),
    },
    Command {
        name: "user",
        usage: "user",
        summary: "give up what only the levels admin and operator may do, here and in workers",
        level: Level::User,
        run: |call| lower(call, Level::User),
    },
    Command {
        name: "experimental-mode",
        usage: "experimental-mode [on | off]",
        summary: "allow workers' commands whose form may still change, or show whether they are allowed",
        level: Level::Admin,
        run: |call| switch(&mut call.client.experimental, "experimental-mode", call.args),
    },
    Command {
        name: "expert-mode",
        usage: "expert-mode [on | off]",
        summary: "allow workers' commands for experts, or show whether they are allowed",
        level: Level::Admin,
        run: |call| switch(&mut call.client.expert, "expert-mode", call.args),
    },
    Command {
        name: "set severity-output",
        usage: "set severity-output none|number|string",
        summary: "change how messages say how grave they are, here and in workers",
        level: Level::User,
        run: set_severity,
    },
];

const OWN: &[Command<Office>] = &[
    Command {
        name: "@",
        usage: "@[1 | !<pid> | master] [<command>]",
        summary: "send a command, or all that follow, to the worker that serves, to that process, to the master",
        level: Level::User,
        // The target of a command is known before commands are looked up.
        run: |_| Ok(Answer::Done),
    },
    Command {
        name: "help",
        usage: "help [<command>]",
        summary: "list the master's commands, or those that begin so",
        level: Level::User,
        run: |call| Ok(Answer::Text(help::list(FAMILIES, call.args))),
    },
    Command {
        name: "set timeout",
        usage: "set timeout cli <delay>",
        summary: "change how long this client may be silent",
        level: Level::User,
        run: set_timeout,
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
        summary: "list the sockets of the master",
        level: Level::Operator,
        run: |call| Ok(Answer::Text(sockets(&call.context.sockets, "master"))),
    },
    Command {
        name: "show proc",
        usage: "show proc [debug]",
        summary: "list the master and its workers",
        level: Level::Operator,
        run: show_processes,
    },
    Command {
        name: "show startup-logs",
        usage: "show startup-logs",
        summary: "show what was said at the last start or reload",
        level: Level::Operator,
        run: |call| Ok(Answer::Text(without_empty_lines(&call.context.overseer.startup_log()))),
    },
    Command {
        name: "show version",
        usage: "show version",
        summary: "show the version",
        level: Level::User,
        run: |call| Ok(Answer::Text(format!("{}\n", call.context.version))),
    },
    Command {
        name: "reload",
        usage: "reload",
        summary: "start another worker, and let the ones before finish",
        level: Level::Operator,
        run: |call| reload(call, false),
    },
    Command {
        name: "hard-reload",
        usage: "hard-reload",
        summary: "start another worker, and stop the ones before",
        level: Level::Operator,
        run: |call| reload(call, true),
    },
];

/// Ends the conversation, which then reloads.
fn reload(call: &mut Call<'_, Office>, hard: bool) -> Outcome {
    call.client.ending = Some(Ending::Reload { hard });
    Ok(Answer::Done)
}

/// Lines without the empty ones, which would end the answer.
pub(super) fn without_empty_lines(text: &str) -> String {
    text.lines().filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

fn show_processes(call: &mut Call<'_, Office>) -> Outcome {
    let debug = match call.arg(0) {
        "" => false,
        "debug" => true,
        _ => return Err(Message::error("'show proc' only supports 'debug' as argument")),
    };
    let office = call.context;
    let (workers, reloads) = (office.overseer.workers(), office.overseer.reloads());
    let row = |cells: [&str; 5], descriptors: [&str; 2]| {
        let [pid, kind, reloads, uptime, version] = cells;
        let mut row = format!("{pid:<15} {kind:<15} {reloads:<15} {uptime:<15} {version:<15}");
        if debug {
            let [first, second] = descriptors;
            let _ = write!(row, "\t\t {first:<15} {second:<15}");
        }
        row + "\n"
    };
    let worker = |worker: &&Worker| {
        let [pid, reloads, descriptor] = [worker.pid.to_string(), worker.reloads.to_string(), worker.descriptor.to_string()];
        let version = worker.version.as_deref().unwrap_or_default();
        // The worker's end is its standard input.
        row([&pid, "worker", &reloads, &uptime(worker.started.elapsed()), version], [&descriptor, "0"])
    };
    let mut text = row(["#<PID>", "<type>", "<reloads>", "<uptime>", "<version>"], ["<ipc_fd[0]>", "<ipc_fd[1]>"]);
    let (pid, all) = (office.pid.to_string(), format!("{} [failed: {}]", reloads.all, reloads.failed));
    text += &row([&pid, "master", &all, &uptime(office.started.elapsed()), &office.listed], ["-1", "-1"]);
    let (old, current): (Vec<&Worker>, Vec<&Worker>) = workers.iter().partition(|worker| worker.stage == Stage::Leaving);
    text += "# workers\n";
    text.extend(current.iter().map(worker));
    if !old.is_empty() {
        text += "# old workers\n";
        text.extend(old.iter().map(worker));
    }
    Ok(Answer::Text(text))
}

fn uptime(since: Duration) -> String {
    let s = since.as_secs();
    format!("{}d{:02}h{:02}m{:02}s", s / 86400, s / 3600 % 24, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn entries_are_written_in_one_way() {
        let mut names = HashSet::new();
        for command in command::all(FAMILIES) {
            assert!(names.insert(command.name), "{} stands twice", command.name);
            assert!(command.usage.starts_with(command.name), "{}", command.usage);
            assert!(!command.summary.is_empty() && !command.summary.ends_with('.'), "{}", command.summary);
        }
    }
}
