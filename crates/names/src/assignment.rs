//! Which server gets which of a name's addresses: pure functions of what the servers have and what the answer says.
//!
//! A server keeps what it has for as long as it is there. Others get what nobody has, best first; with `allow-dup-ip` also what others
//! have. Who gets nothing has no address.

use crate::message::Service;
use std::net::IpAddr;

/// What a server has, and what it wants.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    /// Its address now.
    pub(crate) address: Option<IpAddr>,
    /// Its group: two servers of one group shall not have the same address.
    pub(crate) group: usize,
    /// `allow-dup-ip`
    pub(crate) shares: bool,
    /// `resolve-net`
    pub(crate) networks: std::sync::Arc<[(IpAddr, u8)]>,
}

/// The address of each seat.
pub(crate) fn addresses(seats: &[Seat], offered: &[IpAddr]) -> Vec<Option<IpAddr>> {
    let mut given: Vec<Option<IpAddr>> = vec![None; seats.len()];
    let taken = |given: &[Option<IpAddr>], group: usize, ip: IpAddr| {
        given.iter().zip(seats).any(|(given, seat)| seat.group == group && *given == Some(ip))
    };
    for (at, seat) in seats.iter().enumerate() {
        if let Some(ip) = seat.address.filter(|ip| offered.contains(ip))
            && (seat.shares || !taken(&given, seat.group, ip))
        {
            given[at] = Some(ip);
        }
    }
    for (at, seat) in seats.iter().enumerate() {
        if given[at].is_some() {
            continue;
        }
        let mut order: Vec<IpAddr> = offered.to_vec();
        order.sort_by_key(|ip| !seat.networks.iter().any(|network| contains(*network, *ip)));
        let free = order.iter().copied().find(|ip| !taken(&given, seat.group, *ip));
        given[at] = free.or_else(|| order.first().copied().filter(|_| seat.shares));
    }
    given
}

/// Whether a network has an address.
fn contains((network, bits): (IpAddr, u8), ip: IpAddr) -> bool {
    match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => same_prefix(u128::from(network.to_bits()), u128::from(ip.to_bits()), 32, bits),
        (IpAddr::V6(network), IpAddr::V6(ip)) => same_prefix(network.to_bits(), ip.to_bits(), 128, bits),
        _ => false,
    }
}

fn same_prefix(a: u128, b: u128, width: u32, bits: u8) -> bool {
    let rest = width.saturating_sub(u32::from(bits));
    rest >= 128 || a >> rest == b >> rest
}

/// The place of the service of each server, which are as many as `held`: one that holds a place keeps it.
pub(crate) fn services(held: &[Option<Service>], offered: &[Service]) -> Vec<Option<Service>> {
    let same = |a: &Service, b: &Service| a.target == b.target && a.port == b.port;
    let now = |held: &Option<Service>| held.as_ref().and_then(|held| offered.iter().find(|offered| same(held, offered)).cloned());
    let mut given: Vec<Option<Service>> = held.iter().map(now).collect();
    let mut best: Vec<&Service> = offered.iter().collect();
    best.sort_by_key(|service| service.priority);
    for service in best {
        if given.iter().flatten().any(|given| same(given, service)) {
            continue;
        }
        let Some(free) = given.iter_mut().find(|given| given.is_none()) else { break };
        *free = Some(service.clone());
    }
    given
}

/// A server's weight for that of a record, 1 to 256 for 1 to 65535; 0 is 0. HAProxy's scale.
pub(crate) const fn weight(service: &Service) -> u32 {
    (service.weight as u32).div_ceil(256)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn seat(address: Option<u8>) -> Seat {
        Seat { address: address.map(ip), group: 0, shares: false, networks: Arc::default() }
    }

    #[test]
    fn who_has_an_address_keeps_it_and_others_get_what_is_left() {
        let seats = [seat(None), seat(Some(2)), seat(Some(9)), seat(None)];
        assert_eq!(addresses(&seats, &[ip(1), ip(2), ip(3)]), [Some(ip(1)), Some(ip(2)), Some(ip(3)), None]);
        assert_eq!(addresses(&[seat(Some(1)), seat(Some(1))], &[ip(1), ip(2)]), [Some(ip(1)), Some(ip(2))]);
        assert_eq!(addresses(&seats, &[]), [None; 4]);
    }

    #[test]
    fn addresses_are_shared_where_that_is_allowed_or_nobody_sees_it() {
        let sharing = Seat { shares: true, ..seat(None) };
        assert_eq!(addresses(&[sharing.clone(), sharing.clone()], &[ip(1)]), [Some(ip(1)); 2]);
        assert_eq!(addresses(&[sharing.clone(), sharing], &[ip(1), ip(2)]), [Some(ip(1)), Some(ip(2))]);
        assert_eq!(addresses(&[seat(None), Seat { group: 1, ..seat(None) }], &[ip(1)]), [Some(ip(1)); 2]);
    }

    #[test]
    fn networks_come_first() {
        let near = Seat { networks: [("10.1.0.0".parse().unwrap(), 16)].into(), ..seat(None) };
        assert_eq!(addresses(std::slice::from_ref(&near), &[ip(1), [10, 1, 2, 3].into()]), [Some([10, 1, 2, 3].into())]);
        assert_eq!(addresses(&[near], &[ip(1)]), [Some(ip(1))]);
        assert!(contains(("::".parse().unwrap(), 0), "::1".parse().unwrap()) && !contains((ip(0), 8), "::1".parse().unwrap()));
    }

    #[test]
    fn services_keep_their_servers() {
        let service = |target: &str, priority| Service { priority, weight: 0, port: 80, target: target.into() };
        let (a, b, c) = (service("a", 1), service("b", 0), service("c", 2));
        let first = services(&[None, None], &[a.clone(), b.clone(), c.clone()]);
        assert_eq!(first, [Some(b.clone()), Some(a.clone())]);
        assert_eq!(services(&first, &[c.clone(), a.clone()]), [Some(c), Some(a.clone())]);
        assert_eq!(services(&[Some(a)], &[]), [None]);
        let scaled = [0, 1, 255, 256, 257, 512, 32_768, 65_535].map(|told| weight(&Service { weight: told, ..b.clone() }));
        assert_eq!(scaled, [0, 1, 1, 1, 2, 2, 128, 256]);
    }
}
