use super::*;
use proptest::prelude::*;

/// The output for input and room in pieces of such sizes, with the output kept in a ring of 32 KB.
fn decode(packed: &[u8], input_pieces: &[usize], rooms: &[usize], pause: Pause) -> Result<(Vec<u8>, usize), Flaw> {
    let mut decoder = Box::new(Decoder::new());
    let (mut ring, mut fill) = (vec![0u8; 32_768], Fill::default());
    let (mut at, mut given) = (0, Vec::new());
    let (mut input_pieces, mut rooms) = (input_pieces.iter().cycle(), rooms.iter().cycle());
    let mut idle = 0;
    loop {
        let piece = &packed[at..(at + input_pieces.next().unwrap()).min(packed.len())];
        let mut room = vec![0xaa; *rooms.next().unwrap()];
        let mut input = Input::new(piece);
        let mut output = Output::new(&mut room, 0, Before::History(fill.history(&ring)));
        decoder.resume();
        let stop = decoder.decode(&mut input, &mut output, pause)?;
        if stop != Stop::Input {
            decoder.bits.give_back(&mut input);
        }
        at += input.taken();
        let made = output.bytes().to_vec();
        idle = if made.is_empty() && input.taken() == 0 { idle + 1 } else { 0 };
        fill.put(&mut ring, &made);
        given.extend_from_slice(&made);
        match stop {
            Stop::End => return Ok((given, at)),
            Stop::Input if at == packed.len() => return Ok((given, at)),
            _ => assert!(idle < 100, "it goes on"),
        }
    }
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let words = proptest::collection::vec((0..40u8, 1..60usize, any::<bool>()), 0..2000);
    words.prop_map(|words| {
        let mut text = Vec::new();
        for (word, count, is_run) in words {
            if is_run {
                text.extend(std::iter::repeat_n(word, count * 3));
            } else {
                text.extend((0..count).map(|at| word.wrapping_mul(37).wrapping_add((at * at) as u8)));
            }
        }
        text
    })
}

fn packed(text: &[u8], level: u32) -> Vec<u8> {
    use std::io::Write;
    let mut coder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(level));
    coder.write_all(text).unwrap();
    coder.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_split_gives_the_same(
        text in texts(),
        level in 0..=9u32,
        inputs in proptest::collection::vec(1..3000usize, 1..6),
        rooms in proptest::collection::vec(1..70_000usize, 1..6),
        pause in prop_oneof![Just(Pause::Never), Just(Pause::Blocks), Just(Pause::Heads)],
    ) {
        let mut packed = packed(&text, level);
        let length = packed.len();
        packed.extend_from_slice(b"what stands behind it");
        let (given, taken) = decode(&packed, &inputs, &rooms, pause).unwrap();
        prop_assert_eq!(taken, length);
        prop_assert!(given == text);
    }
}

/// The fixed code's tables are kept from block to block, but not where a head was begun in their place.
#[test]
fn a_head_that_was_broken_off_leaves_nothing() {
    // A byte and a match of three bytes, one back, in the fixed code; the same, and the begin of a head with codes of its own.
    let run = [0x63, 0x04, 0x02, 0x00];
    let cut = [0x62, 0x04, 0x02, 0x00, 0x01, 0x00];
    let mut decoder = Decoder::new();
    let mut decode = |packed: &[u8]| {
        decoder.reset();
        let (mut room, mut input) = ([0; 100], Input::new(packed));
        let mut output = Output::new(&mut room, 0, Before::History(History::NONE));
        let stop = decoder.decode(&mut input, &mut output, Pause::Never);
        (stop, output.bytes().to_vec())
    };
    let whole = decode(&run);
    assert_eq!(whole.0, Ok(Stop::End));
    assert_eq!(decode(&cut), (Ok(Stop::Input), whole.1.clone()));
    assert_eq!(decode(&run), whole);
}
