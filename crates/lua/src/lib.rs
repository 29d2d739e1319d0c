//! Lua: scripts of `lua-load` as actions, services, fetches, converters and tasks, with the interface that HAProxy gives them.
//!
//! ```text
//!   a worker's task ---- a rule, an expression, a service's response --> Named (a name, and its function in this worker's state)
//!        |                                                                  |
//!        | lends its stream for one call (lent.rs)                          v
//!        +------------------------------------------------------------> Run: a coroutine, resumed until it ends or waits (run.rs)
//!                                                                           |  the hook looks at the clock (burst.rs)
//!                                                                           v
//!                     scripts call core, txn, applet: functions that hold no stream, and use the lent one
//! ```
//!
//! Data: a script's values live in its state. Streams are never copied into it: their data is looked up at the moment that
//! a script asks for it. A service's response goes through a socket to the proxy's own end, and from there as any server's
//! would (`applet.rs`).
//!
//! Invariants:
//! * Scripts are run when the configuration is read, also with `-c`: a faulty script is a problem of the file, with line
//!   and reason.
//! * Everything that runs is bounded: time at once, time in all, memory of a state.
//!   Not yet: a `__close` that loops in a coroutine that failed, since the hook is off there; memory of received data, without
//!   `tune.lua.maxmem`; the waiting of a script, once its client has gone.
//! * The state that workers share is locked while Lua runs, and at no other time: a call that waits has left Lua.
//! * An error of a script is logged with its file and line. No act of a script ends the process.

mod absent;
mod action;
mod applet;
mod burst;
mod certificates;
mod channel;
mod cli;
mod client;
mod core;
mod desk;
mod events;
mod functions;
mod guard;
mod home;
mod http;
mod hub;
mod keywords;
mod lent;
mod library;
mod message;
mod names;
mod patterns;
mod proxies;
mod queue;
mod regex;
mod run;
mod samples;
mod service;
mod socket;
mod speak;
mod state;
mod stream;
mod task;
mod texts;
mod tuning;
mod txn;
mod values;
mod vars;
mod wire;

pub use keywords::KEYWORDS;
