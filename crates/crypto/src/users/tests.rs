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

/// A world without waiting: work that an expression would put off is done at once; or it is kept.
#[derive(Default)]
struct Moment {
    waits: bool,
    kept: std::cell::RefCell<Vec<terse_sample::Work>>,
}

impl World for Moment {
    fn now(&self) -> terse_sample::Now {
        terse_sample::Now::default()
    }

    fn random(&self) -> u64 {
        0
    }

    fn defer(&self, work: terse_sample::Work) -> Option<terse_sample::Work> {
        if !self.waits {
            return Some(work);
        }
        self.kept.borrow_mut().push(work);
        None
    }
}

#[test]
fn passwords_are_known_from_then_on() {
    let (lists, world) = (UserLists::default(), Moment::default());
    let list = lists.list("ops");
    assert!(list.add_user("joe", Password::Hashed(HASHES[1].into()), vec![]));
    let joe = list.user(b"joe").unwrap();
    for _ in 0..3 {
        assert!(!joe.has_password(b"wrong", &world));
        assert!(joe.has_password(b"insecure", &world));
    }
    assert!(joe.memory().right.is_some() && joe.memory().wrong.len() == 1);
    assert!(list.add_user("ann", Password::Plain((*b"pw").into()), vec![]));
    assert!(list.add_user("off", Password::None, vec![]));
    assert!(!list.add_user("ann", Password::None, vec![]), "the first line holds");
    let says = |user: &str, password: &[u8]| list.user(user.as_bytes()).unwrap().has_password(password, &world);
    assert!(says("ann", b"pw") && !says("ann", b"p") && !says("off", b"") && list.user(b"nobody").is_none());
}

#[test]
fn hashes_are_checked_elsewhere_where_somebody_waits() {
    let (lists, world) = (UserLists::default(), Moment { waits: true, ..Moment::default() });
    let list = lists.list("ops");
    assert!(list.add_user("joe", Password::Hashed(HASHES[1].into()), vec![]));
    let joe = list.user(b"joe").unwrap();
    for (password, is_right) in [(&b"wrong"[..], false), (b"insecure", true)] {
        assert!(!joe.has_password(password, &world), "not known yet");
        let works = world.kept.take();
        assert_eq!(works.len(), 1);
        works.into_iter().for_each(|work| work());
        assert_eq!(joe.has_password(password, &world), is_right);
        assert!(world.kept.take().is_empty(), "known");
    }
    // However many wrong passwords there are, a few are remembered, and the right one with them.
    for n in 0..2 * WRONG_ONES {
        joe.memory().learn(digest(&n.to_le_bytes()), false);
    }
    assert_eq!(joe.memory().wrong.len(), WRONG_ONES);
    assert!(joe.has_password(b"insecure", &world) && world.kept.take().is_empty());
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

/// The first line of a name holds, whatever the next ones say, and each list has names of its own.
#[test]
fn names_that_stand_twice_are_told() {
    use terse_config::{Environment, Loader, Settings, Severity, Source};
    let text = "userlist l\n group g users joe\n user joe insecure-password a groups g\n user joe insecure-password b\n group g users ann\n\
                userlist m\n user joe insecure-password c\n group g\n";
    let loader = Loader { tables: vec![super::KEYWORDS], environment: Environment::default() };
    let (mut config, said) = loader.load(&[Source { name: "test".into(), bytes: text.into() }], Settings::default());
    let said: Vec<_> = said.iter().map(|d| (d.severity, d.place.as_ref().map_or(0, |place| place.line), &*d.reason)).collect();
    assert_eq!(
        said,
        [
            (Severity::Warning, 4, "'user' : ignores this line: there is a user 'joe' already"),
            (Severity::Warning, 5, "'group' : ignores this line: there is a group 'g' already"),
        ]
    );
    let lists = config.shared.entry::<terse_sample::Registry>().own::<UserLists>();
    let world = Moment::default();
    for (list, right) in [("l", "a"), ("m", "c")] {
        let joe = lists.list(list).user(b"joe").unwrap();
        for password in ["a", "b", "c"] {
            assert_eq!(joe.has_password(password.as_bytes(), &world), password == right, "{list}: {password}");
        }
    }
}
