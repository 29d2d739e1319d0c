//! The file that holds the process's number.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes the process's number and a line's end. The file is made anew: no link is followed and no reader sees half a number of the
/// process before. It stays when the process ends, as HAProxy's does, because by then another process may have written it.
///
/// # Errors
/// The system's error.
pub fn write(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_old_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pid");
        std::fs::write(&path, "123456789\n").unwrap();
        super::write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        assert!(super::write(&folder.path().join("no/pid")).is_err());
    }
}
