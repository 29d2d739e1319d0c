//! Two releases of one script: the second goes out as the difference to the first, once two clients have had that.

use super::PATIENCE;
use crate::client::{Client, Reply};
use crate::origin::RELEASES;
use crate::program::wait_until;
use crate::secure::Secure;
use crate::undone;
use anyhow::{Context, Result};
use std::net::{Ipv4Addr, SocketAddr};
use terse_dictionary::Hash;

/// Clients that have the first release.
const FIRST_CLIENTS: [Ipv4Addr; 2] = [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)];

/// The client that has the first release, and asks for the second.
const LATER_CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);

/// Fetches both over TLS, and prints what they took; true if everything came whole.
pub(super) fn show(address: SocketAddr) -> Result<bool> {
    let secure = Secure::new(false)?;
    let fetch = |from: Ipv4Addr, path: &str, lines: &[&str]| -> Result<Reply> {
        let mut client = Client::connect_secured_from(from, address, PATIENCE, &secure)?;
        // A browser has the balancer's cookie from the page before.
        client.get(path, &[&["Cookie: SERVERID=s1"], lines].concat()).with_context(|| path.to_owned())
    };
    let [first, second] = RELEASES;
    let plain = [fetch(LATER_CLIENT, first, &[])?.body, fetch(LATER_CLIENT, second, &[])?.body];
    let coded = fetch(LATER_CLIENT, second, &["Accept-Encoding: br"])?;
    for client in FIRST_CLIENTS {
        fetch(client, first, &["Accept-Encoding: br, zstd"])?;
    }
    let hash = openssl::base64::encode_block(&Hash::of(&plain[0]).0);
    let offer = format!("Available-Dictionary: :{hash}:");
    let mut difference = None;
    wait_until(PATIENCE, || {
        let reply = fetch(LATER_CLIENT, second, &["Accept-Encoding: br, zstd, dcz", &offer]);
        difference = reply.ok().filter(|reply| reply.field("content-encoding") == Some("dcz"));
        difference.is_some()
    });
    let difference = difference.with_context(|| format!("{second} was never sent as a difference"))?;
    println!("\nTwo releases of one script over TLS; the second one for clients that have the first:");
    println!(
        "  {second:<29} {:>9} bytes, {} with br, {} with dcz (RFC 9842)",
        plain[1].len(),
        coded.body.len(),
        difference.body.len()
    );
    Ok(coded.decoded()? == plain[1] && undone::dcz(&difference.body, &plain[0])? == plain[1])
}
