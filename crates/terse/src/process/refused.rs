//! Keywords of `global` that are understood and not built.

use terse_config::{Keyword, Kind, Sections};

/// The refused keywords.
pub static KEYWORDS: &[Keyword] = &[
    refused("shm-stats-file", "<file>", "Counters shared among processes.", "counters belong to the process"),
    refused("shm-stats-file-max-objects", "<number>", "Their most objects.", "counters belong to the process"),
    refused(
        "ssl-engine",
        "<name> [algo <algorithms>]",
        "OpenSSL's engine.",
        "engines are not loaded; OpenSSL's own configuration may load providers",
    ),
    refused("ssl-provider", "<name>", "OpenSSL's provider.", PROVIDERS),
    refused("ssl-provider-path", "<folder>", "Where providers are.", PROVIDERS),
    refused("ssl-propquery", "<query>", "Properties of providers.", PROVIDERS),
    refused(
        "ssl-passphrase-cmd",
        "<program> [<argument>...]",
        "Passwords of keys.",
        "no program is started; keys are not encrypted",
    ),
    refused(
        "h1-accept-payload-with-any-method",
        "",
        "Lets GET, HEAD and DELETE bring bodies.",
        "bodies are taken as RFC 9110 has it",
    ),
    refused(
        "h1-do-not-close-on-insecure-transfer-encoding",
        "",
        "Keeps connections that say Content-Length and Transfer-Encoding.",
        "such messages are request smuggling; they get 400",
    ),
    refused("cpu-set", "<rule>...", "Takes processors away.", "use taskset(1), or 'cpu-map' with 'nbthread'"),
    refused(
        "harden.reject-privileged-ports.tcp",
        "on|off",
        "Drops clients with low ports.",
        "write 'tcp-request connection reject' with 'src_port lt 1024'",
    ),
    refused("pp2-never-send-local", "", "What version 2 says in checks.", "checks say LOCAL, as the protocol has it"),
    refused(
        "close-spread-time",
        "<time>",
        "The time over which a drain closes connections.",
        "a drain closes each at its next response",
    ),
    refused(
        "tune.buffers.limit",
        "<number>",
        "The most buffers of a worker.",
        "'tune.memory.buffers' limits the bytes of the process",
    ),
    refused("tune.glitches.kill.cpu-usage", "<percent>", "When odd connections are killed.", NO_GLITCHES),
    refused("tune.h1.be.glitches-threshold", "<number>", "Oddities before a server is left.", NO_GLITCHES),
    refused("tune.h1.fe.glitches-threshold", "<number>", "Oddities before a client is left.", NO_GLITCHES),
    refused("httpclient.ssl.ca-file", "<file>", "Whom requests of Lua scripts trust.", NO_TRUST),
    Keyword {
        kind: Kind::Done(|args, _| match args.need("none|required")? {
            "none" => args.end(),
            _ => Err(args.fault(NO_TRUST).hint("write 'none'")),
        }),
        ..refused("httpclient.ssl.verify", "none", "Requests of Lua scripts check no certificates.", NO_TRUST)
    },
    devices("51degrees-allow-unmatched", "on|off"),
    devices("51degrees-cache-size", "<number>"),
    devices("51degrees-data-file", "<file>"),
    devices("51degrees-difference", "<number>"),
    devices("51degrees-drift", "<number>"),
    devices("51degrees-property-name-list", "[<name>...]"),
    devices("51degrees-property-separator", "<character>"),
    devices("51degrees-use-performance-graph", "on|off"),
    devices("51degrees-use-predictive-graph", "on|off"),
    devices("deviceatlas-json-file", "<file>"),
    devices("deviceatlas-log-level", "<level>"),
    devices("deviceatlas-properties-cookie", "<name>"),
    devices("deviceatlas-separator", "<character>"),
    devices("wurfl-cache-size", "<size>"),
    devices("wurfl-data-file", "<file>"),
    devices("wurfl-information-list", "[<capability>...]"),
    devices("wurfl-information-list-separator", "<character>"),
    devices("wurfl-patch-file", "[<file>...]"),
];

const fn devices(name: &'static str, arguments: &'static str) -> Keyword {
    refused(name, arguments, "Of a database of clients' devices.", "databases of devices are not read")
}

const fn refused(name: &'static str, arguments: &'static str, summary: &'static str, why: &'static str) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Refused(why) }
}

const PROVIDERS: &str = "OpenSSL's own configuration says which providers are loaded";
const NO_TRUST: &str = "core.httpclient() looks at no certificate";
const NO_GLITCHES: &str = "the first malformed message already ends a connection";
