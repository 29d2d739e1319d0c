//! Fields, patterns and files of dictionaries (RFC 9842): nothing panics, a hash has one reading, what is written is read again as the same, and a
//! pattern stands in its field as it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use terse_dictionary::field::{self, UseAs};
use terse_dictionary::{Hash, Origin, Pattern, stored};

fuzz_target!(|bytes: &[u8]| {
    let available = field::available([bytes].into_iter());
    assert!(field::available([bytes, bytes].into_iter()).is_err(), "two fields are none");
    assert!(available.is_err() || bytes.contains(&b':'), "a hash without a byte sequence");
    if let Ok(id) = field::id([bytes].into_iter()) {
        assert!(id.len() <= field::MOST_ID && field::id_fault(&id).is_none());
    }
    if let Ok(use_as) = UseAs::read(bytes) {
        assert_eq!(UseAs::read(use_as.write().as_bytes()), Ok(use_as));
    }
    let _ = Origin::of(bytes, true);
    if let Ok((head, begin)) = stored::read_head(bytes) {
        let hash = Hash::of(&bytes[begin..]);
        let again = [stored::head(&head.origin, &head.pattern).as_bytes(), &bytes[begin..]].concat();
        assert_eq!(stored::read(&stored::name(&head.origin, &hash), &again), Ok((head, hash, &bytes[begin..])));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (text, target) = text.split_once('\n').unwrap_or((text, "/"));
    if let Ok(pattern) = Pattern::new(text) {
        let _ = pattern.takes(target.as_bytes());
        assert!(pattern.as_str().contains('*') || pattern.takes(text.as_bytes()), "a path is like itself");
        let field = UseAs::of(pattern.clone()).write();
        assert_eq!(UseAs::read(field.as_bytes()).map(|use_as| use_as.pattern), Ok(pattern));
    }
});
