//! Settings that files leave in the configuration.

#![allow(clippy::expect_used, reason = "a test that cannot go on fails")]

mod toy;

use proptest::prelude::*;
use std::time::Duration;
use terse_config::diagnostic::MAX_DIAGNOSTICS;
use terse_config::{Config, SectionKind, Severity};
use toy::{Toy, load};

/// Reads a file without faults.
fn good(file: &str) -> Config {
    let (config, diagnostics) = load(&[file.as_bytes()]);
    assert_eq!(diagnostics.iter().map(|d| d.one_line(1)).collect::<Vec<_>>(), [""; 0], "{file}");
    config
}

/// The alerts and warnings of a file, each as `line: reason`.
fn said(file: &str) -> Vec<String> {
    let (_, diagnostics) = load(&[file.as_bytes()]);
    diagnostics.iter().map(|d| format!("{}: {}", d.place.as_ref().map_or(0, |place| place.line), d.reason)).collect()
}

fn toy(config: &Config, name: &str) -> Toy {
    let section = config.sections.iter().find(|section| &*section.name == name).expect("the section");
    section.settings.get::<Toy>().cloned().unwrap_or_default()
}

fn words(config: &Config, name: &str) -> Vec<String> {
    toy(config, name).words
}

#[test]
fn sections_and_their_names() {
    let config = good("global\ndefaults\nfrontend f\nbackend b\nlisten l\nhttp-errors e\nbackend f\n");
    let names: Vec<_> = config.sections.iter().map(|section| (section.kind, &*section.name, section.place.line)).collect();
    assert_eq!(
        names,
        [
            (SectionKind::Frontend, "f", 3),
            (SectionKind::Backend, "b", 4),
            (SectionKind::Listen, "l", 5),
            (SectionKind::HttpErrors, "e", 6),
            (SectionKind::Backend, "f", 7),
        ]
    );
    assert_eq!(config.global.place.line, 1);
}

#[test]
fn global_sections_add_up_over_files() {
    let (config, diagnostics) = load(&[b"  global\n say a\nlisten l\n say x\n\tglobal\n say b\n", b"global\n say c\n"]);
    assert_eq!(diagnostics.worst(), None);
    assert_eq!(config.global.settings.get::<Toy>().unwrap().words, ["a", "b", "c"]);
}

#[test]
fn proxies_start_with_their_defaults() {
    let config = good(
        "backend none\ndefaults\n mode tcp\nbackend old\ndefaults base\n mode http\n say x\n\
         defaults more from base\n say y\ndefaults\n timeout connect 5s\n\
         backend plain\nbackend named from more\n say z\nlisten again from base\n",
    );
    assert_eq!(toy(&config, "none"), Toy::default());
    assert_eq!(toy(&config, "old").mode.as_deref(), Some("tcp"));
    assert_eq!(toy(&config, "plain"), Toy { connect: Some(Duration::from_secs(5)), ..Toy::default() });
    assert_eq!(
        toy(&config, "named"),
        Toy { mode: Some("http".into()), words: vec!["x".into(), "y".into(), "z".into()], ..Toy::default() }
    );
    assert_eq!(words(&config, "again"), ["x"]);
}

#[test]
fn switches_are_taken_back() {
    let config = good(
        "defaults\n option httplog\nfrontend a\nfrontend b\n no option httplog\n no log\nfrontend c\n default option httplog\n",
    );
    assert_eq!([toy(&config, "a").httplog, toy(&config, "b").httplog, toy(&config, "c").httplog], [true, false, false]);
    assert!(toy(&config, "b").log_negated);
    assert_eq!(
        said("listen l\n no mode http\n default timeout connect 5s\n no\n"),
        [
            "2: 'no' is not supported for 'mode'",
            "3: 'default' is not supported for 'timeout connect'",
            "4: unknown keyword 'no' in 'listen' section",
        ]
    );
}

#[test]
fn what_changes_nothing_is_recorded() {
    let config = good("global\n tune.idle 4\nlisten l\n no option splice-auto\n no option transparent\n");
    let accepted: Vec<_> = config.accepted.iter().map(|(place, why)| (place.line, &place.text[place.span.clone()], *why)).collect();
    assert_eq!(
        accepted,
        [
            (2, "tune.idle", "there is no such loop"),
            (4, "option splice-auto", "the kernel decides"),
            (5, "option transparent", "what is not built is off"),
        ]
    );
}

#[test]
fn variables_reach_words_and_addresses() {
    let config = good(
        "global\n setenv A one\n presetenv A two\n presetenv B \"<$A>\"\n say \"$A\" \"$B\"\n unsetenv A\n say \"${A-gone}\"\n\
         frontend f\n bind fd@${fe}\n say '$A' \"$.LINE\" \"$.FILE\" \"$.SECTION\" \"${NONE[*]}\" end\n\
         global\n say \"$.SECTION\"\n resetenv B\n say \"${HOME-none}\" \"$B\"\n",
    );
    assert_eq!(config.global.settings.get::<Toy>().unwrap().words, ["one", "<one>", "gone", "global", "none", "<one>"]);
    assert_eq!(toy(&config, "f").binds, ["fd@7"]);
    assert_eq!(words(&config, "f"), ["$A", "10", "a.cfg", "f", "end"]);
    assert_eq!(config.environment.variables, [("B".to_owned(), "<one>".to_owned())].into());
}

#[test]
fn conditions_choose_lines_and_sections() {
    let config = good(
        "global\n setenv W 1\n.if feature(THREAD) && streq(\"$W\",1)\nlisten a\n  .if !version_atleast(3.5-dev4)\n say no\n  .else # yes\n say yes\n  \
         .endif\n.elif 1\n unknown\n.endif\n say end\n",
    );
    assert_eq!(words(&config, "a"), ["yes", "end"]);
    assert_eq!(
        said("global\n.if 1\n.if foo()\n say\n.endif\n"),
        ["3: unparsable conditional expression 'foo()' in '.if'", "2: non-terminated '.if' block"]
    );
}

#[test]
fn the_old_form_of_listeners() {
    let (config, diagnostics) = load(&[b"listen l 127.0.0.1:8081\n bind :2\nfrontend f :3\n"]);
    assert_eq!(diagnostics.worst(), Some(Severity::Warning));
    assert_eq!((toy(&config, "l").binds, toy(&config, "f").binds), (vec!["127.0.0.1:8081".into(), ":2".into()], vec![":3".into()]));
    assert_eq!(
        said("listen l udp@:1\nbackend b :2\n"),
        [
            "1: 'listen' : addresses behind a section's name are an old form",
            "1: 'bind' : <address>: UDP is not spoken",
            "2: 'backend' cannot handle unexpected argument ':2'",
        ]
    );
}

#[test]
fn names_and_references_of_sections() {
    assert_eq!(
        said("listen a\nfrontend a\nbackend a\nhttp-errors a\nhttp-errors a\nbackend b$\nlisten\nlisten\n"),
        [
            "2: 'frontend' : 'a' has the same name as listen 'a' declared at a.cfg:1",
            "3: 'backend' : 'a' has the same name as listen 'a' declared at a.cfg:1",
            "5: 'http-errors' : 'a' has the same name as http-errors 'a' declared at a.cfg:4",
            "6: 'backend' : character '$' is not permitted in the name 'b$'",
            "7: 'listen' expects a name as argument",
            "8: 'listen' expects a name as argument",
        ]
    );
    assert_eq!(
        said("defaults d\ndefaults d\nlisten a from d\ndefaults d\nlisten b\nlisten c from e\n"),
        [
            "3: 'listen' : ambiguous defaults section name 'd': it is declared at a.cfg:1 and at a.cfg:2",
            "4: 'defaults' : 'd' is the name of the defaults section declared at a.cfg:2 too, which 'from' refers to",
            "6: 'listen' : defaults section 'e' not found",
        ]
    );
    assert_eq!(
        said("defaults d\nlisten a from d\nlisten b\n"),
        ["3: 'listen' : defaults section 'd' (declared at a.cfg:1) is used both by name and without"]
    );
}

#[test]
fn idle_sections_are_left_out() {
    assert_eq!(
        said("mailers u\n mailer a\n timeout b\nbackend b\n say x\n"),
        ["1: section 'mailers' is left out: no mail is sent; watch the logs"]
    );
    assert_eq!(load(&[b"mailers p\n mailer a\n"]).1.worst(), Some(Severity::Warning));
}

#[test]
fn refused_sections_are_told_once() {
    assert_eq!(
        said("program u\n command a\n option b\nbackend b\n say x\ntraces\n trace a\n"),
        [
            "1: section 'program' is not supported: no other programs are started; use the service manager",
            "6: section 'traces' is not supported: there are no traces"
        ]
    );
}

#[test]
fn old_and_refused_names() {
    let (config, diagnostics) = load(&[b"backend b\n contimeout 4000\n reqadd X\n"]);
    assert_eq!(toy(&config, "b").connect, Some(Duration::from_secs(4)));
    let said: Vec<_> = diagnostics.iter().map(|d| (d.severity, d.reason.as_str(), d.hint.as_deref())).collect();
    assert_eq!(
        said,
        [
            (Severity::Warning, "'contimeout' is an old name", Some("write 'timeout connect'")),
            (Severity::Alert, "'reqadd' is not supported: write 'http-request add-header'", None),
        ]
    );
}

#[test]
fn authors_messages() {
    let (_, diagnostics) = load(&[b".notice \"it is\"\n.warning w\n.alert a\n.diag d\n.alert a b\n.alrt x\n.notice\n"]);
    let said: Vec<_> = diagnostics.iter().map(|d| (d.severity, d.reason.as_str())).collect();
    assert_eq!(
        said,
        [
            (Severity::Notice, "'it is'"),
            (Severity::Warning, "'w'"),
            (Severity::Alert, "'a'"),
            (Severity::Alert, "unexpected argument 'b' for '.alert'"),
            (Severity::Alert, "unknown directive '.alrt'"),
            (Severity::Notice, "''"),
        ]
    );
}

#[test]
fn odd_files() {
    assert_eq!(said(""), [""; 0]);
    assert_eq!(said("# nothing\n\n\r\n"), [""; 0]);
    assert_eq!(said("listen l\r\n mode http\r\n"), [""; 0]);
    assert_eq!(said("listen l\n say x"), ["2: missing line feed at the end of the last line: the file might have been truncated"]);
    assert_eq!(
        said("listen l\n say \0x # y\n say # \0\n mode http\rx\n"),
        ["2: stray NUL byte", "3: stray NUL byte", "4: line break inside the line"]
    );
    assert_eq!(said(&format!("listen l\n say {}\n say x\n", "y".repeat(1 << 20))), ["2: line too long: at most 1048576 bytes"]);
    assert_eq!(said("[spoe]\n"), ["1: scopes belong to files of SPOE, which is not supported"]);
    let (_, diagnostics) = load(&[b"listen l\n", b"say x\n"]);
    assert_eq!(diagnostics.iter().map(|d| d.reason.as_str()).collect::<Vec<_>>(), ["unknown keyword 'say' out of section"]);
}

#[test]
fn a_mistyped_section_within_another_is_named() {
    let (_, diagnostics) = load(&[b"listen l\nbakend b\n"]);
    let found = diagnostics.iter().map(|d| (d.reason.as_str(), d.hint.as_deref())).collect::<Vec<_>>();
    assert_eq!(found, [("unknown keyword 'bakend' in 'listen' section", Some("did you mean 'backend'?"))]);
}

#[test]
fn a_file_of_noise_is_not_read_to_its_end() {
    let (_, diagnostics) = load(&["noise\n".repeat(100_000).as_bytes()]);
    assert_eq!((diagnostics.iter().count(), diagnostics.omitted()), (MAX_DIAGNOSTICS, 1));
    let warnings = ".warning w\n".repeat(MAX_DIAGNOSTICS + 5) + "listen l\n";
    let (config, diagnostics) = load(&[warnings.as_bytes()]);
    assert_eq!((diagnostics.omitted(), config.sections.len()), (5, 1));
}

proptest! {
    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes)?;
    }

    #[test]
    fn any_lines_can_be_read(lines in prop::collection::vec(LINE, 0..12)) {
        check(lines.join("\n").as_bytes())?;
    }
}

/// Lines that look like a configuration's.
const LINE: &str = r#"(no |default )?(global|listen|frontend|backend|defaults|http-errors|userlist|bind|mode|log|timeout connect|contimeout|\
option httplog|option|say|tune.idle|reqadd|setenv|resetenv|\.if|\.elif|\.else|\.endif|\.alert|\PC{0,4})( (a|b|from|0|1|:80|"\$A"|"\$\{fe\}"|\
'|"|5s|\\x[0-9g]{2}|defined\(A\)|&&|\PC{1,3})){0,5}"#;

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (_, diagnostics) = load(&[bytes]);
    for diagnostic in diagnostics.iter() {
        if let Some(place) = &diagnostic.place {
            prop_assert!(place.text.get(place.span.clone()).is_some(), "{diagnostic:?}");
        }
        let shown = diagnostic.on_terminal(1, false) + &diagnostic.one_line(1);
        prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        prop_assert!(!diagnostic.one_line(1).contains('\n'));
    }
    Ok(())
}
