//! Whether a cache between the proxy and the client might keep a response, and with it another client's cookie.

use crate::farm::{Farm, Level};
use crate::server::Server;
use terse_message::{Known, Response, list};

/// HAProxy's rule for `cookie ... nocache`: a cacheable method and status, nothing in Cache-Control or Pragma against
/// it, and a lifetime or a validator (RFC 9111 section 3).
pub(super) fn is_cacheable(response: &Response, method: &[u8]) -> bool {
    let fields = &response.fields;
    let by_default = matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE")
        && matches!(response.status, 200 | 203 | 204 | 206 | 300 | 301 | 404 | 405 | 410 | 414 | 501);
    let pragma = fields.get(b"Pragma").is_some_and(|value| value.eq_ignore_ascii_case(b"no-cache"));
    if response.status < 200 || pragma {
        return false;
    }
    let (mut cacheable, mut fresh, mut stale) = (by_default, false, false);
    for directive in fields.every(Known::CacheControl).flat_map(list::elements) {
        let name = directive.split(|byte| *byte == b'=').next().unwrap_or_default();
        let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
        if directive.eq_ignore_ascii_case(b"no-cache=\"set-cookie\"") {
            continue;
        }
        if directive.eq_ignore_ascii_case(b"public") {
            cacheable = true;
        } else if directive.eq_ignore_ascii_case(b"max-age=0") {
            stale = true;
        } else if is(b"private") || is(b"no-cache") || is(b"no-store") || directive.eq_ignore_ascii_case(b"s-maxage=0") {
            cacheable = false;
        } else if is(b"s-maxage") {
            (fresh, stale) = (true, false);
        } else if is(b"max-age") {
            fresh = true;
        }
    }
    let known = fresh || fields.get(b"Expires").is_some() || fields.has(Known::Etag) || fields.get(b"Last-Modified").is_some();
    cacheable && !stale && known
}

impl Farm {
    /// `option checkcache`: whether a cache might give the cookie that a response's server has set to another client.
    /// That is logged as an alert.
    pub fn leaks_cookie(&self, response: &Response, method: &[u8], server: &Server) -> bool {
        let fields = &response.fields;
        let spared = |directive: &[u8]| {
            const PREFIX: &[u8] = b"no-cache=\"set-cookie";
            directive.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
        };
        let leaks = is_cacheable(response, method) && !fields.every(Known::CacheControl).flat_map(list::elements).any(spared);
        if leaks {
            let (farm, server) = (self.name(), server.name());
            let line = format!("SECURITY ALERT: Blocking cacheable cookie in response from instance {farm}, server {server}.");
            self.say(Level::Alert, &line);
        }
        leaks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(status: u16, method: &str, fields: &[(&str, &str)]) -> bool {
        let mut response = Response::default();
        response.status = status;
        fields.iter().for_each(|(name, value)| response.fields.push(name.as_bytes(), value.as_bytes()));
        is_cacheable(&response, method.as_bytes())
    }

    #[test]
    fn what_a_cache_could_keep() {
        assert!(judged(200, "GET", &[("Last-Modified", "x")]));
        assert!(judged(200, "GET", &[("Cache-Control", "max-age=9")]));
        assert!(judged(200, "GET", &[("Cache-Control", "max-age=0, s-maxage=9")]));
        assert!(judged(302, "POST", &[("Cache-Control", "public, max-age=9")]));
        assert!(judged(404, "GET", &[("Expires", "x")]));
    }

    #[test]
    fn what_no_cache_keeps() {
        assert!(!judged(200, "GET", &[]));
        assert!(!judged(200, "POST", &[("ETag", "x")]));
        assert!(!judged(302, "GET", &[("ETag", "x")]));
        assert!(!judged(200, "GET", &[("ETag", "x"), ("Pragma", "no-cache")]));
        assert!(!judged(200, "GET", &[("ETag", "x"), ("Cache-Control", "Private")]));
        assert!(!judged(200, "GET", &[("ETag", "x"), ("Cache-Control", "no-cache=a")]));
        assert!(!judged(200, "GET", &[("ETag", "x"), ("Cache-Control", "max-age=0")]));
    }
}
