//! Servers that come and go: agents, health observed in traffic, tracking, and orders of operators.

use super::stories::{Story, compare, story};

const DEAD_AGENT: (&str, &str) = ("last_agt", "the words for a refused connection are those of HAProxy 3");
const DEAD_SERVER: (&str, &str) = ("last_chk", "the words for a refused connection are those of HAProxy 3");

/// A server with an agent, which is asked until its last answer has been heard.
fn asked(agent: &'static [&'static str], words: &str, others: &str) -> Story {
    let acts: &[&str] = match agent.len() {
        1 => &["asked 2", "1 GET /x", "1 reads"],
        2 => &["asked 3", "1 GET /x", "1 reads"],
        _ => &["asked 4", "1 GET /x", "1 reads"],
    };
    let lines = format!(
        "server a {{a}} weight 50 maxconn 9 agent-check agent-port {{agent}} agent-inter 30ms {words}\n server b {{b}} weight 0\n{others}"
    );
    Story { agent, ..story(lines, acts) }
}

#[test]
fn agents() {
    let mut stories: Vec<Story> = Vec::new();
    for agent in [
        &["up\n"][..],
        &["down\n"],
        &["fail#no disk\n"],
        &["stopped # gone \"away\"\n"],
        &["drain\n"],
        &["maint\n"],
        &["ready\r\n"],
        &["75%\n"],
        &["5%\n"],
        &["300%\n"],
        &["1000%\n"],
        &["0%\n"],
        &["maxconn:3\n"],
        &["maxconn:x\n"],
        &["up 50% maxconn:5\n"],
        &["up,10%\n"],
        &["10% 20% up down up\n"],
        &["what is this\n"],
        &["up what\n"],
        &["down what # why\n"],
        &["up # fine\n"],
        &["DOWN\n"],
        &[""],
        &["\n"],
        &["down\n", "up\n"],
        &["down\n", "50%\n"],
        &["down\n", "down"],
        &["maint\n", "ready\n"],
        &["drain\n", "ready\n"],
        &["drain\n", "ready up\n"],
        &["down maint\n", "ready\n"],
        &["down maint\n", "ready up\n"],
        &["down\n", "maint\n", "ready\n"],
    ] {
        stories.push(asked(agent, "", ""));
    }
    stories.push(asked(&["down\n", "up\n"], "agent-send hello\\n", ""));
    stories.push(asked(&["down\n", "up\n"], "", "option log-health-checks\n"));
    stories.push(asked(&["75%\n", "down\n"], "backup", "option log-health-checks\n"));
    compare(&stories);
}

#[test]
fn agents_and_checks() {
    const CHECKED: &[&str] = &["stat web/a check_status L4OK", "asked 2", "1 GET /x", "1 reads"];
    let with = |agent, words: &str| Story {
        agent,
        ..story(
            format!("server a {{a}} check inter 50ms agent-check agent-port {{agent}} agent-inter 30ms {words}\n server b {{b}}"),
            CHECKED,
        )
    };
    compare(&[
        with(&["up\n"], ""),
        with(&["down\n"], ""),
        with(&["drain\n"], ""),
        with(&["50%\n"], "weight 100"),
        // No agent listens.
        story(
            "server a {a} agent-check agent-port 1 agent-inter 30ms\n server b {b}",
            &["stat web/a agent_status L4CON", "1 GET /x", "1 reads"],
        )
        .but(&[DEAD_AGENT]),
        // Orders of operators about agents and checks.
        Story {
            agent: &["up\n"],
            ..story(
                "server a {a} agent-check agent-port {agent} agent-inter 1h\n server b {b}",
                &[
                    "stat web/a agent_status L7OK",
                    "cli set server web/a agent down",
                    "1 GET /x",
                    "1 reads",
                    "cli set server web/a agent up",
                    "cli disable agent web/a",
                ],
            )
        },
    ]);
}

/// A server's health as observed in requests.
#[test]
fn observed() {
    const WRONG: &[&str] =
        &["stat web/a check_status L7OK", "1 GET /500", "1 reads", "1 GET /500", "1 reads", "1 GET /x", "1 reads"];
    const MIXED: &[&str] =
        &["stat web/a check_status L7OK", "1 GET /500", "1 reads", "1 GET /x", "1 reads", "1 GET /500", "1 reads"];
    let layer7 = |words: &str, acts| {
        story(
            format!("option httpchk GET /x\n retries 0\n server a {{a}} check inter 1h observe layer7 error-limit 2 {words}"),
            acts,
        )
    };
    let mut stories = Vec::new();
    for words in [
        "",
        "on-error fastinter",
        "on-error fail-check",
        "on-error fail-check fall 1",
        "on-error sudden-death",
        "on-error sudden-death fall 2",
        "on-error mark-down",
        "on-error mark-down rise 3 fall 5",
    ] {
        stories.push(layer7(words, WRONG));
    }
    stories.push(layer7("on-error mark-down", MIXED));
    for acts in [
        &["stat web/a check_status L7OK", "1 GET /junk", "1 reads", "2 GET /junk", "2 reads", "3 GET /x", "3 reads"][..],
        &["stat web/a check_status L7OK", "1 GET /gone", "1 reads", "2 GET /gone", "2 reads", "3 GET /x", "3 reads"],
        &["stat web/a check_status L7OK", "1 GET /reset", "1 reads", "2 GET /reset", "2 reads", "3 GET /x", "3 reads"],
        &["stat web/a check_status L7OK", "1 GET /torn", "1 reads", "2 GET /torn", "2 reads", "3 GET /x", "3 reads"],
        &["stat web/a check_status L7OK", "1 GET /404", "1 reads", "2 GET /404", "2 reads", "3 GET /x", "3 reads"],
    ] {
        stories.push(layer7("on-error mark-down", acts).but(&[(" eresp=", "one error is counted once")]));
    }
    stories.push(story(
        "option httpchk GET /x\n retries 0\n timeout server 50ms\n timeout check 10s\n server a {a} check inter 1h observe layer7 error-limit 2 on-error mark-down",
        &["stat web/a check_status L7OK", "1 GET /silent", "1 reads", "2 GET /silent", "2 reads", "3 GET /x", "3 reads"],
    ));
    // Nothing is observed where nothing is checked.
    stories.push(story(
        "retries 0\n server a {a} observe layer7 error-limit 1 on-error mark-down",
        &["1 GET /500", "1 reads", "1 GET /x", "1 reads"],
    ));
    // Connections: checks go to a port with a listener, requests to one without.
    let port = "port {a_port}";
    for words in ["on-error mark-down", "on-error fail-check", "on-error sudden-death"] {
        stories.push(story(
            format!("retries 0\n server s {{dead}} check inter 1h {port} addr 127.0.0.1 observe layer4 error-limit 2 {words}"),
            &["stat web/s check_status L4OK", "1 GET /x", "1 reads", "2 GET /x", "2 reads", "3 GET /x", "3 reads"],
        ));
    }
    stories.push(story(
        "option log-health-checks\n option httpchk GET /x\n retries 0\n server a {a} check inter 1h observe layer7 error-limit 1 on-error mark-down",
        &["stat web/a check_status L7OK", "1 GET /500", "1 reads"],
    ));
    compare(&stories);
}

/// Orders of operators, and servers that track others.
#[test]
fn orders() {
    let words = |lines: &str, acts: &[&'static str]| {
        // The only check has been made before anything else is done; of two, the second one waits for its turn.
        let first = ["stat other/x check_status L4OK"].iter().filter(|_| !lines.contains("check"));
        let acts = first.chain(acts).copied().collect::<Vec<_>>().leak();
        story(
            format!(
                "{lines}\nbackend other\n server x {{a}} check inter 1h\n server y {{b}} track x\n server z {{c}} track other/y"
            ),
            acts,
        )
    };
    let plain = "server a {a}\n server b {b}";
    let checked = "server a {a} check inter 1h\n server b {b}";
    compare(&[
        words(plain, &["cli set server web/a state maint", "1 GET /x", "1 reads", "cli set server web/a state ready"]),
        words(plain, &["cli set server web/a state drain", "1 GET /x", "1 reads", "cli set server web/a state ready"]),
        words(
            plain,
            &[
                "cli set server web/a state drain",
                "cli set server web/a state maint",
                "cli set server web/a state drain",
                "cli set server web/a state ready",
            ],
        ),
        words(plain, &["cli disable server web/a", "cli disable server web/b", "1 GET /x", "1 reads", "cli enable server web/a"]),
        words(
            plain,
            &[
                "cli set weight web/a 0",
                "1 GET /x",
                "1 reads",
                "cli get weight web/a",
                "cli set weight web/a 50%",
                "cli set weight web/a 7",
            ],
        ),
        words(checked, &["stat web/a check_status L4OK", "cli set server web/a health down", "1 GET /x", "1 reads"]),
        words(checked, &["stat web/a check_status L4OK", "cli set server web/a health stopping", "1 GET /x", "1 reads"]),
        words(checked, &["stat web/a check_status L4OK", "cli set server web/a health stopping", "cli set server web/a health up"]),
        words(checked, &["stat web/a check_status L4OK", "cli set server web/a state maint", "cli set server web/a state ready"]),
        words(checked, &["stat web/a check_status L4OK", "cli disable health web/a", "cli enable health web/a"]),
        words(checked, &["stat web/a check_status L4OK", "cli set weight web/a 0", "cli set server web/a state drain"]),
        words(
            "server a {a} slowstart 1h\n server b {b} disabled",
            &["cli set server web/a state maint", "cli set server web/a state ready", "1 GET /x", "1 reads"],
        ),
        words(
            "server a {a}\n server b {b} backup",
            &["cli set server web/a state maint", "1 GET /x", "1 reads", "cli set server web/a state ready", "1 GET /y", "1 reads"],
        ),
        words(
            plain,
            &[
                "stat other/x check_status L4OK",
                "cli set server other/x state maint",
                "cli set server other/z state maint",
                "cli set server other/x state ready",
                "cli set server other/z state ready",
            ],
        ),
        words(
            plain,
            &[
                "stat other/x check_status L4OK",
                "cli set server other/x state drain",
                "cli set server other/z state drain",
                "cli set server other/x state ready",
                "cli set server other/z state ready",
            ],
        )
        .but(&[("Server other/y is UP (leaving", "HAProxy 3 tells a drain that was inherited")]),
        words(
            plain,
            &[
                "stat other/x check_status L4OK",
                "cli set server other/x state maint",
                "cli set server other/z state drain",
                "cli set server other/x state ready",
            ],
        ),
        words(
            plain,
            &[
                "stat other/x check_status L4OK",
                "cli set server other/z state maint",
                "cli set server other/x state maint",
                "cli set server other/z state ready",
            ],
        ),
        words(plain, &["stat other/x check_status L4OK", "cli set server other/x weight 5", "cli set server other/x health down"]),
    ]);
}

/// Followers of servers that checks bring down and up.
#[test]
fn followers() {
    const LINES: &str = "server b {b}\nbackend one\n server a {a} check inter 20ms rise 1 fall 1\nbackend two\n server s {b} track one/a\n server t {c} track s";
    compare(&[
        story(LINES, &["stat one/a check_status L4OK", "1 GET /x", "1 reads"]),
        story(LINES, &["stat one/a check_status L4OK", "kill a", "stat one/a check_status L4CON", "stat two/t status DOWN"])
            .but(&[DEAD_SERVER, ("Server one/a is DOWN", DEAD_SERVER.1)]),
        story(LINES, &["stat one/a check_status L4OK", "kill a", "stat two/t status DOWN", "revive a", "stat two/t status UP"])
            .but(&[("Server one/a is DOWN", DEAD_SERVER.1)]),
        // The first check of two that are needed.
        story("server a {a} check inter 1h rise 2 fall 3\n server b {b}", &["stat web/a check_status L4OK", "1 GET /x", "1 reads"]),
        story(
            "option httpchk GET /500\n server a {a} check inter 20ms rise 2 fall 3\n server b {b}",
            &["stat web/a status DOWN", "1 GET /x", "1 reads"],
        ),
        story(
            "option httpchk GET /500\n option log-health-checks\n server a {a} check inter 20ms rise 2 fall 3 backup\n server b {b}",
            &["stat web/a status DOWN", "1 GET /x", "1 reads"],
        ),
    ]);
}
