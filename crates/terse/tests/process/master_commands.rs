//! The master's command line: `-S`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use support::client::get;
use support::{PATIENCE, Terse, until};

fn answering(text: &str) -> String {
    format!(
        "global\n stats socket ${{dir}}/stats level admin\ndefaults\n mode http\n timeout client 20s\n timeout server 10s\n \
         timeout connect 10s\nfrontend web\n bind fd@${{web}}\n http-request return status 200 content-type text/plain string {text}\n\
         backend be\n server s 127.0.0.1:1\n"
    )
}

/// A master with these `-S`, on which it answers already.
fn master(options: &[&str]) -> Terse {
    let mut terse = Terse::with(&answering("one")).listen("web").arg(&["-W"]);
    for option in options {
        let path = terse.path("").join(option);
        terse = terse.arg(&["-S", path.to_str().unwrap()]);
    }
    let terse = terse.start();
    assert_eq!(get(terse.address("web"), "/").text(), "one");
    terse
}

/// The master's answers to some lines.
fn ask(terse: &Terse, socket: &str, lines: &str) -> String {
    let mut stream = until("the socket", || UnixStream::connect(terse.path(socket)).ok());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(lines.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The processes of a section of `show proc`.
fn listed(terse: &Terse, section: &str) -> Vec<i32> {
    let text = ask(terse, "m", "show proc\n");
    let lines = text.lines().skip_while(|line| *line != section).skip(1).take_while(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

/// Waits for the worker that serves.
fn serving(terse: &Terse) -> i32 {
    until("a worker that serves", || {
        let text = ask(terse, "m", "@1 show info\n");
        text.lines().find_map(|line| line.strip_prefix("Pid: ")?.parse().ok())
    })
}

fn awaits_answer(address: SocketAddr, text: &str) {
    until(text, || (get(address, "/").text() == text).then_some(()));
}

#[test]
fn workers_are_reached_through_the_master() {
    let terse = master(&["m,mode,600"]);
    let pid = serving(&terse);
    assert_eq!(std::fs::metadata(terse.path("m")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(listed(&terse, "# workers"), [pid]);
    let both = ask(&terse, "m", "@1 disable server be/s;@1 show servers state be; show cli level\n");
    assert!(both.contains(" s 127.0.0.1 ") && both.ends_with("\nadmin\n\n"), "{both}");
    let inside = ask(&terse, "m", "prompt\n@@1\nshow cli level\nquit\n@1\nexpert-mode on; debug dev log x\n");
    assert!(inside.starts_with("master> \n> admin\n\n> master> "), "{inside}");
    assert!(ask(&terse, "m", "@1;expert-mode on;debug dev log x\n").trim().is_empty());
    terse.stop().expect(143);
}

/// A package manager puts another file in the program's place; the next reload starts its workers, and the master itself, of that one.
#[test]
fn an_upgrade_reaches_the_master() {
    let folder = tempfile::tempdir().unwrap();
    let (program, link, next) = (folder.path().join("terse"), folder.path().join("link"), folder.path().join("next"));
    let install = || {
        // By another process: a child that this one forks meanwhile for another test would hold the file open for writing, and it could
        // not be run.
        let copied = std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_terse")).arg(&next).status().unwrap();
        assert!(copied.success());
        std::fs::rename(&next, &program).unwrap();
    };
    install();
    std::os::unix::fs::symlink(&program, &link).unwrap();
    let terse = Terse::with(&answering("one")).listen("web").program(&link);
    let socket = terse.path("m");
    let terse = terse.arg(&["-W", "-S", socket.to_str().unwrap()]).start();
    let (address, pid) = (terse.address("web"), terse.pid().as_raw_nonzero());
    awaits_answer(address, "one");
    let runs = || std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    for (text, by_command) in [("two", false), ("three", true), ("four", false)] {
        install();
        assert!(runs().to_string_lossy().ends_with(" (deleted)"), "{}", runs().display());
        std::fs::write(terse.path("terse.cfg"), answering(text)).unwrap();
        let former = serving(&terse);
        // A client that stays is waited for.
        let mut client = UnixStream::connect(terse.path("m")).unwrap();
        if by_command {
            let answer = ask(&terse, "m", "reload\n");
            assert!(answer.contains("Success=1") && answer.contains("Loading success."), "{answer}");
        } else {
            terse.signal(rustix::process::Signal::USR2);
        }
        awaits_answer(address, text);
        until("the former worker's end", || (serving(&terse) != former).then_some(()));
        client.write_all(b"show cli level\n").unwrap();
        let mut byte = [0];
        client.read_exact(&mut byte).unwrap();
        drop(client);
        until("the master's new program", || (runs() == program).then_some(()));
        // A conversation that began with the program before is cut, one after it is not.
        until("the list of workers", || (listed(&terse, "# workers") == [serving(&terse)]).then_some(()));
        assert!(ask(&terse, "m", "show startup-logs\n").contains("Loading success."));
    }
    assert!(ask(&terse, "m", "show proc\n").contains(&format!("{pid} ")), "the master's number stays");
    assert!(!terse.stderr().contains("goes on with the program before"), "{}", terse.stderr());
    std::fs::write(terse.path("terse.cfg"), "nonsense\n").unwrap();
    install();
    assert!(ask(&terse, "m", "reload\n").contains("Success=0"));
    assert!(runs().to_string_lossy().ends_with(" (deleted)"), "a reload that fails changes nothing");
    awaits_answer(address, "four");
    terse.stop().expect(143);
}

#[test]
fn a_reload_tells_how_it_went() {
    let terse = master(&["m"]);
    let first = serving(&terse);
    std::fs::write(terse.path("terse.cfg"), answering("two")).unwrap();
    let told = ask(&terse, "m", "reload;show version\n");
    assert!(told.starts_with("Success=1\n--\n") && told.ends_with("Loading success.\n\n"), "{told}");
    awaits_answer(terse.address("web"), "two");
    let second = serving(&terse);
    assert_ne!(first, second);

    std::fs::write(terse.path("terse.cfg"), "frontend web\n bnd :80\n").unwrap();
    let told = ask(&terse, "m", "reload\n");
    assert!(told.starts_with("Success=0\n--\n") && told.contains("unknown keyword 'bnd'"), "{told}");
    assert!(told.contains("the reload failed"), "{told}");
    let after = ask(&terse, "m", "prompt;show startup-logs;show proc\n");
    assert!(after.starts_with("master[ReloadFailed]> [NOTICE]") && after.contains("unknown keyword 'bnd'"), "{after}");
    assert!(after.contains("2 [failed: 1]"), "{after}");
    assert_eq!(serving(&terse), second);

    std::fs::write(terse.path("terse.cfg"), answering("three")).unwrap();
    assert!(ask(&terse, "m", "reload\n").starts_with("Success=1\n"));
    assert!(ask(&terse, "m", "show proc\n").contains("3 [failed: 0]"));
    awaits_answer(terse.address("web"), "three");
    terse.stop().expect(143);
}

#[test]
fn a_worker_that_leaves_is_reached_until_it_ends() {
    let terse = master(&["m"]);
    let first = serving(&terse);
    // A request that is under way keeps its worker alive.
    let mut client = TcpStream::connect(terse.address("web")).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
    until("the worker to have it", || ask(&terse, "m", "@1 show info\n").contains("\nCurrConns: 1\n").then_some(()));
    assert!(ask(&terse, "m", "reload\n").starts_with("Success=1\n"));
    assert_ne!(serving(&terse), first);
    until("its leave", || (listed(&terse, "# old workers") == [first]).then_some(()));
    let info = || ask(&terse, "m", &format!("@!{first} show info;@!{first} show cli level\n"));
    // It is told by a signal, which it may not have had yet.
    until("it to know", || info().contains("\nStopping: 1\n").then_some(()));
    assert!(info().contains(&format!("\nPid: {first}\n")));
    client.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    until("its end", || listed(&terse, "# old workers").is_empty().then_some(()));
    let text = ask(&terse, "m", &format!("@!{first} show info\n"));
    assert!(text.starts_with("Can't find the target PID"), "{text}");
    terse.stop().expect(143);
}

#[test]
fn a_hard_reload_cuts_what_runs() {
    let terse = master(&["m"]);
    let first = serving(&terse);
    let mut client = TcpStream::connect(terse.address("web")).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n").unwrap();
    until("the worker to have it", || ask(&terse, "m", "@1 show info\n").contains("\nCurrConns: 1\n").then_some(()));
    assert!(ask(&terse, "m", "hard-reload\n").starts_with("Success=1\n"));
    assert!(support::is_closed(&mut client, PATIENCE));
    let gone = format!("/proc/{first}/fd/0");
    until("its end", || (!Path::new(&gone).exists()).then_some(()));
    assert_eq!(get(terse.address("web"), "/").text(), "one");
    terse.stop().expect(143);
}

#[test]
fn sockets_have_levels() {
    let terse = master(&["m", "user,level,user"]);
    serving(&terse);
    for command in ["reload", "show proc", "@1 show env", "@1 disable server be/s", "@@1 disable server be/s"] {
        assert_eq!(ask(&terse, "user", &format!("{command}\n")), "Permission denied\n\n", "{command}");
    }
    let sockets = ask(&terse, "m", "show cli sockets\n");
    assert!(sockets.contains("/m admin master\n") && sockets.contains("/user user master\n"), "{sockets}");
    assert!(ask(&terse, "stats", "reload\n").contains("a command of the master's command line (-S)"));
    terse.stop().expect(143);
}

#[test]
fn what_cannot_be_is_said_at_the_start() {
    let start = |words: &[&str]| Terse::with(&answering("one")).listen("web").arg(words).run().expect(1).stderr;
    assert!(start(&["-S", "/x"]).contains("it needs -W, -Ws"));
    assert!(start(&["-W", "-S", "/x,level,root"]).contains("-S /x,level,root: 'root' is not"));
    let missing = start(&["-W", "-S", "/nonexistent/x"]);
    assert!(missing.contains("Binding -S for the master: cannot bind UNIX socket"), "{missing}");
}
