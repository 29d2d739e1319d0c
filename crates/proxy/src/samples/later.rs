//! Fetches that are understood and not built.

use terse_sample::Fetch;

/// Entries of one summary and one reason.
macro_rules! refused {
    ($summary:literal, $reason:literal: $($name:literal)*) => {
        &[$(Fetch::refused($name, $summary, $reason)),*]
    };
}

/// The tables.
pub(super) const RATES: &[Fetch] = refused!("How much there was in a second.", "rates come later":
    "be_sess_rate" "fe_sess_rate" "fe_req_rate" "srv_sess_rate");

pub(super) const OUR_END: &[Fetch] = refused!("Our end of the connection to the server.", "comes later; in logs it is '%bi' and '%bp'":
    "bc_src" "bc_src_port");

pub(super) const SOCKETS: &[Fetch] = refused!("What the kernel knows of a connection.", "the kernel is not asked about connections":
    "fc_rtt" "fc_rttvar" "fc_fackets" "fc_lost" "fc_reordering" "fc_retrans" "fc_sacked" "fc_saved_syn" "fc_unacked" "bc_rtt" "bc_rttvar"
    "dst_is_local" "src_is_local" "fc_dst_is_local" "fc_src_is_local");

pub(super) const CONNECTIONS: &[Fetch] = refused!("Errors and streams of a connection.", "comes with TLS and HTTP/2":
    "fc_err_name" "fc_err_str" "fc_glitches" "fc_nb_streams" "fc_settings_streams_limit" "bc_err_name" "bc_err_str"
    "bc_glitches" "bc_nb_streams" "bc_settings_streams_limit" "bs.aborted" "bs.debug_str" "bs.id" "bs.rst_code" "fs.aborted"
    "fs.debug_str" "fs.id" "fs.rst_code" "quic_enabled");

pub(super) const PROCESS: &[Fetch] = refused!("What the process knows of itself.", "it is not measured for streams":
    "uptime" "cpu_calls" "cpu_ns_avg" "cpu_ns_tot" "cpu_usage_grp" "cpu_usage_proc" "cpu_usage_thr" "lat_ns_avg" "lat_ns_tot" "tgroup"
    "term_events" "waiting_entity" "dump_all_vars" "req.bytes_out");

pub(super) const CACHES: &[Fetch] = refused!("What a cache did.", "caches come later": "res.cache_hit" "res.cache_name");

pub(super) const TABLES: &[Fetch] = refused!("What a stick table knows.", "stick tables come later":
    "sc0_bytes_in_rate" "sc0_bytes_out_rate" "sc0_clr_gpc0" "sc0_clr_gpc1" "sc0_conn_cnt" "sc0_conn_cur" "sc0_conn_rate"
    "sc0_get_gpc0" "sc0_get_gpc1" "sc0_get_gpt0" "sc0_glitch_cnt" "sc0_glitch_rate" "sc0_gpc0_rate" "sc0_gpc1_rate"
    "sc0_http_err_cnt" "sc0_http_err_rate" "sc0_http_fail_cnt" "sc0_http_fail_rate" "sc0_http_req_cnt" "sc0_http_req_rate"
    "sc0_inc_gpc0" "sc0_inc_gpc1" "sc0_kbytes_in" "sc0_kbytes_out" "sc0_key" "sc0_sess_cnt" "sc0_sess_rate" "sc0_tracked"
    "sc0_trackers" "sc1_bytes_in_rate" "sc1_bytes_out_rate" "sc1_clr_gpc0" "sc1_clr_gpc1" "sc1_conn_cnt" "sc1_conn_cur"
    "sc1_conn_rate" "sc1_get_gpc0" "sc1_get_gpc1" "sc1_get_gpt0" "sc1_glitch_cnt" "sc1_glitch_rate" "sc1_gpc0_rate"
    "sc1_gpc1_rate" "sc1_http_err_cnt" "sc1_http_err_rate" "sc1_http_fail_cnt" "sc1_http_fail_rate" "sc1_http_req_cnt"
    "sc1_http_req_rate" "sc1_inc_gpc0" "sc1_inc_gpc1" "sc1_kbytes_in" "sc1_kbytes_out" "sc1_key" "sc1_sess_cnt" "sc1_sess_rate"
    "sc1_tracked" "sc1_trackers" "sc2_bytes_in_rate" "sc2_bytes_out_rate" "sc2_clr_gpc0" "sc2_clr_gpc1" "sc2_conn_cnt"
    "sc2_conn_cur" "sc2_conn_rate" "sc2_get_gpc0" "sc2_get_gpc1" "sc2_get_gpt0" "sc2_glitch_cnt" "sc2_glitch_rate"
    "sc2_gpc0_rate" "sc2_gpc1_rate" "sc2_http_err_cnt" "sc2_http_err_rate" "sc2_http_fail_cnt" "sc2_http_fail_rate"
    "sc2_http_req_cnt" "sc2_http_req_rate" "sc2_inc_gpc0" "sc2_inc_gpc1" "sc2_kbytes_in" "sc2_kbytes_out" "sc2_key"
    "sc2_sess_cnt" "sc2_sess_rate" "sc2_tracked" "sc2_trackers" "sc_bytes_in_rate" "sc_bytes_out_rate" "sc_clr_gpc"
    "sc_clr_gpc0" "sc_clr_gpc1" "sc_conn_cnt" "sc_conn_cur" "sc_conn_rate" "sc_get_gpc" "sc_get_gpc0" "sc_get_gpc1" "sc_get_gpt"
    "sc_get_gpt0" "sc_glitch_cnt" "sc_glitch_rate" "sc_gpc0_rate" "sc_gpc1_rate" "sc_gpc_rate" "sc_http_err_cnt"
    "sc_http_err_rate" "sc_http_fail_cnt" "sc_http_fail_rate" "sc_http_req_cnt" "sc_http_req_rate" "sc_inc_gpc" "sc_inc_gpc0"
    "sc_inc_gpc1" "sc_kbytes_in" "sc_kbytes_out" "sc_key" "sc_sess_cnt" "sc_sess_rate" "sc_tracked" "sc_trackers"
    "src_bytes_in_rate" "src_bytes_out_rate" "src_clr_gpc" "src_clr_gpc0" "src_clr_gpc1" "src_conn_cnt" "src_conn_cur"
    "src_conn_rate" "src_get_gpc" "src_get_gpc0" "src_get_gpc1" "src_get_gpt" "src_get_gpt0" "src_glitch_cnt" "src_glitch_rate"
    "src_gpc0_rate" "src_gpc1_rate" "src_gpc_rate" "src_http_err_cnt" "src_http_err_rate" "src_http_fail_cnt"
    "src_http_fail_rate" "src_http_req_cnt" "src_http_req_rate" "src_inc_gpc" "src_inc_gpc0" "src_inc_gpc1" "src_kbytes_in"
    "src_kbytes_out" "src_sess_cnt" "src_sess_rate" "src_updt_conn_cnt" "table_avl" "table_cnt");
