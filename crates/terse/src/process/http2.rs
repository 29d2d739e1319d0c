//! Keywords of `global` for HTTP/2 with clients and servers.

use super::keywords::{done, process, whole};
use terse_config::{Args, Fault, Keyword, Scope};
use terse_proxy::connection::settings::Http2Settings;

/// The keywords that are done.
pub static KEYWORDS: &[Keyword] = &[
    done(
        "tune.h2.fe.max-concurrent-streams",
        "<number>",
        "The streams that a client may have open on a connection; 100 by default.",
        streams,
    ),
    done(
        "tune.h2.max-concurrent-streams",
        "<number>",
        "Sets 'tune.h2.fe.max-concurrent-streams' and 'tune.h2.be.max-concurrent-streams'.",
        |args, scope| {
            let streams = whole(args, "<number>", 1..=1 << 20)?;
            each(scope, |http2| http2.concurrent_streams = streams);
            args.end()
        },
    ),
    done(
        "tune.h2.be.max-concurrent-streams",
        "<number>",
        "The streams that are opened on a server's connection; 100 by default, and never more than the server allows.",
        |args, scope| {
            process(scope).http2_servers.concurrent_streams = whole(args, "<number>", 1..=1 << 20)?;
            args.end()
        },
    ),
    done(
        "tune.h2.fe.initial-window-size",
        "<bytes>",
        "The bytes of a new stream's body that may come ahead of its reader; 16384 by default. Readers that keep up get more.",
        window,
    ),
    done(
        "tune.h2.initial-window-size",
        "<bytes>",
        "Sets 'tune.h2.fe.initial-window-size' and 'tune.h2.be.initial-window-size'.",
        |args, scope| {
            let bytes = whole(args, "<bytes>", 0..=(1 << 31) - 1)?;
            each(scope, |http2| http2.window_bytes = Some(bytes));
            args.end()
        },
    ),
    done(
        "tune.h2.be.initial-window-size",
        "<bytes>",
        "The bytes that a server may send of an answer before its client has taken any; 2048 by default.",
        |args, scope| {
            process(scope).http2_servers.window_bytes = Some(whole(args, "<bytes>", 0..=(1 << 31) - 1)?);
            args.end()
        },
    ),
    done(
        "tune.h2.fe.rxbuf",
        "<bytes>",
        "The bytes that all streams of a connection may hold unread; 1m by default.",
        |args, scope| {
            process(scope).http2.budget_bytes = budget(args)?;
            args.end()
        },
    ),
    done(
        "tune.h2.be.rxbuf",
        "<bytes>",
        "With half of these bytes unread by clients, a server's connection gets no new streams; 1m by default.",
        |args, scope| {
            process(scope).http2_servers.budget_bytes = budget(args)?;
            args.end()
        },
    ),
    done(
        "tune.h2.fe.glitches-threshold",
        "<number>",
        "Ends a connection whose client has done so many odd things; 0 by default: at the limits of each alone.",
        |args, scope| {
            process(scope).http2.most_glitches = whole(args, "<number>", 0..=1 << 31)?;
            args.end()
        },
    ),
    done(
        "tune.h2.be.glitches-threshold",
        "<number>",
        "Ends a connection whose server has done so many odd things; 0 by default: at the limits of each alone.",
        |args, scope| {
            process(scope).http2_servers.most_glitches = whole(args, "<number>", 0..=1 << 31)?;
            args.end()
        },
    ),
    done(
        "tune.h2.fe.max-total-streams",
        "<number>",
        "Ends a connection, well, after so many streams; 0 by default: never.",
        |args, scope| {
            process(scope).http2.most_streams = whole(args, "<number>", 0..=1 << 31)?;
            args.end()
        },
    ),
    done(
        "tune.h2.log-errors",
        "none|connection|stream",
        "Logs connections that end for an error, or malformed requests too; 'stream' by default.",
        |args, scope| {
            let (connection, stream) = match args.need("<level>")? {
                "none" => (false, false),
                "connection" => (true, false),
                "stream" => (true, true),
                other => return Err(args.fault(format!("unknown level '{other}'")).hint("one of none, connection, stream")),
            };
            let http2 = &mut process(scope).http2;
            (http2.logs_connection_errors, http2.logs_stream_errors) = (connection, stream);
            args.end()
        },
    ),
    done(
        "h2-workaround-bogus-websocket-clients",
        "",
        "Does not offer WebSocket over HTTP/2 (RFC 8441): browsers use HTTP/1 for it.",
        |args, scope| {
            args.end()?;
            process(scope).http2.offers_websocket = scope.negated;
            Ok(())
        },
    ),
];

fn budget(args: &mut Args<'_>) -> Result<u32, Fault> {
    let bytes = u32::try_from(args.size("<bytes>")?).ok().filter(|bytes| (1 << 17..=1 << 30).contains(bytes));
    bytes.ok_or_else(|| args.fault("expects a size between 128k and 1g"))
}

/// Changes a setting for clients and for servers.
fn each(scope: &mut Scope<'_>, mut change: impl FnMut(&mut Http2Settings)) {
    let process = process(scope);
    change(&mut process.http2);
    change(&mut process.http2_servers);
}

fn streams(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).http2.concurrent_streams = whole(args, "<number>", 1..=1 << 20)?;
    args.end()
}

fn window(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    process(scope).http2.window_bytes = Some(whole(args, "<bytes>", 0..=(1 << 31) - 1)?);
    args.end()
}
