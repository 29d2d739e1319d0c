//! Conversations over pairs of sockets. Time stands still except for tests that wait for it.

use super::*;
use crate::commands::fixture::{WEB, context};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use tokio::io::{DuplexStream, duplex};

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(test)
}

/// Starts a conversation; the task returns its end.
fn begin(context: &Arc<Context>) -> (DuplexStream, tokio::task::JoinHandle<io::Result<Ending>>) {
    let (ours, mut theirs) = duplex(1 << 20);
    let context = context.clone();
    let task = tokio::spawn(async move {
        let mut client = Client::new(&context.settings.sockets[0], context.settings.timeout());
        converse(&mut theirs, &mut client, &context).await
    });
    (ours, task)
}

/// Answers to all of a client's bytes. `whole`: it closes its side after them.
fn answer(bytes: &[u8], whole: bool) -> String {
    run(async {
        let (mut stream, task) = begin(&context(WEB));
        stream.write_all(bytes).await.unwrap();
        if whole {
            stream.shutdown().await.unwrap();
        }
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(task.await.unwrap().unwrap(), Ending::Close, "{text}");
        text
    })
}

const VERSION: &str = "3.5-dev5\n\n";

#[test]
fn one_line_is_answered() {
    for whole in [false, true] {
        assert_eq!(answer(b"show version\n", whole), VERSION);
        assert_eq!(answer(b"show version\r\nshow backend\n", whole), VERSION);
        assert_eq!(answer(b"\n", whole), "\n");
        assert_eq!(answer(b"show version;;set weight be/b 3;show version\n", whole), format!("{VERSION}\n\n{VERSION}"));
        assert_eq!(answer(b"show version;quit;show version\n", whole), VERSION);
        assert_eq!(answer(b"echo a <<\nb\n\n", whole), "a\n\n");
    }
    assert_eq!(answer(b"show version", true), "", "the rest may have been lost");
    assert_eq!(answer(b"show version\nshow", true), VERSION);
    assert_eq!(answer(b"", true), "");
}

#[test]
fn what_was_cut_is_not_carried_out() {
    run(async {
        let context = context(WEB);
        for cut in [
            b"set weight be/b 1".as_slice(),
            b"prompt i\nset weight be/b 1",
            b"show version;set weight be/b 1",
            b"prompt i\nset weight be/b 1 <<\nx\n",
        ] {
            let (mut stream, task) = begin(&context);
            stream.write_all(cut).await.unwrap();
            stream.shutdown().await.unwrap();
            assert_eq!(task.await.unwrap().unwrap(), Ending::Close);
        }
        let (mut stream, _task) = begin(&context);
        stream.write_all(b"get weight be/b\n").await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "10 (initial 10)\n\n");
    });
}

#[test]
fn interactive_clients_are_answered_until_they_go() {
    assert_eq!(answer(b"prompt\nshow version\n", true), format!("\n> {VERSION}> "));
    assert_eq!(answer(b"prompt i\nshow version\nshow version\nquit\n", false), format!("\n{VERSION}{VERSION}"));
    assert_eq!(answer(b"prompt\n\nshow version\nquit\n", false), format!("\n> \n> {VERSION}> "));
    assert_eq!(answer(b"prompt;show version\nprompt\n", false), format!("\n{VERSION}> \n"));
    assert_eq!(answer(b"prompt timed\nquit\n", false), "\n[0:00:00:00]> ");
    assert_eq!(answer(b"prompt p;prompt n\nshow version\n", false), "\n\n");
    assert!(answer(b"prompt help\n", false).starts_with("Usage: prompt "));
}

#[test]
fn a_payload_is_asked_for() {
    run(async {
        let (mut stream, task) = begin(&context(WEB));
        let mut seen = String::new();
        for (sent, answered) in [("prompt\n", "\n> "), ("echo a <<\n", "+ "), ("b\n", "+ "), ("\n", "a\n\n> "), ("quit\n", "")] {
            stream.write_all(sent.as_bytes()).await.unwrap();
            let mut bytes = vec![0; answered.len()];
            stream.read_exact(&mut bytes).await.unwrap();
            seen.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        assert_eq!(task.await.unwrap().unwrap(), Ending::Close);
        assert_eq!(seen, "\n> + + a\n\n> ");
    });
}

#[test]
fn long_lines_end_the_conversation() {
    let long = vec![b'x'; crate::input::LINE_BYTES + 1];
    assert_eq!(answer(&long, true), "The command line is too long.\n\n");
    let payload = [&b"echo a <<\n"[..], &vec![b'x'; crate::input::PAYLOAD_BYTES + 1]].concat();
    assert_eq!(answer(&payload, true), "The payload is too long.\n\n");
    assert!(answer(&[&b"x ".repeat(65)[..], b"\n"].concat(), true).starts_with("Too many arguments."));
}

#[test]
fn silent_clients_are_left() {
    run(async {
        let (mut stream, task) = begin(&context(WEB));
        stream.write_all(b"prompt;set timeout cli 60\n").await.unwrap();
        let begun = tokio::time::Instant::now();
        assert_eq!(task.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 60);
    });
}

#[test]
fn clients_that_do_not_read_are_left() {
    run(async {
        let context = context(WEB);
        let (mut ours, mut theirs) = duplex(1024);
        ours.write_all(b"show stat\n").await.unwrap();
        let mut client = Client::new(&context.settings.sockets[0], context.settings.timeout());
        let error = converse(&mut theirs, &mut client, &context).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    });
}

/// Serves on a unix socket for as long as the test talks to it.
fn served<T>(test: impl AsyncFnOnce(std::path::PathBuf, Arc<Context>) -> T) -> T {
    let folder = std::env::temp_dir().join(format!("terse-admin-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(async {
        let context = context(WEB);
        let socket = context.settings.sockets[0].clone();
        let (_say, leave) = Leave::new();
        let serving = serve(vec![(socket, Listener::Unix(listener))], context.clone(), leave);
        tokio::select! {
            ended = serving => panic!("{ended:?}"),
            outcome = test(path, context) => outcome,
        }
    });
    std::fs::remove_dir_all(folder).unwrap();
    outcome
}

#[test]
fn sockets_serve_many_at_once_and_no_more_than_their_limit() {
    served(async |path, context| {
        let mut busy = Vec::new();
        for _ in 0..10 {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            stream.write_all(b"prompt i\n").await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), b'\n');
            busy.push(stream);
        }
        assert_eq!(context.room.available_permits(), 0);
        let mut waiting = UnixStream::connect(&path).await.unwrap();
        waiting.write_all(b"show version\n").await.unwrap();
        waiting.shutdown().await.unwrap();
        busy[3].write_all(b"quit\n").await.unwrap();
        let mut text = String::new();
        waiting.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, VERSION);
    });
}

#[test]
fn listeners_go_to_who_takes_this_processes_place() {
    served(async |path, _| {
        let asked = tokio::task::spawn_blocking(move || {
            let mut stream = StdUnixStream::connect(path).unwrap();
            io::Write::write_all(&mut stream, b"_getsocks\n").unwrap();
            let mut text = String::new();
            io::Read::read_to_string(&mut stream, &mut text).unwrap();
            text
        });
        assert_eq!(asked.await.unwrap(), "socks");
    });
}

#[test]
fn other_sockets_hand_nothing_over() {
    run(async {
        let context = context(WEB);
        let (mut ours, mut theirs) = duplex(1024);
        ours.write_all(b"_getsocks\n").await.unwrap();
        let mut client = Client::new(&context.settings.sockets[0], context.settings.timeout());
        client.may_take_listeners = false;
        assert_eq!(converse(&mut theirs, &mut client, &context).await.unwrap(), Ending::Close);
        drop(theirs);
        assert_eq!(ours.read(&mut [0; 9]).await.unwrap(), 0);
    });
}

/// A process that leaves answers the commands of accepted clients, closes idle connections, and accepts nothing more.
#[test]
fn what_was_accepted_is_answered() {
    run(async {
        let context = context(WEB);
        let listener =
            StdUnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("terse-leave-{}", std::process::id())).unwrap())
                .unwrap();
        listener.set_nonblocking(true).unwrap();
        let connect = || StdUnixStream::connect_addr(&listener.local_addr().unwrap()).unwrap();
        let (mut asks, mut idles) = (connect(), connect());
        let (say, leave) = Leave::new();
        let socket = context.settings.sockets[0].clone();
        let served = tokio::spawn(serve(vec![(socket, Listener::Unix(listener.try_clone().unwrap()))], context.clone(), leave));
        std::io::Write::write_all(&mut idles, b"prompt\n").unwrap();
        while context.tally.clients.load(Relaxed) < 2 || context.tally.commands.load(Relaxed) < 1 {
            tokio::task::yield_now().await;
        }
        say.send_replace(true);
        let mut idle = String::new();
        let mut read = tokio::task::spawn_blocking(move || std::io::Read::read_to_string(&mut idles, &mut idle).map(|_| idle));
        assert!((&mut read).await.unwrap().unwrap().ends_with("> "), "closed at its prompt");
        let late = connect();
        std::io::Write::write_all(&mut asks, b"show version\n").unwrap();
        let mut text = String::new();
        let read = tokio::task::spawn_blocking(move || std::io::Read::read_to_string(&mut asks, &mut text).map(|_| text));
        assert_eq!(read.await.unwrap().unwrap(), VERSION);
        served.await.unwrap().unwrap();
        // The late one still waits in the kernel, for the next process.
        assert!(listener.accept().is_ok());
        drop(late);
    });
}
