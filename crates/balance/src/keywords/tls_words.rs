//! The words of a `server` line that concern TLS.

use super::server_words::Draft;
use terse_config::params::{Param, ParamKind};

/// The table.
pub(super) const KEYWORDS: &[Param<Draft>] = &[
    tls("ssl", "", "Speaks TLS."),
    tls("verify", "{ none | required }", "Says whether its certificate is verified."),
    tls("verifyhost", "<name>", "Says which name its certificate must have."),
    tls("crt", "<file>", "Names the certificate that is shown to it."),
    tls("ca-file", "<file>", "Names the authorities that are trusted."),
    tls("crl-file", "<file>", "Names the list of revoked certificates."),
    tls("sni", "<expression>", "Says which name is asked for."),
    tls("sni-auto", "", "Asks for the name of the request."),
    tls("alpn", "<protocols>", "Offers protocols."),
    tls("npn", "<protocols>", "Offers protocols, the old way."),
    tls("allow-0rtt", "", "Sends early data."),
    tls("ciphers", "<ciphers>", "Limits ciphers up to TLS 1.2."),
    tls("ciphersuites", "<ciphers>", "Limits ciphers of TLS 1.3."),
    tls("curves", "<curves>", "Limits curves."),
    tls("sigalgs", "<algorithms>", "Limits signatures."),
    tls("client-sigalgs", "<algorithms>", "Limits signatures of the certificate that is shown."),
    tls("ssl-min-ver", "<version>", "Sets the oldest version."),
    tls("ssl-max-ver", "<version>", "Sets the newest version."),
    tls("ssl-reuse", "", "Resumes sessions."),
    tls("tls-tickets", "", "Uses tickets."),
    tls("renegotiate", "", "Allows renegotiation."),
    tls("ktls", "{ on | off }", "Leaves the records to the kernel."),
    tls("force-sslv3", "", "Speaks SSLv3 alone."),
    tls("force-tlsv10", "", "Speaks TLS 1.0 alone."),
    tls("force-tlsv11", "", "Speaks TLS 1.1 alone."),
    tls("force-tlsv12", "", "Speaks TLS 1.2 alone."),
    tls("force-tlsv13", "", "Speaks TLS 1.3 alone."),
    tls("check-ssl", "", "Checks by TLS."),
    tls("check-sni", "<name>", "Says which name checks ask for."),
    tls("check-sni-auto", "", "Lets checks ask for the name of their request."),
    tls("check-alpn", "<protocols>", "Offers protocols in checks."),
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

const fn tls(name: &'static str, arguments: &'static str, summary: &'static str) -> Param<Draft> {
    Param { name, arguments, summary, kind: ParamKind::Refused("TLS comes later") }
}

const fn off(name: &'static str) -> Param<Draft> {
    Param {
        name,
        arguments: "",
        summary: "Switches something of TLS off.",
        kind: ParamKind::Accepted("there is no TLS to servers"),
    }
}
