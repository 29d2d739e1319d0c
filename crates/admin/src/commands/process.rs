//! The process: its version, environment, and the messages about it.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "show version",
        usage: "show version",
        summary: "show the version",
        level: Level::User,
        run: |call| Ok(Answer::Text(format!("{}\n", call.context.process.version))),
    },
    Command {
        name: "show env",
        usage: "show env [<name>]",
        summary: "show the variables of the environment, or one",
        level: Level::Operator,
        run: show_env,
    },
    Command {
        name: "show startup-logs",
        usage: "show startup-logs",
        summary: "show what was said while the process started",
        level: Level::Operator,
        run: |call| {
            let log = call.context.host.startup_log();
            let lines = log.lines().filter(|line| !line.is_empty());
            Ok(Answer::Text(lines.map(|line| format!("{line}\n")).collect()))
        },
    },
];

fn show_env(call: &mut Call<'_>) -> Outcome {
    let variables = call.context.host.environment();
    let line = |(name, value): &(String, String)| format!("{name}={}\n", without_empty_lines(value));
    match call.args.first() {
        None => Ok(Answer::Text(variables.iter().map(line).collect())),
        Some(wanted) => match variables.iter().find(|(name, _)| *wanted == **name) {
            Some(variable) => Ok(Answer::Text(line(variable))),
            None => Err(Message::error("Variable not found")),
        },
    }
}

/// An empty line would end the answer.
fn without_empty_lines(text: &str) -> String {
    text.split('\n').filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::Talk;
    use crate::settings::Level;

    #[test]
    fn versions_and_environments() {
        let mut talk = Talk::new("");
        assert_eq!(talk.says("show version"), "3.5-dev5\n\n");
        assert_eq!(talk.says("show env"), "HOME=/root\nLINES=a\nb\n\n", "no empty line inside");
        assert_eq!(talk.says("show env HOME"), "HOME=/root\n\n");
        assert_eq!(talk.says("show env PATH"), "Variable not found\n\n");
        assert_eq!(talk.says("show startup-logs"), "started\nstill there\n\n");
        talk.client.level = Level::User;
        for command in ["show env", "show startup-logs"] {
            assert_eq!(talk.says(command), "Permission denied\n\n");
        }
    }
}
