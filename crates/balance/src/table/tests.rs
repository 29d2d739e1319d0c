//! Tables, without waiting: times are arguments.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use terse_config::Place;

const fn one(data: Data) -> Stored {
    Stored { data, elements: 1, period_ms: 1000 }
}

fn settings(size: usize, expire_ms: Option<u32>, store: &[Stored]) -> TableSettings {
    TableSettings {
        key: KeyKind::Text(32),
        size,
        expire_ms,
        no_purge: false,
        server_key: ServerKeyKind::Name,
        byte_rate_factor: 1,
        store: store.to_vec(),
        write_to: None,
        receives_only: false,
        peers: None,
        place: Place::nowhere(),
    }
}

fn table(size: usize, expire_ms: Option<u32>, store: &[Stored]) -> Arc<Table> {
    Arc::new(Table::new("t".into(), settings(size, expire_ms, store), &[]))
}

fn keys(table: &Table, now_ms: u64) -> Vec<String> {
    let entries = (0..table.shards()).flat_map(|shard| table.entries(shard, now_ms));
    let mut keys: Vec<_> = entries.map(|entry| String::from_utf8_lossy(entry.key()).into_owned()).collect();
    keys.sort();
    keys
}

#[test]
fn an_entry_is_made_once() {
    let table = table(10, None, &[one(Data::Gpc0)]);
    assert!(table.find(b"a", 1).is_none());
    let entry = table.obtain(b"a", 1).unwrap();
    assert_eq!(table.add(&entry, Data::Gpc0, 0, 3, 1), Some(3));
    assert!(Arc::ptr_eq(&entry, &table.obtain(b"a", 2).unwrap()));
    assert_eq!(table.read(&table.find(b"a", 2).unwrap(), Data::Gpc0, 0, 2), Some(3));
    assert_eq!((table.read(&entry, Data::Gpc0, 1, 2), table.read(&entry, Data::Gpc1, 0, 2)), (None, None));
    assert_eq!(table.used(2), 1);
}

#[test]
fn what_nobody_touches_expires() {
    let table = table(10, Some(100), &[]);
    let entry = table.obtain(b"a", 1000).unwrap();
    table.obtain(b"b", 1050);
    assert_eq!(table.remaining_ms(&entry, 1040), 60);
    assert!(table.find(b"a", 1099).is_some());
    // A look-up is no touch.
    assert!(table.find(b"a", 1100).is_none());
    assert_eq!((table.used(1100), keys(&table, 1100)), (1, vec!["b".into()]));
    table.find(b"b", 1100).unwrap().touch(1100);
    assert_eq!((table.used(1199), table.used(1200)), (1, 0));
}

#[test]
fn what_is_tracked_outlives_its_time() {
    let table = table(10, Some(100), &[one(Data::ConnCnt)]);
    let tracked = table.track(b"a", 1000).unwrap();
    assert_eq!((table.used(1250), tracked.entry().trackers()), (1, 1));
    assert!(!table.remove(tracked.entry()));
    tracked.release(1330);
    // As if it had been touched at 1300.
    assert!(table.find(b"a", 1399).is_some() && table.find(b"a", 1400).is_none());
}

#[test]
fn connections_are_counted_while_they_are_tracked() {
    let table = table(10, None, &[one(Data::ConnCur), one(Data::ConnCnt), one(Data::ConnRate)]);
    let (first, second) = (table.track(b"a", 10).unwrap(), table.track(b"a", 20).unwrap());
    let entry = table.find(b"a", 20).unwrap();
    let now = |data| table.read(&entry, data, 0, 30);
    assert_eq!((now(Data::ConnCur), now(Data::ConnCnt), now(Data::ConnRate)), (Some(2), Some(2), Some(2)));
    first.release(30);
    drop(second);
    assert_eq!((now(Data::ConnCur), now(Data::ConnCnt), entry.trackers()), (Some(0), Some(2), 0));
    // An operator's number is not counted below 0.
    let third = table.track(b"a", 40).unwrap();
    table.set(&entry, Data::ConnCur, 0, 0, 40);
    drop(third);
    assert_eq!(now(Data::ConnCur), Some(0));
}

#[test]
fn a_full_table_drops_the_oldest() {
    let table = table(3, None, &[]);
    for (at, key) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        table.obtain(key, at);
    }
    table.find(b"a", 4).unwrap().touch(4);
    let tracked = table.track(b"b", 2).unwrap();
    table.obtain(b"d", 5).unwrap();
    assert_eq!(keys(&table, 5), ["a", "b", "d"]);
    table.obtain(b"e", 6).unwrap();
    assert_eq!(keys(&table, 6), ["b", "d", "e"]);
    drop(tracked);
    assert_eq!(table.used(6), 3);
}

#[test]
fn what_is_held_stays_and_counts_nothing() {
    let table = table(1, Some(100), &[one(Data::ConnCnt)]);
    let held = table.hold(b"a", 0).unwrap();
    assert_eq!((held.trackers(), table.read(&held, Data::ConnCnt, 0, 0)), (1, Some(0)));
    assert!(table.obtain(b"b", 500).is_none(), "it outlives its time, and leaves no room");
    drop(held);
    assert!(table.obtain(b"b", 700).is_some());
}

#[test]
fn a_table_of_tracked_entries_takes_no_more() {
    let table = table(2, Some(10), &[]);
    let held = [table.track(b"a", 1).unwrap(), table.track(b"b", 1).unwrap()];
    assert!(table.obtain(b"c", 100).is_none() && table.track(b"c", 100).is_none());
    assert_eq!(table.used(100), 2);
    drop(held);
    assert!(table.obtain(b"c", 200).is_some());
}

#[test]
fn a_sweep_has_an_end() {
    let table = table(20_000, Some(10), &[]);
    (0..20_000u32).for_each(|n| assert!(table.obtain(&n.to_le_bytes(), 1).is_some()));
    assert!(table.obtain(b"one more", 100).is_some());
    let used = table.used.load(Relaxed);
    assert!((20_000 - SWEPT_AT_ONCE..=20_000).contains(&used), "one place was wanted, not many: {used}");
    let rounds = (0..).take_while(|_| !table.sweep(100)).count();
    assert!((3..=30).contains(&rounds) && table.used(100) == 1, "{rounds}");
}

#[test]
fn who_removes_an_old_entry_leaves_the_new_one_of_its_key() {
    let table = table(10, Some(10), &[]);
    let old = table.obtain(b"a", 1).unwrap();
    let tracked = table.track(b"a", 100).unwrap();
    assert!(!Arc::ptr_eq(&old, tracked.entry()) && table.remove(&old));
    assert!(Arc::ptr_eq(tracked.entry(), &table.find(b"a", 100).unwrap()) && table.used(100) == 1);
}

#[test]
fn nopurge_keeps_what_is_there() {
    let table = Table::new("t".into(), TableSettings { no_purge: true, ..settings(1, Some(100), &[]) }, &[]);
    table.obtain(b"a", 1);
    assert!(table.obtain(b"b", 100).is_none());
    assert!(table.obtain(b"b", 101).is_some());
}

#[test]
fn rates_of_bytes_have_a_factor() {
    let rate = Stored { data: Data::BytesInRate, elements: 1, period_ms: 1000 };
    let settings = TableSettings { byte_rate_factor: 100, ..settings(1, None, &[rate]) };
    let table = Table::new("t".into(), settings, &[one(Data::BytesInCnt)]);
    let entry = table.obtain(b"a", 1).unwrap();
    table.add(&entry, Data::BytesInRate, 0, 101, 1);
    table.add(&entry, Data::BytesInCnt, 0, 101, 1);
    assert_eq!(table.read(&entry, Data::BytesInRate, 0, 1), Some(200));
    assert_eq!(table.read(&entry, Data::BytesInCnt, 0, 1), Some(101));
}

#[test]
fn numbers_have_places_of_their_own() {
    let store = [
        Stored { data: Data::Gpc, elements: 3, period_ms: 0 },
        Stored { data: Data::GpcRate, elements: 2, period_ms: 1000 },
        one(Data::ServerKey),
    ];
    let table = table(1, None, &store);
    let entry = table.obtain(b"a", 1).unwrap();
    for element in 0..3 {
        table.add(&entry, Data::Gpc, element, u64::from(element) + 1, 1);
        table.add(&entry, Data::GpcRate, element, 10, 1);
    }
    let read = |data, element| table.read(&entry, data, element, 1);
    assert_eq!((0..4).map(|n| read(Data::Gpc, n)).collect::<Vec<_>>(), [Some(1), Some(2), Some(3), None]);
    assert_eq!((0..3).map(|n| read(Data::GpcRate, n)).collect::<Vec<_>>(), [Some(10), Some(10), None]);
    assert_eq!(table.name_of(&entry, Data::ServerKey), None);
    table.set_name(&entry, Data::ServerKey, "s1");
    assert_eq!(table.name_of(&entry, Data::ServerKey).as_deref(), Some("s1"));
    assert_eq!(table.set(&entry, Data::Gpc, 1, 7, 1), Some(2));
}

#[test]
fn what_is_learnt_is_as_old_as_it_is_told() {
    let table = table(2, Some(100), &[]);
    table.obtain(b"own", 1000);
    let old = table.learn(b"told", Some(10), 1000).unwrap();
    assert_eq!((old.touched_ms(), table.remaining_ms(&old, 1000)), (910, 10));
    // The oldest goes first, though it came last.
    table.obtain(b"more", 1005);
    assert_eq!(keys(&table, 1005), ["more", "own"]);
    let own = table.learn(b"own", Some(50), 1010).unwrap();
    assert_eq!(table.remaining_ms(&own, 1010), 90, "it was touched here later than there");
    table.learn(b"own", None, 1020);
    assert_eq!(table.remaining_ms(&own, 1020), 100);
}

#[test]
fn no_name_leaves_the_name() {
    let table = table(1, None, &[one(Data::ServerKey)]);
    let entry = table.obtain(b"a", 1).unwrap();
    let put = |name: Option<&str>| {
        table.put(&entry, Data::ServerKey, 0, &Part::Name(name.map(Arc::from)), 1);
        table.name_of(&entry, Data::ServerKey)
    };
    assert_eq!(put(Some("s1")).as_deref(), Some("s1"));
    assert_eq!(put(None).as_deref(), Some("s1"));
    assert_eq!((put(Some(&"x".repeat(300))).as_deref(), table.refused_names()), (Some("s1"), 1));
    assert_eq!(put(Some("s2")).as_deref(), Some("s2"));
}

#[test]
fn workers_share_a_table() {
    let table = table(64, Some(50), &[one(Data::Gpc0), one(Data::ConnCur)]);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let table = &table;
            scope.spawn(move || {
                for n in 0..5000u64 {
                    let key = ((n * 7 + thread) % 100).to_be_bytes();
                    if let Some(tracked) = table.track(&key, n) {
                        table.add(tracked.entry(), Data::Gpc0, 0, 1, n);
                        tracked.release(n);
                    }
                    assert!(n % 512 != 0 || table.used(n) <= 64 + 4);
                }
            });
        }
    });
    assert!(table.used(5000) <= 64);
    assert_eq!((table.used(10_000), keys(&table, 10_000)), (0, vec![]));
}

proptest! {
    /// Comparison with a map of keys and times. Of two touched in the same millisecond either may be taken for the
    /// older.
    #[test]
    fn it_agrees_with_a_map(
        size in 1usize..6, expire in proptest::option::of(1u32..40),
        steps in proptest::collection::vec((1u64..12, 0u8..8, any::<bool>()), 1..200)
    ) {
        let table = table(size, expire, &[]);
        let mut model: BTreeMap<u8, u64> = BTreeMap::new();
        let mut now = 1;
        for (wait, key, creates) in steps {
            now += wait;
            let lives = |touched: u64| expire.is_none_or(|expire| touched + u64::from(expire) > now);
            model.retain(|_, touched| lives(*touched));
            if creates && !model.contains_key(&key) {
                if model.len() == size {
                    let oldest = *model.iter().min_by_key(|(_, touched)| **touched).unwrap().0;
                    model.remove(&oldest);
                }
                model.insert(key, now);
            }
            let found = if creates { table.obtain(&[key], now) } else { table.find(&[key], now) };
            prop_assert_eq!(found.is_some(), model.contains_key(&key));
            if let Some(entry) = found {
                entry.touch(now);
                if let Some(touched) = model.get_mut(&key) {
                    *touched = now;
                }
            }
            prop_assert_eq!(table.used(now), model.len());
        }
    }
}
