//! What stands behind a page's path: `;csv`, `;json`, `;api=<name>`, `;columns`, `;part=<name>`, `;up`, `;no-maint`, `;norefresh`, `;scope=<text>`,
//! `;st=<code>`, and `;from=<number>`, `;count=<number>` for lists of the API.

/// What is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Query {
    pub(super) form: Form,
    /// Only servers that are up.
    pub(super) up: bool,
    /// No servers in maintenance.
    pub(super) no_maint: bool,
    /// Whether the page may load itself again.
    pub(super) refresh: bool,
    /// Only proxies whose names contain this.
    pub(super) scope: Option<String>,
    /// What became of a change.
    pub(super) outcome: Option<String>,
    /// The page has HAProxy's columns.
    pub(super) columns: bool,
    /// A part of the page, for its script: `top`, `rows`.
    pub(super) part: Option<String>,
    /// Which of a list's entries come first, and how many.
    pub(super) from: usize,
    pub(super) count: usize,
}

/// How figures are shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Html,
    Csv,
    Json,
    /// Figures for programs, by their name.
    Api(String),
}

impl Query {
    /// Reads it. What is not known is passed over.
    pub(super) fn parse(text: &[u8]) -> Query {
        let mut query = Query {
            form: Form::Html,
            up: false,
            no_maint: false,
            refresh: true,
            scope: None,
            outcome: None,
            columns: false,
            part: None,
            from: 0,
            count: MOST_ENTRIES,
        };
        for word in text.split(|byte| matches!(byte, b';' | b'&' | b'?')) {
            match word {
                b"csv" => query.form = Form::Csv,
                b"json" => query.form = Form::Json,
                b"up" => query.up = true,
                b"no-maint" => query.no_maint = true,
                b"norefresh" => query.refresh = false,
                b"columns" => query.columns = true,
                _ => {
                    let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                    if let Some(name) = word.strip_prefix(b"api=") {
                        query.form = Form::Api(decode(name));
                    } else if let Some(part) = word.strip_prefix(b"part=") {
                        query.part = Some(decode(part));
                    } else if let Some(from) = word.strip_prefix(b"from=").and_then(number) {
                        query.from = from;
                    } else if let Some(count) = word.strip_prefix(b"count=").and_then(number) {
                        query.count = count.min(MOST_ENTRIES);
                    } else if let Some(scope) = word.strip_prefix(b"scope=") {
                        query.scope = Some(decode(scope)).filter(|scope| !scope.is_empty() && scope.len() <= SCOPE_BYTES);
                    } else if let Some(code) = word.strip_prefix(b"st=") {
                        query.outcome = Some(decode(code));
                    }
                }
            }
        }
        query
    }

    /// The same as text, with the outcome of a change in the place of the one before.
    pub(super) fn link(&self, outcome: Option<&str>) -> String {
        let mut text = String::new();
        for (word, there) in
            [(";columns", self.columns), (";up", self.up), (";no-maint", self.no_maint), (";norefresh", !self.refresh)]
        {
            text.push_str(if there { word } else { "" });
        }
        if let Some(scope) = &self.scope {
            text.push_str(";scope=");
            encode(scope, &mut text);
        }
        if let Some(outcome) = outcome {
            text.push_str(";st=");
            encode(outcome, &mut text);
        }
        text
    }
}

/// Takes `%xx` and `+` back, as forms write them.
pub(super) fn decode(text: &[u8]) -> String {
    let (mut bytes, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = text.get(at) {
        let hex = |at: usize| text.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (byte, hex(at + 1), hex(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                at += 2;
            }
            (b'+', ..) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes a text so that [`decode`] gives it back and no other reader is misled.
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// The most entries of a list that are told at once.
const MOST_ENTRIES: usize = 200;

/// No name is longer.
const SCOPE_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_in_any_order() {
        let query = Query::parse(b";api=servers;from=400;count=5000;columns");
        assert_eq!((query.form, query.from, query.count, query.columns), (Form::Api("servers".into()), 400, 200, true));
        let query = Query::parse(b"?;csv;scope=b%311;up;st=DONE");
        assert_eq!((&query.form, query.up, query.no_maint, query.refresh), (&Form::Csv, true, false, true));
        assert_eq!((query.scope.as_deref(), query.outcome.as_deref()), (Some("b11"), Some("DONE")));
        assert_eq!(query.link(Some("x/y")), ";up;scope=b11;st=x%2Fy");
        assert_eq!(Query::parse(b"/some?thing=else").link(None), "");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_and_links_come_back(text in proptest::collection::vec(any::<u8>(), 0..100)) {
            let query = Query::parse(&text);
            let again = Query::parse(query.link(query.outcome.as_deref()).as_bytes());
            prop_assert_eq!(again, Query { form: Form::Html, part: None, from: 0, count: MOST_ENTRIES, ..query });
        }
    }
}
