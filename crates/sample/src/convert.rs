//! The converters that need nothing but their value, their arguments and variables.

use crate::registry::Converter;

/// All tables of this folder.
pub(crate) const TABLES: &[&[Converter]] = &[];
