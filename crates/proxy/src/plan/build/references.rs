//! Names of backends, found.

use super::drafts::Draft;
use terse_config::near::nearest;
use terse_config::{Diagnostic, Diagnostics, Place, Severity};

/// The index of the backend of that name, which a rule of a frontend speaks of; none when it is disabled, or when something is wrong
/// with it, which is said.
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
    // Bytes can become HTTP on their way, but not the other way round.
    if front.is_http() && !back.is_http() {
        let (front_mode, front, back_mode, back) = (front.mode(), front.label_at(), back.mode(), back.label_at());
        let reason = format!("{front_mode} {front} tries to use incompatible {back_mode} {back} by '{rule}' (see 'mode')");
        alert(reason, None);
        return None;
    }
    back.back
}
