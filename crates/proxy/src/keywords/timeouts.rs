//! Timeouts of a proxy.

use super::{done, formerly, has_half, settings};
use crate::settings::Timeouts;
use std::time::Duration;
use terse_config::{Args, Fault, Keyword, Parser, Scope, Sections};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    formerly(
        &["clitimeout"],
        timeout("timeout client", "How long the client may be silent.", |args, scope| front(args, scope, |t| &mut t.client)),
    ),
    timeout("timeout client-fin", "How long the client may be silent once one direction is closed.", |args, scope| {
        front(args, scope, |t| &mut t.client_fin)
    }),
    timeout(
        "timeout client-hs",
        "How long a TLS handshake with a client may take; as 'timeout client' where it is not said.",
        |args, scope| front(args, scope, |t| &mut t.client_handshake),
    ),
    formerly(
        &["contimeout"],
        timeout("timeout connect", "How long connecting to a server may take.", |args, scope| {
            back(args, scope, |t| &mut t.connect)
        }),
    ),
    timeout("timeout http-keep-alive", "How long the client may wait between two requests.", |args, scope| {
        any(args, scope, |t| &mut t.keep_alive)
    }),
    timeout("timeout http-request", "How long a request's head may take.", |args, scope| any(args, scope, |t| &mut t.request)),
    timeout("timeout queue", "How long a request may wait for a free slot of a server.", |args, scope| {
        back(args, scope, |t| &mut t.queue)
    }),
    formerly(
        &["srvtimeout"],
        timeout("timeout server", "How long the server may be silent.", |args, scope| back(args, scope, |t| &mut t.server)),
    ),
    timeout("timeout server-fin", "How long the server may be silent once one direction is closed.", |args, scope| {
        back(args, scope, |t| &mut t.server_fin)
    }),
    timeout("timeout tarpit", "How long a tarpitted request is held.", |args, scope| any(args, scope, |t| &mut t.tarpit)),
    timeout("timeout tunnel", "How long a tunnel may be silent in both directions.", |args, scope| {
        back(args, scope, |t| &mut t.tunnel)
    }),
];

const fn timeout(name: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    done(name, "<time>", summary, parser)
}

/// Selector of a timeout.
type Of = fn(&mut Timeouts) -> &mut Option<Duration>;

fn any(args: &mut Args<'_>, scope: &mut Scope<'_>, of: Of) -> Result<(), Fault> {
    let time = duration(args, scope)?;
    *of(&mut settings(scope).timeouts) = time;
    Ok(())
}

fn front(args: &mut Args<'_>, scope: &mut Scope<'_>, of: Of) -> Result<(), Fault> {
    let time = duration(args, scope)?;
    if has_half(scope, Sections::FRONT, "frontend") {
        *of(&mut settings(scope).timeouts) = time;
    }
    Ok(())
}

fn back(args: &mut Args<'_>, scope: &mut Scope<'_>, of: Of) -> Result<(), Fault> {
    let time = duration(args, scope)?;
    if has_half(scope, Sections::BACK, "backend") {
        *of(&mut settings(scope).timeouts) = time;
    }
    Ok(())
}

/// Parses the sole argument; `None` for 0: no limit.
fn duration(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<Option<Duration>, Fault> {
    let time = args.time("<time>")?;
    let bare = args.taken().bytes().all(|byte| byte.is_ascii_digit());
    if bare && time < SUSPICIOUS && !time.is_zero() {
        let ms = time.as_millis();
        let word = args.position() - 1;
        scope.warn(word, format!("{ms} is suspiciously small for a value in milliseconds; write '{ms}ms' if it is meant so"));
    }
    args.end()?;
    Ok(Some(time).filter(|time| !time.is_zero()))
}

/// A smaller number without a unit was most likely meant in seconds.
const SUSPICIOUS: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};
    use super::*;

    #[test]
    fn each_has_its_place() {
        let settings = proxy(
            "listen l\n timeout client 1s\n timeout client-fin 2s\n timeout connect 3s\n timeout http-keep-alive 4s\n timeout http-request 5s\n \
             timeout queue 6s\n timeout server 7s\n timeout server-fin 8s\n timeout tarpit 9s\n timeout tunnel 10s\n timeout client-hs 11s\n",
        );
        let t = settings.timeouts;
        let all = [
            t.client,
            t.client_fin,
            t.connect,
            t.keep_alive,
            t.request,
            t.queue,
            t.server,
            t.server_fin,
            t.tarpit,
            t.tunnel,
            t.client_handshake,
        ];
        assert_eq!(all, std::array::from_fn(|i| Some(Duration::from_secs(i as u64 + 1))));
    }

    #[test]
    fn old_names_work_with_a_warning() {
        let said = said_in("listen l", "clitimeout 5000\ncontimeout 5000\nsrvtimeout 5000");
        assert!(said.len() == 3 && said.iter().all(|line| line.contains("is an old name")), "{said:?}");
    }

    #[test]
    fn zero_is_no_limit_and_small_numbers_are_doubted() {
        assert_eq!(proxy("defaults\n timeout client 5s\nfrontend f\n timeout client 0\n").timeouts.client, None);
        let said = said_in("frontend f", "timeout client 30");
        assert!(said.len() == 1 && said[0].contains("suspiciously small"), "{said:?}");
        assert_eq!(said_in("frontend f", "timeout client 30ms"), [""; 0]);
    }

    #[test]
    fn faults() {
        for line in
            ["timeout", "timeout client", "timeout client soon", "timeout client 1s 2", "timeout cilent 1s", "timeout client 25d"]
        {
            let said = said_in("frontend f", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
    }
}
