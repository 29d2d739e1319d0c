use super::*;
use std::collections::HashMap;

/// A name like that of a body.
pub(super) fn name(i: u64) -> Name {
    Name::of(&owner("test"), &i.to_le_bytes())
}

fn owner(name: &str) -> Owner {
    Owner::new(&[7; 32], name)
}

fn form(level: u8, bytes: &[u8]) -> Form {
    Form { coding: Coding::Gzip, level: Level(level), bytes: bytes.into(), cost_ns: 7 }
}

fn found(look: Look) -> Option<Form> {
    match look {
        Look::Found { form, .. } => Some(form),
        Look::Known | Look::New => None,
    }
}

fn look(memory: &Memory, name: &Name) -> Look {
    memory.look(name, Coding::Gzip, Level(0), None)
}

/// Asks for a body, and keeps it as a compressor would; returns whether it was there.
fn ask(memory: &Memory, i: u64, bytes: usize) -> bool {
    match look(memory, &name(i)) {
        Look::Found { form, .. } => {
            assert_eq!(form.bytes[..8], i.to_le_bytes(), "another body's form");
            true
        }
        Look::Known => {
            let mut body = vec![0; bytes.max(8)];
            body[..8].copy_from_slice(&i.to_le_bytes());
            memory.keep(&name(i), form(6, &body));
            false
        }
        Look::New => false,
    }
}

fn load(number: &AtomicU64) -> u64 {
    number.load(Relaxed)
}

#[test]
fn names_are_of_bytes_and_owners() {
    let (one, other) = (owner("a"), owner("b"));
    assert_eq!(Name::of(&one, b"body"), Name::of(&one, b"body"));
    assert_ne!(Name::of(&one, b"body"), Name::of(&one, b"Body"));
    assert_ne!(Name::of(&one, b"body"), Name::of(&other, b"body"));
    assert_ne!(Name::of(&one, b"body"), Name::of(&Owner::new(&[8; 32], "a"), b"body"));
}

#[test]
fn a_name_is_the_same_however_the_body_comes() {
    let body: Vec<u8> = (0..1_000_000u32).flat_map(|i| (i / 7).to_le_bytes()).take(1_000_000).collect();
    for pieces in [1_000_000, 262_144, 100_000, 65_536, 777] {
        let mut naming = Naming::new(owner("a"));
        let mut so_far = 0;
        for piece in body.chunks(pieces) {
            so_far += piece.len();
            naming.see(&body[..so_far]);
        }
        assert_eq!(naming.finish(&body), Name::of(&owner("a"), &body), "{pieces}");
    }
}

#[test]
fn a_body_is_kept_when_it_comes_again() {
    let memory = Memory::new(1 << 20);
    assert!(!ask(&memory, 1, 100) && memory.held() == (0, 0));
    assert!(!ask(&memory, 1, 100) && memory.held().0 == 1);
    assert!(ask(&memory, 1, 100) && ask(&memory, 1, 100));
    let numbers = memory.numbers();
    assert_eq!((load(&numbers.hits), load(&numbers.misses), load(&numbers.admitted)), (2, 2, 1));
    memory.clear();
    assert_eq!(memory.held(), (0, 0));
    assert!(!ask(&memory, 1, 100) && ask(&memory, 1, 100), "that it was seen is not forgotten");
}

#[test]
fn codings_and_levels_are_told_apart() {
    let memory = Memory::new(1 << 20);
    let zstd = Form { coding: Coding::Zstd, level: Level(3), bytes: b"zstd"[..].into(), cost_ns: 7 };
    assert!(memory.keep(&name(1), form(4, b"four")) && memory.keep(&name(1), zstd));
    let at = |coding, least| found(memory.look(&name(1), coding, Level(least), None)).map(|form| form.bytes.to_vec());
    assert_eq!(at(Coding::Gzip, 4), Some(b"four".to_vec()));
    assert_eq!((at(Coding::Gzip, 5), at(Coding::Brotli, 0)), (None, None));
    assert_eq!(at(Coding::Zstd, 1), Some(b"zstd".to_vec()));
    assert!(memory.keep(&name(1), form(3, b"three")));
    assert_eq!(at(Coding::Gzip, 0), Some(b"four".to_vec()), "a worse form does not take a better one's place");
    assert!(memory.keep(&name(1), form(6, b"six")));
    assert_eq!(at(Coding::Gzip, 5), Some(b"six".to_vec()));
    assert_eq!(memory.held().0, 1);
}

#[test]
fn one_offs_push_out_nothing() {
    let memory = Memory::new(1 << 20);
    let hot = |memory: &Memory| (0..40).filter(|&i| ask(memory, i, 20_000)).count();
    hot(&memory);
    hot(&memory);
    assert_eq!(hot(&memory), 40);
    for i in 0..20_000 {
        ask(&memory, 1_000_000 + i, 20_000);
        if i % 500 == 0 {
            assert_eq!(hot(&memory), 40, "{i}");
        }
    }
    // Bodies that come twice find the room that is left, and no more.
    for i in 0..5_000 {
        ask(&memory, 2_000_000 + i / 2, 20_000);
        if i % 500 == 0 {
            assert_eq!(hot(&memory), 40, "{i}");
        }
    }
    assert!(load(&memory.numbers().refused) > 0);
}

#[test]
fn what_is_hot_now_takes_the_place_of_what_was() {
    let memory = Memory::new(1 << 20);
    for _ in 0..60 {
        (0..40).for_each(|i| _ = ask(&memory, i, 20_000));
    }
    let mut rounds = 0;
    while (100..140).filter(|&i| ask(&memory, i, 20_000)).count() < 40 {
        rounds += 1;
        assert!(rounds < 400, "the old ones stay for ever");
    }
    assert!(load(&memory.numbers().evicted) > 0);
}

#[test]
fn what_is_too_large_is_refused() {
    let memory = Memory::new(64 << 10);
    assert!((0..3).all(|_| !ask(&memory, 1, 100_000)));
    assert_eq!((memory.held(), load(&memory.numbers().refused)), ((0, 0), 2));
    // Nor does it cost the forms of other codings of its body, or other bodies.
    assert!(memory.keep(&name(2), form(6, &[0; 1000])) && memory.keep(&name(3), form(6, &[0; 1000])));
    let large = Form { coding: Coding::Brotli, level: Level(5), bytes: vec![0; 70_000].into(), cost_ns: 7 };
    assert!(!memory.keep(&name(2), large));
    assert!(found(look(&memory, &name(2))).is_some() && memory.held().0 == 2);
}

#[test]
fn a_better_form_takes_the_place_of_one_that_is_asked_for_often() {
    let memory = Memory::new(1 << 20);
    memory.keep(&name(1), form(6, &[6; 600]));
    let popular = |to_raise| matches!(memory.look(&name(1), Coding::Gzip, Level(0), to_raise), Look::Found { popular: true, .. });
    assert!(!(0..100).any(|_| popular(None)), "there is no time");
    assert!(popular(Some(Level(9))) && !popular(Some(Level(9))), "one try at a time");
    memory.raise(&name(1), Coding::Gzip, None);
    assert_eq!((0..100).position(|_| popular(Some(Level(9)))), Some(POPULAR_HITS as usize - 1), "and again some hits later");
    memory.raise(&name(1), Coding::Gzip, Some(form(9, &[9; 500])));
    let now = found(look(&memory, &name(1))).unwrap();
    assert_eq!((now.level, &now.bytes[..]), (Level(9), &[9; 500][..]));
    assert!(!(0..100).any(|_| popular(Some(Level(9)))), "there is nothing better");
    let numbers = memory.numbers();
    assert_eq!((load(&numbers.raised), load(&numbers.raised_bytes)), (1, 100));

    memory.keep(&name(2), form(6, &[6; 600]));
    memory.raise(&name(2), Coding::Gzip, Some(form(9, &[9; 700])));
    let now = found(look(&memory, &name(2))).unwrap();
    assert_eq!((now.level, now.bytes.len()), (Level(9), 600), "a larger one does not, but nobody tries again");
    memory.raise(&name(3), Coding::Gzip, Some(form(9, b"gone meanwhile")));
    assert!(found(look(&memory, &name(3))).is_none());
}

#[test]
fn raised_by_the_thread() {
    let body: Vec<u8> = (0..3000u32).flat_map(|i| format!("{} and {}, ", i % 77, i * i % 1013).into_bytes()).collect();
    let (memory, owner) = (Arc::new(Memory::new(1 << 20)), owner("a"));
    let name = Name::of(&owner, &body);
    let pool = crate::coder::Pool::new(crate::coder::Tuning::default());
    let mut fast = Vec::new();
    (crate::coder::Engine::of(Coding::Gzip).whole)(&body, Level(1), &pool, &mut fast).unwrap();
    memory.keep(&name, form(1, &fast));
    let raiser = Arc::new(Raiser::start(None).unwrap());
    let limit = Arc::new(crate::budget::Limit::new(1 << 20));
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while load(&memory.numbers().raised) == 0 {
        assert!(std::time::Instant::now() < give_up, "nothing was raised");
        let mut remembrance = Remembrance::new(memory.clone(), &owner, Level(1)).with_raiser(raiser.clone(), Level(9));
        let found = remembrance.find(&body, Coding::Gzip).unwrap();
        assert_eq!(remembrance.recall(), Recall::Hit);
        if let Some(popular) = found.popular {
            assert!(crate::budget::Budget::take(&*limit, body.len()));
            popular.give(body.clone(), (limit.clone(), body.len()));
        }
        std::thread::yield_now();
    }
    let better = found(memory.look(&name, Coding::Gzip, Level(9), None)).unwrap();
    let mut decoded = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&better.bytes[..]), &mut decoded).unwrap();
    assert!(better.bytes.len() < fast.len() && decoded == body);
    while limit.used() > 0 {
        assert!(std::time::Instant::now() < give_up, "the body still counts");
        std::thread::yield_now();
    }
}

#[test]
fn forms_with_a_dictionary_are_raised_with_it() {
    let text =
        |seed: u32| (0..3000u32).flat_map(move |i| format!("{} and {}, ", i % 77, (i * i + i / 50 * seed) % 1013).into_bytes());
    let (old, body): (Vec<u8>, Vec<u8>) = (text(1).collect(), text(2).collect());
    let use_as = terse_dictionary::field::UseAs::of(terse_dictionary::Pattern::new("/*").unwrap());
    let hash = terse_dictionary::Hash::of(&old);
    let dictionary = Arc::new(terse_dictionary::Dictionary::learned(use_as, hash, old.clone().into()));
    let pool = Arc::new(crate::coder::Pool::new(crate::coder::Tuning::default()));
    let mut fast = Vec::new();
    let mut coder = crate::coder::dcz::Stream::new(Level(1), Some(body.len() as u64), true, &dictionary, &pool);
    crate::coder::Coder::push(&mut coder, &body, &mut fast, crate::coder::Flush::Finish).unwrap();
    let (memory, owner) = (Arc::new(Memory::new(1 << 20)), owner("a"));
    let name = Name::of(&owner.with_dictionary(&hash), &body);
    memory.keep(&name, Form { coding: Coding::Dcz, ..form(1, &fast) });
    let raiser = Arc::new(Raiser::start(None).unwrap());
    let limit = Arc::new(crate::budget::Limit::new(1 << 20));
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while load(&memory.numbers().raised) == 0 {
        assert!(std::time::Instant::now() < give_up, "nothing was raised");
        let remembrance = Remembrance::new(memory.clone(), &owner, Level(1)).with_dictionary(&owner, dictionary.clone());
        let mut remembrance = remembrance.with_raiser(raiser.clone(), Level(u8::MAX));
        if let Some(popular) = remembrance.find(&body, Coding::Dcz).unwrap().popular {
            assert!(crate::budget::Budget::take(&*limit, body.len()));
            popular.give(body.clone(), (limit.clone(), body.len()));
        }
        std::thread::yield_now();
    }
    let better = found(memory.look(&name, Coding::Dcz, Level(19), None)).unwrap();
    assert!(better.level == Level(19) && better.bytes.len() < fast.len(), "{} {}", better.bytes.len(), fast.len());
    assert_eq!(better.bytes[8..40], hash.0);
    let mut context = zstd_safe::DCtx::create();
    context.ref_prefix(&old).unwrap();
    let mut decoded = vec![0; body.len()];
    let bytes = context.decompress(&mut decoded[..], &better.bytes[40..]).unwrap();
    assert!(decoded[..bytes] == body);
}

#[test]
fn levels_to_try_for_fit_the_body() {
    assert_eq!(Raiser::level(Coding::Gzip, Level(4), 1000), Level(4));
    assert_eq!(Raiser::level(Coding::Gzip, Level(u8::MAX), 1_000_000), Level(10));
    let brotli = [1000, 500_000, 5_000_000].map(|bytes| Raiser::level(Coding::Brotli, Level(u8::MAX), bytes));
    assert_eq!(brotli, [11, 10, 9].map(Level));
    assert!(Raiser::level(Coding::Zstd, Level(19), 100_000) > Raiser::level(Coding::Zstd, Level(19), 50_000_000));
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]
    /// Against a model that keeps all: a form that is found is the form that was kept, and the bound holds.
    #[test]
    fn nothing_is_found_that_was_not_kept(
        bytes in 64usize << 10..1 << 20,
        steps in proptest::collection::vec((0u8..4, 0u64..60, 0usize..40_000, 0u8..3), 1..400),
    ) {
        let memory = Memory::new(bytes);
        let mut kept: HashMap<(u64, Coding), Vec<Arc<[u8]>>> = HashMap::new();
        for (what, i, size, level) in steps {
            let coding = if i % 3 == 0 { Coding::Zstd } else { Coding::Gzip };
            let form = Form { coding, level: Level(level), bytes: vec![i as u8; size].into(), cost_ns: 7 };
            match what {
                0 => {
                    kept.entry((i, coding)).or_default().push(form.bytes.clone());
                    memory.keep(&name(i), form);
                }
                1 => {
                    kept.entry((i, coding)).or_default().push(form.bytes.clone());
                    memory.raise(&name(i), coding, Some(form));
                }
                _ => {
                    if let Some(form) = found(memory.look(&name(i), coding, Level(level), None)) {
                        proptest::prop_assert!(form.level >= Level(level) && form.coding == coding);
                        proptest::prop_assert!(kept[&(i, coding)].iter().any(|one| Arc::ptr_eq(one, &form.bytes)));
                    }
                }
            }
            let (bodies, taken) = memory.held();
            proptest::prop_assert!(taken <= bytes && bodies <= 60);
        }
    }
}
