//! Keywords of a `server` line for the PROXY protocol.

use super::server_words::Draft;
use crate::announcement::{AnnouncedField, AnnouncementVersion, TlsFields};
use terse_config::params::{Param, ParamKind, ParamParser};
use terse_config::{Args, Fault};

/// Table of keywords.
pub(super) const KEYWORDS: &[Param<Draft>] = &[
    done("send-proxy", "", "Tells the client's address by version 1 of the PROXY protocol.", |_, draft| {
        version(draft, Some(AnnouncementVersion::V1))
    }),
    done("send-proxy-v2", "", "Tells the client's address by version 2 of the PROXY protocol.", |_, draft| {
        version(draft, Some(AnnouncementVersion::V2))
    }),
    done("send-proxy-v2-ssl", "", "The same, and what is known of the client's TLS.", |_, draft| {
        draft.server.announcement.tls.told = true;
        version(draft, Some(AnnouncementVersion::V2))
    }),
    done("send-proxy-v2-ssl-cn", "", "The same, and the common name of the client's certificate.", |_, draft| {
        (draft.server.announcement.tls.told, draft.server.announcement.tls.name) = (true, true);
        version(draft, Some(AnnouncementVersion::V2))
    }),
    done("no-send-proxy-v2-ssl", "", "Takes 'send-proxy-v2-ssl' back.", |_, draft| {
        draft.server.announcement.tls = TlsFields::default();
        version(draft, None)
    }),
    done("no-send-proxy-v2-ssl-cn", "", "Takes 'send-proxy-v2-ssl-cn' back.", |_, draft| {
        draft.server.announcement.tls = TlsFields::default();
        version(draft, None)
    }),
    done("no-send-proxy", "", "Takes 'send-proxy' back.", |_, draft| version(draft, None)),
    done("no-send-proxy-v2", "", "Takes 'send-proxy-v2' back.", |_, draft| version(draft, None)),
    done("check-send-proxy", "", "Announces checks, too, wherever they go.", |_, draft| {
        draft.server.announcement.in_checks = true;
        Ok(())
    }),
    done("no-check-send-proxy", "", "Takes 'check-send-proxy' back.", |_, draft| {
        draft.server.announcement.in_checks = false;
        Ok(())
    }),
    done(
        "proxy-v2-options",
        "<option>[,<option>]...",
        "Says what version 2 tells: authority, cert-cn, cert-key, cert-sig, crc32c, ssl, ssl-cipher, unique-id.",
        options,
    ),
    done("set-proxy-v2-tlv-fmt(", "<type>) <format>", "Adds a field of this type to version 2, such as 0xE1.", field),
];

fn version(draft: &mut Draft, version: Option<AnnouncementVersion>) -> Result<(), Fault> {
    draft.server.announcement.version = version;
    Ok(())
}

fn options(args: &mut Args<'_>, draft: &mut Draft) -> Result<(), Fault> {
    let announcement = &mut draft.server.announcement;
    for option in args.need("<options>")?.split(',') {
        match option {
            "crc32c" => announcement.checksum = true,
            "authority" => announcement.authority = true,
            "unique-id" => announcement.unique_id = true,
            "ssl" => announcement.tls.told = true,
            // Each of these is a field within that of TLS.
            "cert-cn" => (announcement.tls.told, announcement.tls.name) = (true, true),
            "ssl-cipher" => (announcement.tls.told, announcement.tls.cipher) = (true, true),
            "cert-sig" => (announcement.tls.told, announcement.tls.signature) = (true, true),
            "cert-key" => (announcement.tls.told, announcement.tls.key) = (true, true),
            _ => {
                let hint = "known are authority, cert-cn, cert-key, cert-sig, crc32c, ssl, ssl-cipher and unique-id";
                return Err(args.fault(format!("unknown option '{option}'")).hint(hint));
            }
        }
    }
    Ok(())
}

fn field(args: &mut Args<'_>, draft: &mut Draft) -> Result<(), Fault> {
    let kind = args.taken().split_once('(').and_then(|(_, inside)| inside.strip_suffix(')')).unwrap_or_default();
    let number = match kind.strip_prefix("0x").or_else(|| kind.strip_prefix("0X")) {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None => kind.parse().ok(),
    };
    let kind = number.ok_or_else(|| args.fault(format!("'{kind}' is not a type of fields: expects a number from 0 to 255")))?;
    let place = args.place(&draft.line);
    // A field may be empty.
    let format = args.rest().first().map(|word| word.bytes.as_slice().into()).unwrap_or_default();
    args.take();
    draft.server.announcement.fields.push(AnnouncedField { kind, format, place });
    Ok(())
}

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: ParamParser<Draft>) -> Param<Draft> {
    Param { name, arguments, summary, kind: ParamKind::Done(parser) }
}
