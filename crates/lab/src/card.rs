//! Results for the test card: made beforehand, so that the card itself takes hardly any of the processor's time.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use terse_testcard::results::Made;

/// Files and settings to make results from.
#[derive(Clone, Debug)]
pub struct Options {
    /// File for the results: the card's `TERSE_TESTCARD_RESULTS`.
    pub results: PathBuf,
    /// libdeflate's level.
    pub level: i32,
    /// Size of pieces in which files are also taken, as by programs that cut them for several threads; `None`: whole only.
    pub chunk_bytes: Option<usize>,
    /// Files whose contents are bodies.
    pub files: Vec<PathBuf>,
}

/// Makes the results.
///
/// # Errors
/// A file cannot be read or written.
pub fn run(options: &Options) -> Result<bool> {
    std::fs::create_dir_all(&options.results).with_context(|| options.results.display().to_string())?;
    for file in &options.files {
        let body = std::fs::read(file).with_context(|| file.display().to_string())?;
        let mut made = keep(&options.results, &body, options.level)?;
        if let Some(bytes) = options.chunk_bytes {
            made = 0;
            for chunk in body.chunks(bytes.max(1)) {
                made += keep(&options.results, chunk, options.level)?;
            }
        }
        println!("{}: {} bytes, {made} compressed", file.display(), body.len());
    }
    Ok(true)
}

/// Makes the result of one body; returns its length in bytes.
///
/// # Errors
/// It cannot be written.
pub fn keep(results: &Path, body: &[u8], level: i32) -> Result<usize> {
    let made = Made::new(body, level);
    made.write(results, body).with_context(|| results.display().to_string())?;
    Ok(made.stream.len())
}
