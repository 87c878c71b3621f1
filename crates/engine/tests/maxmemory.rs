//! `maxmemory` with every policy: what goes, what stays, and what is refused.

mod support;

use support::{Bench, cpu_ns};
use weft_engine::reply::Protocol;

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.";
/// A value of such a length makes the fixed part of memory small beside the keys.
const VALUE_BYTES: usize = 1000;

struct Full {
    bench: Bench,
    client: u32,
    value: Vec<u8>,
}

impl Full {
    /// A server with `keys` keys `k:0 …`, of which those of even number expire, and a limit at what they take.
    fn new(policy: &str, keys: usize) -> Self {
        let (bench, client) = Bench::with(Protocol::Resp3);
        let mut full = Self { bench, client, value: vec![b'x'; VALUE_BYTES] };
        // The access mode is to be that of the policy from the first access on.
        full.run(&format!("CONFIG SET maxmemory-policy {policy} maxmemory-samples 16"));
        for number in 0..keys {
            full.set(number);
            if number % 2 == 0 {
                full.run(&format!("EXPIRE k:{number} {}", 100_000 + number));
            }
        }
        let used = full.bench.engine.keyspace.used_bytes();
        full.run(&format!("CONFIG SET maxmemory {used}"));
        full
    }
    fn run(&mut self, command: &str) -> String {
        self.bench.text(self.client, command)
    }
    fn set(&mut self, number: usize) -> String {
        let key = format!("k:{number}");
        let reply = self.bench.run_args(self.client, &[b"SET", key.as_bytes(), &self.value]).remove(0);
        support::show(&reply)
    }
    fn has(&mut self, number: usize) -> bool {
        self.run(&format!("EXISTS k:{number}")) == "1"
    }
    fn evicted(&self) -> i64 {
        self.bench.engine.keyspace.total(weft_store::Counter::Evicted)
    }
}

/// A limit that was lowered is kept also by who only sends messages.
#[test]
fn messages_in_a_batch_make_room() {
    for policy in ["noeviction", "allkeys-lru"] {
        let mut full = Full::new(policy, 200);
        full.run("CONFIG SET maxmemory 100kb");
        let list = (0..16).map(|at| format!("PUBLISH news {at}")).collect();
        let replies = full.bench.run_batch(&[(full.client, list)]).remove(0);
        assert!(replies.iter().all(|reply| support::show(reply) == "0"), "{policy}");
        assert_eq!(full.evicted() > 50, policy == "allkeys-lru", "{policy}: {}", full.evicted());
    }
}

#[test]
fn noeviction_refuses_what_needs_memory() {
    let mut full = Full::new("noeviction", 200);
    assert_eq!(full.set(1000), "OK", "memory is at the limit and not above it");
    assert_eq!(full.set(1001), OOM);
    assert_eq!(full.run("LPUSH list x"), OOM);
    let script: &[u8] = b"#!lua\nreturn 1";
    let refused = full.bench.run_args(full.client, &[b"EVAL", script, b"0"]);
    assert_eq!(support::show(&refused[0]), OOM);
    assert_eq!(full.run("GET k:1001"), "nil");
    assert_eq!(full.run("DEL k:1000"), "1");
    full.run("MULTI");
    assert_eq!(full.set(1001), "QUEUED");
    assert_eq!(full.run("EXEC"), "[OK]");
    full.run("MULTI");
    assert_eq!(full.set(1002), OOM);
    assert_eq!(full.run("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
    full.run("CONFIG SET maxmemory 0");
    assert_eq!(full.set(1003), "OK");
    assert_eq!(full.evicted(), 0);
}

#[test]
fn what_has_been_flushed_refuses_and_evicts_nothing() {
    for policy in ["noeviction", "allkeys-lru", "volatile-ttl"] {
        for flush in ["FLUSHALL", "FLUSHDB ASYNC"] {
            let mut full = Full::new(policy, 400);
            // Nobody maintains anything: who writes frees what he needs.
            assert_eq!(full.run(flush), "OK", "{policy} {flush}");
            let limit = full.bench.engine.keyspace.used_bytes() - 1;
            full.run(&format!("CONFIG SET maxmemory {limit}"));
            let evicted = full.evicted();
            for number in 0..380 {
                assert_eq!(full.set(number), "OK", "{policy} {flush} {number}");
            }
            assert_eq!(full.evicted(), evicted, "{policy} {flush}");
            let there = (0..380).filter(|number| full.has(*number)).count();
            assert_eq!(there, 380, "{policy} {flush}");
            // The limit holds as before.
            let more: Vec<String> = (1000..1100).map(|number| full.set(number)).collect();
            let used = full.bench.engine.keyspace.used_bytes();
            assert!(used <= limit + 2 * VALUE_BYTES, "{policy} {flush}: {used} of {limit}");
            let refused = more.iter().filter(|reply| *reply == OOM).count();
            assert_eq!(refused > 0, policy != "allkeys-lru", "{policy} {flush}: {refused}");
        }
    }
}

/// What a request stores that is looked at by itself is counted for those behind it in the batch.
#[test]
fn what_one_of_a_batch_has_stored_is_missing_behind_it() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    bench.run(client, "SET there value");
    let limit = bench.engine.keyspace.used_bytes() + 500_000;
    bench.text(client, &format!("CONFIG SET maxmemory {limit}"));
    let commands = ["SETRANGE long 1000000 x", "GET there", "SET short value", "INCR number", "GET there"];
    let replies = bench.run_batch(&[(client, commands.map(str::to_owned).into())]).remove(0);
    let replies: Vec<String> = replies.iter().map(support::show).collect();
    assert_eq!(replies, ["1000001", "value", OOM, OOM, "value"]);
}

/// Who empties a full stream may begin and take: consumers and what is handed out are refused far above the limit only.
#[test]
fn consumers_and_names_go_little_beyond_the_limit() {
    const NAME_BYTES: usize = 64 << 10;
    let beyond_bytes = 16 << 20;
    let name = |number: usize| format!("{number:08}{}", "x".repeat(NAME_BYTES - 8));
    let mut full = Full::new("noeviction", 1);
    full.run("CONFIG SET maxmemory 0");
    full.run("XGROUP CREATE s g $ MKSTREAM");
    full.run("XADD s 1-1 f v");
    full.run("SADD members m");
    let commands = [
        "XREADGROUP GROUP g @ STREAMS s 0",
        "XCLAIM s g @ 0 1-1",
        "XAUTOCLAIM s g @ 0 0",
        "RENAME k:0 @",
        "RENAMENX k:0 @",
        "SMOVE members @ m",
    ];
    let used = |full: &Full| full.bench.engine.keyspace.used_bytes();
    let at_limit = |full: &mut Full| {
        let limit = used(full) - 1;
        full.run(&format!("CONFIG SET maxmemory {limit}"));
        assert_eq!(full.run("XGROUP CREATECONSUMER s g c"), OOM);
        limit
    };

    let limit = at_limit(&mut full);
    let usage = |full: &mut Full| full.run("MEMORY USAGE s SAMPLES 0").parse::<usize>().unwrap();
    let before = (used(&full), usage(&mut full));
    let mut names = 0;
    while full.run(&commands[0].replace("@", &name(names))) != OOM {
        names += 1;
        assert!(names < 2 * beyond_bytes / NAME_BYTES, "no end");
    }
    // Names are counted, in the sum and for the key.
    let grown = (used(&full) - before.0, usage(&mut full) - before.1);
    assert_eq!(grown.0, grown.1);
    assert!((names * NAME_BYTES..names * (NAME_BYTES + 1024)).contains(&grown.0), "{names}: {grown:?}");
    let over = used(&full) - limit;
    assert!((beyond_bytes..beyond_bytes + 2 * NAME_BYTES).contains(&over), "{over}");

    // All others like it are refused too, in transactions and scripts as by themselves; what frees is not.
    for command in commands {
        let command = command.replace("@", &name(names));
        assert_eq!(full.run(&command), OOM, "{}", &command[..20]);
        full.run("MULTI");
        assert_eq!(full.run(&command), OOM);
        full.run("DISCARD");
    }
    let script = "return redis.pcall('RENAME','k:0',string.rep('n',100))";
    let reply = full.bench.run_args(full.client, &[b"EVAL", script.as_bytes(), b"0"]).remove(0);
    assert!(support::show(&reply).starts_with("-OOM"), "{}", support::show(&reply));
    full.run("CONFIG SET maxmemory 0");
    full.run("MULTI");
    assert_eq!(full.run(&commands[3].replace("@", &name(names))), "QUEUED");
    let other = full.bench.connect(Protocol::Resp3);
    full.bench.text(other, &format!("CONFIG SET maxmemory {limit}"));
    assert!(full.run("EXEC").starts_with("-EXECABORT"));
    for number in 0..4 {
        assert_eq!(full.run(&format!("XGROUP DELCONSUMER s g {}", name(number))), "0");
    }
    for command in commands {
        // Above the limit still, and no more far above.
        let reply = full.run(&command.replace("@", &command[..5]));
        assert!(!reply.starts_with('-') || reply == "-ERR no such key", "{command}: {reply}");
    }
    full.run("XGROUP DESTROY s g");
    assert!(used(&full) <= limit + 1024, "{} of {limit}", used(&full));
}

#[test]
fn every_other_policy_makes_room() {
    for policy in [
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        let mut full = Full::new(policy, 400);
        for number in 1000..1100 {
            assert_eq!(full.set(number), "OK", "{policy}");
        }
        let used = full.bench.engine.keyspace.used_bytes();
        let limit = full.bench.engine.settings.maxmemory_bytes.load(std::sync::atomic::Ordering::Relaxed);
        assert!(used <= limit + 2 * VALUE_BYTES, "{policy}: {used} of {limit}");
        assert!(full.evicted() >= 90, "{policy}: {}", full.evicted());
        let odd_gone = (0..400).filter(|number| number % 2 == 1 && !full.has(*number)).count();
        if policy.starts_with("volatile") {
            assert_eq!(odd_gone, 0, "{policy}: only keys that expire may go");
        } else {
            assert!(odd_gone > 10, "{policy}: {odd_gone}");
        }
    }
}

/// A value that is as large as many keys pushes out as many: the limit is kept, and scripts are not refused meanwhile.
#[test]
fn large_values_push_out_small_keys() {
    const LARGE_BYTES: usize = 64 << 10;
    let mut full = Full::new("allkeys-lru", 0);
    let client = full.client;
    for number in 0..20_000 {
        full.bench.run_args(client, &[b"SET", format!("s:{number}").as_bytes(), b"v"]);
    }
    let used = full.bench.engine.keyspace.used_bytes();
    full.run(&format!("CONFIG SET maxmemory {used}"));
    let large = vec![b'x'; LARGE_BYTES];
    let mut most = 0;
    for number in 0..10 {
        let before = full.evicted();
        let key = format!("l:{number}");
        let reply = full.bench.run_args(client, &[b"SET", key.as_bytes(), &large]).remove(0);
        assert_eq!(support::show(&reply), "OK", "{number}");
        most = most.max(full.evicted() - before);
    }
    assert!(most > 300, "{most} keys at once make room for {LARGE_BYTES} bytes");
    let script: &[u8] = b"for i = 1, 5 do redis.call('SET', KEYS[1] .. i, ARGV[1]) end return 'OK'";
    for number in 0..5 {
        let key = format!("e:{number}:");
        let reply = full.bench.run_args(client, &[b"EVAL", script, b"1", key.as_bytes(), &large]).remove(0);
        assert_eq!(support::show(&reply), "OK", "{number}");
    }
    while full.bench.engine.keyspace.used_bytes() > used {
        full.run("PING");
    }
}

#[test]
fn volatile_policies_refuse_when_nothing_expires() {
    let mut full = Full::new("volatile-lru", 100);
    for number in (0..100).step_by(2) {
        full.run(&format!("PERSIST k:{number}"));
    }
    let used = full.bench.engine.keyspace.used_bytes();
    full.run(&format!("CONFIG SET maxmemory {}", used - VALUE_BYTES));
    assert_eq!(full.set(1000), OOM);
    assert_eq!(full.evicted(), 0);
}

/// A server that is full of what stays refuses as fast under any policy, also where keys that expired, in all of its
/// shards, have gone long before their time.
#[test]
fn refusing_costs_no_search() {
    let mut full = Full::new("volatile-lru", 4000);
    for number in (0..4000).step_by(2) {
        full.run(&format!("PERSIST k:{number}"));
    }
    let used = full.bench.engine.keyspace.used_bytes();
    full.run(&format!("CONFIG SET maxmemory {}", used - VALUE_BYTES));
    let mut cost_ns = |policy: &str| {
        full.run(&format!("CONFIG SET maxmemory-policy {policy}"));
        let tries = (0..5).map(|_| {
            let began = cpu_ns();
            (0..100).for_each(|_| assert_eq!(full.set(9999), OOM));
            cpu_ns() - began
        });
        tries.min().expect("there are tries")
    };
    let (plain, searching) = (cost_ns("noeviction"), cost_ns("volatile-lru"));
    assert!(searching < 5 * plain, "{searching} ns beside {plain}");
}

#[test]
fn keys_in_use_stay_under_lru_and_lfu() {
    for policy in ["allkeys-lru", "allkeys-lfu"] {
        let mut full = Full::new(policy, 400);
        for round in 0..20 {
            full.bench.pass(60_000);
            for number in 0..50 {
                full.run(&format!("GET k:{number}"));
            }
            for number in 0..10 {
                full.set(1000 + round * 10 + number);
            }
        }
        let kept = (0..50).filter(|number| full.has(*number)).count();
        assert!(kept >= 45, "{policy}: {kept} of 50");
        assert!(full.evicted() >= 190, "{policy}");
    }
}

#[test]
fn soonest_to_expire_goes_first_under_ttl() {
    let mut full = Full::new("volatile-ttl", 400);
    for number in 1000..1050 {
        full.set(number);
    }
    let gone =
        |full: &mut Full, from: usize| (from..from + 100).filter(|n| n % 2 == 0 && !full.has(*n)).count();
    let (first, last) = (gone(&mut full, 0), gone(&mut full, 300));
    assert!(first > 3 * last.max(1), "{first} of the first, {last} of the last");
}

#[test]
fn the_policy_chooses_what_is_remembered() {
    let mut full = Full::new("allkeys-lfu", 10);
    assert_ne!(full.run("OBJECT FREQ k:1"), "nil");
    assert!(full.run("OBJECT IDLETIME k:1").starts_with("-ERR An LFU maxmemory policy is selected"));
    full.run("CONFIG SET maxmemory-policy allkeys-lru");
    assert!(full.run("OBJECT FREQ k:1").starts_with("-ERR An LFU maxmemory policy is not selected"));
    full.run("CONFIG SET maxmemory-policy volatile-lfu lfu-log-factor 0 lfu-decay-time 0");
    let mode = full.bench.engine.keyspace.access_mode();
    assert_eq!(mode, weft_store::AccessMode::Lfu { log_factor: 0, decay_min: 0 });
}

#[test]
fn programs_and_triggers_write_at_the_limit_of_a_cache() {
    // The machine may stall: time is not what this is about.
    const WRITES: &str = r#"{"limits":{"time-ms":60000},"steps":[{"for":"i","range":[0,20],"do":[["SET","p:${i}","v"],["APPEND","log","w"]]},
                                      {"return":"done"}]}"#;
    let count = r#"{"limits":{"time-ms":60000},"steps":[["INCR","fired"],["RPUSH","seen","x"]]}"#;
    for policy in ["allkeys-lru", "allkeys-lfu", "volatile-ttl", "allkeys-random"] {
        let mut full = Full::new(policy, 400);
        let words = |full: &mut Full, words: &[&str]| {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            support::show(&full.bench.run_args(full.client, &words).remove(0))
        };
        full.run("CONFIG SET program-time-ms-max 60000");
        // Used memory is at the limit: the first write takes what room there was made.
        for round in 0..20 {
            assert_eq!(full.set(1000 + round), "OK");
            assert_eq!(words(&mut full, &["PROGRAM", "EVAL", WRITES]), "done", "{policy}");
        }
        assert_eq!(words(&mut full, &["PROGRAM", "SET", "count", count]), "1");
        assert_eq!(words(&mut full, &["TRIGGER", "SET", "t", r#"{"key":"k:*","inside":"count"}"#]), "1");
        let evicted = full.evicted();
        for round in 0..20 {
            assert_eq!(full.set(2000 + round), "OK", "{policy}");
        }
        assert!(full.evicted() > evicted, "{policy}");
        let used = full.bench.engine.keyspace.used_bytes();
        let limit = full.run("CONFIG GET maxmemory");
        let limit: usize =
            limit.trim_matches(['{', '}']).replace("maxmemory:", "").parse().expect("a number");
        assert!(used < limit + (1 << 20), "{policy}: {used} {limit}");
    }
}

/// A payload of a list of as many compressed strings of this length, which is one more than a multiple of 264.
fn packed(strings: u8, string_bytes: u32) -> Vec<u8> {
    let string = [b"\x00a", &b"\xe0\xff\x00".repeat(string_bytes as usize / 264)[..]].concat();
    let lengths = [string.len() as u32, string_bytes].map(u32::to_be_bytes);
    let string = [b"\xc3\x80", &lengths[0][..], b"\x80", &lengths[1], &string].concat();
    weft_engine::rdb::seal([&[1, strings], &string.repeat(strings.into())[..]].concat(), 10)
}

#[test]
fn what_restore_would_unpack_is_asked_for_before() {
    const MIB: u32 = 1 << 20;
    let (string_bytes, strings) = (264 * (MIB / 264) + 1, 40);
    let payload = packed(strings, string_bytes);
    assert!(payload.len() < MIB as usize / 2, "40 MiB are in it");
    for (policy, alone) in [("noeviction", false), ("allkeys-lru", true)] {
        let mut full = Full::new(policy, 200);
        let mut restore = |limits: &str| {
            full.run(&format!("CONFIG SET {limits}"));
            let reply = full.bench.run_args(full.client, &[b"RESTORE", b"k", b"0", &payload, b"REPLACE"]);
            (support::show(&reply[0]), full.bench.engine.keyspace.used_bytes() as u32)
        };
        let (reply, used) = restore("maxmemory 32mb");
        assert_eq!(reply, OOM, "{policy}");
        assert!(used < 4 * MIB, "{policy}: nothing of it was stored: {used}");
        // What is there gives way to it, or not.
        let (reply, used) = restore(&format!("maxmemory {}", u32::from(strings) * string_bytes));
        assert_eq!(reply, if alone { "OK" } else { OOM }, "{policy}");
        assert_eq!(used > 40 * (MIB - 264), alone, "{policy}: {used}");
        assert_eq!(restore("maxmemory 128mb").0, "OK", "{policy}");
        // Four strings of the longest that there may be are the most, whatever room there is.
        assert_eq!(
            restore("maxmemory 0 proto-max-bulk-len 9mb").0,
            "-ERR the compressed strings of the payload come to more than 37748736 bytes (4 times proto-max-bulk-len)"
        );
        assert_eq!(restore("proto-max-bulk-len 10mb").0, "OK");
    }
    let mut full = Full::new("noeviction", 1);
    full.run("CONFIG SET maxmemory 0 proto-max-bulk-len 16mb");
    let payload = packed(1, 264 * 64_000 + 1);
    let reply = full.bench.run_args(full.client, &[b"RESTORE", b"k", b"0", &payload]);
    assert_eq!(support::show(&reply[0]), "-ERR string exceeds maximum allowed size (proto-max-bulk-len)");
}
