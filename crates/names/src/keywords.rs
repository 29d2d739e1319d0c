//! The keywords of `resolvers` sections.

use crate::settings::{DNS_PORT, FamilySettings, NameServer, RESOLV_CONF, ResolversSettings, system_servers};
use std::net::{IpAddr, SocketAddr};
use terse_balance::Resolver;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections};

/// The table.
pub const KEYWORDS: &[Keyword] = &[
    keyword("nameserver", "<name> <address>[:<port>]", "Names a name server; 'tcp@' asks it over TCP.", nameserver),
    keyword("parse-resolv-conf", "", "Takes the name servers of /etc/resolv.conf.", resolv_conf),
    keyword("accepted_payload_size", "<bytes>", "Sizes the largest datagram that is taken, 12 to 65535; 512.", |args, scope| {
        settings(scope).payload_bytes = args.integer("<bytes>", 12..=65535)? as u16;
        Ok(())
    }),
    keyword("resolve_retries", "<number>", "How often a name is asked for before it is given up, 3.", |args, scope| {
        settings(scope).retries = args.integer("<number>", 1..=1000)? as u32;
        Ok(())
    }),
    keyword("timeout resolve", "<time>", "The time between two looks at a name, 1s.", |args, scope| {
        settings(scope).interval = time(args)?;
        Ok(())
    }),
    keyword("timeout retry", "<time>", "How long an answer is waited for, 1s.", |args, scope| {
        settings(scope).patience = time(args)?;
        Ok(())
    }),
    keyword(
        "hold",
        "{ valid | obsolete | nx | refused | timeout | other } <time>",
        "For how long an answer is believed after a worse one.",
        hold,
    ),
    Keyword {
        sections: Sections::GLOBAL,
        ..keyword(
            "dns-accept-family",
            "{ auto | ipv4 | ipv6 }[,...]",
            "Which addresses are asked for; 'auto': IPv6 where the machine can reach it.",
            family,
        )
    },
];

const fn keyword(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::RESOLVERS, arguments, summary, kind: Kind::Done(parser) }
}

fn nameserver(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.need("<name>")?;
    if settings(scope).servers.iter().any(|server| *server.name == *name) {
        return Err(args.fault(format!("'{name}' is the name of another name server of this section")));
    }
    let text = args.need_address("<address>")?;
    let (stream, rest) = match text.split_once('@') {
        None => (false, &*text),
        Some(("udp" | "udp4" | "udp6" | "ipv4" | "ipv6" | "ip" | "dgram+ip" | "dgram+ipv4" | "dgram+ipv6", rest)) => (false, rest),
        Some(("tcp" | "tcp4" | "tcp6" | "stream+ip" | "stream+ipv4" | "stream+ipv6", rest)) => (true, rest),
        Some((kind, _)) => return Err(args.fault(format!("name servers are not reached by '{kind}@'"))),
    };
    let address = address(rest, scope.shared.get::<Resolver>()).ok_or_else(|| args.fault(format!("'{rest}' is not an address")))?;
    settings(scope).servers.push(NameServer { name: name.into(), address, stream });
    Ok(())
}

/// `10.0.0.1`, `10.0.0.1:53`, `[::1]:53`, `::1`, `consul:8600`: a name is looked up by the system, once.
fn address(text: &str, resolver: Option<&Resolver>) -> Option<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Some(SocketAddr::new(ip, DNS_PORT));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, DNS_PORT),
    };
    let found = resolver?.0.as_ref()?(host);
    Some(SocketAddr::new(*found.first()?, port))
}

fn resolv_conf(_: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let text =
        std::fs::read_to_string(RESOLV_CONF).map_err(|error| Fault::new(0, format!("cannot read {RESOLV_CONF}: {error}")))?;
    let found = system_servers(&text);
    if found.is_empty() {
        scope.warn(0, format!("{RESOLV_CONF} names no name server"));
    }
    let settings = settings(scope);
    for server in found {
        if !settings.servers.iter().any(|other| other.address == server.address) {
            settings.servers.push(server);
        }
    }
    Ok(())
}

fn hold(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let status = args.need("<status>")?;
    let of = match status {
        "valid" => &mut settings(scope).hold.valid,
        "obsolete" => &mut settings(scope).hold.obsolete,
        "nx" => &mut settings(scope).hold.absent,
        "refused" => &mut settings(scope).hold.refused,
        "timeout" => &mut settings(scope).hold.timeout,
        "other" => &mut settings(scope).hold.other,
        _ => {
            let known = "known are valid, obsolete, nx, refused, timeout and other";
            return Err(args.fault(format!("unknown status '{status}'")).hint(known));
        }
    };
    *of = args.time("<time>")?;
    Ok(())
}

fn family(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let list = args.need("<families>")?;
    let mut accepted = Some((false, false));
    for family in list.split(',') {
        accepted = match (family, accepted) {
            ("auto", _) | (_, None) => None,
            ("ipv4", Some((_, v6))) => Some((true, v6)),
            ("ipv6", Some((v4, _))) => Some((v4, true)),
            _ => return Err(args.fault(format!("unknown family '{family}'")).hint("known are auto, ipv4 and ipv6")),
        };
    }
    scope.shared.entry::<FamilySettings>().accepted = accepted;
    Ok(())
}

fn time(args: &mut Args<'_>) -> Result<std::time::Duration, Fault> {
    match args.time("<time>")? {
        time if time.is_zero() => Err(args.fault("<time>: names cannot be asked for without a pause")),
        time => Ok(time),
    }
}

fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut ResolversSettings {
    scope.section.settings.entry()
}

#[cfg(test)]
mod tests {
    use super::*;
    use terse_config::{Environment, Loader, Settings, Source};

    fn load(lines: &str) -> (ResolversSettings, Settings, Vec<String>) {
        let loader = Loader { tables: vec![KEYWORDS], environment: Environment::default() };
        let source = Source { name: "test".into(), bytes: format!("{lines}\n").into() };
        let (mut config, diagnostics) = loader.load(&[source], Settings::default());
        let settings = config.sections.last_mut().and_then(|section| section.settings.take()).unwrap_or_default();
        (settings, config.shared, diagnostics.iter().map(|diagnostic| diagnostic.reason.clone()).collect())
    }

    #[test]
    fn a_section_with_everything() {
        let (settings, shared, said) = load(
            "global\ndns-accept-family ipv4\nresolvers r\nnameserver a 10.0.0.1\nnameserver b tcp@[::1]:5353\n\
             accepted_payload_size 8192\nresolve_retries 5\ntimeout resolve 2s\ntimeout retry 300ms\nhold valid 100ms\nhold nx 4s",
        );
        assert_eq!(said, [""; 0]);
        let servers: Vec<_> = settings.servers.iter().map(|server| (server.address.to_string(), server.stream)).collect();
        assert_eq!(servers, [("10.0.0.1:53".to_owned(), false), ("[::1]:5353".to_owned(), true)]);
        assert_eq!((settings.payload_bytes, settings.retries, settings.patience.as_millis()), (8192, 5, 300));
        assert_eq!((settings.hold.valid.as_millis(), settings.hold.absent.as_secs(), settings.hold.other.as_secs()), (100, 4, 30));
        assert_eq!(shared.get::<FamilySettings>().and_then(|family| family.accepted), Some((true, false)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, why) in [
            ("nameserver a", "expects <address>"),
            ("nameserver a nowhere", "'nowhere' is not an address"),
            ("nameserver a quic@10.0.0.1", "'quic@'"),
            ("accepted_payload_size 11", "not between 12 and 65535"),
            ("timeout retry 0", "without a pause"),
            ("hold ever 3s", "unknown status 'ever'"),
            ("resolve_retries many", "not a whole number"),
        ] {
            let said = load(&format!("resolvers r\n{line}")).2.join(";");
            assert!(said.contains(why), "{line}: {said}");
        }
        assert!(load("resolvers r\nnameserver a 10.0.0.1\nnameserver a 10.0.0.2").2[0].contains("another name server"));
    }
}
