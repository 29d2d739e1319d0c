//! Matches of each kind, and their changes at run time.

use super::reference::Columns;
use super::*;
use crate::value::Value;
use proptest::prelude::*;
use std::sync::Arc;

fn usage(matching: Matching, ignore_case: bool, output: Output) -> Use<'static> {
    let columns = if output == Output::Nothing { Columns::One } else { Columns::Two };
    let user = "by map at file 'test' line 1".to_owned();
    Use { matching, ignore_case, output, columns, as_map: columns == Columns::Two, user, resolve: &|_| None }
}

/// The first of some patterns with blanks between them that a text matches.
fn key(matching: &str, ignore_case: bool, patterns: &str, text: &str) -> Option<String> {
    let usage = usage(Matching::named(matching).unwrap(), ignore_case, Output::Nothing);
    let (reference, way) = References::default().of_line(None, &usage).unwrap();
    for pattern in patterns.split(' ') {
        reference.add_early(pattern.as_bytes(), &|_| None).unwrap();
    }
    way.key(Value::str(text.as_bytes())).map(|key| String::from_utf8_lossy(&key).into_owned())
}

fn wrong(matching: Matching, pattern: &str) -> String {
    let (reference, _) = References::default().of_line(None, &usage(matching, false, Output::Nothing)).unwrap();
    reference.add_early(pattern.as_bytes(), &|_| None).expect_err(pattern).to_string()
}

/// A map of a file with that content.
fn map(matching: Matching, output: Output, file: &str) -> Result<(Arc<Reference>, Arc<Way>), String> {
    let references = References::default();
    let way = references.of_file("file", &usage(matching, false, output), |_| Ok(file.into()))?;
    references.finish();
    Ok((references.find("#0").unwrap(), way))
}

#[test]
fn texts() {
    for (matching, patterns, value, expected) in [
        ("str", "a b", "b", Some("b")),
        ("str", "a b", "B", None),
        ("str", "1 2 3 4 5 6 7 8 9", "0", None),
        ("beg", "/x /y", "/yz", Some("/y")),
        ("beg", "/a /a/b /a/b/c", "/a/b/x", Some("/a/b")),
        ("beg", "/a/b/c /a/b /a", "/a/b/c", Some("/a/b/c")),
        ("end", ".png .gif", "/a.gif", Some(".gif")),
        ("end", ".gz .tar.gz", "/a.tar.gz", Some(".gz")),
        ("sub", "ell", "hello", Some("ell")),
        ("sub", "elx", "hello", None),
        ("sub", "o l", "hello", Some("o")),
        ("dir", "b", "/a/b/c", Some("b")),
        ("dir", "/b/c/", "/a/b/c?d", Some("/b/c/")),
        ("dir", "b", "/a/bb/c", None),
        ("dir", "/", "/a/", None),
        ("dom", "example", "www.example.com:80", Some("example")),
        ("dom", "xample", "www.example.com", None),
        ("dom", "com .example.com.", "www.example.com", Some("com")),
        ("dom", ".example.com. com", "www.example.com", Some(".example.com.")),
        ("reg", "^/[a-c]+$", "/abc", Some("^/[a-c]+$")),
        ("reg", "b a", "ab", Some("b")),
        ("len", "3: 4", "abcd", Some("3:")),
        ("len", "3", "abcd", None),
        ("bin", "616263", "abc", Some("616263")),
    ] {
        assert_eq!(key(matching, false, patterns, value).as_deref(), expected, "{matching} {patterns} {value}");
    }
}

#[test]
fn case() {
    let long = "X".repeat(300);
    for (matching, patterns, value, expected) in [
        ("str", "AbC", "aBc", Some("AbC")),
        ("str", "abc aBc", "ABC", Some("abc")),
        ("beg", "/A /a/B", "/a/b/c", Some("/A")),
        ("end", ".PNG", "x.pNg", Some(".PNG")),
        ("sub", "ELL", "hEllo", Some("ELL")),
        ("dom", "Example", "www.eXAMPLE.com", Some("Example")),
        ("reg", "^abc$", "ABC", Some("^abc$")),
        ("bin", "6162", "AB", None),
        ("bin", "6A", "j", Some("6A")),
        ("str", "x", &long, None),
    ] {
        assert_eq!(key(matching, true, patterns, value).as_deref(), expected, "{matching} {patterns} {value}");
    }
}

#[test]
fn numbers() {
    for (patterns, value, expected) in [
        ("5", "5", true),
        ("1:5", "3", true),
        ("1-5", "6", false),
        (":5", "-100", true),
        ("5:", "4", false),
        ("5-", "5", true),
        ("-1", "-7", true),
        ("-1", "2", false),
        ("--1", "-1", true),
        ("--1", "0", false),
    ] {
        assert_eq!(key("int", false, patterns, value).is_some(), expected, "{patterns} {value}");
    }
    assert_eq!(key("int", false, "1:9 5", "5").as_deref(), Some("1:9"));
    assert_eq!(key("int", false, "5 1:9", "5").as_deref(), Some("5"));
    for pattern in [":", "", "1:x", "9:1", "1:2:3"] {
        assert!(wrong(Matching::Int, pattern).contains("is not a valid number range"), "{pattern}");
    }
    for pattern in ["x", "9223372036854775808", "1 "] {
        assert!(wrong(Matching::Int, pattern).contains("is not a number"), "{pattern}");
    }
}

#[test]
fn networks() {
    for (patterns, value, expected) in [
        ("127.0.0.0/8 ::1", "127.1.2.3", Some("127.0.0.0/8")),
        ("127.0.0.0/8 ::1", "::1", Some("::1")),
        ("10.0.0.1", "10.0.0.2", None),
        ("10.0.0.0/8 10.1.0.0/16 0.0.0.0/0", "10.1.2.3", Some("10.1.0.0/16")),
        ("10.0.0.0/8 10.1.0.0/16 0.0.0.0/0", "11.1.2.3", Some("0.0.0.0/0")),
        ("192.168.0.0/255.255.0.0", "192.168.3.4", Some("192.168.0.0/255.255.0.0")),
        ("10.0.0.7/255.0.0.255 10.0.0.0/8", "10.9.9.7", Some("10.0.0.0/8")),
        ("10.0.0.7/255.0.0.255", "10.9.9.7", Some("10.0.0.7/255.0.0.255")),
        ("10.0.0.7/255.0.0.255", "::ffff:10.9.9.7", Some("10.0.0.7/255.0.0.255")),
        ("10.0.0.0/8", "::ffff:10.1.1.1", Some("10.0.0.0/8")),
        ("10.0.0.0/8", "2002:0a01:0101::", Some("10.0.0.0/8")),
        ("::ffff:10.0.0.0/104 10.0.0.0/7", "10.1.1.1", Some("10.0.0.0/7")),
        ("2001:db8::/32 2001:db8:1::/48", "2001:db8:1::1", Some("2001:db8:1::/48")),
        ("0.0.0.0/0", "2001:db8::1", None),
        ("::/0", "1.2.3.4", Some("::/0")),
    ] {
        assert_eq!(key("ip", false, patterns, value).as_deref(), expected, "{patterns} {value}");
    }
    for pattern in ["localhost", "1.2.3.4/33", "1.2.3.4/", "/8", "::1/129", "1.2.3", "::1/ffff::"] {
        assert!(wrong(Matching::Ip, pattern).contains("is not a valid IPv4 or IPv6 address"), "{pattern}");
    }
}

#[test]
fn names_of_hosts_are_looked_up_once() {
    let asked = std::cell::Cell::new(0);
    let resolve = |host: &str| {
        asked.set(asked.get() + 1);
        (host == "box").then_some([10, 0, 0, 1].into())
    };
    let references = References::default();
    let (reference, way) =
        references.of_line(None, &Use { resolve: &resolve, ..usage(Matching::Ip, false, Output::Nothing) }).unwrap();
    reference.add_early(b"box/8", &resolve).unwrap();
    assert!(way.key(Value::str(b"10.9.9.9")).is_some());
    assert!(reference.remove(b"box/8"));
    assert!(way.key(Value::str(b"10.9.9.9")).is_none());
    assert_eq!(asked.get(), 1);
    assert!(reference.add(None, [(&b"other"[..], None)]).is_err());
}

#[test]
fn values() {
    let (_, texts) = map(Matching::Beg, Output::Text, "/a  alpha beta \n/a/b two\n/n\n").unwrap();
    assert_eq!(texts.value(Value::str(b"/a/x")), Some(Value::str(b"alpha beta")));
    assert_eq!(texts.value(Value::str(b"/n")), Some(Value::str(b"")));
    let (_, ints) = map(Matching::Ip, Output::Int, "10.0.0.0/8 -5\n10.1.0.0/16 +7\n10.2.0.0/16\n").unwrap();
    assert_eq!(ints.value(Value::str(b"10.9.0.1")), Some(Value::Int(-5)));
    assert_eq!(ints.value(Value::str(b"10.1.0.1")), Some(Value::Int(7)));
    assert_eq!(ints.value(Value::str(b"10.2.0.1")), Some(Value::Int(0)));
    let (_, addresses) = map(Matching::Int, Output::Addr, "1:9 ::1\n10 10.0.0.1:80\n").unwrap();
    assert_eq!(addresses.value(Value::Int(3)), Some(Value::Addr("::1".parse().unwrap())));
    assert_eq!(addresses.value(Value::Int(10)), Some(Value::Addr("10.0.0.1".parse().unwrap())));
    let (_, groups) = map(Matching::Regm, Output::Text, "^(.*)\\.(.*)$ \\2_\\1\n").unwrap();
    assert_eq!(groups.value(Value::str(b"a.b.c")), Some(Value::str(b"c_a.b")));
}

#[test]
fn what_is_wrong_in_a_file_is_named() {
    for (matching, output, file, said) in [
        (Matching::Ip, Output::Text, "#\n10.0.0.0/8 x\n10.0.0.0/40 y\n", "file 'file' line 3: '10.0.0.0/40' is not a valid"),
        (Matching::Str, Output::Int, "a 1\n\nb x1\n", "file 'file' line 3: unable to parse 'x1'"),
        (Matching::Str, Output::Addr, "a 10.0.0\n", "file 'file' line 1: unable to parse '10.0.0'"),
        (Matching::Str, Output::Addr, "a 10.0.0.0/8\n", "file 'file' line 1: unable to parse '10.0.0.0/8'"),
        (Matching::Str, Output::Addr, "a 10.0.0.1x\n", "file 'file' line 1: unable to parse '10.0.0.1x'"),
        (Matching::Reg, Output::Text, "( a\n", "file 'file' line 1: regular expression '(': "),
    ] {
        let error = map(matching, output, file).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    let references = References::default();
    let read = |_: &str| Err("No such file".to_owned());
    let of = |name: &str, output| references.of_file(name, &usage(Matching::Str, false, output), read).map(|_| ());
    assert_eq!(of("x", Output::Text), Err("file 'x': No such file".to_owned()));
    assert_eq!(of("opt@y", Output::Text), Ok(()));
    assert_eq!(of("virt@z", Output::Text), Ok(()));
    assert!(of("y", Output::Nothing).unwrap_err().contains("already used as one of two columns"));
    references.finish();
    assert!(of("w", Output::Text).is_err());
    assert_eq!(references.find("file@y").map(|found| found.name().to_owned()).as_deref(), Some("y"));
    assert!(references.find("virt@z").is_some() && references.find("z").is_none() && references.find("").is_none());
}

#[test]
fn one_file_is_one_reference() {
    let references = References::default();
    let of = |name: &str, matching, ignore_case| {
        references.of_file(name, &usage(matching, ignore_case, Output::Nothing), |_| Ok(b"a\nAB\n".to_vec())).unwrap()
    };
    let (str, same) = (of("f", Matching::Str, false), of("file@f", Matching::Str, false));
    let beg = of("f", Matching::Beg, true);
    assert!(Arc::ptr_eq(&str, &same));
    references.of_line(Some(1), &usage(Matching::Str, false, Output::Nothing)).unwrap();
    let other = references.named("g");
    references.finish();
    assert_eq!(references.all().iter().map(|reference| reference.id()).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert!(!other.is_used() && !other.is_map());
    let reference = references.find("f").unwrap();
    reference.add(None, [(&b"abc"[..], None)]).unwrap();
    assert_eq!(str.key(Value::str(b"abc")).as_deref(), Some(&b"abc"[..]));
    assert_eq!(beg.key(Value::str(b"ABX")).as_deref(), Some(&b"a"[..]));
    reference.remove(b"a");
    assert_eq!(beg.key(Value::str(b"ABX")).as_deref(), Some(&b"AB"[..]));
    assert_eq!(
        reference.description().text,
        "pattern loaded from file 'f' used by map at file 'test' line 1, by map at file 'test' line 1, by map at file 'test' line 1"
    );
}

#[test]
fn changes_at_run_time() {
    let (reference, way) = map(Matching::Str, Output::Int, "a 1\na 2\nb 3\n").unwrap();
    let at = |key: &str| way.value(Value::str(key.as_bytes()));
    let show = |version| -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let entries = reference.entries(version, None, 100);
        entries.iter().map(|e| format!("{} {}", text(&e.key), text(e.value.as_deref().unwrap_or(b"-")))).collect()
    };
    assert_eq!(at("a"), Some(Value::Int(1)));
    let first = reference.entries(None, None, 1)[0].id;
    assert_eq!(reference.entries(None, Some(first), 1)[0].id, first + 1);
    assert!(reference.remove_entry(first) && !reference.remove_entry(first));
    assert_eq!(at("a"), Some(Value::Int(2)), "the next of the same key");
    assert_eq!(reference.set(b"a", b"x"), Err(Refusal::Unreadable("unable to parse 'x'".into())));
    assert_eq!((reference.set(b"a", b"7"), at("a")), (Ok(()), Some(Value::Int(7))));
    assert_eq!(reference.set(b"none", b"7"), Err(Refusal::NotFound));
    assert_eq!((reference.put(b"c", b"9"), at("c")), (Ok(()), Some(Value::Int(9))));
    assert_eq!((reference.put(b"c", b"10"), at("c")), (Ok(()), Some(Value::Int(10))));
    assert!(reference.has(b"c") && reference.remove(b"c") && !reference.remove(b"c"));
    assert_eq!(show(None), ["a 7", "b 3"]);
    let lines = [(&b"d"[..], Some(&b"4"[..])), (b"e", Some(b"x")), (b"f", Some(b"6"))];
    assert!(reference.add(None, lines).is_err());
    assert_eq!(show(None), ["a 7", "b 3", "d 4"], "what stands before the wrong one stays");
    reference.clear(None);
    assert_eq!((show(None), at("a")), (vec![], None));
}

#[test]
fn many_entries_of_one_key_cost_no_more_than_as_many_keys() {
    for (matching, key) in [(Matching::Str, "a"), (Matching::Ip, "10.0.0.1"), (Matching::Int, "7"), (Matching::Sub, "a")] {
        let (reference, way) = map(matching, Output::Int, &format!("{key} 1\n").repeat(100_000)).unwrap();
        let found = || way.look_up(key.as_bytes()).is_some();
        assert!(found() && reference.description().entries == 100_000, "{key}");
        assert!(reference.remove(key.as_bytes()) && !reference.remove(key.as_bytes()), "{key}");
        assert!(!found() && !reference.has(key.as_bytes()) && reference.description().entries == 0, "{key}");
    }
}

#[test]
fn workers_make_an_entry_once() {
    let (reference, _) = map(Matching::Str, Output::Int, "").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..500_u32 {
                    reference.put(&n.to_le_bytes(), b"1").unwrap();
                    reference.add_unless_there(&[&b"+"[..], &n.to_le_bytes()].concat()).unwrap();
                }
            });
        }
    });
    assert_eq!(reference.description().entries, 1_000);
}

#[test]
fn versions_take_each_others_place() {
    let (reference, way) = map(Matching::Str, Output::Text, "a 1\n").unwrap();
    let at = |key: &str| way.value(Value::str(key.as_bytes()));
    assert_eq!(reference.add(Some(1), [(&b"b"[..], Some(&b"2"[..]))]), Err(Refusal::Future));
    assert_eq!(reference.commit(1), Err(Refusal::OutOfRange));
    assert_eq!((reference.prepare(), reference.prepare()), (1, 2));
    reference.add(Some(1), [(&b"b"[..], Some(&b"2"[..]))]).unwrap();
    reference.add(Some(2), [(&b"c"[..], Some(&b"3"[..])), (b"d", Some(b"4"))]).unwrap();
    assert_eq!((at("a"), at("b")), (Some(Value::str(b"1")), None));
    assert_eq!(reference.entries(Some(2), None, 9).len(), 2);
    let Description { current, next, entries, .. } = reference.description();
    assert_eq!((current, next, entries), (0, 2, 4));
    reference.clear(Some(1));
    assert_eq!(reference.commit(2), Ok(()));
    assert_eq!((at("a"), at("c")), (None, Some(Value::str(b"3"))));
    assert_eq!((reference.commit(1), reference.commit(2)), (Err(Refusal::OutOfRange), Err(Refusal::OutOfRange)));
    assert_eq!(reference.description().entries, 2);
    reference.prepare();
    assert_eq!(reference.commit(3), Ok(()));
    assert_eq!((at("c"), reference.description().entries), (None, 0));
}

#[test]
fn look_ups_go_on_while_a_map_changes() {
    let (reference, way) = map(Matching::Str, Output::Int, "key 1\n").unwrap();
    std::thread::scope(|scope| {
        let readers = [(); 2].map(|()| {
            scope.spawn(|| {
                let mut last = 1;
                while last < 2_000 {
                    let Some(Value::Int(n)) = way.value(Value::str(b"key")) else { panic!("the key is gone") };
                    assert!(n >= last, "{n} behind {last}");
                    last = n;
                }
            })
        });
        for n in 2..=2_000 {
            reference.put(b"key", n.to_string().as_bytes()).unwrap();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

/// The manual's definition of a way of matching, as plainly as can be.
fn plainly(matching: Matching, patterns: &[String], text: &str) -> Option<usize> {
    let has_word = |word: &str, delimiters: &[char]| {
        let word = word.trim_matches(delimiters);
        let is_edge = |at: Option<char>| at.is_none_or(|c| delimiters.contains(&c));
        !word.is_empty()
            && text.match_indices(word.chars().next().unwrap()).any(|(at, _)| {
                let (before, rest) = (text[..at].chars().next_back(), &text[at..]);
                rest.starts_with(word) && is_edge(before) && is_edge(rest[word.len()..].chars().next())
            })
    };
    let matches = |pattern: &String| match matching {
        Matching::Beg => text.starts_with(pattern),
        Matching::End => text.ends_with(pattern),
        Matching::Sub => text.contains(pattern.as_str()),
        Matching::Dir => has_word(pattern, &['/', '?']),
        Matching::Dom => has_word(pattern, &['/', '?', '.', ':']),
        _ => text == pattern,
    };
    let found = patterns.iter().enumerate().filter(|(_, pattern)| matches(pattern));
    match matching {
        // The longest, and of those the first.
        Matching::Beg => found.rev().max_by_key(|(_, pattern)| pattern.len()).map(|(at, _)| at),
        _ => found.map(|(at, _)| at).next(),
    }
}

proptest! {
    #[test]
    fn indexes_find_what_a_plain_search_finds(
        matching in proptest::sample::select(vec![
            Matching::Str, Matching::Beg, Matching::End, Matching::Sub, Matching::Dir, Matching::Dom,
        ]),
        patterns in proptest::collection::vec("[ab./]{1,4}", 1..12),
        removed in proptest::collection::vec(any::<proptest::sample::Index>(), 0..4),
        texts in proptest::collection::vec("[ab./?:]{0,9}", 1..6),
    ) {
        let (reference, way) = References::default().of_line(None, &usage(matching, false, Output::Nothing)).unwrap();
        let mut left = patterns.clone();
        for pattern in &patterns {
            reference.add_early(pattern.as_bytes(), &|_| None).unwrap();
        }
        for index in removed {
            if !left.is_empty() {
                let gone = index.get(&left).clone();
                left.retain(|pattern| *pattern != gone);
                prop_assert!(reference.remove(gone.as_bytes()));
            }
        }
        for text in texts {
            let found = way.key(Value::str(text.as_bytes()));
            let expected = plainly(matching, &left, &text).map(|at| left[at].as_bytes());
            prop_assert_eq!(found.as_deref(), expected, "{:?} {:?} {}", matching, left, text);
        }
    }
}
