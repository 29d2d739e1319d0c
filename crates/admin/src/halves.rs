//! The halves of proxies, as statistics number and order them.

use std::sync::Arc;
use terse_proxy::plan::{Backend, Frontend, Plan};

/// Half of a proxy; a front half with its index in the plan.
#[derive(Clone, Copy)]
pub(crate) enum Half<'a> {
    Front(usize, &'a Frontend),
    Back(&'a Arc<Backend>),
}

/// Halves of all proxies in the order of the configuration, then backends that were added; of a `listen` the front half
/// comes first.
pub(crate) fn of<'a>(plan: &'a Plan, backends: &'a [Arc<Backend>]) -> Vec<Half<'a>> {
    let fronts = plan.frontends.iter().enumerate().map(|(index, front)| Half::Front(index, front));
    let mut halves: Vec<_> = fronts.chain(backends.iter().map(Half::Back)).collect();
    // A stable sort: front halves stay before the back halves that have the same place.
    halves.sort_by_key(|half| half.order());
    halves
}

impl<'a> Half<'a> {
    pub(crate) fn name(self) -> &'a str {
        match self {
            Half::Front(_, front) => &front.name,
            Half::Back(back) => &back.name,
        }
    }

    pub(crate) fn id(self) -> u32 {
        match self {
            Half::Front(_, front) => front.id,
            Half::Back(back) => back.id,
        }
    }

    pub(crate) fn description(self) -> Option<&'a Arc<str>> {
        match self {
            Half::Front(_, front) => front.description.as_ref(),
            Half::Back(back) => back.description.as_ref(),
        }
    }

    fn order(self) -> usize {
        match self {
            Half::Front(_, front) => front.order,
            Half::Back(back) => back.order,
        }
    }
}
