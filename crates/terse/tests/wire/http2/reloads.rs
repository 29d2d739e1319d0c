//! Reloads under connections of HTTP/2 that never rest: no request fails. `TERSE_RELOADS` and `TERSE_CLIENTS` set how many of each.

use super::support::proxy::DEFAULTS;
use super::support::server::{Server, ok};
use super::support::{PATIENCE, Terse, until};
use rustix::process::Signal;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Events that the clients have seen.
#[derive(Default)]
struct Seen {
    /// By client.
    answers: RefCell<Vec<u64>>,
    /// Requests that were not begun according to a GOAWAY without an error (RFC 9113 section 6.8), and were sent again.
    repeated: Cell<u64>,
    connections: Cell<u64>,
    failures: RefCell<Vec<String>>,
    is_over: Cell<bool>,
}

fn add(number: &Cell<u64>) {
    number.set(number.get() + 1);
}

/// A client that asks, pauses and asks again; on a new connection once the old one is going away.
async fn client(address: SocketAddr, number: usize, seen: Rc<Seen>) {
    while !seen.is_over.get() {
        if let Err(why) = on_one_connection(address, number, &seen).await {
            seen.failures.borrow_mut().push(why);
        }
    }
}

async fn on_one_connection(address: SocketAddr, number: usize, seen: &Seen) -> Result<(), String> {
    let stream = TcpStream::connect(address).await.map_err(|error| format!("connect: {error}"))?;
    stream.set_nodelay(true).unwrap();
    let (mut sender, connection) = h2::client::handshake(stream).await.map_err(|error| format!("handshake: {error}"))?;
    tokio::task::spawn_local(connection);
    add(&seen.connections);
    while !seen.is_over.get() {
        // A connection that is going away takes nothing new.
        let Ok(ready) = sender.ready().await else { return Ok(()) };
        sender = ready;
        let request = http::Request::get(format!("http://{address}/")).body(()).unwrap();
        let Ok((answer, _)) = sender.send_request(request, true) else { return Ok(()) };
        let head = match timeout(PATIENCE, answer).await {
            Err(_) => return Err("no answer in time".into()),
            Ok(Err(error)) if error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR) => {
                add(&seen.repeated);
                return Ok(());
            }
            Ok(head) => head.map_err(|error| format!("no head: {error}"))?,
        };
        match timeout(PATIENCE, whole(head)).await {
            Err(_) => return Err("no end in time".into()),
            Ok(Ok(text)) if text == "kept" => seen.answers.borrow_mut()[number] += 1,
            Ok(Ok(text)) => return Err(format!("another answer: {text}")),
            Ok(Err(error)) => return Err(format!("broken off: {error}")),
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

async fn whole(answer: http::Response<h2::RecvStream>) -> Result<String, h2::Error> {
    let (head, mut body) = answer.into_parts();
    let mut text = if head.status == 200 { String::new() } else { head.status.to_string() };
    while let Some(piece) = body.data().await {
        let piece = piece?;
        text.push_str(&String::from_utf8_lossy(&piece));
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok(text)
}

/// Between two requests of a connection.
const PAUSE: Duration = Duration::from_millis(20);

fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().map_or(usual, |number| number.parse().unwrap())
}

#[test]
fn no_request_is_lost() {
    let (reloads, clients) = (number("TERSE_RELOADS", 5), number("TERSE_CLIENTS", 100));
    let server = Server::answering(|_| ok("kept"));
    let text = format!(
        "global\n stats socket fd@${{cli}}\n{DEFAULTS}\nlisten web\n bind fd@${{web}} proto h2\n server one {}\n",
        server.address()
    );
    let terse = Terse::with(&text).arg(&["-W"]).listen("web").listen("cli").start();
    let address = terse.address("web");
    let seen = Rc::new(Seen { answers: RefCell::new(vec![0; clients]), ..Seen::default() });
    let process = || terse.info("Pid");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let running: Vec<_> = (0..clients).map(|number| tokio::task::spawn_local(client(address, number, seen.clone()))).collect();
        for _ in 0..reloads {
            let (asked, before) = (seen.answers.borrow().clone(), process());
            terse.signal(Signal::USR2);
            // Every client has two more answers before the next one.
            let has_asked = || seen.answers.borrow().iter().zip(&asked).all(|(now, before)| *now >= before + 2);
            let came = timeout(PATIENCE, async {
                while process() == before || !has_asked() {
                    sleep(PAUSE).await;
                }
            });
            came.await.unwrap_or_else(|_| panic!("no reload: {}", terse.stderr()));
        }
        seen.is_over.set(true);
        for client in running {
            client.await.unwrap();
        }
    });
    let (failures, answers) = (seen.failures.borrow(), seen.answers.borrow().iter().sum::<u64>());
    eprintln!(
        "{reloads} reloads, {clients} clients: {} answers, {} connections, {} repeated, {} failed",
        answers,
        seen.connections.get(),
        seen.repeated.get(),
        failures.len()
    );
    assert!(failures.is_empty(), "{} failed, first: {:?}", failures.len(), failures.first());
    assert!(seen.repeated.get() * 10 < answers, "{} of {answers} were sent twice", seen.repeated.get());
    assert!(seen.connections.get() >= (clients * 2) as u64, "every reload closes connections: {}", seen.connections.get());
    until("the former process's end", || terse.stderr().matches("Former worker").count().ge(&reloads).then_some(()));
    terse.stop().expect(143);
}
