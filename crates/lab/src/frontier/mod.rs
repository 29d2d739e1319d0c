//! The frontier of bytes and time: our coders beside those of others, on bodies that none of ours was made for.
//!
//! Each point is a coder at a level on a body: the bytes that come out, and the processor time that they cost. A point of a rival is
//! *answered* if a level of ours gives no more bytes for less time. Ours run in this process, others in programs that
//! `scripts/frontier` builds; all are measured in turns on one core.

mod bodies;
mod page;
mod plot;
mod program;
mod verdict;

use crate::bench::machine;
use crate::cores;
use anyhow::{Context, Result, bail};
use bodies::Body;
use program::{Coded, Program, Times};
use std::path::PathBuf;
use std::time::Duration;

/// Length of the measurement, and files for the results.
#[derive(Clone, Debug)]
pub struct Options {
    /// A folder for each package of npm, as `scripts/frontier` leaves them.
    pub packages: PathBuf,
    /// Programs with the coders of others.
    pub rivals: Vec<PathBuf>,
    /// Number of measurements of each point; the best one is kept.
    pub rounds: usize,
    /// The least time of one measurement.
    pub time: Duration,
    /// The kinds of bodies, all if empty.
    pub only: Vec<String>,
    /// File for the page.
    pub page: PathBuf,
    /// File for the plot.
    pub plot: PathBuf,
    /// File for the numbers.
    pub numbers: PathBuf,
}

/// Manner in which a body comes to the coder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// All at once.
    Whole,
    /// In pieces of [`PIECE_BYTES`], each of which can be decoded at once.
    Parts,
}

/// Bytes of a piece.
pub(crate) const PIECE_BYTES: usize = 8192;

impl Mode {
    /// Name in tables and in the programs' lines.
    pub(crate) fn word(self) -> &'static str {
        if self == Mode::Whole { "whole" } else { "parts" }
    }
}

/// The bodies of one kind and size, and the way in which they come.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// The kind: `js`, `css`.
    pub(crate) kind: &'static str,
    /// The size of each body in bytes.
    pub(crate) size: usize,
    pub(crate) mode: Mode,
    pub(crate) bodies: Vec<Body>,
}

/// The means over a set's bodies.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Point {
    pub(crate) kind: &'static str,
    pub(crate) size: usize,
    pub(crate) mode: Mode,
    pub(crate) coding: String,
    pub(crate) program: String,
    pub(crate) level: i32,
    pub(crate) bytes: f64,
    pub(crate) cpu_us: f64,
}

/// Sizes in bytes, and whether they come in pieces, too.
const SIZES: [(usize, bool); 5] = [(1 << 10, false), (8 << 10, false), (32 << 10, true), (132 << 10, true), (1 << 20, true)];

/// Coders that take longer for a byte than this are left out of the largest bodies, in nanoseconds: levels for files, not for answers.
const SLOW_NS: f64 = 1_000.0;

/// Measures, and writes the files; true if the bars hold.
pub fn run(options: &Options) -> Result<bool> {
    let (core, machine) = (*cores::available().first().context("no core")?, machine::description());
    cores::pin_this_thread(core)?;
    let folder = tempfile::Builder::new().prefix("terse-frontier-").tempdir()?;
    let sets = sets(options, folder.path())?;
    let mut programs = vec![Program::ours()];
    for rival in &options.rivals {
        programs.extend(Program::of_others(rival)?);
    }
    let mut points = Vec::new();
    for set in &sets {
        eprintln!("{} of {} bytes, {}", set.kind, set.size, set.mode.word());
        points.extend(measure(set, &mut programs, options)?);
    }
    let verdict = verdict::of(&points);
    let page = page::text(&points, &verdict, &machine);
    print!("{page}");
    std::fs::write(&options.page, page).with_context(|| options.page.display().to_string())?;
    std::fs::write(&options.plot, plot::svg(&points)).with_context(|| options.plot.display().to_string())?;
    std::fs::write(&options.numbers, numbers(&points)).with_context(|| options.numbers.display().to_string())?;
    Ok(verdict.holds())
}

fn sets(options: &Options, folder: &std::path::Path) -> Result<Vec<Set>> {
    let mut sets = Vec::new();
    for kind in bodies::KINDS {
        if !options.only.is_empty() && !options.only.iter().any(|name| name == kind.name) {
            continue;
        }
        let files = kind.files(&options.packages)?;
        let most: usize = files.iter().map(Vec::len).sum();
        for (size, has_parts) in SIZES {
            if size > most {
                eprintln!("{}: left out at {size} bytes: the packages have {most}", kind.name);
                continue;
            }
            let bodies = bodies::write(kind.name, &files, size, folder)?;
            sets.push(Set { kind: kind.name, size, mode: Mode::Whole, bodies: bodies.clone() });
            if has_parts {
                sets.push(Set { kind: kind.name, size, mode: Mode::Parts, bodies });
            }
        }
    }
    if sets.is_empty() {
        bail!("no such kind of bodies; there are {}", bodies::KINDS.map(|kind| kind.name).join(", "));
    }
    Ok(sets)
}

/// The points of a set: the coders in turns, so that a noisy minute hits them alike.
fn measure(set: &Set, programs: &mut [Program], options: &Options) -> Result<Vec<Point>> {
    let mut points: Vec<(usize, Coded, Times)> = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        let coded = program.coded().iter().filter(|coded| coded.has(set.mode) && !(coded.is_for_files() && set.size > 256 << 10));
        points.extend(coded.map(|coded| (index, coded.clone(), Times::new(set.bodies.len()))));
    }
    for round in 0..options.rounds.max(1) {
        // A warm state and warm caches count: a server has them.
        for (index, coded, times) in &mut points {
            if round > 0 && times.ns_per_byte(set.size) > SLOW_NS {
                continue;
            }
            for (number, body) in set.bodies.iter().enumerate() {
                let program = programs.get_mut(*index).context("no such program")?;
                times.add(number, program.measure(coded, set.mode, body, options.time)?);
            }
        }
    }
    Ok(points.into_iter().map(|(_, coded, times)| point(set, coded, &times)).collect())
}

fn point(set: &Set, coded: Coded, times: &Times) -> Point {
    let (bytes, cpu_us) = times.means();
    Point {
        kind: set.kind,
        size: set.size,
        mode: set.mode,
        coding: coded.coding,
        program: coded.program,
        level: coded.level,
        bytes,
        cpu_us,
    }
}

/// A size as tables show it.
pub(crate) fn size_word(bytes: usize) -> String {
    if bytes >= 1 << 20 { format!("{} MB", bytes >> 20) } else { format!("{} KB", bytes >> 10) }
}

fn numbers(points: &[Point]) -> String {
    let mut text = String::from("body\tsize\tmode\tcoding\tprogram\tlevel\tbytes\tcpu_us\n");
    for Point { kind, size, mode, coding, program, level, bytes, cpu_us } in points {
        text.push_str(&format!("{kind}\t{size}\t{}\t{coding}\t{program}\t{level}\t{bytes:.0}\t{cpu_us:.1}\n", mode.word()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_alone_make_points_of_every_coding_and_mode() {
        let folder = tempfile::tempdir().unwrap();
        let text: Vec<u8> = (0..40_000u32).flat_map(|n| format!("{} apples, ", n % 997).into_bytes()).collect();
        let bodies = bodies::write("js", &[text], 32 << 10, folder.path()).unwrap();
        let options = Options {
            packages: folder.path().into(),
            rivals: Vec::new(),
            rounds: 1,
            time: Duration::ZERO,
            only: Vec::new(),
            page: folder.path().join("page"),
            plot: folder.path().join("plot"),
            numbers: folder.path().join("numbers"),
        };
        let set = Set { kind: "js", size: 32 << 10, mode: Mode::Parts, bodies };
        let points = measure(&set, &mut [Program::ours()], &options).unwrap();
        for coding in ["gzip", "zstd", "br"] {
            let of_coding: Vec<_> = points.iter().filter(|point| point.coding == coding).collect();
            assert!(of_coding.len() >= 9 && of_coding.iter().all(|point| point.bytes < 16e3 && point.cpu_us > 0.0), "{points:?}");
        }
        assert_eq!(numbers(&points).lines().count(), points.len() + 1);
    }
}
