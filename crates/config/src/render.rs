//! Diagnostics as text: one line in HAProxy's form, and more of it for a terminal.
//!
//! Invariant: the shown text holds no control character that came from a file.

use crate::diagnostic::{Diagnostic, Place, Severity};
use std::fmt::Write as _;

impl Diagnostic {
    /// `[ALERT]    (1234) : config : parsing [file:12] : reason; hint`, without a line feed at the end.
    pub fn one_line(&self, pid: u32) -> String {
        let mut line = self.head(pid);
        if let Some(hint) = &self.hint {
            let _ = write!(line, "; {}", printable(hint));
        }
        line
    }

    /// The same with the file's line and the words in question underlined, the hint below; every line is ended.
    ///
    /// ```text
    /// [ALERT]    (1234) : config : parsing [file:12] : unknown keyword 'bnd' in 'listen' section
    ///     |
    ///  12 |     bnd :80
    ///     |     ^^^
    ///     = did you mean 'bind'?
    /// ```
    pub fn on_terminal(&self, pid: u32, colours: bool) -> String {
        let paint = Paint { colour: self.severity.colour(), on: colours };
        let mut out = self.head(pid);
        if let Some(end) = out.find(']').filter(|_| colours) {
            out.replace_range(..=end, &paint.strong(&out[..=end]));
        }
        out.push('\n');
        let number = self.place.as_ref().map_or_else(String::new, |place| place.line.to_string());
        let margin = " ".repeat(number.len());
        if let Some(place) = self.place.as_ref().filter(|place| !place.text.trim().is_empty()) {
            let (before, meant, after) = excerpt(place);
            let padding = " ".repeat(before.chars().count());
            let carets = "^".repeat(meant.chars().count().max(1));
            let _ = writeln!(out, "  {margin} |");
            let _ = writeln!(out, "  {number} | {before}{}{after}", paint.strong(&meant));
            let _ = writeln!(out, "  {margin} | {padding}{}", paint.strong(&carets));
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(out, "  {margin} = {}", printable(hint));
        }
        out
    }

    fn head(&self, pid: u32) -> String {
        let place =
            self.place.as_ref().map_or_else(String::new, |place| format!("parsing [{}:{}] : ", printable(&place.file), place.line));
        format!("{:<10} ({pid}) : config : {place}{}", self.severity.label(), printable(&self.reason))
    }
}

impl Severity {
    /// The word in brackets that a message begins with.
    pub const fn label(self) -> &'static str {
        match self {
            Severity::Notice => "[NOTICE]",
            Severity::Warning => "[WARNING]",
            Severity::Alert => "[ALERT]",
        }
    }

    /// The number of the terminal's colour.
    const fn colour(self) -> u8 {
        match self {
            Severity::Notice => 36,
            Severity::Warning => 33,
            Severity::Alert => 31,
        }
    }
}

/// A colour, or none.
struct Paint {
    colour: u8,
    on: bool,
}

impl Paint {
    fn strong(&self, text: &str) -> String {
        match self.on {
            true => format!("\x1b[1;{}m{text}\x1b[0m", self.colour),
            false => text.to_owned(),
        }
    }
}

/// The part of a line that is shown: before the words in question, these, and after them.
fn excerpt(place: &Place) -> (String, String, String) {
    let (start, end) = (place.span.start, place.span.end);
    let mut before = shown(place.text.get(..start).unwrap_or_default());
    let mut meant = shown(place.text.get(start..end).unwrap_or_default());
    let mut after = shown(place.text.get(end..).unwrap_or_default());
    clip_front(&mut before, MAX_SHOWN / 2);
    clip_back(&mut meant, MAX_SHOWN / 2);
    let left = MAX_SHOWN.saturating_sub(before.chars().count() + meant.chars().count());
    after.truncate(after.trim_end().len());
    clip_back(&mut after, left);
    (before, meant, after)
}

fn clip_front(text: &mut String, limit: usize) {
    let count = text.chars().count();
    if count > limit {
        *text = std::iter::once('…').chain(text.chars().skip(count - limit)).collect();
    }
}

fn clip_back(text: &mut String, limit: usize) {
    if text.chars().count() > limit {
        *text = text.chars().take(limit).chain(['…']).collect();
    }
}

/// A piece of a file's line, one column a character; tabs are four.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            _ if is_unseen(c) => out.push('?'),
            _ => out.push(c),
        }
    }
    out
}

/// A text in which control characters are written as escapes.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_unseen(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

/// Control characters, and those that change the direction of text.
fn is_unseen(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Characters that fit on a wide terminal beside the margin.
const MAX_SHOWN: usize = 110;

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(text: &str, span: std::ops::Range<usize>) -> Diagnostic {
        let place = Place { file: "a.cfg".into(), line: 12, text: text.into(), span };
        Diagnostic::new(Severity::Alert, &place, "unknown keyword 'bnd'").hint(Some("did you mean 'bind'?"))
    }

    #[test]
    fn one_line_is_haproxys() {
        assert_eq!(
            diagnostic("  bnd :80", 2..5).one_line(1234),
            "[ALERT]    (1234) : config : parsing [a.cfg:12] : unknown keyword 'bnd'; did you mean 'bind'?"
        );
        let warning = Diagnostic::new(Severity::Warning, &Place::nowhere(), "no\nlistener\x1b[31m");
        assert_eq!(warning.one_line(7), "[WARNING]  (7) : config : no\\nlistener\\u{1b}[31m");
        let notice = Diagnostic { severity: Severity::Notice, ..warning };
        assert!(notice.one_line(7).starts_with("[NOTICE]   (7) : config : "));
    }

    #[test]
    fn a_terminal_shows_the_words() {
        let expected = "[ALERT]    (1) : config : parsing [a.cfg:12] : unknown keyword 'bnd'
     |
  12 |     bnd :80
     |     ^^^
     = did you mean 'bind'?
";
        assert_eq!(diagnostic("\tbnd :80  ", 1..4).on_terminal(1, false), expected);
        let coloured = diagnostic("\tbnd :80", 1..4).on_terminal(1, true);
        assert!(coloured.starts_with("\x1b[1;31m[ALERT]\x1b[0m    (1)"), "{coloured}");
        assert!(coloured.contains("    \x1b[1;31mbnd\x1b[0m :80\n"), "{coloured}");
    }

    #[test]
    fn long_and_odd_lines() {
        let long = format!("{}bnd{}", "a ".repeat(300), " b".repeat(300));
        for line in diagnostic(&long, 600..603).on_terminal(1, false).lines().skip(1) {
            assert!(line.chars().count() <= MAX_SHOWN + 10, "{line}");
        }
        let odd = diagnostic("\u{e9}\x1b\u{202e} bnd", 7..10).on_terminal(1, false);
        assert!(odd.contains("  12 | \u{e9}?? bnd\n     |     ^^^\n"), "{odd}");
        let end = diagnostic("bind", 4..4).on_terminal(1, false);
        assert!(end.contains("     |     ^\n"), "{end}");
        assert_eq!(diagnostic("", 0..0).on_terminal(1, false).lines().count(), 2);
    }
}
