//! Processes with one proxy, `web`, and the conditions that must hold for each at its end.

use super::Terse;
use super::client::Client;

/// Defaults of all proxies under test: time-outs that only a failing test reaches, and no time to wait between attempts.
pub const DEFAULTS: &str = "
defaults
    mode http
    timeout client 15s
    timeout server 15s
    timeout connect 15s
    timeout queue 15s
    timeout check 15s
";

/// A running process whose only proxy has these lines.
pub fn listen(lines: &str) -> Terse {
    Terse::with(&format!("global\n nbthread 1\n{DEFAULTS}\nlisten web\n bind fd@${{web}}\n{lines}\n")).listen("web").start()
}

/// A running process with these sections after `frontend web`.
pub fn sections(frontend: &str, others: &str) -> Terse {
    let text = format!("global\n nbthread 1\n{DEFAULTS}\nfrontend web\n bind fd@${{web}}\n{frontend}\n{others}\n");
    Terse::with(&text).listen("web").start()
}

impl Terse {
    /// A client of the proxy `web`.
    pub fn client(&self) -> Client {
        Client::connect(self.address("web"))
    }

    /// Stops the process, which must be there and never have panicked.
    #[track_caller]
    pub fn end(mut self) {
        assert!(self.is_running(), "the process has ended by itself");
        let ended = self.stop().expect(0);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}
