//! Sections `crt-store`.

use crate::certificates::{Kind, authority, signed};
use crate::figures::command;
use crate::support::Terse;
use crate::support::proxy::DEFAULTS;
use crate::talk::{Ask, Outcome};

#[test]
fn certificates_are_called_by_their_stores() {
    let root = authority("root");
    let pair = |name: &str| signed(Kind::Ecdsa, &[name], &root);
    let (one, two, three, four) = (pair("one"), pair("two"), pair("three"), pair("four"));
    let text = format!(
        "global\n nbthread 1\n stats socket \"${{dir}}/stats\" level admin\n{DEFAULTS}\nfrontend web\n \
         bind fd@${{web}} ssl crt one.pem crt @/second crt @web/third crt @web/four.pem\n http-request return status 200\n\
         crt-store\n load crt one.pem key one.other\n load crt two.pem alias second\n\
         crt-store web\n crt-base \"${{dir}}\"\n key-base \"${{dir}}\"\n load crt three.pem key three.private alias third\n \
         load crt four.pem\n"
    );
    let terse = Terse::with(&text)
        // The key in it is another one's: 'key' goes before it.
        .file("one.pem", [one.certificate_pem(), two.key_pem()].concat())
        .file("one.other", one.key_pem())
        .file("two.pem", two.pem())
        .file("three.pem", three.certificate_pem())
        .file("three.private", three.key_pem())
        .file("four.pem", four.pem());
    let terse = terse.listen("web").start();
    for name in ["one", "two", "three", "four"] {
        let Outcome::Served { subject, .. } = (Ask { name: Some(name), ..Ask::default() }).outcome(terse.address("web")) else {
            panic!("{name}")
        };
        assert_eq!(subject, name);
    }
    assert_eq!(command(&terse, "show ssl cert"), "# filename\n@/second\n@web/four.pem\n@web/third\none.pem\n\n");
    let said = command(&terse, "show ssl cert @web/third");
    assert!(said.contains("/three.pem\nKey filename: ") && said.contains("/three.private\n"), "{said}");
    terse.end();
}

#[test]
fn what_is_wrong_is_said() {
    let root = authority("root");
    let (one, two) = (signed(Kind::Ecdsa, &["one"], &root), signed(Kind::Ecdsa, &["two"], &root));
    for (lines, words, reason) in [
        ("load crt one.pem key two.key", "one.pem", "two.key': the private key does not belong to the certificate of 'one.pem'"),
        ("load crt one.pem alias x\n load crt one.pem alias x", "@/x", "store '@/x' was already defined"),
        ("load key two.key", "one.pem", "mandatory 'crt' parameter not found"),
        ("load crt one.pem\n crt-base /", "one.pem", "it can't be used after a load line"),
        ("load crt one.pem alias x", "@/y", "'@/y': no 'crt-store' has it"),
        ("load crt one.pem acme le", "one.pem", "'acme' is not supported"),
        ("load crt one.pem alias /x", "one.pem", "'/' is forbidden as the first character"),
    ] {
        let text = format!(
            "crt-store\n {lines}\ndefaults\n mode http\n timeout client 1s\nfrontend web\n bind 127.0.0.1:0 ssl crt {words}\n"
        );
        let finished = Terse::with(&text).file("one.pem", one.pem()).file("two.key", two.key_pem()).arg(&["-c"]).run();
        assert!(finished.code() == Some(1) && finished.stderr.contains(reason), "{lines}: {}", finished.stderr);
    }
}
