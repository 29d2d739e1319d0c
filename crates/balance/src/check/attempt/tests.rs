mod http2;

use super::*;
use crate::fixture::{Nowhere, farm};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Outcome of a check, by the lines of a backend, of a server with these answers: each text is sent once the text
/// before it was read. After them the server closes, or stays when the last text is "stay".
async fn checked(lines: &str, answers: &[(&str, &str)]) -> LastCheck {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let lines = lines.replace("PORT", &port.to_string());
    let farm = farm(&format!("{lines}\nserver s 127.0.0.1:{port} check"));
    let server = farm.servers()[0].clone();
    tokio::select! {
        outcome = made(&farm, &server, limits(5000, None), &Nowhere) => outcome,
        never = serve(listener, answers) => match never {},
    }
}

async fn serve(listener: TcpListener, answers: &[(&str, &str)]) -> std::convert::Infallible {
    let (mut stream, _) = listener.accept().await.unwrap();
    for (wanted, answer) in answers {
        let mut read = Vec::new();
        while !read.ends_with(wanted.as_bytes()) && stream.read_buf(&mut read).await.unwrap_or(0) != 0 {}
        match *answer {
            "stay" => std::future::pending().await,
            answer => stream.write_all(answer.as_bytes()).await.unwrap(),
        }
    }
    drop((stream, listener));
    std::future::pending().await
}

/// The outcome of a check for which there was a descriptor.
async fn made(farm: &Farm, server: &Arc<Server>, limits: Limits, surroundings: &dyn Surroundings) -> LastCheck {
    attempt(farm, server, limits, surroundings).await.expect("a descriptor")
}

fn limits(whole: u64, answer: Option<u64>) -> Limits {
    Limits { whole: Duration::from_millis(whole), connect: None, answer: answer.map(Duration::from_millis) }
}

async fn refused_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

fn told(outcome: &LastCheck) -> (CheckStatus, u16, &str) {
    (outcome.status, outcome.code, outcome.info.as_str())
}

#[tokio::test]
async fn connecting_is_enough_without_more_words() {
    assert_eq!(told(&checked("", &[("", "stay")]).await), (CheckStatus::L4Ok, 0, ""));
    let farm = farm(&format!("server s 127.0.0.1:{} check", refused_port().await));
    let outcome = made(&farm, &farm.servers()[0], limits(5000, None), &Nowhere).await;
    assert_eq!(told(&outcome), (CheckStatus::L4Connection, 0, "ECONNREFUSED returned by OS (Connection refused)"));
}

#[tokio::test]
async fn what_is_said_and_expected_may_depend_on_variables() {
    let answers = [("GET /7 HTTP/1.0\r\nN: 7\r\n\r\n", "HTTP/1.0 200 OK\r\nX: one\r\nY: X\r\n\r\none body")];
    let lines = |expected: &str| {
        format!(
            "option httpchk\nhttp-check set-var(check.n) int(7)\n\
             http-check send meth GET uri-lf /%[var(check.n)] hdr N %[var(check.n)]\n\
             http-check expect status 200\nhttp-check set-var(check.y) res.hdr(y)\n\
             http-check set-var-fmt(check.one) %[res.hdr(x)]\nhttp-check expect {expected}"
        )
    };
    for expected in [
        "hdr name-lf %[var(check.y)] value-lf -m beg on",
        "hdr name x value-lf %[var(check.one)]",
        "hdr name-lf %[res.hdr(y)]",
        "hdr name -m reg ^x$ value -m reg ^on",
        "string-lf \"%[var(check.one)] body\"",
    ] {
        let outcome = checked(&lines(expected), &answers).await;
        assert_eq!((outcome.status, outcome.code), (CheckStatus::L7Ok, 200), "{expected}: {}", outcome.info);
    }
    for expected in ["hdr name-lf %[var(check.one)]", "hdr name x value-lf %[var(check.y)]", "! string-lf %[var(check.one)]"] {
        assert!(!checked(&lines(expected), &answers).await.status.is_pass(), "{expected}");
    }
    let forgotten = lines("string-lf %[var(check.one,two)]")
        .replace("http-check expect string", "http-check unset-var(check.one)\nhttp-check expect string");
    assert_eq!(checked(&forgotten, &answers).await.status, CheckStatus::L7Response);
}

#[tokio::test]
async fn outcomes_are_told_as_the_line_says() {
    let words = "ok-status L7OKC error-status L7STS tout-status L4TOUT on-success \"fine: %[var(check.a)]\" \
                 on-error \"bad: %[var(check.a)]\" status-code int(7) comment c";
    let lines = format!("option tcp-check\ntcp-check set-var(check.a) str(x)\ntcp-check expect {words} string ok");
    assert_eq!(told(&checked(&lines, &[("", "ok")]).await), (CheckStatus::L7OkStopping, 7, "fine: x"));
    assert_eq!(told(&checked(&lines, &[("", "no")]).await), (CheckStatus::L7Status, 7, "bad: x comment: c"));
    let none = "\r\n\r\n";
    let lines = "option httpchk\nhttp-check expect error-status L7RSP on-error %[res.hdr(x)] status-code res.hdr(y) status 200";
    let outcome = checked(lines, &[(none, "HTTP/1.0 503 No\r\nX: broken\r\nY: 42\r\n\r\n")]).await;
    assert_eq!(told(&outcome), (CheckStatus::L7Response, 42, "broken"));
    // An invalid answer is reported as without `expect`.
    let outcome = checked(lines, &[(none, "junk\r\n\r\n")]).await;
    assert_eq!((outcome.status, outcome.code), (CheckStatus::L7Response, 0));
}

#[tokio::test]
async fn servers_are_told_their_state() {
    let state = "UP; address=127.0.0.1; port=PORT; name=be/s; node=; weight=1/1; scur=0/0; qcur=0\r\n\r\n";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let farm = farm(&format!("option httpchk\nhttp-check send-state\nserver s 127.0.0.1:{port} check rise 1 fall 1"));
    let state = state.replace("PORT", &port.to_string());
    let answers = [(&*format!("x-haproxy-server-state: {state}"), "HTTP/1.0 200 OK\r\n\r\n")];
    let server = farm.servers()[0].clone();
    let outcome = tokio::select! {
        outcome = made(&farm, &server, limits(5000, None), &Nowhere) => outcome,
        never = serve(listener, &answers) => match never {},
    };
    assert_eq!(outcome.code, 200);
}

#[tokio::test]
async fn statuses_are_judged() {
    const NONE: &str = "\r\n\r\n";
    let lines = "option httpchk";
    let ok = checked(lines, &[(NONE, "HTTP/1.1 204 No Content\r\n\r\n")]).await;
    assert_eq!(told(&ok), (CheckStatus::L7Ok, 204, ""));
    let bad = checked(lines, &[(NONE, "HTTP/1.0 503 Service Unavailable\r\n\r\nx")]).await;
    assert_eq!(told(&bad), (CheckStatus::L7Status, 503, "Service Unavailable"));
    assert_eq!(checked(lines, &[(NONE, "220 smtp\r\n")]).await.status, CheckStatus::L7Response);
    assert_eq!(checked(lines, &[(NONE, "HTTP/1.1 200 OK\r\nA: ")]).await.status, CheckStatus::L7Response);
    let empty = checked("option httpchk\nhttp-check expect status 200", &[(NONE, "")]).await;
    assert_eq!(told(&empty), (CheckStatus::L7Response, 0, "TCPCHK got an empty response at step 1"));
    let stopping = checked("option httpchk\nhttp-check disable-on-404", &[(NONE, "HTTP/1.0 404 Not Found\r\n\r\n")]).await;
    assert_eq!(told(&stopping), (CheckStatus::L7OkStopping, 404, ""));
}

#[tokio::test]
async fn bodies_are_judged_when_enough_has_come() {
    let lines = "option httpchk GET / HTTP/1.1\nhttp-check expect string healthy";
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nheal\r\n4\r\nthy!\r\n";
    let request = "\r\n\r\n";
    assert_eq!(
        checked(lines, &[(request, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nhealthy"), ("", "stay")]).await.status,
        CheckStatus::L7Ok
    );
    assert_eq!(checked(lines, &[(request, head), ("", "stay")]).await.status, CheckStatus::L7Ok);
    let sick = checked(lines, &[(request, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsick"), ("", "stay")]).await;
    assert_eq!(told(&sick), (CheckStatus::L7Response, 200, "HTTP content check did not match"));
    let none = checked(lines, &[(request, "HTTP/1.1 204 No Content\r\n\r\n")]).await;
    assert_eq!(told(&none), (CheckStatus::L7Response, 204, "HTTP content check could not find a response body"));
}

#[tokio::test]
async fn scripts_go_step_by_step() {
    let lines = "option tcp-check\ntcp-check connect port PORT\ntcp-check expect min-recv 5 !rstring ^error\n\
                 tcp-check expect string valid\ntcp-check send 0123\ntcp-check expect string again";
    let ok = checked(lines, &[("", "valid"), ("0123", "again"), ("", "stay")]).await;
    assert_eq!(told(&ok), (CheckStatus::L7Ok, 0, "(tcp-check)"));
    let bad = checked(lines, &[("", "error 3"), ("", "stay")]).await;
    assert_eq!(told(&bad), (CheckStatus::L7Response, 0, "TCPCHK matched unwanted content (regex) at step 2"));
}

#[tokio::test]
async fn who_closes_without_an_answer_gave_an_empty_one() {
    let info = "TCPCHK got an empty response at step 2";
    // With and without having read the request.
    for wanted in ["", "PING\r\n"] {
        assert_eq!(told(&checked("option redis-check", &[(wanted, "")]).await), (CheckStatus::L7Response, 0, info));
    }
    assert_eq!(told(&checked("option ssl-hello-chk", &[("", "")]).await), (CheckStatus::L6Response, 0, info));
}

#[tokio::test]
async fn a_broken_script_says_where() {
    let port = refused_port().await;
    let lines = format!("option tcp-check\ntcp-check connect port PORT\ntcp-check connect port {port} comment why");
    let outcome = checked(&lines, &[("", "stay")]).await;
    let info =
        format!("ECONNREFUSED returned by OS (Connection refused) at step 2 of tcp-check (connect port {port}) comment: 'why'");
    assert_eq!(told(&outcome), (CheckStatus::L4Connection, 0, info.as_str()));
}

#[tokio::test]
async fn who_says_nothing_is_out_of_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("server s {} check", listener.local_addr().unwrap());
    for (lines, info) in [
        ("option httpchk\n", ""),
        ("option tcp-check\ntcp-check connect\ntcp-check expect string a\n", " at step 2 of tcp-check (expect string 'a')"),
    ] {
        let farm = farm(&format!("{lines}{server}"));
        for limits in [limits(20, None), limits(60_000, Some(20))] {
            let outcome = made(&farm, &farm.servers()[0], limits, &Nowhere).await;
            assert_eq!(told(&outcome), (CheckStatus::L7Timeout, 0, info));
            assert!(outcome.duration >= Duration::from_millis(20));
        }
    }
}

#[tokio::test]
async fn another_address_may_have_a_port_and_the_word_port_wins() {
    let listener = TcpListener::bind("127.0.0.3:0").await.unwrap();
    let (there, refused) = (listener.local_addr().unwrap(), refused_port().await);
    for (words, status) in [
        (format!("addr {there}"), CheckStatus::L4Ok),
        (format!("addr {there} port {refused}"), CheckStatus::L4Connection),
        (format!("addr 127.0.0.3:{refused} port {}", there.port()), CheckStatus::L4Ok),
        ("addr 127.0.0.3".to_owned(), CheckStatus::L4Connection),
    ] {
        let farm = farm(&format!("server s 127.0.0.2:{refused} check {words}"));
        assert_eq!(made(&farm, &farm.servers()[0], limits(5000, None), &Nowhere).await.status, status, "{words}");
    }
}

#[tokio::test]
async fn steps_may_connect_elsewhere() {
    let path = std::env::temp_dir().join(format!("terse-elsewhere-{}", std::process::id()));
    for step in ["addr 127.0.0.1:PORT", "addr 127.0.0.1 port PORT", "addr 127.0.0.1:1 port PORT"] {
        let lines = format!("option tcp-check\ntcp-check connect {step}\ntcp-check expect string here");
        // The server itself is nowhere.
        let lines = format!("{lines}\nserver nowhere {} check", path.display());
        assert_eq!(checked(&lines, &[("", "here"), ("", "stay")]).await.status, CheckStatus::L7Ok, "{step}");
    }
}

#[tokio::test]
async fn unix_sockets_are_checked_too() {
    let path = std::env::temp_dir().join(format!("terse-check-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let _listener = tokio::net::UnixListener::bind(&path).unwrap();
    let farm = farm(&format!("server s {} check\nserver t abns@terse-nobody check", path.display()));
    let outcomes = [
        made(&farm, &farm.servers()[0], limits(5000, None), &Nowhere).await,
        made(&farm, &farm.servers()[1], limits(5000, None), &Nowhere).await,
    ];
    std::fs::remove_file(&path).unwrap();
    assert_eq!(outcomes.map(|outcome| outcome.status), [CheckStatus::L4Ok, CheckStatus::L4Connection]);
}

/// Received part of a body, by its head's framing.
#[test]
fn contents_end_as_their_heads_say() {
    let chunks = &b"3\r\nabc\r\n0\r\n\r\n"[..];
    for (method, head, raw, expected) in [
        ("GET", "Content-Length: 3", &b"abc"[..], Some((&b"abc"[..], true))),
        ("GET", "Content-Length: 4", b"abc", Some((b"abc", false))),
        ("GET", "X: y", b"abc", Some((b"abc", false))),
        ("GET", "Transfer-Encoding: chunked", chunks, Some((b"abc", true))),
        ("GET", "Transfer-Encoding: chunked", &chunks[..8], Some((b"abc", false))),
        ("GET", "Transfer-Encoding: chunked", b"x\r\n", None),
        ("HEAD", "Transfer-Encoding: chunked", b"", Some((b"", true))),
        ("HEAD", "Content-Length: 3", b"", Some((b"", true))),
    ] {
        let mut response = Response::default();
        let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
        assert_eq!(h1::parse_response(text.as_bytes(), method.as_bytes(), &mut response), Ok(Parsed::Complete(text.len())));
        let expected = expected.map(|(bytes, whole)| (bytes.to_vec(), whole));
        assert_eq!(content(&response, raw), expected, "{method} {head}");
    }
}
