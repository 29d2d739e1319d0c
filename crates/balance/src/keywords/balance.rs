//! `balance` and what belongs to it.

use super::{done, in_back, set, settings, switch};
use crate::settings::{Balance, Hash, HashAffinity, HashFunction, HashMethod, UriKey};
use std::sync::Arc;
use terse_config::{Args, Fault, Keyword};

pub(super) const BALANCE: Keyword = done(
    "balance",
    "{ roundrobin | static-rr | leastconn | first | source | uri [whole] [path-only] [len <n>] [depth <n>] | random[(<draws>)] | sticky \
     | log-hash <converters> }",
    "Says how the server of a request is chosen.",
    |args, scope| {
        let chosen = algorithm(args)?;
        let log_hash = match chosen {
            Balance::LogHash => {
                let place = args.place(&scope.place);
                Some((Arc::from(args.need("<converters>")?), place))
            }
            _ => None,
        };
        if in_back(scope) {
            let farm = settings(scope);
            (farm.balance, farm.log_hash) = (chosen, log_hash);
        }
        Ok(())
    },
);

pub(super) const HASH_TYPE: Keyword = done(
    "hash-type",
    "{ map-based | consistent } [sdbm | djb2 | crc32 | none] [avalanche]",
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

fn algorithm(args: &mut Args<'_>) -> Result<Balance, Fault> {
    let word = args.need("<algorithm>")?;
    match word {
        "roundrobin" | "static-rr" => Ok(Balance::RoundRobin),
        "leastconn" => Ok(Balance::LeastConn),
        "first" => Ok(Balance::First),
        "source" => Ok(Balance::Source),
        "uri" => uri(args).map(Balance::Uri),
        "random" => Ok(Balance::Random(DRAWS)),
        "sticky" => Ok(Balance::Sticky),
        "log-hash" => Ok(Balance::LogHash),
        "url_param" | "rdp-cookie" | "hash" | "none" => Err(later(args, word)),
        _ => match word.split_once('(') {
            Some(("random", draws)) => draws
                .strip_suffix(')')
                .and_then(|draws| draws.parse().ok())
                .filter(|draws| *draws > 0)
                .map(Balance::Random)
                .ok_or_else(|| args.fault(format!("'{word}': the number of draws is not between 1 and 255"))),
            Some(("hdr" | "rdp-cookie", _)) => Err(later(args, word)),
            _ => Err(args
                .fault(format!("unknown algorithm '{word}'"))
                .hint("known are roundrobin, static-rr, leastconn, first, source, uri and random")),
        },
    }
}

fn later(args: &Args<'_>, word: &str) -> Fault {
    args.fault(format!("'balance {word}' is not supported: it comes later"))
        .hint("'source' and 'uri' bring equal keys to equal servers")
}

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
        "crc32" => HashFunction::Crc32,
        "none" => HashFunction::None,
        "wt6" => return Err(args.fault("'wt6' is not supported").hint("sdbm, djb2 and crc32 are")),
        other => return Err(args.fault(format!("unknown function '{other}'")).hint("known are sdbm, djb2, crc32 and none")),
    };
    Ok(Hash { method, function, avalanche: args.accept("avalanche"), ..Hash::default() })
}

/// How many servers `balance random` draws when nobody says: with two, the busiest is nearly never taken (Mitzenmacher 1996).
const DRAWS: u8 = 2;
