//! Every path of the coder and the decoder on bodies that are small enough for an interpreter: `scripts/miri` runs these tests
//! under Miri, which tells undefined behaviour in the crate's unsafe code.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bodies;

use bodies::{noise, text};
use terse_deflate::decode::{Inflate, Stop};
use terse_deflate::{Encoder, Flush, LEVELS, Lists, Processor, Room, Stock, Stream, Table};

/// A stock that keeps nothing.
struct Empty;

impl Stock for Empty {
    fn take_lists(&self) -> Option<Lists> {
        None
    }

    fn give_lists(&self, _: Lists) {}

    fn take_table(&self, _: usize) -> Option<Table> {
        None
    }

    fn give_table(&self, _: Table) {}

    fn take_room(&self) -> Option<Room> {
        None
    }

    fn give_room(&self, _: Room) {}
}

/// Words, noise, a run, a repetition at a distance, and nothing.
fn inputs() -> Vec<Vec<u8>> {
    let mut next = noise(7);
    let words = text(3, if cfg!(miri) { 400 } else { 4000 });
    let chance: Vec<u8> = (0..words.len()).map(|_| next() as u8).collect();
    vec![Vec::new(), b"a".to_vec(), [&words[..], &chance[..70], &[0; 300], &words[..]].concat(), chance]
}

/// What the decoder makes of a stream that comes in pieces of so many bytes, and goes to rooms of so many.
fn inflate(coded: &[u8], piece: usize, room: usize) -> Vec<u8> {
    let (mut decoder, mut buffer, mut out, mut rest) = (Inflate::new(), vec![0; room], Vec::new(), coded);
    loop {
        let progress = decoder.decode(&rest[..piece.min(rest.len())], &mut buffer).unwrap();
        out.extend_from_slice(&buffer[..progress.given]);
        rest = &rest[progress.taken..];
        if matches!(progress.stop, Stop::End) {
            assert!(rest.is_empty(), "{} bytes after the end", rest.len());
            return out;
        }
        assert!(progress.given > 0 || progress.taken > 0, "the decoder goes on");
    }
}

#[test]
fn whole_bodies_come_back_on_every_processor() {
    for input in inputs() {
        for level in LEVELS {
            let mut forms = Processor::all().into_iter().map(|processor| {
                let mut coded = Vec::new();
                Encoder::on(processor, level).encode(&[], &input, true, &mut coded);
                coded
            });
            let coded = forms.next().unwrap();
            assert!(forms.all(|form| form == coded), "level {level}: the same on every processor");
            assert!(inflate(&coded, coded.len(), 700) == input, "level {level}");
            assert!(inflate(&coded, 13, 300) == input, "level {level} in pieces");
        }
    }
}

#[test]
fn streams_come_back_on_every_processor() {
    for level in LEVELS {
        for processor in Processor::all() {
            let (mut stream, mut coded, mut whole) = (Stream::on(processor, level), Vec::new(), Vec::new());
            for input in inputs() {
                for piece in input.chunks(1 + input.len() / 3) {
                    stream.push(piece, Flush::Sync, &Empty, &mut coded);
                    whole.extend_from_slice(piece);
                }
            }
            stream.push(&[], Flush::Finish, &Empty, &mut coded);
            assert!(inflate(&coded, 100, 1000) == whole, "level {level}");
        }
    }
}

/// Streams that are damaged are refused or decoded to something, within the room that is given.
#[test]
fn damaged_streams_stay_within_their_room() {
    let (input, mut coded) = (text(5, 300), Vec::new());
    Encoder::new(6).encode(&[], &input, true, &mut coded);
    for at in 0..coded.len().min(if cfg!(miri) { 24 } else { 4096 }) {
        let mut damaged = coded.clone();
        damaged[at] ^= 1 << (at % 8);
        let (mut decoder, mut buffer, mut rest, mut given) = (Inflate::new(), [0; 64], &damaged[..], 0);
        while let Ok(progress) = decoder.decode(rest, &mut buffer) {
            rest = &rest[progress.taken..];
            given += progress.given;
            assert!(progress.given <= buffer.len() && given < 1 << 20);
            if matches!(progress.stop, Stop::End) || progress.given == 0 && progress.taken == 0 {
                break;
            }
        }
    }
}
