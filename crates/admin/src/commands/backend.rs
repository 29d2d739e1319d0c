//! Backends removed.

use crate::answer::{Answer, Message, Outcome};
use crate::command::{Call, Command};
use crate::context::Context;
use crate::settings::Level;
use terse_proxy::plan::NotRemoved;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "del backend",
    usage: "del backend <bk>",
    summary: "remove a backend that is not published and has neither servers nor streams",
    level: Level::Admin,
    run: delete,
}];

fn delete(call: &mut Call<'_>) -> Outcome {
    let plan = &call.context.plan;
    if call.args.len() > 1 {
        return Err(Message::error("Usage: del backend <name>."));
    }
    let backend = plan.backends.now().named(call.arg(0).as_bytes()).cloned().ok_or_else(|| Message::error(UNKNOWN))?;
    plan.remove_backend(&backend).map_err(|refused| Message::error(why(refused)))?;
    Ok(Answer::Said(Message::info("Backend deleted.")))
}

/// Whether a backend can be removed now (`wait ... be-removable`).
///
/// # Errors
/// Why not, and whether that may change by itself.
pub(super) fn removable(context: &Context, named: &str) -> Result<(), (bool, &'static str)> {
    let backends = context.plan.backends.now();
    let backend = backends.named(named.as_bytes()).ok_or((false, UNKNOWN))?;
    context.plan.removable(backend).map_err(|refused| (refused == NotRemoved::Busy, why(refused)))
}

const UNKNOWN: &str = "No such backend.";

/// HAProxy's words.
const fn why(refused: NotRemoved) -> &'static str {
    match refused {
        NotRemoved::Listen => "Cannot delete a listen section.",
        NotRemoved::HasTable => "Cannot remove a backend with stick-table.",
        NotRemoved::Referenced => "This proxy cannot be removed at runtime due to other configuration elements pointing to it.",
        NotRemoved::TakesLogs => "Only TCP or HTTP proxies can be removed at runtime.",
        NotRemoved::Published => "Backend must be unpublished prior to its deletion.",
        NotRemoved::HasServers => "Only a backend without server can be deleted.",
        NotRemoved::Busy => "Backend still has attached streams on it.",
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::fixture::{Talk, WEB};

    #[test]
    fn a_backend_goes() {
        let mut talk = Talk::new(WEB);
        let plan = talk.context.plan.clone();
        let empty = plan.backends.now().named(b"empty").unwrap().clone();
        let numbers = || plan.backends.now().iter().map(|backend| backend.number).collect::<Vec<_>>();
        assert_eq!(numbers(), [0, 1, 2]);
        assert_eq!(talk.says("del backend empty"), "Backend must be unpublished prior to its deletion.\n\n");
        assert_eq!(talk.says("unpublish backend empty"), "Backend unpublished.\n\n");
        empty.tally.of(1).enter();
        assert_eq!(talk.says("del backend empty"), "Backend still has attached streams on it.\n\n");
        empty.tally.of(1).current.sub(1);
        assert!(talk.says("show stat").contains("\nempty,BACKEND,"));
        assert_eq!(talk.says("del backend empty"), "Backend deleted.\n\n");
        assert_eq!((numbers(), std::sync::Arc::strong_count(&empty)), (vec![0, 1], 1));
        assert!(!talk.says("show stat").contains("\nempty,"));
        assert_eq!(talk.says("show backend"), "# name\nbe\nraw\n\n");
        assert_eq!(talk.says("del backend empty"), "No such backend.\n\n");
    }

    #[test]
    fn what_stays_is_said_in_haproxys_words() {
        let more = "backend table\n stick-table type ip size 10\nbackend served\n server s 127.0.0.1:9\n\
            backend lines\n mode log\n";
        let mut talk = Talk::new(&format!("{WEB}\n{more}"));
        for (backend, said) in [
            ("none", "No such backend."),
            ("", "No such backend."),
            ("empty x", "Usage: del backend <name>."),
            ("raw", "Cannot delete a listen section."),
            ("table", "Cannot remove a backend with stick-table."),
            ("be", "This proxy cannot be removed at runtime due to other configuration elements pointing to it."),
            ("lines", "Only TCP or HTTP proxies can be removed at runtime."),
            ("served", "Backend must be unpublished prior to its deletion."),
        ] {
            assert_eq!(talk.says(&format!("del backend {backend}")), format!("{said}\n\n"), "{backend}");
        }
        talk.says("unpublish backend served");
        assert_eq!(talk.says("del backend served"), "Only a backend without server can be deleted.\n\n");
    }
}
