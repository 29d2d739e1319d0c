//! Servers that come and go while the process runs, over the stats socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use support::client::Client;
use support::proxy::DEFAULTS;
use support::server::{Request, Server, ok};
use support::{Terse, until};

/// A proxy of these backend lines, with a stats socket.
fn proxy(lines: &str) -> Terse {
    let text = format!(
        "global\n nbthread 2\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n default_backend b\n\
         backend b\n{lines}\n"
    );
    Terse::with(&text).listen("web").listen("cli").start()
}

fn admin(terse: &Terse, command: &str) -> String {
    let mut client = Client::connect(terse.address("cli"));
    client.send(format!("{command}\n"));
    String::from_utf8(client.rest()).unwrap().trim_end().to_owned()
}

fn named(name: &'static str) -> Server {
    Server::answering(move |_| ok(name))
}

/// OpenSSL's list of methods must not change while connections look at it.
#[test]
fn a_newcomer_compresses_records_only_where_the_configuration_has_asked_for_it() {
    let terse = proxy(" server s 127.0.0.1:1");
    let said = admin(&terse, "add server b/x 127.0.0.1:1 ssl verify none ssl-max-ver TLSv1.2 tls-compression allow");
    assert!(said.contains("'tls-compression allow': only where a line of the configuration says so, too"), "{said}");
    assert_eq!(admin(&terse, "add server b/x 127.0.0.1:1 ssl verify none ssl-max-ver TLSv1.2"), "New server registered.");
}

/// No request fails while servers come and go; a deleted one's connections go, and the next of its name is another one.
#[test]
fn servers_come_and_go_under_requests() {
    let (stays, first, second) = (named("stays"), named("first"), named("second"));
    let terse = proxy(&format!(" http-reuse always\n server s {}", stays.address()));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = terse.client();
                while !done.load(SeqCst) {
                    assert_eq!(client.get("/", &[]).status, 200);
                }
            });
        }
        for (round, server) in [&first, &second, &first, &second].into_iter().enumerate() {
            let answer = if round % 2 == 0 { "first" } else { "second" };
            assert_eq!(admin(&terse, &format!("add server b/new {}", server.address())), "New server registered.");
            assert_eq!(admin(&terse, "enable server b/new"), "");
            let mut client = terse.client();
            let other = until("an answer of the newcomer", || Some(client.get("/", &[]).text()).filter(|text| text != "stays"));
            assert_eq!(other, answer);
            assert_eq!(admin(&terse, "del server b/new"), "Only servers in maintenance mode can be deleted.");
            assert_eq!(
                admin(&terse, "disable server b/new; wait 20s srv-removable b/new; del server b/new"),
                "\nDone.\n\nServer deleted."
            );
        }
        done.store(true, SeqCst);
    });
    let state = admin(&terse, "show servers state b");
    assert_eq!(state.lines().count(), 3, "{state}");
    terse.end();
}

/// Clients stay at a server that gets another name, and what is told of it has that name.
#[test]
fn a_renamed_server_keeps_its_clients() {
    let name_told = |request: &Request| ok(request.field("x-name").unwrap_or_default());
    let (one, two) = (Server::answering(name_told), Server::answering(name_told));
    let servers = format!(" server one {} cookie 1\n server two {} cookie 2", one.address(), two.address());
    let terse = proxy(&format!(" cookie C insert\n http-send-name-header X-Name\n{servers}"));
    let mut client = terse.client();
    let mut get = |value: &str| client.get("/", &[("Cookie", &format!("C={value}"))]).text();
    assert_eq!((get("1"), get("2")), ("one".into(), "two".into()));
    assert_eq!(admin(&terse, "disable server b/one; set server b/one name blue; enable server b/blue"), "\nServer name updated.");
    assert_eq!((get("1"), get("2")), ("blue".into(), "two".into()));
    let table = admin(&terse, "show stat");
    assert!(table.contains("\nb,blue,") && !table.contains("\nb,one,"), "{table}");
    assert_eq!(admin(&terse, "set weight b/one 1"), "No such server.");
    terse.end();
}

/// A server that a request is on is not removed; waiting says when it is.
#[test]
fn a_request_keeps_its_server() {
    let (go, wait) = channel();
    let wait = Mutex::new(wait);
    let held = Server::answering(move |_| {
        let _ = wait.lock().unwrap().recv();
        ok("held")
    });
    let terse = proxy(&format!(" server s {}", held.address()));
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until("the request is there", || admin(&terse, "show stat b 4 -1").contains(",1,1,,1,").then_some(()));
    assert_eq!(admin(&terse, "disable server b/s"), "");
    let busy = "Server still has connections attached to it, cannot remove it.";
    assert_eq!(admin(&terse, "del server b/s"), busy);
    assert_eq!(admin(&terse, "wait 20 srv-removable b/s"), format!("Wait delay expired. {busy}"));
    go.send(()).unwrap();
    assert_eq!(client.response("GET").text(), "held");
    assert_eq!(admin(&terse, "wait 20s srv-removable b/s"), "Done.");
    assert_eq!(admin(&terse, "del server b/s"), "Server deleted.");
    assert_eq!(client.get("/", &[]).status, 503);
    drop(client);
    terse.end();
}

/// What `show servers state` prints is what the next process starts with; what is no such file is said and counts for nothing.
#[test]
fn states_survive_the_process() {
    let (down, up) = (named("down"), named("up"));
    let lines = format!(" server a {}\n server b {}\n", down.address(), up.address());
    let start = |global: &str, keyword: &str| {
        let text = format!(
            "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{global}\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n \
             default_backend b\nbackend b\n{keyword}\n{lines}"
        );
        Terse::with(&text).listen("web").listen("cli")
    };
    let first = start("", "").start();
    admin(&first, "disable server b/a; set weight b/b 0");
    let states = admin(&first, "show servers state") + "\n";
    first.end();
    let base = " server-state-base \"${dir}\"\n server-state-file all";
    for (keyword, file) in [("load-server-state-from-file global", "all"), ("load-server-state-from-file local", "b")] {
        let next = start(base, &format!(" {keyword}")).file(file, &states).start();
        let now = admin(&next, "show servers state b");
        let columns = |text: &str| {
            text.lines()
                .skip(2)
                .map(|line| line.split(' ').skip(3).take(6).map(str::to_owned).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        assert_eq!(columns(&now), columns(&states), "{keyword}");
        assert_eq!(next.client().get("/", &[]).status, 503, "{keyword}");
        next.end();
    }
    let next = start(base, " load-server-state-from-file global").file("all", "what\n").start();
    until("the warning", || next.stderr().contains("'what' is no version of a file of states").then_some(()));
    assert_eq!(next.client().get("/", &[]).status, 200);
    next.end();
}

/// A cookie of a server that has gone leads nowhere else than balancing does, also once another server has its name.
#[test]
fn cookies_of_a_server_that_went() {
    let (old, new) = (named("old"), named("new"));
    let terse = proxy(&format!(" cookie SRV insert indirect\n server keep {} cookie keep", new.address()));
    admin(&terse, &format!("add server b/x {} cookie x", old.address()));
    admin(&terse, "enable server b/x");
    let ask = |cookie: &str| terse.client().get("/", &[("Cookie", cookie)]);
    assert_eq!(ask("SRV=x").text(), "old");
    admin(&terse, "disable server b/x; wait 20s srv-removable b/x; del server b/x");
    let answer = ask("SRV=x");
    assert_eq!((answer.text().as_str(), answer.field("set-cookie")), ("new", Some("SRV=keep; path=/")));
    terse.end();
}
