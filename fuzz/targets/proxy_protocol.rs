//! Heads of the PROXY protocol: whatever comes is read without a panic, no byte beyond the head is counted, a prefix is never
//! another head, and what is told can be told on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terse_http::proxy_protocol::{Writer, line, parse};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some((length, announced))) = parse(bytes) else { return };
    assert!(length <= bytes.len());
    assert_eq!(parse(&bytes[..length]), Ok(Some((length, announced.clone()))));
    assert_eq!(parse(&bytes[..length - 1]), Ok(None));
    let told = line(announced.addresses);
    let again = parse(&told).expect("a line is a head").expect("a line is whole");
    assert_eq!(again.0, told.len());
    let mut writer = Writer::new(announced.addresses);
    announced.fields().filter(|(kind, _)| *kind != 3).for_each(|(kind, value)| writer.field(kind, value));
    writer.checksum();
    let told = writer.finish();
    let (length, again) = parse(&told).expect("what was told is a head").expect("it is whole");
    assert_eq!(length, told.len());
    assert_eq!(again.fields().filter(|(kind, _)| *kind != 3).count(), announced.fields().filter(|(kind, _)| *kind != 3).count());
});
