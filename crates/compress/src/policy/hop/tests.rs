//! Every combination of the states of two hops, the actions of their peers, and their bodies; and how often each byte is
//! compressed.

use super::*;
use crate::testing::request;

const MODES: [Mode; 3] = [Mode::Auto, Mode::Off, Mode::Force];
const BOOLS: [bool; 2] = [false, true];

/// Codings that clients ask for.
const ASKED: [&str; 6] = ["", "gzip", "svndiff1", "gzip, svndiff1", "*", "identity"];

/// Behaviour of a server.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Server {
    /// It never codes.
    Plain,
    /// It codes with gzip where that is asked for.
    Asked,
    /// It sends coded bodies whatever is asked for, such as files that lie there coded.
    Always,
}

/// Result of a request and its response, with the steps and the order that the proxy has.
fn journey(client: Link, server: Link, asked: &str, origin: Server, configured: bool, decodes: bool) -> (Hop, Hop, String) {
    let mut fields = request(&format!("GET / HTTP/1.1\nAccept-Encoding: {asked}")).fields;
    let takes_gzip = asked.contains("gzip") || asked.contains('*');
    let ours = configured && takes_gzip && client.may_code().is_ok();
    for link in [client, server] {
        if !hop(link, Body::Plain).codes {
            narrow(&mut fields);
        }
    }
    let sent = String::from_utf8(fields.every(Known::AcceptEncoding).collect::<Vec<_>>().join(&b","[..])).unwrap();
    let coded = match origin {
        Server::Plain => false,
        Server::Asked => sent.contains("gzip") || sent.contains('*'),
        Server::Always => true,
    };
    let arrives = if coded { Body::Coded } else { Body::Plain };
    // A client that cannot take it gets it decoded, where that was asked for.
    let stays_coded = coded && (takes_gzip || !decodes);
    let leaves = if stays_coded || ours { Body::Coded } else { Body::Plain };
    (hop(server, arrives), hop(client, leaves), sent)
}

/// Number of compressors that a body's bytes go through: its coding, and records that are not stored.
fn compressors(link: Link, hop: Hop) -> usize {
    let coding = usize::from(matches!(hop.layer, Layer::Content | Layer::Stored | Layer::Both));
    coding + usize::from(link.compresses && !hop.stores)
}

#[test]
fn no_byte_is_compressed_twice_on_a_hop() {
    let mut seen = 0;
    for (client_mode, server_mode) in MODES.iter().flat_map(|one| MODES.iter().map(move |other| (*one, *other))) {
        for (client_records, server_records) in BOOLS.iter().flat_map(|one| BOOLS.iter().map(move |other| (*one, *other))) {
            for asked in ASKED {
                for origin in [Server::Plain, Server::Asked, Server::Always] {
                    for (configured, decodes) in BOOLS.iter().flat_map(|one| BOOLS.iter().map(move |other| (*one, *other))) {
                        let client = Link { compresses: client_records, mode: client_mode, is_secure: true };
                        let server = Link { compresses: server_records, mode: server_mode, is_secure: true };
                        let (from_server, to_client, sent) = journey(client, server, asked, origin, configured, decodes);
                        let what = format!("{client:?} {server:?} {asked} {origin:?} {configured} {decodes}: {sent}");
                        for (link, hop) in [(server, from_server), (client, to_client)] {
                            assert_eq!(compressors(link, hop), hop.layer.compressors(), "{what}");
                            let most = if link.mode == Mode::Force { 2 } else { 1 };
                            assert!(hop.layer.compressors() <= most, "{what}");
                            // A body that is not to be compressed is compressed only by a peer that was not asked to.
                            let by_peer = origin == Server::Always || link == client && origin == Server::Asked;
                            assert!(link.mode != Mode::Off || hop.layer.compressors() == 0 || by_peer, "{what}");
                            assert!(hop.codes || !sent.contains("gzip"), "{what}");
                        }
                        // The application's own codings do not concern the hop.
                        assert_eq!(asked.contains("svndiff1"), sent.contains("svndiff1"), "{what}");
                        assert!(!sent.is_empty() || asked.is_empty(), "{what}");
                        seen += 1;
                    }
                }
            }
        }
    }
    assert_eq!(seen, 3 * 3 * 4 * 6 * 3 * 4);
}

#[test]
fn the_table_of_the_manual() {
    let layer = |compresses, mode, body| hop(Link { compresses, mode, is_secure: true }, body).layer;
    assert_eq!(layer(false, Mode::Auto, Body::Plain), Layer::None);
    assert_eq!(layer(false, Mode::Auto, Body::Coded), Layer::Content);
    assert_eq!(layer(true, Mode::Auto, Body::Plain), Layer::Records);
    assert_eq!(layer(true, Mode::Auto, Body::Coded), Layer::Stored);
    assert_eq!(layer(true, Mode::Off, Body::Plain), Layer::Off);
    assert_eq!(layer(true, Mode::Force, Body::Coded), Layer::Both);
    assert!(hop(Link { compresses: true, mode: Mode::Off, is_secure: true }, Body::Plain).stores);
}

#[test]
fn requests_that_refuse_plain_bodies_are_left_alone() {
    let mut fields = request("GET / HTTP/1.1\nAccept-Encoding: gzip, identity;q=0").fields;
    narrow(&mut fields);
    assert_eq!(fields.first(Known::AcceptEncoding), Some(&b"gzip, identity;q=0"[..]));
}
