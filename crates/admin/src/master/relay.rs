//! Relay between a client and a worker.
//!
//! A failure of the client is an error, and ends its conversation; a failure of the worker is a message for the client.

use super::Office;
use crate::answer::Message;
use crate::client::Client;
use crate::manner::Manner;
use crate::serve::write;
use std::io;
use std::time::Duration;
use terse_tls::Secret;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

/// Target process of a command, and the client's settings there.
type Addressee = (u32, Manner);

/// Sends a command, and relays its answer.
pub(super) async fn command<S>(
    stream: &mut S,
    client: &Client,
    office: &Office,
    to: Addressee,
    said: &[u8],
) -> io::Result<Result<(), Message>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut worker = match begin(office, to, said).await {
        Ok(worker) => worker,
        Err(trouble) => return Ok(Err(trouble)),
    };
    // Commands that wait for more input of the client find its end.
    let _ = worker.shutdown().await;
    let (mut bytes, mut silent) = (Secret::zeros(PIECE_BYTES), true);
    loop {
        match tokio::time::timeout(PATIENCE, worker.read(&mut bytes)).await {
            Err(_) => return Ok(Err(no_answer(to))),
            Ok(Ok(0) | Err(_)) if silent => return Ok(Err(gone(to))),
            Ok(Ok(0) | Err(_)) => return Ok(Ok(())),
            Ok(Ok(n)) => write(stream, &bytes[..n], client.timeout).await?,
        }
        silent = false;
    }
}

/// Sends a line, and relays the worker's answers and the client's further input, until the worker ends the
/// conversation.
pub(super) async fn line<S>(
    stream: &mut S,
    client: &Client,
    office: &Office,
    to: Addressee,
    said: &[u8],
) -> io::Result<Result<(), Message>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut worker = match begin(office, to, said).await {
        Ok(worker) => worker,
        Err(trouble) => return Ok(Err(trouble)),
    };
    let (mut asked, mut answered, mut listens) = (Secret::zeros(PIECE_BYTES), Secret::zeros(PIECE_BYTES), true);
    loop {
        tokio::select! {
            // Received data is handled before deadlines.
            biased;
            read = worker.read(&mut answered) => match read {
                Ok(0) | Err(_) => return Ok(Ok(())),
                Ok(n) => write(stream, &answered[..n], client.timeout).await?,
            },
            read = stream.read(&mut asked), if listens => match read? {
                0 => {
                    listens = false;
                    let _ = worker.shutdown().await;
                }
                // A worker that has just ended the conversation does not read any more: its end is read next.
                n => match write(&mut worker, &asked[..n], PATIENCE).await {
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(Err(no_answer(to))),
                    _ => {}
                },
            },
            // While the client's side is open it waits for as long as it likes: it can close.
            () = tokio::time::sleep(PATIENCE), if !listens => return Ok(Err(no_answer(to))),
        }
    }
}

async fn begin(office: &Office, (pid, manner): Addressee, said: &[u8]) -> Result<UnixStream, Message> {
    let unreachable = |error: io::Error| Message::error(format!("Can't connect to the target CLI: process {pid}: {error}"));
    let worker = office.overseer.connect(pid, manner).map_err(unreachable)?;
    let mut worker = worker.set_nonblocking(true).and_then(|()| UnixStream::from_std(worker)).map_err(unreachable)?;
    match write(&mut worker, said, PATIENCE).await {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(no_answer((pid, manner))),
        Err(_) => Err(gone((pid, manner))),
        Ok(()) => Ok(worker),
    }
}

fn no_answer((pid, _): Addressee) -> Message {
    Message::error(format!("Process {pid} does not answer."))
}

fn gone((pid, _): Addressee) -> Message {
    Message::error(format!("Process {pid} went away without an answer."))
}

/// Limit of a worker's silence.
const PATIENCE: Duration = Duration::from_secs(5);
/// Size of a relayed piece.
const PIECE_BYTES: usize = 16 * 1024;
