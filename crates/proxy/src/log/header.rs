//! Headers of log lines: the forms of HAProxy's `log ... format`.

use super::clock::Stamp;
use super::time;

/// Form of a line's header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// `<134>Feb  6 12:14:14 haproxy[14389]: line`: RFC 3164 without the host's name.
    Local,
    /// `<134>Feb  6 12:14:14 host haproxy[14389]: line`
    Rfc3164,
    /// `<134>1 2009-02-06T12:14:14.655123+01:00 host haproxy 14389 - - line`
    Rfc5424,
    /// `<134>line`
    Priority,
    /// `<6>line`, as systemd's journal wants it.
    Short,
    /// `<6>2009-02-06T12:14:14.655123+01:00 line`
    Timed,
    /// `2009-02-06T12:14:14.655123+01:00 line`
    Iso,
    /// `line`
    Raw,
}

impl Form {
    /// The names, in the order of the forms.
    pub const NAMES: [&'static str; 8] = ["local", "rfc3164", "rfc5424", "priority", "short", "timed", "iso", "raw"];

    /// The form of that name.
    pub fn parse(word: &str) -> Option<Form> {
        FORMS.into_iter().zip(Form::NAMES).find(|(_, name)| *name == word).map(|(form, _)| form)
    }

    /// Whether lines carry a timestamp.
    pub(super) fn has_time(self) -> bool {
        !matches!(self, Form::Priority | Form::Short | Form::Raw)
    }
}

/// Fields of a header beside its priority. An empty field is not known.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Heading<'a> {
    /// The time as the message's sender has written it: an RFC 3164 or an ISO time, or `-`. Empty: now.
    pub(super) time: &'a [u8],
    /// The host's name.
    pub(super) host: &'a [u8],
    /// The program's name, or the value of `log-tag`.
    pub(super) tag: &'a [u8],
    /// The process, in digits.
    pub(super) pid: &'a [u8],
    /// Type of the message (RFC 5424).
    pub(super) message_id: &'a [u8],
    /// `[id@1 name="value"]` (RFC 5424).
    pub(super) structured_data: &'a [u8],
}

/// Appends a line's header. `priority` is the facility's and the level's, as syslog adds them up.
pub(super) fn write(out: &mut Vec<u8>, form: Form, priority: u8, stamp: &Stamp, heading: Heading<'_>) {
    match form {
        Form::Local | Form::Rfc3164 | Form::Rfc5424 | Form::Priority => write_priority(out, priority),
        Form::Short | Form::Timed => write_priority(out, priority & 7),
        Form::Iso | Form::Raw => {}
    }
    match form {
        Form::Local | Form::Rfc3164 => {
            time::write_legacy(out, heading.time, stamp);
            if form == Form::Rfc3164 {
                out.extend_from_slice(or(heading.host, b"localhost"));
                out.push(b' ');
            }
            write_tag(out, heading);
        }
        Form::Rfc5424 => {
            out.extend_from_slice(b"1 ");
            time::write_iso(out, heading.time, stamp, true);
            for part in [heading.host, heading.tag, heading.pid, heading.message_id, heading.structured_data] {
                out.extend_from_slice(or(part, b"-"));
                out.push(b' ');
            }
        }
        Form::Timed | Form::Iso => time::write_iso(out, heading.time, stamp, false),
        Form::Priority | Form::Short | Form::Raw => {}
    }
}

/// `haproxy[14389]: `
fn write_tag(out: &mut Vec<u8>, heading: Heading<'_>) {
    if heading.tag.is_empty() {
        return;
    }
    out.extend_from_slice(heading.tag);
    if !heading.pid.is_empty() {
        out.push(b'[');
        out.extend_from_slice(heading.pid);
        out.push(b']');
    }
    out.extend_from_slice(b": ");
}

fn or<'a>(text: &'a [u8], instead: &'a [u8]) -> &'a [u8] {
    if text.is_empty() { instead } else { text }
}

/// `<0>` to `<255>`.
fn write_priority(out: &mut Vec<u8>, priority: u8) {
    out.push(b'<');
    if priority >= 100 {
        out.push(b'0' + priority / 100);
    }
    if priority >= 10 {
        out.push(b'0' + priority / 10 % 10);
    }
    out.extend_from_slice(&[b'0' + priority % 10, b'>']);
}

const FORMS: [Form; 8] =
    [Form::Local, Form::Rfc3164, Form::Rfc5424, Form::Priority, Form::Short, Form::Timed, Form::Iso, Form::Raw];

#[cfg(test)]
mod tests {
    use super::super::clock::Zone;
    use super::*;
    use std::time::Duration;

    fn header(form: Form, priority: u8, host: Option<&str>, structured_data: &str) -> String {
        let host = host.unwrap_or_default().as_bytes();
        let structured_data = structured_data.as_bytes();
        written(form, priority, Heading { host, tag: b"haproxy", pid: b"14389", structured_data, ..Heading::default() })
    }

    fn written(form: Form, priority: u8, heading: Heading<'_>) -> String {
        let mut stamp = Stamp::new(Zone::utc());
        stamp.turn_to(Duration::new(1_233_922_454, 655_123_000));
        let mut out = Vec::new();
        write(&mut out, form, priority, &stamp, heading);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        assert_eq!(written(Form::Local, 9, Heading::default()), "<9>Feb  6 12:14:14 ");
        assert_eq!(written(Form::Local, 9, Heading { tag: b"t", ..Heading::default() }), "<9>Feb  6 12:14:14 t: ");
        let heading = Heading { time: b"-", message_id: b"M1", ..Heading::default() };
        assert_eq!(written(Form::Rfc5424, 9, heading), "<9>1 - - - - M1 - ");
    }

    #[test]
    fn each_form() {
        let time = "2009-02-06T12:14:14.655123+00:00";
        for (name, host, data, expected) in [
            ("local", None, "", "<134>Feb  6 12:14:14 haproxy[14389]: "),
            ("local", Some("www"), "", "<134>Feb  6 12:14:14 haproxy[14389]: "),
            ("rfc3164", None, "", "<134>Feb  6 12:14:14 localhost haproxy[14389]: "),
            ("rfc3164", Some("www"), "[a@1]", "<134>Feb  6 12:14:14 www haproxy[14389]: "),
            ("rfc5424", None, "", &format!("<134>1 {time} - haproxy 14389 - - ")),
            ("rfc5424", Some("www"), "[a@1 b=\"c\"]", &format!("<134>1 {time} www haproxy 14389 - [a@1 b=\"c\"] ")),
            ("priority", None, "", "<134>"),
            ("short", None, "", "<6>"),
            ("timed", None, "", &format!("<6>{time} ")),
            ("iso", None, "", &format!("{time} ")),
            ("raw", Some("www"), "", ""),
        ] {
            assert_eq!(header(Form::parse(name).unwrap(), 134, host, data), expected, "{name}");
        }
        assert_eq!(Form::parse("rfc3165"), None);
    }

    #[test]
    fn priorities_have_no_leading_zeros() {
        for (priority, expected) in [(0, "<0>"), (9, "<9>"), (10, "<10>"), (99, "<99>"), (100, "<100>"), (191, "<191>")] {
            assert_eq!(header(Form::Priority, priority, None, ""), expected);
        }
    }
}
