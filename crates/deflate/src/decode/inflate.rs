//! A decoder with a window of its own.

use super::{Before, Decoder, Fill, Flaw, Input, Output, Pause, Stop};
use crate::symbols::WINDOW;

/// Decodes raw streams, in sequence, in pieces of any size.
pub struct Inflate {
    decoder: Decoder,
    window: Box<[u8; WINDOW]>,
    fill: Fill,
}

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that were taken.
    pub taken: usize,
    /// Bytes that were put into the room.
    pub given: usize,
    /// Why it ended: [`Stop::Input`], [`Stop::Room`] or [`Stop::End`].
    pub stop: Stop,
}

impl Inflate {
    /// Bytes of a decoder and its window.
    pub const BYTES: usize = Decoder::BYTES + WINDOW;

    /// At the begin of a stream.
    pub fn new() -> Inflate {
        Inflate { decoder: Decoder::new(), window: Box::new([0; WINDOW]), fill: Fill::default() }
    }

    /// Begins another stream.
    pub fn reset(&mut self) {
        self.decoder.reset();
        self.fill = Fill::default();
    }

    /// Decodes as much as there is of input, or room for.
    ///
    /// # Errors
    /// The flaw of the stream: the same from then on.
    pub fn decode(&mut self, input: &[u8], room: &mut [u8]) -> Result<Progress, Flaw> {
        let mut input = Input::new(input);
        let mut output = Output::new(room, 0, Before::History(self.fill.history(&self.window[..])));
        let stop = self.decoder.decode(&mut input, &mut output, Pause::Never)?;
        if stop != Stop::Input {
            self.decoder.bits.give_back(&mut input);
        }
        let given = output.put_out();
        if stop != Stop::End {
            self.fill.put(&mut self.window[..], &room[..given]);
        }
        Ok(Progress { taken: input.taken(), given, stop })
    }
}

impl Default for Inflate {
    fn default() -> Inflate {
        Inflate::new()
    }
}
