//! Keywords of `bind` lines.

use super::Draft;
use super::common::{
    self, accepted, by_version, ciphers, ciphersuites, client_signatures, curves, done, newest, oldest, refused, signatures,
};
use crate::ignored::Ignored;
use crate::settings::{BindTls, CertificateKind, CertificateWord, Passphrase, Verify};
use terse_config::params::Param;
use terse_config::{Args, Fault};

type OnBind = Draft<BindTls>;

/// The table.
pub(super) const TABLE: &[Param<OnBind>] = &[
    done("ssl", "", "Speaks TLS.", |_, draft| {
        draft.tls.enabled = true;
        Ok(())
    }),
    done(
        "crt",
        "<file>",
        "Adds a certificate with its key, or those of a folder. The first one is for unknown names.",
        |args, draft| certificate(args, draft, CertificateKind::Files),
    ),
    done("default-crt", "<file>", "Adds a certificate with its key, for unknown names.", |args, draft| {
        certificate(args, draft, CertificateKind::Default)
    }),
    done("crt-list", "<file>", "Adds the certificates of a list, with names and words of their own.", |args, draft| {
        certificate(args, draft, CertificateKind::List)
    }),
    done("strict-sni", "", "Refuses clients whose name no certificate has.", |_, draft| {
        draft.tls.strict_sni = Some(true);
        Ok(())
    }),
    done("no-strict-sni", "", "Takes 'strict-sni' of the defaults back.", |_, draft| {
        draft.tls.strict_sni = Some(false);
        Ok(())
    }),
    oldest("The oldest version: TLSv1.0, TLSv1.1, TLSv1.2, TLSv1.3. TLSv1.2 by default."),
    newest(),
    by_version("no-sslv3", "SSL 3.0 is never spoken."),
    by_version("no-tlsv10", "TLS 1.0 is not spoken."),
    by_version("no-tlsv11", "TLS 1.1 is not spoken."),
    by_version("no-tlsv12", "TLS 1.2 is not spoken."),
    by_version("no-tlsv13", "TLS 1.3 is not spoken."),
    refused("force-sslv3", "", "Nothing but SSL 3.0 is spoken.", "the system's OpenSSL is built without it"),
    by_version("force-tlsv10", "Nothing but TLS 1.0 is spoken."),
    by_version("force-tlsv11", "Nothing but TLS 1.1 is spoken."),
    by_version("force-tlsv12", "Nothing but TLS 1.2 is spoken."),
    by_version("force-tlsv13", "Nothing but TLS 1.3 is spoken."),
    ciphers(),
    ciphersuites(),
    curves(),
    done("ecdhe", "<curve>", "The one group of the key exchange.", |args, draft| {
        draft.tls.own.common.curves = common::list(args, "<curve>")?;
        Ok(())
    }),
    signatures(),
    client_signatures("The same of clients' certificates."),
    done(
        "alpn",
        "<protocols>",
        "Protocols that are offered; by 'mode http' those under which HTTP/1 is spoken, so not h2.",
        |args, draft| {
            draft.tls.own.alpn = common::protocols(args)?;
            Ok(())
        },
    ),
    done("no-alpn", "", "Offers no protocols.", |_, draft| {
        draft.tls.own.alpn = Some(Vec::new());
        Ok(())
    }),
    accepted("npn", "<protocols>", "Offers protocols the old way.", "no client has NPN any more; 'alpn' took its place"),
    done("verify", "<how>", "Whether clients show certificates: none, optional, required.", |args, draft| {
        draft.tls.own.verify = match args.need("<how>")? {
            "none" => Some(Verify::None),
            "optional" => Some(Verify::Optional),
            "required" => Some(Verify::Required),
            other => return Err(args.fault(format!("'{other}' is neither 'none' nor 'optional' nor 'required'"))),
        };
        Ok(())
    }),
    done("ca-file", "<file>", "Who signs clients' certificates: a file, a folder or '@system-ca'.", |args, draft| {
        draft.tls.own.ca_file = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("ca-verify-file", "<file>", "The same, whose names are not told to clients.", |args, draft| {
        draft.tls.own.ca_verify_file = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("crl-file", "<file>", "Lists of revoked certificates of clients.", |args, draft| {
        draft.tls.own.crl_file = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("no-ca-names", "", "Clients are not told who may sign their certificates.", |_, draft| {
        draft.tls.own.hides_authorities = true;
        Ok(())
    }),
    done("crt-ignore-err", "<errors>", "Errors of a client's own certificate that do not end the handshake.", |args, draft| {
        draft.tls.own.crt_ignored = Ignored::parse(args.need("<errors>")?).map_err(|reason| args.fault(reason))?;
        Ok(())
    }),
    done("ca-ignore-err", "<errors>", "Errors of the certificates above it that do not end the handshake.", |args, draft| {
        draft.tls.own.ca_ignored = Ignored::parse(args.need("<errors>")?).map_err(|reason| args.fault(reason))?;
        Ok(())
    }),
    done("no-tls-tickets", "", "Sessions are remembered here, not in tickets of clients.", |_, draft| {
        draft.tls.own.common.tickets = Some(false);
        Ok(())
    }),
    done("tls-tickets", "", "Takes 'no-tls-tickets' of the defaults back.", |_, draft| {
        draft.tls.own.common.tickets = Some(true);
        Ok(())
    }),
    done("prefer-client-ciphers", "", "The client's first cipher is taken, not ours.", |_, draft| {
        draft.tls.own.common.client_chooses = true;
        Ok(())
    }),
    done(
        "tls-compression",
        "{ forbid | detect | allow }",
        "Whether records are compressed (up to TLS 1.2): forbid without it; detect: only says which clients offer it.",
        |args, draft| common::records(args, &mut draft.tls).map(drop),
    ),
    done("allow-0rtt", "", "Takes early data: requests that come ahead of the handshake of TLS 1.3.", |_, draft| {
        draft.tls.own.takes_early = true;
        Ok(())
    }),
    accepted("ktls", "<on>", "Leaves records to the kernel.", "records are made here: the bytes are the same"),
    done(
        "tls-ticket-keys",
        "<file>",
        "Keys of tickets that processes share: at least three lines, each 48 or each 80 bytes in base64.",
        |args, draft| {
            draft.tls.ticket_keys = Some(common::file(args, &draft.line)?);
            Ok(())
        },
    ),
    done(
        "ocsp-update",
        "{ on | off }",
        "Whether answers about the states of its certificates are fetched; as 'ocsp-update.mode' has it by default.",
        |args, draft| {
            draft.tls.ocsp_update = Some(common::on_off(args)?);
            Ok(())
        },
    ),
    done(
        "generate-certificates",
        "",
        "Makes certificates for names that none has, signed by that of 'ca-sign-file'.",
        |_, draft| {
            draft.tls.generates = true;
            Ok(())
        },
    ),
    done("ca-sign-file", "<file>", "Who signs made certificates: a certificate and its key.", |args, draft| {
        draft.tls.ca_sign_file = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("ca-sign-pass", "<password>", "What that key is encrypted with.", |args, draft| {
        draft.tls.ca_sign_pass = Some(Passphrase(args.need("<password>")?.into()));
        Ok(())
    }),
    refused("ech", "<folder>", "Encrypted hellos.", "the system's OpenSSL has none"),
];

fn certificate(args: &mut Args<'_>, draft: &mut OnBind, kind: CertificateKind) -> Result<(), Fault> {
    let file = common::file(args, &draft.line)?;
    draft.tls.certificates.push(CertificateWord { file, kind });
    Ok(())
}
