//! The addresses of the client's connection, as the rest of the stream sees them: `set-src`, `set-src-port`, `set-dst`, `set-dst-port`.

use super::{Action, ActionWord, Flow, REQUEST, RuleSet, TCP_REQUEST, done};
use crate::stream::Stream;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use terse_config::{Args, Fault, Scope};
use terse_sample::{Expr, Type, cast};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done(
        "set-src",
        REQUEST | TCP_REQUEST,
        "<expression>",
        "Changes what is taken for the client's address.",
        |args, scope, set| parse(args, scope, set, End::Client, Part::Address),
    ),
    done(
        "set-src-port",
        REQUEST | TCP_REQUEST,
        "<expression>",
        "Changes what is taken for the client's port.",
        |args, scope, set| parse(args, scope, set, End::Client, Part::Port),
    ),
    done(
        "set-dst",
        REQUEST | TCP_REQUEST,
        "<expression>",
        "Changes what is taken for the address that the client connected to.",
        |args, scope, set| parse(args, scope, set, End::Local, Part::Address),
    ),
    done(
        "set-dst-port",
        REQUEST | TCP_REQUEST,
        "<expression>",
        "Changes what is taken for the port that the client connected to.",
        |args, scope, set| parse(args, scope, set, End::Local, Part::Port),
    ),
];

struct SetAddress {
    value: Expr,
    end: End,
    part: Part,
    set: RuleSet,
}

/// An end of the client's connection.
#[derive(Clone, Copy)]
enum End {
    Client,
    Local,
}

#[derive(Clone, Copy)]
enum Part {
    Address,
    Port,
}

impl Action for SetAddress {
    fn run(&self, stream: &mut Stream) -> Flow {
        let Some(value) = self.value.eval(&stream.env()) else { return Flow::Next };
        let (address, port) = match self.part {
            Part::Address => (value.into_addr(), None),
            Part::Port => (None, value.into_int().and_then(|port| u16::try_from(port).ok())),
        };
        if address.is_some() || port.is_some() {
            let facts = &mut stream.facts;
            let end = match self.end {
                End::Client => &mut facts.client,
                End::Local => &mut facts.local,
            };
            *end = Some(changed(*end, address, port));
            // An address that was changed before there was a stream holds for all streams of the connection.
            match self.set {
                RuleSet::Connection => facts.session.moved(facts.client, facts.local),
                RuleSet::Session => facts.session.seen_as(facts.client, facts.local),
                _ => {}
            }
        }
        Flow::Next
    }
}

/// An address with one part changed; a port without an address belongs to any of IPv4.
fn changed(before: Option<SocketAddr>, address: Option<IpAddr>, port: Option<u16>) -> SocketAddr {
    let before = before.unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    SocketAddr::new(address.unwrap_or(before.ip()), port.unwrap_or(before.port()))
}

fn parse(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, end: End, part: Part) -> Result<Box<dyn Action>, Fault> {
    let word = args.position();
    let value = Expr::parse(args, scope, set.have())?;
    let wanted = match part {
        Part::Address => Type::Addr,
        Part::Port => Type::Int,
    };
    match cast::exists(value.output(), wanted) {
        true => Ok(Box::new(SetAddress { value, end, part, set })),
        false => Err(Fault::new(word, format!("'{}' cannot become a value of type {}", value.text(), wanted.name()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_at_a_time() {
        let some = |text: &str| text.parse::<SocketAddr>().ok();
        let (v6, none) = ("::1".parse().ok(), None);
        assert_eq!(some("[::1]:5"), Some(changed(some("10.0.0.1:5"), v6, None)));
        assert_eq!(some("10.0.0.1:7"), Some(changed(some("10.0.0.1:5"), none, Some(7))));
        assert_eq!(some("0.0.0.0:7"), Some(changed(None, none, Some(7))));
    }
}
