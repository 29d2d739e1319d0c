//! The process: its limits, identity, workers, and its standing with the terminal and the supervisor.
//!
//! Invariant: whatever changes the whole process runs on its first thread, before any other is started.

pub mod accepted;
mod container;
pub mod daemon;
pub mod http2;
pub mod identity;
pub mod keywords;
pub mod limits;
pub mod memory;
pub mod notify;
pub mod pidfile;
pub mod refused;
pub mod settings;
pub mod sys;
pub mod trim;
pub mod variables;
pub mod workers;

pub use settings::ProcessSettings;
