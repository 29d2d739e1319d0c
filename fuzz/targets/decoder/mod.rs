//! What holds of every decoder, whatever comes in: it never panics, makes no more than it is asked for, and no split of the input and
//! no room changes what it says; begun again it says the same.

use terse_compress::Coding;
use terse_compress::decode::{Decoder, Flaw, Next, decoder};

/// The first byte says how the rest is split, and how much room there is.
pub fn check(coding: Coding, input: &[u8]) {
    let Some((&choice, input)) = input.split_first() else { return };
    let mut one = decoder(coding).expect("a decoder for each of them");
    let whole = decode(&mut *one, input, input.len().max(1), ROOM_BYTES);
    let (step, room) = (usize::from(choice % 16) * 7 + 1, usize::from(choice / 16) * 300 + 1);
    let mut other = decoder(coding).expect("a decoder for each of them");
    let split = decode(&mut *other, input, step, room);
    match (&whole.1, &split.1) {
        // A large body is not read to its end, and where exactly its reader stops hangs on the room.
        _ if whole.0.len() + ROOM_BYTES >= MOST_BYTES => {}
        // Where it breaks off, more may have come out before it was seen.
        (Ok(_), Ok(_)) => assert!(whole == split, "{coding:?} in steps of {step} with room for {room}: {:?}", input.escape_ascii()),
        (whole, split) => assert_eq!(whole, split, "{coding:?} in steps of {step} with room for {room}"),
    }
    other.reset();
    assert!(decode(&mut *other, input, input.len().max(1), ROOM_BYTES) == whole, "{coding:?}, begun again");
}

/// What came out, up to a limit, and whether it is complete.
fn decode(decoder: &mut dyn Decoder, input: &[u8], step: usize, room: usize) -> (Vec<u8>, Result<bool, Flaw>) {
    let (mut all, mut out) = (Vec::new(), Vec::new());
    for piece in input.chunks(step) {
        let mut at = 0;
        loop {
            out.clear();
            // Not more than the rest, so that all splits end at the same byte.
            let room = room.min(MOST_BYTES - all.len());
            let progress = match decoder.push(&piece[at..], &mut out, room) {
                Ok(progress) => progress,
                Err(flaw) => return (all, Err(flaw)),
            };
            assert!(out.len() <= room && progress.taken <= piece.len() - at);
            all.extend_from_slice(&out);
            at += progress.taken;
            match progress.next {
                _ if all.len() == MOST_BYTES => return (all, Ok(false)),
                Next::Ended => {
                    assert!(decoder.is_complete());
                    return (all, Ok(true));
                }
                Next::Input => {
                    assert_eq!(at, piece.len());
                    break;
                }
                Next::Room => assert_eq!(out.len(), room),
            }
        }
    }
    (all, Ok(decoder.is_complete()))
}

/// Room for a piece of output.
const ROOM_BYTES: usize = 64 * 1024;
/// A bomb is not waited for.
const MOST_BYTES: usize = 256 * 1024;
