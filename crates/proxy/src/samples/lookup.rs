//! Proxies and servers by name: names that stand in expressions, looked up once, and names that converters are given.

use super::proxy::{count, usable};
use super::{checked, facts, plan};
use crate::checked::Checked;
use crate::plan::{Backend, Frontend};
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
        let plan = facts(env)?.plan();
        Some(count(usable(&plan.backends.get(plan.backend_named(&value.into_octets()?)?)?.farm)))
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
    /// What is named.
    pub(crate) kind: NamedKind,
    /// The proxy's name. Of a server without one, that of the section.
    pub(crate) proxy: Arc<str>,
    /// The server's name; empty where a proxy is named.
    pub(crate) server: Box<str>,
    found: OnceLock<Option<Found>>,
}

/// What is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NamedKind {
    Frontend,
    Backend,
    /// `<backend>/<server>`
    Server,
    /// `<server>`: of the section; in `defaults` of the stream's backend.
    OwnServer,
}

/// Where it is in the plan: the index of its proxy, and of a server in that.
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
        // Once tables are known the configuration was complete long ago: the expression is one of a running process.
        if compiler.registry.own::<Known>().0.get().is_none() {
            let at = compiler.place.text.rfind(text).map(|at| at..at + text.len());
            let place = at.map_or_else(|| compiler.place.clone(), |span| compiler.place.at(span));
            compiler.registry.refer(named.clone(), place);
        }
        Arg::Own(Own(named))
    }

    /// Finds it among these proxies, once and for all; false when it is not there.
    pub(crate) fn find(&self, frontends: &[Frontend], backends: &[Backend]) -> bool {
        let found = self.found(frontends, backends);
        if let (Some(found), NamedKind::Server | NamedKind::OwnServer) = (found, self.kind)
            && let Some(server) = backends[found.proxy].farm.server(found.server)
        {
            server.refer();
        }
        found.is_some()
    }

    fn found(&self, frontends: &[Frontend], backends: &[Backend]) -> Option<Found> {
        *self.found.get_or_init(|| {
            let backend = || backends.iter().position(|backend| backend.name == self.proxy);
            let (proxy, server) = match self.kind {
                NamedKind::Frontend => (frontends.iter().position(|frontend| frontend.name == self.proxy)?, 0),
                NamedKind::Backend => (backend()?, 0),
                NamedKind::Server | NamedKind::OwnServer => {
                    let proxy = backend()?;
                    (proxy, backends[proxy].farm.servers().pick(|server| **server.name() == *self.server)?.index())
                }
            };
            Some(Found { proxy, server })
        })
    }
}

/// The backend that the first argument names; without one the stream's, or its own half of a `listen`.
pub(super) fn backend<'a>(args: &ArgList, env: &Env<'a>) -> Option<&'a Backend> {
    let Some(named) = args.own::<Named>(0) else { return own_backend(env) };
    let plan = plan(env)?;
    plan.backends.get(named.found(&plan.frontends, &plan.backends)?.proxy)
}

/// The stream's backend, or that of the server that is checked.
fn own_backend<'a>(env: &Env<'a>) -> Option<&'a Backend> {
    match facts(env) {
        Some(facts) => facts.own_backend(),
        None => checked(env).map(Checked::backend),
    }
}

/// The frontend that the first argument names; without one the stream's.
pub(super) fn frontend<'a>(args: &ArgList, env: &Env<'a>) -> Option<&'a Frontend> {
    let facts = facts(env)?;
    let Some(named) = args.own::<Named>(0) else { return Some(facts.frontend()) };
    let plan = facts.plan();
    plan.frontends.get(named.found(&plan.frontends, &plan.backends)?.proxy)
}

/// The server that the first argument names.
pub(super) fn server(args: &ArgList, env: &Env<'_>) -> Option<Picked> {
    let named: &Named = args.own(0)?;
    let plan = plan(env)?;
    match named.found(&plan.frontends, &plan.backends) {
        Some(found) => plan.backends.get(found.proxy)?.farm.server(found.server),
        None if named.kind == NamedKind::OwnServer => server_named(named.server.as_bytes(), env),
        None => None,
    }
}

/// The server of that name: of a backend, or of the stream's.
fn server_named(name: &[u8], env: &Env<'_>) -> Option<Picked> {
    let plan = plan(env)?;
    let (backend, name): (&Backend, _) = match memchr::memchr(b'/', name) {
        Some(slash) => (plan.backends.get(plan.backend_named(&name[..slash])?)?, &name[slash + 1..]),
        None => (own_backend(env)?, name),
    };
    backend.farm.servers().pick(|server| server.name().as_bytes() == name)
}
