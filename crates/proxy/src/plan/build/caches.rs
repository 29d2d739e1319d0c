//! Caches: made of their sections, and looked up by the rules and filters that name them.

use crate::cache::{Cache, CacheName, CacheSettings};
use std::sync::Arc;
use terse_config::near::{nearest, question};
use terse_config::{Diagnostic, Diagnostics, Section, SectionKind, Severity};
use terse_sample::Reference;

/// Takes the sections out of a configuration. `secret`: the key of resources' names.
pub(super) fn build(
    sections: &mut Vec<Section>,
    secret: &[u8; 32],
    complete: bool,
    diagnostics: &mut Diagnostics,
) -> Vec<Arc<Cache>> {
    let own = sections.extract_if(.., |section| section.kind == SectionKind::Cache);
    let caches = own.map(|mut section| {
        let settings: CacheSettings = section.settings.take().unwrap_or_default();
        if let Some(problem) = settings.problem().filter(|_| complete) {
            diagnostics.alert(&section.place, format!("cache '{}': {problem}", section.name));
        }
        Arc::new(Cache::new(section.name, settings, secret))
    });
    caches.collect()
}

/// Finds the caches that rules and filters name.
pub(super) fn find(references: &[Reference], caches: &[Arc<Cache>], complete: bool, diagnostics: &mut Diagnostics) {
    for reference in references {
        let Some(named) = reference.to.downcast_ref::<CacheName>() else { continue };
        match caches.iter().find(|cache| *cache.name == *named.name) {
            Some(cache) => named.settle(cache),
            None if complete => {
                let near = nearest(&named.name, caches.iter().map(|cache| &*cache.name));
                let reason = format!("unable to find the cache '{}'", named.name);
                diagnostics.push(Diagnostic::new(Severity::Alert, &reference.place, reason).hint(question(&near)));
            }
            None => {}
        }
    }
}
