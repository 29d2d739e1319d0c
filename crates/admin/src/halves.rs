//! The halves of proxies, as statistics number and order them.

use std::sync::Arc;
use terse_proxy::plan::{Backend, Frontend, Plan};

/// A half of a proxy, with its index in the plan.
#[derive(Clone, Copy)]
pub(crate) enum Half<'a> {
    Front(usize, &'a Frontend),
    Back(usize, &'a Backend),
}

/// The halves of all proxies in the order of the configuration; of a `listen` the front half first.
pub(crate) fn of(plan: &Plan) -> Vec<Half<'_>> {
    let fronts = plan.frontends.iter().enumerate().map(|(index, front)| Half::Front(index, front));
    let backs = plan.backends.iter().enumerate().map(|(index, back)| Half::Back(index, back));
    let mut halves: Vec<_> = fronts.chain(backs).collect();
    // A stable sort: front halves stay before the back halves that have the same place.
    halves.sort_by_key(|half| half.order());
    halves
}

impl<'a> Half<'a> {
    pub(crate) fn name(self) -> &'a str {
        match self {
            Half::Front(_, front) => &front.name,
            Half::Back(_, back) => &back.name,
        }
    }

    pub(crate) fn id(self) -> u32 {
        match self {
            Half::Front(_, front) => front.id,
            Half::Back(_, back) => back.id,
        }
    }

    pub(crate) fn description(self) -> Option<&'a Arc<str>> {
        match self {
            Half::Front(_, front) => front.description.as_ref(),
            Half::Back(_, back) => back.description.as_ref(),
        }
    }

    fn order(self) -> usize {
        match self {
            Half::Front(_, front) => front.order,
            Half::Back(_, back) => back.order,
        }
    }
}
