//! Facts of a stream: statuses, bytes, its end, its compression.

use super::proxy::count;
use super::{checked, facts};
use crate::exchange::SharedConnection;
use crate::facts::{Decoding, Facts};
use crate::settings::Mode;
use terse_compress::decode::counters::Outcome;
use terse_message::{Version, Who};
use terse_sample::{Env, Fetch, Needs, Octets, Type, Value};

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("txn.status", Type::Int, "The status that the client is sent, as logs show it.", |_, env| status(env))
        .needs(Needs::RESPONSE),
    Fetch::one("server_status", Type::Int, "The status that the server sent, before rules changed it.", |_, env| {
        Some(facts(env)?.server_status).filter(|status| *status > 0).map(|status| Value::Int(status.into()))
    }),
    Fetch::one("txn.id32", Type::Int, "A number of 32 bits that tells streams apart.", |_, env| {
        Some(Value::Int((facts(env)?.id as u32).into()))
    }),
    Fetch::one("txn.conn_retries", Type::Int, "How often the request was tried again.", |_, env| {
        Some(Value::Int(facts(env)?.retries.into()))
    }),
    Fetch::one("txn.redispatched", Type::Bool, "Whether the request went to another server than the first chosen.", |_, env| {
        Some(Value::Bool(facts(env)?.redispatched))
    }),
    Fetch::one("txn.sess_term_state", Type::Str, "Who ended the stream, and when: two letters.", |_, env| state(env)),
    Fetch::one("last_rule_file", Type::Str, "The file of the rule that ended the evaluation.", |_, env| {
        Some(Value::str(facts(env)?.last_rule.as_ref()?.0.as_bytes()))
    }),
    Fetch::one("last_rule_line", Type::Int, "The line of the rule that ended the evaluation.", |_, env| {
        Some(Value::Int(facts(env)?.last_rule.as_ref()?.1.into()))
    }),
    Fetch::one("last_entity", Type::Str, "The file and line of the rule that ended the evaluation.", |_, env| {
        let (file, line) = facts(env)?.last_rule.as_ref()?;
        Some(Value::Str(Octets::from(format!("{file}:{line}").into_bytes())))
    }),
    Fetch::one(
        "waiting_entity",
        Type::Str,
        "The file and line of the rule that the stream waited for when it was broken off.",
        |_, env| {
            let (file, line) = facts(env)?.waiting_rule.as_ref()?;
            Some(Value::Str(Octets::from(format!("{file}:{line}").into_bytes())))
        },
    ),
    Fetch::one("unique-id", Type::Str, "The stream's identifier: 'unique-id-format'.", |_, env| unique_id(env)),
    Fetch::one(
        "trace_id",
        Type::Str,
        "The trace of the request's 'traceparent', or of the one made under 'option traceparent'.",
        |_, env| Some(Value::str(facts(env)?.traceparent(env)?.trace_id())),
    ),
    Fetch::one("http_first_req", Type::Bool, "Whether it is the first request of its connection.", |_, env| {
        Some(Value::Bool(facts(env)?.number == 0))
    }),
    Fetch::one("fc_http_major", Type::Int, "The major version of HTTP that the client speaks.", |_, env| {
        let facts = facts(env)?;
        // Bytes that were not parsed as HTTP have no version.
        let speaks = facts.version.is_some() || facts.frontend().mode == Mode::Http;
        speaks.then_some(Value::Int(if facts.version == Some(Version::Http2) { 2 } else { 1 }))
    }),
    Fetch::one("bytes_in", Type::Int, "Bytes that the client sent.", |_, env| Some(count(facts(env)?.figures.bytes_in.get())))
        .also(&["req.bytes_in"]),
    Fetch::one("bytes_out", Type::Int, "Bytes that the client was sent.", |_, env| {
        Some(count(facts(env)?.figures.bytes_out.get()))
    })
    .also(&["res.bytes_out"])
    .needs(Needs::RESPONSE),
    Fetch::one("req.bytes_out", Type::Int, "Bytes that the server was sent.", |_, env| {
        Some(count(facts(env)?.figures.bytes_to_server.get()))
    }),
    Fetch::one("res.bytes_in", Type::Int, "Bytes that the server sent.", |_, env| {
        Some(count(facts(env)?.figures.bytes_from_server.get()))
    })
    .needs(Needs::RESPONSE),
    Fetch::one("res.comp", Type::Bool, "Whether the response is compressed here.", |_, env| {
        Some(Value::Bool(facts(env)?.coding.is_some()))
    })
    .needs(Needs::RESPONSE),
    Fetch::one("res.comp_algo", Type::Str, "The algorithm by which the response is compressed here.", |_, env| {
        Some(Value::str(facts(env)?.coding?.word().as_bytes()))
    })
    .needs(Needs::RESPONSE),
    Fetch::one("res.comp_reason", Type::Str, "Why the response is not compressed here; empty when it is.", |_, env| {
        Some(Value::str(facts(env)?.compression.map_or("", |reason| reason.name()).as_bytes()))
    }),
    Fetch::one(
        "res.comp_dictionary",
        Type::Str,
        "Whether the response refers to the client's dictionary: used, or why not: none, malformed, unknown, refused, insecure, opaque, \
         partial, not-coded, not-worth, level, memory; empty where there are no dictionaries.",
        |_, env| Some(Value::str(facts(env)?.dictionary.map_or("", |usage| usage.name()).as_bytes())),
    ),
    Fetch::one("fc_compressor", Type::Str, COMPRESSOR_OF_CLIENT, |_, env| {
        facts(env)?.hops.1.map(|layer| Value::str(layer.name().as_bytes()))
    }),
    Fetch::one("bc_compressor", Type::Str, COMPRESSOR_OF_SERVER, |_, env| {
        facts(env)?.hops.0.map(|layer| Value::str(layer.name().as_bytes()))
    }),
    Fetch::one("res.comp_in", Type::Int, "Bytes of the body that compression took in.", |_, env| {
        Some(count(facts(env)?.figures.compressed.get().0))
    }),
    Fetch::one("res.comp_out", Type::Int, "Bytes of the body that compression gave out.", |_, env| {
        Some(count(facts(env)?.figures.compressed.get().1))
    }),
    Fetch::one("req.decomp", Type::Bool, "Whether the request's body is decoded here.", |_, env| {
        Some(Value::Bool(matches!(decoding(env)?.request, Some(Outcome::Decoded { .. }))))
    }),
    Fetch::one("res.decomp", Type::Bool, "Whether the response is decoded here.", |_, env| {
        Some(Value::Bool(matches!(decoding(env)?.response, Some(Outcome::Decoded { .. }))))
    }),
    Fetch::one(
        "req.decomp_reason",
        Type::Str,
        "Why the request's body is not decoded here, or not to its end; empty when it is.",
        |_, env| Some(Value::str(decoding(env)?.request.as_ref().map_or("", Outcome::name).as_bytes())),
    ),
    Fetch::one(
        "res.decomp_reason",
        Type::Str,
        "Why the response is not decoded here, or not to its end; empty when it is.",
        |_, env| Some(Value::str(decoding(env)?.response.as_ref().map_or("", Outcome::name).as_bytes())),
    ),
    Fetch::one("req.decomp_in", Type::Int, "Bytes of the request's body that went into decoders.", |_, env| {
        Some(count(decoding(env)?.request.as_ref().map_or(0, |outcome| outcome.bytes().0)))
    }),
    Fetch::one("req.decomp_out", Type::Int, "Bytes of the request's body that came out of decoders.", |_, env| {
        Some(count(decoding(env)?.request.as_ref().map_or(0, |outcome| outcome.bytes().1)))
    }),
    Fetch::one("res.decomp_in", Type::Int, "Bytes of the response's body that went into decoders.", |_, env| {
        Some(count(decoding(env)?.response.as_ref().map_or(0, |outcome| outcome.bytes().0)))
    }),
    Fetch::one("res.decomp_out", Type::Int, "Bytes of the response's body that came out of decoders.", |_, env| {
        Some(count(decoding(env)?.response.as_ref().map_or(0, |outcome| outcome.bytes().1)))
    }),
    Fetch::one("res.comp_level", Type::Int, "The level at which the response is compressed here.", |_, env| {
        let facts = facts(env)?;
        facts.coding.map(|_| Value::Int(facts.figures.level.get().0.into()))
    }),
    Fetch::one(
        "res.comp_memory",
        Type::Str,
        "What the memory of compressed bodies did for the response, once it is over: hit, new, kept, full, stream, private, off.",
        |_, env| Some(Value::str(facts(env)?.figures.recall.get()?.name().as_bytes())),
    ),
    Fetch::one("prio_class", Type::Int, "The class in queues that 'set-priority-class' has given.", |_, env| {
        Some(Value::Int(facts(env)?.changed().map_or(0, |changes| changes.priority.class).into()))
    }),
    Fetch::one("prio_offset", Type::Int, "The milliseconds that 'set-priority-offset' has given.", |_, env| {
        Some(Value::Int(facts(env)?.changed().map_or(0, |changes| changes.priority.offset_ms).into()))
    }),
    Fetch::one("stopping", Type::Bool, "Whether the process is stopping.", |_, env| {
        Some(Value::Bool(!facts(env)?.session.worker.is_running()))
    }),
    Fetch::one("tgroup", Type::Int, "The number of the group of workers, from 0: there is one.", |_, _| Some(Value::Int(0))),
    Fetch::one("uptime", Type::Int, "For how many seconds the process has run.", |_, env| {
        Some(count(facts(env)?.session.worker.clock.age().as_secs()))
    }),
    Fetch::one("quic_enabled", Type::Bool, "Whether QUIC is spoken: it is not.", |_, _| Some(Value::Bool(false))),
    Fetch::one("fc_nb_streams", Type::Int, "Streams that the client's connection has open: 1 in HTTP/1.", |_, env| {
        let connection = facts(env)?.session.multiplexed();
        Some(count(connection.map_or(1, |connection| connection.peek().open_streams() as u64)))
    }),
    Fetch::one("bc_nb_streams", Type::Int, "Streams that the server's connection has open: 1 in HTTP/1.", |_, env| {
        Some(count(facts(env)?.server_http2.as_ref().map_or(1, SharedConnection::streams) as u64))
    })
    .needs(Needs::SERVER),
    Fetch::one(
        "fc_settings_streams_limit",
        Type::Int,
        "Streams that the client's connection may have at a time: 1 in HTTP/1.",
        |_, env| {
            let session = &facts(env)?.session;
            let most = session.worker.plan.process.http2.concurrent_streams;
            Some(count(if session.multiplexed().is_some() { u64::from(most) } else { 1 }))
        },
    ),
    Fetch::one(
        "bc_settings_streams_limit",
        Type::Int,
        "Streams that the server's connection may have at a time: 1 in HTTP/1.",
        |_, env| Some(count(u64::from(facts(env)?.server_http2.as_ref().map_or(1, SharedConnection::most_streams)))),
    )
    .needs(Needs::SERVER),
    Fetch::one("fc_glitches", Type::Int, "Oddities of the client's connection: HTTP/1 has none.", |_, env| {
        let connection = facts(env)?.session.multiplexed();
        Some(count(connection.map_or(0, |connection| connection.peek().glitches())))
    }),
    Fetch::one("bc_glitches", Type::Int, "Oddities of the server's connection: HTTP/1 has none.", |_, env| {
        Some(count(facts(env)?.server_http2.as_ref().map_or(0, SharedConnection::glitches)))
    })
    .needs(Needs::SERVER),
    Fetch::one("fs.id", Type::Int, "The stream's number on the client's connection: 0 in HTTP/1.", |_, env| {
        Some(count(u64::from(facts(env)?.frames_id)))
    }),
    Fetch::one("bs.id", Type::Int, "The stream's number on the server's connection: 0 in HTTP/1.", |_, env| {
        Some(count(u64::from(facts(env)?.server_frames_id)))
    })
    .needs(Needs::SERVER),
    Fetch::one("fs.rst_code", Type::Int, "The code by which the client has reset the stream: HTTP/1 has none.", |_, env| {
        let facts = facts(env)?;
        let code = facts.session.multiplexed()?.peek().reset_by_peer(facts.frames_id)?;
        Some(count(u64::from(code.0)))
    }),
    Fetch::one("bs.rst_code", Type::Int, "The code by which the server has reset the stream: HTTP/1 has none.", |_, env| {
        facts(env)?.server_reset.map(|code| count(u64::from(code)))
    }),
    Fetch::one("fs.aborted", Type::Bool, "Whether the client has broken off.", |_, env| {
        Some(Value::Bool(facts(env)?.abort.is_some_and(|abort| abort.who == Who::Client)))
    }),
    Fetch::one("bs.aborted", Type::Bool, "Whether the server has broken off.", |_, env| {
        Some(Value::Bool(facts(env)?.abort.is_some_and(|abort| abort.who == Who::Server)))
    }),
    Fetch::one("thread", Type::Int, "The number of the worker, from 0.", |_, env| Some(count(facts(env)?.session.worker.index))),
];

/// Outcome of the decoding of the stream's bodies.
fn decoding(env: &Env<'_>) -> Option<Decoding> {
    Some(facts(env)?.figures.decoding.get())
}

/// The status that the client was sent, or is about to be; -1 when it was sent none, and 0 where there is no HTTP.
pub(super) fn status<'a>(env: &Env<'a>) -> Option<Value<'a>> {
    let facts = facts(env)?;
    Some(Value::Int(match (facts.answering.get(), facts.status) {
        (0, 0) if facts.is_unborn || carries_bytes(facts) => 0,
        (0, 0) => env.response.map_or(-1, |response| response.status.into()),
        (0, sent) => sent.into(),
        (answering, _) => answering.into(),
    }))
}

/// Whether nothing reads the stream's bytes as a request.
fn carries_bytes(facts: &Facts) -> bool {
    let frontend = facts.frontend();
    facts.version.is_none() && frontend.mode == Mode::Tcp && !frontend.looks.has(Needs::REQUEST)
}

/// Two letters: the side that ended the stream, and the phase.
pub(super) fn state<'a>(env: &Env<'a>) -> Option<Value<'a>> {
    Some(Value::Str(Octets::copy(&letters(env)?)))
}

/// The letters of the termination state; `--` for a good end.
pub(super) fn letters(env: &Env<'_>) -> Option<[u8; 2]> {
    Some(facts(env)?.abort.map_or(*b"--", |abort| abort.letters()))
}

/// The stream's identifier.
pub(super) fn unique_id<'a>(env: &Env<'a>) -> Option<Value<'a>> {
    match facts(env) {
        Some(facts) => facts.unique_id(env).map(Value::str),
        None => checked(env)?.unique_id(env).map(|id| Value::Str(Octets::from(id))),
    }
}

/// Summary of `fc_compressor`.
const COMPRESSOR_OF_CLIENT: &str = "Who compresses the response's body on its way to the client: records, content, stored (content, in stored records), none, off, both.";
/// Summary of `bc_compressor`.
const COMPRESSOR_OF_SERVER: &str = "The same on its way from the server.";
