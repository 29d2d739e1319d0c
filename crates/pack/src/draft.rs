//! A file before it has its name.
//!
//! Output is written to a file without any name (`O_TMPFILE`). The file gets its name when its data, mode, owner and
//! times are on the disk. If the process ends before, nothing is left of it. On file systems without such files it gets
//! a temporary, unused name in the same folder, and SIGINT, SIGTERM and SIGHUP remove it ([`crate::interrupt`]).

use crate::interrupt;
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file before it is published under its name.
pub struct Draft {
    file: File,
    name: PathBuf,
    folder: PathBuf,
    /// Temporary name, if it needs one.
    temporary: Option<PathBuf>,
}

/// Attributes that a finished file takes over from its source.
pub struct Attributes {
    mode: u32,
    owner: u32,
    group: u32,
    accessed: Timespec,
    modified: Timespec,
}

impl Attributes {
    /// Attributes of a file.
    pub fn of(metadata: &Metadata) -> Attributes {
        Attributes {
            mode: metadata.mode() & 0o777,
            owner: metadata.uid(),
            group: metadata.gid(),
            accessed: Timespec { tv_sec: metadata.atime(), tv_nsec: metadata.atime_nsec() },
            modified: Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() },
        }
    }

    /// Returns the attributes with another time of change, in seconds since 1970.
    pub fn with_time(self, time: u32) -> Attributes {
        Attributes { modified: Timespec { tv_sec: time.into(), tv_nsec: 0 }, ..self }
    }
}

impl Draft {
    /// Creates a draft of `name`, in its folder.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(name: &Path) -> io::Result<Draft> {
        let folder = match name.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let nameless = match Path::new(NAMELESS).exists() {
            true => rustix::fs::open(&folder, flags | OFlags::TMPFILE, PRIVATE),
            false => Err(Errno::OPNOTSUPP),
        };
        let (file, temporary) = match nameless {
            Ok(file) => (file, None),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let (file, temporary) = named(&folder, name, flags)?;
                (file, Some(temporary))
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Draft { file: File::from(file), name: name.to_owned(), folder, temporary })
    }

    /// File to write to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its name, once all of it is on the disk. An existing file of that name is replaced if
    /// `overwrites`.
    ///
    /// # Errors
    /// The system's error; `AlreadyExists` when another process took the name.
    pub fn publish(mut self, attributes: Option<&Attributes>, overwrites: bool) -> io::Result<()> {
        match attributes {
            Some(attributes) => self.take_over(attributes)?,
            // Mode of a shell's redirection.
            None => rustix::fs::fchmod(&self.file, Mode::from_raw_mode(0o666 & !umask()))?,
        }
        self.file.sync_all()?;
        match (self.temporary.take(), overwrites) {
            (None, false) => self.link(&self.name)?,
            (None, true) => match self.link(&self.name) {
                Err(Errno::EXIST) => {
                    let temporary = self.linked_beside()?;
                    rename_over(&temporary, &self.name)?;
                }
                other => other?,
            },
            (Some(temporary), true) => rename_over(&temporary, &self.name)?,
            (Some(temporary), false) => rename(&temporary, &self.name)?,
        }
        File::open(&self.folder)?.sync_all()
    }

    /// Takes over mode, owner and times, as far as the system allows.
    fn take_over(&self, attributes: &Attributes) -> io::Result<()> {
        let (owner, group) = (Uid::from_raw(attributes.owner), Gid::from_raw(attributes.group));
        let mut mode = attributes.mode;
        if rustix::fs::fchown(&self.file, Some(owner), Some(group)).is_err()
            && rustix::fs::fchown(&self.file, None, Some(group)).is_err()
        {
            // The old group's permissions are not for another group.
            mode &= 0o707;
        }
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?;
        let times = Timestamps { last_access: attributes.accessed, last_modification: attributes.modified };
        Ok(rustix::fs::futimens(&self.file, &times)?)
    }

    /// Gives the file an unused name.
    fn link(&self, name: &Path) -> Result<(), Errno> {
        let nameless = format!("{NAMELESS}/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, nameless, CWD, name, AtFlags::SYMLINK_FOLLOW)
    }

    fn linked_beside(&self) -> io::Result<PathBuf> {
        for attempt in 0..ATTEMPTS {
            let temporary = beside(&self.folder, &self.name, attempt);
            match self.link(&temporary) {
                Ok(()) => return Ok(temporary),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            remove(temporary);
        }
    }
}

/// Path of descriptors, by which files without a name are linked.
const NAMELESS: &str = "/proc/self/fd";
/// Mode until it is finished: no other user reads it.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);
/// Limit of names that are tried.
const ATTEMPTS: u32 = 100;

/// A file with a name of its own.
fn named(folder: &Path, name: &Path, flags: OFlags) -> io::Result<(rustix::fd::OwnedFd, PathBuf)> {
    for attempt in 0..ATTEMPTS {
        let temporary = beside(folder, name, attempt);
        interrupt::guard(&temporary)?;
        match rustix::fs::open(&temporary, flags | OFlags::CREATE | OFlags::EXCL, PRIVATE) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) => {
                interrupt::release(&temporary);
                if error != Errno::EXIST {
                    return Err(error.into());
                }
            }
        }
    }
    Err(Errno::EXIST.into())
}

/// A name in the same folder that shows its origin.
fn beside(folder: &Path, name: &Path, attempt: u32) -> PathBuf {
    let mut short: Vec<u8> = name.file_name().map_or_else(Vec::new, |name| name.as_encoded_bytes().to_vec());
    // The longest name that file systems have is 255 bytes.
    short.truncate(200);
    let short = String::from_utf8_lossy(&short).replace('\u{fffd}', "_");
    folder.join(format!(".{short}.{}.{attempt}", std::process::id()))
}

fn rename_over(temporary: &Path, name: &Path) -> io::Result<()> {
    let renamed = std::fs::rename(temporary, name);
    if renamed.is_err() {
        remove(temporary);
    }
    interrupt::release(temporary);
    renamed
}

/// Renames to an unused name.
fn rename(temporary: &Path, name: &Path) -> io::Result<()> {
    let renamed = match rustix::fs::renameat_with(CWD, temporary, CWD, name, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => std::fs::hard_link(temporary, name).map(|()| remove(temporary)),
        other => other.map_err(io::Error::from),
    };
    if renamed.is_err() {
        remove(temporary);
    }
    interrupt::release(temporary);
    renamed
}

/// A file that cannot be removed now could not be removed later either.
fn remove(temporary: &Path) {
    let _ = std::fs::remove_file(temporary);
    interrupt::release(temporary);
}

fn umask() -> u32 {
    let mask = rustix::process::umask(Mode::empty());
    rustix::process::umask(mask);
    mask.as_raw_mode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    fn files(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A draft, or one on a file system without nameless files.
    fn draft(name: &Path, nameless: bool) -> Draft {
        if nameless {
            return Draft::new(name).unwrap();
        }
        let folder = name.parent().unwrap().to_owned();
        let (file, temporary) = named(&folder, name, OFlags::WRONLY).unwrap();
        Draft { file: File::from(file), name: name.to_owned(), folder, temporary: Some(temporary) }
    }

    #[test]
    fn a_name_appears_with_the_whole_file_or_never() {
        for nameless in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let name = folder.path().join("file");
            let mut abandoned = draft(&name, nameless);
            abandoned.file().write_all(b"half").unwrap();
            assert!(!name.exists());
            drop(abandoned);
            assert!(files(folder.path()).is_empty(), "nothing is left of what was given up");

            let source = folder.path().join("source");
            std::fs::write(&source, "x").unwrap();
            std::fs::set_permissions(&source, PermissionsExt::from_mode(0o640)).unwrap();
            let attributes = Attributes::of(&source.metadata().unwrap()).with_time(1_000_000_000);
            let mut kept = draft(&name, nameless);
            kept.file().write_all(b"whole").unwrap();
            kept.publish(Some(&attributes), false).unwrap();
            let metadata = name.metadata().unwrap();
            assert_eq!((metadata.mode() & 0o7777, metadata.mtime()), (0o640, 1_000_000_000));

            let error = draft(&name, nameless).publish(None, false).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(&name).unwrap(), b"whole", "what was there stays");

            let mut second = draft(&name, nameless);
            second.file().write_all(b"second").unwrap();
            second.publish(None, true).unwrap();
            assert_eq!(std::fs::read(&name).unwrap(), b"second");
            assert_eq!(files(folder.path()), ["file", "source"]);
        }
    }
}
