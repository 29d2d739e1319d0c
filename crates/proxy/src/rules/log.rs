//! Lines that rules ask for: `do-log`.

use super::{ANY, Action, ActionWord, Flow, RuleSet, TCP, done};
use crate::log::{Origin, Profile, ProfileUse, ProfileUses};
use crate::phase::record;
use crate::stream::Stream;
use std::sync::{Arc, OnceLock};
use terse_config::{Args, Fault, Scope};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[done(
    "do-log",
    ANY | TCP,
    "[profile <name>]",
    "Logs the stream now, beside what is logged of it anyway; with a 'log-profile' of its own, in the words of that one.",
    do_log,
)];

struct DoLog {
    origin: Origin,
    /// The profile that is named, once the plan has found it.
    profile: Option<Arc<OnceLock<Arc<Profile>>>>,
}

impl Action for DoLog {
    fn run(&self, stream: &mut Stream) -> Flow {
        let profile = self.profile.as_ref().and_then(|found| found.get());
        record::now(stream, self.origin, profile.map(|profile| &**profile));
        Flow::Next
    }
}

fn do_log(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let mut profile = None;
    if args.accept("profile") {
        let place = args.place(&scope.place);
        let name = args.need("<name>")?.into();
        let found = profile.insert(Arc::default());
        scope.shared.entry::<ProfileUses>().uses.push(ProfileUse { name, place, found: Arc::clone(found) });
    }
    Ok(Box::new(DoLog { origin: origin(set), profile }))
}

const fn origin(set: RuleSet) -> Origin {
    match set {
        RuleSet::Connection => Origin::TcpRequestConnection,
        RuleSet::Session => Origin::TcpRequestSession,
        RuleSet::Content => Origin::TcpRequestContent,
        RuleSet::ServerContent => Origin::TcpResponseContent,
        RuleSet::Request => Origin::HttpRequest,
        RuleSet::Response => Origin::HttpResponse,
        RuleSet::AfterResponse => Origin::HttpAfterResponse,
    }
}
