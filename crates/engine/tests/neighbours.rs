//! Commands that run among their neighbours answer, change and count what the full way does, whatever state the server
//! and its clients are in. Two servers get the same commands: one in batches, as they come from deep pipelines; the
//! other one by one, with the latency monitor on, which times every command and so has each run alone.

mod support;

use support::{Bench, Reply, show};
use weft_engine::reply::Protocol;
use weft_store::{Rng, XorShift};

const ROUNDS: usize = 600;
/// Commands of one client in a batch.
const COMMANDS_MAX: u32 = 16;

fn pick<'w>(rng: &mut XorShift, words: &[&'w str]) -> &'w str {
    words[rng.below(words.len() as u32) as usize]
}

/// Messages, which have no key.
fn message(rng: &mut XorShift) -> String {
    let names = ["PUBLISH news", "SPUBLISH news", "PUBLISH nobody_hears", "PUBLISH __key_of_events"];
    format!("{} {}", pick(rng, &names), "m".repeat(1 + rng.below(90) as usize))
}

/// Commands with one key, mostly on a key of the right type.
fn command(rng: &mut XorShift) -> String {
    let kind = pick(rng, &["number", "list", "set", "hash", "zset", "stream"]);
    let key_of = if rng.below(12) == 0 { pick(rng, &["number", "list", "set", "missing"]) } else { kind };
    let key = format!("{key_of}:{}", rng.below(3));
    let member = pick(rng, &["a", "b", "12", "-7", "1.5", "a_member_of_more_than_a_word"]);
    let value = match rng.below(16) {
        // What it replaces waits to be freed, and what it takes is seen beside a limit.
        0 => "long".repeat(100 + rng.below(300) as usize),
        _ => pick(
            rng,
            &["v", "12", "0", "a_value_of_more_than_sixty-four_bytes,_so_that_no_listpack_takes_it_any_more"],
        )
        .to_owned(),
    };
    match (kind, rng.below(9)) {
        ("number", 0) => format!("INCR {key}"),
        ("number", 1) => format!("DECRBY {key} {member}"),
        ("number", 2) => format!("APPEND {key} {value}"),
        ("number", 3) if rng.below(2) == 0 => format!("SET {key} {value}"),
        ("number", 3) => format!("SET {key} {member} PX {}", 1 + rng.below(30)),
        ("number", 4) => format!("INCRBY {key} 9223372036854775807"),
        ("number", 5) => format!("SETRANGE {key} {} {member}", rng.below(40)),
        ("number", 6) => format!("GETRANGE {key} 0 {}", rng.below(40)),
        ("number", 7) => format!("{} {key}", pick(rng, &["BITCOUNT", "GET", "GET"])),
        ("number", _) => format!("STRLEN {key}"),
        ("list", 0 | 1) => format!("LPUSH {key} {value}"),
        ("list", 2) => format!("RPUSH {key} {member} {value}"),
        ("list", 3) => format!("RPOP {key}"),
        ("list", 4) => format!("LPOP {key} {}", 1 + rng.below(8)),
        ("list", 5) => format!("LRANGE {key} 0 -1"),
        ("list", 6) => format!("LINSERT {key} BEFORE {member} {value}"),
        ("list", 7) => format!("LREM {key} 1 {value}"),
        ("list", _) => format!("LLEN {key}"),
        ("set", 0 | 1) => format!("SADD {key} {member}"),
        ("set", 2) => format!("SADD {key} {member} {value}"),
        ("set", 3) => format!("SREM {key} {member}"),
        ("set", 4) => format!("SPOP {key}"),
        ("set", 5 | 6) => format!("SMEMBERS {key}"),
        ("set", 7) => format!("SPOP {key} 2"),
        ("set", _) => format!("SISMEMBER {key} {member}"),
        ("hash", 0 | 1) => format!("HSET {key} {member} {value}"),
        ("hash", 2) => format!("HINCRBY {key} {member} 3"),
        ("hash", 3) => format!("HDEL {key} {member}"),
        ("hash", 4) => format!("HPEXPIRE {key} {} FIELDS 1 {member}", 1 + rng.below(30)),
        ("hash", 5 | 6) => format!("HGETALL {key}"),
        ("hash", 7) => format!("HVALS {key}"),
        ("hash", _) => format!("HGET {key} {member}"),
        ("zset", 0 | 1) => format!("ZADD {key} {} {member}", rng.below(9)),
        ("zset", 2) => format!("ZADD {key} GT CH {member} {value}"),
        ("zset", 3) => format!("ZPOPMIN {key}"),
        ("zset", 4) => format!("ZINCRBY {key} 1.25 {member}"),
        ("zset", 5) => format!("ZRANGE {key} 0 -1 WITHSCORES"),
        ("zset", 6) => format!("ZREMRANGEBYRANK {key} 0 {}", rng.below(2)),
        ("zset", 7) => format!("ZREMRANGEBYSCORE {key} 1 {member}"),
        ("zset", _) => format!("ZREM {key} {member}"),
        (_, 0 | 1) => format!("XADD {key} * {member} {value}"),
        (_, 2) => format!("XADD {key} 5-{} {member} {value}", rng.below(9)),
        (_, 3) => format!("XDEL {key} 5-1"),
        (_, 4) => format!("XADD {key} MAXLEN 2 * {member} {value}"),
        (_, 5) => format!("XRANGE {key} - + COUNT 3"),
        (_, 6) => format!("XTRIM {key} MAXLEN {}", rng.below(4)),
        (_, _) => format!("XLEN {key}"),
    }
}

/// What else may stand in a batch: wrong numbers of arguments, other ways, and what changes the client or the server.
fn other(rng: &mut XorShift, client: usize) -> String {
    match rng.below(27) {
        0 => "INCR".into(),
        1 => "SADD set:0".into(),
        2 => "HSET hash:0 a".into(),
        3 => "GET number:0".into(),
        4 => "SET number:1 5".into(),
        5 => "DEL number:0 list:0 set:0".into(),
        6 => format!("PEXPIRE {}:0 {}", pick(rng, &["list", "set", "zset"]), 1 + rng.below(20)),
        7 => "MULTI".into(),
        8 => "DISCARD".into(),
        9 => "WATCH number:0 set:1".into(),
        10 => "UNWATCH".into(),
        11 => format!("SELECT {}", rng.below(2)),
        // A SKIP in front of MULTI's commands would leave the two servers' answers without their order.
        12 => "CLIENT REPLY SKIP".into(),
        13 => "CLIENT NO-TOUCH ON".into(),
        14 => "CLIENT NO-TOUCH OFF".into(),
        15 => "CLIENT TRACKING ON".into(),
        16 => "CLIENT TRACKING OFF".into(),
        17 => "CONFIG SET notify-keyspace-events KEA".into(),
        18 => "CONFIG SET notify-keyspace-events Enm".into(),
        19 => "CONFIG SET notify-keyspace-events _".replace('_', ""),
        20 => "CONFIG SET maxmemory 1".into(),
        21 => "CONFIG SET maxmemory 0".into(),
        22 if client == 2 => "ACL SETUSER default -sadd -hset %R~* ~number:* ~list:*".into(),
        23 if client == 2 => "ACL SETUSER default allcommands allkeys allchannels".into(),
        24 if client == 2 => "ACL SETUSER default resetchannels &__key*".into(),
        _ => "PING".into(),
    }
}

/// A transaction as clients send it: whole, in one piece.
fn transaction(rng: &mut XorShift) -> Vec<String> {
    let mut list = vec!["MULTI".to_owned()];
    for _ in 0..1 + rng.below(4) {
        list.push(match rng.below(16) {
            // The transaction is lost.
            0 => pick(rng, &["INCR", "SADD set:0", "HSET hash:0 a"]).to_owned(),
            1 => pick(rng, &["GET number:1", "SET number:2 7"]).to_owned(),
            _ => command(rng),
        });
    }
    list.push("EXEC".into());
    list
}

/// Replies and pushes, each in their order: in a batch, pushes come behind the replies.
#[derive(Default, Debug, PartialEq)]
struct Heard {
    replies: Vec<String>,
    pushes: Vec<String>,
}

impl Heard {
    fn add(&mut self, replies: &[Reply]) {
        for reply in replies {
            let list = if matches!(reply, Reply::Push(_)) { &mut self.pushes } else { &mut self.replies };
            list.push(show(reply));
        }
    }
}

/// A server with the clients of the test.
struct Server {
    bench: Bench,
    clients: [u32; 3],
    /// Hears of events and messages.
    listener: u32,
    /// Hears of messages now and then.
    reader: u32,
    /// Waits for lists and sorted sets.
    waiting: u32,
    /// Has rights whatever happens to the default user.
    admin: u32,
}

impl Server {
    fn new(full_way: bool) -> Self {
        let mut bench = Bench::new();
        let protocols = [Protocol::Resp3, Protocol::Respb, Protocol::Resp2];
        let clients = protocols.map(|protocol| bench.connect(protocol));
        let [listener, reader, waiting, admin] = [0; 4].map(|_| bench.connect(Protocol::Resp3));
        bench.text(admin, "ACL SETUSER admin on nopass allcommands allkeys allchannels");
        bench.run(admin, "AUTH admin x");
        bench.run(waiting, "AUTH admin x");
        bench.run(reader, "AUTH admin x");
        for subscription in ["PSUBSCRIBE __key*", "SUBSCRIBE news", "SSUBSCRIBE news"] {
            bench.run(listener, subscription);
        }
        bench.run(
            admin,
            &format!("CONFIG SET latency-monitor-threshold {}", if full_way { 1_000_000_000 } else { 0 }),
        );
        bench.run(admin, "CONFIG SET commandlog-reply-larger-than 60");
        bench.run(admin, "CONFIG SET commandlog-request-larger-than 80");
        Self { bench, clients, listener, reader, waiting, admin }
    }

    /// What is the same on both servers, whatever way the commands went.
    fn state(&mut self) -> Vec<String> {
        // What waits to be freed is counted until then.
        self.bench.maintain();
        let mut lines = Vec::new();
        let info = self.bench.text(self.admin, "INFO everything");
        let is_counted = |line: &str| {
            [
                "cmdstat_",
                "errorstat_",
                "expired_",
                "keyspace_",
                "db0",
                "db1",
                "total_commands",
                "total_error",
                "used_memory:",
            ]
            .iter()
            .any(|head| line.starts_with(head))
        };
        for line in info.lines().filter(|line| is_counted(line) && !line.starts_with("cmdstat_info")) {
            // But for their times.
            let fields = line.split(',').filter(|field| !field.contains("usec"));
            let name =
                if line.starts_with("cmdstat") { line.split(':').next().unwrap_or_default() } else { "" };
            lines.push(name.to_owned() + &fields.collect::<Vec<_>>().join(","));
        }
        for command in ["COMMANDLOG LEN large-reply", "COMMANDLOG LEN large-request", "CLIENT LIST"] {
            lines.push(self.bench.text(self.admin, command));
        }
        lines
    }
}

/// What happens between two batches, on both servers.
fn between(rng: &mut XorShift, server: &Server) -> Option<(u32, String)> {
    let client = server.clients[rng.below(3) as usize];
    let command = match rng.below(18) {
        0 => "EXEC".to_owned(),
        16 | 17 => {
            let change = ["SUBSCRIBE news", "UNSUBSCRIBE news", "PSUBSCRIBE n*s", "PUNSUBSCRIBE n*s"];
            return Some((server.reader, pick(rng, &change).to_owned()));
        }
        1 | 2 if !server.bench.is_waiting(server.waiting) => {
            let command = ["BLPOP list:0 list:1 0", "BZPOPMIN zset:0 0", "BLMPOP 0 1 list:2 LEFT COUNT 2"];
            return Some((server.waiting, pick(rng, &command).to_owned()));
        }
        3 => return Some((server.admin, "ACL SETUSER default allcommands allkeys allchannels".into())),
        4 => {
            let room = server.bench.engine.keyspace.used_bytes() + rng.below(600) as usize;
            return Some((server.admin, format!("CONFIG SET maxmemory {room}")));
        }
        5 | 6 => return Some((server.admin, "CONFIG SET maxmemory 0".into())),
        7 | 8 => return Some((server.admin, "CONFIG SET notify-keyspace-events ".into())),
        9 => "DISCARD".into(),
        10 | 11 => "CLIENT TRACKING OFF".into(),
        12 => return Some((server.admin, "FLUSHALL".into())),
        // Where none of a client's requests can be so large they are not asked about.
        13 => return Some((server.admin, "CONFIG SET commandlog-request-larger-than 80".into())),
        14 => return Some((server.admin, "CONFIG SET commandlog-request-larger-than 1048576".into())),
        _ => return None,
    };
    Some((client, command))
}

#[test]
fn neighbours_do_what_the_full_way_does() {
    let seed = std::env::var("WEFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_122);
    println!("seed {seed} (WEFT_SEED)");
    let mut rng = XorShift::new(seed);
    let (mut single, mut batched) = (Server::new(true), Server::new(false));
    assert_eq!(single.clients, batched.clients);
    for round in 0..ROUNDS {
        let lists: Vec<(u32, Vec<String>)> = (0..3)
            .map(|at| {
                let mut list = Vec::new();
                let count = rng.below(COMMANDS_MAX) as usize;
                while list.len() < count {
                    match rng.below(24) {
                        0 => list.push(other(&mut rng, at)),
                        1..=3 => list.extend(transaction(&mut rng)),
                        4 | 5 => list.push(message(&mut rng)),
                        _ => list.push(command(&mut rng)),
                    }
                }
                (batched.clients[at], list)
            })
            .collect();
        // With little to share no GET goes the fastest way.
        batched.bench.share(if round % 2 == 0 { 200 } else { 1000 });
        let together = batched.bench.run_batch(&lists);
        let (mut heard, mut expected): (Vec<Heard>, Vec<Heard>) = Default::default();
        for replies in &together {
            let mut one = Heard::default();
            one.add(replies);
            heard.push(one);
        }
        for (client, list) in &lists {
            let mut one = Heard::default();
            list.iter().for_each(|command| one.add(&single.bench.run(*client, command)));
            expected.push(one);
        }
        for (at, client) in single.clients.into_iter().enumerate() {
            // Pushes that another client's commands brought.
            expected[at].add(&single.bench.take(client));
            heard[at].add(&batched.bench.take(client));
        }
        for client in [single.listener, single.reader, single.waiting] {
            let mut pair = [Heard::default(), Heard::default()];
            pair[0].add(&batched.bench.take(client));
            pair[1].add(&single.bench.take(client));
            let [one, other] = pair;
            heard.push(one);
            expected.push(other);
        }
        assert_eq!(heard, expected, "round {round} of seed {seed}: {lists:?}");
        if let Some((client, command)) = between(&mut rng, &batched) {
            let answers = [&mut batched, &mut single]
                .map(|server| server.bench.run(client, &command).iter().map(show).collect::<Vec<_>>());
            assert_eq!(answers[0], answers[1], "behind round {round} of seed {seed}, {command}");
        }
        let passed = u64::from(rng.below(6));
        single.bench.pass(passed);
        batched.bench.pass(passed);
        if round % 20 == 0 {
            assert_eq!(batched.state(), single.state(), "behind round {round} of seed {seed}");
        }
    }
}

/// Who hears a message has been told before of what its sender did before it, in the same batch too.
#[test]
fn a_message_comes_behind_what_was_done_before_it() {
    for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
        let (mut bench, sender) = Bench::with(protocol);
        let listener = bench.connect(Protocol::Resp3);
        for command in [
            "CONFIG SET notify-keyspace-events K$",
            "CLIENT TRACKING ON BCAST",
            "SUBSCRIBE news",
            "PSUBSCRIBE __key*",
        ] {
            bench.run(listener, command);
        }
        let list =
            ["SET k 1", "PUBLISH news one", "SET k 2", "SET l 3", "SPUBLISH news none", "PUBLISH news two"];
        let replies = bench.run_batch(&[(sender, list.map(str::to_owned).to_vec())]).remove(0);
        assert_eq!(replies.iter().map(show).collect::<Vec<_>>(), ["OK", "1", "OK", "OK", "0", "1"]);
        let heard: Vec<_> = bench.take(listener).iter().map(show).collect();
        let places: Vec<_> = ["keyspace@0__:k set", "[k]]", "one", "keyspace@0__:l set", "l]]", "two"]
            .map(|what| heard.iter().position(|push| push.contains(what)).expect(what))
            .to_vec();
        // Of what one command has told, events or invalidations may come first.
        assert!(places[..2].iter().max() < Some(&places[2]) && places[2] < places[3], "{heard:?}");
        assert!(places[3..5].iter().max() < Some(&places[5]), "{heard:?}");
        // What a trigger publishes, too.
        for command in
            ["CONFIG SET notify-keyspace-events _", r#"TRIGGER SET t {"key":"tr*","publish":"news"}"#]
        {
            bench.run(listener, &command.replace("events _", "events "));
        }
        bench.run_batch(&[(sender, ["SET k 4", "SET tr 1"].map(str::to_owned).to_vec())]);
        let heard: Vec<_> = bench.take(listener).iter().map(show).collect();
        let place = |what| heard.iter().position(|push: &String| push.contains(what)).expect(what);
        assert!(place("[invalidate [k]]") < place("[message news"), "{heard:?}");
    }
}

/// Nobody runs among neighbours where every command is to be timed by itself.
#[test]
fn a_slow_log_of_everything_has_every_command() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    bench.run(client, "CONFIG SET slowlog-log-slower-than 0");
    let commands: Vec<String> = (0..20).map(|at| format!("SADD set member:{at}")).collect();
    bench.run_batch(&[(client, commands)]);
    let log = bench.text(client, "SLOWLOG GET 100");
    assert_eq!(log.matches("SADD set member:").count(), 20, "{log}");
}

#[test]
fn who_monitors_sees_every_command() {
    let (mut bench, [client, monitor]) = Bench::with_clients([Protocol::Resp3; 2]);
    bench.run(monitor, "MONITOR");
    bench.run_batch(&[(client, (0..20).map(|at| format!("LPUSH list {at}")).collect())]);
    assert_eq!(bench.take(monitor).len(), 20);
}

/// What may take long is timed by itself among its neighbours too, each call once.
#[test]
fn a_slow_one_among_neighbours_is_timed_alone() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    // Quick ones are not timed one by one above a millisecond.
    bench.text(a, "CONFIG SET slowlog-log-slower-than 1000 latency-tracking yes");
    let members: Vec<String> = (0..3000).map(|at| format!("{at:0200}")).collect();
    bench.run(a, &format!("RPUSH long {}", members.join(" ")));
    bench.run(a, "RPUSH short a b");
    bench.text(a, "CONFIG RESETSTAT");
    bench.text(a, "SLOWLOG RESET");
    let shown = members.concat().len();
    let batch: Vec<String> = ["LLEN short", "LRANGE long 0 -1", "LRANGE short 0 -1", "LLEN long"]
        .iter()
        .cycle()
        .take(32)
        .map(|command| (*command).to_owned())
        .collect();
    let replies = bench.run_batch(&[(a, batch)]);
    assert_eq!(replies.len(), 1);
    assert!(shown > 500_000);
    let info = bench.text(a, "INFO commandstats");
    let line = |name: &str| info.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("cmdstat_lrange:").starts_with("cmdstat_lrange:calls=16,usec="), "{info}");
    assert!(line("cmdstat_llen:").starts_with("cmdstat_llen:calls=16,usec="), "{info}");
    let usec = |name: &str| {
        let line = line(name);
        let text =
            line.split(',').find_map(|field| field.strip_prefix("usec=")).unwrap_or_default().to_owned();
        text.parse::<u64>().expect("microseconds")
    };
    assert!(usec("cmdstat_lrange:") > usec("cmdstat_llen:"), "{info}");
    let slow = bench.text(a, "SLOWLOG GET -1");
    assert!(!slow.contains("LLEN"), "{slow}");
}

/// Where it begins is said of a long reply that comes behind others: what nobody has seen before may be long.
#[test]
fn a_long_reply_among_short_ones_begins_where_it_is_said_to() {
    let (mut bench, client) = Bench::with(Protocol::Respb);
    bench.share(2000);
    let mut commands: Vec<String> = (0..10).map(|at| format!("GET missing:{at}")).collect();
    // It is there only when the batch runs: its bucket was looked at before.
    commands.insert(0, format!("SET long {}", "x".repeat(5000)));
    commands.extend(["GET long".to_owned(), "GET missing".to_owned(), "GET long".to_owned()]);
    let replies = bench.run_batch(&[(client, commands)]).remove(0);
    assert_eq!(replies.len(), 14);
    assert_eq!(replies.iter().filter(|reply| show(reply).len() >= 5000).count(), 2);
}

/// Nothing behind EXEC need wait to be read where what it runs has come in front of it, and is nothing that what is
/// behind must wait for.
#[test]
fn exec_is_a_barrier_where_it_may_run_one() {
    for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
        let (mut bench, [client, other]) = Bench::with_clients([protocol; 2]);
        let mut ends = |words: &[(u32, &str)]| {
            let mut barrier = false;
            for (client, command) in words {
                assert!(!barrier, "only the last is asked for: {words:?}");
                barrier = bench.feed(*client, &command.split(' ').map(str::as_bytes).collect::<Vec<_>>());
            }
            bench.run_fed();
            bench.take(client);
            bench.take(other);
            barrier
        };
        // Requests are known by how others began: each the first time, and again.
        for _ in 0..3 {
            assert!(ends(&[(client, "EXEC")]));
            assert!(!ends(&[(client, "MULTI"), (client, "INCR k"), (client, "GET k"), (client, "EXEC")]));
            assert!(!ends(&[(client, "MULTI"), (client, "EXEC")]));
            assert!(!ends(&[(client, "MULTI"), (client, "INCR k")]));
            assert!(ends(&[(client, "GET k"), (client, "EXEC")]), "it began before");
            let spoilt = ["PING", "CLIENT REPLY ON", "DISCARD", "NOTHING"];
            for command in spoilt {
                assert!(ends(&[(client, "MULTI"), (client, command), (client, "EXEC")]), "{command}");
            }
            assert!(ends(&[(client, "MULTI"), (other, "GET k"), (client, "EXEC")]), "another's between");
            assert!(ends(&[(other, "MULTI"), (client, "EXEC")]), "another's");
            ends(&[(other, "EXEC")]);
        }
    }
}

/// What was queued before a MULTI that is refused is lost: else EXEC, no barrier, would run it.
#[test]
fn a_second_multi_spoils_what_was_open() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    bench.text(client, "SET k v");
    bench.run(client, "MULTI");
    bench.run(client, "AUTH default x");
    let replies =
        bench.run_batch(&[(client, ["MULTI", "GET k", "EXEC"].map(str::to_owned).to_vec())]).remove(0);
    let texts: Vec<String> = replies.iter().map(show).collect();
    assert!(
        texts[0].contains("not allowed inside a transaction")
            && texts[1].contains("QUEUED")
            && texts[2].contains("EXECABORT"),
        "{texts:?}"
    );
}

/// A transaction locks what its own keys need. Who waits for one of them and for others is served all the same.
#[test]
fn who_waits_for_other_keys_too_is_served_by_a_transaction() {
    let (mut bench, [client, waiting]) = Bench::with_clients([Protocol::Resp3; 2]);
    bench.run(waiting, "BLPOP a b c d e f g h 0");
    bench.run(client, "PING");
    // Too few to have the keyspace to themselves.
    let replies = bench.run_batch(&[(client, ["MULTI", "RPUSH a x", "EXEC"].map(str::to_owned).to_vec())]);
    assert_eq!(replies[0].len(), 3);
    assert!(!bench.is_waiting(waiting));
    assert_eq!(bench.take(waiting).len(), 1);
}
