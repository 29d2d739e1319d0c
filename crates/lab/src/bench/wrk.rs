//! A run of wrk: closed loop, so many connections, so long.

use crate::cores;
use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Request and intensity of a load.
#[derive(Clone, Debug)]
pub(crate) struct Load<'a> {
    /// The proxy.
    pub(crate) address: SocketAddr,
    /// Over TLS.
    pub(crate) is_secured: bool,
    /// The path.
    pub(crate) path: &'a str,
    /// Lines of the request's head.
    pub(crate) lines: &'a [&'a str],
    /// Connections held open at once.
    pub(crate) connections: usize,
    /// Duration of the load.
    pub(crate) time: Duration,
    /// True if the metric is the time of responses: then wrk goes before all others on its core, if the system lets it.
    pub(crate) is_timed: bool,
}

/// Result of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Whole answers.
    pub(crate) requests: u64,
    /// All bytes received, those of answers that were not whole yet too.
    pub(crate) bytes: u64,
    /// Duration of the run.
    pub(crate) time: Duration,
    /// 99 of 100 came within this time.
    pub(crate) p99: Duration,
}

/// The program, with its script written out.
#[derive(Debug)]
pub(crate) struct Wrk {
    program: PathBuf,
    folder: tempfile::TempDir,
    core: usize,
    /// True if it may go before all others.
    may_go_first: bool,
}

impl Wrk {
    /// Gets ready to run it on a core.
    pub(crate) fn new(program: &Path, core: usize) -> Result<Wrk> {
        let folder = tempfile::Builder::new().prefix("terse-wrk-").tempdir()?;
        std::fs::write(folder.path().join("report.lua"), SCRIPT)?;
        let may_go_first = Command::new(GO_FIRST[0]).args(&GO_FIRST[1..]).arg("true").output().is_ok_and(|o| o.status.success());
        Ok(Wrk { program: program.into(), folder, core, may_go_first })
    }

    /// True if it goes before all others on its core where the metric is a time.
    pub(crate) fn may_go_first(&self) -> bool {
        self.may_go_first
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, load: &Load<'_>) -> Result<Outcome> {
        self.finish(self.start(load)?)
    }

    fn start(&self, load: &Load<'_>) -> Result<Child> {
        let mut command = match load.is_timed && self.may_go_first {
            true => {
                let mut command = Command::new(GO_FIRST[0]);
                command.args(&GO_FIRST[1..]).arg(&self.program);
                command
            }
            false => Command::new(&self.program),
        };
        command.arg("-t1").arg(format!("-c{}", load.connections)).arg(format!("-d{}s", load.time.as_secs().max(1)));
        command.arg("-s").arg(self.folder.path().join("report.lua"));
        command.args(load.lines.iter().flat_map(|line| ["-H", line]));
        let scheme = if load.is_secured { "https" } else { "http" };
        command.arg(format!("{scheme}://{}{}", load.address, load.path));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        cores::on_cores(&[self.core], || command.spawn()).with_context(|| format!("starting {}", self.program.display()))
    }

    fn finish(&self, child: Child) -> Result<Outcome> {
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.strip_prefix("OUTCOME ")).with_context(|| format!("wrk said: {text}"))?;
        let numbers: Vec<u64> =
            line.split(' ').map(|n| n.parse::<f64>().map(|n| n as u64)).collect::<Result<_, _>>().context("wrk's numbers")?;
        let [requests, bytes, time, p99, connect, read, write, status, timeout] = numbers[..] else { bail!("wrk said: {line}") };
        if connect + read + write + status + timeout > 0 || requests == 0 {
            bail!("{requests} requests; errors: connect {connect}, read {read}, write {write}, status {status}, timeout {timeout}");
        }
        let micros = Duration::from_micros;
        Ok(Outcome { requests, bytes, time: micros(time), p99: micros(p99) })
    }
}

/// Lets the calling thread go before all others on its core.
pub(crate) fn go_first() -> Result<()> {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let output = Command::new(GO_FIRST[0]).args(&GO_FIRST[1..2]).args(["--pid", GO_FIRST[2], &thread]).output()?;
    if !output.status.success() {
        bail!("{}: {}", GO_FIRST[0], String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Runs a program at real-time priority. The clients and the origin share its core: time that it waits for them is not the proxy's
/// time.
const GO_FIRST: [&str; 3] = ["chrt", "--fifo", "1"];

/// Prints exact numbers, which wrk's own report rounds.
const SCRIPT: &str = r#"
done = function(summary, latency, requests)
  local e = summary.errors
  print(string.format("OUTCOME %d %d %d %d %d %d %d %d %d", summary.requests, summary.bytes, summary.duration, latency:percentile(99),
     e.connect, e.read, e.write, e.status, e.timeout))
end
"#;
