//! A run of h2load: HTTP/2 in a closed loop, so many connections with so many streams each, so long.

use crate::cores;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::NamedTempFile;

/// Request and intensity of a load.
#[derive(Clone, Debug)]
pub(super) struct Load<'a> {
    /// The proxy.
    pub(super) address: SocketAddr,
    /// Over TLS, where HTTP/2 is agreed on by ALPN; else by prior knowledge.
    pub(super) is_secured: bool,
    /// The path.
    pub(super) path: &'a str,
    /// Lines of the request's head.
    pub(super) lines: &'a [&'a str],
    /// Body of each request: then it is a POST.
    pub(super) message: Option<&'a [u8]>,
    /// Connections held open at once.
    pub(super) connections: usize,
    /// Streams of each at once.
    pub(super) streams: usize,
    /// Duration of the load.
    pub(super) time: Duration,
}

/// Result of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outcome {
    /// Whole answers.
    pub(super) requests: u64,
    /// Duration of the run.
    pub(super) time: Duration,
}

/// The program.
#[derive(Debug)]
pub(super) struct H2load {
    program: PathBuf,
    core: usize,
}

impl H2load {
    /// The program, to be run on a core.
    pub(super) fn new(program: &Path, core: usize) -> H2load {
        H2load { program: program.into(), core }
    }

    /// Runs it to its end.
    pub(super) fn run(&self, load: &Load<'_>) -> Result<Outcome> {
        let seconds = load.time.as_secs().max(1);
        let mut command = Command::new(&self.program);
        command.arg("-t1").arg(format!("-c{}", load.connections)).arg(format!("-m{}", load.streams)).arg(format!("-D{seconds}"));
        command.args(load.lines.iter().flat_map(|line| ["-H", line]));
        let body = load.message.map(file_of).transpose()?;
        if let Some(body) = &body {
            command.arg("-d").arg(body.path());
        }
        let scheme = if load.is_secured { "https" } else { "http" };
        command.arg(format!("{scheme}://{}{}", load.address, load.path));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = cores::on_cores(&[self.core], || command.spawn());
        let output = child.with_context(|| format!("starting {}", self.program.display()))?.wait_with_output()?;
        outcome(&String::from_utf8_lossy(&output.stdout), seconds)
    }
}

fn file_of(message: &[u8]) -> Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    file.write_all(message)?;
    Ok(file)
}

/// Parses its report. It ends within the time, and connections that end before it are failures.
fn outcome(report: &str, seconds: u64) -> Result<Outcome> {
    let requests = counts(report, "requests: ")?;
    let statuses = counts(report, "status codes: ")?;
    let of = |counts: &[(u64, &str)], word: &str| {
        let found = counts.iter().find(|(_, name)| *name == word).map(|(count, _)| *count);
        found.with_context(|| format!("h2load does not say how many {word}: {report}"))
    };
    let done = of(&requests, "done")?;
    for word in ["failed", "errored", "timeout"] {
        let count = of(&requests, word)?;
        if count > 0 {
            bail!("{done} requests; {count} {word}");
        }
    }
    if let Some((count, word)) = statuses.iter().find(|(count, word)| *count > 0 && *word != "2xx") {
        bail!("{count} answers with status {word}");
    }
    if done == 0 || of(&statuses, "2xx")? == 0 {
        bail!("no request was answered");
    }
    Ok(Outcome { requests: done, time: Duration::from_secs(seconds) })
}

/// Numbers of a line, each with its word.
fn counts<'r>(report: &'r str, beginning: &str) -> Result<Vec<(u64, &'r str)>> {
    let line = report.lines().find_map(|line| line.strip_prefix(beginning));
    let line = line.with_context(|| format!("h2load does not tell its {beginning}{report}"))?;
    let count = |part: &'r str| {
        let (count, word) = part.trim().split_once(' ').with_context(|| format!("h2load said: {line}"))?;
        Ok((count.parse().with_context(|| format!("h2load said: {line}"))?, word))
    };
    line.split(',').map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(requests: &str, statuses: &str) -> String {
        format!(
            "starting benchmark...\nspawning thread #0: 8 total client(s). Timing-based test with 0s of warm-up time and 1s of main \
             duration for measurements.\n\nfinished in 1.00s, 79422.00 req/s, 2.76MB/s\nrequests: {requests}\nstatus codes: \
             {statuses}\ntraffic: 2.76MB (2895034) total, 1.21MB (1271408) headers (space savings 65.96%), 232.71KB (238293) data\n"
        )
    }

    #[test]
    fn whole_answers_count() {
        let good = report(
            "79422 total, 80222 started, 79422 done, 79422 succeeded, 0 failed, 0 errored, 0 timeout",
            "79463 2xx, 0 3xx, 0 4xx, 0 5xx",
        );
        assert_eq!(outcome(&good, 1).unwrap(), Outcome { requests: 79422, time: Duration::from_secs(1) });
    }

    #[test]
    fn what_is_not_answered_well_fails_the_run() {
        let error = |requests: &str, statuses: &str| outcome(&report(requests, statuses), 1).unwrap_err().to_string();
        let fine = "10 total, 12 started, 10 done, 10 succeeded, 0 failed, 0 errored, 0 timeout";
        let failed = "10 total, 12 started, 10 done, 8 succeeded, 2 failed, 0 errored, 0 timeout";
        let none = "0 total, 0 started, 0 done, 0 succeeded, 0 failed, 0 errored, 0 timeout";
        assert_eq!(error(failed, "8 2xx, 0 3xx, 0 4xx, 0 5xx"), "10 requests; 2 failed");
        assert_eq!(error(&failed.replace("2 failed, 0 errored", "0 failed, 3 errored"), "8 2xx"), "10 requests; 3 errored");
        assert_eq!(error(fine, "8 2xx, 0 3xx, 0 4xx, 2 5xx"), "2 answers with status 5xx");
        assert_eq!(error(none, "0 2xx, 0 3xx, 0 4xx, 0 5xx"), "no request was answered");
        assert!(error("something else", "8 2xx").starts_with("h2load said: something else"));
        assert!(outcome("Usage: h2load", 1).is_err());
    }
}
