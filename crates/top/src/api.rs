//! The console's API: `;api=summary`, `;api=servers`, and orders to servers.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Deserializer, Serialize};
use std::time::{Duration, Instant};

/// Default URL of the console: that of `terse --to` and the packaged file.
pub(crate) const USUAL: &str = "http://127.0.0.1:8404/";
/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Limit of an answer, in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// Limit of servers in an answer.
const PAGE: usize = 200;
/// A hint for a 403 without a reason.
const STRANGER: &str = "without a user it knows 'localhost' and addresses; 'console ADDRESS host NAME' adds a name";
/// Time limit of all requests of a look together.
const LOOK: Duration = Duration::from_secs(15);
/// Limit of shown servers.
pub(crate) const MOST_SERVERS: usize = 10_000;

/// A console.
#[derive(Clone)]
pub(crate) struct Console {
    agent: ureq::Agent,
    /// The address that names of the API are appended to.
    base: String,
    authorization: Option<String>,
}

/// Reason why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("{0} is no address of a console: http://[USER:PASSWORD@]HOST:PORT/")]
    Url(String),
    #[error("a console speaks plain HTTP: {0} says https")]
    Secure(String),
    #[error("{0}: {1}. A console is shown by 'console 127.0.0.1:8404' in the section 'global', and by 'terse --to PORT'")]
    Unreachable(String, String),
    #[error("{0} wants a user: http://USER:PASSWORD@HOST:PORT/")]
    User(String),
    #[error("{0} answers {1}: {2}")]
    Refused(String, u16, String),
    #[error("{0} answers something else than a console's API: {1}")]
    Strange(String, String),
    #[error("the terminal: {0}")]
    Terminal(#[from] std::io::Error),
}

/// Figures of one look.
#[derive(Clone, Default, Debug)]
pub(crate) struct Seen {
    pub(crate) summary: Summary,
    pub(crate) servers: Vec<Server>,
}

#[derive(Clone, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct Summary {
    #[serde(deserialize_with = "clean")]
    pub(crate) version: String,
    pub(crate) uptime_s: u64,
    pub(crate) stopping: bool,
    pub(crate) busy_permille: u64,
    pub(crate) connections: Connections,
    pub(crate) sent: Sent,
    pub(crate) codings: Vec<Coding>,
    pub(crate) reasons: Vec<Reason>,
    pub(crate) memory: Vec<Memory>,
    pub(crate) dictionaries: Option<Box<Dictionaries>>,
    pub(crate) advice: Vec<Advice>,
    #[serde(deserialize_with = "clean")]
    pub(crate) rights: String,
}

/// Dictionaries of the process.
#[derive(Clone, Copy, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct Dictionaries {
    pub(crate) count: u64,
    pub(crate) held: u64,
    pub(crate) oldest_s: u64,
    pub(crate) offered: u64,
    pub(crate) used: u64,
    pub(crate) not_worth: u64,
    #[serde(rename = "in")]
    pub(crate) bytes_in: u64,
    #[serde(rename = "out")]
    pub(crate) bytes_out: u64,
}

#[derive(Clone, Copy, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct Connections {
    pub(crate) now: u64,
    pub(crate) limit: u64,
}

#[derive(Clone, Copy, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct Sent {
    pub(crate) bytes: u64,
    pub(crate) before: u64,
}

#[derive(Clone, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct Coding {
    #[serde(deserialize_with = "clean")]
    pub(crate) name: String,
    pub(crate) answers: u64,
    #[serde(rename = "in")]
    pub(crate) bytes_in: u64,
    #[serde(rename = "out")]
    pub(crate) bytes_out: u64,
    pub(crate) coder_us: u64,
}

#[derive(Clone, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct Reason {
    #[serde(deserialize_with = "clean")]
    pub(crate) name: String,
    pub(crate) answers: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct Memory {
    #[serde(deserialize_with = "clean")]
    pub(crate) name: String,
    pub(crate) limit: u64,
    pub(crate) bytes: u64,
    pub(crate) bodies: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

#[derive(Clone, Default, Deserialize, Debug)]
#[serde(default)]
pub(crate) struct Advice {
    #[serde(deserialize_with = "clean")]
    pub(crate) text: String,
    #[serde(deserialize_with = "clean")]
    pub(crate) line: String,
}

#[derive(Clone, Default, Deserialize, PartialEq, Eq, Debug)]
#[serde(default)]
pub(crate) struct Server {
    #[serde(deserialize_with = "clean")]
    pub(crate) backend: String,
    #[serde(deserialize_with = "clean")]
    pub(crate) name: String,
    #[serde(deserialize_with = "clean")]
    pub(crate) state: String,
    pub(crate) since_s: u64,
    pub(crate) check: Check,
    pub(crate) sessions: u64,
    pub(crate) queue: u64,
    #[serde(rename = "in")]
    pub(crate) bytes_in: u64,
    #[serde(rename = "out")]
    pub(crate) bytes_out: u64,
    pub(crate) weight: u64,
}

#[derive(Clone, Default, Deserialize, PartialEq, Eq, Debug)]
#[serde(default)]
pub(crate) struct Check {
    #[serde(deserialize_with = "clean")]
    pub(crate) code: String,
    #[serde(deserialize_with = "clean")]
    pub(crate) text: String,
    pub(crate) duration_ms: u64,
}

#[derive(Deserialize)]
struct Page {
    servers: Vec<Server>,
    next: Option<usize>,
}

/// Servers of a backend, and the change of them.
#[derive(Clone, Serialize, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    pub(crate) backend: String,
    pub(crate) servers: Vec<String>,
    pub(crate) action: &'static str,
}

#[derive(Deserialize)]
struct Changed {
    changed: u64,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(deserialize_with = "clean")]
    error: String,
}

/// A text without control characters: it is drawn on a terminal, and comes from elsewhere.
fn clean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(plain(&Option::<String>::deserialize(deserializer)?.unwrap_or_default()))
}

/// Text with only printable characters that do not change the direction of a line.
fn plain(text: &str) -> String {
    let is_other = |sign: char| {
        sign.is_control() || matches!(sign, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|sign| if is_other(sign) { '?' } else { sign }).collect()
}

/// A URL for messages: without the user and the password.
fn said(url: &str) -> String {
    let (scheme, rest) = url.find("://").map_or(("", url), |at| url.split_at(at + 3));
    plain(&format!("{scheme}{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host)))
}

/// A user and a password, with `%40` and its like decoded.
fn decoded(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|digits| *first == b'%' && digits.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    out
}

impl Console {
    /// A console by its URL.
    pub(crate) fn new(url: &str) -> Result<Console, Wrong> {
        let wrong = || Wrong::Url(said(url));
        if url.starts_with("https://") {
            return Err(Wrong::Secure(said(url)));
        }
        let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
        let (place, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (user, host) = place.rsplit_once('@').map_or((None, place), |(user, host)| (Some(user), host));
        // A password with a slash of its own would end the host early, and be shown.
        let is_sound =
            !host.is_empty() && !path.contains('@') && rest.chars().all(|sign| !sign.is_whitespace() && !sign.is_control());
        if !is_sound {
            return Err(wrong());
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .build();
        Ok(Console {
            agent: config.into(),
            base: format!("http://{host}{path}"),
            authorization: user.map(|user| format!("Basic {}", BASE64_STANDARD.encode(decoded(user)))),
        })
    }

    /// The address, without a password.
    pub(crate) fn address(&self) -> &str {
        &self.base
    }

    /// Fetches all current figures.
    pub(crate) fn look(&self) -> Result<Seen, Wrong> {
        let summary: Summary = self.get("summary")?;
        let (until, mut servers, mut from) = (Instant::now() + LOOK, Vec::new(), Some(0));
        while let Some(first) = from.filter(|_| servers.len() < MOST_SERVERS) {
            let page: Page = self.get(&format!("servers;from={first};count={PAGE}"))?;
            // A console that went backwards, or on without servers, would never end.
            from = page.next.filter(|next| *next > first && !page.servers.is_empty());
            if page.servers.len() > PAGE || Instant::now() > until {
                return Err(Wrong::Strange(self.base.clone(), "more servers than asked for, or too slowly".into()));
            }
            servers.extend(page.servers);
            servers.truncate(MOST_SERVERS);
        }
        Ok(Seen { summary, servers })
    }

    /// Changes servers; returns their number.
    pub(crate) fn order(&self, order: &Order) -> Result<u64, Wrong> {
        let body = serde_json::to_vec(order).map_err(|error| self.strange(&error))?;
        let mut request = self.agent.post(self.url("server")).header("Content-Type", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        self.answer::<Changed>(request.send(&body[..])).map(|answer| answer.changed)
    }

    fn get<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<T, Wrong> {
        let mut request = self.agent.get(self.url(name));
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        self.answer(request.call())
    }

    fn url(&self, name: &str) -> String {
        format!("{};api={name}", self.base)
    }

    fn answer<T: for<'de> Deserialize<'de>>(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T, Wrong> {
        let mut answer = answer.map_err(|error| Wrong::Unreachable(self.base.clone(), plain(&error.to_string())))?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(|error| self.strange(&error))?;
        match status {
            200 => serde_json::from_slice(&body).map_err(|error| self.strange(&error)),
            401 => Err(Wrong::User(self.base.clone())),
            _ => {
                // A page, and no reason: the console does not accept the name by which it was reached.
                let silent = if status == 403 { STRANGER } else { "no reason" };
                let said = serde_json::from_slice(&body).map_or_else(|_| silent.into(), |refusal: Refusal| refusal.error);
                Err(Wrong::Refused(self.base.clone(), status, said))
            }
        }
    }

    fn strange(&self, error: &dyn std::error::Error) -> Wrong {
        Wrong::Strange(self.base.clone(), plain(&error.to_string()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::thread::JoinHandle;

    /// A server that gives these answers, one a connection, and returns the requests.
    pub(crate) fn serving(answers: Vec<String>) -> (SocketAddr, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move || {
            let each = answers.into_iter().map(|answer| {
                let mut stream = BufReader::new(listener.accept().unwrap().0);
                let (mut head, mut length) = (String::new(), 0);
                while !head.ends_with("\r\n\r\n") {
                    let before = head.len();
                    stream.read_line(&mut head).unwrap();
                    let line = head[before..].to_ascii_lowercase();
                    length = line.strip_prefix("content-length: ").map_or(length, |text| text.trim().parse().unwrap());
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                // A client that has read enough may be gone.
                let _ = stream.get_mut().write_all(answer.as_bytes());
                head + std::str::from_utf8(&body).unwrap()
            });
            each.collect()
        };
        (address, std::thread::spawn(serve))
    }

    pub(crate) fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    }

    pub(crate) const SUMMARY: &str = r#"{"v":1,"run":"7.8","version":"0.1.0","uptime_s":3700,"stopping":false,"busy_permille":313,
        "connections":{"now":12,"limit":2000},"sent":{"bytes":11500000,"before":14400000},
        "codings":[{"name":"zstd","answers":30,"in":1900000,"out":340000,"coder_us":100000}],
        "reasons":[{"name":"type-not-listed","group":"configuration","answers":72,"bytes":7900000}],
        "memory":[{"name":"common","limit":67108864,"bytes":113000,"bodies":3,"hits":42,"misses":12,"evicted":0}],
        "dictionaries":{"count":2,"held":640000,"oldest_s":60,"offered":9,"used":7,"not_worth":1,"in":1900000,"out":34000},
        "advice":[{"text":"7.90 MB of application/wasm went as they were","line":"compression type application/wasm"}],"rights":"change","new":[1]}"#;

    pub(crate) fn servers() -> Vec<Server> {
        let of = |name: &str, state: &str, sessions, bytes_out| Server {
            backend: "app".into(),
            name: name.into(),
            state: state.into(),
            since_s: 240,
            check: Check { code: "L4CON".into(), text: "refused".into(), duration_ms: 0 },
            sessions,
            bytes_out,
            weight: 1,
            ..Server::default()
        };
        vec![of("one", "UP", 82, 7_200_000), of("two", "DRAIN", 0, 10), of("three", "DOWN", 0, 0), of("four", "no check", 9, 500)]
    }

    #[test]
    fn a_console_is_looked_at() {
        let page = |name: &str, next: &str| {
            ok(&format!(r#"{{"v":1,"servers":[{{"backend":"app","name":"{name}","state":"UP"}}]{next}}}"#))
        };
        let chunked = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n{SUMMARY}\r\n0\r\n\r\n",
            SUMMARY.len()
        );
        let (address, asked) = serving(vec![chunked, page("a\\u001b[2J", r#","next":200"#), page("b", "")]);
        let seen = Console::new(&format!("http://admin:se@cret@{address}/stats")).unwrap().look().unwrap();
        assert_eq!((seen.summary.sent.before, &*seen.summary.rights), (14_400_000, "change"));
        assert_eq!(seen.servers.iter().map(|server| &*server.name).collect::<Vec<_>>(), ["a?[2J", "b"]);
        let asked = asked.join().unwrap();
        let lines: Vec<_> = asked.iter().map(|head| head.lines().next().unwrap()).collect();
        assert_eq!(
            lines,
            ["summary", "servers;from=0;count=200", "servers;from=200;count=200"]
                .map(|name| format!("GET /stats;api={name} HTTP/1.1"))
        );
        assert!(
            asked.iter().all(|head| head.to_ascii_lowercase().contains("authorization: basic ywrtaw46c2vay3jlda==")),
            "{asked:?}"
        );
    }

    #[test]
    fn orders_are_given() {
        let (address, asked) = serving(vec![ok(r#"{"v":1,"changed":2}"#)]);
        let order = Order { backend: "app".into(), servers: vec!["one".into(), "two".into()], action: "drain" };
        assert_eq!(Console::new(&format!("http://{address}/")).unwrap().order(&order).unwrap(), 2);
        let said = asked.join().unwrap().remove(0);
        assert!(
            said.starts_with("POST /;api=server HTTP/1.1\r\n")
                && said.to_ascii_lowercase().contains("content-type: application/json"),
            "{said}"
        );
        assert!(said.ends_with(r#"{"backend":"app","servers":["one","two"],"action":"drain"}"#), "{said}");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused = ok(r#"{"error":"not shown\u0007 here"}"#).replace("200 OK", "403 Forbidden");
        let large = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", MOST_BYTES + 1) + &" ".repeat(MOST_BYTES as usize + 1);
        for (answer, wanted) in [
            ("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".into(), "wants a user"),
            (refused, "answers 403: not shown? here"),
            (ok("<html>"), "something else"),
            ("SSH-2.0\r\n".into(), "A console is shown by"),
            (large, "something else"),
        ] {
            let (address, asked) = serving(vec![answer]);
            let wrong = Console::new(&format!("http://{address}/")).unwrap().look().unwrap_err().to_string();
            assert!(wrong.contains(wanted), "{wanted}: {wrong}");
            asked.join().unwrap();
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let wrong = Console::new(&format!("http://{free}")).unwrap().look().unwrap_err().to_string();
        assert!(wrong.contains("'console 127.0.0.1:8404'"), "{wrong}");
        for (url, wanted) in
            [("https://a/", "plain HTTP"), ("a:80", "no address"), ("http://", "no address"), ("http://a b/", "no address")]
        {
            let wrong = Console::new(url).err().unwrap().to_string();
            assert!(wrong.contains(wanted), "{url}: {wrong}");
        }
    }

    #[test]
    fn pages_end() {
        let empty = |next| ok(&format!(r#"{{"servers":[],"next":{next}}}"#));
        let (address, _asked) = serving(vec![ok(SUMMARY), empty(1), empty(2), empty(3)]);
        let seen = Console::new(&format!("http://{address}/")).unwrap().look().unwrap();
        assert!(seen.servers.is_empty());
    }

    #[test]
    fn passwords_are_not_said() {
        for url in [
            "https://admin:secret@a/",
            "http://admin:secret@a b/",
            "admin:secret@a",
            "http://admin:secret@",
            "http://admin:sec/secret@a/",
        ] {
            let wrong = Console::new(url).err().unwrap().to_string();
            assert!(!wrong.contains("secret"), "{wrong}");
        }
        let console = Console::new("http://us%40er:p%2Fw%zz@a/").unwrap();
        assert_eq!(console.authorization, Some(format!("Basic {}", BASE64_STANDARD.encode("us@er:p/w%zz"))));
    }

    #[test]
    fn texts_draw_nothing_but_themselves() {
        let advice: Advice = serde_json::from_str(r#"{"text":"a\u202eb\u001b[2J\u2066"}"#).unwrap();
        assert_eq!(advice.text, "a?b?[2J?");
        for answer in ["HTTP/1.1 200 \x1b[2J\r\n\r\n\x1b[2J", "\x1b[2J\r\n\r\n", "HTTP/1.1 200 OK\r\n\x1b[2J: a\r\n\r\n"] {
            let (address, _asked) = serving(vec![answer.into()]);
            let wrong = Console::new(&format!("http://{address}/")).unwrap().look().unwrap_err().to_string();
            assert!(!wrong.contains('\x1b'), "{wrong:?}");
        }
    }

    #[test]
    fn a_refusal_without_a_reason_has_a_hint() {
        let page = ok("<html>").replace("200 OK", "403 Forbidden");
        let (address, _asked) = serving(vec![page]);
        let wrong = Console::new(&format!("http://{address}/")).unwrap().look().unwrap_err().to_string();
        assert!(wrong.contains("host NAME"), "{wrong}");
    }
}
