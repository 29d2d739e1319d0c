//! The fetches that an [`crate::Env`] alone can answer.

use crate::registry::Fetch;

mod constant;

/// All tables of this folder.
pub(crate) const TABLES: &[&[Fetch]] = &[constant::FETCHES];
