//! A body's way through its decoders, driven by the proxy, within limits.
//!
//! ```text
//!   push: taken, more ──┐      finish
//!        ^              v         │
//!        └── output: hand it on <─┘
//! ```
//!
//! A bomb is a body that comes out larger than [`Limits`] allow. The ratio is judged once [`FREE_BYTES`] have come out:
//! below, a page of blanks harms no receiver. Until then a body whose ratio is too high [is
//! suspect](Decompressor::is_suspect), and a caller that can still answer otherwise had better hold the output.

use super::chain::Chain;
use super::place::Place;
use super::policy::Plan;
use super::{Flaw, Next};
use std::rc::Rc;

/// The most output of a single call.
pub const PIECE_BYTES: usize = 64 * 1024;

/// Output that is allowed at any ratio.
pub const FREE_BYTES: u64 = 1 << 20;

/// Expected memory of a decoder; a decoder with a larger window takes the rest when it knows.
const STATE_BYTES: usize = 40 * 1024;

/// The limits of a body.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Limits {
    /// Bytes that may come out; 0: any number.
    pub max_bytes: u64,
    /// Largest ratio of output to input, also between decoders; 0: any ratio.
    pub max_ratio: u32,
    /// Whether bytes after the coded body's end are an error. They are dropped otherwise, as browsers do.
    pub strict: bool,
}

/// Why a body cannot be decoded any further.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fault {
    /// The input is flawed.
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

/// Progress of a push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pushed {
    /// Bytes of the input that are done with.
    pub taken: usize,
    /// Whether to push again, with the rest of the input, even if that is empty: more is to come out.
    pub more: bool,
}

/// The decoder of a body.
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
    /// A decoder for the plan; `None` when there is no memory for it.
    pub fn new(plan: Plan, limits: Limits, place: &Rc<Place>) -> Option<Decompressor> {
        let codings = plan.codings().len();
        let expected = STATE_BYTES * codings;
        if !place.budget().take(expected) {
            return None;
        }
        // From here on the budget gets back all that it gave, whatever happens.
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

    /// Ends the body; all of it has to have been pushed.
    pub fn finish(&mut self) -> Result<(), Fault> {
        // Some servers send a body of no bytes for an empty one.
        if self.bytes_in == 0 || self.chain.is_complete() { Ok(()) } else { Err(Fault::Flaw(Flaw::Truncated)) }
    }

    /// Output that was not handed on.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Drops the output, all of which was handed on.
    pub fn clear_output(&mut self) {
        self.output.clear();
        if self.output.capacity() > 2 * PIECE_BYTES {
            self.relax();
        }
    }

    /// Gives back the memory that it can do without while nothing comes in.
    pub fn relax(&mut self) {
        self.output.shrink_to_fit();
        self.release_to(self.chain.memory() + self.output.capacity());
    }

    /// Whether it may turn out to be a bomb.
    pub fn is_suspect(&self) -> bool {
        self.exceeds_ratio() && self.chain.made() <= FREE_BYTES
    }

    /// The plan of the decoding.
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

    /// Handles bytes after the end.
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

    /// Counts the memory that is held by now. Windows are known, and allocated, only when their first bytes have come: of a
    /// single push of a body of a worker the budget hears afterwards.
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
