//! `guid`: names by which files of statistics identify proxies, addresses and servers, whatever else is renamed.

use std::sync::Arc;
use terse_config::{Args, Fault, Place};

/// A name that is unique in the configuration.
#[derive(Clone, Debug)]
pub struct Guid {
    /// The name.
    pub name: Arc<str>,
    /// Place in the configuration.
    pub place: Place,
}

impl Guid {
    /// Parses it; `line` is the place of the line.
    ///
    /// # Errors
    /// There is no argument, or one that cannot be written to a file of statistics.
    pub fn parse(args: &mut Args<'_>, line: &Place) -> Result<Guid, Fault> {
        let place = args.place(line);
        let name = args.need("<name>")?;
        if !Guid::fits(name) {
            let hint = format!("letters, digits, '.', ':', '-' and '_', {MOST_BYTES} at most");
            return Err(args.fault(format!("'{name}' cannot be a name of statistics")).hint(hint));
        }
        Ok(Guid { name: name.into(), place })
    }
}

impl Guid {
    /// Whether a name can be written to a file of statistics.
    pub fn fits(name: &str) -> bool {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b':' | b'-' | b'_');
        !name.is_empty() && name.len() <= MOST_BYTES && name.bytes().all(fits)
    }

    /// Name for one of the many servers of a single line.
    pub(crate) fn numbered(&self, number: u32) -> Guid {
        Guid { name: format!("{}-{number}", self.name).into(), place: self.place.clone() }
    }
}

/// The place of a name does not identify it.
impl PartialEq for Guid {
    fn eq(&self, other: &Guid) -> bool {
        self.name == other.name
    }
}

impl Eq for Guid {}

/// HAProxy's limit.
const MOST_BYTES: usize = 127;
