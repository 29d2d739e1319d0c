//! The deflate coder: what it makes of any input, in any parts, a decoder that is not ours turns back into it, and it is not too long.
//! The same of its streams, with flushes and rests between any two pieces.

#![no_main]

use flate2::{Decompress, FlushDecompress, Status};
use libfuzzer_sys::fuzz_target;
use terse_deflate::{Encoder, Flush, LEVELS, Processor, Stream, bound};

fuzz_target!(|input: &[u8]| {
    let [level, times, cut, body @ ..] = input else { return };
    let level = LEVELS.start() + level % (LEVELS.end() - LEVELS.start() + 1);
    // Repeated, so that there are far matches too, beyond the window's ring.
    let body = body.repeat(1 + usize::from(*times));
    let cut = body.len() * usize::from(*cut) / 255;
    let mut encoder = Encoder::new(level);
    let mut coded = Vec::new();
    let parts = [(&[][..], &body[..cut], false), (&body[..cut], &body[cut..], true)];
    for (dictionary, part, last) in parts {
        let start = coded.len();
        encoder.encode(dictionary, part, last, &mut coded);
        assert!(coded.len() - start <= bound(part.len()));
    }
    assert!(inflate(&coded, body.len()) == body);
    // What it has done before changes nothing, nor what the processor can do.
    let mut again = Vec::new();
    encoder.encode(&[], &body, true, &mut again);
    for processor in Processor::all() {
        let mut fresh = Vec::new();
        Encoder::on(processor, level).encode(&[], &body, true, &mut fresh);
        assert!(again == fresh);
    }
    let streams: Vec<Vec<u8>> = Processor::all().into_iter().map(|processor| stream(processor, level, input, &body)).collect();
    assert!(streams.iter().all(|stream| *stream == streams[0]));
    assert!(inflate(&streams[0], body.len()) == body);
});

/// A body as a stream, in pieces as long as the script says.
fn stream(processor: Processor, level: u8, script: &[u8], mut body: &[u8]) -> Vec<u8> {
    let (mut stream, mut coded) = (Stream::on(processor, level), Vec::new());
    for act in script.iter().cycle() {
        let (piece, rest) = body.split_at(body.len().min(1 << (act & 15)));
        body = rest;
        let flush = match act >> 4 {
            _ if body.is_empty() => Flush::Finish,
            0..8 => Flush::None,
            _ => Flush::Sync,
        };
        stream.push(piece, flush, &(), &mut coded);
        match (flush, act >> 4) {
            (Flush::Finish, _) => break,
            (Flush::Sync, 13) => stream.lighten(0, &()),
            (Flush::Sync, 14) => stream.lighten(4096, &()),
            (Flush::Sync, 15) => stream.set_level(act & 15),
            _ => {}
        }
    }
    coded
}

fn inflate(coded: &[u8], length: usize) -> Vec<u8> {
    let mut out = vec![0; length + 1];
    let mut decoder = Decompress::new(false);
    let status = decoder.decompress(coded, &mut out, FlushDecompress::Finish);
    assert!(matches!(status, Ok(Status::StreamEnd)), "{status:?}");
    assert_eq!(decoder.total_in(), coded.len() as u64);
    out.truncate(decoder.total_out() as usize);
    out
}
