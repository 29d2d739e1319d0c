//! Learned dictionaries (`compression dictionary auto`): the answers that are announced, and those whose bytes are recorded.
//!
//! The client knows the resource by the address that it asked for, so its request is looked at before any rule, script or filter may have
//! changed it ([`ask`]).

use crate::io::clock;
use crate::stream::Stream;
use std::sync::Arc;
use terse_compress::Offer;
use terse_compress::dictionary::Offered;
use terse_compress::dictionary::learnable;
use terse_compress::dictionary::learning::{About, Asked, Learner};
use terse_dictionary::field::UseAs;
use terse_dictionary::versions::{Announcement, Client};
use terse_dictionary::{is_coding, release};
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
        && let Some(origin) = stream.facts.asked.as_ref().and_then(|asked| asked.origin.as_ref())
    {
        learner.leave(origin, now_s(stream));
    }
}

/// Announces a response whose body goes through a coder, if it is a release of a public file, and begins to record it. `private`: it is for a single
/// user; `bytes`: the coder's input, as far as that is known. To be called after the last rules, before the head is edited for its coding.
pub fn announce(stream: &mut Stream, offered: &Offered, private: bool, bytes: Option<u64>) {
    let Some(learner) = offered.learner() else { return };
    if private {
        return;
    }
    let Some(Announced { about, is_wanted }) = announced(stream, learner, bytes) else { return };
    let use_as = UseAs::of(about.pattern.clone()).write();
    if is_wanted {
        stream.facts.recording = learner.record(about, bytes);
        if stream.facts.recording.is_none() {
            // It cannot be kept: its clients would hold it in vain.
            return;
        }
    }
    super::count_announced(stream);
    stream.response.fields.push(b"Use-As-Dictionary", use_as.as_bytes());
}

struct Announced {
    about: About,
    is_wanted: bool,
}

fn announced(stream: &Stream, learner: &Arc<Learner>, bytes: Option<u64>) -> Option<Announced> {
    let (asked, response) = (stream.facts.asked.as_deref()?, &stream.response);
    if stream.request.method() != b"GET" || stream.facts.asked_head || asked.is_authorized {
        return None;
    }
    if !learnable::is_file(response, bytes, asked.is_personal, stream.facts.session.worker.unix_s()) {
        return None;
    }
    let (pattern, origin) = (release::pattern(&asked.path)?, asked.origin.clone()?);
    let client = Client::of(stream.facts.client?.ip());
    let (mark, now) = (learnable::mark(&asked.path, response, bytes), now_s(stream));
    let is_wanted = match learner.announce(&origin, &pattern, mark, now) {
        Announcement::Silent => return None,
        Announcement::Known => false,
        Announcement::Wanted => true,
    };
    Some(Announced { about: About { origin, pattern, mark, client, now }, is_wanted })
}

/// Keeps what a client asks for, where dictionaries are learned. To be called before anything may change its request.
#[inline]
pub fn ask(stream: &mut Stream) {
    if stream.facts.session.worker.plan.dictionaries.learner().is_wanted() {
        let has_certificate = || stream.facts.session.tls().is_some_and(|tls| tls.handshake().peer_certificate().is_some());
        stream.facts.asked = Asked::of(&stream.request, has_certificate).map(Box::new);
    }
}

fn now_s(stream: &Stream) -> u64 {
    clock::now().saturating_duration_since(stream.facts.session.worker.plan.started).as_secs()
}
