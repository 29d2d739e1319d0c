//! Errors of certificates that do not end a handshake: `crt-ignore-err`, `ca-ignore-err`.

/// A set of X.509 verification errors, by OpenSSL's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Ignored(u128);

/// OpenSSL's numbers go up to here.
const MOST: i32 = 127;

impl Ignored {
    /// `all`, or numbers and names separated by commas.
    ///
    /// # Errors
    /// A word that is neither.
    pub fn parse(list: &str) -> Result<Ignored, String> {
        if list == "all" {
            return Ok(Ignored(u128::MAX));
        }
        let mut set = 0;
        for word in list.split(',') {
            let by_name = NAMES.iter().find(|(name, _)| *name == word || name.strip_prefix("X509_V_ERR_") == Some(word));
            let number = by_name.map(|(_, number)| *number).or_else(|| word.parse().ok().filter(|n| (1..=MOST).contains(n)));
            set |=
                1 << number.ok_or_else(|| format!("'{word}' is not 'all', nor the number or name of an error of certificates"))?;
        }
        Ok(Ignored(set))
    }

    /// Whether an error is in it.
    pub fn has(self, error: i32) -> bool {
        (0..=MOST).contains(&error) && self.0 >> error & 1 == 1
    }
}

/// OpenSSL's name of a verification error.
pub fn name_of(error: i64) -> Option<&'static str> {
    match error {
        0 => Some("X509_V_OK"),
        _ => NAMES.iter().find(|(_, number)| i64::from(*number) == error).map(|(name, _)| *name),
    }
}

/// OpenSSL's names and numbers (`x509_vfy.h`).
const NAMES: &[(&str, i32)] = &[
    ("X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT", 2),
    ("X509_V_ERR_UNABLE_TO_GET_CRL", 3),
    ("X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE", 4),
    ("X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE", 5),
    ("X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY", 6),
    ("X509_V_ERR_CERT_SIGNATURE_FAILURE", 7),
    ("X509_V_ERR_CRL_SIGNATURE_FAILURE", 8),
    ("X509_V_ERR_CERT_NOT_YET_VALID", 9),
    ("X509_V_ERR_CERT_HAS_EXPIRED", 10),
    ("X509_V_ERR_CRL_NOT_YET_VALID", 11),
    ("X509_V_ERR_CRL_HAS_EXPIRED", 12),
    ("X509_V_ERR_ERROR_IN_CERT_NOT_BEFORE_FIELD", 13),
    ("X509_V_ERR_ERROR_IN_CERT_NOT_AFTER_FIELD", 14),
    ("X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD", 15),
    ("X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD", 16),
    ("X509_V_ERR_OUT_OF_MEM", 17),
    ("X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT", 18),
    ("X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN", 19),
    ("X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY", 20),
    ("X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE", 21),
    ("X509_V_ERR_CERT_CHAIN_TOO_LONG", 22),
    ("X509_V_ERR_CERT_REVOKED", 23),
    ("X509_V_ERR_INVALID_CA", 24),
    ("X509_V_ERR_PATH_LENGTH_EXCEEDED", 25),
    ("X509_V_ERR_INVALID_PURPOSE", 26),
    ("X509_V_ERR_CERT_UNTRUSTED", 27),
    ("X509_V_ERR_CERT_REJECTED", 28),
    ("X509_V_ERR_SUBJECT_ISSUER_MISMATCH", 29),
    ("X509_V_ERR_AKID_SKID_MISMATCH", 30),
    ("X509_V_ERR_AKID_ISSUER_SERIAL_MISMATCH", 31),
    ("X509_V_ERR_KEYUSAGE_NO_CERTSIGN", 32),
    ("X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER", 33),
    ("X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION", 34),
    ("X509_V_ERR_KEYUSAGE_NO_CRL_SIGN", 35),
    ("X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION", 36),
    ("X509_V_ERR_INVALID_NON_CA", 37),
    ("X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED", 38),
    ("X509_V_ERR_KEYUSAGE_NO_DIGITAL_SIGNATURE", 39),
    ("X509_V_ERR_PROXY_CERTIFICATES_NOT_ALLOWED", 40),
    ("X509_V_ERR_INVALID_EXTENSION", 41),
    ("X509_V_ERR_INVALID_POLICY_EXTENSION", 42),
    ("X509_V_ERR_NO_EXPLICIT_POLICY", 43),
    ("X509_V_ERR_DIFFERENT_CRL_SCOPE", 44),
    ("X509_V_ERR_UNSUPPORTED_EXTENSION_FEATURE", 45),
    ("X509_V_ERR_UNNESTED_RESOURCE", 46),
    ("X509_V_ERR_PERMITTED_VIOLATION", 47),
    ("X509_V_ERR_EXCLUDED_VIOLATION", 48),
    ("X509_V_ERR_SUBTREE_MINMAX", 49),
    ("X509_V_ERR_APPLICATION_VERIFICATION", 50),
    ("X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE", 51),
    ("X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX", 52),
    ("X509_V_ERR_UNSUPPORTED_NAME_SYNTAX", 53),
    ("X509_V_ERR_CRL_PATH_VALIDATION_ERROR", 54),
    ("X509_V_ERR_PATH_LOOP", 55),
    ("X509_V_ERR_HOSTNAME_MISMATCH", 62),
    ("X509_V_ERR_EMAIL_MISMATCH", 63),
    ("X509_V_ERR_IP_ADDRESS_MISMATCH", 64),
    ("X509_V_ERR_EE_KEY_TOO_SMALL", 66),
    ("X509_V_ERR_CA_KEY_TOO_SMALL", 67),
    ("X509_V_ERR_CA_MD_TOO_WEAK", 68),
    ("X509_V_ERR_INVALID_CALL", 69),
    ("X509_V_ERR_STORE_LOOKUP", 70),
    ("X509_V_ERR_NO_VALID_SCTS", 71),
    ("X509_V_ERR_PROXY_SUBJECT_NAME_VIOLATION", 72),
    ("X509_V_ERR_OCSP_VERIFY_NEEDED", 73),
    ("X509_V_ERR_OCSP_VERIFY_FAILED", 74),
    ("X509_V_ERR_OCSP_CERT_UNKNOWN", 75),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_all() {
        let set = Ignored::parse("10,X509_V_ERR_CERT_REVOKED,UNABLE_TO_GET_CRL").unwrap();
        assert!([3, 10, 23].iter().all(|n| set.has(*n)) && !set.has(18) && !set.has(-1) && !set.has(200));
        assert!(Ignored::parse("all").unwrap().has(18));
        for wrong in ["", "x", "0", "128", "10,"] {
            assert!(Ignored::parse(wrong).is_err(), "{wrong}");
        }
    }
}
