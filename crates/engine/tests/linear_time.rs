//! Owns: the measurement that a command costs what it names and no more: eight times the arguments cost about eight
//! times the CPU time. Quadratic time would show as 64 times.

mod support;

use support::{Bench, cpu_ns};
use weft_engine::blocking::End;
use weft_engine::reply::Protocol;

/// Arguments of the small and of the large request; more prefixes nobody may track.
const SIZES: [usize; 2] = [500, 4_000];
/// How much longer eight times as much may take: room for caches and tables that hold the smaller one only.
const RATIO_MAX: f64 = 30.0;
/// Tries, of which the fastest counts.
const TRIES: usize = 3;
/// Measurements before the test fails.
const ATTEMPTS: usize = 4;

/// A request with so many names: what stands before them, what makes one from its number, what stands behind.
struct Wide {
    before: &'static [&'static str],
    name: fn(usize) -> Vec<String>,
    behind: &'static [&'static str],
}

fn one(number: usize) -> Vec<String> {
    vec![format!("key:{number}")]
}
fn pair(number: usize) -> Vec<String> {
    vec![format!("key:{number}"), number.to_string()]
}
fn twice(number: usize) -> Vec<String> {
    [one(number), one(number)].concat()
}
fn prefix(number: usize) -> Vec<String> {
    vec!["PREFIX".into(), format!("{number:06}:")]
}

const WIDE: &[Wide] = &[
    Wide { before: &["BLPOP"], name: one, behind: &["0"] },
    Wide { before: &["BZPOPMIN"], name: one, behind: &["0"] },
    Wide { before: &["WATCH"], name: one, behind: &[] },
    Wide { before: &["WATCH"], name: twice, behind: &[] },
    Wide { before: &["CLIENT", "TRACKING", "ON", "BCAST"], name: prefix, behind: &[] },
    Wide { before: &["SUBSCRIBE"], name: one, behind: &[] },
    Wide { before: &["PSUBSCRIBE"], name: one, behind: &[] },
    Wide { before: &["EXISTS"], name: one, behind: &[] },
    Wide { before: &["DEL"], name: one, behind: &[] },
    Wide { before: &["MGET"], name: one, behind: &[] },
    Wide { before: &["MSET"], name: pair, behind: &[] },
    Wide { before: &["SUNION"], name: one, behind: &[] },
    Wide { before: &["SADD", "set"], name: one, behind: &[] },
    Wide { before: &["HSET", "hash"], name: pair, behind: &[] },
    Wide { before: &["HDEL", "hash"], name: one, behind: &[] },
    Wide { before: &["RPUSH", "list"], name: one, behind: &[] },
    Wide { before: &["PFADD", "hll"], name: one, behind: &[] },
];

fn cost_ns(wide: &Wide, size: usize) -> u64 {
    let names = (0..size).flat_map(|number| (wide.name)(number));
    let words: Vec<String> = wide.before.iter().map(ToString::to_string).chain(names).collect();
    let words: Vec<&[u8]> =
        words.iter().map(String::as_bytes).chain(wide.behind.iter().map(|w| w.as_bytes())).collect();
    let tries = (0..TRIES).map(|_| {
        let (mut bench, client) = Bench::with(Protocol::Resp3);
        let (ns, reply) = bench.cost(client, &words, cpu_ns);
        assert!(!reply.starts_with(b"-"), "{:?}: {}", wide.before, String::from_utf8_lossy(&reply));
        ns
    });
    tries.min().expect("there is a try")
}

#[test]
fn commands_cost_what_they_name() {
    for wide in WIDE {
        let mut ratios = Vec::new();
        let ratio = loop {
            let [small, large] = SIZES.map(|size| cost_ns(wide, size) as f64);
            let ratio = large / small;
            ratios.push(ratio);
            if ratio < RATIO_MAX || ratios.len() == ATTEMPTS {
                break ratio;
            }
        };
        assert!(ratio < RATIO_MAX, "{:?} with {SIZES:?} names: {ratios:?}", wide.before);
    }
}

/// Who waits for the same key, few and many.
const WAITERS: [usize; 2] = [2_000, 16_000];

/// How waits for one key end, all of them.
#[derive(Clone, Copy, Debug)]
enum Ended {
    By(End),
    /// The clients go away.
    Gone,
    /// Each gets an element of one push.
    ServedTogether,
    /// Each gets one of its own.
    Served,
}

/// Nobody who waits for a key is looked at for the end of another's wait, nor for a value that is not enough for him.
#[test]
fn waits_for_one_key_end_without_a_look_at_all_of_them() {
    let cost = |count: usize, how: Ended| {
        let (mut bench, writer) = Bench::with(Protocol::Resp3);
        let clients: Vec<u32> = (0..count).map(|_| bench.connect(Protocol::Resp3)).collect();
        for &client in &clients {
            bench.execute(client, &[b"BLPOP", b"k", b"100"]);
        }
        assert_eq!(bench.engine.waits.len(), count);
        let push = [vec![&b"RPUSH"[..], b"k"], vec![b"v"; count]].concat();
        let began_ns = cpu_ns();
        match how {
            // The last first: those before it are not in its way.
            Ended::By(end) => clients.iter().rev().for_each(|&client| bench.give_up(client, end)),
            Ended::Gone => clients.iter().rev().for_each(|&client| bench.disconnect(client)),
            Ended::ServedTogether => bench.execute(writer, &push),
            Ended::Served => (0..count).for_each(|_| bench.execute(writer, &push[..3])),
        }
        let ns = cpu_ns() - began_ns;
        bench.take(writer);
        let is_served = matches!(how, Ended::Served | Ended::ServedTogether);
        assert!(bench.engine.waits.is_empty() && bench.text(writer, "LLEN k") == "0", "{how:?}");
        assert!(!is_served || clients.iter().all(|&client| bench.take(client).len() == 1), "{how:?}");
        ns as f64
    };
    for how in
        [Ended::By(End::Timeout), Ended::By(End::Cancel), Ended::Gone, Ended::ServedTogether, Ended::Served]
    {
        let mut ratios = Vec::new();
        while ratios.len() < ATTEMPTS && ratios.last().is_none_or(|&ratio| ratio > RATIO_MAX) {
            let [few, many] = WAITERS.map(|count| cost(count, how));
            ratios.push(many / few);
        }
        assert!(ratios.last().is_some_and(|&ratio| ratio <= RATIO_MAX), "{how:?} of {WAITERS:?}: {ratios:?}");
    }
}

/// Who waits for entries of a stream and gets none, in thousands.
const IN_VAIN: [&str; 5] = [
    "XREAD BLOCK 0 STREAMS s 9999999999999-0",
    "XREAD BLOCK 0 STREAMS s t 9999999999999-0 0",
    // The group's place is behind all that comes.
    "XREADGROUP GROUP ahead c@ BLOCK 0 STREAMS s >",
    // One of them is served by each write, who has not come first in the count of all.
    "XREADGROUP GROUP g c@ BLOCK 0 STREAMS s >",
    "XREADGROUP GROUP ahead@ c BLOCK 0 STREAMS s >",
];

/// Whoever writes to a stream looks at nobody who has no use for what he has written.
#[test]
fn who_waits_for_a_stream_in_vain_costs_its_writers_nothing() {
    const WRITES: [&str; 6] = [
        "XADD s * a b",
        "XDEL s 1-1",
        "XTRIM s MAXLEN 100000",
        "XGROUP SETID s own 0-0",
        "XGROUP CREATECONSUMER s own d",
        "XACK s own 1-1",
    ];
    let cost = |wait: &str, count: usize| {
        let (mut bench, writer) = Bench::with(Protocol::Resp3);
        for command in ["XADD s 1-1 a b", "XGROUP CREATE s g $", "XGROUP CREATE s own $"] {
            bench.run(writer, command);
        }
        for at in 0..count {
            if at == 0 || wait.contains("ahead@") {
                let name = if wait.contains("ahead@") { format!("ahead{at}") } else { "ahead".to_owned() };
                bench.run(writer, &format!("XGROUP CREATE s {name} 9999999999999-0"));
            }
            let client = bench.connect(Protocol::Resp3);
            assert!(bench.run(client, &wait.replace('@', &at.to_string())).is_empty());
        }
        assert_eq!(bench.engine.waits.len(), count);
        // The first entry meets each group once.
        bench.run(writer, "XADD s * a b");
        let began_ns = cpu_ns();
        for _ in 0..20 {
            WRITES.iter().for_each(|command| drop(bench.run(writer, command)));
        }
        let ns = cpu_ns() - began_ns;
        let served = if wait.contains(" g ") { 21 } else { 0 };
        assert_eq!(bench.engine.waits.len(), count - served, "{wait}");
        ns as f64
    };
    for wait in IN_VAIN {
        let mut ratios = Vec::new();
        while ratios.len() < ATTEMPTS && ratios.last().is_none_or(|&ratio| ratio > 4.0) {
            ratios.push(cost(wait, 8_000) / cost(wait, 100));
        }
        assert!(ratios.last().is_some_and(|&ratio| ratio <= 4.0), "{wait}: {ratios:?}");
    }
}

/// What INFO tells of waits is known without a look at them.
#[test]
fn what_info_tells_of_waits_costs_nothing() {
    let cost = |keys: usize| {
        let tries = (0..TRIES).map(|_| {
            let (mut bench, [waiter, other]) = Bench::with_clients([Protocol::Resp3; 2]);
            let names: Vec<String> = (0..keys).map(|number| format!("key:{number}")).collect();
            let words = ["BLPOP"].into_iter().chain(names.iter().map(String::as_str)).chain(["0"]);
            bench.execute(waiter, &words.map(str::as_bytes).collect::<Vec<_>>());
            let info: [&[u8]; 2] = [b"INFO", b"clients"];
            let told = format!("total_blocking_keys:{keys}\r\n");
            let (_, reply) = bench.cost(other, &info, cpu_ns);
            assert!(String::from_utf8_lossy(&reply).contains(&told), "{}", String::from_utf8_lossy(&reply));
            (0..20).map(|_| bench.cost(other, &info, cpu_ns).0).sum::<u64>()
        });
        tries.min().expect("there is a try") as f64
    };
    let mut ratios = Vec::new();
    while ratios.len() < ATTEMPTS && ratios.last().is_none_or(|&ratio| ratio > 3.0) {
        ratios.push(cost(16_000) / cost(10));
    }
    assert!(ratios.last().is_some_and(|&ratio| ratio <= 3.0), "{ratios:?}");
}

/// What a client waits for costs those who write elsewhere nothing, however much it is.
#[test]
fn a_wide_wait_costs_others_nothing() {
    let write = |waits: bool| {
        let tries = (0..TRIES).map(|_| {
            let (mut bench, [waiter, other]) = Bench::with_clients([Protocol::Resp3; 2]);
            bench.text(other, "HSET hash n 0");
            if waits {
                let names: Vec<String> = (0..16_000).map(|number| format!("key:{number}")).collect();
                let words =
                    ["BLPOP", "hash"].into_iter().chain(names.iter().map(String::as_str)).chain(["0"]);
                let words: Vec<&[u8]> = words.map(str::as_bytes).collect();
                // BLPOP refuses a hash, unless it becomes one later.
                bench.text(other, "DEL hash");
                bench.execute(waiter, &words);
                bench.text(other, "HSET hash n 0");
            }
            let words: [&[u8]; 4] = [b"HINCRBY", b"hash", b"n", b"1"];
            (0..100).map(|_| bench.cost(other, &words, cpu_ns).0).sum::<u64>()
        });
        tries.min().expect("there is a try") as f64
    };
    let mut ratios = Vec::new();
    while ratios.len() < ATTEMPTS && ratios.last().is_none_or(|&ratio| ratio > 3.0) {
        ratios.push(write(true) / write(false));
    }
    assert!(ratios.last().is_some_and(|&ratio| ratio <= 3.0), "{ratios:?}");
}

/// Nor do patterns that a client listens to, but those that a channel begins like.
#[test]
fn many_patterns_cost_a_message_nothing() {
    let publish = |count: usize| {
        let tries = (0..TRIES).map(|_| {
            let (mut bench, [listener, other]) = Bench::with_clients([Protocol::Resp3; 2]);
            // They begin like no channel here, or end so, or both.
            let name = |number: usize| match number % 3 {
                0 => format!("{number:06}:*"),
                1 => format!("*:{number:06}"),
                _ => format!("news.*:{number:06}"),
            };
            let names: Vec<String> = (0..count).map(name).collect();
            let words = ["PSUBSCRIBE", "news.*"].into_iter().chain(names.iter().map(String::as_str));
            bench.execute(listener, &words.map(str::as_bytes).collect::<Vec<_>>());
            let message = [&b"PUBLISH"[..], b"news.today", b"x"];
            assert_eq!(bench.run_args(other, &message), [support::Reply::Int(1)]);
            (0..50).map(|_| bench.cost(other, &message, cpu_ns).0).sum::<u64>()
        });
        tries.min().expect("there is a try") as f64
    };
    let mut ratios = Vec::new();
    while ratios.len() < ATTEMPTS && ratios.last().is_none_or(|&ratio| ratio > 4.0) {
        ratios.push(publish(16_000) / publish(100));
    }
    assert!(ratios.last().is_some_and(|&ratio| ratio <= 4.0), "{ratios:?}");
}

/// Nor do prefixes that a client tracks, but those that a key begins with.
#[test]
fn many_prefixes_cost_a_write_nothing() {
    let write = |count: usize| {
        let tries = (0..TRIES).map(|_| {
            let (mut bench, [tracker, other]) = Bench::with_clients([Protocol::Resp3; 2]);
            let names = (0..count).flat_map(prefix);
            let words: Vec<String> =
                ["CLIENT", "TRACKING", "ON", "BCAST"].iter().map(ToString::to_string).chain(names).collect();
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            bench.execute(tracker, &words);
            let told = [&b"SET"[..], b"000001:k", b"v"];
            (0..50).map(|_| bench.cost(other, &told, cpu_ns).0).sum::<u64>()
        });
        tries.min().expect("there is a try") as f64
    };
    let mut ratios = Vec::new();
    while ratios.len() < ATTEMPTS && ratios.last().is_none_or(|&ratio| ratio > 4.0) {
        ratios.push(write(16_000) / write(100));
    }
    assert!(ratios.last().is_some_and(|&ratio| ratio <= 4.0), "{ratios:?}");
}

/// Triggers that are stored one after the other, with a write that looks which it fires behind each.
const TRIGGERS: usize = 2_000;
/// How many there are at the end for each at the beginning.
const ROUNDS: usize = 5;

#[test]
fn a_trigger_is_stored_and_deleted_in_the_same_time_however_many_there_are() {
    let patterns: [fn(usize) -> String; 3] =
        [|at| format!("user:{at}:*"), |at| format!("user:*:field{at}"), |at| format!("k{at}")];
    for pattern in patterns {
        let (mut bench, client) = Bench::with(Protocol::Resp3);
        let mut run = |words: &[&str]| {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            let reply = bench.run_args(client, &words);
            assert!(!support::show(&reply[0]).starts_with('-'), "{:?}", support::show(&reply[0]));
        };
        let mut round = |numbers: std::ops::Range<usize>, comes: bool| {
            let began = cpu_ns();
            for at in numbers {
                let (name, text) =
                    (format!("t{at}"), format!(r#"{{"key":"{}","publish":"c"}}"#, pattern(at)));
                match comes {
                    true => run(&["TRIGGER", "SET", &name, &text]),
                    false => run(&["TRIGGER", "DEL", &name]),
                }
                run(&["SET", "user:x", "v"]);
            }
            cpu_ns() - began
        };
        let mut rounds = |comes: bool| -> Vec<u64> {
            (0..ROUNDS).map(|at| round(at * TRIGGERS..(at + 1) * TRIGGERS, comes)).collect()
        };
        let (came, went) = (rounds(true), rounds(false));
        println!("{}: {came:?}, {went:?} ns", pattern(1));
        // In proportion to those that there are the last round would take nine times as long as the first one.
        let is_linear = |first: u64, last: u64| last as f64 / (first as f64) < 4.0;
        assert!(is_linear(came[0], came[ROUNDS - 1]), "{}: {came:?} ns", pattern(1));
        assert!(is_linear(went[ROUNDS - 1], went[0]), "{}: {went:?} ns", pattern(1));
    }
}
