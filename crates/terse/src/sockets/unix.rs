//! Unix sockets with a path.
//!
//! A path that is in use belongs to the process before until this one is ready: the socket comes up as `<path>.<pid>.tmp`, with its
//! owner and permissions, already listening, and is then renamed. There is no moment without a socket that listens under the path.

use super::open::new;
use socket2::{Domain, SockAddr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// The owner and permissions of a socket's file; `None`: the system's choice.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct FileOptions {
    /// Permissions, such as 0o660.
    pub mode: Option<u32>,
    /// The owner's number.
    pub user: Option<u32>,
    /// The group's number.
    pub group: Option<u32>,
}

/// A socket that listens under another name. Dropped unpublished, it takes that name away.
#[derive(Debug)]
pub struct Pending {
    temporary: PathBuf,
    path: PathBuf,
}

/// Opens a socket under its temporary name.
pub(super) fn open(path: &Path, backlog: i32, file: &FileOptions) -> Result<(OwnedFd, Pending), (&'static str, io::Error)> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    remove(&temporary).map_err(|e| ("error when trying to unlink previous UNIX socket", e))?;
    let socket = new(Domain::UNIX)?;
    let address = SockAddr::unix(&temporary).map_err(|e| ("cannot bind UNIX socket", e))?;
    socket.bind(&address).map_err(|e| ("cannot bind UNIX socket", e))?;
    let pending = Pending { temporary, path: path.to_owned() };
    pending.own(file).map_err(|e| ("cannot change UNIX socket ownership", e))?;
    socket.listen(backlog).map_err(|e| ("cannot listen to socket", e))?;
    Ok((socket.into(), pending))
}

impl Pending {
    /// Gives the socket its name.
    pub(super) fn publish(mut self) -> Result<(), (PathBuf, io::Error)> {
        std::fs::rename(&self.temporary, &self.path).map_err(|error| (self.path.clone(), error))?;
        self.temporary = PathBuf::new();
        Ok(())
    }

    fn own(&self, file: &FileOptions) -> io::Result<()> {
        if file.user.is_some() || file.group.is_some() {
            chown(&self.temporary, file.user, file.group)?;
        }
        if let Some(mode) = file.mode {
            std::fs::set_permissions(&self.temporary, std::fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_its_line_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let (_socket, pending) = open(&path, 10, &FileOptions { mode: Some(0o640), ..FileOptions::default() }).unwrap();
        pending.publish().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
