//! Rules that wait: `pause`, `wait-for-body`.

use super::{Action, ActionWord, BOTH, Flow, RuleSet, done};
use crate::stream::Stream;
use std::time::Duration;
use terse_config::units::parse_time;
use terse_config::{Args, Fault, Scope};
use terse_sample::Expr;

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("pause", BOTH, "{<time> | <expression>}", "Waits; an expression counts milliseconds.", pause),
    done(
        "wait-for-body",
        BOTH,
        "time <time> [at-least <bytes>]",
        "Waits until the body, so much of it, or as much as a buffer holds is there; an error when that takes too long.",
        wait_for_body,
    ),
];

/// What a rule waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// For time to pass.
    Pause(Duration),
    /// For the message's body.
    Body(BodyWait),
}

/// How long and for how much of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BodyWait {
    /// The longest that it may take; for ever without one.
    pub time: Option<Duration>,
    /// So many bytes are enough; 0: all of it.
    pub at_least: u64,
}

enum Pause {
    Fixed(Duration),
    Made(Expr),
}

impl Action for Pause {
    fn run(&self, stream: &mut Stream) -> Flow {
        let time = match self {
            Pause::Fixed(time) => Some(*time),
            Pause::Made(value) => {
                let ms = value.eval(&stream.env()).and_then(|value| value.into_int()).and_then(|ms| u64::try_from(ms).ok());
                ms.map(|ms| Duration::from_millis(ms).min(LONGEST))
            }
        };
        time.filter(|time| !time.is_zero()).map_or(Flow::Next, |time| Flow::Wait(Wait::Pause(time)))
    }
}

/// HAProxy's limit of times: 24 days.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

impl Action for BodyWait {
    fn run(&self, _: &mut Stream) -> Flow {
        Flow::Wait(Wait::Body(*self))
    }
}

fn pause(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    if let Some(Ok(time)) = args.peek().map(parse_time) {
        args.take();
        return match time.is_zero() {
            true => Err(args.fault("a pause of nothing is none")),
            false => Ok(Box::new(Pause::Fixed(time))),
        };
    }
    Ok(Box::new(Pause::Made(Expr::parse(args, scope, set.have())?)))
}

fn wait_for_body(args: &mut Args<'_>, _: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let (mut time, mut at_least) = (None, 0);
    loop {
        match args.peek() {
            Some("time") => {
                args.take();
                time = Some(args.time("<time>")?);
            }
            Some("at-least") => {
                args.take();
                at_least = args.size("<bytes>")?;
            }
            Some("use-large-buffer") => {
                args.take();
                return Err(args.fault("there is one size of buffers: 'tune.bufsize'"));
            }
            _ => break,
        }
    }
    match time {
        Some(_) => Ok(Box::new(BodyWait { time, at_least })),
        None => Err(args.fault("expects 'time <time>'").hint("write 'wait-for-body time 1s'")),
    }
}
