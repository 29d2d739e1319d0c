//! Choice of a request's server before the algorithm is asked: `use-server`, `stick`, and the effect of persistence.
//!
//! ```text
//! force-persist, ignore-persist -> use-server -> persist rdp-cookie -> the cookie -> stick match -> the algorithm
//!                                                                                    stick store-request  --+
//!                                                 the server's answer comes -------> stick store-response --+--> the tables learn the server
//! ```
//!
//! The first to name a server decides: a later line is asked only while there is no server. A server that is down is passed
//! over, unless `option persist` or `force-persist` allows it.

use crate::plan::Backend;
use crate::stream::Stream;
use crate::track::key::with_key;
use crate::track::name::TableName;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use terse_balance::algorithm::settings::HashKey;
use terse_balance::table::{Data, Entry, ServerKeyKind, Table};
use terse_balance::{Affinity, Farm, Server};
use terse_config::{Place, Setting};
use terse_message::Request;
use terse_sample::{Condition, Expr, LogFormat, Type};

/// A backend's lines about servers of requests, as they stand.
#[derive(Clone, Default)]
pub struct StickSettings {
    /// `stick on`, `stick match`, `stick store-request`, in order.
    pub requests: Vec<Arc<StickRule>>,
    /// `stick store-response`.
    pub responses: Vec<Arc<StickRule>>,
    /// `use-server`.
    pub servers: Vec<Arc<ServerRule>>,
    /// `force-persist`, `ignore-persist`.
    pub persistence: Vec<Arc<PersistRule>>,
    /// `persist rdp-cookie`: the cookie in which a terminal server has named the server of a session.
    pub token: Option<Arc<Expr>>,
}

impl Setting for StickSettings {
    fn inherit(&self) -> StickSettings {
        StickSettings { token: self.token.clone(), ..StickSettings::default() }
    }
}

impl StickSettings {
    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
            && self.responses.is_empty()
            && self.servers.is_empty()
            && self.persistence.is_empty()
            && self.token.is_none()
    }
}

/// `stick ... <pattern> [table <table>] [if | unless <condition>]`
pub struct StickRule {
    /// Expression of the key.
    pub key: Expr,
    /// The table of the key.
    pub table: Arc<TableName>,
    /// When.
    pub condition: Option<Condition>,
    /// Whether the key's server is used.
    pub matches: bool,
    /// Whether the key's server is learnt.
    pub stores: bool,
}

/// `use-server <server> [if | unless <condition>]`
pub struct ServerRule {
    /// Which server.
    pub target: ServerTarget,
    /// When.
    pub condition: Option<Condition>,
    /// Place of its line in the configuration.
    pub place: Place,
}

/// Target of `use-server`.
pub enum ServerTarget {
    /// A server of the backend.
    Name(String),
    /// A name that is made for each request.
    Format(LogFormat),
}

/// `force-persist` and `ignore-persist`.
pub struct PersistRule {
    /// Which of them.
    pub word: Persistence,
    /// When.
    pub condition: Condition,
}

/// The effect of persistence on a request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Persistence {
    /// While the server is up.
    #[default]
    Usual,
    /// `force-persist`: the server may be down.
    Force,
    /// `ignore-persist`: the cookie is not looked at, and not set.
    Ignore,
}

/// A backend's lines about servers of requests, with the servers that they name found.
pub struct Sticking {
    rules: StickSettings,
    /// The servers of `use-server` lines, by index.
    servers: Vec<Option<usize>>,
    /// Hash key of `balance hash` and its kin.
    key: Option<HashKey>,
}

/// Entries that tables will learn once the server has answered: the server of this key.
pub type Learning = Vec<(Arc<Table>, Box<[u8]>)>;

impl Sticking {
    /// Finds the servers that the lines name; `missing` is called for those that are not there.
    pub fn new(rules: StickSettings, farm: &Farm, mut missing: impl FnMut(&ServerRule, &str)) -> Option<Box<Sticking>> {
        let find = |rule: &Arc<ServerRule>| match &rule.target {
            ServerTarget::Format(_) => None,
            ServerTarget::Name(name) => {
                let found = farm.find_server(name);
                match &found {
                    Some(server) => server.refer(),
                    None => missing(rule, name),
                }
                found.map(|server| server.index())
            }
        };
        let servers = rules.servers.iter().map(find).collect();
        let key = farm.settings().key.clone();
        (!rules.is_empty() || key.is_some()).then(|| Box::new(Sticking { rules, servers, key }))
    }
}

/// The key by which the algorithm finds a server, where it hashes an expression.
pub fn hash_key(stream: &Stream, sticking: &Sticking) -> Option<Box<[u8]>> {
    let env = stream.env();
    let key = sticking.key.as_ref()?;
    let bytes = |expression: &Arc<Expr>| Some(key.part_of(&expression.eval(&env)?.cast(Type::Bin)?.into_bytes()?)?.into());
    // Only a POST has its form in its body.
    let looks = if key.is_in_body() && stream.request.method() != b"POST" { 1 } else { usize::MAX };
    key.expressions.iter().take(looks).find_map(bytes)
}

/// Whether the algorithm waits for a request's body (`balance url_param ... check_post`).
pub fn waits_for_body(request: &Request, sticking: &Sticking) -> bool {
    request.method() == b"POST" && sticking.key.as_ref().is_some_and(HashKey::is_in_body)
}

/// The effect of persistence on a request.
pub fn persistence(stream: &Stream, sticking: &Sticking) -> Persistence {
    let env = stream.env();
    sticking.rules.persistence.iter().find(|rule| rule.condition.eval(&env)).map_or(Persistence::Usual, |rule| rule.word)
}

/// The server of the first `use-server` line that applies, and whose server may be used.
pub fn named(stream: &Stream, backend: &Backend, sticking: &Sticking, persistence: Persistence) -> Option<usize> {
    for (rule, index) in sticking.rules.servers.iter().zip(&sticking.servers) {
        if rule.condition.as_ref().is_some_and(|condition| !condition.eval(&stream.env())) {
            continue;
        }
        let server = match &rule.target {
            ServerTarget::Name(_) => backend.farm.server((*index)?),
            ServerTarget::Format(format) => {
                let mut name = Vec::new();
                format.write(&stream.env(), &mut name);
                backend.farm.find_server(std::str::from_utf8(&name).ok()?)
            }
        };
        // A name that is made and means nothing ends the search, as with HAProxy.
        let server = server?;
        if is_usable(&server, backend, persistence) {
            return Some(server.index());
        }
    }
    None
}

/// The server that an RDP client's routing token names, where it may be used.
pub fn by_token(stream: &Stream, backend: &Backend, sticking: &Sticking, persistence: Persistence) -> Option<usize> {
    let token = sticking.rules.token.as_ref()?.eval(&stream.env())?.cast(Type::Bin)?.into_bytes()?;
    let address = routing_token(&token)?;
    let is_it = |server: &Arc<Server>| {
        server.address().destination().is_some_and(|there| there.ip == *address.ip() && there.fixed_port() == Some(address.port()))
    };
    let server = backend.farm.servers().pick(is_it)?;
    is_usable(&server, backend, persistence).then(|| server.index())
}

/// The address in a routing token, `<ip>.<port>.0000`: both are decimal numbers whose bytes stand in the network's order
/// ([MS-RDPBCGR] section 3.2.5.3.1). Blanks may stand before either, as HAProxy has it.
fn routing_token(token: &[u8]) -> Option<SocketAddrV4> {
    let mut parts = std::str::from_utf8(token).ok()?.splitn(3, '.').map(|part| part.trim_start_matches([' ', '\t']));
    let ip: u32 = parts.next()?.parse().ok()?;
    let port: u16 = parts.next()?.parse().ok()?;
    parts.next()?;
    Some(SocketAddrV4::new(Ipv4Addr::from(ip.to_le_bytes()), u16::from_be_bytes(port.to_le_bytes())))
}

/// Chooses the server of a request by the tables' entries, where no other line has; records the keys to learn.
pub fn choose(stream: &mut Stream, backend: &Backend, sticking: &Sticking, affinity: &mut Affinity, persistence: Persistence) {
    let usable = |server: &Server| is_usable(server, backend, persistence);
    let mut learning = Learning::new();
    for rule in &sticking.rules.requests {
        let Some(table) = rule.table.table() else { continue };
        // Of a table's rules that store, the first that has a key counts.
        if (rule.stores && learns(&learning, table)) || !applies(rule, stream) {
            continue;
        }
        let Some(value) = rule.key.eval(&stream.env()) else { continue };
        with_key(table.settings().key, value, |key| {
            let now_ms = stream.facts.now_ms();
            if rule.matches
                && let Some(entry) = table.find(key, now_ms)
            {
                if affinity.server.is_none() {
                    affinity.server =
                        known(table, &entry, &backend.farm, now_ms).filter(|server| usable(server)).map(|server| server.index());
                }
                table.touch(&entry, now_ms);
            }
            if rule.stores && learning.len() < MOST_LEARNT {
                learning.push((table.clone(), key.into()));
            }
        });
    }
    if !learning.is_empty() {
        stream.facts.learning = Some(Box::new(learning));
    }
}

/// The tables learn the server that has answered, for the keys of the request and of the response.
pub fn learn(stream: &mut Stream, backend: &Backend) {
    let Some(sticking) = &backend.sticking else { return };
    if sticking.rules.responses.is_empty() && stream.facts.learning.is_none() {
        return;
    }
    let mut learning = stream.facts.learning.take().unwrap_or_default();
    let of_request = learning.len();
    for rule in &sticking.rules.responses {
        let Some(table) = rule.table.table() else { continue };
        if learns(&learning[of_request..], table) || !applies(rule, stream) {
            continue;
        }
        let Some(value) = rule.key.eval(&stream.env()) else { continue };
        with_key(table.settings().key, value, |key| {
            if learning.len() < MOST_LEARNT {
                learning.push((table.clone(), key.into()));
            }
        });
    }
    let Some(server) = stream.facts.server.as_ref().filter(|server| !server.settings().non_stick) else { return };
    let now_ms = stream.facts.now_ms();
    for (table, key) in *learning {
        if let Some(entry) = table.obtain(&key, now_ms) {
            table.set(&entry, Data::ServerId, 0, server.id().into(), now_ms);
            match table.settings().server_key {
                ServerKeyKind::Name => table.set_name(&entry, Data::ServerKey, server.name()),
                ServerKeyKind::Address => table.set_name(&entry, Data::ServerKey, &server.address().to_string()),
            }
            table.touch(&entry, now_ms);
        }
    }
}

/// Whether persistence may send requests there.
fn is_usable(server: &Server, backend: &Backend, persistence: Persistence) -> bool {
    server.is_up() || persistence == Persistence::Force || backend.farm.settings().persist
}

/// The server of an entry: by its name or address, or by its number where it has no such key or the server was renamed. The
/// number alone may be another server's by now.
fn known(table: &Table, entry: &Entry, farm: &Farm, now_ms: u64) -> Option<Arc<Server>> {
    let servers = farm.servers();
    let key = table.name_of(entry, Data::ServerKey);
    let key = key.as_deref();
    let by_name = table.settings().server_key == ServerKeyKind::Name;
    let has_key = |server: &&Arc<Server>| match by_name {
        true => key == Some(server.name()),
        false => key.is_some_and(|key| server.address().to_string() == *key),
    };
    let by_id = || {
        let id = table.read(entry, Data::ServerId, 0, now_ms)?;
        let server = servers.iter().find(|server| u64::from(server.id()) == id)?;
        key.is_none_or(|key| by_name && server.had_name(key)).then_some(server)
    };
    servers.iter().find(has_key).or_else(by_id).cloned()
}

fn applies(rule: &StickRule, stream: &Stream) -> bool {
    rule.condition.as_ref().is_none_or(|condition| condition.eval(&stream.env()))
}

fn learns(learning: &[(Arc<Table>, Box<[u8]>)], table: &Arc<Table>) -> bool {
    learning.iter().any(|(known, _)| Arc::ptr_eq(known, table))
}

/// HAProxy's limit.
const MOST_LEARNT: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routing_tokens_are_addresses() {
        let read = |token: &str| routing_token(token.as_bytes()).map(|address| address.to_string());
        assert_eq!(read("3640205228.15629.0000").as_deref(), Some("172.31.249.216:3389"));
        assert_eq!(read(" 3640205228. 15629.0000").as_deref(), Some("172.31.249.216:3389"));
        for token in ["", "1", "1.2", "x.15629.0000", "4294967296.1.0", "1.65536.0", "1..0"] {
            assert_eq!(read(token), None, "{token}");
        }
    }
}
