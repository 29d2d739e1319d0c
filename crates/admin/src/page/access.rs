//! Access to a page: rules, then passwords (RFC 7617); and whether a change comes from the page itself.

use super::settings::PageSettings;
use std::net::IpAddr;
use std::sync::Arc;
use terse_message::Request;
use terse_proxy::reply::Answer;
use terse_proxy::stream::Stream;
use terse_sample::Condition;

/// A line `stats http-request`.
pub(super) struct AccessRule {
    pub(super) kind: RuleKind,
    pub(super) condition: Option<Condition>,
}

/// Action of a line whose condition holds.
pub(super) enum RuleKind {
    Allow,
    Deny,
    /// Asks for a password, with this realm.
    Auth(Option<String>),
}

/// Decision about a request.
pub(super) enum Access<'a> {
    /// It is answered.
    Granted,
    /// It gets 403.
    Denied,
    /// It gets 401.
    Unknown {
        /// Realm of the challenge.
        realm: &'a str,
    },
}

impl PageSettings {
    /// The first rule that holds decides; without one, a password where there are any.
    pub(super) fn judge(&self, stream: &Stream) -> Access<'_> {
        let own = self.realm.as_deref().unwrap_or(REALM);
        let holds = |rule: &&Arc<AccessRule>| rule.condition.as_ref().is_none_or(|condition| condition.eval(&stream.env()));
        match self.rules.iter().find(holds).map(|rule| &rule.kind) {
            Some(RuleKind::Allow) => Access::Granted,
            Some(RuleKind::Deny) => Access::Denied,
            Some(RuleKind::Auth(realm)) => Access::Unknown { realm: realm.as_deref().unwrap_or(own) },
            None if self.credentials.is_empty() || self.knows(&stream.request) => Access::Granted,
            None => Access::Unknown { realm: own },
        }
    }

    fn knows(&self, request: &Request) -> bool {
        let Some(value) = request.fields.get(b"authorization") else { return false };
        let Some((scheme, given)) = value.split_at_checked(5) else { return false };
        let given = given.trim_ascii();
        scheme.eq_ignore_ascii_case(b"basic") && self.credentials.iter().any(|known| is_same(known.as_bytes(), given))
    }
}

/// Compares in a time that does not depend on the place of the first difference.
fn is_same(known: &[u8], given: &[u8]) -> bool {
    known.len() == given.len() && known.iter().zip(given).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// Answer to a request without valid credentials.
pub(super) fn challenge(realm: &str) -> Answer {
    let mut answer = Answer::error(401);
    let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
    answer.fields.push((Arc::from(&b"WWW-Authenticate"[..]), format!("Basic realm=\"{quoted}\"").into_bytes()));
    answer
}

/// Whether this request may change servers, if they may be changed at all. It must have been made by a page of this
/// host. Where no password is required and it comes from this machine, its Host must also name this machine. A
/// stranger's page whose name resolves to 127.0.0.1 is of the same host as this one in every browser's eyes (DNS
/// rebinding), but not by its name.
pub(super) fn is_allowed_to_change(stream: &Stream, settings: &PageSettings) -> bool {
    let asks = !settings.credentials.is_empty() || settings.rules.iter().any(|rule| matches!(rule.kind, RuleKind::Auth(_)));
    let is_local = stream.facts.session.client.get().is_some_and(|address| address.ip().is_loopback());
    is_same_site(&stream.request) && (asks || !is_local || names_this_machine(stream.request.fields.get(b"host")))
}

/// Whether a Host is an address or `localhost`: names that a stranger lets resolve to this machine are neither.
fn names_this_machine(host: Option<&[u8]>) -> bool {
    let Some(host) = host.and_then(|host| std::str::from_utf8(host).ok()) else { return true };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok() || bare.eq_ignore_ascii_case("localhost") || bare.to_ascii_lowercase().ends_with(".localhost")
}

/// Whether a request with a change was made by a page of this host, as far as the browser reports. Other pages can make
/// browsers send a request with the user's password.
fn is_same_site(request: &Request) -> bool {
    let field = |name: &[u8]| request.fields.get(name);
    let Some(page) = field(b"origin").or_else(|| field(b"referer")) else { return true };
    let host = field(b"host").unwrap_or_default();
    let page = page.splitn(2, |byte| *byte == b'/').nth(1).and_then(|rest| rest.strip_prefix(b"/")).unwrap_or_default();
    page.split(|byte| *byte == b'/').next().is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// Value of Authorization after `Basic` for `<user>:<password>`: base 64 (RFC 4648 section 4).
pub(super) fn credential(pair: &[u8]) -> String {
    let mut text = String::with_capacity(pair.len().div_ceil(3) * 4);
    for group in pair.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = (bits >> (18 - 6 * place)) as usize & 63;
            text.push(if place <= group.len() { char::from(DIGITS[digit]) } else { '=' });
        }
    }
    text
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// HAProxy's default.
const REALM: &str = "HAProxy Statistics";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_base_64() {
        for (pair, text) in
            [("", ""), ("a", "YQ=="), ("a:", "YTo="), ("a:b", "YTpi"), ("Aladdin:open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ==")]
        {
            assert_eq!(credential(pair.as_bytes()), text);
        }
        assert_eq!(credential(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn strangers_names_are_not_this_machine() {
        let names = |host: &str| names_this_machine(Some(host.as_bytes()));
        for host in ["127.0.0.1", "127.0.0.1:8404", "[::1]:80", "localhost", "LocalHost:8404", "a.localhost", "192.0.2.1"] {
            assert!(names(host), "{host}");
        }
        for host in ["evil.example", "evil.example:8404", "127.0.0.1.evil.example", "localhost.evil.example:80", "", ":80"] {
            assert!(!names(host), "{host}");
        }
    }

    #[test]
    fn changes_come_from_the_page_itself() {
        let request = |fields: &[(&str, &str)]| {
            let mut request = Request::default();
            fields.iter().for_each(|(name, value)| request.fields.push(name.as_bytes(), value.as_bytes()));
            is_same_site(&request)
        };
        assert!(request(&[("Host", "a:80")]));
        assert!(request(&[("Host", "a:80"), ("Origin", "http://A:80")]));
        assert!(request(&[("Host", "a"), ("Referer", "https://a/stats?x")]));
        assert!(!request(&[("Host", "a"), ("Referer", "https://b/a")]));
        assert!(!request(&[("Host", "a"), ("Origin", "http://b"), ("Referer", "http://a/")]));
        assert!(!request(&[("Host", "a"), ("Origin", "null")]));
        assert!(!request(&[("Origin", "http://b")]));
    }
}
