//! Header fields: `set-header`, `add-header`, `del-header`, `replace-header`, `replace-value`.
//!
//! `Content-Length` and `Transfer-Encoding` determine where a message ends. That is known from the message itself, and no
//! rule may change it: a rule that names them does nothing, with a warning, and a rule that matches them passes over them.

use super::{ANY, Action, ActionWord, Flow, RuleSet, done, rewrite, target};
use crate::stream::Stream;
use smallvec::SmallVec;
use terse_config::{Args, Fault, Scope};
use terse_message::name::is_token;
use terse_message::{FieldName, Fields, Known, list};
use terse_sample::regexp::{self, Regexp};
use terse_sample::{LogFormat, Usage};

/// The table.
pub(super) const ACTIONS: &[ActionWord] = &[
    done("set-header", ANY, "<name> <fmt>", "Puts a field in the place of all of its name.", set_header),
    done("add-header", ANY, "<name> <fmt>", "Adds a field behind all others.", add_header),
    done(
        "del-header",
        ANY,
        "<name> [-m <method>]",
        "Removes the fields whose name is, begins, ends, contains or matches so.",
        del_header,
    ),
    done("replace-header", ANY, "<name> <regex> <fmt>", "Rewrites the values that match, each as a whole.", replace_header),
    done(
        "replace-value",
        ANY,
        "<name> <regex> <fmt>",
        "Rewrites those elements of comma-separated values that match.",
        replace_value,
    ),
];

/// `set-header`, `add-header`
struct Put {
    name: FieldName,
    value: LogFormat,
    set: RuleSet,
    /// Whether the fields of that name are removed first.
    alone: bool,
}

impl Action for Put {
    fn run(&self, stream: &mut Stream) -> Flow {
        let done = rewrite::with_text(&self.value, stream, |stream, value| {
            let limit = rewrite::limit(stream, self.set);
            let fields = self.set.fields(stream);
            if !rewrite::fits(fields, self.name.bytes().len() + value.len(), limit) {
                return false;
            }
            match self.alone {
                true => fields.set_named(&self.name, value),
                false => fields.push_named(&self.name, value),
            }
            true
        });
        self.set.after_host(self.name.known(), stream);
        rewrite::outcome(done, stream)
    }
}

/// `del-header`
struct Delete {
    name: NameMatch,
    set: RuleSet,
}

/// Choice of fields by their names, in any case.
enum NameMatch {
    Is(FieldName),
    Begins(Box<[u8]>),
    Ends(Box<[u8]>),
    Contains(Box<[u8]>),
    Matches(Regexp),
}

impl Action for Delete {
    fn run(&self, stream: &mut Stream) -> Flow {
        self.name.delete(self.set.fields(stream));
        Flow::Next
    }
}

impl NameMatch {
    fn delete(&self, fields: &mut Fields) {
        match self {
            NameMatch::Is(name) => {
                fields.remove_named(name);
            }
            other => {
                fields.retain(|name, _| is_framing(name) || !other.is_match(name));
            }
        }
    }

    fn is_match(&self, name: &[u8]) -> bool {
        match self {
            NameMatch::Is(wanted) => name.eq_ignore_ascii_case(wanted.bytes()),
            NameMatch::Begins(start) => name.get(..start.len()).is_some_and(|part| part.eq_ignore_ascii_case(start)),
            NameMatch::Ends(end) => {
                let from = name.len().checked_sub(end.len());
                from.and_then(|from| name.get(from..)).is_some_and(|part| part.eq_ignore_ascii_case(end))
            }
            NameMatch::Contains(part) => {
                part.is_empty() || name.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
            }
            // HAProxy holds names in lower case, and expressions are written for that.
            NameMatch::Matches(regex) => regex.is_match(&name.to_ascii_lowercase()),
        }
    }
}

/// `replace-header`, `replace-value`
struct Replace {
    name: FieldName,
    regex: Regexp,
    to: LogFormat,
    set: RuleSet,
    /// Whether elements between commas are matched, not whole values.
    elements: bool,
}

impl Action for Replace {
    fn run(&self, stream: &mut Stream) -> Flow {
        if self.set.fields(stream).positions(self.name.bytes()).next().is_none() {
            return Flow::Next;
        }
        let done = rewrite::with_text(&self.to, stream, |stream, template| {
            let limit = rewrite::limit(stream, self.set);
            rewrite_values(self.set.fields(stream), (self.name.bytes(), self.elements), &self.regex, template, limit)
        });
        self.set.after_host(self.name.known(), stream);
        rewrite::outcome(done, stream)
    }
}

/// Rewrites the matches of an expression in a name's values, or in the elements between their commas; false when the result
/// would not fit.
pub(super) fn rewrite_values(
    fields: &mut Fields,
    (name, elements): (&[u8], bool),
    regex: &Regexp,
    template: &[u8],
    limit: usize,
) -> bool {
    let places: SmallVec<[usize; 8]> = fields.positions(name).collect();
    for place in places {
        let Some((_, value)) = fields.at(place) else { continue };
        let new = if elements { rewrite_elements(regex, value, template) } else { rewrite_value(regex, value, template) };
        if let Some(new) = new {
            if !rewrite::fits(fields, new.len(), limit) {
                return false;
            }
            fields.replace(place, &new);
        }
    }
    true
}

fn rewrite_value(regex: &Regexp, text: &[u8], template: &[u8]) -> Option<Vec<u8>> {
    let captures = regex.captures(text)?;
    let mut out = Vec::new();
    regexp::expand(template, &captures, &mut out);
    Some(out)
}

/// The bytes between the elements stay as they are.
fn rewrite_elements(regex: &Regexp, value: &[u8], template: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut copied) = (Vec::new(), 0);
    for element in list::elements(value) {
        if let Some(new) = rewrite_value(regex, element, template) {
            // Elements are parts of the value.
            let start = element.as_ptr().addr() - value.as_ptr().addr();
            out.extend_from_slice(value.get(copied..start)?);
            out.extend_from_slice(&new);
            copied = start + element.len();
        }
    }
    (copied > 0).then(|| [&out, value.get(copied..).unwrap_or_default()].concat())
}

/// An edit of a field that no rule may edit.
pub(super) struct Nothing;

impl Action for Nothing {
    fn run(&self, _: &mut Stream) -> Flow {
        Flow::Next
    }
}

impl RuleSet {
    /// Keeps the target's authority, if it names one, equal to the Host field (RFC 9112 section 3.2.2).
    pub(super) fn after_host(self, name: Known, stream: &mut Stream) {
        if self == RuleSet::Request && name == Known::Host {
            target::follow_host(&mut stream.request);
        }
    }
}

fn set_header(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    put(args, scope, set, true)
}

fn add_header(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    put(args, scope, set, false)
}

fn put(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, alone: bool) -> Result<Box<dyn Action>, Fault> {
    let name = field_name(args)?;
    let framing = warn_of_framing(args, &name);
    let value = LogFormat::parse(args, scope, set.have(), Usage::Http)?;
    Ok(if framing { Box::new(Nothing) } else { Box::new(Put { name, value, set, alone }) })
}

fn del_header(args: &mut Args<'_>, _: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    let word = args.position();
    let name: Box<[u8]> = args.need_bytes("<name>")?.into();
    let method = if args.accept("-m") { args.need("<method>")? } else { "str" };
    let name = match method {
        "str" => match FieldName::new(&name) {
            Some(name) if !warn_of_framing(args, &name) => NameMatch::Is(name),
            // A text that is no field name matches no field.
            _ => return Ok(Box::new(Nothing)),
        },
        "beg" => NameMatch::Begins(name),
        "end" => NameMatch::Ends(name),
        "sub" => NameMatch::Contains(name),
        "reg" => NameMatch::Matches(regexp::compile(&name, false).map_err(|reason| Fault::new(word, reason))?),
        other => return Err(args.fault(format!("unsupported matching method '{other}'")).hint("one of str, beg, end, sub, reg")),
    };
    Ok(Box::new(Delete { name, set }))
}

fn replace_header(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    replace(args, scope, set, false)
}

fn replace_value(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet) -> Result<Box<dyn Action>, Fault> {
    replace(args, scope, set, true)
}

fn replace(args: &mut Args<'_>, scope: &mut Scope<'_>, set: RuleSet, elements: bool) -> Result<Box<dyn Action>, Fault> {
    let name = field_name(args)?;
    let framing = warn_of_framing(args, &name);
    let regex = regexp::compile(args.need_bytes("<regex>")?, false).map_err(|reason| args.fault(reason))?;
    let to = LogFormat::parse(args, scope, set.have(), Usage::Http)?;
    Ok(if framing { Box::new(Nothing) } else { Box::new(Replace { name, regex, to, set, elements }) })
}

/// A name that a field can have (RFC 9110 section 5.1).
pub(super) fn field_name(args: &mut Args<'_>) -> Result<FieldName, Fault> {
    let name = args.need_bytes("<name>")?;
    if let Some(name) = FieldName::new(name) {
        return Ok(name);
    }
    // Some files write names as they stand in messages. HAProxy then sends two colons.
    if let Some(name) = name.strip_suffix(b":").and_then(FieldName::new) {
        args.warn("the colon belongs to the message, not to the name: it is left out");
        return Ok(name);
    }
    Err(match name.iter().find(|b| !is_token(**b)) {
        Some(b) => {
            let (name, b) = (name.escape_ascii(), [*b]);
            args.fault(format!("header name '{name}' contains forbidden character '{}'", b.escape_ascii()))
        }
        None => args.fault("a header's name cannot be empty"),
    })
}

/// Whether a field determines where its message ends.
pub(super) fn is_framing(name: &[u8]) -> bool {
    matches!(Known::of(name), Known::ContentLength | Known::TransferEncoding)
}

pub(super) fn warn_of_framing(args: &mut Args<'_>, name: &FieldName) -> bool {
    let framing = is_framing(name.bytes());
    if framing {
        let name = name.bytes().escape_ascii();
        args.warn(format!("'{name}' follows from the message itself and is not edited: this rule does nothing"));
    }
    framing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        all.iter().for_each(|(name, value)| fields.push(name.as_bytes(), value.as_bytes()));
        fields
    }

    #[test]
    fn names_are_matched_in_every_way() {
        let regex = NameMatch::Matches(regexp::compile(b"^x.reg.$", false).unwrap());
        let part = |text: &str| text.as_bytes().into();
        for (by, gone) in [
            (NameMatch::Is(FieldName::new("x-str1".as_bytes()).unwrap()), "X-Str1"),
            (NameMatch::Begins(part("x-beg")), "x-beg1 X-BEG2"),
            (NameMatch::Ends(part("END1")), "x-end1"),
            (NameMatch::Contains(part("sub")), "x-sub1 x-Sub2"),
            (regex, "X-Reg1 x-reg2"),
            (NameMatch::Contains(part("")), "X-Str1 x-beg1 X-BEG2 x-end1 x-end2 x-sub1 x-Sub2 X-Reg1 x-reg2 x"),
        ] {
            let all =
                ["X-Str1", "x-beg1", "X-BEG2", "x-end1", "x-end2", "x-sub1", "x-Sub2", "X-Reg1", "x-reg2", "x", "Content-Length"];
            let mut fields = fields(&all.map(|name| (name, "1")));
            by.delete(&mut fields);
            let left: Vec<_> = all.into_iter().filter(|name| fields.get(name.as_bytes()).is_none()).collect();
            assert_eq!(left.join(" "), gone);
        }
    }

    fn replaced(name: &str, regex: &str, template: &str, elements: bool, before: &[(&str, &str)]) -> Vec<String> {
        let regex = regexp::compile(regex.as_bytes(), false).unwrap();
        let mut fields = fields(before);
        assert!(rewrite_values(&mut fields, (name.as_bytes(), elements), &regex, template.as_bytes(), 10_000));
        fields.iter().map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect()
    }

    #[test]
    fn whole_values_and_elements_are_rewritten() {
        let cookie = "foo=foobar; expires=Tue, 14-Jun-2016 01:40:45 GMT;";
        let new = "foo=foobar;ip=192.168.1.20; expires=Tue, 14-Jun-2016 01:40:45 GMT;";
        assert_eq!(replaced("cookie", "foo=([^;]*);(.*)", "foo=\\1;ip=192.168.1.20;\\2", false, &[("Cookie", cookie)]), [new]);
        let agents = [("User-Agent", "curl/7"), ("X", "curl"), ("user-agent", "x")];
        assert_eq!(replaced("User-Agent", "curl", "foo", false, &agents), ["foo", "curl", "x"]);
        let from = "192.168.10.1, 192.168.13.24,  10.0.0.37";
        let to = "172.16.10.1, 172.16.13.24,  10.0.0.37";
        assert_eq!(replaced("X-F", "^192\\.168\\.(.*)$", "172.16.\\1", true, &[("X-F", from)]), [to]);
        assert_eq!(replaced("C", "^public$", "private", true, &[("C", "max-age=3600, public")]), ["max-age=3600, private"]);
        assert_eq!(replaced("C", "^public$", "private", true, &[("C", "\"a, public\"")]), ["\"a, public\""]);
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let regex = regexp::compile(b"a", false).unwrap();
        let mut fields = fields(&[("X", "a")]);
        assert!(!rewrite_values(&mut fields, (b"X", false), &regex, &[b'b'; 100], 100));
        assert_eq!(fields.get(b"x"), Some(&b"a"[..]));
        // A template can name any byte, and no value ends its line (RFC 9110 section 5.5).
        assert!(rewrite_values(&mut fields, (b"X", false), &regex, b"b\\x0d\\x0aEvil: 1", 10_000));
        assert_eq!(fields.get(b"x"), Some(&b"b  Evil: 1"[..]));
    }
}
