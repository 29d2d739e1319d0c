//! Name servers.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show resolvers",
    usage: "show resolvers [<section>]",
    summary: "show what name servers were asked, and what they said",
    level: Level::User,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let wanted = call.args.first();
    let sections = call.context.plan.resolvers.iter().filter(|section| wanted.is_none_or(|wanted| *section.name == **wanted));
    let text: String = sections.map(|section| section.report()).collect();
    match text.is_empty() {
        true if wanted.is_some() => Err(Message::error("Can't find that resolvers section")),
        true => Err(Message::error("no resolvers found")),
        false => Ok(Answer::Text(text)),
    }
}
