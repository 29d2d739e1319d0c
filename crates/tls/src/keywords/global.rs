//! The keywords of `global`.

use super::{bind, common, server};
use crate::settings::{BindTls, Common, Defaults, ExtraFiles, FileName, Global, ServerTls};
use std::path::PathBuf;
use terse_config::params::{self, Param};
use terse_config::{Args, Fault, Keyword, Kind, Parser, Scope, Sections};

/// The table.
pub(super) const KEYWORDS: &[Keyword] = &[
    done("crt-base", "<folder>", "Where relative names of certificates begin.", |args, scope| {
        global(scope).crt_base = Some(folder(args)?);
        args.end()
    }),
    done("key-base", "<folder>", "Where relative names of keys begin that 'crt-store' sections name.", |args, scope| {
        global(scope).key_base = Some(folder(args)?);
        args.end()
    }),
    done(
        "ca-base",
        "<folder>",
        "Where relative names of authorities and of lists of revoked certificates begin.",
        |args, scope| {
            global(scope).ca_base = Some(folder(args)?);
            args.end()
        },
    ),
    done("issuers-chain-path", "<folder>", "Where certificates are that complete the chains of others.", |args, scope| {
        let folder = folder(args)?;
        if !folder.is_dir() {
            return Err(args.fault(format!("expects a folder, and '{}' is none", folder.display())));
        }
        global(scope).issuers = Some(folder);
        args.end()
    }),
    done(
        "ssl-load-extra-files",
        "{ none | all | bundle | key | issuer | ocsp | sctl }...",
        "What is read beside certificates: all of it, by default.",
        |args, scope| {
            let none = ExtraFiles { bundle: false, key: false, issuer: false, ocsp: false, sctl: false };
            let mut extra = none;
            while let Some(word) = args.take() {
                match word {
                    "none" => extra = none,
                    "all" => extra = ExtraFiles::default(),
                    "bundle" => extra.bundle = true,
                    "key" => extra.key = true,
                    "issuer" => extra.issuer = true,
                    "ocsp" => extra.ocsp = true,
                    "sctl" => extra.sctl = true,
                    other => return Err(args.fault(format!("'{other}' is no kind of file that is read beside a certificate"))),
                }
            }
            global(scope).extra = extra;
            Ok(())
        },
    ),
    done(
        "ssl-load-extra-del-ext",
        "",
        "Names of files beside certificates take the place of the extension '.crt'.",
        |args, scope| {
            global(scope).extra_replaces_extension = true;
            args.end()
        },
    ),
    done("ssl-skip-self-issued-ca", "", "Leaves roots out of chains.", |args, scope| {
        global(scope).skips_roots = true;
        args.end()
    }),
    done(
        "ssl-server-verify",
        "{ none | required }",
        "Whether servers' certificates are verified where their lines do not say.",
        |args, scope| {
            global(scope).server_verify = match args.need("<how>")? {
                "none" => false,
                "required" => true,
                other => return Err(args.fault(format!("'{other}' is neither 'none' nor 'required'"))),
            };
            args.end()
        },
    ),
    done(
        "ssl-expired-certificates",
        "{ refuse | accept }",
        "What becomes of our own certificates whose time has not come or is over: they are refused, by default.",
        |args, scope| {
            global(scope).takes_expired = match args.need("<what>")? {
                "refuse" => false,
                "accept" => true,
                other => return Err(args.fault(format!("'{other}' is neither 'refuse' nor 'accept'"))),
            };
            args.end()
        },
    ),
    done("ssl-security-level", "<level>", "OpenSSL's security level, 0 to 5; the library's own by default.", |args, scope| {
        global(scope).security_level = Some(args.integer("<level>", 0..=5)? as u32);
        args.end()
    }),
    done(
        "ocsp-update.mode",
        "{ on | off }",
        "Whether answers about certificates' states are fetched; off by default.",
        |args, scope| {
            global(scope).ocsp.by_default = common::on_off(args)?;
            args.end()
        },
    ),
    done("ocsp-update.disable", "{ on | off }", "Fetches no answers, whatever certificates say.", |args, scope| {
        global(scope).ocsp.disabled = common::on_off(args)?;
        args.end()
    }),
    done("ocsp-update.mindelay", "<seconds>", "The least time between two requests for an answer; 300 by default.", least_delay),
    done("tune.ssl.ocsp-update.mindelay", "<seconds>", "The old name of 'ocsp-update.mindelay'.", least_delay),
    done("ocsp-update.maxdelay", "<seconds>", "The most time between two requests for an answer; 3600 by default.", most_delay),
    done("tune.ssl.ocsp-update.maxdelay", "<seconds>", "The old name of 'ocsp-update.maxdelay'.", most_delay),
    done("ocsp-update.httpproxy", "<address>[:<port>]", "Asks an HTTP proxy for answers; port 80 by default.", |args, scope| {
        let address = args.need("<address>")?;
        let has_port = address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        global(scope).ocsp.proxy = Some(if has_port { address.into() } else { format!("{address}:80").into() });
        args.end()
    }),
    done("ssl-dh-param-file", "<file>", "Diffie-Hellman parameters of addresses that have none of their own.", |args, scope| {
        let place = args.place(&scope.place);
        let name = args.need("<file>")?.into();
        global(scope).dh_file = Some(FileName { name, place });
        args.end()
    }),
    done("tune.ssl.cachesize", "<sessions>", "How many sessions each address remembers; 20000 by default.", |args, scope| {
        global(scope).cache_size = args.integer("<sessions>", 0..=i64::from(i32::MAX))? as u32;
        args.end()
    }),
    done(
        "tune.ssl.ssl-ctx-cache-size",
        "<certificates>",
        "How many certificates that were made each address remembers; 1000 by default.",
        |args, scope| {
            global(scope).made_certificates = args.integer("<certificates>", 0..=i64::from(i32::MAX))? as usize;
            args.end()
        },
    ),
    done("tune.ssl.lifetime", "<time>", "How long sessions are remembered; 300s by default.", |args, scope| {
        global(scope).lifetime = args.time_in("<time>", terse_config::TimeUnit::Seconds)?;
        args.end()
    }),
    done("tune.ssl.maxrecord", "<bytes>", "The largest record at the beginning of an answer; any, by default.", |args, scope| {
        global(scope).max_record = args.integer("<bytes>", 0..=16384)? as usize;
        args.end()
    }),
    done("tune.ssl.hard-maxrecord", "<bytes>", "The largest record; any, by default.", |args, scope| {
        global(scope).hard_max_record = args.integer("<bytes>", 0..=16384)? as usize;
        args.end()
    }),
    done("ssl-default-bind-ciphers", "<ciphers>", "Ciphers up to TLS 1.2 of 'bind' lines that name none.", |args, scope| {
        binds(scope).ciphers = common::list(args, "<ciphers>")?;
        args.end()
    }),
    done("ssl-default-bind-ciphersuites", "<suites>", "Ciphers of TLS 1.3 of 'bind' lines that name none.", |args, scope| {
        binds(scope).ciphersuites = common::list(args, "<suites>")?;
        args.end()
    }),
    done("ssl-default-bind-curves", "<curves>", "Groups of 'bind' lines that name none.", |args, scope| {
        binds(scope).curves = common::list(args, "<curves>")?;
        args.end()
    }),
    done("ssl-default-bind-sigalgs", "<algorithms>", "Signatures of 'bind' lines that name none.", |args, scope| {
        binds(scope).sigalgs = common::list(args, "<algorithms>")?;
        args.end()
    }),
    done(
        "ssl-default-bind-client-sigalgs",
        "<algorithms>",
        "Clients' signatures of 'bind' lines that name none.",
        |args, scope| {
            binds(scope).client_sigalgs = common::list(args, "<algorithms>")?;
            args.end()
        },
    ),
    done("ssl-default-bind-options", "<option>...", "Versions, tickets and 'strict-sni' of all 'bind' lines.", |args, scope| {
        let mut draft = super::Draft { tls: BindTls::default(), line: scope.place.clone() };
        draft.tls.own.common = binds(scope).clone();
        options(args, bind::TABLE, BIND_OPTIONS, &mut draft)?;
        *binds(scope) = draft.tls.own.common;
        scope.shared.entry::<Defaults>().strict_sni |= draft.tls.strict_sni == Some(true);
        Ok(())
    }),
    done("ssl-default-server-ciphers", "<ciphers>", "Ciphers up to TLS 1.2 of servers that name none.", |args, scope| {
        servers(scope).ciphers = common::list(args, "<ciphers>")?;
        args.end()
    }),
    done("ssl-default-server-ciphersuites", "<suites>", "Ciphers of TLS 1.3 of servers that name none.", |args, scope| {
        servers(scope).ciphersuites = common::list(args, "<suites>")?;
        args.end()
    }),
    done("ssl-default-server-curves", "<curves>", "Groups of servers that name none.", |args, scope| {
        servers(scope).curves = common::list(args, "<curves>")?;
        args.end()
    }),
    done("ssl-default-server-sigalgs", "<algorithms>", "Signatures of servers that name none.", |args, scope| {
        servers(scope).sigalgs = common::list(args, "<algorithms>")?;
        args.end()
    }),
    done("ssl-default-server-client-sigalgs", "<algorithms>", "Our own signatures to servers that name none.", |args, scope| {
        servers(scope).client_sigalgs = common::list(args, "<algorithms>")?;
        args.end()
    }),
    done("ssl-default-server-options", "<option>...", "Versions and tickets of all servers.", |args, scope| {
        let mut draft = super::Draft { tls: ServerTls::default(), line: scope.place.clone() };
        draft.tls.common = servers(scope).clone();
        options(args, server::TABLE, SERVER_OPTIONS, &mut draft)?;
        *servers(scope) = draft.tls.common;
        Ok(())
    }),
    done(
        "tune.ssl.default-dh-param",
        "<bits>",
        "The longest Diffie-Hellman parameters where no file has some: as long as the certificate's key, of 1024, 2048 or 4096 bits.",
        |args, scope| {
            global(scope).dh_bits = args.integer("<bits>", 1024..=i64::from(i32::MAX))? as u32;
            args.end()
        },
    ),
    done(
        "tune.ssl.keylog",
        "{ on | off }",
        "Keeps secrets of TLS 1.3 for fetches such as ssl_fc_client_traffic_secret_0; off by default.",
        |args, scope| {
            global(scope).keeps_secrets = common::on_off(args)?;
            args.end()
        },
    ),
    accepted("ssl-mode-async", "", "Asynchronous engines.", "no engine is asked: handshakes are made by the workers"),
    accepted("noktls", "", "Avoids TLS in the kernel.", "records are never left to the kernel"),
    Keyword {
        old_names: &["tune.ssl.capture-cipherlist-size"],
        ..done(
            "tune.ssl.capture-buffer-size",
            "<bytes>",
            "How much of each client's hello is kept for fetches: ssl_fc_cipherlist_bin and its like.",
            |args, scope| {
                global(scope).hello_bytes = args.integer("<bytes>", 0..=MOST_HELLO_BYTES)? as usize;
                args.end()
            },
        )
    },
    accepted("tune.ssl.certificate-compression", "auto|off", "Compresses certificates.", "the system's OpenSSL does not"),
    accepted("tune.ssl.force-private-cache", "", "Sessions of each process.", "sessions are always a process's own"),
    accepted(
        "tune.ssl.keyupdate-rate-limit",
        "<number>",
        "Renewed keys a second.",
        "OpenSSL bounds them itself: 32 between two records of data",
    ),
];

fn least_delay(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let seconds = args.integer("<seconds>", 1..=i64::from(i32::MAX))?;
    let ocsp = &mut global(scope).ocsp;
    // The order of the two keywords does not matter.
    (ocsp.min_s, ocsp.max_s) = (seconds, ocsp.max_s.max(seconds));
    args.end()
}

fn most_delay(args: &mut Args<'_>, scope: &mut Scope<'_>) -> Result<(), Fault> {
    let seconds = args.integer("<seconds>", 1..=i64::from(i32::MAX))?;
    if seconds < global(scope).ocsp.min_s {
        return Err(args.fault("it can not be lower than 'ocsp-update.mindelay', which is 300 by default and may stand before it"));
    }
    global(scope).ocsp.max_s = seconds;
    args.end()
}

/// Keywords that may follow `ssl-default-bind-options`.
const BIND_OPTIONS: &[&str] =
    &["ssl-min-ver", "ssl-max-ver", "no-", "force-", "tls-tickets", "strict-sni", "prefer-client-ciphers", "ktls"];
const SERVER_OPTIONS: &[&str] = &["ssl-min-ver", "ssl-max-ver", "no-", "force-", "tls-tickets", "renegotiate", "ktls"];

/// OpenSSL takes no hello that is longer (RFC 8446 section 4 allows more).
const MOST_HELLO_BYTES: i64 = 128 * 1024;

const fn done(name: &'static str, arguments: &'static str, summary: &'static str, parser: Parser) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Done(parser) }
}

const fn accepted(name: &'static str, arguments: &'static str, summary: &'static str, why: &'static str) -> Keyword {
    Keyword { name, old_names: &[], sections: Sections::GLOBAL, arguments, summary, kind: Kind::Accepted(why) }
}

fn global<'a>(scope: &'a mut Scope<'_>) -> &'a mut Global {
    scope.section.settings.entry()
}

/// Defaults for the `bind` lines that follow.
fn binds<'a>(scope: &'a mut Scope<'_>) -> &'a mut Common {
    &mut scope.shared.entry::<Defaults>().bind
}

/// Defaults for the `server` lines that follow.
fn servers<'a>(scope: &'a mut Scope<'_>) -> &'a mut Common {
    &mut scope.shared.entry::<Defaults>().server
}

pub(super) fn folder(args: &mut Args<'_>) -> Result<PathBuf, Fault> {
    Ok(PathBuf::from(args.need("<folder>")?))
}

/// Reads keywords of a line's table, as far as they are allowed here.
fn options<T>(args: &mut Args<'_>, table: &[Param<T>], allowed: &[&str], draft: &mut T) -> Result<(), Fault> {
    while let Some(word) = args.peek() {
        let is_allowed = allowed.iter().any(|name| if name.ends_with('-') { word.starts_with(name) } else { word == *name });
        if !is_allowed || !table.iter().any(|param| param.is(word)) {
            args.take();
            return Err(args.fault(format!("unknown option '{word}'")));
        }
        params::apply_one(args, "option", table, draft)?;
    }
    Ok(())
}
