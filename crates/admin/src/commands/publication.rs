//! Backends published and unpublished: whether rules of other proxies may choose them.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use std::sync::atomic::Ordering::Relaxed;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "publish backend",
        usage: "publish backend <bk>",
        summary: "let rules choose a backend",
        level: Level::Operator,
        run: |call| publish(call, true),
    },
    Command {
        name: "unpublish backend",
        usage: "unpublish backend <bk>",
        summary: "let rules of other proxies pass over a backend; its checks go on",
        level: Level::Operator,
        run: |call| publish(call, false),
    },
];

fn publish(call: &mut Call<'_>, published: bool) -> Outcome {
    let name = call.arg(0);
    if name.is_empty() {
        return Err(Message::error("A backend name is expected."));
    }
    let Some(backend) = call.backend(name) else {
        let disabled = call.context.plan.disabled_backends.iter().any(|disabled| **disabled == *name);
        return Err(Message::error(if disabled { "No effect on a disabled backend." } else { "No such backend." }));
    };
    backend.is_published.store(published, Relaxed);
    Ok(Answer::Said(Message::info(if published { "Backend published." } else { "Backend unpublished." })))
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn of_a_backend() {
        let mut talk = Talk::new(WEB);
        assert_eq!(talk.says("unpublish backend be"), "Backend unpublished.\n\n");
        assert!(!talk.context.plan.backends.now()[0].is_published.load(Relaxed));
        assert_eq!(talk.says("publish backend be"), "Backend published.\n\n");
        assert!(talk.context.plan.backends.now()[0].is_published.load(Relaxed));
        assert_eq!(talk.says("publish backend none"), "No such backend.\n\n");
        assert_eq!(talk.says("publish backend"), "A backend name is expected.\n\n");
    }
}
