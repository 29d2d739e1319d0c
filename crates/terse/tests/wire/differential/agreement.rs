//! Values that two balancers must agree on, since both may stand before the same servers. They are hashes of keys, dynamic cookies,
//! numbers of servers, keys of tables, and limits that a file does not set. Thousands of inputs, empty and odd ones among them.

use super::certificates::{Kind, authority, signed};
use super::figures::{command, of};
use super::support::client::Client;
use super::support::program::find;
use super::support::proxy::DEFAULTS;
use super::support::random::Random;
use super::support::{PATIENCE, Terse};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::path::Path;

/// Runs the same through HAProxy and terse; nothing where HAProxy is not installed.
#[track_caller]
fn agree(text: &str, ask: impl Fn(&Terse) -> Vec<String>) {
    agree_with(text, &[], ask);
}

/// The same with arguments of the command line.
#[track_caller]
fn agree_with(text: &str, arguments: &[&str], ask: impl Fn(&Terse) -> Vec<String>) {
    let Some(haproxy) = find("haproxy") else { return };
    let run = |program: Option<&Path>| {
        let origin = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = origin.local_addr().unwrap().to_string();
        rustix::net::listen(&origin, 4096).unwrap();
        let text = text.replace("{there}", &address);
        let process = Terse::with(&text).listen("web").listen("cli").listener("origin", origin).arg(&["-db"]).arg(arguments);
        let process = match program {
            Some(path) => process.program(path),
            None => process,
        };
        let process = process.start();
        let said = ask(&process);
        drop(process);
        said
    };
    let (theirs, ours) = (run(Some(&haproxy)), run(None));
    assert_eq!(theirs.len(), ours.len());
    let differ: Vec<_> = theirs.iter().zip(&ours).filter(|(theirs, ours)| theirs != ours).collect();
    assert!(
        differ.is_empty(),
        "{} of {} differ (haproxy, terse): {:#?}",
        differ.len(),
        ours.len(),
        &differ[..differ.len().min(10)]
    );
}

/// A process with a stats socket, an origin of its own that answers everything, and these sections.
fn text(global: &str, sections: &str) -> String {
    format!(
        "global\n nbthread 1\n stats socket fd@${{cli}} level admin\n {global}\n{DEFAULTS}\nlisten origin\n bind fd@${{origin}}\n \
         http-request return status 200\n{sections}\n"
    )
}

/// Keys of requests: odd ones, and so many random ones that unforeseen keys are among them.
fn keys(count: usize) -> Vec<String> {
    let odd =
        ["0", "-1", "1", "4294967296", "00", "a", "A", "a b", "a\tb", "\"q\"", "a,b", "=", ";", "%41", "caf\u{e9}", "\u{1f600}"];
    let mut random = Random::new(7);
    let made = (0..count).map(|_| {
        let length = 1 + random.below(40);
        (0..length).map(|_| char::from(b'!' + random.below(94) as u8)).collect()
    });
    odd.iter().map(|key| (*key).to_owned()).chain(["x".repeat(1000)]).chain(made).collect()
}

/// Returns the value of `x-server` in the response to each request; the requests are sent in lots, each over one connection.
fn servers_of(process: &Terse, requests: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for lot in requests.chunks(50) {
        let mut client = Client::connect(process.address("web"));
        client.send(lot.concat());
        for request in lot {
            let response = client.response("GET");
            found.push(format!("{request}: {} {:?}", response.status, response.field("x-server")));
        }
    }
    found
}

const FRONT: &str = "frontend web\n bind fd@${web}\n use_backend %[req.hdr(x-backend)]\n";
const WEIGHED: &str = " http-response set-header x-server %s\n server a {there} weight 1\n server b {there} weight 50 id 7\n \
                       server c {there} weight 20 id 4000\n server d {there} weight 256\n";

#[test]
fn keys_lead_to_the_same_servers() {
    let (mut sections, mut requests) = (FRONT.to_owned(), Vec::new());
    for (number, words) in
        ["sdbm", "djb2", "wt6", "crc32"].iter().flat_map(|function| ["", " avalanche"].map(|mix| (function, mix))).enumerate()
    {
        for kind in ["map-based", "consistent"] {
            let (function, mix) = words;
            let _ = write!(sections, "backend {kind}{number}\n balance hdr(x-key)\n hash-type {kind} {function}{mix}\n{WEIGHED}");
            let request = |key: &String| format!("GET / HTTP/1.1\r\nHost: h\r\nX-Backend: {kind}{number}\r\nX-Key: {key}\r\n\r\n");
            requests.extend(keys(60).iter().map(request));
        }
    }
    agree(&text("maxconn 200", &sections), |process| servers_of(process, &requests));
}

#[test]
fn parts_of_requests_lead_to_the_same_servers() {
    let (mut sections, mut requests) = (FRONT.to_owned(), Vec::new());
    let mut random = Random::new(11);
    let keys = [
        "uri",
        "uri whole",
        "uri len 9",
        "uri depth 2",
        "uri len 12 depth 1",
        "uri path-only",
        "uri path-only whole",
        "hdr(host)",
        "hdr(host) use_domain_only",
        "source",
    ];
    for (number, key) in keys.iter().enumerate() {
        for kind in ["map-based", "consistent"] {
            let _ = write!(
                sections,
                "backend {kind}{number}\n balance {key}\n http-request set-src req.hdr(x-source)\n hash-type {kind}\n{WEIGHED}"
            );
            for _ in 0..40 {
                let mut word = || {
                    "/a?.;=%2f&-_~"
                        .chars()
                        .cycle()
                        .skip(random.below(13))
                        .step_by(1 + random.below(5))
                        .take(random.below(12))
                        .collect::<String>()
                };
                let (target, host) = (
                    format!("/{}", word()),
                    ["h", "a.b", "www.example.org", "example.org:8080", "127.0.0.1", "x.y.z."][word().len() % 6],
                );
                let target = if number % 3 == 0 { format!("http://{host}{target}") } else { target };
                let source = match random.one_in(3) {
                    true => Ipv6Addr::from_bits(u128::from(random.number()) << 64 | u128::from(random.number())).to_string(),
                    false => Ipv4Addr::from_bits(random.number() as u32).to_string(),
                };
                requests.push(format!(
                    "GET {target} HTTP/1.1\r\nHost: {host}\r\nX-Backend: {kind}{number}\r\nX-Source: {source}\r\n\r\n"
                ));
            }
        }
    }
    agree(&text("maxconn 200", &sections), |process| servers_of(process, &requests));
}

/// Values of cookies for random addresses and keys, and after each change on the stats socket; with them the numbers of servers.
#[test]
fn dynamic_cookies_and_numbers_are_the_same() {
    let (mut sections, mut random) = (String::from("frontend web\n bind fd@${web}\n"), Random::new(5));
    for (number, key) in
        ["abc", "\"a key\"", "0", "\u{e9}", "a-longer-key-of-more-than-thirty-two-bytes", &"k".repeat(200)].iter().enumerate()
    {
        let id = if number % 2 == 0 { format!(" id {}\n", 500 + number) } else { String::new() };
        let _ = write!(sections, "backend b{number}\n{id} cookie S insert indirect dynamic\n dynamic-cookie-key {key}\n");
        for server in 0..300 {
            let port = 1 + random.below(65_535);
            let address = match server % 3 {
                0 => format!("[{}]:{port}", Ipv6Addr::from_bits(u128::from(random.number()) << 64 | u128::from(random.number()))),
                1 => format!("{}:+{}", Ipv4Addr::from_bits(random.number() as u32), port / 2),
                _ => format!("{}:{port}", Ipv4Addr::from_bits(random.number() as u32)),
            };
            let id = if random.one_in(9) { format!(" id {}", 1 + server * 7) } else { String::new() };
            let cookie = if random.one_in(20) { format!(" cookie own{server}") } else { String::new() };
            let _ = writeln!(sections, " server s{server} {address} disabled{id}{cookie}");
        }
    }
    sections.push_str("backend plain\n cookie S insert\n server a 10.0.0.1:80 disabled\n server b unix@/x disabled\n");
    agree(&text("maxconn 200", &sections), |process| {
        let cookies = || {
            let table = command(process, "show stat -1 6 -1");
            let mut lines = table.lines();
            let head: Vec<&str> = lines.next().unwrap_or_default().trim_start_matches("# ").split(',').collect();
            let places = ["pxname", "svname", "sid", "cookie"].map(|name| head.iter().position(|found| *found == name).unwrap());
            let row = |line: &str| {
                let cells: Vec<&str> = line.split(',').collect();
                places.map(|place| cells.get(place).copied().unwrap_or_default()).join(" ")
            };
            lines.filter(|line| !line.is_empty() && !line.starts_with("origin,")).map(row).collect::<Vec<_>>()
        };
        let mut all = cookies();
        for change in [
            "set dynamic-cookie-key backend b0 other",
            "disable dynamic-cookie backend b1",
            "enable dynamic-cookie backend plain",
            "set dynamic-cookie-key backend plain late",
            "set server b2/s1 addr 192.0.2.9 port 81",
            "set server b3/s0 addr 2001:db8::9",
            "enable dynamic-cookie backend b1",
            "set dynamic-cookie-key backend nobody x",
            "set dynamic-cookie-key backend b0",
            "enable dynamic-cookie backend",
        ] {
            let said = command(process, change);
            if !change.starts_with("set server") {
                all.push(format!("{change}: {}", said.trim()));
            }
            all.extend(cookies());
        }
        all
    });
}

/// Keys as tables keep them.
#[test]
fn tables_have_the_same_keys() {
    let (mut sections, mut requests) = (
        String::from(
            "frontend web\n bind fd@${web}\n http-request return status 200 if !{ req.hdr(x-backend) -m found }\n use_backend %[req.hdr(x-backend)]\n",
        ),
        Vec::new(),
    );
    let types = ["string len 8", "string len 64", "binary len 8", "integer", "ip", "ipv6"];
    for (number, kind) in types.iter().enumerate() {
        let _ = write!(
            sections,
            "backend t{number}\n stick-table type {kind} size 10k store http_req_cnt\n http-request track-sc0 req.hdr(x-key)\n http-request return status 200\n"
        );
        let addresses =
            ["127.0.0.1", "::1", "::ffff:10.0.0.1", "10.0.0.256", "1.2.3", "-5", " 7 ", "0x10", "12abc"].map(String::from);
        let request = |key: &String| format!("GET / HTTP/1.1\r\nHost: h\r\nX-Backend: t{number}\r\nX-Key: {key}\r\n\r\n");
        requests.extend(keys(60).iter().chain(&addresses).map(request));
    }
    agree(&text("maxconn 200", &sections), |process| {
        servers_of(process, &requests);
        let tables = (0..types.len()).map(|number| command(process, &format!("show table t{number}")));
        let key = |line: &str| Some(line.split_once("key=")?.1.split(" use=").next()?.to_owned());
        let mut all = Vec::new();
        for (number, table) in tables.enumerate() {
            let mut keys: Vec<String> = table.lines().filter_map(key).map(|key| format!("{}: {key}", types[number])).collect();
            keys.sort();
            all.push(keys.len().to_string());
            all.append(&mut keys);
        }
        all
    });
}

/// Limits that a file does not set: `slim` of every row, limits of the process, and the number of connections that the kernel lets
/// wait.
#[test]
fn limits_that_are_computed() {
    const SECTIONS: &str = "
frontend web\n bind fd@${web}\n maxconn 77\n use_backend named if { path /n }\n use_backend named if { path /m }\n default_backend usual
frontend all\n bind fd@${web}\n use_backend %[path] if { path /e }\n use_backend usual if { path /u }\n default_backend named
frontend none\n bind fd@${web}
listen own\n bind fd@${web}\n use_backend usual if { path /u }\n server s 127.0.0.1:9 minconn 2 maxconn 30
listen other\n bind fd@${web}\n maxconn 501\n default_backend named
backend named\n server s 127.0.0.1:9 maxconn 5
backend usual\n server s 127.0.0.1:9
backend said\n fullconn 12\n server s 127.0.0.1:9 minconn 3
backend unused\n server s 127.0.0.1:9
";
    let rows = [
        "web/FRONTEND",
        "all/FRONTEND",
        "none/FRONTEND",
        "own/FRONTEND",
        "own/s",
        "own/BACKEND",
        "other/FRONTEND",
        "other/BACKEND",
    ];
    let others = ["named/BACKEND", "named/s", "usual/BACKEND", "usual/s", "said/BACKEND", "said/s", "unused/BACKEND"];
    for global in ["maxconn 1000", "maxconn 7", "maxconn 333\n ulimit-n 2000", "maxconn 100\n maxsslconn 40"] {
        agree(&text(global, SECTIONS), |process| {
            let row = |row: &&str| format!("{row} slim={} qlimit={}", of(process, row, "slim"), of(process, row, "qlimit"));
            let info = command(process, "show info");
            let is_limit =
                |line: &&str| ["Maxconn:", "Hard_maxconn:", "MaxSslConns:", "Maxpipes:"].iter().any(|name| line.starts_with(name));
            let limits = info.lines().filter(is_limit).map(str::to_owned);
            rows.iter().chain(&others).map(row).chain(limits).collect()
        });
    }
    // If nothing is set, each computes the limit of the process of what it needs itself.
    let process = Terse::with(&text("", SECTIONS)).listen("web").listen("cli").listen("origin").start();
    let number = |row: &str| of(&process, row, "slim").parse::<u64>().unwrap();
    let (connections, named) = (number("all/FRONTEND"), number("named/BACKEND"));
    assert_eq!(connections, process.info("Maxconn"));
    assert_eq!((named, number("usual/BACKEND")), ((77 + connections + 501).div_ceil(10), (77 + 2 * connections).div_ceil(10)));
    drop(process);
}

/// Limits of the process for connections, TLS, pipes and memory, by every keyword that has a part in it.
#[test]
fn limits_of_the_process_that_are_computed() {
    const WEB: &str = "frontend web\n bind fd@${web}\n default_backend be\n";
    const BE: &str = "backend be\n server s 127.0.0.1:9\n";
    let splicing = |front: &str, back: &str| format!("{WEB} {front}\n{BE} {back}\n");
    let auto = "option splice-auto";
    let plain = splicing("", "");
    let folder = tempfile::tempdir().unwrap();
    let crt = folder.path().join("site.pem");
    std::fs::write(&crt, signed(Kind::Ecdsa, &["site.test"], &authority("root")).pem()).unwrap();
    let tls = |front: bool, back: bool| {
        let bind = if front { format!("bind fd@${{web}} ssl crt {}", crt.display()) } else { String::new() };
        format!("{WEB} {bind}\n{BE}{}", if back { " server t 127.0.0.1:9 ssl verify none\n" } else { "" })
    };
    let cases: Vec<(&str, String, &[&str])> = vec![
        ("maxconn 100", splicing(auto, auto), &[]),
        ("maxconn 3", splicing(auto, ""), &[]),
        ("maxconn 400", splicing(&format!("maxconn 40\n {auto}"), ""), &[]),
        ("maxconn 400", splicing(&format!("maxconn 40\n {auto}"), &format!("fullconn 80\n {auto}")), &[]),
        ("maxconn 400", splicing("", &format!("fullconn 80\n {auto}")), &[]),
        ("maxconn 400", splicing("", auto), &[]),
        ("maxconn 400\n maxpipes 50", plain.clone(), &[]),
        ("maxconn 400\n maxpipes 7", splicing(auto, auto), &[]),
        ("maxconn 400", splicing(auto, ""), &["-N", "60"]),
        ("maxconn 400", plain.clone(), &["-n", "50"]),
        ("", plain.clone(), &["-m", "200"]),
        ("maxconn 1000", plain.clone(), &["-m", "200"]),
        ("tune.bufsize 32768", plain.clone(), &["-m", "200"]),
        ("maxzlibmem 20", plain.clone(), &["-m", "200"]),
        ("maxsslconn 300", plain.clone(), &["-m", "300"]),
        ("", tls(true, false), &["-m", "200"]),
        ("", tls(true, true), &["-m", "200"]),
        ("", tls(false, true), &["-m", "200"]),
        ("maxconn 1000", tls(true, false), &["-m", "200"]),
        ("maxsslconn 300", tls(true, false), &["-m", "200"]),
        ("maxconn 100\n maxcomprate 10\n maxconnrate 1\n maxsessrate 2\n maxsslrate 3", plain, &[]),
    ];
    for (global, sections, arguments) in cases {
        let text = format!("global\n nbthread 1\n stats socket fd@${{cli}} level admin\n {global}\n{DEFAULTS}\n{sections}\n");
        agree_with(&text, arguments, |process| {
            let info = command(process, "show info");
            let is_limit = |line: &&str| LIMITS.iter().any(|name| line.starts_with(name));
            let limits = info.lines().filter(is_limit);
            limits.map(|line| format!("{global:?} {arguments:?} {line}")).collect()
        });
    }
}

const LIMITS: [&str; 11] = [
    "Memmax_MB:",
    "Memmax_bytes:",
    "Maxconn:",
    "Hard_maxconn:",
    "MaxSslConns:",
    "Maxpipes:",
    "PipesUsed:",
    "PipesFree:",
    "ConnRateLimit:",
    "SessRateLimit:",
    "CompressBpsRateLim:",
];

/// The kernel lets as many connections wait as the address, the frontend or the process may have.
#[test]
fn backlogs_that_are_computed() {
    let Some(ss) = find("ss") else { return };
    let sections = "frontend web\n bind fd@${web}\n bind 127.0.0.1:${P1}\n bind 127.0.0.1:${P2} maxconn 17\n bind 127.0.0.1:${P3} backlog 9\n\
                    frontend some\n maxconn 55\n bind 127.0.0.1:${P4}\nfrontend own\n backlog 33\n bind 127.0.0.1:${P5}\n\
                    log-forward ten\n timeout client 9s\n bind 127.0.0.1:${P6}\n log 127.0.0.1:9 local0\n\
                    log-forward few\n timeout client 9s\n maxconn 7\n bind 127.0.0.1:${P7}\n log 127.0.0.1:9 local0\n\
                    peers circle\n bind 127.0.0.1:${P8}\n server here\n server there 127.0.0.1:9\n";
    const ADDRESSES: usize = 9;
    let Some(haproxy) = find("haproxy") else { return };
    let run = |program: Option<&Path>| {
        let ports: Vec<u16> = (0..ADDRESSES).map(|_| super::support::free_address().port()).collect();
        let mut text = text("maxconn 200\n stats socket ipv4@127.0.0.1:${P9}", sections);
        for (number, port) in ports.iter().enumerate() {
            text = text.replace(&format!("${{P{}}}", number + 1), &port.to_string());
        }
        let process = Terse::with(&text).listen("web").listen("cli").listen("origin").arg(&["-db", "-L", "here"]);
        let process = match program {
            Some(path) => process.program(path),
            None => process,
        }
        .start();
        command(&process, "show info");
        let listed = super::support::program::run(&ss, &["-Hltn"]).stdout;
        drop(process);
        let waiting = |port: &u16| {
            let line = listed.lines().find(|line| line.contains(&format!("127.0.0.1:{port} ")));
            line.and_then(|line| line.split_whitespace().nth(2)).unwrap_or_default().to_owned()
        };
        ports.iter().map(waiting).collect::<Vec<_>>()
    };
    let theirs = run(Some(&haproxy));
    assert_eq!(theirs, ["200", "17", "9", "55", "33", "10", "7", "6", "10"], "{PATIENCE:?}");
    assert_eq!(theirs, run(None));
}
