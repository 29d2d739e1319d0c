//! `server` and `default-server`.

use super::address::{self, Spot};
use super::base::Base;
use super::server_words::{self, Draft, Origin};
use super::{course_words, done, in_back, settings, settings_of};
use crate::settings::{InitialAddress, LogWords, ResolutionSettings, Resolver, ServerSettings};
use terse_config::words::Word;
use terse_config::{Args, Environment, Fault, Keyword, Place, Scope, Sections};
use terse_tls::settings::Defaults;

pub(super) const SERVER: Keyword = Keyword {
    sections: Sections::BACK_ONLY,
    ..done("server", "<name> <address>[:[+|-]<port>] [from <base>] [<parameter>...]", "Adds a server.", |args, scope| {
        let server = read(args, scope)?;
        add(scope, server)
    })
};

pub(super) const SERVER_TEMPLATE: Keyword = Keyword {
    sections: Sections::BACK_ONLY,
    ..done(
        "server-template",
        "<prefix> <count | first-last> <name>[:<port>] [from <base>] [<parameter>...]",
        "Adds so many servers of a name, for as many addresses as it may have.",
        |args, scope| {
            let prefix = name(args)?.to_owned();
            let range = args.need("<count>")?;
            let (first, last) = range.split_once('-').unwrap_or(("1", range));
            let numbers = first.parse::<u32>().ok().zip(last.parse::<u32>().ok());
            let numbers = numbers.filter(|(first, last)| 0 < *first && first <= last && last - first < MOST_OF_A_TEMPLATE);
            let Some((first, last)) = numbers else {
                let reason =
                    format!("'{range}' is neither a count nor a range of numbers, of {MOST_OF_A_TEMPLATE} servers at most");
                return Err(args.fault(reason));
            };
            let server = behind_name(args, scope, &prefix)?;
            for number in first..=last {
                let id = server.id.map(|id| id + (number - first));
                let guid = server.guid.as_ref().map(|guid| guid.numbered(number));
                add(scope, ServerSettings { name: format!("{prefix}{number}").into(), id, guid, ..server.clone() })?;
            }
            Ok(())
        },
    )
};

/// Limit of servers from a single line.
const MOST_OF_A_TEMPLATE: u32 = 10_000;

/// Parses a line after `server`.
pub fn read(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<ServerSettings, Fault> {
    // The first argument is the name, whatever it is: a server may be called 'backup'.
    let name = name(args)?;
    behind_name(args, scope, name)
}

fn name<'a>(args: &mut Args<'a>) -> Result<&'a str, Fault> {
    let name = args.need("<name>")?;
    match name.bytes().any(|byte| byte.is_ascii_whitespace() || byte == b'/') {
        true => Err(args.fault(format!("'{name}' cannot be a server's name"))),
        false => Ok(name),
    }
}

fn behind_name(args: &mut Args<'_>, scope: &mut Scope<'_>, name: &str) -> Result<ServerSettings, Fault> {
    let line = Line {
        bases: &|base| match base {
            None => Ok(settings_of(scope).map(|farm| farm.template.clone()).unwrap_or_default()),
            Some(base) => base.among(scope),
        },
        place: &scope.place,
        resolver: scope.shared.get::<Resolver>(),
        defaults: scope.shared.get::<Defaults>(),
        added: false,
    };
    line.read(args, name)
}

/// Lookup of the settings that a line begins with.
pub type Bases<'a> = dyn Fn(Option<Base<'_>>) -> Result<ServerSettings, String> + 'a;

/// Context of parsing a line about a server.
struct Line<'a> {
    /// Lookup of the initial settings, by the line's `from`.
    bases: &'a Bases<'a>,
    place: &'a Place,
    resolver: Option<&'a Resolver>,
    defaults: Option<&'a Defaults>,
    /// Whether it comes from the stats socket.
    added: bool,
}

impl Line<'_> {
    /// Parses the arguments after the name.
    fn read(self, args: &mut Args<'_>, name: &str) -> Result<ServerSettings, Fault> {
        let Line { bases, place, resolver, defaults, added } = self;
        let at = args.position();
        let text = args.need_address("<address>").map_err(|fault| unnamed(fault, name))?;
        let base = Base::read(args)?;
        let template = bases(base).map_err(|reason| args.fault(reason))?;
        let spot = address::datagrams(&text);
        let datagrams = spot.is_some();
        let spot = spot.unwrap_or_else(|| address::parse(&text)).map_err(|reason| unnamed(Fault::new(at, reason), name))?;
        let log = LogWords { datagrams, ..template.log };
        let mut server = words(
            args,
            place,
            ServerSettings { name: name.into(), place: Some(place.clone()), log, ..template },
            Origin { default: false, added },
            resolver,
        )?;
        server.tls.settle(defaults);
        server.address = match spot {
            Spot::Address(address) => address,
            Spot::Name(host) => {
                // The stats socket does not wait for the DNS.
                let methods = if added { &[InitialAddress::None][..] } else { server.resolution.initial() };
                let address = host.first_address(methods, resolver);
                server.name_in_dns = Some(host.host.as_str().into());
                address.map_err(|reason| unnamed(Fault::new(at, reason), name))?
            }
        };
        if datagrams && server.follows_clients() {
            return Err(Fault::new(at, NO_CLIENT));
        }
        // Not the server's own port: requests go there.
        server.agent.port = server.agent.port.or(server.check.port);
        if server.agent.enabled && server.agent.port.is_none() {
            return Err(
                Fault::new(at, format!("server {name} does not have agent port")).hint("'agent-port' says where its agent is")
            );
        }
        if server.maxconn == 0 || server.minconn > server.maxconn {
            (server.maxconn, server.minconn) = (server.maxconn.max(server.minconn), server.maxconn.max(server.minconn));
        }
        Ok(server)
    }
}

/// The fault about an address, with a hint where the name before it is one: the line has no name.
fn unnamed(fault: Fault, name: &str) -> Fault {
    let is_address = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match is_address {
        true => fault.hint(format!("a name comes before the address: 'server <name> {name}'")),
        false => fault,
    }
}

/// Reason why a server of logs has an address and a port.
pub const NO_CLIENT: &str = "logs have no client whose address or port a server could have: it needs its own";

pub(super) const DISPATCH: Keyword = Keyword {
    sections: Sections::PROXY_ONLY,
    ..done(
        "dispatch",
        "<address>:<port>",
        "Sends everything to one address: a server that has no name of its own.",
        |args, scope| {
            let at = args.position();
            let server = behind_name(args, scope, "dispatch")?;
            if server.address.destination().is_some_and(|destination| destination.fixed_port().is_none()) {
                return Err(Fault::new(at, "missing port specification").hint("a 'server' line may leave it to the client"));
            }
            if in_back(scope) {
                scope.warn(0, "is an old word; write 'server dispatch <address>'");
                add(scope, server)?;
            }
            Ok(())
        },
    )
};

pub(super) const SOURCE: Keyword = done(
    "source",
    "<address>[:<port>] [usesrc <whose>] [interface <name>]",
    "Makes connections to servers from this address.",
    |args, scope| {
        let at = args.position();
        let source = course_words::source(args)?;
        if source.has_range() {
            return Err(Fault::new(at, "a range of ports belongs to one server").hint("write 'source' in the 'server' lines"));
        }
        if in_back(scope) {
            settings(scope).source = source;
        }
        Ok(())
    },
);

pub(super) const FULLCONN: Keyword =
    done("fullconn", "<connections>", "Says how full a backend is when its servers get their whole 'maxconn'.", |args, scope| {
        let full = args.integer("<connections>", 0..=i64::from(i32::MAX))? as u32;
        if in_back(scope) {
            settings(scope).fullconn = Some(full).filter(|full| *full > 0);
        }
        Ok(())
    });

pub(super) const DEFAULT_SERVER: Keyword = Keyword {
    sections: Sections::BACK.or(Sections::PEERS),
    ..done(
        "default-server",
        "[name <name>] [from <base>] [<parameter>...]",
        "Gives parameters to the servers that follow, or under a name to those that ask for it.",
        |args, scope| {
            let name = if args.accept("name") { Some(name(args)?) } else { None };
            let farm = settings(scope);
            if let Some(name) = name.filter(|name| farm.names.contains(*name)) {
                return Err(args.fault(format!("'{name}' is a server's name")));
            }
            let before = match name {
                None => Some(&farm.template),
                Some(name) => farm.named_templates.get(name),
            };
            let before = before.cloned().unwrap_or_default();
            let template = match Base::read(args)? {
                None => before,
                Some(base) => base.among(scope).map_err(|reason| args.fault(reason))?,
            };
            let template = words(args, &scope.place, template, Origin { default: true, added: false }, scope.shared.get())?;
            let farm = settings(scope);
            match name {
                None => farm.template = template,
                Some(name) => drop(farm.named_templates.insert(name.into(), template)),
            }
            Ok(())
        },
    )
};

fn words(
    args: &mut Args<'_>,
    place: &Place,
    server: ServerSettings,
    origin: Origin,
    resolver: Option<&Resolver>,
) -> Result<ServerSettings, Fault> {
    let mut draft = Draft { server, origin, line: place.clone(), resolver: resolver.cloned() };
    server_words::apply(args, &mut draft)?;
    Ok(draft.server)
}

/// Parses the stats socket's arguments for a new server, from its name on; returns the server and warnings about it.
/// `bases` resolves its `from`.
///
/// # Errors
/// The fault of the arguments.
pub fn read_added(
    words: &[String],
    place: &Place,
    defaults: &Defaults,
    environment: &Environment,
    bases: &Bases<'_>,
) -> Result<(ServerSettings, Vec<Fault>), Fault> {
    let words: Vec<Word> = words.iter().map(|word| Word { bytes: word.as_bytes().to_vec(), span: 0..0 }).collect();
    let mut args = Args::within(&words, 0, "server", environment);
    let name = args.take().unwrap_or_default();
    if let Some(wrong) = name.chars().find(|letter| !letter.is_ascii_alphanumeric() && !"_:.-".contains(*letter)) {
        return Err(args.fault(format!("character '{wrong}' is not permitted in server name '{name}'.")));
    }
    if args.peek().is_none() {
        return Err(args.fault("'server' expects <name> and <addr>[:<port>] as arguments."));
    }
    let line = Line { bases, place, resolver: None, defaults: Some(defaults), added: true };
    let mut server = line.read(&mut args, name)?;
    if server.check.section.is_some() {
        return Err(args.fault("'healthcheck' option is not accepted for dynamic server"));
    }
    // A base's settings of names are for servers of the configuration.
    server.resolution = ResolutionSettings::default();
    // As in HAProxy, checks of such a server use TLS only where it is set.
    server.tls.check = server.tls.check.or(Some(false));
    if server.track.is_some() && server.check.enabled {
        return Err(args.fault("unable to enable checks and tracking at the same time!"));
    }
    Ok((server, args.into_warnings()))
}

/// Keywords for servers that the stats socket adds.
pub fn words_of_added() -> impl Iterator<Item = &'static str> {
    let built = super::standings().into_iter().filter(|standing| standing.kind != "refused").map(|standing| standing.name);
    built.filter(|name| !server_words::NOT_ADDED.contains(name))
}

fn add(scope: &mut Scope<'_>, server: ServerSettings) -> Result<(), Fault> {
    let farm = settings(scope);
    if let Some(id) = server.id
        && let Some(other) = farm.numbered.insert(id, server.name.clone())
    {
        return Err(Fault::new(1, format!("server '{other}' has the id {id} already")));
    }
    if farm.named_templates.contains_key(&server.name) {
        return Err(Fault::new(1, format!("'{}' is the name of a 'default-server'", server.name)));
    }
    if !farm.names.insert(server.name.clone()) {
        let reason = format!("another server named '{}' was already defined, please use distinct names", server.name);
        let first = farm.servers.iter().find(|other| other.name == server.name).and_then(|other| other.place.as_ref());
        let fault = Fault::new(1, reason);
        return Err(match first {
            Some(place) => fault.hint(format!("the first is at {}:{}", place.file, place.line)),
            None => fault,
        });
    }
    farm.servers.push(server);
    Ok(())
}
