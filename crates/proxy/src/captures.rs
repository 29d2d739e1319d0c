//! Values of a message's head that are kept for the log, before rules change it: captured fields and cookies, the request's
//! first line.

use crate::log::{Capture, CookieCapture};
use crate::stream::Stream;
use std::cell::RefCell;
use terse_message::{Fields, Known, Request};

/// A captured value of a message; `None` when there was none.
pub type Captured = Option<Box<[u8]>>;

/// Captures, by number. Expressions fill them too, while they look at everything else.
#[derive(Default, Debug)]
pub struct Slots(RefCell<Vec<Captured>>);

impl Slots {
    /// These.
    pub fn new(captured: Vec<Captured>) -> Slots {
        Slots(RefCell::new(captured))
    }

    /// Fills a slot; slots before it that were not filled are empty.
    pub fn put(&self, slot: usize, value: Box<[u8]>) {
        let mut slots = self.0.borrow_mut();
        if slots.len() <= slot {
            slots.resize_with(slot + 1, || None);
        }
        if let Some(place) = slots.get_mut(slot) {
            *place = Some(value);
        }
    }

    /// The content of a slot.
    pub fn at<T>(&self, slot: usize, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.0.borrow().get(slot)?.as_deref().map(read)
    }

    /// Empties all.
    pub fn clear(&mut self) {
        self.0.get_mut().clear();
    }
}

/// Keeps the values of the request that the frontend's log uses. Called once, as soon as the head was read.
#[inline]
pub fn request(stream: &mut Stream) {
    stream.facts.asked_head = stream.request.method() == b"HEAD";
    let settings = &stream.facts.frontend().log.settings;
    if !settings.request_captures.is_empty() || settings.cookie_capture.is_some() {
        capture_request(stream);
    }
}

fn capture_request(stream: &mut Stream) {
    let session = stream.facts.session.clone();
    let settings = &session.frontend().log.settings;
    if !settings.request_captures.is_empty() {
        stream.facts.request_captures = Slots::new(fields(&settings.request_captures, &stream.request.fields));
    }
    if let Some(wanted) = &settings.cookie_capture {
        stream.facts.cookie_captures.0 = cookie(wanted, &stream.request.fields, Known::Cookie);
    }
}

/// Keeps the values of the server's response that the frontend's log uses. Called once, as soon as the head was read.
#[inline]
pub fn response(stream: &mut Stream) {
    let settings = &stream.facts.frontend().log.settings;
    if !settings.response_captures.is_empty() || settings.cookie_capture.is_some() {
        capture_response(stream);
    }
}

fn capture_response(stream: &mut Stream) {
    let session = stream.facts.session.clone();
    let settings = &session.frontend().log.settings;
    if !settings.response_captures.is_empty() {
        stream.facts.response_captures = Slots::new(fields(&settings.response_captures, &stream.response.fields));
    }
    if let Some(wanted) = &settings.cookie_capture {
        stream.facts.cookie_captures.1 = cookie(wanted, &stream.response.fields, Known::SetCookie);
    }
}

/// Keeps the request's first line as the client sent it. Called before a change of the line: a line that is not changed costs
/// nothing.
pub fn keep_request_line(stream: &mut Stream) {
    if stream.facts.request_line.is_empty() {
        stream.facts.request_line = line(&stream.request);
    }
}

fn line(request: &Request) -> Vec<u8> {
    [request.method(), request.target(), request.version.name().as_bytes()].join(&b' ')
}

fn fields(captures: &[Capture], fields: &Fields) -> Vec<Captured> {
    let value = |capture: &Capture| {
        let value = fields.values(capture.header.as_ref()?.as_bytes()).next_back()?;
        Some(value.get(..capture.len).unwrap_or(value).into())
    };
    captures.iter().map(value).collect()
}

/// The first cookie whose `name=value` begins with the wanted prefix.
fn cookie(wanted: &CookieCapture, fields: &Fields, name: Known) -> Captured {
    // A response's field holds a single cookie, and its attributes after it.
    let limit = if name == Known::SetCookie { 1 } else { usize::MAX };
    let pairs = fields.every(name).flat_map(|field| field.split(|b| *b == b';').take(limit));
    let found = pairs.map(<[u8]>::trim_ascii).find(|pair| pair.starts_with(wanted.prefix.as_bytes()))?;
    Some(found.get(..wanted.len).unwrap_or(found).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_in_any_order() {
        let slots = Slots::default();
        slots.put(1, (*b"b").into());
        slots.put(0, (*b"a").into());
        let all: Vec<_> = (0..3).map(|slot| slots.at(slot, <[u8]>::to_vec)).collect();
        assert_eq!(all, [Some(b"a".to_vec()), Some(b"b".to_vec()), None]);
    }

    #[test]
    fn the_last_field_is_kept_and_cut() {
        let mut head = Fields::default();
        for (name, value) in [("Foo", "one"), ("foo", "two-long"), ("Bar", "x")] {
            head.push(name.as_bytes(), value.as_bytes());
        }
        let capture = |header: Option<&str>, len| Capture { header: header.map(str::to_owned), len };
        let wanted = [capture(Some("foo"), 3), capture(None, 9), capture(Some("none"), 9), capture(Some("bar"), 9)];
        let kept = fields(&wanted, &head);
        let kept: Vec<_> = kept.iter().map(Option::as_deref).collect();
        assert_eq!(kept, [Some(&b"two"[..]), None, None, Some(&b"x"[..])]);
    }

    #[test]
    fn the_first_cookie_is_kept() {
        let mut head = Fields::default();
        for (name, value) in [("Cookie", "a=1; SRV=s1; SRVX=2"), ("Set-Cookie", "b=1; SRV=no"), ("Set-Cookie", "SRV=s2; path=/")] {
            head.push(name.as_bytes(), value.as_bytes());
        }
        for (prefix, len, request, response) in
            [("SRV=", 20, Some("SRV=s1"), Some("SRV=s2")), ("SRV", 4, Some("SRV="), Some("SRV=")), ("none", 9, None, None)]
        {
            let wanted = CookieCapture { prefix: prefix.into(), len };
            let said = |name| cookie(&wanted, &head, name).map(|bytes| String::from_utf8(bytes.into()).unwrap());
            assert_eq!((said(Known::Cookie).as_deref(), said(Known::SetCookie).as_deref()), (request, response), "{prefix}");
        }
    }
}
