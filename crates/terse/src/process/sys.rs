//! The few calls of the C library that have no safe face: forking, the user database, descriptors known by number.
//!
//! Invariant: the only module of this crate with unsafe code.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::{io, ptr};

/// Return value of [`fork`] in each of the two processes.
#[derive(Debug)]
pub enum Forked {
    /// To the process that called: the new one's number.
    Parent(rustix::process::Pid),
    /// To the new process.
    Child,
}

/// Splits the process in two.
///
/// # Errors
/// The kernel's error, and [`io::ErrorKind::Unsupported`] when other threads run: they would be missing in the new process, with
/// the locks that they held.
pub fn fork() -> io::Result<Forked> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "other threads run already"));
    }
    // SAFETY: no other thread runs, so the child finds every lock and the allocator as this thread left them.
    let pid = unsafe { libc::fork() };
    match rustix::process::Pid::from_raw(pid) {
        Some(_) if pid < 0 => Err(io::Error::last_os_error()),
        Some(child) => Ok(Forked::Parent(child)),
        None => Ok(Forked::Child),
    }
}

/// Gives freed memory that the allocator keeps back to the system.
pub fn give_memory_back() {
    // SAFETY: the name is a text of C, and the call takes and gives no value. The allocator has locks of its own, and moves nothing that
    // is in use.
    unsafe {
        tikv_jemalloc_sys::mallctl(ALL_ARENAS.as_ptr(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), 0);
    }
}

/// Command that has jemalloc give back the memory of all arenas: 4096 is `MALLCTL_ARENAS_ALL`.
const ALL_ARENAS: &CStr = c"arena.4096.purge";

/// Returns a second descriptor, closed on `exec`, of what the process has inherited under a number.
///
/// # Errors
/// `EBADF` when nothing is open under it.
pub fn duplicate(number: RawFd) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the borrow ends with this call, which fails with EBADF when nothing is open under the number.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(inherited, 3)?)
}

/// Closes a descriptor that the process has inherited under a number.
pub fn close_inherited(number: RawFd) {
    // SAFETY: called for numbers of inherited sockets alone, which no value in this process owns: all use duplicates. Closing a
    // number that is not open fails with EBADF and changes nothing.
    unsafe { libc::close(number) };
}

/// Lets a socket listen on addresses that are not this machine's (`IP_TRANSPARENT`).
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN` or `CAP_NET_RAW`.
pub fn set_transparent(socket: impl AsFd, v6: bool) -> io::Result<()> {
    match v6 {
        false => set_option(socket.as_fd(), libc::SOL_IP, libc::IP_TRANSPARENT, 1),
        true => set_option(socket.as_fd(), libc::SOL_IPV6, libc::IPV6_TRANSPARENT, 1),
    }
}

/// Accepts only connections that have sent something (`TCP_DEFER_ACCEPT`).
///
/// # Errors
/// The kernel's error.
pub fn set_defer_accept(socket: impl AsFd) -> io::Result<()> {
    set_option(socket.as_fd(), libc::SOL_TCP, libc::TCP_DEFER_ACCEPT, 1)
}

/// Keeps the packets that open connections (`TCP_SAVE_SYN`): 1 from the IP header on, 2 from the Ethernet header on.
///
/// # Errors
/// The kernel's error.
pub fn set_save_syn(socket: impl AsFd, mode: u8) -> io::Result<()> {
    set_option(socket.as_fd(), libc::SOL_TCP, TCP_SAVE_SYN, mode.into())
}

/// Linux's number, of `include/uapi/linux/tcp.h`.
const TCP_SAVE_SYN: i32 = 27;

/// Takes data in a connection's first packet (`TCP_FASTOPEN`), of at most `pending` connections at a time.
///
/// # Errors
/// The kernel's error.
pub fn set_fast_open(socket: impl AsFd, pending: i32) -> io::Result<()> {
    set_option(socket.as_fd(), libc::SOL_TCP, libc::TCP_FASTOPEN, pending)
}

fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the descriptor is borrowed for the call, and the value is an integer of the length that is given.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The number of a user by its name.
pub fn user(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut buffer = vec![0 as libc::c_char; RECORD_BYTES];
    let mut record = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and the buffer's length is its own.
    let error = unsafe { libc::getpwnam_r(name.as_ptr(), record.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found) };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: `found` is not null, so the call has filled the record.
    Some(unsafe { record.assume_init() }.pw_uid)
}

/// The number of a group by its name.
pub fn group(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let mut buffer = vec![0 as libc::c_char; RECORD_BYTES];
    let mut record = std::mem::MaybeUninit::<libc::group>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and the buffer's length is its own.
    let error = unsafe { libc::getgrnam_r(name.as_ptr(), record.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &mut found) };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: `found` is not null, so the call has filled the record.
    Some(unsafe { record.assume_init() }.gr_gid)
}

/// Enough for a group of thousands of members.
const RECORD_BYTES: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_zero() {
        assert_eq!(user("root"), Some(0));
        assert_eq!(group("root"), Some(0));
        assert_eq!(user("no such user"), None);
        assert_eq!(group("a\0b"), None);
    }

    #[test]
    fn only_what_is_open_can_be_duplicated() {
        assert!(duplicate(1).is_ok());
        for closed in [-1, 9999] {
            assert_eq!(duplicate(closed).unwrap_err().raw_os_error(), Some(libc::EBADF));
        }
    }
}
