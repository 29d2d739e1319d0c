//! Stick tables that processes share: `peers` sections.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::{certificates, support};

use certificates::{Kind, authority, signed};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use support::client::{Client, get};
use support::proxy::DEFAULTS;
use support::server::Server;
use support::{Terse, free_address, program, until};

const TABLE: &str = "table t type string len 32 size 1k expire 1h store gpc0,http_req_cnt,conn_cur,server_key";

/// The process of that name: its section has these lines, and names the other ones with their addresses. It answers with its
/// counters.
fn process(name: &str, own: &TcpListener, others: &[(&str, SocketAddr)], section: &str, sections: &str) -> Terse {
    let others: String = others.iter().map(|(name, address)| format!(" server {name} {address}\n")).collect();
    let text = format!(
        "global\n nbthread 1\n localpeer {name}\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\n\
         peers p\n bind fd@${{own}}\n server {name}\n{others} {section}\n{sections}\n"
    );
    Terse::with(&text).listener("own", own.try_clone().unwrap()).listen("cli").listen("web")
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// Two processes, `a` and `b`, whose sections have these lines.
fn pair(section: &str, sections: [&str; 2]) -> [Terse; 2] {
    let sockets = [listener(), listener()];
    let addresses = [0, 1].map(|end: usize| sockets[end].local_addr().unwrap());
    let a = process("a", &sockets[0], &[("b", addresses[1])], section, sections[0]).start();
    let b = process("b", &sockets[1], &[("a", addresses[0])], section, sections[1]).start();
    [a, b]
}

/// Waits for the line of a key in a table that has all of these texts.
#[track_caller]
fn knows(terse: &Terse, table: &str, key: &str, said: &[&str]) {
    let mut last = String::new();
    until(&format!("{key} in {table} with {said:?}"), || {
        last = terse.command(&format!("show table {table}"));
        let mut lines = last.lines().filter(|line| line.contains(&format!(" key={key} ")));
        lines.any(|line| said.iter().all(|said| line.contains(said))).then_some(())
    });
}

const COUNTED: &str = "frontend web\n bind fd@${web}\n http-request track-sc0 hdr(x-key) table p/t\n \
                       http-request sc-inc-gpc0(0)\n http-request return status 200 hdr Count %[sc0_get_gpc0]";

/// Counts of one process are known at the other one, which counts on from them.
#[test]
fn counters_are_shared() {
    let ends = pair(TABLE, [COUNTED, COUNTED]);
    // A peer that is asked for everything sends older updates, too: they may be older than the counts made meanwhile.
    let complete = |end: &Terse| end.command("show peers").contains("lesson: complete");
    until("the end of the lessons", || ends.iter().all(complete).then_some(()));
    let count = |end: &Terse| {
        let mut client = end.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Key: k\r\n\r\n");
        client.response("GET").field("count").unwrap().to_owned()
    };
    assert_eq!((count(&ends[0]), count(&ends[0])), ("1".into(), "2".into()));
    knows(&ends[1], "p/t", "k", &["gpc0=2", "http_req_cnt=2", "conn_cur=0"]);
    assert_eq!(count(&ends[1]), "3");
    knows(&ends[0], "p/t", "k", &["gpc0=3", "http_req_cnt=3", "conn_cur=0"]);
    for end in &ends {
        assert_eq!((end.info("ActivePeers"), end.info("ConnectedPeers")), (1, 1));
        assert!(end.command("show peers p").contains("connected=1"));
    }
    ends.into_iter().for_each(Terse::end);
}

/// A client keeps its server whatever process it comes to: known by its name, or by its address where names are others.
#[test]
fn clients_keep_their_servers() {
    let servers = [Server::body("one"), Server::body("two")];
    let [one, two] = [0, 1].map(|index: usize| servers[index].address());
    for (words, names) in [("", ["s1", "s2"]), (" srvkey addr", ["x", "y"])] {
        let web = |first: String, second: String| {
            format!(
                "listen web\n bind fd@${{web}}\n balance roundrobin\n stick on url_param(c) table p/t\n server {first}\n server {second}"
            )
        };
        let table = format!("table t type string size 1k{words}");
        let at_b = [format!("{} {two}", names[1]), format!("{} {one}", names[0])];
        let [first, second] = at_b;
        let ends = pair(&table, [&web(format!("s1 {one}"), format!("s2 {two}")), &web(first, second)]);
        let text = |end: &Terse, key: &str| get(end.address("web"), &format!("/?c={key}")).text();
        for (key, body) in [("k1", "one"), ("k2", "two"), ("k3", "one")] {
            assert_eq!(text(&ends[0], key), body);
            knows(&ends[1], "p/t", key, &["server_key="]);
        }
        for (key, body) in [("k1", "one"), ("k3", "one"), ("k2", "two"), ("k2", "two"), ("k1", "one")] {
            assert_eq!(text(&ends[1], key), body, "{words} {key}");
        }
        ends.into_iter().for_each(Terse::end);
    }
}

/// A process that starts later, or again, learns the entries that were there before.
#[test]
fn a_process_that_starts_is_told_all() {
    let sockets = [listener(), listener()];
    let addresses = [0, 1].map(|end: usize| sockets[end].local_addr().unwrap());
    let table = "backend own\n stick-table type string size 1k store gpc0 peers p";
    let a = process("a", &sockets[0], &[("b", addresses[1])], TABLE, table).start();
    for n in 0..500 {
        a.command(&format!("set table own key k{n} data.gpc0 {n}"));
    }
    a.command("set table p/t key k data.gpc0 1");
    for _ in 0..2 {
        let b = process("b", &sockets[1], &[("a", addresses[0])], TABLE, table).start();
        knows(&b, "p/t", "k", &["gpc0=1"]);
        until("all of them", || b.command("show table own").contains("used:500").then_some(()));
        knows(&b, "own", "k499", &["gpc0=499"]);
        until("the end of the lesson", || b.command("show peers").contains("lesson: complete").then_some(()));
        b.end();
    }
    a.end();
}

/// The process that replaces another one learns from it.
#[test]
fn a_reload_loses_nothing() {
    let (peers, web) = (free_address(), free_address());
    let text = format!(
        "global\n nbthread 1\n localpeer a\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\n\
         peers p\n peer a {peers}\n {TABLE}\nfrontend web\n bind {web}\n http-request return status 200\n"
    );
    let old = Terse::with(&text).listen("cli").start();
    until("the first process", || TcpStream::connect(web).ok());
    for n in 0..300 {
        old.command(&format!("set table p/t key k{n} data.gpc0 {n}"));
    }
    let pid = old.pid().as_raw_nonzero().to_string();
    let new = Terse::with(&text).listen("cli").arg(&["-sf", &pid]).start();
    old.wait().expect(0);
    until("all of them", || new.command("show table p/t").contains("used:300").then_some(()));
    knows(&new, "p/t", "k299", &["gpc0=299"]);
    assert!(new.command("show peers").contains("lesson: complete"));
    new.end();
}

/// A peer's updates of a table are written to another one, except for what rules count there.
#[test]
fn another_table_is_written_to() {
    let section = "table t type string size 1k store gpc0,gpt0 write-to aside";
    let aside = "backend aside\n stick-table type string size 1k store gpc0,gpt0";
    let ends = pair(section, [aside, aside]);
    ends[0].command("set table p/t key k data.gpc0 7 data.gpt0 3");
    knows(&ends[1], "p/t", "k", &["gpt0=3", "gpc0=7"]);
    knows(&ends[1], "aside", "k", &["gpt0=3", "gpc0=0"]);
    ends.into_iter().for_each(Terse::end);
}

/// Tables of which others tell only tell how many connections those have.
#[test]
fn current_connections_are_learnt_by_request_only() {
    let section = "table t type string size 1k store conn_cur\n table r type string size 1k recv-only store conn_cur";
    let ends = pair(section, ["", ""]);
    for table in ["t", "r"] {
        ends[0].command(&format!("set table p/{table} key k data.conn_cur 4"));
    }
    knows(&ends[1], "p/r", "k", &["conn_cur=4"]);
    knows(&ends[1], "p/t", "k", &["conn_cur=0"]);
    ends.into_iter().for_each(Terse::end);
}

/// Each peer is sent its part alone.
#[test]
fn tables_are_dealt_out() {
    let sockets = [listener(), listener(), listener()];
    let addresses = [0, 1, 2].map(|end: usize| sockets[end].local_addr().unwrap());
    let table = "table t type string size 1k store gpc0\n table marks type string size 9 store gpc0";
    let others = format!("server b {} shard 1\n server c {} shard 2\n shards 2\n {table}", addresses[1], addresses[2]);
    let a = process("a", &sockets[0], &[], &others, "").start();
    let [b, c] = [("b", 1), ("c", 2)].map(|(name, end)| process(name, &sockets[end], &[("a", addresses[0])], table, "").start());
    (0..100).for_each(|n| drop(a.command(&format!("set table p/t key k{n} data.gpc0 1"))));
    let keys = |terse: &Terse| {
        let text = terse.command("show table p/t");
        text.lines().filter_map(|line| Some(line.split_once(" key=")?.1.split(' ').next()?.to_owned())).collect::<Vec<_>>()
    };
    until("all parts", || (keys(&b).len() + keys(&c).len() == 100).then_some(()));
    let (of_b, of_c) = (keys(&b), keys(&c));
    assert!(!of_b.is_empty() && !of_c.is_empty() && of_b.iter().all(|key| !of_c.contains(key)));
    [a, b, c].into_iter().for_each(Terse::end);
}

/// Between two processes with TLS, each of which knows the other one's certificate.
#[test]
fn tables_are_shared_over_tls() {
    let root = authority("root");
    let sockets = [listener(), listener()];
    let addresses = [0, 1].map(|end: usize| sockets[end].local_addr().unwrap());
    let start = |name: &str, own: usize, other: &str| {
        let text = format!(
            "global\n nbthread 1\n localpeer {name}\n stats socket fd@${{cli}} level admin\n{DEFAULTS}\npeers p\n \
             default-server ssl ca-file root.pem crt own.pem verifyhost {other}\n \
             bind fd@${{own}} ssl crt own.pem ca-file root.pem verify required\n server {name}\n server {other} {}\n {TABLE}\n",
            addresses[1 - own]
        );
        let pem = signed(Kind::Ecdsa, &[name], &root).pem();
        let terse = Terse::with(&text).file("own.pem", pem).file("root.pem", root.certificate_pem());
        terse.listener("own", sockets[own].try_clone().unwrap()).listen("cli").start()
    };
    let ends = [start("a", 0, "b"), start("b", 1, "a")];
    ends[0].command("set table p/t key k data.gpc0 3");
    knows(&ends[1], "p/t", "k", &["gpc0=3"]);
    ends[1].command("set table p/t key l data.gpc0 4");
    knows(&ends[0], "p/t", "l", &["gpc0=4"]);
    ends.into_iter().for_each(Terse::end);
}

/// A client that is not of the section, or speaks another protocol, is told so and goes.
#[test]
fn strangers_are_refused() {
    let own = listener();
    let terse = process("a", &own, &[("b", free_address())], TABLE, "").start();
    for (said, answer) in [
        ("HAProxyS 2.1\nc\nb 1 1\n", "503\n"),
        ("HAProxyS 2.1\na\nc 1 1\n", "504\n"),
        // The process before: there was none.
        ("HAProxyS 2.1\na\na 1 1\n", "300\n"),
        ("HAProxyS 1.0\na\nb 1 1\n", "502\n"),
        ("GET / HTTP/1.1\r\n\r\n", "501\n"),
        // A peer of the section, which then sends nonsense: the updates that wait for the peer go before that is noticed.
        ("HAProxyS 2.1\na\nb 1 1\n\n\u{80}\u{80}", "200\n"),
    ] {
        let mut stream = TcpStream::connect(own.local_addr().unwrap()).unwrap();
        stream.write_all(said.as_bytes()).unwrap();
        let mut told = Vec::new();
        let _ = stream.set_read_timeout(Some(support::PATIENCE));
        // Bytes that were not read may reset the connection.
        let _ = stream.read_to_end(&mut told);
        assert!(told.starts_with(answer.as_bytes()), "{said:?}: {told:?}");
    }
    terse.end();
}

/// A later connection of the same peer replaces the one before.
#[test]
fn a_peer_has_one_connection() {
    let own = listener();
    let terse = process("a", &own, &[("b", free_address())], TABLE, "").start();
    let connect = || {
        let mut client = Client::connect(own.local_addr().unwrap());
        client.send("HAProxyS 2.1\na\nb 1 1\n");
        let mut status = [0; 4];
        client.stream().read_exact(&mut status).unwrap();
        assert_eq!(&status, b"200\n");
        client
    };
    let mut first = connect();
    let _second = connect();
    // It ends, after its last message.
    first.rest();
    assert_eq!(terse.info("ConnectedPeers"), 1);
    terse.end();
}

/// With a HAProxy at the other end, in either order of connecting.
#[test]
fn tables_are_shared_with_haproxy() {
    let Some(haproxy) = program::find("haproxy") else { return };
    const TABLES: &str = "table t type string size 1k expire 1h store gpc0,gpt0,conn_rate(50s),bytes_in_cnt,server_key\n \
                          table n type ip size 1k store gpc(3),gpc_rate(2,60s),gpt(2)";
    let configuration = |name: &str, addresses: [SocketAddr; 2]| {
        format!(
            "global\n localpeer {name}\n stats socket \"fd@${{cli}}\" level admin\n{DEFAULTS}\npeers p\n peer a {}\n peer b {}\n \
             {TABLES}\nfrontend web\n bind \"fd@${{web}}\"\n",
            addresses[0], addresses[1]
        )
    };
    for order in [[false, true], [true, false]] {
        let addresses = [free_address(), free_address()];
        let start = |index: usize| {
            let terse = Terse::with(&configuration(["a", "b"][index], addresses)).listen("cli").listen("web");
            let terse = if order[index] { terse.program(&haproxy).arg(&["-db"]) } else { terse };
            terse.start()
        };
        let a = start(0);
        a.command("set table p/t key early data.gpc0 5 data.gpt0 6 data.conn_rate 7 data.bytes_in_cnt 1000000000000");
        let b = start(1);
        let text = ["gpc0=5", "gpt0=6", "conn_rate(50000)=7", "bytes_in_cnt=1000000000000"];
        knows(&b, "p/t", "early", &text);
        b.command("set table p/t key later data.gpc0 300");
        knows(&a, "p/t", "later", &["gpc0=300"]);
        // HAProxy's commands of that version do not set counters by number.
        let (ours, theirs) = if order[0] { (&b, &a) } else { (&a, &b) };
        ours.command("set table p/n key 10.0.0.1 data.gpc1 70000 data.gpt1 8 data.gpc1_rate 9");
        knows(theirs, "p/n", "10.0.0.1", &["gpc1=70000", "gpt1=8", "gpc1_rate(60000)=9"]);
        let (ours, theirs) = if order[0] { (b, a) } else { (a, b) };
        drop(theirs);
        ours.end();
    }
}
