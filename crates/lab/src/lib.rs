//! The workbench: an origin whose content is made up, the demonstration, the benchmark against other proxies, the curve of the cost
//! of variables, the floor of the cost of forwarding, hostile clients of HTTP/2, mixed work for minutes, the size from which
//! compression should leave its worker, how long a body holds one, coders of others beside ours, svn over a slow line, the run of HAProxy's regression tests,
//! and the comparison of real users' configuration files.
//!
//! The library is what tests use ([`origin`]); the program `terse-lab` has one sub-command for each.

pub mod arguments;
pub mod bench;
pub mod breakeven;
pub mod card;
pub mod client;
pub mod clock;
pub mod command;
pub mod configs;
pub mod conformance;
pub mod content;
pub mod cores;
pub mod curve;
pub mod demo;
pub mod floor;
pub mod frontier;
pub mod holds;
pub mod hostile;
pub mod origin;
pub mod program;
pub mod releases;
pub mod secure;
pub mod soak;
pub mod svn;
pub mod tree;
pub mod undone;
pub mod variables;
