//! `scripts/tls-scan`: nothing is found in TLS as it is by default, and everything where everything is allowed.
//!
//! It needs sslyze, from PyPI: `TERSE_SCAN_PYTHON` names a Python that has it, as `make tls-scan` makes one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::{Command, Stdio};

/// Output of the scan, and whether it ended well; none where there is no such Python.
fn scan(words: &[&str]) -> Option<(String, bool)> {
    let Some(python) = std::env::var_os("TERSE_SCAN_PYTHON").filter(|python| !python.is_empty()) else {
        println!("left out: TERSE_SCAN_PYTHON names no Python with sslyze");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/tls-scan");
    let mut command = Command::new(script);
    let output = command.arg(env!("CARGO_BIN_EXE_terse")).args(words).env("TERSE_SCAN_PYTHON", python).stdin(Stdio::null());
    let output = output.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((format!("{}{}", text(&output.stdout), text(&output.stderr)), output.status.success()))
}

#[test]
fn nothing_is_found_in_a_plain_line() {
    let Some((said, went_well)) = scan(&[]) else { return };
    assert!(went_well && said.contains(", 0 weaknesses") && !said.contains("WEAK"), "{said}");
    assert!(said.lines().any(|line| line.contains("tls-compression allow") && line.contains("compressed")), "{said}");
}

#[test]
fn what_is_allowed_is_found() {
    let Some((said, went_well)) = scan(&["--open"]) else { return };
    assert!(!went_well, "{said}");
    let weak: Vec<&str> = said.lines().filter(|line| line.contains("WEAK: ") && !line.contains("not tried")).collect();
    for what in [
        "TLS 1.0",
        "TLS 1.1",
        "TLS 1.2",
        "compression (CRIME)",
        "Mozilla's",
        "ciphers without encryption",
        "ciphers without certificate",
        "CBC",
        "keys by RSA",
        "order of ciphers",
        "signatures with SHA-1",
    ] {
        assert!(weak.iter().any(|line| line.starts_with(what)), "{what}: {said}");
    }
}
