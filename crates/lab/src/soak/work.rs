//! The kinds of work: the actions of a client of each in a visit, and their frequency.

use super::visit::{CLOSE, PATIENCE, Text, Visitor, Way, same};
use crate::client::{Client, Upload};
use crate::origin::sum;
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::time::{Duration, Instant};

/// A kind of work.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) clients: usize,
    /// From a visit's beginning to the next one's.
    pub(super) every: Duration,
    /// True if Debian's HAProxy has nothing like it.
    pub(super) is_terse_only: bool,
    /// True if some of its answers must be compressed.
    pub(super) is_coded: bool,
    pub(super) visit: fn(&mut Visitor<'_>) -> Result<()>,
}

/// All of them.
pub(super) fn kinds() -> Vec<Kind> {
    let kind = |name, clients, every_ms, visit: fn(&mut Visitor<'_>) -> Result<()>| Kind {
        name,
        clients,
        every: Duration::from_millis(every_ms),
        is_terse_only: false,
        is_coded: false,
        visit,
    };
    let coded = |kind: Kind| Kind { is_coded: true, ..kind };
    let ours = |kind: Kind| Kind { is_terse_only: true, ..coded(kind) };
    vec![
        kind("http/1 keep-alive", 4, 100, |visitor| plain(visitor, Way::One, "")),
        kind("http/1 close", 2, 100, closing),
        kind("http/1 tls", 2, 200, |visitor| plain(visitor, Way::OneSecure, "")),
        kind("http/1 tls handshakes", 1, 500, handshake),
        kind("http/2", 2, 100, |visitor| plain(visitor, Way::Two, "")),
        kind("http/2 tls", 2, 200, |visitor| plain(visitor, Way::TwoSecure, "")),
        coded(kind("gzip", 4, 200, |visitor| compressed(visitor, "gzip"))),
        ours(kind("br", 2, 400, |visitor| compressed(visitor, "br"))),
        ours(kind("zstd", 2, 400, |visitor| compressed(visitor, "zstd"))),
        coded(kind("gzip, the same again", 2, 100, remembered)),
        kind("cached", 2, 100, cached),
        kind("chunked", 2, 200, |visitor| plain(visitor, Way::One, "&chunk=1777&trailer=X-End:1")),
        kind("until close", 1, 200, |visitor| plain(visitor, Way::One, "&close=1&length=0")),
        kind("paused", 2, 500, paused),
        kind("ranges and conditions", 1, 200, ranges),
        kind("upload with length", 2, 200, |visitor| upload(visitor, false)),
        kind("upload chunked", 2, 200, |visitor| upload(visitor, true)),
        kind("upload http/2", 1, 300, upload_two),
        kind("early answer", 1, 300, early),
        kind("client leaves", 4, 200, leaving),
        kind("slow reader", 4, 1000, slow),
        kind("half request", 8, 500, half),
        kind("tunnel", 2, 500, tunnel),
        kind("mode tcp", 2, 200, passed),
        kind("server breaks off", 2, 200, broken),
        kind("server says nothing", 1, 300, mute),
        kind("stats socket", 1, 300, commands),
    ]
}

/// A body as it is.
fn plain(visitor: &mut Visitor<'_>, way: Way, more: &str) -> Result<()> {
    let text = visitor.text();
    // Connections have an end, too.
    if visitor.rng.percent(2) {
        visitor.leave();
    }
    let reply = visitor.fetch(way, text, more, &[])?;
    ensure!(reply.field("content-encoding").is_none(), "a coding that was not asked for");
    Ok(())
}

fn closing(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = visitor.text();
    visitor.fetch(Way::One, text, "", &[CLOSE]).map(drop)
}

/// Bytes as they are. A connection that went on would be cut at `hard-stop-after` of a reload, since such a client cannot be
/// notified.
fn passed(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = visitor.text();
    visitor.fetch(Way::Pass, text, "", &[CLOSE]).map(drop)
}

/// A connection for each answer, some of which go on with a session.
fn handshake(visitor: &mut Visitor<'_>) -> Result<()> {
    visitor.leave();
    let text = Text { bytes: 3_000, ..visitor.text() };
    visitor.fetch(Way::OneSecure, text, "", &[CLOSE]).map(drop)
}

fn compressed(visitor: &mut Visitor<'_>, coding: &str) -> Result<()> {
    let text = visitor.text();
    let framings = ["", "", "&chunk=8192", "&chunk=1777&trailer=X-End:1", "&close=1&length=0", "&piece=30000&pause_ms=5"];
    let framing = framings[visitor.rng.below(framings.len())];
    let way = visitor.way(&[Way::One, Way::One, Way::OneSecure, Way::Two, Way::TwoSecure]);
    let reply = visitor.fetch(way, text, framing, &[&format!("Accept-Encoding: {coding}")])?;
    match reply.field("content-encoding") {
        None => Ok(()),
        Some(found) if found == coding => Ok(()),
        Some(other) => bail!("{other} where {coding} was asked for"),
    }
}

/// A few texts, which a memory of compressed bodies knows.
fn remembered(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = Text { bytes: 132_000, stamp: visitor.rng.below(8) as u64 };
    visitor.fetch(Way::One, text, "&chunk=8192", &["Accept-Encoding: gzip"]).map(drop)
}

fn cached(visitor: &mut Visitor<'_>) -> Result<()> {
    let stamp = visitor.rng.below(40) as u64;
    let text = Text { bytes: 1_000 + 1_000 * stamp as usize, stamp };
    let coding: &[&str] = if visitor.rng.percent(50) { &["Accept-Encoding: gzip"] } else { &[] };
    visitor.fetch(Way::Cached, text, "&header=Cache-Control:max-age=60", coding).map(drop)
}

/// A body that its server sends in pieces.
fn paused(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = Text { bytes: 40_000, ..visitor.text() };
    let way = visitor.way(&[Way::One, Way::Two]);
    visitor.fetch(way, text, "&chunk=4000&pause_ms=30", &["Accept-Encoding: gzip"]).map(drop)
}

fn ranges(visitor: &mut Visitor<'_>) -> Result<()> {
    let (path, lines) = ("/static/page.js", "Range: bytes=1000-65999");
    let whole = visitor.get(Way::One, path, &[])?;
    let part = visitor.get(Way::One, path, &[lines])?;
    ensure!(part.status == 206, "status {} of a range", part.status);
    same(&part.body, whole.body.get(1000..66_000).unwrap_or_default())?;
    let tag = whole.field("etag").context("no ETag")?;
    let condition = format!("If-None-Match: {tag}");
    let unchanged = visitor.get(Way::One, path, &[&condition])?;
    ensure!(unchanged.status == 304 && unchanged.body.is_empty(), "status {} of a condition", unchanged.status);
    let head = visitor.ask(Way::One, "HEAD", path, &[], Upload::None)?;
    ensure!(head.status == 200 && head.body.is_empty(), "status {} of HEAD", head.status);
    Ok(())
}

fn upload(visitor: &mut Visitor<'_>, is_chunked: bool) -> Result<()> {
    let text = visitor.text();
    let body = visitor.bodies.text(text.stamp, text.bytes);
    let upload = if is_chunked { Upload::Chunks(&body, 1 + visitor.rng.below(20_000)) } else { Upload::Length(&body) };
    let lines: &[&str] = if visitor.rng.percent(25) { &["Expect: 100-continue"] } else { &[] };
    let way = visitor.way(&[Way::One, Way::One, Way::OneSecure]);
    sink(visitor, way, lines, upload, &body)
}

fn upload_two(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = visitor.text();
    let body = visitor.bodies.text(text.stamp, text.bytes);
    let way = visitor.way(&[Way::Two, Way::TwoSecure]);
    sink(visitor, way, &[], Upload::Length(&body), &body)
}

/// The origin answers with the length and the sum of the body that it got.
fn sink(visitor: &mut Visitor<'_>, way: Way, lines: &[&str], upload: Upload<'_>, body: &[u8]) -> Result<()> {
    let reply = visitor.ask(way, "POST", "/sink", lines, upload)?;
    let wanted = format!("{{\"bytes\":{},\"sum\":\"{:016x}\"}}\n", body.len(), sum(body));
    visitor.compare(&reply, wanted.as_bytes()).context("what the server got")
}

/// An answer that is there before the request's body is.
fn early(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = Text { bytes: 40_000, ..visitor.text() };
    let body = visitor.bodies.noise(400_000);
    let way = visitor.way(&[Way::One, Way::Two]);
    let reply = visitor.ask(way, "POST", &text.path("&hasty=1"), &[], Upload::Length(&body))?;
    visitor.compare(&reply, &visitor.bodies.text(text.stamp, text.bytes))
}

/// A client that goes before all is there: in an answer, before it, or in its own request.
fn leaving(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = Text { bytes: 2_000_000, ..visitor.text() };
    let coding = if visitor.rng.percent(70) { "Accept-Encoding: gzip\r\n" } else { "" };
    match visitor.rng.below(4) {
        0 => {
            let mut client = visitor.connect(Way::Two, PATIENCE)?;
            client.set_patience(Duration::from_millis(50))?;
            let result = client.get(&text.path("&delay_ms=2000"), &[]);
            ensure!(result.is_err(), "an answer of before its time");
        }
        1 => {
            let head = format!("POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", text.bytes);
            let body = visitor.bodies.noise(visitor.rng.clone().below(200_000));
            let mut socket = visitor.socket()?;
            socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(&body)).context("the beginning of a body")?;
        }
        _ => {
            let head = format!("GET {} HTTP/1.1\r\nHost: a\r\n{coding}\r\n", text.path("&chunk=8192"));
            let mut part = vec![0; 1 + visitor.rng.below(100_000)];
            let mut socket = visitor.socket()?;
            socket.write_all(head.as_bytes())?;
            let count = socket.read(&mut part)?;
            ensure!(count > 0 && part.starts_with(&b"HTTP/1.1 200 OK\r\n"[..count.min(17)]), "no answer");
        }
    }
    visitor.count(0);
    Ok(())
}

/// A client that takes its time for a large body.
fn slow(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = Text { bytes: 6_000_000, ..visitor.text() };
    let mut client = Client::connect_slow(visitor.web(), PATIENCE, 16 * 1024, Duration::from_millis(10))?;
    let path = text.path("");
    let reply = client.get(&path, &["Accept-Encoding: gzip", CLOSE]).context(path)?;
    visitor.count(reply.body.len());
    visitor.compare(&reply, &visitor.bodies.text(text.stamp, text.bytes))
}

/// Half a head: then the rest, the end, or nothing until the proxy has had enough.
fn half(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = Text { bytes: 2_000, ..visitor.text() };
    let begun = Instant::now();
    let mut client = visitor.connect(Way::One, PATIENCE)?;
    client.send(format!("GET {} HTTP/1.1\r\nHost: a\r\nX-Half: ", text.path("")).as_bytes())?;
    match visitor.rng.below(3) {
        0 => drop(client),
        1 => {
            std::thread::park_timeout(Duration::from_millis(visitor.rng.below(500) as u64));
            client.send(b"done\r\nConnection: close\r\n\r\n")?;
            let reply = client.reply(false, begun)?;
            visitor.compare(&reply, &visitor.bodies.text(text.stamp, text.bytes))?;
        }
        _ => {
            let reply = client.reply(false, begun)?;
            ensure!(reply.status == 408, "status {} where nothing more came", reply.status);
        }
    }
    visitor.count(0);
    Ok(())
}

/// Bytes there and back after a 101.
fn tunnel(visitor: &mut Visitor<'_>) -> Result<()> {
    let begun = Instant::now();
    let mut client = visitor.connect(Way::One, PATIENCE)?;
    client.send(b"GET /upgrade HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")?;
    let reply = client.reply(false, begun)?;
    ensure!(reply.status == 101, "status {}", reply.status);
    for _ in 0..10 {
        let stamp = visitor.rng.number();
        let sent = visitor.bodies.text(stamp, 1 + visitor.rng.below(40_000));
        client.send(&sent)?;
        same(&client.receive(sent.len())?, &sent)?;
        visitor.count(sent.len());
    }
    Ok(())
}

/// A server that breaks off in its body: the part that arrives must not look whole.
fn broken(visitor: &mut Visitor<'_>) -> Result<()> {
    let text = Text { bytes: 300_000, ..visitor.text() };
    let cut = visitor.rng.below(text.bytes);
    let ways = ["", "&reset=1", "&chunk=8192", "&chunk=8192&reset=1"];
    let way = ways[visitor.rng.below(ways.len())];
    let lines: &[&str] = if visitor.rng.percent(50) { &["Accept-Encoding: gzip"] } else { &[] };
    let protocol = visitor.way(&[Way::One, Way::Two, Way::TwoSecure]);
    let path = text.path(&format!("&cut={cut}{way}"));
    let mut client = visitor.connect(protocol, PATIENCE)?;
    match client.get(&path, lines) {
        Ok(reply) if reply.status == 200 => bail!("{path}: a part of a body looks whole: {} bytes", reply.body.len()),
        Ok(reply) => ensure!(matches!(reply.status, 500..=599), "{path}: status {}", reply.status),
        Err(_) => {}
    }
    visitor.count(0);
    Ok(())
}

/// A server that closes and sends nothing.
fn mute(visitor: &mut Visitor<'_>) -> Result<()> {
    let mut client = visitor.connect(Way::One, PATIENCE)?;
    match client.get("/made?mute=1", &[CLOSE]) {
        Ok(reply) => ensure!(reply.status == 502, "status {} where the server said nothing", reply.status),
        // HAProxy sends nothing either, where it had used the connection before.
        Err(error) => ensure!(!visitor.proxy.is_terse() && !client.has_begun(), "{error:#}"),
    }
    visitor.count(0);
    Ok(())
}

fn commands(visitor: &mut Visitor<'_>) -> Result<()> {
    let lines =
        ["show info", "show stat", "show sess", "show errors", "show table web", "show pools", "show servers state", "show cache"];
    let line = lines[visitor.rng.below(lines.len())];
    let said = visitor.proxy.command(line).with_context(|| line)?;
    // A new process may have no stream yet.
    let is_whole = line == "show sess" || !said.trim().is_empty();
    ensure!(is_whole && !said.contains("Unknown command"), "{line}: {said:?}");
    let weight = format!("set server origin/two weight {}", 1 + visitor.rng.below(100));
    let said = visitor.proxy.command(&weight).with_context(|| weight.clone())?;
    ensure!(said.trim().is_empty(), "{weight}: {said:?}");
    visitor.count(said.len());
    Ok(())
}
