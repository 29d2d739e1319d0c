//! Timeouts of a stream: `set-timeout`.

use super::{Action, ActionWord, BOTH, Flow, RuleSet, done};
use crate::settings::Timeouts;
use crate::stream::Stream;
use std::time::Duration;
use terse_config::units::parse_time;
use terse_config::{Args, Fault, Scope};
use terse_sample::Expr;

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[done(
    "set-timeout",
    BOTH,
    "{client | connect | queue | server | tarpit | tunnel} {<time> | <expression>}",
    "Changes a time-out of this stream; an expression counts milliseconds.",
    parse,
)];

struct SetTimeout {
    which: Which,
    limit: Limit,
}

/// Selector of a timeout.
type Which = fn(&mut Timeouts) -> &mut Option<Duration>;

enum Limit {
    Fixed(Duration),
    Made(Expr),
}

impl Action for SetTimeout {
    fn run(&self, stream: &mut Stream) -> Flow {
        let limit = match &self.limit {
            Limit::Fixed(limit) => Some(*limit),
            Limit::Made(value) => {
                let ms = value.eval(&stream.env()).and_then(|value| value.into_int());
                ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis)
            }
        };
        if let Some(limit) = limit.filter(|limit| !limit.is_zero()) {
            *(self.which)(&mut stream.facts.changes().timeouts) = Some(limit);
        }
        Flow::Next
    }
}

fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let kind = scope.section.kind;
    let (which, here): (Which, bool) = match args.need("<time-out>")? {
        "client" => (|all| &mut all.client, kind.is_front()),
        "connect" => (|all| &mut all.connect, kind.is_back()),
        "queue" => (|all| &mut all.queue, kind.is_back()),
        "server" => (|all| &mut all.server, kind.is_back()),
        "tunnel" => (|all| &mut all.tunnel, kind.is_back()),
        "tarpit" => (|all| &mut all.tarpit, true),
        other => {
            let hint = "one of client, connect, queue, server, tarpit, tunnel";
            return Err(args.fault(format!("'{other}' is no time-out that can be changed")).hint(hint));
        }
    };
    if !here && kind.is_front() != kind.is_back() {
        let (name, half) = (kind.name(), if kind.is_front() { "backend" } else { "frontend" });
        return Err(args.fault(format!("'{}' is a time-out of the {half}, and this is a {name}", args.taken())));
    }
    let limit = match args.peek().map(parse_time) {
        Some(Ok(limit)) => {
            args.take();
            if limit.is_zero() {
                return Err(args.fault("a time-out of nothing cannot be waited for"));
            }
            Limit::Fixed(limit)
        }
        // No fetch begins with a digit.
        Some(Err(reason)) if args.peek().is_some_and(|word| word.starts_with(|first: char| first.is_ascii_digit())) => {
            let word = args.take().unwrap_or_default();
            return Err(args.fault(format!("'{word}' is neither a time nor an expression: {reason}")));
        }
        _ => Limit::Made(Expr::parse(args, scope, set.have())?),
    };
    Ok(Box::new(SetTimeout { which, limit }))
}
