//! Limits of what is stored and asked for that have no test beside what they belong to: each at it and one past it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs::File;
use std::sync::atomic::Ordering::Relaxed;

use support::{Bench, show};
use weft_engine::reply::Protocol;
use weft_protocol::Reply;
use weft_store::catalogue::Section;
use weft_store::{Op, Recorder};

/// Has a section of the catalogue hold so many entries, as a log brings them: commands would take quadratic time.
fn put(bench: &Bench, section: Section, count: usize, entry: impl Fn(&str) -> Vec<u8>) {
    let keyspace = &bench.engine.keyspace;
    {
        let mut worker = keyspace.worker().unwrap();
        let world = worker.world();
        let (mut guards, mut recorder) = (world.guards(), Recorder::default());
        for number in keyspace.catalogue().len(section)..count {
            let name = format!("copy{number}");
            let key = keyspace.key(name.as_bytes());
            let mut op = Op::untouched(0, support::START_MS, &mut recorder);
            guards.shard(&key).set_entry(&mut op, section, name.as_bytes(), Some(&entry(&name)));
        }
    }
    assert_eq!(bench.engine.load_catalogue(), Vec::<String>::new());
}

#[test]
fn so_many_programs_and_triggers_may_be_stored() {
    let program = r#"{"steps":[["GET","k"]]}"#;
    let trigger = r#"{"on":["set"],"key":"none","inside":"count"}"#;
    for (section, kind, max, text) in
        [(Section::Programs, "program", 10_000, program), (Section::Triggers, "trigger", 65_536, trigger)]
    {
        let (mut bench, a) = Bench::with(Protocol::Resp3);
        let set = |bench: &mut Bench, name: &str| {
            show(&bench.run_args(a, &[kind.as_bytes(), b"SET", name.as_bytes(), text.as_bytes()]).remove(0))
        };
        assert_eq!(set(&mut bench, "first"), "1");
        let (_, entry) = bench.engine.keyspace.catalogue().entries(section).remove(0);
        put(&bench, section, max - 1, |_| entry.to_vec());
        assert_eq!(set(&mut bench, "last"), "1", "{kind}");
        assert_eq!(set(&mut bench, "more"), format!("-ERR {max} {kind}s may be stored"));
        assert_eq!(set(&mut bench, "last"), "2", "another version takes the place of one");
        assert_eq!(bench.text(a, &format!("{kind} DEL first")), "1");
        assert_eq!(set(&mut bench, "more"), "2", "{kind}: behind what was deleted");
    }
}

#[test]
fn so_many_libraries_may_be_stored() {
    const LIBRARIES_MAX: usize = 10_000;
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let source = |name: &str| format!("#!lua name={name}\nredis.register_function('{name}', function() end)");
    let load = |bench: &mut Bench, name: &str| {
        let words = [b"FUNCTION", &b"LOAD"[..], b"REPLACE", &source(name).into_bytes()];
        show(&bench.run_args(a, &words).remove(0))
    };
    load(&mut bench, "first");
    let one = bench.run_args(a, &[b"FUNCTION", b"DUMP"]).remove(0);
    put(&bench, Section::Functions, LIBRARIES_MAX - 1, |name| source(name).into_bytes());
    assert_eq!(load(&mut bench, "last"), "last");
    let dump = bench.run_args(a, &[b"FUNCTION", b"DUMP"]).remove(0);
    let refused = "-ERR there can be 10000 libraries: delete some first";
    assert_eq!(load(&mut bench, "more"), refused);
    assert_eq!(load(&mut bench, "last"), "last", "it takes the place of one");
    let restore = |bench: &mut Bench, dump: &Reply, policy: &[u8]| {
        let Reply::Bulk(dump) = dump else { panic!("no dump") };
        show(&bench.run_args(a, &[b"FUNCTION", b"RESTORE", dump, policy]).remove(0))
    };
    bench.text(a, "FUNCTION DELETE first");
    assert_eq!(load(&mut bench, "more"), "more");
    assert_eq!(restore(&mut bench, &one, b"APPEND"), refused);
    assert_eq!(restore(&mut bench, &dump, b"REPLACE"), refused, "one of them would be one more");
    assert_eq!(restore(&mut bench, &one, b"FLUSH"), "OK");
}

/// Who stores, replaces or deletes a library, or looks what there is, looks at what has changed, however many others
/// are stored. It is counted, and not timed.
#[test]
fn a_library_is_stored_at_the_same_cost_beside_many() {
    const MANY: usize = 5_000;
    let mut team = Bench::team(2);
    let a: Vec<u32> = team.iter_mut().map(|bench| bench.connect(Protocol::Resp3)).collect();
    let source = |name: &str| format!("#!lua name={name}\nredis.register_function('{name}', function() end)");
    let load = |bench: &mut Bench, a: u32, name: &str| {
        let words = [b"FUNCTION", &b"LOAD"[..], b"REPLACE", &source(name).into_bytes()];
        assert_eq!(show(&bench.run_args(a, &words).remove(0)), name);
    };
    put(&team[0], Section::Functions, MANY, |name| source(name).into_bytes());
    let compared = |bench: &Bench| bench.engine.scripts.compared.load(Relaxed);
    for (bench, a) in team.iter_mut().zip(&a) {
        assert_eq!(show(&bench.one(*a, "FUNCTION STATS")).matches("5000").count(), 2, "all are seen");
        assert_eq!(bench.text(*a, "FCALL copy7 0"), "nil");
    }
    let before = compared(&team[0]);
    assert_eq!(before, 2 * MANY as u64, "each worker has looked at all of them once");
    for round in 0..50 {
        let (bench, a) = (&mut team[round % 2], a[round % 2]);
        load(bench, a, "one");
        load(bench, a, &format!("other{round}"));
        assert_eq!(
            bench.text(a, "FUNCTION DELETE copy9"),
            if round == 0 { "OK" } else { "-ERR Library not found" }
        );
        assert_eq!(bench.text(a, &format!("FCALL other{round} 0")), "nil");
        assert!(bench.text(a, "FCALL none 0").starts_with("-ERR Function not found"));
        if round > 0 {
            assert_eq!(bench.text(a, &format!("FCALL other{} 0", round - 1)), "nil", "another worker's");
            assert_eq!(bench.text(a, &format!("FUNCTION DELETE other{}", round - 1)), "OK");
        }
    }
    let each = (compared(&team[0]) - before) / 50;
    assert!(each <= 12, "{each} libraries were looked at for each round");
    let stats = show(&team[0].one(a[0], "FUNCTION STATS"));
    assert_eq!(stats.matches(&format!("{}", MANY + 1)).count(), 2, "{stats}");
}

#[test]
fn names_and_texts_have_lengths() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let mut run = |words: &[&[u8]]| show(&bench.run_args(a, words).remove(0));
    let name = |len: usize| vec![b'n'; len];
    let program = br#"{"steps":[["GET","k"]]}"#;
    assert_eq!(run(&[b"PROGRAM", b"SET", &name(128), program]), "1");
    assert!(run(&[b"PROGRAM", b"SET", &name(129), program]).starts_with("-ERR "));
    let trigger = |len: usize| {
        let text = r#"{"on":["set"],"key":"none","inside":"count"}"#;
        [text.as_bytes(), &vec![b' '; len - text.len()]].concat()
    };
    assert_eq!(run(&[b"TRIGGER", b"SET", b"t", &trigger(64 << 10)]), "1");
    let reply = run(&[b"TRIGGER", b"SET", b"t", &trigger((64 << 10) + 1)]);
    assert!(reply.contains("a trigger has 65536 bytes at most"), "{reply}");
    run(&[b"XADD", b"s", b"1-1", b"f", b"v"]);
    // What is no number is told by its text, what is longer than any is not looked at.
    let id = |len: usize| [vec![b'0'; len - 3], b"1-1".to_vec()].concat();
    assert_eq!(
        run(&[b"XDEL", b"s", &id(128)]),
        "-ERR Invalid stream ID specified as stream command argument"
    );
    assert_eq!(run(&[b"XDEL", b"s", &id(127)]), "1");
}

#[test]
fn so_much_is_answered_or_fired_at_once() {
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let count: &[u8] = br#"{"steps":[["INCR","fired"]]}"#;
    assert_eq!(show(&bench.run_args(a, &[b"PROGRAM", b"SET", b"count", count]).remove(0)), "1");
    let trigger: &[u8] = br#"{"on":["set"],"key":"k:*","inside":"count"}"#;
    assert_eq!(show(&bench.run_args(a, &[b"TRIGGER", b"SET", b"t", trigger]).remove(0)), "1");
    let mset = |count: usize| {
        let pairs = (0..count).map(|number| format!(" k:{number} v"));
        format!("MSET{}", pairs.collect::<String>())
    };
    assert_eq!(bench.text(a, &mset(1024)), "OK");
    assert_eq!(bench.text(a, "GET fired"), "1024");
    let reply = bench.text(a, &mset(1025));
    assert!(reply.contains("a command fires 1024 triggers at most"), "{reply}");
    assert_eq!(bench.text(a, "GET fired"), "1024", "all of it is taken back");

    let range = |to: u32| format!(r#"{{"steps":[{{"return":{{"length":{{"range":[0,{to}]}}}}}}]}}"#);
    let eval = |bench: &mut Bench, text: String| {
        show(&bench.run_args(a, &[b"PROGRAM", b"EVAL", text.as_bytes()]).remove(0))
    };
    assert_eq!(eval(&mut bench, range(100_000)), "100000");
    let reply = eval(&mut bench, range(100_001));
    assert!(reply.contains("a range has 100000 integers at most"), "{reply}");

    bench.text(a, "SADD members m");
    let reply = bench.text(a, "SRANDMEMBER members -4194305");
    assert!(reply.contains("a reply has at most 4194304 random elements"), "{reply}");
    let reply = bench.one(a, "SRANDMEMBER members -4194304");
    assert!(matches!(&reply, Reply::Array(all) if all.len() == 4_194_304));
}

#[test]
fn a_session_watches_so_many_keys() {
    const WATCHED_MAX: usize = 1 << 20;
    const EACH: usize = 1 << 16;
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let mut watch = |from: usize, to: usize| {
        let names: Vec<String> = (from..to).map(|number| number.to_string()).collect();
        let words: Vec<&[u8]> =
            std::iter::once(&b"WATCH"[..]).chain(names.iter().map(String::as_bytes)).collect();
        show(&bench.run_args(a, &words).remove(0))
    };
    for from in (0..WATCHED_MAX).step_by(EACH) {
        assert_eq!(watch(from, from + EACH), "OK");
    }
    assert!(watch(WATCHED_MAX, WATCHED_MAX + 1).contains("too many watched keys"));
    assert_eq!(watch(0, 1), "OK", "it is watched already");
}

#[test]
fn a_file_of_users_has_a_length() {
    let path = std::env::temp_dir().join(format!("weft-limits-{}.acl", std::process::id()));
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    *bench.engine.acl.file.lock() = Some(path.clone());
    // A hole, which takes no place: what is read of it is no user.
    let file = File::create(&path).unwrap();
    for (bytes, is_too_large) in [(64_u64 << 20, false), ((64 << 20) + 1, true)] {
        file.set_len(bytes).unwrap();
        let reply = bench.text(a, "ACL LOAD");
        assert_eq!(reply.contains("larger than 64 MiB"), is_too_large, "{}", &reply[..reply.len().min(200)]);
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn scripts_and_libraries_have_a_length_and_errors_show_little_of_a_word() {
    const SOURCE_BYTES_MAX: usize = 4 << 20;
    let (mut bench, a) = Bench::with(Protocol::Resp3);
    let mut run = |words: &[&[u8]]| show(&bench.run_args(a, words).remove(0));
    let long = |head: &str, bytes: usize| [head.as_bytes(), &vec![b'x'; bytes - head.len()]].concat();
    let script = |bytes: usize| long("return 1 --", bytes);
    assert_eq!(run(&[b"EVAL", &script(SOURCE_BYTES_MAX), b"0"]), "1");
    let refused = "-ERR the script is longer than 4194304 bytes";
    let more = script(SOURCE_BYTES_MAX + 1);
    assert_eq!(run(&[b"EVAL", &more, b"0"]), refused);
    assert_eq!(run(&[b"SCRIPT", b"LOAD", &more]), refused);
    let library = |bytes: usize| long("#!lua name=l\nredis.register_function('f', function() end) --", bytes);
    assert_eq!(run(&[b"FUNCTION", b"LOAD", &library(SOURCE_BYTES_MAX)]), "l");
    let refused = "-ERR the library is longer than 4194304 bytes";
    assert_eq!(run(&[b"FUNCTION", b"LOAD", b"REPLACE", &library(SOURCE_BYTES_MAX + 1)]), refused);
    // A word of its own is not sent back to a client as a whole.
    let word = vec![b'w'; 100_000];
    let line = |text: &[u8]| [text, &word, b"\nreturn 1"].concat();
    let commands: [&[&[u8]]; 9] = [
        &[b"FUNCTION", b"LOAD", &word, b"x"],
        &[b"FUNCTION", b"LIST", &word],
        &[b"FUNCTION", b"FLUSH", &word],
        &[b"FUNCTION", b"LOAD", &line(b"#!lua name=l ")],
        &[b"FUNCTION", b"LOAD", &line(b"#!")],
        &[b"EVAL", &line(b"#!"), b"0"],
        &[b"EVAL", &line(b"#!lua "), b"0"],
        &[b"EVAL", &line(b"#!lua flags="), b"0"],
        &[b"EVAL", b"return redis.call('CLIENT', ARGV[1])", b"0", &word],
    ];
    for command in commands {
        let answer = run(command);
        assert!(answer.starts_with("-ERR ") && answer.len() < 400, "{} bytes: {:.400}", answer.len(), answer);
    }
}
