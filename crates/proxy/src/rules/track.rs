//! Stick tables in rules: `track-sc0` and its like, and the actions that count and tag the tracked entries.

use super::{ANY, Action, ActionWord, BOTH, Flow, RuleSet, Sight, TCP, TCP_REQUEST, done, settled, variable};
use crate::stream::Stream;
use crate::track::key::with_key;
use crate::track::name::{TableName, Want};
use crate::track::{ERRORS, FAILURES, REQUESTS, TrackSettings};
use std::sync::Arc;
use terse_balance::table::{Data, Tracked};
use terse_config::{Args, Fault, Scope};
use terse_sample::{Expr, Needs, Registry, Type};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done(
        "track-sc<n>",
        BOTH | TCP_REQUEST,
        "<key> [table <table>]",
        "Tracks a key in a stick table: what happens is counted in its entry until the stream or the connection ends.",
        track,
    ),
    done(
        "sc-inc-gpc(",
        ANY | TCP,
        "<number>,<n>)",
        "Counts in an entry that is tracked, by the counter's number.",
        |args, scope, _| {
            let [number, slot] = numbers(args, scope)?;
            Ok(Box::new(Count { slot, number, rates: &[Data::GpcRate], counts: &[Data::Gpc] }))
        },
    ),
    done("sc-inc-gpc0(", ANY | TCP, "<n>)", "Counts in an entry that is tracked.", |args, scope, _| {
        let [slot] = numbers(args, scope)?;
        let (rates, counts) = (&[Data::Gpc0Rate, Data::GpcRate], &[Data::Gpc0, Data::Gpc]);
        Ok(Box::new(Count { slot, number: 0, rates, counts }))
    }),
    done("sc-inc-gpc1(", ANY | TCP, "<n>)", "Counts in an entry that is tracked.", |args, scope, _| {
        let [slot] = numbers(args, scope)?;
        let (rates, counts) = (&[Data::Gpc1Rate, Data::GpcRate], &[Data::Gpc1, Data::Gpc]);
        Ok(Box::new(Count { slot, number: 1, rates, counts }))
    }),
    done(
        "sc-add-gpc(",
        ANY | TCP,
        "<number>,<n>) {<integer> | <expression>}",
        "Adds to a counter of an entry that is tracked.",
        |args, scope, set| {
            let [number, slot] = numbers(args, scope)?;
            Ok(Box::new(Add { slot, number, amount: amount(args, scope, set)? }))
        },
    ),
    done(
        "sc-set-gpt(",
        ANY | TCP,
        "<number>,<n>) {<integer> | <expression>}",
        "Sets a tag of an entry that is tracked, by the tag's number.",
        |args, scope, set| {
            let [number, slot] = numbers(args, scope)?;
            Ok(Box::new(SetTag { slot, number, kinds: &[Data::Gpt], value: amount(args, scope, set)? }))
        },
    ),
    done(
        "sc-set-gpt0(",
        ANY | TCP,
        "<n>) {<integer> | <expression>}",
        "Sets the tag of an entry that is tracked.",
        |args, scope, set| {
            let [slot] = numbers(args, scope)?;
            Ok(Box::new(SetTag { slot, number: 0, kinds: &[Data::Gpt0, Data::Gpt], value: amount(args, scope, set)? }))
        },
    ),
];

struct Track {
    slot: usize,
    key: Expr,
    table: Arc<TableName>,
    set: RuleSet,
}

impl Action for Track {
    fn waits_for(&self) -> Option<(Sight, Needs)> {
        Some((Sight::Tracked, self.key.needs()))
    }

    fn run(&self, stream: &mut Stream) -> Flow {
        let Some(table) = self.table.table() else { return Flow::Next };
        // A slot that is filled stays as it is: the key need not be made.
        if stream.facts.tracked(self.slot, |_| ()).is_some() {
            return Flow::Next;
        }
        let Ok(value) = settled(&self.key, &stream.env()) else { return Flow::More };
        let Some(value) = value else { return Flow::Next };
        let kind = table.settings().key;
        let value = value.store();
        if matches!(self.set, RuleSet::Connection | RuleSet::Session) {
            with_key(kind, value, |key| stream.facts.session.track(self.slot, table, key));
            return Flow::Next;
        }
        let now_ms = stream.facts.now_ms();
        let (is_http, status) = (stream.facts.version.is_some(), stream.facts.server_status);
        let worker = stream.facts.session.worker.clone();
        let settings = &worker.plan.tracking;
        with_key(kind, value, |key| {
            let Some(tracked) = stream.facts.track(self.slot, table, key, now_ms) else { return };
            // Events from before the entry was tracked.
            if is_http {
                tracked.count(REQUESTS, 1, now_ms);
            }
            if self.set == RuleSet::Response && settings.errors.has(status) {
                tracked.count(ERRORS, 1, now_ms);
            }
            if self.set == RuleSet::Response && settings.failures.has(status) {
                tracked.count(FAILURES, 1, now_ms);
            }
        });
        Flow::Next
    }

    fn waits(&self) -> bool {
        true
    }
}

struct Count {
    slot: u32,
    number: u32,
    rates: &'static [Data],
    counts: &'static [Data],
}

impl Action for Count {
    fn run(&self, stream: &mut Stream) -> Flow {
        let now_ms = stream.facts.now_ms();
        stream.facts.tracked(self.slot as usize, |tracked| {
            let counted = [self.rates, self.counts].map(|kinds| first_stored(tracked, kinds, self.number));
            for (data, number) in counted.into_iter().flatten() {
                tracked.table().add(tracked.entry(), data, number, 1, now_ms);
                tracked.table().touch(tracked.entry(), now_ms);
            }
        });
        Flow::Next
    }
}

struct Add {
    slot: u32,
    number: u32,
    amount: Amount,
}

impl Action for Add {
    fn run(&self, stream: &mut Stream) -> Flow {
        let Some(amount) = self.amount.eval(stream) else { return Flow::Next };
        let now_ms = stream.facts.now_ms();
        stream.facts.tracked(self.slot as usize, |tracked| {
            let amount = u64::from(amount as u32);
            let rate = tracked.table().add(tracked.entry(), Data::GpcRate, self.number, amount, now_ms);
            if tracked.table().add(tracked.entry(), Data::Gpc, self.number, amount, now_ms).or(rate).is_some() {
                tracked.table().touch(tracked.entry(), now_ms);
            }
        });
        Flow::Next
    }
}

struct SetTag {
    slot: u32,
    number: u32,
    kinds: &'static [Data],
    value: Amount,
}

impl Action for SetTag {
    fn run(&self, stream: &mut Stream) -> Flow {
        let Some(value) = self.value.eval(stream) else { return Flow::Next };
        let now_ms = stream.facts.now_ms();
        stream.facts.tracked(self.slot as usize, |tracked| {
            if let Some((data, number)) = first_stored(tracked, self.kinds, self.number) {
                tracked.table().set(tracked.entry(), data, number, u64::from(value as u32), now_ms);
                tracked.table().touch(tracked.entry(), now_ms);
            }
        });
        Flow::Next
    }
}

/// The first of these kinds that the table stores: a counter by its own name, or else by its number.
fn first_stored(tracked: &Tracked, kinds: &[Data], number: u32) -> Option<(Data, u32)> {
    let kinds = kinds.iter().map(|kind| (*kind, if kind.is_array() { number } else { 0 }));
    let mut stored = kinds.filter(|(kind, _)| tracked.table().has(*kind));
    stored.next()
}

/// A number: written, or made anew each time.
enum Amount {
    Fixed(i64),
    Made(Expr),
}

impl Amount {
    fn eval(&self, stream: &Stream) -> Option<i64> {
        match self {
            Amount::Fixed(n) => Some(*n),
            Amount::Made(expr) => expr.eval(&stream.env())?.into_int(),
        }
    }
}

fn amount(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Amount, Fault> {
    if let Some(word) = args.peek()
        && word.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Ok(Amount::Fixed(args.integer("<integer>", 0..=i64::from(u32::MAX))?));
    }
    let expr = Expr::parse(args, scope, set.have())?;
    match terse_sample::cast::exists(expr.output(), Type::Int) {
        true => Ok(Amount::Made(expr)),
        false => Err(args.fault(format!("'{}' gives a value of type {}, which is no number", expr.text(), expr.output().name()))),
    }
}

fn track(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let word = args.taken();
    let slots = scope.shared.entry::<TrackSettings>().slots;
    let slot = word.trim_start_matches("track-sc").parse().ok().filter(|slot| *slot < slots).ok_or_else(|| no_slot(args, slots))?;
    let key = Expr::parse(args, scope, set.have())?;
    let name = if args.accept("table") { Some(args.need("<table>")?) } else { None };
    let section = scope.section.name.clone();
    let want = Want::Keys(key.output(), word.into());
    let registry: &mut Registry = scope.shared.entry();
    let table = TableName::note(name, &section, want, &scope.place, registry);
    Ok(Box::new(Track { slot, key, table, set }))
}

/// The numbers in the parentheses of the action's name, of which the last is that of a slot.
fn numbers<const N: usize>(args: &Args<'_>, scope: &mut Scope<'_>) -> Result<[u32; N], Fault> {
    let inside = variable::in_parentheses(args)?;
    let words: Vec<&str> = inside.split(',').map(str::trim).collect();
    if words.len() != N {
        return Err(args.fault(format!("'{}' takes {N} number{}", args.taken(), if N == 1 { "" } else { "s" })));
    }
    let mut numbers = [0; N];
    for (number, word) in numbers.iter_mut().zip(words) {
        let parsed = word.parse().ok().filter(|n| *n < MOST);
        *number = parsed.ok_or_else(|| args.fault(format!("'{word}' is not a number between 0 and {}", MOST - 1)))?;
    }
    let slots = scope.shared.entry::<TrackSettings>().slots;
    match numbers.last() {
        Some(slot) if *slot as usize >= slots => Err(no_slot(args, slots)),
        _ => Ok(numbers),
    }
}

fn no_slot(args: &Args<'_>, slots: usize) -> Fault {
    args.fault(format!("'{}': there are {slots} counters, from 0 on", args.taken()))
        .hint("'tune.stick-counters' in 'global' says how many")
}

/// The most counters that a table can have by number, and more than there can be slots.
const MOST: u32 = 100;
