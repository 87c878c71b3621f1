//! Owns: scripts and functions against a keyspace: what they may touch, what is taken back, what is kept. Does not own:
//! Lua (`crates/lua/tests`), the replies of each command (`scenarios.rs`).

mod support;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::stored::{store_library, words};
use support::{Bench, Reply, cpu_ns, show};
use weft_engine::command_log::LogKind;
use weft_engine::reply::Protocol;

#[test]
fn alone_nothing_that_is_not_declared_costs_anything() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let script = "redis.call('incr', 'first') redis.call('set', 'other', #redis.call('keys', '*')) \
                  return redis.call('get', 'other')";
    assert_eq!(words(&mut bench, client, &["EVAL", script, "0"]), "1");
    let scripts = &bench.engine.scripts;
    assert_eq!((scripts.reruns.load(Relaxed), scripts.undeclared.load(Relaxed)), (0, 0));
}

#[test]
fn the_end_of_a_worker_ends_no_script_of_the_one_in_its_place() {
    let script = ["EVAL", "redis.call('set', KEYS[1], 'x') return redis.call('get', KEYS[1])", "1", "key"];
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    assert_eq!(words(&mut bench, client, &script), "x");
    let (engine, clock) = (bench.engine, Arc::clone(&bench.clock));
    drop(bench);
    let mut bench = Bench::of((engine, clock), 0);
    let client = bench.connect(Protocol::Resp2);
    assert_eq!(words(&mut bench, client, &script), "x");
}

#[test]
fn beside_others_locks_are_tried_and_what_needs_everything_runs_again() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    bench.engine.stats.active_threads.store(2, Relaxed);
    let script = "redis.call('incr', KEYS[1]) for i = 1, 50 do redis.call('set', 'made:' .. i, i) end \
                  return redis.call('get', KEYS[1])";
    assert_eq!(words(&mut bench, client, &["EVAL", script, "1", "first"]), "1");
    assert_eq!(words(&mut bench, client, &["DBSIZE"]), "51");
    let counts = |bench: &Bench| {
        let scripts = &bench.engine.scripts;
        (scripts.undeclared.load(Relaxed), scripts.reruns.load(Relaxed))
    };
    assert_eq!(counts(&bench), (1, 0), "nobody had them");
    let everything = "redis.call('incr', KEYS[1]) return #redis.call('keys', '*')";
    assert_eq!(words(&mut bench, client, &["EVAL", everything, "1", "first"]), "51");
    // What was done before the script ran again was taken back: it has counted once.
    assert_eq!(words(&mut bench, client, &["GET", "first"]), "2");
    assert_eq!(counts(&bench), (1, 1));
    assert_eq!(words(&mut bench, client, &["EVAL", everything, "1", "first"]), "51");
    assert_eq!(counts(&bench), (1, 1), "the script is remembered");
    let info = words(&mut bench, client, &["INFO", "stats"]);
    assert!(
        info.contains("script_undeclared_locks:1") && info.contains("script_undeclared_reruns:1"),
        "{info}"
    );
    let calls = words(&mut bench, client, &["INFO", "commandstats"]);
    let incr = calls.lines().find(|line| line.starts_with("cmdstat_incr:")).unwrap_or_default();
    assert!(incr.contains("calls=3,"), "what was taken back has not counted: {incr}");
}

/// Neighbouring scripts of a client go to their stack together.
#[test]
fn scripts_of_a_pipeline_answer_each_by_itself() {
    for protocol in [Protocol::Resp2, Protocol::Respb] {
        let (mut bench, [client, other]) = Bench::with_clients([protocol, Protocol::Resp2]);
        for threads in [1, 2] {
            bench.engine.stats.active_threads.store(threads, Relaxed);
            bench.text(client, "FLUSHALL");
            let lines: Vec<String> = (0..24)
                .map(|at| match at % 6 {
                    0 => format!("EVAL return{{redis.call('incr','n'),ARGV[1]}} 0 {at}"),
                    1 => "EVAL return/ 0".to_owned(),
                    2 => "EVAL return(redis.call('lpop','n')) 1 n".to_owned(),
                    3 => format!("EVAL return(string.rep('x',{})) 0", 100 << (at / 2)),
                    4 => "EVALSHA none".to_owned(),
                    _ => "GET n".to_owned(),
                })
                .collect();
            let more = vec!["EVAL return(redis.call('incr','n')) 1 n".to_owned(), "GET n".to_owned()];
            let replies = bench.run_batch(&[(client, lines), (other, more)]);
            let shown: Vec<String> = replies[0].iter().map(show).collect();
            assert_eq!(shown.len(), 24, "{protocol:?}");
            for (at, reply) in shown.iter().enumerate() {
                let is = match at % 6 {
                    0 => *reply == format!("[{} {at}]", at / 6 + 1),
                    1 => reply.starts_with("-ERR Error compiling script"),
                    2 => reply.starts_with("-WRONGTYPE"),
                    3 => reply.len() == 100 << (at / 2),
                    4 => reply.starts_with("-ERR wrong number of arguments"),
                    _ => *reply == (at / 6 + 1).to_string(),
                };
                assert!(
                    is,
                    "{protocol:?}, {threads} threads, number {at}: {}",
                    &reply[..reply.len().min(100)]
                );
            }
            assert_eq!(replies[1].iter().map(support::show).collect::<Vec<_>>(), ["5", "5"]);
        }
    }
}

#[test]
fn an_error_keeps_what_was_written() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let script = "redis.call('set', KEYS[1], 1) redis.call('nosuch')";
    assert!(words(&mut bench, client, &["EVAL", script, "1", "k"]).contains("Unknown command"));
    assert!(words(&mut bench, client, &["GET", "k"]).contains('1'), "the key is there");
    let caught = "local r = redis.pcall('incr', KEYS[1]) redis.call('set', KEYS[1], 'x') \
                  local e = redis.pcall('incr', KEYS[1]) return {r, e.err}";
    assert!(words(&mut bench, client, &["EVAL", caught, "1", "n"]).contains('1'));
}

#[test]
fn scripts_run_inside_transactions_and_with_the_rights_of_their_user() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    words(&mut bench, client, &["MULTI"]);
    words(&mut bench, client, &["EVAL", "return redis.call('incr', 'somewhere')", "0"]);
    words(&mut bench, client, &["EVAL", "return redis.call('select', '3')", "0"]);
    words(&mut bench, client, &["GET", "somewhere"]);
    assert!(words(&mut bench, client, &["EXEC"]).contains('1'));
    words(&mut bench, client, &["ACL", "SETUSER", "u", "on", "nopass", "+@scripting", "+get", "~a*"]);
    words(&mut bench, client, &["AUTH", "u", "x"]);
    let got = words(&mut bench, client, &["EVAL", "return redis.call('set', 'a', 1)", "0"]);
    assert!(got.contains("ACL failure in script: User u has no permissions"), "{got}");
    let got = words(&mut bench, client, &["EVAL", "return redis.call('get', 'b')", "0"]);
    assert!(got.contains("ACL failure in script"), "{got}");
    let may =
        "return {tostring(redis.acl_check_cmd('get', 'a')), tostring(redis.acl_check_cmd('set', 'a', 1))}";
    let got = words(&mut bench, client, &["EVAL", may, "0"]);
    assert_eq!(got, "[true false]");
    // What is no command is an error and not an answer, also behind the name of a container.
    for asked in ["'nosuch'", "'client', 'nosuch'"] {
        let got = words(&mut bench, client, &["EVAL", &format!("return redis.acl_check_cmd({asked})"), "0"]);
        assert!(got.contains("Invalid command passed to server.acl_check_cmd()"), "{asked}: {got}");
    }
}

/// A client that writes its arguments into each script pays for that script alone, also when another one gives way;
/// what is still run stays.
#[test]
fn a_script_that_gives_way_costs_the_next_one_little() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let mut number = 0;
    let mut cost_ns = |bench: &mut Bench| {
        let began = cpu_ns();
        for _ in 0..100 {
            number += 1;
            words(bench, client, &["EVAL", &format!("return {number}"), "0"]);
            words(bench, client, &["EVAL", "return 'stays'", "0"]);
        }
        cpu_ns() - began
    };
    let before = (0..4).map(|_| cost_ns(&mut bench)).min().unwrap();
    assert_eq!(bench.engine.scripts.evicted.load(Relaxed), 0);
    let _full = [cost_ns(&mut bench), cost_ns(&mut bench)];
    let behind = (0..8).map(|_| cost_ns(&mut bench)).min().unwrap();
    assert_eq!(bench.engine.scripts.evicted.load(Relaxed), 1401 - weft_engine::script::CACHED_MAX as u64);
    let stays = weft_lua::sha1_hex(b"return 'stays'");
    assert!(bench.engine.scripts.get(&stays).is_some());
    assert!(behind < 3 * before, "{behind} ns beside {before}");
}

#[test]
fn scripts_of_eval_give_way_and_loaded_ones_stay() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let loaded = words(&mut bench, client, &["SCRIPT", "LOAD", "return 'stays'"]);
    assert_eq!(loaded.len(), 40);
    for n in 0..=weft_engine::script::CACHED_MAX {
        words(&mut bench, client, &["EVAL", &format!("return {n}"), "0"]);
    }
    let (kept, _) = bench.engine.scripts.kept();
    assert_eq!(kept, weft_engine::script::CACHED_MAX + 1);
    assert_eq!(bench.engine.scripts.evicted.load(Relaxed), 1);
    let sha = |script: &str| String::from_utf8(weft_lua::sha1_hex(script.as_bytes()).to_vec()).unwrap();
    let exists = words(
        &mut bench,
        client,
        &["SCRIPT", "EXISTS", &sha("return 'stays'"), &sha("return 0"), &sha("return 500")],
    );
    assert_eq!(exists.matches('1').count(), 2, "{exists}");
    assert!(words(&mut bench, client, &["EVALSHA", &sha("return 0"), "0"]).contains("NOSCRIPT"));
}

#[test]
fn libraries_survive_flushall_and_come_back_from_a_dump() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let library =
        "#!lua name=lib\nredis.register_function('f', function(keys) return redis.call('incr', keys[1]) end)";
    words(&mut bench, client, &["FUNCTION", "LOAD", library]);
    words(&mut bench, client, &["FLUSHALL"]);
    assert!(words(&mut bench, client, &["FCALL", "f", "1", "n"]).contains('1'));
    let dumped = bench.run_args(client, &[b"FUNCTION", b"DUMP"]);
    let Reply::Bulk(dump) = &dumped[0] else { panic!("{dumped:?}") };
    let dump = dump.to_vec();
    words(&mut bench, client, &["FUNCTION", "FLUSH"]);
    assert!(words(&mut bench, client, &["FCALL", "f", "1", "n"]).contains("Function not found"));
    for cut in 0..dump.len() {
        let got = bench.run_args(client, &[b"FUNCTION", b"RESTORE", &dump[..cut]]);
        assert!(show(&got[0]).starts_with('-'), "a dump of {cut} bytes is none");
    }
    bench.run_args(client, &[b"FUNCTION", b"RESTORE", &dump]);
    assert!(words(&mut bench, client, &["FCALL", "F", "1", "n"]).contains('2'));
    let again = bench.run_args(client, &[b"FUNCTION", b"RESTORE", &dump]);
    assert!(show(&again[0]).contains("already exists"));
    let replaced = bench.run_args(client, &[b"FUNCTION", b"RESTORE", &dump, b"REPLACE"]);
    assert_eq!(show(&replaced[0]), "OK");
}

#[test]
fn info_and_memory_stats_tell_of_scripts_and_functions() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let info = |bench: &mut Bench, name: &str| -> u64 {
        let all = words(bench, client, &["INFO", "everything"]);
        let of = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim_end().parse().ok();
        all.lines().find_map(of).unwrap_or_else(|| panic!("INFO has no number {name}"))
    };
    let stats = |bench: &mut Bench, name: &str| -> i64 {
        let all = bench.run_args(client, &[b"MEMORY", b"STATS"]);
        let Reply::Array(fields) = &all[0] else { panic!("{all:?}") };
        let at = fields.iter().position(|field| *field == Reply::Bulk(name.into()));
        match fields[at.unwrap_or_else(|| panic!("MEMORY STATS has no {name}")) + 1] {
            Reply::Int(value) => value,
            ref other => panic!("{name}: {other:?}"),
        }
    };
    let counts = ["number_of_cached_scripts", "number_of_functions", "number_of_libraries"];
    let counted = |bench: &mut Bench| counts.map(|name| info(bench, name));
    assert_eq!(counted(&mut bench), [0, 0, 0]);
    let empty = ["lua.caches", "functions.caches"].map(|name| stats(&mut bench, name));
    words(&mut bench, client, &["SCRIPT", "LOAD", "return 'kept'"]);
    // What a state takes is told in steps of 64 KiB.
    let takes = "local t = {} for i = 1, 20000 do t[i] = 'text ' .. i end return #t";
    assert_eq!(words(&mut bench, client, &["EVAL", takes, "0"]), "20000");
    let library = "#!lua name=lib\nredis.register_function('f', function() end) \
                   redis.register_function('g', function() end)";
    words(&mut bench, client, &["FUNCTION", "LOAD", library]);
    words(&mut bench, client, &["FCALL", "f", "0"]);
    assert_eq!(counted(&mut bench), [2, 2, 1]);
    for name in ["used_memory_lua", "used_memory_vm_eval", "used_memory_vm_total"] {
        assert!(info(&mut bench, name) > 0, "{name}");
    }
    assert!(info(&mut bench, "used_memory_scripts_eval") >= 31);
    let functions = info(&mut bench, "used_memory_functions");
    assert_eq!(functions, (library.len() + "lib".len()) as u64);
    assert!(info(&mut bench, "used_memory_scripts") >= functions + 31);
    let full = ["lua.caches", "functions.caches"].map(|name| stats(&mut bench, name));
    assert!(empty[0] < full[0] && empty[1] == 0 && full[1] == functions as i64, "{empty:?}, {full:?}");
    for n in 0..=weft_engine::script::CACHED_MAX {
        words(&mut bench, client, &["EVAL", &format!("return {n}"), "0"]);
    }
    assert_eq!(info(&mut bench, "evicted_scripts"), 2);
    words(&mut bench, client, &["SCRIPT", "FLUSH"]);
    words(&mut bench, client, &["FUNCTION", "FLUSH"]);
    words(&mut bench, client, &["FUNCTION", "STATS"]);
    assert_eq!(counted(&mut bench), [0, 0, 0]);
    assert_eq!(stats(&mut bench, "functions.caches"), 0);
}

#[test]
fn a_command_takes_all_that_unpack_gives() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    for (count, behind) in [(7990, ""), (7998, ""), (7999, ""), (7999, ", 'one more'")] {
        words(&mut bench, client, &["DEL", "l"]);
        let script = format!(
            "local a = {{}} for i = 1, {count} do a[i] = i end \
             local n = redis.call('RPUSH', 'l', unpack(a){behind}) \
             return {{n, redis.call('LINDEX', 'l', -1), #redis.call('LRANGE', 'l', 0, -1)}}"
        );
        // What stands behind cuts `unpack(a)` to its first value.
        let expected = if behind.is_empty() {
            format!("[{count} {count} {count}]")
        } else {
            "[2 one more 2]".to_owned()
        };
        assert_eq!(words(&mut bench, client, &["EVAL", &script, "1", "l"]), expected);
    }
    let nested = "local a = {} for i = 1, 7999 do a[i] = 'missing' end return #redis.call('MGET', unpack(a))";
    assert_eq!(words(&mut bench, client, &["EVAL", nested, "0"]), "7999");
    let wrong = "local a = {} for i = 1, 7999 do a[i] = {} end return redis.pcall('MGET', unpack(a))";
    assert!(words(&mut bench, client, &["EVAL", wrong, "0"]).contains("must be strings or integers"));
}

#[test]
fn debug_lets_scripts_call_what_they_may_not() {
    let mut bench = Bench::new();
    bench.allow_debug();
    let client = bench.connect(Protocol::Resp3);
    let script = "redis.setresp(3) return redis.call('DEBUG', 'PROTOCOL', 'BIGNUM').big_number";
    assert!(words(&mut bench, client, &["EVAL", script, "0"]).contains("not allowed from script"));
    assert_eq!(words(&mut bench, client, &["DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1"]), "OK");
    assert!(
        words(&mut bench, client, &["EVAL", script, "0"]).contains("1234567999999999999999999999999999999")
    );
    assert!(words(&mut bench, client, &["EVAL", "return redis.call('MULTI')", "0"]).contains("not allowed"));
    assert_eq!(words(&mut bench, client, &["DEBUG", "SET-DISABLE-DENY-SCRIPTS", "0"]), "OK");
    assert!(words(&mut bench, client, &["EVAL", script, "0"]).contains("not allowed from script"));
}

#[test]
fn a_limit_that_holds_no_key_refuses_the_first_write() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    words(&mut bench, client, &["CONFIG", "SET", "maxmemory", "1"]);
    assert!(
        words(&mut bench, client, &["EVAL", "return redis.call('SET', 'x', 1)", "0"]).starts_with("-OOM")
    );
    assert!(words(&mut bench, client, &["SET", "x", "1"]).starts_with("-OOM"));
    assert_eq!(words(&mut bench, client, &["GET", "x"]), words(&mut bench, client, &["GET", "y"]));
    words(&mut bench, client, &["CONFIG", "SET", "maxmemory", "1000"]);
    assert_eq!(words(&mut bench, client, &["SET", "x", "1"]), "OK");
}

#[test]
fn time_stands_still_for_a_script_and_what_it_may_not_run_is_counted() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    bench.allow_debug();
    // By the system's clock, TIME is finer than the time that commands run at.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    bench.pass(now.as_millis() as u64 - bench.clock_ms());
    words(&mut bench, client, &["DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1"]);
    let script = "local a = redis.call('TIME') redis.call('DEBUG', 'SLEEP', '0.01') local b = redis.call('TIME') \
                  return {tostring(a[1] == b[1] and a[2] == b[2]), a[2]}";
    let first = words(&mut bench, client, &["EVAL", script, "0"]);
    assert!(first.starts_with("[true "), "{first}");
    bench.pass(5);
    assert_ne!(
        words(&mut bench, client, &["EVAL", script, "0"]),
        first,
        "the next script has a time of its own"
    );
    words(&mut bench, client, &["CONFIG", "SET", "maxmemory", "1"]);
    words(&mut bench, client, &["CONFIG", "RESETSTAT"]);
    assert_eq!(
        words(&mut bench, client, &["EVAL", "return redis.pcall('SET', 'x', 'y').err", "0"]),
        "OOM command not allowed when used memory > 'maxmemory'."
    );
    let stats = words(&mut bench, client, &["INFO", "commandstats"]);
    let set = stats.lines().find(|line| line.starts_with("cmdstat_set:")).unwrap_or_default();
    assert!(set.contains("calls=0,") && set.contains("rejected_calls=1,failed_calls=0"), "{stats}");
}

#[test]
fn a_set_that_a_script_sorts_by_nothing_has_one_order() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    words(&mut bench, client, &["SADD", "s", "d", "b", "aa", "c", "a"]);
    let script = "return redis.call('SORT', KEYS[1], 'BY', '_')";
    assert_eq!(words(&mut bench, client, &["EVAL", script, "1", "s"]), "[a aa b c d]");
}

#[test]
fn read_only_scripts_tell_nobody_anything_either() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let refused = "-ERR Write commands are not allowed from read-only scripts.";
    for script in ["return redis.call('PUBLISH', 'c', 'm')", "return redis.call('SET', 'k', 'v')"] {
        assert!(words(&mut bench, client, &["EVAL_RO", script, "0"]).starts_with(refused), "{script}");
        let script = format!("#!lua flags=no-writes\n{script}");
        assert!(words(&mut bench, client, &["EVAL", &script, "0"]).starts_with(refused), "{script}");
    }
    // But for a write that had no room: as in Valkey that is said first.
    words(&mut bench, client, &["CONFIG", "SET", "maxmemory", "1"]);
    let script = "return redis.call('SET', 'k', 'v')";
    assert!(words(&mut bench, client, &["EVAL_RO", script, "0"]).starts_with("-OOM "));
}

/// As Valkey 9.1.2 answers it.
#[test]
fn where_there_is_no_memory_scripts_are_queued_as_they_say_of_themselves() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let library = "#!lua name=l\nredis.register_function('f', function() return 1 end) \
                   redis.register_function{function_name='reads', callback=function() return 1 end, flags={'no-writes'}}";
    words(&mut bench, client, &["FUNCTION", "LOAD", library]);
    words(&mut bench, client, &["CONFIG", "SET", "maxmemory", "1"]);
    for (request, may) in [
        (&["EVAL", "return 1", "0"][..], true),
        (&["EVAL", "#!lua\nreturn 1", "0"], false),
        (&["EVAL_RO", "#!lua\nreturn 1", "0"], false),
        (&["EVAL", "#!lua flags=allow-oom\nreturn 1", "0"], true),
        (&["EVAL", "#!lua flags=no-writes\nreturn 1", "0"], true),
        (&["FCALL", "f", "0"], false),
        (&["FCALL_RO", "f", "0"], false),
        (&["FCALL", "reads", "0"], true),
    ] {
        let refused = "-OOM command not allowed when used memory > 'maxmemory'.";
        assert_eq!(words(&mut bench, client, request) == refused, !may, "{request:?}");
        words(&mut bench, client, &["MULTI"]);
        assert_eq!(words(&mut bench, client, request), if may { "QUEUED" } else { refused }, "{request:?}");
        assert_eq!(words(&mut bench, client, &["EXEC"]).starts_with("-EXECABORT"), !may, "{request:?}");
    }
}

#[test]
fn what_touches_other_keys_is_seen_anew_when_functions_change() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    bench.engine.stats.active_threads.store(2, Relaxed);
    let library =
        |body: &str| format!("#!lua name=l\nredis.register_function('f', function(keys) {body} end)");
    let reruns = |bench: &Bench| bench.engine.scripts.reruns.load(Relaxed);
    words(&mut bench, client, &["FUNCTION", "LOAD", &library("return #redis.call('KEYS', '*')")]);
    assert_eq!(words(&mut bench, client, &["FCALL", "f", "0"]), "0");
    assert_eq!(words(&mut bench, client, &["FCALL", "f", "0"]), "0");
    assert_eq!(reruns(&bench), 1, "it is known by now");
    words(&mut bench, client, &["FUNCTION", "LOAD", "REPLACE", &library("return #redis.call('KEYS', 'x*')")]);
    // The first call has what the function of before needed, the next one is asked what it needs.
    words(&mut bench, client, &["FCALL", "f", "0"]);
    words(&mut bench, client, &["FCALL", "f", "0"]);
    assert_eq!(reruns(&bench), 2, "another function of the name");
}

#[test]
fn a_library_that_comes_leaves_the_others_as_they_are() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let counter =
        "#!lua name=a\nlocal n = 0 server.register_function('count', function() n = n + 1 return n end)";
    let other = |name: &str, gives: u32| {
        format!("#!lua name={name}\nserver.register_function('f_{name}', function() return {gives} end)")
    };
    words(&mut bench, client, &["FUNCTION", "LOAD", counter]);
    assert_eq!(words(&mut bench, client, &["FCALL", "count", "0"]), "1");
    for name in ["0", "b", "c"] {
        words(&mut bench, client, &["FUNCTION", "LOAD", &other(name, 1)]);
    }
    assert_eq!(words(&mut bench, client, &["FCALL", "count", "0"]), "2");
    words(&mut bench, client, &["FUNCTION", "LOAD", "REPLACE", &other("b", 2)]);
    words(&mut bench, client, &["FUNCTION", "DELETE", "c"]);
    words(&mut bench, client, &["FUNCTION", "DELETE", "0"]);
    assert_eq!(words(&mut bench, client, &["FCALL", "f_b", "0"]), "2");
    for gone in ["f_0", "f_c"] {
        assert!(words(&mut bench, client, &["FCALL", gone, "0"]).contains("not found"));
    }
    assert_eq!(words(&mut bench, client, &["FCALL", "count", "0"]), "3");
    words(&mut bench, client, &["FUNCTION", "LOAD", "REPLACE", counter]);
    assert_eq!(words(&mut bench, client, &["FCALL", "count", "0"]), "1", "what is loaded again begins again");
    words(&mut bench, client, &["FUNCTION", "FLUSH"]);
    assert!(words(&mut bench, client, &["FCALL", "count", "0"]).contains("not found"));
}

/// As Valkey 9.1.2 answers them.
#[test]
fn an_error_of_one_word_is_that_word() {
    let mut bench = Bench::new();
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let client = bench.connect(protocol);
        for script in ["return {err='LOCKED'}", "error({err='LOCKED'})"] {
            let reply = words(&mut bench, client, &["EVAL", script, "0"]);
            assert!(reply.starts_with("-LOCKED") && !reply.ends_with(' '), "{script}: {reply}");
        }
        for (script, line) in [
            ("return redis.error_reply('')", "-ERR "),
            ("return {err='LOCKED '}", "-LOCKED "),
            ("return {err='LOCKED'}", "-LOCKED"),
            ("return {err='ERR'}", "-ERR"),
        ] {
            assert_eq!(words(&mut bench, client, &["EVAL", script, "0"]), line, "{script}");
        }
    }
}

#[test]
fn settings_of_cjson_may_be_given_in_part() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let script = "cjson.encode_sparse_array(true) local r = cjson.encode({[1000]=1}) \
                  cjson.encode_sparse_array(false, 2) return r";
    assert!(words(&mut bench, client, &["EVAL", script, "0"]).contains("1000"));
    assert!(words(&mut bench, client, &["EVAL", "return cjson.encode({[1000]=1})", "0"]).contains("sparse"));
}

/// Of a run that is taken back the slow log has nothing.
#[test]
fn what_a_script_calls_is_logged_once() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    bench.engine.stats.active_threads.store(2, Relaxed);
    words(&mut bench, client, &["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    words(&mut bench, client, &["SLOWLOG", "RESET"]);
    for (script, reruns) in [
        ("redis.call('set', 'a', 1) return redis.call('get', 'a')", 0),
        ("redis.call('set', 'a', 1) return #redis.call('keys', 'a')", 1),
    ] {
        assert_eq!(words(&mut bench, client, &["EVAL", script, "1", "a"]), "1");
        assert_eq!(bench.engine.scripts.reruns.load(Relaxed), reruns);
    }
    let logged = bench.engine.command_logs.get(LogKind::Slow, 100);
    let names: Vec<String> =
        logged.iter().map(|entry| String::from_utf8_lossy(&entry.arguments[0]).into_owned()).collect();
    assert_eq!(names, ["EVAL", "keys", "set", "EVAL", "get", "set", "SLOWLOG"]);
}

/// What several libraries take to load is bounded together. On any machine all of them take several times what they
/// may; one alone mostly has time enough, and where it has not the answer is the same.
#[test]
fn restored_libraries_load_within_one_limit() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    // How far it counts in a tenth of what they may take.
    let begun = cpu_ns();
    words(&mut bench, client, &["EVAL", "for i = 1, 2000000 do end", "0"]);
    let count = 2_000_000 * 50_000_000 / (cpu_ns() - begun);
    let sources: Vec<String> = (0..100)
        .map(|at| {
            format!(
                "#!lua name=l{at}\n for i = 1, {count} do end \
                 redis.register_function('f_l{at}', function() return 1 end)"
            )
        })
        .collect();
    let dump = weft_engine::rdb::write_libraries(sources.iter().map(String::as_bytes));
    let reply = bench.run_args(client, &[b"FUNCTION", b"RESTORE", &dump]);
    assert!(show(&reply[0]).contains("timeout"), "{reply:?}");
    assert!(words(&mut bench, client, &["FCALL", "f_l0", "0"]).ends_with("Function not found"));
}

/// As Valkey 9.1.2 answers it. What was there before stays.
#[test]
fn a_library_has_half_a_second_to_load() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let library =
        |body: &str| format!("#!lua name=l\n{body} server.register_function('f', function() return 1 end)");
    assert_eq!(words(&mut bench, client, &["FUNCTION", "LOAD", &library("")]), "l");
    for body in ["while true do end", "local s = ('x'):rep(100000) while true do s:find('.-y') end"] {
        let (begun, cpu) = (Instant::now(), cpu_ns());
        let reply = words(&mut bench, client, &["FUNCTION", "LOAD", "REPLACE", &library(body)]);
        assert_eq!(reply, "-ERR Error registering functions: ERR FUNCTION LOAD timeout", "{body}");
        assert!(begun.elapsed() >= Duration::from_millis(500), "{body}: after {:?}", begun.elapsed());
        let spent = Duration::from_nanos(cpu_ns() - cpu);
        assert!(spent < Duration::from_secs(2), "{body}: others have waited for {spent:?}");
    }
    assert_eq!(words(&mut bench, client, &["FCALL", "f", "0"]), "1");
}

#[test]
fn a_library_that_does_not_load_any_more_is_named() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let source = "#!lua name=large\n local text = 'x' for i = 1, 23 do text = text .. text end \
                  redis.register_function('f', function() return #text end)";
    assert_eq!(words(&mut bench, client, &["FUNCTION", "LOAD", source]), "large");
    words(&mut bench, client, &["CONFIG", "SET", "script-memory-limit", "4mb"]);
    let reply = words(&mut bench, client, &["FCALL", "f", "0"]);
    assert!(reply.starts_with("-ERR Function not found; the library large does not load here: "), "{reply}");
    assert!(reply.contains("not enough memory"), "{reply}");
    // Another state has another try.
    words(&mut bench, client, &["CONFIG", "SET", "script-memory-limit", "64mb"]);
    words(&mut bench, client, &["SCRIPT", "FLUSH"]);
    assert_eq!(words(&mut bench, client, &["FCALL", "f", "0"]), "8388608");
}

/// A worker that has no state of Lua loads the library that is called, and not all to find out whose a function is.
#[test]
fn a_state_that_begins_anew_loads_what_is_called() {
    static LOADED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let loaded = || std::mem::take(&mut *LOADED.lock().expect("nobody fails with it"));
    let mut bench = Bench::new();
    let log: fn(&str) = |line| LOADED.lock().expect("nobody fails with it").push(line.to_owned());
    assert!(bench.engine.facts.logger.set(log).is_ok());
    let client = bench.connect(Protocol::Resp2);
    for name in ["a", "b", "c"] {
        let source = format!(
            "#!lua name={name}\nlocal n = 0 redis.log(redis.LOG_WARNING, '{name}') \
             redis.register_function('f_{name}', function() n = n + 1 return n end) \
             redis.register_function{{function_name = 'g_{name}', callback = function() return '{name}' end, \
             flags = {{'no-writes'}}, description = 'of {name}'}}"
        );
        assert_eq!(words(&mut bench, client, &["FUNCTION", "LOAD", &source]), name);
    }
    assert_eq!(words(&mut bench, client, &["FCALL", "f_c", "0"]), "1");
    let listed = words(&mut bench, client, &["FUNCTION", "LIST"]);
    loaded();
    words(&mut bench, client, &["SCRIPT", "FLUSH"]);
    assert_eq!(words(&mut bench, client, &["FUNCTION", "LIST"]), listed);
    let refused = words(
        &mut bench,
        client,
        &["FUNCTION", "LOAD", "#!lua name=d\nredis.register_function('f_a', function() end)"],
    );
    assert!(refused.starts_with('-'), "{refused}");
    assert_eq!(loaded(), [""; 0], "what they have is known");
    assert_eq!(words(&mut bench, client, &["FCALL_RO", "G_b", "0"]), "b");
    assert_eq!(words(&mut bench, client, &["FCALL", "f_b", "0"]), "1");
    assert_eq!(words(&mut bench, client, &["FCALL", "f_b", "0"]), "2");
    assert_eq!(loaded(), ["script, warning: b"]);
    // Another source of the same name is another library.
    words(
        &mut bench,
        client,
        &[
            "FUNCTION",
            "LOAD",
            "REPLACE",
            "#!lua name=a\nredis.register_function('f_a', function() return 'new' end)",
        ],
    );
    assert_eq!(words(&mut bench, client, &["FCALL", "f_a", "0"]), "new");
    assert!(words(&mut bench, client, &["FCALL", "g_a", "0"]).ends_with("Function not found"));
    assert_eq!(loaded(), [""; 0]);
}

/// Others are served while libraries are loaded that take long, and may end that.
#[test]
fn a_library_that_takes_long_to_load_again_holds_nobody_up() {
    let mut bench = Bench::new();
    bench.engine.settings.busy_reply_ms.store(20, Relaxed);
    let (client, other) = (bench.connect(Protocol::Resp2), bench.connect(Protocol::Resp2));
    // As a start finds it: that it loads was another server's business.
    let engine = bench.engine;
    store_library(engine, "l", "#!lua name=l\nwhile true do end");
    for _ in 0..2 {
        assert_eq!(words(&mut bench, client, &["FCALL", "f", "0"]), "", "it is left in the middle");
        assert!(words(&mut bench, other, &["GET", "key"]).starts_with("-BUSY"));
        assert_eq!(words(&mut bench, other, &["FUNCTION", "KILL"]), "OK");
        while !bench.go_on() {}
        let killed: Vec<String> = bench.take(client).iter().map(show).collect();
        assert_eq!(killed, ["-ERR Script killed by user with FUNCTION KILL."]);
        assert!(words(&mut bench, other, &["FUNCTION", "KILL"]).starts_with("-NOTBUSY"));
    }
    store_library(engine, "l", "#!lua name=l\nredis.register_function('f', function() return 1 end)");
    assert_eq!(words(&mut bench, client, &["FCALL", "f", "0"]), "1");
}

/// SCRIPT LOAD looks at the scripts of EVAL only, and only where one has to give way.
#[test]
fn a_script_is_kept_at_the_same_cost_beside_many() {
    let (mut bench, client) = Bench::with(Protocol::Resp2);
    let mut number = 0;
    let mut cost_ns = |bench: &mut Bench, count: usize| {
        let before = cpu_ns();
        for _ in 0..count {
            number += 1;
            words(bench, client, &["SCRIPT", "LOAD", &format!("return {number}")]);
        }
        cpu_ns() - before
    };
    let few = cost_ns(&mut bench, 1_000);
    cost_ns(&mut bench, 20_000);
    // The least of some: what else the machine has to do is not its own.
    let many = (0..5).map(|_| cost_ns(&mut bench, 1_000)).min().expect("five");
    assert!(many < few * 4, "{few} ns for 1,000 beside none, {many} beside 20,000");
}
