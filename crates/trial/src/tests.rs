//! The cases find the faults of an engine: each of these engines has a single fault.

use crate::{Form, Whole, decode, reader, whole};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Code = fn(&[u8], u8, &mut Vec<u8>) -> Result<(), String>;

/// Output of the coders that decoders are tried with, then made wrong.
struct Faulty(Code);

impl Whole for Faulty {
    fn name(&self) -> String {
        "an engine of the tests".into()
    }

    fn form(&self) -> Form {
        Form::Gzip
    }

    fn levels(&self) -> Vec<u8> {
        vec![6]
    }

    fn code(&self, body: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
        (self.0)(body, level, out)
    }
}

/// A gzip member like the reader's, but with a head of ten bytes.
fn gzip(body: &[u8]) -> Vec<u8> {
    let (mut coder, mut checksum) = (b"\x1f\x8b\x08\0\0\0\0\0\0\xff".to_vec(), flate2::Crc::new());
    checksum.update(body);
    coder.extend(reader::coded(Form::Raw, body));
    coder.extend(checksum.sum().to_le_bytes());
    coder.extend((body.len() as u32).to_le_bytes());
    coder
}

fn passes(code: Code) -> bool {
    catch_unwind(AssertUnwindSafe(|| whole::try_all(&Faulty(code)))).is_ok()
}

#[test]
fn a_sound_engine_passes_and_one_with_a_fault_does_not() {
    assert!(passes(|body, _, out| {
        out.extend(gzip(body));
        Ok(())
    }));
    let faulty: [Code; 5] = [
        |_, _, _| Err("no".to_owned()),
        |body, _, out| {
            out.extend(gzip(body));
            out.push(0);
            Ok(())
        },
        |body, _, out| {
            *out = gzip(body);
            Ok(())
        },
        |body, _, out| {
            let coded = gzip(body);
            out.extend(&coded[..coded.len() - 1]);
            Ok(())
        },
        |body, level, out| {
            out.extend(gzip(if level > 200 { b"" } else { body }));
            Ok(())
        },
    ];
    assert!(faulty.into_iter().all(|code| !passes(code)));
}

#[test]
fn decoders_read_what_the_readers_are_given() {
    for form in [Form::Zlib, Form::Raw, Form::Zstd, Form::ZstdFrames, Form::Brotli, Form::Identity] {
        for body in [&b""[..], b"x", &crate::bodies::mixed(50_000)] {
            let coded = reader::coded(form, body);
            assert!(decode::whole(form, &coded) == body, "{form:?}");
            if form != Form::Identity {
                assert!(
                    !decode::part(form, &coded[..coded.len() - 1]).1 && !decode::part(form, &[&coded[..], b"x"].concat()).1,
                    "{form:?}"
                );
            }
        }
    }
    assert_eq!(decode::whole(Form::Gzip, &gzip(b"hello")), b"hello");
}
