//! The end of a TCP connection without notice to its peer.

#![allow(unsafe_code)]

use socket2::SockRef;
use std::mem::{MaybeUninit, size_of_val};
use std::os::fd::AsRawFd;

/// Lets the kernel forget the connection when its socket is closed, without a segment (`TCP_REPAIR`). False: the process has no
/// `CAP_NET_ADMIN`, or it is no connection of TCP.
pub fn keep_silent(socket: &SockRef<'_>) -> bool {
    // Bytes that have come are acknowledged now: a segment that its sender repeats later would be answered with a reset.
    let mut room = [MaybeUninit::uninit(); ROOM];
    for _ in 0..READS {
        if !matches!(socket.recv(&mut room), Ok(1..)) {
            break;
        }
    }
    set(socket, libc::TCP_QUICKACK) && set(socket, libc::TCP_REPAIR)
}

fn set(socket: &SockRef<'_>, option: libc::c_int) -> bool {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open as long as it is borrowed, and the kernel reads as many bytes as the integer has.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            std::ptr::from_ref(&on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    set == 0
}

/// Received bytes that are dropped at a time, and number of reads.
const ROOM: usize = 4096;
const READS: usize = 64;
