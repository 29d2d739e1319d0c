//! Telling servers the addresses of the client's connection: `option forwardfor`, `option originalto`, `option forwarded`; and fields of
//! theirs that servers might take for those: `option http-restrict-req-hdr-names`.

use super::{done, in_back, settings};
use crate::forwarded::{Forwarded, Node, Told};
use crate::settings::{ForwardedFor, UnusualNames};
use std::net::IpAddr;
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Kind, Scope, near};
use terse_sample::{Compiler, Needs};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    Keyword {
        kind: Kind::Switch(forwardfor),
        ..done(
            "option forwardfor",
            "[except <network>] [header <name>] [if-none]",
            "Adds the client's address to X-Forwarded-For of requests.",
            forwardfor,
        )
    },
    Keyword {
        kind: Kind::Switch(originalto),
        ..done(
            "option originalto",
            "[except <network>] [header <name>]",
            "Adds the address that the client connected to to X-Original-To of requests.",
            originalto,
        )
    },
    done(
        "option http-restrict-req-hdr-names",
        "{ preserve | delete | reject }",
        "What happens to fields of requests whose names hold more than letters, digits and dashes.",
        restrict_names,
    ),
    Keyword {
        kind: Kind::Switch(forwarded),
        ..done(
            "option forwarded",
            "[proto] [host | host-expr <expression>] [by | by-expr <expression>] [by_port | by_port-expr <expression>] \
             [for | for-expr <expression>] [for_port | for_port-expr <expression>]",
            "Adds an element to the field Forwarded of requests (RFC 7239).",
            forwarded,
        )
    },
];

fn restrict_names(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let word = args.need("<preserve|delete|reject>")?;
    let names = match word {
        "preserve" => UnusualNames::Preserve,
        "delete" => UnusualNames::Delete,
        "reject" => UnusualNames::Reject,
        _ => return Err(args.fault(format!("unexpected '{word}', expects 'preserve', 'delete' or 'reject'"))),
    };
    args.end()?;
    settings(scope).unusual_names = names;
    Ok(())
}

fn forwardfor(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let rule = rule(args, scope.negated, "X-Forwarded-For", "only supports optional values: 'except', 'header' and 'if-none'")?;
    settings(scope).forwarded_for = rule;
    Ok(())
}

fn originalto(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let rule = rule(args, scope.negated, "X-Original-To", "only supports optional values: 'except' and 'header'")?;
    settings(scope).original_to = rule;
    Ok(())
}

fn forwarded(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    if scope.negated {
        args.end()?;
        settings(scope).forwarded = None;
        return Ok(());
    }
    let told = match args.peek() {
        None => Forwarded::usual(),
        Some(_) => element(args, scope)?,
    };
    if in_back(scope) {
        settings(scope).forwarded = Some(Arc::new(told));
    }
    Ok(())
}

fn element(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<Forwarded, Fault> {
    let mut told = Forwarded::default();
    let (mut by, mut client) = ((None, None), (None, None));
    while let Some(word) = args.take() {
        match word {
            "proto" => told.proto = true,
            "host" => told.host = Some(Told::Known),
            "host-expr" => told.host = Some(found(args, scope)?),
            "by" => by.0 = Some(Told::Known),
            "by-expr" => by.0 = Some(found(args, scope)?),
            "by_port" => by.1 = Some(Told::Known),
            "by_port-expr" => by.1 = Some(found(args, scope)?),
            "for" => client.0 = Some(Told::Known),
            "for-expr" => client.0 = Some(found(args, scope)?),
            "for_port" => client.1 = Some(Told::Known),
            "for_port-expr" => client.1 = Some(found(args, scope)?),
            _ => {
                let fault = args.fault(format!("unknown word '{word}'"));
                return Err(near::hinted(fault, word, ELEMENT_WORDS.iter().copied()));
            }
        }
    }
    for (name, (node, port)) in [("by", &by), ("for", &client)] {
        if node.is_none() && port.is_some() {
            args.warn(format!("the port of '{name}' is ignored, because neither '{name}' nor '{name}-expr' stands here"));
        }
    }
    told.by = by.0.map(|name| Node { name, port: by.1 });
    told.client = client.0.map(|name| Node { name, port: client.1 });
    Ok(told)
}

const ELEMENT_WORDS: &[&str] =
    &["proto", "host", "host-expr", "by", "by-expr", "by_port", "by_port-expr", "for", "for-expr", "for_port", "for_port-expr"];

/// Parses an expression in a single argument.
fn found(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<Told, Fault> {
    let word = args.position();
    let text = args.need("<expression>")?;
    let mut compiler = Compiler::new(scope, Needs::REQUEST);
    compiler.word = word;
    let expression = compiler.expression(text.as_bytes())?;
    compiler.check_needs(expression.needs(), text)?;
    Ok(Told::Found(Box::new(expression)))
}

/// Parses the arguments of the option; `None` after `no`.
fn rule(args: &mut Args<'_>, negated: bool, name: &str, words: &str) -> Result<Option<ForwardedFor>, Fault> {
    if negated {
        return args.end().map(|()| None);
    }
    let mut rule = ForwardedFor { header: Arc::from(name.as_bytes()), except: None, if_none: false };
    while let Some(word) = args.take() {
        match word {
            "except" => rule.except = Some(network(args)?),
            "header" => {
                let name = args.need("<name>")?;
                if !is_token(name) {
                    return Err(args.fault(format!("'{name}' is not a field's name")));
                }
                rule.header = Arc::from(name.as_bytes());
            }
            "if-none" if words.contains("'if-none'") => rule.if_none = true,
            _ => return Err(args.fault(words)),
        }
    }
    Ok(Some(rule))
}

/// `<address>[/<bits> | /<mask>]`
fn network(args: &mut Args<'_>) -> Result<(IpAddr, u8), Fault> {
    let word = args.need("<network>")?;
    let (address, mask) = word.split_once('/').map_or((word, None), |(address, mask)| (address, Some(mask)));
    let Ok(address) = address.parse::<IpAddr>() else { return Err(args.fault(format!("'{word}' is not a network"))) };
    let widest = if address.is_ipv4() { 32 } else { 128 };
    let bits = match mask {
        None => Some(widest),
        Some(mask) => mask.parse().ok().filter(|bits| *bits <= widest).or_else(|| dotted(mask).filter(|_| address.is_ipv4())),
    };
    bits.map(|bits| (address, bits)).ok_or_else(|| args.fault(format!("'{word}' has no mask of up to {widest} bits")))
}

/// The bits of a mask such as 255.255.0.0.
fn dotted(mask: &str) -> Option<u8> {
    let mask = u32::from(mask.parse::<std::net::Ipv4Addr>().ok()?);
    let bits = mask.leading_ones();
    (mask.checked_shl(bits).unwrap_or(0) == 0).then_some(bits as u8)
}

/// RFC 9110 section 5.6.2.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};

    #[test]
    fn forms() {
        let of = |line: &str| proxy(&format!("defaults\n option forwardfor\nlisten l\n {line}\n")).forwarded_for;
        let plain = of("").unwrap();
        assert_eq!((&*plain.header, plain.except, plain.if_none), (&b"X-Forwarded-For"[..], None, false));
        let full = of("option forwardfor if-none header X-Client except 10.0.0.0/8").unwrap();
        assert_eq!((&*full.header, full.except, full.if_none), (&b"X-Client"[..], Some(([10, 0, 0, 0].into(), 8)), true));
        assert_eq!(of("option forwardfor except 127.0.0.1").unwrap().except, Some(([127, 0, 0, 1].into(), 32)));
        assert_eq!(of("option forwardfor except 10.0.0.0/255.255.0.0").unwrap().except.unwrap().1, 16);
        assert_eq!(of("option forwardfor except fd00::/8").unwrap().except.unwrap().1, 8);
        assert!(of("no option forwardfor").is_none());
    }

    #[test]
    fn the_other_end_has_its_own_field() {
        let settings = proxy("defaults\n option originalto except 10.0.0.1/25\nlisten l\n no option forwardfor\n");
        let rule = settings.original_to.unwrap();
        assert_eq!((&*rule.header, rule.except), (&b"X-Original-To"[..], Some(([10, 0, 0, 1].into(), 25))));
        assert!(said_in("listen l", "option originalto if-none")[0].starts_with("2!"));
        assert!(said_in("listen l", "no option originalto x")[0].starts_with("2!"));
    }

    #[test]
    fn faults() {
        for words in [
            "except",
            "except x",
            "except 10.0.0.0/33",
            "except 10.0.0.0/255.0.255.0",
            "except ::/255.0.0.0",
            "header",
            "header a:b",
            "x",
        ] {
            let said = said_in("listen l", &format!("option forwardfor {words}"));
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{words}: {said:?}");
        }
    }
}
