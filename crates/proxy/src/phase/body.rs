//! A body from one side to the other, as it is or through a coder. Both directions go this way.

use crate::filter::{Passage, Reach, Side};
use crate::io::source::Incoming;
use crate::io::{Broken, Part, Sink, Source, Timer, turn};
use crate::phase::inspect;
use crate::splice::{self, Way};
use std::borrow::Cow;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};
use terse_compress::body::Output;
use terse_compress::{Compressor, Step};
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

/// Moves a body as it is.
pub async fn pass(source: &mut Source<'_>, sink: &mut Sink<'_>, Way { mut passage, splicing }: Way) -> Result<(), Broke> {
    loop {
        match source.part().map_err(Broke::Source)? {
            Some(Part::Data(n)) => {
                let n = admitted(&mut passage, Reach::All, source.data(n), sink).await?;
                source.count(n);
                let sent = sink.send(source.data(n)).await;
                // What was counted is not found again, whatever became of it.
                source.consume(n);
                sent.map_err(Broke::Sink)?;
            }
            Some(Part::End) => return sink.finish(source.trailers()).await.map_err(Broke::Sink),
            None => {
                if let Some(splicing) = &splicing
                    && splicing.fits(source, sink)
                    // Boxed, so that bodies that are copied do not carry the room for it.
                    && Box::pin(splicing.run(source, sink, || (), || false)).await?
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
    sink.end_with_head();
    sink.flush().await.map_err(Broke::Sink)?;
    drop_rest(source).await.map_err(Broke::Source)
}

/// Reads what is left of a body and drops it.
pub async fn drop_rest(source: &mut Source<'_>) -> Result<(), Broken> {
    loop {
        match source.part()? {
            Some(Part::Data(n)) => {
                source.count(n);
                source.consume(n);
            }
            Some(Part::End) => return Ok(()),
            None => source.more().await?,
        }
    }
}

/// Moves a body through a coder. What was sent before a pause reaches the receiver decodable.
pub async fn compress(
    source: &mut Source<'_>,
    sink: &mut Sink<'_>,
    coder: &mut Compressor,
    mut passage: Option<Passage>,
) -> Result<(), Broke> {
    let mut patience = Patience::default();
    loop {
        match source.part().map_err(Broke::Source)? {
            Some(Part::Data(n)) => {
                let n = admitted(&mut passage, Reach::Only(Side::Before), source.data(n), sink).await?;
                source.count(n);
                if !coder.is_collecting() {
                    turn::stream(n).await;
                }
                let step = coder.feed(source.data(n)).map_err(|_| Broke::Coder)?;
                source.consume(n);
                settle(coder, step, source, sink, &mut passage).await?;
                if coder.is_collecting() {
                    turn::collected(n).await;
                }
            }
            Some(Part::End) => return finish(coder, source, sink, &mut passage).await,
            None => match collect_soon(source, coder, &passage, !sink.out.is_empty(), &mut patience).await? {
                Some(n) => turn::collected(n).await,
                None => {
                    let step = coder.pause().map_err(|_| Broke::Coder)?;
                    settle(coder, step, source, sink, &mut passage).await?;
                    sink.flush().await.map_err(Broke::Sink)?;
                    patience = Patience::default();
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
pub(super) async fn more_soon(
    source: &mut Source<'_>,
    coder: Option<&Compressor>,
    waits: bool,
    patience: &mut Patience,
) -> Result<bool, Broke> {
    patience.earn(source.count.get());
    let pause = Pause::of(source, coder, waits, patience);
    Ok(pause.or(source.more()).await?.is_some())
}

/// The same for what is collected: received at once to where it is collected, if nobody else has a say in it. Returns how many bytes were;
/// none when the sender pauses.
async fn collect_soon(
    source: &mut Source<'_>,
    coder: &mut Compressor,
    passage: &Option<Passage>,
    waits: bool,
    patience: &mut Patience,
) -> Result<Option<usize>, Broke> {
    patience.earn(source.count.get());
    let pause = Pause::of(source, Some(coder), waits || coder.has_pending(), patience);
    let room = if passage.is_none() && source.can_receive() { coder.room() } else { None };
    let Some(room) = room else { return Ok(pause.or(source.more()).await?.map(|()| 0)) };
    let received = pause.or(source.receive(room)).await?;
    if let Some(n) = received {
        source.count(n);
        coder.received(n);
    }
    Ok(received)
}

/// The body's length, where all of it comes before its sender pauses, and it is shorter than `least`. What has come stays where it is.
pub(super) async fn whole(source: &mut Source<'_>, least: u64) -> Option<u64> {
    if least == 0 {
        return None;
    }
    let mut patience = Patience::default();
    loop {
        // What is wrong with it is found again when it is moved.
        source.part().ok()?;
        let (bytes, ended) = source.at_hand(least);
        if ended {
            return Some(bytes);
        }
        let is_full = source.is_full();
        if bytes >= least || is_full || source.known_bytes().is_some() || patience.left.is_zero() {
            return None;
        }
        let timer = Pause::Patient(&mut patience);
        let came = timer.or(async { Ok(inspect::more_of(source).await) }).await.ok().flatten();
        match came {
            Some(true) => {}
            // What ends with its sender's connection is whole then; what else ends too early is found again when it is moved.
            Some(false) if matches!(source.body, Incoming::UntilClose) && source.broken.is_none() => return Some(bytes),
            _ => return None,
        }
    }
}

/// After how long without a byte a sender pauses.
enum Pause<'a> {
    /// Nothing waits for what it may send.
    Never,
    /// Soon.
    Brief(&'a Timer),
    /// [`PATIENCE`] is had with it, as long as there is some left.
    Patient(&'a mut Patience),
}

impl<'a> Pause<'a> {
    /// Patience is had where the body has a length, or so much of it came without a pause that what is left is probably on its way, too.
    fn of(source: &Source<'a>, coder: Option<&Compressor>, waits: bool, patience: &'a mut Patience) -> Pause<'a> {
        let collected = coder.filter(|coder| coder.is_collecting()).map_or(0, |coder| coder.bytes_in());
        let is_due = source.known_bytes().is_some() || collected >= MUCH;
        match waits {
            false => Pause::Never,
            true if is_due && !patience.left.is_zero() => Pause::Patient(patience),
            true => Pause::Brief(source.timer),
        }
    }

    /// What comes, unless there is a pause before.
    async fn or<T>(self, more: impl Future<Output = Result<T, Broken>>) -> Result<Option<T>, Broke> {
        let more = match self {
            Pause::Never => Some(more.await),
            Pause::Brief(timer) => timer.briefly(more).await,
            Pause::Patient(patience) => {
                let (begun, most) = (Instant::now(), patience.left.min(PATIENCE));
                let more = tokio::time::timeout(most, more).await.ok();
                // What is beyond that was this worker's own delay.
                patience.left -= begun.elapsed().min(most);
                more
            }
        };
        more.transpose().map_err(Broke::Source)
    }
}

/// What is left of the patience with a sender whose bytes are held.
pub(super) struct Patience {
    left: Duration,
    /// Bytes that it has sent.
    seen: u64,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { left: ALL_PATIENCE, seen: 0 }
    }
}

impl Patience {
    /// With a sender that has sent so much now.
    fn earn(&mut self, sent: u64) {
        let bytes = u32::try_from(sent.saturating_sub(self.seen)).unwrap_or(u32::MAX);
        let earned = PATIENCE.saturating_mul(bytes) / MUCH as u32;
        self.left = self.left.saturating_add(earned).min(ALL_PATIENCE);
        self.seen = sent;
    }
}

/// The same as a pause for a body whose length was told, and for one of which [`MUCH`] is collected. Its sender has all of it, or nearly,
/// and nobody waits for a part of it; what comes whole costs less and comes out smaller.
const PATIENCE: Duration = Duration::from_millis(3);

/// So long is waited altogether, or a body that trickles in would be held until all of it is there: for a sender that does not earn it back
/// by sending [`MUCH`] in each [`PATIENCE`], some 40 Mbit/s.
const ALL_PATIENCE: Duration = Duration::from_millis(20);

/// An event of a stream is shorter, and so is, mostly, what a server sends of a page while it computes the rest.
const MUCH: u64 = 16 << 10;

/// Does the coder's work, or waits for it where it is done elsewhere, and hands on what has come out.
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
) -> Result<(), Broke> {
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
async fn output(coder: &mut Compressor, mut step: Step, source: &Source<'_>, sink: &Sink<'_>) -> Result<Output, Broke> {
    let mut is_long = false;
    loop {
        match step {
            Step::Done => return Ok(coder.take_output()),
            Step::Here(ns) => {
                match is_long {
                    false => turn::whole(ns).await,
                    true => Box::pin(wanted(Box::pin(turn::whole(ns)), source, sink)).await?,
                }
                step = coder.work().map_err(|_| Broke::Coder)?;
                is_long = true;
            }
            Step::Away(job) => {
                // Boxed, so that bodies that are coded in place do not carry the room for it.
                let finished = Box::pin(wanted(job, source, sink)).await?;
                coder.resume(finished).map_err(|_| Broke::Coder)?;
                step = Step::Done;
            }
        }
    }
}

/// Waits for work that is done elsewhere, or for its turn, for as long as somebody waits for what comes of it: a client, or a receiver, whose connection is
/// [gone](crate::io::Writer::gone) has its job cancelled. One that has closed its own half only still listens.
async fn wanted<W: Future + Unpin>(mut work: W, source: &Source<'_>, sink: &Sink<'_>) -> Result<W::Output, Broke> {
    let (mut receiver, mut client) = (pin!(sink.writer.gone()), pin!(source.reader.gone()));
    poll_fn(|cx| {
        if let Poll::Ready(done) = Pin::new(&mut work).poll(cx) {
            return Poll::Ready(Ok(done));
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
pub(super) fn trailers(all: &Fields) -> Cow<'_, Fields> {
    if all.is_empty() {
        return Cow::Borrowed(all);
    }
    let mut left = all.clone();
    terse_compress::head::apply_trailers(&mut left);
    Cow::Owned(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[test]
    fn patience_comes_to_an_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut patience = Patience::default();
        let mut waits = 0;
        while !patience.left.is_zero() {
            let nothing = runtime.block_on(async { Pause::Patient(&mut patience).or(pending::<Result<(), Broken>>()).await });
            assert!(matches!(nothing, Ok(None)));
            waits += 1;
        }
        assert_eq!(waits, 7, "six of 3 ms, and one of 2 ms");
        patience.left = PATIENCE;
        let came = runtime.block_on(async { Pause::Patient(&mut patience).or(async { Ok(5) }).await });
        assert!(matches!(came, Ok(Some(5))) && !patience.left.is_zero());
    }

    #[test]
    fn patience_is_earned_with_what_is_sent() {
        let mut patience = Patience { left: Duration::from_millis(1), seen: 1_000 };
        let mut left = |sent| {
            patience.earn(sent);
            patience.left
        };
        let expected = [1_000, 2_500, 2_500, 20_000].map(Duration::from_micros);
        assert_eq!([1_000, 1_000 + MUCH / 2, 1_000 + MUCH / 2, u64::MAX].map(&mut left), expected);
    }
}
