//! The coder on every processor that this machine can be, through the cases that all engines pass.

use std::sync::{Mutex, PoisonError};
use terse_deflate::{Encoder, LEVELS, Processor, bound};
use terse_trial::{Flush, Form, Stream, Streams, Whole, stream, whole};

/// The farthest distance of a match.
const WINDOW: usize = 1 << 15;

struct Coder {
    processor: Processor,
    /// Encoders that were used before, with their levels.
    idle: Mutex<Vec<(u8, Encoder)>>,
}

impl Coder {
    fn take(&self, level: u8) -> Encoder {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.iter().position(|(of, _)| *of == level) {
            Some(place) => idle.swap_remove(place).1,
            None => Encoder::on(self.processor, level),
        }
    }

    fn give(&self, level: u8, encoder: Encoder) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push((level, encoder));
    }
}

impl Whole for Coder {
    fn name(&self) -> String {
        format!("whole bodies, {:?}", self.processor)
    }

    fn form(&self) -> Form {
        Form::Raw
    }

    fn levels(&self) -> Vec<u8> {
        LEVELS.collect()
    }

    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
        let mut encoder = self.take(level);
        encoder.encode(&[], body, true, out);
        self.give(level, encoder);
        Ok(())
    }

    fn bound(&self, bytes: usize) -> usize {
        bound(bytes)
    }
}

impl Streams for Coder {
    fn name(&self) -> String {
        format!("parts, {:?}", self.processor)
    }

    fn form(&self) -> Form {
        Form::Raw
    }

    fn levels(&self) -> Vec<u8> {
        LEVELS.collect()
    }

    fn open(&self, level: u8) -> Box<dyn Stream> {
        Box::new(Parts { encoder: Encoder::on(self.processor, level), before: Vec::new() })
    }
}

/// Each push is a part, which refers to the bytes before.
struct Parts {
    encoder: Encoder,
    before: Vec<u8>,
}

impl Stream for Parts {
    fn push(&mut self, input: &[u8], flush: Flush, out: &mut Vec<u8>) -> Result<(), String> {
        self.encoder.encode(&self.before, input, flush == Flush::Finish, out);
        self.before.extend_from_slice(input);
        self.before.drain(..self.before.len().saturating_sub(WINDOW));
        Ok(())
    }

    fn reset(&mut self) {
        self.before.clear();
    }

    fn lighten(&mut self, all: bool) {
        if all {
            self.before.clear();
        }
    }
}

fn coders() -> impl Iterator<Item = Coder> {
    Processor::all().into_iter().map(|processor| Coder { processor, idle: Mutex::default() })
}

#[test]
fn whole_bodies() {
    coders().for_each(|coder| whole::try_all(&coder));
}

#[test]
fn parts() {
    coders().for_each(|coder| stream::try_all(&coder));
}
