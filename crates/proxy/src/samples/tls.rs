//! TLS, as it looks on connections that have none: all of them, here.
//!
//! HAProxy answers the same on a connection without TLS: no to whether there is any, and no value to what it is like.

use terse_sample::argument::{Param, ParamKind, may};
use terse_sample::{Fetch, Type, Value};

/// `(<part>,<occurrence>,<format>)` of names in certificates.
const ANY: &[Param] = &[may(ParamKind::Str), may(ParamKind::Int), may(ParamKind::Str)];

macro_rules! tls {
    ($output:ident, $summary:literal, $run:expr; $($name:literal)*) => {
        &[$(Fetch::one($name, Type::$output, $summary, $run).params(ANY)),*]
    };
}

/// Whether there is TLS.
pub(super) const WHETHER: &[Fetch] = tls!(Bool, "Whether a connection has TLS, and this of it: it has none.", |_, _| Some(Value::Bool(false));
    "ssl_fc" "ssl_bc" "ssl_fc_has_sni" "ssl_fc_is_resumed" "ssl_bc_is_resumed"
    "ssl_fc_early_rcvd");

/// What is known only of TLS.
pub(super) const OF_HANDSHAKES: &[Fetch] = tls!(Bool, "Whether a handshake of TLS had this: there was none.", |_, _| None;
    "ssl_c_used" "ssl_fc_has_crt" "ssl_fc_has_early");

/// What went wrong before the first byte of HTTP: nothing can, without TLS and PROXY headers.
pub(super) const ERRORS: &[Fetch] = &[
    Fetch::one("fc_err", Type::Int, "The error of the client's handshake: 0, there is none.", |_, _| Some(Value::Int(0))),
    Fetch::one("bc_err", Type::Int, "The error of the server's handshake: 0, there is none.", |_, _| Some(Value::Int(0))),
    Fetch::one("fc_err_str", Type::Str, "The same of the client in words.", |_, _| Some(Value::str(b"Success"))),
    Fetch::one("bc_err_str", Type::Str, "The same of the server in words.", |_, _| Some(Value::str(b"Success"))),
    Fetch::one("fc_err_name", Type::Str, "The same of the client by its name: there is none.", |_, _| None),
    Fetch::one("bc_err_name", Type::Str, "The same of the server by its name: there is none.", |_, _| None),
];

/// What TLS is like.
pub(super) const WHAT: &[Fetch] = tls!(Str, "What TLS is like on a connection: it has none.", |_, _| None;
    "ssl_bc_alg_keysize" "ssl_bc_alpn" "ssl_bc_cipher" "ssl_bc_client_early_traffic_secret"
    "ssl_bc_client_handshake_traffic_secret" "ssl_bc_client_random" "ssl_bc_client_traffic_secret_0" "ssl_bc_curve"
    "ssl_bc_early_exporter_secret" "ssl_bc_err" "ssl_bc_err_str" "ssl_bc_exporter_secret" "ssl_bc_npn" "ssl_bc_protocol"
    "ssl_bc_server_handshake_traffic_secret" "ssl_bc_server_random" "ssl_bc_server_traffic_secret_0" "ssl_bc_session_id"
    "ssl_bc_session_key" "ssl_bc_sni" "ssl_bc_unique_id" "ssl_bc_use_keysize" "ssl_c_ca_err" "ssl_c_ca_err_depth"
    "ssl_c_chain_der" "ssl_c_der" "ssl_c_err" "ssl_c_i_dn" "ssl_c_key_alg" "ssl_c_notafter" "ssl_c_notbefore" "ssl_c_policies"
    "ssl_c_r_dn" "ssl_c_s_dn" "ssl_c_san" "ssl_c_serial" "ssl_c_sha1" "ssl_c_sig_alg" "ssl_c_verify" "ssl_c_version" "ssl_f_der"
    "ssl_f_i_dn" "ssl_f_key_alg" "ssl_f_notafter" "ssl_f_notbefore" "ssl_f_s_dn" "ssl_f_serial" "ssl_f_sha1" "ssl_f_sig_alg"
    "ssl_f_version" "ssl_fc_alg_keysize" "ssl_fc_alpn" "ssl_fc_cipher" "ssl_fc_cipherlist_bin" "ssl_fc_cipherlist_hex"
    "ssl_fc_cipherlist_str" "ssl_fc_cipherlist_xxh" "ssl_fc_client_early_traffic_secret"
    "ssl_fc_client_handshake_traffic_secret" "ssl_fc_client_random" "ssl_fc_client_traffic_secret_0" "ssl_fc_crtname"
    "ssl_fc_curve" "ssl_fc_early_exporter_secret" "ssl_fc_ecformats_bin" "ssl_fc_eclist_bin" "ssl_fc_err" "ssl_fc_err_str"
    "ssl_fc_exporter_secret" "ssl_fc_extlist_bin" "ssl_fc_npn" "ssl_fc_protocol" "ssl_fc_protocol_hello_id"
    "ssl_fc_server_handshake_traffic_secret" "ssl_fc_server_random" "ssl_fc_server_traffic_secret_0" "ssl_fc_session_id"
    "ssl_fc_session_key" "ssl_fc_sigalgs_bin" "ssl_fc_sni" "ssl_fc_supported_versions_bin" "ssl_fc_unique_id"
    "ssl_fc_use_keysize" "ssl_s_chain_der" "ssl_s_der" "ssl_s_i_dn" "ssl_s_key_alg" "ssl_s_notafter" "ssl_s_notbefore"
    "ssl_s_s_dn" "ssl_s_serial" "ssl_s_sha1" "ssl_s_sig_alg" "ssl_s_version");
