//! What an engine claims to have made of a body: the check that is called full lets through what the system's zlib reads back as that
//! body, in the plain wrapper, and nothing else; each check lets through what the next one does.
#![no_main]

mod system;

use flate2::Crc;
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use terse_compress::device::{Piece, Pieces};
use terse_compress::engine::Verify;
use terse_compress::{Coding, offload::judge};

fuzz_target!(|script: &[u8]| {
    let Some((&[coding, times, cuts, level], rest)) = script.split_first_chunk() else { return };
    let Some((edits, text)) = rest.split_at_checked(12) else { return };
    let coding = [Coding::Gzip, Coding::Deflate, Coding::RawDeflate, Coding::Zstd][usize::from(coding % 4)];
    let body = text.repeat(usize::from(times % 32));
    let pieces = Pieces::new(cut(&body, cuts));
    let gzip = coding == Coding::Gzip;
    // What a lying engine starts from: the body's stream, another body's, or anything.
    let other = [&body[..], &text[..text.len() / 2], &[]].concat();
    let read = if edits[0] & 1 == 0 { &body } else { &other };
    let mut lie = system::write(if gzip { 31 } else { 15 }, i32::from(level % 10), 0, &[], &[read]);
    if edits[0] & 2 != 0 {
        lie = text.to_vec();
    }
    for edit in edits[1..].chunks_exact(3).take(usize::from(edits[0] >> 2 & 3)) {
        change(&mut lie, edit);
    }
    if edits[0] & 0x10 != 0 {
        // The tail that the body would have.
        let tail = tail(&body, gzip);
        lie.truncate(lie.len().saturating_sub(tail.len()));
        lie.extend_from_slice(&tail);
    }
    let judged = [Verify::None, Verify::Checksum, Verify::Full].map(|how| judge(&lie, &pieces, coding, how));
    assert!(judged[1].is_none() || judged[0] == judged[1]);
    assert!(judged[2].is_none() || judged[1] == judged[2]);
    if coding == Coding::Zstd {
        return assert_eq!(judged[0], None);
    }
    assert!(judged[1].is_none() || lie.ends_with(&tail(&body, gzip)));
    let is_body = |bits, coded: &[u8]| system::read(bits, coded, body.len()) == (body.clone(), 1, 0);
    if let Some(range) = &judged[2] {
        let bits = match coding {
            Coding::Gzip => 31,
            Coding::Deflate => 15,
            _ => -15,
        };
        assert!(is_body(bits, &lie[range.clone()]), "it is not the body");
    }
    let is_plain = !gzip || lie.get(3) == Some(&0);
    if is_plain && is_body(if gzip { 31 } else { 15 }, &lie) {
        assert!(judged[2].is_some(), "it is the body");
    }
});

/// The body in pieces.
fn cut(body: &[u8], cuts: u8) -> Vec<Arc<dyn Piece>> {
    let step = body.len() / (1 + usize::from(cuts % 5)) + 1;
    let mut pieces: Vec<Arc<dyn Piece>> = body.chunks(step).map(|piece| Arc::new(piece.to_vec()) as Arc<dyn Piece>).collect();
    if cuts & 0x80 != 0 {
        pieces.insert(pieces.len() / 2, Arc::new(Vec::new()));
    }
    pieces
}

fn change(lie: &mut Vec<u8>, edit: &[u8]) {
    if lie.is_empty() {
        return;
    }
    // Near the end as often as anywhere.
    let place =
        if edit[0] & 0x80 == 0 { lie.len() * usize::from(edit[1]) / 256 } else { lie.len() - 1 - usize::from(edit[1]) % lie.len() };
    match edit[0] & 3 {
        0 => lie[place] ^= 1 << (edit[2] & 7),
        1 => lie.insert(place, edit[2]),
        2 => drop(lie.remove(place)),
        _ => lie.truncate(place),
    }
}

/// RFC 1952's tail, or RFC 1950's.
fn tail(body: &[u8], gzip: bool) -> Vec<u8> {
    if gzip {
        let mut crc = Crc::new();
        crc.update(body);
        return [crc.sum().to_le_bytes(), crc.amount().to_le_bytes()].concat();
    }
    let (low, high) = body.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    (high << 16 | low).to_be_bytes().to_vec()
}
