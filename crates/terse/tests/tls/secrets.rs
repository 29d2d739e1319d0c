//! Secrets of connections, for the decryption of recorded traffic: rules see the same values as the client's own file has.

use crate::certificates::{Kind, authority, signed};
use crate::support::proxy::DEFAULTS;
use crate::support::{PATIENCE, Terse, client};
use crate::talk::resume;
use openssl::ssl::{Ssl, SslContext, SslMethod, SslSession, SslSessionCacheMode, SslStream, SslVersion};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

/// Labels of the client's file, and the fetches without the part that tells the sides apart.
const SECRETS: [(&str, &str); 7] = [
    ("CLIENT_EARLY_TRAFFIC_SECRET", "client_early_traffic_secret"),
    ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "client_handshake_traffic_secret"),
    ("SERVER_HANDSHAKE_TRAFFIC_SECRET", "server_handshake_traffic_secret"),
    ("CLIENT_TRAFFIC_SECRET_0", "client_traffic_secret_0"),
    ("SERVER_TRAFFIC_SECRET_0", "server_traffic_secret_0"),
    ("EXPORTER_SECRET", "exporter_secret"),
    ("EARLY_EXPORTER_SECRET", "early_exporter_secret"),
];
/// The first and the last are there where something was sent early.
const EARLY: [&str; 2] = [SECRETS[0].0, SECRETS[6].0];

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

/// A client that writes such a file.
struct Recorder {
    context: SslContext,
    lines: Arc<Mutex<Vec<String>>>,
    kept: Arc<Mutex<Option<SslSession>>>,
}

impl Recorder {
    fn new(version: SslVersion) -> Recorder {
        let mut context = SslContext::builder(SslMethod::tls_client()).unwrap();
        context.set_min_proto_version(Some(version)).unwrap();
        context.set_max_proto_version(Some(version)).unwrap();
        context.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept: Arc<Mutex<Option<SslSession>>> = Arc::default();
        let (write, keep) = (lines.clone(), kept.clone());
        context.set_keylog_callback(move |_, line| write.lock().unwrap().push(line.to_owned()));
        context.set_new_session_callback(move |_, session| *keep.lock().unwrap() = Some(session));
        Recorder { context: context.build(), lines, kept }
    }

    /// The answer to one request, which goes early if there is a session to resume; and the secrets that were written of it.
    fn asks(&self, address: SocketAddr) -> (String, BTreeMap<String, String>) {
        self.lines.lock().unwrap().clear();
        let mut ssl = Ssl::new(&self.context).unwrap();
        let session = self.kept.lock().unwrap().take();
        if let Some(session) = &session {
            resume(&mut ssl, session);
        }
        ssl.set_connect_state();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = SslStream::new(ssl, stream).unwrap();
        if session.is_some() {
            stream.write_early_data(REQUEST).unwrap();
        }
        stream.do_handshake().unwrap();
        if session.is_none() {
            stream.write_all(REQUEST).unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let _ = stream.shutdown();
        let lines = self.lines.lock().unwrap();
        let words = |line: &String| {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            (words[0].clone(), words[2].clone())
        };
        (answer, lines.iter().map(words).collect())
    }
}

fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_else(|| panic!("{name}: {answer}"))
}

/// Rules that show all of them.
fn shows(side: &str) -> String {
    SECRETS.iter().map(|(label, name)| format!(" hdr {label} _%[ssl_{side}_{name}]")).collect()
}

fn site(keylog: &str) -> Terse {
    let text = format!(
        "global\n nbthread 1\n {keylog}\n{DEFAULTS}\nfrontend web\n bind fd@${{web}} ssl crt a.pem allow-0rtt\n \
         http-request wait-for-handshake\n http-request return status 200 hdr KEY %[ssl_fc_session_key,hex,lower]{}\n",
        shows("fc")
    );
    let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
    Terse::with(&text).file("a.pem", pem).listen("web").start()
}

#[test]
fn rules_see_what_the_clients_file_has() {
    let terse = site("tune.ssl.keylog on");
    let recorder = Recorder::new(SslVersion::TLS1_3);
    for early in [false, true] {
        let (answer, file) = recorder.asks(terse.address("web"));
        for (label, _) in SECRETS.iter().filter(|(label, _)| early || !EARLY.contains(label)) {
            assert_eq!(field(&answer, label), format!("_{}", file[*label]), "{label}");
        }
        assert!(early || EARLY.iter().all(|label| field(&answer, label) == "_"), "{answer}");
    }
    // Up to TLS 1.2 there is one secret, which needs no keyword.
    let (answer, file) = Recorder::new(SslVersion::TLS1_2).asks(terse.address("web"));
    assert_eq!(field(&answer, "KEY"), file["CLIENT_RANDOM"]);
    assert!(SECRETS.iter().all(|(label, _)| field(&answer, label) == "_"), "{answer}");
    terse.end();
}

#[test]
fn nothing_is_kept_where_nobody_says_so() {
    for keylog in ["", "tune.ssl.keylog off"] {
        let terse = site(keylog);
        let (answer, file) = Recorder::new(SslVersion::TLS1_3).asks(terse.address("web"));
        assert!(SECRETS.iter().all(|(label, _)| field(&answer, label) == "_"), "{answer}");
        assert!(file.contains_key("CLIENT_TRAFFIC_SECRET_0"));
        terse.end();
    }
}

/// Of a connection to a server both ends have the same.
#[test]
fn connections_to_servers_have_the_same() {
    let terse = Terse::with("").listen("clear").listen("web");
    let kept = SECRETS.map(|(label, name)| format!(" http-response set-header bc-{label} _%[ssl_bc_{name}]\n")).concat();
    let text = format!(
        "global\n nbthread 1\n tune.ssl.keylog on\n{DEFAULTS}\nlisten clear\n bind fd@${{clear}}\n{kept} server s {} ssl verify none\n\
         frontend web\n bind fd@${{web}} ssl crt a.pem\n http-request return status 200{}\n",
        terse.address("web"),
        shows("fc")
    );
    let pem = signed(Kind::Ecdsa, &["a.test"], &authority("root")).pem();
    let terse = terse.file("terse.cfg", text).file("a.pem", pem).start();
    let answer = client::get(terse.address("clear"), "/");
    for (label, _) in SECRETS {
        let both = [answer.field(label), answer.field(&format!("bc-{label}"))];
        assert_eq!(both[0], both[1], "{label}");
        assert_eq!(both[0].is_some_and(|secret| secret.len() > 64), !EARLY.contains(&label), "{label}: {both:?}");
    }
    terse.end();
}
