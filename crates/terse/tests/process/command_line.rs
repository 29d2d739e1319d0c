//! The command line: its output, its streams, and the exit codes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use support::{Finished, Terse};

fn run(words: &[&str]) -> Finished {
    Terse::bare().arg(words).run()
}

fn check(configuration: &str, words: &[&str]) -> Finished {
    Terse::with(configuration).arg(&["-c"]).arg(words).run()
}

#[test]
fn versions() {
    let own = run(&["-v"]).expect(0).stdout;
    assert!(own.starts_with("terse 0.1.0\n"), "{own}");
    let stand_in = Terse::bare().named("haproxy").arg(&["-dM", "-dI", "-dW", "-vv"]).run().expect(0).stdout;
    assert!(stand_in.starts_with("HAProxy version 3.5-dev5 ") && stand_in.contains(" - terse 0.1.0\n"), "{stand_in}");
    assert!(stand_in.contains("\n  TARGET  = linux-glibc\n") && stand_in.contains("\nFeature list : "), "{stand_in}");
    assert_eq!(run(&["-vq"]).expect(0).stdout, "3.5-dev5\n");
}

#[test]
fn help_and_misuse() {
    for help in ["-h", "--help"] {
        assert!(run(&[help]).expect(0).stdout.contains("-f <file|folder>"), "{help}");
    }
    assert_eq!(run(&["--version"]).expect(0).stdout, run(&["-v"]).expect(0).stdout);
    let nothing = run(&[]).expect(1);
    assert_eq!((nothing.stdout.as_str(), nothing.stderr.lines().count()), ("", 7), "{}", nothing.stderr);
    for (words, said) in [
        (&["-V"][..], "no configuration file (see -f)"),
        (&["/etc/haproxy.cfg"], "/etc/haproxy.cfg: unknown option (did you mean 'terse -f /etc/haproxy.cfg'?)"),
        (&["-f"], "-f: expects <file|folder>"),
        (&["-Q"], "-Q: unknown option"),
        (&["-f", "x", "-n", "y"], "-n: 'y' is not a number"),
        (
            &["-c", "-f", "/nonexistent/cfg"],
            "Cannot open configuration file/directory /nonexistent/cfg : No such file or directory",
        ),
    ] {
        let refused = run(words).expect(1);
        assert!(refused.stderr.contains(said), "{words:?}: {}", refused.stderr);
        assert_eq!(refused.stdout, "");
    }
}

#[test]
fn mistakes_of_every_day_have_a_hint() {
    let proxies = |front: &str, back: &str| {
        format!(
            "defaults\n mode http\n timeout client 1s\n timeout connect 1s\n timeout server 1s\n\
             frontend web\n bind 127.0.0.1:0\n {front}\n default_backend app\nbackend app\n {back}\n"
        )
    };
    for (front, back, said) in [
        ("bind :1 sll", "", "unknown parameter 'sll'; did you mean 'ssl'?"),
        ("bind :1 alnp h2", "", "unknown parameter 'alnp'; did you mean 'alpn'?"),
        ("", "server one 127.0.0.1:1 ssl verfy none", "unknown parameter 'verfy'; did you mean 'verify'"),
        ("", "server one 127.0.0.1:1 send-prxy", "unknown parameter 'send-prxy'; did you mean 'send-proxy'?"),
        ("", "server 127.0.0.1:1 check", "could not resolve address 'check'; a name comes before the address"),
        ("", "server 127.0.0.1:1", "expects <address> as argument; a name comes before the address: 'server <name> 127.0.0.1:1'"),
        ("", "server one 127.0.0.1:1\n server one 127.0.0.1:2", "terse.cfg:11"),
        ("bind 8080", "", "missing port number in '8080'; write ':8080'"),
        ("http-request deny if is_admin", "", "no such ACL: 'is_admin'; an 'acl' line above it, in the same section, makes one"),
        ("acl admin path /\n http-request deny if amdin", "", "no such ACL: 'amdin'; did you mean 'admin'?"),
    ] {
        let found = check(&proxies(front, back), &[]).expect(1).stderr;
        assert!(found.contains(said), "{front} {back}: {found}");
    }
    let marked = check(&format!("\u{feff}{}", proxies("", "")), &[]).expect(1).stderr;
    assert!(marked.contains("the file begins with a byte order mark"), "{marked}");
    let clear = check(&proxies("bind 127.0.0.1:0 crt /nonexistent.pem", ""), &[]).expect(0).stderr;
    assert!(clear.contains("clients speak without TLS here: add 'ssl'"), "{clear}");
    let twice = "frontend again\n mode http\n timeout client 1s\n bind 127.0.0.1:1\n";
    let shared = check(&format!("{}{twice}", proxies("bind 127.0.0.1:1", "")), &[]).expect(0).stderr;
    assert!(shared.contains("frontend 'web' listens on 127.0.0.1:1 too"), "{shared}");
    assert!(shared.contains("terse.cfg:8") && shared.lines().count() == 1, "{shared}");
    for command in ["check", "health"] {
        let usage = run(&[command, "--help"]).expect(0).stdout;
        assert!(usage.starts_with(&format!("usage: terse {command} ")), "{usage}");
    }
}

/// The cases of HAProxy's own test of conditions, and more.
#[test]
fn conditions() {
    let cases: &[(&str, i32)] = &[
        ("version_atleast(2.5-dev0)", 0),
        ("version_atleast(2.4)", 0),
        ("version_atleast(1024)", 1),
        ("version_atleast(3.5-dev4)", 0),
        ("version_atleast(3.5)", 1),
        ("streq(foo,'foo')", 0),
        ("streq(\"foo bar\",'foo bar')", 0),
        ("streq(foo,bar)", 1),
        ("defined(TESTVAR) && streq(\"$TESTVAR\",\"1\")", 0),
        ("feature(OPENSSL) || !feature(OPENSSL)", 0),
        ("feature(THREAD)", 0),
        ("1&&!0&&!((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))", 0),
        ("1   &&!   0&&    !((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))", 0),
        ("1 && !0 && !((streq(a,b) || !streq(a,a) && 1) || strneq(a,a))", 0),
        ("1 && !0 && !((streq(a,b) || !streq(a,a) && 1) || strneq(a,b))", 1),
        ("1 && !0 && !((streq(a,a) || !streq(a,a) && 1) || strneq(a,a))", 1),
        ("", 1),
        ("-1000 && 200", 0),
        ("200rrr", 2),
        ("!(0))", 2),
        ("streq(a,\"a)", 2),
        ("nonsense(1)", 2),
        ("enabled(FAST-FORWARD)", 0),
    ];
    for (condition, code) in cases {
        let ended = Terse::bare().env("TESTVAR", "1").arg(&["-dM", "-dI", "-dW", "-cc", condition]).run();
        assert_eq!(ended.code(), Some(*code), "{condition}: {}", ended.stderr);
        assert_eq!(ended.stderr.is_empty(), *code != 2, "{condition}: {}", ended.stderr);
    }
    run(&["-dF", "-cc", "enabled(FAST-FORWARD)"]).expect(1);
    run(&["-cc"]).expect(1);
}

const GOOD: &str = "global\n maxconn 100\nfrontend web\n mode http\n timeout client 1s\n bind 127.0.0.1:0\n";

#[test]
fn a_good_file_is_silent_unless_asked() {
    let quiet = check(GOOD, &[]).expect(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    assert!(check(GOOD, &["-V"]).expect(0).stdout.contains("Configuration file is valid\n"));
    assert_eq!(check(GOOD, &["-q"]).expect(0).stdout, "");
}

#[test]
fn every_problem_of_a_file_is_said() {
    let bad = check("global\n maxconn many\n usr x\n wurfl-data-file y\n", &[]).expect(1);
    for said in [
        "[ALERT]    (",
        "terse.cfg:2]",
        "terse.cfg:3] : unknown keyword 'usr'",
        "'wurfl-data-file' is not supported",
        "Fatal errors found",
    ] {
        assert!(bad.stderr.contains(said), "{said}: {}", bad.stderr);
    }
    assert_eq!(check("global\n usr x\n", &["-q"]).expect(1).stderr, "");
}

#[test]
fn warnings_end_only_with_zero_warning() {
    let text = format!("global\n nbproc 1\n{GOOD}");
    let warned = check(&text, &[]).expect(0);
    assert!(warned.stderr.contains("[WARNING]"), "{}", warned.stderr);
    assert!(warned.stdout.contains("Warnings were found."), "{}", warned.stdout);
    check(&text, &["-dW"]).expect(1);
    check(&format!("global\n zero-warning\n{text}"), &[]).expect(1);
}

#[test]
fn a_file_without_listeners_ends_with_two() {
    let idle = check("global\n maxconn 10\n", &[]).expect(2);
    assert!(idle.stdout.contains("no listener"), "{}", idle.stdout);
}

#[test]
fn folders_are_read_in_order() {
    let terse = Terse::bare();
    for (name, text) in
        [("20.cfg", "frontend b\n bind 127.0.0.1:0\n"), ("10.cfg", "defaults\n timeout client 1s\n"), ("x.txt", "?\n")]
    {
        std::fs::write(terse.path(name), text).unwrap();
    }
    let folder = terse.path("").to_str().unwrap().to_owned();
    terse.arg(&["-c", "-f", &folder]).run().expect(0);
}

#[test]
fn keywords_can_be_listed() {
    let listed = Terse::with(GOOD).arg(&["-c", "-q", "-dKcfg"]).run().expect(0).stdout;
    assert!(listed.contains("\nglobal\n") && listed.contains("\n\tmaxconn <number>\n"), "{listed}");
}

/// A line that names something that is not there, or sets too little, is refused where it is, even if nothing would have used it.
#[test]
fn lines_that_cannot_hold_are_refused() {
    let base = "defaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\n";
    let front = "frontend f\n bind 127.0.0.1:0\n default_backend b\n";
    for (global, front_line, back_line, line, said) in [
        ("spread-checks 60", "", "", 2, "60 is not between 0 and 50"),
        ("ssl-dh-param-file /nonexistent/dh", "", "", 2, "/nonexistent/dh"),
        ("issuers-chain-path /nonexistent/folder", "", "", 2, "expects a folder, and '/nonexistent/folder' is none"),
        ("", "bind fd@999999", "", 11, "cannot use file descriptor '999999'"),
        ("", "bind 127.0.0.1:0 crl-file /nonexistent/crl", "", 11, "/nonexistent/crl"),
        ("", "http-request capture path id 0", "", 11, "unable to find capture id '0'"),
        ("", "http-response capture res.hdr(a) id 1", "", 11, "unable to find capture id '1'"),
        ("", "", "server t 127.0.0.1:1 crl-file /nonexistent/crl", 13, "/nonexistent/crl"),
        ("", "", "server t 127.0.0.1:1 agent-check", 13, "does not have agent port"),
        ("", "", "server s 127.0.0.1:2", 14, "another server named 's'"),
        ("", "", "use-server s", 13, "expects 'if' or 'unless'"),
        ("", "", "default_backend b", 13, "loop detected for default_backend: 'b'"),
        ("", "", "use_backend b", 13, "loop detected for use_backend: 'b'"),
        ("", "", "use_backend nowhere if TRUE", 13, "unable to find required use_backend: 'nowhere'"),
    ] {
        let text = format!("global\n {global}\n{base}{front} {front_line}\nbackend b\n {back_line}\n server s 127.0.0.1:1\n");
        let refused = check(&text, &[]).expect(1);
        let place = format!(":{line}]");
        let told = refused.stderr.lines().find(|told| told.contains("[ALERT]") && told.contains(said));
        assert!(told.is_some_and(|told| told.contains(&place)), "{said}: {}", refused.stderr);
    }
    // The things that it names are all right.
    let text = format!(
        "global\n spread-checks 50\n issuers-chain-path /\n{base}{front} declare capture request len 5\n http-request capture path id 0\n\
         backend b\n http-request capture path id 7\n use-server s if TRUE\n server s 127.0.0.1:1\n"
    );
    check(&text, &[]).expect(0);
}

/// `terse check` prints what a file does, in lines and as JSON.
#[test]
fn a_check_says_what_a_file_does() {
    let text = "global\n tune.runqueue-depth 100\ndefaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n\
                compression on\nfrontend web\n bind 127.0.0.1:1\n use_backend api if { path_beg /api } # the api\n default_backend app\n\
                backend app\n balance leastconn\n cookie S insert\n server a 127.0.0.1:1 check\n server b 127.0.0.1:1 backup\n\
                backend api\n compression off\n server c 127.0.0.1:2\n";
    let terse = Terse::with(text);
    let path = terse.path("terse.cfg");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let said = run(&["check", path]).expect(0);
    assert_eq!(said.stderr, "");
    let lines: Vec<String> = said.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            &format!("{path} valid"),
            "listens web 127.0.0.1:1",
            "goes web -> api if { path_beg /api } line 11",
            "web -> app otherwise",
            "servers app 2 servers, leastconn, 1 checked, 1 backup, cookie S",
            "api 1 server, roundrobin, none checked",
            "shrinks web zstd, br, gzip for 28 types from 256 bytes",
            "app zstd, br, gzip for 28 types from 256 bytes",
            "no effect tune.runqueue-depth line 2: it tunes HAProxy's event loop; the one here bounds its turns itself",
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&run(&["check", "--json", path]).expect(0).stdout).unwrap();
    assert_eq!((&json["v"], &json["valid"]), (&1.into(), &true.into()));
    assert_eq!((&json["goes"][0]["condition"], &json["goes"][0]["line"]), (&"if { path_beg /api }".into(), &11.into()));
    assert_eq!(json["servers"][0]["checked"], 1);
    std::fs::write(path, "frontend web\n bnd :80\n").unwrap();
    let refused = run(&["check", path]).expect(1);
    assert!(
        refused.stderr.contains("unknown keyword 'bnd'") && refused.stdout.contains("not valid, 1 error"),
        "{}",
        refused.stderr
    );
    let json: serde_json::Value = serde_json::from_str(&run(&["check", path, "--json"]).expect(1).stdout).unwrap();
    assert_eq!(
        (&json["valid"], &json["problems"][0]["line"], &json["problems"][0]["word"]),
        (&false.into(), &2.into(), &"bnd".into())
    );
    assert!(json["problems"][0]["hint"].as_str().unwrap().contains("bind"), "{json}");
    std::fs::write(path, "backend app\n").unwrap();
    run(&["check", path]).expect(2);
    let json: serde_json::Value = serde_json::from_str(&run(&["check", "/nonexistent/cfg", "--json"]).expect(1).stdout).unwrap();
    assert_eq!(json["valid"], false);
    assert!(run(&["check"]).expect(2).stderr.contains("expects FILE"));
    assert!(run(&["check", "--jsn", path]).expect(2).stderr.contains("--jsn: unknown option"));
}
