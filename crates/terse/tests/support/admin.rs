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
