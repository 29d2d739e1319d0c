//! Query after a page's path: `;csv`, `;json`, `;api=<name>`, `;columns`, `;part=<name>`, `;up`, `;no-maint`,
//! `;norefresh`, `;scope=<text>`, `;st=<code>`, and `;from=<number>`, `;count=<number>` for lists of the API.

/// Requested form and content of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Query {
    pub(super) form: Form,
    /// Whether only servers that are up are shown.
    pub(super) up: bool,
    /// Whether servers in maintenance are left out.
    pub(super) no_maint: bool,
    /// Whether the page may reload itself.
    pub(super) refresh: bool,
    /// Text that names of shown proxies contain.
    pub(super) scope: Option<String>,
    /// Outcome of a change.
    pub(super) outcome: Option<String>,
    /// Whether the page has HAProxy's columns.
    pub(super) columns: bool,
    /// A part of the page, for its script: `top`, `rows`.
    pub(super) part: Option<String>,
    /// Index of a list's first entry, and the number of entries.
    pub(super) from: usize,
    pub(super) count: usize,
}

/// Form of figures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Html,
    Csv,
    Json,
    /// JSON for programs, by the name of its document.
    Api(String),
}

impl Query {
    /// Parses a query. Unknown parts are ignored.
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

    /// The query as text, with the outcome of a change in the place of the one before.
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

/// Decodes `%xx` and `+`, as forms write them.
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

/// Encodes a text for [`decode`], without bytes that another reader could misread.
fn encode(text: &str, out: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// Limit of a list's entries in one answer.
const MOST_ENTRIES: usize = 200;

/// No proxy's name is longer.
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
