//! Fixture of this crate's tests: a request, its response, and expressions compiled from text.

use crate::acl::AclSet;
use crate::compiler::Compiler;
use crate::condition::Condition;
use crate::env::{Env, Now, World};
use crate::expr::Expr;
use crate::logformat::{LogFormat, Usage};
use crate::registry::{Constants, Needs, Registry};
use crate::value::Value;
use crate::vars::{ProcessStore, Store, VarScope, Vars};
use std::net::SocketAddr;
use std::sync::Arc;
use terse_config::{Fault, Place, Word};
use terse_message::{Request, Response};

/// 2026-02-03 04:05:06.789012 UTC, and always the same number.
struct Still;

impl World for Still {
    fn now(&self) -> Now {
        Now { seconds: 1_770_091_506, micros: 789_012 }
    }
    fn random(&self) -> u64 {
        0x0123_4567_89ab_cdef
    }
    fn utc_offset(&self, _: i64) -> i32 {
        3_600
    }
}

/// A stream and its configuration.
pub(crate) struct Bench {
    pub(crate) registry: Registry,
    pub(crate) acls: AclSet,
    pub(crate) have: Needs,
    pub(crate) warnings: Vec<Fault>,
    pub(crate) request: Request,
    pub(crate) response: Response,
    stores: [Store; 4],
    client: SocketAddr,
    local: SocketAddr,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        let mut registry = Registry::default();
        let environment = [("HOME".to_owned(), "/root".to_owned())].into();
        registry.constants = Arc::new(Constants { hostname: "box".into(), environment, pid: 42, threads: 2 });
        let mut request = Request::default();
        request.set_method(b"GET");
        request.set_target(b"/dir/file.html?a=1&b=two%20x&a=3&C=4");
        for (name, value) in [
            ("Host", "Example.com:8080"),
            ("X-List", "one, \"t,wo\" ,, three"),
            ("X-List", "four"),
            ("X-Empty", ""),
            ("X-Num", "12, 34abc"),
            ("X-Addr", "bogus, 192.0.2.1:80, [2001:db8::1]"),
            ("Cookie", "c1=v1; c2=\"v;2\"; $c3=x; c1 = v3"),
            ("Authorization", "Basic dXNlcjpwYTpzcw=="),
            ("Accept-Language", "de;q=0.5, fr-CH, en;q=0.8"),
        ] {
            request.fields.push(name.as_bytes(), value.as_bytes());
        }
        let mut response = Response::default();
        response.status = 404;
        for (name, value) in [("Server", "s1"), ("Set-Cookie", "s=1; Path=/"), ("Set-Cookie", "t=2")] {
            response.fields.push(name.as_bytes(), value.as_bytes());
        }
        let (client, local) = ("198.51.100.7:1234".parse().unwrap(), "[::1]:443".parse().unwrap());
        let stores = [(); 4].map(|()| Store::default());
        Bench {
            registry,
            acls: AclSet::default(),
            have: Needs::ALL,
            warnings: Vec::new(),
            request,
            response,
            stores,
            client,
            local,
        }
    }

    pub(crate) fn compiler(&mut self) -> Compiler<'_> {
        let Bench { registry, acls, have, warnings, .. } = self;
        Compiler { registry, acls, have: *have, warnings, word: 0, section: "test".into(), place: Place::nowhere() }
    }

    pub(crate) fn expr(&mut self, text: &str) -> Result<Expr, Fault> {
        self.compiler().expression(text.as_bytes())
    }

    /// The value as text; `None` when it is undefined.
    pub(crate) fn eval(&mut self, text: &str) -> Option<String> {
        let expr = self.expr(text).unwrap_or_else(|fault| panic!("{text}: {}", fault.reason));
        let bytes = expr.eval(&self.env())?.into_octets()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn condition(&mut self, text: &str) -> Result<Condition, Fault> {
        let words = words(text);
        self.compiler().condition(&words, 0, true)
    }

    pub(crate) fn holds(&mut self, text: &str) -> bool {
        let condition = self.condition(text).unwrap_or_else(|fault| panic!("{text}: {}", fault.reason));
        condition.eval(&self.env())
    }

    pub(crate) fn acl(&mut self, name: &str, text: &str) -> Result<(), Fault> {
        let criterion = self.compiler().criterion(&words(text), 0)?;
        self.acls.add(name, criterion);
        Ok(())
    }

    pub(crate) fn format(&mut self, text: &str, usage: Usage) -> Result<LogFormat, Fault> {
        self.compiler().log_format(text.as_bytes(), usage)
    }

    pub(crate) fn write(&mut self, text: &str, usage: Usage) -> String {
        let format = self.format(text, usage).unwrap_or_else(|fault| panic!("{text}: {}", fault.reason));
        let mut out = Vec::new();
        format.write(&self.env(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    pub(crate) fn set(&mut self, name: &str, value: Value<'_>) {
        let slot = self.registry.names.slot(name).unwrap();
        assert_ne!(slot.scope, VarScope::Process, "a bench has no process");
        self.env().vars.set(slot, value);
    }

    pub(crate) fn env(&self) -> Env<'_> {
        let [session, transaction, request, response] = &self.stores;
        static PROCESS: std::sync::OnceLock<ProcessStore> = std::sync::OnceLock::new();
        let vars = Vars {
            process: Some(PROCESS.get_or_init(ProcessStore::default)),
            session: Some(session),
            transaction: Some(transaction),
            request: Some(request),
            response: Some(response),
            check: None,
        };
        Env {
            request: Some(&self.request),
            response: Some(&self.response),
            client: Some(&self.client),
            local: Some(&self.local),
            vars,
            world: &Still,
            doubt: None,
            facts: &(),
        }
    }
}

/// Words between blanks, without quotes.
pub(crate) fn words(text: &str) -> Vec<Word> {
    text.split(' ').filter(|w| !w.is_empty()).map(|w| Word { bytes: w.as_bytes().to_vec(), span: 0..0 }).collect()
}
