//! The first packet of a connection, as the kernel keeps it: `eth.*` of an Ethernet frame, `ip.*` of an IP packet, `tcp.*` of a
//! TCP segment (RFC 791, RFC 8200, RFC 9293).
//!
//! Invariant: a part that is not whole has no value.

use crate::argument::{ArgList, ParamKind, may};
use crate::octets::{Buffer, Octets};
use crate::registry::Converter;
use crate::value::{Type, Value};
use std::net::{Ipv4Addr, Ipv6Addr};

macro_rules! part {
    ($name:literal, $output:ident, $summary:literal, $read:expr) => {
        Converter::new($name, Type::Bin, Type::$output, $summary, |value, _, _| {
            let bytes = value.into_bytes()?;
            let read: fn(&[u8]) -> Option<Value<'static>> = $read;
            read(&bytes)
        })
    };
}

pub(crate) const CONVERTERS: &[Converter] = &[
    part!("eth.hdr", Bin, "The header of an Ethernet frame, VLANs included.", |b| bin(b.get(..eth_header(b)?)?)),
    part!("eth.data", Bin, "What an Ethernet frame carries.", |b| bin(b.get(eth_header(b)?..)?)),
    part!("eth.dst", Bin, "The six bytes of an Ethernet frame's destination.", |b| bin(b.get(..6)?)),
    part!("eth.src", Bin, "The six bytes of an Ethernet frame's source.", |b| bin(b.get(6..12)?)),
    part!("eth.proto", Int, "The EtherType of what an Ethernet frame carries.", |b| int(u16_at(b, eth_header(b)? - 2)?)),
    part!("eth.vlan", Int, "The last VLAN of an Ethernet frame.", |b| {
        let at = eth_header(b)?.checked_sub(4).filter(|at| *at > 12)?;
        int(u16_at(b, at)? & 0xfff)
    }),
    part!("ip.ver", Int, "The version of an IP packet.", |b| int(b.first()? >> 4)),
    part!("ip.hdr", Bin, "The header of an IP packet, its options and extensions included.", |b| bin(b.get(..Ip::of(b)?.header)?)),
    part!("ip.data", Bin, "What an IP packet carries.", |b| bin(b.get(Ip::of(b)?.header..)?)),
    part!("ip.df", Int, "1 when an IP packet must not be fragmented, else 0.", |b| int(Ip::of(b)?.whole)),
    part!("ip.tos", Int, "The type of service, or traffic class, of an IP packet.", |b| int(Ip::of(b)?.service)),
    part!("ip.ttl", Int, "The time to live, or hop limit, of an IP packet.", |b| int(Ip::of(b)?.ttl)),
    part!("ip.proto", Int, "The number of the protocol that an IP packet carries.", |b| int(Ip::of(b)?.protocol)),
    part!("ip.src", Addr, "The source of an IP packet.", |b| Ip::of(b)?.source(b)),
    part!("ip.dst", Addr, "The destination of an IP packet.", |b| Ip::of(b)?.destination(b)),
    Converter::new(
        "ip.fp",
        Type::Bin,
        Type::Bin,
        "A fingerprint of the host that sent an IP packet with a TCP segment.",
        |value, args, _| fingerprint(&value.into_bytes()?, args),
    )
    .params(&[may(ParamKind::Int)]),
    part!("tcp.src", Int, "The source's port of a TCP segment.", |b| int(u16_at(tcp_header(b)?, 0)?)),
    part!("tcp.dst", Int, "The destination's port of a TCP segment.", |b| int(u16_at(tcp_header(b)?, 2)?)),
    part!("tcp.seq", Int, "The sequence number of a TCP segment.", |b| int(u32_at(tcp_header(b)?, 4)?)),
    part!("tcp.flags", Int, "The eight flags of a TCP segment.", |b| int(*tcp_header(b)?.get(13)?)),
    part!("tcp.win", Int, "The window of a TCP segment, not scaled.", |b| int(u16_at(tcp_header(b)?, 14)?)),
    part!("tcp.options.mss", Int, "The largest segment that a TCP segment's sender takes; 0 when it does not say.", |b| {
        int(option(b, MSS)?.and_then(|data| u16_at(data, 0)).unwrap_or(0))
    }),
    part!("tcp.options.wscale", Int, "The scale of a TCP segment's window; 0 when it does not say.", |b| {
        int(option(b, WINDOW_SCALE)?.and_then(|data| data.first().copied()).unwrap_or(0))
    }),
    part!("tcp.options.wsopt", Int, "1 when a TCP segment says how its window is scaled, else 0.", |b| {
        int(option(b, WINDOW_SCALE)?.is_some())
    }),
    part!("tcp.options.sack", Int, "1 when a TCP segment's sender takes selective acknowledgements, else 0.", |b| {
        int(option(b, SACK_PERMITTED)?.is_some())
    }),
    part!("tcp.options.tsopt", Int, "1 when a TCP segment has a timestamp, else 0.", |b| int(option(b, TIMESTAMP)?.is_some())),
    part!("tcp.options.tsval", Int, "The timestamp of a TCP segment.", |b| int(u32_at(option(b, TIMESTAMP)??, 0)?)),
    part!("tcp.options_list", Bin, "The kinds of a TCP segment's options, a byte each.", |b| {
        let kinds: Buffer = options(tcp_header(b)?).map(|(kind, _)| kind).collect();
        Some(Value::Bin(Octets::from(kinds)))
    }),
];

const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const TIMESTAMP: u8 = 8;

fn bin(bytes: &[u8]) -> Option<Value<'static>> {
    Some(Value::Bin(Octets::copy(bytes)))
}

fn int(n: impl Into<i64>) -> Option<Value<'static>> {
    Some(Value::Int(n.into()))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..)?.first_chunk().copied()?))
}

/// The length of an Ethernet header; each VLAN adds four bytes (IEEE 802.1Q, 802.1ad).
fn eth_header(frame: &[u8]) -> Option<usize> {
    let mut at = 12;
    while matches!(u16_at(frame, at)?, 0x8100 | 0x88a8) {
        at += 4;
    }
    Some(at + 2)
}

/// Facts of the header of an IP packet, of either version.
struct Ip {
    is_v6: bool,
    /// The length of the header, options and extensions included.
    header: usize,
    /// The length of the packet.
    length: usize,
    service: u8,
    /// Whether the packet may not be fragmented; IPv6 packets never are on their way.
    whole: bool,
    ttl: u8,
    protocol: u8,
    /// Options in IPv4; in IPv6 anything but TCP or UDP after the fixed header.
    extended: bool,
}

impl Ip {
    fn of(packet: &[u8]) -> Option<Ip> {
        match packet.first()? >> 4 {
            4 => Ip::v4(packet),
            6 => Ip::v6(packet),
            _ => None,
        }
    }

    fn v4(packet: &[u8]) -> Option<Ip> {
        let header = usize::from(packet[0] & 15) * 4;
        let fixed: &[u8; 20] = packet.get(..header)?.first_chunk()?;
        Some(Ip {
            is_v6: false,
            header,
            length: u16::from_be_bytes([fixed[2], fixed[3]]).into(),
            service: fixed[1],
            whole: fixed[6] & 0x40 != 0,
            ttl: fixed[8],
            protocol: fixed[9],
            extended: header > fixed.len(),
        })
    }

    fn v6(packet: &[u8]) -> Option<Ip> {
        const TCP_OR_UDP: [u8; 2] = [6, 17];
        let fixed: &[u8; 40] = packet.first_chunk()?;
        let (mut protocol, mut header) = (fixed[6], fixed.len());
        // Hop-by-hop options, routing, fragment, authentication, destination options, mobility, HIP, shim6 (RFC 8200, RFC 7045).
        while matches!(protocol, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140) {
            let extension = packet.get(header..)?;
            header += match protocol {
                44 => 8,
                51 => usize::from(*extension.get(1)?) * 4 + 8,
                _ => usize::from(*extension.get(1)?) * 8 + 8,
            };
            protocol = *extension.first()?;
        }
        packet.get(..header)?;
        Some(Ip {
            is_v6: true,
            header,
            length: fixed.len() + usize::from(u16::from_be_bytes([fixed[4], fixed[5]])),
            service: fixed[0] << 4 | fixed[1] >> 4,
            whole: true,
            ttl: fixed[7],
            protocol,
            extended: !TCP_OR_UDP.contains(&fixed[6]),
        })
    }

    fn source_bytes<'p>(&self, packet: &'p [u8]) -> Option<&'p [u8]> {
        if self.is_v6 { packet.get(8..24) } else { packet.get(12..16) }
    }

    fn source(&self, packet: &[u8]) -> Option<Value<'static>> {
        address(self.source_bytes(packet)?)
    }

    fn destination(&self, packet: &[u8]) -> Option<Value<'static>> {
        address(if self.is_v6 { packet.get(24..40)? } else { packet.get(16..20)? })
    }
}

fn address(bytes: &[u8]) -> Option<Value<'static>> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(Value::Addr(Ipv4Addr::from(v4).into()));
    }
    <[u8; 16]>::try_from(bytes).ok().map(|v6| Value::Addr(Ipv6Addr::from(v6).into()))
}

/// The header of a TCP segment with all its options.
fn tcp_header(segment: &[u8]) -> Option<&[u8]> {
    let length = usize::from(segment.get(12)? >> 4) * 4;
    segment.get(..length).filter(|header| header.len() >= 20)
}

/// The kinds and the data of options that are whole, up to the end of the list.
fn options(header: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = header.get(20..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (&kind, after) = rest.split_first()?;
        let length = match kind {
            0 => return None,
            1 => 1,
            _ => usize::from(*after.first()?),
        };
        if kind != 1 && length < 2 {
            return None;
        }
        let (option, after) = rest.split_at_checked(length)?;
        rest = after;
        Some((kind, option.get(2..).unwrap_or_default()))
    })
}

/// The data of the first option of a kind; `None` when the header is not whole.
fn option(segment: &[u8], wanted: u8) -> Option<Option<&[u8]>> {
    Some(options(tcp_header(segment)?).find(|(kind, _)| *kind == wanted).map(|(_, data)| data))
}

/// Fingerprint: the fields in which hosts with one address differ, in the order of HAProxy's manual. The argument adds the
/// time to live (1), the list of options (2), the source (4).
fn fingerprint(packet: &[u8], args: &ArgList) -> Option<Value<'static>> {
    let ip = Ip::of(packet)?;
    let mode = args.int(0).unwrap_or(0);
    let header = tcp_header(packet.get(ip.header..)?)?;
    let data = ip.length.checked_sub(ip.header + header.len())?;
    let reach = match ip.ttl {
        0..=32 => 0,
        33..=64 => 1,
        65..=128 => 2,
        129.. => 3,
    };
    let (mut mss, mut scale, mut present) = (0, 0, 0u8);
    let mut kinds = Buffer::new();
    for (kind, data) in options(header) {
        match (kind, data) {
            (MSS, [high, low, ..]) => mss = u16::from_be_bytes([*high, *low]),
            (WINDOW_SCALE, [shift, ..]) => scale = shift.saturating_add(1).min(15),
            _ => {}
        }
        if kind >= MSS {
            present |= 1 << (kind - MSS).min(7);
        }
        kinds.push(kind);
    }
    let mut out = Buffer::new();
    out.push(ip.service);
    out.push(
        u8::from(ip.is_v6) << 7
            | u8::from(ip.whole) << 6
            | reach << 4
            | u8::from(ip.extended) << 3
            | u8::from(data > 0) << 2
            | header.get(13)? >> 6,
    );
    out.push(((header.len() / 4) as u8) << 4 | scale);
    out.extend_from_slice(header.get(14..16)?);
    out.extend_from_slice(&mss.to_be_bytes());
    out.push(present);
    if mode & 1 != 0 {
        out.push(ip.ttl);
    }
    if mode & 2 != 0 {
        out.extend_from_slice(&kinds);
    }
    if mode & 4 != 0 {
        out.extend_from_slice(ip.source_bytes(packet)?);
    }
    Some(Value::Bin(Octets::from(out)))
}

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    /// An Ethernet frame with a VLAN, IPv4 without fragments, TTL 64, SYN with MSS 1460, SACK, timestamp, NOP, window scale 7.
    const FRAME: &str = concat!(
        "0200000000010200000000028100006408004500003c1c464000400600000a0000010a000002",
        "c001005000000001000000 00a002faf000000000",
        "020405b40402080a0000000a0000000001030307"
    );

    #[test]
    fn parts_of_frames() {
        let mut bench = Bench::new();
        let frame = FRAME.replace(' ', "");
        for (expression, expected) in [
            ("eth.dst,hex", "020000000001"),
            ("eth.src,hex", "020000000002"),
            ("eth.vlan", "100"),
            ("eth.proto", "2048"),
            ("eth.hdr,hex", "020000000001020000000002810000640800"),
            ("eth.data,ip.ver", "4"),
            ("eth.data,ip.src", "10.0.0.1"),
            ("eth.data,ip.dst", "10.0.0.2"),
            ("eth.data,ip.df", "1"),
            ("eth.data,ip.ttl", "64"),
            ("eth.data,ip.proto", "6"),
            ("eth.data,ip.data,tcp.src", "49153"),
            ("eth.data,ip.data,tcp.dst", "80"),
            ("eth.data,ip.data,tcp.seq", "1"),
            ("eth.data,ip.data,tcp.flags", "2"),
            ("eth.data,ip.data,tcp.win", "64240"),
            ("eth.data,ip.data,tcp.options.mss", "1460"),
            ("eth.data,ip.data,tcp.options.wscale", "7"),
            ("eth.data,ip.data,tcp.options.wsopt", "1"),
            ("eth.data,ip.data,tcp.options.sack", "1"),
            ("eth.data,ip.data,tcp.options.tsval", "10"),
            ("eth.data,ip.data,tcp.options_list,hex", "0204080103"),
            ("eth.data,ip.fp,hex", "0050A8FAF005B447"),
            ("eth.data,ip.fp(5),hex", "0050A8FAF005B447400A000001"),
        ] {
            assert_eq!(bench.eval(&format!("bin({frame}),{expression}")).as_deref(), Some(expected), "{expression}");
        }
        for cut in ["bin(0200),eth.data", "bin(45),ip.src", "bin(60),ip.ttl", "bin(00),ip.hdr", "bin(),tcp.src", "bin(4500),ip.fp"]
        {
            assert_eq!(bench.eval(cut), None, "{cut}");
        }
    }
}
