//! `server` and `default-server`.

use super::server_words::{self, Draft};
use super::{address, done, in_back, settings};
use crate::settings::{LogWords, Resolver, ServerSettings};
use terse_config::{Args, Fault, Keyword, Scope, Sections};

pub(super) const SERVER: Keyword = Keyword {
    sections: Sections::PROXY_ONLY,
    ..done("server", "<name> <address>[:<port>] [<parameter>...]", "Adds a server.", |args, scope| {
        let server = read(args, scope)?;
        if in_back(scope) {
            add(scope, server)?;
        }
        Ok(())
    })
};

/// Reads a line behind `server`.
pub fn read(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<ServerSettings, Fault> {
    // The first word is the name, whatever it says: a server may be called 'backup'.
    let name = args.need("<name>")?;
    if name.bytes().any(|byte| byte.is_ascii_whitespace() || byte == b'/') {
        return Err(args.fault(format!("'{name}' cannot be a server's name")));
    }
    let at = args.position();
    let text = args.need_address("<address>")?;
    let resolver = scope.shared.get::<Resolver>();
    let address = address::datagrams(&text, resolver);
    let datagrams = address.is_some();
    let address = address.unwrap_or_else(|| address::parse(&text, resolver)).map_err(|reason| Fault::new(at, reason))?;
    let template = settings(scope).template.clone();
    let log = LogWords { datagrams, ..template.log };
    words(args, scope, ServerSettings { name: name.into(), address, log, ..template }, false)
}

pub(super) const DEFAULT_SERVER: Keyword =
    done("default-server", "[<parameter>...]", "Gives parameters to the servers that follow.", |args, scope| {
        if args.peek().is_none() {
            return Err(args.fault("expects <parameter> as argument"));
        }
        let template = settings(scope).template.clone();
        let template = words(args, scope, template, true)?;
        if in_back(scope) {
            settings(scope).template = template;
        }
        Ok(())
    });

fn words(args: &mut Args<'_>, scope: &Scope<'_>, server: ServerSettings, default: bool) -> Result<ServerSettings, Fault> {
    let mut draft = Draft { server, default, line: scope.place.clone() };
    server_words::apply(args, &mut draft)?;
    Ok(draft.server)
}

fn add(scope: &mut Scope<'_>, server: ServerSettings) -> Result<(), Fault> {
    let servers = &settings(scope).servers;
    if let Some(id) = server.id
        && let Some(other) = servers.iter().find(|other| other.id == Some(id))
    {
        return Err(Fault::new(1, format!("server '{}' has the id {id} already", other.name)));
    }
    if servers.iter().any(|other| other.name == server.name) {
        let text = format!("another server named '{}' was already defined, please use distinct names", server.name);
        scope.warn(1, text);
    }
    settings(scope).servers.push(server);
    Ok(())
}
