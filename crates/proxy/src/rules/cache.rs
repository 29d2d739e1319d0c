//! `cache-use`, `cache-store`: answers from a cache, and responses for it.

use super::{Action, ActionWord, Flow, REQUEST, RESPONSE, RuleSet, done};
use crate::cache::{Cache, CacheName};
use crate::counters::Counters;
use crate::facts::Times;
use crate::stream::Stream;
use std::sync::Arc;
use terse_config::{Args, Fault, Scope};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("cache-use", REQUEST, "<cache>", "Answers from a cache, if it can.", |args, scope, _: RuleSet| {
        Ok(Box::new(CacheUse { name: CacheName::parse(args, scope)? }))
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
}

impl Action for CacheUse {
    fn run(&self, stream: &mut Stream) -> Flow {
        let Some(cache) = self.name.cache() else { return Flow::Next };
        let Some(mut caching) = cache.meet(&stream.request) else { return Flow::Next };
        if let Some(before) = stream.facts.caching.take() {
            caching.asked.splice(0..0, before.asked);
        }
        let hit = Cache::serves(&stream.request).then(|| {
            counters(stream).cache_lookups.add(1);
            cache.look(&caching, &stream.request, now_ms(stream))
        });
        let hit = hit.flatten();
        if hit.is_some() {
            counters(stream).cache_hits.add(1);
            caching.answered = Some(cache.clone());
        }
        stream.facts.caching = Some(Box::new(caching));
        hit.map_or(Flow::Next, |hit| Flow::Stored(Box::new(hit)))
    }
}

/// Those of the proxy whose rules run: a backend's only once it is chosen.
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
            // What another rule has begun to record is given up first.
            caching.recording = None;
            caching.recording = cache.record(&caching, &stream.response, now_ms(stream), delay_ms / 1000).map(Box::new);
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
