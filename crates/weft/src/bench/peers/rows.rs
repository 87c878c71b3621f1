//! The rows of the table: what is measured and which ratio to Valkey is asked for. Owns the list.

use super::super::cases::{self, Case, Setup};
use super::super::template::{DATA, RANDOM};

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: &'static str,
    pub(super) label: &'static str,
    pub(super) group: Group,
    /// The command, with `__rand_int__` and `__data__`.
    pub(super) command: String,
    /// Connections, or channels altogether where `channels` is more than 1.
    pub(super) clients: u32,
    /// Channels on each RESPB connection; over RESP each client has a connection.
    pub(super) channels: u32,
    pub(super) pipeline: u32,
    pub(super) value_bytes: usize,
    pub(super) keys: u64,
    /// What must be there before each round; of the first times, this many for each request that is measured.
    pub(super) setup: Vec<Setup>,
    /// Elements that a request takes away: the run ends with them, not with its time.
    pub(super) consumes: bool,
    /// The greatest ratio to Valkey that is asked for: RESP, RESPB.
    pub(super) targets: (Option<f64>, Option<f64>),
}

/// Which table a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Strings, pipelines, channels.
    Table,
    /// Other types.
    Types,
}

/// Keys of most rows.
const KEYS: u64 = 100_000;
/// Keys of the row that does not fit into caches.
const MANY_KEYS: u64 = 10_000_000;
/// Elements that rows which take elements away begin with, for a second.
pub(super) const ELEMENTS: u64 = 2_000_000;

fn row(id: &'static str, label: &'static str, command: &str, targets: (f64, f64)) -> Row {
    Row {
        id,
        label,
        group: Group::Table,
        command: command.to_string(),
        clients: 50,
        channels: 1,
        pipeline: 1,
        value_bytes: 16,
        keys: KEYS,
        setup: Vec::new(),
        consumes: false,
        targets: (Some(targets.0), Some(targets.1)),
    }
}

fn repeated(name: &str, part: &str, times: usize) -> String {
    format!("{name}{}", format!(" {part}").repeat(times))
}

/// The table of strings, pipelines and channels.
pub(super) fn table() -> Vec<Row> {
    let get = format!("GET key:{RANDOM}");
    let set = format!("SET key:{RANDOM} {DATA}");
    let mget = repeated("MGET", &format!("key:{RANDOM}"), 10);
    let mset = repeated("MSET", &format!("key:{RANDOM} {DATA}"), 10);
    let one_kb = |row: Row| Row { clients: 128, pipeline: 128, value_bytes: 1024, ..row };
    vec![
        row("get-1", "GET 16 B, 50 clients, pipeline 1", &get, (0.80, 0.80)),
        row("set-1", "SET 16 B, 50 clients, pipeline 1", &set, (0.80, 0.80)),
        Row { pipeline: 16, ..row("get-16", "GET 16 B, 50 clients, pipeline 16", &get, (0.50, 0.42)) },
        Row { pipeline: 100, ..row("get-100", "GET 16 B, 50 clients, pipeline 100", &get, (0.30, 0.22)) },
        Row { pipeline: 100, ..row("set-100", "SET 16 B, 50 clients, pipeline 100", &set, (0.36, 0.28)) },
        one_kb(row("get-1k", "GET 1 KB, 128 clients, pipeline 128", &get, (0.55, 0.50))),
        one_kb(row("set-1k", "SET 1 KB, 128 clients, pipeline 128", &set, (0.65, 0.60))),
        Row {
            pipeline: 100,
            keys: MANY_KEYS,
            ..row("get-10m", "GET 16 B, 10 million keys uniform, pipeline 100", &get, (0.30, 0.25))
        },
        Row { pipeline: 16, ..row("mset", "MSET of 10 keys, pipeline 16", &mset, (0.40, 0.32)) },
        Row { pipeline: 16, ..row("mget", "MGET of 10 keys, pipeline 16", &mget, (0.40, 0.32)) },
        Row {
            clients: 10,
            pipeline: 1000,
            keys: 0,
            ..row("ping", "PING, 10 clients, pipeline 1000", "PING", (0.15, 0.12))
        },
        Row {
            clients: 2000,
            channels: 500,
            targets: (None, Some(0.06)),
            ..row("mux", "GET 16 B, 2,000 clients, pipeline 1; RESPB: 4 connections", &get, (0.0, 0.0))
        },
    ]
}

/// The table of the other types.
pub(super) fn types() -> Vec<Row> {
    let base = |id: &'static str, label: &'static str, command: &str| Row {
        group: Group::Types,
        pipeline: 100,
        keys: KEYS,
        ..row(id, label, command, (0.45, 0.45))
    };
    let before = |times: u64, command: String| Setup {
        argv: command.split_whitespace().map(str::to_string).collect(),
        times,
    };
    let clear = |key: &str| before(1, format!("DEL {key}"));
    let grows =
        |id, label, command: &str, key: &str| Row { setup: vec![clear(key)], ..base(id, label, command) };
    let takes = |id, label, command: &str, key: &str, fill: String| Row {
        setup: vec![clear(key), before(ELEMENTS, fill)],
        consumes: true,
        ..base(id, label, command)
    };
    let reads = |id, label, command: &str, key: &str, times: u64, fill: String| Row {
        setup: vec![clear(key), before(times, fill)],
        ..base(id, label, command)
    };
    vec![
        grows("lpush", "LPUSH", &format!("LPUSH mylist {DATA}"), "mylist"),
        takes("rpop", "RPOP", "RPOP mylist", "mylist", format!("RPUSH mylist {DATA}")),
        grows("sadd", "SADD", &format!("SADD myset element:{RANDOM}"), "myset"),
        takes("spop", "SPOP", "SPOP myset", "myset", format!("SADD myset element:{RANDOM}")),
        grows("hset", "HSET", &format!("HSET myhash element:{RANDOM} {DATA}"), "myhash"),
        grows("zadd", "ZADD", &format!("ZADD myzset {RANDOM} element:{RANDOM}"), "myzset"),
        takes(
            "zpopmin",
            "ZPOPMIN",
            "ZPOPMIN myzset",
            "myzset",
            format!("ZADD myzset {RANDOM} element:{RANDOM}"),
        ),
        grows("xadd", "XADD", &format!("XADD mystream * myfield {DATA}"), "mystream"),
        base("incr", "INCR", &format!("INCR counter:{RANDOM}")),
        reads(
            "lrange-100",
            "LRANGE_100",
            "LRANGE mylist 0 99",
            "mylist",
            600,
            format!("RPUSH mylist {DATA}"),
        ),
        reads(
            "lrange-600",
            "LRANGE_600",
            "LRANGE mylist 0 599",
            "mylist",
            600,
            format!("RPUSH mylist {DATA}"),
        ),
        reads(
            "hgetall",
            "HGETALL of 50 fields",
            "HGETALL myhash",
            "myhash",
            50,
            format!("HSET myhash element:{RANDOM} {DATA}"),
        ),
        reads(
            "zrange",
            "ZRANGE of 100",
            "ZRANGE myzset 0 99",
            "myzset",
            100,
            format!("ZADD myzset {RANDOM} element:{RANDOM}"),
        ),
        reads(
            "smembers",
            "SMEMBERS of 100",
            "SMEMBERS myset",
            "myset",
            100,
            format!("SADD myset element:{RANDOM}"),
        ),
    ]
}

/// Small collections whose memory is compared: what makes one of ten elements of 16 bytes.
pub(super) fn collections() -> Vec<(&'static str, String)> {
    let elements = |name: &str, part: &dyn Fn(usize) -> String| {
        let parts: Vec<String> = (0..10).map(part).collect();
        format!("{name}:{RANDOM} {}", parts.join(" "))
    };
    vec![
        (
            "hash, field and value 8 bytes each",
            elements("HSET hash", &|i| format!("field:{i:02} value:{i:02}")),
        ),
        ("set", elements("SADD set", &|i| format!("element:{i:08}"))),
        ("sorted set", elements("ZADD zset", &|i| format!("{i}.5 element:{i:08}"))),
        ("list", elements("RPUSH list", &|i| format!("element:{i:08}"))),
    ]
}

impl Row {
    pub(super) fn argv(&self) -> Vec<String> {
        self.command.split(' ').map(str::to_string).collect()
    }

    pub(super) fn case(&self) -> Case {
        Case { label: self.label.to_string(), ..cases::single(&self.argv()) }
    }

    /// Whether its requests read the keys that are stored before.
    pub(super) fn reads_keys(&self) -> bool {
        self.command.starts_with("GET") || self.command.starts_with("MGET")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_different_names() {
        let mut ids: Vec<&str> = table().iter().chain(&types()).map(|row| row.id).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(count >= 26);
        let mset = table().into_iter().find(|row| row.id == "mset").unwrap();
        assert_eq!(mset.argv().len(), 21);
        for (_, command) in collections() {
            assert!(command.split(' ').count() >= 12, "{command}");
        }
    }
}
