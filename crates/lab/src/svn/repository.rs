//! The tree that is checked out: sources, pages and data as a project has them, and some files that are compressed already.

use crate::content::rng::Rng;
use crate::content::{page, records, script};
use anyhow::{Context, Result};
use std::path::Path;

/// Writes `files` files below a folder; returns their size in bytes.
pub(super) fn write(folder: &Path, files: usize) -> Result<u64> {
    let mut rng = Rng::new(SEED);
    let mut bytes = 0;
    for number in 0..files {
        let place = folder.join(format!("module{:02}/part{}", number / 50, number / 10 % 5));
        std::fs::create_dir_all(&place)?;
        let size = size(&mut rng);
        let seed = rng.number();
        let (name, content) = match rng.below(100) {
            0..75 => (format!("unit{number}.js"), with_licence("//", &script::script(seed, size, usize::MAX / 2).bytes)),
            75..87 => (format!("text{number}.html"), page::page(seed, size).bytes),
            87..95 => (format!("data{number}.json"), records::records(seed, size / 150 + 1).bytes),
            _ => (format!("picture{number}.png"), noise(&mut rng, size / 2)),
        };
        bytes += content.len() as u64;
        let path = place.join(name);
        std::fs::write(&path, content).with_context(|| path.display().to_string())?;
    }
    Ok(bytes)
}

const SEED: u64 = 20_120_110;

/// Most files are small, and most bytes are in large ones: from 1 KB to 60 KB, each doubling as often as the next.
fn size(rng: &mut Rng) -> usize {
    let part = rng.below(1_000_000) as f64 / 1e6;
    (1000.0 * 60f64.powf(part)) as usize
}

/// Bytes like those of a format that compresses.
fn noise(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let mut content = b"\x89PNG\r\n\x1a\n".to_vec();
    while content.len() < bytes {
        content.extend_from_slice(&rng.number().to_le_bytes());
    }
    content
}

fn with_licence(comment: &str, content: &[u8]) -> Vec<u8> {
    let licence: String = LICENCE.lines().map(|line| format!("{comment} {line}\n")).collect();
    [licence.as_bytes(), b"\n", content].concat()
}

const LICENCE: &str = "Copyright of those who wrote it, as the file AUTHORS has them.

Everybody may use, copy, change and pass on this program and its description, for any purpose and without a fee, as long as this
note and the list of its authors stay with every copy of it, whole or in parts, and whoever changes it says what was changed.

It comes as it is. Nobody promises that it is fit for anything, that it does no harm, or that it infringes on the rights of nobody;
and nobody who wrote it or passed it on answers for what comes of its use, even where it was said that this might come of it.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_tree_each_time() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bytes = write(one.path(), 60).unwrap();
        assert_eq!(write(other.path(), 60).unwrap(), bytes);
        assert!((200_000..3_000_000).contains(&bytes), "{bytes}");
        let read = |at: &Path| std::fs::read(at.join("module00/part0/unit0.js")).ok();
        assert_eq!(read(one.path()), read(other.path()));
    }
}
