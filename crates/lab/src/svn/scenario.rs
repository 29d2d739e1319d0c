//! The founding document's four scenarios, and two of ours.

use std::time::Duration;

/// A combination of compressors.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// A line of text for the page.
    pub(super) what: &'static str,
    /// `http-compression` of svn itself.
    pub(super) svn_asks: bool,
    /// Arguments for TLS on both ends of the line.
    pub(super) tls: &'static str,
    /// Lines of the proxy in front of the server.
    pub(super) near_server: &'static str,
    /// Lines of the proxy beside svn.
    pub(super) near_svn: &'static str,
    /// Number of earlier checkouts of the repository through the same proxy.
    pub(super) before: usize,
}

const PLAIN: &str = "ssl-max-ver TLSv1.2";
const RECORDS: &str = "tls-compression allow ssl-max-ver TLSv1.2";
/// Nothing is remembered unless the memory is measured.
const GZIP: &str = " compression algo gzip\n compression memory off\n";
const ZSTD: &str = " compression algo zstd\n compression memory off\n";
const ASKS_ZSTD: &str = " decompression response on\n decompression accept zstd\n";

pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "both",
        what: "records and gzip, each as if it were alone (`http-compression force`)",
        svn_asks: true,
        tls: RECORDS,
        near_server: " compression algo gzip\n compression memory off\n http-compression force\n",
        near_svn: " http-compression force\n",
        before: 0,
    },
    Scenario { name: "content", what: "gzip alone", svn_asks: true, tls: PLAIN, near_server: GZIP, near_svn: "", before: 0 },
    Scenario {
        name: "none",
        what: "nothing",
        svn_asks: false,
        tls: PLAIN,
        near_server: " http-compression off\n",
        near_svn: " http-compression off\n",
        before: 0,
    },
    Scenario { name: "records", what: "records alone", svn_asks: false, tls: RECORDS, near_server: GZIP, near_svn: "", before: 0 },
    Scenario {
        name: "zstd",
        what: "zstd by content coding over TLS 1.3, decoded for svn by the proxy beside it",
        svn_asks: false,
        tls: "",
        near_server: ZSTD,
        near_svn: ASKS_ZSTD,
        before: 0,
    },
    Scenario {
        name: "memory",
        what: "the same, checked out for the third time: the proxy remembers the compressed bodies",
        svn_asks: false,
        tls: "",
        near_server: " compression algo zstd\n compression memory 256m\n",
        near_svn: ASKS_ZSTD,
        // Bodies that come for the second time are kept.
        before: 2,
    },
];

/// Results of a scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    pub(super) time: Duration,
    /// Of both proxies.
    pub(super) cpu: Duration,
    /// Memory that both proxies hold alone, after the checkout.
    pub(super) memory_bytes: u64,
}

impl Measured {
    pub(super) fn line(&self, name: &str) -> String {
        format!(
            "{name:<8} read {:>9}  written {:>9}  {:>6.1} s  CPU {:>6.3} s  {:>5.1} MB",
            self.bytes_read,
            self.bytes_written,
            self.time.as_secs_f64(),
            self.cpu.as_secs_f64(),
            self.memory_bytes as f64 / 1e6
        )
    }

    /// Noise only adds: of each figure the least is kept.
    pub(super) fn keep_best(&mut self, other: &Measured) {
        self.bytes_read = self.bytes_read.min(other.bytes_read);
        self.bytes_written = self.bytes_written.min(other.bytes_written);
        self.time = self.time.min(other.time);
        self.cpu = self.cpu.min(other.cpu);
        self.memory_bytes = self.memory_bytes.min(other.memory_bytes);
    }
}
