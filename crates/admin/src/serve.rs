//! Stats sockets: accepting, reading, writing, and the time-outs of both.

use crate::answer::{Outcome, render};
use crate::client::{Client, Ending, Following, Leave, Mode};
use crate::commands::waiting::{Waiting, interrupted};
use crate::context::Context;
use crate::input::{Input, Next};
use crate::manner::Manner;
use crate::rates;
use crate::settings::StatsSocket;
use crate::words;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use terse_balance::exhaustion::{EXHAUSTION, Purpose};
use terse_proxy::access::Listener;
use terse_tls::Secret;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Answers commands on these sockets, and samples rates once a second, until the process leaves. Then it accepts
/// nothing more, and returns once received commands are answered. Dropping it ends all conversations.
///
/// # Errors
/// A listener cannot be used.
pub async fn serve(sockets: Vec<(StatsSocket, Listener)>, context: Arc<Context>, leave: Leave) -> io::Result<()> {
    let (mut tasks, mut counting) = (JoinSet::new(), JoinSet::new());
    for (socket, listener) in sockets {
        let (socket, context) = (Arc::new(socket), context.clone());
        let room = context.room.clone();
        let said = leave.clone();
        tasks.spawn(accept(Accepting::new(listener)?, room, Some(leave.clone()), move |stream| {
            let (socket, context, leave) = (socket.clone(), context.clone(), said.clone());
            async move {
                let client = Client { leave: Some(leave), ..Client::new(&socket, context.settings.timeout()) };
                match stream {
                    Accepted::Tcp(stream) => tcp(stream, client, &context).await,
                    Accepted::Unix(stream) => unix(stream, client, &context).await,
                }
            }
        }));
    }
    counting.spawn(rates::watch(context));
    Leave::said(Some(&leave)).await;
    while tasks.join_next().await.is_some() {}
    Ok(())
}

/// Answers a client of the master until it closes.
pub async fn attend(stream: std::os::unix::net::UnixStream, manner: Manner, context: Arc<Context>) {
    let Ok(mut stream) = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream)) else { return };
    let mut client = Client::of_master(manner, context.settings.timeout());
    if converse(&mut stream, &mut client, &context).await.is_ok() {
        linger(&mut stream).await;
    }
}

/// A listening socket for commands.
pub(crate) enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A client's connection.
pub(crate) enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Accepting {
    /// Takes a listener over; needs a runtime.
    pub(crate) fn new(listener: Listener) -> io::Result<Accepting> {
        Ok(match listener {
            Listener::Tcp(listener) => Accepting::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Accepting::Unix(UnixListener::from_std(listener)?),
        })
    }

    async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Accepting::Tcp(listener) => listener.accept().await.map(|(stream, _)| Accepted::Tcp(stream)),
            Accepting::Unix(listener) => listener.accept().await.map(|(stream, _)| Accepted::Unix(stream)),
        }
    }
}

/// Accepts clients until the process leaves, and runs their conversations, with a limit of concurrent ones; returns
/// when they have ended.
pub(crate) async fn accept<F>(listener: Accepting, room: Arc<Semaphore>, leave: Option<Leave>, talk: impl Fn(Accepted) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut clients = JoinSet::new();
    loop {
        let next = async {
            // Clients beyond the limit wait in the kernel.
            let permit = room.clone().acquire_owned().await.ok()?;
            Some((permit, listener.accept().await))
        };
        let next = tokio::select! {
            biased;
            () = Leave::said(leave.as_ref()) => None,
            next = next => next,
        };
        let Some((permit, accepted)) = next else { break };
        match accepted {
            Ok(stream) => {
                let talk = talk(stream);
                clients.spawn(async move {
                    talk.await;
                    drop(permit);
                });
            }
            // No descriptor or no memory: others must be released first.
            Err(error) => {
                EXHAUSTION.note(&error, Purpose::Command);
                tokio::time::sleep(BREATH).await;
            }
        }
        while clients.try_join_next().is_some() {}
    }
    // Clients that wait in the kernel are the next process's.
    drop(listener);
    while clients.join_next().await.is_some() {}
}

async fn tcp(mut stream: TcpStream, mut client: Client, context: &Context) {
    // The sockets themselves go over unix sockets only; a client here gets nothing.
    if converse(&mut stream, &mut client, context).await.is_ok() {
        linger(&mut stream).await;
    }
}

async fn unix(mut stream: UnixStream, mut client: Client, context: &Arc<Context>) {
    match converse(&mut stream, &mut client, context).await {
        Ok(Ending::Close | Ending::Reload { .. }) => linger(&mut stream).await,
        Ok(Ending::HandOver) => {
            let (Ok(stream), context) = (stream.into_std(), context.clone()) else { return };
            // A client that has gone away needs no report.
            let _ = tokio::task::spawn_blocking(move || context.host.hand_over(&stream)).await;
        }
        Err(_) => {}
    }
}

/// Answers a client until the conversation ends.
///
/// # Errors
/// The client went away, or was silent for too long.
pub(crate) async fn converse<S>(stream: &mut S, client: &mut Client, context: &Context) -> io::Result<Ending>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    context.tally.clients.fetch_add(1, Relaxed);
    let mut input = Input::default();
    loop {
        let (leave, is_idle) = (client.leave.clone(), client.mode != Mode::Single && input.is_empty());
        let read = tokio::select! {
            biased;
            read = read_line(stream, &mut input, client) => read?,
            () = Leave::said(leave.as_ref()), if is_idle => match input.is_empty() {
                true => return Ok(Ending::Close),
                // A part of a command has come: the rest of it is waited for.
                false => read_line(stream, &mut input, client).await?,
            },
        };
        let line = match read {
            Read::Line(line) => line,
            Read::TooLong(what) => {
                write(stream, what.as_bytes(), client.timeout).await?;
                return Ok(Ending::Close);
            }
            Read::End => return Ok(Ending::Close),
        };
        let (line, mut payload) = line;
        let mut commands = words::split(&line).peekable();
        while let Some(command) = commands.next() {
            // The payload belongs to the command that it follows.
            client.payload = payload.take_if(|_| commands.peek().is_none());
            let mut answer = client.answer(words::words(command), context);
            if let Some(waiting) = client.waiting.take() {
                let outcome = wait(stream, &waiting, &mut input, commands.peek().is_some(), context).await?;
                answer = render(outcome, client.severity);
            }
            if let Some(mut pieces) = client.pieces.take() {
                while let Some(piece) = pieces.next() {
                    write(stream, &piece, client.timeout).await?;
                    // A piece may be empty.
                    tokio::task::yield_now().await;
                }
            }
            write(stream, &answer, client.timeout).await?;
            if let Some(guest) = client.guest.take() {
                pass(stream, guest, client).await?;
            }
            if let Some(following) = client.following.take() {
                follow(stream, following, client).await?;
            }
            if let Some(ending) = client.ending {
                return Ok(ending);
            }
        }
        if client.mode == Mode::Single {
            return Ok(Ending::Close);
        }
        write(stream, client.prompt(context, Instant::now()).as_bytes(), client.timeout).await?;
    }
}

/// Waits for the client's condition, or until it has closed its side with no command left. What it sends meanwhile
/// comes next.
async fn wait<S>(stream: &mut S, waiting: &Waiting, input: &mut Input, more: bool, context: &Context) -> io::Result<Outcome>
where
    S: AsyncRead + Unpin,
{
    let mut listens = !more && input.is_empty();
    loop {
        let now = Instant::now();
        if let Some(outcome) = waiting.outcome(context, now) {
            return Ok(outcome);
        }
        let mut bytes = Secret::zeros(256);
        tokio::select! {
            () = tokio::time::sleep(waiting.pause(now)) => {}
            read = stream.read(&mut bytes), if listens => match read? {
                0 => return Ok(interrupted()),
                n => {
                    input.feed(&bytes[..n]);
                    listens = false;
                }
            },
        }
    }
}

/// Result of reading a line.
pub(crate) enum Read {
    Line((Secret, Option<Secret>)),
    TooLong(&'static str),
    End,
}

/// Reads the next line, with its payload.
///
/// # Errors
/// As [`converse`].
pub(crate) async fn read_line<S>(stream: &mut S, input: &mut Input, client: &Client) -> io::Result<Read>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match input.next() {
            Next::Line(line, payload) => return Ok(Read::Line((line, payload))),
            Next::LineTooLong => return Ok(Read::TooLong("The command line is too long.\n\n")),
            Next::PayloadTooLong => return Ok(Read::TooLong("The payload is too long.\n\n")),
            Next::More => {}
            Next::MorePayload => write(stream, client.payload_prompt().as_bytes(), client.timeout).await?,
        }
        let mut bytes = Secret::zeros(READ_BYTES);
        match tokio::time::timeout(client.timeout, stream.read(&mut bytes)).await?? {
            0 => return Ok(Read::End),
            n => input.feed(&bytes[..n]),
        }
    }
}

/// Passes on the answer of a command of another part of the program, and ends it. A process that leaves waits for it no
/// longer than for a client's close.
async fn pass<S: AsyncWrite + Unpin>(stream: &mut S, mut guest: UnixStream, client: &Client) -> io::Result<()> {
    let mut bytes = vec![0; FOLLOWED_BYTES];
    let mut leave = pin!(async {
        Leave::said(client.leave.as_ref()).await;
        tokio::time::sleep(LINGER).await;
    });
    loop {
        let read = tokio::select! {
            read = guest.read(&mut bytes) => read,
            () = &mut leave => Ok(0),
        };
        match read {
            Ok(0) | Err(_) => return write(stream, b"\n", client.timeout).await,
            Ok(n) => write(stream, bytes.get(..n).unwrap_or_default(), client.timeout).await?,
        }
    }
}

/// Shows a ring's events, and those that come, until the client sends anything or closes, or the process leaves.
async fn follow<S>(stream: &mut S, following: Following, client: &Client) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let timeout = client.timeout;
    let Following { ring, mut from, framing, waits } = following;
    let mut out = Vec::new();
    loop {
        let mut growth = pin!(ring.growth());
        growth.as_mut().enable();
        out.clear();
        from = ring.copy(from, framing, FOLLOWED_BYTES, &mut out);
        if !out.is_empty() {
            write(stream, &out, timeout).await?;
        }
        let is_over = client.leave.as_ref().is_some_and(Leave::is_said);
        if !out.is_empty() && !is_over {
            continue;
        }
        if !waits || is_over {
            return write(stream, b"\n", timeout).await;
        }
        let mut byte = [0; 256];
        tokio::select! {
            () = growth => {}
            () = Leave::said(client.leave.as_ref()) => return write(stream, b"\n", timeout).await,
            said = stream.read(&mut byte) => return match said? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => write(stream, b"\n", timeout).await,
            },
        }
    }
}

/// Writes all of it. The time-out begins anew with each piece that the client takes.
pub(crate) async fn write<S: AsyncWrite + Unpin>(stream: &mut S, mut rest: &[u8], timeout: Duration) -> io::Result<()> {
    while !rest.is_empty() {
        match tokio::time::timeout(timeout, stream.write(rest)).await?? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => rest = &rest[n..],
        }
    }
    Ok(())
}

/// Closes so that the answer arrives: closing over bytes that were not read would reset a TCP connection, answer and all.
pub(crate) async fn linger<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) {
    let drain = async {
        stream.shutdown().await?;
        let (mut bytes, mut left) = (Secret::zeros(READ_BYTES), LINGER_BYTES);
        while left > 0 {
            match stream.read(&mut bytes).await? {
                0 => break,
                n => left = left.saturating_sub(n),
            }
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(LINGER, drain).await;
}

/// Size of a read.
const READ_BYTES: usize = 4096;
/// Number of bytes of a ring that are copied at a time.
const FOLLOWED_BYTES: usize = 16 * 1024;
/// Pause of accepting when the kernel has no descriptor for it.
const BREATH: Duration = Duration::from_millis(100);
/// Time that a client has to close after the answer.
const LINGER: Duration = Duration::from_secs(1);
/// Number of bytes that it may send until then.
const LINGER_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests;
