use super::*;
use crate::testing::{read, reasons};
use crate::{Effective, Process};
use terse_config::Config;

fn load(text: &str) -> (Config, Arc<[EngineSettings]>, Vec<String>) {
    let (mut config, mut diagnostics) = read(&[crate::KEYWORDS, KEYWORDS], text);
    let engines = settle(&mut config.sections, &mut diagnostics);
    (config, engines, reasons(&diagnostics))
}

#[test]
fn the_table_is_sound() {
    assert_eq!(terse_config::keyword::tables_are_sound(&[KEYWORDS, crate::KEYWORDS]), [""; 0]);
}

#[test]
fn proxies_find_their_engines() {
    let (config, engines, said) = load(
        "engine slow\n library /lib/a.so\n\
         engine card\n library /lib/b.so\n threads 2\n jobs 8\n maxqueue 3\n deadline 250ms\n smallest 1k\n largest 16m\n verify full\n \
         fallback 1\n fall 2\n rise 4\n inter 20ms\n in-process\n\
         defaults\n compression engine card\n\
         backend a\n compression collect 64k\nbackend b\n compression engine none\nbackend c\n",
    );
    assert_eq!(said, [""; 0]);
    let card = &engines[1];
    assert_eq!((&*card.name, &card.source), ("card", &Source::Library("/lib/b.so".into())));
    assert_eq!((card.threads, card.jobs(), card.max_queue), (2, 8, 3));
    assert_eq!((card.smallest(), card.largest), (1024, 16 << 20));
    assert_eq!((card.deadline, card.inter), (Duration::from_millis(250), Duration::from_millis(20)));
    assert_eq!((card.verify, card.fallback, card.fall, card.rise, card.in_process), (Verify::Full, Some(1), 2, 4, true));
    assert_eq!(
        EngineSettings {
            name: "".into(),
            place: Place::nowhere(),
            source: Source::Unsaid,
            source_place: Place::nowhere(),
            ..engines[0].clone()
        },
        EngineSettings::default()
    );
    let process = Process::default();
    let of = |name: &str| {
        let section = config.sections.iter().find(|section| &*section.name == name).unwrap();
        let effective = Effective::new(None, section.settings.get(), &process);
        assert_eq!(
            effective.collect_bytes(crate::Coding::Zstd).min(crate::body::DEFAULT_COLLECT_BYTES),
            effective.collect_bytes(crate::Coding::Zstd)
        );
        (effective.engine(), effective.collect_bytes(crate::Coding::Gzip))
    };
    assert_eq!(of("a"), (Some(EngineId(1)), 64 << 10));
    assert_eq!(of("b"), (None, crate::body::DEFAULT_COLLECT_BYTES));
    assert_eq!(of("c"), (Some(EngineId(1)), 16 << 20), "what the engine takes is collected");
}

#[test]
fn a_device_is_named_by_its_number() {
    let (_, engines, said) = load("engine one\n device cuda\nengine two\n device cuda 3\n jobs 7\n");
    assert_eq!(said, [""; 0]);
    let read: Vec<_> = engines.iter().map(|engine| (engine.source.clone(), engine.jobs(), engine.threads)).collect();
    assert_eq!(read, [(Source::Cuda(0), 32, 4), (Source::Cuda(3), 7, 4)]);
}

#[test]
fn a_source_is_its_word() {
    for (word, source) in [
        ("cuda:2", Source::Cuda(2)),
        ("/lib/a.so", Source::Library("/lib/a.so".into())),
        ("cuda:x", Source::Library("cuda:x".into())),
    ] {
        assert_eq!((Source::of(word.as_ref()), source.word()), (source.clone(), word.into()));
    }
    assert_eq!(Source::of("cuda".as_ref()), Source::Cuda(0));
}

#[test]
fn what_is_wrong_is_said() {
    for (text, reason) in [
        ("engine e\n", "engine 'e' has no 'library'"),
        ("engine e\n device opencl\n", "expects 'cuda', not 'opencl'"),
        ("engine e\n device cuda -1\n", "is not between 0 and 255"),
        ("engine e\n device cuda\n library /l.so\n", "a 'library' or a 'device', not both"),
        ("engine e\n device cuda\n in-process\n", "not 'in-process'"),
        ("engine e\n library lib.so\n", "'lib.so' is not an absolute path"),
        ("engine e\n library /l.so\n threads 0\n", "is not between 1 and 256"),
        ("engine e\n library /l.so\n deadline 0\n", "is not between 1us"),
        ("engine e\n library /l.so\n largest 1g\n", "is above the limit"),
        ("engine e\n library /l.so\n smallest 9m\n", "is above 'largest'"),
        ("engine e\n library /l.so\n verify twice\n", "not 'twice'"),
        ("engine e\n library /l.so\n fallback 10\n", "is not between 0 and 9"),
        ("engine e\n library /l.so\nengine e\n library /l.so\n", "e"),
        ("engine e\n library /l.so\nbackend b\n compression engine f\n", "there is no engine 'f'"),
        ("backend b\n compression engine\n", "<name>"),
    ] {
        let (_, _, said) = load(text);
        assert!(said.iter().any(|said| said.contains(reason)), "{text}: {said:?}");
    }
}
