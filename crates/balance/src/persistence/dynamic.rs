//! Dynamic cookies: values that all balancers with the same key make of a server's address.
//!
//! The value is XXH64 over the key, the address in 4 or 16 bytes and the port in four, the highest first, in 16
//! hexadecimal digits. It follows the address and the key as they are now, so a change of either needs nothing else.

use crate::destination::Port;
use crate::server::Server;
use arc_swap::{ArcSwapOption, Guard};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use xxhash_rust::xxh64::Xxh64;

/// Settings of a backend's dynamic cookies, which the stats socket changes.
#[derive(Debug)]
pub struct DynamicCookies {
    is_on: AtomicBool,
    key: ArcSwapOption<String>,
}

/// The key in force.
pub(super) struct Maker(Guard<Option<Arc<String>>>);

impl DynamicCookies {
    /// `cookie ... dynamic`, `dynamic-cookie-key`.
    pub(crate) fn new(is_on: bool, key: Option<&str>) -> DynamicCookies {
        let key = key.filter(|key| !key.is_empty()).map(|key| Arc::new(key.to_owned()));
        DynamicCookies { is_on: AtomicBool::new(is_on), key: ArcSwapOption::new(key) }
    }

    /// Turns dynamic cookies on or off. Without a key there are none.
    pub fn switch(&self, is_on: bool) {
        self.is_on.store(is_on, Relaxed);
    }

    /// Changes the key.
    pub fn set_key(&self, key: &str) {
        self.key.store(Some(Arc::new(key.to_owned())));
    }

    pub(super) fn maker(&self) -> Option<Maker> {
        let key = self.is_on.load(Relaxed).then(|| self.key.load())?;
        key.is_some().then_some(Maker(key))
    }
}

impl Maker {
    /// Number of a server; `None` without an IP address.
    pub(super) fn number(&self, server: &Server) -> Option<u64> {
        let destination = server.address().destination()?;
        let mut hash = Xxh64::new(0);
        hash.update(self.0.as_deref()?.as_bytes());
        match destination.ip {
            IpAddr::V4(ip) => hash.update(&ip.octets()),
            IpAddr::V6(ip) => hash.update(&ip.octets()),
        }
        let port = match destination.port {
            Port::Fixed(port) => port.into(),
            Port::Offset(offset) => offset,
        };
        hash.update(&port.to_be_bytes());
        Some(hash.digest())
    }
}

/// A number as cookies have it.
pub(super) fn written(number: u64) -> String {
    format!("{number:016x}")
}

/// Number in a cookie; `None` if the cookie has another form.
pub(super) fn read(value: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let text = std::str::from_utf8(value).ok().filter(|_| value.len() == 16 && value.iter().all(digit))?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::farm;

    #[test]
    fn values_are_those_of_haproxy() {
        // As HAProxy 2.6 and 3.5 have them.
        for (key, address, value) in [
            ("abc", "127.0.0.1:23906", "da09414bf652a040"),
            ("a-longer-key-of-more-than-thirty-two-bytes", "127.0.0.1:23906", "6347165876e6ee97"),
        ] {
            let farm = farm(&format!("cookie S insert dynamic\ndynamic-cookie-key {key}\nserver a {address}"));
            assert_eq!(farm.cookie_of(&farm.servers()[0]).as_deref(), Some(value), "{address}");
        }
    }

    #[test]
    fn only_what_was_written_is_read() {
        for number in [0, 1, u64::MAX, 0xda09_414b_f652_a040] {
            assert_eq!(read(written(number).as_bytes()), Some(number));
        }
        for other in ["", "0", "DA09414BF652A040", "+a09414bf652a040", "da09414bf652a0400", "da09414bf652a04g"] {
            assert_eq!(read(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn what_changes_at_run_time_changes_the_value() {
        let farm = farm("cookie S insert\nserver a 10.0.0.1:80\nserver b 10.0.0.2:80 cookie b\nserver c unix@/c");
        let servers = farm.servers();
        let values = || [0, 1, 2].map(|index| farm.cookie_of(&servers[index]).map(|value| value.into_owned()));
        assert_eq!(values(), [None, Some("b".into()), None]);
        farm.dynamic_cookies().switch(true);
        assert_eq!(values()[0], None, "there is no key");
        farm.dynamic_cookies().set_key("one");
        let [first, named, none] = values();
        assert_eq!((first.is_some(), named.as_deref(), none), (true, Some("b"), None));
        farm.dynamic_cookies().set_key("two");
        assert!(values()[0].is_some() && values()[0] != first);
        farm.dynamic_cookies().set_key("one");
        assert_eq!(values()[0], first);
        farm.dynamic_cookies().switch(false);
        assert_eq!(values()[0], None);
    }
}
