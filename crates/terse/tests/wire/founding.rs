//! The founding document's service in one program: its HAProxy file with compression beside it, from examples/.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::support;

use support::client::{Client, Response};
use support::gzip::gunzip;
use support::server::{Port, Server};
use support::{Terse, until};
use terse_lab::content::picture::Picture;

/// Size that the document's chain brought its bitmap to.
const CHAIN_BYTES: usize = 182_300;

/// The bitmap: of the document's size where there is time to compress it, a small one of the same kind in a debug build.
fn bitmap() -> Vec<u8> {
    let (width, height) = if cfg!(debug_assertions) { (300, 200) } else { (1800, 1352) };
    Picture::city(1, width, height).bitmap(256 * 1024).bytes
}

fn cookie(response: &Response) -> Option<&str> {
    response.field("set-cookie").filter(|cookie| cookie.starts_with("SERVERID="))
}

#[test]
fn the_chain_in_one_program() {
    let picture = bitmap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: image/bmp\r\nETag: \"1\"\r\nContent-Length: {}\r\n\r\n", picture.len());
    let answer = [head.as_bytes(), &picture].concat();
    let mut server = Server::answering(move |_| answer.clone());
    let backup = Server::body("backup");
    let port = Port::new();
    // The machine's limits are not the subject here.
    let text =
        include_str!("../../../../examples/compressing.cfg").replace("maxconn 40000", "maxconn 400").replace("ulimit-n 81000", "");
    let terse = Terse::with(&text)
        .env("LISTEN", &port.address().to_string())
        .env("SERVER", &server.address().to_string())
        .env("BACKUP", &backup.address().to_string());
    let (pid, socket) = (terse.path("pid"), terse.path("stats"));
    let terse = terse.env("PIDFILE", pid.to_str().unwrap()).env("STATS_SOCKET", socket.to_str().unwrap()).arg(&["-db"]).start();
    until("the service", || std::net::TcpStream::connect(port.address()).ok());

    let get = |fields: &[(&str, &str)]| Client::connect(port.address()).get("/picture.bmp", fields);
    let gzip = ("Accept-Encoding", "gzip");
    let coded = get(&[gzip]);
    assert_eq!((coded.status, coded.field("content-encoding")), (200, Some("gzip")));
    assert!(gunzip(&coded.body) == picture);
    println!("{} bytes became {}", picture.len(), coded.body.len());
    assert!(coded.body.len() < if picture.len() > 7_000_000 { CHAIN_BYTES } else { picture.len() / 4 });
    assert_eq!(cookie(&coded), Some("SERVERID=RIP_Name; path=/"));
    assert_eq!((coded.field("cache-control"), coded.field("connection")), (Some("private"), Some("close")));

    let again = get(&[gzip, ("Cookie", "SERVERID=RIP_Name")]);
    assert_eq!((again.status, cookie(&again), again.body.len()), (200, None, coded.body.len()));
    let plain = get(&[]);
    assert!(plain.field("content-encoding").is_none() && plain.body == picture);
    let seen = server.requests();
    let asked: Vec<_> = seen.iter().filter(|request| request.target == "/picture.bmp").collect();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|request| request.field("x-forwarded-for") == Some("127.0.0.1") && request.field("cookie").is_none()));

    server.kill();
    // The checks of the file find it out within six seconds; until then its clients are told 503.
    let redirected =
        until("the backup", || Some(get(&[("Cookie", "SERVERID=RIP_Name")])).filter(|response| response.status == 200));
    assert_eq!(redirected.text(), "backup");
    server.revive();
    until("the server to be back", || (get(&[]).body == picture).then_some(()));
    terse.end();
}
