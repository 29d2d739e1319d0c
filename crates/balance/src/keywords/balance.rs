//! `balance` and its kin.

use super::{done, in_back, set, settings, switch};
use crate::algorithm::settings::{Balance, Hash, HashAffinity, HashFunction, HashKey, HashMethod, KeyPart, UriKey};
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword, Scope, Word};
use terse_sample::{Expr, Needs};

pub(super) const BALANCE: Keyword = done(
    "balance",
    "[roundrobin | static-rr | leastconn | first | source | uri [whole] [path-only] [len <n>] [depth <n>] | url_param <name> \
     [check_post] | hdr(<name>) [use_domain_only] | rdp-cookie[(<name>)] | hash <expression> | random[(<draws>)] | sticky \
     | log-hash <converters>]",
    "Says how the server of a request is chosen; by 'roundrobin' when it says nothing more.",
    |args, scope| {
        let (chosen, key) = algorithm(args, scope)?;
        let log_hash = match chosen {
            Balance::LogHash => {
                let place = args.place(&scope.place);
                Some((Arc::from(args.need("<converters>")?), place))
            }
            _ => None,
        };
        if in_back(scope) {
            let farm = settings(scope);
            (farm.balance, farm.log_hash, farm.key) = (chosen, log_hash, key);
        }
        Ok(())
    },
);

pub(super) const HASH_TYPE: Keyword = done(
    "hash-type",
    "{ map-based | consistent } [sdbm | djb2 | wt6 | crc32 | none] [avalanche]",
    "Says how 'balance source' and 'balance uri' find the server of a key.",
    |args, scope| {
        let affinity = settings(scope).hash.affinity;
        let hash = Hash { affinity, ..hash(args)? };
        if in_back(scope) {
            settings(scope).hash = hash;
        }
        Ok(())
    },
);

pub(super) const HASH_PRESERVE_AFFINITY: Keyword = done(
    "hash-preserve-affinity",
    "{ always | maxconn | maxqueue }",
    "Says when a key goes to another server than its own.",
    |args, scope| {
        let affinity = match args.need("<when>")? {
            "always" => HashAffinity::Always,
            "maxconn" => HashAffinity::MaxConn,
            "maxqueue" => HashAffinity::MaxQueue,
            other => return Err(args.fault(format!("'{other}' is neither 'always' nor 'maxconn' nor 'maxqueue'"))),
        };
        if in_back(scope) {
            settings(scope).hash.affinity = affinity;
        }
        Ok(())
    },
);

pub(super) const ALLBACKUPS: Keyword =
    switch("option allbackups", "All backup servers share the work, not only the first that is up.", |args, scope| {
        set(args, scope, |farm| &mut farm.all_backups)
    });

pub(super) const HASH_BALANCE_FACTOR: Keyword = done(
    "hash-balance-factor",
    "<percent>",
    "Bounds the requests of one server of a consistent hash, in percent of the mean; 0: no bound.",
    |args, scope| {
        let percent = args.integer("<percent>", 0..=i64::from(i32::MAX))? as u32;
        if percent != 0 && percent <= 100 {
            return Err(args.fault("must be 0 or greater than 100"));
        }
        if in_back(scope) {
            settings(scope).hash_balance_percent = percent;
        }
        Ok(())
    },
);

/// Parses an algorithm, and the key of one that hashes an expression.
fn algorithm(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(Balance, Option<HashKey>), Fault> {
    let Some(word) = args.take() else { return Ok((Balance::RoundRobin, None)) };
    let (name, argument) = match word.split_once('(') {
        Some((name, rest)) => match rest.strip_suffix(')') {
            Some(argument) => (name, Some(argument)),
            None => return Err(args.fault(format!("'{word}': missing closing parenthesis"))),
        },
        None => (word, None),
    };
    let algorithm = match (name, argument) {
        ("roundrobin", None) => Balance::RoundRobin,
        ("static-rr", None) => Balance::StaticRoundRobin,
        ("leastconn", None) => Balance::LeastConn,
        ("first", None) => Balance::First,
        ("source", None) => Balance::Source,
        ("uri", None) => Balance::Uri(uri(args)?),
        ("random", None) => Balance::Random(DRAWS),
        ("random", Some(draws)) => {
            let draws = draws.parse().ok().filter(|draws| *draws > 0);
            Balance::Random(draws.ok_or_else(|| args.fault(format!("'{word}': the number of draws is not between 1 and 255")))?)
        }
        ("sticky", None) => Balance::Sticky,
        ("log-hash", None) => Balance::LogHash,
        ("hash", None) => return Ok((Balance::Key, Some(key("hash", vec![Expr::parse(args, scope, HAVE)?], KeyPart::All)))),
        ("hdr", Some(field)) if !field.is_empty() => {
            let field = written(&format!("req.hdr({field},1)"), args, scope)?;
            let part = if args.accept("use_domain_only") { KeyPart::Domain } else { KeyPart::NotEmpty };
            return Ok((Balance::Key, Some(key("hdr", vec![field], part))));
        }
        ("rdp-cookie", name) => {
            let name = name.filter(|name| !name.is_empty()).unwrap_or("mstshash");
            let cookie = written(&format!("req.rdp_cookie({name})"), args, scope)?;
            return Ok((Balance::Key, Some(key("rdp-cookie", vec![cookie], KeyPart::NotEmpty))));
        }
        ("url_param", None) => {
            let name = args.need("<name>")?.as_bytes().into();
            let mut expressions = vec![written("query", args, scope)?];
            let in_body = args.accept("check_post");
            if in_body {
                expressions.push(written("req.body", args, scope)?);
                // HAProxy has dropped the limit of the searched body, and still accepts it.
                if args.peek().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
                    args.take();
                    args.changes_nothing("a body is looked at for as far as a buffer holds it");
                }
            }
            return Ok((Balance::Key, Some(key("url_param", expressions, KeyPart::Parameter { name, in_body }))));
        }
        ("none", None) => return Err(args.fault("'none' is not supported: write 'server' lines and an algorithm")),
        _ => {
            let known =
                "known are roundrobin, static-rr, leastconn, first, source, uri, url_param, hdr(), rdp-cookie, hash and random";
            return Err(args.fault(format!("unknown algorithm '{word}'")).hint(known));
        }
    };
    Ok((algorithm, None))
}

fn key(word: &'static str, expressions: Vec<Expr>, part: KeyPart) -> HashKey {
    HashKey { word, expressions: expressions.into_iter().map(Arc::new).collect(), part }
}

/// Expression of the algorithm's name.
fn written(text: &str, args: &Args<'_>, scope: &mut Scope<'_>) -> Result<Expr, Fault> {
    let words = [Word { bytes: text.into(), span: 0..0 }];
    Expr::parse(&mut Args::new(&words, 0), scope, HAVE).map_err(|fault| args.fault(fault.reason))
}

/// Data at the choice of a server: the request, with the buffered part of its body.
const HAVE: Needs = Needs::REQUEST.or(Needs::BODY).or(Needs::BYTES);

fn uri(args: &mut Args<'_>) -> Result<UriKey, Fault> {
    let mut key = UriKey::default();
    while let Some(word) = args.take() {
        match word {
            "whole" => key.whole = true,
            "path-only" => key.path_only = true,
            "len" => key.len = args.integer("<bytes>", 1..=i64::from(u32::MAX))? as usize,
            "depth" => key.depth = args.integer("<directories>", 1..=i64::from(u32::MAX))? as usize,
            _ => {
                return Err(args
                    .fault(format!("unknown word '{word}' behind 'uri'"))
                    .hint("known are whole, path-only, len and depth"));
            }
        }
    }
    Ok(key)
}

fn hash(args: &mut Args<'_>) -> Result<Hash, Fault> {
    let method = match args.need("<method>")? {
        "map-based" => HashMethod::Map,
        "consistent" => HashMethod::Consistent,
        other => return Err(args.fault(format!("unknown method '{other}'")).hint("known are map-based and consistent")),
    };
    let Some(function) = args.take() else {
        // HAProxy mixes by default only where places lie on a ring.
        return Ok(Hash { method, avalanche: method == HashMethod::Consistent, ..Hash::default() });
    };
    let function = match function {
        "sdbm" => HashFunction::Sdbm,
        "djb2" => HashFunction::Djb2,
        "wt6" => HashFunction::Wt6,
        "crc32" => HashFunction::Crc32,
        "none" => HashFunction::None,
        other => return Err(args.fault(format!("unknown function '{other}'")).hint("known are sdbm, djb2, wt6, crc32 and none")),
    };
    Ok(Hash { method, function, avalanche: args.accept("avalanche"), ..Hash::default() })
}

/// Number of servers that `balance random` draws by default: with two, the busiest is nearly never taken (Mitzenmacher
/// 1996).
const DRAWS: u8 = 2;
