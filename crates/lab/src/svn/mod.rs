//! The founding experiment about compression in TLS, again: svn checks a repository out over a slow line, once with content coding,
//! once with compressed records, with both, with neither, and with what terse makes of it today.
//!
//! ```text
//!  svn --> terse A --> relay, 4 Mbit/s --> terse B --> Apache, mod_dav_svn
//!                 \____ TLS ______________/
//! ```
//!
//! What is measured is what the relay carries, how long svn takes, and what both proxies cost together. The content is made up, the same
//! on each machine; each file begins with its licence, as files of sources do.

mod page;
mod plot;
mod relay;
mod repository;
mod scenario;
mod setting;

use anyhow::{Context, Result};
use page::Page;
use scenario::{Measured, SCENARIOS};
use setting::Setting;
use std::path::PathBuf;

/// What is run, and where the results go.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub terse: PathBuf,
    /// How many files are checked out.
    pub files: usize,
    /// How often each scenario is measured; the best is kept.
    pub rounds: usize,
    /// What the line carries in a second, each way; in kilobits.
    pub kilobits: u64,
    /// The page, its plot, and the table of its numbers.
    pub page: PathBuf,
    /// The plot.
    pub plot: PathBuf,
    /// The numbers.
    pub numbers: PathBuf,
}

/// Runs it and writes what came out; true if all came out as the founding document and this project say.
pub fn run(options: &Options) -> Result<bool> {
    let setting = Setting::new(options)?;
    println!("{} files, {} bytes; {} kbit/s", setting.files, setting.bytes, options.kilobits);
    let mut all: Vec<Measured> = Vec::new();
    for round in 0..options.rounds {
        for (i, scenario) in SCENARIOS.iter().enumerate() {
            let measured = setting.measure(scenario, options)?;
            println!("{:>3} {}", round + 1, measured.line(scenario.name));
            match all.get_mut(i) {
                Some(best) => best.keep_best(&measured),
                None => all.push(measured),
            }
        }
    }
    let page = Page { options, setting: &setting, measured: &all };
    let write = |path: &PathBuf, text: String| std::fs::write(path, text).with_context(|| path.display().to_string());
    write(&options.numbers, page.numbers())?;
    write(&options.plot, plot::svg(&all))?;
    write(&options.page, page.text())?;
    let claims = page.claims();
    claims.iter().for_each(|claim| println!("{}: {}", claim.what, if claim.holds { "holds" } else { "DOES NOT HOLD" }));
    Ok(claims.iter().all(|claim| claim.holds))
}
