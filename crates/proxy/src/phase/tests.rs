//! Names that phases and their neighbours may not use: versions of HTTP, sockets, buffers, and framing of bodies.

use std::fs;
use std::path::{Path, PathBuf};

/// Names of the layers below the exchange.
const BELOW: &[&str] = &[
    "terse_http",
    "Transport",
    " Buffer",
    "io::Buffer",
    "<Buffer",
    "(Buffer",
    "&mut Buffer",
    "Reader<",
    "Writer<",
    "Framing",
    "ClientConnection",
    "Http2Stream",
    "Multiplexed",
    ".reader.",
    ".writer.",
    ".io.",
    ".buffer.",
    "io::source",
    "io::sink",
];

/// The PROXY protocol, which is no part of HTTP although its crate has it: it gives the origin of a connection.
const ALLOWED: &str = "terse_http::proxy_protocol";

/// The files below a path.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.into());
        return;
    }
    for entry in fs::read_dir(path).unwrap() {
        files(&entry.unwrap().path(), found);
    }
}

#[test]
fn phases_know_exchanges_and_messages_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for place in
        ["phase", "rules", "samples", "samples.rs", "facts.rs", "inspection.rs", "tunnel.rs", "stream.rs", "splice.rs", "filter"]
    {
        files(&root.join(place), &mut found);
    }
    assert!(found.len() > 80, "{} files", found.len());
    let mut broken = Vec::new();
    for file in found.iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = fs::read_to_string(file).unwrap().replace(ALLOWED, "");
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            broken.extend(
                BELOW
                    .iter()
                    .filter(|word| code.contains(**word))
                    .map(|word| format!("{}:{}: {word}", file.strip_prefix(&root).unwrap_or(file).display(), number + 1)),
            );
        }
    }
    assert!(broken.is_empty(), "floors below the exchange are named:\n{}", broken.join("\n"));
}
