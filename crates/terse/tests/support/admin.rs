//! Responses of the stats socket.

use super::client::Client;
use super::process::Terse;
use super::until;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

impl Terse {
    /// Returns the answer of the stats socket at `fd@${cli}` to a line.
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

    /// A column of `show engines`, for the only engine; the stats socket is `stats` in the process's folder.
    pub fn engine(&self, column: &str) -> String {
        let ask = |mut stream: UnixStream| {
            let mut said = String::new();
            stream.write_all(b"show engines\n").ok()?;
            stream.read_to_string(&mut said).ok()?;
            Some(said)
        };
        let said = until("the stats socket", || UnixStream::connect(self.path("stats")).ok().and_then(ask));
        column_of(&said, "engine", "engine", column)
    }

    /// Gives a file of the process's folder another content, at one go.
    pub fn rewrite(&self, name: &str, text: &str) {
        let new = self.path(&format!("{name}.new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.path(name)).unwrap();
    }
}

/// Returns a value of a table: the word of this row below the name of a column, in the part whose head begins with `head`. The last
/// column is the rest of its line.
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
