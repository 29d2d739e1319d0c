//! Servers that come and go while the process runs, over the stats socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use support::proxy::DEFAULTS;
use support::server::{Port, Request, Server, ok};
use support::{Terse, until};

/// A proxy of these backend lines, with a stats socket.
fn proxy(lines: &str) -> Terse {
    let text = format!(
        "global\n nbthread 2\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n default_backend b\n\
         backend b\n{lines}\n"
    );
    Terse::with(&text).listen("web").listen("cli").start()
}

/// OpenSSL's list of methods must not change while connections look at it.
#[test]
fn a_newcomer_compresses_records_only_where_the_configuration_has_asked_for_it() {
    let terse = proxy(" server s 127.0.0.1:1");
    let said = terse.told("add server b/x 127.0.0.1:1 ssl verify none ssl-max-ver TLSv1.2 tls-compression allow");
    assert!(said.contains("'tls-compression allow': only where a line of the configuration says so, too"), "{said}");
    assert_eq!(terse.told("add server b/x 127.0.0.1:1 ssl verify none ssl-max-ver TLSv1.2"), "New server registered.");
}

/// No request fails while servers come and go; a deleted one's connections go, and the next of its name is another one.
#[test]
fn servers_come_and_go_under_requests() {
    let (stays, first, second) = (Server::named("stays"), Server::named("first"), Server::named("second"));
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
            assert_eq!(terse.told(&format!("add server b/new {}", server.address())), "New server registered.");
            assert_eq!(terse.told("enable server b/new"), "");
            let mut client = terse.client();
            let other = until("an answer of the newcomer", || Some(client.get("/", &[]).text()).filter(|text| text != "stays"));
            assert_eq!(other, answer);
            assert_eq!(terse.told("del server b/new"), "Only servers in maintenance mode can be deleted.");
            assert_eq!(
                terse.told("disable server b/new; wait 20s srv-removable b/new; del server b/new"),
                "\nDone.\n\nServer deleted."
            );
        }
        done.store(true, SeqCst);
    });
    let state = terse.told("show servers state b");
    assert_eq!(state.lines().count(), 3, "{state}");
    terse.end();
}

/// Clients stay at a server that gets another name, and its figures have that name.
#[test]
fn a_renamed_server_keeps_its_clients() {
    let name_told = |request: &Request| ok(request.field("x-name").unwrap_or_default());
    let (one, two) = (Server::answering(name_told), Server::answering(name_told));
    let servers = format!(" server one {} cookie 1\n server two {} cookie 2", one.address(), two.address());
    let terse = proxy(&format!(" cookie C insert\n http-send-name-header X-Name\n{servers}"));
    let mut client = terse.client();
    let mut get = |value: &str| client.get("/", &[("Cookie", &format!("C={value}"))]).text();
    assert_eq!((get("1"), get("2")), ("one".into(), "two".into()));
    assert_eq!(terse.told("disable server b/one; set server b/one name blue; enable server b/blue"), "\nServer name updated.");
    assert_eq!((get("1"), get("2")), ("blue".into(), "two".into()));
    let table = terse.told("show stat");
    assert!(table.contains("\nb,blue,") && !table.contains("\nb,one,"), "{table}");
    assert_eq!(terse.told("set weight b/one 1"), "No such server.");
    terse.end();
}

/// A server with a request is not removed; the command `wait` returns when it can be.
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
    until("the request is there", || terse.told("show stat b 4 -1").contains(",1,1,,1,").then_some(()));
    assert_eq!(terse.told("disable server b/s"), "");
    let busy = "Server still has connections attached to it, cannot remove it.";
    assert_eq!(terse.told("del server b/s"), busy);
    assert_eq!(terse.told("wait 20 srv-removable b/s"), format!("Wait delay expired. {busy}"));
    go.send(()).unwrap();
    assert_eq!(client.response("GET").text(), "held");
    assert_eq!(terse.told("wait 20s srv-removable b/s"), "Done.");
    assert_eq!(terse.told("del server b/s"), "Server deleted.");
    assert_eq!(client.get("/", &[]).status, 503);
    drop(client);
    terse.end();
}

/// Output of `show servers state` is the input of the next process; a file in another form is reported and ignored.
#[test]
fn states_survive_the_process() {
    let (down, up) = (Server::named("down"), Server::named("up"));
    let lines = format!(" server a {}\n server b {}\n", down.address(), up.address());
    let start = |global: &str, keyword: &str| {
        let text = format!(
            "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n{global}\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n \
             default_backend b\nbackend b\n{keyword}\n{lines}"
        );
        Terse::with(&text).listen("web").listen("cli")
    };
    let first = start("", "").start();
    first.told("disable server b/a; set weight b/b 0");
    let states = first.told("show servers state") + "\n";
    first.end();
    let base = " server-state-base \"${dir}\"\n server-state-file all";
    for (keyword, file) in [("load-server-state-from-file global", "all"), ("load-server-state-from-file local", "b")] {
        let next = start(base, &format!(" {keyword}")).file(file, &states).start();
        let now = next.told("show servers state b");
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

/// A cookie of a server that has gone leads nowhere else than balancing does, unless another server has its value by then.
#[test]
fn cookies_of_a_server_that_went() {
    let (old, new) = (Server::named("old"), Server::named("new"));
    let terse = proxy(&format!(" cookie SRV insert indirect\n server keep {} cookie keep", new.address()));
    let newcomer = |name: &str, cookie: &str| {
        terse.told(&format!("add server b/{name} {} cookie {cookie}", old.address()));
        terse.told(&format!("set weight b/{name} 0; enable server b/{name}"));
    };
    let leave = |name: &str| terse.told(&format!("disable server b/{name}; wait 20s srv-removable b/{name}; del server b/{name}"));
    let ask = |cookie: &str| terse.client().get("/", &[("Cookie", cookie)]);
    newcomer("x", "x");
    assert_eq!(ask("SRV=x").text(), "old");
    leave("x");
    let answer = ask("SRV=x");
    assert_eq!((answer.text().as_str(), answer.field("set-cookie")), ("new", Some("SRV=keep; path=/")));
    newcomer("x", "y");
    assert_eq!(ask("SRV=x").text(), "new", "its name is nothing to a cookie");
    leave("x");
    newcomer("z", "x");
    assert_eq!(ask("SRV=x").text(), "old");
    terse.end();
}

/// A stick table's entry of a server that has gone leads to the server with its name by then, not to the server with its number.
#[test]
fn entries_of_a_server_that_went() {
    let (keep, other) = (Server::named("keep"), Server::named("other"));
    let terse = proxy(&format!(" stick-table type string size 100 expire 1m\n stick on hdr(key)\n server keep {}", keep.address()));
    let newcomer = |name: &str| {
        terse.told(&format!("add server b/{name} {} id 77", other.address()));
        terse.told(&format!("set weight b/{name} 0; enable server b/{name}"));
    };
    let leave = |name: &str| terse.told(&format!("disable server b/{name}; wait 20s srv-removable b/{name}; del server b/{name}"));
    let ask = |key: &str| terse.client().get("/", &[("Key", key)]).text();
    newcomer("x");
    terse.told("set weight b/x 1; disable server b/keep");
    assert_eq!([ask("one"), ask("two")], ["other"; 2]);
    terse.told("enable server b/keep; set weight b/x 0");
    assert_eq!(ask("one"), "other");
    terse.told("disable server b/x; set server b/x name renamed; enable server b/renamed");
    assert_eq!(ask("two"), "other", "the same server");
    leave("renamed");
    newcomer("y");
    assert_eq!(ask("one"), "keep");
    leave("y");
    newcomer("renamed");
    assert_eq!(ask("two"), "other");
    terse.end();
}

/// A request that waits to try its server again goes to another one when that is deleted.
#[test]
fn a_request_outlives_its_server() {
    let (port, keep) = (Port::new(), Server::named("keep"));
    let terse = proxy(&format!(
        " retries 100\n no option redispatch\n cookie SRV\n server keep {} cookie keep\n server x {} cookie x",
        keep.address(),
        port.address()
    ));
    let mut client = terse.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nCookie: SRV=x\r\n\r\n");
    until("it is tried again", || {
        let text = terse.told("show stat b 4 -1 typed");
        text.lines().any(|line| line.contains(".wretr.") && !line.ends_with(":0")).then_some(())
    });
    let deleted = terse.told("disable server b/x; wait 20s srv-removable b/x; del server b/x");
    assert!(deleted.ends_with("Server deleted."), "{deleted}");
    assert_eq!(client.response("GET").text(), "keep");
    terse.end();
}

/// The backend's counts of a server stay when that goes, and no two objects share a name of statistics.
#[test]
fn statistics_outlive_servers() {
    let server = Server::named("any");
    let terse = proxy(&format!(" server s {} guid one", server.address()));
    let add = |guid: &str| terse.told(&format!("add server b/x {} guid {guid}", server.address()));
    assert_eq!(add("one"), "'guid' : 'one' names something else already.");
    assert_eq!(add("two"), "New server registered.");
    (0..3).for_each(|_| assert_eq!(terse.client().get("/", &[]).text(), "any"));
    let balanced = || terse.told("show stat b 2 -1 typed").lines().find(|line| line.contains(".lbtot.")).unwrap().to_owned();
    until("three are counted", || balanced().ends_with(":3").then_some(()));
    terse.told("disable server b/s; wait 20s srv-removable b/s; del server b/s");
    assert!(balanced().ends_with(":3"));
    terse.end();
}
