//! Accept-Encoding: which of our codings a client wants most (RFC 9110 section 12.5.3).
//!
//! Reading is lenient, choosing is strict: a weight that cannot be read counts as a refusal, and of several mentions of a
//! coding the lowest weight holds. So no reading of a strange value ever sends a client a coding that it may have refused.

use crate::coding::{CODINGS, Coding};
use crate::reason::Reason;
use terse_message::list;

/// Elements that are read; a longer list gets plain bytes.
pub const MAX_ELEMENTS: usize = 64;

/// The codings that a client takes.
#[derive(Clone, Debug)]
pub struct Acceptance {
    /// The coding that it gets, or the reason why none. The highest weight wins, and the operator's order among equals.
    pub choice: Result<Coding, Reason>,
    /// Whether it takes every one of the offered codings.
    pub takes_all: bool,
    /// Its weights of all codings.
    pub admission: Admission,
}

/// Parses the values of all Accept-Encoding fields. `offered` are the configured codings in the operator's order; with
/// `identity` among them, a client that takes none of the others gets plain bytes, as with HAProxy.
pub fn negotiate<'v>(values: impl Iterator<Item = &'v [u8]>, offered: &[Coding]) -> Acceptance {
    let mut weights = Weights::default();
    let mut present = false;
    for value in values {
        present = true;
        weights.read(value);
    }
    let coded = || offered.iter().copied().filter(|coding| !coding.is_identity());
    let takes_all = weights.complete() && coded().next().is_some() && coded().all(|coding| weights.of(coding) > 0);
    let choice = match weights.best(coded()) {
        Ok(coding) => Ok(coding),
        Err(_) if offered.contains(&Coding::Identity) => Ok(Coding::Identity),
        Err(_) if !present => Err(Reason::NoAcceptEncoding),
        Err(reason) => Err(reason),
    };
    Acceptance { choice, takes_all, admission: Admission { present, weights } }
}

/// The value of the fields without the codings that terse knows: those and `*` go, where they are accepted. `None` where the
/// fields may stay as they are, because plain bytes are refused.
pub(crate) fn without_ours<'v>(values: impl Iterator<Item = &'v [u8]>) -> Option<Vec<u8>> {
    let (mut weights, mut kept, mut accepts) = (Weights::default(), Vec::new(), false);
    for value in values {
        weights.read(value);
        for element in list::elements(value).take(MAX_ELEMENTS) {
            let mut parts = list::parameters(element);
            let name = parts.next().unwrap_or_default();
            let accepted = weight(parts) > 0;
            let is_ours = name == b"*" || CODINGS.iter().any(|entry| entry.coding.is_named(name));
            if !(accepted && is_ours) {
                kept.push(element);
                accepts |= accepted;
            }
        }
    }
    if weights.complete() && weights.identity.or(weights.others) == Some(0) {
        return None;
    }
    if !weights.complete() || !accepts {
        kept.truncate(if weights.complete() { kept.len() } else { 0 });
        kept.push(b"identity");
    }
    Some(kept.join(&b", "[..]))
}

/// A client's acceptance of codings that a response may bring with it.
#[derive(Clone, Debug)]
pub struct Admission {
    present: bool,
    weights: Weights,
}

impl Admission {
    /// Reads the values of all Accept-Encoding fields.
    pub fn read<'v>(values: impl Iterator<Item = &'v [u8]>) -> Admission {
        let mut admission = Admission { present: false, weights: Weights::default() };
        for value in values {
            admission.present = true;
            admission.weights.read(value);
        }
        admission
    }

    /// Whether the client names that coding, or `*`, among those that it takes. A request without the field names none.
    pub fn admits(&self, coding: Coding) -> bool {
        self.present && self.weights.complete() && self.weights.of(coding) > 0
    }

    /// Whether the client wants a coding no less than another one that it would get, and than plain bytes.
    pub(crate) fn prefers(&self, coding: Coding, other: Option<Coding>) -> bool {
        let weight = self.weights.of(coding);
        let least = other.filter(|other| !other.is_identity()).map_or(0, |other| self.weights.of(other));
        self.admits(coding) && weight >= least && self.weights.identity.is_none_or(|identity| weight >= identity)
    }
}

/// Weights in thousandths, as far as they were named.
#[derive(Clone, Default, Debug)]
struct Weights {
    codings: [Option<u16>; CODINGS.len()],
    identity: Option<u16>,
    others: Option<u16>,
    /// Whether a coding that terse does not know was accepted.
    foreign: bool,
    elements: usize,
}

impl Weights {
    fn read(&mut self, value: &[u8]) {
        for element in list::elements(value) {
            self.elements += 1;
            if !self.complete() {
                return;
            }
            let mut parts = list::parameters(element);
            let name = parts.next().unwrap_or_default();
            let weight = weight(parts);
            if name == b"*" {
                lower(&mut self.others, weight);
            } else if name.eq_ignore_ascii_case(b"identity") {
                lower(&mut self.identity, weight);
            } else {
                let mut ours = false;
                for entry in CODINGS.iter().filter(|entry| entry.coding.is_named(name)) {
                    lower(&mut self.codings[entry.coding as usize], weight);
                    ours = true;
                }
                self.foreign |= !ours && weight > 0;
            }
        }
    }

    fn complete(&self) -> bool {
        self.elements <= MAX_ELEMENTS
    }

    fn of(&self, coding: Coding) -> u16 {
        let others = self.others.filter(|_| !coding.has_dictionary());
        self.codings[coding as usize].or(others).unwrap_or(0)
    }

    fn best(&self, offered: impl Iterator<Item = Coding> + Clone) -> Result<Coding, Reason> {
        if !self.complete() {
            return Err(Reason::AcceptEncodingLimit);
        }
        let mut best: Option<(Coding, u16)> = None;
        for coding in offered.clone() {
            let weight = self.of(coding);
            if weight > best.map_or(0, |(_, best)| best) {
                best = Some((coding, weight));
            }
        }
        match best {
            Some((_, weight)) if self.identity.is_some_and(|identity| identity > weight) => Err(Reason::ClientIdentity),
            Some((coding, _)) => Ok(coding),
            None if self.foreign => Err(Reason::NoCommonCoding),
            None if offered.clone().any(|c| self.codings[c as usize].is_some()) => Err(Reason::CodingRefused),
            None if self.others == Some(0) && self.identity.is_none_or(|identity| identity == 0) => Err(Reason::CodingRefused),
            None if self.elements == 0 || self.identity.is_some() => Err(Reason::ClientIdentity),
            None => Err(Reason::NoCommonCoding),
        }
    }
}

fn lower(slot: &mut Option<u16>, weight: u16) {
    *slot = Some(slot.map_or(weight, |before| before.min(weight)));
}

/// The weight among an element's parameters, in thousandths; 1000 when none is named, 0 when it cannot be read.
pub fn weight<'a>(parameters: impl Iterator<Item = &'a [u8]>) -> u16 {
    for parameter in parameters {
        let Some(at) = memchr::memchr(b'=', parameter) else { continue };
        if parameter[..at].trim_ascii().eq_ignore_ascii_case(b"q") {
            return thousandths(parameter[at + 1..].trim_ascii()).unwrap_or(0);
        }
    }
    1000
}

/// Parses `0.75` as 750; more than 1 counts as 1, digits after the third do not count.
fn thousandths(value: &[u8]) -> Option<u16> {
    let dot = memchr::memchr(b'.', value).unwrap_or(value.len());
    let (whole, fraction) = (&value[..dot], value.get(dot + 1..).unwrap_or_default());
    if (whole.is_empty() && fraction.is_empty()) || !whole.iter().chain(fraction).all(u8::is_ascii_digit) {
        return None;
    }
    if whole.iter().any(|&digit| digit != b'0') {
        return Some(1000);
    }
    let digit = |i: usize| fraction.get(i).map_or(0, |&b| u16::from(b - b'0'));
    Some(digit(0) * 100 + digit(1) * 10 + digit(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: &[Coding] = &[Coding::Gzip, Coding::Deflate];

    fn choice(value: &str, offered: &[Coding]) -> Result<Coding, Reason> {
        negotiate([value.as_bytes()].into_iter(), offered).choice
    }

    #[test]
    fn weights_decide_and_the_operators_order_breaks_ties() {
        for (value, expected) in [
            ("gzip", Ok(Coding::Gzip)),
            ("deflate, gzip", Ok(Coding::Gzip)),
            ("deflate;q=0.9, gzip;q=0.8", Ok(Coding::Deflate)),
            ("*;q=0, gzip;q=0.750, deflate;q=0.500", Ok(Coding::Gzip)),
            ("*;q=0, gzip;q=0.500, deflate;q=0.750", Ok(Coding::Deflate)),
            ("*", Ok(Coding::Gzip)),
            ("gzip;q=0, *", Ok(Coding::Deflate)),
            ("x-gzip", Ok(Coding::Gzip)),
            ("GZIP ; Q=1", Ok(Coding::Gzip)),
            ("gzip;level=3; q = 0.5", Ok(Coding::Gzip)),
            ("gzip, identity", Ok(Coding::Gzip)),
            ("identity;q=0.5, gzip;q=0.4", Err(Reason::ClientIdentity)),
            ("identity;q=0, gzip;q=0.1", Ok(Coding::Gzip)),
            ("identity", Err(Reason::ClientIdentity)),
            ("identity;q=1, *;q=0", Err(Reason::ClientIdentity)),
            ("", Err(Reason::ClientIdentity)),
            (" , ,", Err(Reason::ClientIdentity)),
            ("gzip;q=0", Err(Reason::CodingRefused)),
            ("gzip;q=0.000, deflate;q=0", Err(Reason::CodingRefused)),
            ("*;q=0", Err(Reason::CodingRefused)),
            ("gzip;q=0.0001", Err(Reason::CodingRefused)),
            ("gzip;q=high", Err(Reason::CodingRefused)),
            ("gzip;q=", Err(Reason::CodingRefused)),
            ("gzip;q=-1", Err(Reason::CodingRefused)),
            ("gzip;q=1, gzip;q=0", Err(Reason::CodingRefused)),
            ("gzip;q=2", Ok(Coding::Gzip)),
            ("gzip;q=.5", Ok(Coding::Gzip)),
            ("br, zstd", Err(Reason::NoCommonCoding)),
            ("invalid", Err(Reason::NoCommonCoding)),
            ("gzipped", Err(Reason::NoCommonCoding)),
        ] {
            assert_eq!(choice(value, BOTH), expected, "{value}");
        }
    }

    #[test]
    fn no_field_is_not_an_empty_field() {
        let none = std::iter::empty::<&[u8]>();
        assert_eq!(negotiate(none, BOTH).choice, Err(Reason::NoAcceptEncoding));
        let two = [&b"deflate;q=0.1"[..], b"gzip;q=0.2"];
        assert_eq!(negotiate(two.into_iter(), BOTH).choice, Ok(Coding::Gzip));
    }

    #[test]
    fn identity_of_the_operator_is_the_last_resort() {
        let offered = [Coding::Identity, Coding::Gzip];
        assert_eq!(choice("gzip", &offered), Ok(Coding::Gzip));
        assert_eq!(choice("br", &offered), Ok(Coding::Identity));
        assert!(!negotiate([&b"gzip"[..]].into_iter(), &[Coding::Identity]).takes_all);
    }

    #[test]
    fn long_lists_get_plain_bytes() {
        let value = "a,".repeat(MAX_ELEMENTS) + "gzip";
        assert_eq!(choice(&value, BOTH), Err(Reason::AcceptEncodingLimit));
        let value = "gzip,".repeat(MAX_ELEMENTS);
        assert_eq!(choice(&value, BOTH), Ok(Coding::Gzip));
    }

    #[test]
    fn takes_all_is_about_every_coding() {
        assert!(negotiate([&b"gzip, deflate;q=0.1"[..]].into_iter(), BOTH).takes_all);
        assert!(!negotiate([&b"gzip"[..]].into_iter(), BOTH).takes_all);
        assert!(negotiate([&b"*"[..]].into_iter(), BOTH).takes_all);
    }

    #[test]
    fn codings_are_admitted_by_name_alone() {
        let admits = |value: &str, coding| Admission::read([value.as_bytes()].into_iter()).admits(coding);
        assert!(admits("gzip", Coding::Gzip) && admits("X-Gzip;q=0.1", Coding::Gzip) && admits("br, *;q=0.5", Coding::Zstd));
        for value in ["", "identity", "br", "gzip;q=0", "*, gzip;q=0", "gzip;q=x"] {
            assert!(!admits(value, Coding::Gzip), "{value}");
        }
        assert!(!Admission::read(std::iter::empty()).admits(Coding::Gzip));
    }

    #[test]
    fn what_is_ours_goes_and_the_rest_stays() {
        for (value, left) in [
            ("gzip, deflate, br", Some("identity")),
            ("gzip,svndiff1;q=0.9,svndiff;q=0.8", Some("svndiff1;q=0.9, svndiff;q=0.8")),
            ("GZIP;q=0.5, X-GZip, identity;q=0.1", Some("identity;q=0.1")),
            ("*", Some("identity")),
            ("compress, *;q=0.1", Some("compress")),
            ("gzip;q=0, br", Some("gzip;q=0, identity")),
            ("", Some("identity")),
            ("gzip, identity;q=0", None),
            ("gzip, *;q=0", None),
            ("gzip, *;q=0, identity", Some("*;q=0, identity")),
        ] {
            let found = without_ours([value.as_bytes()].into_iter());
            assert_eq!(found.as_deref(), left.map(str::as_bytes), "{value}");
        }
        assert_eq!(without_ours([].into_iter()).unwrap(), b"identity");
        let long = "a,".repeat(MAX_ELEMENTS + 1);
        assert_eq!(without_ours([long.as_bytes()].into_iter()).unwrap(), b"identity");
    }

    proptest! {
        #[test]
        fn what_is_left_never_asks_for_ours(values in prop::collection::vec("[a-z*;=q0-9., ]{0,60}", 0..4)) {
            let all = || values.iter().map(String::as_bytes);
            if let Some(left) = without_ours(all()) {
                prop_assert!(negotiate([&left[..]].into_iter(), BOTH).choice.is_err(), "{}", String::from_utf8_lossy(&left));
            }
        }

        #[test]
        fn any_bytes_can_be_read(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..4)) {
            negotiate(values.iter().map(Vec::as_slice), BOTH);
        }

        #[test]
        fn what_is_refused_is_never_chosen(
            elements in prop::collection::vec(("(gzip|x-gzip|deflate|identity|\\*|br)", 0u16..=1000, any::<bool>()), 0..8),
            refused in "(gzip|x-gzip|deflate)",
            at in 0usize..9,
        ) {
            let mut list: Vec<String> = elements
                .iter()
                .map(|(name, q, blank)| format!("{name};{}q={}.{:03}", if *blank { " " } else { "" }, q / 1000, q % 1000))
                .collect();
            list.insert(at.min(list.len()), format!("{refused};q=0"));
            let chosen = choice(&list.join(","), BOTH);
            if let Ok(coding) = chosen {
                prop_assert!(!coding.is_named(refused.as_bytes()));
            }
        }
    }
}
