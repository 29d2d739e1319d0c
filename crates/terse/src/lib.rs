//! The program: command line, process, sockets, signals, takeover; it joins everybody's keywords and starts the workers.
//!
//! Read [`life`] for the order in which a process lives. Everything else is a part that it calls.

pub mod args;
pub mod check;
pub mod circles;
pub mod configuration;
pub mod course;
pub mod crew;
pub mod engines;
pub mod environment;
pub mod files;
pub mod health;
pub mod intakes;
pub mod keywords;
pub mod life;
pub mod listening;
pub mod master;
pub mod process;
pub mod report;
pub mod restored;
pub mod service;
pub mod signals;
pub mod sockets;
pub mod start;
pub mod states;
pub mod stats;
pub mod support;
pub mod takeover;
pub mod version;
