//! Sockets of `peers` sections, and the tasks that serve them.

use crate::configuration::Configuration;
use crate::intakes;
use crate::listening::listener;
use crate::sockets::{Listening, Wanted};
use terse_peers::ListeningSocket;
use terse_proxy::access::Listener;
use terse_proxy::plan::Plan;
use terse_proxy::settings::BindSettings;

/// The `bind` lines of all sections, in order: the index of the section, that of the line within it, the section's name.
pub fn binds(plan: &Plan) -> impl Iterator<Item = (usize, usize, &str, &BindSettings)> {
    let circles = plan.peers.iter().enumerate();
    circles.flat_map(|(index, circle)| {
        circle.binds.iter().enumerate().map(move |(bind, settings)| (index, bind, &*circle.group.name, settings))
    })
}

/// The number of the first of these lines among those of all sockets.
pub fn first_line(plan: &Plan, commands: usize) -> usize {
    plan.binds().len() + commands + intakes::binds(plan).count()
}

/// Descriptors of all sections beside their sockets.
pub fn descriptors(plan: &Plan, commands: usize, wanted: &[Wanted]) -> usize {
    let first = first_line(plan, commands);
    let owners: Vec<usize> = binds(plan).map(|(circle, ..)| circle).collect();
    let owner = |wanted: &Wanted| owners.get(wanted.line.checked_sub(first)?).copied();
    let sockets = |circle: usize| wanted.iter().filter(|wanted| owner(wanted) == Some(circle)).map(|wanted| wanted.count).sum();
    plan.peers.iter().enumerate().map(|(index, circle)| terse_peers::descriptors(&circle.group, sockets(index))).sum()
}

/// Takes the sockets of these lines out of those that were opened.
pub fn take(configuration: &Configuration, sockets: &mut Vec<Listening>) -> Vec<terse_peers::Listening> {
    let plan = &configuration.plan;
    let first = first_line(plan, configuration.admin.sockets.len());
    let owners: Vec<_> = binds(plan).map(|(group, bind, ..)| (group, bind)).collect();
    let own = sockets.extract_if(.., |listening| listening.line >= first);
    let taken = own.filter_map(|listening| {
        let (group, bind) = *owners.get(listening.line - first)?;
        let socket = match listener(listening) {
            Listener::Tcp(listener) => ListeningSocket::Tcp(listener),
            Listener::Unix(listener) => ListeningSocket::Unix(listener),
        };
        Some(terse_peers::Listening { group, bind, socket })
    });
    taken.collect()
}
