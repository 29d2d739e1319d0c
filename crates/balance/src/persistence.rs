//! Persistence: the cookie that brings a client back to its server (`cookie`).
//!
//! ```text
//! request  -> find  -> the server to use, and a letter     request -> strip -> what the server may see
//! response -> mark  -> the client's Set-Cookie, and a letter
//! ```
//!
//! The cookie's value is `<server's cookie>`, or `<server's cookie>~<the server's own value>` with `prefix`. After a
//! `|` come dates of `maxidle` and `maxlife` ([`dates`]).

mod cacheable;
mod crumbs;
mod dates;
mod dynamic;

pub use dates::{Dates, Terms};
pub use dynamic::DynamicCookies;

use crate::farm::Farm;
use crate::server::Server;
use crumbs::Crumbs;
use std::borrow::Cow;
use std::sync::Arc;
use terse_message::{Fields, Known, Request, Response};

/// `cookie <name> ...`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CookieSettings {
    /// Name of the cookie.
    pub name: Arc<str>,
    /// Mode of use.
    pub mode: CookieMode,
    /// `indirect`: the cookie is hidden from the server, and the server's own is taken out.
    pub indirect: bool,
    /// `nocache`: a response that sets the cookie is kept from caches.
    pub nocache: bool,
    /// `postonly`: only responses to POST set the cookie.
    pub postonly: bool,
    /// `preserve`: a cookie that the server sends is left alone.
    pub preserve: bool,
    /// `dynamic`: servers whose lines set no value get one from their addresses, at first ([`DynamicCookies`]).
    pub dynamic: bool,
    /// `maxidle`, `maxlife`
    pub terms: Terms,
    /// Attributes after `; path=/` in Set-Cookie: `; domain=...; HttpOnly; Secure; <attributes>`, or nothing.
    pub attributes: Arc<str>,
}

/// Mode of use of the persistence cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CookieMode {
    /// The cookie is only read: the server sets it.
    Passive,
    /// `rewrite`: the server's cookie gets our value.
    Rewrite,
    /// `insert`: the proxy sets the cookie.
    Insert,
    /// `prefix`: the server's own cookie gets a prefix.
    Prefix,
}

/// Result of reading a request's cookie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Affinity {
    /// The server that must be used, by index.
    pub server: Option<usize>,
    /// State of the cookie, for the log.
    pub found: CookieFound,
    /// The dates in the cookie.
    pub dates: Dates,
}

/// The third letter of the termination state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CookieFound {
    /// No persistence cookie is configured.
    Off = b'-',
    /// The request has none.
    None = b'N',
    /// It matches no server.
    Invalid = b'I',
    /// Its server is down.
    Down = b'D',
    /// Its server is used.
    Valid = b'V',
    /// It has not been used for longer than `maxidle`.
    Expired = b'E',
    /// It is older than `maxlife`.
    Old = b'O',
    /// It was there, but another rule decided.
    Unused = b'U',
}

/// The fourth letter of the termination state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CookieSent {
    /// No persistence cookie is configured.
    Off = b'-',
    /// The response has none.
    None = b'N',
    /// The server sent one, and it was left as it is.
    Passed = b'P',
    /// The server sent one, and it was taken out.
    Deleted = b'D',
    /// A cookie was inserted.
    Inserted = b'I',
    /// The client's was sent anew, with other dates.
    Updated = b'U',
    /// The server sent one, and it was rewritten.
    Rewritten = b'R',
}

impl Affinity {
    /// No server, with the reason.
    pub fn none(found: CookieFound) -> Affinity {
        Affinity { server: None, found, dates: Dates::default() }
    }

    /// Returns the affinity after a redispatch to another server than the cookie's.
    pub fn redispatched(self) -> Affinity {
        match self.found {
            CookieFound::Valid => Affinity { server: None, found: CookieFound::Down, ..self },
            found => Affinity { server: None, found, ..self },
        }
    }
}

impl Farm {
    /// Looks for the persistence cookie, and for its server, which if `forced` may be down. Changes nothing. `now_s`:
    /// seconds since 1970, called only where there are cookies.
    pub fn find(&self, request: &Request, forced: bool, now_s: impl FnOnce() -> i64) -> Affinity {
        let Some(cookie) = &self.settings.cookie else { return Affinity::none(CookieFound::Off) };
        let now_s = now_s();
        let mut affinity = Affinity::none(CookieFound::None);
        for field in request.fields.every(Known::Cookie) {
            for crumb in Crumbs::of(field).filter(|crumb| crumb.name(field) == cookie.name.as_bytes()) {
                let value = crumb.value(field);
                let dates = if cookie.mode == CookieMode::Prefix { Dates::default() } else { Dates::of(value) };
                if let Some(over) = cookie.terms.judge(&dates, now_s) {
                    affinity = Affinity::none(over);
                    continue;
                }
                affinity.dates = dates;
                match self.server_of(cookie.server_part(value), forced) {
                    (Some(server), found) => return Affinity { server: Some(server), found, dates },
                    (None, CookieFound::Down) => affinity.found = CookieFound::Down,
                    (None, _) if matches!(affinity.found, CookieFound::Down | CookieFound::Expired | CookieFound::Old) => {}
                    (None, found) => affinity.found = found,
                }
            }
        }
        affinity
    }

    /// The first usable server with that cookie. Several may share one, so that a backup takes over a server's clients.
    fn server_of(&self, value: &[u8], forced: bool) -> (Option<usize>, CookieFound) {
        // An empty value would be that of all servers without a cookie.
        let number = dynamic::read(value).and_then(|number| Some((self.dynamic_cookies.maker()?, number)));
        let theirs = |server: &&Arc<Server>| match &server.settings().cookie {
            Some(cookie) => !value.is_empty() && cookie.as_bytes() == value,
            None => number.as_ref().is_some_and(|(maker, number)| maker.number(server) == Some(*number)),
        };
        let servers = self.servers();
        let mut known = servers.iter().filter(theirs).peekable();
        if known.peek().is_none() {
            return (None, CookieFound::Invalid);
        }
        match known.find(|server| server.is_up() || forced || self.settings.persist) {
            Some(server) if server.is_up() => (Some(server.index()), CookieFound::Valid),
            server => (server.map(|server| server.index()), CookieFound::Down),
        }
    }

    /// Cookie of a server: that of its line, or a dynamic value.
    pub fn cookie_of<'s>(&self, server: &'s Server) -> Option<Cow<'s, str>> {
        match &server.settings().cookie {
            Some(value) => Some(Cow::Borrowed(value)),
            None => self.dynamic_cookies.maker()?.number(server).map(dynamic::written).map(Cow::Owned),
        }
    }

    /// Settings of dynamic cookies.
    pub fn dynamic_cookies(&self) -> &DynamicCookies {
        &self.dynamic_cookies
    }

    /// Removes from the request what the server must not see: the whole cookie (`indirect`), or its prefix (`prefix`).
    /// Other cookies stay as they are, byte for byte.
    pub fn strip(&self, request: &mut Request) {
        let Some(cookie) = &self.settings.cookie else { return };
        match cookie.mode {
            CookieMode::Insert if cookie.indirect => {
                edit(&mut request.fields, |value| crumbs::without(value, cookie.name.as_bytes()))
            }
            CookieMode::Prefix => edit(&mut request.fields, |value| crumbs::without_prefix(value, cookie.name.as_bytes())),
            _ => {}
        }
    }

    /// Puts the persistence cookie into the response of the server that answered, or takes the server's own out.
    /// `method` is the request's; `now_s`: seconds since 1970, called only where there are cookies.
    pub fn mark(
        &self,
        response: &mut Response,
        server: &Server,
        affinity: &Affinity,
        method: &[u8],
        now_s: impl FnOnce() -> i64,
    ) -> CookieSent {
        // No cookie is set where the request's cookie was ignored.
        let cookie = self.settings.cookie.as_ref().filter(|_| affinity.found != CookieFound::Off);
        let Some(cookie) = cookie else { return CookieSent::Off };
        let now_s = now_s();
        let kept = affinity.server == Some(server.index());
        let ours = self.cookie_of(server);
        let sent = cookie.edit_response(&mut response.fields, ours.as_deref(), kept);
        let due = !kept || cookie.terms.renews(&affinity.dates, now_s);
        let wanted = cookie.mode == CookieMode::Insert && due && !(sent == CookieSent::Passed && cookie.preserve);
        if !wanted || (cookie.postonly && method != b"POST") {
            return sent;
        }
        let private = cookie.nocache && cacheable::is_cacheable(response, method);
        response
            .fields
            .push(Known::SetCookie.name().as_bytes(), cookie.set_cookie(ours.as_deref(), &affinity.dates, now_s).as_bytes());
        if private {
            response.fields.push(Known::CacheControl.name().as_bytes(), b"private");
        }
        if kept && ours.is_some() { CookieSent::Updated } else { CookieSent::Inserted }
    }
}

impl CookieSettings {
    /// Whether logs report the cookie: not where it is only read, as in HAProxy.
    pub fn is_logged(&self) -> bool {
        self.mode != CookieMode::Passive || self.indirect
    }

    /// The part of a cookie's value that names the server.
    fn server_part<'v>(&self, value: &'v [u8]) -> &'v [u8] {
        let delimiter = if self.mode == CookieMode::Prefix { PREFIX_DELIMITER } else { DATE_DELIMITER };
        value.split(|byte| *byte == delimiter).next().unwrap_or_default()
    }

    /// Applies the mode to the server's Set-Cookie. `kept`: the client had the right cookie.
    fn edit_response(&self, fields: &mut Fields, ours: Option<&str>, kept: bool) -> CookieSent {
        let mut sent = CookieSent::None;
        let mut i = 0;
        while let Some((name, value)) = fields.at(i) {
            let crumb = crumbs::first_of_set_cookie(value).filter(|crumb| crumb.name(value) == self.name.as_bytes());
            let Some(crumb) = crumb.filter(|_| Known::of(name) == Known::SetCookie) else {
                i += 1;
                continue;
            };
            (sent, i) = match (self.mode, ours) {
                _ if self.preserve => (CookieSent::Passed, i + 1),
                (CookieMode::Insert, _) => {
                    fields.remove_at(i);
                    (CookieSent::Deleted, i)
                }
                _ if kept && self.indirect => {
                    fields.remove_at(i);
                    (CookieSent::Deleted, i)
                }
                (CookieMode::Rewrite, Some(ours)) => {
                    let edited = [&value[..crumb.value.start], ours.as_bytes(), &value[crumb.value.end..]].concat();
                    fields.replace(i, &edited);
                    (CookieSent::Rewritten, i + 1)
                }
                (CookieMode::Prefix, Some(ours)) => {
                    let (before, after) = value.split_at(crumb.value.start);
                    let edited = [before, ours.as_bytes(), &[PREFIX_DELIMITER], after].concat();
                    fields.replace(i, &edited);
                    (CookieSent::Rewritten, i + 1)
                }
                _ => (CookieSent::Passed, i + 1),
            };
        }
        sent
    }

    /// Set-Cookie for a client of that server; a server without a cookie takes the client's away.
    fn set_cookie(&self, ours: Option<&str>, dates: &Dates, now_s: i64) -> String {
        let (name, attributes) = (&self.name, &self.attributes);
        match ours {
            Some(value) => format!("{name}={value}{}; path=/{attributes}", self.terms.write(dates, now_s)),
            None => format!("{name}=; Expires=Thu, 01-Jan-1970 00:00:01 GMT; path=/{attributes}"),
        }
    }
}

/// Gives each Cookie field its new value, where there is one; an empty value removes the field.
fn edit(fields: &mut Fields, change: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    let mut i = 0;
    while let Some((name, value)) = fields.at(i) {
        let changed = if Known::of(name) == Known::Cookie { change(value) } else { None };
        match changed {
            Some(value) if value.is_empty() => fields.remove_at(i),
            Some(value) => {
                fields.replace(i, &value);
                i += 1;
            }
            None => i += 1,
        }
    }
}

/// Delimiter between the server's cookie and the rest, with `prefix`.
const PREFIX_DELIMITER: u8 = b'~';
/// Delimiter between the server's cookie and dates.
const DATE_DELIMITER: u8 = b'|';

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::farm;
    use crate::state::AdminOrder;
    use std::time::Instant;

    const NOW: i64 = 1_600_000_001;
    const SERVERS: &str = "server a 10.0.0.1:80 cookie s1\nserver b 10.0.0.2:80 cookie s2\nserver c 10.0.0.3:80 backup";

    fn request(cookies: &[&str]) -> Request {
        let mut request = Request::default();
        cookies.iter().for_each(|cookie| request.fields.push(b"Cookie", cookie.as_bytes()));
        request
    }

    fn response(fields: &[(&str, &str)]) -> Response {
        let mut response = Response::default();
        response.status = 200;
        fields.iter().for_each(|(name, value)| response.fields.push(name.as_bytes(), value.as_bytes()));
        response
    }

    fn fields(fields: &Fields) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        fields.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect()
    }

    /// Letter and fields of a response of server `server` to a client whose cookie named `wanted`.
    fn marked(cookie: &str, server: usize, wanted: Option<usize>, sent: &[(&str, &str)], method: &str) -> (char, Vec<String>) {
        let farm = farm(&format!("cookie {cookie}\n{SERVERS}"));
        let mut response = response(sent);
        let affinity = Affinity { server: wanted, ..Affinity::none(CookieFound::Valid) };
        let letter = farm.mark(&mut response, &farm.servers()[server], &affinity, method.as_bytes(), || NOW);
        (letter as u8 as char, fields(&response.fields))
    }

    #[test]
    fn a_cookie_leads_to_its_server() {
        let farm = farm(&format!("cookie S insert\n{SERVERS}"));
        let found = |cookies: &[&str]| {
            let affinity = farm.find(&request(cookies), false, || NOW);
            (affinity.server, affinity.found as u8 as char)
        };
        assert_eq!(found(&[]), (None, 'N'));
        assert_eq!(found(&["a=1; S=s2"]), (Some(1), 'V'));
        assert_eq!(found(&["a=1", "S=s1|AAAAA; b"]), (Some(0), 'V'));
        assert_eq!(found(&["S=s3"]), (None, 'I'));
        assert_eq!(found(&["S="]), (None, 'I'));
        assert_eq!(found(&["S=s3; S=s1"]), (Some(0), 'V'));
        farm.set_admin(&farm.servers()[1], AdminOrder::Maint, Instant::now());
        assert_eq!(found(&["S=s2"]), (None, 'D'));
        farm.set_admin(&farm.servers()[1], AdminOrder::Drain, Instant::now());
        assert_eq!(found(&["S=s2"]), (Some(1), 'V'));
    }

    #[test]
    fn what_is_over_leads_nowhere_and_is_sent_anew() {
        let farm = farm(&format!("cookie S insert indirect maxidle 1m maxlife 1h\n{SERVERS}"));
        let ours = |seen: i64| {
            let mut given = response(&[]);
            farm.mark(&mut given, &farm.servers()[1], &Affinity::none(CookieFound::None), b"GET", || seen);
            let set = fields(&given.fields).pop().unwrap();
            set.trim_start_matches("Set-Cookie: ").trim_end_matches("; path=/").to_owned()
        };
        let found = |cookie: &str, now: i64| farm.find(&request(&[cookie]), false, || now);
        let cookie = ours(NOW);
        assert_eq!(cookie.len(), "S=s2|AAAAA|AAAAA".len());
        assert_eq!((found(&cookie, NOW + 60).server, found(&cookie, NOW + 60).found), (Some(1), CookieFound::Valid));
        assert_eq!((found(&cookie, NOW + 64).server, found(&cookie, NOW + 64).found), (None, CookieFound::Expired));
        assert_eq!(found(&cookie, NOW + 3604).found, CookieFound::Old);
        assert_eq!(found("S=s2", NOW).found, CookieFound::Valid);
        for (cookie, later, sent) in
            [(cookie.as_str(), 3, CookieSent::None), (&cookie, 4, CookieSent::Updated), ("S=s2", 0, CookieSent::Updated)]
        {
            let affinity = found(cookie, NOW + later);
            let mut given = response(&[]);
            assert_eq!(farm.mark(&mut given, &farm.servers()[1], &affinity, b"GET", || NOW + later), sent, "{cookie} {later}");
        }
        let mut given = response(&[]);
        farm.mark(&mut given, &farm.servers()[0], &found(&cookie, NOW + 30), b"GET", || NOW + 30);
        assert_eq!(
            fields(&given.fields)[0].split('|').nth(2),
            cookie.split('|').nth(2).map(|first| format!("{first}; path=/")).as_deref()
        );
    }

    #[test]
    fn a_backup_may_share_a_servers_cookie() {
        let farm = farm(
            "cookie S\noption persist\nserver a 10.0.0.1:80 cookie x\nserver b 10.0.0.2:80 cookie y\nserver c 10.0.0.3:80 cookie x",
        );
        let now = Instant::now();
        farm.set_admin(&farm.servers()[0], AdminOrder::Maint, now);
        farm.set_admin(&farm.servers()[1], AdminOrder::Maint, now);
        assert_eq!(farm.find(&request(&["S=y"]), false, || NOW), Affinity { server: Some(1), ..Affinity::none(CookieFound::Down) });
    }

    #[test]
    fn without_a_cookie_keyword_nothing_is_looked_at() {
        let farm = farm(SERVERS);
        assert_eq!(farm.find(&request(&["S=s1"]), false, || NOW), Affinity::none(CookieFound::Off));
        let affinity = Affinity::none(CookieFound::Off);
        assert_eq!(farm.mark(&mut response(&[]), &farm.servers()[0], &affinity, b"GET", || NOW), CookieSent::Off);
    }

    #[test]
    fn the_server_does_not_see_what_it_must_not() {
        let stripped = |cookie: &str, cookies: &[&str]| {
            let farm = farm(&format!("cookie {cookie}\n{SERVERS}"));
            let mut request = request(cookies);
            farm.strip(&mut request);
            fields(&request.fields)
        };
        assert_eq!(stripped("S insert indirect", &["S=s1"]), [""; 0]);
        assert_eq!(stripped("S insert indirect", &["a=1; S=s1; b=2", "S=x", "c=3"]), ["Cookie: a=1; b=2", "Cookie: c=3"]);
        assert_eq!(stripped("S insert", &["S=s1"]), ["Cookie: S=s1"]);
        assert_eq!(stripped("S prefix", &["a=1; S=s1~mine"]), ["Cookie: a=1; S=mine"]);
    }

    #[test]
    fn insert_sets_the_cookie_of_a_new_client() {
        let set = "Set-Cookie: S=s1; path=/";
        assert_eq!(marked("S insert indirect", 0, None, &[], "GET"), ('I', vec![set.into()]));
        assert_eq!(marked("S insert indirect", 0, Some(0), &[], "GET"), ('N', vec![]));
        assert_eq!(marked("S insert", 0, Some(1), &[], "GET"), ('I', vec![set.into()]));
        assert_eq!(marked("S insert postonly", 0, None, &[], "GET"), ('N', vec![]));
        assert_eq!(marked("S insert postonly", 0, None, &[], "POST"), ('I', vec![set.into()]));
        assert_eq!(marked("S insert secure domain .x", 0, None, &[], "GET").1, ["Set-Cookie: S=s1; path=/; domain=.x; Secure"]);
        let away = "Set-Cookie: S=; Expires=Thu, 01-Jan-1970 00:00:01 GMT; path=/";
        assert_eq!(marked("S insert", 2, None, &[], "GET"), ('I', vec![away.into()]));
    }

    #[test]
    fn insert_takes_the_servers_own_out() {
        let own = [("Set-Cookie", "S=own; path=/x"), ("Set-Cookie", "T=1")];
        assert_eq!(marked("S insert", 0, Some(0), &own, "GET"), ('D', vec!["Set-Cookie: T=1".into()]));
        assert_eq!(marked("S insert", 0, None, &own, "GET").1, ["Set-Cookie: T=1", "Set-Cookie: S=s1; path=/"]);
        assert_eq!(marked("S insert preserve", 0, None, &own, "GET").0, 'P');
        assert_eq!(marked("S insert preserve", 0, None, &own, "GET").1.len(), 2);
        assert_eq!(marked("S indirect", 0, Some(0), &own, "GET"), ('D', vec!["Set-Cookie: T=1".into()]));
        assert_eq!(marked("S", 0, Some(0), &own, "GET").0, 'P');
    }

    #[test]
    fn rewrite_and_prefix_edit_the_servers_own() {
        let own = [("Set-Cookie", "S=own; path=/x")];
        assert_eq!(marked("S rewrite", 0, None, &own, "GET"), ('R', vec!["Set-Cookie: S=s1; path=/x".into()]));
        assert_eq!(marked("S prefix", 1, None, &own, "GET"), ('R', vec!["Set-Cookie: S=s2~own; path=/x".into()]));
        assert_eq!(marked("S rewrite", 2, None, &own, "GET").0, 'P');
        assert_eq!(marked("S rewrite", 0, None, &[("Set-Cookie", "s=own")], "GET").0, 'N');
    }

    #[test]
    fn nocache_speaks_to_caches_only_where_one_could_keep_the_answer() {
        let fresh = [("Last-Modified", "x")];
        assert_eq!(marked("S insert nocache", 0, None, &fresh, "GET").1[2], "Cache-Control: private");
        assert_eq!(marked("S insert nocache", 0, None, &fresh, "POST").1.len(), 2);
        assert_eq!(marked("S insert nocache", 0, Some(0), &fresh, "GET").1.len(), 1);
    }
}
