//! Fields of a single hop: `Connection` and the fields it names (RFC 9110 section 7.6.1), `Upgrade` (section 7.8), and the
//! persistence of the connection.
//!
//! **Invariant:** between [`Persistence::read`] and [`Persistence::strip`] rules see the same as in HAProxy. Connection is
//! without `close` and `keep-alive`. Upgrade is there only where Connection asks for it, and without the protocols that
//! would carry HTTP past all rules.

use crate::name::is_token;
use crate::{Fields, Known, KnownSet, Version, list};

/// State of a message's connection, from the fields that were removed because they end here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Persistence {
    /// The sender will take another message on this connection.
    pub keep_alive: bool,
    /// The sender wants to change the protocol (`Connection: upgrade` with an `Upgrade` field); both stay in the head.
    pub upgrade: bool,
}

impl Persistence {
    /// [`Persistence::read`] and [`Persistence::strip`] in one.
    pub fn take(fields: &mut Fields, version: Version) -> Persistence {
        let found = Persistence::read(fields, version);
        found.strip(fields);
        found
    }

    /// Reads the sender's fields for this hop. Removes the fields that `Connection` names as the sender's own, and the part
    /// of `Connection` that is for the next hop alone. This must happen before the configuration's rules add fields: a
    /// client that names one of those must not be able to remove it.
    #[inline]
    pub fn read(fields: &mut Fields, version: Version) -> Persistence {
        if fields.may_have(TELLING) {
            return Persistence::read_fields(fields, version);
        }
        Persistence { keep_alive: version != Version::Http10, upgrade: false }
    }

    fn read_fields(fields: &mut Fields, version: Version) -> Persistence {
        let mut found = Persistence { keep_alive: version != Version::Http10, upgrade: false };
        if fields.may_have(SETTINGS) {
            fields.remove(HTTP2_SETTINGS);
        }
        if fields.has(Known::Upgrade) {
            drop_elements(fields, Known::Upgrade, |protocol| !may_follow(protocol));
        }
        if !fields.has(Known::Connection) {
            if version == Version::Http10 {
                found.keep_alive = fields.every(Known::ProxyConnection).any(|v| list::has_token(v, b"keep-alive"));
            }
            fields.remove_known(Known::Upgrade);
            return found;
        }
        let (mut close, mut keep_alive) = (false, false);
        let mut named: Vec<Vec<u8>> = Vec::new();
        for option in fields.every(Known::Connection).flat_map(list::elements) {
            if option.eq_ignore_ascii_case(CLOSE) {
                close = true;
            } else if option.eq_ignore_ascii_case(KEEP_ALIVE) {
                keep_alive = true;
            } else if option.eq_ignore_ascii_case(UPGRADE) {
                found.upgrade = true;
            } else if may_be_named(option) && named.len() < MAX_NAMED {
                named.push(option.to_vec());
            }
        }
        found.keep_alive = (found.keep_alive || keep_alive) && !close;
        let asks = found.upgrade;
        found.upgrade &= fields.has(Known::Upgrade) && version != Version::Http10;
        if !found.upgrade {
            fields.remove_known(Known::Upgrade);
        }
        for name in named {
            fields.remove(&name);
        }
        if close || keep_alive || asks != found.upgrade {
            drop_elements(fields, Known::Connection, |option| {
                let is = |known: &[u8]| option.eq_ignore_ascii_case(known);
                is(CLOSE) || is(KEEP_ALIVE) || !found.upgrade && is(UPGRADE)
            });
        }
        found
    }

    /// The same after rules, which may have removed the request for another protocol, or added one that is not allowed.
    #[must_use]
    #[inline]
    pub fn after_rules(mut self, fields: &mut Fields) -> Persistence {
        if self.upgrade {
            drop_elements(fields, Known::Upgrade, |protocol| !may_follow(protocol));
            self.upgrade = fields.has(Known::Upgrade) && says(fields, UPGRADE);
        }
        self
    }

    /// Removes the fields for this hop alone.
    #[inline]
    pub fn strip(self, fields: &mut Fields) {
        if fields.may_have(HOP) {
            self.strip_fields(fields);
        }
    }

    fn strip_fields(self, fields: &mut Fields) {
        for name in [Known::Connection, Known::KeepAlive, Known::ProxyConnection] {
            fields.remove_known(name);
        }
        take_te(fields);
        if !self.upgrade && fields.has(Known::Upgrade) {
            fields.remove_known(Known::Upgrade);
        }
    }
}

/// Whether `Connection` announces that the connection ends. After [`Persistence::read`] only rules can have put it there.
#[inline]
pub fn says_close(fields: &Fields) -> bool {
    fields.has(Known::Connection) && says(fields, CLOSE)
}

fn says(fields: &Fields, option: &[u8]) -> bool {
    fields.every(Known::Connection).any(|value| list::has_token(value, option))
}

/// Whether a request that changes the protocol asks for WebSocket and has no key for it. Without the key no server may
/// accept (RFC 6455 section 4.2.1).
pub fn lacks_websocket_key(asked: &Fields) -> bool {
    names_websocket(asked) && asked.get(WEBSOCKET_KEY).is_none()
}

fn names_websocket(fields: &Fields) -> bool {
    fields.every(Known::Upgrade).any(|value| list::has_token(value, b"websocket"))
}

/// The field by which a client asks for WebSocket (RFC 6455 section 11.3.1).
pub const WEBSOCKET_KEY: &[u8] = b"Sec-WebSocket-Key";
/// The field by which a server accepts it (RFC 6455 section 11.3.3).
pub const WEBSOCKET_ACCEPT: &[u8] = b"Sec-WebSocket-Accept";

/// Whether a response changes to a protocol that its request has asked for: each protocol that it names was named there.
/// HTTP/1.1 may follow another one, as the layer above it (RFC 2817 section 3.3). WebSocket is accepted by a field (RFC
/// 6455 section 4.2.2).
pub fn is_asked_for(asked: &Fields, answered: &Fields) -> bool {
    if names_websocket(answered) && answered.get(WEBSOCKET_ACCEPT).is_none() {
        return false;
    }
    let is_asked = |protocol: &[u8]| asked.every(Known::Upgrade).any(|value| list::has_token(value, protocol));
    let mut protocols = answered.every(Known::Upgrade).flat_map(list::elements);
    protocols.next().is_some_and(is_asked) && protocols.all(|p| is_asked(p) || p.eq_ignore_ascii_case(b"HTTP/1.1"))
}

/// Whether a client may ask a server for a protocol. What is none by its form may be one to the server: some take blanks out, or
/// split lists within quotes, and find `h2c` in `h2 c` or `", h2c`.
fn may_follow(protocol: &[u8]) -> bool {
    is_protocol(protocol) && !carries_http(protocol)
}

/// Whether a text is a protocol: its name, and maybe a version (RFC 9110 section 7.8).
pub fn is_protocol(text: &[u8]) -> bool {
    let mut parts = text.splitn(2, |b| *b == b'/');
    parts.all(|part| !part.is_empty() && part.iter().all(|b| is_token(*b)))
}

/// Whether a protocol that is asked for is HTTP: a client that spoke it with the server would bypass all rules. `h2c` is
/// obsolete, too (RFC 9113 section 3.1).
fn carries_http(protocol: &[u8]) -> bool {
    let name = protocol.split(|b| *b == b'/').next().unwrap_or_default();
    let name = name.split(|b| *b == b'-').next().unwrap_or_default();
    [&b"h2c"[..], b"h2", b"h3", b"http"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Drops elements of a field's lists, and fields whose lists become empty. A list without such elements stays as it was
/// written.
fn drop_elements(fields: &mut Fields, name: Known, drops: impl Fn(&[u8]) -> bool) {
    let mut left = 0;
    loop {
        let Some(at) = fields.positions(name.name().as_bytes()).nth(left) else { return };
        let value = fields.at(at).unwrap_or_default().1;
        if !list::elements(value).any(&drops) {
            left += 1;
            continue;
        }
        let kept = list::elements(value).filter(|element| !drops(element)).collect::<Vec<_>>().join(&b',');
        if kept.is_empty() {
            fields.remove_at(at);
        } else {
            fields.replace(at, &kept);
            left += 1;
        }
    }
}

/// Removes the fields that give the length of a body, or announce one.
pub fn unframe(fields: &mut Fields) {
    fields.remove_known(Known::TransferEncoding);
    fields.remove_known(Known::ContentLength);
}

const CLOSE: &[u8] = b"close";
const KEEP_ALIVE: &[u8] = b"keep-alive";
const UPGRADE: &[u8] = b"upgrade";

/// Settings of a client that asks for h2c (RFC 7540 section 3.2.1).
const HTTP2_SETTINGS: &[u8] = b"HTTP2-Settings";
const SETTINGS: KnownSet = KnownSet::naming(HTTP2_SETTINGS);

/// The fields that concern the connection; without them its version alone counts.
const TELLING: KnownSet = KnownSet::of(&[Known::Connection, Known::ProxyConnection, Known::Upgrade]).with(SETTINGS);

/// Fields for a single hop.
const HOP: KnownSet = KnownSet::of(&[Known::Connection, Known::KeepAlive, Known::ProxyConnection, Known::Te, Known::Upgrade]);

/// The most options of `Connection` that are followed: a longer list is an attack.
const MAX_NAMED: usize = 16;

/// Whether a field may be named in `Connection`. Fields without which the message would mean something else stay, even if
/// named (CVE-2021-40346 and its like).
fn may_be_named(name: &[u8]) -> bool {
    !matches!(
        Known::of(name),
        Known::Host
            | Known::ContentLength
            | Known::TransferEncoding
            | Known::ContentEncoding
            | Known::ContentType
            | Known::ContentRange
            | Known::Cookie
            | Known::SetCookie
            | Known::Authorization
            | Known::CacheControl
            | Known::XForwardedFor
            | Known::Te
            | Known::Upgrade
    )
}

/// Reduces `TE` to `trailers`: transfer codings are this hop's (RFC 9110 section 10.1.4).
fn take_te(fields: &mut Fields) {
    if fields.has(Known::Te) {
        let trailers = fields.every(Known::Te).any(|v| list::has_token(v, b"trailers"));
        fields.remove_known(Known::Te);
        if trailers {
            fields.push(b"TE", b"trailers");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(version: Version, lines: &[(&str, &str)]) -> (Persistence, Vec<String>) {
        let mut fields = Fields::default();
        lines.iter().for_each(|(n, v)| fields.push(n.as_bytes(), v.as_bytes()));
        let found = Persistence::take(&mut fields, version);
        (found, fields.iter().map(|(n, v)| format!("{}: {}", n.escape_ascii(), v.escape_ascii())).collect())
    }

    #[test]
    fn defaults_of_the_versions() {
        assert!(take(Version::Http11, &[]).0.keep_alive);
        assert!(!take(Version::Http10, &[]).0.keep_alive);
        assert!(take(Version::Http10, &[("Connection", "Keep-Alive")]).0.keep_alive);
        assert!(!take(Version::Http11, &[("Connection", "close, keep-alive")]).0.keep_alive);
    }

    #[test]
    fn named_fields_go_but_not_those_that_frame() {
        let (_, left) = take(
            Version::Http11,
            &[
                ("Connection", "X-Hop, Host, Content-Length"),
                ("X-Hop", "1"),
                ("Host", "h"),
                ("Content-Length", "3"),
                ("Keep-Alive", "timeout=5"),
                ("TE", "gzip, trailers"),
            ],
        );
        assert_eq!(left, ["Host: h", "Content-Length: 3", "TE: trailers"]);
    }

    #[test]
    fn upgrades_need_both_fields() {
        let (found, left) = take(Version::Http11, &[("Connection", "keep-alive, Upgrade"), ("Upgrade", "websocket")]);
        assert!(found.upgrade && found.keep_alive);
        assert_eq!(left, ["Upgrade: websocket"]);
        for (version, connection) in [(Version::Http11, "close"), (Version::Http10, "upgrade")] {
            let (found, left) = take(version, &[("Upgrade", "websocket"), ("Connection", connection)]);
            assert!(!found.upgrade && left.is_empty());
        }
        assert!(take(Version::Http11, &[("Upgrade", "websocket")]).1.is_empty());
    }

    #[test]
    fn nobody_upgrades_to_http() {
        for (asked, left) in [
            ("h2c", None),
            ("H2C , h2", None),
            ("h2c/1.0, HTTP/2.0, h2c-14, h3", None),
            ("h2c, websocket", Some("websocket")),
            ("websocket,h2c,  tcp", Some("websocket,tcp")),
            ("TLS/1.2", Some("TLS/1.2")),
            ("h2 c, tcp", Some("tcp")),
            ("\"h2c\"", None),
            ("\", h2c", None),
            ("tcp, \"a, h2c, b", Some("tcp")),
            ("h2c;q=1", None),
            ("h2c/, /h2c, h2c//, tcp/1/h2c", None),
            ("h2cx , SPDY/3.1", Some("h2cx , SPDY/3.1")),
        ] {
            let mut fields = Fields::default();
            fields.push(b"Connection", b"Upgrade, HTTP2-Settings");
            fields.push(b"Upgrade", asked.as_bytes());
            fields.push(b"HTTP2-Settings", b"AAMAAABkAARAAAAAAAIAAAAA");
            let found = Persistence::read(&mut fields, Version::Http11);
            assert_eq!(fields.first(Known::Upgrade), left.map(str::as_bytes), "{asked}");
            assert_eq!((found.upgrade, fields.get(HTTP2_SETTINGS)), (left.is_some(), None), "{asked}");
            let connection = if left.is_some() { "Upgrade, HTTP2-Settings" } else { "HTTP2-Settings" };
            assert_eq!(fields.first(Known::Connection), Some(connection.as_bytes()), "{asked}");
        }
    }

    #[test]
    fn rules_see_neither_close_nor_keep_alive() {
        for (said, seen) in [
            ("close", None),
            ("Keep-Alive", None),
            ("Upgrade, Keep-Alive", Some("Upgrade")),
            ("keep-alive, Upgrade", Some("Upgrade")),
            ("X-A,close , X-B", Some("X-A,X-B")),
            ("X-A ,X-B", Some("X-A ,X-B")),
        ] {
            let mut fields = Fields::default();
            fields.push(b"Connection", said.as_bytes());
            fields.push(b"Upgrade", b"websocket");
            Persistence::read(&mut fields, Version::Http11);
            assert_eq!(fields.first(Known::Connection), seen.map(str::as_bytes), "{said}");
        }
    }

    #[test]
    fn what_rules_take_away_is_not_asked_for() {
        for (rule, upgrades) in [("", true), ("Upgrade", false), ("Connection", false)] {
            let mut fields = Fields::default();
            fields.push(b"Connection", b"upgrade");
            fields.push(b"Upgrade", b"websocket");
            let found = Persistence::read(&mut fields, Version::Http11);
            fields.remove(rule.as_bytes());
            assert_eq!(found.after_rules(&mut fields).upgrade, upgrades, "{rule}");
        }
    }

    #[test]
    fn answers_change_to_what_was_asked_for() {
        for (asked, answered, is_right) in [
            ("websocket", "WebSocket", true),
            ("websocket, tcp", "tcp", true),
            ("TLS/1.0", "TLS/1.0, HTTP/1.1", true),
            ("websocket", "HTTP/1.1", false),
            ("websocket", "tcp", false),
            ("websocket", "websocket, tcp", false),
            ("websocket", "", false),
        ] {
            assert_eq!(is_asked_for(&of(asked, b"X"), &of(answered, WEBSOCKET_ACCEPT)), is_right, "{asked}: {answered}");
        }
        // A server that speaks WebSocket confirms it (RFC 6455 section 4.2.2).
        assert!(!is_asked_for(&of("websocket", b"X"), &of("websocket", b"X")));
        assert!(is_asked_for(&of("tcp", b"X"), &of("tcp", b"X")));
    }

    /// Fields with `Upgrade` and another one.
    fn of(protocols: &str, name: &[u8]) -> Fields {
        let mut fields = Fields::default();
        fields.push(b"Upgrade", protocols.as_bytes());
        fields.push(name, b"value");
        fields
    }

    #[test]
    fn websocket_is_asked_for_with_a_key() {
        for (protocols, name, lacks) in [
            ("websocket", &b"X"[..], true),
            ("tcp, WebSocket", b"X", true),
            ("websocket", b"sec-websocket-key", false),
            ("tcp", b"X", false),
        ] {
            assert_eq!(lacks_websocket_key(&of(protocols, name)), lacks, "{protocols}");
        }
    }
}
