//! Names of fetches and converters, as scripts write them, and the calls that were compiled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use terse_proxy::facts::Facts;
use terse_sample::{Env, Expr, Registry};

/// The names of fetches and converters, as scripts write them, and the compiled calls.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) fetches: HashMap<String, &'static str>,
    pub(crate) converters: HashMap<String, &'static str>,
    compiled: Mutex<HashMap<Vec<u8>, Arc<Expr>>>,
}

/// Number of calls that are kept compiled. A script whose arguments are never the same pays for each call.
const KEPT: usize = 1024;

impl Names {
    /// The names in these tables.
    pub(crate) fn of(registry: &Registry) -> Names {
        let written = |name: &str| name.replace(['.', '-', '+'], "_");
        let mut names = Names::default();
        for fetch in registry.fetches() {
            names.fetches.extend(fetch.also.iter().chain([&fetch.name]).map(|name| (written(name), *name)));
        }
        names.converters.extend(registry.converters().into_iter().map(|converter| (written(converter.name), converter.name)));
        names
    }

    /// The expression of a text.
    pub(crate) fn compile(&self, env: &Env<'_>, text: Vec<u8>) -> Result<Arc<Expr>, String> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(&text) {
            return Ok(known.clone());
        }
        let facts = env.facts::<Facts>().ok_or("there is no transaction here")?;
        let expr = Arc::new(facts.plan().language.expression_of_stream(&text)?);
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        compiled.insert(text, expr.clone());
        Ok(expr)
    }
}
