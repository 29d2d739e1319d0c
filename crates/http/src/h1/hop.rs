//! What belongs to one hop: `Connection` and the fields it names (RFC 9110 section 7.6.1), and whether the connection goes on.

use terse_message::{Fields, Known, KnownSet, Version, list};

/// What a message says about its connection, and what was taken out of it because it ends here.
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

    /// Reads what the sender says, and removes the fields that it names as its own. This must happen before the configuration's rules
    /// add fields: a client that names one of those must not be able to take it away.
    pub fn read(fields: &mut Fields, version: Version) -> Persistence {
        let mut found = Persistence { keep_alive: version != Version::Http10, upgrade: false };
        if !fields.has(Known::Connection) {
            if version == Version::Http10 {
                found.keep_alive = fields.every(Known::ProxyConnection).any(|v| list::has_token(v, b"keep-alive"));
            }
            return found;
        }
        let mut close = false;
        let mut named: Vec<Vec<u8>> = Vec::new();
        for option in fields.every(Known::Connection).flat_map(list::elements) {
            if option.eq_ignore_ascii_case(b"close") {
                close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                found.keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                found.upgrade = true;
            } else if may_be_named(option) && named.len() < MAX_NAMED {
                named.push(option.to_vec());
            }
        }
        found.keep_alive &= !close;
        found.upgrade &= fields.has(Known::Upgrade) && version == Version::Http11;
        for name in named {
            fields.remove(&name);
        }
        found
    }

    /// Removes what is said to this hop alone.
    pub fn strip(self, fields: &mut Fields) {
        if !fields.may_have(HOP) {
            return;
        }
        for name in [Known::Connection, Known::KeepAlive, Known::ProxyConnection] {
            fields.remove_known(name);
        }
        take_te(fields);
        if !self.upgrade && fields.has(Known::Upgrade) {
            fields.remove_known(Known::Upgrade);
        }
    }
}

/// What may be said to one hop.
const HOP: KnownSet = KnownSet::of(&[Known::Connection, Known::KeepAlive, Known::ProxyConnection, Known::Te, Known::Upgrade]);

/// The most options of `Connection` that are followed: a longer list is an attack on somebody.
const MAX_NAMED: usize = 16;

/// Fields without which the message would mean something else stay, whoever names them (CVE-2021-40346 and its kin).
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

/// Of `TE`, only `trailers` may travel: transfer codings are this hop's (RFC 9110 section 10.1.4).
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
        let (found, left) = take(Version::Http11, &[("Upgrade", "h2c")]);
        assert!(!found.upgrade && left.is_empty());
    }
}
