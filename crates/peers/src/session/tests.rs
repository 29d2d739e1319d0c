//! Two sections that exchange messages, without a socket.

use super::*;
use crate::group::tests::group;
use proptest::prelude::*;
use terse_balance::table::Data;

const LINE: &str = "type string size 1k store gpc0,server_key";

/// A process: its section and its connection to the other one.
struct End {
    group: Arc<Group>,
    session: Session,
}

impl End {
    fn new(own: &str, other: &str) -> End {
        let group = group(own, &[other], LINE);
        // No peer is to be asked.
        group.begin(true, Instant::now());
        group.told(None, true, Instant::now());
        End { session: Session::new(group.clone(), With::Peer(0), true), group }
    }

    fn count(&self, key: &str, server: &str) {
        let (table, now_ms) = (&self.group.tables[0].table, self.group.now_ms());
        let entry = table.obtain(key.as_bytes(), now_ms).unwrap();
        table.add(&entry, Data::Gpc0, 0, 1, now_ms);
        table.set_name(&entry, Data::ServerKey, server);
        table.touch(&entry, now_ms);
        self.group.collect();
    }

    fn entry(&self, key: &str) -> Option<(u64, Option<String>)> {
        let (table, now_ms) = (&self.group.tables[0].table, self.group.now_ms());
        let entry = table.find(key.as_bytes(), now_ms)?;
        let name = table.name_of(&entry, Data::ServerKey).map(|name| name.to_string());
        Some((table.read(&entry, Data::Gpc0, 0, now_ms)?, name))
    }
}

/// Carries the output of one end to the other, in small pieces; returns the number of bytes.
fn carry(from: &mut End, to: &mut End) -> usize {
    let (mut bytes, mut all) = (Vec::new(), 0);
    loop {
        let before = bytes.len();
        while from.session.send(before + 40, &mut bytes) {}
        all += bytes.len() - before;
        let used = to.session.receive(&bytes).unwrap();
        bytes.drain(..used);
        if used == 0 && bytes.len() == before {
            return all;
        }
    }
}

#[test]
fn changes_are_told_and_not_told_back() {
    let (mut a, mut b) = (End::new("a", "b"), End::new("b", "a"));
    (0..50).for_each(|n| a.count(&format!("key{n}"), &format!("server{}", n % 3)));
    carry(&mut a, &mut b);
    for n in 0..50 {
        assert_eq!(b.entry(&format!("key{n}")), Some((1, Some(format!("server{}", n % 3)))));
    }
    assert_eq!((a.group.tables[0].waiting(), b.group.tables[0].waiting()), ((50, 50), (0, 0)));
    carry(&mut b, &mut a);
    assert_eq!(a.group.tables[0].waiting(), (0, 50), "what was acknowledged is forgotten");
    a.count("key7", "server1");
    b.count("key8", "server9");
    carry(&mut a, &mut b);
    carry(&mut b, &mut a);
    assert_eq!(b.entry("key7"), Some((2, Some("server1".into()))));
    assert_eq!(a.entry("key8"), Some((2, Some("server9".into()))));
}

#[test]
fn a_new_connection_goes_on_where_the_last_one_was_heard() {
    let (mut a, mut b) = (End::new("a", "b"), End::new("b", "a"));
    a.count("heard", "s");
    carry(&mut a, &mut b);
    carry(&mut b, &mut a);
    a.count("lost", "s");
    a.session.send(1 << 20, &mut Vec::new());
    let anew = |end: &mut End| end.session = Session::new(end.group.clone(), With::Peer(0), true);
    anew(&mut a);
    anew(&mut b);
    let (heard, lost) = (b.group.tables[0].table.find(b"heard", 0).unwrap(), b.entry("lost"));
    assert!(lost.is_none() && b.group.tables[0].table.remove(&heard));
    carry(&mut a, &mut b);
    assert!(b.entry("lost").is_some() && b.entry("heard").is_none());
}

#[test]
fn who_comes_anew_asks_for_everything() {
    let (mut a, mut b) = (End::new("a", "b"), End::new("b", "a"));
    (0..300).for_each(|n| a.count(&format!("key{n}"), "s"));
    a.group.acknowledge(0, 0, 300);
    let gone = a.group.tables[0].table.find(b"key1", 0).unwrap();
    assert!(a.group.tables[0].table.remove(&gone));
    a.session = Session::new(a.group.clone(), With::Peer(0), true);
    b.group.begin(false, Instant::now());
    assert_eq!(carry(&mut a, &mut b), 0);
    carry(&mut b, &mut a);
    assert_eq!(b.group.stage(), Stage::Asked(0));
    carry(&mut a, &mut b);
    assert_eq!((b.group.stage(), b.group.tables[0].table.used(0)), (Stage::Complete, 299));
    carry(&mut b, &mut a);
    assert!(!a.session.is_done() && a.group.peers[0].heard_of(0) == 300);
}

#[test]
fn the_next_process_is_taught_all_at_once() {
    let (mut old, mut new) = (End::new("a", "b"), End::new("a", "b"));
    old.count("key", "s");
    old.session = Session::new(old.group.clone(), With::Successor, true);
    new.session = Session::new(new.group.clone(), With::Predecessor, true);
    new.group.begin(true, Instant::now());
    carry(&mut old, &mut new);
    assert_eq!((new.entry("key").map(|entry| entry.0), new.group.stage()), (Some(1), Stage::Complete));
    carry(&mut new, &mut old);
    assert!(old.session.is_done());
}

#[test]
fn what_is_gone_is_not_brought_to_life() {
    let (mut a, mut b) = (End::new("a", "b"), End::new("b", "a"));
    a.count("key", "s");
    let entry = a.group.tables[0].table.find(b"key", 0).unwrap();
    assert!(a.group.tables[0].table.remove(&entry));
    carry(&mut a, &mut b);
    assert!(b.entry("key").is_none());
}

#[test]
fn tables_that_are_others_are_passed_over() {
    let (mut a, mut b) = (End::new("a", "b"), End::new("b", "a"));
    b.group = group("b", &["a"], "type string len 5 size 9 store gpc0,server_key");
    b.session = Session::new(b.group.clone(), With::Peer(0), true);
    a.count("key", "s");
    carry(&mut a, &mut b);
    assert_eq!(b.group.tables[0].table.used(0), 0);
    let mut failure = Vec::new();
    message::write_failure(&mut failure);
    assert_eq!(a.session.receive(&failure), Err(Broken));
    assert_eq!(a.session.receive(&[10, 128, 255, 255, 255, 255, 127]), Err(Broken));
}

#[test]
fn entries_that_say_nothing_take_a_part_of_the_budget() {
    let (mut a, mut b) = (End::new("a", "b"), End::new("b", "a"));
    a.count("first", "s");
    let keys: Vec<String> = (0..=ENTRIES_AT_ONCE).map(|n| format!("key{n}")).collect();
    keys.iter().for_each(|key| a.count(key, "s"));
    a.count("last", "s");
    let mut bytes = Vec::new();
    assert!(!a.session.send(1, &mut bytes), "there is no room for more");
    let table = &a.group.tables[0].table;
    assert!(keys.iter().all(|key| table.remove(&table.find(key.as_bytes(), 0).unwrap())));
    let first = bytes.len();
    assert!(a.session.send(1 << 20, &mut bytes) && bytes.len() == first, "there is more to look at");
    b.session.receive(&bytes).unwrap();
    carry(&mut a, &mut b);
    assert!(b.entry("last").is_some());
}

#[test]
fn what_is_asked_and_ended_often_is_answered_once() {
    let (mut a, mut b) = (End::new("a", "b"), End::new("b", "a"));
    let mut ends = Vec::new();
    (0..1000).for_each(|_| Short::ResyncFinished.write(&mut ends));
    assert_eq!(a.session.receive(&ends), Ok(ends.len()));
    let mut answer = Vec::new();
    a.session.send(1 << 16, &mut answer);
    assert_eq!(message::read(&answer), Read::Whole(Message::ResyncConfirm, answer.len()));
    (0..10).for_each(|n| a.count(&format!("key{n}"), "s"));
    carry(&mut a, &mut b);
    let mut request = Vec::new();
    Short::ResyncRequest.write(&mut request);
    let mut taught = Vec::new();
    // Each call has room for one entry.
    while !taught.ends_with(&[0, Short::ResyncFinished as u8]) {
        a.session.receive(&request).unwrap();
        a.session.send(taught.len() + 1, &mut taught);
        assert!(taught.len() < 1000, "the lesson ends, though it is asked for again and again");
    }
}

#[test]
fn acknowledgements_wait_for_the_end_of_the_lesson() {
    let (mut a, mut b) = (End::new("a", "b"), End::new("b", "a"));
    a.count("key", "s");
    b.group.begin(false, Instant::now());
    carry(&mut b, &mut a);
    assert_eq!(b.group.stage(), Stage::Asked(0));
    let mut bytes = Vec::new();
    a.session.send(1 << 16, &mut bytes);
    let end = bytes.windows(2).position(|two| *two == [0, Short::ResyncFinished as u8]).unwrap();
    let (lesson, rest) = bytes.split_at(end);
    b.session.receive(lesson).unwrap();
    let mut said = Vec::new();
    b.session.send(1 << 16, &mut said);
    assert!(b.entry("key").is_some() && said.is_empty());
    b.session.receive(rest).unwrap();
    b.session.send(1 << 16, &mut said);
    assert_eq!(message::read(&said), Read::Whole(Message::ResyncConfirm, 2));
    a.session.receive(&said).unwrap();
    assert_eq!(a.group.peers[0].heard_of(0), 1);
}

proptest! {
    /// Any messages, in any pieces, are processed or refused.
    #[test]
    fn any_messages_are_taken(messages in proptest::collection::vec((0u8..12, 126u8..137, proptest::collection::vec(any::<u8>(), 0..40)), 0..20)) {
        let mut end = End::new("a", "b");
        let mut bytes = Vec::new();
        let mut definition = Vec::new();
        definition::write(1, "t", &end.group.tables[0].table, &mut definition);
        message::write(DEFINITION, &definition, &mut bytes);
        for (class, kind, body) in messages {
            bytes.extend([class, kind]);
            if kind >= 128 {
                integer::put(body.len() as u64, &mut bytes);
                bytes.extend(body);
            }
        }
        if let Ok(used) = end.session.receive(&bytes) {
            prop_assert_eq!(used, bytes.len());
        }
        end.session.send(1 << 16, &mut Vec::new());
    }
}
