use super::*;
use crate::engine;
use crate::line::{Plan, compress};
use crate::progress::Progress;
use crate::stream;

fn body(length: usize) -> Vec<u8> {
    let mut state = 7u32;
    (0..length)
        .map(|at| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if (at / 50_000) % 4 == 3 { (state >> 24) as u8 } else { b"<p>the quick brown fox jumps</p>\n"[(state >> 27) as usize] }
        })
        .collect()
}

/// Output of an engine, with two workers.
fn packed(engine: &'static engine::Engine, level: u8, body: &[u8]) -> Vec<u8> {
    let plan = Plan { engine, level, workers: 2, input_bytes: Some(body.len() as u64) };
    let mut out = Vec::new();
    stream::compress(&mut &body[..], &mut out, &plan, &Header::default(), &Progress::new("", None, true)).unwrap();
    out
}

fn unpacked(form: Form, packed: &[u8]) -> Result<(Vec<u8>, Unpacked), Fault> {
    let mut out = Vec::new();
    let (mut source, wanted) = (packed, (form == Form::Brotli).then_some(form));
    let mut input = Input::new(&mut source);
    let form = detect(&mut input, wanted)?;
    let unpacked = unpack(form, &mut input, &mut out)?;
    Ok((out, unpacked))
}

#[test]
fn a_frame_that_was_changed_is_a_fault() {
    let body = body(300_000);
    let sound = packed(engine::of(Form::Zstd, 6), 4, &body);
    for at in (20..sound.len()).step_by(sound.len() / 50) {
        let mut changed = sound.clone();
        changed[at] ^= 0x10;
        // A bit without meaning may differ.
        if let Ok((out, _)) = unpacked(Form::Zstd, &changed) {
            assert!(out == body, "{at}");
        }
    }
}

#[test]
fn members_follow_each_other_and_garbage_is_told() {
    for form in [Form::Gzip, Form::Zstd] {
        let (one, two) = (body(5000), body(70_000));
        let mut both = packed(engine::of(form, 6), 6, &one);
        both.extend(packed(engine::of(form, 6), 6, &two));
        let whole = [one, two].concat();
        for (behind, is_garbage) in
            [(&b""[..], false), (&[0; 1000], false), (b"garbage", true), (&[0, 0, 1], true), (&[0x1f], true)]
        {
            let (out, said) = unpacked(form, &[&both[..], behind].concat()).unwrap();
            assert!(out == whole);
            assert_eq!(said.has_garbage, is_garbage, "{behind:?}");
        }
    }
    let sound = packed(engine::of(Form::Gzip, 6), 6, b"hello");
    let result = unpacked(Form::Gzip, &[&sound[..], &[0x1f, 0x8b, 8]].concat());
    assert!(matches!(result, Err(Fault::End)), "a member that begins must end");
}

#[test]
fn checksum_and_length_are_told_apart() {
    let sound = packed(engine::of(Form::Gzip, 6), 6, &body(10_000));
    let changed = |from_end: usize| {
        let mut changed = sound.clone();
        let place = changed.len() - from_end;
        changed[place] ^= 1;
        unpacked(Form::Gzip, &changed)
    };
    assert!(matches!(changed(8), Err(Fault::Checksum)));
    assert!(matches!(changed(1), Err(Fault::Length)));
}

#[test]
fn formats_are_told_by_their_first_bytes() {
    let detected = |bytes: &[u8], wanted| detect(&mut Input::new(&mut &bytes[..]), wanted);
    assert_eq!(detected(&[0x1f, 0x8b, 8, 0], None).unwrap(), Form::Gzip);
    assert_eq!(detected(&[0x28, 0xb5, 0x2f, 0xfd], None).unwrap(), Form::Zstd);
    assert_eq!(detected(b"any", Some(Form::Brotli)).unwrap(), Form::Brotli);
    assert!(matches!(detected(&[0x28, 0xb5, 0x2f, 0xfd], Some(Form::Gzip)), Err(Fault::Format("gzip"))));
    assert!(matches!(detected(b"text", None), Err(Fault::Format("gzip"))));
    assert!(matches!(detected(b"", None), Err(Fault::End)));
    assert!(matches!(detected(&[0x1f, 0x9d, 0x90], None), Err(Fault::Unsupported(_))));
}

#[test]
fn a_sink_that_breaks_ends_the_work() {
    struct Broken(usize);
    impl Write for Broken {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let body = body(3_000_000);
    let plan = Plan { engine: engine::of(Form::Gzip, 6), level: 1, workers: 3, input_bytes: Some(body.len() as u64) };
    let fault = compress(&mut &body[..], &mut Broken(300_000), &plan, &Progress::new("", None, true)).unwrap_err();
    assert!(fault.is_broken_pipe());
}
