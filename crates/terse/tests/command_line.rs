//! The command line: what is said, to whom, and what the process ends with.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use support::{Finished, Terse};

fn run(words: &[&str]) -> Finished {
    Terse::bare().arg(words).run()
}

fn check(configuration: &str, words: &[&str]) -> Finished {
    Terse::with(configuration).arg(&["-c"]).arg(words).run()
}

#[test]
fn versions() {
    let own = run(&["-v"]).expect(0).stdout;
    assert!(own.starts_with("terse 0.1.0\n"), "{own}");
    let stand_in = Terse::bare().named("haproxy").arg(&["-dM", "-dI", "-dW", "-vv"]).run().expect(0).stdout;
    assert!(stand_in.starts_with("HAProxy version 3.5-dev5 "), "{stand_in}");
    assert!(stand_in.contains("\n  TARGET  = linux-glibc\n") && stand_in.contains("\nFeature list : "), "{stand_in}");
    assert_eq!(run(&["-vq"]).expect(0).stdout, "3.5-dev5\n");
}

#[test]
fn help_and_misuse() {
    assert!(run(&["-h"]).expect(0).stdout.contains("-f <file|folder>"));
    let nothing = run(&[]).expect(1);
    assert!(nothing.stderr.contains("no configuration file"), "{}", nothing.stderr);
    for (words, said) in [
        (&["-f"][..], "-f: expects <file|folder>"),
        (&["-Q"], "-Q: unknown option"),
        (&["-f", "x", "-n", "y"], "-n: 'y' is not a number"),
        (
            &["-c", "-f", "/nonexistent/cfg"],
            "Cannot open configuration file/directory /nonexistent/cfg : No such file or directory",
        ),
    ] {
        let refused = run(words).expect(1);
        assert!(refused.stderr.contains(said), "{words:?}: {}", refused.stderr);
        assert_eq!(refused.stdout, "");
    }
}

/// The cases of HAProxy's own test of conditions, and more.
#[test]
fn conditions() {
    let cases: &[(&str, i32)] = &[
        ("version_atleast(2.5-dev0)", 0),
        ("version_atleast(2.4)", 0),
        ("version_atleast(1024)", 1),
        ("version_atleast(3.5-dev4)", 0),
        ("version_atleast(3.5)", 1),
        ("streq(foo,'foo')", 0),
        ("streq(\"foo bar\",'foo bar')", 0),
        ("streq(foo,bar)", 1),
        ("defined(TESTVAR) && streq(\"$TESTVAR\",\"1\")", 0),
        ("feature(OPENSSL) || !feature(OPENSSL)", 0),
        ("feature(THREAD)", 0),
        ("1&&!0&&!((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))", 0),
        ("1   &&!   0&&    !((streq(a,b)||!streq(a,a)&&1)||strneq(a,a))", 0),
        ("1 && !0 && !((streq(a,b) || !streq(a,a) && 1) || strneq(a,a))", 0),
        ("1 && !0 && !((streq(a,b) || !streq(a,a) && 1) || strneq(a,b))", 1),
        ("1 && !0 && !((streq(a,a) || !streq(a,a) && 1) || strneq(a,a))", 1),
        ("", 1),
        ("-1000 && 200", 0),
        ("200rrr", 2),
        ("!(0))", 2),
        ("streq(a,\"a)", 2),
        ("nonsense(1)", 2),
        ("enabled(FAST-FORWARD)", 0),
    ];
    for (condition, code) in cases {
        let ended = Terse::bare().env("TESTVAR", "1").arg(&["-dM", "-dI", "-dW", "-cc", condition]).run();
        assert_eq!(ended.code(), Some(*code), "{condition}: {}", ended.stderr);
        assert_eq!(ended.stderr.is_empty(), *code != 2, "{condition}: {}", ended.stderr);
    }
    run(&["-dF", "-cc", "enabled(FAST-FORWARD)"]).expect(1);
    run(&["-cc"]).expect(1);
}

const GOOD: &str = "global\n maxconn 100\nfrontend web\n mode http\n timeout client 1s\n bind 127.0.0.1:0\n";

#[test]
fn a_good_file_is_silent_unless_asked() {
    let quiet = check(GOOD, &[]).expect(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    assert!(check(GOOD, &["-V"]).expect(0).stdout.contains("Configuration file is valid\n"));
    assert_eq!(check(GOOD, &["-q"]).expect(0).stdout, "");
}

#[test]
fn every_problem_of_a_file_is_said() {
    let bad = check("global\n maxconn many\n usr x\n wurfl-data-file y\n", &[]).expect(1);
    for said in [
        "[ALERT]    (",
        "terse.cfg:2]",
        "terse.cfg:3] : unknown keyword 'usr'",
        "'wurfl-data-file' is not supported",
        "Fatal errors found",
    ] {
        assert!(bad.stderr.contains(said), "{said}: {}", bad.stderr);
    }
    assert_eq!(check("global\n usr x\n", &["-q"]).expect(1).stderr, "");
}

#[test]
fn warnings_end_only_with_zero_warning() {
    let text = format!("global\n nbproc 1\n{GOOD}");
    let warned = check(&text, &[]).expect(0);
    assert!(warned.stderr.contains("[WARNING]"), "{}", warned.stderr);
    assert!(warned.stdout.contains("Warnings were found."), "{}", warned.stdout);
    check(&text, &["-dW"]).expect(1);
    check(&format!("global\n zero-warning\n{text}"), &[]).expect(1);
}

#[test]
fn a_file_without_listeners_ends_with_two() {
    let idle = check("global\n maxconn 10\n", &[]).expect(2);
    assert!(idle.stdout.contains("no listener"), "{}", idle.stdout);
}

#[test]
fn folders_are_read_in_order() {
    let terse = Terse::bare();
    for (name, text) in
        [("20.cfg", "frontend b\n bind 127.0.0.1:0\n"), ("10.cfg", "defaults\n timeout client 1s\n"), ("x.txt", "?\n")]
    {
        std::fs::write(terse.path(name), text).unwrap();
    }
    let folder = terse.path("").to_str().unwrap().to_owned();
    terse.arg(&["-c", "-f", &folder]).run().expect(0);
}

#[test]
fn keywords_can_be_listed() {
    let listed = Terse::with(GOOD).arg(&["-c", "-q", "-dKcfg"]).run().expect(0).stdout;
    assert!(listed.contains("\nglobal\n") && listed.contains("\n\tmaxconn <number>\n"), "{listed}");
}
