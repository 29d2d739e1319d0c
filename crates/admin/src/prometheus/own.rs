//! Metrics that HAProxy does not have: compression, by coding and by reason, memories, the offload queue and engines.
//!
//! Series are few: at most one per proxy, side and coding or reason; none by server, type, path or client. A configured
//! coding is there from 0; a reason once it has occurred.

use super::text::{Number, Sample};
use crate::context::Context;
use crate::dictionaries::OfProxy;
use crate::halves::{self, Half};
use crate::savings::memories;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use terse_compress::coding::CODINGS;
use terse_compress::offload::Standing;
use terse_compress::spent::{self, Site};
use terse_compress::{Coding, Counters, Reason};
use terse_tls::COUNTERS;

/// A family: its name, a help text, and its samples.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) samples: fn(&View<'_>, &mut Sample<'_>),
}

/// Source of samples: proxies' counters are summed once for all families.
pub(super) struct View<'a> {
    context: &'a Context,
    proxies: &'a [Proxy],
}

/// Half of a proxy that compresses or could.
pub(super) struct Proxy {
    name: Arc<str>,
    side: &'static str,
    /// Configured codings.
    codings: Vec<Coding>,
    counters: Counters,
    dictionaries: Option<OfProxy>,
}

/// Proxies that have samples.
pub(super) fn proxies(context: &Context) -> Vec<Proxy> {
    let backends = context.plan.backends.now();
    let proxy = |half: Half<'_>| {
        let (side, compression, tally) = match half {
            Half::Front(_, front) => ("frontend", &front.compression, &front.tally),
            Half::Back(back) => ("backend", &back.compression, &back.tally),
        };
        let codings = compression.as_deref().map(|lines| lines.response.algorithms.clone()).unwrap_or_default();
        let counters = tally.compression();
        let is_silent = codings.is_empty() && Reason::ALL.iter().all(|reason| counters.passed(*reason) == 0);
        let dictionaries = OfProxy::of(half.name(), side, compression.as_deref(), &counters);
        (!is_silent || dictionaries.is_some()).then(|| Proxy { name: half.name().into(), side, codings, counters, dictionaries })
    };
    halves::of(&context.plan, &backends).into_iter().filter_map(proxy).collect()
}

impl<'a> View<'a> {
    pub(super) fn new(context: &'a Context, proxies: &'a [Proxy]) -> View<'a> {
        View { context, proxies }
    }

    fn by_coding(&self, which: usize, out: &mut Sample<'_>) {
        for proxy in self.proxies {
            for coding in CODINGS.iter().map(|entry| entry.coding).filter(|coding| !coding.is_identity()) {
                let counted = proxy.counters.of_coding(coding);
                if counted[0] > 0 || proxy.codings.contains(&coding) {
                    let labels = [("proxy", &*proxy.name), ("side", proxy.side), ("coding", coding.word())];
                    out.add(&labels, Number::Whole(counted[which]));
                }
            }
        }
    }

    fn of_dictionaries(&self, out: &mut Sample<'_>, number: fn(&OfProxy) -> Option<u64>) {
        for of in self.proxies.iter().filter_map(|proxy| proxy.dictionaries.as_ref()) {
            if let Some(number) = number(of) {
                out.add(&[("proxy", &*of.name), ("side", of.side)], Number::Whole(number));
            }
        }
    }

    fn of_memories(&self, out: &mut Sample<'_>, number: fn(&terse_compress::Memory) -> u64) {
        for (name, memory) in memories(&self.context.plan) {
            out.add(&[("memory", &name)], Number::Whole(number(&memory)));
        }
    }
}

const fn family(name: &'static str, help: &'static str, samples: fn(&View<'_>, &mut Sample<'_>)) -> Family {
    Family { name, help, samples }
}

/// Table of families.
pub(super) const FAMILIES: &[Family] = &[
    family("terse_build_info", "The program's version, and that of HAProxy's whose language it reads", |view, out| {
        let process = &view.context.process;
        out.add(&[("version", &process.own_version), ("language", &process.version)], Number::Whole(1));
    }),
    family("terse_compression_answers_total", "Answers that were compressed", |view, out| view.by_coding(0, out)),
    family("terse_compression_input_bytes_total", "Bytes of them before compression", |view, out| view.by_coding(1, out)),
    family("terse_compression_output_bytes_total", "Bytes of them after compression", |view, out| view.by_coding(2, out)),
    family("terse_compression_seconds_total", "Time in coders, by the thread that they work on", |_, out| {
        for coding in CODINGS.iter().map(|entry| entry.coding).filter(|coding| !coding.is_identity()) {
            let spent = Site::ALL.map(|site| (site, spent::ns(coding, site)));
            for (site, ns) in spent.into_iter().filter(|_| spent.iter().any(|(_, ns)| *ns > 0)) {
                out.add(&[("coding", coding.word()), ("where", site.name())], Number::Micros(ns / 1000));
            }
        }
    }),
    family("terse_spared_seconds_total", "Time in coders that memories of bodies spared", |view, out| {
        let memories = memories(&view.context.plan);
        let ns = memories.iter().map(|(_, memory)| memory.numbers().spared_ns.load(Relaxed)).sum::<u64>();
        out.add(&[], Number::Micros(ns / 1000));
    }),
    family("terse_uncompressed_answers_total", "Answers that were not compressed, by the reason", |view, out| {
        for proxy in view.proxies {
            for (reason, count) in Reason::ALL.iter().map(|reason| (reason, proxy.counters.passed(*reason))).filter(|(_, n)| *n > 0)
            {
                let labels = [("proxy", &*proxy.name), ("side", proxy.side), ("reason", reason.name())];
                out.add(&labels, Number::Whole(count));
            }
        }
    }),
    family("terse_uncompressed_bytes_total", "Bytes that clients were sent in such answers, with their heads", |view, out| {
        for proxy in view.proxies.iter().filter(|proxy| proxy.side == "frontend") {
            for reason in Reason::ALL.iter().filter(|reason| proxy.counters.passed(**reason) > 0) {
                let bytes = proxy.counters.passed_bytes(*reason);
                out.add(&[("proxy", &*proxy.name), ("reason", reason.name())], Number::Whole(bytes));
            }
        }
    }),
    family("terse_dictionary_announced_total", "Answers that named a dictionary to their clients", |view, out| {
        view.of_dictionaries(out, |of| Some(of.announced));
    }),
    family("terse_dictionary_answers_total", "Answers, by what became of their clients' dictionaries", |view, out| {
        for of in view.proxies.iter().filter_map(|proxy| proxy.dictionaries.as_ref()) {
            for (usage, count) in of.outcomes.iter().filter(|(_, count)| *count > 0) {
                out.add(&[("proxy", &*of.name), ("side", of.side), ("outcome", usage.name())], Number::Whole(*count));
            }
        }
    }),
    family("terse_dictionaries", "Dictionaries that a proxy's lines name", |view, out| {
        view.of_dictionaries(out, |of| Some(of.count).filter(|count| *count > 0));
    }),
    family("terse_dictionaries_bytes", "Bytes of them", |view, out| {
        view.of_dictionaries(out, |of| Some(of.held).filter(|_| of.count > 0));
    }),
    family("terse_dictionaries_oldest_seconds", "Age of the oldest of them", |view, out| {
        view.of_dictionaries(out, |of| of.oldest_s);
    }),
    family("terse_memory_bytes", "Bytes that a memory of compressed bodies holds", |view, out| {
        view.of_memories(out, |memory| memory.held().1 as u64);
    }),
    family("terse_memory_limit_bytes", "Bytes that it may hold", |view, out| {
        view.of_memories(out, |memory| memory.bytes() as u64);
    }),
    family("terse_memory_bodies", "Bodies that it holds", |view, out| view.of_memories(out, |memory| memory.held().0 as u64)),
    family("terse_memory_lookups_total", "Bodies that were looked for in it", |view, out| {
        for (name, memory) in memories(&view.context.plan) {
            let numbers = memory.numbers();
            for (result, number) in [("hit", &numbers.hits), ("miss", &numbers.misses)] {
                out.add(&[("memory", &*name), ("result", result)], Number::Whole(number.load(Relaxed)));
            }
        }
    }),
    family("terse_offload_waiting", "Jobs that wait in the queue of compression", |view, out| {
        view.context.queue.iter().for_each(|queue| out.add(&[], Number::Whole(queue.numbers().waiting.load(Relaxed))));
    }),
    family("terse_offload_jobs_total", "Jobs of the queue, by what became of them", |view, out| {
        let Some(queue) = &view.context.queue else { return };
        let numbers = queue.numbers();
        for (result, number) in
            [("done", &numbers.jobs), ("shared", &numbers.shared), ("full", &numbers.full), ("cancelled", &numbers.cancelled)]
        {
            out.add(&[("result", result)], Number::Whole(number.load(Relaxed)));
        }
    }),
    family("terse_offload_wait_seconds_total", "Time that jobs waited for their turn", |view, out| {
        view.context.queue.iter().for_each(|queue| out.add(&[], Number::Micros(queue.numbers().waited_us.load(Relaxed))));
    }),
    family("terse_engine_up", "1 where an engine takes bodies", |view, out| {
        for lane in view.context.queue.iter().flat_map(|queue| queue.engines()) {
            let is_up = matches!(lane.standing(), Standing::Up);
            out.add(&[("engine", &*lane.settings().name)], Number::Whole(u64::from(is_up)));
        }
    }),
    family("terse_engine_jobs_total", "Bodies that an engine was given, by what became of them", |view, out| {
        for lane in view.context.queue.iter().flat_map(|queue| queue.engines()) {
            let numbers = lane.numbers();
            for (result, number) in [("done", &numbers.jobs), ("fallen", &numbers.falls)] {
                out.add(&[("engine", &*lane.settings().name), ("result", result)], Number::Whole(number.load(Relaxed)));
            }
        }
    }),
    family("terse_tls_records_bytes_total", "Bytes of TLS records that are compressed", |_, out| {
        for (direction, number) in [("in", &COUNTERS.records_plain), ("out", &COUNTERS.records_packed)] {
            out.add(&[("direction", direction)], Number::Whole(number.load(Relaxed)));
        }
    }),
];
