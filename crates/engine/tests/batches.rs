//! A batch answers what its requests answer one by one: known shapes, the short way of GET, SET and PING, the
//! keyspace taken without locks, hashes computed ahead. Two servers get the same commands, one of them in batches.

mod support;

use support::{Bench, show};
use weft_engine::reply::Protocol;
use weft_store::{Rng, XorShift};

/// Commands on keys that are strings, numbers, lists or nothing, with and without an expiry.
fn command(rng: &mut XorShift) -> String {
    let key = format!("key:{}", rng.below(6));
    let other = format!("key:{}", rng.below(6));
    let value = ["v", "12", &"a_longer_value_of_two_lines_".repeat(3), "-7", &"long".repeat(60)]
        [rng.below(5) as usize]
        .to_owned();
    match rng.below(22) {
        0..=4 => format!("GET {key}"),
        5..=8 => format!("SET {key} {value}"),
        9 => format!("set {key} {value}"),
        10 => format!("SET {key} {value} PX {}", 1 + rng.below(40)),
        11 => "PING".into(),
        12 => format!("PING {value}"),
        13 => format!("INCR {key}"),
        14 => format!("LPUSH {key} {value}"),
        15 => format!("MGET {key} {other} missing {key}"),
        16 => format!("MSET {key} {value} {other} {value}"),
        17 => format!("DEL {key}"),
        18 => format!("SELECT {}", rng.below(2)),
        19 => format!("SINTER {key} {other}"),
        20 => format!("GET {key} {other}"),
        _ => format!("APPEND {key} {value}"),
    }
}

/// What INFO counts of the commands, without their times.
fn counts(bench: &mut Bench, client: u32) -> Vec<String> {
    let stats = bench.text(client, "INFO stats");
    let looked_up = |line: &&str| line.starts_with("keyspace_hits:") || line.starts_with("keyspace_misses:");
    let looked_up: Vec<String> =
        stats.split("\\r\\n").chain(stats.lines()).filter(looked_up).map(str::to_owned).collect();
    let info = bench.text(client, "INFO commandstats");
    let of_line = |line: &str| {
        let (name, fields) = line.split_once(':')?;
        let of = |field: &str| fields.split(',').find(|it| it.starts_with(field)).map(str::to_owned);
        Some(format!("{name} {:?} {:?}", of("calls="), of("failed_calls=")))
    };
    info.split("\\r\\n")
        .chain(info.lines())
        .filter_map(of_line)
        .filter(|line| !line.contains("info"))
        .chain(looked_up)
        .collect()
}

#[test]
fn a_batch_answers_what_its_requests_answer_one_by_one() {
    let seed = std::env::var("WEFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_121);
    println!("seed {seed} (WEFT_SEED)");
    let mut rng = XorShift::new(seed);
    let (mut single, mut batched) = (Bench::new(), Bench::new());
    let clients = [Protocol::Resp3, Protocol::Respb, Protocol::Resp2, Protocol::Respb]
        .map(|protocol| (single.connect(protocol), batched.connect(protocol)));
    for round in 0..400 {
        let lists: Vec<Vec<String>> =
            clients.iter().map(|_| (0..rng.below(15)).map(|_| command(&mut rng)).collect()).collect();
        let together: Vec<(u32, Vec<String>)> =
            clients.iter().zip(&lists).map(|(client, list)| (client.1, list.clone())).collect();
        let answers = batched.run_batch(&together);
        for ((client, list), answers) in clients.iter().zip(&lists).zip(answers) {
            assert_eq!(answers.len(), list.len(), "round {round}: every command has one answer: {list:?}");
            for (command, answer) in list.iter().zip(answers) {
                let alone = single.text(client.0, command);
                assert_eq!(show(&answer), alone, "round {round}, {command} of {list:?}");
            }
        }
        let passed = u64::from(rng.below(10));
        single.pass(passed);
        batched.pass(passed);
    }
    assert_eq!(counts(&mut batched, clients[0].1), counts(&mut single, clients[0].0));
}

/// What one request of a batch sets up holds for the next.
#[test]
fn a_batch_sees_what_it_has_set_up_itself() {
    let (mut bench, [client, listener]) = Bench::with_clients([Protocol::Resp3; 2]);
    bench.run(listener, "SUBSCRIBE __keyevent@0__:set");
    let commands = ["SET a 1", "CONFIG SET notify-keyspace-events KEA", "SET a 2", "GET a", "SET b 3"];
    bench.run_batch(&[(client, commands.map(str::to_owned).to_vec())]);
    let told: Vec<String> = bench.run(listener, "PING").iter().map(show).collect();
    let sets = told.iter().filter(|push| push.contains("keyevent@0__:set")).count();
    assert_eq!(sets, 2, "both SETs behind CONFIG SET are told of: {told:?}");
}

/// Commands of which most are SETs that fire one quick command, which has a shorter form where a batch has the keyspace
/// to itself.
fn firing(rng: &mut XorShift) -> String {
    let number = rng.below(4);
    let key = ["k", "k", "k", "push", "both", "chain", "itself", "none", "when", "large", "to"]
        [rng.below(11) as usize];
    let key = format!("{key}:{number}");
    match rng.below(24) {
        0 => "GET count".into(),
        1 => "LRANGE list 0 -1".into(),
        // The counter is a list, or goes beyond its end: what fires it fails.
        2 => "DEL count".into(),
        3 => "RPUSH count a".into(),
        4 => "SET count 9223372036854775806".into(),
        5 => format!("DEL {key}"),
        6 => format!("SELECT {}", rng.below(2)),
        7 => format!("SET {key} v NX"),
        8 => format!("GET {key}"),
        _ => format!("SET {key} {}", ["v", "yes", "5"][rng.below(3) as usize]),
    }
}

/// A server with triggers, a client who waits for what they write, one who has cached it and one who watches it.
fn with_triggers() -> (Bench, [u32; 4]) {
    let mut bench = Bench::new();
    let clients = [(); 4].map(|()| bench.connect(Protocol::Resp3));
    let mut store = |words: &[&str]| {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let stored = bench.run_args(clients[0], &words).iter().map(show).collect::<String>();
        assert_eq!(stored, "1", "{}", String::from_utf8_lossy(words[2]));
    };
    for (name, step) in [
        ("count", r#"["INCR","count"]"#),
        ("push", r#"["LPUSH","list","x"]"#),
        ("chain", r#"["SET","k:chained","v"]"#),
        ("itself", r#"["INCR","itself:1"]"#),
    ] {
        store(&["PROGRAM", "SET", name, &format!(r#"{{"steps":[{step}]}}"#)]);
    }
    for (name, rest) in [
        ("a", r#""key":"k:*","inside":"count""#),
        ("b", r#""key":"push:*","inside":"push""#),
        ("c", r#""key":"both:*","inside":"count""#),
        ("d", r#""key":"both:*","inside":"push""#),
        ("e", r#""key":"chain:*","inside":"chain""#),
        ("f", r#""key":"itself:*","inside":"itself""#),
        ("g", r#""key":"none:*","inside":"nothing""#),
        ("h", r#""key":"when:*","when":{"==":["${event.value}","yes"]},"inside":"count""#),
        ("i", r#""key":"to:*","db":1,"inside":"count""#),
    ] {
        store(&["TRIGGER", "SET", name, &format!("{{{rest}}}")]);
    }
    (bench, clients)
}

#[test]
fn writes_that_fire_do_in_a_batch_what_they_do_one_by_one() {
    let seed = std::env::var("WEFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_128);
    println!("seed {seed} (WEFT_SEED)");
    let mut rng = XorShift::new(seed);
    let (mut single, [client, waits, caches, watches]) = with_triggers();
    let (mut batched, others) = with_triggers();
    assert_eq!(others, [client, waits, caches, watches]);
    let both = |single: &mut Bench, batched: &mut Bench, client: u32, line: &str, context: &str| {
        let (one, other) = (single.run(client, line), batched.run(client, line));
        assert_eq!(other, one, "seed {seed}, {line}, {context}");
    };
    for round in 0..400 {
        // With somebody who has cached anything all goes the long way.
        if round == 300 {
            both(&mut single, &mut batched, caches, "CLIENT TRACKING ON", "");
        }
        let list: Vec<String> = (0..4 + rng.below(12)).map(|_| firing(&mut rng)).collect();
        let context = format!("round {round}: {list:?}");
        both(&mut single, &mut batched, caches, "GET count", &context);
        both(&mut single, &mut batched, caches, "GET k:1", &context);
        both(&mut single, &mut batched, watches, "WATCH count k:2 list", &context);
        if round % 3 == 0 && !single.is_waiting(waits) {
            both(&mut single, &mut batched, waits, "BLPOP list 0", &context);
        }
        let alone: Vec<_> = list.iter().flat_map(|line| single.run(client, line)).collect();
        let together = batched.run_batch(&[(client, list.clone())]).remove(0);
        assert_eq!(together, alone, "seed {seed}, {context}");
        let heard = |bench: &mut Bench, of: u32| bench.take(of).iter().map(show).collect::<Vec<_>>();
        assert_eq!(
            heard(&mut batched, waits),
            heard(&mut single, waits),
            "seed {seed}, who waits, {context}"
        );
        let mut told = [heard(&mut batched, caches), heard(&mut single, caches)];
        told.iter_mut().for_each(|told| told.sort());
        assert_eq!(told[0], told[1], "seed {seed}, who has cached, {context}");
        for line in ["MULTI", "PING", "EXEC"] {
            both(&mut single, &mut batched, watches, line, &context);
        }
    }
    assert_eq!(batched.text(client, "TRIGGER STATS"), single.text(client, "TRIGGER STATS"), "seed {seed}");
    assert_eq!(counts(&mut batched, client), counts(&mut single, client), "seed {seed}");
}
