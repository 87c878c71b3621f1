//! Owns: the server's settings as they are now. Does not own: where they came from (`weft-server` reads files and
//! flags), what follows from a change but for what stands here.
//!
//! What hot paths read are plain atomics in [`Settings`]; everything has its name, default and text form in the table
//! of directives, which CONFIG GET and SET go through.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use weft_store::Policy;

/// Settings that commands read while they run, in their own types. Relaxed loads: a change is seen soon.
#[derive(Debug)]
pub struct Settings {
    /// `maxmemory`; 0 for none.
    pub maxmemory_bytes: AtomicUsize,
    /// `maxmemory-policy`, as its place in [`POLICIES`].
    pub maxmemory_policy: AtomicU32,
    /// `maxmemory-samples`.
    pub maxmemory_samples: AtomicU32,
    /// `proto-max-bulk-len`: the longest string.
    pub string_bytes_max: AtomicUsize,
    /// `list-max-listpack-size`.
    pub list_max_listpack_size: AtomicI64,
    /// `slowlog-log-slower-than`, microseconds; negative for never.
    pub slowlog_slower_than_us: AtomicI64,
    /// `notify-keyspace-events`, as bits of [`crate::notify`].
    pub notify_flags: AtomicU32,
    /// `requirepass` is set, or the default user has a password: new clients must authenticate.
    pub auth_required: AtomicBool,
    /// `busy-reply-threshold`.
    pub busy_reply_ms: AtomicU64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            maxmemory_bytes: AtomicUsize::new(0),
            maxmemory_policy: AtomicU32::new(0),
            maxmemory_samples: AtomicU32::new(5),
            string_bytes_max: AtomicUsize::new(512 << 20),
            list_max_listpack_size: AtomicI64::new(-2),
            slowlog_slower_than_us: AtomicI64::new(10_000),
            notify_flags: AtomicU32::new(0),
            auth_required: AtomicBool::new(false),
            busy_reply_ms: AtomicU64::new(5000),
        }
    }
}

/// The eviction policies, in the order of their numbers in [`Settings`].
pub const POLICIES: [&str; 8] = [
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

impl Settings {
    /// `maxmemory-policy`.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let number = self.maxmemory_policy.load(Relaxed) as usize;
        POLICIES.get(number).and_then(|name| Policy::from_name(name)).unwrap_or(Policy::NoEviction)
    }
}
