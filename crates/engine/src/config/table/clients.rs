//! Owns: directives about connections, users and what clients may do.

use std::sync::atomic::Ordering::Relaxed;

use super::{ANY, INT};
use crate::config::directive::{Directive, Kind, int, memory, switch, text, word};
use crate::config::settings::PROTECTED;
use crate::config::value::limits_of;

const NO_TLS_OUT: &str = "Weft makes no connections of its own under TLS";
const NO_MODULES: &str = "Weft has no modules";

pub(super) const LIST: &[Directive] = &[
    // Where the server listens.
    int("port", (0, 65_535), "6379").at_start().server(),
    Directive::new("bind", Kind::Addresses, "* -::*").at_start().server(),
    text("unixsocket", "").at_start().server(),
    Directive::new("unixsocketperm", Kind::Octal { max: 0o777 }, "0").at_start().server(),
    text("unixsocketgroup", "").at_start().only(&[""], "set the group of the socket's folder"),
    int("tcp-backlog", (0, INT), "511").at_start().server(),
    switch("mptcp", "no").at_start().only(&["no"], "Weft does not serve Multipath TCP"),
    int("socket-mark-id", (0, u32::MAX as i64), "0").at_start().only(&["0"], "Weft does not mark packets"),
    int("threads", (0, 1024), "0").at_start().server(),
    switch("threads-always-active", "no")
        .acts(|e, v| e.settings.threads_always_active.store(v.is_on(), Relaxed)),
    switch("protected-mode", "yes").acts(|e, v| e.settings.protected_mode.store(v.is_on(), Relaxed)),
    // Connections.
    int("maxclients", (1, u32::MAX as i64), "10000")
        .acts(|e, v| e.settings.clients_max.store(v.u32(), Relaxed)),
    int("timeout", (0, INT), "0").acts(|e, v| e.settings.idle_timeout_s.store(v.u32(), Relaxed)),
    int("auth-timeout", (0, INT), "60").acts(|e, v| e.settings.auth_timeout_s.store(v.u32(), Relaxed)),
    int("tcp-keepalive", (0, INT), "300").acts(|e, v| e.settings.keepalive_s.store(v.u32(), Relaxed)),
    int("max-new-connections-per-cycle", (1, 1000), "10"),
    int("max-new-tls-connections-per-cycle", (1, 1000), "1"),
    memory("client-query-buffer-limit", (1 << 20, ANY), "1073741824")
        .acts(|e, v| e.settings.query_bytes_max.store(v.size(), Relaxed)),
    Directive::new(
        "client-output-buffer-limit",
        Kind::OutputLimits,
        "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
    )
    .acts(|e, v| {
        let [normal, _, pubsub] = limits_of(v).map(|limits| limits.map(|limit| limit as usize));
        let s = &e.settings;
        s.output_normal_hard_bytes.store(normal[0], Relaxed);
        s.output_normal_soft_bytes.store(normal[1], Relaxed);
        s.output_normal_soft_s.store(normal[2] as u32, Relaxed);
        s.output_pubsub_hard_bytes.store(pubsub[0], Relaxed);
        s.output_pubsub_soft_bytes.store(pubsub[1], Relaxed);
        s.output_pubsub_soft_s.store(pubsub[2] as u32, Relaxed);
    }),
    Directive::new("maxmemory-clients", Kind::MemoryOrPercent, "0")
        .only(&["0"], "each client has limits of its own (client-output-buffer-limit)"),
    int("client-default-resp", (2, 3), "2").at_start().hidden().only(&["2"], "clients choose by HELLO"),
    // RESPB.
    switch("respb-detect", "yes").acts(|e, v| e.settings.respb_detect.store(v.is_on(), Relaxed)),
    int("respb-channels", (1, 65_536), "65536")
        .acts(|e, v| e.settings.respb_channels_max.store(v.u32(), Relaxed)),
    int("respb-unauthenticated-channels", (1, 65_536), "16")
        .acts(|e, v| e.settings.respb_unauthenticated_channels_max.store(v.u32(), Relaxed)),
    memory("respb-queue-bytes", (1 << 10, ANY), "1048576")
        .acts(|e, v| e.settings.respb_queue_bytes_max.store(v.size(), Relaxed)),
    memory("respb-output-bytes", (1 << 16, ANY), "268435456")
        .acts(|e, v| e.settings.respb_output_bytes_max.store(v.size(), Relaxed)),
    memory("respb-connection-queue-bytes", (1 << 10, ANY), "16777216")
        .acts(|e, v| e.settings.respb_connection_queue_bytes_max.store(v.size(), Relaxed)),
    memory("respb-connection-output-bytes", (1 << 16, ANY), "536870912")
        .acts(|e, v| e.settings.respb_connection_output_bytes_max.store(v.size(), Relaxed)),
    memory("respb-frame-bytes", (1 << 20, u32::MAX as i64), "1073741824")
        .acts(|e, v| e.settings.respb_frame_bytes_max.store(v.size(), Relaxed)),
    // HTTP.
    int("http-port", (0, 65_535), "0").at_start().server(),
    switch("http-detect", "yes").acts(|e, v| e.settings.http_detect.store(v.is_on(), Relaxed)),
    memory("http-line-bytes", (1 << 10, 1 << 20), "16384")
        .acts(|e, v| e.settings.http_line_bytes_max.store(v.size(), Relaxed)),
    memory("http-head-bytes", (1 << 10, 2 << 20), "32768")
        .acts(|e, v| e.settings.http_head_bytes_max.store(v.size(), Relaxed)),
    int("http-headers", (1, 128), "64").acts(|e, v| e.settings.http_headers_max.store(v.size(), Relaxed)),
    memory("http-body-bytes", (1 << 10, u32::MAX as i64 >> 1), "536870912")
        .acts(|e, v| e.settings.http_body_bytes_max.store(v.size(), Relaxed)),
    int("http-head-timeout", (0, INT), "20")
        .acts(|e, v| e.settings.http_head_timeout_s.store(v.u32(), Relaxed)),
    int("http-body-timeout", (0, INT), "20")
        .acts(|e, v| e.settings.http_body_timeout_s.store(v.u32(), Relaxed)),
    text("http-cors-origins", "").acts(|e, v| e.web.set_origins(v.text.as_ref())),
    text("http-hosts", "").acts(|e, v| e.web.set_hosts(v.text.as_ref())),
    // MIGRATE.
    text("migrate-allow", "").at_start().server(),
    memory("migrate-bytes", (1 << 20, ANY), "268435456")
        .acts(|e, v| e.settings.migrate_bytes_max.store(v.size(), Relaxed)),
    // Programs.
    int("program-steps-max", (1, ANY), "1000000")
        .acts(|e, v| e.settings.program_steps_max.store(v.number as u64, Relaxed)),
    int("program-keys-max", (1, ANY), "100000")
        .acts(|e, v| e.settings.program_keys_max.store(v.number as u64, Relaxed)),
    memory("program-bytes-max", (1 << 10, ANY), "268435456")
        .acts(|e, v| e.settings.program_bytes_max.store(v.number as u64, Relaxed)),
    memory("program-memory-max", (1 << 10, ANY), "268435456")
        .acts(|e, v| e.settings.program_memory_max.store(v.number as u64, Relaxed)),
    int("program-time-ms-max", (1, 60_000), "100")
        .acts(|e, v| e.settings.program_time_ms_max.store(v.number as u64, Relaxed)),
    // Users.
    text("requirepass", "")
        .secret()
        .acts(|e, v| e.then.set_default_password((!v.text.is_empty()).then_some(&*v.text))),
    text("aclfile", "").at_start().server(),
    int("acllog-max-len", (0, ANY), "128").acts(|e, v| e.acl.log_len_max.store(v.size(), Relaxed)),
    // The order of the words is the one that messages show; the second one is the default.
    word("acl-pubsub-default", &["allchannels", "resetchannels"], "resetchannels")
        .acts(|e, v| e.acl.new_users_have_all_channels.store(v.number == 0, Relaxed)),
    // What may do harm.
    word("enable-protected-configs", &PROTECTED, "no")
        .at_start()
        .acts(|e, v| e.settings.protected_configs.store(v.number as u8, Relaxed)),
    word("enable-debug-command", &PROTECTED, "no")
        .at_start()
        .acts(|e, v| e.settings.debug_command.store(v.number as u8, Relaxed)),
    word("enable-module-command", &PROTECTED, "no").at_start().only(&["no"], NO_MODULES),
    // TLS.
    int("tls-port", (0, 65_535), "0").at_start().server(),
    text("tls-cert-file", "").tls(),
    text("tls-key-file", "").tls(),
    text("tls-key-file-pass", "")
        .secret()
        .only(&[""], "keys with a pass phrase are not read: store one without"),
    text("tls-client-cert-file", "").only(&[""], NO_TLS_OUT),
    text("tls-client-key-file", "").only(&[""], NO_TLS_OUT),
    text("tls-client-key-file-pass", "").secret().only(&[""], NO_TLS_OUT),
    text("tls-ca-cert-file", "").tls(),
    text("tls-ca-cert-dir", "").tls(),
    text("tls-dh-params-file", ""),
    text("tls-protocols", "").tls(),
    text("tls-ciphers", "").tls(),
    text("tls-ciphersuites", "").tls(),
    switch("tls-prefer-server-ciphers", "no").tls(),
    int("tls-handshake-timeout", (1, INT), "20")
        .acts(|e, v| e.settings.tls_handshake_timeout_s.store(v.u32(), Relaxed)),
    switch("tls-session-caching", "yes").tls(),
    int("tls-session-cache-size", (0, INT), "20480").tls(),
    int("tls-session-cache-timeout", (0, INT), "300"),
    int("tls-auto-reload-interval", (0, INT), "0").only(&["0"], "SIGHUP and CONFIG SET read the files anew"),
    switch("tls-cluster", "no").only(&["no"], NO_TLS_OUT),
    switch("tls-replication", "no").only(&["no"], NO_TLS_OUT),
    word("tls-auth-clients", &["no", "yes", "optional"], "yes").tls(),
    word("tls-auth-clients-user", &["CN", "URI", "off"], "off").tls(),
    switch("tls-self-signed", "no").at_start().tls(),
    // RDMA.
    Directive::new("rdma-bind", Kind::Addresses, "").only(&[""], "Weft does not serve RDMA"),
    int("rdma-port", (0, 65_535), "0").only(&["0"], "Weft does not serve RDMA"),
    int("rdma-rx-size", (64 << 10, 16 << 20), "1048576").at_start(),
    int("rdma-completion-vector", (-1, 1024), "-1").at_start(),
];
