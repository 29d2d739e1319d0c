//! PROXY protocol towards servers: the header before a connection's first byte, as the server's line sets it.

use std::sync::Arc;
use terse_config::Place;
use terse_http::proxy_protocol::{self, Writer};
use terse_sample::LogFormat;

/// `send-proxy`, `send-proxy-v2` and their options.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Announcement {
    /// `send-proxy`, `send-proxy-v2`: the version; `None`: no header is sent.
    pub version: Option<AnnouncementVersion>,
    /// `check-send-proxy`: checks send it, whatever else the line sets.
    pub in_checks: bool,
    /// `proxy-v2-options crc32c`
    pub checksum: bool,
    /// `proxy-v2-options authority`
    pub authority: bool,
    /// `proxy-v2-options unique-id`
    pub unique_id: bool,
    /// `proxy-v2-options ssl` and its like.
    pub tls: TlsFields,
    /// `set-proxy-v2-tlv-fmt`, in order.
    pub fields: Vec<AnnouncedField>,
}

/// Opening of each connection to a server.
#[derive(Debug)]
pub struct Manner {
    /// Header of the PROXY protocol.
    pub announcer: Option<Announcer>,
    /// Server name of TLS (SNI).
    pub name: Option<LogFormat>,
    /// Name of a connection in the pool (`pool-conn-name`).
    pub pool_name: Option<LogFormat>,
}

/// Header of the PROXY protocol for a server, its formats compiled.
#[derive(Debug)]
pub struct Announcer {
    /// Settings of the server's line.
    pub told: Announcement,
    /// Fields of version 2: their types, and the formats of their values.
    pub fields: Vec<(u8, LogFormat)>,
}

/// Fields about the client's TLS.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TlsFields {
    /// `ssl`: whether there is any, its version, and whether the client has shown a certificate.
    pub told: bool,
    /// `cert-cn`: the common name of the client's certificate.
    pub name: bool,
    /// `ssl-cipher`: the cipher.
    pub cipher: bool,
    /// `cert-sig`: signature algorithm of our certificate.
    pub signature: bool,
    /// `cert-key`: key algorithm of our certificate.
    pub key: bool,
}

/// A version of the PROXY protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnnouncementVersion {
    /// A line of text.
    V1,
    /// Binary, with fields.
    V2,
}

/// `set-proxy-v2-tlv-fmt(<type>) <format>`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnnouncedField {
    /// Type, 0 to 255.
    pub kind: u8,
    /// Format of its value, not yet parsed.
    pub format: Arc<[u8]>,
    /// Place in the configuration.
    pub place: Place,
}

impl Announcement {
    /// Header of a check's connection between these addresses. There is none, unless `check-send-proxy` or the step
    /// (`asked`) sets it, or requests have it and checks go to the same place. Version 2 marks the connection as the
    /// proxy's own.
    pub(crate) fn of_check(&self, asked: bool, goes_elsewhere: bool, ends: proxy_protocol::Ends) -> Option<Vec<u8>> {
        let asked = asked || self.in_checks;
        let version = match self.version {
            Some(version) if asked || !goes_elsewhere => version,
            None if asked => AnnouncementVersion::V1,
            _ => return None,
        };
        Some(match version {
            AnnouncementVersion::V1 => proxy_protocol::line(ends),
            AnnouncementVersion::V2 => {
                let mut writer = Writer::new(None);
                if self.checksum {
                    writer.checksum();
                }
                if self.tls.told {
                    writer.field(proxy_protocol::kind::SSL, &proxy_protocol::NO_TLS);
                }
                writer.finish()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_announced_where_requests_are() {
        let ends = Some(("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap()));
        let told = |version, in_checks, elsewhere| {
            let announcement = Announcement { version, in_checks, ..Announcement::default() };
            announcement.of_check(false, elsewhere, ends).map(|head| head.len())
        };
        let (line, binary) = ("PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n".len(), 16);
        assert_eq!(told(None, false, false), None);
        assert_eq!(told(None, true, true), Some(line));
        assert_eq!(told(Some(AnnouncementVersion::V1), false, false), Some(line));
        assert_eq!(told(Some(AnnouncementVersion::V1), false, true), None);
        assert_eq!(told(Some(AnnouncementVersion::V2), true, true), Some(binary));
    }
}
