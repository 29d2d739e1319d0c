//! Costs of a `plain` request that do not depend on the machine's noise: instructions by callgrind, system calls by strace.
//!
//! Each is counted in two runs, with few requests and with many, over one connection. The difference is the cost of the requests,
//! without start and stop.

use super::rival::{Rival, Running, Setting};
use super::sample::Metric;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// System calls by name, per request; those that do not come in every tenth request are left out.
pub(super) type Calls = Vec<(String, f64)>;

/// Instructions in user space per request.
pub(super) fn instructions(rival: &Rival, setting: &Setting<'_>) -> Result<(Metric, f64)> {
    let folder = tempfile::Builder::new().prefix("terse-callgrind-").tempdir()?;
    let run = |requests: usize| -> Result<f64> {
        let file = folder.path().join(format!("{requests}.%p"));
        let under =
            ["valgrind", "--tool=callgrind", "--quiet", &format!("--callgrind-out-file={}", file.display())].map(String::from);
        ask(rival.start(&Setting { under: &under, ..setting.clone() })?, requests)?;
        total_instructions(folder.path(), &format!("{requests}."))
    };
    let difference = run(MANY)? - run(FEW)?;
    Ok((Metric::Instructions, difference / (MANY - FEW) as f64))
}

/// System calls per request, all together and by name.
pub(super) fn system_calls(rival: &Rival, setting: &Setting<'_>) -> Result<((Metric, f64), Calls)> {
    let folder = tempfile::Builder::new().prefix("terse-strace-").tempdir()?;
    let run = |requests: usize| -> Result<BTreeMap<String, f64>> {
        let file = folder.path().join(requests.to_string());
        let under = ["strace", "-f", "-c", "-o", &file.display().to_string()].map(String::from);
        ask(rival.start(&Setting { under: &under, ..setting.clone() })?, requests)?;
        let text = fs::read_to_string(&file).context("strace's table")?;
        Ok(calls(&text))
    };
    let (few, many) = (run(FEW)?, run(MANY)?);
    let per_request =
        |(name, count): (&String, &f64)| (name.clone(), (count - few.get(name).unwrap_or(&0.0)) / (MANY - FEW) as f64);
    let mut calls: Calls = many.iter().map(per_request).filter(|(_, count)| *count >= 0.1).collect();
    calls.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(((Metric::SystemCalls, calls.iter().map(|(_, count)| count).sum()), calls))
}

/// So many requests, then the end.
fn ask(mut proxy: Running, requests: usize) -> Result<()> {
    let mut client = proxy.connect(PATIENCE)?;
    for _ in 0..requests {
        client.get("/tiny", &[])?;
    }
    drop(client);
    proxy.stop();
    Ok(())
}

/// The sum of all processes' files.
fn total_instructions(folder: &Path, prefix: &str) -> Result<f64> {
    let mut total = 0.0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let text = fs::read_to_string(entry.path())?;
            let line = text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
            total += line.and_then(|number| number.trim().parse::<f64>().ok()).context("callgrind's totals")?;
        }
    }
    Ok(total)
}

/// Reads strace's table: `% time  seconds  usecs/call  calls  [errors]  syscall`.
fn calls(table: &str) -> BTreeMap<String, f64> {
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter_map(|row| match row[..] {
        [_, _, _, count, .., name] if name != "total" && name != "syscall" => Some((name.to_owned(), count.parse().ok()?)),
        _ => None,
    })
    .collect()
}

const FEW: usize = 500;
const MANY: usize = 2500;
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_table_of_strace() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n 60.00    0.01 1 20 3 read\n 40.00 0.01 1 10 write\n------ ---\n100.00    0.02  1  30  3 total\n";
        let calls = calls(table);
        assert_eq!(calls.into_iter().collect::<Vec<_>>(), [("read".to_owned(), 20.0), ("write".to_owned(), 10.0)]);
    }
}
