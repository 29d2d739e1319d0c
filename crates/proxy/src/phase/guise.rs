//! Source address that a server sees in the place of this machine's: `source ... usesrc`.

use crate::stream::Stream;
use std::net::SocketAddr;
use terse_balance::settings::Guise;
use terse_message::list;
use terse_sample::cast;

/// The address; `None` where the request does not give it.
#[cold]
pub fn of(guise: &Guise, stream: &Stream) -> Option<SocketAddr> {
    let client = stream.facts.client;
    match guise {
        Guise::Client => client,
        Guise::ClientIp => client.map(|client| SocketAddr::new(client.ip(), 0)),
        Guise::Address(address) => Some(*address),
        Guise::Field(name, occurrence) => {
            let all = || stream.request.fields.values(name.bytes()).flat_map(list::elements);
            let nth = |at: i32| usize::try_from(at).ok();
            let text = match *occurrence {
                from_first @ 1.. => all().nth(nth(from_first - 1)?)?,
                from_last => all().nth(all().count().checked_sub(nth(from_last.checked_neg()?)?)?)?,
            };
            cast::parse_addr(text).map(|ip| SocketAddr::new(ip, 0))
        }
    }
}
