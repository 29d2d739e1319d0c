//! Keys of tickets, listed, shown and turned.

use super::{Held, Vault};
use crate::secret::Secret;
use crate::tickets::{BadTicketKey, TicketKeys};
use std::fmt::Write as _;
use std::sync::Arc;

impl Vault {
    /// The files of keys, a line each: its number and its name.
    pub fn list_ticket_keys(&self) -> String {
        let lines = self.held().numbered().map(|(number, keys)| format!("{number} ({})\n", keys.file)).collect::<String>();
        format!("# id (file)\n{lines}")
    }

    /// The keys of a file, or with `*` of all, in base64. `None`: there is no such file.
    pub fn show_ticket_keys(&self, which: &str) -> Option<String> {
        let held = self.held();
        let is_meant = |number: usize, keys: &TicketKeys| which.starts_with('*') || is_it(which, number, keys);
        let mut text = Secret::default();
        text.extend(b"# id secret\n");
        let mut found = which.starts_with('*');
        for (number, keys) in held.numbered().filter(|(number, keys)| is_meant(*number, keys)) {
            found = true;
            let _ = writeln!(text, "# {number} ({})", keys.file);
            for (at, key) in keys.ring().encoded().iter().enumerate() {
                let _ = write!(text, "{number}.{at} ");
                [key, &b"\n"[..]].into_iter().for_each(|part| text.extend(part));
            }
        }
        found.then(|| text.into_text())
    }

    /// Turns the keys of a file: this one becomes the next. `None`: there is no such file.
    ///
    /// # Errors
    /// The key cannot be used; the others stay.
    pub fn turn_ticket_keys(&self, which: &str, encoded: &[u8]) -> Option<Result<(), BadTicketKey>> {
        let held = self.held();
        let (_, keys) = held.numbered().find(|(number, keys)| is_it(which, *number, keys))?;
        Some(keys.turn(encoded))
    }
}

impl Held {
    /// The keys of a file that was read.
    pub(crate) fn ticket_keys(&self, file: &str) -> Option<Arc<TicketKeys>> {
        self.tickets.iter().find(|keys| *keys.file == *file).cloned()
    }

    /// The files with their numbers, which are HAProxy's: the file that was read last has 0.
    fn numbered(&self) -> impl Iterator<Item = (usize, &TicketKeys)> {
        self.tickets.iter().rev().map(|keys| &**keys).enumerate()
    }
}

/// Whether a file is meant: by its name, or by its number as `#<number>`.
fn is_it(which: &str, number: usize, keys: &TicketKeys) -> bool {
    match which.strip_prefix('#') {
        Some(digits) => digits.parse() == Ok(number),
        None => *keys.file == *which,
    }
}
