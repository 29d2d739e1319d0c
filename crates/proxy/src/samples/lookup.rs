//! Proxies and servers by name: names that stand in expressions, looked up once, and names that converters are given.

use super::facts;
use super::proxy::{count, usable};
use crate::plan::{Backend, Plan};
use std::sync::OnceLock;
use terse_balance::Server;
use terse_sample::argument::Arg;
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
        |value, _, env| Some(Value::Bool(server(&value.into_octets()?, env)?.is_up())),
    ),
    Converter::new(
        "srv_queue",
        Type::Str,
        Type::Int,
        "Requests that wait for the server of that name: '[<backend>/]<server>'.",
        |value, _, env| Some(Value::Int(server(&value.into_octets()?, env)?.queued().into())),
    ),
];

/// A name in an expression, and its place in the plan once it was looked up: sections may follow the line that names them.
pub(super) struct Named {
    name: Box<[u8]>,
    place: OnceLock<Option<usize>>,
}

impl Named {
    /// Puts it in the place of the first argument, if that names anything.
    #[allow(clippy::ptr_arg, reason = "checks of arguments share one signature")]
    pub(super) fn check(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
        if let Some(Arg::Str(name)) = args.first() {
            let name = name.clone();
            args[0] = if name.is_empty() { Arg::None } else { Arg::own(Named { name, place: OnceLock::new() }) };
        }
        Ok(())
    }

    /// Where the first argument's bearer is; nothing where no name was given.
    pub(super) fn place(args: &ArgList, find: impl FnOnce(&[u8]) -> Option<usize>) -> Option<Option<usize>> {
        let named: &Named = args.own(0)?;
        Some(*named.place.get_or_init(|| find(&named.name)))
    }
}

/// The server of that name: of a backend, or of the stream's.
pub(super) fn server<'a>(name: &[u8], env: &Env<'a>) -> Option<&'a Server> {
    let facts = facts(env)?;
    let plan: &Plan = facts.plan();
    let (backend, name): (&Backend, _) = match memchr::memchr(b'/', name) {
        Some(slash) => (plan.backends.get(plan.backend_named(&name[..slash])?)?, &name[slash + 1..]),
        None => (facts.backend()?, name),
    };
    backend.farm.servers().iter().find(|server| server.name().as_bytes() == name).map(|server| &**server)
}
