//! Keywords of `global` that tune HAProxy's internals. They cannot change behaviour here; each has the reason.

use terse_config::{Keyword, Kind, Sections};

/// The accepted keywords.
pub static KEYWORDS: &[Keyword] = &[
    // HAProxy lets these keywords be used only if the operator sets this.
    knob("expose-experimental-directives", "", "Allows experimental keywords.", ALL_ALLOWED),
    knob("expose-deprecated-directives", "", "Allows deprecated keywords.", ALL_ALLOWED),
    // The event loop.
    knob("noepoll", "", "Avoids epoll.", ONE_POLLER),
    knob("nopoll", "", "Avoids poll().", ONE_POLLER),
    knob("nokqueue", "", "Avoids kqueue.", ONE_POLLER),
    knob("noevports", "", "Avoids event ports.", ONE_POLLER),
    knob("busy-polling", "", "Polls without sleeping.", EVENT_LOOP),
    knob("tune.maxpollevents", "<number>", "Events taken at once.", EVENT_LOOP),
    knob("tune.events.max-events-at-once", "<number>", "Events handled at once.", EVENT_LOOP),
    knob("tune.epoll.mask-events", "<event>[,...]", "Events that epoll leaves out.", EVENT_LOOP),
    knob("tune.fd.edge-triggered", "on|off", "Edge-triggered events.", EVENT_LOOP),
    knob("tune.fd.tables", "<number>", "Tables of descriptors.", EVENT_LOOP),
    knob("tune.runqueue-depth", "<number>", "Tasks run at once.", EVENT_LOOP),
    knob("tune.sched.low-latency", "on|off", "Order of tasks.", EVENT_LOOP),
    knob("tune.max-rules-at-once", "<number>", "Rules evaluated at once.", EVENT_LOOP),
    knob("tune.streams-elasticity", "<percent>", "How streams give way.", EVENT_LOOP),
    knob("tune.recv_enough", "<bytes>", "Bytes that end a reading.", EVENT_LOOP),
    knob("tune.ring.queues", "<number>", "Queues of rings.", EVENT_LOOP),
    knob("profiling.tasks", "on|off|auto", "Measures tasks.", NO_PROFILER),
    knob("profiling.memory", "on|off", "Measures memory.", NO_PROFILER),
    knob("debug.counters", "on|off", "Counts internal events.", NO_PROFILER),
    knob("warn-blocked-traffic-after", "<time>", "Tells when the loop hangs.", NO_PROFILER),
    knob("stress-level", "<level>", "Makes code paths run more often.", "for the tests of HAProxy's own code"),
    knob("force-cfg-parser-pause", "<time>", "Slows the start.", "for the tests of HAProxy's own code"),
    // Threads and processors.
    knob("thread-group", "<group> <threads>", "Puts threads into groups.", NO_GROUPS),
    knob("max-threads-per-group", "<number>", "The size of groups of threads.", NO_GROUPS),
    knob("numa-cpu-mapping", "", "Chooses processors of one node.", PLACEMENT),
    knob("cpu-policy", "<policy>", "How processors are chosen.", PLACEMENT),
    knob("cpu-affinity", "<affinity>", "How threads are bound.", PLACEMENT),
    knob("tune.takeover-other-tg-connections", "none|restricted|full", "Moves idle connections between groups.", NO_GROUPS),
    knob("tune.listener.default-shards", "by-process|by-thread|by-group", "Sockets a listener.", "workers have one socket each"),
    knob(
        "tune.listener.multi-queue",
        "on|off|fair",
        "Spreads accepted connections.",
        "the kernel spreads them over the workers' sockets",
    ),
    // Memory.
    knob("no-memory-trimming", "", "Keeps freed memory.", ALLOCATOR),
    knob("tune.memory.hot-size", "<bytes>", "Memory cached a thread.", ALLOCATOR),
    knob("tune.fail-alloc", "<percent>", "Makes allocations fail.", "for the tests of HAProxy's own code"),
    knob("tune.bufsize.large", "<bytes>", "Size of large buffers.", ONE_BUFFER),
    knob("tune.bufsize.small", "<bytes>", "Size of small buffers.", ONE_BUFFER),
    knob(
        "tune.buffers.reserve",
        "<number>",
        "Buffers kept for emergencies.",
        "a stream that has begun holds the buffers that it needs",
    ),
    knob("prealloc-fd", "", "Opens all descriptors once.", "the kernel's table grows by itself"),
    knob("quick-exit", "", "Leaves without freeing.", "the process always leaves so"),
    // Forwarding.
    knob("tune.applet.zero-copy-forwarding", "on|off", "Does not copy what applets send.", SAME_BYTES),
    knob("tune.pt.zero-copy-forwarding", "on|off", "Does not copy in TCP mode.", SAME_BYTES),
    knob("tune.h1.zero-copy-fwd-recv", "on|off", "Does not copy what HTTP/1 receives.", SAME_BYTES),
    knob("tune.h1.zero-copy-fwd-send", "on|off", "Does not copy what HTTP/1 sends.", SAME_BYTES),
    knob("tune.h2.zero-copy-fwd-send", "on|off", "Does not copy what HTTP/2 sends.", SAME_BYTES),
    knob("tune.quic.zero-copy-fwd-send", "on|off", "Does not copy what QUIC sends.", SAME_BYTES),
    // The kernel's buffers.
    knob("tune.rcvbuf.client", "<bytes>", "Receives from clients.", KERNEL_BUFFERS),
    knob("tune.rcvbuf.server", "<bytes>", "Receives from servers.", KERNEL_BUFFERS),
    knob("tune.rcvbuf.frontend", "<bytes>", "Receives datagrams from clients.", KERNEL_BUFFERS),
    knob("tune.rcvbuf.backend", "<bytes>", "Receives datagrams from servers.", KERNEL_BUFFERS),
    knob("tune.sndbuf.client", "<bytes>", "Sends to clients.", KERNEL_BUFFERS),
    knob("tune.sndbuf.server", "<bytes>", "Sends to servers.", KERNEL_BUFFERS),
    knob("tune.sndbuf.frontend", "<bytes>", "Sends datagrams to clients.", KERNEL_BUFFERS),
    knob("tune.sndbuf.backend", "<bytes>", "Sends datagrams to servers.", KERNEL_BUFFERS),
    knob("tune.notsent-lowat.client", "<bytes>", "Unsent bytes to clients.", KERNEL_BUFFERS),
    knob("tune.notsent-lowat.server", "<bytes>", "Unsent bytes to servers.", KERNEL_BUFFERS),
    knob("tune.maxaccept", "<number>", "Connections accepted at once.", EVENT_LOOP),
    // Connections to servers.
    knob("tune.idle-pool.shared", "on|off", "Shares idle connections among threads.", "each worker keeps its own idle connections"),
    knob("tune.idletimer", "<time>", "When buffers grow for bulk.", "buffers do not change their size"),
    // Health checks.
    Keyword {
        kind: Kind::Done(|args, _| {
            args.integer("<percent>", 0..=50)?;
            args.changes_nothing(SPREAD);
            Ok(())
        }),
        ..knob("spread-checks", "<percent>", "How far checks stray from their beat.", SPREAD)
    },
    knob("max-spread-checks", "<time>", "The time that first checks are spread over.", SPREAD),
    knob("tune.max-checks-per-thread", "<number>", "Checks at once.", "checks wait for no processor: they have the control thread"),
    // Samples.
    knob("tune.http.logurilen", "<bytes>", "Length of logged requests.", "only 'len' on a 'log' line cuts what is logged"),
    knob("tune.pattern.cache-size", "<number>", "Remembered look-ups of patterns.", "no look-up is remembered: each is as quick"),
    knob("tune.chksize", "<bytes>", "Buffer of health checks.", "checks read what they need"),
    knob(
        "tune.http.cookielen",
        "<bytes>",
        "Length of captured cookies.",
        "captured cookies are not cut short of their declared length",
    ),
    // TLS.
    knob("acme.scheduler", "auto|off", "Renewal of certificates.", ACME),
    // HTTP/2 and QUIC.
    knob("tune.h2.be.max-frames-at-once", "<number>", "Frames taken at once.", TURNS),
    knob("tune.h2.fe.max-frames-at-once", "<number>", "Frames taken at once.", TURNS),
    knob("tune.h2.fe.max-rst-at-once", "<number>", "Resets taken at once.", TURNS),
    knob("tune.h2.header-table-size", "<bytes>", "The table of fields.", "tables have the 4096 bytes that RFC 9113 begins with"),
    knob("tune.h2.max-frame-size", "<bytes>", "The largest frame.", "frames have at most 16384 bytes, so that streams take turns"),
    knob("limited-quic", "", "QUIC with a library that lacks it.", QUIC),
    knob("harden.reject-privileged-ports.quic", "on|off", "Drops datagrams from low ports.", QUIC),
    knob("tune.quic.listen", "on|off", "Opens QUIC listeners.", QUIC),
    knob("tune.quic.mem.tx-max", "<bytes>", "Memory for sending.", QUIC),
    knob("tune.quic.be.cc.cubic-min-losses", "<number>", "Congestion control.", QUIC),
    knob("tune.quic.be.cc.hystart", "on|off", "Congestion control.", QUIC),
    knob("tune.quic.be.cc.max-frame-loss", "<number>", "Congestion control.", QUIC),
    knob("tune.quic.be.cc.max-win-size", "<bytes>", "Congestion control.", QUIC),
    knob("tune.quic.be.cc.reorder-ratio", "<percent>", "Congestion control.", QUIC),
    knob("tune.quic.be.max-idle-timeout", "<time>", "Idle connections.", QUIC),
    knob("tune.quic.be.sec.glitches-threshold", "<number>", "Oddities before a server is left.", QUIC),
    knob("tune.quic.be.stream.data-ratio", "<percent>", "Windows.", QUIC),
    knob("tune.quic.be.stream.max-concurrent", "<number>", "Streams a connection.", QUIC),
    knob("tune.quic.be.stream.rxbuf", "<bytes>", "Buffers.", QUIC),
    knob("tune.quic.be.tx.pacing", "on|off", "Pacing.", QUIC),
    knob("tune.quic.be.tx.udp-gso", "on|off", "Sends datagrams at once.", QUIC),
    knob("tune.quic.fe.cc.cubic-min-losses", "<number>", "Congestion control.", QUIC),
    knob("tune.quic.fe.cc.hystart", "on|off", "Congestion control.", QUIC),
    knob("tune.quic.fe.cc.max-frame-loss", "<number>", "Congestion control.", QUIC),
    knob("tune.quic.fe.cc.max-win-size", "<bytes>", "Congestion control.", QUIC),
    knob("tune.quic.fe.cc.reorder-ratio", "<percent>", "Congestion control.", QUIC),
    knob("tune.quic.fe.max-idle-timeout", "<time>", "Idle connections.", QUIC),
    knob("tune.quic.fe.sec.glitches-threshold", "<number>", "Oddities before a client is left.", QUIC),
    knob("tune.quic.fe.sec.retry-threshold", "<number>", "When clients must prove their address.", QUIC),
    knob("tune.quic.fe.sock-per-conn", "default-on|force-off", "A socket a connection.", QUIC),
    knob("tune.quic.fe.stream.data-ratio", "<percent>", "Windows.", QUIC),
    knob("tune.quic.fe.stream.max-concurrent", "<number>", "Streams a connection.", QUIC),
    knob("tune.quic.fe.stream.max-total", "<number>", "Streams in a connection's life.", QUIC),
    knob("tune.quic.fe.stream.rxbuf", "<bytes>", "Buffers.", QUIC),
    knob("tune.quic.fe.tx.pacing", "on|off", "Pacing.", QUIC),
    knob("tune.quic.fe.tx.udp-gso", "on|off", "Sends datagrams at once.", QUIC),
    // The HTTP client of Lua scripts and of OCSP requests.
    knob("httpclient.resolvers.disabled", "on|off", "Whether it looks names up.", CLIENT_LOOKUP),
    knob("httpclient.resolvers.id", "<name>", "Where it looks names up.", CLIENT_LOOKUP),
    knob("httpclient.resolvers.prefer", "ipv4|ipv6", "Which addresses it takes.", CLIENT_LOOKUP),
    knob("httpclient.retries", "<number>", "How often it tries.", HTTP_CLIENT),
    knob("httpclient.timeout.connect", "<time>", "How long it waits.", HTTP_CLIENT),
    knob(
        "nogetaddrinfo",
        "",
        "Avoids getaddrinfo().",
        "the system's lookup has no other way; 'resolvers' ask name servers themselves",
    ),
    // Processes.
    knob("insecure-fork-wanted", "", "Allows forks.", "only checks by programs do, and 'external-check' is their word"),
    knob("cluster-secret", "<text>", "The key of what servers of a cluster share.", "nothing is derived from it"),
    knob("anonkey", "<key>", "The key that hides names in dumps.", "no dump hides names"),
    knob("tune.peers.max-updates-at-once", "<number>", "Updates sent to peers at once.", "peers are sent pieces of 16 KB, in turn"),
    knob("tune.cli.max-payload-size", "<bytes>", "The largest payload of a command.", "payloads are bounded by the buffer's size"),
];

const fn knob(name: &'static str, arguments: &'static str, summary: &'static str, why: &'static str) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Accepted(why) }
}

const ALL_ALLOWED: &str = "every keyword that is built may be used";
const ONE_POLLER: &str = "epoll is the only poller";
const EVENT_LOOP: &str = "it tunes HAProxy's event loop; the one here bounds its turns itself";
const NO_PROFILER: &str = "it measures HAProxy's own code";
const NO_GROUPS: &str = "workers share nothing that groups would divide";
const PLACEMENT: &str = "workers are placed by 'cpu-map' and 'nbthread', and by the system otherwise";
const ONE_BUFFER: &str = "'tune.bufsize' sizes the buffers; an idle connection has none";
const ALLOCATOR: &str = "it tunes HAProxy's allocator";
const SAME_BYTES: &str = "bytes are the same either way";
const KERNEL_BUFFERS: &str = "the kernel sizes its buffers as connections need them";
const SPREAD: &str = "first checks are spread over an interval, and each then keeps its beat";
const ACME: &str = "nobody is asked for new certificates: they are files";
const TURNS: &str = "a connection has its turn after 64 KB that it has sent, whatever they are";
const QUIC: &str = "no connection uses QUIC: such addresses are refused";
const HTTP_CLIENT: &str = "Lua scripts ask once, for as long as their 'timeout' says; OCSP responders are asked for 15s at most, and again after \
     'ocsp-update.mindelay'";
const CLIENT_LOOKUP: &str = "OCSP responders are looked up by 'resolvers default', or without it by the system, and reached over IPv6 \
     or else IPv4; whom Lua scripts ask is looked up by the system";
