//! HAProxy's and nuster's words that no table has a row for yet. They are told apart from words that
//! nobody knows. A fetch or converter that gets a row leaves the list; an action stays, as it may have a row for some
//! phases and not for others.

/// Fetches (HAProxy manual §7.3).
const FETCHES: &str = "51d.all avg_queue bc_be_queue bc_dst bc_dst_port bc_err bc_err_name bc_err_str bc_glitches \
     bc_http_major bc_nb_streams bc_reused bc_rtt bc_rttvar bc_settings_streams_limit bc_src bc_src_port bc_srv_queue \
     be_conn_free be_max_retries be_queue_timeout be_tarpit_timeout bs.aborted bs.debug_str bs.id bs.rst_code \
     connslots cpu_calls cpu_ns_avg cpu_ns_tot cpu_usage_grp \
     cpu_usage_proc cpu_usage_thr cur_max_retries cur_queue_timeout cur_tarpit_timeout distcc_body distcc_param \
     dst_conn dump_all_vars fc_err_name fc_fackets fc_glitches \
     fc_lost fc_nb_streams fc_pp_authority fc_pp_tlv fc_pp_unique_id fc_reordering fc_retrans fc_rtt fc_rttvar \
     fc_sacked fc_saved_syn fc_settings_streams_limit fc_unacked fcgi.docroot fcgi.index fe_tarpit_timeout fs.aborted \
     fs.debug_str fs.id fs.rst_code internal.htx.data internal.htx.free \
     internal.htx.free_data internal.htx.has_eom internal.htx.nbblks internal.htx.size internal.htx.used \
     internal.htx_blk.data internal.htx_blk.hdrname internal.htx_blk.hdrval internal.htx_blk.size \
     internal.htx_blk.start_line internal.htx_blk.type internal.strm.is_htx last_entity lat_ns_avg lat_ns_tot nbsrv \
     payload payload_lv prio_class prio_offset queue rdp_cookie rdp_cookie_cnt rep_ssl_hello_type \
     req.bytes_out req.hdrs_bin req.payload req.payload_lv \
     req.rdp_cookie req.rdp_cookie_cnt req.ssl_alpn req.ssl_cipherlist req.ssl_ec_ext req.ssl_hello_type \
     req.ssl_keyshare_groups req.ssl_sigalgs req.ssl_sni req.ssl_st_ext req.ssl_supported_groups req.ssl_ver \
     req_ssl_hello_type req_ssl_sni req_ssl_ver res.body \
     res.body_len res.body_size res.bytes_in res.comp res.comp_algo res.hdrs_bin res.len res.payload \
     res.payload_lv res.ssl_hello_type spoe.engine-id srv_conn srv_conn_free srv_id \
     srv_is_up srv_iweight srv_name srv_queue srv_sess_rate srv_uweight srv_weight ssl_bc ssl_bc_alg_keysize \
     ssl_bc_alpn ssl_bc_cipher ssl_bc_client_early_traffic_secret ssl_bc_client_handshake_traffic_secret \
     ssl_bc_client_random ssl_bc_client_traffic_secret_0 ssl_bc_curve ssl_bc_early_exporter_secret ssl_bc_err \
     ssl_bc_err_str ssl_bc_exporter_secret ssl_bc_is_resumed ssl_bc_npn ssl_bc_protocol \
     ssl_bc_server_handshake_traffic_secret ssl_bc_server_random ssl_bc_server_traffic_secret_0 ssl_bc_session_id \
     ssl_bc_session_key ssl_bc_sni ssl_bc_unique_id ssl_bc_use_keysize ssl_c_ca_err_depth \
     ssl_c_chain_der ssl_c_der ssl_c_i_dn ssl_c_key_alg ssl_c_notafter ssl_c_notbefore ssl_c_policies \
     ssl_c_r_dn ssl_c_s_dn ssl_c_san ssl_c_serial ssl_c_sha1 ssl_c_sig_alg ssl_c_version ssl_f_der ssl_f_i_dn \
     ssl_f_key_alg ssl_f_notafter ssl_f_notbefore ssl_f_s_dn ssl_f_serial ssl_f_sha1 ssl_f_sig_alg ssl_f_version \
     ssl_fc_cipherlist_bin ssl_fc_cipherlist_hex ssl_fc_cipherlist_str ssl_fc_cipherlist_xxh \
     ssl_fc_client_early_traffic_secret ssl_fc_client_handshake_traffic_secret ssl_fc_client_random \
     ssl_fc_client_traffic_secret_0 ssl_fc_crtname ssl_fc_curve ssl_fc_early_exporter_secret ssl_fc_early_rcvd \
     ssl_fc_ecformats_bin ssl_fc_ech_outer_sni ssl_fc_ech_status ssl_fc_eclist_bin ssl_fc_err_str \
     ssl_fc_exporter_secret ssl_fc_extlist_bin ssl_fc_npn ssl_fc_protocol_hello_id \
     ssl_fc_server_handshake_traffic_secret ssl_fc_server_random ssl_fc_server_traffic_secret_0 ssl_fc_session_id \
     ssl_fc_session_key ssl_fc_sigalgs_bin ssl_fc_supported_versions_bin ssl_fc_unique_id ssl_s_chain_der ssl_s_der \
     ssl_s_i_dn ssl_s_key_alg ssl_s_notafter ssl_s_notbefore ssl_s_s_dn ssl_s_serial ssl_s_sha1 ssl_s_sig_alg \
     ssl_s_version term_events tgroup txn.redispatched waiting_entity";

/// What follows `sc_`, `sc0_`, `sc1_`, `sc2_` and `src_` (HAProxy manual §7.3.3).
const COUNTERS: &str = "glitch_cnt glitch_rate";

/// Converters (HAProxy manual §7.3.1).
const CONVERTERS: &str = "51d.single aes_cbc_dec aes_cbc_enc aes_gcm_dec aes_gcm_enc da-csv-conv debug \
     eth.data eth.dst eth.hdr eth.proto eth.src eth.vlan fe_exists fix_is_valid fix_tag_value ip.data \
     ip.df ip.dst ip.fp ip.hdr ip.proto ip.src ip.tos ip.ttl ip.ver jwt_decrypt_cert jwt_decrypt_jwk \
     jwt_decrypt_secret jwt_verify_cert mqtt_field_value mqtt_is_valid nbsrv protobuf srv_is_up \
     srv_queue table_glitch_cnt table_glitch_rate tcp.dst tcp.flags tcp.options.mss tcp.options.sack \
     tcp.options.tsopt tcp.options.tsval tcp.options.wscale tcp.options.wsopt tcp.options_list tcp.seq tcp.src \
     tcp.win ungrpc when x509_v_err_str";

/// Actions of any phase (HAProxy manual §4.3, §4.4). What follows a `(` or a number is not part of a name.
const ACTIONS: &str = "add-acl add-header add-headers-bin allow auth cache-store cache-use capture del-acl del-header del-headers-bin \
     del-map deny disable-l7-retry do-log do-resolve early-hint normalize-uri pause redirect reject replace-header \
     replace-path replace-pathq replace-uri replace-value return sc-add-gpc sc-inc-gpc sc-inc-gpc0 sc-inc-gpc1 \
     sc-set-gpt sc-set-gpt0 send-spoe-group set-bandwidth-limit set-bc-mark set-bc-tos set-dst set-dst-port \
     set-fc-mark set-fc-tos set-header set-headers-bin set-log-level set-map set-mark set-method set-nice set-path \
     set-pathq set-priority-class set-priority-offset set-query set-retries set-src set-src-port set-status \
     set-timeout set-tos set-uri set-var set-var-fmt silent-drop strict-mode tarpit track-sc0 track-sc1 track-sc2 \
     unset-var use-service wait-for-body wait-for-handshake";

/// The fetches without a row; families of counters are not listed.
pub fn fetches() -> impl Iterator<Item = &'static str> {
    FETCHES.split(' ')
}

/// The converters without a row.
pub fn converters() -> impl Iterator<Item = &'static str> {
    CONVERTERS.split(' ')
}

/// The actions, those with a row included.
pub fn actions() -> impl Iterator<Item = &'static str> {
    ACTIONS.split(' ')
}

/// Whether HAProxy or nuster has this fetch, and there is no row for it.
pub(super) fn is_fetch(name: &str) -> bool {
    let counter = ["sc_", "sc0_", "sc1_", "sc2_", "src_"].iter().find_map(|family| name.strip_prefix(family));
    name.starts_with("lua.")
        || fetches().any(|known| known == name)
        || counter.is_some_and(|counter| COUNTERS.split(' ').any(|known| known == counter))
}

/// Whether HAProxy has this converter, and there is no row for it.
pub(super) fn is_converter(name: &str) -> bool {
    name.starts_with("lua.") || converters().any(|known| known == name)
}

/// Whether HAProxy has this action in some phase.
pub(super) fn is_action(name: &str) -> bool {
    name.starts_with("lua.") || actions().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use crate::rule::{converter, fetch};

    #[test]
    fn what_has_a_row_is_not_listed() {
        let fetches = fetch::rows().flat_map(|row| row.names.iter().chain(row.response_names));
        let converters = converter::rows().flat_map(|row| row.names);
        let listed: Vec<_> = fetches
            .filter(|name| super::is_fetch(name))
            .chain(converters.filter(|name| super::is_converter(name)))
            .collect();
        assert!(listed.is_empty(), "{listed:?}");
    }
}
