//! Files that `terse gunzip` is given: whatever comes is decompressed or refused without a panic, gzip and zstd as other decoders do
//! it; and what is opened at its end ([`terse_deflate::splice_streams`]) is still the stream that it was.
#![no_main]

use flate2::bufread::{DeflateDecoder, MultiGzDecoder};
use libfuzzer_sys::fuzz_target;
use std::io::{self, Read, Write};
use terse_deflate::splice_streams;
use terse_pack::unpack::{self, Input};
use terse_pack::{Fault, Form};

/// Bytes that come out at most: there are small inputs with large outputs.
const MOST: usize = 1 << 20;

struct Sink(Vec<u8>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fuzz_target!(|bytes: &[u8]| {
    for wanted in [None, Some(Form::Brotli)] {
        let mut source = bytes;
        let mut input = Input::new(&mut source);
        let Ok(form) = unpack::detect(&mut input, wanted) else { continue };
        let mut sink = Sink(Vec::new());
        let result = unpack::unpack(form, &mut input, &mut sink);
        if let (Form::Gzip, Ok(unpacked)) = (form, &result) {
            assert_eq!(unpacked.bytes as usize, sink.0.len());
            let mut theirs = Vec::new();
            let read = MultiGzDecoder::new(bytes).read_to_end(&mut theirs);
            assert!(theirs.starts_with(&sink.0) && (read.is_ok() || unpacked.has_garbage || bytes.ends_with(&[0])));
        }
        assert!(!matches!(result, Err(Fault::Engine)));
    }
    let mut opened = bytes.to_vec();
    let mut before = Vec::new();
    let mut decoder = DeflateDecoder::new(bytes);
    let is_sound = (&mut decoder).take(MOST as u64).read_to_end(&mut before).is_ok() && before.len() < MOST;
    if is_sound && splice_streams::open(&mut opened, 0).is_some() {
        // A last block behind it, stored, of one byte.
        opened.extend_from_slice(&[1, 1, 0, 0xfe, 0xff, b'x']);
        let mut after = Vec::new();
        DeflateDecoder::new(&opened[..]).read_to_end(&mut after).expect("an opened stream goes on");
        before.push(b'x');
        assert!(after == before);
    }
});
