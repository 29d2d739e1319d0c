//! The class `Socket` (`core.tcp`): connections that a script makes. Its interface is LuaSocket's, as far as HAProxy has it.
//!
//! TLS is spoken by a task of the worker, between the server's socket and an end of a socket pair. The script has the other
//! end. The task is needed because a TLS connection belongs to a worker, and values of Lua to none.

use crate::guard;
use crate::home::Home;
use crate::lent::worker_here;
use crate::run::may_wait;
use crate::wire::{self, Opened, PIECE, Wire};
use mlua::{IntoLua, IntoLuaMulti, Lua, MultiValue, Table, UserData, UserDataRef, Value};
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use terse_config::{Diagnostics, Place};
use terse_proxy::descriptors::{EXHAUSTION, Purpose};
use terse_proxy::plan::Plan;
use terse_proxy::server::{ELSEWHERE, MOST_TRIES, is_out_of_descriptors};
use terse_tls::settings::ServerTls;
use terse_tls::{Connector, Request, Secured, Socket};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;

/// The class's name among a state's own values.
const CLASS: &str = "Socket";

/// A connection with TLS, and the pair of sockets between it and the script.
const TLS_DESCRIPTORS: usize = 3;

/// Time limit of a step, in milliseconds, until `settimeout` sets another.
const PATIENCE_MS: u64 = 5_000;

/// Data of an object of the class.
struct Handle(Arc<Held>);

struct Held {
    wire: Wire,
    timeout_ms: AtomicU64,
}

impl UserData for Handle {}

/// Connector of the connections that scripts make: as in HAProxy, no certificate is verified.
static CONNECTOR: OnceLock<Option<Arc<Connector>>> = OnceLock::new();

/// Puts the class into a state, and `core.tcp`.
pub(crate) fn install(lua: &Lua, home: &Home) -> mlua::Result<()> {
    let class = lua.create_table()?;
    let most = {
        let house = home.house.clone();
        move || house.upgrade().map_or(0, |house| house.tuning().memory_bytes)
    };
    class.set("connect", lua.create_async_function(|lua, (this, address, port)| connect(lua, this, address, port, false))?)?;
    class.set("connect_ssl", lua.create_async_function(|lua, (this, address, port)| connect(lua, this, address, port, true))?)?;
    class.set("send", lua.create_async_function(send)?)?;
    class.set(
        "receive",
        lua.create_async_function(move |lua, (this, pattern, prefix)| receive(lua, this, pattern, prefix, most()))?,
    )?;
    class.set(
        "close",
        lua.create_function(|_, this: Table| {
            of(&this)?.wire.close();
            Ok(())
        })?,
    )?;
    class.set(
        "settimeout",
        lua.create_function(|_, (this, seconds, _): (Table, f64, Value)| {
            of(&this)?.timeout_ms.store((seconds.clamp(0.0, 1e9) * 1000.0) as u64, Relaxed);
            Ok(1)
        })?,
    )?;
    class.set("setoption", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    class.set(
        "getsockname",
        lua.create_function(|_, this: Table| Ok(of(&this)?.wire.addresses().map(|(own, _)| own.to_string())))?,
    )?;
    class.set(
        "getpeername",
        lua.create_function(|_, this: Table| Ok(of(&this)?.wire.addresses().map(|(_, peer)| peer.to_string())))?,
    )?;
    let meta = guard::hidden(lua)?;
    meta.set("__index", class)?;
    lua.set_named_registry_value(CLASS, meta)?;
    let core: Table = lua.globals().get("core")?;
    core.set(
        "tcp",
        lua.create_function(|lua, (): ()| {
            let held = Held { wire: Wire::new(None), timeout_ms: AtomicU64::new(PATIENCE_MS) };
            let object = lua.create_table()?;
            object.raw_set(0, lua.create_userdata(Handle(Arc::new(held)))?)?;
            object.set_metatable(Some(lua.named_registry_value(CLASS)?))?;
            Ok(object)
        })?,
    )
}

impl Held {
    /// Waits for a step within the time limit. 0 is no limit.
    async fn in_time<T>(&self, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        match self.timeout_ms.load(Relaxed) {
            0 => step.await,
            limit => tokio::time::timeout(Duration::from_millis(limit), step).await.map_err(|_| ErrorKind::TimedOut)?,
        }
    }
}

async fn connect(lua: Lua, this: Table, address: String, port: Option<u16>, secure: bool) -> mlua::Result<MultiValue> {
    may_wait()?;
    let held = of(&this)?;
    match held.in_time(open(&address, port, secure)).await {
        Ok(socket) => {
            held.wire.open(socket);
            1.into_lua_multi(&lua)
        }
        Err(error) => {
            EXHAUSTION.note(&error, Purpose::Script);
            (Value::Nil, reason(&error)).into_lua_multi(&lua)
        }
    }
}

/// Text of an error for scripts.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::TimedOut => "timeout".into(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => "closed".into(),
        _ => error.to_string(),
    }
}

/// Connects, and counts it. Idle connections to servers make room for it where descriptors are few.
pub(crate) async fn open(address: &str, port: Option<u16>, secure: bool) -> io::Result<Opened> {
    let number = if secure { TLS_DESCRIPTORS } else { 1 };
    let counted = worker_here().map(|worker| worker.plan.descriptors.count(number));
    let mut tries = 1;
    loop {
        match open_once(address, port, secure).await {
            Ok(socket) => return Ok(Opened { socket, counted }),
            Err(error) if tries < MOST_TRIES && is_out_of_descriptors(&error) && has_cleared() => {
                tries += 1;
                tokio::time::sleep(ELSEWHERE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether an idle connection is closed for a script.
fn has_cleared() -> bool {
    worker_here().is_some_and(|worker| worker.clear_descriptor())
}

/// Connects to `1.2.3.4` and a port, `1.2.3.4:80`, a host's name, or the path of a unix socket; `ipv4@`, `ipv6@` and
/// `unix@` may stand before them.
async fn open_once(address: &str, port: Option<u16>, secure: bool) -> io::Result<wire::Socket> {
    let (kind, rest) = address.split_once('@').unwrap_or(("", address));
    if kind == "unix" || kind.is_empty() && rest.starts_with('/') {
        let socket = UnixStream::connect(rest).await?;
        return match secure {
            true => secured(Socket::Unix(socket), None).await,
            false => Ok(wire::Socket::Unix(socket)),
        };
    }
    if !matches!(kind, "" | "ipv4" | "ipv6") {
        return Err(io::Error::new(ErrorKind::Unsupported, format!("addresses of the kind '{kind}@' are not supported")));
    }
    let unusable = || io::Error::new(ErrorKind::InvalidInput, "an address and a port are expected");
    let (host, port) = match port {
        Some(port) => (rest, port),
        None => {
            let (host, port) = rest.rsplit_once(':').ok_or_else(unusable)?;
            (host, port.parse().map_err(|_| unusable())?)
        }
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let socket = TcpStream::connect((host, port)).await?;
    let _ = socket.set_nodelay(true);
    match secure {
        true => secured(Socket::Tcp(socket), Some(host.to_owned())).await,
        false => Ok(wire::Socket::Tcp(socket)),
    }
}

/// Starts a task that speaks TLS on a socket; returns the other end of it, once the handshake is done.
async fn secured(socket: Socket, name: Option<String>) -> io::Result<wire::Socket> {
    let (near, far) = UnixStream::pair()?;
    let (tell, told) = oneshot::channel();
    let connector = CONNECTOR.get().cloned().flatten().ok_or(ErrorKind::Unsupported)?;
    tokio::task::spawn_local(async move {
        let shaken = async {
            let secured = connector.connect(socket, name.as_deref(), Request::Traffic, None)?;
            let failed = |_: terse_tls::Failure| io::Error::from(ErrorKind::ConnectionAborted);
            poll_fn(|cx| secured.poll_handshake(cx)).await.map_err(failed)?;
            io::Result::Ok(secured)
        };
        let (result, secured) = match shaken.await {
            Ok(secured) => (Ok(()), Some(secured)),
            Err(error) => (Err(error), None),
        };
        // A script that no longer waits needs no connection.
        if tell.send(result).is_ok()
            && let Some(secured) = secured
        {
            Pump::between(secured, far).await;
        }
    });
    told.await.map_err(|_| io::Error::from(ErrorKind::ConnectionAborted))??;
    Ok(wire::Socket::Unix(near))
}

/// Prepares the TLS connector, while its faults can still be reported.
pub(crate) fn prepare(plan: &Plan) {
    CONNECTOR.get_or_init(|| {
        let tls = ServerTls { enabled: true, verify: Some(false), ..ServerTls::default() };
        Connector::build(&tls, &Place::nowhere(), &plan.vault, &mut Diagnostics::default())
    });
}

/// Bytes between TLS and a socket of the process.
struct Pump {
    secured: Secured,
    plain: UnixStream,
    /// From the server: the bytes that were read, and how many of them have gone on.
    down: (Vec<u8>, usize),
    up: (Vec<u8>, usize),
    /// Whether the script has closed: it reads no more, but what it wrote before still goes to the server.
    is_deaf: bool,
}

impl Pump {
    /// Runs until one of the two has closed.
    async fn between(secured: Secured, plain: UnixStream) {
        let mut pump = Pump { secured, plain, down: Default::default(), up: Default::default(), is_deaf: false };
        // Whichever ends first ends both: a script that has closed reads no more, and a server that has closed has sent
        // all.
        let _ = poll_fn(|cx| pump.poll(cx)).await;
        let rest = async {
            poll_fn(|cx| pump.secured.poll_flush(cx)).await?;
            poll_fn(|cx| pump.secured.poll_shutdown(cx)).await?;
            // Bytes that nothing reads would make a reset of the close, which can overtake what was sent last.
            pump.is_deaf = true;
            while poll_fn(|cx| pump.poll_down(cx)).await? {}
            Ok::<(), io::Error>(())
        };
        let _ = tokio::time::timeout(Duration::from_millis(PATIENCE_MS), rest).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match (self.poll_down(cx)?, self.poll_up(cx)?) {
                (Poll::Ready(false), _) | (_, Poll::Ready(false)) => return Poll::Ready(Ok(())),
                (Poll::Ready(true), _) | (_, Poll::Ready(true)) => {}
                (Poll::Pending, Poll::Pending) => return Poll::Pending,
            }
        }
    }

    /// A step towards the script; false at the end.
    fn poll_down(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let (bytes, at) = &mut self.down;
        if *at < bytes.len() && !self.is_deaf {
            return match self.plain.try_write(&bytes[*at..]) {
                Ok(n) => {
                    *at += n;
                    Poll::Ready(Ok(true))
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.plain.poll_write_ready(cx).map_ok(|()| true),
                Err(_) => {
                    self.is_deaf = true;
                    Poll::Ready(Ok(true))
                }
            };
        }
        bytes.resize(PIECE, 0);
        *at = PIECE;
        self.secured.poll_read(cx, bytes).map_ok(|n| {
            bytes.truncate(n);
            *at = 0;
            n > 0
        })
    }

    /// A step towards the server; false at the end.
    fn poll_up(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let (bytes, at) = &mut self.up;
        if *at < bytes.len() {
            return self.secured.poll_write(cx, &[IoSlice::new(&bytes[*at..])]).map_ok(|n| {
                *at += n;
                true
            });
        }
        // Bytes that TLS holds go, whenever there is room.
        let _ = self.secured.poll_flush(cx)?;
        bytes.resize(PIECE, 0);
        *at = PIECE;
        match self.plain.try_read(bytes) {
            Ok(n) => {
                bytes.truncate(n);
                *at = 0;
                Poll::Ready(Ok(n > 0))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.plain.poll_read_ready(cx).map_ok(|()| true),
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

async fn send(lua: Lua, (this, data, first, last): (Table, mlua::String, Option<i64>, Option<i64>)) -> mlua::Result<MultiValue> {
    may_wait()?;
    let held = of(&this)?;
    let length = data.as_bytes().len();
    // As string.sub counts: from 1, and from the end below 0.
    let at = |index: i64| if index < 0 { (length as i64 + index + 1).max(0) } else { index };
    let first = usize::try_from(at(first.unwrap_or(1)).max(1) - 1).unwrap_or(0).min(length);
    let last = usize::try_from(at(last.unwrap_or(-1))).unwrap_or(0).min(length);
    let mut done = first;
    while done < last {
        let end = {
            let bytes = data.as_bytes();
            let end = last.min(done + PIECE);
            held.wire.put(&bytes[done..end]);
            end
        };
        if let Err(error) = held.in_time(held.wire.flush()).await {
            return (Value::Nil, reason(&error), done).into_lua_multi(&lua);
        }
        done = end;
    }
    last.into_lua_multi(&lua)
}

/// Amount that a script wants to receive.
enum Pattern {
    All,
    Line,
    Bytes(usize),
}

async fn receive(lua: Lua, this: Table, pattern: Value, prefix: Option<mlua::String>, most: usize) -> mlua::Result<MultiValue> {
    may_wait()?;
    let held = of(&this)?;
    let pattern = match &pattern {
        Value::Nil => Pattern::Line,
        Value::Integer(n) => Pattern::Bytes(usize::try_from(*n).unwrap_or(0)),
        Value::Number(n) => Pattern::Bytes(n.max(0.0) as usize),
        Value::String(text) => match &*text.as_bytes() {
            b"*l" => Pattern::Line,
            b"*a" => Pattern::All,
            other => match std::str::from_utf8(other).ok().and_then(|text| text.parse().ok()) {
                Some(n) => Pattern::Bytes(n),
                None => return Err(mlua::Error::runtime("receive expects '*l', '*a' or a number")),
            },
        },
        _ => return Err(mlua::Error::runtime("receive expects '*l', '*a' or a number")),
    };
    let mut limited = Ok(());
    loop {
        let (there, all) = held.wire.waiting();
        let found = held.wire.look(|ready| match pattern {
            Pattern::All => None,
            Pattern::Line => ready.iter().position(|b| *b == b'\n').map(|at| at + 1),
            Pattern::Bytes(n) => (ready.len() >= n).then_some(n),
        });
        let taken = match (found, &limited) {
            (Some(n), _) => Some(held.wire.take(n)),
            // Bytes that came before the end are given, whatever the pattern was.
            (None, Ok(())) if all && there > 0 => Some(held.wire.take(there)),
            (None, Ok(())) if all => return (Value::Nil, "connection closed.").into_lua_multi(&lua),
            (None, Err(error)) => {
                return (Value::Nil, reason(error), lua.create_string(held.wire.take(there))?).into_lua_multi(&lua);
            }
            (None, Ok(())) if most > 0 && there > most => {
                return Err(mlua::Error::runtime("more is received than 'tune.lua.maxmem' allows"));
            }
            (None, Ok(())) => None,
        };
        let Some(mut bytes) = taken else {
            limited = held.in_time(poll_fn(|cx| held.wire.poll_more(cx))).await.map(drop);
            continue;
        };
        if let Pattern::Line = pattern {
            bytes.retain(|b| !matches!(b, b'\r' | b'\n'));
        }
        if let Some(prefix) = prefix {
            bytes.splice(..0, prefix.as_bytes().iter().copied());
        }
        return lua.create_string(bytes)?.into_lua(&lua)?.into_lua_multi(&lua);
    }
}

fn of(object: &Table) -> mlua::Result<Arc<Held>> {
    match object.raw_get::<Value>(0)? {
        Value::UserData(data) => {
            let handle: UserDataRef<Handle> = data.borrow()?;
            Ok(handle.0.clone())
        }
        _ => Err(mlua::Error::runtime("expects a socket")),
    }
}
