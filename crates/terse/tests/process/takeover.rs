//! Taking over from a running process: no connection is refused, reset or lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use rustix::process::Signal;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use support::client::{Client, get};
use support::{Terse, free_address, until};

fn configuration(address: SocketAddr, generation: usize, workers: usize) -> String {
    format!(
        "
global
    nbthread {workers}
    stats socket \"${{dir}}/stats\" level admin expose-fd listeners
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 10s
frontend web
    bind {address}
    http-request return status 200 content-type text/plain string generation-{generation}
"
    )
}

fn generation(address: SocketAddr) -> String {
    get(address, "/").text()
}

/// Clients that connect without a pause, each for one request; every failure is counted.
struct Load {
    stop: Arc<AtomicBool>,
    served: Arc<AtomicUsize>,
    threads: Vec<std::thread::JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(address: SocketAddr) -> Load {
        let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let client = move |stop: Arc<AtomicBool>, served: Arc<AtomicUsize>| {
            let mut failures = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                match request(address) {
                    Ok(()) => drop(served.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => failures.push(error.to_string()),
                }
            }
            failures
        };
        let threads = (0..4).map(|_| {
            let (stop, served) = (stop.clone(), served.clone());
            std::thread::spawn(move || client(stop, served))
        });
        Load { threads: threads.collect(), stop, served }
    }

    /// Waits until so many more requests have been answered.
    fn go_on(&self, requests: usize) {
        let target = self.served.load(Ordering::Relaxed) + requests;
        until("requests", || (self.served.load(Ordering::Relaxed) >= target).then_some(()));
    }

    fn end(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    }
}

fn request(address: SocketAddr) -> std::io::Result<()> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_read_timeout(Some(support::PATIENCE))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    match answer.starts_with("HTTP/1.1 200 ") {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("'{answer}'"))),
    }
}

fn take_over_thrice(how: impl Fn(&Terse, Terse) -> Terse) {
    let address = free_address();
    let mut current = Terse::with(&configuration(address, 0, 2)).start();
    until("the first process", || request(address).ok());
    let load = Load::start(address);
    // More workers, then fewer: sockets are added, then spread.
    for (generation, workers) in [(1, 3), (2, 1), (3, 2)] {
        load.go_on(100);
        let next = how(&current, Terse::with(&configuration(address, generation, workers))).start();
        let old = std::mem::replace(&mut current, next);
        old.wait().expect(0);
        load.go_on(100);
    }
    assert_eq!(generation(address), "generation-3");
    assert_eq!(load.end(), [""; 0]);
    current.stop().expect(0);
}

fn pid(terse: &Terse) -> String {
    terse.pid().as_raw_nonzero().to_string()
}

#[test]
fn sockets_are_asked_for_over_the_stats_socket() {
    take_over_thrice(|old, new| new.arg(&["-x", old.path("stats").to_str().unwrap(), "-sf", &pid(old)]));
}

#[test]
fn sockets_are_taken_by_the_process_number() {
    take_over_thrice(|old, new| new.arg(&["-sf", &pid(old)]));
}

#[test]
fn what_waits_is_served_by_the_new_process() {
    let address = free_address();
    let old = Terse::with(&configuration(address, 0, 1)).arg(&["-n", "1"]).start();
    let mut held = until("the first process", || {
        let stream = std::net::TcpStream::connect(address).ok()?;
        Some(Client::over(stream))
    });
    assert_eq!(held.get("/", &[]).text(), "generation-0");
    // The next one is taken out of the kernel's queue and held back; those after it wait there.
    let _held_back = Client::connect(address);
    let mut waiting = Client::connect(address);
    waiting.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let new = Terse::with(&configuration(address, 1, 1)).arg(&["-st", &pid(&old)]).start();
    assert_eq!(waiting.response("GET").text(), "generation-1");
    old.wait().expect(0);
    new.stop().expect(0);
}

#[test]
fn a_start_that_fails_leaves_the_old_process_alone() {
    let address = free_address();
    let mut old = Terse::with(&configuration(address, 0, 1)).start();
    until("the first process", || request(address).ok());
    let stats = old.path("stats");
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!("{}    bind {}\n", configuration(address, 1, 1), busy.local_addr().unwrap());
    Terse::with(&text).arg(&["-x", stats.to_str().unwrap(), "-sf", &pid(&old)]).run().expect(1);
    assert!(old.is_running());
    assert_eq!(generation(address), "generation-0");
    old.stop().expect(0);
}

#[test]
fn nobody_behind_the_socket_is_an_error() {
    let failed = Terse::with(&configuration(free_address(), 0, 1)).arg(&["-x", "/nonexistent/stats"]).run().expect(1);
    assert!(failed.stderr.contains("Failed to get the sockets from the old process at /nonexistent/stats"), "{}", failed.stderr);
}

#[test]
fn unix_sockets_are_taken_over_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web");
    let text = |generation| {
        configuration(free_address(), generation, 1)
            .replace("frontend web\n", &format!("frontend web\n    bind {}\n", path.display()))
    };
    let ask = || {
        use std::io::{Read, Write};
        let mut stream = std::os::unix::net::UnixStream::connect(&path).ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.rsplit_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    };
    let old = Terse::with(&text(0)).start();
    assert_eq!(until("the socket", ask), "generation-0");
    let new = Terse::with(&text(1)).arg(&["-sf", &pid(&old)]).start();
    old.wait().expect(0);
    assert_eq!(ask().as_deref(), Some("generation-1"));
    new.signal(Signal::TERM);
    new.wait().expect(0);
}

#[test]
fn a_socket_that_does_not_expose_listeners_hands_nothing_over() {
    let address = free_address();
    let mut old = Terse::with(&configuration(address, 0, 1).replace(" expose-fd listeners", "")).start();
    until("the first process", || request(address).ok());
    let stats = old.path("stats");
    let failed =
        Terse::with(&configuration(address, 1, 1)).arg(&["-x", stats.to_str().unwrap(), "-sf", &pid(&old)]).run().expect(1);
    assert!(failed.stderr.contains("Failed to get the sockets from the old process"), "{}", failed.stderr);
    assert!(old.is_running());
    old.stop().expect(0);
}

/// `packaging/take-over` lets terse take HAProxy's place, and back, in a network namespace of its own: it sets a value of the kernel's.
#[test]
fn haproxy_is_taken_over_and_back() {
    const NAME: &str = "takeover::haproxy_is_taken_over_and_back";
    if std::env::var_os("TERSE_TEST_APART").is_some() {
        return take_over_haproxy();
    }
    if !rustix::process::geteuid().is_root()
        || ["haproxy", "unshare", "ip"].iter().any(|name| support::program::find(name).is_none())
    {
        return eprintln!("the takeover of haproxy was left out: it needs root, haproxy, unshare and ip");
    }
    let this = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new("unshare");
    command.args(["-n", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).arg(this).args(["--exact", NAME, "--nocapture"]);
    let output = command.env("TERSE_TEST_APART", "1").output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

/// Substitute for the script's commands to systemd: units are process numbers in files.
const SERVICES: &str = r#"#!/bin/sh
cd "$STATE" || exit 1
verb=$1
for word; do case $word in -* | "$verb" | ActiveState) ;; *) unit=$word ;; esac; done
lives() { [ -s "$unit.pid" ] && kill -0 "$(head -1 "$unit.pid")" 2> /dev/null; }
case $verb in
    daemon-reload) ;;
    enable) touch "$unit.enabled" ;;
    disable) rm -f "$unit.enabled" ;;
    is-active) lives ;;
    show) if lives; then echo ActiveState=active; else echo ActiveState=inactive; fi ;;
    stop) grep -q '^KillSignal=SIGUSR1$' "run/$unit.service.d/take-over.conf" && kill -USR1 "$(head -1 "$unit.pid")" ;;
    start)
        rm -f "$unit.pid"
        case $unit in
            haproxy) haproxy -W -D -f "$CONFIG" -p "$STATE/haproxy.pid" ;;
            terse) "$TERSE" -W -D -f "$(sed -n 's/^Environment=CONFIG=//p' etc/terse.service.d/haproxy.conf)" -p "$STATE/terse.pid" ;;
        esac > /dev/null 2>&1 ;;
    *) exit 1 ;;
esac
"#;

fn take_over_haproxy() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let address = free_address();
    let text = configuration(address, 0, 2).replace("${dir}", folder.path().to_str().unwrap());
    std::fs::write(path("haproxy.cfg"), text).unwrap();
    std::fs::create_dir(path("bin")).unwrap();
    std::fs::write(path("bin/systemctl"), SERVICES).unwrap();
    std::fs::set_permissions(path("bin/systemctl"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!("{}:{}:/usr/sbin:/sbin", path("bin").display(), std::env::var("PATH").unwrap());
    let run = |program: &str, words: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.args(words).env("PATH", &search).env("STATE", folder.path()).env("CONFIG", path("haproxy.cfg"));
        command.env("UNITS", path("run")).env("KEPT_UNITS", path("etc")).env("TERSE", env!("CARGO_BIN_EXE_terse"));
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.success(), said)
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/take-over");
    assert!(run("systemctl", &["start", "haproxy"]).0);
    until("haproxy", || request(address).ok());
    let load = Load::start(address);
    let process = |unit: &str| {
        let pid = support::number_in(&path(&format!("{unit}.pid")))?;
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        name.starts_with(unit).then_some(pid)
    };
    for (words, from, to) in [(vec!["haproxy"], "haproxy", "terse"), (vec!["haproxy", "--back"], "terse", "haproxy")] {
        load.go_on(200);
        let (success, said) = run(script, &words);
        assert!(success, "{said}");
        until(from, || process(from).is_none().then_some(()));
        assert!(process(to).is_some(), "{said}");
        assert!(path(&format!("{to}.enabled")).exists() && !path(&format!("{from}.enabled")).exists());
        load.go_on(200);
    }
    assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/tcp_migrate_req").unwrap(), "0\n");
    std::fs::write(path("haproxy.cfg"), "nonsense\n").unwrap();
    let (success, said) = run(script, &["haproxy"]);
    assert!(!success && said.contains("nothing was changed") && process("haproxy").is_some(), "{said}");
    let failures = load.end();
    let haproxy = rustix::process::Pid::from_raw(process("haproxy").unwrap()).unwrap();
    rustix::process::kill_process(haproxy, Signal::TERM).unwrap();
    assert_eq!(failures, [""; 0]);
}
