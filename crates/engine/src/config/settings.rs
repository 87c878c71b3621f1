//! Owns: the settings that commands and connections read while they run, in their own types. Does not own: their
//! names and texts (`super::table`).

use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};
use weft_store::evict::NAMES;
use weft_store::{HashLimits, ListLimit, Policy, ReplayLimits, SetLimits, SortedSetLimits, StreamLimit};

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $atomic:ident = $default:expr,)*) => {
        /// Settings as they are now. Relaxed loads: a change is seen soon.
        #[derive(Debug)]
        pub struct Settings { $($(#[$doc])* pub $name: $atomic,)* }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($name: $atomic::new($default),)* }
            }
        }
    };
}

settings! {
    /// `maxmemory`; 0 for none.
    maxmemory_bytes: AtomicUsize = 0,
    /// `maxmemory-policy`, as its place in [`POLICIES`].
    maxmemory_policy: AtomicU32 = 0,
    /// `maxmemory-samples`.
    maxmemory_samples: AtomicU32 = 5,
    /// `maxmemory-eviction-tenacity`, 0 to 100.
    maxmemory_tenacity: AtomicU32 = 10,
    /// `lfu-log-factor`.
    lfu_log_factor: AtomicU32 = 10,
    /// `lfu-decay-time`, in minutes.
    lfu_decay_min: AtomicU32 = 1,

    /// `proto-max-bulk-len`: the longest string.
    string_bytes_max: AtomicUsize = 512 << 20,
    /// `hash-max-listpack-entries`.
    hash_max_listpack_entries: AtomicUsize = 512,
    /// `hash-max-listpack-value`, in bytes.
    hash_max_listpack_value: AtomicUsize = 64,
    /// `list-max-listpack-size`.
    list_max_listpack_size: AtomicI64 = -2,
    /// `list-compress-depth`.
    list_compress_depth: AtomicU32 = 0,
    /// `set-max-intset-entries`.
    set_max_intset_entries: AtomicUsize = 512,
    /// `set-max-listpack-entries`.
    set_max_listpack_entries: AtomicUsize = 128,
    /// `set-max-listpack-value`, in bytes.
    set_max_listpack_value: AtomicUsize = 64,
    /// `zset-max-listpack-entries`.
    zset_max_listpack_entries: AtomicUsize = 128,
    /// `zset-max-listpack-value`, in bytes.
    zset_max_listpack_value: AtomicUsize = 64,
    /// `stream-node-max-bytes`; 0 for no limit.
    stream_node_max_bytes: AtomicUsize = 4096,
    /// `stream-node-max-entries`; 0 for no limit.
    stream_node_max_entries: AtomicUsize = 100,
    /// `hll-sparse-max-bytes`.
    hll_sparse_max_bytes: AtomicUsize = 3000,

    /// `appendfsync`, as its place in [`SYNCS`].
    appendfsync: AtomicU8 = 1,
    /// `strict-reads`: who reads waits for what he has seen to be safe.
    strict_reads: AtomicBool = true,
    /// `save` names a save point.
    has_save_points: AtomicBool = false,
    /// `stop-writes-on-bgsave-error`.
    stop_writes: AtomicBool = true,

    /// `notify-keyspace-events`, as bits of [`crate::notify`].
    notify_flags: AtomicU32 = 0,
    /// `tracking-table-max-keys`; 0 for no limit.
    tracking_keys_max: AtomicUsize = 1_000_000,
    /// `requirepass` is set, or the default user has a password: new clients must authenticate.
    auth_required: AtomicBool = false,
    /// `busy-reply-threshold`.
    busy_reply_ms: AtomicU64 = 5000,
    /// `script-kill-undo`: a script that is ended by SCRIPT KILL is taken back.
    script_kill_undo: AtomicBool = false,
    /// `lua-enable-insecure-api`.
    lua_insecure: AtomicBool = false,
    /// `active-expire-effort`, 1 to 10.
    expire_effort: AtomicU32 = 1,
    /// DEBUG SET-ACTIVE-EXPIRE: whether keys expire without being looked at.
    active_expire: AtomicBool = true,
    /// DEBUG REWRITE-REST: how long a log that has become long is left alone when its rewrite failed, milliseconds.
    rewrite_rest_ms: AtomicU64 = 30_000,
    /// `rdb-version-check relaxed`: RESTORE takes what a newer server has written.
    any_rdb_version: AtomicBool = false,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may call what is flagged `noscript` and `admin`, such as DEBUG.
    any_in_scripts: AtomicBool = false,
    /// DEBUG SET-SKIP-CHECKSUM-VALIDATION: RESTORE does not look at the checksum.
    any_checksum: AtomicBool = false,
    /// `hz`: how often a second background work is done.
    hz: AtomicU32 = 10,
    /// `lazyfree-lazy-user-flush`: FLUSHALL without SYNC or ASYNC does not wait for memory to be freed.
    lazy_flush: AtomicBool = true,

    /// `program-steps-max`.
    program_steps_max: AtomicU64 = 1_000_000,
    /// `program-keys-max`.
    program_keys_max: AtomicU64 = 100_000,
    /// `program-bytes-max`.
    program_bytes_max: AtomicU64 = 256 << 20,
    /// `program-memory-max`, in bytes.
    program_memory_max: AtomicU64 = 256 << 20,
    /// `program-time-ms-max`.
    program_time_ms_max: AtomicU64 = 100,

    /// `slowlog-log-slower-than`, microseconds; negative for never.
    slowlog_slower_than_us: AtomicI64 = 10_000,
    /// `slowlog-max-len`.
    slowlog_max: AtomicUsize = 128,
    /// `commandlog-request-larger-than`, bytes; negative for never.
    request_larger_than_bytes: AtomicI64 = 1 << 20,
    /// `commandlog-large-request-max-len`.
    large_requests_max: AtomicUsize = 128,
    /// `commandlog-reply-larger-than`, bytes; negative for never.
    reply_larger_than_bytes: AtomicI64 = 1 << 20,
    /// `commandlog-large-reply-max-len`.
    large_replies_max: AtomicUsize = 128,
    /// `latency-monitor-threshold`, milliseconds; 0 for off.
    latency_threshold_ms: AtomicU64 = 0,
    /// `latency-tracking`: histograms of each command's time.
    latency_tracking: AtomicBool = true,

    /// `threads-always-active`: each worker has its own thread, however little there is to do.
    threads_always_active: AtomicBool = false,
    /// `maxclients`: connections.
    clients_max: AtomicU32 = 10_000,
    /// `timeout`: seconds after which an idle client is closed; 0 for never.
    idle_timeout_s: AtomicU32 = 0,
    /// `auth-timeout`: seconds that a client has to authenticate where it must; 0 for any.
    auth_timeout_s: AtomicU32 = 60,
    /// `tls-handshake-timeout`: seconds that a handshake of TLS may take.
    tls_handshake_timeout_s: AtomicU32 = 20,
    /// `tcp-keepalive`, seconds; 0 for off.
    keepalive_s: AtomicU32 = 300,
    /// `protected-mode`.
    protected_mode: AtomicBool = true,
    /// `client-query-buffer-limit`: bytes received and not yet run.
    query_bytes_max: AtomicUsize = 1 << 30,
    /// `client-output-buffer-limit normal`: bytes at which a client is closed at once; 0 for no limit.
    output_normal_hard_bytes: AtomicUsize = 0,
    /// `client-output-buffer-limit normal`: bytes that it may not exceed for long; 0 for no limit.
    output_normal_soft_bytes: AtomicUsize = 0,
    /// `client-output-buffer-limit normal`: how long.
    output_normal_soft_s: AtomicU32 = 0,
    /// `client-output-buffer-limit pubsub`: bytes at which a subscriber is closed at once; 0 for no limit.
    output_pubsub_hard_bytes: AtomicUsize = 32 << 20,
    /// `client-output-buffer-limit pubsub`: bytes that it may not exceed for long; 0 for no limit.
    output_pubsub_soft_bytes: AtomicUsize = 8 << 20,
    /// `client-output-buffer-limit pubsub`: how long.
    output_pubsub_soft_s: AtomicU32 = 60,
    /// `migrate-bytes`: what MIGRATE has looked up and not yet sent, of all clients.
    migrate_bytes_max: AtomicUsize = 256 << 20,
    /// `shutdown-timeout`, seconds: how long clients get to read what is sent to them.
    shutdown_timeout_s: AtomicU32 = 10,

    /// `respb-detect`: a connection may begin with a RESPB frame.
    respb_detect: AtomicBool = true,
    /// `respb-channels`: channels of a connection.
    respb_channels_max: AtomicU32 = 65_536,
    /// `respb-unauthenticated-channels`: the same, before authentication.
    respb_unauthenticated_channels_max: AtomicU32 = 16,
    /// `respb-queue-bytes`: what waits behind a blocked request, for each channel.
    respb_queue_bytes_max: AtomicUsize = 1 << 20,
    /// `respb-output-bytes`: replies and pushes not yet sent, for each channel.
    respb_output_bytes_max: AtomicUsize = 256 << 20,
    /// `respb-connection-queue-bytes`: the same as `respb-queue-bytes`, for all channels of a connection.
    respb_connection_queue_bytes_max: AtomicUsize = 16 << 20,
    /// `respb-connection-output-bytes`: the same as `respb-output-bytes`, for all channels of a connection.
    respb_connection_output_bytes_max: AtomicUsize = 512 << 20,
    /// `respb-frame-bytes`: a frame of a client.
    respb_frame_bytes_max: AtomicUsize = 1 << 30,

    /// `http-detect`: a connection may begin with a request of HTTP.
    http_detect: AtomicBool = true,
    /// `http-line-bytes`: the first line of a request.
    http_line_bytes_max: AtomicUsize = 16 << 10,
    /// `http-head-bytes`: a request's line and headers.
    http_head_bytes_max: AtomicUsize = 32 << 10,
    /// `http-headers`: headers of a request.
    http_headers_max: AtomicUsize = 64,
    /// `http-body-bytes`: the body of a request.
    http_body_bytes_max: AtomicUsize = 512 << 20,
    /// `http-head-timeout`: seconds in which a request's head must come; 0 for any.
    http_head_timeout_s: AtomicU32 = 20,
    /// `http-body-timeout`: the same for its body, and a second more for each kilobyte; 0 for any.
    http_body_timeout_s: AtomicU32 = 20,

    /// `enable-debug-command`, as its place in [`PROTECTED`].
    debug_command: AtomicU8 = 0,
    /// `enable-protected-configs`, as its place in [`PROTECTED`].
    protected_configs: AtomicU8 = 0,
}

/// The eviction policies, in the order of their numbers in [`Settings`].
pub const POLICIES: [&str; NAMES.len()] = {
    let (mut names, mut at) = ([""; NAMES.len()], 0);
    while at < names.len() {
        names[at] = NAMES[at].0;
        at += 1;
    }
    names
};

/// When the log is synced.
pub const SYNCS: [&str; 3] = ["no", "everysec", "always"];

/// Who may do something that is dangerous: nobody, everybody, clients on this machine.
pub const PROTECTED: [&str; 3] = ["no", "yes", "local"];

impl Settings {
    /// `maxmemory-policy`.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let number = self.maxmemory_policy.load(Relaxed) as usize;
        POLICIES.get(number).and_then(|name| Policy::from_name(name)).unwrap_or(Policy::NoEviction)
    }
    /// Its name.
    #[must_use]
    pub fn policy_name(&self) -> &'static str {
        POLICIES[self.maxmemory_policy.load(Relaxed) as usize % POLICIES.len()]
    }
}

impl Settings {
    /// Limits of the compact forms, as they are set now.
    #[must_use]
    pub fn forms(&self) -> ReplayLimits {
        let get = |setting: &AtomicUsize| setting.load(Relaxed);
        ReplayLimits {
            list: ListLimit::from_config(self.list_max_listpack_size.load(Relaxed)),
            hash: HashLimits {
                entries_max: get(&self.hash_max_listpack_entries),
                value_bytes_max: get(&self.hash_max_listpack_value),
            },
            set: SetLimits {
                ints_max: get(&self.set_max_intset_entries),
                entries_max: get(&self.set_max_listpack_entries),
                value_bytes_max: get(&self.set_max_listpack_value),
            },
            sorted_set: SortedSetLimits {
                entries_max: get(&self.zset_max_listpack_entries),
                value_bytes_max: get(&self.zset_max_listpack_value),
            },
            stream: StreamLimit {
                block_bytes_max: get(&self.stream_node_max_bytes) as u64,
                block_entries_max: get(&self.stream_node_max_entries) as u64,
            },
        }
    }
}
