//! From sections to resolvers at work: sections that are named must exist.

use crate::client::Resolvers;
use crate::settings::{FamilySettings, ResolversSettings, ResolversUses};
use std::sync::Arc;
use terse_config::{Diagnostic, Diagnostics, Place, Section, Settings, Severity, near};

/// Puts the `resolvers` sections to work. The sections that servers and rules name are looked for among them, if they are
/// `complete`. The section `default` is always there.
pub fn settle(
    sections: Vec<Section>,
    shared: &mut Settings,
    of_servers: Vec<(Arc<str>, Place)>,
    complete: bool,
    diagnostics: &mut Diagnostics,
) -> Vec<Arc<Resolvers>> {
    let families = shared.take::<FamilySettings>().unwrap_or_default();
    let of_rules = shared.take::<ResolversUses>().unwrap_or_default().uses;
    let mut found: Vec<Arc<Resolvers>> = Vec::new();
    for section in sections {
        let mut settings = section.settings;
        if found.iter().any(|other| *other.name == *section.name) {
            diagnostics.alert(&section.place, format!("resolvers '{}' stand here for the second time", section.name));
            continue;
        }
        let settings: ResolversSettings = settings.take().unwrap_or_default();
        if settings.servers.is_empty() {
            let reason = format!("resolvers '{}' have no name server", section.name);
            diagnostics.push(Diagnostic::new(Severity::Warning, &section.place, reason));
        }
        found.push(Resolvers::new(&section.name, settings, families));
    }
    for (name, place) in of_servers.iter().chain(&of_rules) {
        if found.iter().any(|resolvers| resolvers.name == *name) {
            continue;
        }
        if **name == *DEFAULT {
            found.push(Resolvers::new(DEFAULT, ResolversSettings::of_system(), families));
            continue;
        }
        if !complete {
            continue;
        }
        let near = near::nearest(name, found.iter().map(|resolvers| &*resolvers.name));
        let hint = near.first().map(|near| format!("did you mean '{near}'?"));
        diagnostics.push(Diagnostic::new(Severity::Alert, place, format!("unable to find required resolvers '{name}'")).hint(hint));
    }
    found
}

/// The section that is there without being written.
const DEFAULT: &str = "default";
