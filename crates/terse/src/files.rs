//! The files that `-f` names, read in order.

use std::io::{self, Read as _};
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use terse_config::Source;
use terse_sample::PatternFiles;

/// A file or folder that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("Cannot open configuration file/directory {} : {error}", path.display())]
pub struct Unreadable {
    path: PathBuf,
    error: io::Error,
}

/// Reads files; of folders, the files whose names end in `.cfg` and do not begin with a dot, in the order of their names' bytes.
///
/// # Errors
/// All files that cannot be read.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Source>, Vec<Unreadable>> {
    let mut sources = Vec::new();
    let mut missing = Vec::new();
    for path in paths {
        match list(path) {
            Ok(files) => {
                for file in files {
                    match std::fs::read(&file) {
                        Ok(bytes) => sources.push(Source { name: file.to_string_lossy().into_owned(), bytes }),
                        Err(error) => missing.push(Unreadable { path: file, error }),
                    }
                }
            }
            Err(error) => missing.push(Unreadable { path: path.clone(), error }),
        }
    }
    if missing.is_empty() { Ok(sources) } else { Err(missing) }
}

/// Files that lines of the configuration name, such as lists of patterns.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

/// Reads a file of at most `most` bytes: an endless file, such as a device, must not fill the memory.
///
/// # Errors
/// It cannot be read, or is larger.
pub fn bounded(name: &str, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    std::fs::File::open(name).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > most { Err(format!("it has more than {most} bytes")) } else { Ok(bytes) }
}

impl PatternFiles for Disk {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        bounded(name, FILE_BYTES).map_err(|reason| format!("failed to open file '{name}' : {reason}"))
    }

    fn read_at_most(&self, name: &str, most: u64) -> Result<Vec<u8>, String> {
        bounded(name, most)
    }

    fn resolve(&self, host: &str) -> Option<Ipv4Addr> {
        // The system's look-up takes a port with the name.
        let addresses = (host, 0).to_socket_addrs().ok()?;
        addresses.into_iter().find_map(|address| match address.ip() {
            IpAddr::V4(v4) => Some(v4),
            IpAddr::V6(_) => None,
        })
    }
}

/// The longest file that a line of the configuration may name: a map of millions of entries.
const FILE_BYTES: u64 = 1 << 30;

fn list(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let listed = name.to_str().is_some_and(|name| name.ends_with(".cfg") && !name.starts_with('.'));
        if listed && std::fs::metadata(entry.path()).is_ok_and(|found| found.is_file()) {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_cfg_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["20-b.cfg", "10-a.cfg", "A.cfg", ".hidden.cfg", "notes.txt"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        std::fs::create_dir(folder.path().join("z.cfg")).unwrap();
        let last = folder.path().join("notes.txt");
        let read = read(&[folder.path().to_owned(), last]).unwrap();
        let texts: Vec<_> = read.iter().map(|s| String::from_utf8_lossy(&s.bytes).into_owned()).collect();
        assert_eq!(texts, ["10-a.cfg", "20-b.cfg", "A.cfg", "notes.txt"]);
    }

    #[test]
    fn all_that_cannot_be_read_is_named() {
        let missing = read(&["/nonexistent/a".into(), "/nonexistent/b".into()]).unwrap_err();
        assert_eq!(missing.len(), 2);
        assert!(missing[0].to_string().starts_with("Cannot open configuration file/directory /nonexistent/a : No such file"));
    }
}
