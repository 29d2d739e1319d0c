//! Engines of compression outside of the program: shared libraries with zlib's API, such as a compression card's
//! driver, ISA-L if it is installed, and GPUs ([`cuda`]).
//!
//! A foreign driver can hang or abort, and no thread survives that. So a library runs in a process of its own, which
//! terse can kill and start again:
//!
//! ```text
//!  terse                                     the keeper                 the card's process
//!
//!  Keeper::start, before rights and root     waits on its standard
//!  folder are given up ── exec ────────────> input: start, kill ─ fork ─> loads the library
//!                                                                            │
//!  remote::Remote                                                            │ so many threads
//!    jobs and results: 33 bytes at most──── a socket that keeps messages ────┤
//!    bodies ─────────────────────────────── segments that terse alone writes ┤
//!    coded bodies ───────────────────────── shared memory, a slot a job ─────┘
//! ```
//!
//! The keeper is this program started anew (`exec`), with nothing open but its standard streams. It has one thread and
//! never touches the library, so that it may fork. Both it and the card's process have the user and group that terse
//! will have.
//!
//! Invariants:
//! * Data from the card's process is a claim: numbers are checked against the request, bytes are copied out once and
//!   judged by [`terse_compress::offload`].
//! * Shared memory cannot be shrunk by the other process, and memory of bodies is written by terse alone: it is sealed
//!   ([`segment`]).
//! * Each start has a socket and memory for coded bodies of its own: no data of an abandoned process can be taken for
//!   an answer.
//! * When terse ends, in whatever way, its keeper reads the end of its input, kills the card's process, and ends.
//!
//! With `in-process` a library is called by threads of terse itself ([`local`]), which is for trusted libraries.

pub(crate) mod cuda;
#[cfg(any(test, feature = "hostile"))]
pub mod hostile;
pub mod isal;
pub mod keeper;
pub mod local;
mod memory;
pub mod probe;
pub mod remote;
mod segment;
mod wire;
mod worker;
pub mod zlib;
