//! Number of attempts of a request, and its place in queues: `set-retries`, `disable-l7-retry`, `set-priority-class`,
//! `set-priority-offset`.

use super::{Action, ActionWord, CONTENT, Flow, REQUEST, RuleSet, done};
use crate::stream::Stream;
use terse_balance::Precedence;
use terse_config::{Args, Fault, Scope, SectionKind};
use terse_sample::{Expr, Type, cast};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("set-retries", REQUEST | CONTENT, "{<number> | <expression>}", "Changes how often the request is tried again.", retries),
    done(
        "disable-l7-retry",
        REQUEST,
        "",
        "Tries the request again only where no byte of it was taken: what 'retry-on' says of responses does not count.",
        |_, _, _| Ok(Box::new(SendOnce)),
    ),
    done("set-priority-class", REQUEST | CONTENT, "<expression>", "Changes the class in queues: lower ones go first.", class),
    done(
        "set-priority-offset",
        REQUEST | CONTENT,
        "<expression>",
        "Changes the place in queues by milliseconds: back, or with negative ones forward.",
        offset,
    ),
];

enum SetRetries {
    Fixed(u32),
    Made(Expr),
}

impl Action for SetRetries {
    fn run(&self, stream: &mut Stream) -> Flow {
        let number = match self {
            SetRetries::Fixed(number) => Some(*number),
            SetRetries::Made(value) => {
                let number = value.eval(&stream.env()).and_then(|value| value.into_int());
                number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number <= MOST_RETRIES)
            }
        };
        if let Some(number) = number {
            stream.facts.changes().retries = Some(number);
        }
        Flow::Next
    }
}

const MOST_RETRIES: u32 = 100;

struct SendOnce;

impl Action for SendOnce {
    fn run(&self, stream: &mut Stream) -> Flow {
        stream.facts.changes().sent_once = true;
        Flow::Next
    }
}

struct SetPriority {
    value: Expr,
    put: fn(&mut Precedence, i64),
}

impl Action for SetPriority {
    fn run(&self, stream: &mut Stream) -> Flow {
        let value = self.value.eval(&stream.env()).and_then(|value| value.into_int());
        if let Some(value) = value {
            (self.put)(&mut stream.facts.changes().priority, value);
        }
        Flow::Next
    }
}

fn retries(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    match scope.section.kind {
        SectionKind::Backend | SectionKind::Listen => {}
        kind => {
            return Err(args.fault(format!("a {} tries nothing again: it belongs to a backend or a listen section", kind.name())));
        }
    }
    match args.peek().map(str::parse::<i64>) {
        Some(Ok(_)) => {
            let number = args.integer("<number>", 0..=MOST_RETRIES.into())?;
            Ok(Box::new(SetRetries::Fixed(number as u32)))
        }
        _ => Ok(Box::new(SetRetries::Made(number(args, scope, set)?))),
    }
}

fn class(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let value = number(args, scope, set)?;
    Ok(Box::new(SetPriority { value, put: put_class }))
}

fn offset(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let value = number(args, scope, set)?;
    Ok(Box::new(SetPriority { value, put: put_offset }))
}

pub(super) fn put_class(priority: &mut Precedence, class: i64) {
    priority.class = class.clamp(-CLASSES, CLASSES) as i16;
}

pub(super) fn put_offset(priority: &mut Precedence, offset_ms: i64) {
    priority.offset_ms = offset_ms.clamp(-OFFSETS, OFFSETS) as i32;
}

/// HAProxy's bounds.
const CLASSES: i64 = 0x7ff;
const OFFSETS: i64 = 0x7_ffff;

/// An expression whose values can be numbers.
pub(super) fn number(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Expr, Fault> {
    let word = args.position();
    let value = Expr::parse(args, scope, set.have())?;
    match cast::exists(value.output(), Type::Int) {
        true => Ok(value),
        false => Err(Fault::new(word, format!("'{}' cannot become a number", value.text()))),
    }
}
