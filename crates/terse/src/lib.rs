//! The program: command line, process, sockets, signals, takeover; it joins the keywords of all crates and starts the workers.
//!
//! [`life`] is the place to begin: it has the order of a process's life and calls every other part.

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
