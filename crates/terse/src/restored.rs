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

/// Starts the servers of backends that ask for it in the states of their files. What cannot be read is said, and counts for nothing.
pub fn states(plan: &Plan, process: &ProcessSettings, now: Instant, diagnostics: &mut Diagnostics) {
    let mut texts: HashMap<PathBuf, Option<String>> = HashMap::new();
    for backend in &plan.backends {
        let settings = backend.farm.settings();
        let named = match settings.states {
            StateSource::None => continue,
            StateSource::Global => process.states_file.as_deref(),
            StateSource::Local => Some(settings.state_file.as_deref().unwrap_or(&backend.name)),
        };
        // Without a file of the process nothing was asked for.
        let Some(named) = named else { continue };
        let path = process.states_folder.as_deref().map_or_else(|| PathBuf::from(named), |folder| Path::new(folder).join(named));
        let text = texts.entry(path.clone()).or_insert_with(|| read(&path, &backend.place, diagnostics));
        let Some(text) = text else { continue };
        match States::read(text) {
            Ok(states) => {
                for missing in backend.farm.restore(&states, now) {
                    diagnostics.push(Diagnostic::new(Severity::Notice, &backend.place, missing));
                }
            }
            Err(reason) => diagnostics.warn(&backend.place, format!("file of states '{}': {reason}", path.display())),
        }
    }
}

fn read(path: &Path, place: &Place, diagnostics: &mut Diagnostics) -> Option<String> {
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
    String::from_utf8(bytes).map_err(|_| diagnostics.warn(place, format!("file of states '{name}' is no text"))).ok()
}

/// So large is a file of states at most: a hundred thousand servers' lines.
const MOST_BYTES: u64 = 16 << 20;
