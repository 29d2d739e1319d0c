//! Administration of a running process: the stats socket (HAProxy's runtime API), the page, and the [`master`]'s
//! command line.
//!
//! Path of a command:
//!
//! ```text
//! socket -> client -> input (lines, payloads) -> words (commands of a line) -> command (the table) -> commands::* -> answer
//!                                                                                                        |
//!                                                        plan, farms, counters, host <--- context -------+
//! ```
//!
//! Everything runs on the control thread; workers are not asked, their counters are read. Changes by commands are kept
//! beside the plan, in atomics of the servers.
//!
//! Invariants:
//! * An answer has no empty line inside and one after it: that is how scripts find its end.
//! * An unknown value is an empty field or a missing line, never a made-up number.
//! * A command of HAProxy's that is not built is refused by its name, with what to use instead.
//! * A client can delay neither the traffic nor other clients, and everything that it can make this crate hold has a
//!   limit.

mod answer;
mod client;
mod command;
mod commands;
mod console;
mod context;
mod dictionaries;
mod figures;
mod guests;
mod halves;
mod help;
mod history;
mod input;
pub mod inside;
mod manner;
pub mod numbers;
mod page;
pub mod prometheus;
mod rates;
mod rows;
mod savings;
mod serve;
pub mod stats_file;
mod words;

pub mod keywords;
pub mod master;
pub mod settings;

pub use client::Leave;
pub use console::Consoles;
pub use context::{Context, Host, Process};
pub use guests::Guest;
pub use keywords::KEYWORDS;
pub use manner::Manner;
pub use page::Link;
pub use serve::{attend, serve};
pub use settings::{AdminSettings, Level, SeverityForm, StatsSocket};
