//! Events of rings: `show events`.

use crate::answer::{Answer, Message, Outcome};
use crate::client::Following;
use crate::command::{Call, Command};
use crate::settings::Level;
use std::fmt::Write;
use terse_proxy::log::Framing;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show events",
    usage: "show events [<ring>] [-w] [-n] [-0]",
    summary: "list the rings, or the events of one; -w waits for more, -n shows new ones only, -0 ends each with a NUL",
    level: Level::User,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let rings = &call.context.plan.syslog.rings;
    let Some((name, options)) = call.args.split_first() else {
        let mut text = String::from("Supported events sinks are listed below. Add -0(zero), -w(wait), -n(new). Any key to stop.\n");
        for ring in rings {
            let (name, dropped, description) = (&ring.name, ring.dropped(), &ring.description);
            let _ = writeln!(text, "    {name:<10} : type=buffer, {dropped} dropped, {description}");
        }
        return Ok(Answer::Text(text));
    };
    call.require(Level::Operator)?;
    let ring = rings.iter().find(|ring| *ring.name == **name).ok_or_else(|| Message::error("No such event sink"))?;
    let (mut waits, mut new, mut framing) = (false, false, Framing::Lines);
    for option in options {
        match option.as_str() {
            "-w" => waits = true,
            "-n" => new = true,
            "-wn" | "-nw" => (waits, new) = (true, true),
            "-0" => framing = Framing::Nul,
            _ => return Err(Message::error("unknown option")),
        }
    }
    let from = if new { ring.end() } else { 0 };
    call.client.following = Some(Following { ring: ring.clone(), from, framing, waits });
    Ok(Answer::Done)
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::Talk;

    const RINGS: &str = "ring r\n description \"a ring\"\nring other\n size 4096\n";

    #[test]
    fn rings_are_listed() {
        let text = Talk::new(RINGS).says("show events");
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            ["    r          : type=buffer, 0 dropped, a ring", "    other      : type=buffer, 0 dropped, other", ""]
        );
    }

    #[test]
    fn a_ring_is_followed_or_not_there() {
        let mut talk = Talk::new(RINGS);
        assert_eq!(talk.says("show events x"), "No such event sink\n\n");
        assert_eq!(talk.says("show events r -x"), "unknown option\n\n");
        assert!(talk.client.following.is_none());
        assert_eq!(talk.says("show events r -nw"), "");
        let following = talk.client.following.take().unwrap();
        assert!(following.waits && following.from == 0);
        talk.client.level = crate::settings::Level::User;
        assert_eq!(talk.says("show events r"), "Permission denied\n\n");
    }
}
