//! Dictionaries that are learned from what passes: `compression dictionary auto`.

use crate::dictionaries::{CODINGS, ask, available, decode, script};
use crate::support::client::{Client, Response};
use crate::support::origin::{Origin, Request};
use crate::support::proxy::DEFAULTS;
use crate::support::{Terse, until};
use std::io::Write;
use std::net::TcpStream;
use terse_dictionary::Hash;

const LASTING: &str = "Cache-Control: public, max-age=31536000\r\nETag: \"x\"\r\n";

/// Files whose names begin with what is special about them.
fn answer(request: &Request, stream: &mut TcpStream) {
    let path = request.line.split(' ').nth(1).unwrap_or_default();
    let seed = if path.contains("22222222") { 2 } else { 1 };
    let name = path.trim_start_matches('/').split('.').next().unwrap_or_default();
    // Each name has a file of its own.
    let body = [format!("// {name}\n").into_bytes(), script(seed)].concat();
    let (kind, more) = match name {
        "private" => ("text/javascript", "Cache-Control: private, max-age=31536000\r\n"),
        "nostore" => ("text/javascript", "Cache-Control: no-store, max-age=31536000\r\n"),
        "nocache" => ("text/javascript", "Cache-Control: no-cache, max-age=31536000\r\n"),
        "brief" => ("text/javascript", "Cache-Control: max-age=3600\r\n"),
        "cookie" => ("text/javascript", "Cache-Control: public, max-age=31536000\r\nSet-Cookie: a=b\r\n"),
        "varied" => ("text/javascript", "Cache-Control: public, max-age=31536000\r\nVary: Cookie\r\n"),
        "mine" | "eaten" => ("text/javascript", "Cache-Control: max-age=31536000\r\n"),
        "page" => ("text/html", LASTING),
        "own" => ("text/javascript", "Cache-Control: max-age=31536000\r\nUse-As-Dictionary: match=\"/own/*\"\r\n"),
        _ => ("text/javascript", LASTING),
    };
    let framing = match name {
        "cut" => format!("Content-Length: {}\r\n", body.len() + 1),
        "closed" => "Connection: close\r\n".into(),
        "chunked" => "Transfer-Encoding: chunked\r\n".into(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let mut message = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{more}{framing}\r\n").into_bytes();
    match name {
        "chunked" => {
            for piece in body.chunks(3000) {
                message.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
            }
            message.extend(b"0\r\n\r\n");
        }
        _ => message.extend(&body),
    }
    let _ = stream.write_all(&message);
    if matches!(name, "cut" | "closed") {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// The file of that name.
fn file(name: &str, release: u32) -> Vec<u8> {
    [format!("// {name}\n").into_bytes(), script(release)].concat()
}

fn terse(origin: &Origin, lines: &str) -> Terse {
    terse_with(origin, "", lines)
}

fn terse_with(origin: &Origin, global: &str, lines: &str) -> Terse {
    let text = format!(
        "global\n{global} nbthread 2\n stats socket fd@${{cli}} level admin\n{DEFAULTS} log stdout format raw local0\n\
         cache c\n total-max-size 4\n max-object-size 200000\n max-age 60\n\
         frontend web\n bind fd@${{plain}}\n compression on\n compression dictionary secure auto\n\
         http-request set-src hdr(X-Client)\n http-request set-header Host all.test if {{ path_beg /moved }}\n\
         http-request del-header Authorization if {{ path_beg /stripped }}\n http-request del-header Cookie if {{ path_beg /eaten }}\n\
         http-request set-path /app.11111111.js if {{ path_beg /alias }}\n\
         http-after-response set-header Why %[res.comp_dictionary]\n log-format \"%HU <%[res.comp_dictionary]> %[res.comp_memory]\"\n\
         default_backend b\nbackend b\n{lines}\n server s {}\n",
        origin.address()
    );
    Terse::with(&text).listen("plain").listen("cli").start()
}

/// Asks as the client of an address.
fn ask_as(terse: &Terse, address: &str, host: &str, path: &str, fields: &[(&str, &str)]) -> Response {
    let mut client = Client::connect(terse.address("plain"));
    ask(&mut client, host, path, &[&[CODINGS, ("X-Client", address)], fields].concat())
}

/// The line of the dictionary of those bytes and that host, if it was learned.
fn learned(terse: &Terse, host: &str, bytes: &[u8]) -> Option<Vec<String>> {
    let (hash, origin) = (Hash::of(bytes).hex(), format!("https://{host}"));
    let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
    terse.told("show dictionary").lines().map(words).find(|words| words[0] == "auto" && words[1] == hash && words[14] == origin)
}

/// Waits until all that was recorded before has been looked at: bodies are, one after the other.
fn settle(terse: &Terse, host: &str, name: &str) {
    for address in ["192.0.2.1", "192.0.2.2"] {
        let told = ask_as(terse, address, host, &format!("/{name}.11111111.js"), &[]);
        assert_eq!(told.field("use-as-dictionary"), Some(&*format!("match=\"/{name}.*.js\"")));
    }
    until("a dictionary", || learned(terse, host, &file(name, 1)));
}

#[test]
fn the_next_release_is_the_difference_to_one_that_two_clients_had() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let (old, new) = (file("app", 1), file("app", 2));
    let held = available(&old);
    let offers = [("Available-Dictionary", &*held)];
    for _ in 0..3 {
        let first = ask_as(&terse, "192.0.2.9", "a.test", "/app.11111111.js", &[]);
        assert_eq!(first.field("use-as-dictionary"), Some("match=\"/app.*.js\""));
        assert_eq!((first.field("vary"), first.field("why")), (Some("Accept-Encoding,Available-Dictionary"), Some("none")));
    }
    settle(&terse, "a.test", "marker");
    assert_eq!(learned(&terse, "a.test", &old), None, "one client alone");
    let without = ask_as(&terse, "192.0.2.9", "a.test", "/app.22222222.js", &offers);
    assert_eq!((without.field("content-encoding"), without.field("why")), (Some("zstd"), Some("unknown")));
    ask_as(&terse, "192.0.2.8", "a.test", "/app.11111111.js", &[]);
    let line = until("the dictionary", || learned(&terse, "a.test", &old));
    assert_eq!((&*line[2], &*line[3], &*line[10]), (&*old.len().to_string(), "/app.*.js", "-"));
    for path in ["/app.22222222.js", "/app.22222222.js", "/app.22222222.js"] {
        let third = ask_as(&terse, "192.0.2.7", "a.test", path, &offers);
        assert_eq!((third.field("content-encoding"), third.field("why")), (Some("dcz"), Some("used")));
        assert_eq!(third.field("use-as-dictionary"), Some("match=\"/app.*.js\""), "it is a dictionary, too");
        assert_eq!(third.field("vary"), Some("Accept-Encoding,Available-Dictionary"));
        assert!(decode(&third.body, &old).is_some_and(|body| body == new), "other bytes");
        assert!(third.body.len() * 5 < without.body.len(), "{} of {}", third.body.len(), without.body.len());
    }
    let hit = |line: &str| line.starts_with("/app.22222222.js <used>") && line.ends_with(" hit");
    until("a coded form that was remembered", || terse.stdout().lines().any(hit).then_some(()));
    let line = learned(&terse, "a.test", &old).unwrap();
    assert_eq!((&*line[6], &*line[7]), ("3", "3"), "offered, used: {line:?}");
    let told = origin.requests().iter().filter(|request| request.field("Available-Dictionary").is_some()).count();
    assert_eq!(told, 1, "a hash of ours is not the server's matter");
    // Answers of two clients that refer to it make the next one.
    ask_as(&terse, "192.0.2.6", "a.test", "/app.22222222.js", &offers);
    until("the next release", || learned(&terse, "a.test", &new));
    terse.end();
}

#[test]
fn a_host_does_not_see_anothers() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let held = available(&file("app", 1));
    settle(&terse, "a.test", "app");
    let fields = |response: &Response| {
        let names = ["why", "date"];
        let told = response.fields.iter().filter(|(name, _)| !names.iter().any(|other| name.eq_ignore_ascii_case(other)));
        told.cloned().collect::<Vec<_>>()
    };
    for host in ["b.test", "a.test:8443", "a.test."] {
        let without = ask_as(&terse, "192.0.2.7", host, "/app.22222222.js", &[]);
        let with = ask_as(&terse, "192.0.2.7", host, "/app.22222222.js", &[("Available-Dictionary", &held)]);
        assert_eq!(with.field("why"), Some("unknown"), "{host}");
        assert!(with.body == without.body && fields(&with) == fields(&without), "{host}: {:?} {:?}", with.fields, without.fields);
    }
    let own = ask_as(&terse, "192.0.2.7", "A.test:443", "/app.22222222.js", &[("Available-Dictionary", &held)]);
    assert_eq!(own.field("why"), Some("used"));
    terse.end();
}

#[test]
fn what_is_not_everybodys_is_never_learned() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let (authorized, cookie) = ([("Authorization", "Basic YTpi")], [("Cookie", "user=1")]);
    for (name, fields) in [
        ("private", &[][..]),
        ("nostore", &[]),
        ("nocache", &[]),
        ("brief", &[]),
        ("cookie", &[]),
        ("varied", &[]),
        ("page", &[]),
        ("closed", &[]),
        ("authorized", &authorized),
        ("stripped", &authorized),
        ("mine", &cookie),
        ("eaten", &cookie),
        ("plain", &[("Accept-Encoding", "identity")]),
        ("old", &[("Accept-Encoding", "gzip, br")]),
    ] {
        for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
            let codings = [CODINGS];
            let fields = if matches!(name, "plain" | "old") { fields.to_vec() } else { [&codings[..], fields].concat() };
            let mut client = Client::connect(terse.address("plain"));
            let told =
                ask(&mut client, "a.test", &format!("/{name}.11111111.js"), &[&[("X-Client", address)], &fields[..]].concat());
            assert_eq!((told.status, told.field("use-as-dictionary")), (200, None), "{name}");
        }
    }
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        let mut client = Client::connect(terse.address("plain"));
        let head = format!("Host: a.test\r\nAccept-Encoding: zstd\r\nConnection: close\r\nX-Client: {address}");
        client.send(format!("GET /cut.11111111.js HTTP/1.1\r\n{head}\r\n\r\n"));
        assert!(client.rest().len() < 40_000, "it breaks off");
    }
    settle(&terse, "a.test", "marker");
    let lines = terse.told("show dictionary");
    assert_eq!(lines.lines().filter(|line| line.starts_with("auto ")).count(), 1, "the marker alone: {lines}");
    terse.end();
}

#[test]
fn a_name_that_rules_change_is_the_clients() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    for address in ["192.0.2.1", "192.0.2.2"] {
        for name in ["alias", "moved"] {
            let told = ask_as(&terse, address, "a.test", &format!("/{name}.33333333.js"), &[]);
            assert_eq!(told.field("use-as-dictionary"), Some(&*format!("match=\"/{name}.*.js\"")));
        }
    }
    let line = until("the dictionary", || learned(&terse, "a.test", &file("app", 1)));
    assert_eq!(line[3], "/alias.*.js");
    until("the dictionary of the host that was asked", || learned(&terse, "a.test", &file("moved", 1)));
    assert_eq!(learned(&terse, "all.test", &file("moved", 1)), None);
    let held = available(&file("moved", 1));
    for (host, why) in [("a.test", "used"), ("all.test", "unknown")] {
        let told = ask_as(&terse, "192.0.2.3", host, "/moved.22222222.js", &[("Available-Dictionary", &held)]);
        assert_eq!(told.field("why"), Some(why), "{host}");
    }
    terse.end();
}

#[test]
fn a_server_that_is_told_its_name_as_host_changes_nothing() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, " http-send-name-header Host\n");
    settle(&terse, "a.test", "app");
    assert!(origin.requests().iter().all(|request| request.field("Host") == Some("s")));
    terse.end();
}

#[test]
fn what_is_public_is_learned_from_clients_with_cookies() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    for address in ["192.0.2.1", "2001:db8::1", "192.0.2.1", "2001:db8::2"] {
        let told = ask_as(&terse, address, "a.test", "/app.11111111.js", &[("Cookie", "user=1")]);
        assert_eq!(told.field("use-as-dictionary"), Some("match=\"/app.*.js\""));
    }
    settle(&terse, "a.test", "marker");
    assert_eq!(learned(&terse, "a.test", &file("app", 1)), None, "both addresses may be one client's");
    ask_as(&terse, "192.0.2.2", "a.test", "/app.11111111.js", &[("Cookie", "user=2")]);
    until("the dictionary", || learned(&terse, "a.test", &file("app", 1)));
    let figures = |terse: &Terse| learned(terse, "a.test", &file("app", 1)).unwrap()[4].clone();
    ask_as(&terse, "192.0.2.3", "a.test", "/app.11111111.js?query", &[]);
    assert_eq!(figures(&terse), "1", "announced, and known by its validator");
    let proxies = terse.told("show dictionary");
    let web: Vec<&str> = proxies.lines().find(|line| line.starts_with("web frontend ")).unwrap().split(' ').collect();
    assert_eq!(web[2], "8", "{proxies}");
    assert!(terse.told("clear dictionary").starts_with("2 dictionaries"));
    assert_eq!(figures(&terse), "0");
    terse.end();
}

#[test]
fn answers_of_a_cache_and_in_pieces_are_learned() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, " http-request cache-use c\n http-response cache-store c\n");
    settle(&terse, "a.test", "app");
    let asked = origin.requests().iter().filter(|request| request.line.contains("/app.")).count();
    assert_eq!(asked, 1, "the second client's is the cache's");
    settle(&terse, "a.test", "chunked");
    terse.end();
}

#[test]
fn what_cannot_be_kept_is_not_announced() {
    let origin = Origin::start(answer);
    let terse = terse_with(&origin, " tune.dictionary.memory 100k\n", "");
    for address in ["192.0.2.1", "192.0.2.2"] {
        let told = ask_as(&terse, address, "a.test", "/app.11111111.js", &[]);
        assert_eq!((told.status, told.field("use-as-dictionary")), (200, None));
    }
    terse.end();
}

#[test]
fn a_folder_survives_a_restart() {
    let (origin, folder) = (Origin::start(answer), tempfile::TempDir::new().unwrap());
    let global = format!(" dictionary-store {} size 16m\n", folder.path().display());
    let held = available(&file("app", 1));
    let offers = [("Available-Dictionary", &*held)];
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let first = terse_with(&origin, &global, "");
    settle(&first, "a.test", "app");
    until("a file", || (files() == 1).then_some(()));
    first.end();
    let second = terse_with(&origin, &global, "");
    until("the dictionary", || learned(&second, "a.test", &file("app", 1)));
    for (host, why) in [("a.test", "used"), ("b.test", "unknown")] {
        let told = ask_as(&second, "192.0.2.7", host, "/app.22222222.js", &offers);
        assert_eq!(told.field("why"), Some(why), "{host}");
    }
    let shown = second.told("show dictionary");
    assert!(shown.contains(&format!("{} 1 ", folder.path().display())) && shown.trim_end().ends_with(" 0 -"), "{shown}");
    assert!(second.told("clear dictionary auto").starts_with("1 learned"));
    until("no file", || (files() == 0).then_some(()));
    second.end();
    let third = terse_with(&origin, &global, "");
    assert_eq!(ask_as(&third, "192.0.2.7", "a.test", "/app.22222222.js", &offers).field("why"), Some("unknown"));
    third.end();
}

#[test]
fn a_server_with_dictionaries_of_its_own_is_left_alone() {
    let origin = Origin::start(answer);
    let terse = terse(&origin, "");
    let held = available(&file("app", 1));
    settle(&terse, "a.test", "app");
    settle(&terse, "b.test", "app");
    let own = ask_as(&terse, "192.0.2.7", "a.test", "/own.11111111.js", &[]);
    assert_eq!(own.field("use-as-dictionary"), Some("match=\"/own/*\""), "the server's");
    let next = ask_as(&terse, "192.0.2.7", "a.test", "/app.22222222.js", &[("Available-Dictionary", &held)]);
    assert_eq!((next.field("why"), next.field("use-as-dictionary")), (Some("unknown"), None));
    let other = ask_as(&terse, "192.0.2.7", "b.test", "/app.22222222.js", &[("Available-Dictionary", &held)]);
    assert_eq!(other.field("why"), Some("used"), "another host's server has none");
    terse.end();
}
