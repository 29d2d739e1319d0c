//! Commands for developers. Of HAProxy's family only one has a meaning here.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use crate::words;
use terse_proxy::log::{Level as Severity, Logger};

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "debug dev log",
    usage: "debug dev log <text>",
    summary: "send the text to the logs of 'global'; needs 'expert-mode on'",
    level: Level::Admin,
    run: log,
}];

fn log(call: &mut Call<'_>) -> Outcome {
    if !call.client.expert {
        return Err(Message::error("This command is restricted to expert mode only."));
    }
    let plan = &call.context.plan;
    Logger::new(&plan.sinks).send(&plan.journal, Severity::Info, &words::joined(call.args));
    Ok(Answer::Done)
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::Talk;
    use std::net::UdpSocket;

    #[test]
    fn experts_write_into_the_logs() {
        let target = UdpSocket::bind("127.0.0.1:0").unwrap();
        target.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let mut talk = Talk::new(&format!("global\n log {} local0 info\n", target.local_addr().unwrap()));
        assert_eq!(talk.says("debug dev log a b"), "This command is restricted to expert mode only.\n\n");
        assert_eq!(talk.says("expert-mode on;debug dev log a b"), "\n\n");
        let mut bytes = [0; 512];
        let length = target.recv(&mut bytes).unwrap();
        assert!(bytes[..length].starts_with(b"<134>") && bytes[..length].trim_ascii_end().ends_with(b": a b"));
        assert!(talk.says("debug dev panic").starts_with("'debug' is not supported"));
    }
}
