//! Decoders that share no line with the engines: miniz, ruzstd, and the brotli crate's, whose input
//! comes from brotli's C library.

use crate::Form;
use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use flate2::{Crc, Decompress, FlushDecompress, Status};

/// The decodable part of `coded`, and whether it is one complete body with no bytes after it.
pub fn part(form: Form, coded: &[u8]) -> (Vec<u8>, bool) {
    match form {
        Form::Identity => (coded.to_vec(), true),
        Form::Gzip => match coded.split_at_checked(10) {
            None => (Vec::new(), false),
            Some((head, body)) => {
                assert_eq!(head[..4], [0x1f, 0x8b, 8, 0], "the head of a member without further fields");
                inflate(false, body, tail)
            }
        },
        Form::Zlib => inflate(true, coded, |_| Vec::new()),
        Form::Raw => inflate(false, coded, |_| Vec::new()),
        Form::Zstd => zstd(coded, true),
        Form::ZstdFrames => zstd(coded, false),
        Form::Brotli => brotli(coded),
    }
}

/// The body, which has to be complete and without bytes after it.
pub fn whole(form: Form, coded: &[u8]) -> Vec<u8> {
    let (body, is_whole) = part(form, coded);
    assert!(is_whole, "{form:?}: {} bytes are not one whole body", coded.len());
    body
}

fn inflate(has_wrapper: bool, coded: &[u8], tail: fn(&[u8]) -> Vec<u8>) -> (Vec<u8>, bool) {
    let mut decoder = Decompress::new(has_wrapper);
    let (mut out, mut room) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let (taken, given) = (decoder.total_in(), decoder.total_out());
        let status = decoder.decompress(&coded[taken as usize..], &mut room, FlushDecompress::None).expect("a sound stream");
        let new = (decoder.total_out() - given) as usize;
        out.extend_from_slice(&room[..new]);
        let rest = &coded[decoder.total_in() as usize..];
        if status == Status::StreamEnd {
            let is_all = rest == tail(&out);
            return (out, is_all);
        }
        if new == 0 && decoder.total_in() == taken {
            return (out, false);
        }
    }
}

/// The bytes after the stream in a gzip member.
fn tail(body: &[u8]) -> Vec<u8> {
    let mut checksum = Crc::new();
    checksum.update(body);
    [checksum.sum().to_le_bytes(), (body.len() as u32).to_le_bytes()].concat()
}

/// ruzstd keeps a window's bytes to itself until a frame ends, so an unfinished frame gets an end.
fn zstd(coded: &[u8], is_single: bool) -> (Vec<u8>, bool) {
    match frames(coded) {
        Some((body, count)) => (body, count == 1 || !is_single && count > 0),
        None => (frames(&[coded, &[1, 0, 0]].concat()).unwrap_or_default().0, false),
    }
}

fn frames(mut coded: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut count) = (Vec::new(), 0);
    while !coded.is_empty() {
        let mut decoder = ruzstd::decoding::FrameDecoder::new();
        decoder.reset(&mut coded).ok()?;
        decoder.decode_blocks(&mut coded, ruzstd::decoding::BlockDecodingStrategy::All).ok()?;
        body.extend_from_slice(&decoder.collect()?);
        if decoder.get_checksum_from_data().is_some_and(|read| decoder.get_calculated_checksum() != Some(read)) {
            return None;
        }
        count += 1;
    }
    Some((body, count))
}

fn brotli(coded: &[u8]) -> (Vec<u8>, bool) {
    let heap = StandardAlloc::default;
    let mut state = BrotliState::new(heap(), heap(), heap());
    let (mut out, mut room) = (Vec::new(), vec![0; 64 * 1024]);
    let (mut left, mut at, mut total) = (coded.len(), 0, 0);
    loop {
        let (mut free, mut end) = (room.len(), 0);
        let result = BrotliDecompressStream(&mut left, &mut at, coded, &mut free, &mut end, &mut room, &mut total, &mut state);
        out.extend_from_slice(&room[..end]);
        match result {
            BrotliResult::ResultSuccess => return (out, left == 0),
            BrotliResult::NeedsMoreOutput => {}
            // It asks for input while output waits for room.
            BrotliResult::NeedsMoreInput if free == 0 => {}
            BrotliResult::NeedsMoreInput | BrotliResult::ResultFailure => return (out, false),
        }
    }
}
