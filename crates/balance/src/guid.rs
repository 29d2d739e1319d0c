//! `guid`: names by which files of statistics know proxies, addresses and servers, whatever else is renamed.

use std::sync::Arc;
use terse_config::{Args, Fault, Place};

/// A name that nothing else in the configuration has.
#[derive(Clone, Debug)]
pub struct Guid {
    /// The name.
    pub name: Arc<str>,
    /// Where it stands.
    pub place: Place,
}

impl Guid {
    /// Reads it; `line` is the place of the line.
    ///
    /// # Errors
    /// There is no word, or one that cannot stand in a file of statistics.
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
    /// Whether a name can stand in a file of statistics.
    pub fn fits(name: &str) -> bool {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b':' | b'-' | b'_');
        !name.is_empty() && name.len() <= MOST_BYTES && name.bytes().all(fits)
    }

    /// That of one of many that a line stands for.
    pub(crate) fn numbered(&self, number: u32) -> Guid {
        Guid { name: format!("{}-{number}", self.name).into(), place: self.place.clone() }
    }
}

/// Where a name stands tells nothing of what it names.
impl PartialEq for Guid {
    fn eq(&self, other: &Guid) -> bool {
        self.name == other.name
    }
}

impl Eq for Guid {}

/// HAProxy's limit.
const MOST_BYTES: usize = 127;
