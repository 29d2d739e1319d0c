//! Servers that take their state from others (`track`): the tracked servers are looked up, and no chain is a circle.

use super::Building;
use super::drafts::Draft;
use crate::plan::Backend;
use std::collections::HashMap;
use std::sync::Arc;
use terse_balance::{Farm, Server};
use terse_config::Diagnostics;

/// A server, by the indices of its backend and in its farm.
type Spot = (usize, usize);

/// Finds all leaders, and lets those that follow take their states.
pub(super) fn settle(drafts: &[Draft], backends: &[Arc<Backend>], building: &mut Building<'_>) {
    let leaders = leaders(drafts, backends, building.diagnostics);
    for (follower, leader) in &leaders {
        if is_sound(*follower, &leaders, backends, building.diagnostics) {
            let ((farm, server), (leader_farm, leader)) = (at(*follower, backends), at(*leader, backends));
            farm.follow(&server, &leader, leader_farm, building.host.started);
        }
    }
}

fn leaders(drafts: &[Draft], backends: &[Arc<Backend>], diagnostics: &mut Diagnostics) -> HashMap<Spot, Spot> {
    let by_name: HashMap<&str, usize> = backends.iter().enumerate().map(|(index, backend)| (&*backend.name, index)).collect();
    let mut leaders = HashMap::new();
    for (index, backend) in backends.iter().enumerate() {
        for server in backend.farm.servers().iter() {
            let Some((track, place)) = &server.settings().track else { continue };
            let (of, name) = track.split_once('/').unwrap_or((&backend.name, track));
            let found = by_name.get(of).and_then(|of| Some((*of, backends[*of].farm.find_server(name)?.index())));
            match found {
                Some(leader) => drop(leaders.insert((index, server.index()), leader)),
                None if drafts.iter().any(|draft| *draft.name == *of) => {
                    diagnostics.alert(place, format!("unable to find required server '{of}/{name}' for tracking"));
                }
                None => diagnostics.alert(place, format!("unable to find required proxy '{of}' for tracking")),
            }
        }
    }
    leaders
}

/// Whether the chain from a server on ends at a server whose health is known.
fn is_sound(follower: Spot, leaders: &HashMap<Spot, Spot>, backends: &[Arc<Backend>], diagnostics: &mut Diagnostics) -> bool {
    let (_, server) = at(follower, backends);
    let Some((track, place)) = &server.settings().track else { return false };
    if server.settings().check.enabled {
        diagnostics.alert(place, format!("'{track}' cannot be tracked by a server that has checks of its own"));
        return false;
    }
    let mut last = follower;
    for _ in 0..=leaders.len() {
        match leaders.get(&last) {
            Some(next) => last = *next,
            None => {
                let (farm, end) = at(last, backends);
                if end.settings().check.enabled || end.settings().agent.enabled {
                    return true;
                }
                let name = format!("{}/{}", farm.name(), end.name());
                diagnostics
                    .alert(place, format!("unable to use {name} for tracking as it does not have any check nor agent enabled"));
                return false;
            }
        }
    }
    diagnostics.alert(place, "unable to track a server that comes back to this one: a loop");
    false
}

fn at((backend, server): Spot, backends: &[Arc<Backend>]) -> (&Arc<Farm>, Arc<Server>) {
    let farm = &backends[backend].farm;
    (farm, farm.servers()[server].clone())
}
