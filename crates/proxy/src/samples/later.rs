//! Fetches that are understood and not built.

use terse_sample::Fetch;

/// The table.
pub(super) const FETCHES: &[Fetch] = &[
    Fetch::refused("be_sess_rate", "New streams of a backend in a second.", RATES),
    Fetch::refused("fe_sess_rate", "New connections of a frontend in a second.", RATES),
    Fetch::refused("fe_req_rate", "Requests of a frontend in a second.", RATES),
    Fetch::refused("srv_sess_rate", "New streams of a server in a second.", RATES),
    Fetch::refused("bc_src", "The address from which the server is connected to.", OURS),
    Fetch::refused("bc_src_port", "The port from which the server is connected to.", OURS),
    Fetch::refused(
        "req.bytes_out",
        "Bytes that the server was sent.",
        "they are not counted apart; 'req.bytes_in' are those of the client",
    ),
    Fetch::refused("prio_class", "The stream's class in queues.", "queues serve in the order of arrival"),
    Fetch::refused("prio_offset", "The stream's offset in queues.", "queues serve in the order of arrival"),
    Fetch::refused("cur_client_timeout", "The stream's 'timeout client'.", TIMEOUTS),
    Fetch::refused("cur_connect_timeout", "The stream's 'timeout connect'.", TIMEOUTS),
    Fetch::refused("cur_queue_timeout", "The stream's 'timeout queue'.", TIMEOUTS),
    Fetch::refused("cur_server_timeout", "The stream's 'timeout server'.", TIMEOUTS),
    Fetch::refused("cur_tarpit_timeout", "The stream's 'timeout tarpit'.", TIMEOUTS),
    Fetch::refused("cur_tunnel_timeout", "The stream's 'timeout tunnel'.", TIMEOUTS),
    Fetch::refused("cur_max_retries", "The stream's 'retries'.", "'be_max_retries' is the backend's"),
    Fetch::refused("uptime", "How long the process has run.", "comes later; the stats socket says it"),
];

const RATES: &str = "rates come later";
const OURS: &str = "comes later; in logs it is '%bi' and '%bp'";
const TIMEOUTS: &str = "time-outs are those of the proxies: 'be_..._timeout', 'fe_..._timeout'";
