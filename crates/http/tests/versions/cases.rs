//! The cases of `corpus.txt`.

/// A case of the corpus.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) to_http2: bool,
    pub(crate) kind: String,
    lines: Vec<String>,
    pub(crate) expected: Expected,
}

pub(crate) enum Expected {
    /// Lines of the forwarded message, without line ends.
    Lines(Vec<String>),
    /// Reason why it is not forwarded.
    Refused(String),
}

pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

impl Case {
    /// The fields of a message of HTTP/2.
    pub(crate) fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::new();
        for line in &self.lines {
            if line == "GET" || line == "POST" {
                pairs.extend(start(line));
                continue;
            }
            let (name, value) = line.split_once(" =").unwrap_or_else(|| panic!("{}: {line}", self.name));
            pairs.push((bytes(name), bytes(value.strip_prefix(' ').unwrap_or(value))));
        }
        pairs
    }

    /// The bytes of a message of HTTP/1.
    pub(crate) fn head(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|line| [bytes(line), b"\r\n".to_vec()].concat()).chain(*b"\r\n").collect()
    }
}

/// The pseudo-headers of a request.
pub(crate) fn start(method: &str) -> Pairs {
    let all = [(":method", method), (":scheme", "https"), (":authority", "a.example"), (":path", "/")];
    all.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

pub(crate) fn read(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut is_answer = false;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("== ") {
            let (place, name) = title.split_once(": ").expect("a title");
            let (direction, kind) = place.split_once(' ').expect("a kind");
            is_answer = false;
            cases.push(Case {
                name: name.to_owned(),
                to_http2: match direction {
                    "2>1" => false,
                    "1>2" => true,
                    other => panic!("a direction: {other}"),
                },
                kind: kind.to_owned(),
                lines: Vec::new(),
                expected: Expected::Lines(Vec::new()),
            });
            continue;
        }
        let case = cases.last_mut().expect("a title comes first");
        match (line.strip_prefix("-> "), &mut case.expected) {
            (Some(why), expected) => *expected = Expected::Refused(why.to_owned()),
            _ if line == "->" => is_answer = true,
            (None, Expected::Lines(lines)) if is_answer => lines.push(line.to_owned()),
            (None, _) => case.lines.push(line.to_owned()),
        }
    }
    cases
}

/// Bytes of a text with escapes.
fn bytes(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match rest.next().expect("an escape") {
            b'r' => b'\r',
            b'n' => b'\n',
            b't' => b'\t',
            b's' => b' ',
            b'0' => 0,
            b'\\' => b'\\',
            b'x' => {
                let digits =
                    [rest.next(), rest.next()].map(|digit| char::from(digit.expect("a digit")).to_digit(16).expect("a digit"));
                (digits[0] * 16 + digits[1]) as u8
            }
            other => panic!("an escape: {}", char::from(other)),
        });
    }
    out
}
