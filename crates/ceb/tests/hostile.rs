//! Keys and handles chosen to do harm.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use terse_ceb::*;

/// Each key is the one before and one byte more: the deepest tree for its bytes.
#[test]
fn keys_that_begin_with_one_another() {
    let longest = vec![0u8; 3_000];
    let mut tree = TextTree::default();
    for length in 0..=longest.len() {
        tree.insert(&longest[..length], length).unwrap();
    }
    assert!(tree.iter().map(|(_, key, value)| (key.len(), *value)).eq((0..=longest.len()).map(|n| (n, n))));
    assert_eq!(tree.get(&longest), Some(&longest.len()));
    assert_eq!(tree.get(b""), Some(&0));
    assert_eq!(tree.find(&[0, 0, 1]), None);
    assert_eq!(tree.longest_prefix(&[0, 0, 1]).and_then(|id| tree.value(id)), Some(&2));
    assert_eq!(tree.find_gt(&longest), None);
    let mut id = tree.first();
    while let Some(this) = id {
        id = tree.next(this);
        tree.remove(this).unwrap();
    }
    assert!(tree.is_empty());
}

#[test]
fn a_thousand_equal_keys_stay_in_order() {
    let mut tree = CaselessTree::default();
    let ids: Vec<_> = (0..1_000).map(|n| tree.insert(if n % 2 == 0 { b"key" } else { b"KEY" }, n).unwrap()).collect();
    assert!(tree.iter().map(|(_, _, value)| *value).eq(0..1_000));
    for id in ids.iter().step_by(3) {
        tree.remove(*id);
    }
    assert!(tree.iter().map(|(_, _, value)| *value).eq((0..1_000).filter(|n| n % 3 != 0)));
    assert_eq!(tree.find(b"kEy"), Some(ids[1]));
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let mut tree = TextTree::default();
    let id = tree.insert(b"a", ()).unwrap();
    assert_eq!(tree.insert(&vec![b'a'; (16 << 20) + 1], ()), Err(Full));
    assert_eq!((tree.len(), tree.first(), tree.last()), (1, Some(id), Some(id)));
    let mut slices = SliceTree::with_keys(Slices::new(4));
    slices.insert(b"abcd", ()).unwrap();
    assert_eq!(slices.insert(b"abc", ()), Err(Full));
    assert_eq!((slices.find(b"abc"), slices.find(b"abcde"), slices.find(b"")), (None, None, None));
    assert_eq!(slices.len(), 1);
}

/// Handles of removed entries find nothing, or the present entry of their slot.
#[test]
fn old_handles_do_no_harm() {
    let mut tree = U32Tree::default();
    let old = tree.insert(1, "old").unwrap();
    tree.remove(old);
    assert_eq!((tree.key(old), tree.value(old), tree.next(old), tree.previous(old)), (None, None, None, None));
    assert_eq!(tree.remove(old), None);
    let new = tree.insert(2, "new").unwrap();
    assert_eq!(new, old);
    tree.clear();
    assert_eq!((tree.value(new), tree.first(), tree.last()), (None, None, None));
    assert_eq!(tree.remove(new), None);
}

/// Keys that come and go do not make the buffer of texts grow.
#[test]
fn texts_move_together_when_most_are_gone() {
    let mut tree = TextTree::default();
    let kept = tree.insert(b"kept", 0).unwrap();
    for round in 1..=200u32 {
        let key = [&round.to_be_bytes()[..], &[b'x'; 300]].concat();
        let id = tree.insert(&key, round).unwrap();
        assert_eq!((tree.key(id), tree.key(kept)), (Some(&key[..]), Some(&b"kept"[..])));
        assert_eq!(tree.find(b"kept"), Some(kept));
        assert_eq!(tree.remove(id), Some(round));
    }
    assert_eq!(tree.iter().map(|(id, key, _)| (id, key)).collect::<Vec<_>>(), [(kept, &b"kept"[..])]);
}
