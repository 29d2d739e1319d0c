//! Checks in a protocol: `option mysql-check`, `pgsql-check`, `redis-check`, `smtpchk`, `ldap-check`, `spop-check`,
//! `ssl-hello-chk`. Each is a few steps: texts to send, and readers of answers.

use super::{done, in_back, settings};
use crate::check::protocol::{Reader, ldap, mysql_greeting, mysql_login, pgsql, redis, smtp, spop};
use crate::check::{Answer, ProbeKind, Step};
use terse_config::{Args, Fault, Keyword, Scope};

/// Table of keywords.
pub(super) const KEYWORDS: &[Keyword] = &[REDIS_CHECK, SMTPCHK, LDAP_CHECK, PGSQL_CHECK, MYSQL_CHECK, SPOP_CHECK, SSL_HELLO_CHK];

pub(super) const SPOP_CHECK: Keyword =
    done("option spop-check", "", "Checks agents of SPOE by their protocol's greeting.", |args, scope| {
        take(args, scope, vec![send(&spop_hello()), answer(spop)])
    });

pub(super) const REDIS_CHECK: Keyword = done("option redis-check", "", "Checks servers by a PING of Redis.", |args, scope| {
    take(args, scope, vec![send(b"*1\r\n$4\r\nPING\r\n"), answer(redis)])
});

pub(super) const SMTPCHK: Keyword = done(
    "option smtpchk",
    "[<hello> <domain>]",
    "Checks servers by SMTP: a greeting, HELO or what is written, QUIT.",
    |args, scope| {
        let hello = match args.take() {
            None => "HELO localhost".to_owned(),
            Some(word @ ("HELO" | "EHLO")) => format!("{word} {}", args.need("<domain>")?),
            Some(other) => return Err(args.fault(format!("'{other}' is neither 'HELO' nor 'EHLO'"))),
        };
        let hello = format!("{hello}\r\n");
        take(args, scope, vec![answer(smtp), send(hello.as_bytes()), answer(smtp), send(b"QUIT\r\n"), answer(smtp)])
    },
);

pub(super) const LDAP_CHECK: Keyword =
    done("option ldap-check", "", "Checks servers by LDAP: an anonymous bind (RFC 4511 section 4.2).", |args, scope| {
        // Message 1: a bind request of version 3, with an empty name and an empty password.
        let bind = send(b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00");
        take(args, scope, vec![bind, answer(ldap)])
    });

pub(super) const PGSQL_CHECK: Keyword =
    done("option pgsql-check", "user <name>", "Checks servers by PostgreSQL's protocol: a startup message.", |args, scope| {
        if !args.accept("user") {
            return Err(args.fault("expects 'user <name>'"));
        }
        let user = args.need("<name>")?;
        // Version 3.0, and one parameter; the length counts itself. The server asks for a password, or lets the user in.
        let body = [b"\0\x03\0\0user\0", user.as_bytes(), b"\0\0"].concat();
        let length = (body.len() as u32 + 4).to_be_bytes();
        take(args, scope, vec![send(&[&length[..], &body].concat()), answer(pgsql)])
    });

pub(super) const MYSQL_CHECK: Keyword = done(
    "option mysql-check",
    "[user <name> [pre-41 | post-41]]",
    "Checks servers by MySQL's protocol: its greeting, and with a user a login without a password.",
    |args, scope| {
        let mut steps = Vec::new();
        if args.accept("user") {
            let user = args.need("<name>")?;
            let old = match args.take() {
                None | Some("post-41") => false,
                Some("pre-41") => true,
                Some(other) => return Err(args.fault(format!("'{other}' is neither 'pre-41' nor 'post-41'"))),
            };
            let login = if old { login_of_old(user) } else { login(user) };
            // The login waits for no greeting, as in HAProxy: it depends on nothing in it. The packet after it ends the
            // connection.
            steps.push(send(&[packet(1, &login), packet(0, b"\x01")].concat()));
            steps.extend([answer(mysql_greeting), answer(mysql_login)]);
        } else {
            steps.push(answer(mysql_greeting));
        }
        take(args, scope, steps)
    },
);

pub(super) const SSL_HELLO_CHK: Keyword = done(
    "option ssl-hello-chk",
    "",
    "Checks servers by a hello of SSLv3; any answer in a record of TLS is good, an alert, too.",
    |args, scope| {
        let hello = [&b"\x03\x00"[..], &[0x55; 32], b"\x00\x00\x0a\x00\x2f\x00\x35\x00\x0a\x00\x05\x00\xff\x01\x00"].concat();
        let handshake = [&b"\x01\x00"[..], &(hello.len() as u16).to_be_bytes(), &hello].concat();
        let record = [&b"\x16\x03\x00"[..], &(handshake.len() as u16).to_be_bytes(), &handshake].concat();
        take(args, scope, vec![send(&record), Step::Answer(Answer::of_tls())])
    },
);

/// A login of protocol 4.1: the client's capabilities (that protocol, passwords by challenge), the largest packet, a
/// character set, 23 zeros, the user, and a password of no bytes.
fn login(user: &str) -> Vec<u8> {
    [&b"\x00\x82\x00\x00\x00\x80\x00\x01\x21"[..], &[0; 23], user.as_bytes(), b"\0\0"].concat()
}

/// A login of the protocol before: two bytes of the client's capabilities, three of the largest packet, the user, and a
/// password of no bytes.
fn login_of_old(user: &str) -> Vec<u8> {
    [&b"\x00\x80\x00\x00\x01"[..], user.as_bytes(), b"\0\0"].concat()
}

/// A packet: three bytes of length and a number come before its body.
fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..3], &[number], body].concat()
}

fn take(args: &mut Args<'_>, scope: &mut Scope<'_>, steps: Vec<Step>) -> Result<(), Fault> {
    args.end()?;
    if in_back(scope) {
        let probe = &mut settings(scope).probe;
        (probe.kind, probe.protocol) = (ProbeKind::Protocol, steps);
    }
    Ok(())
}

fn send(bytes: &[u8]) -> Step {
    Step::Send { bytes: bytes.to_vec(), comment: None }
}

fn answer(reader: Reader) -> Step {
    Step::Answer(Answer::of_application(reader))
}

/// A proxy's HELLO that marks it as a check: names and typed values (SPOE, sections 3.1 and 3.2.4).
fn spop_hello() -> Vec<u8> {
    const HELLO: u8 = 1;
    const TEXT: u8 = 8;
    const TRUE: u8 = 0x11;
    const UINT32: u8 = 3;
    let text = |text: &[u8]| [&[text.len() as u8], text].concat();
    let pair = |name: &[u8], value: &[u8]| [text(name), value.to_vec()].concat();
    let frame = [
        vec![HELLO, 0, 0, 0, 1, 0, 0],
        pair(b"supported-versions", &[&[TEXT][..], &text(b"2.0")].concat()),
        // 16380 as a variable integer.
        pair(b"max-frame-size", &[UINT32, 0xfc, 0xf0, 0x06]),
        pair(b"healthcheck", &[TRUE]),
        pair(b"capabilities", &[TEXT, 0]),
    ]
    .concat();
    [&(frame.len() as u32).to_be_bytes()[..], &frame].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{CheckStatus, LastCheck};
    use crate::fixture::{Nowhere, farm};
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Outcome of a check with these lines, of a server that sends first and then answers each message in turn.
    async fn outcome(inter: &str, option: &str, answers: &[&[u8]]) -> (LastCheck, Vec<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let lines = format!("option {option}\nserver s {} check inter {inter}", listener.local_addr().unwrap());
        let farm = farm(&lines);
        let checking = tokio::spawn(crate::check::run(farm.context.wardens.clone(), vec![farm.clone()], Arc::new(Nowhere)));
        let (mut peer, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        for answer in answers {
            let _ = peer.write_all(answer).await;
            let mut bytes = vec![0; 1024];
            match peer.read(&mut bytes).await {
                Ok(n) if n > 0 => heard.push(bytes[..n].to_vec()),
                _ => break,
            }
        }
        let story = async {
            while farm.servers()[0].last_check().status == CheckStatus::Initial {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(20), story).await.unwrap();
        checking.abort();
        (farm.servers()[0].last_check(), heard)
    }

    #[tokio::test]
    async fn every_protocol_has_its_steps() {
        let hello = b"\x0a\x00\x00\x00\x0a8.0.1\0...";
        let bound = b"\x30\x0c\x02\x01\x01\x61\x07\x0a\x01\x00\x04\x00\x04\x00";
        for (option, answers, code, info) in [
            ("redis-check", &[&b""[..], b"+PONG\r\n"][..], 0, "Redis server is ok"),
            ("smtpchk EHLO a.b", &[b"220 mail\r\n", b"250-mail\r\n250 OK\r\n", b"221 bye\r\n"], 221, "bye"),
            ("ldap-check", &[b"", bound], 0, "Success"),
            ("pgsql-check user me", &[b"", b"R\x00\x00\x00\x08\x00\x00\x00\x05"], 0, "PostgreSQL server is ok"),
            ("mysql-check", &[hello], 0, "8.0.1"),
            ("mysql-check user me", &[hello, b"\x03\x00\x00\x02\x00\x00\x00"], 0, "8.0.1"),
            ("ssl-hello-chk", &[b"", b"\x15\x03\x00\x00\x02\x02\x28"], 0, ""),
        ] {
            let (last, _) = outcome("10s", option, answers).await;
            let status = if option == "ssl-hello-chk" { CheckStatus::L6Ok } else { CheckStatus::L7Ok };
            assert_eq!((last.status, last.code, last.info.as_str()), (status, code, info), "{option}");
        }
    }

    #[tokio::test]
    async fn wrong_answers_are_failures() {
        for (option, answers, status, code, info) in [
            ("redis-check", &[&b""[..], b"-NOAUTH\r\n"][..], CheckStatus::L7Status, 0, "-NOAUTH"),
            ("smtpchk", &[b"554 no\r\n"], CheckStatus::L7Status, 554, "no"),
            ("pgsql-check user me", &[b"", b"E\x00\x00\x00\x08Sbad"], CheckStatus::L7Response, 0, "bad"),
            (
                "mysql-check user me",
                &[b"\x07\x00\x00\x00\x0a8.0.1\0", b"\x09\x00\x00\x02\xff\x15\x04denied"],
                CheckStatus::L7Status,
                1045,
                "denied",
            ),
            ("ssl-hello-chk", &[b"", b"HTTP/1.1 400 Bad\r\n"], CheckStatus::L6Response, 0, "no record of TLS"),
        ] {
            let (last, heard) = outcome("10s", option, answers).await;
            assert_eq!((last.status, last.code, last.info.as_str()), (status, code, info), "{option}: {heard:?}");
        }
    }

    #[test]
    fn messages_are_as_their_protocols_say() {
        assert_eq!(packet(1, b"ab"), b"\x02\x00\x00\x01ab");
        assert_eq!(login("me").len(), 32 + 3 + 1);
        assert_eq!(login_of_old("me"), b"\x00\x80\x00\x00\x01me\0\0");
    }
}
