//! The language at run time: expressions and formats that come from the stats socket.

use crate::acl::AclSet;
use crate::compiler::Compiler;
use crate::expr::Expr;
use crate::logformat::{LogFormat, Usage};
use crate::pattern::{Columns, Matching, Output, Use, Way};
use crate::registry::{Needs, Registry};
use crate::vars::{ProcessStore, Target, VarSlot};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use terse_config::{Fault, Place};

/// The tables and names of a configuration that has been read. ACLs belonged to its sections: none are known.
pub struct Language {
    registry: Mutex<Registry>,
}

impl Language {
    /// The language of the configuration that made this store. Patterns no longer come from files.
    pub fn new(registry: &Registry, store: &ProcessStore) -> Language {
        let mut registry = registry.clone();
        (registry.names, registry.files) = (store.later_names(), None);
        Language { registry: Mutex::new(registry) }
    }

    /// The language while a configuration is read: files of patterns are read where an expression names one.
    pub fn while_reading(registry: &Registry) -> Language {
        Language { registry: Mutex::new(registry.clone()) }
    }

    /// The way of matching the entries of a map. Once the configuration has been read, it must be a map that is read there.
    ///
    /// # Errors
    /// The file cannot be read, or is used otherwise.
    pub fn map(&self, name: &str, matching: Matching) -> Result<Arc<Way>, String> {
        let usage = Use {
            matching,
            ignore_case: false,
            output: Output::Text,
            columns: Columns::Two,
            as_map: true,
            user: "by a Lua script".into(),
            resolve: &|_| None,
        };
        let registry = self.lock();
        match registry.patterns.known_map(name, &usage) {
            Some(way) => way,
            None => registry.pattern_file(name, &usage),
        }
    }

    /// Compiles an expression that sees only the process.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn expression(&self, text: &[u8]) -> Result<Expr, String> {
        self.compile(|compiler| {
            let expression = compiler.expression(text)?;
            compiler.check_needs(expression.needs(), &String::from_utf8_lossy(text))?;
            Ok(expression)
        })
    }

    /// Compiles an expression that sees a stream.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn expression_of_stream(&self, text: &[u8]) -> Result<Expr, String> {
        self.compile(|compiler| compiler.expression(text))
    }

    /// Compiles a format that sees the parts `have` of a stream.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn format_of_stream(&self, text: &[u8], have: Needs) -> Result<LogFormat, String> {
        self.compile(|compiler| {
            compiler.have = have;
            let format = compiler.log_format(text, Usage::Text)?;
            compiler.check_needs(format.needs(), "the format")?;
            Ok(format)
        })
    }

    /// Compiles a format that sees only the process.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn format(&self, text: &[u8]) -> Result<LogFormat, String> {
        self.compile(|compiler| {
            let format = compiler.log_format(text, Usage::Text)?;
            compiler.check_needs(format.needs(), &String::from_utf8_lossy(text))?;
            Ok(format)
        })
    }

    /// Reads the name of a variable and conditions: `proc.name,ifset`.
    ///
    /// # Errors
    /// The reason why they are invalid.
    pub fn target(&self, text: &str) -> Result<Target, String> {
        Target::parse(text, &mut self.lock().names)
    }

    /// The variable of that name, if there is one.
    pub fn variable(&self, name: &str) -> Option<VarSlot> {
        self.lock().names.find(name)
    }

    fn compile<T>(&self, compile: impl FnOnce(&mut Compiler<'_>) -> Result<T, Fault>) -> Result<T, String> {
        let (acls, mut warnings) = (AclSet::default(), Vec::new());
        let registry = &mut *self.lock();
        let mut compiler = Compiler {
            registry,
            acls: &acls,
            have: Needs::NONE,
            warnings: &mut warnings,
            word: 0,
            section: "".into(),
            place: Place::nowhere(),
        };
        compile(&mut compiler).map_err(described)
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn described(fault: Fault) -> String {
    match fault.hint {
        Some(hint) => format!("{} ({hint})", fault.reason),
        None => fault.reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vars::Limits;

    #[test]
    fn expressions_see_the_process_alone() {
        let mut registry = Registry::default();
        registry.names.slot("proc.a").unwrap();
        let store = ProcessStore::new(registry.names.clone(), Limits::default());
        let language = Language::new(&registry, &store);
        assert!(language.expression(b"var(proc.a),add(1)").is_ok());
        assert!(language.format(b"%[var(proc.a)] and %[var(proc.b)]").is_ok());
        assert!(language.variable("proc.b").is_some() && language.variable("proc.c").is_none());
        for wrong in ["path", "int(1),nothing", "var(txn.x)", "int(1", "str(a),map(/etc/passwd)"] {
            assert!(language.expression(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(language.format(b"%[path]").is_err());
        assert!(language.target("proc.x,ifnever").is_err());
    }
}
