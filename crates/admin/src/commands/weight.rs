//! Weights of servers.

use super::server::set_weight;
use crate::answer::{Answer, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "get weight",
        usage: "get weight <bk>/<srv>",
        summary: "show a server's weight",
        level: Level::User,
        run: |call: &mut Call<'_>| -> Outcome {
            let (_, server) = call.server(0)?;
            Ok(Answer::Text(format!("{} (initial {})\n", server.weight(), server.settings().weight)))
        },
    },
    Command {
        name: "set weight",
        usage: "set weight <bk>/<srv> <weight>[%]",
        summary: "change a server's weight",
        level: Level::Admin,
        run: |call| {
            let (backend, server) = call.server(0)?;
            set_weight(&backend, &server, call.arg(1))
        },
    },
];

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn absolute_and_relative_weights() {
        let mut talk = Talk::new(WEB);
        assert_eq!(talk.says("get weight be/b"), "10 (initial 10)\n\n");
        for (word, weight) in [("7", 7), ("50%", 5), ("0%", 0), ("256", 256), ("9999%", 256), ("100%", 10)] {
            assert_eq!(talk.says(&format!("set weight be/b {word}")), "\n");
            assert_eq!(talk.says("get weight be/b"), format!("{weight} (initial 10)\n\n"));
            assert_eq!(talk.says(&format!("set server be/b weight {word}")), "\n");
        }
    }

    #[test]
    fn what_is_no_weight() {
        let mut talk = Talk::new(WEB);
        for (words, said) in [
            ("be/b", "Require <weight> or <weight%>."),
            ("be/b x", "Empty weight string empty or preceded by garbage"),
            ("be/b %", "Empty weight string empty or preceded by garbage"),
            ("be/b 1x", "Trailing garbage in weight string"),
            ("be/b 1%%", "Trailing garbage in weight string"),
            ("be/b 257", "Absolute weight can only be between 0 and 256 inclusive."),
            ("be/b -1", "Absolute weight can only be between 0 and 256 inclusive."),
            ("be/b 99999999999999999999", "Absolute weight can only be between 0 and 256 inclusive."),
            ("be/b -1%", "Relative weight must be positive."),
            ("be/x 1", "No such server."),
            ("no/b 1", "No such backend."),
            ("be 1", "Require 'backend/server'."),
            ("", "Require 'backend/server'."),
        ] {
            assert_eq!(talk.says(&format!("set weight {words}")), format!("{said}\n\n"), "{words}");
        }
        assert_eq!(talk.says("get weight be/b"), "10 (initial 10)\n\n");
    }
}
