//! Computing time of streams and workers: `cpu_calls`, `lat_ns_tot`, `cpu_usage_thr` and their kin.

use super::facts;
use super::proxy::count;
use crate::effort::{Asked, Cost};
use std::sync::Arc;
use terse_sample::argument::Arg;
use terse_sample::{Compiler, Env, Fetch, Type, Value};

macro_rules! measured {
    ($name:literal, $summary:literal, $read:expr) => {
        Fetch::one($name, Type::Int, $summary, |_, env| {
            let read: fn(Cost) -> u64 = $read;
            Some(count(read(cost(env)?)))
        })
        .check(ask)
    };
}
/// Fetches of streams: tasks are measured once such a fetch stands in the configuration.
pub(super) const OF_STREAMS: &[Fetch] = &[
    measured!("cpu_calls", "How often the stream's task was called.", |cost| cost.calls),
    measured!("cpu_ns_tot", "Nanoseconds in the calls of the stream's task.", |cost| cost.busy_ns),
    measured!("cpu_ns_avg", "Nanoseconds in a call of the stream's task, on average.", |cost| each(cost.busy_ns, cost)),
    measured!("lat_ns_tot", "Nanoseconds between what woke the stream's task and its calls.", |cost| cost.waited_ns),
    measured!("lat_ns_avg", "Nanoseconds between what woke the stream's task and a call, on average.", |cost| {
        each(cost.waited_ns, cost)
    }),
];

/// Of workers: measured once a second, for decisions about compression.
pub(super) const OF_WORKERS: &[Fetch] = &[
    Fetch::one("cpu_usage_thr", Type::Int, "How much of its time the worker computes, percent of the last second.", |_, env| {
        Some(Value::Int(facts(env)?.session.worker.busy_percent().into()))
    }),
    Fetch::one("cpu_usage_proc", Type::Int, "`cpu_usage_thr` on the average of all workers.", |_, env| {
        Some(Value::Int(facts(env)?.session.worker.plan.busy_percent().into()))
    })
    .also(&["cpu_usage_grp"]),
];

fn cost(env: &Env<'_>) -> Option<Cost> {
    Some(facts(env)?.session.effort.as_ref()?.cost())
}

fn each(total: u64, cost: Cost) -> u64 {
    total / cost.calls.max(1)
}

fn ask(_: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
    compiler.registry.refer(Arc::new(Asked), compiler.place.clone());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::trial::Trial;

    const LOG: &str = "log 127.0.0.1 local0\n log-format";

    #[test]
    fn tasks_are_measured_where_somebody_asks() {
        let asked = Trial::front(&format!("{LOG} \"%[cpu_calls] %[cpu_ns_avg] %[lat_ns_tot]\""));
        assert!(asked.session.worker.plan.process.measures_tasks && asked.session.effort.is_some());
        // No task runs in a trial.
        assert_eq!(asked.line(&asked.stream("GET / HTTP/1.1\nHost: a")), "0 0 0");
        let other = Trial::front(&format!("{LOG} \"%[cpu_usage_thr] %[cpu_usage_proc] %[cpu_usage_grp]\""));
        assert!(!other.session.worker.plan.process.measures_tasks && other.session.effort.is_none());
        assert_eq!(other.line(&other.stream("GET / HTTP/1.1\nHost: a")), "0 0 0");
    }
}
