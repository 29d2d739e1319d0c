//! Examples of HAProxy's manual with a value: the value is in a table, and both programs have to come to it. So a mistake that both
//! share fails too, and keywords that are newer than the installed HAProxy are held to the manual.
//!
//! [`values`](VALUES) are expressions, formats, conditions and refusals; [`rules`](RULES) are lines of a proxy with requests and
//! their outcomes. The heads of both tables explain the form of a row.

use super::expressions::word;
use super::support::Terse;
use super::support::client::{Client, Response};
use super::support::program::{find, run};
use super::support::server::{Request, Server};
use rustix::process::Signal;
use std::fmt::Write as _;
use std::net::Shutdown;
use std::path::PathBuf;

const VALUES: &str = include_str!("examples/values.txt");
const RULES: &str = include_str!("examples/rules.txt");

/// A program, and the parts of the tables that it is held to.
struct Program {
    /// `None` for terse.
    path: Option<PathBuf>,
    /// True if it has the keywords of 3.5, which the manual describes.
    is_new: bool,
}

/// terse, and the HAProxy that is installed.
fn programs() -> Vec<Program> {
    let mut programs = vec![Program { path: None, is_new: true }];
    if let Some(path) = std::env::var_os("HAPROXY").map(Into::into).or_else(|| find("haproxy")) {
        let said = run(&path, &["-v"]).stdout;
        let number = said.split("version ").nth(1).and_then(|rest| rest.split('-').next()).unwrap();
        let parts: Vec<u32> = number.split('.').filter_map(|part| part.parse().ok()).collect();
        programs.push(Program { path: Some(path), is_new: parts >= vec![3, 5] });
    }
    programs
}

impl Program {
    fn name(&self) -> String {
        self.path.as_ref().map_or("terse".into(), |path| path.display().to_string())
    }

    fn prepare(&self, text: &str) -> Terse {
        let process = Terse::with(text).env("ONE", "1").env("LIST", "x y z").env("EMPTY", "");
        let process = FILES.iter().fold(process, |process, (name, lines)| process.file(name, lines));
        self.path.iter().fold(process, |process, path| process.program(path))
    }
}

/// Files that rows name.
const FILES: &[(&str, &str)] = &[
    ("networks", "# a comment\n\n  2.22.246.0/23\t   United Kingdom   \n10.0.0.0/8 ten\n"),
    ("reversed", "moc.tset.ppa app1\nmoc.tset.bd  cluster\n"),
    ("domains", "net.test. sub\ncom.test.www. www\n"),
    ("old", "/old/one /new/one\n/old/two http://other.test/\n"),
    ("exact", "Agent/1\n"),
    ("folded", "robot\n"),
    ("hosts", "here.test\n"),
    ("values", "127.0.0.9 nine\n"),
    ("page", "<p>%[path]</p>"),
    ("200.http", "HTTP/1.1 200 OK\r\nContent-Type: text/x-ping\r\nContent-Length: 4\r\n\r\npong"),
    ("404.http", "HTTP/1.1 404 Not here\r\nContent-Type: text/x-gone\r\nContent-Length: 4\r\n\r\ngone"),
];

// ---------------------------------------------------------------- values

/// Kind of a row of the first table.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// An expression, as it is.
    Expression,
    /// An expression, as arguments of the configuration.
    Words,
    /// A format, as arguments of the configuration.
    Format,
    /// A condition, as arguments of the configuration.
    Condition,
    /// A condition of `.if`.
    Preprocessor,
    /// A line of a proxy that is refused.
    Refused,
}

const KINDS: &[(&str, Kind)] = &[
    ("[expressions]", Kind::Expression),
    ("[words]", Kind::Words),
    ("[formats]", Kind::Format),
    ("[conditions]", Kind::Condition),
    ("[preprocessor]", Kind::Preprocessor),
    ("[refused]", Kind::Refused),
];

/// A row of the first table.
struct Row {
    kind: Kind,
    text: &'static str,
    value: &'static str,
    request: usize,
    is_new: bool,
    /// Reason why terse's value, which the table has, is not HAProxy's.
    reason: Option<&'static str>,
}

/// The rows, and the requests they are evaluated on.
fn values() -> (Vec<Row>, Vec<&'static str>) {
    let (mut rows, mut requests, mut kind, mut reason) = (Vec::new(), Vec::new(), Kind::Expression, None);
    for line in VALUES.lines().filter(|line| !line.is_empty() && !line.starts_with("# ") && *line != "#") {
        if let Some((_, found)) = KINDS.iter().find(|(name, _)| *name == line) {
            kind = *found;
        } else if let Some(request) = line.strip_prefix("? ") {
            requests.push(request);
        } else if let Some(text) = line.strip_prefix("~ ") {
            reason = Some(text);
        } else {
            let (is_new, line) = line.strip_prefix("+ ").map_or((false, line), |line| (true, line));
            let (text, value) = match kind {
                Kind::Refused => (line, ""),
                _ => line.rsplit_once(" => ").unwrap_or_else(|| panic!("no value: {line}")),
            };
            rows.push(Row { kind, text, value, request: requests.len() - 1, is_new, reason: reason.take() });
        }
    }
    (rows, requests)
}

/// Number of values that share a field: lines of a configuration have 2048 bytes at most.
const IN_ONE_FIELD: usize = 25;

/// Configuration of both programs: the rows, and the rules that show their values.
fn configuration(rows: &[(usize, &Row)]) -> String {
    let mut text = "global\n nbthread 1\n tune.bufsize 524288\n tune.maxrewrite 262144\n setenv SET one\n presetenv ONE two\n presetenv PRE three\n \
        setenv GONE x\n unsetenv GONE\ndefaults\n mode http\n timeout client 15s\n \
        timeout server 15s\n timeout connect 15s\nbackend seen\n stick-table type string len 32 size 1k store gpc0\n\
        backend more\n stick-table type ip size 1m\nfrontend web\n bind fd@${web}\n option http-buffer-request\n"
        .to_owned();
    text.push_str(VARIABLES);
    for (i, row) in rows {
        let _ = match row.kind {
            Kind::Expression => writeln!(text, " http-request set-var(txn.v{i}) {}", word(row.text)),
            Kind::Words => writeln!(text, " http-request set-var(txn.v{i}) {}", row.text),
            Kind::Format => writeln!(text, " http-request set-var-fmt(txn.v{i}) {}", row.text),
            _ => writeln!(text, " http-request set-var(txn.v{i}) bool(true) if {}", row.text),
        };
    }
    for (field, shown) in rows.chunks(IN_ONE_FIELD).enumerate() {
        let shown: String = shown.iter().map(|(i, _)| format!("%[var(txn.v{i}),concat(.),hex];")).collect();
        let _ = writeln!(text, " http-after-response set-header values-{field} {shown}");
    }
    text + " http-request return status 200\n"
}

/// Evaluates the rows whose values one process can find. A row that is refused has no value, and is left out of it.
fn evaluated(program: &Program, mut rows: Vec<(usize, &Row)>, requests: &[&str]) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let text = loop {
        let text = configuration(&rows);
        let said = program.prepare(&text).listen("web").arg(&["-c"]).run();
        if said.code() == Some(0) {
            break text;
        }
        let alerts = said.stderr.lines().filter(|line| line.starts_with("[ALERT]"));
        let refused: Vec<&str> = alerts.filter_map(|line| line_of(line, &text)).collect();
        let (out, left): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|(i, _)| refused.iter().any(|line| line.contains(&format!("(txn.v{i}) "))));
        assert!(!out.is_empty(), "{} refuses:\n{}", program.name(), refusals(&said.stderr, &text));
        found.extend(out.iter().map(|(i, _)| (*i, "(refused)".to_owned())));
        rows = left;
    };
    let process = program.prepare(&text).listen("web").arg(&["-db"]).start();
    for (number, request) in requests.iter().enumerate() {
        let mut client = Client::connect(process.address("web"));
        client.send(message(request));
        let response = client.response("GET");
        assert_eq!(response.status, 200, "{}: {request}", program.name());
        for (field, shown) in rows.chunks(IN_ONE_FIELD).enumerate() {
            let values = response.field(&format!("values-{field}")).unwrap();
            let of_request = shown.iter().zip(values.split(';')).filter(|((_, row), _)| row.request == number);
            found.extend(of_request.map(|((i, _), value)| (*i, shown_as(value))));
        }
    }
    found
}

/// Variables that rows use.
const VARIABLES: &str = r#"
 http-request set-var(txn.start) int(1)
 http-request set-var(txn.length) int(3)
 http-request set-var(txn.text) str(text)
 http-request set-var(txn.alg) str(HS256)
 http-request set-var(txn.nonce) str(AAAAAAAAAAAAAAAAAAAAAA==)
 http-request set-var(txn.nonce12) str(AAAAAAAAAAAAAAAA)
 http-request set-var(txn.digits) str(012345)
 http-request set-var(txn.addr) ipv4(192.0.2.7)
 http-request set-var(txn.port) int(8080)
"#;

/// Bytes of hexadecimal digits, without the dot that tells an empty text from none.
fn shown_as(digits: &str) -> String {
    let Some(digits) = digits.strip_suffix("2E") else { return "(none)".into() };
    let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
    let bytes: Vec<u8> = digits.as_bytes().chunks(2).map(byte).collect();
    // In the table's form: an empty value would not be seen there.
    if bytes.is_empty() { "(empty)".into() } else { plain(&bytes) }
}

/// Bytes in the table's form: escaped where they are not printable.
fn plain(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace("\\\"", "\"").replace("\\'", "'")
}

/// A request in a row's form: its first line, fields after ` | `, a body after ` || `.
fn message(request: &str) -> Vec<u8> {
    let (head, body) = request.split_once(" || ").map_or((request, None), |(head, body)| (head, Some(body)));
    let mut lines = head.split(" | ");
    let mut text = format!("{} HTTP/1.1\r\n", lines.next().unwrap());
    lines.for_each(|field| text.push_str(&format!("{field}\r\n")));
    if !text.contains("\r\nHost:") {
        text.push_str("Host: example.com\r\n");
    }
    if let Some(body) = body {
        let _ = write!(text, "Content-Length: {}\r\n", body.len());
    }
    format!("{text}\r\n{}", body.unwrap_or_default()).into_bytes()
}

/// The line that a message is about.
fn line_of<'a>(said: &str, text: &'a str) -> Option<&'a str> {
    let number: usize = said.split(['[', ']', ':']).find_map(|part| part.trim().parse().ok().filter(|n| *n > 0))?;
    text.lines().nth(number - 1)
}

/// Messages, with the lines that they are about.
fn refusals(stderr: &str, text: &str) -> String {
    stderr.lines().map(|line| format!("{line}\n        {}\n", line_of(line, text).unwrap_or_default())).collect()
}

/// Conditions of `.if` that hold, all in one file. If a condition is not understood, the others are not either.
fn preprocessed(program: &Program, rows: &[(usize, &Row)]) -> Vec<(usize, String)> {
    let lines = rows.iter().map(|(i, row)| format!(".if {}\n.warning \"row {i} holds\"\n.endif\n", row.text));
    let said = program.prepare(&format!("global\n{}", lines.collect::<String>())).arg(&["-c"]).run();
    let of_row = |i: usize| match said.stderr.contains(&format!("row {i} holds")) {
        _ if said.stderr.contains("[ALERT]") => "refused",
        true => "yes",
        false => "no",
    };
    rows.iter().map(|(i, _)| (*i, of_row(*i).to_owned())).collect()
}

/// Returns whether a line is refused, independently of its neighbours.
fn refused(program: &Program, row: &Row) -> String {
    let text = format!(
        "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\nlisten x\n bind unix@${{dir}}/x\n {}\n",
        row.text
    );
    let said = program.prepare(&text).arg(&["-c"]).run();
    if said.code() == Some(0) { "taken".into() } else { String::new() }
}

#[test]
fn values_are_as_the_manual_shows_them() {
    let (rows, requests) = values();
    let (mut wrong, mut held) = (Vec::new(), 0);
    for program in programs() {
        let of_program: Vec<_> = rows.iter().enumerate().filter(|(_, row)| program.is_new || !row.is_new).collect();
        let (lines, rest): (Vec<_>, Vec<_>) = of_program.into_iter().partition(|(_, row)| row.kind == Kind::Refused);
        let (conditions, joint): (Vec<_>, Vec<_>) = rest.into_iter().partition(|(_, row)| row.kind == Kind::Preprocessor);
        let (wrongs, conditions): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|(_, row)| row.value == "refused");
        let mut found = evaluated(&program, joint, &requests);
        found.extend(preprocessed(&program, &conditions));
        found.extend(wrongs.into_iter().flat_map(|row| preprocessed(&program, &[row])));
        found.extend(lines.iter().map(|(i, row)| (*i, refused(&program, row))));
        held += found.len();
        for (i, value) in found {
            let Row { text, value: expected, reason, .. } = &rows[i];
            let is_wanted = reason.is_none() || program.path.is_none();
            match (value == *expected, is_wanted) {
                (false, true) => wrong.push(format!("{}: {text}\n    {value}\n    instead of {expected}", program.name())),
                (true, false) => wrong.push(format!("{text} does not differ: {}", reason.unwrap_or_default())),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {held} values are wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(held > 300, "{held} values");
}

// ----------------------------------------------------------------- rules

/// Lines of a proxy, with requests and their outcomes.
#[derive(Default)]
struct Example {
    is_new: bool,
    reason: Option<&'static str>,
    lines: Vec<&'static str>,
    /// Each request with its expected outcome.
    asked: Vec<(&'static str, Vec<&'static str>)>,
    /// Lines of the log, and after `~` ends of lines.
    logged: Vec<&'static str>,
}

fn examples() -> Vec<Example> {
    let mut examples = vec![Example::default()];
    for line in RULES.lines().filter(|line| !line.starts_with("# ") && *line != "#") {
        let last = examples.last_mut().unwrap();
        if line.is_empty() {
            if !last.lines.is_empty() {
                examples.push(Example::default());
            }
        } else if line == "+" {
            last.is_new = true;
        } else if let Some(reason) = line.strip_prefix("~ ") {
            last.reason = Some(reason);
        } else if let Some(request) = line.strip_prefix("? ") {
            last.asked.push((request, Vec::new()));
        } else if line.starts_with('^') {
            last.logged.push(line);
        } else if line.starts_with(['<', '>']) {
            last.asked.last_mut().unwrap_or_else(|| panic!("no request before {line}")).1.push(line);
        } else {
            last.lines.push(line);
        }
    }
    examples.retain(|example| !example.lines.is_empty());
    examples
}

/// True if the outcome of a request is the one that the row has.
fn holds(expected: &str, response: &Response, seen: &[Request]) -> bool {
    let fields = |side: char| match side {
        '<' => response.fields.clone(),
        _ => seen.last().map(|request| request.fields.clone()).unwrap_or_default(),
    };
    let (side, said) = expected.split_once(' ').unwrap_or((expected, ""));
    let side = side.chars().next().unwrap_or('<');
    if let Some(name) = said.strip_prefix("! ") {
        return !fields(side).iter().any(|(field, _)| field.eq_ignore_ascii_case(name));
    }
    if let Some(body) = said.strip_prefix("= ") {
        return if side == '<' {
            plain(&response.body) == body
        } else {
            seen.last().is_some_and(|request| plain(&request.body) == body)
        };
    }
    if let Some((name, value)) = said.split_once(": ") {
        return fields(side).iter().any(|(field, found)| field.eq_ignore_ascii_case(name) && found == value);
    }
    match side {
        _ if said == "-" => seen.is_empty(),
        '<' => response.line.split_once(' ').is_some_and(|(_, line)| line == said || line.split(' ').next() == Some(said)),
        _ => seen.last().is_some_and(|request| request.line.rsplit_once(' ').is_some_and(|(line, _)| line == said)),
    }
}

/// Runs the examples through a program; returns the failures by example.
fn performed(program: &Program, examples: &[(usize, &Example)]) -> Vec<(usize, String)> {
    let server = Server::answering(|request| {
        let fields: String = request.every("answer").map(|field| format!("{field}\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok")
    });
    let mut text = "global\n nbthread 1\n expose-experimental-directives\n log-tag tag\ndefaults\n mode http\n timeout client 15s\n timeout server 15s\n \
        timeout connect 15s\n log stdout format raw local0\n"
        .to_owned();
    for (i, example) in examples {
        let _ = writeln!(text, "listen e{i}\n bind fd@${{e{i}}}\n {}\n server one {}", example.lines.join("\n "), server.address());
    }
    let prepare = |word: &str| {
        let process = program.prepare(&text).arg(&[word]);
        examples.iter().fold(process, |process, (i, _)| process.listen(&format!("e{i}")))
    };
    let said = prepare("-c").run();
    assert!(said.code() == Some(0), "{} refuses:\n{}", program.name(), refusals(&said.stderr, &text));
    let process = prepare("-db").start();
    let mut wrong = Vec::new();
    for (i, example) in examples {
        for (request, expected) in &example.asked {
            let before = server.requests().len();
            let mut client = Client::connect(process.address(&format!("e{i}")));
            client.send(message(request));
            let response = client.response(request.split(' ').next().unwrap());
            let _ = client.stream().shutdown(Shutdown::Write);
            let requests = server.requests();
            for expected in expected.iter().filter(|expected| !holds(expected, &response, &requests[before..])) {
                let seen = requests.get(before).map(|request| format!("{} {:?}", request.line, request.fields));
                let body = response.body.escape_ascii();
                wrong.push((
                    *i,
                    format!("{request}\n    {expected}\n    {} {:?} {body}\n    {seen:?}", response.line, response.fields),
                ));
            }
        }
    }
    process.signal(Signal::USR1);
    let finished = process.wait();
    let of_streams = |line: &&str| !line.starts_with("Connect from ") && !line.starts_with("Proxy ");
    let logged: Vec<&str> = finished.stdout.lines().filter(of_streams).collect();
    for (i, example) in examples {
        let is_there = |expected: &&&str| match expected.strip_prefix("^~ ") {
            Some(end) => logged.iter().any(|line| line.ends_with(end)),
            None => logged.contains(&&expected[2..]),
        };
        for expected in example.logged.iter().filter(|expected| !is_there(expected)) {
            wrong.push((*i, format!("not logged: {expected}\n{}", logged.join("\n"))));
        }
    }
    wrong
}

#[test]
fn rules_do_what_the_manual_shows() {
    let examples = examples();
    let mut wrong = Vec::new();
    for program in programs() {
        let held: Vec<_> = examples.iter().enumerate().filter(|(_, example)| program.is_new || !example.is_new).collect();
        let found = performed(&program, &held);
        for (i, example) in held {
            let of_it: Vec<_> = found.iter().filter(|(of, _)| *of == i).map(|(_, text)| text.as_str()).collect();
            let lines = example.lines.join("; ");
            match (of_it.is_empty(), example.reason.filter(|_| program.path.is_some())) {
                (false, None) => wrong.push(format!("{}: {lines}\n  {}", program.name(), of_it.join("\n  "))),
                (true, Some(reason)) => wrong.push(format!("{}: {lines} does not differ: {reason}", program.name())),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} examples are wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(examples.len() > 50, "{} examples", examples.len());
}
