//! Converters that are understood and not built: to use one is an error that says so.

use crate::registry::Converter;

pub(crate) const CONVERTERS: &[Converter] =
    &[Converter::refused("debug", "Writes the value to a sink.", "there are no event sinks")];
