//! Coders of others, one measurement a line: what `terse-lab frontier` sets beside ours.
//!
//! `--list` prints `CODING PROGRAM LEVEL MODES` a line. Otherwise each line of the input is `PROGRAM LEVEL MODE NANOSECONDS PATH`, and is
//! answered by `BYTES NANOSECONDS`: the size of what came out, and the processor time of one body, the mean of as many as fill the time
//! that was asked for. States are made once and kept, as a server keeps them. Everything is checked by a decoder before it is timed.

mod brotli;
mod check;
#[cfg(feature = "isal")]
mod isal;
mod libdeflate;
mod zlib;
mod zstd;

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Duration;

/// How a body comes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// All at once.
    Whole,
    /// In pieces of [`PIECE_BYTES`], each of which a client can decode at once.
    Parts,
}

/// Bytes of a piece.
pub const PIECE_BYTES: usize = 8192;

/// A coder with its state.
pub trait Coder {
    /// Codes a body into a buffer that is long enough, and returns how many bytes that took; none if it is broken.
    fn code(&mut self, body: &[u8], mode: Mode, out: &mut [u8]) -> Option<usize>;
}

/// A library.
pub struct Program {
    /// Its name and version.
    pub name: String,
    /// The content coding.
    pub coding: &'static str,
    /// Its levels.
    pub levels: Vec<i32>,
    /// Whether it takes pieces.
    pub has_parts: bool,
    /// Makes a coder of a level.
    pub make: fn(i32) -> Option<Box<dyn Coder>>,
}

fn programs() -> Vec<Program> {
    let mut programs =
        vec![zlib::plain::program(), zlib::next::program(), libdeflate::program(), zstd::program(), brotli::program()];
    #[cfg(feature = "isal")]
    programs.push(isal::program());
    programs.retain(|program| !program.levels.is_empty());
    programs
}

fn main() -> Result<(), Box<dyn Error>> {
    let programs = programs();
    if std::env::args().nth(1).as_deref() == Some("--list") {
        for program in &programs {
            for level in &program.levels {
                println!("{} {} {level} {}", program.coding, program.name, if program.has_parts { "whole,parts" } else { "whole" });
            }
        }
        return Ok(());
    }
    let mut coders: HashMap<(String, i32), Box<dyn Coder>> = HashMap::new();
    let mut bodies: HashMap<String, Vec<u8>> = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().ok_or("PROGRAM LEVEL MODE NANOSECONDS PATH");
        let (name, level, mode, time, path) = (word()?, word()?.parse()?, word()?, word()?.parse()?, word()?);
        let program = programs.iter().find(|program| program.name == name).ok_or("no such program")?;
        let mode = if mode == "parts" { Mode::Parts } else { Mode::Whole };
        if !bodies.contains_key(path) {
            bodies.insert(path.to_owned(), std::fs::read(path)?);
        }
        let body = bodies.get(path).ok_or("no body")?;
        let coder = match coders.entry((name.to_owned(), level)) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert((program.make)(level).ok_or("it cannot be made")?),
        };
        let (bytes, ns) = measure(coder.as_mut(), program, mode, body, Duration::from_nanos(time))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{bytes} {ns}")?;
        out.flush()?;
    }
    Ok(())
}

/// The size of what comes out, and nanoseconds of processor time.
fn measure(
    coder: &mut dyn Coder,
    program: &Program,
    mode: Mode,
    body: &[u8],
    time: Duration,
) -> Result<(usize, u128), Box<dyn Error>> {
    let mut out = vec![0; body.len() + body.len() / 8 + 4096 + 64 * (body.len() / PIECE_BYTES)];
    let broken = || format!("{}: it is broken", program.name);
    let bytes = coder.code(body, mode, &mut out).ok_or_else(broken)?;
    let coded = out.get(..bytes).ok_or_else(broken)?;
    if check::decode(program.coding, coded, body.len()).as_deref() != Some(body) {
        return Err(format!("{}: what it wrote is something else", program.name).into());
    }
    let (begin, mut times) = (cpu_time()?, 0);
    loop {
        coder.code(body, mode, &mut out).ok_or_else(broken)?;
        times += 1;
        let taken = cpu_time()? - begin;
        if taken >= time {
            return Ok((bytes, taken.as_nanos() / times));
        }
    }
}

/// Processor time of this thread.
fn cpu_time() -> nix::Result<Duration> {
    Ok(nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}
