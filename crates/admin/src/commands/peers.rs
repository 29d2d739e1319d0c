//! Processes that share stick tables.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::settings::Level;
use std::fmt::Write;
use terse_peers::{Group, Stage};

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "show peers",
    usage: "show peers [<section>]",
    summary: "show who shares stick tables, and how far each has heard",
    level: Level::Operator,
    run: show,
}];

fn show(call: &mut Call<'_>) -> Outcome {
    let wanted = call.args.first();
    let groups = call.context.plan.peers.iter().map(|circle| &circle.group);
    let groups = groups.filter(|group| wanted.is_none_or(|wanted| *group.name == **wanted));
    let text: String = groups.map(|group| report(group)).collect();
    match text.is_empty() && wanted.is_some() {
        true => Err(Message::error("No such peers")),
        false => Ok(Answer::Text(text)),
    }
}

fn report(group: &Group) -> String {
    let lesson = match group.stage() {
        Stage::Predecessor => "waits for the process before",
        Stage::Wanted => "waits for a peer",
        Stage::Asked(_) => "is told by a peer",
        Stage::Complete => "complete",
    };
    let mut text = format!("# peers: {}, local: {}, lesson: {lesson}\n", group.name, group.own);
    for peer in &group.peers {
        let _ = write!(text, "{} addr={} connected={}", peer.name, peer.door.address, u8::from(peer.is_connected()));
        let _ = writeln!(text, " shard={}", peer.shard);
        for (index, shared) in group.tables.iter().enumerate() {
            let (_, last) = shared.waiting();
            let (name, acknowledged, refused) = (shared.table.name(), peer.heard_of(index), shared.table.refused_names());
            let _ = writeln!(text, "  table={name} changes={last} acknowledged={acknowledged} refused-names={refused}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::Talk;

    #[test]
    fn sections_are_shown() {
        let mut talk = Talk::new(
            "peers p\n bind 127.0.0.1:1\n server a\n server b 127.0.0.1:2 shard 1\n shards 2\n table t type ip size 9\n\
             peers q\n peer a 127.0.0.1:3\n",
        );
        let p = "# peers: p, local: a, lesson: waits for a peer\nb addr=127.0.0.1:2 connected=0 shard=1\n  \
                 table=p/t changes=0 acknowledged=0 refused-names=0\n";
        assert_eq!(talk.says("show peers p").trim_end(), p.trim_end());
        assert!(talk.says("show peers").starts_with(&format!("{p}# peers: q, local: a")));
        assert!(talk.says("show peers x").starts_with("No such peers"));
        assert!(talk.says("show info").contains("\nActivePeers: 1\nConnectedPeers: 0\n"));
    }
}
