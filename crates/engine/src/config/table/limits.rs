//! Owns: directives about memory, the sizes of encodings, background work and what is watched.

use std::sync::atomic::Ordering::Relaxed;
use weft_store::{AccessMode, DATABASES_MAX};

use super::{ANY, INT};
use crate::config::directive::{Directive, Kind, Reach, int, memory, switch, word};
use crate::config::settings::POLICIES;
use crate::special;

/// What Valkey shows when a policy is unknown, in its order; the numbers in `Settings` follow [`POLICIES`].
const POLICY_WORDS: &[&str] = &[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];

macro_rules! size {
    ($name:literal, $max:expr, $default:literal, $field:ident) => {
        int($name, (0, $max), $default).acts(|e, v| e.settings.$field.store(v.size(), Relaxed))
    };
}
macro_rules! bytes {
    ($name:literal, ($min:expr, $max:expr), $default:literal, $field:ident) => {
        memory($name, ($min, $max), $default).acts(|e, v| e.settings.$field.store(v.size(), Relaxed))
    };
}

/// Accesses are remembered as the policy needs them: the time of the last one, or how often.
fn set_access_mode(reach: &Reach<'_>) {
    let settings = reach.settings;
    let mode = if settings.policy().is_lfu() {
        AccessMode::Lfu {
            log_factor: u8::try_from(settings.lfu_log_factor.load(Relaxed)).unwrap_or(u8::MAX),
            decay_min: u16::try_from(settings.lfu_decay_min.load(Relaxed)).unwrap_or(u16::MAX),
        }
    } else {
        AccessMode::Lru
    };
    if reach.keyspace.access_mode() != mode {
        reach.keyspace.set_access_mode(mode);
    }
}

pub(super) const LIST: &[Directive] = &[
    // Memory.
    memory("maxmemory", (0, ANY), "0").acts(|e, v| {
        e.settings.maxmemory_bytes.store(v.size(), Relaxed);
        e.special.set(special::LIMITED, v.size() != 0);
    }),
    word("maxmemory-policy", POLICY_WORDS, "noeviction").acts(|e, v| {
        let number = POLICIES.iter().position(|name| name.as_bytes() == &*v.text).unwrap_or(0);
        e.settings.maxmemory_policy.store(number as u32, Relaxed);
        set_access_mode(e);
    }),
    switch("huge-pages", "yes").at_start().server(),
    int("maxmemory-samples", (1, 64), "5").acts(|e, v| e.settings.maxmemory_samples.store(v.u32(), Relaxed)),
    int("maxmemory-eviction-tenacity", (0, 100), "10")
        .acts(|e, v| e.settings.maxmemory_tenacity.store(v.u32(), Relaxed)),
    int("lfu-log-factor", (0, INT), "10").acts(|e, v| {
        e.settings.lfu_log_factor.store(v.u32(), Relaxed);
        set_access_mode(e);
    }),
    int("lfu-decay-time", (0, INT), "1").acts(|e, v| {
        e.settings.lfu_decay_min.store(v.u32(), Relaxed);
        set_access_mode(e);
    }),
    switch("lazyfree-lazy-eviction", "yes"),
    switch("lazyfree-lazy-expire", "yes"),
    switch("lazyfree-lazy-server-del", "yes"),
    switch("lazyfree-lazy-user-del", "yes"),
    switch("lazyfree-lazy-user-flush", "yes").acts(|e, v| e.settings.lazy_flush.store(v.is_on(), Relaxed)),
    switch("activedefrag", "no"),
    memory("active-defrag-ignore-bytes", (1, ANY), "104857600"),
    int("active-defrag-threshold-lower", (0, 1000), "10"),
    int("active-defrag-threshold-upper", (0, 1000), "100"),
    int("active-defrag-cycle-min", (1, 99), "1"),
    int("active-defrag-cycle-max", (1, 99), "25"),
    int("active-defrag-cycle-us", (0, 100_000), "500"),
    int("active-defrag-max-scan-fields", (1, ANY), "1000"),
    switch("activerehashing", "yes"),
    // The keyspace.
    int("databases", (1, DATABASES_MAX as i64), "16").at_start().server(),
    int("hz", (0, INT), "10").acts(|e, v| e.settings.hz.store(v.u32().clamp(1, 500), Relaxed)),
    switch("dynamic-hz", "yes"),
    int("active-expire-effort", (1, 10), "1").acts(|e, v| e.settings.expire_effort.store(v.u32(), Relaxed)),
    Directive::new("notify-keyspace-events", Kind::Events, "").acts(|e, v| {
        e.settings.notify_flags.store(v.u32(), Relaxed);
        e.then.look_at_events();
    }),
    int("tracking-table-max-keys", (0, ANY), "1000000").acts(|e, v| {
        e.settings.tracking_keys_max.store(v.size(), Relaxed);
        e.then.trim_tracked();
    }),
    switch("import-mode", "no").acts(|e, v| e.keyspace.set_importing(v.is_on())),
    // Sizes of values and of their compact encodings.
    bytes!("proto-max-bulk-len", (1 << 20, ANY), "536870912", string_bytes_max),
    int("hash-max-listpack-entries", (0, ANY), "512")
        .alias("hash-max-ziplist-entries")
        .acts(|e, v| e.settings.hash_max_listpack_entries.store(v.size(), Relaxed)),
    memory("hash-max-listpack-value", (0, ANY), "64")
        .alias("hash-max-ziplist-value")
        .acts(|e, v| e.settings.hash_max_listpack_value.store(v.size(), Relaxed)),
    int("list-max-listpack-size", (-INT - 1, INT), "-2")
        .alias("list-max-ziplist-size")
        .acts(|e, v| e.settings.list_max_listpack_size.store(v.number, Relaxed)),
    int("list-compress-depth", (0, INT), "0")
        .acts(|e, v| e.settings.list_compress_depth.store(v.u32(), Relaxed)),
    size!("set-max-intset-entries", ANY, "512", set_max_intset_entries),
    size!("set-max-listpack-entries", ANY, "128", set_max_listpack_entries),
    size!("set-max-listpack-value", ANY, "64", set_max_listpack_value),
    int("zset-max-listpack-entries", (0, ANY), "128")
        .alias("zset-max-ziplist-entries")
        .acts(|e, v| e.settings.zset_max_listpack_entries.store(v.size(), Relaxed)),
    memory("zset-max-listpack-value", (0, ANY), "64")
        .alias("zset-max-ziplist-value")
        .acts(|e, v| e.settings.zset_max_listpack_value.store(v.size(), Relaxed)),
    bytes!("stream-node-max-bytes", (0, ANY), "4096", stream_node_max_bytes),
    size!("stream-node-max-entries", ANY, "100", stream_node_max_entries),
    bytes!("hll-sparse-max-bytes", (0, ANY), "3000", hll_sparse_max_bytes),
    // What is watched.
    int("commandlog-execution-slower-than", (-1, ANY), "10000")
        .alias("slowlog-log-slower-than")
        .acts(|e, v| e.settings.slowlog_slower_than_us.store(v.number, Relaxed)),
    int("commandlog-slow-execution-max-len", (0, ANY), "128")
        .alias("slowlog-max-len")
        .acts(|e, v| e.settings.slowlog_max.store(v.size(), Relaxed)),
    int("commandlog-request-larger-than", (-1, ANY), "1048576")
        .acts(|e, v| e.settings.request_larger_than_bytes.store(v.number, Relaxed)),
    size!("commandlog-large-request-max-len", ANY, "128", large_requests_max),
    int("commandlog-reply-larger-than", (-1, ANY), "1048576")
        .acts(|e, v| e.settings.reply_larger_than_bytes.store(v.number, Relaxed)),
    size!("commandlog-large-reply-max-len", ANY, "128", large_replies_max),
    int("latency-monitor-threshold", (0, ANY), "0")
        .acts(|e, v| e.settings.latency_threshold_ms.store(v.number as u64, Relaxed)),
    switch("latency-tracking", "yes").acts(|e, v| e.settings.latency_tracking.store(v.is_on(), Relaxed)),
    Directive::new("latency-tracking-info-percentiles", Kind::Percentiles, "50 99 99.9"),
    switch("extended-redis-compatibility", "no"),
    word("propagation-error-behavior", &["ignore", "panic", "panic-on-replicas"], "ignore"),
];
