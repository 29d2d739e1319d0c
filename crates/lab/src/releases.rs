//! Releases of scripts that people use: each coded as the difference to the one before, beside the ordinary codings and zstd's library
//! alone.
//!
//! Bodies go through the compressor that the proxy uses, as a whole. Time is the processor's of this thread, the least of some rounds.

use crate::bench::machine;
use crate::clock::thread_time;
use crate::undone;
use anyhow::{Context, Result, anyhow, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terse_compress::body::IN_PLACE_NS;
use terse_compress::coder::dcz;
use terse_compress::{Coding, Compressor, Level, Limit, Plan, Pool, Step, Tuning, Workplace};
use terse_dictionary::field::UseAs;
use terse_dictionary::{Dictionary, Hash, Pattern};

/// Where the releases are, and where the page goes.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder with a folder `NAME@VERSION` for each release.
    pub packages: PathBuf,
    /// File for the page.
    pub page: PathBuf,
    /// Measurements of each; the least is kept.
    pub rounds: usize,
}

/// A script that has releases, and bars for them in thousandths of brotli's bytes: at the level of the first answer, and of later ones.
struct Script {
    name: &'static str,
    file: &'static str,
    versions: &'static [&'static str],
    bars: [u64; 2],
}

const SCRIPTS: [Script; 2] = [
    Script {
        name: "vue",
        file: "dist/vue.global.prod.js",
        versions: &[
            "3.5.0", "3.5.1", "3.5.2", "3.5.3", "3.5.4", "3.5.5", "3.5.6", "3.5.7", "3.5.8", "3.5.9", "3.5.10", "3.5.11", "3.5.12",
            "3.5.13",
        ],
        bars: [50, 40],
    },
    Script {
        name: "d3",
        file: "dist/d3.min.js",
        versions: &["7.0.0", "7.1.0", "7.2.0", "7.3.0", "7.4.0", "7.5.0", "7.6.0", "7.7.0", "7.8.0", "7.9.0"],
        bars: [130, 115],
    },
];

/// The level of answers to steady load, and that of idle time.
const LEVELS: [Level; 2] = [Level(6), Level(19)];

/// The most that the library alone may be ahead, in thousandths of its bytes.
const BESIDE_LIBRARY: u64 = 1020;

/// The most time of a first answer, in thousandths of that of zstd's level 6.
const BESIDE_PLAIN: u64 = 700;

/// The coding that most browsers get otherwise, at its usual level.
const ORDINARY: Plan = Plan { coding: Coding::Brotli, level: Level(5) };
const PLAIN: Plan = Plan { coding: Coding::Zstd, level: Level(6) };

/// What became of a release.
#[derive(Debug)]
struct Pair {
    ordinary: u64,
    plain_ns: u64,
    /// Of each of [`LEVELS`].
    forms: [u64; 2],
    library: [u64; 2],
    first_ns: u64,
}

/// Measures, and writes the page; true if all bars hold.
pub fn run(options: &Options) -> Result<bool> {
    let mut page = format!(
        "# Releases of scripts\n\nWritten by `make releases`: {}\n\nEach release of a script from npm with the one before as its dictionary; \
         bytes in per cent of brotli's at level 5, medians and the worst pair. The library: zstd alone with the same level and prefix. Time \
         of a first answer, with a cold dictionary, in per cent of zstd's level 6 without one.\n\n\
         | | pairs | level 6 | level 19, in idle time | beside the library | time |\n|---|---:|---:|---:|---:|---:|\n",
        machine::description()
    );
    let mut holds = true;
    for script in SCRIPTS {
        let releases =
            script.versions.iter().map(|version| read(&options.packages, &script, version)).collect::<Result<Vec<_>>>()?;
        let pairs = releases.windows(2).map(|pair| measure(&pair[0], &pair[1], options.rounds)).collect::<Result<Vec<_>>>()?;
        let of = |value: &dyn Fn(&Pair) -> u64| sorted(pairs.iter().map(value));
        let forms = [0, 1].map(|i| of(&|pair| pair.forms[i] * 1000 / pair.ordinary));
        let library = of(&|pair| (0..2).map(|i| pair.forms[i] * 1000 / pair.library[i]).max().unwrap_or(0));
        let time = of(&|pair| pair.first_ns * 1000 / pair.plain_ns);
        let line = format!(
            "| {} {} to {} | {} | {} | {} | {} | {} |",
            script.name,
            script.versions[0],
            script.versions[script.versions.len() - 1],
            pairs.len(),
            told(&forms[0]),
            told(&forms[1]),
            told(&library),
            told(&time)
        );
        println!("{line}");
        let _ = writeln!(page, "{line}");
        holds &= median(&forms[0]) <= script.bars[0] && median(&forms[1]) <= script.bars[1];
        holds &= library.last().is_none_or(|worst| *worst <= BESIDE_LIBRARY) && median(&time) <= BESIDE_PLAIN;
    }
    std::fs::write(&options.page, page).with_context(|| options.page.display().to_string())?;
    Ok(holds)
}

fn read(packages: &Path, script: &Script, version: &str) -> Result<Vec<u8>> {
    let path = packages.join(format!("{}@{version}", script.name)).join(script.file);
    std::fs::read(&path).with_context(|| path.display().to_string())
}

fn sorted(values: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values
}

fn median(sorted: &[u64]) -> u64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// Thousandths as per cent: the median, and the worst in parentheses.
fn told(sorted: &[u64]) -> String {
    let percent = |thousandths: u64| format!("{}.{}", thousandths / 10, thousandths % 10);
    format!("{} ({})", percent(median(sorted)), percent(sorted.last().copied().unwrap_or(0)))
}

fn measure(old: &[u8], new: &[u8], rounds: usize) -> Result<Pair> {
    let dictionary = || {
        let use_as = Pattern::new("/*").map(UseAs::of).map_err(|fault| anyhow!("{fault}"))?;
        anyhow::Ok(Arc::new(Dictionary::learned(use_as, Hash::of(old), old.into())))
    };
    let mut pair = Pair { ordinary: 0, plain_ns: u64::MAX, forms: [0; 2], library: [0; 2], first_ns: u64::MAX };
    for _ in 0..rounds {
        pair.ordinary = coded(ORDINARY, None, new)?.0.len() as u64;
        pair.plain_ns = pair.plain_ns.min(coded(PLAIN, None, new)?.1);
        pair.first_ns = pair.first_ns.min(coded(Plan { coding: Coding::Dcz, level: LEVELS[0] }, Some(dictionary()?), new)?.1);
    }
    let pool = Arc::new(Pool::new(Tuning::default()));
    for (i, level) in LEVELS.into_iter().enumerate() {
        let mut form = Vec::new();
        match i {
            0 => form = coded(Plan { coding: Coding::Dcz, level }, Some(dictionary()?), new)?.0,
            // In idle time no thread is waited for.
            _ => dcz::whole(new, level, &dictionary()?, &pool, &mut form).map_err(|_| anyhow!("the coder is broken"))?,
        }
        if undone::dcz(&form, old)? != new {
            bail!("level {}: other bytes", level.0);
        }
        (pair.forms[i], pair.library[i]) = (form.len() as u64, by_library(level, old, new)?);
    }
    Ok(pair)
}

/// A whole body's form by the compressor of the proxy, and the time of this thread, in nanoseconds.
fn coded(plan: Plan, dictionary: Option<Arc<Dictionary>>, body: &[u8]) -> Result<(Vec<u8>, u64)> {
    let place = Arc::new(Workplace {
        pool: Arc::new(Pool::new(Tuning::default())),
        queue: None,
        budget: Arc::new(Limit::new(1 << 30)),
        in_place_ns: IN_PLACE_NS,
        meter: None,
        brake: None,
    });
    let before = thread_time()?;
    let mut compressor = Compressor::with_dictionary(plan, dictionary, Some(body.len() as u64), body.len(), &place);
    let mut step = compressor.feed(body).and_then(|step| settled(&mut compressor, step)).map_err(broken)?;
    if matches!(step, Step::Done) {
        step = compressor.finish().and_then(|step| settled(&mut compressor, step)).map_err(broken)?;
    }
    if !matches!(step, Step::Done) {
        bail!("it went away, though there is no queue");
    }
    Ok((compressor.take_output().to_vec(), (thread_time()? - before).as_nanos() as u64))
}

fn broken(_: terse_compress::body::Fault) -> anyhow::Error {
    anyhow!("the coder is broken")
}

/// All that follows from a call.
fn settled(compressor: &mut Compressor, mut step: Step) -> Result<Step, terse_compress::body::Fault> {
    while matches!(step, Step::Here(_)) {
        step = compressor.work()?;
    }
    Ok(step)
}

/// Bytes of the library's form, and of a head of ours.
fn by_library(level: Level, old: &[u8], new: &[u8]) -> Result<u64> {
    let fault = |code| anyhow!("zstd: {}", zstd_safe::get_error_name(code));
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::CompressionLevel(i32::from(level.0))).map_err(fault)?;
    context.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).map_err(fault)?;
    let window = usize::BITS - (old.len() + new.len()).leading_zeros();
    context.set_parameter(zstd_safe::CParameter::WindowLog(window)).map_err(fault)?;
    context.ref_prefix(old).map_err(fault)?;
    let mut out = vec![0; zstd_safe::compress_bound(new.len())];
    let bytes = context.compress2(&mut out[..], new).map_err(fault)?;
    Ok((terse_dictionary::MAGIC.len() + 32 + bytes) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::script;

    #[test]
    fn a_release_is_measured_and_comes_whole() {
        let old = script::script(7, 60_000, usize::MAX).bytes;
        let new = [&old[..30_000], b"/* another */", &old[30_000..]].concat();
        let pair = measure(&old, &new, 1).unwrap();
        assert!(pair.forms.iter().all(|form| form * 10 < pair.ordinary), "{pair:?}");
        assert!(pair.forms.iter().zip(pair.library).all(|(form, library)| form * 10 < library * 11), "{pair:?}");
        assert!(pair.plain_ns > 0 && pair.first_ns > 0 && pair.first_ns < u64::MAX);
    }

    #[test]
    fn medians_and_worst() {
        assert_eq!(told(&sorted([300, 41, 137].into_iter())), "13.7 (30.0)");
    }
}
