//! Stick tables: made of their lines, and looked up by their names.

use super::drafts::Draft;
use super::peers;
use crate::track::key::value_type;
use crate::track::name::{TableName, Want};
use std::sync::Arc;
use terse_balance::table::{Data, Stored, Table};
use terse_config::near::{nearest, question};
use terse_config::{Diagnostic, Diagnostics, Severity};
use terse_sample::{Reference, cast};

/// The tables, in the order of their lines. Without `complete`, a missing name is not reported: its line may have been
/// refused.
pub(super) fn build(
    drafts: &mut [Draft],
    circles: &mut [peers::Draft],
    references: Vec<Reference>,
    complete: bool,
    diagnostics: &mut Diagnostics,
) -> Vec<Arc<Table>> {
    let names: Vec<_> = references.into_iter().filter_map(|of| Some((of.to.downcast::<TableName>().ok()?, of.place))).collect();
    let mut tables: Vec<Arc<Table>> = Vec::new();
    let make = |name: Arc<str>, settings| {
        let learns = names.iter().any(|(named, _)| named.name == name && matches!(named.want, Want::Servers(_)));
        Table::new(name, settings, if learns { LEARNT } else { &[] })
    };
    for circle in &mut *circles {
        for (name, settings) in circle.tables() {
            tables.push(Arc::new(circle.share(make(name, settings))));
        }
    }
    for draft in drafts {
        let Some(settings) = draft.table.take() else { continue };
        if let Some(other) = tables.iter().find(|table| *table.name() == draft.name) {
            let place = &other.settings().place;
            let reason =
                format!("stick-table name '{}' conflicts with the table declared at {}:{}", draft.name, place.file, place.line);
            diagnostics.alert(&settings.place, reason);
            continue;
        }
        let (section, place) = (settings.peers.clone(), settings.place.clone());
        let table = make(draft.name.clone(), settings);
        let circle = section.as_ref().map(|section| circles.iter_mut().find(|circle| *circle.name == **section));
        let table = match (circle, section) {
            (Some(Some(circle)), _) => circle.share(table),
            (Some(None), Some(section)) if complete => {
                let near = nearest(&section, circles.iter().map(|circle| &*circle.name));
                let reason = format!("unable to find peers section '{section}'");
                diagnostics.push(Diagnostic::new(Severity::Alert, &place, reason).hint(question(&near)));
                table
            }
            _ => table,
        };
        tables.push(Arc::new(table));
    }
    let find = |name: &str| tables.iter().find(|table| **table.name() == *name);
    for (name, place) in &names {
        match find(&name.name) {
            Some(table) => {
                fits(name, table).unwrap_or_else(|problem| diagnostics.push(Diagnostic::new(problem.0, place, problem.1)));
                name.found(table);
            }
            None if complete => {
                let near = nearest(&name.name, tables.iter().map(|table| &**table.name()));
                let hint = match near.first() {
                    Some(near) => format!("did you mean '{near}'?"),
                    None => "a table has the name of the section that its 'stick-table' line stands in; one of a 'peers' section is called '<section>/<table>'".into(),
                };
                let reason = format!("unable to find table '{}'", name.name);
                diagnostics.push(Diagnostic::new(Severity::Alert, place, reason).hint(Some(hint)));
            }
            None => {}
        }
    }
    for table in &tables {
        if let Some(other) = table.settings().write_to.as_deref() {
            write_to(table, other, find(other), complete, diagnostics);
        }
    }
    tables
}

/// Checks that a table meets the requirements of a use.
fn fits(name: &TableName, table: &Table) -> Result<(), (Severity, String)> {
    let key = table.settings().key;
    match &name.want {
        Want::Table => Ok(()),
        Want::Rate(data) if table.has(*data) => Ok(()),
        Want::Rate(data) => {
            Err((Severity::Alert, format!("table '{}' does not store '{data}', which the filter counts", table.name())))
        }
        Want::Data(data, instead) if table.has(*data) || instead.is_some_and(|instead| table.has(instead)) => Ok(()),
        Want::Data(data, _) => {
            Err((Severity::Notice, format!("table '{}' does not store '{data}': there never is a value", table.name())))
        }
        Want::Keys(from, _) | Want::Servers(from) if cast::exists(*from, value_type(key)) => Ok(()),
        Want::Keys(_, word) => {
            let reason = format!("stick-table '{}' uses a type incompatible with the '{word}' rule", table.name());
            Err((Severity::Alert, reason))
        }
        Want::Servers(_) => Err((Severity::Alert, format!("type of fetch not usable with type of stick-table '{}'", table.name()))),
    }
}

/// The table that also gets the peers' updates (`write-to`): it must have keys of the same kind.
fn write_to(table: &Table, name: &str, other: Option<&Arc<Table>>, complete: bool, diagnostics: &mut Diagnostics) {
    let place = &table.settings().place;
    match other {
        None if complete => diagnostics.alert(place, format!("write-to: table '{name}' doesn't exist")),
        Some(other) if other.settings().write_to.is_some() => {
            diagnostics.alert(place, format!("write-to: table '{name}' is already used as a source table"));
        }
        Some(other) if other.settings().key != table.settings().key => {
            let (ours, theirs) = (table.settings().key.name(), other.settings().key.name());
            let reason = format!("write-to: the keys of '{}' are of type {ours}, those of '{name}' of type {theirs}", table.name());
            diagnostics.alert(place, reason);
        }
        _ => {}
    }
}

/// Data that `stick` lines need.
const LEARNT: &[Stored] =
    &[Stored { data: Data::ServerId, elements: 1, period_ms: 0 }, Stored { data: Data::ServerKey, elements: 1, period_ms: 0 }];
