//! Taking a process's listening sockets by its number.
//!
//! `pidfd_getfd(2)` (Linux 5.6) duplicates another process's descriptor where tracing it would be allowed. The operator has named the
//! process as the one to be replaced, so its listeners are what this one is to serve.

use crate::sockets::Pool;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::io;

/// Adds a duplicate of everything that the process listens on to the pool.
///
/// # Errors
/// The process is gone, or the kernel does not allow it.
pub fn borrow(pid: Pid, pool: &mut Pool) -> io::Result<()> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    for entry in std::fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()))? {
        let entry = entry?;
        let is_socket = std::fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"));
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()).filter(|_| is_socket) else { continue };
        match pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) {
            Ok(socket) => {
                let interface = socket2::SockRef::from(&socket).device().ok().flatten();
                pool.add(socket, interface.map(|name| String::from_utf8_lossy(&name).into_owned()));
            }
            // It was closed in between.
            Err(rustix::io::Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_gone_gives_nothing() {
        assert!(borrow(Pid::from_raw(i32::MAX).unwrap(), &mut Pool::default()).is_err());
    }
}
