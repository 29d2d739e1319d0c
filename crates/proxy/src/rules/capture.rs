//! Values kept for the log: `capture`.

use super::{ANY, Action, ActionWord, CONTENT, Flow, RuleSet, Sight, done, found};
use crate::log::{Capture, LogSettings};
use crate::stream::Stream;
use terse_config::{Args, Fault, Scope, SectionKind};
use terse_sample::{Expr, Needs};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[done(
    "capture",
    ANY | CONTENT,
    "<expression> {len <length> | id <number>}",
    "Keeps a value for the log: in a slot of its own, or in one that 'declare capture' or 'capture header' has made.",
    capture,
)];

struct Keep {
    value: Expr,
    slot: usize,
    set: RuleSet,
}

impl Action for Keep {
    fn run(&self, stream: &mut Stream) -> Flow {
        let session = stream.facts.session.clone();
        let settings = &session.frontend().log.settings;
        let (slots, of_request) = match self.set.is_response() {
            false => (&settings.request_captures, true),
            true => (&settings.response_captures, false),
        };
        // A backend's rule may name a slot that this frontend does not have.
        let Some(Capture { len, .. }) = slots.get(self.slot) else { return Flow::Next };
        let Ok(value) = found(&self.value, &stream.env()) else { return Flow::More };
        let Some(text) = value.and_then(|value| value.into_octets()) else { return Flow::Next };
        let text: Box<[u8]> = text.get(..*len).unwrap_or(&text).into();
        let kept = if of_request { &stream.facts.request_captures } else { &stream.facts.response_captures };
        kept.put(self.slot, text);
        Flow::Next
    }

    fn waits(&self) -> bool {
        true
    }

    fn slot(&self) -> Option<usize> {
        Some(self.slot)
    }

    fn waits_for(&self) -> Option<(Sight, Needs)> {
        Some((Sight::Captured, self.value.needs()))
    }
}

fn capture(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let value = Expr::parse(args, scope, set.have())?;
    let slot = match args.need("'len' or 'id'")? {
        "len" if set.is_response() => {
            return Err(args
                .fault("'len' makes a slot for requests only")
                .hint("name a slot of 'declare capture response' by 'id'"));
        }
        "len" if scope.section.kind == SectionKind::Backend => {
            return Err(args
                .fault("'len' makes a slot of a frontend's log, and this section has no frontend")
                .hint("name a slot by 'id'"));
        }
        "len" => {
            let len = usize::try_from(args.integer("<length>", 1..=i64::from(i32::MAX))?).unwrap_or_default();
            let slots = &mut scope.section.settings.entry::<LogSettings>().request_captures;
            slots.push(Capture { header: None, len });
            slots.len() - 1
        }
        "id" => usize::try_from(args.integer("<number>", 0..=i64::from(i32::MAX))?).unwrap_or_default(),
        other => return Err(args.fault(format!("expects 'len' or 'id', not '{other}'"))),
    };
    Ok(Box::new(Keep { value, slot, set }))
}
