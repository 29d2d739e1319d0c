//! The memories of compressed bodies: a part of `show compression`, and a way to empty them. HAProxy has none.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::savings::memories;
use crate::settings::Level;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;
use terse_proxy::plan::Plan;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "clear compression memory",
    usage: "clear compression memory",
    summary: "forget all compressed bodies",
    level: Level::Operator,
    run: clear,
}];

fn clear(call: &mut Call<'_>) -> Outcome {
    let mut bytes = 0;
    for (_, memory) in memories(&call.context.plan) {
        bytes += memory.held().1;
        memory.clear();
    }
    Ok(Answer::Said(Message::info(format!("{bytes} bytes cleared."))))
}

/// Lines of the memories, such as `common 67108864 1000 1 5 2 1 0 0 0 0`.
pub(super) fn show(plan: &Plan, text: &mut String) {
    let memories = memories(plan);
    if memories.is_empty() {
        return;
    }
    text.push_str("# memory limit bytes bodies hits misses admitted refused evicted raised raised_bytes spared_us\n");
    for (name, memory) in memories {
        let numbers = memory.numbers();
        let (bodies, bytes) = memory.held();
        let _ = write!(text, "{name} {} {bytes} {bodies}", memory.bytes());
        for number in [
            &numbers.hits,
            &numbers.misses,
            &numbers.admitted,
            &numbers.refused,
            &numbers.evicted,
            &numbers.raised,
            &numbers.raised_bytes,
        ] {
            let _ = write!(text, " {}", number.load(Relaxed));
        }
        let _ = writeln!(text, " {}", numbers.spared_ns.load(Relaxed) / 1000);
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};
    use std::sync::Arc;
    use terse_compress::memory::{Form, Name, Owner};
    use terse_compress::{Coding, Level};

    #[test]
    fn each_memory_has_a_line_and_all_are_cleared() {
        let text = format!("{WEB}\nlisten own\n mode http\n bind 127.0.0.1:81\n compression algo gzip\n compression memory 1m\n");
        let mut talk = Talk::new(&text);
        let plan = talk.context.plan.clone();
        let common = plan.bodies.clone().unwrap();
        let name = Name::of(&Owner::new(&[1; 32], "be"), b"body");
        assert!(common.keep(&name, Form { coding: Coding::Gzip, level: Level(6), bytes: Arc::from(&b"form"[..]), cost_ns: 0 }));
        let lines =
            |said: &str| said.lines().skip_while(|line| !line.starts_with("# memory")).map(String::from).collect::<Vec<_>>();
        let said = lines(&talk.says("show compression"));
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[1].starts_with("common 67108864 ") && said[1].ends_with(" 1 0 0 1 0 0 0 0 0"), "{said:?}");
        assert_eq!(said[2], "own 1048576 0 0 0 0 0 0 0 0 0 0");
        let cleared = talk.says("clear compression memory");
        assert!(cleared.contains(" bytes cleared.") && !cleared.starts_with("0 "), "{cleared}");
        assert_eq!(common.held(), (0, 0));
    }
}
