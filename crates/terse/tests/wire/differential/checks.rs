//! Results of checks: statuses, codes and texts of `show stat`, for every kind of check.

use super::support::Terse;
use super::support::client::Client;
use super::support::program::find;
use super::support::proxy::DEFAULTS;
use super::support::server::{Connection, Server};
use super::support::until;
use std::path::{Path, PathBuf};

/// Lines of a backend, and the behaviour of its server at the one check that it gets. That is the number of bytes that it reads,
/// and the bytes that it then sends.
struct Case {
    lines: &'static str,
    talk: &'static [(Read, &'static [u8])],
}

/// Input that a server waits for.
#[derive(Clone, Copy)]
enum Read {
    /// Nothing: it speaks first.
    No,
    /// So many bytes.
    Bytes(usize),
    /// A line.
    Line,
    /// A request.
    Request,
}

const fn case(lines: &'static str, talk: &'static [(Read, &'static [u8])]) -> Case {
    Case { lines, talk }
}

fn haproxy() -> Option<PathBuf> {
    std::env::var_os("HAPROXY").map(Into::into).or_else(|| find("haproxy"))
}

fn serve(connection: &mut Connection, talk: &[(Read, &[u8])]) {
    for (read, answer) in talk {
        let went_on = match read {
            Read::No => true,
            Read::Bytes(count) => connection.bytes(*count).is_some(),
            Read::Line => loop {
                match connection.bytes(1).as_deref() {
                    Some(b"\n") => break true,
                    Some(_) => {}
                    None => break false,
                }
            },
            Read::Request => connection.request().is_some(),
        };
        if !went_on || !connection.send(answer) {
            return;
        }
    }
    // The end, without a reset: further bytes of the check are read.
    connection.finish();
    connection.rest();
}

/// Returns the columns of `show stat` for the server once it has been checked. Only one check is made: the next is an hour away.
fn checked(case: &Case, program: Option<&Path>) -> String {
    let talk = case.talk;
    let server = Server::start(move |connection| serve(connection, talk));
    let text = format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{DEFAULTS} timeout check 20s\nlisten web\n bind fd@${{web}}\n \
         http-request return status 204\nbackend checked\n{}\n server s {} check inter 1h rise 1 fall 1\n",
        case.lines,
        server.address()
    );
    let process = Terse::with(&text).listen("web").listen("cli").arg(&["-db"]);
    let process = match program {
        Some(path) => process.program(path),
        None => process,
    };
    let process = process.start();
    until("a check", || {
        let mut client = Client::connect(process.address("cli"));
        client.send("show stat checked 4 -1\n");
        let text = String::from_utf8(client.rest()).unwrap();
        let mut rows = text.trim_start_matches("# ").lines().map(|line| line.split(',').collect::<Vec<_>>());
        let (names, row) = (rows.next()?, rows.next()?);
        let of = |name: &str| names.iter().position(|one| *one == name).and_then(|at| row.get(at)).copied().unwrap_or("");
        let done = !of("check_status").starts_with("* ") && !matches!(of("check_status"), "" | "INI");
        done.then(|| COLUMNS.map(|name| format!("{name}={}", of(name))).join(" "))
    })
}

const COLUMNS: [&str; 9] =
    ["status", "check_status", "check_code", "check_desc", "last_chk", "chkfail", "chkdown", "check_health", "hanafail"];

fn compare(cases: &[Case]) {
    let Some(haproxy) = haproxy() else { return };
    let mut differences = Vec::new();
    for case in cases {
        let (mut theirs, mut ours) = (checked(case, Some(&haproxy)), checked(case, None));
        // The server's own text is shown by one program, and forgotten by the other.
        if case.lines.contains("ldap") || case.lines.contains("mysql") {
            for shown in [&mut theirs, &mut ours] {
                shown.replace_range(shown.find("last_chk").unwrap()..shown.find("chkfail").unwrap(), "");
            }
        }
        if theirs != ours {
            differences.push(format!("{}\n    haproxy {theirs}\n    terse   {ours}", case.lines));
        }
    }
    assert!(differences.is_empty(), "{} of {} cases differ\n{}", differences.len(), cases.len(), differences.join("\n"));
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nX-A: one, two\r\nX-N: 42\r\nContent-Length: 7\r\n\r\nhealthy";
const GONE: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone";
const SICK: &[u8] = b"HTTP/1.1 500 Broken\r\nX-A: why\r\nContent-Length: 4\r\n\r\nsick";

#[test]
fn by_http() {
    const HEALTHY: &[(Read, &[u8])] = &[(Read::Request, OK)];
    const BROKEN: &[(Read, &[u8])] = &[(Read::Request, SICK)];
    compare(&[
        case("option httpchk", HEALTHY),
        case("option httpchk", BROKEN),
        case("option httpchk GET /x HTTP/1.1", &[(Read::Request, GONE)]),
        case("option httpchk\n http-check disable-on-404", &[(Read::Request, GONE)]),
        case("option httpchk", &[(Read::Request, b"")]),
        case("option httpchk", &[(Read::Request, b"junk\r\n\r\n")]),
        case("option httpchk\n http-check expect status 200-299,404", &[(Read::Request, GONE)]),
        case("option httpchk\n http-check expect ! rstatus ^5", BROKEN),
        case("option httpchk\n http-check expect comment sad status 200", BROKEN),
        case("option httpchk\n http-check expect string healthy", HEALTHY),
        case("option httpchk\n http-check expect string fine", HEALTHY),
        case("option httpchk\n http-check expect ! string health", HEALTHY),
        case("option httpchk\n http-check expect rstring ^heal", HEALTHY),
        case("option httpchk\n http-check expect hdr name x-a value two", HEALTHY),
        case("option httpchk\n http-check expect fhdr name x-a value two", HEALTHY),
        case("option httpchk\n http-check expect ok-status L7OKC status 200", HEALTHY),
        case("option httpchk\n http-check expect error-status L7RSP status 200", BROKEN),
        case("option httpchk\n http-check expect on-success \"a %[res.hdr(x-n)]\" status 200", HEALTHY),
        case("option httpchk\n http-check expect on-error \"b %[res.hdr(x-a)]\" comment c status 200", BROKEN),
        case("option httpchk\n http-check expect status-code res.hdr(x-n) status 200", HEALTHY),
        case("option httpchk\n http-check expect status-code int(7) string fine", HEALTHY),
    ]);
}

#[test]
fn by_bytes() {
    const HELLO: &[(Read, &[u8])] = &[(Read::No, b"hello world\r\n")];
    compare(&[
        case("", HELLO),
        case("option tcp-check", HELLO),
        case("option tcp-check\n tcp-check connect", HELLO),
        case("option tcp-check\n tcp-check expect string world", HELLO),
        case("option tcp-check\n tcp-check expect string mars", HELLO),
        case("option tcp-check\n tcp-check expect ! string world", HELLO),
        case("option tcp-check\n tcp-check expect comment c binary 68656c6c6f", HELLO),
        case("option tcp-check\n tcp-check expect comment c rstring ^w", HELLO),
        case("option tcp-check\n tcp-check expect rbinary ^6865", HELLO),
        case("option tcp-check\n tcp-check expect min-recv 5 string world", HELLO),
        case("option tcp-check\n tcp-check send ping\\r\\n\n tcp-check expect string pong", &[(Read::Line, b"pong\r\n")]),
        case("option tcp-check\n tcp-check send-binary 70\n tcp-check expect string pong", &[(Read::Bytes(1), b"")]),
        case("option tcp-check\n tcp-check expect ok-status L4OK on-success fine status-code int(9) string world", HELLO),
        case("option tcp-check\n tcp-check expect error-status L4CON on-error bad comment c status-code int(9) string mars", HELLO),
    ]);
}

#[test]
fn by_protocols() {
    const REDIS: usize = b"*1\r\n$4\r\nPING\r\n".len();
    compare(&[
        case("option redis-check", &[(Read::Bytes(REDIS), b"+PONG\r\n")]),
        case("option redis-check", &[(Read::Bytes(REDIS), b"-NOAUTH Authentication required.\r\n")]),
        case(
            "option smtpchk EHLO a.b",
            &[(Read::No, b"220 mail\r\n"), (Read::Line, b"250-mail\r\n250 OK\r\n"), (Read::Line, b"221 bye\r\n")],
        ),
        case("option smtpchk", &[(Read::No, b"554 no\r\n")]),
        case("option ssl-hello-chk", &[(Read::Bytes(5), b"\x15\x03\x00\x00\x02\x02\x28")]),
        case("option ldap-check", &[(Read::Bytes(14), b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00")]),
        case("option pgsql-check user me", &[(Read::Bytes(8), b"R\0\0\0\x08\0\0\0\x05")]),
        case("option mysql-check", &[(Read::No, b"\x0a\0\0\0\x0a8.0.1\0...")]),
    ]);
}
