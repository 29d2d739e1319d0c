//! Remote desktops: the server of a client, by RDP's cookies.

use super::support::Terse;
use super::support::client::Client;
use super::support::program::find;
use super::support::proxy::DEFAULTS;
use super::support::server::Server;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A server that sends its name when a client has sent something.
fn named(name: &'static str) -> Server {
    Server::start(move |connection| {
        if connection.bytes(1).is_some() {
            connection.send(name);
        }
    })
}

/// A connection request of RDP with that cookie ([MS-RDPBCGR] section 2.2.1.1).
fn request(cookie: &str) -> Vec<u8> {
    let rest = format!("Cookie: {cookie}\r\n\x01\0\x08\0\0\0\0\0");
    let length = rest.len() as u8 + 11;
    [&[3, 0, 0, length, length - 5, 0xe0, 0, 0, 0, 0, 0][..], rest.as_bytes()].concat()
}

/// The routing token of a server.
fn token(address: SocketAddr) -> String {
    let SocketAddr::V4(address) = address else { panic!("{address}") };
    format!("msts={}.{}.0000", u32::from_le_bytes(address.ip().octets()), address.port().swap_bytes())
}

/// Names of the servers that answer clients with these cookies.
fn answers(program: Option<&Path>, lines: &str, servers: &[Server], cookies: &[String]) -> Vec<String> {
    let all: String = servers.iter().zip('a'..).map(|(server, name)| format!(" server {name} {}\n", server.address())).collect();
    let defaults = DEFAULTS.replace("mode http", "mode tcp");
    let text = format!(
        "global\n nbthread 1\n{defaults}\nlisten web\n bind fd@${{web}}\n mode tcp\n tcp-request inspect-delay 20s\n \
         tcp-request content accept if RDP_COOKIE\n{lines}\n{all}"
    );
    let process = Terse::with(&text).listen("web").arg(&["-db"]);
    let process = match program {
        Some(path) => process.program(path),
        None => process,
    };
    let process = process.start();
    let ask = |cookie: &String| {
        let mut client = Client::connect(process.address("web"));
        client.send(request(cookie));
        let mut name = [0];
        client.read(&mut name);
        String::from_utf8_lossy(&name).into_owned()
    };
    cookies.iter().map(ask).collect()
}

#[test]
fn desktops_go_where_their_cookies_say() {
    let Some(haproxy): Option<PathBuf> = std::env::var_os("HAPROXY").map(Into::into).or_else(|| find("haproxy")) else { return };
    let servers = [named("a"), named("b"), named("c")];
    let mut cookies: Vec<_> = servers.iter().rev().map(|server| token(server.address())).collect();
    cookies.extend(servers.iter().rev().map(|server| token(server.address()).replace('=', "= ")));
    cookies.extend(["msts=16777343.256.0000", "msts=1", "mstshash=joe", "mstshash=ann", "mstshash=max"].map(str::to_owned));
    for lines in
        [" persist rdp-cookie\n balance rdp-cookie", " persist rdp-cookie(msts)\n balance first", " balance rdp-cookie(msts)"]
    {
        let (theirs, ours) = (answers(Some(&haproxy), lines, &servers, &cookies), answers(None, lines, &servers, &cookies));
        // Where nothing is hashed, the first turn is not defined.
        let counts = |names: &[String]| if lines.contains("rdp-cookie(") { names.to_vec() } else { names[..6].to_vec() };
        assert_eq!(counts(&theirs), counts(&ours), "{lines}");
        if lines.contains("persist") {
            assert_eq!(ours[..6], ["c", "b", "a", "c", "b", "a"], "{lines}");
        }
    }
    // An empty cookie is no key: a client with it gets the next server in turn.
    let cookies = ["mstshash=", "mstshash=", "mstshash=", "MSTSHASH=joe", "mstshash=a;b", "mstshash==", "mstshash=%41"];
    let cookies = cookies.map(str::to_owned);
    for hash in ["map-based", "consistent djb2"] {
        let lines = format!(" balance rdp-cookie\n hash-type {hash}");
        let (theirs, ours) = (answers(Some(&haproxy), &lines, &servers, &cookies), answers(None, &lines, &servers, &cookies));
        assert_eq!(theirs[3..], ours[3..], "{lines}");
        let mut turns = ours[..3].to_vec();
        turns.sort();
        assert_eq!(turns, ["a", "b", "c"], "{lines}");
    }
}
