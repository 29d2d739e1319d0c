//! A measured command: its duration, its CPU time, the size of its output, and a check of that.

use crate::bench::measure::Numbers;
use crate::bench::sample::Metric;
use crate::cores;
use crate::program::wait_until;
use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use terse_compress::{Coding, decode};

/// Runs it `at_once` times in parallel, on these cores: seconds until the last one has ended, each one's CPU time, and the rate.
///
/// This process must have no other children meanwhile: the wait for processes that commands leave behind is a wait for all
/// children.
pub(super) fn time(mut command: Command, at_once: usize, cores: &[usize], input_bytes: u64) -> Result<Numbers> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Processes that it leaves behind come to this process when it ends: a card's keeper goes on for a moment.
    let _heir = Heir::new()?;
    let (before, begun) = (cpu_time_of_ended()?, Instant::now());
    let children = cores::on_cores(cores, || (0..at_once).map(|_| command.spawn()).collect::<Result<Vec<_>, _>>());
    let children = children.with_context(|| format!("starting {}", command.get_program().display()))?;
    let ended: Vec<_> = children.into_iter().map(end).collect();
    let elapsed = begun.elapsed().as_secs_f64();
    ended.into_iter().collect::<Result<()>>()?;
    let is_alone = || matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD));
    ensure!(wait_until(PATIENCE, is_alone), "{} left something behind that goes on", command.get_program().display());
    let cpu = cpu_time_of_ended()?.saturating_sub(before).as_secs_f64();
    Ok(vec![
        (Metric::Elapsed, elapsed),
        (Metric::CpuTime, cpu / at_once as f64),
        (Metric::Speed, input_bytes as f64 * at_once as f64 * 8.0 / elapsed / 1e9),
    ])
}

/// Runs it once without a clock: its output is weighed, and is the input again once this coding is undone.
pub(super) fn check(mut command: Command, input: &Path, coding: Option<Coding>) -> Result<Numbers> {
    let mut output = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(Stdio::piped());
    end(command.spawn().with_context(|| format!("starting {}", command.get_program().display()))?)?;
    let (bytes, input_bytes) = (output.metadata()?.len() as f64, input.metadata()?.len() as f64);
    if let Some(coding) = coding {
        output.rewind()?;
        compare(coding, output, File::open(input)?)?;
    }
    Ok(vec![(Metric::Size, bytes), (Metric::Ratio, input_bytes / bytes)])
}

fn end(child: Child) -> Result<()> {
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

/// The CPU time of this process's children, and of theirs, that have ended and were waited for.
fn cpu_time_of_ended() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    Ok(Duration::from_micros((micros(usage.user_time()) + micros(usage.system_time())).unsigned_abs()))
}

/// While it lives, processes whose parents have ended become this process's children.
struct Heir;

impl Heir {
    fn new() -> Result<Heir> {
        set_child_subreaper(Some(getpid()))?;
        Ok(Heir)
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        let _ = set_child_subreaper(None);
    }
}

/// Undoes a coding, by the libraries that terse decodes with, which are not its coders.
fn compare(coding: Coding, mut coded: File, mut original: File) -> Result<()> {
    let mut decoder = decode::decoder(coding).context("no decoder")?;
    let (mut ahead, mut decoded, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = decode::Next::Input;
    loop {
        if next == decode::Next::Input && (&mut coded).take(PIECE_BYTES as u64).read_to_end(&mut ahead)? == 0 {
            break;
        }
        let progress = decoder.push(&ahead, &mut decoded, PIECE_BYTES).map_err(|flaw| anyhow::anyhow!("{}", flaw.name()))?;
        ahead.drain(..progress.taken);
        (&mut original).take(decoded.len() as u64).read_to_end(&mut expected)?;
        ensure!(decoded == expected, "what it wrote is another file's");
        decoded.clear();
        expected.clear();
        next = progress.next;
        if next == decode::Next::Ended {
            break;
        }
    }
    if !decoder.is_complete() || !ahead.is_empty() || original.read(&mut [0])? > 0 {
        bail!("what it wrote is not the whole file");
    }
    Ok(())
}

const PIECE_BYTES: usize = 1 << 20;
/// A keeper has its card's process killed within a second.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_is_weighed_and_undone() {
        let input = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(input.path(), vec![b'x'; 3_000_000]).unwrap();
        let command = |end: &str| shell(&format!("gzip -c {} {end}", input.path().display()));
        let numbers = check(command(""), input.path(), Some(Coding::Gzip)).unwrap();
        assert!(numbers[0].1 < 5000.0 && numbers[1].1 > 600.0);
        assert!(check(command("| head -c 500"), input.path(), Some(Coding::Gzip)).is_err());
        assert!(check(shell("echo other | gzip -c"), input.path(), Some(Coding::Gzip)).is_err());
    }
}
