//! The kernel's figures of a TCP connection.

#![allow(unsafe_code)]

use std::mem::{MaybeUninit, size_of};
use std::os::fd::RawFd;

/// A part of `struct tcp_info`.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    /// The smoothed round trip, in microseconds.
    pub rtt_us: u32,
    /// Its mean deviation.
    pub rttvar_us: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Segments acknowledged selectively.
    pub sacked: u32,
    /// Segments taken for lost.
    pub lost: u32,
    /// Segments on their way for another time.
    pub retransmitted: u32,
    /// Segments up to the highest that was acknowledged selectively.
    pub fackets: u32,
    /// Limit of the reordering of segments before a segment is taken for lost.
    pub reordering: u32,
}

/// The figures of a connection's descriptor; `None` when it is no TCP socket. A descriptor that was closed names nothing, or
/// another socket: the figures may then be another connection's, and nothing worse.
pub fn tcp_info(descriptor: RawFd) -> Option<TcpInfo> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is the size of the memory that the pointer leads to. A
    // descriptor that is not open is an error, and no option of a socket can be read from anything else.
    let read = unsafe { libc::getsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut length) };
    if read != 0 {
        return None;
    }
    // SAFETY: it was zero before, which is a value of each of its integers, and the kernel writes integers.
    let info = unsafe { info.assume_init() };
    Some(TcpInfo {
        rtt_us: info.tcpi_rtt,
        rttvar_us: info.tcpi_rttvar,
        unacked: info.tcpi_unacked,
        sacked: info.tcpi_sacked,
        lost: info.tcpi_lost,
        retransmitted: info.tcpi_retrans,
        fackets: info.tcpi_fackets,
        reordering: info.tcpi_reordering,
    })
}

/// The packet that opened a client's connection, from the IP header on or, as the listener's setting may be, from the
/// Ethernet header on (`TCP_SAVED_SYN`). The kernel gives it once. `None` when it was not kept, or was given before.
pub fn saved_syn(descriptor: RawFd) -> Option<Vec<u8>> {
    let mut packet = vec![0; SYN_BYTES];
    let mut length = packet.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, which is the size of the memory that the pointer leads to. A
    // descriptor that is not open is an error, and no option of a socket can be read from anything else.
    let read = unsafe { libc::getsockopt(descriptor, libc::IPPROTO_TCP, TCP_SAVED_SYN, packet.as_mut_ptr().cast(), &mut length) };
    packet.truncate(length as usize);
    (read == 0 && !packet.is_empty()).then_some(packet)
}

/// The most bytes of such a packet: headers of Ethernet with tags, of IP with all options, of TCP with all options; no data is kept.
const SYN_BYTES: usize = 512;
/// Linux's number, of `include/uapi/linux/tcp.h`.
const TCP_SAVED_SYN: libc::c_int = 28;

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn of_connections_alone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(tcp_info(client.as_raw_fd()).is_some_and(|info| info.rtt_us > 0 && info.lost == 0));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(tcp_info(file.as_raw_fd()).is_none());
        assert!(tcp_info(-1).is_none());
    }
}
