//! Owns: the sections Server, Clients, Memory and CPU.

use std::sync::atomic::Ordering::Relaxed;
use weft_store::{Counter, Section};

use super::commands::since_reset;
use super::{Report, VERSION, human, ratio};
use crate::REDIS_VERSION;
use crate::engine::Engine;
use crate::observe::process::{Cpu, Memory, OS};
use crate::pubsub::Space;
use crate::session::client_flag;

pub(super) fn server(engine: &Engine, report: &mut Report, now_ms: u64) {
    let settings = &engine.settings;
    let facts = &engine.facts;
    let uptime_s = now_ms.saturating_sub(engine.stats.started_ms) / 1000;
    let hz = settings.hz.load(Relaxed);
    report.section("Server");
    report.field("redis_version", REDIS_VERSION);
    report.field("server_name", "weft");
    report.field("weft_version", VERSION);
    report.fixed(&[("redis_git_sha1", "00000000"), ("redis_git_dirty", "0"), ("redis_build_id", "0")]);
    let mode = engine.mode();
    report.fixed(&[("redis_mode", mode), ("server_mode", mode)]);
    report.field("os", &*OS);
    report.field("arch_bits", usize::BITS);
    report.field("monotonic_clock", "POSIX clock_gettime");
    report.field("multiplexing_api", "epoll");
    report.fixed(&[("atomicvar_api", "rust-atomics"), ("gcc_version", "0.0.0")]);
    report.field("process_id", std::process::id());
    // What systemd is told follows from the same variable (`weft_server`'s supervisor).
    let supervisor = if std::env::var_os("NOTIFY_SOCKET").is_some() { "systemd" } else { "no" };
    report.field("process_supervised", supervisor);
    report.field("run_id", &facts.run_id);
    report.field("tcp_port", *facts.port.read());
    report.field("server_time_usec", now_ms * 1000);
    report.field("uptime_in_seconds", uptime_s);
    report.field("uptime_in_days", uptime_s / 86_400);
    report.field("hz", hz);
    report.field("configured_hz", hz);
    report.field("clients_hz", hz);
    report.field("lru_clock", (now_ms / 1000) & 0xff_ffff);
    report.field("executable", std::env::current_exe().unwrap_or_default().display());
    report.field(
        "config_file",
        engine.config.file().map(|file| file.display().to_string()).unwrap_or_default(),
    );
    report.fixed(&[("io_threads_active", "0")]);
    report.field("worker_threads", engine.worker_count());
    report.field("worker_threads_active", engine.stats.active_threads.load(Relaxed));
    report.field("worker_thread_handovers", engine.stats.thread_handovers.load(Relaxed));
    report.field("availability_zone", String::from_utf8_lossy(&engine.config.text("availability-zone")));
    for (at, listener) in facts.listeners.read().iter().enumerate() {
        report.field(&format!("listener{at}"), listener);
    }
}

pub(super) fn tls(engine: &Engine, report: &mut Report, now_ms: u64) {
    report.section("TLS");
    let stats = &engine.stats;
    let expires_s = *engine.facts.tls_expires_s.read();
    report.field("tls_enabled", u8::from(expires_s.is_some()));
    if let Some(expires_s) = expires_s {
        report.field("tls_server_cert_expires_in_seconds", expires_s as i64 - (now_ms / 1000) as i64);
    }
    report.field("tls_handshakes", stats.tls_handshakes.load(Relaxed));
    report.field("tls_handshakes_resumed", stats.tls_handshakes_resumed.load(Relaxed));
    report.field("tls_handshakes_failed", stats.tls_handshakes_failed.load(Relaxed));
}

/// What INFO adds up over all clients.
#[derive(Default)]
struct Sums {
    blocked: usize,
    tracking: usize,
    subscribed: usize,
    watching: usize,
    watched: usize,
    input_max: u64,
    output_max: u64,
}

pub(super) fn clients(engine: &Engine, report: &mut Report, now_ms: u64) {
    let mut sums = Sums::default();
    engine.clients.each(|info| {
        sums.blocked += usize::from(info.has(client_flag::BLOCKED));
        sums.tracking += usize::from(info.has(client_flag::TRACKING));
        sums.subscribed += usize::from(info.has(client_flag::PUBSUB));
        let watched = info.watched.load(Relaxed) as usize;
        sums.watching += usize::from(watched > 0);
        sums.watched += watched;
        sums.input_max = sums.input_max.max(info.connection.input_bytes.load(Relaxed));
        sums.output_max = sums.output_max.max(info.connection.output_bytes.load(Relaxed));
    });
    let waits = engine.waits.figures();
    let until_ms = engine.pause.until_ms();
    let left_ms = until_ms.saturating_sub(now_ms);
    let actions = match () {
        () if left_ms == 0 => "none",
        () if engine.pause.writes_only() => "write",
        () => "all",
    };
    report.section("Clients");
    report.field("connected_clients", engine.clients.len());
    report.field("cluster_connections", 0);
    report.field("maxclients", engine.settings.clients_max.load(Relaxed));
    report.field("client_recent_max_input_buffer", sums.input_max);
    report.field("client_recent_max_output_buffer", sums.output_max);
    report.field("blocked_clients", sums.blocked);
    report.field("tracking_clients", sums.tracking);
    report.field("pubsub_clients", sums.subscribed);
    report.field("watching_clients", sums.watching);
    report.field("clients_in_timeout_table", waits.with_end);
    report.field("total_watched_keys", sums.watched);
    report.field("total_blocking_keys", waits.keys);
    report.field("total_blocking_keys_on_nokey", waits.keys_heard_of_end);
    report.field("paused_reason", if left_ms == 0 { "none" } else { "client_pause" });
    report.field("paused_actions", actions);
    report.field("paused_timeout_milliseconds", left_ms);
}

/// What INFO and MEMORY tell of memory, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryFigures {
    /// Entries, values, tables and stored programs: what `maxmemory` limits.
    pub used_bytes: usize,
    /// The most that was ever used.
    pub peak_bytes: usize,
    /// Tables.
    pub table_bytes: usize,
    /// What is used and is no data.
    pub overhead_bytes: usize,
    /// Pages of entries and tables that the system counts.
    pub active_bytes: usize,
    /// The process, as the system counts it.
    pub resident_bytes: usize,
    /// What clients have sent and not got an answer for, and answers that they have not read.
    pub buffer_bytes: usize,
}

impl MemoryFigures {
    /// As they are now.
    #[must_use]
    pub fn now(engine: &Engine) -> Self {
        let program_bytes = engine.programs.bytes();
        let used_bytes = engine.keyspace.used_bytes() + program_bytes;
        let table_bytes = engine.keyspace.table_resident_bytes();
        let mut buffer_bytes = 0;
        engine.clients.each(|info| {
            // A connection of many channels stands there once.
            if info.address.channel == 0 {
                let connection = &info.connection;
                buffer_bytes += connection.input_bytes.load(Relaxed) + connection.output_bytes.load(Relaxed);
            }
        });
        Self {
            used_bytes,
            peak_bytes: engine.stats.used_peak_bytes.load(Relaxed).max(used_bytes),
            table_bytes,
            overhead_bytes: (table_bytes + program_bytes).min(used_bytes),
            active_bytes: engine.keyspace.page_stats().resident_bytes() + table_bytes,
            resident_bytes: Memory::now().resident_bytes,
            buffer_bytes: buffer_bytes as usize,
        }
    }
    /// What is used for data.
    #[must_use]
    pub const fn dataset_bytes(&self) -> usize {
        self.used_bytes.saturating_sub(self.overhead_bytes)
    }
}

pub(super) fn memory(engine: &Engine, report: &mut Report, _now_ms: u64) {
    let figures = MemoryFigures::now(engine);
    let MemoryFigures { used_bytes: used, peak_bytes: peak, overhead_bytes: overhead, .. } = figures;
    let MemoryFigures { active_bytes: active, resident_bytes: resident, buffer_bytes: buffers, .. } = figures;
    let dataset = figures.dataset_bytes();
    let limit = engine.settings.maxmemory_bytes.load(Relaxed);
    report.section("Memory");
    report.bytes("used_memory", used);
    report.bytes("used_memory_rss", resident);
    report.bytes("used_memory_peak", peak);
    report.field("used_memory_peak_perc", format_args!("{:.2}%", ratio(used, peak) * 100.0));
    report.field("used_memory_overhead", overhead);
    report.field("used_memory_startup", 0);
    report.field("used_memory_dataset", dataset);
    report.field("used_memory_dataset_perc", format_args!("{:.2}%", ratio(dataset, used) * 100.0));
    report.field("allocator_allocated", used);
    report.field("allocator_active", active);
    report.field("allocator_resident", active);
    report.field("allocator_muzzy", 0);
    report.bytes("total_system_memory", Memory::total_bytes());
    script_memory(engine, report);
    report.bytes("maxmemory", limit);
    report.field("maxmemory_policy", engine.settings.policy_name());
    report.field("allocator_frag_ratio", format_args!("{:.2}", ratio(active, used)));
    report.field("allocator_frag_bytes", active.saturating_sub(used));
    report.fixed(&[("allocator_rss_ratio", "1.00"), ("allocator_rss_bytes", "0")]);
    report.field("rss_overhead_ratio", format_args!("{:.2}", ratio(resident, active)));
    report.field("rss_overhead_bytes", resident as i64 - active as i64);
    report.field("mem_fragmentation_ratio", format_args!("{:.2}", ratio(resident, used)));
    report.field("mem_fragmentation_bytes", resident as i64 - used as i64);
    report.field("mem_not_counted_for_evict", buffers);
    report.fixed(&[
        ("mem_replication_backlog", "0"),
        ("mem_total_replication_buffers", "0"),
        ("mem_replicas_repl_buffer", "0"),
        ("mem_clients_slaves", "0"),
    ]);
    report.field("mem_clients_normal", buffers);
    report.fixed(&[
        ("mem_cluster_links", "0"),
        ("mem_cluster_slot_import", "0"),
        ("mem_cluster_slot_export", "0"),
        ("mem_aof_buffer", "0"),
        ("mem_allocator", "weft-slab"),
        ("mem_overhead_db_hashtable_rehashing", "0"),
        ("active_defrag_running", "0"),
    ]);
    report.field("lazyfree_pending_objects", engine.keyspace.discarded_objects());
    report.field("lazyfreed_objects", since_reset(engine, Counter::LazyFreed));
    report.field("compaction_moved_entries", since_reset(engine, Counter::MovedEntries));
    report.field("compaction_moved_bytes", since_reset(engine, Counter::MovedBytes));
    report.field("compaction_returned_bytes", since_reset(engine, Counter::ReturnedBytes));
    report.field("table_limbo_bytes", engine.keyspace.limbo_bytes());
    report.field("table_resident_human", human(figures.table_bytes));
}

/// Scripts and functions share one state of Lua for each worker: all of it counts as that of scripts.
fn script_memory(engine: &Engine, report: &mut Report) {
    let (scripts, bytes) = engine.scripts.kept();
    let lua = engine.scripts.budget.used_bytes();
    let [functions, libraries] = &engine.scripts.function_counts;
    let library_bytes = engine.keyspace.catalogue().bytes(Section::Functions);
    report.bytes("used_memory_lua", lua);
    report.field("used_memory_vm_eval", lua);
    report.field("used_memory_scripts_eval", bytes);
    report.field("number_of_cached_scripts", scripts);
    report.field("number_of_functions", functions.load(Relaxed));
    report.field("number_of_libraries", libraries.load(Relaxed));
    report.field("used_memory_vm_functions", 0);
    report.bytes("used_memory_vm_total", lua);
    report.field("used_memory_functions", library_bytes);
    report.bytes("used_memory_scripts", bytes + library_bytes);
}

pub(super) fn cpu(_: &Engine, report: &mut Report, _now_ms: u64) {
    let (own, main) = (Cpu::own(), Cpu::main_thread());
    report.section("CPU");
    report.field("used_cpu_sys", format_args!("{:.6}", own.system_s));
    report.field("used_cpu_user", format_args!("{:.6}", own.user_s));
    report.fixed(&[("used_cpu_sys_children", "0.000000"), ("used_cpu_user_children", "0.000000")]);
    report.field("used_cpu_sys_main_thread", format_args!("{:.6}", main.system_s));
    report.field("used_cpu_user_main_thread", format_args!("{:.6}", main.user_s));
    report.field("used_active_time_main_thread", format_args!("{:.6}", main.user_s + main.system_s));
}

/// Channels, patterns and shard channels that somebody is subscribed to.
pub(super) fn subscriptions(engine: &Engine) -> [usize; 3] {
    let channels = |space| engine.pubsub.channels(space, None).len();
    [channels(Space::Global), engine.pubsub.pattern_count(), channels(Space::Shard)]
}
