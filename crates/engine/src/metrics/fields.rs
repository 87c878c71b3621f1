//! Owns: what redis_exporter calls the fields of INFO. `tests/e2e/test_metrics.py` compares it with the
//! program itself.

use super::text::Kind::{self, Counter, Gauge};

/// What a field's figure is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// That of the name.
    AsItIs,
    /// The name has seconds.
    Microseconds,
}

macro_rules! fields {
    ($($field:literal $name:literal $kind:ident $(/ $unit:ident)?;)*) => {
        /// The field, its name here, what it is.
        pub(super) const FIELDS: &[(&str, &str, Kind, Unit)] =
            &[$(($field, concat!("redis_", $name), $kind, fields!(@ $($unit)?))),*];
    };
    (@) => { Unit::AsItIs };
    (@ $unit:ident) => { Unit::$unit };
}

fields! {
    "uptime_in_seconds" "uptime_in_seconds" Gauge;
    "process_id" "process_id" Gauge;
    "io_threads_active" "io_threads_active" Gauge;

    "connected_clients" "connected_clients" Gauge;
    "blocked_clients" "blocked_clients" Gauge;
    "tracking_clients" "tracking_clients" Gauge;
    "pubsub_clients" "pubsub_clients" Gauge;
    "watching_clients" "watching_clients" Gauge;
    "clients_in_timeout_table" "clients_in_timeout_table" Gauge;
    "total_watched_keys" "total_watched_keys" Gauge;
    "total_blocking_keys" "total_blocking_keys" Gauge;
    "total_blocking_keys_on_nokey" "total_blocking_keys_on_nokey" Gauge;
    "cluster_connections" "cluster_connections" Gauge;
    "client_recent_max_input_buffer" "client_recent_max_input_buffer_bytes" Gauge;
    "client_recent_max_output_buffer" "client_recent_max_output_buffer_bytes" Gauge;

    "used_memory" "memory_used_bytes" Gauge;
    "used_memory_rss" "memory_used_rss_bytes" Gauge;
    "used_memory_peak" "memory_used_peak_bytes" Gauge;
    "used_memory_lua" "memory_used_lua_bytes" Gauge;
    "used_memory_vm_eval" "memory_used_vm_eval_bytes" Gauge;
    "used_memory_vm_functions" "memory_used_vm_functions" Gauge;
    "used_memory_scripts" "memory_used_scripts_bytes" Gauge;
    "used_memory_scripts_eval" "memory_used_scripts_eval_bytes" Gauge;
    "used_memory_functions" "memory_used_functions_bytes" Gauge;
    "used_memory_vm_total" "memory_used_vm_total" Gauge;
    "used_memory_overhead" "memory_used_overhead_bytes" Gauge;
    "used_memory_startup" "memory_used_startup_bytes" Gauge;
    "used_memory_dataset" "memory_used_dataset_bytes" Gauge;
    "maxmemory" "memory_max_bytes" Gauge;
    "total_system_memory" "total_system_memory_bytes" Gauge;
    "allocator_active" "allocator_active_bytes" Gauge;
    "allocator_allocated" "allocator_allocated_bytes" Gauge;
    "allocator_resident" "allocator_resident_bytes" Gauge;
    "allocator_frag_ratio" "allocator_frag_ratio" Gauge;
    "allocator_frag_bytes" "allocator_frag_bytes" Gauge;
    "allocator_rss_ratio" "allocator_rss_ratio" Gauge;
    "allocator_rss_bytes" "allocator_rss_bytes" Gauge;
    "mem_fragmentation_ratio" "mem_fragmentation_ratio" Gauge;
    "mem_fragmentation_bytes" "mem_fragmentation_bytes" Gauge;
    "mem_clients_slaves" "mem_clients_slaves" Gauge;
    "mem_clients_normal" "mem_clients_normal" Gauge;
    "mem_not_counted_for_evict" "mem_not_counted_for_eviction_bytes" Gauge;
    "lazyfree_pending_objects" "lazyfree_pending_objects" Gauge;
    "lazyfreed_objects" "lazyfreed_objects" Gauge;
    "active_defrag_running" "active_defrag_running" Gauge;
    "number_of_cached_scripts" "number_of_cached_scripts" Gauge;
    "number_of_functions" "number_of_functions" Gauge;
    "number_of_libraries" "number_of_libraries" Gauge;

    "loading" "loading_dump_file" Gauge;
    "async_loading" "async_loading" Gauge;
    "rdb_changes_since_last_save" "rdb_changes_since_last_save" Gauge;
    "rdb_bgsave_in_progress" "rdb_bgsave_in_progress" Gauge;
    "rdb_last_save_time" "rdb_last_save_timestamp_seconds" Gauge;
    "rdb_last_bgsave_status" "rdb_last_bgsave_status" Gauge;
    "rdb_last_bgsave_time_sec" "rdb_last_bgsave_duration_sec" Gauge;
    "rdb_current_bgsave_time_sec" "rdb_current_bgsave_duration_sec" Gauge;
    "rdb_saves" "rdb_saves_total" Counter;
    "rdb_last_cow_size" "rdb_last_cow_size_bytes" Gauge;
    "rdb_last_load_keys_expired" "rdb_last_load_expired_keys" Gauge;
    "rdb_last_load_keys_loaded" "rdb_last_load_loaded_keys" Gauge;
    "aof_enabled" "aof_enabled" Gauge;
    "aof_rewrite_in_progress" "aof_rewrite_in_progress" Gauge;
    "aof_rewrite_scheduled" "aof_rewrite_scheduled" Gauge;
    "aof_last_rewrite_time_sec" "aof_last_rewrite_duration_sec" Gauge;
    "aof_current_rewrite_time_sec" "aof_current_rewrite_duration_sec" Gauge;
    "aof_last_cow_size" "aof_last_cow_size_bytes" Gauge;
    "aof_current_size" "aof_current_size_bytes" Gauge;
    "aof_base_size" "aof_base_size_bytes" Gauge;
    "aof_pending_rewrite" "aof_pending_rewrite" Gauge;
    "aof_buffer_length" "aof_buffer_length" Gauge;
    "aof_pending_bio_fsync" "aof_pending_bio_fsync" Gauge;
    "aof_delayed_fsync" "aof_delayed_fsync" Gauge;
    "aof_last_bgrewrite_status" "aof_last_bgrewrite_status" Gauge;
    "aof_last_write_status" "aof_last_write_status" Gauge;
    "module_fork_in_progress" "module_fork_in_progress" Gauge;
    "module_fork_last_cow_size" "module_fork_last_cow_size" Gauge;

    "total_connections_received" "connections_received_total" Counter;
    "total_commands_processed" "commands_processed_total" Counter;
    "total_net_input_bytes" "net_input_bytes_total" Counter;
    "total_net_output_bytes" "net_output_bytes_total" Counter;
    "total_net_repl_input_bytes" "net_repl_input_bytes_total" Counter;
    "total_net_repl_output_bytes" "net_repl_output_bytes_total" Counter;
    "rejected_connections" "rejected_connections_total" Counter;
    "expired_keys" "expired_keys_total" Counter;
    "expired_fields" "expired_subkeys_total" Counter;
    "expired_stale_perc" "expired_stale_percentage" Gauge;
    "expired_time_cap_reached_count" "expired_time_cap_reached_total" Gauge;
    "expire_cycle_cpu_milliseconds" "expire_cycle_cpu_time_ms_total" Counter;
    "evicted_keys" "evicted_keys_total" Counter;
    "evicted_clients" "evicted_clients_total" Counter;
    "evicted_scripts" "evicted_scripts_total" Counter;
    "total_eviction_exceeded_time" "eviction_exceeded_time_ms_total" Counter;
    "current_eviction_exceeded_time" "current_eviction_exceeded_time_ms" Gauge;
    "keyspace_hits" "keyspace_hits_total" Counter;
    "keyspace_misses" "keyspace_misses_total" Counter;
    "pubsub_channels" "pubsub_channels" Gauge;
    "pubsub_patterns" "pubsub_patterns" Gauge;
    "pubsubshard_channels" "pubsubshard_channels" Gauge;
    "latest_fork_usec" "latest_fork_usec" Gauge;
    "latest_fork_usec" "latest_fork_seconds" Gauge / Microseconds;
    "migrate_cached_sockets" "migrate_cached_sockets_total" Gauge;
    "slave_expires_tracked_keys" "slave_expires_tracked_keys" Gauge;
    "active_defrag_hits" "defrag_hits" Gauge;
    "active_defrag_misses" "defrag_misses" Gauge;
    "active_defrag_key_hits" "defrag_key_hits" Gauge;
    "active_defrag_key_misses" "defrag_key_misses" Gauge;
    "tracking_total_keys" "tracking_total_keys" Gauge;
    "tracking_total_items" "tracking_total_items" Gauge;
    "tracking_total_prefixes" "tracking_total_prefixes" Gauge;
    "unexpected_error_replies" "unexpected_error_replies" Counter;
    "total_error_replies" "total_error_replies" Counter;
    "dump_payload_sanitizations" "dump_payload_sanitizations" Counter;
    "total_reads_processed" "total_reads_processed" Counter;
    "total_writes_processed" "total_writes_processed" Counter;
    "io_threaded_reads_processed" "io_threaded_reads_processed" Counter;
    "io_threaded_writes_processed" "io_threaded_writes_processed" Counter;
    "client_query_buffer_limit_disconnections" "client_query_buffer_limit_disconnections_total" Counter;
    "client_output_buffer_limit_disconnections" "client_output_buffer_limit_disconnections_total" Counter;
    "reply_buffer_shrinks" "reply_buffer_shrinks_total" Counter;
    "reply_buffer_expands" "reply_buffer_expands_total" Counter;
    "eventloop_cycles" "eventloop_cycles_total" Counter;
    "eventloop_duration_sum" "eventloop_duration_sum_usec_total" Counter;
    "eventloop_duration_cmd_sum" "eventloop_duration_cmd_sum_usec_total" Counter;
    "instantaneous_eventloop_cycles_per_sec" "instantaneous_eventloop_cycles_per_sec" Gauge;
    "instantaneous_eventloop_duration_usec" "instantaneous_eventloop_duration_usec" Gauge;
    "acl_access_denied_auth" "acl_access_denied_auth_total" Counter;
    "acl_access_denied_cmd" "acl_access_denied_cmd_total" Counter;
    "acl_access_denied_key" "acl_access_denied_key_total" Counter;
    "acl_access_denied_channel" "acl_access_denied_channel_total" Counter;

    "connected_slaves" "connected_slaves" Gauge;
    "repl_backlog_size" "replication_backlog_bytes" Gauge;
    "repl_backlog_active" "repl_backlog_is_active" Gauge;
    "repl_backlog_first_byte_offset" "repl_backlog_first_byte_offset" Gauge;
    "repl_backlog_histlen" "repl_backlog_history_bytes" Gauge;
    "master_repl_offset" "master_repl_offset" Gauge;
    "second_repl_offset" "second_repl_offset" Gauge;
    "sync_full" "replica_resyncs_full" Gauge;
    "sync_partial_ok" "replica_partial_resync_accepted" Gauge;
    "sync_partial_err" "replica_partial_resync_denied" Gauge;

    "used_cpu_sys" "cpu_sys_seconds_total" Counter;
    "used_cpu_user" "cpu_user_seconds_total" Counter;
    "used_cpu_sys_children" "cpu_sys_children_seconds_total" Counter;
    "used_cpu_user_children" "cpu_user_children_seconds_total" Counter;
    "used_cpu_sys_main_thread" "cpu_sys_main_thread_seconds_total" Counter;
    "used_cpu_user_main_thread" "cpu_user_main_thread_seconds_total" Counter;

    "cluster_enabled" "cluster_enabled" Gauge;
}
