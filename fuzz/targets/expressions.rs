//! Any expression, condition or format on any request: it is refused, or it is evaluated without panic and in time bounded by the
//! sizes of both. What a format writes when it holds no expression is what it says of itself.
//!
//! The first byte of the input says what its first line is (`c`: a condition, `f`: a format, else an expression); the request follows.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;
use terse_config::{Environment, Place, Word};
use terse_http::h1::{Parsed, parse_request};
use terse_message::{Request, Response};
use terse_sample::{AclSet, Compiler, Env, Needs, Now, ProcessStore, Registry, Store, Usage, Vars, World};

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|b| *b == b'\n').unwrap_or(input.len());
    let (line, rest) = input.split_at(end);
    let Some((kind, text)) = line.split_first() else { return };
    let (mut registry, acls, mut warnings) = (registry(), AclSet::default(), Vec::new());
    let mut compiler = Compiler {
        registry: &mut registry,
        acls: &acls,
        have: Needs::ALL,
        warnings: &mut warnings,
        word: 0,
        section: "test".into(),
        place: Place::nowhere(),
    };
    let mut request = Request::default();
    let has_request = matches!(parse_request(rest.get(1..).unwrap_or_default(), &mut request), Ok(Parsed::Complete(_)));
    let mut response = Response::default();
    response.status = 200;
    response.fields.push(b"Set-Cookie", text);
    let (client, local): (SocketAddr, SocketAddr) = ("192.0.2.1:1".parse().unwrap(), "[::1]:2".parse().unwrap());
    let stores = [(); 4].map(|()| Store::default());
    let process = ProcessStore::default();
    let env = Env {
        request: has_request.then_some(&request),
        response: Some(&response),
        client: Some(&client),
        local: Some(&local),
        vars: Vars {
            process: Some(&process),
            session: Some(&stores[0]),
            transaction: Some(&stores[1]),
            request: Some(&stores[2]),
            response: Some(&stores[3]),
            ..Vars::default()
        },
        ..Env::bare(&Still)
    };
    match kind {
        b'c' => {
            let words: Vec<Word> =
                text.split(|b| *b == b' ').filter(|w| !w.is_empty()).map(|w| Word { bytes: w.to_vec(), span: 0..0 }).collect();
            match compiler.condition(&words, 1, true) {
                Ok(condition) => drop(condition.eval(&env)),
                Err(fault) => assert!(!fault.reason.is_empty()),
            }
        }
        b'f' => match compiler.log_format(text, Usage::Log) {
            Ok(format) => {
                let mut out = Vec::new();
                format.write(&env, &mut out);
                assert!(format.as_text().is_none_or(|text| text == out));
            }
            Err(fault) => assert!(!fault.reason.is_empty()),
        },
        _ => match compiler.expression(text) {
            Ok(expr) => {
                let value = expr.eval(&env);
                assert_eq!(value.clone().map(|value| value.store()), value);
                expr.each(&env, &mut |value| value.into_octets().is_none());
            }
            Err(fault) => assert!(!fault.reason.is_empty()),
        },
    }
});

/// Everybody's tables, and no files: a name that the fuzzer makes up must not be opened.
fn registry() -> Registry {
    let mut registry = terse::keywords::samples(&Environment::default());
    registry.files = None;
    registry
}

struct Still;

impl World for Still {
    fn now(&self) -> Now {
        Now { seconds: 1_770_091_506, micros: 789_012 }
    }
    fn random(&self) -> u64 {
        0x0123_4567_89ab_cdef
    }
}
