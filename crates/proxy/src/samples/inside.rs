//! For debugging: the state of a stream's two ends (`fs.debug_str`), and how they ended (`term_events`).
//!
//! As in HAProxy the form of these texts is not stable.

use super::{facts, stream};
use crate::facts::Facts;
use crate::io::tcp_info::tcp_info;
use crate::settings::Mode;
use std::fmt::{Display, Write};
use std::os::fd::RawFd;
use terse_sample::argument::{Param, ParamKind, may};
use terse_sample::{ArgList, Fetch, Needs, Octets, Type, Value};

/// The layers that are wanted, as a sum; 0: all.
const LAYERS: &[Param] = &[may(ParamKind::Int)];
const STREAM: i64 = 1;
const PROTOCOL: i64 = 2;
const CONNECTION: i64 = 8;
const SOCKET: i64 = 16;

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one(
        "fs.debug_str",
        Type::Str,
        "The state of the client's side, for developers: of stream (1), protocol (2), connection (8), socket (16), or all.",
        |args, env| Some(client(facts(env)?, args)),
    )
    .params(LAYERS),
    Fetch::one(
        "bs.debug_str",
        Type::Str,
        "The state of the server's side, for developers: of stream (1), connection (8), socket (16), or all.",
        |args, env| Some(server(facts(env)?, args)),
    )
    .params(LAYERS)
    .needs(Needs::SERVER),
    Fetch::one(
        "term_events",
        Type::Str,
        "How the stream's seven parts ended, for developers; known of the stream itself, as its termination state.",
        |_, env| {
            let letters = stream::letters(env)?;
            let ended = if letters == *b"--" { String::new() } else { letters.escape_ascii().to_string() };
            Some(Value::Str(Octets::from(format!("{{-,-,-,{ended},-,-,-}}").into_bytes())))
        },
    ),
    Fetch::one(
        "internal.strm.is_htx",
        Type::Bool,
        "Whether the stream is of HTTP, and not of bytes: HAProxy's name of it is that of its messages.",
        |_, env| {
            let facts = facts(env)?;
            Some(Value::Bool(facts.frontend().mode == Mode::Http || facts.version.is_some()))
        },
    ),
];

fn client(facts: &Facts, args: &ArgList) -> Value<'static> {
    let mut state = State::of(args);
    let session = &facts.session;
    if state.wants(STREAM) {
        state.say("strm.id", facts.id);
        state.say("strm.in", facts.figures.bytes_in.get());
        state.say("strm.out", facts.figures.bytes_out.get());
    }
    if state.wants(PROTOCOL) {
        state.say("h1.requests", session.requests.get());
        state.say("h1.keep", u8::from(facts.persistence.keep_alive));
    }
    if state.wants(CONNECTION) {
        state.say("conn.src", Address(session.client.get()));
        state.say("conn.dst", Address(session.local.get()));
        state.say("conn.age_ms", session.accepted.elapsed().as_millis());
    }
    state.socket(session.socket.get());
    state.value()
}

fn server(facts: &Facts, args: &ArgList) -> Value<'static> {
    let mut state = State::of(args);
    if state.wants(STREAM) {
        state.say("strm.in", facts.figures.bytes_from_server.get());
        state.say("strm.out", facts.figures.bytes_to_server.get());
        state.say("strm.status", facts.server_status);
    }
    if state.wants(CONNECTION) {
        state.say("conn.src", Address(facts.server_local));
        state.say("conn.reused", u8::from(facts.server_reused));
    }
    state.socket(facts.server_socket);
    state.value()
}

/// `name=value name=value`
struct State {
    layers: i64,
    text: String,
}

impl State {
    fn of(args: &ArgList) -> State {
        State { layers: args.int(0).unwrap_or_default(), text: String::new() }
    }

    fn wants(&self, layer: i64) -> bool {
        self.layers == 0 || self.layers & layer != 0
    }

    fn say(&mut self, name: &str, value: impl Display) {
        let space = if self.text.is_empty() { "" } else { " " };
        let _ = write!(self.text, "{space}{name}={value}");
    }

    fn socket(&mut self, descriptor: Option<RawFd>) {
        let Some(descriptor) = descriptor.filter(|_| self.wants(SOCKET)) else { return };
        self.say("sock.fd", descriptor);
        if let Some(info) = tcp_info(descriptor) {
            self.say("sock.rtt_us", info.rtt_us);
            self.say("sock.unacked", info.unacked);
            self.say("sock.lost", info.lost);
            self.say("sock.retrans", info.retransmitted);
        }
    }

    fn value(self) -> Value<'static> {
        Value::Str(Octets::from(self.text.into_bytes()))
    }
}

struct Address(Option<std::net::SocketAddr>);

impl Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(address) => write!(f, "{address}"),
            None => f.write_str("-"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::trial::Trial;
    use terse_message::{Abort, Cause, Phase, Who};

    #[test]
    fn layers_are_chosen() {
        let trial = Trial::front(
            "log 127.0.0.1 local0\n log-format \"%[fs.debug_str(3)]|%[bs.debug_str(9)]|%[fs.debug_str(16)]|%[term_events]|%[internal.strm.is_htx]\"",
        );
        let mut stream = trial.stream("GET / HTTP/1.1\nHost: a");
        trial.respond(&mut stream, "HTTP/1.1 204 No Content");
        stream.facts.figures.bytes_to_server.set(9);
        let line = trial.line(&stream);
        assert_eq!(
            line,
            "strm.id=0 strm.in=0 strm.out=0 h1.requests=0 h1.keep=0|strm.in=0 strm.out=9 strm.status=204 conn.src=- conn.reused=0|-|{-,-,-,,-,-,-}|1"
        );
        stream.facts.abort = Some(Abort::new(Who::Client, Phase::Data, Cause::Closed));
        assert!(trial.line(&stream).contains("|{-,-,-,CD,-,-,-}|"), "{}", trial.line(&stream));
    }
}
