//! Owns: the sections Persistence, Stats, Replication and Cluster.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use weft_store::Counter;

use super::Report;
use super::commands::since_reset;
use super::server::subscriptions;
use crate::acl::Reason;
use crate::engine::Engine;
use crate::special;

pub(super) fn persistence(engine: &Engine, report: &mut Report, now_ms: u64) {
    let (saves, log, loading) = (&engine.durable.saves, &engine.durable.log, &engine.durable.loading);
    // Who reads that something is over finds how it went.
    let is_on = |flag: &std::sync::atomic::AtomicBool| u8::from(flag.load(Acquire));
    let status = |failed: &std::sync::atomic::AtomicBool| if failed.load(Relaxed) { "err" } else { "ok" };
    let is_loading = engine.special.has(special::LOADING);
    report.section("Persistence");
    report.field("loading", u8::from(is_loading));
    if is_loading {
        let (all, done) = (loading.bytes.load(Relaxed), loading.done_bytes.load(Relaxed));
        let spent_ms = now_ms.saturating_sub(loading.started_ms.load(Relaxed));
        report.field("loading_start_time", loading.started_ms.load(Relaxed) / 1000);
        report.field("loading_total_bytes", all);
        report.field("loading_loaded_bytes", done);
        report.field("loading_loaded_perc", format!("{:.2}", loading.percent()));
        let left = u128::from(spent_ms) * u128::from(all.saturating_sub(done));
        report.field("loading_eta_seconds", left / (u128::from(done.max(1)) * 1000));
    }
    report.fixed(&[
        ("async_loading", "0"),
        ("current_cow_peak", "0"),
        ("current_cow_size", "0"),
        ("current_cow_size_age", "0"),
        ("current_fork_perc", "0.00"),
    ]);
    let saved_keys = if saves.is_saving.load(Relaxed) { saves.keys.load(Relaxed) } else { 0 };
    let all_keys = if saves.is_saving.load(Relaxed) { saves.keys_total.load(Relaxed) } else { 0 };
    let current_s = |flag: &std::sync::atomic::AtomicBool| {
        let spent_ms = now_ms.saturating_sub(saves.started_ms.load(Relaxed));
        if flag.load(Relaxed) { (spent_ms / 1000) as i64 } else { -1 }
    };
    report.field("current_save_keys_processed", saved_keys);
    report.field("current_save_keys_total", all_keys);
    let writes = engine.keyspace.total(Counter::Writes);
    report.field("rdb_changes_since_last_save", writes.saturating_sub(saves.writes.load(Relaxed)));
    report.field("rdb_bgsave_in_progress", is_on(&saves.is_saving));
    report.field("rdb_last_save_time", engine.last_save_ms() / 1000);
    report.field("rdb_last_bgsave_status", status(&saves.has_failed));
    let last_s = if saves.count.load(Relaxed) == 0 { -1 } else { saves.last_s.load(Relaxed) };
    report.field("rdb_last_bgsave_time_sec", last_s);
    report.field("rdb_current_bgsave_time_sec", current_s(&saves.is_saving));
    report.field("rdb_saves", saves.count.load(Relaxed));
    report.field("rdb_longest_step_cpu_us", saves.longest_step_us.load(Relaxed));
    report.fixed(&[("rdb_last_cow_size", "0")]);
    report.field("rdb_last_load_keys_expired", loading.keys_expired.load(Relaxed));
    report.field("rdb_last_load_keys_loaded", loading.keys.load(Relaxed));
    report.field("aof_enabled", is_on(&log.is_on));
    report.field("aof_rewrite_in_progress", is_on(&log.is_rewriting));
    report.field("aof_rewrite_scheduled", is_on(&log.is_rewrite_scheduled));
    let rewrite_s = if log.rewrites.load(Relaxed) == 0 { -1 } else { log.rewrite_s.load(Relaxed) };
    report.field("aof_last_rewrite_time_sec", rewrite_s);
    report.field("aof_current_rewrite_time_sec", current_s(&log.is_rewriting));
    let failed = log.rewrites_failed.load(Relaxed);
    report.field("aof_last_bgrewrite_status", if failed > 0 { "err" } else { "ok" });
    report.field("aof_rewrites", log.rewrites.load(Relaxed));
    report.field("aof_rewrites_consecutive_failures", failed);
    report.field("aof_last_write_status", status(&log.has_failed));
    report.fixed(&[
        ("aof_last_cow_size", "0"),
        ("module_fork_in_progress", "0"),
        ("module_fork_last_cow_size", "0"),
        ("slot_migration_fork_in_progress", "0"),
    ]);
    if log.is_on.load(Relaxed) {
        report.field("aof_current_size", log.bytes.load(Relaxed));
        report.field("aof_base_size", log.base_bytes.load(Relaxed));
        report.fixed(&[("aof_pending_rewrite", "0")]);
        report.field("aof_buffer_length", engine.keyspace.backlog_bytes());
        report.field("aof_pending_bio_fsync", 0);
        report.field("aof_delayed_fsync", log.syncs_late.load(Relaxed));
        report.field("aof_unsynced_bytes", log.unsynced_bytes.load(Relaxed));
        report.field("aof_syncs", log.syncs.load(Relaxed));
    }
}

pub(super) fn stats(engine: &Engine, report: &mut Report, _now_ms: u64) {
    let stats = &engine.stats;
    let [commands, in_per_second, out_per_second] = stats.rates();
    let [bytes_in, bytes_out, reads, writes] = stats.traffic();
    let denials = |reason| engine.acl.denials(reason);
    let load = |figure: &std::sync::atomic::AtomicU64| figure.load(Relaxed);
    let kib = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    report.section("Stats");
    report.field("total_connections_received", load(&stats.connections));
    report.field("total_commands_processed", stats.commands());
    report.field("instantaneous_ops_per_sec", commands);
    report.field("total_net_input_bytes", bytes_in);
    report.field("total_net_output_bytes", bytes_out);
    report.fixed(&[
        ("total_net_repl_input_bytes", "0"),
        ("total_net_repl_output_bytes", "0"),
        ("total_net_cluster_slot_import_bytes", "0"),
        ("total_net_cluster_slot_export_bytes", "0"),
    ]);
    report.field("instantaneous_input_kbps", kib(in_per_second));
    report.field("instantaneous_output_kbps", kib(out_per_second));
    report.fixed(&[("instantaneous_input_repl_kbps", "0.00"), ("instantaneous_output_repl_kbps", "0.00")]);
    report.field("rejected_connections", load(&stats.rejected_connections));
    report.fixed(&[("sync_full", "0"), ("sync_partial_ok", "0"), ("sync_partial_err", "0")]);
    report.field("expired_keys", since_reset(engine, Counter::Expired));
    report.field("expired_fields", since_reset(engine, Counter::ExpiredFields));
    report.fixed(&[
        ("expired_stale_perc", "0.00"),
        ("expired_keys_with_volatile_items_stale_perc", "0.00"),
        ("expired_time_cap_reached_count", "0"),
        ("expire_cycle_cpu_milliseconds", "0"),
    ]);
    let [step_us, step_cpu_us] = stats.longest_step.us();
    report.field("background_step_max_us", step_us);
    report.field("background_step_max_cpu_us", step_cpu_us);
    report.field("evicted_keys", since_reset(engine, Counter::Evicted));
    report.field("evicted_clients", 0);
    report.field("evicted_scripts", load(&engine.scripts.evicted));
    report.field("script_undeclared_locks", load(&engine.scripts.undeclared));
    report.field("script_undeclared_reruns", load(&engine.scripts.reruns));
    report.field("total_eviction_exceeded_time", 0);
    report.field("current_eviction_exceeded_time", 0);
    report.field("keyspace_hits", since_reset(engine, Counter::Hits));
    report.field("keyspace_misses", since_reset(engine, Counter::Misses));
    let [channels, patterns, shard_channels] = subscriptions(engine);
    report.field("pubsub_channels", channels);
    report.field("pubsub_patterns", patterns);
    report.field("pubsubshard_channels", shard_channels);
    report.fixed(&[
        ("latest_fork_usec", "0"),
        ("total_forks", "0"),
        ("migrate_cached_sockets", "0"),
        ("slave_expires_tracked_keys", "0"),
        ("active_defrag_hits", "0"),
        ("active_defrag_misses", "0"),
        ("active_defrag_key_hits", "0"),
        ("active_defrag_key_misses", "0"),
        ("total_active_defrag_time", "0"),
        ("current_active_defrag_time", "0"),
    ]);
    report.field("tracking_total_keys", engine.tracking.key_count());
    report.field("tracking_total_items", engine.tracking.item_count());
    report.field("tracking_total_prefixes", engine.tracking.prefix_count());
    report.field("unexpected_error_replies", 0);
    report.field("total_error_replies", stats.errors());
    report.field("dump_payload_sanitizations", 0);
    report.field("total_reads_processed", reads);
    report.field("total_writes_processed", writes);
    report.fixed(&[
        ("io_threaded_reads_processed", "0"),
        ("io_threaded_writes_processed", "0"),
        ("io_threaded_freed_objects", "0"),
        ("io_threaded_accept_processed", "0"),
        ("io_threaded_poll_processed", "0"),
        ("io_threaded_total_prefetch_batches", "0"),
        ("io_threaded_total_prefetch_entries", "0"),
    ]);
    report.field("client_query_buffer_limit_disconnections", load(&stats.query_limit_closed));
    report.field("client_output_buffer_limit_disconnections", load(&stats.output_limit_closed));
    report.fixed(&[("reply_buffer_shrinks", "0"), ("reply_buffer_expands", "0")]);
    let ([ticks, tick_ns], [per_second, each_ns]) = (stats.ticks(), stats.tick_rates());
    report.field("eventloop_cycles", ticks);
    report.field("eventloop_duration_sum", tick_ns / 1000);
    report.field("eventloop_duration_cmd_sum", stats.command_ns() / 1000);
    let [tick_us, tick_cpu_us] = stats.longest_tick.us();
    report.field("eventloop_duration_max", tick_us);
    report.field("eventloop_duration_max_cpu", tick_cpu_us);
    report.field("instantaneous_eventloop_cycles_per_sec", per_second);
    report.field("instantaneous_eventloop_duration_usec", each_ns / 1000);
    report.field("acl_access_denied_auth", denials(Reason::Auth));
    report.field("acl_access_denied_cmd", denials(Reason::Command));
    report.field("acl_access_denied_key", denials(Reason::Key));
    report.field("acl_access_denied_channel", denials(Reason::Channel));
    report.field("acl_access_denied_tls_cert", 0);
    report.field("acl_access_denied_db", denials(Reason::Database));
}

pub(super) fn replication(engine: &Engine, report: &mut Report, _now_ms: u64) {
    report.section("Replication");
    report.fixed(&[
        ("role", "master"),
        ("connected_slaves", "0"),
        ("replicas_waiting_psync", "0"),
        ("master_failover_state", "no-failover"),
    ]);
    report.field("master_replid", &*engine.facts.replication_id.lock());
    report.fixed(&[
        ("master_replid2", "0000000000000000000000000000000000000000"),
        ("master_repl_offset", "0"),
        ("second_repl_offset", "-1"),
        ("repl_backlog_active", "0"),
    ]);
    report.field("repl_backlog_size", engine.config.values().get("repl-backlog-size").number);
    report.fixed(&[("repl_backlog_first_byte_offset", "0"), ("repl_backlog_histlen", "0")]);
}

pub(super) fn cluster(engine: &Engine, report: &mut Report, _now_ms: u64) {
    report.section("Cluster");
    report.field("cluster_enabled", u8::from(engine.is_cluster()));
}

/// The servers behind a gateway: sums, and a line for each.
pub(super) fn gateway(engine: &Engine, report: &mut Report, _: u64) {
    let Some(behind) = engine.behind.get() else { return };
    report.section("Gateway");
    let (figures, nodes) = (behind.figures(), behind.nodes());
    report.field("gateway_nodes", nodes.len());
    behind.of_all().into_iter().for_each(|(figure, value)| report.field(figure.name, value));
    for (place, figure) in figures.iter().enumerate() {
        report.field(figure.name, nodes.iter().map(|node| node.values[place]).sum::<u64>());
    }
    for (number, node) in nodes.iter().enumerate() {
        let mut line = format!("address={},state={}", node.address.replace(',', " "), node.state.name());
        for (figure, value) in figures.iter().zip(&node.values) {
            line += &format!(",{}={value}", figure.name.trim_start_matches("gateway_"));
        }
        report.field(&format!("gateway_node{number}"), line);
    }
}
