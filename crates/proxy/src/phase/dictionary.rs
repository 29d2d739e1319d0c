//! Dictionaries of RFC 9842: published, announced, counted. What may refer to one is [`terse_compress::policy`]'s.

pub mod learn;

use crate::phase::prepare;
use crate::reply::Answer;
use crate::stream::Stream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use terse_compress::dictionary::{Offered, Usage};
use terse_compress::{Coding, Effective, Offer, Pace};
use terse_dictionary::Dictionary;
use terse_message::{BodyLength, Known};

/// The answer to a request for a dictionary itself, if it is one.
pub fn published(stream: &Stream) -> Option<Answer> {
    let session = &stream.facts.session;
    let process = &session.worker.plan.process.compression;
    let line = prepare::compression(session.frontend(), stream.facts.backend(), process).dictionary()?;
    let request = &stream.request;
    if !matches!(request.method(), b"GET" | b"HEAD") || !(line.is_secure || session.tls().is_some()) {
        return None;
    }
    let dictionary = line.given.published(request.fields.first(Known::Host)?, request.path_and_query())?;
    dictionary.counters.fetched.fetch_add(1, Relaxed);
    let field = |name: &str, value: String| (Arc::from(name.as_bytes()), value.into_bytes());
    let fields = vec![
        field("Content-Type", "application/octet-stream".into()),
        field("Cache-Control", "public, max-age=604800".into()),
        field("X-Content-Type-Options", "nosniff".into()),
        field("Use-As-Dictionary", dictionary.use_as.write()),
    ];
    Some(Answer { body: dictionary.bytes().clone(), ..Answer::bare(200, fields) })
}

/// Notes what became of the client's dictionary, which is decided.
pub fn note(stream: &mut Stream, offered: &Offered, offer: &Offer, settings: &Effective<'_>, pace: Pace) {
    let Some(dictionary) = offered.found() else { return };
    dictionary.counters.offered.fetch_add(1, Relaxed);
    let response = &stream.response;
    match stream.facts.dictionary {
        Some(Usage::Used) => {
            let bytes = if let BodyLength::Exact(bytes) = response.body { Some(bytes) } else { None };
            let ordinary = offer.want.unwrap_or(Coding::Identity);
            stream.facts.trial = offered.trial(response, (ordinary, settings.level(ordinary, bytes, pace)));
            stream.facts.used_dictionary = offered.dictionary().cloned();
        }
        Some(Usage::NotWorth) => {
            dictionary.counters.not_worth.fetch_add(1, Relaxed);
            offered.pair(response).into_iter().for_each(|pair| dictionary.notes.spend(pair));
        }
        _ => {}
    }
}

/// Tells the client of a page of a dictionary that it may fetch.
pub fn announce(stream: &mut Stream, offered: &Offered) {
    let Some(dictionary) = offered.news(&stream.response) else { return };
    dictionary.counters.announced.fetch_add(1, Relaxed);
    count_announced(stream);
    let link = format!("<{}>; rel=\"compression-dictionary\"", dictionary.path);
    stream.response.fields.push(b"Link", link.as_bytes());
}

/// Counts an announcement for both sides of a proxy.
fn count_announced(stream: &Stream) {
    let facts = &stream.facts;
    let index = facts.session.worker.index;
    let back = facts.backend().map(|backend| backend.tally.of(index));
    for counters in [Some(facts.frontend().tally.of(index)), back].into_iter().flatten() {
        counters.compression.dictionaries().announced.fetch_add(1, Relaxed);
    }
}

/// Counts a response that refers to a dictionary, once it is over.
pub fn count(dictionary: &Dictionary, (bytes_in, bytes_out): (u64, u64)) {
    dictionary.counters.count_used(bytes_in, bytes_out);
}
