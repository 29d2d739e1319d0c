//! Savings and costs of compression: the source of `show compression json`, the console, its API and metrics.
//!
//! Sent bytes are counted on frontends alone: a backend's bytes are those of its frontend once more. A frontend that
//! serves nothing but statistics is left out, so that a look at the figures does not change them.

use crate::context::Context;
use crate::dictionaries::OfAll;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use terse_compress::coding::CODINGS;
use terse_compress::settings::MemoryPlace;
use terse_compress::spent::{self, Site};
use terse_compress::{Coding, Compression, Counters, Memory, Reason};
use terse_proxy::plan::{Frontend, Plan};

/// Savings of compression, in bytes and microseconds.
#[derive(Serialize, Debug)]
pub(crate) struct Savings {
    pub(crate) sent: Sent,
    pub(crate) compression: Totals,
    /// Codings that were used, or are configured somewhere.
    pub(crate) codings: Vec<OfCoding>,
    /// Reasons that occurred, the heaviest first.
    pub(crate) reasons: Vec<OfReason>,
    pub(crate) memory: Vec<OfMemory>,
    /// Dictionaries; nothing where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dictionaries: Option<OfAll>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<OfQueue>,
    /// Whether it covers the whole process.
    #[serde(skip)]
    pub(crate) is_whole: bool,
}

/// Bytes sent to clients.
#[derive(Clone, Copy, Serialize, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    /// Number of bytes without compression.
    pub(crate) before: u64,
}

impl Sent {
    /// Computes the totals from bytes sent, and of them bytes before and after compression.
    pub(crate) fn new(bytes: u64, bytes_in: u64, bytes_out: u64) -> Sent {
        Sent { bytes, before: bytes.saturating_add(bytes_in).saturating_sub(bytes_out) }
    }
}

/// Totals of all codings.
#[derive(Clone, Copy, Serialize, Debug)]
pub(crate) struct Totals {
    pub(crate) answers: u64,
    #[serde(rename = "in")]
    pub(crate) bytes_in: u64,
    #[serde(rename = "out")]
    pub(crate) bytes_out: u64,
    /// Time in coders; known for the whole process alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) coder_us: Option<u64>,
    /// Coders' time saved by the memory of bodies; known for the whole process alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) spared_us: Option<u64>,
}

/// A coding.
#[derive(Clone, Copy, Serialize, Debug)]
pub(crate) struct OfCoding {
    pub(crate) name: &'static str,
    pub(crate) answers: u64,
    #[serde(rename = "in")]
    pub(crate) bytes_in: u64,
    #[serde(rename = "out")]
    pub(crate) bytes_out: u64,
    /// Time in coders at all sites; known for the whole process alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) coder_us: Option<u64>,
    #[serde(skip)]
    pub(crate) coding: Coding,
}

impl OfCoding {
    /// Time in coders, by [`Site::ALL`].
    pub(crate) fn coder_us_by_site(&self) -> [u64; Site::ALL.len()] {
        Site::ALL.map(|site| spent::ns(self.coding, site) / 1000)
    }
}

/// Answers that were not compressed, by reason.
#[derive(Clone, Copy, Serialize, Debug)]
pub(crate) struct OfReason {
    pub(crate) name: &'static str,
    pub(crate) group: &'static str,
    pub(crate) answers: u64,
    /// Bytes sent to clients, heads included.
    pub(crate) bytes: u64,
    #[serde(skip)]
    pub(crate) reason: Reason,
}

/// A memory of compressed bodies.
#[derive(Clone, Serialize, Debug)]
pub(crate) struct OfMemory {
    pub(crate) name: Arc<str>,
    pub(crate) limit: u64,
    pub(crate) bytes: u64,
    pub(crate) bodies: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) evicted: u64,
}

/// The offload queue.
#[derive(Clone, Copy, Serialize, Debug)]
pub(crate) struct OfQueue {
    pub(crate) waiting: u64,
    pub(crate) jobs: u64,
    pub(crate) full: u64,
    pub(crate) mean_wait_us: u64,
}

impl Savings {
    /// Savings of the whole process.
    pub(crate) fn of(context: &Context) -> Savings {
        Savings::within(context, None)
    }

    /// Savings of the proxies with these names alone: without what proxies share.
    pub(crate) fn within(context: &Context, scope: Option<&dyn Fn(&str) -> bool>) -> Savings {
        let plan = &context.plan;
        let (sum, mut bytes) = (Counters::default(), 0);
        for front in counted(plan).filter(|front| scope.is_none_or(|shows| shows(&front.name))) {
            sum.add(&front.tally.compression());
            bytes += front.tally.totals().bytes_out;
        }
        let [bytes_in, bytes_out] = [&sum.bytes_in, &sum.bytes_out].map(|number| number.load(Relaxed));
        let memories = if scope.is_none() { memories(plan) } else { Vec::new() };
        let spared_ns = memories.iter().map(|(_, memory)| memory.numbers().spared_ns.load(Relaxed)).sum::<u64>();
        let codings = codings(plan, &sum, scope);
        Savings {
            sent: Sent::new(bytes, bytes_in, bytes_out),
            compression: Totals {
                answers: sum.compressed.load(Relaxed),
                bytes_in,
                bytes_out,
                coder_us: scope.is_none().then(|| codings.iter().filter_map(|coding| coding.coder_us).sum()),
                spared_us: scope.is_none().then_some(spared_ns / 1000),
            },
            codings,
            reasons: reasons(&sum),
            memory: memories.iter().map(|(name, memory)| of_memory(name, memory)).collect(),
            dictionaries: scope.is_none().then(|| OfAll::of(plan, &sum)).flatten(),
            queue: context.queue.as_deref().filter(|_| scope.is_none()).map(of_queue),
            is_whole: scope.is_none(),
        }
    }

    /// Saved part of the bytes without compression, in thousandths.
    pub(crate) fn saved_permille(&self) -> u64 {
        permille(self.sent.before.saturating_sub(self.sent.bytes), self.sent.before)
    }
}

/// Part of a whole, in thousandths.
pub(crate) fn permille(part: u64, whole: u64) -> u64 {
    (u128::from(part) * 1000).checked_div(u128::from(whole)).map_or(0, |permille| permille.min(1000) as u64)
}

/// Frontends whose answers count.
pub(crate) fn counted(plan: &Plan) -> impl Iterator<Item = &Frontend> {
    plan.frontends.iter().filter(|front| !serves_statistics_alone(plan, front))
}

/// Whether a frontend has a statistics page, and no server.
pub(crate) fn serves_statistics_alone(plan: &Plan, front: &Frontend) -> bool {
    let backends = plan.backends.now();
    let back = front.default_backend.and_then(|number| backends.iter().find(|back| back.number == number));
    let has_page = front.service.is_some() || back.is_some_and(|back| back.service.is_some());
    has_page && front.switches.is_empty() && back.is_none_or(|back| back.farm.servers().is_empty())
}

fn codings(plan: &Plan, sum: &Counters, scope: Option<&dyn Fn(&str) -> bool>) -> Vec<OfCoding> {
    let backends = plan.backends.now();
    let is_shown = |name: &str| scope.is_none_or(|shows| shows(name));
    let fronts = plan.frontends.iter().filter(|front| is_shown(&front.name)).map(|front| front.compression.as_deref());
    let backs = backends.iter().filter(|back| is_shown(&back.name)).map(|back| back.compression.as_deref());
    let configured: Vec<_> = fronts.chain(backs).flatten().flat_map(|line| &line.response.algorithms).copied().collect();
    let of = |coding: Coding| {
        let [answers, bytes_in, bytes_out] = sum.of_coding(coding);
        let ns = Site::ALL.iter().map(|site| spent::ns(coding, *site)).sum::<u64>();
        let coder_us = scope.is_none().then_some(ns / 1000);
        OfCoding { name: coding.word(), answers, bytes_in, bytes_out, coder_us, coding }
    };
    let all = CODINGS.iter().map(|entry| entry.coding).filter(|coding| !coding.is_identity());
    let mut all: Vec<_> = all.map(|coding| (configured.contains(&coding), of(coding))).collect();
    all.retain(|(is_configured, coding)| *is_configured || coding.answers > 0);
    all.sort_by_key(|(_, coding)| std::cmp::Reverse(coding.bytes_in));
    all.into_iter().map(|(_, coding)| coding).collect()
}

fn reasons(sum: &Counters) -> Vec<OfReason> {
    let of = |reason: &Reason| OfReason {
        name: reason.name(),
        group: reason.advice().group.name(),
        answers: sum.passed(*reason),
        bytes: sum.passed_bytes(*reason),
        reason: *reason,
    };
    let mut all: Vec<_> = Reason::ALL.iter().map(of).filter(|reason| reason.answers > 0).collect();
    all.sort_by_key(|reason| std::cmp::Reverse((reason.bytes, reason.answers)));
    all
}

fn of_memory(name: &Arc<str>, memory: &Memory) -> OfMemory {
    let (bodies, bytes) = memory.held();
    let numbers = memory.numbers();
    let [hits, misses, evicted] = [&numbers.hits, &numbers.misses, &numbers.evicted].map(|number| number.load(Relaxed));
    OfMemory { name: name.clone(), limit: memory.bytes() as u64, bytes: bytes as u64, bodies: bodies as u64, hits, misses, evicted }
}

fn of_queue(queue: &terse_compress::Queue) -> OfQueue {
    let numbers = queue.numbers();
    let [waiting, jobs, full] = [&numbers.waiting, &numbers.jobs, &numbers.full].map(|number| number.load(Relaxed));
    OfQueue { waiting, jobs, full, mean_wait_us: numbers.mean_wait_us() }
}

/// All memories, by the first proxy that has each: `common` is the one that proxies share by default.
pub(crate) fn memories(plan: &Plan) -> Vec<(Arc<str>, Arc<Memory>)> {
    let mut all: Vec<(Arc<str>, Arc<Memory>)> = plan.bodies.iter().map(|memory| ("common".into(), memory.clone())).collect();
    let backends = plan.backends.now();
    let fronts = plan.frontends.iter().map(|front| (&front.name, &front.compression));
    let backs = backends.iter().map(|back| (&back.name, &back.compression));
    for (name, compression) in fronts.chain(backs) {
        if let Some(memory) = compression.as_deref().and_then(own)
            && !all.iter().any(|(_, known)| Arc::ptr_eq(known, memory))
        {
            all.push((name.clone(), memory.clone()));
        }
    }
    all
}

fn own(compression: &Compression) -> Option<&Arc<Memory>> {
    match &compression.memory.as_ref()?.place {
        MemoryPlace::Own(memory) => Some(memory),
        MemoryPlace::Off | MemoryPlace::Common => None,
    }
}
