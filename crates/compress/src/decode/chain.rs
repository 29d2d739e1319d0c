//! Codings of a body, each inside the next: `Content-Encoding: gzip, br` is gzip inside br (RFC 9110 section 8.4).

use super::{Decoder, Flaw, Next, Progress};

/// Decoders, the outermost first. The output of each is the input of the next.
pub(super) struct Chain {
    links: Vec<Link>,
}

struct Link {
    decoder: Box<dyn Decoder>,
    /// The output of the decoder before: `waiting[at..]` is still to be taken. Empty in the first link.
    waiting: Vec<u8>,
    at: usize,
    /// Bytes that it has made.
    made: u64,
    /// Whether the decoder before has made bytes after this decoder's end, which are part of nothing.
    trails: bool,
}

/// Output of a decoder for the next at a time.
const LINK_BYTES: usize = 16 * 1024;
/// Turns from a decoder to the next in a push before it returns [`Next::Room`]: much input without output must not hold a
/// thread up.
const MOST_TURNS: usize = 8;

impl Chain {
    pub(super) fn new(decoders: impl Iterator<Item = Box<dyn Decoder>>) -> Chain {
        Chain { links: decoders.map(|decoder| Link { decoder, waiting: Vec::new(), at: 0, made: 0, trails: false }).collect() }
    }

    /// As [`Decoder::push`]; [`Next::Room`] may also mean that the call has done enough.
    pub(super) fn push(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Progress, Flaw> {
        push(&mut self.links, input, out, room)
    }

    /// Whether the body may end here.
    pub(super) fn is_complete(&self) -> bool {
        self.links.iter().all(|link| link.decoder.is_complete())
    }

    /// Whether bytes came after the end of an inner coding.
    pub(super) fn trails(&self) -> bool {
        self.links.iter().any(|link| link.trails)
    }

    /// Bytes that were made in all, those between decoders too.
    pub(super) fn made(&self) -> u64 {
        self.links.iter().fold(0, |sum, link| sum.saturating_add(link.made))
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.links.iter().map(|link| link.decoder.memory() + link.waiting.capacity()).sum()
    }

    /// Its decoders, for another body.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Box<dyn Decoder>> {
        std::mem::take(&mut self.links).into_iter().map(|link| link.decoder)
    }
}

fn push(links: &mut [Link], input: &[u8], out: &mut Vec<u8>, room: usize) -> Result<Progress, Flaw> {
    let Some((last, before)) = links.split_last_mut() else { return Err(Flaw::Format) };
    if before.is_empty() {
        let start = out.len();
        let progress = last.decoder.push(input, out, room)?;
        last.made += (out.len() - start) as u64;
        return Ok(progress);
    }
    let (mut taken, limit) = (0, out.len().saturating_add(room));
    for _ in 0..MOST_TURNS {
        let start = out.len();
        let progress = last.decoder.push(last.waiting.get(last.at..).unwrap_or_default(), out, limit - start)?;
        last.at += progress.taken;
        last.made += (out.len() - start) as u64;
        if progress.next == Next::Room {
            return Ok(Progress { taken, next: Next::Room });
        }
        // After the end of the inner coding, the outer one's own end is still to come: it is looked for however the body is
        // split.
        last.trails |= last.at < last.waiting.len();
        last.waiting.clear();
        last.at = 0;
        let progress = push(before, input.get(taken..).unwrap_or_default(), &mut last.waiting, LINK_BYTES)?;
        taken += progress.taken;
        if last.waiting.is_empty() && progress.next != Next::Room {
            return Ok(Progress { taken, next: progress.next });
        }
    }
    Ok(Progress { taken, next: Next::Room })
}
