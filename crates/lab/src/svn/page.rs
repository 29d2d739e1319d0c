//! Results as text and numbers.

use super::Options;
use super::scenario::{Measured, SCENARIOS};
use super::setting::Setting;
use crate::bench::machine;
use std::fmt::Write;

/// All of it.
pub(super) struct Page<'a> {
    pub(super) options: &'a Options,
    pub(super) setting: &'a Setting,
    pub(super) measured: &'a [Measured],
}

/// An expected result.
pub(super) struct Claim {
    pub(super) what: &'static str,
    pub(super) holds: bool,
    figures: String,
}

impl Page<'_> {
    /// Findings of the founding document, and claims of this project.
    pub(super) fn claims(&self) -> Vec<Claim> {
        let of = |name: &str| SCENARIOS.iter().position(|scenario| scenario.name == name).and_then(|i| self.measured.get(i));
        let (Some(both), Some(content), Some(none), Some(records), Some(zstd)) =
            (of("both"), of("content"), of("none"), of("records"), of("zstd"))
        else {
            return Vec::new();
        };
        let bytes = |one: &Measured, other: &Measured| {
            format!(
                "{} against {} read, {} against {} written",
                one.bytes_read, other.bytes_read, one.bytes_written, other.bytes_written
            )
        };
        let less = |one: &Measured, other: &Measured| one.bytes_read < other.bytes_read && one.bytes_written < other.bytes_written;
        let others = [both, content, records];
        let all_bytes = |m: &Measured| m.bytes_read + m.bytes_written;
        let more = all_bytes(zstd) as f64 / all_bytes(both) as f64 * 100.0 - 100.0;
        vec![
            Claim {
                what: "records alone beat both together in bytes read",
                holds: records.bytes_read < both.bytes_read,
                figures: bytes(records, both),
            },
            Claim { what: "records alone beat content alone", holds: less(records, content), figures: bytes(records, content) },
            Claim { what: "both together beat content alone", holds: less(both, content), figures: bytes(both, content) },
            Claim {
                what: "nothing is the worst, in bytes and time",
                holds: others.iter().all(|other| other.bytes_read < none.bytes_read && other.time < none.time),
                figures: format!("{} bytes read in {:.1} s", none.bytes_read, none.time.as_secs_f64()),
            },
            Claim {
                what: "zstd costs less CPU than both together",
                holds: zstd.cpu < both.cpu,
                figures: format!("{:.3} against {:.3} s", zstd.cpu.as_secs_f64(), both.cpu.as_secs_f64()),
            },
            Claim {
                what: "zstd is within 10 % of both together in bytes",
                holds: more <= 10.0,
                figures: format!("{} against {} read and written, {more:+.1} %", all_bytes(zstd), all_bytes(both)),
            },
        ]
    }

    /// A line for each scenario.
    pub(super) fn numbers(&self) -> String {
        let mut out = String::from("scenario\tbytes_read\tbytes_written\tseconds\tproxy_cpu_seconds\n");
        for (scenario, m) in SCENARIOS.iter().zip(self.measured) {
            let (time, cpu) = (m.time.as_secs_f64(), m.cpu.as_secs_f64());
            let _ = writeln!(out, "{}\t{}\t{}\t{time:.1}\t{cpu:.3}", scenario.name, m.bytes_read, m.bytes_written);
        }
        out
    }

    /// The page of the manual.
    pub(super) fn text(&self) -> String {
        let Page { options, setting, .. } = self;
        let mut out = format!(
            "# svn over a slow line\n\n\
             One of terse's founding documents measured, in 2012, what compression in TLS does for `svn checkout`: OpenSSL compressed \
             whatever it\ncarried, gzip or not. `make svn-experiment` measures it again, with two proxies, the line between them:\n\n\
             ```text\nsvn -- terse A -- {} kbit/s, TLS -- terse B -- Apache, mod_dav_svn\n```\n\n\
             {} files, {} bytes, made up and checked in; the best of {} for each figure, on {}. The CPU is that of both proxies, \
             the memory what both\nhold alone when svn has ended.\n\n\
             ![bytes, time and CPU of the six scenarios]({})\n\n\
             | scenario | who compresses | bytes read | bytes written | total time | CPU | memory |\n|---|---|---|---|---|---|---|\n",
            options.kilobits,
            setting.files,
            setting.bytes,
            options.rounds,
            machine::description(),
            options.plot.file_name().unwrap_or_default().display()
        );
        for (scenario, m) in SCENARIOS.iter().zip(self.measured) {
            let (read, written, memory) = (m.bytes_read as f64 / 1e6, m.bytes_written as f64 / 1e3, m.memory_bytes as f64 / 1e6);
            let (time, cpu) = (m.time.as_secs_f64(), m.cpu.as_secs_f64());
            let _ = writeln!(
                out,
                "| {} | {} | {read:.2} MB | {written:.0} KB | {time:.1} s | {cpu:.2} s | {memory:.1} MB |",
                scenario.name, scenario.what
            );
        }
        out.push_str("\nThe document's own figures, of Subversion's tree as it was then:\n\n");
        out.push_str(FOUNDING);
        out.push_str("\nWhat should come out, and did or did not:\n\n");
        for claim in self.claims() {
            let _ = writeln!(out, "* {}{}: {}", claim.what, if claim.holds { "" } else { ": **not so**" }, claim.figures);
        }
        out.push_str(BEHIND);
        out
    }
}

const FOUNDING: &str = "\
| scenario | bytes read | bytes written | total time |
|---|---|---|---|
| both | 17.50 MB | 233 to 284 KB | 59 s |
| content | 18.67 MB | 2.13 to 2.43 MB | 1m9s to 1m18s |
| none | 50.35 MB | 2.34 MB | 103 to 108 s |
| records | 15.27 MB | 235 to 260 KB | 50 to 56 s |
";

const BEHIND: &str = "
Records compress heads too, and remember the last 32 KB of the connection over many small answers; a content coding begins anew with each.
That is all that speaks for them, and [CRIME](tls.md#compression-of-records) speaks against them. With `http-compression auto`, the
default, the scenario `both` cannot come about: [one compressor a hop](compression.md#one-compressor-a-hop).
";
