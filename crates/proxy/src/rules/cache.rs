//! `cache-use`, `cache-store`: answers from a cache, and responses for it.

use super::{Action, ActionWord, Flow, REQUEST, RESPONSE, RuleSet, done};
use crate::cache::{CacheName, Selecting};
use crate::counters::Counters;
use crate::facts::Times;
use crate::phase::prepare;
use crate::stream::Stream;
use std::sync::Arc;
use terse_compress::policy;
use terse_config::{Args, Fault, Scope};
use terse_message::{Response, Version};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("cache-use", REQUEST, "<cache> [no-early-hints]", "Answers from a cache, if it can.", |args, scope, _: RuleSet| {
        let name = CacheName::parse(args, scope)?;
        Ok(Box::new(CacheUse { name, hints: !args.accept("no-early-hints") }))
    }),
    done(
        "cache-store",
        RESPONSE,
        "<cache>",
        "Keeps the response in a cache, as it is now, if it may be kept and 'cache-use' was there.",
        store,
    ),
];

struct CacheUse {
    name: Arc<CacheName>,
    /// Whether hints are sent.
    hints: bool,
}

impl Action for CacheUse {
    fn run(&self, stream: &mut Stream) -> Flow {
        let Some(cache) = self.name.cache() else { return Flow::Next };
        let over_tls = stream.facts.session.tls().is_some();
        let Some(asked) = cache.meet(&stream.request, over_tls, selecting(stream)) else { return Flow::Next };
        let hit = asked.may_answer.then(|| {
            counters(stream).cache_lookups.add(1);
            cache.look(&asked, now_ms(stream))
        });
        let hit = hit.flatten();
        if hit.is_none()
            && asked.may_answer
            && self.hints
            && let Some(hints) = cache.hints(&asked.key)
        {
            counters(stream).cache_hints.add(1);
            tell(stream, &hints);
        }
        let caching = stream.facts.caching.get_or_insert_default();
        caching.asked.push(asked);
        if hit.is_some() {
            caching.answered = Some(cache.clone());
            counters(stream).cache_hits.add(1);
        }
        hit.map_or(Flow::Next, |hit| Flow::Stored(Box::new(hit)))
    }
}

/// The fields of the request that choose among responses that vary.
fn selecting(stream: &Stream) -> Selecting {
    let session = &stream.facts.session;
    let plan = &session.worker.plan;
    let settings = prepare::compression(session.frontend(), stream.facts.backend(), &plan.process.compression);
    // Servers are not shown Accept-Encoding by `compression offload`.
    let offer = || policy::offer(&stream.request, stream.facts.asked.as_deref(), stream.facts.client_link(), &settings);
    let hidden = settings.offload() && offer().coded().is_some();
    Selecting::of(&stream.request.fields, hidden, session.frontend().reading.conformance)
}

/// Has hints sent ahead.
fn tell(stream: &mut Stream, hints: &[Box<[u8]>]) {
    let response = stream.facts.changes().hints.get_or_insert_with(|| {
        let mut response = Response::default();
        (response.version, response.status) = (Version::Http11, 103);
        Box::new(response)
    });
    hints.iter().for_each(|hint| response.fields.push(b"Link", hint));
}

/// Counters of the proxy whose rules run: a backend's only once it is chosen.
fn counters(stream: &Stream) -> &Counters {
    let facts = &stream.facts;
    facts.backend().map_or(&facts.frontend().tally, |backend| &backend.tally).of(facts.session.worker.index)
}

struct CacheStore {
    name: Arc<CacheName>,
}

impl Action for CacheStore {
    fn run(&self, stream: &mut Stream) -> Flow {
        let (Some(cache), Some(mut caching)) = (self.name.cache(), stream.facts.caching.take()) else { return Flow::Next };
        if caching.answered.is_none() {
            let times = &stream.facts.times;
            let delay_ms = u64::try_from(Times::between(Some(times.start), times.response)).unwrap_or(0);
            // A recording that another rule has begun is given up first.
            caching.recording = None;
            let record = |asked| cache.record(asked, &stream.response, now_ms(stream), delay_ms / 1000);
            caching.recording = caching.asked_of(cache).and_then(record).map(Box::new);
        }
        stream.facts.caching = Some(caching);
        Flow::Next
    }
}

fn now_ms(stream: &Stream) -> i64 {
    i64::try_from(stream.facts.session.worker.now_ms()).unwrap_or(i64::MAX)
}

fn store(args: &mut Args<'_>, scope: &mut Scope<'_>, _: RuleSet) -> Result<Box<dyn Action>, Fault> {
    Ok(Box::new(CacheStore { name: CacheName::parse(args, scope)? }))
}
