//! Distinguished names of certificates, in the forms of HAProxy's fetches (`ssl_c_s_dn` and its like).
//!
//! An entry is known by its short name (`CN`), its long one (`commonName`) and its object identifier (`2.5.4.3`), whatever
//! the case. An entry that OpenSSL has no name for shows by its identifier.

use crate::raw;
use openssl::x509::{X509Name, X509NameEntryRef, X509NameRef};
use std::borrow::Cow;

/// A distinguished name.
#[derive(Clone, Copy)]
pub struct Dn<'a>(&'a X509NameRef);

/// The name of an authority that no other authority has signed.
pub struct RootName(X509Name);

impl RootName {
    pub(crate) fn of(name: &X509NameRef) -> Option<RootName> {
        name.to_owned().ok().map(RootName)
    }

    pub(crate) fn from_der(der: &[u8]) -> Option<RootName> {
        X509Name::from_der(der).ok().map(RootName)
    }

    /// The name.
    pub fn dn(&self) -> Dn<'_> {
        Dn::of(&self.0)
    }
}

impl std::fmt::Debug for RootName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.dn().fmt(f)
    }
}

impl std::fmt::Debug for Dn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.line().unwrap_or_default()))
    }
}

impl<'a> Dn<'a> {
    pub(crate) fn of(name: &'a X509NameRef) -> Dn<'a> {
        Dn(name)
    }

    /// The name as one line: `/C=FR/CN=Client`. `None` for a name without entries, or with a NUL inside.
    pub fn line(self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        for entry in self.0.entries() {
            let value = value(entry)?;
            line.extend_from_slice(b"/");
            line.extend_from_slice(kind(entry).as_bytes());
            line.extend_from_slice(b"=");
            line.extend_from_slice(value);
        }
        Some(line).filter(|line| !line.is_empty())
    }

    /// The name in LDAP's form (RFC 2253): `CN=Client,C=FR`. Parts of several values have `+` between them, bytes beyond
    /// ASCII are escaped in UTF-8, and values of unknown kinds are in hexadecimal digits.
    pub fn rfc2253(self) -> Option<Vec<u8>> {
        raw::dn_rfc2253(self.0).filter(|text| !text.is_empty())
    }

    /// A single entry: the `number`th of those called so, from 1; from the end where it is negative. There is none at 0.
    pub fn entry(self, called: &str, number: i64) -> Option<Vec<u8>> {
        let entries: Vec<_> = self.0.entries().filter(|entry| is_called(entry, called)).collect();
        let at = match number {
            0.. => usize::try_from(number - 1).ok()?,
            _ => entries.len().checked_sub(usize::try_from(number.checked_neg()?).ok()?)?,
        };
        value(entries.get(at)?).map(<[u8]>::to_vec)
    }
}

/// Kind of an entry: its short name, or its object identifier.
fn kind(entry: &X509NameEntryRef) -> Cow<'static, str> {
    match entry.object().nid().short_name() {
        Ok(name) if entry.object().nid().as_raw() != UNDEFINED => name.into(),
        _ => raw::dotted(entry.object()).unwrap_or_default().into(),
    }
}

fn is_called(entry: &X509NameEntryRef, called: &str) -> bool {
    let nid = entry.object().nid();
    if called.starts_with(|first: char| first.is_ascii_digit()) {
        return raw::dotted(entry.object()).is_some_and(|dotted| dotted == called);
    }
    let is_it = |name: &str| name.eq_ignore_ascii_case(called);
    nid.as_raw() != UNDEFINED && (nid.short_name().is_ok_and(is_it) || nid.long_name().is_ok_and(is_it))
}

/// Value of an entry. Some readers would not see bytes after a NUL: such a value is `None`. NULs at the end carry nothing.
fn value(entry: &X509NameEntryRef) -> Option<&[u8]> {
    let value = entry.data().as_slice();
    let len = value.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    Some(&value[..len]).filter(|value| !value.contains(&0))
}

/// `obj_mac.h`: `NID_undef`
const UNDEFINED: i32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries, each with its tag.
    fn name(entries: &[(&str, &[u8], u8)]) -> X509Name {
        use crate::der::{SEQUENCE, encode};
        let part = |(kind, value, tag): &(&str, &[u8], u8)| {
            let kind = encode(crate::der::OBJECT, oid(kind));
            encode(SET, &encode(SEQUENCE, &[kind, encode(*tag, value)].concat()))
        };
        X509Name::from_der(&encode(SEQUENCE, &entries.iter().flat_map(part).collect::<Vec<u8>>())).unwrap()
    }

    fn oid(kind: &str) -> &'static [u8] {
        match kind {
            "CN" => &[0x55, 4, 3],
            "C" => &[0x55, 4, 6],
            "OU" => &[0x55, 4, 11],
            "emailAddress" => &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1],
            _ => &[0x2b, 6, 1, 4, 1, 0x86, 0x8d, 0x1f, 7],
        }
    }

    const SET: u8 = 0x31;
    const UTF8: u8 = 12;
    const LATIN: u8 = 20;
    const WIDE: u8 = 30;

    #[test]
    fn entries_have_several_names() {
        let name = name(&[
            ("C", b"FR", 19),
            ("OU", b"one", UTF8),
            ("OU", b"two", UTF8),
            ("CN", b"mallory", UTF8),
            ("emailAddress", b"m@x.test", 22),
            ("1.3.6.1.4.1.99999.7", b"own", UTF8),
        ]);
        let dn = Dn::of(&name);
        assert_eq!(dn.line().unwrap(), b"/C=FR/OU=one/OU=two/CN=mallory/emailAddress=m@x.test/1.3.6.1.4.1.99999.7=own");
        for called in ["CN", "cn", "Cn", "commonName", "COMMONNAME", "2.5.4.3"] {
            assert_eq!(dn.entry(called, 1).as_deref(), Some(&b"mallory"[..]), "{called}");
        }
        for (called, number, value) in [
            ("ou", 1, Some(&b"one"[..])),
            ("ou", 2, Some(b"two")),
            ("ou", 3, None),
            ("organizationalunitname", -1, Some(b"two")),
            ("Ou", -2, Some(b"one")),
            ("ou", -3, None),
            ("EMAILADDRESS", 1, Some(b"m@x.test")),
            ("1.3.6.1.4.1.99999.7", 1, Some(b"own")),
            ("1.3.6.1.4.1.99999", 1, None),
            ("UNDEF", 1, None),
            ("undefined", 1, None),
            ("O", 1, None),
            ("", 1, None),
        ] {
            assert_eq!(dn.entry(called, number).as_deref(), value, "{called} {number}");
        }
    }

    #[test]
    fn ldap_gets_what_rfc_2253_says() {
        for (entries, text) in [
            (&[("C", &b"FR"[..], 19), ("CN", b"a", UTF8)][..], r"CN=a,C=FR"),
            (&[("CN", br#" a,b+c"d\e<f>g;h "#, UTF8)], r#"CN=\ a\,b\+c\"d\\e\<f\>g\;h\ "#),
            (&[("CN", b"#x", UTF8)], r"CN=\#x"),
            (&[("CN", b"a\nb", UTF8)], r"CN=a\0Ab"),
            (&[("CN", "Lu\u{10d}i\u{107}".as_bytes(), UTF8)], r"CN=Lu\C4\8Di\C4\87"),
            (&[("CN", b"caf\xe9", LATIN)], r"CN=caf\C3\A9"),
            (&[("CN", b"\x01\x0d\0a", WIDE)], r"CN=\C4\8Da"),
            (&[("1.3.6.1.4.1.99999.7", b"own", UTF8)], "1.3.6.1.4.1.99999.7=#0C036F776E"),
        ] {
            let text = text.as_bytes();
            assert_eq!(Dn::of(&name(entries)).rfc2253().as_deref(), Some(text), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn parts_of_several_values_stay_together() {
        use crate::der::{OBJECT, SEQUENCE, encode};
        let entry = |oid: &[u8], value: &[u8]| encode(SEQUENCE, &[encode(OBJECT, oid), encode(UTF8, value)].concat());
        let both = encode(SET, &[entry(&[0x55, 4, 3], b"a"), entry(&[0x55, 4, 11], b"b")].concat());
        let one = encode(SET, &entry(&[0x55, 4, 10], b"c"));
        let name = X509Name::from_der(&encode(SEQUENCE, &[one, both].concat())).unwrap();
        let dn = Dn::of(&name);
        assert_eq!(dn.rfc2253().unwrap(), b"OU=b+CN=a,O=c");
        assert_eq!((dn.line().unwrap(), dn.entry("ou", 1).unwrap()), (b"/O=c/CN=a/OU=b".to_vec(), b"b".to_vec()));
    }

    #[test]
    fn a_nul_hides_nothing() {
        for (value, seen) in [(&b"a\0.evil.test"[..], None), (b"a\0", Some(&b"a"[..])), (b"a\0\0", Some(b"a"))] {
            let name = name(&[("CN", value, UTF8)]);
            assert_eq!(Dn::of(&name).entry("cn", 1).as_deref(), seen, "{value:?}");
            assert_eq!(Dn::of(&name).line(), seen.map(|seen| [b"/CN=", seen].concat()), "{value:?}");
        }
        let empty = name(&[]);
        assert_eq!((Dn::of(&empty).line(), Dn::of(&empty).rfc2253(), Dn::of(&empty).entry("CN", 1)), (None, None, None));
    }
}
