//! Fields from a binary list, as `req.hdrs_bin` gives: `add-headers-bin`, `set-headers-bin`, `del-headers-bin`.
//!
//! Each name and each value follows its length, a number of variable size; an empty name and an empty value end the list. The
//! content of such a list is as hostile as its source: names must be tokens, values may hold no control character, and the
//! fields that determine where a message ends are passed over. A list that is not whole, or does not fit, changes nothing.

use super::{ANY, Action, ActionWord, Flow, RuleSet, done, rewrite};
use crate::stream::Stream;
use smallvec::SmallVec;
use terse_config::{Args, Fault, Scope};
use terse_message::Known;
use terse_message::name::is_token;
use terse_sample::Expr;

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("add-headers-bin", ANY, "<expression> [prefix <text>]", "Adds the fields of a binary list.", |args, scope, set| {
        put(args, scope, set, false)
    }),
    done(
        "set-headers-bin",
        ANY,
        "<expression> [prefix <text>]",
        "Puts the fields of a binary list in the place of all of their names.",
        |args, scope, set| put(args, scope, set, true),
    ),
    done(
        "del-headers-bin",
        ANY,
        "<expression> [-m { str | beg | end | sub }]",
        "Removes the fields whose names a binary list holds.",
        delete,
    ),
];

struct Put {
    list: Expr,
    prefix: Box<[u8]>,
    set: RuleSet,
    /// Whether the fields of each name are removed first.
    alone: bool,
}

impl Action for Put {
    fn run(&self, stream: &mut Stream) -> Flow {
        let list = self.list.eval(&stream.env()).and_then(|value| value.into_bytes()).map(|bytes| bytes.to_vec());
        // Without a list, there is nothing to do.
        let Some(list) = list else { return Flow::Next };
        let limit = rewrite::limit(stream, self.set);
        let fields = self.set.fields(stream);
        let done = pairs(&list).is_some_and(|pairs| {
            let wanted = pairs.iter().filter(|(name, _)| name.starts_with(&self.prefix) && !is_framing(name));
            let more = wanted.clone().map(|(name, value)| name.len() + value.len() + rewrite::FIELD_BYTES).sum();
            if !wanted.clone().all(|(name, value)| is_field(name, value)) || !rewrite::fits(fields, more, limit) {
                return false;
            }
            if self.alone {
                for (name, _) in wanted.clone() {
                    fields.remove(name);
                }
            }
            for (name, value) in wanted {
                // A request has a single host (RFC 9112 section 3.2).
                match self.set == RuleSet::Request && Known::of(name) == Known::Host {
                    true => fields.set(name, value),
                    false => fields.push(name, value),
                }
            }
            true
        });
        self.set.after_host(Known::Host, stream);
        rewrite::outcome(done, stream)
    }
}

struct Delete {
    list: Expr,
    is_match: fn(name: &[u8], wanted: &[u8]) -> bool,
    set: RuleSet,
}

impl Action for Delete {
    fn run(&self, stream: &mut Stream) -> Flow {
        let list = self.list.eval(&stream.env()).and_then(|value| value.into_bytes()).map(|bytes| bytes.to_vec());
        let Some(list) = list else { return Flow::Next };
        let names = names(&list);
        if let Some(names) = &names {
            let is_wanted = |name: &[u8]| names.iter().any(|wanted| (self.is_match)(name, wanted));
            self.set.fields(stream).retain(|name, _| is_framing(name) || !is_wanted(name));
        }
        rewrite::outcome(names.is_some(), stream)
    }
}

fn put(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, alone: bool) -> Result<Box<dyn Action>, Fault> {
    let list = Expr::parse(args, scope, set.have())?;
    let prefix = if args.accept("prefix") { args.need_bytes("<text>")?.into() } else { Box::default() };
    Ok(Box::new(Put { list, prefix, set, alone }))
}

fn delete(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let list = Expr::parse(args, scope, set.have())?;
    let is_match: fn(&[u8], &[u8]) -> bool = match args.accept("-m") {
        false => |name, wanted| name.eq_ignore_ascii_case(wanted),
        true => match args.need("<method>")? {
            "str" => |name, wanted| name.eq_ignore_ascii_case(wanted),
            "beg" => |name, wanted| name.get(..wanted.len()).is_some_and(|part| part.eq_ignore_ascii_case(wanted)),
            "end" => |name, wanted| {
                let from = name.len().checked_sub(wanted.len());
                from.and_then(|from| name.get(from..)).is_some_and(|part| part.eq_ignore_ascii_case(wanted))
            },
            "sub" => |name, wanted| name.windows(wanted.len().max(1)).any(|part| part.eq_ignore_ascii_case(wanted)),
            other => {
                return Err(args.fault(format!("unsupported matching method '{other}'")).hint("one of str, beg, end, sub"));
            }
        },
    };
    Ok(Box::new(Delete { list, is_match, set }))
}

fn is_framing(name: &[u8]) -> bool {
    matches!(Known::of(name), Known::ContentLength | Known::TransferEncoding)
}

fn is_field(name: &[u8], value: &[u8]) -> bool {
    name.iter().all(|b| is_token(*b)) && value.iter().all(|b| *b >= b' ' && *b != 0x7f || *b == b'\t')
}

/// Names and values, in order.
type Pairs<'a> = SmallVec<[(&'a [u8], &'a [u8]); 16]>;

fn pairs(list: &[u8]) -> Option<Pairs<'_>> {
    let (mut pairs, mut rest) = (Pairs::new(), list);
    loop {
        let name = string(&mut rest)?;
        let value = string(&mut rest)?;
        match name {
            b"" if value.is_empty() => return Some(pairs),
            b"" => return None,
            name => pairs.push((name, value)),
        }
    }
}

/// Names alone, up to an empty name or the end.
fn names(list: &[u8]) -> Option<SmallVec<[&[u8]; 16]>> {
    let (mut names, mut rest) = (SmallVec::new(), list);
    while !rest.is_empty() {
        match string(&mut rest)? {
            b"" => break,
            name => names.push(name),
        }
    }
    Some(names)
}

fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = length(rest)?;
    let (string, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(string)
}

/// Reads a length. A number below 240 is a single byte; the bits of others follow, four in the first byte, seven in each
/// further byte.
fn length(rest: &mut &[u8]) -> Option<usize> {
    const ONE_BYTE: u8 = 240;
    let (&first, mut after) = rest.split_first()?;
    let mut n = usize::from(first);
    if first >= ONE_BYTE {
        let mut shift = 4;
        loop {
            let (&b, more) = after.split_first()?;
            after = more;
            n = n.checked_add(usize::from(b).checked_shl(shift)?)?;
            shift += 7;
            if b < 0x80 {
                break;
            }
            if shift > 32 {
                return None;
            }
        }
    }
    *rest = after;
    Some(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_whole_or_not_at_all() {
        assert_eq!(pairs(b"\x01a\x02bc\x01d\x00\x00\x00").unwrap().as_slice(), [(&b"a"[..], &b"bc"[..]), (b"d", b"")]);
        assert_eq!(names(b"\x01a\x02bc").unwrap().as_slice(), [&b"a"[..], b"bc"]);
        for broken in
            [&b""[..], b"\x01a", b"\x01a\x02b", b"\x05a", b"\x01a\x01b", b"\xf0", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]
        {
            assert!(pairs(broken).is_none(), "{}", broken.escape_ascii());
        }
        assert_eq!(length(&mut &b"\xf0\x00"[..]), Some(240));
        assert_eq!(length(&mut &b"\xff\x7f"[..]), Some(255 + (127 << 4)));
        assert_eq!(length(&mut &b"\xf0\x80\x00"[..]), Some(240 + (128 << 4)));
    }

    #[test]
    fn no_field_breaks_a_message() {
        assert!(is_field(b"X-A", b"a b\t"));
        assert!(!is_field(b"X A", b"a") && !is_field(b"X-A", b"a\r\nb: c") && !is_field(b"X-A", b"\0"));
        assert!(is_framing(b"content-length") && is_framing(b"Transfer-Encoding") && !is_framing(b"Host"));
    }
}
