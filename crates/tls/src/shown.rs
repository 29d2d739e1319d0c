//! Content of a certificate, in the forms of HAProxy's fetches (`ssl_c_s_dn` and its like).

use crate::der;
use crate::dn::Dn;
use openssl::asn1::Asn1TimeRef;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::Id;
use openssl::x509::X509;

/// A certificate that one of the ends has shown.
#[derive(Debug)]
pub struct Shown(pub(crate) X509);

/// A distinguished name that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// The certificate's own.
    Subject,
    /// The issuer's.
    Issuer,
}

impl Shown {
    /// The certificate in DER.
    pub fn der(&self) -> Option<Vec<u8>> {
        self.0.to_der().ok()
    }

    /// Its SHA-1.
    pub fn sha1(&self) -> Option<Vec<u8>> {
        self.0.digest(MessageDigest::sha1()).ok().map(|digest| digest.to_vec())
    }

    /// Its number.
    pub fn serial(&self) -> Option<Vec<u8>> {
        self.0.serial_number().to_bn().ok().map(|number| number.to_vec())
    }

    /// Its version: 3, nearly always.
    pub fn version(&self) -> i64 {
        i64::from(self.0.version()) + 1
    }

    /// Start of its validity: `YYMMDDhhmmssZ`.
    pub fn not_before(&self) -> Option<String> {
        time(self.0.not_before())
    }

    /// End of its validity.
    pub fn not_after(&self) -> Option<String> {
        time(self.0.not_after())
    }

    /// Algorithm of its signature: `RSA-SHA256`.
    pub fn signature_algorithm(&self) -> Option<&'static str> {
        self.0.signature_algorithm().object().nid().short_name().ok()
    }

    /// Kind of its key: `rsaEncryption`.
    pub fn key_algorithm(&self) -> Option<&'static str> {
        match self.0.public_key().ok()?.id() {
            Id::EC => Some("id-ecPublicKey"),
            id => Nid::from_raw(id.as_raw()).short_name().ok(),
        }
    }

    /// Kind and length of its key: `RSA2048`, `EC256`.
    pub fn key_size(&self) -> Option<String> {
        let key = self.0.public_key().ok()?;
        let kind = match key.id() {
            Id::RSA => "RSA",
            Id::EC => "EC",
            Id::DSA => "DSA",
            _ => return None,
        };
        Some(format!("{kind}{}", key.bits()))
    }

    /// A distinguished name of it.
    pub fn dn(&self, whose: Whose) -> Dn<'_> {
        Dn::of(match whose {
            Whose::Subject => self.0.subject_name(),
            Whose::Issuer => self.0.issuer_name(),
        })
    }

    /// Its other names: `DNS:a.example, IP:192.0.2.1`.
    pub fn other_names(&self) -> Option<String> {
        let names = self.0.subject_alt_names()?;
        let text = |name: &openssl::x509::GeneralNameRef| {
            if let Some(dns) = name.dnsname() {
                return Some(format!("DNS:{dns}"));
            }
            if let Some(mail) = name.email() {
                return Some(format!("email:{mail}"));
            }
            if let Some(uri) = name.uri() {
                return Some(format!("URI:{uri}"));
            }
            match name.ipaddress()? {
                [a, b, c, d] => Some(format!("IP Address:{a}.{b}.{c}.{d}")),
                bytes => Some(format!("IP Address:{}", std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))),
            }
        };
        Some(names.iter().filter_map(text).collect::<Vec<_>>().join(", "))
    }

    /// The policies that it was made under: `0.4.0.1862.1.4`.
    pub fn policies(&self) -> Option<Vec<String>> {
        let der = self.der()?;
        let list = der::elements(der::extension(&der, POLICIES)?).next().filter(|list| list.tag == der::SEQUENCE)?;
        // The name of a policy may be followed by its qualifiers.
        let names = der::elements(list.content).filter_map(|policy| der::elements(policy.content).next());
        Some(names.filter(|name| name.tag == der::OBJECT).filter_map(|name| der::dotted(name.content)).collect())
    }
}

/// `Aug 15 14:33:42 2016 GMT`, as OpenSSL writes it, in digits.
fn time(time: &Asn1TimeRef) -> Option<String> {
    let text = time.to_string();
    let mut words = text.split_ascii_whitespace();
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let (day, clock, year) = (words.next()?.parse::<u8>().ok()?, words.next()?, words.next()?);
    let clock: String = clock.split('.').next()?.chars().filter(char::is_ascii_digit).collect();
    Some(format!("{}{month:02}{day:02}{clock}Z", year.get(2..)?))
}

/// RFC 5280 section 4.2.1.4: `certificatePolicies`, 2.5.29.32.
const POLICIES: &[u8] = &[0x55, 0x1d, 0x20];

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kind, pair};

    #[test]
    fn names_and_numbers() {
        let pair = pair(Kind::Rsa, "a, b", &["a.test"]);
        let shown = Shown(X509::from_pem(&pair.certificate).unwrap());
        assert_eq!(shown.dn(Whose::Subject).line().unwrap(), b"/CN=a, b");
        assert_eq!(shown.dn(Whose::Issuer).rfc2253().unwrap(), b"CN=a\\, b");
        assert_eq!(shown.dn(Whose::Subject).entry("CN", 1).unwrap(), b"a, b");
        assert_eq!(shown.dn(Whose::Subject).entry("CN", -1).unwrap(), b"a, b");
        assert_eq!((shown.dn(Whose::Subject).entry("CN", 2), shown.dn(Whose::Subject).entry("OU", 1)), (None, None));
        assert_eq!(
            (shown.version(), shown.key_algorithm(), shown.signature_algorithm()),
            (3, Some("rsaEncryption"), Some("RSA-SHA256"))
        );
        let ends = shown.not_after().unwrap();
        assert!(ends.len() == 13 && ends.ends_with('Z') && ends > shown.not_before().unwrap(), "{ends}");
        assert_eq!(shown.other_names().as_deref(), Some("DNS:a.test"));
        let other_names = [0x55, 0x1d, 0x11];
        assert!(der::extension(&shown.der().unwrap(), &other_names).unwrap().ends_with(b"\x82\x06a.test"));
        assert_eq!(shown.policies(), None);
        assert_eq!((shown.sha1().unwrap().len(), shown.serial().is_some()), (20, true));
    }
}
