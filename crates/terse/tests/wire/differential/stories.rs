//! Actions of clients, servers and operators, one after the other, through both proxies. The responses to clients, the log's lines
//! about streams and servers, and the counters of `show stat` are compared.
//!
//! An act is one line of text. `1 GET /x` is a request of client 1, which connects if it has not. `1 POST /x abc` has a body,
//! `1 = bytes` sends these bytes. `1 reads` takes the answer, `1 heads` its head, `1 leaves` closes, `1 shuts` closes its half,
//! `1 breaks` resets. `seen a 2` waits until server `a` has read two requests. `go a` lets it answer one that it holds, `kill a`
//! and `revive a` end and restore it. `stat web/a status UP` waits until `show stat` has that, `line ... ` until the log has it.
//! `cli ...` is an operator's command; `table web` prints the counters of a stick table once all clients have left.

use super::compare::lines_differ;
use super::figures;
use super::server::answer;
use super::support::client::Client;
use super::support::program::find;
use super::support::proxy::DEFAULTS;
use super::support::server::{Connection, Server};
use super::support::{PATIENCE, Terse, until};
use rustix::process::Signal;
use socket2::SockRef;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A configuration, and the acts.
pub(crate) struct Story {
    /// Lines of `listen web`; `{a}` is the address of the first server, `{dead}` one that refuses, `{deaf}` one that never accepts. Other
    /// sections may follow.
    pub(crate) lines: String,
    pub(crate) acts: &'static [&'static str],
    /// Answers of the agent at port `{agent}`, one after the other; the last one for ever.
    pub(crate) agent: &'static [&'static str],
    /// Parts of lines, and columns, that may differ, each with the reason.
    pub(crate) allowed: &'static [(&'static str, &'static str)],
}

pub(crate) fn story(lines: impl Into<String>, acts: &'static [&'static str]) -> Story {
    Story { lines: lines.into(), acts, agent: &[], allowed: &[] }
}

impl Story {
    pub(crate) fn but(self, allowed: &'static [(&'static str, &'static str)]) -> Story {
        Story { allowed, ..self }
    }
}

/// Outcome of a story with one proxy.
#[derive(Default)]
struct Outcome {
    said: Vec<String>,
    streams: Vec<String>,
    events: Vec<String>,
    counters: Vec<String>,
}

/// Number of times that a story with a difference is played.
const TRIES: usize = 3;

/// Plays stories with both; fails with all differences.
pub(crate) fn compare(stories: &[Story]) {
    let named = std::env::var_os("HAPROXY").map(Into::into);
    let Some(haproxy) = named.or_else(|| find("haproxy")) else {
        // Past the harness, which shows nothing of a test that passes.
        let _ = writeln!(std::io::stderr(), "left out, for there is no haproxy: {} stories", stories.len());
        return;
    };
    let mut differences = Vec::new();
    for story in stories {
        let Some(first) = difference(story, &haproxy) else { continue };
        // Another test's late client, or its check of a server that has ended, may come to a port that was just given to this one.
        // A true difference appears again.
        match (1..TRIES).find_map(|_| difference(story, &haproxy).is_none().then_some(())) {
            None => differences.push(first),
            Some(()) => drop(writeln!(std::io::stderr(), "differed, and not again: {first}")),
        }
    }
    assert!(differences.is_empty(), "{} of {} stories differ\n{}", differences.len(), stories.len(), differences.join("\n"));
}

/// Returns the differences between the two outcomes of a story.
fn difference(story: &Story, haproxy: &Path) -> Option<String> {
    let told =
        |found: &[String]| format!("{}\n  {:?} {:?}\n    {}", story.lines.trim(), story.acts, story.agent, found.join("\n    "));
    let (theirs, ours) = match (play(story, Some(haproxy)), play(story, None)) {
        (Ok(theirs), Ok(ours)) => (theirs, ours),
        (theirs, ours) => {
            let failed = |name, played: Result<Outcome, String>| played.err().map(|why| format!("not played by {name}: {why}"));
            let failed = [failed("haproxy", theirs), failed("terse", ours)];
            return Some(told(&failed.into_iter().flatten().collect::<Vec<_>>()));
        }
    };
    let mut found = Vec::new();
    for (what, theirs, ours) in [
        ("said", theirs.said, ours.said),
        ("logged", theirs.streams, ours.streams),
        ("told", theirs.events, ours.events),
        ("counted", theirs.counters, ours.counters),
    ] {
        let is_meant = |line: &String| story.allowed.iter().any(|(part, _)| line.contains(part));
        let meant = |lines: Vec<String>| lines.into_iter().filter(|line| !is_meant(line)).collect();
        lines_differ(what, meant(theirs), meant(ours), &mut found);
    }
    (!found.is_empty()).then(|| told(&found))
}

/// A server that holds some answers back.
struct Held {
    server: Server,
    go: Sender<()>,
}

/// Returns the outcome of a story, or the reason why it does not come to its end.
fn play(story: &Story, program: Option<&Path>) -> Result<Outcome, String> {
    let played = std::panic::catch_unwind(|| {
        let mut stage = Stage::open(story, program);
        for act in story.acts {
            stage.act(act);
        }
        stage.close()
    });
    played.map_err(|why| {
        let literal = why.downcast_ref::<&str>().map(ToString::to_string);
        why.downcast_ref::<String>().cloned().or(literal).unwrap_or_default()
    })
}

struct Stage {
    process: Terse,
    servers: Vec<Held>,
    agent: Server,
    clients: BTreeMap<u32, Client>,
    /// Connections that belong to no client, which fill the queue of an address.
    _crowd: Vec<socket2::Socket>,
    said: Vec<String>,
    text: String,
}

impl Stage {
    fn open(story: &Story, program: Option<&Path>) -> Stage {
        let held = |name| {
            let (go, wait) = channel();
            let wait = Arc::new(Mutex::new(wait));
            Held { server: Server::start(move |connection| serve(connection, name, &wait)), go }
        };
        let servers: Vec<Held> = ['a', 'b', 'c'].into_iter().map(held).collect();
        let mut text = format!(
            "global\n nbthread 1\n maxconn 1000\n log stdout format raw local0\n stats socket fd@${{cli}} level admin\n{DEFAULTS} \
             no option abortonclose\n log global\nlisten web\n bind fd@${{web}}\n{}\n",
            story.lines
        );
        for (held, name) in servers.iter().zip('a'..) {
            let address = held.server.address();
            text = text
                .replace(&format!("{{{name}}}"), &address.to_string())
                .replace(&format!("{{{name}_port}}"), &address.port().to_string());
        }
        let (answers, is_told) = (story.agent, story.lines.contains("agent-send"));
        let agent = Server::start(move |connection| {
            if is_told && connection.bytes(6).as_deref() != Some(b"hello\n") {
                return;
            }
            connection.send(answers.get(connection.number).or(answers.last()).unwrap_or(&""));
        });
        text = text.replace("{agent}", &agent.address().port().to_string());
        let mut crowd = Vec::new();
        if text.contains("{deaf}") {
            let (sockets, address) = deaf();
            crowd = sockets;
            text = text.replace("{deaf}", &address);
        }
        text = text.replace("{dead}", "127.0.0.1:1");
        let process = Terse::with(&text).listen("web").listen("cli").arg(&["-db"]);
        let process = match program {
            Some(path) => process.program(path),
            None => process,
        };
        Stage { process: process.start(), servers, agent, clients: BTreeMap::new(), _crowd: crowd, said: Vec::new(), text }
    }

    fn held(&mut self, name: &str) -> &mut Held {
        let place = usize::from(name.as_bytes()[0] - b'a');
        &mut self.servers[place]
    }

    fn act(&mut self, act: &str) {
        let (who, what) = act.split_once(' ').unwrap_or((act, ""));
        match who {
            "seen" => {
                let (name, count) = what.split_once(' ').unwrap();
                let count: usize = count.parse().unwrap();
                let server = &self.held(name).server;
                until(act, || (server.requests().len() >= count).then_some(()));
            }
            "go" => self.held(what).go.send(()).unwrap(),
            "kill" => self.held(what).server.kill(),
            "revive" => self.held(what).server.revive(),
            "stat" => {
                let mut words = what.splitn(3, ' ');
                let (row, column, value) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or(""));
                self.still_runs();
                until(act, || (figures::of(&self.process, row, column) == value).then_some(()));
            }
            "asked" => {
                let count: usize = what.parse().unwrap();
                until(act, || (self.agent.accepted() >= count).then_some(()));
            }
            "line" => until(act, || self.process.stdout().contains(what).then_some(())),
            "cli" => {
                let answer = figures::command(&self.process, what);
                self.said.push(format!("{act}: {}", answer.trim()));
            }
            "table" => {
                self.clients.clear();
                let counts = figures::counts(&self.process, what);
                self.said.push(format!("{act}: {counts}"));
            }
            client => self.client(client.parse().unwrap(), what),
        }
    }

    fn still_runs(&mut self) {
        assert!(self.process.is_running(), "{}\n{}", self.text, self.process.stderr());
    }

    fn client(&mut self, number: u32, what: &str) {
        if what == "leaves" {
            // A client whose connection has been closed has left: it does not come again to do so.
            self.clients.remove(&number);
            return;
        }
        let address = self.process.address("web");
        let client = self.clients.entry(number).or_insert_with(|| Client::connect(address));
        match what {
            "reads" => {
                let response = client.response("GET");
                let closed = response.status == 0;
                let body = if response.status < 400 { response.text() } else { String::new() };
                self.said.push(format!("{number}: {} {}", response.status, body.chars().take(40).collect::<String>()));
                if closed {
                    self.clients.remove(&number);
                }
            }
            "heads" => {
                let head = client.head();
                self.said.push(format!("{number}: {}", head.status));
            }
            // An answer that is not whole.
            "reads rest" => {
                let text = String::from_utf8_lossy(&rest(client)).into_owned();
                let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
                let line = head.lines().next().unwrap_or("");
                let body = if line.contains(" 4") || line.contains(" 5") { "" } else { body };
                self.said.push(format!("{number}: {line} {} bytes", body.len()));
                self.clients.remove(&number);
            }
            "shuts" => match client.stream().shutdown(Shutdown::Write) {
                // The proxy has already reset the connection.
                Err(error) if error.kind() == ErrorKind::NotConnected => {}
                shut => shut.unwrap(),
            },
            "breaks" => {
                SockRef::from(&*client.stream()).set_linger(Some(Duration::ZERO)).unwrap();
                self.clients.remove(&number);
            }
            "connects" => {}
            raw if raw.starts_with("= ") => client.send(unescaped(&raw[2..])),
            request => {
                let mut parts = request.splitn(3, ' ');
                let (method, target, body) = (parts.next().unwrap(), parts.next().unwrap(), parts.next());
                let length = body.map(|body| format!("Content-Length: {}\r\n", body.len())).unwrap_or_default();
                client.send(format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{length}\r\n{}", body.unwrap_or("")));
            }
        }
    }

    fn close(mut self) -> Outcome {
        self.still_runs();
        self.clients.clear();
        let counters = figures::rows(&self.process);
        self.process.signal(Signal::USR1);
        let Stage { process, servers, said, .. } = self;
        let stdout = process.wait().stdout;
        // Not before: checks are made as long as the process lives.
        drop(servers);
        let lines = stdout.lines().filter(|line| !line.starts_with("Proxy ")).map(normal);
        let (events, streams) = lines.partition(|line| EVENTS.iter().any(|start| line.starts_with(start)));
        Outcome { said, streams, events, counters }
    }
}

/// Beginnings of lines about servers.
const EVENTS: &[&str] = &["Server ", "Backup Server ", "Health check ", "Agent check ", "proxy ", "backend "];

fn rest(client: &mut Client) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    // A reset after the last byte is an end like another.
    let _ = client.stream().read_to_end(&mut bytes);
    bytes
}

/// An address where no connection is accepted: its queue is full, so that connecting takes for ever.
fn deaf() -> (Vec<socket2::Socket>, String) {
    use socket2::{Domain, Socket, Type};
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut sockets = vec![listener];
    // One more than fit: a connection that comes now is not answered.
    for _ in 0..3 {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&address);
        sockets.push(socket);
    }
    (sockets, address.as_socket().unwrap().to_string())
}

fn unescaped(text: &str) -> String {
    text.replace("\\r", "\r").replace("\\n", "\n")
}

/// Actions of servers, by the last part of the path.
fn serve(connection: &mut Connection, name: char, wait: &Mutex<Receiver<()>>) {
    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n";
    loop {
        let Some(request) = connection.head() else { return };
        let path = request.target.split('?').next().unwrap().rsplit('/').next().unwrap().to_owned();
        match path.as_str() {
            // The body does not matter.
            "early" => {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly");
                connection.rest();
                return;
            }
            "silent" => {
                connection.rest();
                return;
            }
            _ => {}
        }
        let mut request = request;
        if connection.body(&mut request).is_none() {
            return;
        }
        match path.as_str() {
            "hold" => {
                let _ = wait.lock().unwrap().recv_timeout(PATIENCE);
            }
            "half" => {
                connection.send(format!("{HEAD}half"));
                return;
            }
            "broken" => {
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
                return;
            }
            "badchunk" => {
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n");
                connection.rest();
                return;
            }
            "nochunk" => {
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
                connection.rest();
                return;
            }
            "badsecond" => {
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
                let _ = wait.lock().unwrap().recv_timeout(PATIENCE);
                connection.send("zz\r\n");
                connection.rest();
                return;
            }
            "badtrailer" => {
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\nbad trailer\r\n\r\n");
                connection.rest();
                return;
            }
            "slowchunk" => {
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4");
                connection.rest();
                return;
            }
            "stall" => {
                connection.send(format!("{HEAD}half"));
                connection.rest();
                return;
            }
            "slowhead" => {
                connection.send("HTTP/1.1 200 OK\r\nX: ");
                connection.rest();
                return;
            }
            "torn" => {
                connection.send("HTTP/1.1 200 OK\r\nX: ");
                return;
            }
            "gone" => return,
            "reset" => {
                connection.reset();
                return;
            }
            "big" => {
                connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BIG}\r\n\r\n"));
                connection.send(vec![b'x'; BIG]);
                connection.rest();
                return;
            }
            _ => {}
        }
        if !connection.send(answer(&request, &path, name)) || matches!(path.as_str(), "close" | "old" | "junk" | "empty") {
            return;
        }
    }
}

/// More than all buffers on the way hold.
const BIG: usize = 32 << 20;

/// A line without the parts that no two runs share. Those are ports, dates, times, the number of connections (also to a server
/// whose slot has passed on to the next one already), the lengths of heads.
pub(crate) fn normal(line: &str) -> String {
    let mut numbers = 0;
    let (mut is_status, mut is_length) = (false, false);
    let words: Vec<String> = line
        .split(' ')
        .map(|word| {
            let figures = word.split('/').count() > 1
                && word.split('/').all(|part| {
                    let part = part.trim_start_matches(['+', '-']);
                    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
                });
            if std::mem::take(&mut is_status) {
                is_length = word.len() == 3 || word == "-1";
                return word.to_owned();
            }
            let digits = word.trim_start_matches('+');
            if std::mem::take(&mut is_length) && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return word.replace(digits, "B");
            }
            if figures {
                is_status = numbers == 0;
                numbers += 1;
                return match numbers {
                    // Times: whether there are any.
                    1 => word.split('/').map(|part| if part.starts_with('-') { "-" } else { "N" }).collect::<Vec<_>>().join("/"),
                    2 => word
                        .split('/')
                        .enumerate()
                        .map(|(i, part)| if matches!(i, 0 | 1 | 3) { "*" } else { part })
                        .collect::<Vec<_>>()
                        .join("/"),
                    _ => word.to_owned(),
                };
            }
            if word.starts_with('[') && word.contains('/') && word.contains(':') {
                return "[date]".into();
            }
            without_port(word)
        })
        .collect();
    let line = words.join(" ");
    // The stream that has brought a server down may be counted as its own, still.
    let line = without_number(&line, "check duration: ");
    let served = line.find(" sessions active").and_then(|end| Some((line[..end].rfind(' ')? + 1, end)));
    served.map_or(line.clone(), |(start, end)| format!("{}N{}", &line[..start], &line[end..]))
}

fn without_port(word: &str) -> String {
    without_number(word, "127.0.0.1:")
}

/// The same, `N` in place of the number after some text.
fn without_number(line: &str, behind: &str) -> String {
    match line.find(behind).map(|at| at + behind.len()) {
        Some(at) => format!("{}N{}", &line[..at], line[at..].trim_start_matches(|byte: char| byte.is_ascii_digit())),
        None => line.to_owned(),
    }
}
