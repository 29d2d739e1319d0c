//! A body's way through its decoders, driven by the proxy, within limits.
//!
//! ```text
//!   push: taken, more ──┐      finish
//!        ^              v         │
//!        └── output: hand it on <─┘
//! ```
//!
//! A bomb is a body that comes out larger than [`Limits`] allow. The ratio is judged once [`FREE_BYTES`] have come out: below,
//! nobody is harmed by a page of blanks. Until then a body whose ratio is too high [is suspect](Decompressor::is_suspect), and whoever
//! can still answer otherwise had better hold what has come out.

use super::chain::Chain;
use super::place::Place;
use super::policy::Plan;
use super::{Flaw, Next};
use std::rc::Rc;

/// The most that comes out of one call.
pub const PIECE_BYTES: usize = 64 * 1024;

/// What may come out at any ratio.
pub const FREE_BYTES: u64 = 1 << 20;

/// What a decoder is expected to hold; one with a larger window takes the rest when it knows.
const STATE_BYTES: usize = 40 * 1024;

/// The limits of one body.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// Bytes that may come out; 0: any number.
    pub max_bytes: u64,
    /// How many times more bytes may come out, or pass between decoders, than go in; 0: any number.
    pub max_ratio: u32,
    /// Whether bytes behind the coded body's end are an error. They are dropped otherwise, as browsers do.
    pub strict: bool,
}

/// Why a body cannot be decoded any further.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// What comes in is not what it should be.
    Flaw(Flaw),
    /// More comes out than [`Limits::max_ratio`] allows.
    Ratio,
    /// More comes out than [`Limits::max_bytes`] allows.
    Size,
    /// There is no memory for its window.
    Memory,
}

impl Fault {
    /// The stable short name: `ratio`, `truncated`.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Flaw(flaw) => flaw.name(),
            Fault::Ratio => "ratio",
            Fault::Size => "size",
            Fault::Memory => "memory",
        }
    }

    /// Whether the body is larger than it may be, rather than wrong.
    pub const fn is_bomb(self) -> bool {
        matches!(self, Fault::Ratio | Fault::Size)
    }
}

/// How far a push has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pushed {
    /// Bytes of the input that are done with.
    pub taken: usize,
    /// Whether to push again, with what is left of the input, even if that is nothing: more is to come out.
    pub more: bool,
}

/// The decoder of one body.
pub struct Decompressor {
    plan: Plan,
    place: Rc<Place>,
    chain: Chain,
    limits: Limits,
    output: Vec<u8>,
    ended: bool,
    bytes_in: u64,
    bytes_out: u64,
    /// Bytes taken from the budget.
    held: usize,
}

impl Decompressor {
    /// A decoder for what was planned; none when there is no memory for it.
    pub fn new(plan: Plan, limits: Limits, place: &Rc<Place>) -> Option<Decompressor> {
        let codings = plan.codings().len();
        let expected = STATE_BYTES * codings;
        if !place.budget().take(expected) {
            return None;
        }
        // From here on the budget gets back what it gave, whatever happens.
        let mut new = Decompressor {
            plan,
            place: place.clone(),
            chain: Chain::new(std::iter::empty()),
            limits,
            output: Vec::new(),
            ended: false,
            bytes_in: 0,
            bytes_out: 0,
            held: expected,
        };
        let decoders: Vec<_> = plan.codings().iter().map_while(|coding| place.take(*coding)).collect();
        let all = decoders.len() == codings;
        new.chain = Chain::new(decoders.into_iter());
        all.then_some(new)
    }

    /// Takes from the front of a piece of the body.
    pub fn push(&mut self, input: &[u8]) -> Result<Pushed, Fault> {
        if self.ended {
            return self.drop_rest(input);
        }
        let before = self.output.len();
        let progress = self.chain.push(input, &mut self.output, PIECE_BYTES).map_err(Fault::Flaw)?;
        self.bytes_in += progress.taken as u64;
        self.bytes_out += (self.output.len() - before) as u64;
        self.judge()?;
        self.hold()?;
        if self.limits.strict && self.chain.trails() {
            return Err(Fault::Flaw(Flaw::Trailing));
        }
        self.ended = progress.next == Next::Ended;
        let rest = progress.taken < input.len();
        Ok(Pushed { taken: progress.taken, more: progress.next == Next::Room || (self.ended && rest) })
    }

    /// Says that the body has ended; all of it has to have been pushed.
    pub fn finish(&mut self) -> Result<(), Fault> {
        // A body of no bytes is what some servers send for one that is empty.
        if self.bytes_in == 0 || self.chain.is_complete() { Ok(()) } else { Err(Fault::Flaw(Flaw::Truncated)) }
    }

    /// What has come out and was not handed on.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Says that all of it was handed on.
    pub fn clear_output(&mut self) {
        self.output.clear();
        if self.output.capacity() > 2 * PIECE_BYTES {
            self.relax();
        }
    }

    /// Gives back what memory it can do without while nothing comes in.
    pub fn relax(&mut self) {
        self.output.shrink_to_fit();
        self.release_to(self.chain.memory() + self.output.capacity());
    }

    /// Whether it may turn out to be a bomb.
    pub fn is_suspect(&self) -> bool {
        self.exceeds_ratio() && self.chain.made() <= FREE_BYTES
    }

    /// What is decoded.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// Bytes that were pushed.
    pub fn bytes_in(&self) -> u64 {
        self.bytes_in
    }

    /// Bytes that came out.
    pub fn bytes_out(&self) -> u64 {
        self.bytes_out
    }

    /// What stands behind the end.
    fn drop_rest(&mut self, input: &[u8]) -> Result<Pushed, Fault> {
        if self.limits.strict && !input.is_empty() {
            return Err(Fault::Flaw(Flaw::Trailing));
        }
        Ok(Pushed { taken: input.len(), more: false })
    }

    fn exceeds_ratio(&self) -> bool {
        self.limits.max_ratio > 0 && self.chain.made() > self.bytes_in.saturating_mul(u64::from(self.limits.max_ratio))
    }

    fn judge(&self) -> Result<(), Fault> {
        if self.limits.max_bytes > 0 && self.bytes_out > self.limits.max_bytes {
            Err(Fault::Size)
        } else if self.chain.made() > FREE_BYTES && self.exceeds_ratio() {
            Err(Fault::Ratio)
        } else {
            Ok(())
        }
    }

    /// Counts what is held by now. Windows are known, and allocated, only when their first bytes have come: of one push of one body
    /// of a worker the budget hears afterwards.
    fn hold(&mut self) -> Result<(), Fault> {
        let needed = self.chain.memory() + self.output.capacity();
        let more = needed.saturating_sub(self.held);
        if more > 0 {
            if !self.place.budget().take(more) {
                return Err(Fault::Memory);
            }
            self.held += more;
        }
        Ok(())
    }

    fn release_to(&mut self, bytes: usize) {
        let less = self.held.saturating_sub(bytes);
        if less > 0 {
            self.place.budget().give(less);
            self.held -= less;
        }
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        for (coding, decoder) in self.plan.codings().iter().zip(self.chain.take()) {
            self.place.give(*coding, decoder);
        }
        self.release_to(0);
    }
}

#[cfg(test)]
mod tests;
