//! The process: its start, its user, its end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use rustix::process::{Pid, Signal, getuid, kill_process};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use support::client::{Client, get};
use support::{PATIENCE, Terse, free_address, number_in, origin::Origin, until};

/// A proxy that answers itself.
const ANSWER: &str = "
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 10s
frontend web
    bind fd@${web}
    http-request return status 200 content-type text/plain string hello
";

fn with_global(lines: &str) -> String {
    format!("global\n{lines}\n{ANSWER}")
}

fn status_field(pid: i32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {status}"));
    line.split_once(':').unwrap().1.trim().to_owned()
}

#[test]
fn it_serves_and_stops() {
    for signal in [Signal::TERM, Signal::INT] {
        let terse = Terse::with(ANSWER).listen("web").arg(&["-d", "-dM", "-dI", "-dW"]).start();
        assert_eq!(get(terse.address("web"), "/").text(), "hello");
        terse.signal(signal);
        terse.wait().expect(0);
    }
}

/// A file of a larger machine serves on a small one.
#[test]
fn workers_whose_processors_are_not_here_run_on_others() {
    let terse = Terse::with(&with_global("cpu-map 1 1023\n")).listen("web").start();
    assert_eq!(get(terse.address("web"), "/").text(), "hello");
    terse.signal(Signal::TERM);
    let ended = terse.wait().expect(0);
    assert!(ended.stderr.contains("there is no such processor here: these workers run on any"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("failed"), "{}", ended.stderr);
}

#[test]
fn a_bad_configuration_does_not_start() {
    Terse::with("frontend web\n bnd :80\n").run().expect(1);
    let idle = Terse::with("global\n maxconn 10\n").run().expect(1);
    assert!(idle.stderr.contains("No enabled listener found"), "{}", idle.stderr);
}

#[test]
fn every_address_that_cannot_be_had_is_said() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port();
    let text = format!("{ANSWER}\n bind 127.0.0.1:{port}\n bind /nonexistent/sock\n bind 127.0.0.1:0\n");
    let failed = Terse::with(&text).listen("web").run().expect(1);
    for said in [
        &format!("for frontend web: cannot bind socket (Address already in use) for [127.0.0.1:{port}]"),
        "cannot bind UNIX socket (No such file or directory) for [/nonexistent/sock]",
        "Some protocols failed to start their listeners! Exiting.",
    ] {
        assert!(failed.stderr.contains(said), "{said}: {}", failed.stderr);
    }
}

#[test]
fn sighup_says_how_servers_are() {
    let text = format!("{ANSWER}backend app\n server one 127.0.0.1:1\n");
    let terse = Terse::with(&text).listen("web").start();
    get(terse.address("web"), "/");
    terse.signal(Signal::HUP);
    until("the states", || terse.stderr().contains("SIGHUP: Server app/one is UP").then_some(()));
    terse.stop().expect(0);
}

#[test]
fn a_drain_lets_requests_finish() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |request, stream| {
        use std::io::Write;
        if request.line.starts_with("GET /slow") {
            wait.lock().unwrap().recv().unwrap();
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate").unwrap();
    });
    let text = ANSWER.replace("http-request return status 200 content-type text/plain string hello", "default_backend app");
    let text = format!("{text}\nbackend app\n server one {}\n", origin.address());
    let mut terse = Terse::with(&text).listen("web").start();
    let mut client = Client::connect(terse.address("web"));
    let mut idle = Client::connect(terse.address("web"));
    assert_eq!(idle.get("/", &[]).status, 200);
    client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the request", || (origin.requests().len() == 2).then_some(()));
    let address = terse.let_go("web");
    terse.signal(Signal::USR1);
    until("the listener to close", || TcpStream::connect(address).is_err().then_some(()));
    assert!(idle.is_closed(), "an idle connection is closed");
    assert!(terse.is_running());
    go.send(()).unwrap();
    let answer = client.response("GET");
    assert_eq!((answer.status, answer.text().as_str()), (200, "late"));
    assert!(client.is_closed(), "kept alive no longer");
    let ended = terse.wait().expect(0);
    assert!(ended.stderr.contains("Proxy web stopped (cumulated conns: FE: "), "{}", ended.stderr);
}

#[test]
fn a_client_that_was_told_nothing_of_a_drain_is_answered_once_more() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let origin = Origin::start(move |request, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nla").unwrap();
        if request.line.starts_with("GET /slow") {
            wait.lock().unwrap().recv().unwrap();
        }
        stream.write_all(b"te").unwrap();
    });
    let text = ANSWER.replace("http-request return status 200 content-type text/plain string hello", "default_backend app");
    let text = format!("{text}\nbackend app\n server one {}\n", origin.address());
    let mut terse = Terse::with(&text).listen("web").start();
    let mut client = Client::connect(terse.address("web"));
    client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the response's head", || support::readable(client.stream(), std::time::Duration::ZERO).then_some(()));
    let address = terse.let_go("web");
    terse.signal(Signal::USR1);
    until("the listener to close", || TcpStream::connect(address).is_err().then_some(()));
    go.send(()).unwrap();
    let answer = client.response("GET");
    assert_eq!((answer.text().as_str(), answer.field("connection")), ("late", None));
    let last = client.get("/", &[]);
    assert_eq!((last.text().as_str(), last.field("connection")), ("late", Some("close")));
    assert!(client.is_closed());
    terse.wait().expect(0);
}

#[test]
fn a_drain_has_an_end() {
    let origin = Origin::start(|_, _| ());
    let text = ANSWER.replace("http-request return status 200 content-type text/plain string hello", "default_backend app");
    let text = format!("global\n hard-stop-after 50ms\n{text}\nbackend app\n server one {}\n", origin.address());
    let terse = Terse::with(&text).listen("web").start();
    let mut client = Client::connect(terse.address("web"));
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    until("the request", || (!origin.requests().is_empty()).then_some(()));
    terse.signal(Signal::USR1);
    terse.wait().expect(0);
    drop(client);
}

#[test]
fn a_daemon_leaves_its_starter_once_it_serves() {
    let folder = tempfile::tempdir().unwrap();
    let pidfile = folder.path().join("pid");
    let root = if getuid().is_root() { " chroot auto\n" } else { "" };
    let text = with_global(&format!("{root} daemon\n pidfile {}", pidfile.display()));
    let terse = Terse::with(&text).listen("web").start();
    let address = terse.address("web");
    let starter = terse.pid().as_raw_nonzero().get();
    let started = terse.wait().expect(0);
    let daemon = number_in(&pidfile).unwrap();
    assert_ne!(daemon, starter);
    assert_eq!(get(address, "/").text(), "hello", "{started:?}");
    for stream in 0..3 {
        let target = std::fs::read_link(format!("/proc/{daemon}/fd/{stream}")).unwrap();
        assert_eq!(target, Path::new("/dev/null"), "stream {stream}");
    }
    let session = std::fs::read_to_string(format!("/proc/{daemon}/stat")).unwrap();
    let session: i32 = session.rsplit(") ").next().unwrap().split(' ').nth(3).unwrap().parse().unwrap();
    assert_eq!(session, daemon, "it leads a session of its own");
    kill_process(Pid::from_raw(daemon).unwrap(), Signal::TERM).unwrap();
    until("the daemon's end", || (!Path::new(&format!("/proc/{daemon}/fd/0")).exists()).then_some(()));
}

#[test]
fn a_daemon_that_fails_tells_its_starter() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = with_global(" daemon").replace("fd@${web}", &holder.local_addr().unwrap().to_string());
    let failed = Terse::with(&text).run().expect(1);
    assert!(failed.stderr.contains("Address already in use"), "{}", failed.stderr);
}

#[test]
fn the_foreground_wins_over_the_configuration() {
    for option in ["-d", "-db"] {
        let mut terse = Terse::with(&with_global(" daemon")).listen("web").arg(&[option]).start();
        assert_eq!(get(terse.address("web"), "/").status, 200);
        assert!(terse.is_running());
        terse.stop().expect(0);
    }
}

#[test]
fn the_pid_file_of_the_command_line_is_always_written() {
    let terse = Terse::with(ANSWER).listen("web").arg(&["-p", "pid"]).start();
    get(terse.address("web"), "/");
    assert_eq!(number_in(&terse.path("pid")), Some(terse.pid().as_raw_nonzero().get()));
    terse.stop().expect(0);
    let failed = Terse::with(ANSWER).listen("web").arg(&["-p", "/nonexistent/pid"]).run().expect(1);
    assert!(failed.stderr.contains("Cannot create pidfile /nonexistent/pid"), "{}", failed.stderr);
}

#[test]
fn rights_are_given_up() {
    if !getuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = with_global(&format!(" user nobody\n gid 65533\n chroot {}\n tune.renice.runtime 3", folder.path().display()));
    let terse = Terse::with(&text).listen("web").start();
    assert_eq!(get(terse.address("web"), "/").text(), "hello");
    let pid = terse.pid().as_raw_nonzero().get();
    let nobody = status_field(pid, "Uid").split('\t').map(str::to_owned).collect::<Vec<_>>();
    assert!(nobody.iter().all(|uid| uid == &nobody[0] && uid != "0"), "{nobody:?}");
    assert_eq!(status_field(pid, "Gid"), "65533\t65533\t65533\t65533");
    assert_eq!(status_field(pid, "Groups"), "");
    assert_eq!(status_field(pid, "NoNewPrivs"), "1");
    assert_eq!(std::fs::read_link(format!("/proc/{pid}/root")).unwrap(), folder.path());
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        assert!(status.contains("Gid:\t65533\t65533\t65533\t65533"), "{status}");
    }
    terse.stop().expect(0);
}

#[test]
fn an_empty_root_is_made_and_gone() {
    if !getuid().is_root() {
        return;
    }
    let terse = Terse::with(&with_global(" chroot auto")).listen("web").start();
    assert_eq!(get(terse.address("web"), "/").text(), "hello");
    let pid = terse.pid().as_raw_nonzero().get();
    let root = std::fs::read_link(format!("/proc/{pid}/root")).unwrap();
    assert!(root.to_string_lossy().ends_with(" (deleted)"), "{}", root.display());
    terse.stop().expect(0);
    // The null device of a silent process is not in there.
    let terse = Terse::with(&with_global(" chroot auto")).listen("web").arg(&["-q"]).start();
    assert_eq!(get(terse.address("web"), "/").text(), "hello");
    terse.stop().expect(0);
    let failed = Terse::with(&with_global(" chroot /nonexistent")).listen("web").run().expect(1);
    assert!(failed.stderr.contains("Cannot chroot(/nonexistent): "), "{}", failed.stderr);
}

#[test]
fn users_that_do_not_exist_are_errors_of_the_configuration() {
    let failed = Terse::with(&with_global(" user no-such-user")).listen("web").arg(&["-c"]).run().expect(1);
    assert!(failed.stderr.contains("terse.cfg:2] : cannot find user id for 'no-such-user'"), "{}", failed.stderr);
}

#[test]
fn limits_are_in_force() {
    let terse = Terse::with(&with_global(" maxconn 700\n nbthread 3")).listen("web").arg(&["-m", "300"]).start();
    get(terse.address("web"), "/");
    let pid = terse.pid().as_raw_nonzero().get();
    assert!(limit(&terse, "Max open files") >= 1400);
    assert_eq!(limit(&terse, "Max data size"), (2 * 300 + 64) << 20, "far above what it keeps to by itself");
    let is_worker = |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("worker/"));
    let tasks = || std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap().path());
    until("three workers", || (tasks().filter(|task| is_worker(task)).count() == 3).then_some(()));
    terse.stop().expect(0);

    let terse = Terse::with(&with_global(" ulimit-n 300")).listen("web").start();
    get(terse.address("web"), "/");
    assert_eq!(limit(&terse, "Max open files"), 300, "no more than it says, either");
    terse.stop().expect(0);
}

/// A soft limit of the process.
fn limit(terse: &Terse, name: &str) -> u64 {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", terse.pid().as_raw_nonzero())).unwrap();
    let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
    line[name.len()..].split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn connections_beyond_the_limit_wait() {
    let terse = Terse::with(ANSWER).listen("web").arg(&["-n", "1"]).start();
    let mut first = Client::connect(terse.address("web"));
    assert_eq!(first.get("/", &[]).status, 200);
    let mut second = Client::connect(terse.address("web"));
    second.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(!support::readable(second.stream(), std::time::Duration::from_millis(200)), "served beyond the limit");
    drop(first);
    assert_eq!(second.response("GET").status, 200);
    terse.stop().expect(0);
}

/// A single line reports it, though each attempt to accept fails; clients that leave make room for those that wait.
#[test]
fn descriptors_that_run_out_are_logged() {
    let log = UdpSocket::bind("127.0.0.1:0").unwrap();
    log.set_read_timeout(Some(PATIENCE)).unwrap();
    let global = format!(" nbthread 1\n maxconn 100\n ulimit-n 40\n log {} local0", log.local_addr().unwrap());
    let terse = Terse::with(&with_global(&global)).listen("web").start();
    let clients: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(terse.address("web")).unwrap()).collect();
    let mut line = [0; 1024];
    let length = log.recv(&mut line).unwrap();
    let line = String::from_utf8_lossy(&line[..length]);
    assert!(line.starts_with("<128>") && line.contains("Out of file descriptors"), "{line}");
    assert!(line.contains("limit of the process (40)") && line.contains("accept "), "{line}");
    drop(clients);
    assert_eq!(get(terse.address("web"), "/").status, 200);
    terse.stop().expect(0);
    log.set_nonblocking(true).unwrap();
    let more = std::iter::from_fn(|| log.recv(&mut [0; 1024]).ok()).count();
    assert_eq!(more, 0, "one line is enough");
}

#[test]
fn unix_sockets_are_as_their_lines_say() {
    use std::os::unix::fs::PermissionsExt;
    let text = ANSWER.replace("fd@${web}", "\"${dir}/sock\" mode 640");
    let terse = Terse::with(&text).start();
    let path = terse.path("sock");
    let mut stream = until("the socket", || std::os::unix::net::UnixStream::connect(&path).ok());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    use std::io::{Read, Write};
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("hello"), "{answer}");
    terse.stop().expect(0);
}

#[test]
fn one_inherited_socket_serves_two_lines() {
    let text = format!("{ANSWER}\nfrontend again\n bind fd@${{web}}\n http-request return status 200\n");
    let terse = Terse::with(&text).listen("web").start();
    assert_eq!(get(terse.address("web"), "/").status, 200);
    terse.stop().expect(0);
}

#[test]
fn nothing_keeps_the_output_open_once_it_has_ended() {
    use std::io::Read;
    let (mut output, held) = std::io::pipe().unwrap();
    let web = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = web.local_addr().unwrap();
    drop(web);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cfg");
    std::fs::write(&path, ANSWER.replace("fd@${web}", &address.to_string())).unwrap();
    for options in [&["-d"][..], &["-d", "-Ws"]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_terse"));
        command.args(options).arg("-f").arg(&path).stdout(held.try_clone().unwrap()).stderr(held.try_clone().unwrap());
        let mut child = command.spawn().unwrap();
        drop(command);
        until("an answer", || TcpStream::connect(address).ok());
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        child.wait().unwrap();
    }
    drop(held);
    output.read_to_string(&mut String::new()).unwrap();
}

#[test]
fn the_stats_socket_knows_the_process() {
    use std::io::{Read, Write};
    let text = with_global(" stats socket \"${dir}/stats\" level admin\n node here\n description a test\n setenv COLOUR blue");
    let terse = Terse::with(&text).listen("web").start();
    assert_eq!(get(terse.address("web"), "/").status, 200);
    let ask = |command: &str| {
        let mut stream = std::os::unix::net::UnixStream::connect(terse.path("stats")).unwrap();
        stream.write_all(format!("{command}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let info = ask("show info");
    for line in [&format!("Pid: {}", terse.pid().as_raw_nonzero()), "node: here", "description: a test", "Stopping: 0"] {
        assert!(info.lines().any(|said| said == line), "{line}: {info}");
    }
    assert!(ask("show env COLOUR").contains("COLOUR=blue"));
    terse.stop().expect(0);
}

#[test]
fn the_peers_name_is_known_to_all_lines() {
    let text = ANSWER.replace("string hello", "string \"$HAPROXY_LOCALPEER\"");
    for (options, global, expected) in [(&["-L", "north"][..], "localpeer south", "north"), (&[], "localpeer south", "south")] {
        let terse = Terse::with(&format!("{text}\nglobal\n {global}\n")).listen("web").arg(options).start();
        assert_eq!(get(terse.address("web"), "/").text(), expected);
        terse.stop().expect(0);
    }
}

#[test]
fn workers_run_on_the_processors_of_their_map() {
    let terse = Terse::with(&with_global(" nbthread 2\n cpu-map 1/1-2 0")).listen("web").start();
    get(terse.address("web"), "/");
    let pid = terse.pid().as_raw_nonzero();
    let tasks = || std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|task| task.unwrap().path().join("status"));
    let pinned = |status: &Path| {
        let text = std::fs::read_to_string(status).unwrap_or_default();
        text.starts_with("Name:\tworker/") && text.contains("Cpus_allowed_list:\t0\n")
    };
    until("two pinned workers", || (tasks().filter(|status| pinned(status)).count() == 2).then_some(()));
    terse.stop().expect(0);
}

#[test]
fn workers_that_share_a_socket_take_turns() {
    let text = with_global(" nbthread 3").replace("fd@${web}", "unix@${dir}/sock").replace("string hello", "lf-string %[thread]");
    let terse = Terse::with(&text).start();
    let ask = || {
        let mut client = until("the socket", || UnixStream::connect(terse.path("sock")).ok());
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer.split("\r\n\r\n").nth(1).unwrap().to_owned()
    };
    let mut answers: Vec<_> = (0..6).map(|_| ask()).collect();
    assert_eq!(answers[..3], answers[3..]);
    answers.sort();
    answers.dedup();
    assert_eq!(answers, ["0", "1", "2"]);
    terse.stop().expect(0);
}

#[test]
fn workers_have_a_socket_each_or_share_one() {
    let address = free_address();
    let text = ANSWER.replace("fd@${web}", &address.to_string());
    let listening = || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let port = format!(":{:04X} 00000000:0000 0A ", address.port());
        table.lines().filter(|line| line.contains(&port)).count()
    };
    for (global, options, sockets) in [("", &[][..], 3), (" noreuseport\n", &[], 1), ("", &["-dR"], 1)] {
        let terse = Terse::with(&format!("global\n nbthread 3\n{global}{text}")).arg(options).start();
        until("an answer", || TcpStream::connect(address).ok());
        assert_eq!(listening(), sockets, "{global}{options:?}");
        terse.stop().expect(0);
    }
}

#[test]
fn unix_sockets_start_with_what_unix_bind_says() {
    use std::os::unix::fs::PermissionsExt;
    let text = with_global(" unix-bind prefix \"${dir}\" mode 600").replace("fd@${web}", "/sock");
    let terse = Terse::with(&text).start();
    let path = terse.path("sock");
    until("the socket", || path.exists().then_some(()));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    terse.stop().expect(0);
}

#[test]
fn variables_of_the_process_are_set_before_it_serves() {
    let text = with_global(" set-var proc.name str(hel)\n set-var-fmt proc.name \"%[var(proc.name)]lo\"");
    let text = text.replace("string hello", "lf-string %[var(proc.name)]");
    let terse = Terse::with(&text).listen("web").start();
    assert_eq!(get(terse.address("web"), "/").text(), "hello");
    terse.stop().expect(0);
}

#[test]
fn relative_names_begin_where_the_configuration_says() {
    let page = "HTTP/1.1 503 No\r\nContent-Length: 6\r\n\r\nsorry\n";
    let text = ANSWER.replace("http-request return status 200 content-type text/plain string hello", "errorfile 503 503.http");
    let text = format!("global\n default-path config\n{text}");
    let terse = Terse::with(&text).listen("web").file("503.http", page).arg(&["-C", "/"]).start();
    let answer = get(terse.address("web"), "/");
    assert_eq!((answer.status, answer.text().as_str()), (503, "sorry\n"));
    terse.stop().expect(0);
}
