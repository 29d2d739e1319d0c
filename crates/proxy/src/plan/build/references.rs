//! Names of proxies and servers, found.

use super::drafts::Draft;
use crate::log::{Directory, Missing};
use crate::plan::{Backend, Frontend};
use crate::samples::lookup::{Named, NamedKind};
use crate::samples::trail::Trail;
use std::sync::Arc;
use terse_config::near::{nearest, question};
use terse_config::{Diagnostic, Diagnostics, Place, Severity};
use terse_sample::Reference;

/// The index of the backend of that name, which a rule of a frontend names; `None` when it is disabled, or when there is a
/// fault in it, which is reported.
pub(super) fn backend(
    name: &str,
    rule: &str,
    place: &Place,
    front: &Draft,
    drafts: &[Draft],
    diagnostics: &mut Diagnostics,
) -> Option<usize> {
    let backs = || drafts.iter().filter(|draft| draft.kind.is_back());
    let mut alert = |reason: String, hint: Option<String>| {
        diagnostics.push(Diagnostic::new(Severity::Alert, place, reason).hint(hint));
    };
    let Some(back) = backs().find(|back| &*back.name == name) else {
        let near = nearest(name, backs().map(|back| &*back.name));
        let hint = near.first().map(|near| format!("did you mean '{near}'?"));
        alert(format!("{}: unable to find required {rule}: '{name}'", front.label()), hint);
        return None;
    };
    if std::ptr::eq(back, front) {
        alert(format!("{}: loop detected for {rule}: '{name}'", front.label()), None);
        return None;
    }
    // Bytes can become HTTP on their way, but not the other way round. A line that was refused may have set the mode.
    if front.is_http() && !back.is_http() && !front.doubtful && !back.doubtful {
        let (front_mode, front, back_mode, back) = (front.mode(), front.label_at(), back.mode(), back.label_at());
        let reason = format!("{front_mode} {front} tries to use incompatible {back_mode} {back} by '{rule}' (see 'mode')");
        alert(reason, None);
        return None;
    }
    back.back
}

/// Finds the proxies and servers that expressions name. Without `complete`, a missing name is not reported: its line may have
/// been refused.
pub(super) fn names(
    references: &[Reference],
    drafts: &[Draft],
    (frontends, backends): (&[Frontend], &[Arc<Backend>]),
    complete: bool,
    diagnostics: &mut Diagnostics,
) {
    for reference in references {
        let Some(named) = reference.to.downcast_ref::<Named>() else { continue };
        if named.find(frontends, backends) || !complete {
            continue;
        }
        if let Some((reason, hint)) = missing(named, drafts, backends) {
            diagnostics.push(Diagnostic::new(Severity::Alert, &reference.place, reason).hint(hint));
        }
    }
}

/// Finds the rings that expressions write to.
pub(super) fn rings(references: &[Reference], directory: &mut Directory, complete: bool, diagnostics: &mut Diagnostics) {
    for reference in references {
        let Some(trail) = reference.to.downcast_ref::<Trail>() else { continue };
        let Some(name) = trail.ring() else { continue };
        match directory.ring(name, trail.is_usual(), &reference.place) {
            Ok(ring) => trail.settle(&ring),
            Err(Missing { reason, hint }) if complete => {
                diagnostics.push(Diagnostic::new(Severity::Alert, &reference.place, reason).hint(hint));
            }
            Err(_) => {}
        }
    }
}

/// The report for a name that is not in the plan; `None` for disabled proxies, and for servers in `defaults`.
fn missing(named: &Named, drafts: &[Draft], backends: &[Arc<Backend>]) -> Option<(String, Option<String>)> {
    let proxies = |wanted: fn(&Draft) -> bool| drafts.iter().filter(move |draft| wanted(draft));
    let absent = |what: &str, wanted: fn(&Draft) -> bool| {
        let near = nearest(&named.proxy, proxies(wanted).map(|draft| &*draft.name));
        let is_there = proxies(wanted).any(|draft| draft.name == named.proxy);
        (!is_there).then(|| (format!("unable to find {what} '{}'", named.proxy), question(&near)))
    };
    match named.kind {
        NamedKind::Frontend => absent("frontend", |draft| draft.kind.is_front()),
        NamedKind::Backend => absent("backend", |draft| draft.kind.is_back()),
        NamedKind::Server | NamedKind::OwnServer => {
            if let Some(backend) = backends.iter().find(|backend| backend.name == named.proxy) {
                let servers = backend.farm.servers();
                let near = nearest(&named.server, servers.iter().map(|server| &**server.name()));
                return Some((format!("unable to find server '{}' in backend '{}'", named.server, named.proxy), question(&near)));
            }
            if named.kind == NamedKind::Server {
                return absent("backend", |draft| draft.kind.is_back());
            }
            let is_front = proxies(|draft| !draft.kind.is_back()).any(|draft| draft.name == named.proxy);
            let reason = || format!("unable to find server '{}': frontend '{}' has none", named.server, named.proxy);
            is_front.then(|| (reason(), Some("name its backend too: '<backend>/<server>'".into())))
        }
    }
}
