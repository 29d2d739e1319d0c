//! An exchange whose future is dropped at each of its awaits: all that it held is given back, and its line in the log is
//! right.

use super::*;
use crate::connection::downstream::ClientConnection;
use crate::io::Transport;
use crate::io::clock;
use crate::registry::Registry;
use crate::trial;
use crate::worker::{Control, Shared, Worker};
use std::future::poll_fn;
use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{LocalSet, yield_now};

/// Inputs of an exchange.
struct Case {
    name: &'static str,
    /// Lines of the frontend, and of the backend before its servers.
    lines: [&'static str; 2],
    /// The client's bytes, piece by piece.
    asks: &'static [&'static [u8]],
    /// The server's bytes, piece by piece, once it has read so many bytes.
    answers: (usize, &'static [&'static [u8]]),
    /// Whether the server's connections break off after the answer, or keep on.
    closes: bool,
}

const CASES: &[Case] = &[
    Case {
        name: "a body with a length",
        lines: ["", ""],
        asks: &[b"GET /a HTTP/1.1\r\nHo", b"st: h\r\n\r\n"],
        answers: (20, &[b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", b"\r\nabc", b"def", b"ghi"]),
        closes: false,
    },
    Case {
        name: "chunks that are compressed",
        lines: ["compression algo gzip\n compression type text/plain", ""],
        asks: &[b"GET /b HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n"],
        answers: (
            30,
            &[
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n",
                b"a\r\n0123456789\r\n",
                b"a\r\n0123456789\r\n",
                b"0\r\n\r\n",
            ],
        ),
        closes: false,
    },
    Case {
        name: "an upload that is held back, and rules that wait for it",
        lines: ["http-request wait-for-body time 5s at-least 4", ""],
        asks: &[
            b"POST /c HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"4\r\nabcd\r\n",
            b"4\r\nefgh\r\n",
            b"0\r\nSum: 1\r\n\r\n",
        ],
        answers: (60, &[b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"]),
        closes: false,
    },
    Case {
        name: "an answer until close that is tried again first",
        lines: ["", "retries 2\n retry-on 503 conn-failure\n option redispatch"],
        asks: &[b"GET /d HTTP/1.1\r\nHost: h\r\n\r\n"],
        answers: (20, &[b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"]),
        closes: true,
    },
    Case {
        name: "an answer of the proxy's own, behind a wait",
        lines: ["http-request pause 5 if TRUE\n http-request return status 200 content-type text/plain string hello", ""],
        asks: &[b"GET /e HTTP/1.1\r\nHost: h\r\n\r\n"],
        answers: (0, &[]),
        closes: false,
    },
];

/// A folder for sockets, removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that answers each request of a case.
async fn origin(listener: UnixListener, case: &'static Case) {
    while let Ok((mut io, _)) = listener.accept().await {
        tokio::task::spawn_local(async move {
            let mut read = 0;
            loop {
                let mut room = [0; 4096];
                match io.read(&mut room).await {
                    Ok(0) | Err(_) => return,
                    Ok(n) => read += n,
                }
                if read < case.answers.0 {
                    continue;
                }
                for piece in case.answers.1 {
                    if io.write_all(piece).await.is_err() {
                        return;
                    }
                    pause().await;
                }
                read = 0;
                if case.closes {
                    return;
                }
            }
        });
    }
}

/// Time for others: all that is ready runs.
async fn pause() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// Outcome of a cut exchange.
#[derive(Debug)]
struct Outcome {
    /// The log's line: state, status, bytes out.
    line: String,
    /// The bytes that the client received.
    received: String,
    bytes: usize,
    /// Slots and places in queues that are still counted, tasks and sessions that hold the worker, bytes of buffers.
    held: (u32, usize, usize),
}

/// Serves a case's exchange, and cancels it at its `n`th poll; no cut where it ended before that.
fn cut_at(case: &'static Case, folder: &Path, n: usize) -> (Outcome, bool) {
    let [server, journal] = ["server", "log"].map(|name| folder.join(name));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(async {
        for old in [&server, &journal] {
            let _ = std::fs::remove_file(old);
        }
        let logged = UnixDatagram::bind(&journal).unwrap();
        logged.set_nonblocking(true).unwrap();
        tokio::task::spawn_local(origin(UnixListener::bind(&server).unwrap(), case));
        let [front, back] = case.lines;
        let text = format!(
            "defaults d\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\n\
             frontend fe\n bind :80\n log {} local0\n log-format \"%ts %ST %B\"\n {front}\n default_backend be\n\
             backend be\n {back}\n server one unix@{} maxconn 1\n",
            journal.display(),
            server.display()
        );
        let (plan, said) = trial::load(&text);
        let plan = Arc::new(plan.unwrap_or_else(|| panic!("{said:?}")));
        let (_running, control) = watch::channel(Control::Running);
        let worker = Worker::new(plan.clone(), 0, Shared::alone(control));
        let driver = tokio::task::spawn_local(worker.wheel.clone().drive());
        worker.logger.borrow_mut().open(&plan.frontends[0].log.journal);
        let (near, mut far) = UnixStream::pair().unwrap();
        let (cut, received) = {
            let session = Session::between(&worker, 0, None, None);
            let mut connection = ClientConnection::new(Transport::Unix(near), worker.wheel.timer());
            connection.buffer = worker.pools.small.get().await;
            let client = tokio::task::spawn_local(async move {
                for piece in case.asks {
                    if far.write_all(piece).await.is_err() {
                        break;
                    }
                    pause().await;
                }
                far
            });
            let cut = {
                let mut side = Client::new(&mut connection, Vec::new());
                let mut place = Registry::enter(&session);
                let cancel = session.cancel.clone();
                let before = Before { cancel: &cancel, idle_since: clock::now(), began: clock::now(), cut: None };
                let mut serving = pin!(run(&mut side, &session, &mut place, before));
                let (mut polls, mut cut) = (0, false);
                let waiting = poll_fn(|cx| {
                    polls += 1;
                    if polls == n {
                        cut = true;
                        cancel.set(Who::Killed);
                    }
                    serving.as_mut().poll(cx).map(drop)
                });
                tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the exchange ends");
                cut
            };
            drop(connection);
            let far = client.await.unwrap().into_std().unwrap();
            far.set_nonblocking(true).unwrap();
            let (mut far, mut received) = (far, Vec::new());
            let _ = far.read_to_end(&mut received);
            (cut, received)
        };
        pause().await;
        let mut line = [0; 4096];
        let length = logged.recv(&mut line).unwrap_or_else(|error| panic!("{}: no line at {n}: {error}", case.name));
        assert!(logged.recv(&mut [0; 4096]).is_err(), "{}: a second line at {n}", case.name);
        let line = String::from_utf8_lossy(&line[..length]).trim_end().rsplit(": ").next().unwrap_or_default().to_owned();
        let slots = plan.backends.now()[0].farm.servers().iter().map(|server| server.served() + server.queued()).sum();
        driver.abort();
        pause().await;
        let sessions = Rc::strong_count(&worker) - 1;
        drop(worker);
        let held = (slots, sessions, plan.memory.used());
        (Outcome { line, bytes: received.len(), received: String::from_utf8_lossy(&received).into_owned(), held }, cut)
    }))
}

#[test]
fn an_exchange_can_be_dropped_at_each_of_its_awaits() {
    let folder = Folder(std::env::temp_dir().join(format!("terse-awaits-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    for case in CASES {
        let (mut n, mut states) = (1, Vec::new());
        loop {
            let (outcome, cut) = cut_at(case, &folder.0, n);
            let what = format!("{} at poll {n}: {outcome:?}", case.name);
            let mut words = outcome.line.split(' ');
            let state = words.next().unwrap_or_default();
            let (status, bytes) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            assert_eq!(outcome.held, (0, 0, 0), "{what}");
            let last = outcome.received.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n");
            if let Some(told) = last.strip_prefix("HTTP/1.1 ") {
                assert!(told.starts_with(status), "{what}");
            }
            if status != "-1" && status != "0" {
                assert_eq!(bytes, outcome.bytes.to_string(), "{what}");
            }
            if !cut {
                assert!(n > 2, "{what}");
                break;
            }
            assert!(state.starts_with('K') || state == "--" || state == "LR", "{what}");
            states.push(state.to_owned());
            n += 1;
            assert!(n < 200, "{what}");
        }
        states.dedup();
        assert!(states.iter().any(|state| state.starts_with('K')), "{}: {states:?}", case.name);
    }
}
