//! Proxies and servers by name: names that stand in expressions, looked up once, and names that converters are given.

use super::proxy::{count, usable};
use super::{checked, facts, plan};
use crate::plan::roll::Held;
use crate::plan::{Backend, Frontend, Plan};
use crate::track::name::Known;
use std::sync::{Arc, OnceLock};
use terse_balance::Picked;
use terse_sample::argument::{Arg, Own};
use terse_sample::{ArgList, Compiler, Converter, Env, Type, Value};

/// The table of converters.
pub(super) const CONVERTERS: &[Converter] = &[
    Converter::new("fe_exists", Type::Str, Type::Bool, "Whether there is a frontend of that name.", |value, _, env| {
        let name = value.into_octets()?;
        Some(Value::Bool(facts(env)?.plan().frontends.iter().any(|frontend| *frontend.name.as_bytes() == *name)))
    }),
    Converter::new("nbsrv", Type::Str, Type::Int, "How many servers can be used of the backend of that name.", |value, _, env| {
        let backend = facts(env)?.session.worker.backend_named(&value.into_octets()?)?;
        Some(count(usable(&backend.farm)))
    }),
    Converter::new(
        "srv_is_up",
        Type::Str,
        Type::Bool,
        "Whether the server of that name is up: '[<backend>/]<server>'.",
        |value, _, env| Some(Value::Bool(server_named(&value.into_octets()?, env)?.is_up())),
    ),
    Converter::new(
        "srv_queue",
        Type::Str,
        Type::Int,
        "Requests that wait for the server of that name: '[<backend>/]<server>'.",
        |value, _, env| Some(Value::Int(server_named(&value.into_octets()?, env)?.queued().into())),
    ),
];

/// A proxy or server that an expression names: found when the plan is built, since sections may follow the line that names them.
pub(crate) struct Named {
    /// Kind of the named object.
    pub(crate) kind: NamedKind,
    /// The proxy's name. For a server without a proxy's name, that of the section.
    pub(crate) proxy: Arc<str>,
    /// The server's name; empty where a proxy is named.
    pub(crate) server: Box<str>,
    found: OnceLock<Option<Found>>,
}

/// Kind of a named object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NamedKind {
    Frontend,
    Backend,
    /// `<backend>/<server>`
    Server,
    /// `<server>`: of the section; in `defaults` of the stream's backend.
    OwnServer,
}

/// Location of the object: the index of a frontend or the number of a backend, and the index of a server in that.
#[derive(Clone, Copy)]
struct Found {
    proxy: usize,
    server: usize,
}

impl Named {
    /// Puts it in the place of the first argument, if that names a frontend.
    pub(super) fn frontend(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
        Named::proxy(args, NamedKind::Frontend, compiler)
    }

    /// Puts it in the place of the first argument, if that names a backend.
    pub(super) fn backend(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
        Named::proxy(args, NamedKind::Backend, compiler)
    }

    /// Puts it in the place of the first argument, `[<backend>/]<server>`.
    #[allow(clippy::ptr_arg, reason = "checks of arguments share one signature")]
    pub(super) fn server(args: &mut Vec<Arg>, compiler: &mut Compiler<'_>) -> Result<(), String> {
        let Some(Arg::Str(text)) = args.first() else { return Ok(()) };
        let text = std::str::from_utf8(text).map_err(|_| "the name of the server is no text")?;
        let (kind, proxy, server) = match text.split_once('/') {
            Some((proxy, server)) => (NamedKind::Server, Arc::from(proxy), server),
            None => (NamedKind::OwnServer, compiler.section.clone(), text),
        };
        if server.is_empty() {
            return Err("expects the name of a server, '[<backend>/]<server>'".into());
        }
        args[0] = Named::note(Named { kind, proxy, server: server.into(), found: OnceLock::new() }, text, compiler);
        Ok(())
    }

    #[allow(clippy::ptr_arg, reason = "checks of arguments share one signature")]
    fn proxy(args: &mut Vec<Arg>, kind: NamedKind, compiler: &mut Compiler<'_>) -> Result<(), String> {
        let Some(Arg::Str(text)) = args.first() else { return Ok(()) };
        let text = std::str::from_utf8(text).map_err(|_| "the name of the proxy is no text")?;
        args[0] = match text {
            "" => Arg::None,
            _ => Named::note(Named { kind, proxy: text.into(), server: Box::default(), found: OnceLock::new() }, text, compiler),
        };
        Ok(())
    }

    fn note(named: Named, text: &str, compiler: &mut Compiler<'_>) -> Arg {
        let named = Arc::new(named);
        // Once tables are known the configuration is complete: the expression belongs to a running process.
        if compiler.registry.own::<Known>().0.get().is_none() {
            let at = compiler.place.text.rfind(text).map(|at| at..at + text.len());
            let place = at.map_or_else(|| compiler.place.clone(), |span| compiler.place.at(span));
            compiler.registry.refer(named.clone(), place);
        }
        Arg::Own(Own(named))
    }

    /// Finds it among these proxies, once and for all; false when it is not there.
    pub(crate) fn find(&self, frontends: &[Frontend], backends: &[Arc<Backend>]) -> bool {
        let found = *self.found.get_or_init(|| self.search(frontends, backends));
        if let Some(found) = found.filter(|_| self.kind != NamedKind::Frontend)
            && let Some(backend) = backends.get(found.proxy)
        {
            backend.refer();
            backend.farm.server(found.server).filter(|_| self.kind != NamedKind::Backend).inspect(|server| server.refer());
        }
        found.is_some()
    }

    fn found(&self, plan: &Plan) -> Option<Found> {
        *self.found.get_or_init(|| self.search(&plan.frontends, &plan.backends.now()))
    }

    fn search(&self, frontends: &[Frontend], backends: &[Arc<Backend>]) -> Option<Found> {
        let backend = || backends.iter().find(|backend| backend.name == self.proxy);
        let (proxy, server) = match self.kind {
            NamedKind::Frontend => (frontends.iter().position(|frontend| frontend.name == self.proxy)?, 0),
            NamedKind::Backend => (backend()?.number, 0),
            NamedKind::Server | NamedKind::OwnServer => {
                let backend = backend()?;
                (backend.number, backend.farm.servers().pick(|server| **server.name() == *self.server)?.index())
            }
        };
        Some(Found { proxy, server })
    }
}

/// The backend that the first argument names; without the argument the stream's, or its own half of a `listen`.
pub(super) fn backend(args: &ArgList, env: &Env<'_>) -> Option<Held> {
    let Some(named) = args.own::<Named>(0) else { return own_backend(env) };
    of_number(named.found(plan(env)?)?.proxy, env)
}

/// The stream's backend, or that of the server that is checked.
fn own_backend(env: &Env<'_>) -> Option<Held> {
    match facts(env) {
        Some(facts) => facts.backend.clone().or_else(|| of_number(facts.own_backend()?.number, env)),
        None => Some(Held::alone(checked(env)?.backend().clone())),
    }
}

/// The backend of that name.
fn named(name: &[u8], env: &Env<'_>) -> Option<Held> {
    match facts(env) {
        Some(facts) => facts.session.worker.backend_named(name),
        None => checked(env)?.plan().backends.now().named(name).cloned().map(Held::alone),
    }
}

/// The backend of that number, as long as it is there.
fn of_number(number: usize, env: &Env<'_>) -> Option<Held> {
    match facts(env) {
        Some(facts) => facts.session.worker.backend(number),
        None => checked(env)?.plan().backends.now().of_number(number).cloned().map(Held::alone),
    }
}

/// The frontend that the first argument names; without the argument the stream's.
pub(super) fn frontend<'a>(args: &ArgList, env: &Env<'a>) -> Option<&'a Frontend> {
    let facts = facts(env)?;
    let Some(named) = args.own::<Named>(0) else { return Some(facts.frontend()) };
    let plan = facts.plan();
    plan.frontends.get(named.found(plan)?.proxy)
}

/// The server that the first argument names.
pub(super) fn server(args: &ArgList, env: &Env<'_>) -> Option<Picked> {
    let named: &Named = args.own(0)?;
    match named.found(plan(env)?) {
        Some(found) => of_number(found.proxy, env)?.farm.server(found.server),
        None if named.kind == NamedKind::OwnServer => server_named(named.server.as_bytes(), env),
        None => None,
    }
}

/// The server of that name: of a backend, or of the stream's.
fn server_named(name: &[u8], env: &Env<'_>) -> Option<Picked> {
    let (backend, name) = match memchr::memchr(b'/', name) {
        Some(slash) => (named(&name[..slash], env)?, &name[slash + 1..]),
        None => (own_backend(env)?, name),
    };
    backend.farm.servers().pick(|server| server.name().as_bytes() == name)
}
