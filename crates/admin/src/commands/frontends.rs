//! Frontends that an operator pauses, resumes, or closes.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use terse_proxy::gate::State;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "disable frontend",
        usage: "disable frontend <frontend>",
        summary: "let a frontend take no connections until it is enabled; those that are there go on",
        level: Level::Admin,
        run: |call| set(call, State::Paused, "cannot disable", "All sockets are already disabled."),
    },
    Command {
        name: "enable frontend",
        usage: "enable frontend <frontend>",
        summary: "let a disabled frontend take connections again",
        level: Level::Admin,
        run: |call| set(call, State::Open, "cannot enable", "All sockets are already enabled."),
    },
    Command {
        name: "shutdown frontend",
        usage: "shutdown frontend <frontend>",
        summary: "let a frontend take no connections any more; those that are there go on",
        level: Level::Admin,
        run: |call| set(call, State::Closed, "", ""),
    },
];

fn set(call: &mut Call<'_>, state: State, cannot: &str, already: &str) -> Outcome {
    let name = call.args.first().ok_or_else(|| Message::error("A frontend name is expected."))?;
    let frontend = call.frontend(name).ok_or_else(|| Message::error("No such frontend."))?;
    let now = frontend.gate.state();
    match (now, state) {
        (State::Closed, State::Closed) => Err(Message::error("Frontend was already shut down.")),
        (State::Closed, _) => Err(Message::error(format!("Frontend was previously shut down, {cannot}."))),
        (now, state) if now == state => Err(Message::error(already)),
        _ => {
            frontend.gate.set(state);
            Ok(Answer::Done)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn orders_and_what_is_wrong_with_them() {
        let mut talk = Talk::new(WEB);
        for (command, answer) in [
            ("disable frontend", "A frontend name is expected.\n\n"),
            ("shutdown frontend x", "No such frontend.\n\n"),
            ("enable frontend fe", "All sockets are already enabled.\n\n"),
            ("disable frontend fe", "\n"),
            ("disable frontend fe", "All sockets are already disabled.\n\n"),
            ("enable frontend fe", "\n"),
            ("shutdown frontend fe", "\n"),
            ("shutdown frontend fe", "Frontend was already shut down.\n\n"),
            ("enable frontend fe", "Frontend was previously shut down, cannot enable.\n\n"),
            ("disable frontend fe", "Frontend was previously shut down, cannot disable.\n\n"),
        ] {
            assert_eq!(talk.says(command), answer, "{command}");
        }
    }
}
