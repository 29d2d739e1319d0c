use super::*;

/// `insecure`, hashed by MD5, SHA-256 and SHA-512.
const HASHES: [&str; 3] = [
    "$1$saltsalt$OJOYnSbQjDGFlsjE2Pw.i0",
    "$5$saltsalt$fvnPyduj9u24A81pscfSrUoNJtF7mS66xsI13gOHYG6",
    "$6$saltsalt$sEl3EdwJ.EIL1ia3JOtw6KPaVpp4SGTj5b0so3V0vAKOCEX3IYTs8WDeqcczc7SXVVqTdb5maYSZeubrOoYqG1",
];

#[test]
fn hashes_of_several_methods() {
    for hash in HASHES {
        assert!(crypt::is_known(hash), "{hash}");
        assert!(crypt::matches(b"insecure", hash) && !crypt::matches(b"Insecure", hash), "{hash}");
        assert!(!crypt::matches(b"insecure\0", hash) && !crypt::matches(b"", hash), "{hash}");
    }
    for wrong in ["", "plain", "$9$x$y", "*0"] {
        assert!(!crypt::matches(b"plain", wrong) && !crypt::matches(b"", wrong), "{wrong}");
    }
}

#[test]
fn a_right_password_is_known_from_then_on_and_a_wrong_one_never() {
    let lists = UserLists::default();
    let list = lists.list("ops");
    assert!(list.add_user("joe", Password::Hashed(HASHES[1].into()), vec![]));
    let joe = list.user(b"joe").unwrap();
    for _ in 0..3 {
        assert!(!joe.has_password(b"wrong"));
        assert!(joe.has_password(b"insecure"));
    }
    assert!(joe.known.read().unwrap().is_some());
    assert!(list.add_user("ann", Password::Plain((*b"pw").into()), vec![]));
    assert!(list.add_user("off", Password::None, vec![]));
    assert!(!list.add_user("ann", Password::None, vec![]), "the first line holds");
    assert!(list.user(b"ann").unwrap().has_password(b"pw") && !list.user(b"ann").unwrap().has_password(b"p"));
    assert!(!list.user(b"off").unwrap().has_password(b"") && list.user(b"nobody").is_none());
}

#[test]
fn groups_of_both_kinds_of_line() {
    let lists = UserLists::default();
    let list = lists.list("ops");
    assert!(list.problem().unwrap().contains("unable to find a userlist 'ops'"));
    assert!(list.add_user("ann", Password::None, vec!["admins".into()]));
    assert!(list.problem().unwrap().contains("no such group 'admins' specified in user 'ann'"));
    assert!(list.add_group("admins", vec![]) && list.add_group("readers", vec!["ann".into(), "joe".into()]));
    assert!(list.problem().unwrap().contains("no such user 'joe' specified in group 'readers'"));
    assert!(list.add_user("joe", Password::None, vec![]));
    assert_eq!(list.problem(), None);
    let groups = |name: &[u8]| list.groups_of(&list.user(name).unwrap()).join(" ");
    assert_eq!((groups(b"ann"), groups(b"joe")), ("admins readers".to_owned(), "readers".to_owned()));
    assert!(!list.add_group("admins", vec![]));
}
