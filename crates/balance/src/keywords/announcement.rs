//! The words of a `server` line that speak of the PROXY protocol.

use super::server_words::Draft;
use crate::announcement::{AnnouncedField, AnnouncementVersion};
use terse_config::params::{Param, ParamKind, ParamParser};
use terse_config::{Args, Fault};

/// The table.
pub(super) const KEYWORDS: &[Param<Draft>] = &[
    done("send-proxy", "", "Tells the client's address by version 1 of the PROXY protocol.", |_, draft| {
        version(draft, Some(AnnouncementVersion::V1))
    }),
    done("send-proxy-v2", "", "Tells the client's address by version 2 of the PROXY protocol.", |_, draft| {
        version(draft, Some(AnnouncementVersion::V2))
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
    done("proxy-v2-options", "<option>[,<option>]...", "Says what version 2 tells: authority, crc32c, unique-id.", options),
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
            "ssl" | "cert-cn" | "ssl-cipher" | "cert-sig" | "cert-key" => {
                return Err(args.fault(format!("'{option}' is not supported: TLS comes later")));
            }
            _ => return Err(args.fault(format!("unknown option '{option}'")).hint("known are authority, crc32c and unique-id")),
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
