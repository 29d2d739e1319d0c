//! Identity of the process: user, group, root folder, and the rights that it gives up.
//!
//! All of this happens while one thread runs: the kernel keeps identities for each thread, and threads inherit from the thread that
//! starts them.

use super::settings::{Account, ProcessSettings, Who};
use super::sys;
use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io;
use std::path::Path;
use terse_config::Diagnostics;

/// User and group to become.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The user's number.
    pub user: Option<u32>,
    /// The group's number.
    pub group: Option<u32>,
}

/// A step that failed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The root folder.
    #[error("Cannot chroot({path}): {error}.")]
    Root {
        /// The folder.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// The group.
    #[error("Cannot set gid {0}: {1}.")]
    Group(u32, io::Error),
    /// The user.
    #[error("Cannot set uid {0}: {1}.")]
    User(u32, io::Error),
    /// The rights to keep.
    #[error("Cannot keep the rights that 'setcap' names: {0}.")]
    Rights(io::Error),
}

/// A user or a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A user.
    User,
    /// A group.
    Group,
}

/// The number of an account. A name that does not exist is an alert at its place.
pub fn look_up(account: &Account, kind: Kind, diagnostics: &mut Diagnostics) -> Option<u32> {
    let (found, kind) = match (&account.who, kind) {
        (Who::Number(number), _) => return Some(*number),
        (Who::Name(name), Kind::User) => (sys::user(name), "user"),
        (Who::Name(name), Kind::Group) => (sys::group(name), "group"),
    };
    if let (None, Who::Name(name)) = (found, &account.who) {
        diagnostics.alert(&account.place, format!("cannot find {kind} id for '{name}'"));
    }
    found
}

impl Identity {
    /// Looks the names up. Unknown ones are alerts at their place.
    pub fn resolve(user: Option<&Account>, group: Option<&Account>, diagnostics: &mut Diagnostics) -> Identity {
        Identity {
            user: user.and_then(|account| look_up(account, Kind::User, diagnostics)),
            group: group.and_then(|account| look_up(account, Kind::Group, diagnostics)),
        }
    }

    /// True if it becomes a user without root's rights.
    pub fn leaves_root(&self) -> bool {
        self.user.is_some_and(|user| user != 0)
    }

    /// Becomes the group, then the user, and keeps these rights of root. Without rights to change, being them already is enough.
    ///
    /// # Errors
    /// The first step that the kernel refuses.
    pub fn assume(&self, kept: Option<CapabilitySet>) -> Result<(), Refusal> {
        let kept = kept.filter(|_| self.leaves_root());
        if kept.is_some() {
            rustix::thread::set_keep_capabilities(true).map_err(|error| Refusal::Rights(error.into()))?;
        }
        if let Some(group) = self.group {
            // Supplementary groups are dropped where that is allowed; without rights they are those that the starter chose.
            let _ = rustix::thread::set_thread_groups(&[]);
            let gid = Gid::from_raw(group);
            rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(|error| Refusal::Group(group, error.into()))?;
        }
        if let Some(user) = self.user {
            let uid = Uid::from_raw(user);
            rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(|error| Refusal::User(user, error.into()))?;
        }
        if let Some(kept) = kept {
            let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
            rustix::thread::set_capabilities(None, sets).map_err(|error| Refusal::Rights(error.into()))?;
        }
        Ok(())
    }
}

/// Makes a folder the root of all paths. `auto` is an empty folder that is gone as soon as it is entered.
///
/// # Errors
/// [`Refusal::Root`].
pub fn enter_root(path: &str) -> Result<(), Refusal> {
    let refused = |error: io::Error| Refusal::Root { path: path.to_owned(), error };
    match path {
        "/" => {}
        "auto" => enter_empty_root().map_err(refused)?,
        _ => rustix::process::chroot(path).map_err(|error| refused(error.into()))?,
    }
    std::env::set_current_dir("/").map_err(refused)
}

/// Gives up for good the rights that a process may gain by starting others. Sets whether the kernel may write its memory to a file.
///
/// `guarded`: a library runs beside it in a process of the same user, which could write to this one's memory while that can be
/// dumped.
///
/// # Errors
/// The kernel's error; nothing depends on it.
pub fn settle_rights(settings: &ProcessSettings, guarded: bool) -> io::Result<()> {
    if settings.dumpable {
        let unlimited = rustix::process::Rlimit { current: None, maximum: None };
        let _ = rustix::process::setrlimit(rustix::process::Resource::Core, unlimited);
        let _ = rustix::process::setrlimit(rustix::process::Resource::Fsize, unlimited);
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?;
    } else if guarded {
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    }
    if !settings.may_gain_rights {
        rustix::thread::set_no_new_privs(true)?;
    }
    Ok(())
}

fn enter_empty_root() -> io::Result<()> {
    let name = format!("/tmp/terse.{}", std::process::id());
    let path = Path::new(&name);
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(path)?;
    let entered = std::env::set_current_dir(path);
    let removed = std::fs::remove_dir(path);
    entered.and(removed)?;
    Ok(rustix::process::chroot(".")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use terse_config::{Place, Severity};

    fn named(name: &str) -> Account {
        Account { who: Who::Name(name.into()), place: Place { file: "t".into(), line: 1, text: "user x".into(), span: 5..6 } }
    }

    #[test]
    fn names_become_numbers() {
        let mut diagnostics = Diagnostics::default();
        let root = Identity::resolve(Some(&named("root")), Some(&named("root")), &mut diagnostics);
        assert_eq!(root, Identity { user: Some(0), group: Some(0) });
        assert_eq!(diagnostics.worst(), None);
    }

    #[test]
    fn unknown_names_are_alerts() {
        let mut diagnostics = Diagnostics::default();
        Identity::resolve(Some(&named("no-such-user")), Some(&named("no-such-group")), &mut diagnostics);
        let reasons: Vec<_> = diagnostics.iter().map(|d| (d.severity, d.reason.as_str())).collect();
        let expected = ["cannot find user id for 'no-such-user'", "cannot find group id for 'no-such-group'"];
        assert_eq!(reasons, expected.map(|reason| (Severity::Alert, reason)));
    }
}
