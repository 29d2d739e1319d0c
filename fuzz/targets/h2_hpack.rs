//! HPACK: no block panics, and what it says is said again by our encoder, over one connection.

#![no_main]

use libfuzzer_sys::fuzz_target;
use terse_http::h2::hpack::{Decoder, Encoder, Stop};

fuzz_target!(|input: &[u8]| {
    let (mut first, mut second, mut encoder) = (Decoder::default(), Decoder::default(), Encoder::default());
    let mut rest = input;
    while let Some((&length, more)) = rest.split_first() {
        let (block, more) = more.split_at(usize::from(length).min(more.len()));
        rest = more;
        let Ok(fields) = decode(&mut first, block) else { return };
        let mut again = Vec::new();
        encoder.resize(usize::from(length) * 40);
        encoder.begin(&mut again);
        for (name, value) in &fields {
            encoder.field(name, value, &mut again);
        }
        assert_eq!(decode(&mut second, &again), Ok(fields));
    }
});

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Stop> {
    let mut fields = Vec::new();
    let mut total = 0;
    decoder.decode(block, &mut Vec::new(), |lines, line| {
        assert_eq!(lines[line.value.end..], *b"\r\n");
        // The encoder takes no large letters.
        fields.push((lines[line.name.clone()].to_ascii_lowercase(), lines[line.value].to_vec()));
        lines.truncate(line.name.start);
        total += 1;
        total < 1000
    })?;
    Ok(fields)
}
