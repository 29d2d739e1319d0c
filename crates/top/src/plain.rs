//! A look as plain text, for scripts and pipes.

use crate::api::{Reason, Seen, Server, Summary};
use std::fmt::Write;
use terse_admin::numbers::{age, bytes, micros, percent};

/// Lines of all figures of a look.
pub(crate) fn text(seen: &Seen) -> String {
    let Seen { summary, servers } = seen;
    let mut out = format!("{}\n{}\n", process(summary), saved(summary));
    for (number, advice) in summary.advice.iter().enumerate() {
        let line = if advice.line.is_empty() { String::new() } else { format!(": {}", advice.line) };
        let _ = writeln!(out, "to do {}  {}{line}", number + 1, advice.text);
    }
    if !summary.reasons.is_empty() {
        let _ = writeln!(out, "why not  {}", summary.reasons.iter().map(reason).collect::<Vec<_>>().join(", "));
    }
    for coding in summary.codings.iter().filter(|coding| coding.answers > 0) {
        let (before, after) = (bytes(coding.bytes_in), bytes(coding.bytes_out));
        let _ = writeln!(
            out,
            "{:<8} {} answers, {before} -> {after}, {} in coders",
            coding.name,
            coding.answers,
            micros(coding.coder_us)
        );
    }
    for memory in &summary.memory {
        let _ = writeln!(out, "memory   {}", remembered(memory));
    }
    if let Some(all) = &summary.dictionaries {
        let _ = writeln!(out, "dictionaries {}", dictionaries(all));
    }
    if !servers.is_empty() {
        let _ = writeln!(out, "{}", row(&HEADS.map(str::to_owned)).trim_end());
    }
    for server in servers {
        let _ = writeln!(out, "{}", row(&cells(server)).trim_end());
    }
    out
}

/// The process: version, age, work.
pub(crate) fn process(summary: &Summary) -> String {
    format!(
        "terse {}  up {}  {} busy  {} of {} connections{}",
        summary.version,
        age(summary.uptime_s),
        percent(summary.busy_permille.min(1000)),
        summary.connections.now,
        summary.connections.limit,
        if summary.stopping { "  draining" } else { "" }
    )
}

/// Bytes sent, and bytes without compression.
pub(crate) fn saved(summary: &Summary) -> String {
    let sent = summary.sent;
    let spared = sent.before.saturating_sub(sent.bytes);
    let permille = (u128::from(spared) * 1000).checked_div(u128::from(sent.before)).unwrap_or(0) as u64;
    format!("{} saved: {} sent instead of {}", percent(permille), bytes(sent.bytes), bytes(sent.before))
}

/// A reason, with its weight.
pub(crate) fn reason(reason: &Reason) -> String {
    format!("{} {} ({})", reason.name, reason.answers, bytes(reason.bytes))
}

/// A memory of bodies.
pub(crate) fn remembered(memory: &crate::api::Memory) -> String {
    let lookups = memory.hits.saturating_add(memory.misses);
    format!(
        "{}: {} of {}, {} bodies, hits {} of {lookups}",
        memory.name,
        bytes(memory.bytes),
        bytes(memory.limit),
        memory.bodies,
        memory.hits
    )
}

/// Dictionaries of the process.
pub(crate) fn dictionaries(all: &crate::api::Dictionaries) -> String {
    format!(
        "{}: {}, oldest {}, offered {}, used {}: {} -> {}, not worth {}",
        all.count,
        bytes(all.held),
        age(all.oldest_s),
        all.offered,
        all.used,
        bytes(all.bytes_in),
        bytes(all.bytes_out),
        all.not_worth
    )
}

/// Columns of servers.
pub(crate) const HEADS: [&str; 8] = ["server", "state", "since", "check", "sessions", "queue", "out", "weight"];

/// A server's cells.
pub(crate) fn cells(server: &Server) -> [String; 8] {
    let check = &server.check;
    let check = match check.code.is_empty() {
        true => String::new(),
        false => format!("{} {} ms", check.code, check.duration_ms),
    };
    [
        format!("{}/{}", server.backend, server.name),
        server.state.clone(),
        age(server.since_s),
        check,
        server.sessions.to_string(),
        server.queue.to_string(),
        bytes(server.bytes_out),
        server.weight.to_string(),
    ]
}

fn row(cells: &[String; 8]) -> String {
    let [server, state, since, check, sessions, queue, out, weight] = cells;
    format!("{server:<24} {state:<10} {since:<10} {check:<16} {sessions:>8} {queue:>6} {out:>9} {weight:>6}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::tests::{SUMMARY, servers};

    #[test]
    fn a_look_is_lines() {
        let seen = Seen { summary: serde_json::from_str(SUMMARY).unwrap(), servers: servers() };
        let text = text(&seen);
        for line in [
            "terse 0.1.0  up 1 h 1 min  31 % busy  12 of 2000 connections\n",
            "20 % saved: 11.5 MB sent instead of 14.4 MB\n",
            "to do 1  7.90 MB of application/wasm went as they were: compression type application/wasm\n",
            "why not  type-not-listed 72 (7.90 MB)\n",
            "zstd     30 answers, 1.90 MB -> 340 kB, 100 ms in coders\n",
            "memory   common: 113 kB of 67.1 MB, 3 bodies, hits 42 of 54\n",
            "dictionaries 2: 640 kB, oldest 1 min, offered 9, used 7: 1.90 MB -> 34.0 kB, not worth 1\n",
            "app/one                  UP         4 min      L4CON 0 ms             82      0   7.20 MB      1\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        assert!(!text.contains('\x1b'));
        assert_eq!(self::text(&Seen::default()).lines().count(), 2);
    }

    #[test]
    fn any_number_is_shown() {
        let memory = crate::api::Memory { hits: u64::MAX, misses: u64::MAX, ..Default::default() };
        remembered(&memory);
    }
}
