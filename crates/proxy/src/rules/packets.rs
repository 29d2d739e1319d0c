//! Marks and fields that the kernel writes into packets: `set-fc-mark`, `set-fc-tos` towards the client, `set-bc-mark`,
//! `set-bc-tos` towards the server.
//!
//! A kernel that forbids a mark sends packets without it, as HAProxy has it.

use super::{Action, ActionWord, BOTH, CONTENT, Flow, REQUEST, RuleSet, TCP, attempts, done};
use crate::changes::{Changes, Packets};
use crate::stream::Stream;
use terse_config::{Args, Fault, Scope};
use terse_sample::Expr;

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("set-fc-mark", BOTH | TCP, VALUE, "Marks the packets to the client.", |args, scope, set| {
        parse(args, scope, set, client, mark)
    }),
    done("set-fc-tos", BOTH | TCP, VALUE, "Sets the type of service of packets to the client.", |args, scope, set| {
        parse(args, scope, set, client, tos)
    }),
    done("set-bc-mark", REQUEST | CONTENT, VALUE, "Marks the packets to the server.", |args, scope, set| {
        parse(args, scope, set, server, mark)
    }),
    done("set-bc-tos", REQUEST | CONTENT, VALUE, "Sets the type of service of packets to the server.", |args, scope, set| {
        parse(args, scope, set, server, tos)
    }),
    done("set-mark", BOTH | TCP, VALUE, "The same as 'set-fc-mark', by its old name.", |args, scope, set| {
        parse(args, scope, set, client, mark)
    }),
    done("set-tos", BOTH | TCP, VALUE, "The same as 'set-fc-tos', by its old name.", |args, scope, set| {
        parse(args, scope, set, client, tos)
    }),
];

const VALUE: &str = "{<number> | <expression>}";

struct SetPackets {
    value: Number,
    of: fn(&mut Changes) -> &mut Packets,
    put: fn(&mut Packets, u32),
}

enum Number {
    Fixed(u32),
    Made(Expr),
}

impl Action for SetPackets {
    fn run(&self, stream: &mut Stream) -> Flow {
        let value = match &self.value {
            Number::Fixed(value) => Some(*value),
            Number::Made(value) => value.eval(&stream.env()).and_then(|value| value.into_int()).map(|value| value as u32),
        };
        if let Some(value) = value {
            (self.put)((self.of)(stream.facts.changes()), value);
        }
        Flow::Next
    }
}

fn client(changes: &mut Changes) -> &mut Packets {
    &mut changes.client_packets
}

fn server(changes: &mut Changes) -> &mut Packets {
    &mut changes.server_packets
}

fn mark(packets: &mut Packets, value: u32) {
    packets.mark = Some(value);
}

fn tos(packets: &mut Packets, value: u32) {
    packets.tos = Some(value as u8);
}

fn parse(
    args: &mut Args<'_>,
    scope: &mut Scope<'_>,
    set: RuleSet,
    of: fn(&mut Changes) -> &mut Packets,
    put: fn(&mut Packets, u32),
) -> Result<Box<dyn Action>, Fault> {
    let value = match args.peek().and_then(number) {
        Some(value) => {
            args.take();
            Number::Fixed(value)
        }
        None => Number::Made(attempts::number(args, scope, set)?),
    };
    Ok(Box::new(SetPackets { value, of, put }))
}

/// A number, as C writes it: decimal, or hexadecimal after `0x`.
fn number(word: &str) -> Option<u32> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_c() {
        assert_eq!((number("0x1F"), number("31"), number("src")), (Some(31), Some(31), None));
        assert_eq!(number("0x100000000"), None);
    }
}
