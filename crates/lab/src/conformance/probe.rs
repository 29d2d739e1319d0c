//! Checks that the program behaves as one that can be measured. It must answer the questions that tests have before they run, and
//! tell a good configuration from a bad one.

use super::test_run::Bed;
use anyhow::Result;
use std::fs;

impl Bed {
    /// Asks; true if all answers are as HAProxy's.
    pub(super) fn probe(&self) -> Result<bool> {
        let (good, bad) = (self.folder.path().join("good.cfg"), self.folder.path().join("bad.cfg"));
        let socket = self.folder.path().join("s.sock");
        fs::write(&good, GOOD.replace("SOCKET", &socket.display().to_string()))?;
        fs::write(&bad, BAD)?;
        let (good, bad) = (good.display().to_string(), bad.display().to_string());
        let questions: [(i32, &[&str]); 7] = [
            (0, &["-v"]),
            (0, &["-vv"]),
            (0, &["-cc", "version_atleast(2.5-dev0)"]),
            (1, &["-cc", "version_atleast(1024)"]),
            (1, &["-cc", "feature(NO_SUCH_FEATURE)"]),
            (0, &["-dM", "-dI", "-dW", "-c", "-f", &good]),
            (1, &["-dM", "-dI", "-dW", "-c", "-f", &bad]),
        ];
        let mut good = true;
        for (expected, words) in questions {
            let (status, text) = self.ask(words)?;
            if status != Some(expected) {
                good = false;
                println!(
                    "probe: {}: exit status {status:?} instead of {expected}: {}",
                    words.join(" "),
                    text.lines().last().unwrap_or_default()
                );
            }
        }
        Ok(good)
    }
}

const GOOD: &str = "global
    stats socket \"SOCKET\" level admin mode 600
defaults
    mode http
    timeout connect 1s
    timeout client 1s
    timeout server 1s
listen l
    bind 127.0.0.1:65111
    server s 127.0.0.1:9
";

const BAD: &str = "global
    no-such-directive-at-all 1
listen l
    bind 127.0.0.1:65111
";
