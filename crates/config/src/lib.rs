//! The configuration language's frame: words, sections, keywords, diagnostics.
//!
//! Data flow: bytes of files -> [`words`] (lines of words; quotes, escapes, variables of the environment, `.if`) -> [`load`] (finds
//! the section and the [`Keyword`] of each line) -> the keyword's parser (fills a [`Setting`] of the section) -> [`Config`].
//! What a `Config` means is decided above: every crate builds its part of the plan from its own settings.
//!
//! Invariants:
//! * This crate holds the frame, not the list: keywords come as tables from the crates that do the work.
//! * A keyword is done, accepted with a reason, or refused with a reason. Nothing is silently ignored.
//! * Loading never stops at the first problem, and never panics on any input.
//! * Pure: no files, environment or clock; the caller brings them as arguments.

pub mod args;
pub mod diagnostic;
pub mod keyword;
pub mod load;
pub mod section;
pub mod settings;
pub mod words;

pub use args::{Args, Fault};
pub use diagnostic::{Diagnostic, Diagnostics, Place, Severity};
pub use keyword::{Keyword, Kind, Parser, Scope};
pub use load::{Environment, Loader, Source};
pub use section::{Config, Section, SectionKind, Sections};
pub use settings::{Setting, Settings};
pub use words::Word;
