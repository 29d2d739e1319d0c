//! Learned dictionaries (`compression dictionary auto`): the answers that are announced, and those whose bytes are recorded.
//!
//! The client knows the resource by the address that it asked for, so path and host are those before rules changed them: a changed
//! first line is kept, and a request whose Host was changed is not learned from.

use crate::io::clock;
use crate::stream::Stream;
use std::net::IpAddr;
use std::sync::Arc;
use terse_compress::Offer;
use terse_compress::dictionary::Offered;
use terse_compress::dictionary::learning::{self, About, Learner};
use terse_dictionary::field::UseAs;
use terse_dictionary::versions::Announcement;
use terse_dictionary::{Origin, Pattern, is_coding, release};
use terse_message::{Known, list};

/// Leaves the host of a server alone that has dictionaries of its own, as its response says. To be called before rules edit that.
#[inline]
pub fn leave(stream: &Stream, offer: Option<&Offer>) {
    if let Some(learner) = offer.and_then(Offer::dictionary).and_then(Offered::learner) {
        leave_if(stream, learner);
    }
}

fn leave_if(stream: &Stream, learner: &Learner) {
    let fields = &stream.response.fields;
    let is_coded = || fields.every(Known::ContentEncoding).flat_map(list::elements).any(is_coding);
    if (fields.get(b"Use-As-Dictionary").is_some() || is_coded())
        && let Some(origin) = origin(stream)
    {
        learner.leave(&origin, now_s(stream));
    }
}

/// Announces a response whose body goes through a coder, if it is a release of a public file, and begins to record it. `private`: it is for a single
/// user; `bytes`: the coder's input, as far as that is known. To be called after the last rules, before the head is edited for its coding.
pub fn announce(stream: &mut Stream, offered: &Offered, private: bool, bytes: Option<u64>) {
    let Some(learner) = offered.learner() else { return };
    if !private && let Some(announced) = announced(stream, learner, bytes) {
        stream.response.fields.push(b"Use-As-Dictionary", UseAs::of(announced.pattern.clone()).write().as_bytes());
        if announced.is_wanted {
            let Announced { pattern, origin, client, mark, now, .. } = announced;
            stream.facts.recording = learner.record(About { origin, pattern, mark, client, now }, bytes);
        }
    }
}

struct Announced {
    origin: Origin,
    pattern: Pattern,
    mark: Option<u64>,
    client: u128,
    now: u64,
    is_wanted: bool,
}

fn announced(stream: &Stream, learner: &Arc<Learner>, bytes: Option<u64>) -> Option<Announced> {
    let (request, response) = (&stream.request, &stream.response);
    let (method, target) = asked(stream)?;
    if method != b"GET" || request.method() != b"GET" || request.fields.has(Known::Authorization) {
        return None;
    }
    let path = target.split(|byte| *byte == b'?').next()?;
    if !learning::is_file(response, bytes, stream.facts.session.worker.unix_s()) {
        return None;
    }
    let (pattern, origin, client) = (release::pattern(path)?, origin(stream)?, client(stream)?);
    let (mark, now) = (learning::mark(target, response, bytes), now_s(stream));
    let is_wanted = match learner.announce(&origin, &pattern, mark, now) {
        Announcement::Silent => return None,
        Announcement::Known => false,
        Announcement::Wanted => true,
    };
    Some(Announced { origin, pattern, mark, client, now, is_wanted })
}

/// Method and target, as the client sent them.
fn asked(stream: &Stream) -> Option<(&[u8], &[u8])> {
    if stream.facts.request_line.is_empty() {
        return Some((stream.request.method(), stream.request.target()));
    }
    let mut words = stream.facts.request_line.split(|byte| *byte == b' ');
    words.next().zip(words.next())
}

/// The origin that the client asked; none where a rule has changed it.
fn origin(stream: &Stream) -> Option<Origin> {
    let host = stream.request.fields.first(Known::Host).filter(|_| !stream.facts.host_is_changed)?;
    Origin::of(host, true)
}

/// The client: its address, of IPv6 the network of a site.
fn client(stream: &Stream) -> Option<u128> {
    Some(match stream.facts.client?.ip().to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits() & !u128::from(u64::MAX),
    })
}

fn now_s(stream: &Stream) -> u64 {
    clock::now().saturating_duration_since(stream.facts.session.worker.plan.started).as_secs()
}
