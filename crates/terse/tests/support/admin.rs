//! What the stats socket answers.

use super::client::Client;
use super::process::Terse;

impl Terse {
    /// What the stats socket at `fd@${cli}` answers to a line.
    pub fn command(&self, line: &str) -> String {
        let mut client = Client::connect(self.address("cli"));
        client.send(format!("{line}\n"));
        String::from_utf8(client.rest()).unwrap()
    }

    /// The same, without the empty lines at its end.
    pub fn told(&self, line: &str) -> String {
        self.command(line).trim_end().to_owned()
    }

    /// A number of `show info`.
    pub fn info(&self, name: &str) -> u64 {
        let text = self.command("show info");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }
}

/// What a table says: the word of this row below the name of a column, in the part whose head begins with `head`. The last column is the
/// rest of its line.
pub fn column_of(table: &str, head: &str, row: &str, column: &str) -> String {
    let line =
        |start: &str| table.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_else(|| panic!("no {start}: {table}"));
    let columns: Vec<&str> = line(&format!("# {head} ")).split(' ').collect();
    let at = columns.iter().position(|name| *name == column).unwrap_or_else(|| panic!("no {column}: {table}"));
    line(&format!("{row} "))
        .splitn(columns.len(), ' ')
        .nth(at)
        .unwrap_or_else(|| panic!("no {column} of {row}: {table}"))
        .to_owned()
}
