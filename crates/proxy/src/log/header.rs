//! What stands before a line: the forms of HAProxy's `log ... format`.

use super::clock::Stamp;

/// How lines are framed.
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

    /// Whether lines say when they were written.
    pub(super) fn has_time(self) -> bool {
        !matches!(self, Form::Priority | Form::Short | Form::Raw)
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speaker<'a> {
    /// The host's name.
    pub(super) host: Option<&'a str>,
    /// The program's name, or what `log-tag` says.
    pub(super) tag: &'a str,
    /// The process, in digits.
    pub(super) pid: &'a str,
}

/// Appends a line's header. `priority` is the facility's and the level's, as syslog adds them up; `structured_data` is empty when there
/// is none.
pub(super) fn write(out: &mut Vec<u8>, form: Form, priority: u8, stamp: &Stamp, speaker: Speaker<'_>, structured_data: &[u8]) {
    match form {
        Form::Local | Form::Rfc3164 | Form::Rfc5424 | Form::Priority => write_priority(out, priority),
        Form::Short | Form::Timed => write_priority(out, priority & 7),
        Form::Iso | Form::Raw => {}
    }
    match form {
        Form::Local | Form::Rfc3164 => {
            out.extend_from_slice(stamp.legacy());
            if form == Form::Rfc3164 {
                out.extend_from_slice(speaker.host.unwrap_or("localhost").as_bytes());
                out.push(b' ');
            }
            for part in [speaker.tag, "[", speaker.pid, "]: "] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        Form::Rfc5424 => {
            out.extend_from_slice(b"1 ");
            out.extend_from_slice(stamp.iso());
            for part in [speaker.host.unwrap_or("-"), " ", speaker.tag, " ", speaker.pid, " - "] {
                out.extend_from_slice(part.as_bytes());
            }
            out.extend_from_slice(if structured_data.is_empty() { b"-" } else { structured_data });
            out.push(b' ');
        }
        Form::Timed | Form::Iso => out.extend_from_slice(stamp.iso()),
        Form::Priority | Form::Short | Form::Raw => {}
    }
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
        let mut stamp = Stamp::new(Zone::utc());
        stamp.turn_to(Duration::new(1_233_922_454, 655_123_000));
        let mut out = Vec::new();
        write(&mut out, form, priority, &stamp, Speaker { host, tag: "haproxy", pid: "14389" }, structured_data.as_bytes());
        String::from_utf8(out).unwrap()
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
