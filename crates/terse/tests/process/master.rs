//! A master and its workers' processes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use rustix::process::{Pid, Signal, kill_process};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use support::client::get;
use support::{PATIENCE, Terse, free_address, number_in, until};

fn answering(address: SocketAddr, text: &str) -> String {
    format!(
        "global\n pidfile pid\ndefaults\n mode http\n timeout client 10s\n timeout server 10s\n timeout connect 10s\nfrontend web\n \
         bind {address}\n http-request return status 200 content-type text/plain string {text}\n"
    )
}

/// Waits for an answer with this text.
fn await_answer(address: SocketAddr, text: &str) {
    until(text, || (TcpStream::connect(address).is_ok() && get(address, "/").text() == text).then_some(()));
}

/// The processes that a process has started and that have not ended.
fn children(pid: Pid) -> Vec<Pid> {
    let pid = pid.as_raw_nonzero();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let lists = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split(' ').filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw)).collect::<Vec<_>>()).collect()
}

fn change(terse: &Terse, configuration: &str) {
    std::fs::write(terse.path("terse.cfg"), configuration).unwrap();
}

#[test]
fn a_reload_starts_a_process_that_takes_over() {
    let address = free_address();
    let terse = Terse::with(&answering(address, "one")).arg(&["-W"]).start();
    await_answer(address, "one");
    assert_eq!(until("the pid file", || number_in(&terse.path("pid"))), terse.pid().as_raw_nonzero().get());
    let first = children(terse.pid());
    assert_eq!(first.len(), 1);
    for (signal, text) in [(Signal::USR2, "two"), (Signal::HUP, "three")] {
        change(&terse, &answering(address, text));
        terse.signal(signal);
        await_answer(address, text);
        until("the former worker's end", || (children(terse.pid()).len() == 1).then_some(()));
    }
    assert_ne!(children(terse.pid()), first);
    let ended = terse.stop().expect(143);
    assert!(ended.stderr.contains("Former worker"), "{}", ended.stderr);
}

#[test]
fn an_address_that_is_not_named_any_more_is_closed() {
    let (kept, dropped) = (free_address(), free_address());
    let both = answering(kept, "one").replace("frontend web\n", &format!("frontend web\n bind {dropped}\n"));
    let terse = Terse::with(&both).arg(&["-W"]).start();
    await_answer(dropped, "one");
    change(&terse, &answering(kept, "two"));
    terse.signal(Signal::USR2);
    await_answer(kept, "two");
    until("the address to close", || TcpStream::connect(dropped).is_err().then_some(()));
    terse.stop().expect(143);
}

#[test]
fn a_reload_that_fails_changes_nothing() {
    let address = free_address();
    let terse = Terse::with(&answering(address, "one")).arg(&["-W"]).start();
    await_answer(address, "one");
    change(&terse, "frontend web\n bnd :80\n");
    terse.signal(Signal::USR2);
    until("the failure", || terse.stderr().contains("the reload failed").then_some(()));
    await_answer(address, "one");
    change(&terse, &answering(address, "two"));
    terse.signal(Signal::USR2);
    await_answer(address, "two");
    terse.stop().expect(143);
}

#[test]
fn a_worker_that_dies_ends_the_master() {
    let address = free_address();
    let terse = Terse::with(&answering(address, "one")).arg(&["-W"]).start();
    await_answer(address, "one");
    kill_process(children(terse.pid())[0], Signal::KILL).unwrap();
    let ended = terse.wait().expect(137);
    assert!(ended.stderr.contains("exited with code 137 (signal 9)"), "{}", ended.stderr);
}

#[test]
fn workers_do_not_outlive_their_master() {
    let address = free_address();
    let terse = Terse::with(&answering(address, "one")).arg(&["-W"]).start();
    await_answer(address, "one");
    let worker = children(terse.pid())[0];
    terse.signal(Signal::KILL);
    drop(terse.wait());
    let process = format!("/proc/{}/fd/0", worker.as_raw_nonzero());
    until("the worker's end", || (!Path::new(&process).exists()).then_some(()));
}

#[test]
fn a_configuration_that_is_wrong_at_first_does_not_start() {
    Terse::with("global\n master-worker\nfrontend web\n bnd :80\n").run().expect(1);
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = answering(holder.local_addr().unwrap(), "one").replace("global\n", "global\n master-worker\n");
    let failed = Terse::with(&busy).run().expect(1);
    assert!(failed.stderr.contains("Address already in use"), "{}", failed.stderr);
}

#[test]
fn a_drain_ends_all_with_zero() {
    let address = free_address();
    let terse = Terse::with(&answering(address, "one")).arg(&["-W"]).start();
    await_answer(address, "one");
    terse.signal(Signal::USR1);
    terse.wait().expect(0);
}

#[test]
fn the_service_manager_is_told_of_each_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let hear = || {
        let mut bytes = [0; 512];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let (notify, words) = (("NOTIFY_SOCKET", path.to_str().unwrap()), ["-d", "-Ws", "-p", "pid"]);
    let configuration = answering(free_address(), "one").replace(" pidfile pid\n", "");
    let terse = Terse::with(&configuration).listen("web").env(notify.0, notify.1).arg(&words).start();
    let pid = terse.pid().as_raw_nonzero().get();
    let ready = hear();
    assert!(ready.starts_with("READY=1\n") && ready.contains(&format!("MAINPID={pid}\n")), "{ready}");
    assert_eq!(number_in(&terse.path("pid")), Some(pid));
    terse.signal(Signal::USR2);
    assert!(hear().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert!(hear().starts_with("READY=1\n"));
    change(&terse, "nonsense\n");
    terse.signal(Signal::USR2);
    assert!(hear().starts_with("RELOADING=1\n"));
    assert!(hear().contains("STATUS=Reload failed!"));
    terse.signal(Signal::INT);
    assert!(hear().starts_with("STOPPING=1\n"));
    terse.wait().expect(130);
}

#[test]
fn inherited_sockets_live_on_through_reloads() {
    let configuration = answering(free_address(), "one").replace("frontend web\n", "frontend web\n bind fd@${web}\n");
    let terse = Terse::with(&configuration).listen("web").arg(&["-W"]).start();
    let address = terse.address("web");
    assert_eq!(get(address, "/").text(), "one");
    change(&terse, &configuration.replace("string one", "string two"));
    terse.signal(Signal::USR2);
    await_answer(address, "two");
    until("the former worker's end", || (children(terse.pid()).len() == 1).then_some(()));
    assert_eq!(get(address, "/").text(), "two");
    terse.stop().expect(143);
}

#[test]
fn a_master_can_be_a_daemon() {
    let address = free_address();
    let terse = Terse::with(&answering(address, "one")).arg(&["-W", "-D"]).start();
    let pidfile = terse.path("pid");
    // The folder has to stay for as long as the daemon.
    let terse = until("the starter's end", {
        let mut terse = Some(terse);
        move || if terse.as_mut()?.is_running() { None } else { terse.take() }
    });
    assert_eq!(get(address, "/").text(), "one");
    let master = Pid::from_raw(number_in(&pidfile).unwrap()).unwrap();
    assert_ne!(master, terse.pid());
    kill_process(master, Signal::TERM).unwrap();
    until("the daemon's end", || TcpStream::connect(address).is_err().then_some(()));
}

/// Workers of another user are out of reach for a master without CAP_KILL: two of them would serve after a reload.
#[test]
fn a_master_that_may_not_signal_its_workers_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let setpriv = Path::new("/usr/bin/setpriv");
    if !rustix::process::geteuid().is_root() || !setpriv.exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let wrapper = folder.path().join("terse");
    let rights = "-all,+net_bind_service,+setuid,+setgid,+sys_chroot,+chown,+fowner,+dac_read_search,+dac_override";
    let program = env!("CARGO_BIN_EXE_terse");
    let script = format!("#!/bin/sh\nexec {} --bounding-set {rights} --no-new-privs {program} \"$@\"\n", setpriv.display());
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o700)).unwrap();
    let address = free_address();
    let with_user = |text| answering(address, text).replace("global\n", "global\n user nobody\n");
    let terse = Terse::with(&with_user("one")).program(&wrapper).arg(&["-W"]).start();
    await_answer(address, "one");
    let worker = children(terse.pid());
    change(&terse, &with_user("two"));
    terse.signal(Signal::USR2);
    until("the failure", || terse.stderr().contains("The reload failed").then_some(()));
    assert!(terse.stderr().contains("Cannot signal worker"), "{}", terse.stderr());
    assert_eq!((children(terse.pid()), get(address, "/").text()), (worker, "one".into()));
    // It can be told to stop by its lifeline.
    terse.stop().expect(143);
    assert!(TcpStream::connect(address).is_err());
}
