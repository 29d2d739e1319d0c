//! Cases for decoders: the output of other coders comes back, and faulty input is an error with a reason.

use crate::bodies::{self, Dice, noise, text};
use crate::{Case, Form};
use std::io::Write;

/// An adapter that decodes a body that is all there. Many threads may call it.
pub trait Reader: Sync {
    /// Its name.
    fn name(&self) -> String;

    /// Format of its input.
    fn form(&self) -> Form;

    /// The body.
    ///
    /// # Errors
    /// The fault, in its words; so is an end in the middle.
    fn read(&self, coded: &[u8]) -> Result<Vec<u8>, String>;

    /// Whether its format has marks that noise lacks.
    fn knows_noise(&self) -> bool {
        !matches!(self.form(), Form::Raw | Form::Brotli)
    }
}

/// Tries all cases.
pub fn try_all(face: &(dyn Reader + 'static)) {
    crate::run(&face.name(), CASES, face);
}

/// The cases.
pub const CASES: &[Case<dyn Reader>] = &[
    ("what others have coded comes back", every_body),
    ("what is cut is an error", cut),
    ("a changed byte is an error where there is a checksum", changed),
    ("noise is an error", noises),
    ("many threads at a time", on_threads),
];

/// A body, coded by a program that is not ours where there is one.
pub fn coded(form: Form, body: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::default();
    match form {
        Form::Identity => body.to_vec(),
        Form::Gzip => {
            let mut coder = flate2::GzBuilder::new().filename("a name").comment("a comment").extra(vec![7; 300]).mtime(1);
            coder = coder.operating_system(3);
            let mut coder = coder.write(Vec::new(), level);
            coder.write_all(body).unwrap();
            coder.finish().unwrap()
        }
        Form::Zlib => {
            let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            coder.write_all(body).unwrap();
            coder.finish().unwrap()
        }
        Form::Raw => {
            let mut coder = flate2::write::DeflateEncoder::new(Vec::new(), level);
            coder.write_all(body).unwrap();
            coder.finish().unwrap()
        }
        Form::Zstd | Form::ZstdFrames => ruzstd::encoding::compress_to_vec(body, ruzstd::encoding::CompressionLevel::Fastest),
        Form::Brotli => {
            let (mut out, mut parameters) = (Vec::new(), brotli::enc::BrotliEncoderParams::default());
            parameters.quality = 5;
            brotli::BrotliCompress(&mut &body[..], &mut out, &parameters).unwrap();
            out
        }
    }
}

fn every_body(face: &dyn Reader) {
    for body in bodies::all() {
        let came = face.read(&coded(face.form(), &body.bytes));
        let came = came.unwrap_or_else(|reason| panic!("{}, {}: {reason}", face.name(), body.name));
        assert!(came == body.bytes, "{}, {}", face.name(), body.name);
    }
}

fn cut(face: &dyn Reader) {
    let whole = coded(face.form(), &text(1, 2000));
    for end in 0..whole.len() {
        let reason = face.read(&whole[..end]).err();
        assert!(reason.is_some_and(|reason| !reason.is_empty()), "{}: {end} of {}", face.name(), whole.len());
    }
}

fn changed(face: &dyn Reader) {
    let body = text(1, 5000);
    let whole = coded(face.form(), &body);
    let has_checksum = matches!(face.form(), Form::Gzip | Form::Zlib);
    for at in (0..whole.len()).step_by(3) {
        for change in [0x55, 0x01, 0x80] {
            let mut wrong = whole.clone();
            wrong[at] ^= change;
            let came = face.read(&wrong);
            assert!(came.is_err() || !has_checksum || came == Ok(body.clone()), "{}: a byte changed at {at}", face.name());
        }
    }
}

fn noises(face: &dyn Reader) {
    for seed in 0..300 {
        let length = Dice::new(seed).below(400);
        let wrong = noise(seed, length);
        match face.read(&wrong) {
            Ok(_) => assert!(!face.knows_noise(), "{}: {length} bytes of noise", face.name()),
            Err(reason) => assert!(!reason.is_empty(), "{}", face.name()),
        }
    }
}

fn on_threads(face: &dyn Reader) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for number in 0..10 {
                    let body = text(thread * 100 + number, 20_000);
                    assert!(face.read(&coded(face.form(), &body)) == Ok(body), "{}: thread {thread}", face.name());
                }
            });
        }
    });
}
