//! Keywords of `server` lines.

use super::Draft;
use super::common::{
    self, accepted, by_version, ciphers, ciphersuites, client_signatures, curves, done, newest, oldest, refused, signatures,
};
use crate::settings::{FileName, Policy, ServerTls};
use terse_config::params::Param;

type OnServer = Draft<ServerTls>;

/// A keyword without arguments.
macro_rules! switch {
    ($name:literal, $summary:literal, $set:expr) => {
        done($name, "", $summary, |_, draft| {
            let set: fn(&mut OnServer) = $set;
            set(draft);
            Ok(())
        })
    };
}

/// The table.
pub(super) const TABLE: &[Param<OnServer>] = &[
    switch!("ssl", "Speaks TLS.", |draft| (draft.tls.enabled, draft.tls.declined) = (true, None)),
    switch!("no-ssl", "Takes 'ssl' back.", |draft| {
        draft.tls.declined = Some(draft.tls.enabled || draft.tls.declined == Some(true));
        draft.tls.enabled = false;
    }),
    done("verify", "<how>", "Whether its certificate is verified: none, required. It is, where nothing is said.", |args, draft| {
        draft.tls.verify = match args.need("<how>")? {
            "none" => Some(false),
            "required" => Some(true),
            other => return Err(args.fault(format!("'{other}' is neither 'none' nor 'required'"))),
        };
        Ok(())
    }),
    done("verifyhost", "<name>", "The name that its certificate must have, whatever 'sni' asks for.", |args, draft| {
        draft.tls.verify_host = common::list(args, "<name>")?;
        Ok(())
    }),
    switch!("no-verifyhost", "Takes 'verifyhost' back.", |draft| draft.tls.verify_host = None),
    done("ca-file", "<file>", "Who signs its certificate: a file, a folder or '@system-ca'.", |args, draft| {
        draft.tls.ca_file = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("crl-file", "<file>", "Lists of revoked certificates.", |args, draft| {
        draft.tls.crl_file = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("crt", "<file>", "The certificate that it is shown if it asks for one, with its key.", |args, draft| {
        draft.tls.certificate = Some(common::file(args, &draft.line)?);
        Ok(())
    }),
    done("sni", "<expression>", "The name that it is asked for, such as 'req.hdr(host)' or 'str(a.example)'.", |args, draft| {
        let place = args.place(&draft.line);
        draft.tls.sni = Some(FileName { name: args.need("<expression>")?.into(), place });
        Ok(())
    }),
    switch!("sni-auto", "Where there is no 'sni', it is asked for the host of the request. The default.", |draft| draft
        .tls
        .no_sni_auto =
        false),
    switch!("no-sni-auto", "Where there is no 'sni', it is asked for no name.", |draft| draft.tls.no_sni_auto = true),
    done("alpn", "<protocols>", "Protocols that it is offered, such as 'h2,http/1.1'; none by default.", |args, draft| {
        draft.tls.alpn = common::protocols(args)?;
        Ok(())
    }),
    switch!("no-alpn", "Takes 'alpn' back.", |draft| draft.tls.alpn = None),
    accepted("npn", "<protocols>", "Offers protocols the old way.", "no server has NPN any more; 'alpn' took its place"),
    oldest("The oldest version: TLSv1.0, TLSv1.1, TLSv1.2, TLSv1.3."),
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
    signatures(),
    client_signatures("The same of the certificate that it is shown."),
    switch!("ssl-reuse", "Resumes sessions. The default.", |draft| draft.tls.forgets_sessions = false),
    switch!("no-ssl-reuse", "Each connection makes a new session.", |draft| draft.tls.forgets_sessions = true),
    switch!("tls-tickets", "Takes tickets. The default.", |draft| draft.tls.common.tickets = Some(true)),
    switch!("no-tls-tickets", "Takes no tickets.", |draft| draft.tls.common.tickets = Some(false)),
    switch!("renegotiate", "Renegotiates when it asks for that. The default.", |draft| draft.tls.common.renegotiates = Some(true)),
    switch!("no-renegotiate", "Never renegotiates.", |draft| draft.tls.common.renegotiates = Some(false)),
    done(
        "tls-compression",
        "{ forbid | allow }",
        "Whether compression of records is offered (up to TLS 1.2): forbid without it.",
        |args, draft| match common::records(args, &mut draft.tls)? {
            Policy::Detect => Err(args.fault("'detect' is for 'bind': a server says what it takes only where that is offered")),
            Policy::Forbid | Policy::Allow => Ok(()),
        },
    ),
    switch!("allow-0rtt", "Sends safe requests ahead of the handshake of TLS 1.3, as early data.", |draft| draft.tls.sends_early =
        true),
    accepted("ktls", "<on>", "Leaves records to the kernel.", "records are made here: the bytes are the same"),
    switch!("check-ssl", "Checks over TLS, also where requests go without it or checks go elsewhere.", |draft| draft.tls.check =
        Some(true)),
    switch!("no-check-ssl", "Takes 'check-ssl' back.", |draft| draft.tls.check = None),
    done("check-sni", "<name>", "The name that checks ask for.", |args, draft| {
        draft.tls.check_sni = common::list(args, "<name>")?;
        Ok(())
    }),
    switch!("check-sni-auto", "Checks ask for the host of their request, where there is no 'check-sni'. The default.", |draft| {
        draft.tls.no_check_sni_auto = false;
    }),
    switch!("no-check-sni-auto", "They ask for no name.", |draft| draft.tls.no_check_sni_auto = true),
    done("check-alpn", "<protocols>", "Protocols that checks offer; those of 'alpn' by default.", |args, draft| {
        draft.tls.check_alpn = common::protocols(args)?;
        Ok(())
    }),
];
