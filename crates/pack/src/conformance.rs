//! Engines and decoders of files, through the common test cases ([`terse_trial`]). Engines go the whole way: the input
//! is cut into pieces that are coded on several threads and joined.

use crate::engine::{self, Engine};
use crate::form::Form;
use crate::header::Header;
use crate::line::Plan;
use crate::progress::Progress;
use crate::stream;
use crate::unpack::{Input, detect, unpack};
use std::io::{ErrorKind, Write};
use terse_trial::{Reader, Whole, reader, whole};

fn form(form: Form) -> terse_trial::Form {
    match form {
        Form::Gzip => terse_trial::Form::Gzip,
        Form::Zstd => terse_trial::Form::ZstdFrames,
        Form::Brotli => terse_trial::Form::Brotli,
    }
}

/// An engine that is given pieces of a certain length.
struct Pieces {
    engine: &'static Engine,
    workers: usize,
}

impl Pieces {
    fn new(engine: &Engine, piece_bytes: usize, workers: usize) -> Pieces {
        let Engine { name, form, about, make, .. } = *engine;
        Pieces { engine: Box::leak(Box::new(Engine { name, form, about, piece_bytes, make })), workers }
    }

    fn compress(&self, mut body: &[u8], level: u8, sink: &mut (dyn Write + Send)) -> Result<(), String> {
        let plan = Plan { engine: self.engine, level, workers: self.workers, input_bytes: None };
        let done = stream::compress(&mut body, sink, &plan, &Header::default(), &Progress::new("", None, true));
        done.map(drop).map_err(|fault| fault.to_string())
    }
}

impl Whole for Pieces {
    fn name(&self) -> String {
        format!("{}, pieces of {}, {} workers", self.engine.name, self.engine.piece_bytes, self.workers)
    }

    fn form(&self) -> terse_trial::Form {
        form(self.engine.form)
    }

    fn levels(&self) -> Vec<u8> {
        self.engine.form.levels().collect()
    }

    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
        self.compress(body, level, out)
    }

    /// Each piece has its end.
    fn bound(&self, bytes: usize) -> usize {
        bytes + bytes / 512 + 512 + bytes / self.engine.piece_bytes * 32
    }

    fn abandon(&self, body: &[u8], level: u8) {
        assert_eq!(self.compress(body, level, &mut Gone(5)), Err("broken pipe".into()));
    }
}

/// A sink whose reader closes after so many bytes.
struct Gone(usize);

impl Write for Gone {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Unpacker(Form);

impl Reader for Unpacker {
    fn name(&self) -> String {
        format!("{}, unpacked", self.0.name())
    }

    fn form(&self) -> terse_trial::Form {
        form(self.0)
    }

    fn read(&self, mut coded: &[u8]) -> Result<Vec<u8>, String> {
        let (mut out, mut input) = (Vec::new(), Input::new(&mut coded));
        let found = detect(&mut input, Some(self.0)).map_err(|fault| fault.to_string())?;
        unpack(found, &mut input, &mut out).map_err(|fault| fault.to_string())?;
        Ok(out)
    }
}

#[test]
fn engines_with_pieces_as_they_are() {
    for engine in engine::present() {
        whole::try_all(&Pieces::new(engine, engine.piece_bytes, 2));
    }
}

#[test]
fn engines_with_small_pieces() {
    for engine in engine::present() {
        // brotli makes a new state for each.
        let piece_bytes = if engine.form == Form::Brotli { 20_001 } else { 3001 };
        whole::try_all(&Pieces::new(engine, piece_bytes, 3));
    }
}

#[test]
fn decoders() {
    for form in Form::ALL {
        reader::try_all(&Unpacker(form));
    }
}
