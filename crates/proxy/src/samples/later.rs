//! Fetches that are understood and not built.

use terse_sample::Fetch;

/// Entries of one summary and one reason.
macro_rules! refused {
    ($summary:literal, $reason:literal: $($name:literal)*) => {
        &[$(Fetch::refused($name, $summary, $reason)),*]
    };
}

/// The tables.
pub(super) const SOCKETS: &[Fetch] = refused!("The packet that opened the client's connection.", "the kernel is not asked to keep it ('tcp-ss')":
    "fc_saved_syn");

pub(super) const INSIDE: &[Fetch] = refused!("A state inside HAProxy, for those who look for its bugs.", "it has no counterpart here":
    "fs.debug_str" "bs.debug_str" "term_events" "internal.htx.data" "internal.htx.free" "internal.htx.free_data"
    "internal.htx.has_eom" "internal.htx.nbblks" "internal.htx.size" "internal.htx.used" "internal.htx_blk.data"
    "internal.htx_blk.hdrname" "internal.htx_blk.hdrval" "internal.htx_blk.size" "internal.htx_blk.start_line"
    "internal.htx_blk.type" "internal.strm.is_htx");

pub(super) const TASKS: &[Fetch] = refused!("How much a stream or a thread computes and waits.", "it is not measured for each stream":
    "cpu_calls" "cpu_ns_avg" "cpu_ns_tot" "cpu_usage_grp" "cpu_usage_proc" "cpu_usage_thr" "lat_ns_avg" "lat_ns_tot");

pub(super) const WAITING: &[Fetch] = refused!("What a rule or a filter waits for.", "it is not noted": "waiting_entity");

pub(super) const SENT: &[Fetch] = refused!("Bytes that the server was sent.", "they are not counted; 'req.bytes_in' has what the client sent":
    "req.bytes_out");

pub(super) const GATEWAYS: &[Fetch] =
    refused!("What a FastCGI application is told.", "FastCGI is not spoken": "fcgi.docroot" "fcgi.index");

pub(super) const AGENTS: &[Fetch] =
    refused!("The engine of a stream processing agent.", "agents (SPOE) are not spoken to": "spoe.engine-id");

pub(super) const DEVICES: &[Fetch] = refused!("What a database says of the client's device.", "databases of devices are not read":
    "51d.all" "da-csv-fetch" "wurfl-get" "wurfl-get-all");

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
