//! `set-bandwidth-limit`: bodies that a filter of bandwidth limits, and their rate.

use super::{Action, ActionWord, BOTH, CONTENT, Flow, RuleSet, SERVER_CONTENT, done};
use crate::filter::bandwidth::Limiter;
use crate::filter::{Bandwidth, Limit, LimitKind, LimitSettings};
use crate::settings::ProxySettings;
use crate::stream::Stream;
use std::sync::Arc;
use std::time::Duration;
use terse_config::units::{TimeUnit, parse_size, parse_time_in};
use terse_config::{Args, Fault, Scope, SectionKind};
use terse_sample::{Env, Expr};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[done(
    "set-bandwidth-limit",
    BOTH | CONTENT | SERVER_CONTENT,
    "<name> [limit {<bytes> | <expression>}] [period {<time> | <expression>}]",
    "Limits how fast a body goes on, by a filter of bandwidth.",
    parse,
)];

struct SetBandwidthLimit {
    limit: Arc<Limit>,
    bytes: Figure,
    period: Figure,
}

/// A number that the line gives, or that an expression finds; without a number, the filter's own holds.
enum Figure {
    Own,
    Fixed(u64),
    Found(Box<Expr>),
}

impl Action for SetBandwidthLimit {
    fn run(&self, stream: &mut Stream) -> Flow {
        if let Some(LimitSettings { direction, side, kind, least_bytes }) = self.limit.declared.get() {
            let limiter = match kind {
                LimitKind::Stream { bytes, period } => {
                    let env = stream.env();
                    let bytes = self.bytes.find(&env).unwrap_or(*bytes);
                    let period = self.period.find(&env).map_or(*period, Duration::from_millis);
                    Some(Bandwidth::Own(Limiter::new(bytes, period, *least_bytes)))
                }
                LimitKind::Shared(share) => share.limiter(stream, *least_bytes).map(|own| Bandwidth::Shared(Box::new(own))),
            };
            if let Some(limiter) = limiter {
                stream.facts.filters.get_or_insert_default().passage(*direction).limit(&self.limit, *side, limiter);
            }
        }
        Flow::Next
    }
}

impl Figure {
    /// More than 0, or nothing.
    fn find(&self, env: &Env<'_>) -> Option<u64> {
        let number = match self {
            Figure::Own => None,
            Figure::Fixed(number) => Some(*number),
            Figure::Found(expression) => expression.eval(env)?.into_int().and_then(|number| u64::try_from(number).ok()),
        };
        number.filter(|number| *number > 0)
    }

    fn parse(
        args: &mut Args<'_>,
        scope: &mut Scope<'_>,
        set: RuleSet,
        fixed: impl Fn(&str) -> Option<u64>,
    ) -> Result<Figure, Fault> {
        match args.peek().and_then(fixed) {
            Some(number) => {
                args.take();
                Ok(Figure::Fixed(number))
            }
            None => Ok(Figure::Found(Box::new(Expr::parse(args, scope, set.have())?))),
        }
    }
}

/// Reads `<name> [limit <bytes>|<expression>] [period <time>|<expression>]`.
fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let name = args.need("<name>")?;
    if scope.section.kind == SectionKind::Defaults {
        return Err(args.fault("is not for sections of defaults, which have no filters"));
    }
    let place = scope.place.clone();
    let limit = Arc::make_mut(&mut scope.section.settings.entry::<ProxySettings>().filters).limit(name, &place);
    let (mut bytes, mut period) = (Figure::Own, Figure::Own);
    loop {
        if args.accept("limit") {
            bytes = Figure::parse(args, scope, set, |word| parse_size(word).ok())?;
        } else if args.accept("period") {
            let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            period = Figure::parse(args, scope, set, |word| parse_time_in(word, TimeUnit::Milliseconds).ok().map(milliseconds))?;
        } else {
            return Ok(Box::new(SetBandwidthLimit { limit, bytes, period }));
        }
    }
}
