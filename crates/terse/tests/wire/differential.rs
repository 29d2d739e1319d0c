//! The same configuration and traffic through HAProxy and through terse: what clients get and what servers see must be the same, but
//! for differences that are listed with their reasons.
//!
//! HAProxy is the installed program; without it the comparison is left out. nginx and Apache serve files behind terse.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agreement;
mod announced;
mod balancing;
mod cases;
mod checks;
mod compare;
mod courses;
mod desktop;
mod endings;
mod examples;
mod expressions;
mod figures;
mod logs;
mod names;
mod origins;
mod patterns;
mod server;
mod stories;
mod suppressed;
mod tables;
mod talk;
mod verdicts;

use crate::{certificates, support, talk as secure};
