//! Query of a request for metrics: `scope`, `metrics`, `no-maint`, `desc-labels`, `extra-counters`, as in HAProxy.

use std::collections::HashSet;

/// Requested metrics.
#[derive(Clone, Default, Debug)]
pub(super) struct Query {
    /// Scopes, as a set of bits; `None`: all of them.
    scopes: Option<u8>,
    included: HashSet<String>,
    excluded: HashSet<String>,
    /// Whether servers in maintenance are left out.
    pub(super) no_maint: bool,
    /// Whether descriptions are labels.
    pub(super) descriptions: bool,
    /// Whether `What::Extra` is included.
    pub(super) extra: bool,
}

/// Subject of metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    Process,
    Frontend,
    Address,
    Backend,
    Server,
    Table,
    Resolver,
    Own,
}

impl Scope {
    /// All scopes, in the order of the answer.
    pub(super) const ALL: [Scope; 8] =
        [Scope::Process, Scope::Frontend, Scope::Address, Scope::Backend, Scope::Server, Scope::Table, Scope::Resolver, Scope::Own];

    fn of_word(word: &str) -> Option<Scope> {
        Some(match word {
            "global" => Scope::Process,
            "frontend" => Scope::Frontend,
            "listener" => Scope::Address,
            "backend" => Scope::Backend,
            "server" => Scope::Server,
            "sticktable" => Scope::Table,
            "resolver" => Scope::Resolver,
            "terse" => Scope::Own,
            _ => return None,
        })
    }

    /// Prefix of the names of its metrics.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Scope::Process => "haproxy_process_",
            Scope::Frontend => "haproxy_frontend_",
            Scope::Address => "haproxy_listener_",
            Scope::Backend => "haproxy_backend_",
            Scope::Server => "haproxy_server_",
            Scope::Table => "haproxy_sticktable_",
            Scope::Resolver => "haproxy_resolver_",
            Scope::Own => "terse_",
        }
    }
}

impl Query {
    /// Parses the query after the question mark. Unknown parameters are ignored.
    pub(super) fn parse(text: &[u8]) -> Result<Query, String> {
        let mut query = Query::default();
        for word in text.split(|byte| matches!(byte, b'&' | b';')).filter(|word| !word.is_empty()) {
            let mut halves = word.splitn(2, |byte| *byte == b'=');
            let (name, value) = (halves.next().unwrap_or_default(), halves.next());
            let value = value.map(decode).transpose()?;
            match decode(name)?.as_str() {
                "scope" => {
                    let value = value.ok_or("scope: which one is missing ('scope=' is none of them)")?;
                    let scopes = query.scopes.unwrap_or(0);
                    query.scopes = Some(match value.as_str() {
                        "" => 0,
                        "*" => u8::MAX,
                        word => scopes | bit(Scope::of_word(word).ok_or_else(|| format!("scope '{word}' is not known"))?),
                    });
                }
                "metrics" => query.select(&value.unwrap_or_default())?,
                "no-maint" => query.no_maint = true,
                "desc-labels" => query.descriptions = true,
                "extra-counters" => query.extra = true,
                _ => {}
            }
        }
        Ok(query)
    }

    fn select(&mut self, names: &str) -> Result<(), String> {
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name.strip_prefix('-') {
                Some(name) => self.excluded.insert(name.to_owned()),
                None => self.included.insert(name.to_owned()),
            };
            if self.included.len() + self.excluded.len() > MOST_NAMES {
                return Err(format!("metrics: more than {MOST_NAMES} names"));
            }
        }
        Ok(())
    }

    /// Whether a scope is asked for.
    pub(super) fn wants(&self, scope: Scope) -> bool {
        self.scopes.is_none_or(|scopes| scopes & bit(scope) != 0)
    }

    /// Whether a metric is asked for, by its whole name.
    pub(super) fn wants_metric(&self, name: &str) -> bool {
        !self.excluded.contains(name) && (self.included.is_empty() || self.included.contains(name))
    }
}

const fn bit(scope: Scope) -> u8 {
    1 << scope as u8
}

/// Decodes `%41`.
fn decode(text: &[u8]) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        rest = behind;
        bytes.push(match (*first, behind) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
                rest = after;
                digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low).ok_or("a '%' is followed by no number")?
            }
            (b'%', _) => return Err("a '%' is followed by no number".into()),
            (byte, _) => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "the query is no text".into())
}

/// There are fewer metrics.
const MOST_NAMES: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_in_their_order() {
        let wanted = |text: &str| -> Vec<Scope> {
            let query = Query::parse(text.as_bytes()).unwrap();
            Scope::ALL.into_iter().filter(|scope| query.wants(*scope)).collect()
        };
        assert_eq!(wanted(""), Scope::ALL);
        assert_eq!(wanted("x=y&no-maint"), Scope::ALL);
        assert_eq!(wanted("scope=%73erver&scope=backend"), [Scope::Backend, Scope::Server]);
        assert_eq!(wanted("scope=*&scope="), []);
        assert_eq!(wanted("scope=server;scope=&scope=global"), [Scope::Process]);
        for text in ["scope", "scope=x", "scope=%7", "scope=%zz", "scope=%ff"] {
            assert!(Query::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn metrics_by_name() {
        let query = Query::parse(b"metrics=-a,-b&desc-labels&extra-counters").unwrap();
        assert!(query.wants_metric("c") && !query.wants_metric("a") && query.descriptions && query.extra && !query.no_maint);
        let query = Query::parse(b"metrics=a,b&metrics=-b").unwrap();
        assert!(query.wants_metric("a") && !query.wants_metric("b") && !query.wants_metric("c"));
        let many = (0..=MOST_NAMES).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert!(Query::parse(format!("metrics={many}").as_bytes()).is_err());
    }
}
