//! The words of a `server` line that concern TLS.

use super::server_words::{Draft, refused};
use terse_config::params::{Param, ParamKind};

/// The table.
pub(super) const KEYWORDS: &[Param<Draft>] = &[
    tls("ssl", ""),
    tls("verify", "{ none | required }"),
    tls("verifyhost", "<name>"),
    tls("crt", "<file>"),
    tls("ca-file", "<file>"),
    tls("crl-file", "<file>"),
    tls("sni", "<expression>"),
    tls("sni-auto", ""),
    tls("alpn", "<protocols>"),
    tls("npn", "<protocols>"),
    tls("allow-0rtt", ""),
    tls("ciphers", "<ciphers>"),
    tls("ciphersuites", "<ciphers>"),
    tls("curves", "<curves>"),
    tls("sigalgs", "<algorithms>"),
    tls("client-sigalgs", "<algorithms>"),
    tls("ssl-min-ver", "<version>"),
    tls("ssl-max-ver", "<version>"),
    tls("ssl-reuse", ""),
    tls("tls-tickets", ""),
    tls("renegotiate", ""),
    tls("ktls", "{ on | off }"),
    tls("force-sslv3", ""),
    tls("force-tlsv10", ""),
    tls("force-tlsv11", ""),
    tls("force-tlsv12", ""),
    tls("force-tlsv13", ""),
    tls("check-ssl", ""),
    tls("check-sni", "<name>"),
    tls("check-sni-auto", ""),
    tls("check-alpn", "<protocols>"),
    off("no-ssl"),
    off("no-check-ssl"),
    off("no-check-sni-auto"),
    off("no-sni-auto"),
    off("no-verifyhost"),
    off("no-ssl-reuse"),
    off("no-tls-tickets"),
    off("no-renegotiate"),
    off("no-sslv3"),
    off("no-tlsv10"),
    off("no-tlsv11"),
    off("no-tlsv12"),
    off("no-tlsv13"),
];

const fn tls(name: &'static str, arguments: &'static str) -> Param<Draft> {
    refused(name, arguments, "TLS comes later")
}

const fn off(name: &'static str) -> Param<Draft> {
    Param {
        name,
        arguments: "",
        summary: "Switches something of TLS off.",
        kind: ParamKind::Accepted("there is no TLS to servers"),
    }
}
