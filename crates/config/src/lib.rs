//! The configuration language's frame: words, sections, keywords, diagnostics.
//!
//! Data flow: bytes of files -> [`words`] (lines of words; quotes, escapes, variables of the environment, `.if`) -> [`load`] (finds
//! the section and the [`Keyword`] of each line) -> the keyword's parser (fills a [`Setting`] of the section) -> [`Config`].
//! The meaning of a `Config` is decided above: every crate builds its part of the plan from its own settings.
//!
//! Invariants:
//! * This crate holds the frame, not the list: keywords come as tables from the crates that do the work.
//! * A keyword is done, accepted with a reason, or refused with a reason. Nothing is silently ignored.
//! * Loading never stops at the first problem, and never panics on any input.
//! * Pure: no files, environment or clock; the caller brings them as arguments.

mod blocks;
mod environment;
mod index;
mod lines;
mod opened;
mod opening;
mod render;

pub mod args;
pub mod condition;
pub mod diagnostic;
pub mod keyword;
pub mod load;
pub mod near;
pub mod params;
pub mod predicate;
pub mod reference;
pub mod section;
pub mod settings;
pub mod units;
pub mod version;
pub mod words;

pub use args::{Args, Fault};
pub use condition::ConditionError;
pub use diagnostic::{Diagnostic, Diagnostics, Place, Severity};
pub use environment::{Environment, TlsLibrary};
pub use keyword::{Keyword, Kind, Parser, Scope};
pub use load::{Loader, Source};
pub use opening::{IDLE_SECTIONS, REFUSED_SECTIONS};
pub use params::{Param, ParamKind};
pub use section::{Base, Config, Section, SectionKind, Sections};
pub use settings::{Heirs, Setting, Settings};
pub use units::TimeUnit;
pub use words::Word;
