//! Error pages: those of a section's own lines, and those of `http-errors` sections that it names.

use crate::reply::{Page, Pages};
use crate::settings::{ErrorSetUse, ErrorSetUses, ErrorSettings, ErrorSource};
use std::collections::HashMap;
use std::sync::Arc;
use terse_config::near::nearest;
use terse_config::{Diagnostic, Diagnostics, Section, SectionKind, Settings, Severity};

/// The pages of all `http-errors` sections, by their names.
pub(super) type Sets = HashMap<Arc<str>, Pages>;

/// The sets of the configuration.
pub(super) fn sets(sections: &[Section]) -> Sets {
    let mut sets = Sets::new();
    for section in sections.iter().filter(|section| section.kind == SectionKind::HttpErrors) {
        let mut pages = Pages::default();
        for source in section.settings.get::<ErrorSettings>().map_or(&[][..], |errors| &errors.sources) {
            if let ErrorSource::Page(status, page) = source {
                pages.set(*status, page.clone());
            }
        }
        sets.insert(section.name.clone(), pages);
    }
    sets
}

/// Reports rules that name sections that do not exist.
pub(super) fn check_uses(shared: &Settings, sets: &Sets, diagnostics: &mut Diagnostics) {
    for one in shared.get::<ErrorSetUses>().map_or(&[][..], |uses| &uses.uses) {
        find(one, sets, diagnostics);
    }
}

/// The pages of a proxy.
pub(super) fn of(sources: &[ErrorSource], sets: &Sets, diagnostics: &mut Diagnostics) -> Pages {
    let mut pages = Pages::default();
    for source in sources {
        match source {
            ErrorSource::Page(status, page) => pages.set(*status, page.clone()),
            ErrorSource::BuiltIn(status) => pages.unset(*status),
            ErrorSource::Set(one) => {
                for (status, page) in find(one, sets, diagnostics) {
                    pages.set(status, page);
                }
            }
        }
    }
    pages
}

/// The pages that are meant.
fn find(one: &ErrorSetUse, sets: &Sets, diagnostics: &mut Diagnostics) -> Vec<(u16, Page)> {
    let Some(set) = sets.get(&*one.name) else {
        let near = nearest(&one.name, sets.keys().map(|name| &**name));
        let hint = near.first().map(|near| format!("did you mean '{near}'?"));
        let reason = format!("unable to find http-errors section '{}'", one.name);
        diagnostics.push(Diagnostic::new(Severity::Alert, &one.place, reason).hint(hint));
        return Vec::new();
    };
    if one.statuses.is_empty() {
        return set.iter().map(|(status, page)| (status, page.clone())).collect();
    }
    let mut found = Vec::new();
    for status in &one.statuses {
        match set.get(*status) {
            Some(page) => found.push((*status, page.clone())),
            None => {
                let reason = format!("status '{status}' not declared in http-errors section '{}'", one.name);
                diagnostics.warn(&one.place, reason);
            }
        }
    }
    found
}
