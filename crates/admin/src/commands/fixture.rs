//! A process for tests: a plan, a context around it, and a client.

use crate::client::Client;
use crate::context::{Context, Host, Process};
use crate::settings::AdminSettings;
use crate::words::{self, TooManyWords, Word};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Instant, SystemTime};
use terse_config::{Diagnostics, Environment, Loader, Settings, Source};
use terse_proxy::log::Sinks;
use terse_proxy::plan::{Plan, build};
use terse_sample::{Now, World};

/// A frontend, a backend with three servers, a `listen`, and a backend without servers.
pub(crate) const WEB: &str = "
defaults
 timeout client 5s
 timeout server 5s
 timeout connect 1s
frontend fe
 mode http
 bind 127.0.0.1:80
 default_backend be
backend be
 mode http
 balance leastconn
 cookie SRV insert
 server a 127.0.0.1:1 check cookie one
 server b 127.0.0.1:2 weight 10 backup maxconn 20
 server c 127.0.0.1:3 disabled
listen raw
 mode tcp
 bind 127.0.0.1:81
 server r unix@/run/x
backend empty
 mode http
";

/// A client of a process, at the level admin.
pub(crate) struct Talk {
    pub(crate) client: Client,
    pub(crate) context: Arc<Context>,
}

impl Talk {
    /// A process with that configuration.
    pub(crate) fn new(text: &str) -> Talk {
        let context = context(text);
        let socket = &context.settings.sockets[0];
        Talk { client: Client::new(socket, context.settings.timeout()), context }
    }

    /// Answer to a line of commands.
    pub(crate) fn says(&mut self, line: &str) -> String {
        self.says_bytes(line.as_bytes())
    }

    /// Answer to a line of bytes.
    pub(crate) fn says_bytes(&mut self, line: &[u8]) -> String {
        words::split(line).map(|command| self.answer(words::words(command))).collect()
    }

    /// Answer to a line with a payload.
    pub(crate) fn says_with(&mut self, line: &str, payload: &str) -> String {
        self.client.payload = Some(payload.to_owned().into());
        self.says(line)
    }

    fn answer(&mut self, words: Result<Vec<Word>, TooManyWords>) -> String {
        let answer = self.client.answer(words, &self.context);
        let mut pieces = self.client.pieces.take();
        let mut bytes: Vec<u8> = std::iter::from_fn(|| pieces.as_mut()?.next()).flatten().collect();
        bytes.extend_from_slice(&answer);
        // Bytes beyond ASCII that are not UTF-8 are shown as `\xff`.
        String::from_utf8(bytes).unwrap_or_else(|error| error.into_bytes().escape_ascii().to_string())
    }
}

/// Context of a process with that configuration, and one stats socket.
pub(crate) fn context(text: &str) -> Arc<Context> {
    let (plan, settings) = plan(&format!("global\n stats socket /run/terse.sock level admin expose-fd listeners\n{text}"));
    let process = Process {
        name: "terse".into(),
        version: "3.5-dev5".into(),
        own_version: "0.9.0".into(),
        release_date: "2026/11/21".into(),
        pid: 1234,
        started: Instant::now(),
        started_at: SystemTime::now(),
        boot_ms: 7,
        node: "here".into(),
        descriptors: 1000,
        sockets: 1000,
        memory_mib: 0,
        description: None,
    };
    Context::new(Arc::new(plan), process, Arc::new(AtomicUsize::new(3)), None, settings, Box::new(Program))
}

fn plan(text: &str) -> (Plan, AdminSettings) {
    let tables = crate::KEYWORDS.iter().chain(terse_proxy::KEYWORDS).copied();
    let below = [terse_sample::KEYWORDS, terse_balance::KEYWORDS, terse_compress::KEYWORDS, terse_compress::decode::KEYWORDS];
    let loader = Loader { tables: tables.chain(below).collect(), environment: Environment::default() };
    let source = Source { name: "test".into(), bytes: text.into() };
    let (mut config, read) = loader.load(&[source], Settings::default());
    let settings = AdminSettings::take(&mut config);
    let host = build::Host {
        workers: 2,
        maxconn: 100,
        buffer_bytes: 16384,
        rewrite_bytes: None,
        memory_bytes: 1 << 20,
        http2: Default::default(),
        http2_servers: Default::default(),
        body_key: [7; 32],
        tag: "terse".into(),
        started: Instant::now(),
        sinks: Sinks::new(|_| Err(io::ErrorKind::NotFound.into())),
        notices: None,
        local_peer: "a".into(),
    };
    let mut built = Diagnostics::default();
    let plan = build::build(config, &host, &mut built);
    let alerts: Vec<_> = read.iter().chain(built.iter()).map(|diagnostic| &diagnostic.reason).collect();
    (plan.unwrap_or_else(|| panic!("{alerts:?}")), settings)
}

/// A host whose listening sockets are five bytes.
struct Program;

impl Host for Program {
    fn hand_over(&self, mut to: &UnixStream) -> io::Result<()> {
        to.set_nonblocking(false)?;
        io::Write::write_all(&mut to, b"socks")
    }

    fn is_stopping(&self) -> bool {
        false
    }

    fn listeners(&self) -> usize {
        3
    }

    fn environment(&self) -> Vec<(String, String)> {
        vec![("HOME".into(), "/root".into()), ("LINES".into(), "a\n\nb".into())]
    }

    fn startup_log(&self) -> String {
        "started\n\nstill there".into()
    }

    fn world(&self) -> &dyn World {
        self
    }
}

impl World for Program {
    fn now(&self) -> Now {
        Now::default()
    }

    fn random(&self) -> u64 {
        4
    }
}
