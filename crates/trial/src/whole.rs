//! Engines for whole bodies.

use crate::bodies::{self, Dice, mixed, text};
use crate::{Case, Form, decode, usual};

/// An adapter that codes a body at once. Many threads may call it.
pub trait Whole: Sync {
    /// Its name.
    fn name(&self) -> String;

    /// Format of its output.
    fn form(&self) -> Form;

    /// The levels that it promises.
    fn levels(&self) -> Vec<u8>;

    /// Appends the coded form of a body.
    ///
    /// # Errors
    /// It could not, in its words.
    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String>;

    /// The most bytes that so many may become. By default: stored blocks of 4 KB, and a wrapper.
    fn bound(&self, bytes: usize) -> usize {
        bytes + bytes / 512 + 512
    }

    /// The same into room of limited size; returns how much of it was used. `None`: the adapter makes its own room.
    fn code_into(&self, _body: &[u8], _level: u8, _room: &mut [u8]) -> Option<Result<usize, String>> {
        None
    }

    /// Begins a body and gives it up, where that can be.
    fn abandon(&self, _body: &[u8], _level: u8) {}
}

/// Tries all cases.
pub fn try_all(face: &(dyn Whole + 'static)) {
    crate::run(&face.name(), CASES, face);
}

/// The cases.
pub const CASES: &[Case<dyn Whole>] = &[
    ("every body comes back", every_body),
    ("at every level", every_level),
    ("of each short length", each_short_length),
    ("whatever the bytes are", any_bytes),
    ("behind what is in the buffer", behind),
    ("the same bytes whatever was coded before", the_same_again),
    ("a level that there is not is an error or a sound form", odd_levels),
    ("one that was given up leaves nothing behind", given_up),
    ("many threads at a time", on_threads),
    ("no byte behind the room, and an error where it is short", short_room),
];

/// Bodies from here on take too long at the last levels, and are tried at the usual one.
const LARGE: usize = 100_000;

/// The coded form of a body, checked to be sound.
fn form_of(face: &dyn Whole, what: &str, body: &[u8], level: u8) -> Vec<u8> {
    let mut out = Vec::new();
    if let Err(reason) = face.code(body, level, &mut out) {
        panic!("{}, level {level}, {what}: {reason}", face.name());
    }
    check(face, what, body, level, &out);
    out
}

fn check(face: &dyn Whole, what: &str, body: &[u8], level: u8, coded: &[u8]) {
    let (came, is_whole) = decode::part(face.form(), coded);
    assert!(came == body, "{}, level {level}, {what}: {} bytes of {} came back", face.name(), came.len(), body.len());
    assert!(is_whole, "{}, level {level}, {what}: not one whole body", face.name());
    let bound = face.bound(body.len());
    assert!(coded.len() <= bound, "{}, level {level}, {what}: {} bytes, more than {bound}", face.name(), coded.len());
}

fn every_body(face: &dyn Whole) {
    let levels = face.levels();
    let (first, usual, last) = (levels[0], usual(&levels), levels[levels.len() - 1]);
    let mut some = vec![first, usual, last];
    some.sort_unstable();
    some.dedup();
    for body in bodies::all() {
        let chosen = if body.bytes.len() < LARGE { &some[..] } else { &[usual] };
        for level in chosen {
            form_of(face, &body.name, &body.bytes, *level);
        }
    }
}

fn every_level(face: &dyn Whole) {
    let bodies = bodies::small();
    for level in face.levels() {
        for body in &bodies {
            form_of(face, &body.name, &body.bytes, level);
        }
    }
}

fn each_short_length(face: &dyn Whole) {
    let level = usual(&face.levels());
    for length in 0..=300 {
        form_of(face, "a run", &vec![b'x'; length], level);
        form_of(face, "text", &text(length as u64, length), level);
    }
}

fn any_bytes(face: &dyn Whole) {
    let levels = face.levels();
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let parts = dice.below(6);
        let body: Vec<u8> = (0..parts).flat_map(|_| dice.bytes(4000)).collect();
        form_of(face, &format!("seed {seed}"), &body, levels[dice.below(levels.len())]);
    }
}

fn behind(face: &dyn Whole) {
    let (body, level) = (text(1, 1000), usual(&face.levels()));
    let mut out = b"before".to_vec();
    face.code(&body, level, &mut out).unwrap();
    assert_eq!(&out[..6], b"before", "{}", face.name());
    check(face, "behind", &body, level, &out[6..]);
}

fn the_same_again(face: &dyn Whole) {
    let level = usual(&face.levels());
    for length in [50, 1000, 70_000] {
        let first = form_of(face, "first", &text(1, length), level);
        for other in [mixed(100_000), Vec::new(), bodies::noise(1, 5)] {
            form_of(face, "between", &other, level);
            assert!(form_of(face, "again", &text(1, length), level) == first, "{}, {length} bytes", face.name());
        }
    }
}

fn odd_levels(face: &dyn Whole) {
    let (body, level) = (text(1, 3000), usual(&face.levels()));
    for odd in [0, 10, 13, 20, 100, 255] {
        let mut out = b"before".to_vec();
        match face.code(&body, odd, &mut out) {
            Ok(()) => check(face, "odd", &body, odd, &out[6..]),
            Err(reason) => assert!(!reason.is_empty() && out.starts_with(b"before"), "{}, level {odd}", face.name()),
        }
        form_of(face, "behind it", &body, level);
    }
}

fn given_up(face: &dyn Whole) {
    let level = usual(&face.levels());
    for length in [10, 300_000] {
        face.abandon(&text(4, length), level);
        form_of(face, "behind it", &mixed(40_000), level);
    }
}

fn on_threads(face: &dyn Whole) {
    let level = usual(&face.levels());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let mut dice = Dice::new(thread);
                for number in 0..25 {
                    let body = dice.bytes(50_000);
                    form_of(face, &format!("thread {thread}, number {number}"), &body, level);
                }
            });
        }
    });
}

fn short_room(face: &dyn Whole) {
    const UNTOUCHED: u8 = 0xa5;
    let level = usual(&face.levels());
    for body in [text(1, 5000), bodies::noise(1, 5000), vec![0; 5000], Vec::new()] {
        let mut room = vec![UNTOUCHED; face.bound(body.len())];
        let Some(used) = face.code_into(&body, level, &mut room) else { return };
        let exact = used.unwrap();
        check(face, "room enough", &body, level, &room[..exact]);
        for length in [0, 1, 2, exact / 2, exact - 1, exact] {
            let mut room = vec![UNTOUCHED; length + 64];
            match face.code_into(&body, level, &mut room[..length]).unwrap() {
                Ok(used) => {
                    assert!(used <= length, "{}: {used} bytes in {length}", face.name());
                    check(face, "exact room", &body, level, &room[..used]);
                }
                Err(reason) => assert!(length < exact && !reason.is_empty(), "{}: {length} of {exact}: {reason}", face.name()),
            }
            assert!(room[length..].iter().all(|byte| *byte == UNTOUCHED), "{}: behind {length}", face.name());
        }
    }
}
