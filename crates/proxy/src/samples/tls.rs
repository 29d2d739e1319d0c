//! TLS of connections: `ssl_fc*` and `ssl_c_*` of the client's, `ssl_bc*` and `ssl_s_*` of the server's, `ssl_f_*` of our own
//! certificate. On a connection without TLS there is no value, except for whether there is any TLS.

use super::facts;
use data_encoding::HEXUPPER;
use std::sync::Arc;
use terse_sample::argument::{Arg, Param, ParamKind, may};
use terse_sample::{ArgList, Compiler, Converter, Env, Fetch, Needs, Octets, Type, Value};
use terse_tls::{Dn, Handshake, Hello, KeyedBy, Secured, Shown, Whose};

/// `(<part>,<occurrence>,<format>)` of names in certificates.
const NAME: &[Param] = &[may(ParamKind::Str), may(ParamKind::Int), may(ParamKind::Str)];

/// Selector of a side's connection.
type Of = for<'a> fn(&Env<'a>) -> Option<&'a Secured>;

fn client<'a>(env: &Env<'a>) -> Option<&'a Secured> {
    facts(env)?.session.tls()
}

fn server<'a>(env: &Env<'a>) -> Option<&'a Secured> {
    facts(env)?.server_tls.as_deref()
}

/// The handshake, once it is made.
fn made<'a>(of: Of, env: &Env<'a>) -> Option<Handshake<'a>> {
    let tls = of(env)?;
    Some(tls.handshake())
}

fn text(text: impl Into<Vec<u8>>) -> Value<'static> {
    Value::Str(Octets::from(text.into()))
}

fn bytes(bytes: impl Into<Vec<u8>>) -> Value<'static> {
    Value::Bin(Octets::from(bytes.into()))
}

/// A fetch of a handshake.
macro_rules! of {
    ($of:ident, $needs:ident, $name:literal, $type:ident, $summary:expr, $read:expr) => {
        Fetch::one($name, Type::$type, $summary, |_, env| {
            let read: fn(Handshake<'_>) -> Option<Value<'static>> = $read;
            read(made($of, env)?)
        })
        .needs(Needs::$needs)
    };
}

/// The fetches of both sides, under their names.
macro_rules! both {
    ($of:ident, $needs:ident, $side:literal, $is:literal $resumed:literal $alpn:literal $cipher:literal $protocol:literal $used:literal $bits:literal $id:literal $sni:literal $unique:literal $crandom:literal $srandom:literal $key:literal $err:literal $err_str:literal) => {
        &[
            Fetch::one($is, Type::Bool, concat!("Whether the connection of the ", $side, " has TLS."), |_, env| {
                Some(Value::Bool($of(env).is_some()))
            })
            .needs(Needs::$needs),
            Fetch::one(
                $resumed,
                Type::Bool,
                concat!("Whether the ", $side, "'s TLS went on with a session of before."),
                |_, env| Some(Value::Bool(made($of, env).is_some_and(|tls| tls.is_resumed()))),
            )
            .needs(Needs::$needs),
            of!($of, $needs, $alpn, Str, "The protocol that both ends agreed on by ALPN.", |tls| tls.protocol().map(text)),
            of!($of, $needs, $cipher, Str, "The cipher.", |tls| tls.cipher().map(text)),
            of!($of, $needs, $protocol, Str, "The version of TLS: TLSv1.3.", |tls| Some(text(tls.version()))),
            of!($of, $needs, $used, Int, "Bits of the cipher's key that are secret.", |tls| tls
                .key_bits()
                .map(|(used, _)| Value::Int(used.into()))),
            of!($of, $needs, $bits, Int, "Bits of the cipher's key.", |tls| tls.key_bits().map(|(_, all)| Value::Int(all.into()))),
            of!($of, $needs, $id, Bin, "The session's name.", |tls| tls.session_id().map(bytes)),
            of!($of, $needs, $sni, Str, "The server's name that the client has asked for.", |tls| tls.server_name().map(text)),
            of!($of, $needs, $unique, Bin, "What both ends know of the connection and nobody else (RFC 5929).", |tls| Some(bytes(
                tls.unique_id()
            ))),
            of!($of, $needs, $crandom, Bin, "The random bytes of the client's hello.", |tls| Some(bytes(tls.randoms().0))),
            of!($of, $needs, $srandom, Bin, "The random bytes of the server's hello.", |tls| Some(bytes(tls.randoms().1))),
            of!($of, $needs, $key, Bin, "The secret that the session's keys come from.", |tls| tls.session_key().map(bytes)),
            Fetch::one($err, Type::Int, "The number of OpenSSL's error in the handshake; 0: none.", |_, env| {
                let failure = $of(env)?.failure();
                Some(Value::Int(failure.map_or(0, |failure| i64::try_from(failure.reason()).unwrap_or(i64::MAX))))
            })
            .needs(Needs::$needs),
            Fetch::one($err_str, Type::Str, "The same in OpenSSL's words.", |_, env| $of(env)?.failure()?.words().map(text))
                .needs(Needs::$needs),
        ]
    };
}

/// Of the client's connection.
pub(super) const OF_CLIENT: &[Fetch] = both!(client, NONE, "client", "ssl_fc" "ssl_fc_is_resumed" "ssl_fc_alpn" "ssl_fc_cipher"
    "ssl_fc_protocol" "ssl_fc_use_keysize" "ssl_fc_alg_keysize" "ssl_fc_session_id" "ssl_fc_sni" "ssl_fc_unique_id"
    "ssl_fc_client_random" "ssl_fc_server_random" "ssl_fc_session_key" "ssl_fc_err" "ssl_fc_err_str");

/// Of the server's connection.
pub(super) const OF_SERVER: &[Fetch] = both!(server, SERVER, "server", "ssl_bc" "ssl_bc_is_resumed" "ssl_bc_alpn" "ssl_bc_cipher"
    "ssl_bc_protocol" "ssl_bc_use_keysize" "ssl_bc_alg_keysize" "ssl_bc_session_id" "ssl_bc_sni" "ssl_bc_unique_id"
    "ssl_bc_client_random" "ssl_bc_server_random" "ssl_bc_session_key" "ssl_bc_err" "ssl_bc_err_str");

/// Whether records are compressed.
pub(super) const COMPRESSION: &[Fetch] = &[
    of!(
        client,
        NONE,
        "ssl_fc_compression",
        Str,
        "The compression of the client's records: deflate; offered: by the client, and not taken; none.",
        |tls| Some(text(tls.compression()))
    ),
    of!(server, SERVER, "ssl_bc_compression", Str, "The compression of the server's records: deflate or none.", |tls| Some(text(
        tls.compression()
    ))),
];

/// Results of the verification of the client's certificate.
pub(super) const VERIFIED: &[Fetch] = &[
    Fetch::one("ssl_fc_has_sni", Type::Bool, "Whether the client has asked for a server's name.", |_, env| {
        Some(Value::Bool(made(client, env).is_some_and(|tls| tls.server_name().is_some())))
    }),
    Fetch::one("ssl_fc_has_crt", Type::Bool, "Whether the client has shown a certificate on this connection.", |_, env| {
        let tls = made(client, env)?;
        Some(Value::Bool(!tls.is_resumed() && tls.peer_certificate().is_some()))
    }),
    Fetch::one(
        "ssl_c_used",
        Type::Bool,
        "Whether the client has shown a certificate, now or in the session of before.",
        |_, env| Some(Value::Bool(made(client, env)?.peer_certificate().is_some())),
    ),
    of!(client, NONE, "ssl_c_verify", Int, "What verifying the client's certificate came to; 0: it is valid.", |tls| Some(
        Value::Int(tls.verify_result().into())
    )),
    of!(client, NONE, "ssl_c_err", Int, "The first error of the client's own certificate; 0: none.", |tls| Some(Value::Int(
        tls.certificate_error().into()
    ))),
    of!(client, NONE, "ssl_c_ca_err", Int, "The first error of the certificates above it; 0: none.", |tls| Some(Value::Int(
        tls.authority_error().0.into()
    ))),
    of!(client, NONE, "ssl_c_ca_err_depth", Int, "How far above it that was.", |tls| Some(Value::Int(
        tls.authority_error().1.into()
    ))),
    of!(client, NONE, "ssl_c_chain_der", Bin, "The certificates that the client has shown, in DER.", |tls| tls
        .peer_chain()
        .map(bytes)),
    of!(server, SERVER, "ssl_s_chain_der", Bin, "The certificates that the server has shown, in DER.", |tls| tls
        .peer_chain()
        .map(bytes)),
];

/// A fetch of a certificate.
macro_rules! shown {
    ($of:ident, $needs:ident, $which:ident, $name:literal, $type:ident, $summary:literal, $read:expr) => {
        Fetch::one($name, Type::$type, $summary, |_, env| {
            let read: fn(&Shown) -> Option<Value<'static>> = $read;
            read(&made($of, env)?.$which()?)
        })
        .needs(Needs::$needs)
    };
}

macro_rules! certificate {
    ($of:ident, $needs:ident, $which:ident, $der:literal $issuer:literal $subject:literal $key:literal $signature:literal $after:literal $before:literal $serial:literal $sha1:literal $version:literal) => {
        &[
            shown!($of, $needs, $which, $der, Bin, "The certificate, in DER.", |shown| shown.der().map(bytes)),
            Fetch::one($issuer, Type::Str, "Who has signed the certificate, or one entry of that name.", |args, env| {
                name(args, made($of, env)?.$which()?.dn(Whose::Issuer))
            })
            .params(NAME)
            .check(check_format)
            .needs(Needs::$needs),
            Fetch::one($subject, Type::Str, "Whose the certificate is, or one entry of that name.", |args, env| {
                name(args, made($of, env)?.$which()?.dn(Whose::Subject))
            })
            .params(NAME)
            .check(check_format)
            .needs(Needs::$needs),
            shown!($of, $needs, $which, $key, Str, "The kind of the certificate's key.", |shown| shown.key_algorithm().map(text)),
            shown!($of, $needs, $which, $signature, Str, "How the certificate was signed.", |shown| shown
                .signature_algorithm()
                .map(text)),
            shown!($of, $needs, $which, $after, Str, "When the certificate ends: YYMMDDhhmmssZ.", |shown| shown
                .not_after()
                .map(text)),
            shown!($of, $needs, $which, $before, Str, "When the certificate begins: YYMMDDhhmmssZ.", |shown| shown
                .not_before()
                .map(text)),
            shown!($of, $needs, $which, $serial, Bin, "The certificate's number.", |shown| shown.serial().map(bytes)),
            shown!($of, $needs, $which, $sha1, Bin, "The certificate's SHA-1.", |shown| shown.sha1().map(bytes)),
            shown!($of, $needs, $which, $version, Int, "The certificate's version.", |shown| Some(Value::Int(shown.version()))),
        ]
    };
}

/// The client's certificate.
pub(super) const CLIENTS: &[Fetch] = certificate!(client, NONE, peer_certificate, "ssl_c_der" "ssl_c_i_dn" "ssl_c_s_dn" "ssl_c_key_alg"
    "ssl_c_sig_alg" "ssl_c_notafter" "ssl_c_notbefore" "ssl_c_serial" "ssl_c_sha1" "ssl_c_version");

/// Ours, that the client was shown.
pub(super) const OURS: &[Fetch] = certificate!(client, NONE, own_certificate, "ssl_f_der" "ssl_f_i_dn" "ssl_f_s_dn" "ssl_f_key_alg"
    "ssl_f_sig_alg" "ssl_f_notafter" "ssl_f_notbefore" "ssl_f_serial" "ssl_f_sha1" "ssl_f_version");

/// The server's.
pub(super) const SERVERS: &[Fetch] = certificate!(server, SERVER, peer_certificate, "ssl_s_der" "ssl_s_i_dn" "ssl_s_s_dn" "ssl_s_key_alg"
    "ssl_s_sig_alg" "ssl_s_notafter" "ssl_s_notbefore" "ssl_s_serial" "ssl_s_sha1" "ssl_s_version");

/// More of names.
pub(super) const OTHERS: &[Fetch] = &[
    of!(
        client,
        NONE,
        "ssl_fc_crtname",
        Str,
        "What our certificate is called that the client was shown, as 'show ssl cert' has it.",
        |tls| { tls.own_name().map(|name| text(name.as_bytes())) }
    ),
    shown!(client, NONE, peer_certificate, "ssl_c_san", Str, "The other names of the client's certificate.", |shown| shown
        .other_names()
        .map(text)),
    Fetch::one(
        "ssl_c_r_dn",
        Type::Str,
        "The name of the root that the client's certificate comes from, or one entry of it.",
        |args, env| name(args, made(client, env)?.root_name()?.dn()),
    )
    .params(NAME)
    .check(check_format),
    Fetch::one(
        "ssl_c_policies",
        Type::Str,
        "The policies of the client's certificate; with an argument that one, if it is there.",
        |args, env| {
            let policies = made(client, env)?.peer_certificate()?.policies()?;
            match args.str(0) {
                Some(asked) => policies.into_iter().find(|policy| policy.as_bytes() == asked).map(text),
                None => Some(text(policies.join(", "))).filter(|_| !policies.is_empty()),
            }
        },
    )
    .params(&[may(ParamKind::Str)]),
    of!(client, NONE, "ssl_fc_curve", Str, "The group of the key exchange: X25519.", |tls| tls.group().map(text)),
    of!(server, SERVER, "ssl_bc_curve", Str, "The group of the key exchange with the server.", |tls| tls.group().map(text)),
];

/// The only format beside the usual one.
#[allow(clippy::ptr_arg, reason = "checks of arguments share one signature")]
fn check_format(args: &mut Vec<Arg>, _: &mut Compiler<'_>) -> Result<(), String> {
    match args.get(2) {
        Some(Arg::Str(format)) if !format.is_empty() && **format != *b"rfc2253" => {
            let format = String::from_utf8_lossy(format);
            Err(format!("only rfc2253 format is supported, not '{format}'"))
        }
        _ => Ok(()),
    }
}

/// `(<part>,<occurrence>,<format>)`
fn name(args: &ArgList, dn: Dn<'_>) -> Option<Value<'static>> {
    let word = |i: usize| args.str(i).filter(|word| !word.is_empty());
    let found = match word(0) {
        Some(called) => dn.entry(std::str::from_utf8(called).ok()?, args.int(1).unwrap_or(1)),
        None if word(2).is_some() => dn.rfc2253(),
        None => dn.line(),
    };
    found.map(text)
}

/// Errors before the first byte of HTTP.
pub(super) const ERRORS: &[Fetch] = &[
    Fetch::one("fc_err", Type::Int, "The error of the client's PROXY head or handshake; 0: none.", |_, env| {
        Some(Value::Int(of_client(env).map_or(0, |error| error.number.into())))
    }),
    Fetch::one("bc_err", Type::Int, "The error of the server's handshake; 0: none.", |_, env| {
        Some(Value::Int(of_server(env).map_or(0, |error| error.number.into())))
    })
    .needs(Needs::SERVER),
    Fetch::one("fc_err_str", Type::Str, "The same of the client in words.", |_, env| {
        Some(Value::str(of_client(env).map_or("Success", |error| error.text).as_bytes()))
    }),
    Fetch::one("bc_err_str", Type::Str, "The same of the server in words.", |_, env| {
        Some(Value::str(of_server(env).map_or("Success", |error| error.text).as_bytes()))
    })
    .needs(Needs::SERVER),
    Fetch::one("fc_err_name", Type::Str, "The same of the client by its name.", |_, env| {
        of_client(env).map(|error| Value::str(error.name.as_bytes()))
    }),
    Fetch::one("bc_err_name", Type::Str, "The same of the server by its name.", |_, env| {
        of_server(env).map(|error| Value::str(error.name.as_bytes()))
    })
    .needs(Needs::SERVER),
];

/// An error by HAProxy's number, name and sentence.
struct Told {
    number: u8,
    name: &'static str,
    text: &'static str,
}

/// The client's error, of its PROXY head or its handshake.
fn of_client(env: &Env<'_>) -> Option<Told> {
    let head = facts(env)?.session.unannounced.get();
    head.map(|why| Told { number: why.number(), name: why.name(), text: why.text() }).or_else(|| of_handshake(client(env)))
}

fn of_server(env: &Env<'_>) -> Option<Told> {
    of_handshake(server(env))
}

fn of_handshake(tls: Option<&Secured>) -> Option<Told> {
    let cause = tls?.failure()?.cause;
    Some(Told { number: cause.number(), name: cause.name(), text: cause.text() })
}

/// Names of error numbers.
pub(super) const CONVERTERS: &[Converter] = &[Converter::new(
    "x509_v_err_str",
    Type::Int,
    Type::Str,
    "The name of an error of a certificate's verification, such as X509_V_ERR_CERT_HAS_EXPIRED; the number, where it has none.",
    |value, _, _| match value {
        Value::Int(error) => Some(
            terse_tls::verify_error(error)
                .map_or_else(|| Value::Str(Octets::from(error.to_string().into_bytes())), |name| Value::str(name.as_bytes())),
        ),
        _ => None,
    },
)];

/// Early data.
pub(super) const EARLY: &[Fetch] = &[
    Fetch::one("ssl_fc_early_rcvd", Type::Bool, "Whether early data has come from the client.", |_, env| {
        Some(Value::Bool(client(env).is_some_and(Secured::had_early)))
    }),
    Fetch::one("ssl_fc_has_early", Type::Bool, "Whether early data has come, and the handshake is not made yet.", |_, env| {
        client(env).map(|tls| Value::Bool(tls.is_early()))
    }),
];

/// A secret of both sides, under its names.
macro_rules! secrets {
    ($($which:ident $fc:literal $bc:literal $what:literal;)*) => {
        &[$(
            of!(client, NONE, $fc, Str, concat!("The secret of ", $what, ", in hexadecimal digits, where 'tune.ssl.keylog' keeps it."),
                |tls| tls.secret(KeyedBy::$which).map(text)),
            of!(server, SERVER, $bc, Str, concat!("The same of the connection to the server: of ", $what, "."),
                |tls| tls.secret(KeyedBy::$which).map(text)),
        )*]
    };
}

/// Secrets of TLS 1.3, as in a key log file (SSLKEYLOGFILE).
pub(super) const SECRETS: &[Fetch] = secrets![
    ClientEarly "ssl_fc_client_early_traffic_secret" "ssl_bc_client_early_traffic_secret" "what the client sends early";
    ClientHandshake "ssl_fc_client_handshake_traffic_secret" "ssl_bc_client_handshake_traffic_secret" "the client's handshake";
    ServerHandshake "ssl_fc_server_handshake_traffic_secret" "ssl_bc_server_handshake_traffic_secret" "the server's handshake";
    Client "ssl_fc_client_traffic_secret_0" "ssl_bc_client_traffic_secret_0" "what the client sends";
    Server "ssl_fc_server_traffic_secret_0" "ssl_bc_server_traffic_secret_0" "what the server sends";
    Exporter "ssl_fc_exporter_secret" "ssl_bc_exporter_secret" "what others derive from it";
    EarlyExporter "ssl_fc_early_exporter_secret" "ssl_bc_early_exporter_secret" "what others derive from it early";
];

/// The predecessor of ALPN.
pub(super) const FORMER: &[Fetch] =
    &[Fetch::refused("ssl_fc_npn", "The protocol by NPN.", NPN), Fetch::refused("ssl_bc_npn", "The same of the server.", NPN)];

const NPN: &str =
    "NPN is not spoken: no client has it any more; ALPN took its place, and 'ssl_fc_alpn' and 'ssl_bc_alpn' say what it came to";

/// Fields of the client's hello, where `tune.ssl.capture-buffer-size` keeps it.
pub(super) const HELLO: &[Fetch] = &[
    Fetch::one("ssl_fc_protocol_hello_id", Type::Int, "The version that the client's hello begins with.", |_, env| {
        Some(Value::Int(hello(env)?.version.into()))
    }),
    Fetch::one("ssl_fc_cipherlist_xxh", Type::Int, "The XXH64 of all ciphers of the client's hello.", |_, env| {
        Some(Value::Int(hello(env)?.ciphers_hash.cast_signed()))
    }),
    Fetch::one("ssl_fc_cipherlist_bin", Type::Bin, "The ciphers of the client's hello; 1: without GREASE.", |args, env| {
        list(args, &hello(env)?.ciphers).map(bytes)
    })
    .params(GREASE),
    Fetch::one("ssl_fc_cipherlist_hex", Type::Str, "The same in hexadecimal digits.", |args, env| {
        list(args, &hello(env)?.ciphers).map(|list| text(HEXUPPER.encode(&list)))
    })
    .params(GREASE),
    Fetch::one("ssl_fc_cipherlist_str", Type::Str, "The same by OpenSSL's names.", |args, env| {
        let (tls, list) = (made(client, env)?, list(args, &hello(env)?.ciphers)?);
        let name = |number: &[u8; 2]| match tls.name_of_cipher(*number) {
            Some(name) => name.to_owned(),
            None => format!("UNKNOWN({:04x})", u16::from_be_bytes(*number)),
        };
        Some(text(list.as_chunks().0.iter().map(name).collect::<Vec<_>>().join(",")))
    })
    .params(GREASE),
    Fetch::one(
        "ssl_fc_extlist_bin",
        Type::Bin,
        "The kinds of extensions of the client's hello; 1: without GREASE.",
        |args, env| list(args, &hello(env)?.extensions).map(bytes),
    )
    .params(GREASE),
    Fetch::one("ssl_fc_eclist_bin", Type::Bin, "The groups of the client's hello; 1: without GREASE.", |args, env| {
        list(args, &hello(env)?.groups).map(bytes)
    })
    .params(GREASE),
    Fetch::one("ssl_fc_ecformats_bin", Type::Bin, "The formats of points of the client's hello.", |_, env| {
        Some(hello(env)?.point_formats.clone()).filter(|list| !list.is_empty()).map(bytes)
    }),
    Fetch::one(
        "ssl_fc_sigalgs_bin",
        Type::Bin,
        "The algorithms of signatures of the client's hello; 1: without GREASE.",
        |args, env| list(args, &hello(env)?.signatures).map(bytes),
    )
    .params(GREASE),
    Fetch::one(
        "ssl_fc_supported_versions_bin",
        Type::Bin,
        "The versions of the client's hello; 1: without GREASE.",
        |args, env| list(args, &hello(env)?.versions).map(bytes),
    )
    .params(GREASE),
];

/// `(<filter>)`
const GREASE: &[Param] = &[may(ParamKind::Int)];

fn hello(env: &Env<'_>) -> Option<Arc<Hello>> {
    made(client, env)?.hello()
}

/// A list, if the client has sent one.
fn list(args: &ArgList, list: &[u8]) -> Option<Vec<u8>> {
    let list = if args.int(0) == Some(1) { terse_tls::without_grease(list) } else { list.to_vec() };
    Some(list).filter(|list| !list.is_empty())
}
