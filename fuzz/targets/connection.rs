//! Whole connections, of HTTP/1, HTTP/2 and bytes, to servers of HTTP/1 and HTTP/2: whatever both peers send, in whatever pieces, and
//! wherever they leave, nothing panics, the connection ends with its peers, and all memory and all slots are given back.
//!
//! The first byte chooses the frontend. What follows are pieces between [`MARK`]s, each behind a byte that says who sends it: `s` the server,
//! `x` the server, which then closes, `l` the client, which then closes its half, and any other the client.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::io::Write;
use std::net::Shutdown;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use terse::args::Arguments;
use terse::configuration;
use terse::report::Report;
use terse_config::Source;
use terse_proxy::connection;
use terse_proxy::connection::downstream::ClientConnection;
use terse_io::Transport;
use terse_proxy::plan::Plan;
use terse_proxy::session::Session;
use terse_proxy::worker::{Control, Shared, Worker};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{LocalSet, yield_now};

/// What stands between two pieces.
const MARK: &[u8] = b"\xfe\xfe";

/// The most pieces of an input.
const MOST_PIECES: usize = 32;

const CONFIGURATION: &str = "
defaults
    mode http
    timeout client 5s
    timeout server 5s
    timeout connect 20ms
    timeout http-request 5s
    retries 1
    compression algo gzip br zstd
    compression type text/plain application/json
    decompression response on
frontend one
    bind 127.0.0.1:80
    http-request wait-for-body time 100ms at-least 4 if { method PUT }
    http-request set-header X-Body %[req.body_len] if { req.body -m sub x }
    http-request return status 200 content-type text/plain string hello if { path /own }
    http-response set-header X-Seen %[res.body_len] if { status 200 }
    default_backend h1
frontend two
    bind 127.0.0.1:81
    default_backend h2
frontend three
    bind 127.0.0.1:82 proto h2
    http-request wait-for-body time 100ms at-least 4 if { method PUT }
    default_backend h1
frontend four
    bind 127.0.0.1:83 proto h2
    default_backend h2
frontend five
    mode tcp
    bind 127.0.0.1:84
    tcp-request inspect-delay 10ms
    tcp-request content accept if { req.len gt 4 }
    default_backend bytes
frontend six
    bind 127.0.0.1:85 accept-proxy
    http-request cache-use c
    http-response cache-store c
    default_backend h1
cache c
    total-max-size 1
backend h1
    server a abns@NAME maxconn 3
backend h2
    http-reuse always
    server a abns@NAME proto h2
backend bytes
    mode tcp
    server a abns@NAME
";

fn name() -> String {
    format!("terse-fuzz-{}", std::process::id())
}

/// The plan, made once.
fn plan() -> Arc<Plan> {
    static PLAN: OnceLock<Arc<Plan>> = OnceLock::new();
    let make = || {
        let text = CONFIGURATION.replace("NAME", &name());
        let source = Source { name: "fuzz.cfg".into(), bytes: text.into_bytes() };
        let arguments = Arguments { program: "terse".into(), ..Arguments::default() };
        let findings = configuration::find(&arguments, &[source], &Report::silent());
        let said: Vec<String> = findings.diagnostics.iter().map(|said| format!("{said:?}")).collect();
        Arc::new(findings.configuration.unwrap_or_else(|| panic!("{said:?}")).plan)
    };
    PLAN.get_or_init(make).clone()
}

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else { return };
    let plan = plan();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let local = LocalSet::new();
    runtime.block_on(local.run_until(serve(plan.clone(), usize::from(choice) % plan.binds.len(), rest)));
    drop(local);
    let backends = plan.backends.now();
    for server in backends.iter().flat_map(|backend| backend.farm.servers().to_vec()) {
        assert_eq!((server.served(), server.queued()), (0, 0), "slots of {}", server.name());
    }
    assert_eq!(plan.memory.used(), 0, "memory of buffers");
});

/// Lets everything that is ready run.
async fn settle() {
    for _ in 0..8 {
        yield_now().await;
    }
}

async fn serve(plan: Arc<Plan>, bind: usize, input: &[u8]) {
    let (_running, control) = watch::channel(Control::Running);
    let worker = Worker::new(plan, 0, Shared::alone(control));
    let (wheel, driven) = (worker.wheel.clone(), worker.wheel.clone());
    let driver = tokio::task::spawn_local(async move { driven.drive().await });
    let address = SocketAddr::from_abstract_name(name()).expect("a name");
    let listener = StdListener::bind_addr(&address).expect("the name is this process's");
    listener.set_nonblocking(true).expect("a socket");
    let listener = UnixListener::from_std(listener).expect("a socket");
    // The connections that the proxy has made; none any more once the servers have left.
    let servers: Rc<RefCell<Option<Vec<StdStream>>>> = Rc::new(RefCell::new(Some(Vec::new())));
    let accepted = servers.clone();
    let acceptor = tokio::task::spawn_local(async move {
        while let Ok((io, _)) = listener.accept().await {
            if let (Some(kept), Ok(io)) = (&mut *accepted.borrow_mut(), io.into_std()) {
                kept.push(io);
            }
        }
    });
    let (near, far) = UnixStream::pair().expect("sockets");
    let mut far = far.into_std().expect("a socket");
    let io = Transport::Unix(near);
    let session = Session::new(&worker, bind, &io, None);
    let client = ClientConnection::new(io, wheel.timer());
    let serving = tokio::task::spawn_local(connection::run(client, session, ()));
    for piece in pieces(input) {
        let Some((&side, bytes)) = piece.split_first() else { continue };
        match side {
            b's' | b'x' => {
                if let Some(servers) = &mut *servers.borrow_mut() {
                    // What does not fit is lost: the peer sees how it likes that.
                    let _ = servers.last_mut().map(|server| server.write(bytes));
                    (side == b'x').then(|| servers.pop());
                }
            }
            _ => {
                let _ = far.write(bytes);
                if side == b'l' {
                    let _ = far.shutdown(Shutdown::Write);
                }
            }
        }
        settle().await;
    }
    drop(far);
    settle().await;
    servers.borrow_mut().take();
    let ended = tokio::time::timeout(Duration::from_secs(8), serving).await;
    ended.expect("the connection ends with its peers").expect("no panic");
    acceptor.abort();
    driver.abort();
}

fn pieces(input: &[u8]) -> Vec<&[u8]> {
    let (mut pieces, mut rest) = (Vec::new(), input);
    while pieces.len() < MOST_PIECES
        && let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK)
    {
        pieces.push(&rest[..at]);
        rest = &rest[at + MARK.len()..];
    }
    pieces.push(rest);
    pieces
}
