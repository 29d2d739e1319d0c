//! Lines that open sections: `listen NAME [from DEFAULTS]` and their like.

use crate::args::Fault;
use crate::section::SectionKind;
use crate::words::Word;

/// A line that opens a section, as it was read. Words are given by their index in the line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The section's name.
    pub(crate) name: Option<usize>,
    /// The name of its defaults section.
    pub(crate) from: Option<usize>,
    /// The first word of a `bind` line, in the old form `listen NAME ADDRESS`.
    pub(crate) address: Option<usize>,
}

/// Reads the line; faults do not keep the section from being opened.
pub(crate) fn read(kind: SectionKind, words: &[Word], faults: &mut Vec<Fault>) -> Opening {
    let opening = arguments(kind, words, faults);
    if let Some(name) = opening.name.filter(|_| kind != SectionKind::Defaults) {
        check_name(words, name, faults);
    }
    if let Some(from) = opening.from {
        check_name(words, from, faults);
    }
    opening
}

fn arguments(kind: SectionKind, words: &[Word], faults: &mut Vec<Fault>) -> Opening {
    let is = |index: usize, text: &str| words.get(index).is_some_and(|word| word.as_str() == text);
    let extra = |index: usize| {
        words.get(index).map(|word| Fault::new(index, format!("cannot handle unexpected argument '{}'", word.display())))
    };
    let named = Opening { name: Some(1), ..Opening::default() };
    match (kind, words.len()) {
        (SectionKind::Global, _) => {
            faults.extend(extra(1));
            Opening::default()
        }
        (SectionKind::Defaults | SectionKind::CrtStore, 1) => Opening::default(),
        (SectionKind::Defaults, 3) if is(1, "from") => Opening { from: Some(2), ..Opening::default() },
        (_, 1) => {
            faults.push(Fault::new(0, "expects a name as argument"));
            Opening::default()
        }
        (_, 2) => named,
        (kind, _) if !kind.is_proxy() && kind != SectionKind::Defaults => {
            faults.extend(extra(2));
            named
        }
        (_, 4..) if is(2, "from") => {
            faults.extend(extra(4));
            Opening { from: Some(3), ..named }
        }
        (SectionKind::Frontend | SectionKind::Listen, 3) if !is(2, "from") => Opening { address: Some(2), ..named },
        (SectionKind::Frontend | SectionKind::Listen, 3..) if !is(2, "from") => {
            faults.push(Fault::new(2, "cannot take parameters of a listening address").hint("use the 'bind' keyword"));
            named
        }
        (_, _) if is(2, "from") => {
            faults.push(Fault::new(2, "expects the name of a defaults section behind 'from'"));
            named
        }
        _ => {
            faults.extend(extra(2));
            named
        }
    }
}

fn check_name(words: &[Word], at: usize, faults: &mut Vec<Fault>) {
    let Some(name) = words.get(at).map(Word::display) else { return };
    let foreign = |c: &char| !(c.is_ascii_alphanumeric() || ".:_-".contains(*c));
    if let Some(foreign) = name.chars().find(foreign) {
        faults.push(Fault::new(at, format!("character '{foreign}' is not permitted in the name '{name}'")));
    }
}

/// Sections of HAProxy's that are not built, and their replacements. Their lines are skipped.
pub static REFUSED_SECTIONS: &[(&str, &str)] = &[
    ("acme", "certificates are not ordered here; use a client such as certbot"),
    ("namespace_list", "network namespaces are not built"),
    ("program", "no other programs are started; use the service manager"),
    ("spoe-agent", "there is no SPOE"),
    ("spoe-group", "there is no SPOE"),
    ("spoe-message", "there is no SPOE"),
    ("traces", "there are no traces"),
];

/// Sections of HAProxy's that have no effect as long as no line refers to them, and such lines are refused. They are left
/// out, with a warning.
pub static IDLE_SECTIONS: &[(&str, &str)] = &[("mailers", "no mail is sent; watch the logs")];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (Opening, Vec<(usize, String)>) {
        let words = crate::words::split(line.as_bytes(), &|_| None).unwrap().words;
        let mut faults = Vec::new();
        let kind = SectionKind::from_name(words[0].as_str()).unwrap();
        let opening = super::read(kind, &words, &mut faults);
        (opening, faults.into_iter().map(|fault| (fault.word, fault.reason)).collect())
    }

    #[test]
    fn forms() {
        let opening = |name, from, address| Opening { name, from, address };
        for (line, expected) in [
            ("global", opening(None, None, None)),
            ("defaults", opening(None, None, None)),
            ("defaults a$", opening(Some(1), None, None)),
            ("defaults from a", opening(None, Some(2), None)),
            ("defaults from", opening(Some(1), None, None)),
            ("defaults a from b", opening(Some(1), Some(3), None)),
            ("listen a", opening(Some(1), None, None)),
            ("backend a.b:c_d-9 from x", opening(Some(1), Some(3), None)),
            ("listen a :80", opening(Some(1), None, Some(2))),
            ("frontend a 127.0.0.1:80", opening(Some(1), None, Some(2))),
            ("http-errors a", opening(Some(1), None, None)),
            ("ring a", opening(Some(1), None, None)),
        ] {
            assert_eq!(read(line), (expected, vec![]), "{line}");
        }
    }

    #[test]
    fn problems() {
        for (line, word, reason) in [
            ("global x", 1, "cannot handle unexpected argument 'x'"),
            ("listen", 0, "expects a name as argument"),
            ("backend a :80", 2, "cannot handle unexpected argument ':80'"),
            ("backend a from", 2, "expects the name of a defaults section behind 'from'"),
            ("listen a from b c", 4, "cannot handle unexpected argument 'c'"),
            ("listen a :80 ssl", 2, "cannot take parameters of a listening address"),
            ("backend a$b", 1, "character '$' is not permitted in the name 'a$b'"),
            ("backend a from b/", 3, "character '/' is not permitted in the name 'b/'"),
            ("http-errors a b", 2, "cannot handle unexpected argument 'b'"),
            ("log-profile a from b", 2, "cannot handle unexpected argument 'from'"),
            ("defaults a b", 2, "cannot handle unexpected argument 'b'"),
        ] {
            assert_eq!(read(line).1, [(word, reason.to_owned())], "{line}");
        }
    }
}
