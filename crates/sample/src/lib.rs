//! Values from messages: fetches and converters, variables, ACLs, log formats. Compiled once, run per request.
//!
//! Data flow: a word of the configuration -> [`Expr::parse`] (names found in the [`Registry`], arguments read, variables turned
//! into slots, casts checked) -> [`Expr`], a fetch and a short list of steps -> [`Expr::eval`] with an [`Env`] -> [`Value`].
//! A [`Condition`] is made of [`Acl`]s, an ACL of an expression and [`pattern::Patterns`]; a [`LogFormat`] is text with
//! expressions and aliases in it.
//!
//! Invariants:
//! * This crate holds the frame and the values that an `Env` alone can give. Every other crate brings its own [`Fetch`]es,
//!   [`Converter`]s and [`Alias`]es as tables, and the program joins them in the [`Registry`].
//! * No name is looked up while a request runs: functions are pointers, variables are slots, known header names are one byte.
//! * Evaluation is total: it returns a value or none, never an error, and it never panics.
//! * Booleans, numbers, addresses and strings of up to 30 bytes are made, stored and read without allocation.
//! * Pure: time, randomness, files and the environment are given by the caller.

pub mod acl;
pub mod argument;
pub mod cast;
mod chain;
pub mod compiler;
pub mod condition;
pub mod convert;
pub mod criterion;
pub mod env;
pub mod expr;
pub mod fetch;
pub mod language;
pub mod logformat;
mod near;
pub mod octets;
pub mod parameters;
pub mod pattern;
pub mod reference;
pub mod regexp;
pub mod registry;
pub mod scripted;
pub mod value;
pub mod vars;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;

pub use acl::{Acl, AclSet, KEYWORDS};
pub use argument::{Arg, ArgList, HeaderName, Param, ParamKind};
pub use compiler::Compiler;
pub use condition::{Condition, Doubt};
pub use convert::time as date;
pub use env::{Env, Now, Work, World};
pub use expr::Expr;
pub use language::Language;
pub use logformat::{LogFormat, Usage};
pub use octets::{Buffer, Octets};
pub use parameters::Parameters;
pub use registry::{Alias, Constants, Converter, Fetch, FetchKind, Needs, PatternFiles, Reference, Registry};
pub use value::{Type, Value};
pub use vars::{ProcessStore, Store, Target, VarScope, VarSlot, Vars};
