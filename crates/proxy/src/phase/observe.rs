//! Evidence of a server's health from requests (`observe`): reported to its farm, in HAProxy's words.

use crate::io::clock;
use crate::phase::retry::FailureKind;
use crate::phase::transfer::Failure;
use crate::plan::Backend;
use crate::stream::Stream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use terse_balance::Server;
use terse_balance::settings::ObservedLayer;
use terse_message::Cause;

/// A connection was made, or why not.
pub fn connection(backend: &Backend, server: &Arc<Server>, problem: Option<&str>) {
    match server.settings().observe.layer {
        None => {}
        // A server that takes connections proves nothing about its responses.
        Some(ObservedLayer::Responses) if problem.is_none() => {}
        Some(_) => backend.farm.observe(server, problem, clock::now()),
    }
}

/// A response came.
pub fn response(stream: &Stream, status: u16) {
    let Some(backend) = stream.facts.backend().filter(|backend| backend.observes.load(Relaxed)) else { return };
    let wrong = status >= 500 && !matches!(status, 501 | 505);
    tell(backend, stream, wrong.then_some("Wrong http response"));
}

/// An exchange failed.
pub fn failure(backend: &Backend, stream: &Stream, failure: &Failure) {
    if !backend.observes.load(Relaxed) {
        return;
    }
    match (failure.kind, failure.abort.cause) {
        (
            FailureKind::Unsent
            | FailureKind::Refused
            | FailureKind::Beside
            | FailureKind::Late
            | FailureKind::Status(_)
            | FailureKind::TooEarly
            | FailureKind::Part,
            _,
        ) => {}
        // A connection that had been idle may have been closed just then, which is no error.
        (FailureKind::Empty, _) if stream.facts.server_was_idle => {}
        (FailureKind::Timeout, _) => tell(backend, stream, Some("Read timeout (http)")),
        (_, Cause::Reset) => tell(backend, stream, Some("Read error (http)")),
        (_, Cause::Closed) => tell(backend, stream, Some("Close from server (http)")),
        _ => tell(backend, stream, Some("Invalid http response (headers)")),
    }
}

fn tell(backend: &Backend, stream: &Stream, problem: Option<&str>) {
    if let Some(server) = stream.facts.server.as_ref()
        && server.settings().observe.layer == Some(ObservedLayer::Responses)
    {
        backend.farm.observe(server, problem, clock::now());
    }
}
