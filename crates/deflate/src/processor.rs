//! Work that is compiled more than once: for every processor of the target, and for those with more instructions.
//!
//! For x86-64 the baseline has no `shlx` (a shift by a variable takes three steps instead of one), no `tzcnt` and vectors of
//! sixteen bytes. [`Work`] is there a second time for processors with AVX2 and BMI2, and [`Processor::run`] takes the better
//! one.
//!
//! Invariant: the output is the same on every processor, byte for byte.
//!
//! Here, with [`crate::lanes`], is the only unsafe code of the crate.

use crate::lanes::{Lanes, Plain};

/// Work that is worth compiling for each kind of processor: with a loop that is run for each byte or symbol.
pub(crate) trait Work {
    type Result;

    /// Does the work. To be `#[inline(always)]`, like all that it calls in its loops: a function that is called is compiled
    /// for every processor.
    fn run(self, lanes: impl Lanes) -> Self::Result;
}

/// Instructions of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl Processor {
    /// This machine's.
    pub fn here() -> Processor {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::here() {
            return Processor(Kind::Avx2(avx2));
        }
        Processor(Kind::Plain)
    }

    /// All that this machine's can do the work of, the plainest first: to compare them.
    pub fn all() -> Vec<Processor> {
        let mut all = vec![Processor(Kind::Plain), Processor::here()];
        all.dedup();
        all
    }

    #[inline(always)]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Result {
        match self.0 {
            Kind::Plain => plain(work),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(avx2) => avx2.run(work),
        }
    }
}

/// A call, so that each kind of work has its registers to itself, in each way.
#[inline(never)]
fn plain<W: Work>(work: W) -> W::Result {
    work.run(Plain)
}

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use super::Work;
    use std::arch::is_x86_feature_detected as has;

    /// Proof that there are AVX2, BMI1, BMI2, LZCNT and POPCNT, as Intel has had since 2013 and AMD since 2015.
    ///
    /// Invariant: there is no value where they are missing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Avx2(());

    impl Avx2 {
        pub(super) fn here() -> Option<Avx2> {
            let all = has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt");
            all.then_some(Avx2(()))
        }

        #[inline(always)]
        pub(super) fn run<W: Work>(self, work: W) -> W::Result {
            // SAFETY: the processor has the instructions that the function is compiled for; `self` is the proof.
            unsafe { self.run_there(work) }
        }

        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        #[inline(never)]
        fn run_there<W: Work>(self, work: W) -> W::Result {
            work.run(self)
        }
    }
}
