//! The workbench: an origin whose content is made up, the demonstration, the benchmark against other proxies, the curve of
//! what variables cost, the size from which compression should leave its worker, and the run of HAProxy's regression tests.
//!
//! The library is what tests use ([`origin`]); the program `terse-lab` has one sub-command for each of the six.

pub mod arguments;
pub mod bench;
pub mod breakeven;
pub mod card;
pub mod client;
pub mod command;
pub mod conformance;
pub mod content;
pub mod cores;
pub mod curve;
pub mod demo;
pub mod origin;
pub mod program;
pub mod tree;
pub mod variables;
