//! Verdicts of both programs on a configuration, line by line: refused, warned of, or neither. Every fetch of HAProxy is in a
//! condition and in a format of each set of rules; and rules are in every order.

use super::expressions;
use super::support::Terse;
use super::support::program::find;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Verdict on a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Verdict {
    Fine,
    Warned,
    Refused,
}

/// The file before the lines that are judged.
const HEAD: &str = "\
global
 stats timeout 1s
cache c
 total-max-size 1
userlist people
 user me insecure-password x
backend words
 stick-table type string size 10 store gpc0,gpc1,gpt0,http_req_cnt
backend addresses
 stick-table type ip size 10 store gpc0
backend many
 stick-table type ip size 100 expire 1h store gpt(3),gpc(4)
backend other
 stick-table type string size 10 store gpc0
backend app
 mode http
 server one 127.0.0.1:1
 server two 127.0.0.1:1
frontend web
 bind unix@${dir}/web
 mode http
backend b
 mode http
listen judged
 mode http
 bind unix@${dir}/judged
 timeout client 1s
 timeout server 1s
 timeout connect 1s
 capture request header host len 10
 capture response header host len 10
 stick-table type ip size 10 store conn_cur
 server one 127.0.0.1:1
";

/// Returns a program's verdict on each of the lines. HAProxy ends with the first refused line of some kinds: the rest is read once
/// more.
fn verdicts(head: &str, lines: &[String], program: Option<&Path>) -> Vec<Verdict> {
    let first = head.lines().count() + 1;
    let mut all = Vec::new();
    while all.len() < lines.len() {
        let left = &lines[all.len()..];
        let process = Terse::with(&format!("{head}{}", left.concat())).arg(&["-c"]);
        let said = program.into_iter().fold(process, Terse::program).run().stderr;
        let mut found: BTreeMap<usize, Verdict> = BTreeMap::new();
        for line in said.lines() {
            let Some(verdict) = verdict(line) else { continue };
            if let Some(i) = number(line).and_then(|n| n.checked_sub(first)) {
                let worst = found.entry(i).or_insert(verdict);
                *worst = verdict.max(*worst);
            }
        }
        let refused = found.iter().filter(|(_, verdict)| **verdict == Verdict::Refused).map(|(i, _)| i + 1).max();
        let known = refused.unwrap_or(left.len());
        all.extend((0..known).map(|i| found.get(&i).copied().unwrap_or(Verdict::Fine)));
    }
    all
}

fn verdict(line: &str) -> Option<Verdict> {
    [("[WARNING]", Verdict::Warned), ("[ALERT]", Verdict::Refused)]
        .into_iter()
        .find_map(|(word, verdict)| line.starts_with(word).then_some(verdict))
}

/// The number of the line that a message is about: after the file's name.
fn number(said: &str) -> Option<usize> {
    let (_, behind) = said.split_once(".cfg:")?;
    behind.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn haproxy() -> Option<PathBuf> {
    std::env::var_os("HAPROXY").map(Into::into).or_else(|| find("haproxy"))
}

/// Rules with a condition, and those with a value, by their sets.
const CONDITIONS: &[&str] = &[
    "tcp-request connection accept",
    "tcp-request session accept",
    "tcp-request content accept",
    "http-request allow",
    "redirect location /",
    "use_backend b",
    "use-server one",
    "tcp-response content accept",
    "http-response allow",
    "http-after-response allow",
];
const VALUES: &[&str] = &["tcp-request content", "http-request", "tcp-response content", "http-response", "http-after-response"];

/// Fetches on which terse has another verdict, and the reason. Sets are known by how they begin, names too if they end in a star.
struct Meant {
    set: &'static str,
    names: &'static [&'static str],
    reason: &'static str,
}

const MEANT: &[Meant] = &[
    Meant {
        set: "tcp-request ",
        names: &["be_*", "capture.req.*", "cookie", "cur_*", "http_first_req", "ssl_f*", "ssl_c*"],
        reason: "they have no value before there is a stream or a handshake, which nothing tells of",
    },
    Meant {
        set: "",
        names: &["ssl_s_*", "capture.res.ver"],
        reason: "before there is a server's connection they never match, which is told of",
    },
    Meant {
        set: "http-after-response",
        names: &["res.body*", "res.len", "res.payload*", "payload*", "distcc_*", "res.ssl_hello_type", "rep_ssl_hello_type"],
        reason: "bodies are not looked at any more",
    },
    Meant { set: "", names: &["req.ver", "req_ver"], reason: "2.6 has it for requests alone, 3.5 for answers and logs, too" },
    Meant { set: "tcp-response content", names: &["req_proto_http"], reason: "HAProxy has it under its other name" },
    Meant { set: "use_backend", names: &["be_*", "cur_*"], reason: "they are the frontend's there" },
    Meant {
        set: "redirect",
        names: &["req*", "rdp_cookie*", "payload*", "distcc_*"],
        reason: "what looks at bytes is told of in this line too",
    },
];

impl Meant {
    fn covers(&self, set: &str, name: &str) -> bool {
        let is_named = |known: &&str| known.strip_suffix('*').map_or(**known == *name, |start| name.starts_with(start));
        set.starts_with(self.set) && self.names.iter().any(is_named)
    }
}

#[test]
fn fetches_in_every_set_of_rules() {
    let Some(haproxy) = haproxy() else { return };
    let examples = expressions::examples(&haproxy);
    let mut wrong: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut needless: Vec<&Meant> = MEANT.iter().collect();
    let mut compare = |set: &str, line: &dyn Fn(&str) -> String| {
        let lines: Vec<String> = examples.values().map(|text| line(&expressions::word(text))).collect();
        let (theirs, ours) = (verdicts(HEAD, &lines, Some(&haproxy)), verdicts(HEAD, &lines, None));
        for ((name, theirs), ours) in examples.keys().zip(theirs).zip(ours).filter(|((_, theirs), ours)| theirs != ours) {
            needless.retain(|meant| !meant.covers(set, name));
            if !MEANT.iter().any(|meant| meant.covers(set, name)) {
                wrong.entry(format!("{set}: haproxy {theirs:?}, terse {ours:?}")).or_default().push(name.clone());
            }
        }
    };
    for rule in CONDITIONS {
        compare(rule, &|text| format!(" {rule} if {{ {text} -m found }}\n"));
    }
    for set in VALUES {
        compare(set, &|text| format!(" {set} set-var-fmt(txn.x) %[{text}]\n"));
    }
    let mut wrong: Vec<_> = wrong.iter().map(|(what, names)| format!("{what}: {}", names.join(" "))).collect();
    wrong.extend(needless.iter().map(|meant| format!("nothing differs in '{}': {}", meant.set, meant.reason)));
    assert!(examples.len() > 400 && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Rules in pairs: the second is warned of if it runs before the first.
#[test]
fn rules_in_every_order() {
    const RULES: &[&str] = &[
        " tcp-request connection accept if FALSE\n",
        " tcp-request session accept if FALSE\n",
        " tcp-request content accept if FALSE\n",
        " monitor fail if FALSE\n",
        " http-request allow if FALSE\n",
        " redirect location / if FALSE\n",
        " use_backend b if FALSE\n",
        " use-server one if FALSE\n",
        " tcp-response content accept if FALSE\n",
        " http-response allow if FALSE\n",
        " http-after-response allow if FALSE\n",
        " default_backend b\n",
    ];
    let Some(haproxy) = haproxy() else { return };
    let mut wrong = String::new();
    for first in RULES {
        for second in RULES {
            let head = format!("{HEAD}{first}");
            let [theirs, ours] = [Some(&*haproxy), None].map(|program| verdicts(&head, &[(*second).to_owned()], program));
            // Version 2.6 does not report this one, 3.x does.
            let is_later = first.starts_with(" http-response") && second.starts_with(" tcp-response");
            if theirs != ours && !is_later {
                let _ = writeln!(wrong, "{second} after {first}: haproxy {theirs:?}, terse {ours:?}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Whole sections: how many warnings there are of each.
#[test]
fn what_is_said_of_tracking_and_capturing() {
    let Some(haproxy) = haproxy() else { return };
    let mut wrong = String::new();
    for mode in ["http", "tcp"] {
        for delay in ["", " tcp-request inspect-delay 1s\n"] {
            for rule in [
                "tcp-request content track-sc0 src",
                "tcp-request content track-sc0 src if { method GET }",
                "tcp-request content track-sc0 src if { req.len gt 0 }",
                "tcp-request content track-sc0 src if FALSE",
                "tcp-request content track-sc0 req.hdr(host)",
                "tcp-request content track-sc0 req.payload(0,4)",
                "tcp-request content capture src len 4",
                "tcp-request content capture req.payload(0,4) len 4",
                "tcp-request session track-sc0 src",
                "tcp-request connection track-sc0 src",
            ] {
                let text = format!(
                    "defaults\n timeout client 1s\n timeout server 1s\n timeout connect 1s\nfrontend f\n mode {mode}\n bind unix@${{dir}}/f\n \
                     stick-table type string size 9 store http_req_cnt\n default_backend b\n{delay} {rule}\nbackend b\n mode {mode}\n"
                );
                let [theirs, ours] = [Some(&*haproxy), None].map(|program| {
                    let process = Terse::with(&text).arg(&["-c"]);
                    let said = program.into_iter().fold(process, Terse::program).run().stderr;
                    said.lines().filter_map(verdict).collect::<Vec<_>>()
                });
                if theirs != ours {
                    let _ = writeln!(wrong, "{mode}{delay:?} {rule}: haproxy {theirs:?}, terse {ours:?}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// `-c` looks for no root folder, and keywords for TLS may be used where no connection speaks it.
#[test]
fn what_changes_nothing_is_not_told_of() {
    let Some(haproxy) = haproxy() else { return };
    let without_tls = [
        " server three 127.0.0.1:1 alpn h2,http/1.1\n",
        " server four 127.0.0.1:1 sni str(a.test)\n",
        " server five 127.0.0.1:1 check check-alpn http/1.1 check-sni a.test\n",
        " bind unix@${dir}/more alpn h2,http/1.1\n",
    ];
    for (head, lines) in [(HEAD, &without_tls[..]), ("global\n", &[" chroot /nonexistent/root\n"])] {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let theirs = verdicts(head, &lines, Some(&haproxy));
        assert_eq!(theirs, vec![Verdict::Fine; lines.len()]);
        assert_eq!(verdicts(head, &lines, None), theirs, "{lines:?}");
    }
}
