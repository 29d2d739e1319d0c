//! Keywords of proxies that tune HAProxy's internals and have no effect here.

use super::done;
use terse_config::{Keyword, Kind};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    accepted(
        "option http-no-delay",
        "",
        "Nothing is held back to be sent together.",
        "what a server has sent is on its way as soon as the server pauses, without the option",
    ),
    accepted(
        "option use-small-buffers",
        "[queue] [l7-retries] [check]",
        "Which buffers may be small.",
        "buffers are as large as what they hold",
    ),
    accepted(
        "option tcp-smart-accept",
        "",
        "Saves a packet when a connection is accepted.",
        "it changes which packets carry the bytes, not which bytes go",
    ),
    accepted(
        "option tcp-smart-connect",
        "",
        "Saves a packet when a connection to a server is made.",
        "it changes which packets carry the bytes, not which bytes go",
    ),
    accepted(
        "bind-process",
        "<processes>",
        "Which processes serve the proxy.",
        "there is one; 'bind ... thread' says which workers accept",
    ),
];

const fn accepted(name: &'static str, arguments: &'static str, summary: &'static str, why: &'static str) -> Keyword {
    Keyword { kind: Kind::Accepted(why), ..done(name, arguments, summary, |_, _| Ok(())) }
}
