//! Bodies: pieces of files of packages from npm, which were not written for this.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// A body in a file, which programs of others read, and in memory.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
}

/// A kind of bodies, and where they are.
pub(crate) struct Kind {
    /// The name in tables, and the end of the files' names.
    pub(crate) name: &'static str,
    /// Files and folders below the folder of packages.
    places: &'static [&'static str],
}

/// The packages and versions are those that `scripts/frontier` fetches.
pub(crate) const KINDS: [Kind; 6] = [
    Kind {
        name: "js",
        places: &[
            "react-dom/umd/react-dom.production.min.js",
            "mathjs/lib/browser/math.js",
            "video.js/dist/video.js",
            "lodash/lodash.js",
        ],
    },
    Kind {
        name: "css",
        places: &["bulma/css/bulma.css", "foundation-sites/dist/css/foundation.css", "tailwindcss/dist/tailwind.min.css"],
    },
    Kind { name: "html", places: &["npm/docs/output/commands", "npm/docs/output/using-npm", "npm/docs/output/configuring-npm"] },
    Kind { name: "json", places: &["mime-db/db.json", "emojibase-data/en/data.json", "@mdn/browser-compat-data/data.json"] },
    Kind { name: "svg", places: &["flag-icons/flags/4x3", "@fortawesome/fontawesome-free/svgs/brands"] },
    Kind {
        name: "wasm",
        places: &["sql.js/dist/sql-wasm.wasm", "canvaskit-wasm/bin/canvaskit.wasm", "source-map/lib/mappings.wasm"],
    },
];

/// Limit of the bodies in a set.
const BODIES: usize = 4;

impl Kind {
    /// The contents of its places: of a file, or of all the files of a folder, one after the other.
    pub(crate) fn files(&self, packages: &Path) -> Result<Vec<Vec<u8>>> {
        let read = |path: &Path| fs::read(path).with_context(|| path.display().to_string());
        let mut all = Vec::new();
        for place in self.places {
            let path = packages.join(place);
            if !path.is_dir() {
                all.push(read(&path)?);
                continue;
            }
            let mut names: Vec<PathBuf> = fs::read_dir(&path)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
            names.retain(|name| name.extension().is_some_and(|end| end == self.name));
            names.sort();
            if names.is_empty() {
                bail!("{}: no file ends in .{}", path.display(), self.name);
            }
            let contents: Vec<Vec<u8>> = names.iter().map(|name| read(name.as_path())).collect::<Result<_>>()?;
            all.push(contents.concat());
        }
        Ok(all)
    }
}

/// Bodies of a size, written to files: a piece from the middle of each of the contents that is as long, so that a licence at the beginning
/// is not all that a small body holds. Shorter contents follow each other until they are long enough.
pub(crate) fn write(kind: &str, contents: &[Vec<u8>], size: usize, folder: &Path) -> Result<Vec<Body>> {
    let mut long: Vec<&[u8]> = contents.iter().map(Vec::as_slice).filter(|bytes| bytes.len() >= size).collect();
    let joined = contents.concat();
    if long.is_empty() {
        long.push(&joined);
    }
    let mut bodies = Vec::new();
    for (number, bytes) in long.into_iter().take(BODIES).enumerate() {
        let begin = bytes.len().saturating_sub(size) / 2;
        let bytes = bytes.get(begin..begin + size).with_context(|| format!("{kind}: there are no {size} bytes of it"))?;
        let path = folder.join(format!("{kind}-{size}-{number}"));
        fs::write(&path, bytes)?;
        bodies.push(Body { path, bytes: bytes.to_vec() });
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_come_from_the_middle_and_from_all_if_each_is_short() {
        let folder = tempfile::tempdir().unwrap();
        let contents = [b"0123456789".to_vec(), b"abcd".to_vec()];
        let bytes =
            |size| write("css", &contents, size, folder.path()).map(|all| all.into_iter().map(|b| b.bytes).collect::<Vec<_>>());
        assert_eq!(bytes(4).unwrap(), [b"3456", b"abcd"]);
        assert_eq!(bytes(12).unwrap(), [b"123456789abc"]);
        assert!(bytes(15).unwrap_err().to_string().contains("no 15 bytes"));
    }
}
