//! Keywords of a `server` line for the resolution of its name.

use super::server_words::{Draft, done};
use crate::settings::InitialAddress;
use std::net::IpAddr;
use terse_config::Fault;
use terse_config::params::Param;

/// Table of keywords.
pub(super) const KEYWORDS: &[Param<Draft>] = &[
    done(
        "init-addr",
        "{ last | libc | none | <ip> },...",
        "Says where its first address comes from: 'none' starts it down.",
        |args, draft| {
            let mut methods = Vec::new();
            for method in args.need("<methods>")?.split(',') {
                methods.push(match method {
                    "last" => InitialAddress::Last,
                    "libc" => InitialAddress::System,
                    "none" => InitialAddress::None,
                    ip => match ip.parse() {
                        Ok(ip) => InitialAddress::Ip(ip),
                        Err(_) => {
                            return Err(args
                                .fault(format!("unknown method '{ip}'"))
                                .hint("known are last, libc, none and addresses"));
                        }
                    },
                });
            }
            draft.server.resolution.init = methods;
            Ok(())
        },
    ),
    done("resolvers", "<name>", "Names the section of name servers that are asked for its name at run time.", |args, draft| {
        let place = args.place(&draft.line);
        draft.server.resolution.resolvers = Some((args.need("<name>")?.into(), place));
        Ok(())
    }),
    done(
        "resolve-opts",
        "<option>[,<option>]...",
        "Says what is made of answers: allow-dup-ip, prevent-dup-ip, ignore-weight.",
        |args, draft| {
            for option in args.need("<options>")?.split(',') {
                match option {
                    "allow-dup-ip" => draft.server.resolution.shares_addresses = true,
                    "prevent-dup-ip" => draft.server.resolution.shares_addresses = false,
                    "ignore-weight" => draft.server.resolution.ignores_weights = true,
                    _ => {
                        return Err(args
                            .fault(format!("unknown option '{option}'"))
                            .hint("known are allow-dup-ip, prevent-dup-ip and ignore-weight"));
                    }
                }
            }
            Ok(())
        },
    ),
    done("resolve-prefer", "{ ipv4 | ipv6 }", "Prefers one family of addresses; IPv6 by default.", |args, draft| {
        draft.server.resolution.prefer_v4 = match args.need("<family>")? {
            "ipv4" => true,
            "ipv6" => false,
            other => return Err(args.fault(format!("'{other}' is neither 'ipv4' nor 'ipv6'"))),
        };
        Ok(())
    }),
    done("resolve-net", "<network>[,<network>]...", "Prefers addresses of these networks.", |args, draft| {
        let list = args.need("<networks>")?;
        let networks = list.split(',').map(|text| network(text).ok_or_else(|| args.fault(format!("'{text}' is not a network"))));
        draft.server.resolution.networks = networks.collect::<Result<Vec<_>, Fault>>()?.into();
        Ok(())
    }),
];

/// `10.0.0.0/8`, or an address alone.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
    let ip: IpAddr = ip.parse().ok()?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
    (bits <= most).then_some((ip, bits))
}
