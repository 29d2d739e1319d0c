//! Variables in a process: their limits of memory, their ends, and the stats socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use support::proxy::DEFAULTS;
use support::{Terse, until};

fn start(global: &str, rules: &str) -> Terse {
    let socket = "stats socket \"${dir}/stats\" level admin";
    let text = format!("global\n nbthread 1\n {socket}\n {global}\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n{rules}\n");
    Terse::with(&text).listen("web").start()
}

fn says(terse: &Terse, line: &str) -> String {
    let mut socket = until("the stats socket", || UnixStream::connect(terse.path("stats")).ok());
    socket.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// Memory of ended transactions is free again, so a connection can carry any number of them.
#[test]
fn memory_is_counted_and_given_back() {
    let rules = " http-request set-var(txn.a) req.hdr(a)\n http-request set-var(req.b) req.hdr(b)\n \
                 http-request return status 200 hdr a \"%[var(txn.a,none)]\" hdr b \"%[var(req.b,none)]\"";
    let terse = start("tune.vars.sess-max-size 400\n tune.vars.reqres-max-size 100", rules);
    let mut client = terse.client();
    let (long, longer) = ("x".repeat(200), "x".repeat(320));
    for _ in 0..20 {
        for (a, b, told) in [
            ("one", "two", ["one", "two"]),
            ("one", "thirteen bytes", ["one", "none"]),
            (&*long, "two", [&*long, "two"]),
            (&*longer, "two", ["none", "two"]),
        ] {
            let response = client.get("/", &[("a", a), ("b", b)]);
            assert_eq!([response.field("a"), response.field("b")], told.map(Some));
        }
    }
    terse.end();
}

#[test]
fn requests_variables_end_with_the_request() {
    let rules = " http-request set-var(req.a) str(here)\n http-request set-var(txn.a) str(here)\n http-request return status 200\n \
                 http-after-response set-header a \"%[var(req.a,none)] %[var(txn.a,none)]\"\n \
                 http-after-response set-var(res.a) str(here)\n http-after-response set-header all %[dump_all_vars]";
    let terse = start("", rules);
    let response = terse.client().get("/", &[]);
    assert_eq!(response.field("a").map(str::trim), Some("here"));
    assert_eq!(response.field("all"), Some("txn.a=\"here\", res.a=\"here\""));
    terse.end();
}

#[test]
fn the_stats_socket_sets_what_rules_read() {
    let rules = " http-request return status 200 hdr a %[var(proc.a)]";
    let terse = start("set-var proc.a int(5)", rules);
    assert_eq!(says(&terse, "get var proc.a"), "proc.a: type=sint value=<5>\n\n");
    assert_eq!(terse.client().get("/", &[]).field("a"), Some("5"));
    assert_eq!(says(&terse, "experimental-mode on; set var proc.a fmt %[var(proc.a)]%[var(proc.a)]"), "\n\n");
    assert_eq!(terse.client().get("/", &[]).field("a"), Some("55"));
    assert_eq!(says(&terse, "get var proc.b"), "Variable not found.\n\n");
    assert_eq!(
        says(&terse, "experimental-mode on; set var proc.b str(late); get var proc.b"),
        "\n\nproc.b: type=str value=<late>\n\n"
    );
    terse.end();
}
