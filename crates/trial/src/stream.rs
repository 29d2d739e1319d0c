//! Incremental engines.

use crate::bodies::{self, Dice, mixed, text};
use crate::{Case, Form, decode, usual};

/// Part of the body that has to be decodable after a push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// No part.
    None,
    /// All so far.
    Sync,
    /// All, and the body ends.
    Finish,
}

/// A coder of a body.
pub trait Stream {
    /// Takes input, and appends output.
    ///
    /// # Errors
    /// It broke, in its words.
    fn push(&mut self, input: &[u8], flush: Flush, out: &mut Vec<u8>) -> Result<(), String>;

    /// Begins another body.
    fn reset(&mut self);

    /// Gives memory back after a flush, where it can: all of it, or not the part that the next bytes may refer to.
    fn lighten(&mut self, _all: bool) {}
}

/// An adapter that makes such coders. Many threads may call it.
pub trait Streams: Sync {
    /// Its name.
    fn name(&self) -> String;

    /// Format of their output.
    fn form(&self) -> Form;

    /// The levels that it promises.
    fn levels(&self) -> Vec<u8>;

    /// A coder.
    fn open(&self, level: u8) -> Box<dyn Stream>;
}

/// Tries all cases.
pub fn try_all(face: &(dyn Streams + 'static)) {
    crate::run(&face.name(), CASES, face);
}

/// The cases.
pub const CASES: &[Case<dyn Streams>] = &[
    ("every body comes back in pieces", every_body),
    ("at every level", every_level),
    ("nothing at all is a sound stream", nothing),
    ("what was flushed can be decoded", flush_points),
    ("any pieces with any flushes", any_pieces),
    ("behind what is in the buffer", behind),
    ("begun again at any point it gives the bytes of a new one", begun_again),
    ("one that was given up leaves nothing behind", given_up),
    ("a level that there is not is an error or a sound stream", odd_levels),
    ("many streams on many threads", on_threads),
];

fn push(face: &dyn Streams, coder: &mut dyn Stream, input: &[u8], flush: Flush, out: &mut Vec<u8>) {
    if let Err(reason) = coder.push(input, flush, out) {
        panic!("{}: {reason}", face.name());
    }
}

/// A body in pieces of that length, then its end.
fn form_of(face: &dyn Streams, coder: &mut dyn Stream, body: &[u8], piece: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for bytes in body.chunks(piece) {
        push(face, coder, bytes, Flush::None, &mut out);
    }
    push(face, coder, &[], Flush::Finish, &mut out);
    out
}

fn check(face: &dyn Streams, what: &str, body: &[u8], coded: &[u8]) {
    let (came, is_whole) = decode::part(face.form(), coded);
    assert!(came == body, "{}, {what}: {} bytes of {} came back", face.name(), came.len(), body.len());
    assert!(is_whole, "{}, {what}: not one whole body", face.name());
}

fn every_body(face: &dyn Streams) {
    let level = usual(&face.levels());
    for body in bodies::all() {
        let pieces: &[usize] = match body.bytes.len() {
            0..2000 => &[1, 7],
            2000..50_000 => &[500, 16 << 10],
            _ => &[(64 << 10) + 1],
        };
        for piece in pieces {
            let coded = form_of(face, &mut *face.open(level), &body.bytes, *piece);
            check(face, &format!("{} in pieces of {piece}", body.name), &body.bytes, &coded);
        }
        let mut out = Vec::new();
        push(face, &mut *face.open(level), &body.bytes, Flush::Finish, &mut out);
        check(face, &format!("{} at once", body.name), &body.bytes, &out);
    }
}

fn every_level(face: &dyn Streams) {
    let bodies = bodies::small();
    for level in face.levels() {
        for body in &bodies {
            let coded = form_of(face, &mut *face.open(level), &body.bytes, 20_000);
            check(face, &format!("level {level}, {}", body.name), &body.bytes, &coded);
        }
    }
}

fn nothing(face: &dyn Streams) {
    for level in face.levels() {
        for flush in [Flush::None, Flush::Sync] {
            let (mut coder, mut out) = (face.open(level), Vec::new());
            push(face, &mut *coder, &[], flush, &mut out);
            push(face, &mut *coder, &[], Flush::Finish, &mut out);
            check(face, &format!("level {level}, {flush:?}"), &[], &out);
        }
    }
}

fn flush_points(face: &dyn Streams) {
    let (body, level) = (mixed(60_000), usual(&face.levels()));
    for (piece, lighter) in [(1, None), (7, None), (500, Some(false)), (500, Some(true)), (20_000, None), (20_000, Some(false))] {
        let (mut coder, mut out, mut fed) = (face.open(level), Vec::new(), 0);
        for bytes in body.chunks(piece).take(40) {
            push(face, &mut *coder, bytes, Flush::Sync, &mut out);
            fed += bytes.len();
            let (came, _) = decode::part(face.form(), &out);
            assert!(came == body[..fed], "{}, pieces of {piece}: {} of {fed}", face.name(), came.len());
            if let Some(all) = lighter {
                coder.lighten(all);
            }
        }
        push(face, &mut *coder, &[], Flush::Finish, &mut out);
        check(face, &format!("pieces of {piece}"), &body[..fed], &out);
    }
}

fn any_pieces(face: &dyn Streams) {
    let levels = face.levels();
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let (mut coder, mut body, mut out) = (face.open(levels[dice.below(levels.len())]), Vec::new(), Vec::new());
        for _ in 0..dice.below(12) {
            let bytes = dice.bytes(6000);
            let then = dice.below(5);
            push(face, &mut *coder, &bytes, if then == 0 { Flush::None } else { Flush::Sync }, &mut out);
            body.extend(bytes);
            if then > 2 {
                coder.lighten(then == 4);
            }
        }
        let last = dice.bytes(300);
        push(face, &mut *coder, &last, Flush::Finish, &mut out);
        body.extend(last);
        check(face, &format!("seed {seed}"), &body, &out);
    }
}

fn behind(face: &dyn Streams) {
    let (body, mut out) = (text(1, 5000), b"before".to_vec());
    let mut coder = face.open(usual(&face.levels()));
    for bytes in body.chunks(600) {
        push(face, &mut *coder, bytes, Flush::Sync, &mut out);
    }
    push(face, &mut *coder, &[], Flush::Finish, &mut out);
    assert_eq!(&out[..6], b"before", "{}", face.name());
    check(face, "behind", &body, &out[6..]);
}

fn begun_again(face: &dyn Streams) {
    let (first, second, level) = (mixed(50_000), text(6, 30_000), usual(&face.levels()));
    let fresh = form_of(face, &mut *face.open(level), &second, 9000);
    check(face, "a new one", &second, &fresh);
    for flush in [Flush::None, Flush::Sync, Flush::Finish] {
        for length in [0, 1, 50_000] {
            let mut coder = face.open(level);
            push(face, &mut *coder, &first[..length], flush, &mut Vec::new());
            coder.reset();
            assert!(form_of(face, &mut *coder, &second, 9000) == fresh, "{}: {flush:?} behind {length}", face.name());
        }
    }
}

fn given_up(face: &dyn Streams) {
    let (body, level) = (mixed(40_000), usual(&face.levels()));
    let fresh = form_of(face, &mut *face.open(level), &body, 9000);
    for flush in [Flush::None, Flush::Sync] {
        let mut coder = face.open(level);
        push(face, &mut *coder, &text(7, 100_000), flush, &mut Vec::new());
        drop(coder);
        assert!(form_of(face, &mut *face.open(level), &body, 9000) == fresh, "{}: {flush:?}", face.name());
    }
}

fn odd_levels(face: &dyn Streams) {
    let body = text(1, 3000);
    for level in [0, 10, 13, 20, 100, 255] {
        let (mut coder, mut out) = (face.open(level), Vec::new());
        match coder.push(&body, Flush::Finish, &mut out) {
            Ok(()) => check(face, &format!("level {level}"), &body, &out),
            Err(reason) => assert!(!reason.is_empty(), "{}, level {level}", face.name()),
        }
    }
}

fn on_threads(face: &dyn Streams) {
    let level = usual(&face.levels());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let mut dice = Dice::new(thread);
                // Two at a time on each, turn by turn.
                for number in 0..6 {
                    let bodies = [dice.bytes(40_000), dice.bytes(40_000)];
                    let (mut coders, mut outs) = ([face.open(level), face.open(level)], [Vec::new(), Vec::new()]);
                    for at in (0..40_000).step_by(7000) {
                        for ((body, coder), out) in bodies.iter().zip(&mut coders).zip(&mut outs) {
                            let piece = &body[at.min(body.len())..(at + 7000).min(body.len())];
                            push(face, &mut **coder, piece, Flush::None, out);
                        }
                    }
                    for ((body, coder), out) in bodies.iter().zip(&mut coders).zip(&mut outs) {
                        push(face, &mut **coder, &[], Flush::Finish, out);
                        check(face, &format!("thread {thread}, number {number}"), body, out);
                    }
                }
            });
        }
    });
}
