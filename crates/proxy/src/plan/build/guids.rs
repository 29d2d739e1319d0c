//! `guid`: no two objects have the same name of statistics.

use super::drafts::Draft;
use std::collections::HashMap;
use terse_balance::guid::Guid;
use terse_config::{Diagnostics, Place};

/// Reports names that stand twice.
pub(super) fn check(drafts: &[Draft], diagnostics: &mut Diagnostics) {
    let mut known: HashMap<String, Place> = HashMap::new();
    let mut take = |name: String, place: &Place| {
        if let Some(before) = known.get(&name) {
            diagnostics.alert(place, format!("the guid '{name}' is taken already, at {}:{}", before.file, before.line));
        } else {
            known.insert(name, place.clone());
        }
    };
    for draft in drafts {
        if let Some(Guid { name, place }) = &draft.proxy.guid {
            take(name.to_string(), place);
        }
        for bind in &draft.proxy.binds {
            if let (Some(name), Some(Guid { place, .. })) = (bind.guid(), &bind.guid_prefix) {
                take(name, place);
            }
        }
        for server in &draft.farm.servers {
            if let Some(Guid { name, place }) = &server.guid {
                take(name.to_string(), place);
            }
        }
    }
}
