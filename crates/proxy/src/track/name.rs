//! Names of tables in rules and expressions: found once all sections are read.

use std::sync::{Arc, OnceLock};
use terse_balance::table::{Data, Table};
use terse_config::Place;
use terse_sample::{Registry, Type};

/// A table that an expression or a line names, and its requirements.
#[derive(Debug)]
pub struct TableName {
    /// Its name.
    pub name: Arc<str>,
    /// Its requirements.
    pub want: Want,
    found: OnceLock<Arc<Table>>,
}

/// All tables, once there are: for expressions that are read while the process runs.
#[derive(Default, Debug)]
pub struct Known(pub OnceLock<Vec<Arc<Table>>>);

/// Requirements on a table, which its line must meet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Want {
    /// It is enough that it is there.
    Table,
    /// A kind of data, or the kind that takes its place. Without both, there never is a value.
    Data(Data, Option<Data>),
    /// A rate that a filter of bandwidth counts.
    Rate(Data),
    /// Keys that values of this type can be made into; with the keyword that requires them.
    Keys(Type, Box<str>),
    /// The same, and the servers of keys, which such a table learns.
    Servers(Type),
}

impl TableName {
    /// Notes that a table is named; a name that is not given is that of the section.
    pub fn note(name: Option<&str>, section: &Arc<str>, want: Want, place: &Place, registry: &mut Registry) -> Arc<TableName> {
        let place = match name.and_then(|name| place.text.rfind(name).map(|at| at..at + name.len())) {
            Some(span) => place.at(span),
            None => place.clone(),
        };
        let name = Arc::new(TableName { name: name.map_or_else(|| section.clone(), Arc::from), want, found: OnceLock::new() });
        match registry.own::<Known>().0.get() {
            // The configuration is complete: the expression belongs to a running process.
            Some(tables) => tables.iter().filter(|table| *table.name() == name.name).for_each(|table| name.found(table)),
            None => registry.refer(name.clone(), place),
        }
        name
    }

    /// The table. It is set wherever a plan was made.
    #[inline]
    pub fn table(&self) -> Option<&Arc<Table>> {
        self.found.get()
    }

    /// Sets the table. A second call has no effect.
    pub fn found(&self, table: &Arc<Table>) {
        let _ = self.found.set(table.clone());
    }
}
