//! The founding experiment about compression in TLS, again. svn checks a repository out over a slow line: once with content coding,
//! once with compressed records, with both, with neither, and with terse's settings of today.
//!
//! ```text
//!  svn --> terse A --> relay, 4 Mbit/s --> terse B --> Apache, mod_dav_svn
//!                 \____ TLS ______________/
//! ```
//!
//! Measured are the bytes that the relay carries, the time of svn, and the cost of both proxies together. The content is made up,
//! the same on each machine; each file begins with its licence, as files of sources do.

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

/// Settings of the experiment, and files for the results.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program.
    pub terse: PathBuf,
    /// Number of files that are checked out.
    pub files: usize,
    /// Number of measurements of each scenario; the best is kept.
    pub rounds: usize,
    /// Rate of the line, each way; in kilobits per second.
    pub kilobits: u64,
    /// The page, its plot, and the table of its numbers.
    pub page: PathBuf,
    /// The plot.
    pub plot: PathBuf,
    /// The numbers.
    pub numbers: PathBuf,
}

/// Runs it and writes the results; true if all are as the founding document and this project claim.
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
