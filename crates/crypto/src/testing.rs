//! Fixture of this crate's tests: expressions from text, variables, files in memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use terse_sample::registry::PatternFiles;
use terse_sample::{AclSet, Compiler, Env, Needs, Now, Registry, Store, Value, Vars, World};

#[derive(Default)]
struct Files(Mutex<HashMap<String, Vec<u8>>>);

impl PatternFiles for Files {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.0.lock().unwrap().get(name).cloned().ok_or_else(|| "no such file".into())
    }
}

struct Still;

impl World for Still {
    fn now(&self) -> Now {
        Now::default()
    }
    fn random(&self) -> u64 {
        4
    }
}

/// A stream's variables and the registry.
pub(crate) struct Bench {
    registry: Registry,
    files: Arc<Files>,
    store: Store,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        let mut registry = Registry::default();
        crate::CONVERTERS.iter().for_each(|table| registry.add_converters(table));
        let files = Arc::new(Files::default());
        registry.files = Some(files.clone());
        Bench { registry, files, store: Store::default() }
    }

    pub(crate) fn file(&mut self, name: &str, bytes: Vec<u8>) {
        self.files.0.lock().unwrap().insert(name.to_owned(), bytes);
    }

    /// State that this crate keeps from one expression to the next.
    pub(crate) fn own<T: std::any::Any + Send + Sync + Default>(&mut self) -> Arc<T> {
        self.registry.own()
    }

    pub(crate) fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let slot = self.registry.names.slot(name).unwrap();
        self.env().vars.set(slot, Value::str(value.as_ref()));
    }

    /// The value as text.
    pub(crate) fn eval(&mut self, text: &str) -> Option<String> {
        let expr = self.compile(text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
        let bytes = expr.eval(&self.env())?.into_octets()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The reason why the expression is invalid.
    pub(crate) fn refuses(&mut self, text: &str) -> String {
        self.compile(text).err().unwrap_or_else(|| panic!("{text} is taken"))
    }

    fn compile(&mut self, text: &str) -> Result<terse_sample::Expr, String> {
        let (acls, mut warnings) = (AclSet::default(), Vec::new());
        let mut compiler = Compiler {
            registry: &mut self.registry,
            acls: &acls,
            have: Needs::ALL,
            warnings: &mut warnings,
            word: 0,
            section: "test".into(),
            place: terse_config::Place::nowhere(),
        };
        compiler.expression(text.as_bytes()).map_err(|fault| fault.reason)
    }

    fn env(&self) -> Env<'_> {
        Env { vars: Vars { transaction: Some(&self.store), ..Vars::default() }, ..Env::bare(&Still) }
    }
}
