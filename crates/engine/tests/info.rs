//! INFO: sections and fields, what commands, errors and memory add up to, RESETSTAT.

mod support;

use support::{Bench, show};
use weft_engine::reply::Protocol;
use weft_protocol::Reply;
use weft_store::{Config, KeyHasher};

fn info(bench: &mut Bench, client: u32, sections: &str) -> String {
    let command = format!("INFO {sections}");
    match bench.one(client, command.trim_end()) {
        Reply::Verbatim(format, text) if &format == b"txt" => String::from_utf8(text).expect("text"),
        other => panic!("{other:?}"),
    }
}

fn titles(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("# ")).collect()
}

fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn sections() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let default = info(&mut bench, a, "");
    assert_eq!(
        titles(&default),
        [
            "Server",
            "Clients",
            "Memory",
            "Persistence",
            "Stats",
            "Replication",
            "CPU",
            "Modules",
            "TLS",
            "Errorstats",
            "Cluster",
            "Keyspace"
        ]
    );
    assert!(default.ends_with("# Keyspace\r\n") && default.contains("\r\n\r\n# Clients\r\n"));
    let all = info(&mut bench, a, "everything");
    assert_eq!(titles(&all).len(), 14);
    assert_eq!(titles(&info(&mut bench, a, "all")), titles(&all));
    assert_eq!(titles(&info(&mut bench, a, "keyspace CPU cpu nosuch")), ["CPU", "Keyspace"]);
    assert_eq!(titles(&info(&mut bench, a, "default commandstats")).len(), 13);
    assert_eq!(info(&mut bench, a, "nosuch"), "");
    for (name, expected) in [
        ("redis_version", "7.4.0"),
        ("server_name", "weft"),
        ("redis_mode", "standalone"),
        ("loading", "0"),
        ("role", "master"),
        ("maxmemory_policy", "noeviction"),
        ("aof_enabled", "0"),
        ("cluster_enabled", "0"),
        ("connected_clients", "1"),
    ] {
        assert_eq!(field(&all, name), expected, "{name}");
    }
    assert_eq!(field(&all, "run_id").len(), 40);
    assert!(field(&all, "used_memory_rss").parse::<u64>().expect("a number") > 1 << 20);
    // Every line is a title, a field or nothing.
    assert!(all.split("\r\n").all(|line| line.is_empty() || line.starts_with("# ") || line.contains(':')));
}

#[test]
fn commands_and_errors_are_counted() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    for command in ["SET k v", "GET k", "GET k", "LPUSH k x", "GET", "NOSUCH", "EXEC", "DEBUG SLEEP 0"] {
        bench.run(a, command);
    }
    let text = info(&mut bench, a, "commandstats errorstats stats latencystats");
    assert!(field(&text, "cmdstat_get").starts_with("calls=2,usec="), "{text}");
    assert!(field(&text, "cmdstat_get").ends_with(",rejected_calls=1,failed_calls=0"), "{text}");
    assert!(field(&text, "cmdstat_lpush").ends_with(",rejected_calls=0,failed_calls=1"), "{text}");
    assert_eq!(field(&text, "errorstat_WRONGTYPE"), "count=1");
    assert_eq!(field(&text, "errorstat_ERR"), "count=4");
    assert_eq!(field(&text, "total_error_replies"), "5");
    assert_eq!(field(&text, "total_commands_processed"), "6");
    assert_eq!(field(&text, "keyspace_hits"), "2");
    let percentiles = field(&text, "latency_percentiles_usec_get");
    assert!(percentiles.starts_with("p50=") && percentiles.contains(",p99.9="), "{percentiles}");
    bench.text(a, "CONFIG SET latency-tracking-info-percentiles 90");
    let text = info(&mut bench, a, "latencystats");
    assert!(field(&text, "latency_percentiles_usec_get").starts_with("p90="));
    assert_eq!(bench.text(a, "CONFIG RESETSTAT"), "OK");
    let text = info(&mut bench, a, "all");
    assert!(
        !text.contains("cmdstat_get")
            && !text.contains("errorstat_")
            && !text.contains("percentiles_usec_get")
    );
    assert_eq!((field(&text, "keyspace_hits"), field(&text, "total_error_replies")), ("0", "0"));
    bench.run(a, "GET k");
    let text = info(&mut bench, a, "all");
    assert!(field(&text, "cmdstat_get").starts_with("calls=1,"));
    assert_eq!(field(&text, "keyspace_hits"), "1");
}

#[test]
fn commands_of_a_transaction_are_counted() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    for command in ["MULTI", "SET k 1", "INCR k", "LPUSH k 1", "EXEC"] {
        bench.run(a, command);
    }
    let text = info(&mut bench, a, "commandstats errorstats latencystats");
    assert!(field(&text, "cmdstat_set").starts_with("calls=1,"));
    assert!(field(&text, "latency_percentiles_usec_incr").starts_with("p50="));
    assert!(field(&text, "cmdstat_incr").starts_with("calls=1,"));
    assert!(bench.text(a, "LATENCY HISTOGRAM incr").starts_with("{incr:{calls:1 "));
    assert!(field(&text, "cmdstat_exec").starts_with("calls=1,"));
    assert!(field(&text, "cmdstat_lpush").ends_with("failed_calls=1"));
    assert_eq!(field(&text, "errorstat_WRONGTYPE"), "count=1");
}

#[test]
fn keys_and_memory() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let before: u64 = field(&info(&mut bench, a, "memory"), "used_memory").parse().expect("a number");
    bench.run(a, "SET a 1");
    bench.run(a, "SET b 1 EX 100");
    bench.run_args(a, &[b"SET", b"large", &vec![b'x'; 100_000]]);
    let text = info(&mut bench, a, "memory keyspace");
    let after: u64 = field(&text, "used_memory").parse().expect("a number");
    assert!(after >= before + 100_000);
    assert_eq!(field(&text, "used_memory_peak"), after.to_string());
    assert!(field(&text, "db0").starts_with("keys=3,expires=1,"));
    assert!(!text.contains("db1:"));
    let usage: u64 = bench.text(a, "MEMORY USAGE large SAMPLES 5").parse().expect("a number");
    assert!((100_000..120_000).contains(&usage), "{usage}");
    bench.run(a, "DEL large");
    let text = info(&mut bench, a, "memory");
    assert_eq!(field(&text, "used_memory_peak"), after.to_string());
    assert!(field(&text, "used_memory").parse::<u64>().expect("a number") < after);
}

#[test]
fn rates_are_sampled() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    bench.engine.sample(bench.clock_ms());
    for _ in 0..20 {
        for _ in 0..50 {
            bench.run(a, "PING");
        }
        bench.pass(500);
        bench.engine.sample(bench.clock_ms());
    }
    assert_eq!(field(&info(&mut bench, a, "stats"), "instantaneous_ops_per_sec"), "100");
    bench.text(a, "CONFIG RESETSTAT");
    assert_eq!(field(&info(&mut bench, a, "stats"), "instantaneous_ops_per_sec"), "0");
}

#[test]
fn rounds_of_the_loop_are_added_up() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    bench.text(a, "CONFIG RESETSTAT");
    bench.engine.sample(bench.clock_ms());
    for _ in 0..20 {
        bench.engine.stats.workers[0].ticks.passed(10, 5_000);
        bench.pass(100);
        bench.engine.sample(bench.clock_ms());
    }
    let text = info(&mut bench, a, "stats");
    for (name, value) in [
        ("eventloop_cycles", "200"),
        ("eventloop_duration_sum", "1000"),
        ("instantaneous_eventloop_cycles_per_sec", "100"),
        ("instantaneous_eventloop_duration_usec", "5"),
    ] {
        assert_eq!(field(&text, name), value, "{name}");
    }
    bench.text(a, "DEBUG SLEEP 0");
    let took: u64 =
        field(&info(&mut bench, a, "stats"), "eventloop_duration_cmd_sum").parse().expect("a number");
    assert!(took > 0, "commands took no time");
}

#[test]
fn values_that_are_freed_later_are_counted() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    for key in ["one", "two"] {
        for start in (0..20_000).step_by(1000) {
            let members: Vec<String> = (start..start + 1000).map(|at| format!("member-{at}")).collect();
            bench.text(a, &format!("SADD {key} {}", members.join(" ")));
        }
    }
    bench.text(a, "SADD small a b c");
    bench.text(a, "UNLINK one two small");
    let text = info(&mut bench, a, "memory");
    assert_eq!((field(&text, "lazyfree_pending_objects"), field(&text, "lazyfreed_objects")), ("2", "0"));
    bench.maintain();
    let text = info(&mut bench, a, "memory");
    assert_eq!((field(&text, "lazyfree_pending_objects"), field(&text, "lazyfreed_objects")), ("0", "2"));
    bench.text(a, "CONFIG RESETSTAT");
    assert_eq!(field(&info(&mut bench, a, "memory"), "lazyfreed_objects"), "0");
}

#[test]
fn what_compaction_has_done_is_told() {
    // Few shards, which have several spans each.
    let config = Config { shards: 16, hasher: KeyHasher::with_seed(1), ..Config::default() };
    let mut bench = Bench::of(support::engine_of(config, 1), 0);
    let a = bench.connect(Protocol::Resp3);
    let moved = |bench: &mut Bench| -> Vec<u64> {
        let text = info(bench, a, "memory");
        let fields = ["compaction_moved_entries", "compaction_moved_bytes", "compaction_returned_bytes"];
        fields.iter().map(|name| field(&text, name).parse().expect("a number")).collect()
    };
    let value = "v".repeat(200);
    for at in 0..20_000 {
        bench.text(a, &format!("SET key:{at} {value}"));
    }
    let before = moved(&mut bench);
    assert_eq!(before[0], 0, "nothing is sparse: {before:?}");
    for at in (0..20_000).filter(|at| at % 8 != 0) {
        bench.text(a, &format!("DEL key:{at}"));
    }
    bench.maintain();
    let after = moved(&mut bench);
    assert!(after[0] > 0 && after[1] >= after[0] * 200 && after[2] > 1 << 20, "{after:?}");
    bench.text(a, "CONFIG RESETSTAT");
    assert_eq!(moved(&mut bench), [0, 0, 0]);
}

#[test]
fn who_is_there() {
    let mut bench = Bench::new();
    let clients: Vec<u32> = (0..3).map(|_| bench.connect(Protocol::Resp3)).collect();
    bench.run(clients[0], "BLPOP list 0");
    bench.run(clients[1], "WATCH a b");
    let text = info(&mut bench, clients[2], "clients");
    for (name, expected) in [
        ("connected_clients", "3"),
        ("blocked_clients", "1"),
        ("watching_clients", "1"),
        ("total_watched_keys", "2"),
    ] {
        assert_eq!(field(&text, name), expected, "{name}");
    }
    assert!(show(&bench.one(clients[2], "CONFIG GET maxclients")).contains("10000"));
}

/// The version that INFO and HELLO say is a promise (ADR 0029).
#[test]
fn what_redis_7_4_added_is_served() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    for (command, reply) in [
        ("XADD s 1-1 a b", "1-1"),
        ("XADD s 2-1 a c", "2-1"),
        ("XREAD STREAMS s +", "{s:[[2-1 [a c]]]}"),
        ("HSET h f v", "1"),
        ("HSCAN h 0 NOVALUES", "[0 [f]]"),
        ("HEXPIRE h 100 FIELDS 1 f", "[1]"),
        ("HTTL h FIELDS 2 f none", "[100 -2]"),
        ("HPERSIST h FIELDS 1 f", "[1]"),
        ("CLIENT KILL MAXAGE 100000", "0"),
    ] {
        assert_eq!(bench.text(a, command), reply, "{command}");
    }
}
