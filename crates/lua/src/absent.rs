//! Functions of HAProxy's that are not there, found in a script's text: so a file is refused when it is loaded, and not when the
//! first request comes to its line.
//!
//! Only functions of HAProxy's own global tables are looked for, by the table's name and theirs. A text that uses the
//! table's name in any other way, such as to define or to test it, knows better and is left alone.

/// A table, its functions, and the reason why they are not there.
type Table = (&'static str, &'static [&'static str], &'static str);

/// The tables.
const TABLES: &[Table] = &[
    ("ACME", &["challenge_ready"], "certificates are not ordered by scripts"),
    ("filter", &["register_data_filter", "unregister_data_filter"], "filters cannot be written in Lua"),
];

/// The first use of such a function: its line, and what is the matter.
pub(crate) fn find(text: &[u8]) -> Option<(usize, String)> {
    let words = words(text);
    let found = TABLES.iter().filter_map(|(table, functions, reason)| {
        let mut first = None;
        for (at, (line, word)) in words.iter().enumerate() {
            let is_field = at > 0 && matches!(words[at - 1].1, b"." | b":");
            if is_field || *word != table.as_bytes() {
                continue;
            }
            let next = |by: usize| words.get(at + by).map_or(&b""[..], |(_, word)| *word);
            let defines = at > 0 && words[at - 1].1 == b"function" || next(3) == b"=" && next(4) != b"=";
            if next(1) != b"." || defines {
                return None;
            }
            let function = functions.iter().find(|function| function.as_bytes() == next(2));
            first = first
                .or_else(|| function.map(|function| (*line, format!("{table}.{function} is not available in terse: {reason}"))));
        }
        first
    });
    found.min_by_key(|(line, _)| *line)
}

/// Names and signs of a program with their lines, without comments and texts.
fn words(text: &[u8]) -> Vec<(usize, &[u8])> {
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        let length = match byte {
            b'-' if rest.starts_with(b"--") => 2 + long(&rest[2..]).unwrap_or_else(|| before_line_end(&rest[2..])),
            b'[' => long(rest).unwrap_or(1),
            b'"' | b'\'' => quoted(rest),
            _ if byte.is_ascii_alphanumeric() || byte == b'_' => {
                rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len())
            }
            _ => 1,
        };
        let word = &rest[..length.min(rest.len())];
        let is_text = word.len() > 1 && !word[0].is_ascii_alphanumeric() && word[0] != b'_';
        if !is_text && !byte.is_ascii_whitespace() {
            found.push((line, word));
        }
        line += word.iter().filter(|byte| **byte == b'\n').count();
        at += word.len();
    }
    found
}

/// The length of a text in long brackets, if it begins with one.
fn long(text: &[u8]) -> Option<usize> {
    let level = text.strip_prefix(b"[")?.iter().take_while(|byte| **byte == b'=').count();
    if text.get(level + 1) != Some(&b'[') {
        return None;
    }
    let end = [&b"]"[..], &vec![b'='; level], b"]"].concat();
    let place = text.windows(end.len()).position(|part| part == end);
    Some(place.map_or(text.len(), |place| place + end.len()))
}

/// The length of a text in quotation marks.
fn quoted(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = text.get(at) {
        at += if byte == b'\\' { 2 } else { 1 };
        if byte == text[0] || byte == b'\n' {
            break;
        }
    }
    at.min(text.len())
}

fn before_line_end(text: &[u8]) -> usize {
    text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_functions_are_found_by_their_names() {
        let line = |text: &str| find(text.as_bytes()).map(|(line, _)| line);
        assert_eq!(line("\nfunction f() ACME.challenge_ready('a', 'b') end"), Some(2));
        assert_eq!(line("local s = [==[\n]]\n]==]\nACME . challenge_ready()"), Some(4));
        assert_eq!(line("local f = ACME.challenge_ready\nfilter.register_data_filter(self, chn)"), Some(1));
        let said = find(b"x = 1\nfilter.register_data_filter(a, b)").unwrap();
        assert_eq!(said, (2, "filter.register_data_filter is not available in terse: filters cannot be written in Lua".into()));
    }

    #[test]
    fn scripts_that_know_better_are_left_alone() {
        for text in [
            "-- ACME.challenge_ready()\nprint('ACME.challenge_ready()')",
            "--[[\nACME.challenge_ready()\n]] print(\"\\\"ACME.challenge_ready()\")",
            "x.ACME.challenge_ready() y:ACME().challenge_ready()",
            "local ACME = {}\nfunction ACME.challenge_ready() end\nACME.challenge_ready()",
            "if ACME then ACME.challenge_ready('a', 'b') end",
            "function ACME.challenge_ready() end ACME.challenge_ready()",
            "ACME.challenge_ready = print ACME.challenge_ready()",
            "ACME = ACME or {} ACME.challenge_ready()",
            "filter.register_data_filter = print local function f(filter) end",
            "local filter = require('filter')\nfilter.register_data_filter(1)",
            "ACME.other() MYACME.challenge_ready() ACME_.challenge_ready()",
            "print(\"ACME\\",
            "--[==[ ACME.challenge_ready()",
            "",
        ] {
            assert_eq!(find(text.as_bytes()), None, "{text}");
        }
    }
}
