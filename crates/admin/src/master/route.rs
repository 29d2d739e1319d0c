//! Targets of commands: prefixes of commands and lines. Pure.
//!
//! ```text
//! @            the master, as are @master and @0
//! @1           the worker that serves
//! @!<pid>      the worker of that process ID, also one that leaves
//! @@...        the same before a whole line
//! ```

/// Target of a prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// The master.
    Master,
    /// The worker that serves.
    Serving,
    /// The worker of that process ID.
    Process(u32),
}

impl Target {
    /// Target of the text after the `@`; `None` when it names no possible target.
    pub(super) fn of(designation: &[u8]) -> Option<Target> {
        match designation {
            b"" | b"master" | b"0" => Some(Target::Master),
            b"1" => Some(Target::Serving),
            [b'!', number @ ..] if number.iter().all(u8::is_ascii_digit) => {
                str::from_utf8(number).ok()?.parse().ok().map(Target::Process)
            }
            _ => None,
        }
    }
}

/// The text after a command's `@`, and the command after that; `None` for a command without a prefix.
pub(super) fn prefix(command: &[u8]) -> Option<(&[u8], &[u8])> {
    command.trim_ascii_start().strip_prefix(b"@").map(designation)
}

/// The text after a line's `@@`, and the line after that; `None` for a line without it.
pub(super) fn whole_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    line.trim_ascii_start().strip_prefix(b"@@").map(designation)
}

fn designation(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designations() {
        for (text, expected) in [
            ("", Some(Target::Master)),
            ("master", Some(Target::Master)),
            ("0", Some(Target::Master)),
            ("1", Some(Target::Serving)),
            ("2", None),
            ("!77", Some(Target::Process(77))),
            ("!", None),
            ("!+7", None),
            ("!99999999999", None),
            ("!7x", None),
            ("one", None),
        ] {
            assert_eq!(Target::of(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn prefixes_of_commands_and_lines() {
        assert_eq!(prefix(b" @1  show\tinfo "), Some((&b"1"[..], &b"show\tinfo "[..])));
        assert_eq!(prefix(b"@"), Some((&b""[..], &b""[..])));
        assert_eq!(prefix(b"@!7\t"), Some((&b"!7"[..], &b""[..])));
        assert_eq!(prefix(b"show @1"), None);
        assert_eq!(prefix(br"\@1 x"), None);
        assert_eq!(whole_line(b"@@1 a;b"), Some((&b"1"[..], &b"a;b"[..])));
        assert_eq!(whole_line(b"@1 a;@@1 b"), None);
    }
}
