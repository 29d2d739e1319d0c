//! Names that are near a wrong one.

use terse_config::near::nearest;

/// `did you mean 'x'?`, when one of the names is near enough.
pub(crate) fn hint<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(wrong, names).first().map(|name| format!("did you mean '{name}'?"))
}
