//! A body from one side to the other, as it is or through a coder. Both directions go this way.

use crate::filter::{Passage, Reach, Side};
use crate::io::{Broken, Part, Sink, Source, Timer, Turn};
use crate::splice::{self, Way};
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use terse_compress::body::Output;
use terse_compress::offload::{Finished, Job};
use terse_compress::{Compressor, Step};
use terse_http::h1::head::parse_trailers;
use terse_message::Fields;

/// Where a body broke off.
#[derive(Debug)]
pub enum Broke {
    /// Where it comes from.
    Source(Broken),
    /// Where it goes.
    Sink(io::Error),
    /// In the coder.
    Coder,
    /// In the decoder.
    Decoder(terse_compress::decode::Fault),
}

impl From<splice::Broke> for Broke {
    fn from(broke: splice::Broke) -> Broke {
        match broke {
            splice::Broke::Source(broken) => Broke::Source(broken),
            splice::Broke::Sink(error) => Broke::Sink(error),
        }
    }
}

/// Moves a body as it is; counts in `progress` the bytes that the sink has been given.
pub async fn pass(
    source: &mut Source<'_>,
    sink: &mut Sink<'_>,
    progress: &Cell<u64>,
    Way { mut passage, splicing }: Way,
) -> Result<(), Broke> {
    loop {
        match source.part().map_err(Broke::Source)? {
            Some(Part::Data(n)) => {
                let n = admitted(&mut passage, Reach::All, source.data(n), sink).await?;
                progress.set(progress.get() + n as u64);
                sink.send(source.data(n)).await.map_err(Broke::Sink)?;
                source.consume(n);
            }
            Some(Part::End) => return sink.finish(source.trailers()).await.map_err(Broke::Sink),
            None => {
                if let Some(splicing) = &splicing
                    && splicing.fits(source, sink)
                    // Boxed, so that bodies that are copied do not carry the room for it.
                    && Box::pin(splicing.run(source, sink, |n| progress.set(progress.get() + n), || false)).await?
                {
                    continue;
                }
                sink.flush().await.map_err(Broke::Sink)?;
                source.more().await.map_err(Broke::Source)?;
            }
        }
    }
}

/// Reads a body to its end and drops it: the receiver has asked for the head alone.
pub async fn discard(source: &mut Source<'_>, sink: &mut Sink<'_>) -> Result<(), Broke> {
    sink.flush().await.map_err(Broke::Sink)?;
    loop {
        match source.part().map_err(Broke::Source)? {
            Some(Part::Data(n)) => source.consume(n),
            Some(Part::End) => return Ok(()),
            None => source.more().await.map_err(Broke::Source)?,
        }
    }
}

/// Moves a body through a coder. What was sent before a pause reaches the receiver decodable.
pub async fn compress(
    source: &mut Source<'_>,
    sink: &mut Sink<'_>,
    coder: &mut Compressor,
    progress: &Cell<u64>,
    mut passage: Option<Passage>,
) -> Result<(), Broke> {
    let mut turn = Turn::default();
    loop {
        match source.part().map_err(Broke::Source)? {
            Some(Part::Data(n)) => {
                let n = admitted(&mut passage, Reach::Only(Side::Before), source.data(n), sink).await?;
                progress.set(progress.get() + n as u64);
                let step = coder.feed(source.data(n)).map_err(|_| Broke::Coder)?;
                source.consume(n);
                settle(coder, step, source, sink, &mut passage).await?;
                turn.moved(if coder.is_collecting() { n / COLLECTED } else { n }).await;
            }
            Some(Part::End) => {
                return finish(coder, source, sink, &mut passage, turn).await;
            }
            None => match collect_soon(source, coder, progress, &passage, !sink.out.is_empty()).await? {
                Some(n) => turn.moved(n / COLLECTED).await,
                None => {
                    let step = coder.pause().map_err(|_| Broke::Coder)?;
                    settle(coder, step, source, sink, &mut passage).await?;
                    sink.flush().await.map_err(Broke::Sink)?;
                    source.more().await.map_err(Broke::Source)?;
                }
            },
        }
    }
}

/// How many of the bytes at hand go on: all, but for what filters say.
pub(super) async fn admitted(
    passage: &mut Option<Passage>,
    reach: Reach,
    data: &[u8],
    sink: &mut Sink<'_>,
) -> Result<usize, Broke> {
    match passage {
        None => Ok(data.len()),
        Some(passage) => Box::pin(passage.admit(reach, data, sink)).await.map_err(Broke::Sink),
    }
}

/// Reads more; false when the sender pauses and something `waits` for what may come.
pub(super) async fn more_soon(source: &mut Source<'_>, waits: bool, is_patient: bool) -> Result<bool, Broke> {
    let timer = source.timer;
    Ok(soon(source.more(), waits, timer, is_patient).await?.is_some())
}

/// Whether [`PATIENCE`] is had with the sender: its body has a length, or so much of it came without a pause that what is left is probably
/// on its way, too.
pub(super) fn is_patient(source: &Source<'_>, coder: Option<&Compressor>) -> bool {
    let collected = coder.filter(|coder| coder.is_collecting()).map_or(0, |coder| coder.bytes_in());
    source.known_bytes().is_some() || collected >= MUCH
}

/// The same for what is collected: received at once to where it is collected, if nobody else has a say in it. Returns how many bytes were;
/// none when the sender pauses.
async fn collect_soon(
    source: &mut Source<'_>,
    coder: &mut Compressor,
    progress: &Cell<u64>,
    passage: &Option<Passage>,
    waits: bool,
) -> Result<Option<usize>, Broke> {
    let (waits, is_patient) = (waits || coder.has_pending(), is_patient(source, Some(coder)));
    let room = if passage.is_none() && source.can_receive() { coder.room() } else { None };
    let Some(room) = room else { return Ok(more_soon(source, waits, is_patient).await?.then_some(0)) };
    let timer = source.timer;
    let received = soon(source.receive(room), waits, timer, is_patient).await?;
    if let Some(n) = received {
        progress.set(progress.get() + n as u64);
        coder.received(n);
    }
    Ok(received)
}

/// What comes; none when the sender pauses and something `waits` for it.
async fn soon<T>(
    more: impl Future<Output = Result<T, Broken>>,
    waits: bool,
    timer: &Timer,
    is_patient: bool,
) -> Result<Option<T>, Broke> {
    let more = match (waits, is_patient) {
        (false, _) => Some(more.await),
        (true, true) => tokio::time::timeout(PATIENCE, more).await.ok(),
        (true, false) => timer.briefly(more).await,
    };
    more.transpose().map_err(Broke::Source)
}

/// To collect a byte is so many times less work than to code it.
const COLLECTED: usize = 4;

/// The same as a pause for a body whose length was told, and for one of which [`MUCH`] is collected. Its sender has all of it, or nearly,
/// and nobody waits for a part of it; what comes whole costs less and comes out smaller.
const PATIENCE: Duration = Duration::from_millis(3);

/// More bytes than an event has, or the beginning of a page that is still computed.
const MUCH: u64 = 16 << 10;

/// Waits for the coder where its work is done elsewhere, and hands on what has come out.
pub(super) async fn settle(
    coder: &mut Compressor,
    step: Step,
    source: &Source<'_>,
    sink: &mut Sink<'_>,
    passage: &mut Option<Passage>,
) -> Result<(), Broke> {
    let output = output(coder, step, source, sink).await?;
    let sent = match passage {
        None => sink.send(&output).await.map_err(Broke::Sink),
        passage => in_pieces(&output, sink, passage).await,
    };
    drop(output);
    coder.delivered();
    sent
}

/// Ends the body: hands on what comes out of the coder last, and the trailers.
pub(super) async fn finish(
    coder: &mut Compressor,
    source: &Source<'_>,
    sink: &mut Sink<'_>,
    passage: &mut Option<Passage>,
    mut turn: Turn,
) -> Result<(), Broke> {
    turn.before(coder.finish_ns()).await;
    let step = coder.finish().map_err(|_| Broke::Coder)?;
    let output = output(coder, step, source, sink).await?;
    let trailers = trailers(source.trailers());
    let sent = match passage {
        None => sink.finish_with(&output, &trailers).await.map_err(Broke::Sink),
        passage => match in_pieces(&output, sink, passage).await {
            Ok(()) => sink.finish(&trailers).await.map_err(Broke::Sink),
            broke => broke,
        },
    };
    drop(output);
    coder.delivered();
    sent
}

/// What has come out of the coder, once its work is done.
async fn output(coder: &mut Compressor, step: Step, source: &Source<'_>, sink: &Sink<'_>) -> Result<Output, Broke> {
    if let Step::Away(job) = step {
        // Boxed, so that bodies that are coded in place do not carry the room for it.
        let finished = Box::pin(wanted(job, source, sink)).await?;
        coder.resume(finished).map_err(|_| Broke::Coder)?;
    }
    Ok(coder.take_output())
}

/// Waits for work that is done elsewhere for as long as somebody waits for what comes of it: a client, or a receiver, whose connection is
/// [gone](crate::io::Writer::gone) has its job cancelled. One that has closed its own half only still listens.
async fn wanted(mut job: Job, source: &Source<'_>, sink: &Sink<'_>) -> Result<Finished, Broke> {
    let (mut receiver, mut client) = (pin!(sink.writer.gone()), pin!(source.reader.gone()));
    poll_fn(|cx| {
        if let Poll::Ready(finished) = Pin::new(&mut job).poll(cx) {
            return Poll::Ready(Ok(finished));
        }
        if receiver.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Broke::Sink(io::ErrorKind::ConnectionReset.into())));
        }
        if source.is_client && client.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Broke::Source(Broken::Reset)));
        }
        Poll::Pending
    })
    .await
}

/// Sends what a coder has made, through the filters behind it.
async fn in_pieces(mut output: &[u8], sink: &mut Sink<'_>, passage: &mut Option<Passage>) -> Result<(), Broke> {
    while !output.is_empty() {
        let n = admitted(passage, Reach::Only(Side::Behind), output, sink).await?;
        let (piece, rest) = output.split_at(n.min(output.len()));
        sink.send(piece).await.map_err(Broke::Sink)?;
        output = rest;
    }
    Ok(())
}

/// The trailers that still hold of a compressed body.
pub(super) fn trailers(raw: &[u8]) -> Vec<u8> {
    let mut fields = Fields::default();
    let mut out = Vec::new();
    if !raw.is_empty() && parse_trailers(raw, &mut fields).is_ok() {
        terse_compress::head::apply_trailers(&mut fields);
        fields.write_to(&mut out);
        out.extend_from_slice(b"\r\n");
    }
    out
}
