//! Columns of `show stat`, except those that depend on time, on ports, and on how heads are counted.

use super::support::client::Client;
use super::support::{Terse, until};

/// Returns the answer of the stats socket to a command.
pub(crate) fn command(process: &Terse, command: &str) -> String {
    let mut client = Client::connect(process.address("cli"));
    client.send(format!("{command}\n"));
    String::from_utf8(client.rest()).unwrap()
}

/// Returns the counters of a stick table under its keys, once no stream is counted on.
pub(crate) fn counts(process: &Terse, name: &str) -> String {
    rows(process);
    let text = command(process, &format!("show table {name}"));
    let is_count = |word: &&str| word.starts_with("key=") || word.contains("_cnt=");
    text.split_whitespace().filter(is_count).collect::<Vec<_>>().join(" ")
}

/// All rows: of each its name, and its columns with their values.
fn table(process: &Terse) -> Vec<(String, Vec<(String, String)>)> {
    let text = command(process, "show stat");
    let mut lines = text.trim_start_matches("# ").lines().filter(|line| !line.is_empty());
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    lines
        .map(|line| {
            let values = values(line);
            let cells: Vec<_> = names.iter().map(|name| (*name).to_owned()).zip(values).collect();
            (format!("{}/{}", cells[0].1, cells[1].1), cells)
        })
        .collect()
}

/// The values of a row, without their quotes.
fn values(line: &str) -> Vec<String> {
    let (mut values, mut value, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => values.push(std::mem::take(&mut value)),
            letter => value.push(letter),
        }
    }
    values.push(value);
    values
}

/// Beginning of the status of a running check.
const RUNS: &str = "* ";

/// Returns a value; empty where there is none.
pub(crate) fn of(process: &Terse, row: &str, column: &str) -> String {
    let cells = table(process).into_iter().find(|(name, _)| name == row).map(|(_, cells)| cells).unwrap_or_default();
    cells.into_iter().find(|(name, _)| name == column).map(|(_, value)| value).unwrap_or_default()
}

/// Every value that can be compared, once all streams have ended.
pub(crate) fn rows(process: &Terse) -> Vec<String> {
    until("streams to end", || {
        let table = table(process);
        let runs = |(name, value): &(String, String)| name == "scur" && value != "0" || value.starts_with(RUNS);
        if table.iter().flat_map(|(_, cells)| cells).any(runs) {
            return None;
        }
        let shown = |(row, cells): (String, Vec<(String, String)>)| {
            let compared = cells.into_iter().filter(|(name, _)| COMPARED.contains(&name.as_str()));
            compared.map(move |(name, value)| format!("{row} {name}={value}")).collect::<Vec<_>>()
        };
        Some(table.into_iter().flat_map(shown).collect())
    })
}

/// The columns that both have, but for times, rates, bytes of heads, addresses, and figures of idle connections, which terse has not.
const COMPARED: &[&str] = &[
    "pxname",
    "svname",
    "qcur",
    "qmax",
    "slim",
    "stot",
    "dreq",
    "dresp",
    "ereq",
    "econ",
    "eresp",
    "wretr",
    "wredis",
    "status",
    "weight",
    "act",
    "bck",
    "chkfail",
    "chkdown",
    "qlimit",
    "iid",
    "sid",
    "throttle",
    "lbtot",
    "tracked",
    "type",
    "rate_lim",
    "check_status",
    "check_code",
    "hrsp_1xx",
    "hrsp_2xx",
    "hrsp_3xx",
    "hrsp_4xx",
    "hrsp_5xx",
    "hrsp_other",
    "hanafail",
    "req_tot",
    "cli_abrt",
    "srv_abrt",
    "last_chk",
    "last_agt",
    "agent_status",
    "agent_code",
    "check_desc",
    "agent_desc",
    "check_rise",
    "check_fall",
    "check_health",
    "agent_rise",
    "agent_fall",
    "agent_health",
    "cookie",
    "mode",
    "algo",
    "conn_tot",
    "intercepted",
    "dcon",
    "dses",
    "wrew",
    "connect",
    "reuse",
    "cache_lookups",
    "cache_hits",
    "src_ilim",
    "uweight",
];
