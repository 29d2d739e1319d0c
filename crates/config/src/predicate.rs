//! Predicates of conditions: questions about the process that reads the file.

use crate::environment::Environment;
use crate::version::{self, OpensslVersion};
use std::cmp::Ordering;

/// A predicate of conditions.
#[derive(Debug)]
pub struct Predicate {
    /// Its name.
    pub name: &'static str,
    /// Number of its arguments.
    pub arguments: usize,
    /// Function that returns the result, or the reason why there is none. It is given `arguments` arguments.
    pub(crate) holds: fn(&[String], &Environment) -> Result<bool, String>,
}

/// The predicate of that name.
pub fn find(name: &str) -> Option<&'static Predicate> {
    PREDICATES.iter().find(|predicate| predicate.name == name)
}

/// All predicates.
pub static PREDICATES: &[Predicate] = &[
    Predicate { name: "defined", arguments: 1, holds: |args, env| Ok(env.variables.contains_key(first(args))) },
    Predicate { name: "feature", arguments: 1, holds: |args, env| Ok(env.features.iter().any(|name| name == first(args))) },
    Predicate { name: "enabled", arguments: 1, holds: |args, env| Ok(env.enabled.iter().any(|name| name == first(args))) },
    Predicate { name: "streq", arguments: 2, holds: |args, _| Ok(first(args) == second(args)) },
    Predicate { name: "strneq", arguments: 2, holds: |args, _| Ok(first(args) != second(args)) },
    Predicate { name: "strstr", arguments: 2, holds: |args, _| Ok(first(args).contains(second(args))) },
    Predicate {
        name: "version_atleast",
        arguments: 1,
        holds: |args, env| Ok(version::compare(&env.version, first(args)) != Some(Ordering::Less)),
    },
    Predicate {
        name: "version_before",
        arguments: 1,
        holds: |args, env| Ok(version::compare(&env.version, first(args)) == Some(Ordering::Less)),
    },
    Predicate { name: "openssl_version_atleast", arguments: 1, holds: |args, env| Ok(openssl(args, env)? != Ordering::Less) },
    Predicate { name: "openssl_version_before", arguments: 1, holds: |args, env| Ok(openssl(args, env)? == Ordering::Less) },
    Predicate {
        name: "ssllib_name_startswith",
        arguments: 1,
        holds: |args, env| Ok(env.tls.as_ref().is_some_and(|tls| tls.name.starts_with(first(args)))),
    },
    Predicate { name: "awslc_api_atleast", arguments: 1, holds: |args, env| Ok(awslc(args, env)? != Ordering::Less) },
    Predicate { name: "awslc_api_before", arguments: 1, holds: |args, env| Ok(awslc(args, env)? == Ordering::Less) },
    Predicate { name: "fips_mode", arguments: 0, holds: |_, env| Ok(env.tls.as_ref().is_some_and(|tls| tls.fips)) },
];

/// Compares the library's version with the argument.
fn openssl(args: &[String], environment: &Environment) -> Result<Ordering, String> {
    let ours = environment.tls.as_ref().and_then(|tls| OpensslVersion::parse(&tls.version));
    let ours = ours.ok_or("there is no OpenSSL here whose version could be compared")?;
    let other = OpensslVersion::parse(first(args)).ok_or_else(|| format!("'{}' is not a version of OpenSSL", first(args)))?;
    Ok(ours.cmp(&other))
}

/// Compares the number of the library's interface with the argument.
fn awslc(args: &[String], environment: &Environment) -> Result<Ordering, String> {
    let ours =
        environment.tls.as_ref().and_then(|tls| tls.awslc_api).ok_or("there is no AWS-LC here whose version could be compared")?;
    let other: i64 = first(args).parse().map_err(|_| format!("'{}' is not a version of AWS-LC's interface", first(args)))?;
    Ok(ours.cmp(&other))
}

fn first(args: &[String]) -> &str {
    args.first().map_or("", String::as_str)
}

fn second(args: &[String]) -> &str {
    args.get(1).map_or("", String::as_str)
}
