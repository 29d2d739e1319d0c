//! A simulated compression card: a shared library with zlib's API, for tests and measurements.
//!
//! It behaves as an AHA360 with its driver did: 2.5 Gbit/s of input, shared between all its users, and hardly any of the
//! processor's time. The results were computed beforehand ([`results`]). For a body that it does not know, it computes a
//! result, at the cost of software. Every figure made with it is a simulated one.
//!
//! Its settings come from its environment:
//!
//! | variable | meaning |
//! |---|---|
//! | `TERSE_TESTCARD_CLOCK` | a file that all users share: the time when the card is free again, and the number of its jobs |
//! | `TERSE_TESTCARD_RESULTS` | a folder of results |
//! | `TERSE_TESTCARD_LEARN` | if it is set to any value, computed results are kept in the folder of results |
//! | `TERSE_TESTCARD_FAULTS` | a file with the card's faults, read at each job: see [`faults`] |
//!
//! Without a clock it is shared by a single process, without results it computes, without faults it has none.

mod abi;
mod clock;
pub mod faults;
pub mod results;
