//! The keywords of `log-forward` sections, but `log`, which is that of proxies.

use super::{DatagramBind, ForwardSettings, HostRule};
use crate::keywords::bind;
use crate::log::Address;
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections};

/// The table.
pub const KEYWORDS: &[Keyword] = &[
    done(
        "bind",
        "<address>[,<address>]... [<parameter>]...",
        "Takes syslog messages over streams, framed in either way.",
        bind_streams,
    ),
    done("dgram-bind", "<address>[,<address>]... [<parameter>]...", "Takes syslog messages over UDP.", bind_datagrams),
    done("backlog", "<connections>", "How many connections the kernel may hold.", backlog),
    done("maxconn", "<connections>", "Serves at most so many connections at a time, 10 by default.", maxconn),
    done("timeout client", "<time>", "Closes connections that are silent for so long.", client_timeout),
    switch("option dont-parse-log", "", "Passes messages on as they are.", |args, scope| {
        set(args, scope, |settings| &mut settings.verbatim)
    }),
    switch("option assume-rfc6587-ntf", "", "Takes what comes over streams as lines, whatever they begin with.", |args, scope| {
        set(args, scope, |settings| &mut settings.lines_only)
    }),
    switch("option host", "{ replace | fill | keep | append }", "Says which host messages are from that are passed on.", host),
];

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::LOG_FORWARD, arguments, summary, kind: Kind::Done(parser) }
}

const fn switch(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { kind: Kind::Switch(parser), ..done(name, arguments, summary, parser) }
}

fn bind_streams(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let binds = bind::read(args, scope, &mut |_| Ok(false))?;
    settings(scope).binds.extend(binds);
    Ok(())
}

fn bind_datagrams(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let place = args.place(&scope.place);
    let at = args.position();
    let list = args.need_address("<address>")?;
    let (mut interface, mut transparent) = (None, false);
    while let Some(word) = args.take() {
        match word {
            "interface" => interface = Some(args.need("<name>")?.to_owned()),
            "transparent" => transparent = true,
            "name" | "id" => {
                args.need("<name>")?;
                args.changes_nothing("datagrams are not counted line by line");
            }
            other => {
                let fault = args.fault(format!("unknown parameter '{other}'"));
                return Err(fault.hint("known are interface, transparent, name and id"));
            }
        }
    }
    for text in list.split(',') {
        let address = match Address::parse(text, at)? {
            Address::Udp(address) => address,
            Address::UdpName { host, port, v6 } => {
                crate::log::journal::look_up(&host, port, v6).map_err(|reason| Fault::new(at, reason))?
            }
            other => return Err(Fault::new(at, format!("'{other}' is no address of datagrams over IPv4 or IPv6"))),
        };
        let bind = DatagramBind { address, interface: interface.clone(), transparent, place: place.clone() };
        settings(scope).datagrams.push(bind);
    }
    Ok(())
}

fn backlog(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).backlog = u32::try_from(args.integer("<connections>", 1..=i64::from(i32::MAX))?).ok();
    args.end()
}

fn maxconn(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).maxconn = usize::try_from(args.integer("<connections>", 1..=i64::from(i32::MAX))?).unwrap_or(usize::MAX);
    args.end()
}

fn client_timeout(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).client_timeout = Some(args.time("<time>")?);
    args.end()
}

fn host(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let rule = match args.need("<rule>")? {
        "replace" => HostRule::Replace,
        "fill" => HostRule::Fill,
        "keep" => HostRule::Keep,
        "append" => HostRule::Append,
        other => return Err(args.fault(format!("expects 'replace', 'fill', 'keep' or 'append', not '{other}'"))),
    };
    args.end()?;
    settings(scope).host = if scope.negated { HostRule::default() } else { rule };
    Ok(())
}

fn set(args: &mut Args<'_>, scope: &mut Scope<'_>, of: fn(&mut ForwardSettings) -> &mut bool) -> Result<(), Fault> {
    args.end()?;
    *of(settings(scope)) = !scope.negated;
    Ok(())
}

fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut ForwardSettings {
    scope.section.settings.entry()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keywords::tests::{last, said_in};
    use std::time::Duration;

    #[test]
    fn a_section() {
        let lines = "log-forward f\n bind 127.0.0.1:1514,[::1]:1514\n dgram-bind 127.0.0.1:1514,udp6@[::1]:99 interface lo\n maxconn 7\n \
                     timeout client 3s\n option dont-parse-log\n option host append\n option assume-rfc6587-ntf\n backlog 9\n";
        let settings: ForwardSettings = last(lines).settings.take().unwrap();
        assert_eq!((settings.binds.len(), settings.maxconn, settings.backlog), (2, 7, Some(9)));
        assert_eq!(settings.datagrams.iter().map(|bind| bind.address.port()).collect::<Vec<_>>(), [1514, 99]);
        assert_eq!(settings.datagrams[1].interface.as_deref(), Some("lo"));
        assert!(settings.verbatim && settings.lines_only && settings.host == HostRule::Append);
        assert_eq!(settings.client_timeout, Some(Duration::from_secs(3)));
        assert_eq!(ForwardSettings::default().maxconn, 10);
    }

    #[test]
    fn faults() {
        for line in [
            "bind",
            "bind 80",
            "dgram-bind",
            "dgram-bind /run/log",
            "dgram-bind tcp@127.0.0.1:514",
            "dgram-bind 127.0.0.1:514 ssl",
            "maxconn 0",
            "timeout server 1s",
            "option host first",
            "option httplog",
            "mode log",
        ] {
            let said = said_in("log-forward f", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
    }
}
