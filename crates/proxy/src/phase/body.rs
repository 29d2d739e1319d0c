//! A body from one side to the other, as it is or through a coder. Both directions go this way.

use crate::exchange::{Broken, Part, Receiver, Sender};
use crate::filter::{Passage, Reach, Side};
use crate::io::{Timer, turn};
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

/// The side on which a body broke off.
#[derive(Debug)]
pub enum Broke {
    /// The side that it comes from.
    Receiver(Broken),
    /// The side that it goes to.
    Sender(io::Error),
    /// In the coder.
    Coder,
    /// In the decoder.
    Decoder(terse_compress::decode::Fault),
}

impl From<splice::Broke> for Broke {
    fn from(broke: splice::Broke) -> Broke {
        match broke {
            splice::Broke::Receiver(broken) => Broke::Receiver(broken),
            splice::Broke::Sender(error) => Broke::Sender(error),
        }
    }
}

/// Moves a body as it is.
pub async fn pass(receiver: &mut Receiver<'_>, sender: &mut Sender<'_>, Way { mut passage, splicing }: Way) -> Result<(), Broke> {
    loop {
        match receiver.part().map_err(Broke::Receiver)? {
            Some(Part::Data(n)) => {
                let n = admitted(&mut passage, Reach::All, receiver.data(n), sender).await?;
                receiver.count(n);
                let sent = sender.send(receiver.data(n)).await;
                // Counted bytes are not found again, whatever the result.
                receiver.consume(n);
                sent.map_err(Broke::Sender)?;
            }
            Some(Part::End) => return sender.finish(receiver.trailers()).await.map_err(Broke::Sender),
            None => {
                if let Some(splicing) = &splicing
                    && splicing.fits(receiver, sender)
                    // Boxed, so that bodies that are copied do not carry the room for it.
                    && Box::pin(splicing.run(receiver, sender, || (), || false)).await?
                {
                    continue;
                }
                sender.flush().await.map_err(Broke::Sender)?;
                let mut takes = sender.takes();
                if takes < AMPLE {
                    // Boxed, so that bodies whose receivers keep up do not carry the room for it.
                    takes = Box::pin(paced(receiver, sender)).await?;
                }
                receiver.pace(takes);
                receiver.more().await.map_err(Broke::Receiver)?;
            }
        }
    }
}

/// Windows of so many bytes are not used up by what the other streams of a connection read at once.
const AMPLE: usize = 2 << 20;

/// Holds as little as may be while nothing comes, or a body's taker is stuck; gives the bytes that it takes then. Whether others have
/// used up the window of their connection is known when something has come. What has come on a stream stays in its connection. What
/// has come on a connection of HTTP/1 may be the body's end, which needs no window: behind a closed one, a few bytes are read at a
/// time.
async fn paced(receiver: &mut Receiver<'_>, sender: &mut Sender<'_>) -> Result<usize, Broke> {
    receiver.arrived().await.map_err(Broke::Receiver)?;
    if sender.is_stuck() {
        receiver.release();
        let waits = if receiver.is_shared() { receiver.has_data_behind() } else { !sender.is_closed() };
        if waits {
            sender.opened().await.map_err(Broke::Sender)?;
        }
    }
    Ok(sender.takes())
}

/// Reads a body to its end and drops it: the peer has asked for the head alone.
pub async fn discard(receiver: &mut Receiver<'_>, sender: &mut Sender<'_>) -> Result<(), Broke> {
    sender.end_with_head();
    sender.flush().await.map_err(Broke::Sender)?;
    drop_rest(receiver).await.map_err(Broke::Receiver)
}

/// Reads the rest of a body and drops it.
pub async fn drop_rest(receiver: &mut Receiver<'_>) -> Result<(), Broken> {
    loop {
        match receiver.part()? {
            Some(Part::Data(n)) => {
                receiver.count(n);
                receiver.consume(n);
            }
            Some(Part::End) => return Ok(()),
            None => receiver.more().await?,
        }
    }
}

/// Moves a body through a coder. Bytes that were sent before a pause reach their peer decodable.
pub async fn compress(
    receiver: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    coder: &mut Compressor,
    mut passage: Option<Passage>,
) -> Result<(), Broke> {
    let mut patience = Patience::default();
    loop {
        match receiver.part().map_err(Broke::Receiver)? {
            Some(Part::Data(n)) => {
                let n = admitted(&mut passage, Reach::Only(Side::Before), receiver.data(n), sender).await?;
                receiver.count(n);
                if !coder.is_collecting() {
                    turn::stream(n).await;
                }
                let step = coder.feed(receiver.data(n)).map_err(|_| Broke::Coder)?;
                receiver.consume(n);
                settle(coder, step, receiver, sender, &mut passage).await?;
                if coder.is_collecting() {
                    turn::collected(n).await;
                }
            }
            Some(Part::End) => return finish(coder, receiver, sender, &mut passage).await,
            None => match collect_soon(receiver, coder, &passage, sender.has_waiting(), &mut patience).await? {
                Some(n) => turn::collected(n).await,
                None => {
                    let step = coder.pause().map_err(|_| Broke::Coder)?;
                    settle(coder, step, receiver, sender, &mut passage).await?;
                    outwait(coder, receiver, async { sender.flush().await.map_err(Broke::Sender) }).await?;
                    patience = Patience::default();
                    receiver.more().await.map_err(Broke::Receiver)?;
                }
            },
        }
    }
}

/// The number of bytes at hand that go on: all, up to the filters' limits.
pub(super) async fn admitted(
    passage: &mut Option<Passage>,
    reach: Reach,
    data: &[u8],
    sender: &mut Sender<'_>,
) -> Result<usize, Broke> {
    match passage {
        None => Ok(data.len()),
        Some(passage) => Box::pin(passage.admit(reach, data, sender)).await.map_err(Broke::Sender),
    }
}

/// Reads more; false when the peer pauses and some output `waits` for more bytes.
pub(super) async fn more_soon(
    receiver: &mut Receiver<'_>,
    coder: Option<&Compressor>,
    waits: bool,
    patience: &mut Patience,
) -> Result<bool, Broke> {
    patience.earn(receiver.counted());
    let pause = Pause::of(receiver, coder, waits, patience);
    Ok(pause.or(receiver.more()).await?.is_some())
}

/// The same for a collected body: its bytes are received directly into the collection, if no filter applies. Returns their
/// number; `None` when the peer pauses.
async fn collect_soon(
    receiver: &mut Receiver<'_>,
    coder: &mut Compressor,
    passage: &Option<Passage>,
    waits: bool,
    patience: &mut Patience,
) -> Result<Option<usize>, Broke> {
    patience.earn(receiver.counted());
    let pause = Pause::of(receiver, Some(coder), waits || coder.has_pending(), patience);
    let room = if passage.is_none() && receiver.can_receive() { coder.room() } else { None };
    let Some(room) = room else { return Ok(pause.or(receiver.more()).await?.map(|()| 0)) };
    let received = pause.or(receiver.receive(room)).await?;
    if let Some(n) = received {
        receiver.count(n);
        coder.received(n);
    }
    Ok(received)
}

/// The body's length, where all of it comes before its peer pauses, and it is shorter than `least`. Bytes that have come stay
/// where they are.
pub(super) async fn whole(receiver: &mut Receiver<'_>, least: u64) -> Option<u64> {
    if least == 0 {
        return None;
    }
    let mut patience = Patience::default();
    loop {
        // A fault in it is found again when it is moved.
        receiver.part().ok()?;
        let (bytes, ended) = receiver.at_hand(least);
        if ended {
            return Some(bytes);
        }
        let is_full = receiver.is_full();
        if bytes >= least || is_full || receiver.known_bytes().is_some() || patience.left.is_zero() {
            return None;
        }
        let timer = Pause::Patient(&mut patience);
        let came = timer.or(async { Ok(receiver.more_ahead().await) }).await.ok().flatten();
        match came {
            Some(true) => {}
            // A body that ends with its peer's connection is whole then; any other that ends too early is found again when it
            // is moved.
            Some(false) if receiver.ends_with_connection() && receiver.broken().is_none() => return Some(bytes),
            _ => return None,
        }
    }
}

/// After how long without a byte a peer pauses.
enum Pause<'a> {
    /// No output waits for more bytes.
    Never,
    /// Soon.
    Brief(&'a Timer),
    /// [`PATIENCE`] is had with it, as long as there is some left.
    Patient(&'a mut Patience),
}

impl<'a> Pause<'a> {
    /// Patience applies where the body has a length, or so much of it came without a pause that the rest is probably on its
    /// way, too.
    fn of(receiver: &Receiver<'a>, coder: Option<&Compressor>, waits: bool, patience: &'a mut Patience) -> Pause<'a> {
        let collected = coder.filter(|coder| coder.is_collecting()).map_or(0, |coder| coder.bytes_in());
        let is_due = receiver.known_bytes().is_some() || collected >= MUCH;
        match waits {
            false => Pause::Never,
            true if is_due && !patience.left.is_zero() => Pause::Patient(patience),
            true => Pause::Brief(receiver.timer()),
        }
    }

    /// The next bytes, unless there is a pause before.
    async fn or<T>(self, more: impl Future<Output = Result<T, Broken>>) -> Result<Option<T>, Broke> {
        let more = match self {
            Pause::Never => Some(more.await),
            Pause::Brief(timer) => timer.briefly(more).await,
            Pause::Patient(patience) => {
                let (begun, most) = (Instant::now(), patience.left.min(PATIENCE));
                let more = tokio::time::timeout(most, more).await.ok();
                // Time beyond that was this worker's own delay.
                patience.left -= begun.elapsed().min(most);
                more
            }
        };
        more.transpose().map_err(Broke::Receiver)
    }
}

/// The rest of the patience with a peer whose bytes are held.
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
    /// With a peer that has sent so much now.
    fn earn(&mut self, sent: u64) {
        let bytes = u32::try_from(sent.saturating_sub(self.seen)).unwrap_or(u32::MAX);
        let earned = PATIENCE.saturating_mul(bytes) / MUCH as u32;
        self.left = self.left.saturating_add(earned).min(ALL_PATIENCE);
        self.seen = sent;
    }
}

/// The limit of a pause for a body with a known length, and for one of which [`MUCH`] is collected. Its sender has all of it,
/// or nearly, and no task waits for a part of it; a body that comes whole costs less and comes out smaller.
const PATIENCE: Duration = Duration::from_millis(3);

/// So long is waited altogether, or a body that trickles in would be held until all of it is there: for a peer that does not earn it back
/// by sending [`MUCH`] in each [`PATIENCE`], some 40 Mbit/s.
const ALL_PATIENCE: Duration = Duration::from_millis(20);

/// An event of a stream is shorter, and so is, mostly, the part of a page that a server sends while it computes the rest.
const MUCH: u64 = 16 << 10;

/// Does the coder's work, or waits for it where it is done elsewhere, and hands on its output.
pub(super) async fn settle(
    coder: &mut Compressor,
    step: Step,
    receiver: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    passage: &mut Option<Passage>,
) -> Result<(), Broke> {
    let output = output(coder, step, receiver, sender).await?;
    let sent = match passage {
        None => outwait(coder, receiver, async { sender.send(&output).await.map_err(Broke::Sender) }).await,
        passage => in_pieces(&output, sender, passage).await,
    };
    drop(output);
    coder.delivered();
    sent
}

/// Waits until a peer has taken some bytes. Where the received bytes are coded, their buffer goes at once. While the peer
/// takes nothing for long, the coder does without a state, and bytes that wait to be coded have as small a buffer as holds
/// them.
async fn outwait(
    coder: &mut Compressor,
    receiver: &mut Receiver<'_>,
    sending: impl Future<Output = Result<(), Broke>>,
) -> Result<(), Broke> {
    let mut sending = pin!(sending);
    if let Poll::Ready(sent) = poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx))).await {
        return sent;
    }
    receiver.release_if_empty();
    // Boxed, so that bodies whose receivers keep up do not carry the room for it.
    let outwaited = async {
        match tokio::time::timeout(REST_AFTER, sending.as_mut()).await {
            Ok(sent) => sent,
            Err(_) => {
                coder.rest().map_err(|_| Broke::Coder)?;
                receiver.make_small();
                sending.await
            }
        }
    };
    Box::pin(outwaited).await
}

/// A receiver that takes this long for a piece is slow: below some 20 KB/s. Output after a rest is a little larger.
const REST_AFTER: Duration = Duration::from_secs(1);

/// Ends the body: hands on the last output of the coder, and the trailers.
pub(super) async fn finish(
    coder: &mut Compressor,
    receiver: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    passage: &mut Option<Passage>,
) -> Result<(), Broke> {
    let step = coder.finish().map_err(|_| Broke::Coder)?;
    let output = output(coder, step, receiver, sender).await?;
    receiver.release_if_empty();
    let trailers = trailers(receiver.trailers());
    let sent = match passage {
        None => sender.finish_with(&output, &trailers).await.map_err(Broke::Sender),
        passage => match in_pieces(&output, sender, passage).await {
            Ok(()) => sender.finish(&trailers).await.map_err(Broke::Sender),
            broke => broke,
        },
    };
    drop(output);
    coder.delivered();
    if sent.is_ok() {
        coder.arrived();
    }
    sent
}

/// The output of the coder, once its work is done.
async fn output(coder: &mut Compressor, mut step: Step, receiver: &mut Receiver<'_>, sender: &Sender<'_>) -> Result<Output, Broke> {
    let mut is_long = false;
    loop {
        match step {
            Step::Done => return Ok(coder.take_output()),
            Step::Here(ns) => {
                match is_long {
                    false => turn::whole(ns).await,
                    true => Box::pin(wanted(Box::pin(turn::whole(ns)), receiver, sender)).await?,
                }
                step = coder.work().map_err(|_| Broke::Coder)?;
                is_long = true;
            }
            Step::Away(job) => {
                // The job has the bytes that have come.
                receiver.release_if_empty();
                // Boxed, so that bodies that are coded in place do not carry the room for it.
                let finished = Box::pin(wanted(job, receiver, sender)).await?;
                coder.resume(finished).map_err(|_| Broke::Coder)?;
                step = Step::Done;
            }
        }
    }
}

/// Waits for work that is done elsewhere, or for its turn, for as long as its output is wanted: a client, or a peer, whose
/// connection is [gone](crate::exchange::Sender::gone) has its job cancelled. A peer that has closed its own half only still
/// listens.
async fn wanted<W: Future + Unpin>(mut work: W, receiver: &Receiver<'_>, sender: &Sender<'_>) -> Result<W::Output, Broke> {
    let (mut taker, mut giver) = (pin!(sender.gone()), pin!(receiver.gone()));
    poll_fn(|cx| {
        if let Poll::Ready(done) = Pin::new(&mut work).poll(cx) {
            return Poll::Ready(Ok(done));
        }
        if taker.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Broke::Sender(io::ErrorKind::ConnectionReset.into())));
        }
        if receiver.is_client() && giver.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Broke::Receiver(Broken::Reset)));
        }
        Poll::Pending
    })
    .await
}

/// Sends a coder's output, through the filters after it.
async fn in_pieces(mut output: &[u8], sender: &mut Sender<'_>, passage: &mut Option<Passage>) -> Result<(), Broke> {
    while !output.is_empty() {
        let n = admitted(passage, Reach::Only(Side::Behind), output, sender).await?;
        let (piece, rest) = output.split_at(n.min(output.len()));
        sender.send(piece).await.map_err(Broke::Sender)?;
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
