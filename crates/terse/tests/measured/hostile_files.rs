//! Configuration files that no operator would write: a clear answer, in seconds, in bounded memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::random::Random;

/// Runs `-c` on a file of these bytes; returns its exit code and its messages. The process may have `most_bytes` of addresses, and
/// a minute, of which a program that was compiled for debugging needs a part.
fn said_within(most_bytes: usize, bytes: &[u8]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostile.cfg");
    std::fs::write(&file, bytes).unwrap();
    let begun = Instant::now();
    let mut command = Command::new("sh");
    let limited = format!("ulimit -v {}; exec \"$0\" -c -f \"$1\"", most_bytes >> 10);
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_terse")]).arg(&file);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60), "it took {:?}", begun.elapsed());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("panicked") && !text.contains("memory allocation"), "{}", &text[..text.len().min(1000)]);
    (output.status.code(), text)
}

/// The same for files that set nothing of which there could be much.
fn said_of(bytes: &[u8]) -> (Option<i32>, String) {
    said_within(512 << 20, bytes)
}

const HEAD: &str =
    "defaults\n mode http\n timeout connect 1s\n timeout client 1s\n timeout server 1s\nlisten l\n bind 127.0.0.1:0\n";

#[test]
fn a_line_of_ten_megabytes() {
    let _machine = crate::alone();
    for (begin, unit) in
        [("http-request set-header x ", "word "), ("server ", "x"), ("acl a path ", "\\"), ("log-format ", "%[path] ")]
    {
        let line = format!("{HEAD} {begin}{}\n", unit.repeat(10_000_000 / unit.len()));
        let (code, text) = said_of(line.as_bytes());
        assert_eq!(code, Some(1), "{begin}");
        assert!(text.contains("hostile.cfg:8]"), "{begin}: {}", &text[..text.len().min(500)]);
        assert!(text.len() < 100_000, "{begin}: {} bytes were said", text.len());
    }
}

/// Bytes that a hundred thousand servers may take.
const SERVERS_BYTES: usize = 1632 << 20;

#[test]
fn a_hundred_thousand_servers() {
    let _machine = crate::alone();
    let mut text = String::from(HEAD);
    for number in 0..100_000 {
        let _ = writeln!(text, " server s{number} 10.{}.{}.{}:80", number >> 16, number >> 8 & 255, number & 255);
    }
    let (code, said) = said_within(SERVERS_BYTES, text.as_bytes());
    assert_eq!((code, said.contains("[ALERT]")), (Some(0), false), "{}", &said[..said.len().min(500)]);
    // A server's name twice: the message names it, and stays readable.
    let again = format!("{text} server s0 10.0.0.1:80\n");
    let (code, said) = said_within(SERVERS_BYTES, again.as_bytes());
    assert!(code == Some(1) && said.contains("another server named 's0'"), "{}", &said[..said.len().min(500)]);
}

#[test]
fn random_words() {
    let _machine = crate::alone();
    let mut random = Random::new(7);
    let words = [
        "global",
        "defaults",
        "listen",
        "server",
        "bind",
        "acl",
        "if",
        "{",
        "}",
        "%[",
        "\"",
        "'",
        "\\x",
        "$",
        "http-request",
        "-f",
        "!",
    ];
    let mut text = String::new();
    for _ in 0..20_000 {
        for _ in 0..random.below(8) {
            let _ = match random.below(4) {
                0 => write!(text, "{} ", random.below(1 << 30)),
                _ => write!(text, "{} ", random.pick(&words)),
            };
        }
        text.push('\n');
    }
    let (code, said) = said_of(text.as_bytes());
    assert!(code == Some(1) && said.contains("hostile.cfg:"), "{code:?}");
    assert_eq!(said_of(&random.bytes(1_000_000)).0, Some(1));
}

#[test]
fn sections_that_lead_round() {
    let _machine = crate::alone();
    let round = "defaults a from b\n mode http\ndefaults b from a\nlisten l from b\n bind 127.0.0.1:0\n";
    let (code, said) = said_of(round.as_bytes());
    assert!(code == Some(1) && said.contains("hostile.cfg:1]"), "{said}");
    let tracks = format!("{HEAD} server a 10.0.0.1:80 track b\n server b 10.0.0.2:80 track a\n");
    let (code, said) = said_of(tracks.as_bytes());
    assert!(code == Some(1) && said.contains("a loop"), "{said}");
    let deep = format!("{}{}", ".if 1\n".repeat(100_000), "global\n");
    assert_eq!(said_of(deep.as_bytes()).0, Some(1));
}
