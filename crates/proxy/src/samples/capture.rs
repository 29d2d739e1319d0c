//! Captured values: header fields, cookies, the request's first line as the client sent it; and the converters that capture.

use super::facts;
use crate::captures::Slots;
use crate::facts::Facts;
use crate::log::{Capture, LogSettings};
use crate::settings::Mode;
use terse_message::Request;
use terse_sample::argument::{Param, ParamKind, need};
use terse_sample::logformat;
use terse_sample::{Alias, ArgList, Converter, Env, Fetch, Needs, Octets, Type, Value};

const SLOT: &[Param] = &[need(ParamKind::Int)];

/// The table of fetches.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::one("capture.req.hdr", Type::Str, "A captured field of the request, by number from 0.", |args, env| {
        slot(&facts(env)?.request_captures, args)
    })
    .params(SLOT),
    Fetch::one("capture.res.hdr", Type::Str, "A captured field of the response, by number from 0.", |args, env| {
        slot(&facts(env)?.response_captures, args)
    })
    .params(SLOT)
    .needs(Needs::RESPONSE),
    Fetch::one("capture.req.method", Type::Str, "The method that the client sent.", |_, env| {
        Some(Value::str(FirstLine::of(env)?.method()))
    }),
    Fetch::one("capture.req.uri", Type::Str, "The path and the query that the client sent.", |_, env| {
        Some(FirstLine::of(env)?.path_and_query()).filter(|path| path.starts_with(b"/")).map(Value::str)
    }),
    Fetch::one("capture.req.ver", Type::Str, "The request's version, such as HTTP/1.1.", |_, env| {
        Some(Value::str(FirstLine::of(env)?.version()))
    }),
    Fetch::one("capture.res.ver", Type::Str, "The response's version, such as HTTP/1.1.", |_, env| {
        let response = env.response.filter(|_| facts(env).is_none_or(is_read))?;
        Some(Value::str(response.version.name().as_bytes()))
    })
    .needs(Needs::RESPONSE),
];

/// The table of converters.
pub(super) const CONVERTERS: &[Converter] = &[
    Converter::new(
        "capture-req",
        Type::Str,
        Type::Str,
        "The text, which is also put into a capture of the request.",
        |value, args, env| capture(value, args, env, |facts| &facts.request_captures, |settings| &settings.request_captures),
    )
    .params(SLOT),
    Converter::new(
        "capture-res",
        Type::Str,
        Type::Str,
        "The text, which is also put into a capture of the response.",
        |value, args, env| capture(value, args, env, |facts| &facts.response_captures, |settings| &settings.response_captures),
    )
    .params(SLOT),
];

/// The table of aliases.
pub(super) const ALIASES: &[Alias] = &[
    Alias::block("hr", "Captured fields of the request.", |env| {
        block(facts(env)?, |settings| &settings.request_captures, |facts| &facts.request_captures)
    }),
    Alias::block("hs", "Captured fields of the response.", |env| {
        block(facts(env)?, |settings| &settings.response_captures, |facts| &facts.response_captures)
    }),
    Alias::list("hrl", "Captured fields of the request, one by one.", |env, write| {
        if let Some(facts) = facts(env) {
            one_by_one(&facts.request_captures, facts.frontend().log.settings.request_captures.len(), write);
        }
    }),
    Alias::list("hsl", "Captured fields of the response, one by one.", |env, write| {
        if let Some(facts) = facts(env) {
            one_by_one(&facts.response_captures, facts.frontend().log.settings.response_captures.len(), write);
        }
    }),
    Alias::text("CC", "The captured cookie of the request.", |env| facts(env)?.cookie_captures.0.as_deref().map(Value::str)),
    Alias::text("CS", "The captured cookie of the response.", |env| facts(env)?.cookie_captures.1.as_deref().map(Value::str)),
    Alias::line("r", "The request's first line.", |env| match FirstLine::of(env)? {
        FirstLine::Kept(line) => Some(Value::str(line)),
        FirstLine::Live(request) => {
            Some(Value::Str(Octets::from([request.method(), request.target(), request.version.name().as_bytes()].join(&b' '))))
        }
    }),
    Alias::line("HM", "The request's method.", |env| Some(Value::str(FirstLine::of(env)?.method()))),
    Alias::line("HU", "The request's target.", |env| Some(Value::str(FirstLine::of(env)?.target()))),
    Alias::line("HP", "The request's target without its query.", |env| {
        let target = FirstLine::of(env)?.target();
        Some(Value::str(target.get(..query_at(target)).unwrap_or_default()))
    }),
    Alias::line("HPO", "The path of the request's target.", |env| {
        let path = FirstLine::of(env)?.path_and_query();
        let path = if path.starts_with(b"/") { path } else { b"" };
        Some(Value::str(path.get(..query_at(path)).unwrap_or_default()))
    }),
    Alias::line("HQ", "The query of the request's target, with its question mark.", |env| {
        let target = FirstLine::of(env)?.target();
        Some(Value::str(target.get(query_at(target)..).unwrap_or_default()))
    }),
    Alias::line("HV", "The request's version.", |env| Some(Value::str(FirstLine::of(env)?.version()))),
];

/// Whether there was a transaction; a stream of bytes has captures, too.
fn is_read(facts: &Facts) -> bool {
    facts.version.is_some() || facts.frontend().mode != Mode::Http
}

/// The request's first line as the client sent it: kept aside when a rule has changed it, and otherwise still in the head.
#[derive(Clone, Copy)]
enum FirstLine<'a> {
    Kept(&'a [u8]),
    Live(&'a Request),
}

impl<'a> FirstLine<'a> {
    fn of(env: &Env<'a>) -> Option<FirstLine<'a>> {
        match facts(env).map(|facts: &Facts| facts.request_line.as_slice()) {
            Some(kept) if !kept.is_empty() => Some(FirstLine::Kept(kept)),
            _ => env.request.map(FirstLine::Live),
        }
    }

    fn method(self) -> &'a [u8] {
        match self {
            FirstLine::Kept(line) => line.get(..memchr::memchr(b' ', line).unwrap_or(line.len())).unwrap_or_default(),
            FirstLine::Live(request) => request.method(),
        }
    }

    fn version(self) -> &'a [u8] {
        match self {
            FirstLine::Kept(line) => line.rsplit(|b| *b == b' ').next().unwrap_or_default(),
            FirstLine::Live(request) => request.version.name().as_bytes(),
        }
    }

    fn target(self) -> &'a [u8] {
        match self {
            FirstLine::Kept(line) => {
                let (from, to) =
                    (memchr::memchr(b' ', line).map_or(0, |at| at + 1), memchr::memrchr(b' ', line).unwrap_or(line.len()));
                line.get(from..to).unwrap_or_default()
            }
            FirstLine::Live(request) => request.target(),
        }
    }

    fn path_and_query(self) -> &'a [u8] {
        let target = self.target();
        match target.windows(3).position(|window| window == b"://") {
            Some(scheme) if !target.starts_with(b"/") => {
                let rest = target.get(scheme + 3..).unwrap_or_default();
                memchr::memchr2(b'/', b'?', rest).and_then(|at| rest.get(at..)).unwrap_or(b"/")
            }
            _ => target,
        }
    }
}

fn query_at(target: &[u8]) -> usize {
    memchr::memchr(b'?', target).unwrap_or(target.len())
}

fn slot<'a>(slots: &Slots, args: &ArgList) -> Option<Value<'a>> {
    slots.at(usize::try_from(args.int(0)?).ok()?, |text| Value::Str(Octets::copy(text)))
}

/// Puts a text into a slot of this frontend's captures, if it has the slot; the text is returned unchanged.
fn capture<'a>(
    value: Value<'a>,
    args: &ArgList,
    env: &Env<'a>,
    slots: fn(&Facts) -> &Slots,
    declared: fn(&LogSettings) -> &[Capture],
) -> Option<Value<'a>> {
    let text: Octets<'a> = value.into_octets()?;
    if let Some(facts) = facts(env)
        && let Ok(slot) = usize::try_from(args.int(0)?)
        && let Some(Capture { len, .. }) = declared(&facts.frontend().log.settings).get(slot)
    {
        slots(facts).put(slot, text.get(..*len).unwrap_or(&text).into());
    }
    Some(Value::Str(text))
}

/// The captures as a single text, if the frontend has any and there was a transaction.
fn block(facts: &Facts, declared: fn(&LogSettings) -> &[Capture], captured: fn(&Facts) -> &Slots) -> Option<Value<'static>> {
    let slots = declared(&facts.frontend().log.settings).len();
    (slots > 0 && is_read(facts)).then(|| joined(captured(facts), slots))
}

/// `{one|two|}`
fn joined(captured: &Slots, slots: usize) -> Value<'static> {
    let mut out = vec![b'{'];
    for slot in 0..slots {
        if slot > 0 {
            out.push(b'|');
        }
        captured.at(slot, |text| logformat::encode(text, b"{|}", &mut out));
    }
    out.push(b'}');
    Value::Str(Octets::from(out))
}

fn one_by_one<'a>(captured: &Slots, slots: usize, write: &mut dyn FnMut(Option<Value<'a>>)) {
    for slot in 0..slots {
        write(captured.at(slot, |text| {
            let mut out = Vec::new();
            logformat::encode(text, b"{|}", &mut out);
            Value::Str(Octets::from(out))
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_kept_and_live_say_the_same() {
        for target in ["/a?b=c", "/", "*", "http://h/a?b", "http://h", "h:443"] {
            let mut request = Request::default();
            request.set_method(b"GET");
            request.set_target(target.as_bytes());
            let line = format!("GET {target} HTTP/1.1");
            let (kept, live) = (FirstLine::Kept(line.as_bytes()), FirstLine::Live(&request));
            for of in [FirstLine::method, FirstLine::target, FirstLine::path_and_query, FirstLine::version] {
                assert_eq!(of(kept), of(live), "{target}");
            }
            assert_eq!(kept.target(), target.as_bytes());
        }
    }

    #[test]
    fn blocks_of_captures() {
        let text = |value: Value<'_>| String::from_utf8(value.into_octets().unwrap().to_vec()).unwrap();
        let captured = Slots::new([None, Some((*b"a|b\x7f").into()), None].into());
        assert_eq!(text(joined(&captured, 3)), "{|a#7Cb#7F|}");
        assert_eq!(text(joined(&Slots::default(), 2)), "{|}");
        let mut all = Vec::new();
        one_by_one(&captured, 3, &mut |value| all.push(value.map(text)));
        assert_eq!(all, [None, Some("a#7Cb#7F".to_owned()), None]);
    }
}
