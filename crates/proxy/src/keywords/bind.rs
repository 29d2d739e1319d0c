//! `bind`: addresses of a frontend's listeners.

mod address;
mod parameters;
mod workers;

use super::{done, in_front, settings};
use crate::settings::BindSettings;
use terse_config::params::{self, Standing};
use terse_config::{Args, Fault, Keyword, Place, Scope, Sections, reference};
use terse_tls::BindTls;

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[Keyword {
    sections: Sections::PROXY_ONLY,
    ..done(
        "bind",
        "<address>[,<address>]... [<parameter>]...",
        "Listens on addresses: '[<host>]:<port>[-<last>]', '/<path>', 'unix@<path>', 'abns@<name>', 'abnsz@<name>', 'fd@<number>'.",
        bind,
    )
}];

fn bind(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let binds = read(args, scope, &mut |_| Ok(false))?;
    if in_front(scope) {
        settings(scope).binds.extend(binds);
    }
    Ok(())
}

/// Parses addresses and parameters up to the end of the line. Other lines with listeners have parameters beside those of
/// `bind`: `own` is called first for each keyword, and returns whether it has taken it.
pub fn read(args: &mut Args<'_>, scope: &Scope<'_>, own: Own<'_>) -> Result<Vec<BindSettings>, Fault> {
    read_on(args, scope, own, blank)
}

/// The same, on top of settings that `begin` makes; it is given the line's place.
pub fn read_on(
    args: &mut Args<'_>,
    scope: &Scope<'_>,
    own: Own<'_>,
    begin: impl FnOnce(Place) -> BindSettings,
) -> Result<Vec<BindSettings>, Fault> {
    let place = scope.place.at(args.rest().first().map_or_else(|| scope.place.span.clone(), |word| word.span.clone()));
    let list = args.need_address("<address>")?;
    let addresses = address::expand(&list).map_err(|reason| match list.parse::<u16>() {
        Ok(port) => args.fault(reason).hint(format!("write ':{port}'")),
        Err(_) => args.fault(reason),
    })?;
    let draft = parameters(args, scope, own, begin(place))?;
    if !draft.tls.enabled && !draft.tls.certificates.is_empty() {
        args.warn("certificates are named, and clients speak without TLS here: add 'ssl'");
    }
    let numbered = |(address, n): (String, u32)| BindSettings {
        address,
        // The addresses of a line are numbered on from the number that it gives.
        id: draft.id.map(|first| first.saturating_add(n)),
        of_line: n as usize,
        ..draft.clone()
    };
    Ok(addresses.into_iter().zip(0..).map(numbered).collect())
}

/// Reads parameters up to the end of the line.
pub fn parameters(args: &mut Args<'_>, scope: &Scope<'_>, own: Own<'_>, mut draft: BindSettings) -> Result<BindSettings, Fault> {
    while args.peek().is_some() {
        if !own(args)? && !terse_tls::keywords::bind(args, &scope.place, &mut draft.tls)? {
            params::apply_one_of(args, "parameter", parameters::TABLE, &mut draft, standings)?;
        }
    }
    // A line with a single version offers that.
    if let Some(protocol) = draft.protocol {
        draft.tls.own.alpn.get_or_insert_with(|| vec![protocol.alpn().into()]);
    }
    draft.tls.settle(scope.shared.get());
    Ok(draft)
}

/// Settings without an address, and with defaults for all others.
pub fn blank(place: Place) -> BindSettings {
    BindSettings {
        address: String::new(),
        name: None,
        id: None,
        guid_prefix: None,
        of_line: 0,
        maxconn: None,
        backlog: None,
        interface: None,
        mode: None,
        user: None,
        group: None,
        v6only: None,
        transparent: false,
        defer_accept: false,
        save_syn: 0,
        fast_open: false,
        mss: None,
        user_timeout: None,
        idle_ping: None,
        signature: None,
        congestion: None,
        accept_proxy: false,
        protocol: None,
        carries_bytes: false,
        workers: 0,
        tls: BindTls::default(),
        place,
    }
}

/// Markdown: the parameters, for the manual.
pub fn reference() -> String {
    reference::parameters("Parameters of `bind`", parameters::TABLE)
}

/// States of the keywords of `bind` lines.
pub fn standings() -> Vec<Standing> {
    params::standings(parameters::TABLE).into_iter().chain(terse_tls::keywords::bind_standings()).collect()
}

/// Takes the next keyword and its arguments, if it knows it.
pub type Own<'a> = &'a mut dyn FnMut(&mut Args<'_>) -> Result<bool, Fault>;

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};

    fn addresses(line: &str) -> Vec<String> {
        proxy(&format!("frontend f\n bind {line}\n")).binds.into_iter().map(|bind| bind.address).collect()
    }

    #[test]
    fn lists_and_ranges_are_one_entry_each() {
        assert_eq!(addresses(":80"), [":80"]);
        assert_eq!(
            addresses("127.0.0.1:80,[::1]:8080-8082,/run/x.sock"),
            ["127.0.0.1:80", "[::1]:8080", "[::1]:8081", "[::1]:8082", "/run/x.sock"]
        );
        let settings = proxy("frontend f\n bind :1,:2 name two id 7 maxconn 5\n bind :3\n");
        let all: Vec<_> = settings.binds.iter().map(|b| (b.name.as_deref(), b.id, b.maxconn)).collect();
        assert_eq!(all, [(Some("two"), Some(7), Some(5)), (Some("two"), Some(8), Some(5)), (None, None, None)]);
        assert_eq!(&settings.binds[2].place.text[settings.binds[2].place.span.clone()], ":3");
    }

    #[test]
    fn the_old_form_behind_a_sections_name() {
        let said = said_in("listen l 127.0.0.1:80", "mode http");
        assert!(said.len() == 1 && said[0].starts_with("1?"), "{said:?}");
    }

    #[test]
    fn faults() {
        for words in [
            "",
            "80",
            ":x",
            ":0-3",
            ":70000",
            ":9-8",
            "quic4@:443",
            "udp@:53",
            "fd@x",
            ":80,",
            ":80 ssl crt",
            ":80 foo",
            ":80 name",
            ":80 nmae x",
        ] {
            let said = said_in("frontend f", &format!("bind {words}"));
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{words}: {said:?}");
        }
        assert!(said_in("defaults", "bind :80")[0].contains("not allowed in 'defaults' section"));
    }
}
