//! Rates of the last second: sessions and requests of proxies and servers.
//!
//! Nothing is counted for these fetches: they look at counters that are there anyway, and each remembers the values that it
//! saw. As in HAProxy a rate is the count of the running second, plus the share of the second before that the window of a
//! second still covers.

use super::lookup::{Named, backend, frontend, server};
use super::proxy::count;
use std::sync::{Mutex, PoisonError};
use terse_balance::Count;
use terse_sample::argument::{Arg, Param, ParamKind, may, need};
use terse_sample::registry::Check;
use terse_sample::{ArgList, Compiler, Env, Fetch, Type, Value};

const PROXY: &[Param] = &[may(ParamKind::Str)];

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("fe_sess_rate", Type::Int, "Sessions of a frontend in a second.", |args, env| {
        rate(args, env, frontend(args, env)?.tally.sum(|counters| &counters.sessions))
    })
    .params(PROXY)
    .check(|args, compiler| check(args, compiler, Named::frontend)),
    Fetch::one("fe_req_rate", Type::Int, "Requests of a frontend in a second.", |args, env| {
        rate(args, env, frontend(args, env)?.tally.sum(|counters| &counters.requests))
    })
    .params(PROXY)
    .check(|args, compiler| check(args, compiler, Named::frontend)),
    Fetch::one("be_sess_rate", Type::Int, "Sessions of a backend in a second.", |args, env| {
        rate(args, env, backend(args, env)?.tally.sum(|counters| &counters.sessions))
    })
    .params(PROXY)
    .check(|args, compiler| check(args, compiler, Named::backend)),
    Fetch::one("srv_sess_rate", Type::Int, "Sessions of a server in a second.", |args, env| {
        rate(args, env, server(args, env)?.counters.total(Count::Sessions))
    })
    .params(&[need(ParamKind::Str)])
    .check(|args, compiler| check(args, compiler, Named::server)),
];

/// Index of the meter among the arguments, as [`check`] sets it.
const METER: usize = 1;

/// Adds a meter to the result of `name` on the first argument.
fn check(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>, name: Check) -> Result<(), String> {
    name(args, compiler)?;
    args.resize(METER, Arg::None);
    args.push(Arg::own(Meter::default()));
    Ok(())
}

fn rate<'a>(args: &ArgList, env: &Env<'a>, total: u64) -> Option<Value<'a>> {
    let meter: &Meter = args.own(METER)?;
    let now = env.world.now();
    Some(count(meter.rate(total, now.seconds.saturating_mul(1000).saturating_add((now.micros / 1000).into()))))
}

/// A fetch's last values of a counter.
#[derive(Default)]
struct Meter(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// When the second began that runs, in milliseconds; 0 before the first look.
    since_ms: i64,
    /// The counter at that time.
    base: u64,
    /// Count of the second before.
    before: u64,
}

const SECOND_MS: i64 = 1000;

impl Meter {
    fn rate(&self, total: u64, now_ms: i64) -> u64 {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now_ms.saturating_sub(seen.since_ms);
        // A counter that was cleared begins anew.
        let came = total.saturating_sub(if total < seen.base { 0 } else { seen.base });
        match elapsed {
            0..SECOND_MS => came + seen.before * (SECOND_MS - elapsed) as u64 / SECOND_MS as u64,
            SECOND_MS..2_000 => {
                *seen = Seen { since_ms: seen.since_ms + SECOND_MS, base: total, before: came };
                came * (2 * SECOND_MS - elapsed) as u64 / SECOND_MS as u64
            }
            // No look for long, or the clock was set: the count since then is spread over that time.
            _ => {
                let seconds = if seen.since_ms == 0 { 1 } else { elapsed.unsigned_abs() / SECOND_MS as u64 };
                let average = came.div_ceil(seconds.max(1));
                *seen = Seen { since_ms: now_ms, base: total.saturating_sub(average), before: 0 };
                average
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_a_second_slides() {
        let meter = Meter::default();
        assert_eq!(meter.rate(1, 10_000), 1);
        assert_eq!(meter.rate(10, 10_500), 10);
        assert_eq!(meter.rate(10, 11_500), 5, "half of the second before is still in the window");
        assert_eq!(meter.rate(14, 11_750), 6);
        assert_eq!(meter.rate(1_010, 111_750), 10, "ten a second, over a hundred seconds");
        assert_eq!(meter.rate(1_011, 111_800), 11);
        assert_eq!(meter.rate(3, 111_900), 3, "the counters were cleared");
        assert_eq!(meter.rate(4, 1_000), 1, "the clock was set back");
    }
}
