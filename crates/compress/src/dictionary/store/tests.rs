use super::*;
use std::sync::Arc;
use tempfile::TempDir;
use terse_dictionary::field::UseAs;
use terse_dictionary::{Dictionary, Hash, Origin, Pattern};

struct Folder {
    folder: TempDir,
    place: Place,
    figures: Figures,
}

fn folder(most_bytes: u64) -> Folder {
    let folder = TempDir::new().unwrap();
    let place = Place { folder: folder.path().to_owned(), most_bytes };
    Folder { folder, place, figures: Figures::default() }
}

impl Folder {
    fn store(&self) -> Store<'_> {
        Store::new(&self.place, &self.figures)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Makes a file so many seconds older.
    fn age(&self, name: &str, seconds: u64) {
        let file = File::options().append(true).open(self.folder.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    }

    fn failures(&self) -> u64 {
        self.figures.failures.load(Relaxed)
    }
}

fn origin(host: &str) -> Origin {
    Origin::of(host.as_bytes(), true).unwrap()
}

fn dictionary(bytes: &[u8]) -> Arc<Dictionary> {
    Arc::new(Dictionary::learned(UseAs::of(Pattern::new("/*.js").unwrap()), Hash::of(bytes), bytes.into()))
}

fn kept(host: &str, bytes: &[u8]) -> Kept {
    Kept { origin: origin(host), pattern: Pattern::new("/*.js").unwrap(), hash: Hash::of(bytes), bytes: bytes.into() }
}

fn name(host: &str, bytes: &[u8]) -> String {
    stored::name(&origin(host), &Hash::of(bytes))
}

/// What a look finds, by host and bytes.
fn looked(store: &mut Store<'_>) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    store.look(|one| {
        assert_eq!((one.hash, one.pattern.as_str()), (Hash::of(&one.bytes), "/*.js"));
        found.push((one.origin.to_string(), one.bytes.to_vec()));
    });
    found
}

#[test]
fn what_one_keeps_another_finds_latest_first() {
    let folder = folder(1 << 20);
    let (mut one, mut other) = (folder.store(), folder.store());
    one.keep(&kept("a", b"old"));
    one.keep(&kept("b", b"new"));
    folder.age(&name("a", b"old"), 100);
    assert!(looked(&mut one).is_empty(), "its own are not news");
    let both = [("https://b".into(), b"new".to_vec()), ("https://a".into(), b"old".to_vec())];
    assert_eq!(looked(&mut other), both);
    assert!(looked(&mut other).is_empty(), "once");
    other.keep(&kept("a", b"third"));
    assert_eq!(looked(&mut one), [("https://a".into(), b"third".to_vec())]);
    assert_eq!((folder.figures.files.load(Relaxed), folder.failures()), (3, 0));
    fs::remove_file(folder.folder.path().join(name("a", b"third"))).unwrap();
    looked(&mut one);
    other.keep(&kept("a", b"third"));
    assert_eq!(looked(&mut one).len(), 1, "one that has gone may come again");
}

#[test]
fn the_oldest_files_go() {
    let folder = folder(1000);
    let mut store = folder.store();
    for (age, byte) in [(300, 1u8), (200, 2), (100, 3)] {
        store.keep(&kept("a", &[byte; 300]));
        folder.age(&name("a", &[byte; 300]), age);
    }
    let list = || vec![Listed { origin: origin("a"), dictionary: dictionary(&[1; 300]), since: 0 }];
    (1..TOUCH).for_each(|_| store.touch(|| panic!("not each time")));
    store.touch(list);
    looked(&mut store);
    assert_eq!(folder.names(), sorted([name("a", &[3; 300]), name("a", &[2; 300])]), "it was not offered");
    store.keep(&kept("a", &[4; 300]));
    let offered = dictionary(&[2; 300]);
    offered.counters.offered.store(1, Relaxed);
    let list = || vec![Listed { origin: origin("a"), dictionary: offered.clone(), since: 0 }];
    (0..TOUCH).for_each(|_| store.touch(list));
    looked(&mut store);
    assert_eq!(folder.names(), sorted([name("a", &[2; 300]), name("a", &[4; 300])]), "it was offered");
    assert!(folder.figures.bytes.load(Relaxed) <= 1000);
    assert_eq!(folder.failures(), 0);
}

fn sorted<const N: usize>(mut names: [String; N]) -> [String; N] {
    names.sort();
    names
}

#[test]
fn damaged_and_foreign_files() {
    let folder = folder(1 << 20);
    let mut store = folder.store();
    store.keep(&kept("a", b"one"));
    store.keep(&kept("a", b"two"));
    let at = |name: &str| folder.folder.path().join(name);
    let (cut, moved) = (at(&name("a", b"one")), at(&name("b", b"two")));
    let content = fs::read(&cut).unwrap();
    fs::write(&cut, &content[..content.len() - 1]).unwrap();
    fs::copy(at(&name("a", b"two")), &moved).unwrap();
    fs::write(at("README"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", at(&name("c", b"link"))).unwrap();
    let abandoned = format!("{}.1{UNFINISHED}", name("a", b"three"));
    fs::write(at(&abandoned), "half").unwrap();
    folder.age(&abandoned, 4000);
    let mut fresh = folder.store();
    assert_eq!(looked(&mut fresh), [("https://a".into(), b"two".to_vec())]);
    assert_eq!(folder.failures(), 2);
    assert!(folder.figures.last_failure().contains("are not those of its name"), "{}", folder.figures.last_failure());
    looked(&mut fresh);
    assert_eq!(folder.failures(), 2, "they are not looked at again");
    assert!(cut.exists() && moved.exists() && at("README").exists() && !at(&abandoned).exists());
    fresh.clear();
    assert_eq!(folder.names(), sorted(["README".into(), name("c", b"link")]));
}

#[test]
fn a_folder_that_is_none_is_told() {
    let folder = folder(1 << 20);
    let place = Place { folder: folder.folder.path().join("gone"), most_bytes: 1000 };
    let mut store = Store::new(&place, &folder.figures);
    store.keep(&kept("a", b"one"));
    assert!(looked(&mut store).is_empty());
    store.clear();
    assert_eq!(folder.failures(), 3);
    let said = std::cell::RefCell::new(Vec::new());
    (0..2).for_each(|_| store.tell(&|text| said.borrow_mut().push(text.to_owned())));
    assert!(matches!(&said.borrow()[..], [text] if text.ends_with("(3 failures so far)")), "{said:?}");
    assert!(folder.figures.last_failure().contains("gone: No such file or directory"), "{}", folder.figures.last_failure());
}
