//! States of servers, read from files when the process starts.

use crate::files;
use crate::process::ProcessSettings;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Instant;
use terse_balance::restore::States;
use terse_balance::settings::StateSource;
use terse_config::{Diagnostic, Diagnostics, Place, Severity};
use terse_proxy::plan::Plan;

/// Starts the servers of backends that ask for it in the states of their files. Lines that cannot be parsed are reported and
/// ignored, but a server whose address only a file could give is an error.
pub fn states(plan: &Plan, process: &ProcessSettings, now: Instant, diagnostics: &mut Diagnostics) {
    let mut files: HashMap<PathBuf, Option<States>> = HashMap::new();
    for backend in plan.backends.now().iter() {
        let settings = backend.farm.settings();
        let named = match settings.states {
            StateSource::None => continue,
            StateSource::Global => process.states_file.as_deref(),
            StateSource::Local => Some(settings.state_file.as_deref().unwrap_or(&backend.name)),
        };
        // Without a file of the process nothing was asked for.
        let Some(named) = named else { continue };
        let path = process.states_folder.as_deref().map_or_else(|| PathBuf::from(named), |folder| Path::new(folder).join(named));
        let states = files.entry(path).or_insert_with_key(|path| read(path, &backend.place, diagnostics));
        for missing in states.iter().flat_map(|states| backend.farm.restore(states)) {
            diagnostics.push(Diagnostic::new(Severity::Notice, &backend.place, missing));
        }
    }
    let mut last = None;
    for server in plan.backends.now().iter().flat_map(|backend| backend.farm.servers().to_vec()) {
        let settings = server.settings();
        let lost = server.admin().is_unresolved() && settings.needs_last();
        // The servers of a template have one line.
        if let Some(place) = settings.place.clone().filter(|place| lost && last.as_ref() != Some(place)) {
            let name = settings.name_in_dns.as_deref().unwrap_or_default();
            diagnostics.alert(&place, format!("could not resolve address '{name}', and no file of states has it"));
            last = Some(place);
        }
    }
    // A leader may be in a later backend than those that track it.
    plan.backends.now().iter().for_each(|backend| backend.farm.lead(now));
}

fn read(path: &Path, place: &Place, diagnostics: &mut Diagnostics) -> Option<States> {
    let name = path.display();
    let bytes = match files::bounded(&name.to_string(), MOST_BYTES) {
        Ok(bytes) => bytes,
        // As at the first start.
        Err(_) if !path.exists() => {
            let reason = format!("file of states '{name}' is not there: servers start as their lines say");
            diagnostics.push(Diagnostic::new(Severity::Notice, place, reason));
            return None;
        }
        Err(reason) => {
            diagnostics.warn(place, format!("file of states '{name}': {reason}"));
            return None;
        }
    };
    let states = String::from_utf8(bytes).map_err(|_| "it is no text".into()).and_then(|text| States::read(&text));
    states.map_err(|reason| diagnostics.warn(place, format!("file of states '{name}': {reason}"))).ok()
}

/// So large is a file of states at most: a hundred thousand servers' lines.
const MOST_BYTES: u64 = 16 << 20;
