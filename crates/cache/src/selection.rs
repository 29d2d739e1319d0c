//! Selection among the stored responses of a resource: Vary (RFC 9111 section 4.1), for the fields that are understood.
//!
//! A response that varies on Accept-Encoding goes to requests with an equal field, in any order and letter case: the server's
//! choice for another value is not known. A coded response without such a Vary goes to requests that name all of its codings.
//! No coded response is kept where the field is missing: `decompression accept` has perhaps asked for the coding, for the
//! proxy alone. Under `http-conformance haproxy` a response is known by its own codings alone, as in HAProxy: a client that
//! takes all of them may have it, and a request without the field takes any.

use data_encoding::HEXLOWER;
use std::collections::BTreeMap;
use terse_compress::{accept, policy};
use terse_message::{Conformance, Fields, Known, list};

/// Values of a request in the fields that are understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selecting {
    /// A bit for each coding that it takes; `None`: it names too many for the response to be kept.
    codings: Option<u32>,
    /// Accept-Encoding; `None` where there is no such field, or none that its server sees.
    accept: Option<Box<[u8]>>,
    conformance: Conformance,
    referer: Box<[u8]>,
    origin: Box<[u8]>,
}

/// Conditions that a request must meet to select a stored response.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Selector {
    codings: Option<u32>,
    /// The required Accept-Encoding, normalized.
    said: Option<Option<Box<[u8]>>>,
    /// Whether the field must be there.
    named: bool,
    referer: Option<Box<[u8]>>,
    origin: Option<Box<[u8]>>,
}

impl Selecting {
    /// Reads a request's fields. `hidden`: its server is not shown Accept-Encoding.
    pub fn of(request: &Fields, hidden: bool, conformance: Conformance) -> Selecting {
        Selecting {
            codings: accepted(request.every(Known::AcceptEncoding)),
            accept: (request.has(Known::AcceptEncoding) && !hidden).then(|| joined(request, b"Accept-Encoding")),
            conformance,
            referer: joined(request, b"Referer"),
            origin: joined(request, b"Origin"),
        }
    }

    /// The selector of a response to this request. `None` when it cannot be kept: it varies on something else, has a coding
    /// that is unknown or that the client has not asked for, or the request names too many.
    pub fn selector(&self, response: &Fields) -> Option<Selector> {
        let mut selector = Selector::default();
        let is_strict = self.conformance == Conformance::Rfc;
        if is_strict && policy::is_coded(response) {
            // A client without the field has not asked for the coding.
            self.accept.as_ref()?;
            (selector.codings, selector.named) = (Some(used(response)?), true);
        }
        for name in response.every(Known::Vary).flat_map(list::elements) {
            if name.eq_ignore_ascii_case(b"Accept-Encoding") {
                self.codings?;
                selector.codings = Some(used(response)?);
                if is_strict {
                    (selector.said, selector.named) = (Some(self.said()), false);
                }
            } else if name.eq_ignore_ascii_case(b"Referer") {
                selector.referer = Some(self.referer.clone());
            } else if name.eq_ignore_ascii_case(b"Origin") {
                selector.origin = Some(self.origin.clone());
            } else {
                return None;
            }
        }
        Some(selector)
    }

    /// The normalized Accept-Encoding: equal for all values with the same meaning.
    fn said(&self) -> Option<Box<[u8]>> {
        self.accept.as_deref().map(said)
    }
}

impl Selector {
    /// Whether a request selects the response.
    pub fn admits(&self, request: &Selecting) -> bool {
        self.codings.is_none_or(|used| request.codings.is_some_and(|taken| used & taken == used))
            && self.said.as_ref().is_none_or(|said| *said == request.said())
            && !(self.named && request.accept.is_none())
            && self.referer.as_ref().is_none_or(|referer| *referer == request.referer)
            && self.origin.as_ref().is_none_or(|origin| *origin == request.origin)
    }

    /// Whether every request selects the response.
    pub fn is_any(&self) -> bool {
        *self == Selector::default()
    }

    /// Text that tells it from others, in hexadecimal digits: its codings, and a digest of the fields that are compared.
    pub fn text(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let said = self.said.as_ref().map(|said| said.clone().unwrap_or_default());
        for text in [&self.referer, &self.origin, &said].into_iter().flatten() {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text);
        }
        let digest = if self.referer.is_some() || self.origin.is_some() || said.is_some() {
            hasher.finalize().as_bytes()[0..4].to_vec()
        } else {
            vec![0; 4]
        };
        format!("{:08x}{}", self.codings.unwrap_or(0), HEXLOWER.encode(&digest))
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        [&self.referer, &self.origin, &self.said.clone().flatten()].into_iter().flatten().map(|text| text.len()).sum()
    }
}

/// Codings of IANA's list, and their other names; the first stands for a body without a coding.
const CODINGS: [&[&str]; 11] = [
    &["identity"],
    &["gzip", "x-gzip"],
    &["deflate"],
    &["br"],
    &["zstd"],
    &["compress", "x-compress"],
    &["dcb"],
    &["dcz"],
    &["exi"],
    &["aes128gcm"],
    &["pack200-gzip"],
];

const IDENTITY: u32 = 1;

/// Names of codings that are read: a request with more has no response kept that varies on them.
const MOST_CODINGS: usize = 15;

fn bit(name: &[u8]) -> Option<u32> {
    let is = |names: &&[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one.as_bytes()));
    CODINGS.iter().position(is).map(|at| 1 << at)
}

/// The codings that a client takes: all of them without the field, and none but `identity` where the field names none.
fn accepted<'v>(values: impl Iterator<Item = &'v [u8]>) -> Option<u32> {
    let (mut said, mut count, mut taken, mut refused, mut rest) = (false, 0, 0, 0, None);
    for value in values {
        said = true;
        for element in list::elements(value) {
            count += 1;
            if count > MOST_CODINGS {
                return None;
            }
            let mut parts = list::parameters(element);
            let name = parts.next().unwrap_or_default();
            let refuses = parts.any(is_zero);
            match (name, bit(name)) {
                (b"*", _) => rest = Some(!refuses && rest.unwrap_or(true)),
                (_, Some(bit)) if refuses => refused |= bit,
                (_, Some(bit)) => taken |= bit,
                (_, None) => {}
            }
        }
    }
    let taken = match rest {
        Some(true) => u32::MAX,
        None if !said => u32::MAX,
        Some(false) => taken,
        None => taken | IDENTITY,
    };
    Some(taken & !refused)
}

/// Normalizes Accept-Encoding: each name, in small letters and the first of its names, with its weight; of several mentions
/// the lowest.
fn said(value: &[u8]) -> Box<[u8]> {
    let mut weights: BTreeMap<Vec<u8>, u16> = BTreeMap::new();
    for element in list::elements(value).take(MOST_CODINGS + 1) {
        let mut parts = list::parameters(element);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let first = CODINGS.iter().find(|names| names.iter().any(|one| one.as_bytes() == name)).map(|names| names[0].into());
        let weight = accept::weight(parts);
        weights.entry(first.unwrap_or(name)).and_modify(|least| *least = weight.min(*least)).or_insert(weight);
    }
    let text: Vec<Vec<u8>> =
        weights.into_iter().map(|(name, weight)| [&name[..], b";", weight.to_string().as_bytes()].concat()).collect();
    text.join(&b","[..]).into()
}

/// `q=0`
fn is_zero(parameter: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'=', parameter) else { return false };
    let weight = parameter[at + 1..].trim_ascii();
    parameter[..at].trim_ascii().eq_ignore_ascii_case(b"q")
        && weight.first() == Some(&b'0')
        && weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
}

/// The codings of a response; `None` when a coding is not known.
fn used(response: &Fields) -> Option<u32> {
    let names = response.every(Known::ContentEncoding).flat_map(list::elements);
    let codings = names.map(bit).try_fold(0, |all, bit| Some(all | bit?))?;
    Some(if codings & !IDENTITY == 0 { IDENTITY } else { codings & !IDENTITY })
}

fn joined(fields: &Fields, name: &[u8]) -> Box<[u8]> {
    fields.values(name).collect::<Vec<_>>().join(&b", "[..]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        lines.iter().for_each(|(name, value)| fields.push(name.as_bytes(), value.as_bytes()));
        fields
    }

    fn admits(stored: &[(&str, &str)], first: &[(&str, &str)], second: &[(&str, &str)]) -> Option<bool> {
        admitted(Conformance::HAProxy, stored, first, second)
    }

    fn admitted(
        conformance: Conformance,
        stored: &[(&str, &str)],
        first: &[(&str, &str)],
        second: &[(&str, &str)],
    ) -> Option<bool> {
        let selecting = |lines| Selecting::of(&fields(lines), false, conformance);
        let (selector, own) = (selecting(first).selector(&fields(stored))?, selecting(first));
        selector.admits(&own).then(|| selector.admits(&selecting(second)))
    }

    /// A response that was chosen for an Accept-Encoding goes only to requests with an equal field (RFC 9111 section 4.1).
    #[test]
    fn a_variant_is_for_those_for_whom_it_was_chosen() {
        let strict = |coding: &str, vary: &str, first: Option<&str>, second: Option<&str>| {
            let accept = |value: Option<&'static str>| value.map(|value| ("Accept-Encoding", value));
            let own = |value: Option<&str>| value.map(|value| &*Box::leak(value.to_owned().into_boxed_str()));
            let (first, second) = (accept(own(first)), accept(own(second)));
            let stored = [("Content-Encoding", coding), ("Vary", vary)];
            admitted(Conformance::Rfc, &stored, first.as_slice(), second.as_slice())
        };
        const VARY: &str = "Accept-Encoding";
        for (coding, first, second, expected) in [
            ("gzip", Some("gzip, br;q=0.5"), Some("BR;q=0.50, x-gzip;q=1"), Some(true)),
            ("gzip", Some("gzip"), Some("gzip, br"), Some(false)),
            ("gzip", Some("gzip"), Some("gzip;q=0.5"), Some(false)),
            ("gzip", Some("gzip"), None, Some(false)),
            ("gzip", None, None, None),
            ("gzip", None, Some("gzip"), None),
            ("gzip", Some("br"), Some("br"), None),
            ("gzip", Some(""), Some(""), None),
            ("gzip", Some("gzip"), Some("gzip"), Some(true)),
            ("gzip, br", Some("gzip, br"), Some("br, gzip"), Some(true)),
            ("", None, None, Some(true)),
            ("", Some("gzip"), Some("gzip"), Some(true)),
            ("", None, Some("gzip"), Some(false)),
            ("", Some("gzip"), None, Some(false)),
            ("", Some("gzip"), Some(""), Some(false)),
            ("identity", Some(""), Some(" , "), Some(true)),
        ] {
            assert_eq!(strict(coding, VARY, first, second), expected, "{coding}: {first:?}, {second:?}");
        }
        // Coded without Vary: served to requests that name its codings.
        for (coding, first, second, expected) in [
            ("gzip", Some("gzip"), Some("br, gzip"), Some(true)),
            ("gzip", Some("gzip"), Some("*"), Some(true)),
            ("gzip", Some("gzip"), Some("br"), Some(false)),
            ("gzip", Some("gzip"), None, Some(false)),
            ("gzip", None, Some("gzip"), None),
            ("gzip", None, None, None),
            ("identity", None, Some("br"), Some(true)),
        ] {
            assert_eq!(strict(coding, "", first, second), expected, "{coding}: {first:?}, {second:?}");
        }
        let hidden = |value| Selecting::of(&fields(&[("Accept-Encoding", value)]), true, Conformance::Rfc);
        let selector = hidden("gzip").selector(&fields(&[("Vary", VARY)])).unwrap();
        assert!(selector.admits(&hidden("gzip, br")) && selector.admits(&Selecting::of(&fields(&[]), false, Conformance::Rfc)));
    }

    #[test]
    fn codings_are_those_of_the_response() {
        let coded = |coding| [("Vary", "accept-encoding"), ("Content-Encoding", coding)];
        let accept = |codings| [("Accept-Encoding", codings)];
        for (coding, codings, admitted) in [
            ("gzip", "GZIP", true),
            ("gzip", "x-gzip ; q=0.8", true),
            ("gzip", "first,gzip", true),
            ("gzip", "deflate, gzip;q=0", false),
            ("gzip", "deflate, gzip;q=0.000", false),
            ("gzip", "", false),
            ("br", "*", true),
            ("br", "gzip;q=0, *;q=0.1, identity;q=0", true),
            ("br", "*, br;q=0", false),
            ("br", "deflate, *;q=0", false),
            ("identity", "deflate, *;q=0", false),
            ("deflate, gzip", "gzip;q=0.8, deflate", true),
            ("deflate, gzip", "gzip", false),
            ("gzip", "br,gzip,a,b,c,d,e,f,g,h,i,j,k,l,m,n", false),
        ] {
            assert_eq!(admits(&coded(coding), &[], &accept(codings)), Some(admitted), "{coding}: {codings}");
        }
        assert_eq!(admits(&coded("gzip"), &[], &[]), Some(true));
        let plain = [("Vary", "Accept-Encoding")];
        for (codings, admitted) in [("gzip", true), ("", true), ("gzip, identity;q=0", false)] {
            assert_eq!(admits(&plain, &[], &accept(codings)), Some(admitted), "{codings}");
        }
        assert_eq!(admits(&coded("rot13"), &[], &[]), None);
        assert_eq!(admits(&plain, &accept("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p"), &[]), None);
    }

    #[test]
    fn other_fields_are_compared() {
        let stored = [("Vary", "Referer, origin")];
        let one = [("Referer", "r"), ("Origin", "o")];
        assert_eq!(admits(&stored, &one, &one), Some(true));
        assert_eq!(admits(&stored, &one, &[("Referer", "r")]), Some(false));
        assert_eq!(admits(&stored, &one, &[("Referer", "x"), ("Origin", "o")]), Some(false));
        assert_eq!(admits(&[("Vary", "Cookie")], &one, &one), None);
        assert_eq!(admits(&[("Vary", "*")], &one, &one), None);
        assert!(Selecting::of(&fields(&[]), false, Conformance::Rfc).selector(&fields(&[])).unwrap().is_any());
    }
}
