//! Algorithms that decrypt tokens (`jwt.decrypt_alg_list`, `jwt.decrypt_enc_list`).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections};
use terse_sample::Registry;

/// The table.
pub(crate) const KEYWORDS: &[Keyword] = &[
    done(
        "jwt.decrypt_alg_list",
        "<algorithm>[:...]",
        "How keys of encrypted tokens may be wrapped: names of RFC 7518 section 4.1, 'ALL', and behind '!' what is not; all but RSA1_5 by default.",
        |args, scope| set(args, scope, ALGORITHMS, |allowed| &allowed.algorithms),
    ),
    done(
        "jwt.decrypt_enc_list",
        "<algorithm>[:...]",
        "How contents of encrypted tokens may be encrypted: names of RFC 7518 section 5.1, 'ALL', and behind '!' what is not; all by default.",
        |args, scope| set(args, scope, ENCRYPTIONS, |allowed| &allowed.encryptions),
    ),
];

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Done(parser) }
}

/// Algorithms that wrap the key (RFC 7518 section 4.1).
const ALGORITHMS: &[&str] = &[
    RSA1_5,
    "RSA-OAEP",
    "RSA-OAEP-256",
    "A128KW",
    "A192KW",
    "A256KW",
    "dir",
    "ECDH-ES",
    "ECDH-ES+A128KW",
    "ECDH-ES+A192KW",
    "ECDH-ES+A256KW",
    "A128GCMKW",
    "A192GCMKW",
    "A256GCMKW",
];

/// Its failures tell too much (RFC 8725 section 3.2): it is off by default.
const RSA1_5: &str = "RSA1_5";

/// Algorithms that encrypt the content (RFC 7518 section 5.1).
const ENCRYPTIONS: &[&str] = &["A128CBC-HS256", "A192CBC-HS384", "A256CBC-HS512", "A128GCM", "A192GCM", "A256GCM"];

/// The algorithms of a configuration, a bit each. `global` may stand after expressions, so they look at each token.
pub(crate) struct Allowed {
    algorithms: AtomicU32,
    encryptions: AtomicU32,
}

impl Default for Allowed {
    fn default() -> Allowed {
        // The first bit is that of RSA1_5.
        Allowed { algorithms: AtomicU32::new(all(ALGORITHMS) & !1), encryptions: AtomicU32::new(all(ENCRYPTIONS)) }
    }
}

impl Allowed {
    /// Whether a token of these algorithms is decrypted.
    pub(crate) fn has(&self, algorithm: &[u8], encryption: &[u8]) -> bool {
        let has = |bits: &AtomicU32, names: &[&str], name: &[u8]| {
            names.iter().position(|known| known.as_bytes() == name).is_some_and(|at| bits.load(Relaxed) & 1 << at != 0)
        };
        has(&self.algorithms, ALGORITHMS, algorithm) && has(&self.encryptions, ENCRYPTIONS, encryption)
    }
}

const fn all(names: &[&str]) -> u32 {
    (1 << names.len()) - 1
}

fn set(args: &mut Args<'_>, scope: &mut Scope<'_>, names: &[&str], which: fn(&Allowed) -> &AtomicU32) -> Result<(), Fault> {
    let list = args.need("<algorithm>[:...]")?;
    let bits = bits(list, names).map_err(|name| {
        let hint = format!("one of ALL, {}", names.join(", "));
        args.fault(format!("'{name}' is no algorithm that is built")).hint(hint)
    })?;
    args.end()?;
    which(&scope.shared.entry::<Registry>().own::<Allowed>()).store(bits, Relaxed);
    Ok(())
}

/// A bit for each algorithm of a list; an error is a name that is unknown.
fn bits<'l>(list: &'l str, names: &[&str]) -> Result<u32, &'l str> {
    let mut bits = 0;
    for word in list.split(':') {
        let (name, is_out) = word.strip_prefix('!').map_or((word, false), |name| (name, true));
        let named = match names.iter().position(|known| *known == name) {
            Some(at) => 1 << at,
            None if name == "ALL" => all(names),
            None => return Err(name),
        };
        bits = if is_out { bits & !named } else { bits | named };
    }
    Ok(bits)
}

#[cfg(test)]
impl Allowed {
    /// Allows these.
    pub(crate) fn parse(&self, algorithms: &str, encryptions: &str) {
        self.algorithms.store(bits(algorithms, ALGORITHMS).unwrap(), Relaxed);
        self.encryptions.store(bits(encryptions, ENCRYPTIONS).unwrap(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        for (list, expected) in [
            ("ALL", Ok(all(ALGORITHMS))),
            ("RSA1_5", Ok(1)),
            ("RSA-OAEP:RSA1_5", Ok(3)),
            ("ALL:!RSA1_5", Ok(all(ALGORITHMS) - 1)),
            ("!RSA1_5:ALL", Ok(all(ALGORITHMS))),
            ("rsa1_5", Err("rsa1_5")),
            ("dir:", Err("")),
            ("PBES2-HS256+A128KW", Err("PBES2-HS256+A128KW")),
        ] {
            assert_eq!(bits(list, ALGORITHMS), expected, "{list}");
        }
        assert!(ALGORITHMS.len() < 32 && ALGORITHMS[0] == RSA1_5);
    }
}
