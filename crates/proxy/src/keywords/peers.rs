//! The keywords of `peers` sections.

use super::bind;
use crate::settings::BindSettings;
use terse_balance::keywords::{server, table};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections, Setting};
use terse_peers::{PeerLine, PeersSettings};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    done(
        "peer",
        "<name> <address>[:<port>] [<parameter>...]",
        "Names a process of the section; the one with this process's name says where this one listens.",
        |args, scope| peer(args, scope, true),
    ),
    done(
        "server",
        "<name> [<address>[:<port>]] [<parameter>...]",
        "Names a process of the section, as 'peer' does; this one needs no address where a 'bind' line has it.",
        |args, scope| peer(args, scope, false),
    ),
    done("bind", "<address> [<parameter>]...", "Listens for the section's other processes.", |args, scope| {
        let template = places(scope).template.clone();
        let begin = |place| BindSettings { place, ..template.unwrap_or_else(|| bind::blank(scope.place.clone())) };
        let binds = bind::read_on(args, scope, &mut |_| Ok(false), begin)?;
        places(scope).binds.extend(binds);
        Ok(())
    }),
    done("default-bind", "[<parameter>]...", "Gives parameters to the address that this process listens on.", |args, scope| {
        let begun = places(scope).template.take().unwrap_or_else(|| bind::blank(scope.place.clone()));
        let template = bind::parameters(args, scope, &mut |_| Ok(false), begun)?;
        places(scope).template = Some(template);
        Ok(())
    }),
    done(
        "table",
        "<name> type {ip | ipv6 | integer | string [len <n>] | binary [len <n>]} size <n> [<parameter>...]",
        "Keeps what is known of clients, for all processes of the section: '<section>/<name>' in rules.",
        named_table,
    ),
    done(
        "shards",
        "<number>",
        "Among how many peers tables are dealt out; their 'shard' says who gets which part.",
        |args, scope| {
            settings(scope).shards = args.integer("<number>", 1..=i64::from(u32::MAX))? as u32;
            args.end()
        },
    ),
    done("disabled", "", "Nothing is shared.", |args, scope| {
        settings(scope).disabled = true;
        args.end()
    }),
    done("enabled", "", "Takes back 'disabled'.", |args, scope| {
        settings(scope).disabled = false;
        args.end()
    }),
];

/// Addresses at which a section listens.
#[derive(Clone, Default, Debug)]
pub(crate) struct PeersPlaces {
    /// `bind` lines.
    pub(crate) binds: Vec<BindSettings>,
    /// `default-bind`
    pub(crate) template: Option<BindSettings>,
}

impl Setting for PeersPlaces {
    fn inherit(&self) -> PeersPlaces {
        self.clone()
    }
}

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::PEERS, arguments, summary, kind: Kind::Done(parser) }
}

fn peer(args: &mut Args<'_>, scope: &mut Scope<'_>, needs_address: bool) -> Result<(), Fault> {
    let (start, place) = (args.position(), args.place(&scope.place));
    let name = args.need("<name>")?;
    if settings(scope).peers.iter().any(|peer| *peer.name == *name) {
        return Err(args.fault(format!("'{name}' is the name of another process of this section")));
    }
    let server = if !needs_address && args.peek().is_none() {
        None
    } else {
        let at = args.position();
        args.seek(start);
        let server = server::read(args, scope)?;
        if server.log.datagrams || server.follows_clients() {
            return Err(Fault::new(at, "expects an address and a port, over a stream"));
        }
        if server.is_unresolved() {
            return Err(Fault::new(at, "has no address: names are looked up when the file is read, and this one was not found"));
        }
        if server.check.enabled || server.agent.enabled {
            scope.warn(at - 1, "is not checked: it says itself that it is there");
        }
        Some(Box::new(server))
    };
    settings(scope).peers.push(PeerLine { name: name.into(), server, place });
    Ok(())
}

fn named_table(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let name = args.need("<name>")?;
    if let Some(foreign) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || ".:_-".contains(*c))) {
        return Err(args.fault(format!("character '{foreign}' is not permitted in the name '{name}'")));
    }
    if settings(scope).tables.iter().any(|(other, _)| **other == *name) {
        return Err(args.fault(format!("'{name}' is the name of another table of this section")));
    }
    let table = table::read(args, &scope.place)?;
    if table.peers.is_some() {
        return Err(Fault::new(0, "shares its tables with the processes of this very section").hint("leave 'peers' out"));
    }
    settings(scope).tables.push((name.into(), table));
    Ok(())
}

fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut PeersSettings {
    scope.section.settings.entry()
}

fn places<'a>(scope: &'a mut Scope<'_>) -> &'a mut PeersPlaces {
    scope.section.settings.entry()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keywords::tests::{last, said_in};

    #[test]
    fn a_section_is_read() {
        let text = "peers p\n bind 127.0.0.1:1024 name x\n default-server user-mss 9\n server a\n server b 127.0.0.1:1025 shard 2\n \
                    peer c unix@/c\n table t type ip size 9 store gpc0\n table u type string size 9\n shards 2\n disabled\n enabled\n"
            .replace(" default-server user-mss 9\n", " default-server shard 1\n");
        let mut section = last(&text);
        let settings: PeersSettings = section.settings.take().unwrap();
        let places: PeersPlaces = section.settings.take().unwrap();
        let peers: Vec<_> = settings.peers.iter().map(|peer| (&*peer.name, peer.server.as_ref().map(|it| it.shard))).collect();
        assert_eq!(peers, [("a", None), ("b", Some(2)), ("c", Some(1))]);
        assert_eq!(settings.tables.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["t", "u"]);
        assert_eq!((settings.shards, settings.disabled, places.binds[0].name.as_deref()), (2, false, Some("x")));
    }

    #[test]
    fn parameters_of_the_address_may_stand_before_it() {
        let mut section = last("peers p\n default-bind backlog 7\n bind :1024 name x\n");
        let places: PeersPlaces = section.settings.take().unwrap();
        assert_eq!((places.binds[0].backlog, places.binds[0].name.as_deref()), (Some(7), Some("x")));
    }

    #[test]
    fn faults() {
        for line in [
            "peer",
            "peer a",
            "peer a :80",
            "peer a udp@127.0.0.1:80",
            "peer a nowhere.invalid:80 init-addr none",
            "server a 127.0.0.1:80 foo",
            "bind",
            "table t",
            "table t/u type ip size 9",
            "table t type ip size 9 peers p",
            "shards 0",
            "stick-table type ip size 9",
        ] {
            let said = said_in("peers p", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
        for lines in ["server a\nserver a", "table t type ip size 9\ntable t type ip size 9"] {
            let said = said_in("peers p", lines);
            assert!(said.len() == 1 && said[0].starts_with("3!"), "{lines}: {said:?}");
        }
        let said = said_in("peers p", "server a 127.0.0.1:80 check");
        assert!(said.len() == 1 && said[0].starts_with("2?"), "{said:?}");
    }
}
