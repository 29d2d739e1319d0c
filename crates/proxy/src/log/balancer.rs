//! Backends of logs (`mode log`): each line goes to one of several servers.
//!
//! Servers, their states and the algorithms are those of every backend. Only the delivery of lines differs: datagrams, or a
//! ring for each server over a stream.

use super::journal::Way;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};
use terse_balance::{Farm, Key};
use terse_sample::{Env, Expr, Now, Value, World};

/// A backend of logs. Targets hold it before its servers are known: its own lines may go to another one, or to itself.
#[derive(Default, Debug)]
pub(super) struct Balancer {
    servers: OnceLock<Servers>,
}

#[derive(Debug)]
struct Servers {
    farm: Arc<Farm>,
    /// The way to each server, by its index.
    ways: Box<[Way]>,
    /// The converters of `balance log-hash`, after a fetch that is not evaluated.
    key: Option<Expr>,
}

impl Balancer {
    /// Tells its servers, once, and the ways to them.
    pub(super) fn set(&self, farm: Arc<Farm>, ways: Box<[Way]>, key: Option<Expr>) {
        // A second farm of the same name is a fault of the configuration, which is reported elsewhere.
        let _ = self.servers.set(Servers { farm, ways, key });
    }

    /// The way to the server that a line goes to; `None` when there is none.
    pub(super) fn way(&self, body: &[u8]) -> Option<&Way> {
        let Servers { farm, ways, key } = self.servers.get()?;
        let chosen = match key {
            None => farm.choose(&Key::default(), &[]),
            Some(key) => {
                let value = key.convert(Value::str(body), &Env::bare(&Elsewhere))?;
                let bytes = value.into_octets()?;
                farm.choose(&Key { bytes: Some(&bytes), ..Key::default() }, &[])
            }
        };
        ways.get(chosen?)
    }
}

/// Environment of converters outside a worker.
struct Elsewhere;

impl World for Elsewhere {
    fn now(&self) -> Now {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { seconds: now.as_secs() as i64, micros: now.subsec_micros() }
    }

    fn random(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::from(now.subsec_nanos()).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
