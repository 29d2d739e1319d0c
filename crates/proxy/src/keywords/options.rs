//! Switches: `option <name>`, which `no` takes back.

use super::{done, formerly, in_back, in_front, settings, switch};
use crate::settings::{ConnectionMode, Options};
use terse_config::{Args, Fault, Keyword, Scope};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    formerly(
        &["option forceclose"],
        switch("option httpclose", "Connections on both sides are closed after a response.", |args, scope| {
            connection(args, scope, ConnectionMode::Close)
        }),
    ),
    switch(
        "option http-server-close",
        "Connections to servers are closed after a response, those to clients go on.",
        |args, scope| connection(args, scope, ConnectionMode::ServerClose),
    ),
    switch("option http-keep-alive", "Connections on both sides go on after a response; so by default.", |args, scope| {
        connection(args, scope, ConnectionMode::KeepAlive)
    }),
    switch(
        "option abortonclose",
        "A request whose client has closed is given up: while it waits, is being sent or answered; so by default in mode http.",
        |args, scope| {
            args.end()?;
            settings(scope).options.abort_on_close = Some(!scope.negated);
            Ok(())
        },
    ),
    switch(
        "option http-ignore-probes",
        "A connection on which no byte came is closed without an answer or a line.",
        |args, scope| front(args, scope, |o| &mut o.ignore_probes),
    ),
    switch("option disable-h2-upgrade", "A preface of HTTP/2 on a connection of HTTP/1 is a malformed request.", |args, scope| {
        front(args, scope, |o| &mut o.no_http2_preface)
    }),
    switch("option contstats", "Bytes are counted while they pass, not at a stream's end.", |args, scope| {
        front(args, scope, |o| &mut o.count_while_passing)
    }),
    switch("option socket-stats", "Each address has a row of its own in statistics.", |args, scope| {
        front(args, scope, |o| &mut o.count_by_address)
    }),
    switch(
        "option prefer-last-server",
        "A request goes to the server of the one before it when nothing speaks against it.",
        |args, scope| back(args, scope, |o| &mut o.prefer_last_server),
    ),
    switch("option http-pretend-keepalive", "Servers are not told that their connections will be closed.", |args, scope| {
        back(args, scope, |o| &mut o.pretend_keep_alive)
    }),
    done("option tcpka", "", "TCP's own keep-alive probes on both sides.", |args, scope| {
        args.end()?;
        let options = &mut settings(scope).options;
        (options.client_probes.on, options.server_probes.on) = (true, true);
        Ok(())
    }),
    switch("option clitcpka", "TCP's own keep-alive probes to clients.", |args, scope| {
        front(args, scope, |o| &mut o.client_probes.on)
    }),
    switch("option srvtcpka", "TCP's own keep-alive probes to servers.", |args, scope| {
        back(args, scope, |o| &mut o.server_probes.on)
    }),
    switch(
        "option http-buffer-request",
        "A request's body is read, as far as a buffer holds it, before rules run.",
        |args, scope| any(args, scope, |o| &mut o.buffer_request),
    ),
    switch(
        "option http-use-proxy-header",
        "Of requests for a proxy, Proxy-Connection and Proxy-Authorization count, and credentials are asked for with 407.",
        |args, scope| front(args, scope, |o| &mut o.proxy_header),
    ),
    formerly(
        &["option accept-invalid-http-request"],
        switch(
            "option accept-unsafe-violations-in-http-request",
            "Targets of requests may hold fragments and text beyond ASCII; nothing else becomes laxer.",
            |args, scope| front(args, scope, |o| &mut o.loose_targets),
        ),
    ),
    switch(
        "option independent-streams",
        "In tunnels, each side is timed by what it says itself, not by what the other says.",
        |args, scope| any(args, scope, |o| &mut o.independent),
    ),
    switch(
        "option splice-auto",
        "Bytes that pass unchanged between plain TCP connections go through pipes in the kernel, while they come quickly.",
        |args, scope| any(args, scope, |o| &mut o.splice.auto),
    ),
    switch("option splice-request", "The same of bytes from clients, of all bodies of 16 KB or more.", |args, scope| {
        any(args, scope, |o| &mut o.splice.request)
    }),
    switch("option splice-response", "The same of bytes from servers, of all bodies of 16 KB or more.", |args, scope| {
        any(args, scope, |o| &mut o.splice.response)
    }),
    switch("option idle-close-on-response", "While the process stops, idle clients may send one more request.", |args, scope| {
        front(args, scope, |o| &mut o.keeps_idle)
    }),
    switch(
        "option traceparent",
        "A request without a sound 'traceparent' (W3C Trace Context) gets one, to be recorded; 'trace_id' is its trace.",
        |args, scope| front(args, scope, |o| &mut o.traces),
    ),
    switch(
        "option checkcache",
        "Responses whose cookie a cache might give to other clients are blocked, with 502.",
        |args, scope| back(args, scope, |o| &mut o.check_cache),
    ),
    switch("option http-drop-request-trailers", "Trailers of requests are not passed on.", |args, scope| {
        back(args, scope, |o| &mut o.drop_trailers.requests)
    }),
    switch("option http-drop-response-trailers", "Trailers of responses are not passed on.", |args, scope| {
        front(args, scope, |o| &mut o.drop_trailers.responses)
    }),
    switch("option nolinger", "Connections are closed by a reset: what was not sent is lost.", |args, scope| {
        any(args, scope, |o| &mut o.no_linger)
    }),
];

/// Selector of an option.
pub(super) type Of = fn(&mut Options) -> &mut bool;

fn any(args: &mut Args<'_>, scope: &mut Scope<'_>, of: Of) -> Result<(), Fault> {
    args.end()?;
    *of(&mut settings(scope).options) = !scope.negated;
    Ok(())
}

pub(super) fn front(args: &mut Args<'_>, scope: &mut Scope<'_>, of: Of) -> Result<(), Fault> {
    if in_front(scope) { any(args, scope, of) } else { args.end() }
}

pub(super) fn back(args: &mut Args<'_>, scope: &mut Scope<'_>, of: Of) -> Result<(), Fault> {
    if in_back(scope) { any(args, scope, of) } else { args.end() }
}

/// Of the three modes the last one holds; `no` takes back only the mode that it names.
fn connection(args: &mut Args<'_>, scope: &mut Scope<'_>, mode: ConnectionMode) -> Result<(), Fault> {
    args.end()?;
    let negated = scope.negated;
    let current = &mut settings(scope).options.connection;
    match negated {
        false => *current = Some(mode),
        true if *current == Some(mode) => *current = None,
        true => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{proxy, said_in};
    use super::*;

    #[test]
    fn the_last_mode_holds_and_no_takes_back_its_own() {
        let mode = |lines: &str| proxy(&format!("defaults\n option httpclose\nlisten l\n{lines}")).options.connection;
        assert_eq!(mode(""), Some(ConnectionMode::Close));
        assert_eq!(mode(" option http-server-close\n"), Some(ConnectionMode::ServerClose));
        assert_eq!(mode(" no option httpclose\n"), None);
        assert_eq!(mode(" no option http-server-close\n"), Some(ConnectionMode::Close));
        assert!(said_in("listen l", "option forceclose")[0].contains("old name"));
    }

    #[test]
    fn switches_go_on_and_off() {
        let options =
            proxy("defaults\n option abortonclose\n option tcpka\nlisten l\n no option abortonclose\n no option srvtcpka\n")
                .options;
        assert!(options.abort_on_close == Some(false) && options.client_probes.on && !options.server_probes.on);
        let options = proxy(
            "listen l\n option http-ignore-probes\n option http-no-delay\n option prefer-last-server\n option http-buffer-request\n option nolinger\n \
             option http-pretend-keepalive\n",
        )
        .options;
        assert!(options.ignore_probes && options.prefer_last_server && options.buffer_request);
        assert!(options.no_linger && options.pretend_keep_alive);
    }

    #[test]
    fn unknown_ones_and_arguments_are_refused() {
        for line in [
            "option",
            "option abortonclosed",
            "option abortonclose x",
            "option httpclose x",
            "option http_proxy",
            "option http-tunnel",
        ] {
            let said = said_in("listen l", line);
            assert!(said.len() == 1 && said[0].starts_with("2!"), "{line}: {said:?}");
        }
    }
}
