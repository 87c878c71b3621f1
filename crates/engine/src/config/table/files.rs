//! Owns: directives about the process, its files, its log and persistence.

use std::sync::atomic::Ordering::Relaxed;

use super::{ANY, INT};
use crate::config::directive::{Directive, Kind, int, memory, switch, text, word};
use crate::config::settings::SYNCS;

const SIGNAL: &[&str] = &["default", "save", "nosave", "now", "force", "safe", "failover"];

pub(super) const LIST: &[Directive] = &[
    // The process.
    switch("daemonize", "no").at_start(),
    word("supervised", &["upstart", "systemd", "auto", "no"], "no")
        .at_start()
        .only(&["no", "auto", "systemd"], "with systemd use a unit with Type=notify, whatever this says"),
    text("pidfile", "").at_start().server(),
    Directive::new("dir", Kind::Folder, ".").protected(),
    switch("set-proc-title", "yes").at_start(),
    text("proc-title-template", "{title} {listen-addr} {server-mode}"),
    text("server-cpulist", "").alias("server_cpulist").at_start(),
    text("bio-cpulist", "").alias("bio_cpulist").at_start(),
    text("aof-rewrite-cpulist", "").alias("aof_rewrite_cpulist").at_start(),
    text("bgsave-cpulist", "").alias("bgsave_cpulist").at_start(),
    switch("disable-thp", "yes").at_start(),
    word("oom-score-adj", &["no", "yes", "relative", "absolute"], "no")
        .only(&["no"], "set it in the service manager"),
    Directive::new("oom-score-adj-values", Kind::OomScores, "0 200 800"),
    switch("jemalloc-bg-thread", "yes"),
    switch("crash-log-enabled", "yes"),
    switch("crash-memcheck-enabled", "yes"),
    switch("use-exit-on-panic", "no").hidden(),
    switch("enable-debug-assert", "no").at_start().hidden(),
    int("watchdog-period", (0, INT), "0").hidden(),
    text("debug-context", "").hidden(),
    text("ignore-warnings", ""),
    text("locale-collate", ""),
    text("hash-seed", "").at_start().only(&[""], "the seed is drawn at each start"),
    // HELLO and INFO read it as it is.
    text("availability-zone", "").acts(|_, _| {}),
    switch("always-show-logo", "no").at_start(),
    Directive::new("shutdown-on-sigint", Kind::Flags(SIGNAL), "default"),
    Directive::new("shutdown-on-sigterm", Kind::Flags(SIGNAL), "default"),
    int("shutdown-timeout", (0, INT), "10")
        .acts(|e, v| e.settings.shutdown_timeout_s.store(v.u32(), Relaxed)),
    int("io-threads", (1, 256), "1"),
    switch("io-threads-do-reads", "no"),
    switch("io-threads-always-active", "no").hidden(),
    int("events-per-io-thread", (0, INT), "2").hidden(),
    int("prefetch-batch-max-size", (0, 128), "16"),
    int("min-io-threads-avoid-copy-reply", (0, INT), "7").hidden(),
    int("min-string-size-avoid-copy-reply", (0, INT), "16384").hidden(),
    int("min-string-size-avoid-copy-reply-threaded", (0, INT), "65536").hidden(),
    // The log.
    word("loglevel", &["debug", "verbose", "notice", "warning", "nothing"], "notice").server(),
    text("logfile", "").at_start().server(),
    word("log-format", &["legacy", "logfmt", "json"], "legacy").server(),
    word("log-timestamp-format", &["legacy", "iso8601", "milliseconds"], "legacy").server(),
    switch("hide-user-data-from-log", "yes"),
    switch("syslog-enabled", "no").at_start().only(&["no"], "let the service manager keep the log"),
    text("syslog-ident", "weft").at_start(),
    word(
        "syslog-facility",
        &["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"],
        "local0",
    )
    .at_start(),
    // Snapshots.
    Directive::new("save", Kind::SavePoints, "").acts(|e, v| {
        e.settings.has_save_points.store(!v.text.is_empty(), Relaxed);
        e.then.look_at_snapshots();
    }),
    Directive::new("dbfilename", Kind::Text("dbfilename"), "dump.weft").protected().server(),
    switch("rdbcompression", "yes"),
    switch("rdbchecksum", "yes").at_start(),
    switch("rdb-del-sync-files", "no"),
    switch("rdb-save-incremental-fsync", "yes"),
    word("rdb-version-check", &["strict", "relaxed"], "strict")
        .acts(|e, v| e.settings.any_rdb_version.store(*v.text == *b"relaxed", Relaxed)),
    int("rdb-key-save-delay", (-INT - 1, INT), "0").hidden(),
    int("key-load-delay", (-INT - 1, INT), "0").hidden(),
    int("loading-process-events-interval-bytes", (1024, INT), "2097152").hidden(),
    switch("stop-writes-on-bgsave-error", "yes").acts(|e, v| {
        e.settings.stop_writes.store(*v.text == *b"yes", Relaxed);
        e.then.look_at_snapshots();
    }),
    word("sanitize-dump-payload", &["no", "yes", "clients"], "no"),
    // The append-only file.
    switch("appendonly", "no").acts(|e, v| e.then.follow_appendonly(*v.text == *b"yes")),
    Directive::new("appendfilename", Kind::Text("appendfilename"), "appendonly.aof").at_start().server(),
    Directive::new("appenddirname", Kind::Text("appenddirname"), "appendonlydir").at_start().server(),
    word("appendfsync", &["everysec", "always", "no"], "everysec").acts(|e, v| {
        let place = SYNCS.iter().position(|name| name.as_bytes() == &v.text[..]);
        e.then.follow_appendfsync(place.unwrap_or(1) as u8);
    }),
    switch("strict-reads", "yes").acts(|e, v| e.settings.strict_reads.store(*v.text == *b"yes", Relaxed)),
    switch("no-appendfsync-on-rewrite", "no"),
    int("auto-aof-rewrite-percentage", (0, INT), "100").server(),
    memory("auto-aof-rewrite-min-size", (0, ANY), "67108864").server(),
    switch("aof-load-truncated", "yes"),
    switch("aof-use-rdb-preamble", "yes"),
    switch("aof-timestamp-enabled", "no"),
    switch("aof-rewrite-incremental-fsync", "yes"),
    switch("aof-disable-auto-gc", "no").hidden(),
    // Scripts.
    int("busy-reply-threshold", (0, ANY), "5000")
        .alias("lua-time-limit")
        .acts(|e, v| e.settings.busy_reply_ms.store(v.number as u64, Relaxed)),
    switch("lua-enable-insecure-api", "no").alias("lua-enable-deprecated-api").protected().hidden().acts(
        |e, v| {
            // States of Lua are made anew with it, and scripts are forgotten, as in Valkey.
            if e.settings.lua_insecure.swap(v.is_on(), Relaxed) != v.is_on() {
                e.then.forget_scripts();
            }
        },
    ),
    memory("script-memory-limit", (1 << 20, ANY), "268435456")
        .acts(|e, v| e.script_memory.set_limit(v.number as usize)),
    switch("script-kill-undo", "no").acts(|e, v| e.settings.script_kill_undo.store(v.number != 0, Relaxed)),
];
