//! The manual: its examples are configurations that the program takes, its tables are whole, its links lead somewhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use support::Terse;
use support::proxy::DEFAULTS;

/// Pages of the project by their paths from its root.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = BTreeMap::new();
    for folder in ["", "docs", "examples", "bench"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.insert(Path::new(folder).join(path.file_name().unwrap()), fs::read_to_string(path).unwrap());
            }
        }
    }
    assert!(pages.len() > 30 && pages.contains_key(Path::new("README.md")), "{:?}", pages.keys());
    pages
}

/// A page's lines that are not within a block of code, with their numbers.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    page.lines().enumerate().filter_map(move |(at, line)| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((at + 1, line))
    })
}

/// Blocks of haproxy.cfg, each with the number of its first line.
fn examples(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line == "```haproxy" {
            let block = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            found.push((at + 2, block.fold(String::new(), |text, line| text + line + "\n")));
        }
    }
    found
}

/// An example as a whole file: lines of a proxy are put into one, and sections without `defaults` have some.
fn whole(example: &str) -> String {
    let first = example.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    let proxy = match first.starts_with([' ', '#']) || ["compression ", "http-request "].iter().any(|word| first.starts_with(word))
    {
        true => format!(
            "resolvers dns\n nameserver one 127.0.0.1:53\nlisten web\n bind :8080\n{example}\n server last 127.0.0.1:9081\n"
        ),
        false => example.to_owned(),
    };
    match proxy.lines().any(|line| line.starts_with("defaults")) {
        true => proxy,
        false => format!("{DEFAULTS} log stdout format raw local0\n{proxy}"),
    }
}

/// True if a line on stderr is about the example, and not about a certificate, a library or a device that is not here.
fn is_fault(line: &str) -> bool {
    let is_said_by_the_example = line.contains("'no STATS_SOCKET: commands cannot be given'");
    let is_grave = ["[ALERT]", "[WARNING]"].iter().any(|level| line.starts_with(level));
    is_grave && !is_said_by_the_example && !line.contains("No such file or directory") && !line.contains(FATAL)
}

#[test]
fn examples_are_taken() {
    let (mut count, mut faults) = (0, Vec::new());
    for (path, page) in pages() {
        for (line, example) in examples(&page) {
            count += 1;
            let said = Terse::with(&whole(&example)).arg(&["-c"]).run().stderr;
            faults.extend(said.lines().filter(|line| is_fault(line)).map(|said| format!("{path:?}:{line}: {said}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count >= 40, "{count}");
}

/// The file that packages install: it serves nothing but the console, and takes no port that others have.
#[test]
fn the_packaged_file_is_taken() {
    let file = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/terse.cfg")).unwrap();
    // The package makes its user.
    let file = file.replace("    user terse\n    group terse\n", "").replace("/run/terse/", "${dir}/");
    let checked = Terse::with(&file).arg(&["-c", "-V"]).run().expect(0);
    assert_eq!(checked.stderr, "");
    let served =
        file.replace("# frontend", "frontend").replace("#     ", "    ").replace("# \n", "\n").replace("# backend", "backend");
    assert!(served.contains("\nfrontend web\n    bind :80\n") && served.contains("\nbackend app\n"), "{served}");
    let checked = Terse::with(&served).arg(&["-c", "-V"]).run().expect(0);
    assert_eq!(checked.stderr, "", "with what stands behind # as well");
}

#[test]
fn tables_are_whole() {
    let (mut count, mut faults) = (0, Vec::new());
    for (path, page) in pages() {
        let mut cells = None;
        let mut last = 0;
        for (number, line) in prose(&page) {
            if !line.starts_with('|') || number != last + 1 {
                cells = None;
            }
            last = number;
            if !line.starts_with('|') {
                continue;
            }
            let here = line.replace("\\|", "").matches('|').count();
            match cells {
                None => {
                    count += 1;
                    let rule = page.lines().nth(number).unwrap_or_default();
                    if !rule.starts_with('|') || !rule.chars().all(|sign| "|-: ".contains(sign)) {
                        faults.push(format!("{path:?}:{number}: a table without a heading: {line}"));
                    }
                    cells = Some(here);
                }
                Some(cells) if cells == here && line.ends_with('|') => {}
                Some(cells) => faults.push(format!("{path:?}:{number}: {here} bars, the heading has {cells}: {line}")),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 100, "{count}");
}

#[test]
fn links_lead_somewhere() {
    let pages = pages();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let anchors: BTreeMap<&Path, BTreeSet<String>> = pages.iter().map(|(path, page)| (path.as_path(), headings(page))).collect();
    let (mut count, mut faults) = (0, Vec::new());
    for (path, page) in &pages {
        for (number, line) in prose(page) {
            for target in line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target) {
                if target.contains("://") {
                    continue;
                }
                count += 1;
                let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
                let to = if file.is_empty() { path.clone() } else { tidy(&path.with_file_name("").join(file)) };
                let is_there = match (anchor, anchors.get(to.as_path())) {
                    (Some(anchor), Some(known)) => known.contains(anchor),
                    _ => root.join(&to).exists(),
                };
                if !is_there {
                    faults.push(format!("{path:?}:{number}: nothing is at {target}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 300, "{count}");
}

/// Anchors of a page's headings, as Git's hosts make them: small letters, digits, `-` for blanks; a number at the end of a repeated
/// anchor.
fn headings(page: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, line) in prose(page) {
        let Some(title) = line.strip_prefix('#').map(|line| line.trim_start_matches('#').trim()) else { continue };
        let kept = title.to_lowercase().chars().filter(|sign| sign.is_alphanumeric() || " -_".contains(*sign)).collect::<String>();
        let anchor = kept.replace(' ', "-");
        let again = (1..).map(|n| format!("{anchor}-{n}")).find(|anchor| !found.contains(anchor));
        let anchor = if found.contains(&anchor) { again.unwrap() } else { anchor };
        found.insert(anchor);
    }
    found
}

/// A path without `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = tidy.pop(),
            part => tidy.push(part),
        }
    }
    tidy
}

/// Last line of every list of faults.
const FATAL: &str = "Fatal errors found in configuration";
