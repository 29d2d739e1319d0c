//! Backends that come and go while the process runs, over the stats socket.

use crate::support;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use support::server::Server;
use support::{Terse, until};

/// A proxy whose requests choose a backend by a field, with these lines in the defaults of added backends.
fn proxy(defaults: &str, backends: &str) -> Terse {
    let text = format!(
        "global\n nbthread 2\n stats socket fd@${{cli}} level admin\n log stdout format raw local0\ndefaults base\n log global\n mode http\n \
         timeout client 15s\n timeout server 15s\n timeout connect 15s\n timeout queue 15s\n timeout check 15s\n\
         defaults late from base\n {defaults}\ndefaults timeless\n\
         frontend web from base\n bind fd@${{web}}\n option httplog\n force-be-switch if {{ req.hdr(x-admin) 1 }}\n \
         use_backend %[req.hdr(x-be)]\n{backends}\n"
    );
    Terse::with(&text).listen("web").listen("cli").start()
}

/// Requests to a backend that stays see nothing of others that come and go; those find the newcomer once it is published.
#[test]
fn backends_come_and_go_under_requests() {
    let (stays, comes) = (Server::named("stays"), Server::named("comes"));
    let terse = proxy("", &format!(" default_backend stays\nbackend stays from base\n server s {}", stays.address()));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for aims in [false, true] {
            let (terse, done) = (&terse, &done);
            scope.spawn(move || {
                let mut client = terse.client();
                while !done.load(SeqCst) {
                    let field = if aims { "new" } else { "stays" };
                    let response = client.get("/", &[("X-Be", field)]);
                    // A request that chose it just before it went finds no server.
                    assert!(response.status == 200 || (aims && response.status == 503), "{field}: {}", response.status);
                }
            });
        }
        for round in 0..6 {
            let new = [("X-Be", "new")];
            assert_eq!(terse.told("add backend new from late"), "New backend registered.");
            let server = format!("add server new/s {}; enable server new/s", comes.address());
            assert_eq!(terse.told(&server), "New server registered.");
            let mut client = terse.client();
            assert_eq!(client.get("/", &new).text(), "stays", "{round}: it is not published");
            assert_eq!(client.get("/", &[("X-Be", "new"), ("X-Admin", "1")]).text(), "comes");
            assert_eq!(terse.told("publish backend new"), "Backend published.");
            assert_eq!(client.get("/", &new).text(), "comes");
            assert_eq!(terse.told("del backend new"), "Backend must be unpublished prior to its deletion.");
            assert_eq!(terse.told("unpublish backend new"), "Backend unpublished.");
            assert_eq!(terse.told("del backend new"), "Only a backend without server can be deleted.");
            assert_eq!(
                terse.told("disable server new/s; wait 20s srv-removable new/s; del server new/s; wait 20s be-removable new"),
                "\nDone.\n\nServer deleted.\n\nDone."
            );
            assert_eq!(terse.told("del backend new"), "Backend deleted.");
            assert_eq!(client.get("/", &new).text(), "stays");
        }
        done.store(true, SeqCst);
    });
    assert_eq!(terse.told("show backend"), "# name\nstays");
    until("lines of both", || {
        let log = terse.stdout();
        (log.contains(" web new/s ") && log.contains(" web stays/s ")).then_some(())
    });
    terse.end();
}

/// A stream that is on a backend keeps it, and a rule of its defaults holds.
#[test]
fn a_stream_keeps_its_backend() {
    let terse = proxy("http-request wait-for-body time 60s", "");
    assert_eq!(terse.told("add backend new from late; publish backend new"), "New backend registered.\n\nBackend published.");
    let mut client = terse.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nX-Be: new\r\nContent-Length: 3\r\n\r\n");
    until("the request is there", || terse.told("show stat new 2 -1").contains("\nnew,BACKEND,0,0,1,1,").then_some(()));
    terse.told("unpublish backend new");
    let busy = "Backend still has attached streams on it.";
    assert_eq!(terse.told("del backend new"), busy);
    assert_eq!(terse.told("wait 20 be-removable new"), format!("Wait delay expired. {busy}"));
    client.send("abc");
    assert_eq!(client.response("POST").status, 503);
    assert_eq!(terse.told("wait 20s be-removable new"), "Done.");
    assert_eq!(terse.told("del backend new"), "Backend deleted.");
    assert_eq!(terse.told("wait 20 be-removable new"), "Failed. No such backend.");
    assert_eq!(client.get("/", &[("X-Be", "new")]).status, 503);
    terse.end();
}

/// Servers of an added backend are checked as its defaults set, where the configuration has no backend at all.
#[test]
fn servers_of_an_added_backend_are_checked() {
    let mut server = Server::named("checked");
    let terse = proxy("option httpchk GET /alive", "");
    let row = || terse.told("show stat").lines().find(|line| line.starts_with("new,s,")).map(str::to_owned).unwrap_or_default();
    assert_eq!(terse.told("add backend new from late; publish backend new"), "New backend registered.\n\nBackend published.");
    let line = format!("add server new/s {} check inter 10ms rise 1 fall 1", server.address());
    assert_eq!(terse.told(&format!("{line}; enable health new/s; enable server new/s")), "New server registered.");
    until("a check", || row().contains(",L7OK,").then_some(()));
    assert_eq!(terse.client().get("/", &[("X-Be", "new")]).text(), "checked");
    server.kill();
    until("the end of the server", || row().contains(",DOWN,").then_some(()));
    assert!(server.requests().iter().any(|request| request.target == "/alive"));
    terse.end();
}
