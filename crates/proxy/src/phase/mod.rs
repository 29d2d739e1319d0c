//! The phases of a request, one in each file; [`serve`] has their order.
//!
//! **Invariant:** phases know [`crate::exchange`] and messages, no version of HTTP, no socket and no buffer (`tests.rs` looks).

pub mod answer;
pub mod assign;
pub mod body;
pub mod coding;
pub mod decoding;
pub mod dictionary;
pub mod finish;
pub mod guise;
pub mod inspect;
pub mod judge;
pub mod lease;
pub mod observe;
pub mod perform;
pub mod persist;
pub mod prepare;
pub mod read;
pub mod record;
pub mod respond;
pub mod retry;
pub mod route;
pub mod serve;
pub mod stored;
pub mod transfer;
pub mod waiting;

#[cfg(test)]
mod tests;
