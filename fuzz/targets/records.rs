//! What a peer sends in compressed TLS records: each record is unpacked as the system's zlib does it, or the connection breaks; what
//! does not fit into a record breaks it too. And what is packed here comes back.
#![no_main]

mod system;

use libfuzzer_sys::fuzz_target;
use libz_rs_sys::z_stream;
use std::ffi::{c_int, c_uint};
use terse_tls::{packer, unpacker};

fuzz_target!(|script: &[u8]| {
    let Some((&[kind, most, edits, at], rest)) = script.split_first_chunk() else { return };
    let room = 1 + usize::from(most) * 8;
    let mut records = if kind & 1 == 0 { split(rest) } else { pack(rest, room) };
    if kind & 2 != 0 {
        let count = records.len();
        if let Some(record) = records.get_mut(usize::from(at) % count.max(1)).filter(|record| !record.is_empty()) {
            let place = usize::from(edits) % record.len();
            if at & 0x80 == 0 { record[place] ^= 1 << (at >> 4 & 7) } else { record.truncate(place) }
        }
    }
    let mut ours = unpacker();
    let mut theirs = Theirs::new();
    let mut plain = vec![0; room];
    for record in &records {
        // What the record before left in the room is not looked at again.
        plain.fill(0xaa);
        let unpacked = ours(record, &mut plain).map(|length| plain[..length].to_vec());
        assert_eq!(unpacked, theirs.unpack(record, room));
        if unpacked.is_none() {
            break;
        }
    }
});

/// Records of lengths that stand before them.
fn split(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some((&length, behind)) = rest.split_first() {
        let (record, later) = behind.split_at(usize::from(length).min(behind.len()));
        records.push(record.to_vec());
        rest = later;
    }
    records
}

/// Such records packed, which come back.
fn pack(rest: &[u8], room: usize) -> Vec<Vec<u8>> {
    let (mut packer, mut unpacker) = (packer(), unpacker());
    let (mut wire, mut plain) = (vec![0; room + 1024], vec![0; room]);
    let records = split(rest).into_iter().map(|record| {
        let is_stored = record.first().is_some_and(|byte| byte & 1 == 1);
        let body = record.repeat(1 + room / record.len().max(1));
        let body = &body[..body.len().min(room)];
        let length = packer(body, &mut wire, is_stored).expect("there is room");
        let packed = wire[..length].to_vec();
        assert!(unpacker(&packed, &mut plain) == Some(body.len()) && plain[..body.len()] == *body);
        packed
    });
    records.collect()
}

/// The system's zlib.
struct Theirs(Box<z_stream>);

impl Theirs {
    fn new() -> Theirs {
        let (zlib, mut stream) = (system::theirs(), Box::new(system::stream()));
        // SAFETY: a stream of this type's, which does not move.
        let code = unsafe { (zlib.inflateInit2_)(&mut *stream, 15, (zlib.zlibVersion)(), size_of::<z_stream>() as c_int) };
        assert_eq!(code, 0);
        Theirs(stream)
    }

    fn unpack(&mut self, record: &[u8], room: usize) -> Option<Vec<u8>> {
        if record.is_empty() {
            return Some(Vec::new());
        }
        let mut out = vec![0; room + 1];
        let stream = &mut *self.0;
        (stream.next_in, stream.avail_in) = (record.as_ptr(), record.len() as c_uint);
        (stream.next_out, stream.avail_out) = (out.as_mut_ptr(), out.len() as c_uint);
        // SAFETY: input and room are as long as is said.
        let code = unsafe { (system::theirs().inflate)(stream, 2) };
        out.truncate(out.len() - stream.avail_out as usize);
        (matches!(code, 0 | 1 | -5) && stream.avail_in == 0 && out.len() <= room).then_some(out)
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // SAFETY: a stream of this type's.
        unsafe { (system::theirs().inflateEnd)(&mut *self.0) };
    }
}
