//! Programs that code: ours in this process, others through lines of text.

use super::bodies::Body;
use super::{Mode, PIECE_BYTES};
use crate::clock::thread_time;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use terse_compress::coder::{Coder, Engine, Flush};
use terse_compress::{Coding, Level, Pool, Tuning};

/// A coder at a level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Coded {
    /// The content coding's token.
    pub(crate) coding: String,
    pub(crate) program: String,
    pub(crate) level: i32,
    has_parts: bool,
}

impl Coded {
    pub(crate) fn has(&self, mode: Mode) -> bool {
        mode == Mode::Whole || self.has_parts
    }

    /// True for a level that takes the time of a file, not of a response: it is measured on bodies of usual sizes only.
    pub(crate) fn is_for_files(&self) -> bool {
        match self.coding.as_str() {
            "br" => self.level > 9,
            "zstd" => self.level > 12,
            _ => self.level > 9,
        }
    }
}

/// The best time of each body of a set.
#[derive(Clone, Debug)]
pub(crate) struct Times(Vec<Option<(usize, u64)>>);

impl Times {
    pub(crate) fn new(bodies: usize) -> Times {
        Times(vec![None; bodies])
    }

    /// Takes a measurement of a body: bytes, and nanoseconds.
    pub(crate) fn add(&mut self, number: usize, (bytes, ns): (usize, u64)) {
        if let Some(best) = self.0.get_mut(number) {
            *best = Some((bytes, best.map_or(ns, |(_, before)| before.min(ns))));
        }
    }

    /// Mean bytes, and mean microseconds.
    pub(crate) fn means(&self) -> (f64, f64) {
        let count = self.0.iter().flatten().count().max(1) as f64;
        let (bytes, ns) = self.0.iter().flatten().fold((0.0, 0.0), |(b, n), &(bytes, ns)| (b + bytes as f64, n + ns as f64));
        (bytes / count, ns / count / 1e3)
    }

    pub(crate) fn ns_per_byte(&self, size: usize) -> f64 {
        self.means().1 * 1e3 / size.max(1) as f64
    }
}

/// A program, and its codings and levels.
pub(crate) struct Program {
    coded: Vec<Coded>,
    place: Place,
}

enum Place {
    Here(Ours),
    There(Talk),
}

/// Our coders with their states.
struct Ours {
    pool: Arc<Pool>,
    streams: HashMap<(Coding, u8), Box<dyn Coder>>,
    out: Vec<u8>,
}

/// A program of others that answers lines.
struct Talk {
    path: PathBuf,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// Our name in tables.
pub(crate) const OURS: &str = "terse";

const CODINGS: [Coding; 3] = [Coding::Gzip, Coding::Zstd, Coding::Brotli];

/// Levels above those that the configuration takes, which idle time uses.
const IDLE_LEVELS: [(Coding, u8); 3] = [(Coding::Gzip, 10), (Coding::Brotli, 10), (Coding::Brotli, 11)];

impl Program {
    /// Our program, with every level that the configuration takes up to the cost of a response, and those of idle time.
    pub(crate) fn ours() -> Program {
        let coded = |coding: Coding, level: u8, has_parts| Coded {
            coding: coding.entry().token.into(),
            program: OURS.into(),
            level: level.into(),
            has_parts,
        };
        let mut all = Vec::new();
        for coding in CODINGS {
            all.extend(coding.entry().levels.clone().filter(|level| *level <= 12).map(|level| coded(coding, level, true)));
        }
        all.extend(IDLE_LEVELS.map(|(coding, level)| coded(coding, level, false)));
        let ours = Ours { pool: Arc::new(Pool::new(Tuning::default())), streams: HashMap::new(), out: Vec::new() };
        Program { coded: all, place: Place::Here(ours) }
    }

    /// A program of others: a process that is asked by lines.
    pub(crate) fn of_others(path: &Path) -> Result<Vec<Program>> {
        let context = || path.display().to_string();
        let list = Command::new(path).arg("--list").output().with_context(context)?;
        let list = String::from_utf8(list.stdout).with_context(context)?;
        let coded: Vec<Coded> = list.lines().map(parse).collect::<Option<_>>().with_context(context)?;
        let mut child = Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().with_context(context)?;
        let (to, from) = (child.stdin.take().context("no input")?, child.stdout.take().context("no output")?);
        let talk = Talk { path: path.into(), child, to, from: BufReader::new(from) };
        Ok(vec![Program { coded, place: Place::There(talk) }])
    }

    /// Its codings and levels.
    pub(crate) fn coded(&self) -> &[Coded] {
        &self.coded
    }

    /// Returns the size of a body's coded form in bytes, and its cost, in nanoseconds of processor time.
    pub(crate) fn measure(&mut self, coded: &Coded, mode: Mode, body: &Body, time: Duration) -> Result<(usize, u64)> {
        match &mut self.place {
            Place::Here(ours) => ours.measure(coded, mode, &body.bytes, time),
            Place::There(talk) => talk.measure(coded, mode, &body.path, time),
        }
    }
}

/// `CODING PROGRAM LEVEL MODES`.
fn parse(line: &str) -> Option<Coded> {
    let mut words = line.split(' ');
    let (coding, program, level, modes) = (words.next()?, words.next()?, words.next()?.parse().ok()?, words.next()?);
    Some(Coded { coding: coding.into(), program: program.into(), level, has_parts: modes.contains("parts") })
}

impl Ours {
    fn measure(&mut self, coded: &Coded, mode: Mode, body: &[u8], time: Duration) -> Result<(usize, u64)> {
        let coding = CODINGS.into_iter().find(|coding| coding.entry().token == coded.coding).context("no such coding")?;
        let level = u8::try_from(coded.level)?;
        let bytes = self.code(coding, level, mode, body)?;
        let (begin, mut times) = (thread_time()?, 0u32);
        loop {
            self.code(coding, level, mode, body)?;
            times += 1;
            let taken = thread_time()? - begin;
            if taken >= time {
                return Ok((bytes, u64::try_from((taken / times).as_nanos())?));
            }
        }
    }

    /// Codes a body; returns the number of bytes that came out.
    fn code(&mut self, coding: Coding, level: u8, mode: Mode, body: &[u8]) -> Result<usize> {
        self.out.clear();
        let broken = |_| anyhow!("{} {level}: the coder is broken", coding.word());
        let engine = Engine::of(coding);
        if mode == Mode::Whole {
            (engine.whole)(body, Level(level), &self.pool, &mut self.out).map_err(broken)?;
            return Ok(self.out.len());
        }
        let stream = self.streams.entry((coding, level)).or_insert_with(|| (engine.stream)(Level(level), None, &self.pool));
        let last = body.len().saturating_sub(1) / PIECE_BYTES;
        for (index, piece) in body.chunks(PIECE_BYTES).enumerate() {
            let flush = if index == last { Flush::Finish } else { Flush::Sync };
            stream.push(piece, &mut self.out, flush).map_err(broken)?;
        }
        stream.reset();
        Ok(self.out.len())
    }
}

impl Talk {
    fn measure(&mut self, coded: &Coded, mode: Mode, path: &Path, time: Duration) -> Result<(usize, u64)> {
        let context = || format!("{}: {} {}", self.path.display(), coded.program, coded.level);
        let (level, mode, ns) = (coded.level, mode.word(), time.as_nanos());
        writeln!(self.to, "{} {level} {mode} {ns} {}", coded.program, path.display()).with_context(context)?;
        self.to.flush()?;
        let mut line = String::new();
        self.from.read_line(&mut line).with_context(context)?;
        let Some((bytes, ns)) = line.trim_end().split_once(' ') else { bail!("{}: it ended, or answered {line:?}", context()) };
        Ok((bytes.parse().with_context(context)?, ns.parse().with_context(context)?))
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // It would end by itself at the end of its input; nothing waits for its measurements then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_others_is_asked_by_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rival");
        let script =
            "#!/bin/sh\n[ \"$1\" = --list ] && { echo 'gzip rival -1 whole'; exit; }\nread -r line\necho 12 \"${#line}\"\n";
        std::fs::write(&path, script).unwrap();
        std::os::unix::fs::PermissionsExt::set_mode(&mut std::fs::metadata(&path).unwrap().permissions(), 0o755);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut programs = Program::of_others(&path).unwrap();
        let program = &mut programs[0];
        let coded = program.coded()[0].clone();
        assert!((coded.level, coded.has(Mode::Whole), coded.has(Mode::Parts)) == (-1, true, false));
        let body = Body { path: "/a b".into(), bytes: Vec::new() };
        assert_eq!(
            program.measure(&coded, Mode::Whole, &body, Duration::ZERO).unwrap(),
            (12, "rival -1 whole 0 /a b".len() as u64)
        );
        let fault = program.measure(&coded, Mode::Whole, &body, Duration::ZERO).unwrap_err().to_string();
        assert!(fault.contains("rival -1"), "{fault}");
    }

    #[test]
    fn the_best_time_of_each_body_counts() {
        let mut times = Times::new(2);
        times.add(0, (10, 4000));
        times.add(0, (10, 3000));
        times.add(1, (20, 5000));
        assert_eq!(times.means(), (15.0, 4.0));
        assert_eq!(times.ns_per_byte(8), 500.0);
    }
}
