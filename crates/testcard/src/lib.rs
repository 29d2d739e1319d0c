//! A compression card that is not there: a shared library with zlib's API, for tests and measurements.
//!
//! It behaves as an AHA360 with its driver did: 2.5 Gbit/s of input, shared between all who use it, and hardly any of the
//! processor's time. The results were computed beforehand ([`results`]); of a body that it does not know, it computes one, which costs
//! what software costs. Every figure made with it is a simulated one.
//!
//! What it is told, it is told by its environment:
//!
//! | variable | what it names |
//! |---|---|
//! | `TERSE_TESTCARD_CLOCK` | a file that all users share: when the card is free again, and how many jobs it has had |
//! | `TERSE_TESTCARD_RESULTS` | a folder of results |
//! | `TERSE_TESTCARD_LEARN` | nothing: if it is set, what had to be computed is kept there |
//! | `TERSE_TESTCARD_FAULTS` | a file that says how it misbehaves, read at each job: see [`faults`] |
//!
//! Without a clock it is shared by one process alone, without results it computes, without faults it has none.

mod abi;
mod clock;
pub mod faults;
pub mod results;
