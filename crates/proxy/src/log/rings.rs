//! `ring` sections: their keywords.

use super::carrier::Peer;
use super::directory::ServerOfRing;
use super::header::Form;
use super::ring::{Framing, Ring};
use std::sync::Arc;
use std::time::Duration;
use terse_balance::keywords::server::NO_CLIENT;
use terse_balance::{ServerSettings, keywords};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Place, Scope, Sections, Setting, Word};

/// A `ring` section, as it was written.
#[derive(Clone, Default, Debug)]
pub struct RingSettings {
    /// `format`; without it, events have no header.
    pub form: Option<Form>,
    /// `maxlen`: the most bytes of an event.
    pub max_len: Option<usize>,
    /// `size`: bytes of all events.
    pub size: Option<usize>,
    /// `description`
    pub description: Option<String>,
    /// `server`, in order.
    pub servers: Vec<ServerSettings>,
    /// `timeout connect`
    pub connect_timeout: Option<Duration>,
    /// `timeout server`
    pub server_timeout: Option<Duration>,
}

impl Setting for RingSettings {
    fn inherit(&self) -> RingSettings {
        self.clone()
    }
}

impl RingSettings {
    /// The ring, and the servers that have its events. `buffer_bytes`: its size where the section sets none.
    pub fn ring(&self, name: &Arc<str>, buffer_bytes: usize, place: &Place) -> (Ring, Vec<ServerOfRing>) {
        let mut ring = Ring::new(name.clone(), self.size.unwrap_or(buffer_bytes), place.clone());
        ring.form = Some(self.form.unwrap_or(Form::Raw));
        ring.max_len = self.max_len.unwrap_or(usize::MAX);
        if let Some(description) = &self.description {
            ring.description.clone_from(description);
        }
        let servers = self.servers.iter().map(|server| {
            let usual = ServerOfRing::new(Peer::Fixed(server.address.clone()));
            ServerOfRing {
                framing: if server.log.octet_count { Framing::OctetCounting } else { Framing::Lines },
                connect_timeout: self.connect_timeout.unwrap_or(usual.connect_timeout),
                server_timeout: self.server_timeout.unwrap_or(usual.server_timeout),
                max_events: server.pool.max_reuse.map(|reuse| u64::from(reuse) + 1),
                ..usual
            }
        });
        (ring, servers.collect())
    }
}

/// The table.
pub const KEYWORDS: &[Keyword] = &[
    done("format", "<format>", "How events are framed: one of the formats of 'log'; without it they are what lines say.", format),
    done("maxlen", "<length>", "Cuts longer events.", maxlen),
    done("size", "<size>", "Bytes that the ring holds, 'tune.bufsize' by default.", size),
    done("description", "<text>...", "A text for people: 'show events' shows it.", description),
    done("server", "<name> <address>[:<port>] [<parameter>...]", "Sends all events to a server, over a stream.", server),
    done("timeout connect", "<time>", "Limits the time to connect to a server, 1s by default.", connect_timeout),
    done(
        "timeout server",
        "<time>",
        "Limits the time that a server may take nothing of what waits for it, 5s by default.",
        server_timeout,
    ),
    Keyword {
        kind: Kind::Refused("events live in memory; a server keeps them, and 'show events' shows them"),
        ..done("backing-file", "<path>", "Keeps the ring in a file.", size)
    },
];

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::RING, arguments, summary, kind: Kind::Done(parser) }
}

fn format(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let word = args.need("<format>")?;
    let form = Form::parse(word);
    let unknown = || args.fault(format!("unknown log format '{word}'")).hint(format!("one of {}", Form::NAMES.join(" ")));
    settings(scope).form = Some(form.ok_or_else(unknown)?);
    args.end()
}

fn maxlen(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).max_len = usize::try_from(args.integer("<length>", 1..=i64::from(u32::MAX))?).ok();
    args.end()
}

fn size(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let size = args.size("<size>")?;
    if !(1..=MOST_BYTES).contains(&size) {
        return Err(args.fault(format!("<size>: {size} is not between 1 and {MOST_BYTES}")));
    }
    settings(scope).size = usize::try_from(size).ok();
    args.end()
}

fn description(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    args.need_bytes("<text>")?;
    args.seek(args.position() - 1);
    let words: Vec<_> = args.take_rest().iter().map(Word::display).collect();
    settings(scope).description = Some(words.join(" "));
    Ok(())
}

fn server(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let at = args.position() + 1;
    let server = keywords::server::read(args, scope)?;
    if server.tls.enabled && server.tls.sni.is_some() {
        let hint = "'verifyhost' says which name its certificate must have";
        return Err(args.fault("'sni': there is no request that a ring's server could be asked a name for").hint(hint));
    }
    if server.log.datagrams {
        let hint = "write 'tcp@', or log to that address without a ring";
        return Err(Fault::new(at, "a ring's servers are reached over streams").hint(hint));
    }
    if server.follows_clients() {
        return Err(Fault::new(at, NO_CLIENT));
    }
    settings(scope).servers.push(server);
    Ok(())
}

fn connect_timeout(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).connect_timeout = Some(args.time("<time>")?);
    args.end()
}

fn server_timeout(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    settings(scope).server_timeout = Some(args.time("<time>")?);
    args.end()
}

fn settings<'a>(scope: &'a mut Scope<'_>) -> &'a mut RingSettings {
    scope.section.settings.entry()
}

/// A ring is memory.
const MOST_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keywords::tests::{last, said_in};

    #[test]
    fn a_section_makes_a_ring() {
        let lines = "ring r\n description \"a ring\"\n format rfc5424\n maxlen 1200\n size 32k\n timeout connect 3s\n \
                     server s1 127.0.0.1:514 log-proto octet-count\n server s2 127.0.0.1:515 max-reuse 9\n";
        let settings: RingSettings = last(lines).settings.take().unwrap();
        let (ring, servers) = settings.ring(&"r".into(), 16384, &Place::nowhere());
        assert_eq!((&*ring.description, ring.form, ring.max_len, ring.capacity()), ("a ring", Some(Form::Rfc5424), 1200, 32768));
        assert_eq!(servers.iter().map(|server| server.framing).collect::<Vec<_>>(), [Framing::OctetCounting, Framing::Lines]);
        assert_eq!((servers[0].connect_timeout, servers[1].max_events), (Duration::from_secs(3), Some(10)));
        let (ring, servers) = RingSettings::default().ring(&"r".into(), 16384, &Place::nowhere());
        assert_eq!((&*ring.description, ring.form, ring.capacity(), servers.len()), ("r", Some(Form::Raw), 16384, 0));
    }

    #[test]
    fn faults() {
        for line in [
            "format bsd",
            "maxlen 0",
            "size 0",
            "size 2g",
            "server s udp@127.0.0.1:514",
            "server s",
            "timeout client 1s",
            "backing-file /tmp/x",
            "description",
        ] {
            let said = said_in("ring r", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
    }
}
