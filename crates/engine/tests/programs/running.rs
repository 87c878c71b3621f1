//! What programs promise when they run: all or nothing, keys, budgets, rights, versions.

use weft_engine::reply::Protocol;
use weft_protocol::Reply;
use weft_protocol::table::{flag, policy};
use weft_store::wants;

use crate::support::stored::{digest, words};
use crate::support::{Bench, show};

/// A client that may do everything; its programs may take long: a busy machine stalls for longer than is theirs.
pub(crate) fn bench() -> (Bench, u32) {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    bench.text(client, "CONFIG SET program-time-ms-max 60000");
    (bench, client)
}

pub(crate) fn eval(bench: &mut Bench, client: u32, steps: &str) -> String {
    words(
        bench,
        client,
        &["PROGRAM", "EVAL", &format!(r#"{{"limits":{{"time-ms":60000}},"steps":[{steps}]}}"#)],
    )
}

#[test]
fn a_step_that_fails_takes_back_what_was_written_to_every_type() {
    let (mut bench, client) = bench();
    for command in [
        "SET s 1 EX 100",
        "RPUSH l a b",
        "HSET h f 1",
        "SADD set a",
        "ZADD z 1 a",
        "XADD x 1-1 f v",
        "SET gone 1",
    ] {
        bench.text(client, command);
    }
    let before = digest(&mut bench, client);
    let answer = eval(
        &mut bench,
        client,
        r#"["INCR","s"],["PERSIST","s"],["LPOP","l"],["RPUSH","l","c"],["HDEL","h","f"],["SADD","set","b"],
           ["ZADD","z",5,"a"],["XADD","x","*","f","w"],["DEL","gone"],["SET","new","1"],["RENAME","l","l2"],
           ["FLUSHDB"],["SET","s","2"],{"if":true,"then":[["LPUSH","s","x"]]}"#,
    );
    assert_eq!(
        answer,
        "-WRONGTYPE /steps/13/then/0 LPUSH: Operation against a key holding the wrong kind of value"
    );
    assert_eq!(digest(&mut bench, client), before);
}

#[test]
fn nobody_is_told_of_what_was_taken_back() {
    let (mut bench, client) = bench();
    let (waiter, watcher, subscriber) =
        (bench.connect(Protocol::Resp3), bench.connect(Protocol::Resp3), bench.connect(Protocol::Resp3));
    bench.text(client, "CONFIG SET notify-keyspace-events KEA");
    bench.run(subscriber, "PSUBSCRIBE *");
    assert!(bench.run(waiter, "BLPOP list 0").is_empty());
    bench.text(watcher, "WATCH k");
    let failing = r#"["SET","k","1"],["RPUSH","list","a"],["PUBLISH","news","x"],{"fail":"NO"}"#;
    assert_eq!(eval(&mut bench, client, failing), "-NO /steps/3: the program failed");
    assert!(bench.take(waiter).is_empty() && bench.take(subscriber).is_empty());
    bench.text(watcher, "MULTI");
    bench.text(watcher, "PING");
    assert_eq!(bench.text(watcher, "EXEC"), "[PONG]");

    bench.text(watcher, "WATCH k");
    let working =
        r#"["SET","k","1"],{"do":["PUBLISH","news","x"],"as":"n"},["RPUSH","list","a"],{"return":"${n}"}"#;
    assert_eq!(eval(&mut bench, client, working), "1");
    assert_eq!(bench.take(waiter).iter().map(show).collect::<Vec<_>>(), ["[list a]"]);
    let told = bench.take(subscriber);
    let told: Vec<String> = told.iter().map(show).collect();
    assert!(told.iter().any(|line| line.contains("__keyevent@0__:set k")), "{told:?}");
    assert!(told.iter().any(|line| line.contains("news x")), "{told:?}");
    bench.text(watcher, "MULTI");
    assert_eq!(bench.text(watcher, "EXEC"), "nil");
}

#[test]
fn keys_are_declared_found_or_all() {
    let (mut bench, client) = bench();
    let program =
        |keys: &str, steps: &str| format!("{{\"params\":[{{\"name\":\"id\"}}],{keys}\"steps\":[{steps}]}}");
    let explain = |bench: &mut Bench, program: &str| {
        let Reply::Map(pairs) =
            &bench.run_args(client, &[b"PROGRAM", b"EXPLAIN", program.as_bytes(), b"7"])[0]
        else {
            panic!("a map")
        };
        let of = |name: &str| {
            pairs.iter().find(|(key, _)| show(key) == name).map(|(_, value)| show(value)).unwrap()
        };
        (of("locks"), of("because"), of("keys"))
    };
    let own = "[\"SET\",\"a:${id}\",1],{\"if\":true,\"then\":[[\"MGET\",\"b\",\"a:${id}\"]]}";
    let found = program("", own);
    let why = "all keys follow from constants and parameters".to_owned();
    assert_eq!(explain(&mut bench, &found), ("keys found".into(), why, "[a:7 b]".into()));
    let declared = program("\"keys\":[\"a:${id}\",[\"b\",\"c\"]],", own);
    assert_eq!(
        explain(&mut bench, &declared),
        ("declared keys".into(), "\"keys\"".into(), "[a:7 b c]".into())
    );
    for (steps, at) in [
        ("{\"do\":[\"GET\",\"a\"],\"as\":\"x\"},[\"DEL\",\"${x}\"]", "/steps/1: a key follows"),
        ("[\"KEYS\",\"*\"]", "/steps/0: the command looks at all keys"),
        ("{\"for\":\"k\",\"keys\":\"*\",\"limit\":5,\"do\":[]}", "/steps/0: a loop over keys"),
    ] {
        let (locks, because, _) = explain(&mut bench, &program("", steps));
        assert!(locks == "everything" && because.starts_with(at), "{locks}: {because}");
    }
    // Another key than those that were declared, also where its lock happens to be held.
    let other = program("\"keys\":[\"a\"],", "[\"SET\",\"a\",1],[\"SET\",\"b\",1]");
    assert_eq!(
        words(&mut bench, client, &["PROGRAM", "EVAL", &other, "7"]),
        "-ERR /steps/1 SET: the key 'b' was not declared in \"keys\""
    );
    assert_eq!(bench.text(client, "EXISTS a b"), "0");
    // What looks at all keys names none.
    bench.text(client, "MSET a 1 secret 2");
    for (step, name) in [
        (r#"["KEYS","*"]"#, " KEYS: the command"),
        (r#"["SCAN","0"]"#, " SCAN: the command"),
        (r#"["RANDOMKEY"]"#, " RANDOMKEY: the command"),
        (r#"["FLUSHALL"]"#, " FLUSHALL: the command"),
        (r#"["FLUSHDB"]"#, " FLUSHDB: the command"),
        (r#"["SWAPDB",0,1]"#, " SWAPDB: the command"),
        (r#"["SORT","a","GET","*"]"#, " SORT: the command"),
        (r#"{"for":"k","keys":"*","limit":9,"do":[]}"#, ": the loop"),
    ] {
        let other = program("\"keys\":[\"a\"],", &format!("[\"INCR\",\"a\"],{step}"));
        for wrap in [false, true] {
            // Inside a transaction everything is locked.
            if wrap {
                bench.text(client, "MULTI");
            }
            let mut reply = words(&mut bench, client, &["PROGRAM", "EVAL", &other, "7"]);
            if wrap {
                reply = bench.text(client, "EXEC");
            }
            let text = format!(
                "-ERR /steps/1{name} looks at all keys, and \"keys\" declares which the program comes to"
            );
            assert!(reply.contains(&text), "{step}: {reply}");
        }
    }
    assert_eq!(bench.text(client, "MGET a secret"), "[1 2]");
    bench.text(client, "FLUSHALL");
    // A guess that is wrong: EVAL of a keyword that only the parameter says.
    let guess =
        program("", "{\"do\":[\"XREAD\",\"STREAMS\",\"${id}\",\"0\"],\"as\":\"x\"},{\"return\":\"${x}\"}");
    assert_eq!(words(&mut bench, client, &["PROGRAM", "EVAL", &guess, "s"]), "nil");
    bench.text(client, "MSET k1 v1 k2 v2 other x");
    let all = program(
        "",
        "{\"let\":{\"n\":\"\"}},{\"for\":\"k\",\"keys\":\"k*\",\"limit\":2,\"do\":[{\"let\":{\"n\":\"${n}${k}\"}}]},{\"return\":\"${n}\"}",
    );
    assert_eq!(words(&mut bench, client, &["PROGRAM", "EVAL", &all, "7"]), "k1k2");
    bench.text(client, "SET k3 v");
    assert_eq!(
        words(&mut bench, client, &["PROGRAM", "EVAL", &all, "7"]),
        "-ERR /steps/1: more keys match 'k*' than its limit of 2"
    );
}

#[test]
fn what_a_program_may_do_is_limited() {
    let (mut bench, client) = bench();
    let limited = |bench: &mut Bench, limits: &str, steps: &str| {
        let program = format!("{{\"limits\":{{{limits}}},\"steps\":[{steps}]}}");
        words(bench, client, &["PROGRAM", "EVAL", &program])
    };
    let long = r#"{"for":"i","range":[0,10000000],"do":[["SET","k","${i}"]]}"#;
    let answer = limited(&mut bench, "\"keys\":100000,\"time-ms\":60000", long);
    assert!(answer.contains("too many steps: the program may use 10000"), "{answer}");
    let answer = limited(&mut bench, "\"steps\":1000000,\"keys\":1000000,\"time-ms\":1", long);
    assert!(answer.contains("too much time in milliseconds: the program may use 1 "), "{answer}");
    assert_eq!(bench.text(client, "EXISTS k"), "0");
    assert_eq!(limited(&mut bench, "\"keys\":2", r#"["MGET","a","b"],{"return":1}"#), "1");
    let answer = limited(&mut bench, "\"keys\":2", r#"["MGET","a","b"],["GET","a"]"#);
    assert!(answer.starts_with("-ERR /steps/1 GET: too many keys"), "{answer}");
    assert_eq!(limited(&mut bench, "\"bytes\":6", r#"["SET","k","12"],{"return":1}"#), "1");
    let answer = limited(&mut bench, "\"bytes\":5", r#"["SET","k","12"]"#);
    assert!(answer.contains("too many bytes written"), "{answer}");
    // What is put together is refused before it is there, and a step for each 8 KiB of it.
    let large = r#"{"let":{"x":{"pad":["",4000000,"x"]}}}"#;
    let all = "${x}".repeat(1000);
    for step in [
        format!(r#"{{"return":{{"length":"{all}"}}}}"#),
        format!(r#"["GET","{all}"]"#),
        format!(r#"["MGET",{}"${{x}}"]"#, r#""${x}","#.repeat(1000)),
        format!(r#"["MGET",[{}"${{x}}"]]"#, r#""${x}","#.repeat(1000)),
        format!(r#"{{"fail":"NO","message":"{all}"}}"#),
    ] {
        let answer = limited(&mut bench, "\"time-ms\":60000", &format!("{large},{step}"));
        assert!(answer.contains("too many steps") || answer.contains("too many bytes of values"), "{answer}");
        let answer = limited(&mut bench, "\"time-ms\":60000,\"memory\":20000000", &format!("{large},{step}"));
        assert!(answer.contains("too many bytes of values"), "{answer}");
    }
    let double = r#"{"let":{"x":"0123456789"}},{"for":"i","range":[0,40],"do":[{"let":{"x":"${x}${x}"}}]}"#;
    assert!(limited(&mut bench, "\"time-ms\":60000", double).contains("too many bytes of values"));
    // What is configured bounds what a program may say.
    bench.text(client, "CONFIG SET program-steps-max 3");
    let answer = eval(&mut bench, client, r#"["PING"],["PING"],["PING"],["PING"]"#);
    assert!(answer.contains("may use 3"), "{answer}");
    assert_eq!(eval(&mut bench, client, r#"["PING"],["PING"],{"return":"ok"}"#), "ok");
}

#[test]
fn a_command_that_goes_through_a_large_key_costs_what_it_looks_at() {
    let (mut bench, client) = bench();
    for part in 0..200 {
        let members: Vec<String> = (0..100).map(|at| format!("m{part}:{at}")).collect();
        bench.text(client, &format!("SADD large {}", members.join(" ")));
    }
    let program = |steps: u32| {
        format!(r#"{{"limits":{{"steps":{steps},"time-ms":60000}},"steps":[["SMEMBERS","large"]]}}"#)
    };
    assert_eq!(words(&mut bench, client, &["PROGRAM", "EVAL", &program(6001)]), "nil");
    let answer = words(&mut bench, client, &["PROGRAM", "EVAL", &program(6000)]);
    assert!(answer.contains("/steps/0 SMEMBERS: too many steps"), "{answer}");
}

#[test]
fn what_a_command_costs_beyond_what_it_brings_is_asked_before_it_is_paid() {
    let (mut bench, client) = bench();
    let limited = |bench: &mut Bench, limits: &str, step: &str| {
        let program = format!(r#"{{"limits":{{"time-ms":60000,{limits}}},"steps":[{step},{{"return":1}}]}}"#);
        words(bench, client, &["PROGRAM", "EVAL", &program])
    };
    bench.text(client, "SET there 0123456789");
    // Of 20 bytes 10 are there: as many are left for the growth as the arguments leave.
    for (step, brings, grows) in [
        (r#"["SETRANGE","there",19,"x"]"#, 16, 9),
        (r#"["SETRANGE","new",19,"x"]"#, 14, 19),
        (r#"["SETBIT","there",159,1]"#, 15, 10),
        (r#"["BITFIELD","there","SET","u8",88,1]"#, 21, 10),
    ] {
        assert_eq!(limited(&mut bench, &format!("\"bytes\":{}", brings + grows), step), "1", "{step}");
        bench.text(client, "SET there 0123456789");
        bench.text(client, "DEL new");
        let answer = limited(&mut bench, &format!("\"bytes\":{}", brings + grows - 1), step);
        assert!(answer.contains("too many bytes written"), "{step}: {answer}");
    }
    for step in [
        r#"["SETRANGE","q",536870000,"x"]"#,
        r#"["SETBIT","q",4294967295,1]"#,
        r##"["BITFIELD","q","GET","u8",1,"INCRBY","u63","#60000000",1]"##,
    ] {
        let answer = limited(&mut bench, "\"steps\":10", step);
        assert!(answer.contains("too many bytes written"), "{step}: {answer}");
    }
    bench.text(client, "SADD set a b");
    bench.text(client, "HSET hash a b");
    bench.text(client, "ZADD zset 1 a");
    let long = "x".repeat(6400);
    bench.text(client, &format!("MSET a {long} b {long}"));
    for step in [
        r#"["SRANDMEMBER","set",-1000000000]"#,
        r#"["HRANDFIELD","hash",-1000000000]"#,
        r#"["ZRANDMEMBER","zset",-1000000000]"#,
        r#"["LCS","a","b"]"#,
    ] {
        let answer = limited(&mut bench, "\"steps\":10000", step);
        assert!(answer.contains("too many steps"), "{step}: {answer}");
    }
    assert_eq!(limited(&mut bench, "\"steps\":40", r#"["SRANDMEMBER","set",-100]"#), "1");
    // Keys that are looked at are steps, by whomever: there are seven.
    for (step, steps) in [(r#"["KEYS","x"]"#, 7), (r#"["SCAN",0]"#, 7), (r#"["SCAN",0,"COUNT",3]"#, 3)] {
        assert_eq!(limited(&mut bench, &format!("\"steps\":{}", steps + 2), step), "1", "{step}");
        let answer = limited(&mut bench, &format!("\"steps\":{steps}"), step);
        assert!(answer.contains("too many steps"), "{step}: {answer}");
    }
}

#[test]
fn a_program_has_the_rights_of_its_caller_or_of_its_owner() {
    let (mut bench, admin) = bench();
    let read = r#"{"steps":[{"do":["GET","secret"],"as":"x"},{"return":"${x}"}]}"#;
    let owned = read.replacen('{', r#"{"as":"owner","#, 1);
    bench.text(admin, "SET secret 42");
    for (name, program) in [("read", read), ("Owned", &owned)] {
        assert_eq!(words(&mut bench, admin, &["PROGRAM", "SET", name, program]), "1");
    }
    bench.text(admin, "ACL SETUSER u on nopass ~own:* +program|run|Owned +program|run|read");
    let user = bench.connect(Protocol::Resp3);
    bench.text(user, "AUTH u x");
    assert_eq!(bench.text(user, "PROGRAM RUN Owned"), "42");
    let answer = bench.text(user, "PROGRAM RUN read");
    assert!(
        answer.starts_with("-NOPERM /steps/0 GET: User u has no permissions to run the 'get' command"),
        "{answer}"
    );
    // Another name, also one that differs in its case only, is another right.
    for command in ["PROGRAM RUN owned", "PROGRAM EVAL {}", "PROGRAM SET x {}", "PROGRAM LIST"] {
        assert!(bench.text(user, command).starts_with("-NOPERM"), "{command}");
    }
    // A loop over keys shows names to those alone who may ask for them.
    bench.text(admin, "ACL SETUSER names on nopass ~own:* +program|eval");
    let names = bench.connect(Protocol::Resp3);
    bench.text(names, "AUTH names x");
    let walk = r#"{"for":"k","keys":"sec*","limit":9,"do":[{"return":"${k}"}]}"#;
    let answer = eval(&mut bench, names, walk);
    assert!(
        answer.starts_with("-NOPERM /steps/0: User names has no permissions to run the 'keys' command"),
        "{answer}"
    );
    bench.text(admin, "ACL SETUSER names +keys");
    assert_eq!(eval(&mut bench, names, walk), "secret");
    let listed = bench.text(admin, "ACL LIST");
    assert!(listed.contains("+program|run|Owned +program|run|read"), "{listed}");
    bench.text(admin, "ACL SETUSER u -program|run +@scripting");
    assert_eq!(bench.text(user, "PROGRAM RUN Owned"), "42");
    bench.text(admin, "ACL SETUSER boss on nopass ~* +@all");
    let boss = bench.connect(Protocol::Resp3);
    bench.text(boss, "AUTH boss x");
    assert_eq!(words(&mut bench, boss, &["PROGRAM", "SET", "Owned", &owned]), "2");
    bench.text(admin, "ACL DELUSER boss");
    assert!(bench.text(user, "PROGRAM RUN Owned").contains("owner 'boss' is no user any more"));
}

#[test]
fn programs_have_versions_and_outlive_a_flush() {
    let (mut bench, client) = bench();
    let program = r#"{"description":"d","params":[{"name":"a"},{"name":"b","type":"int","default":1}],"steps":[["SET","k","1"]]}"#;
    let mut set =
        |more: &[&str]| words(&mut bench, client, &[&["PROGRAM", "SET", "p", program][..], more].concat());
    assert_eq!(set(&["VERSION", "1"]), "-WRONGVERSION the version of the program is 0, 0 being none");
    assert_eq!(set(&["VERSION", "0"]), "1");
    assert_eq!(set(&["VERSION", "0"]), "-WRONGVERSION the version of the program is 1, 0 being none");
    assert_eq!((set(&["VERSION", "1"]), set(&[])), ("2".into(), "3".into()));
    assert_eq!(set(&["VERSION"]), "-ERR syntax error");
    bench.text(client, "FLUSHALL");
    let list = "[{name:p version:3 owner:default description:d params:[a:text b?:int] writes:true}]";
    assert_eq!(bench.text(client, "PROGRAM LIST"), list);
    assert_eq!(bench.text(client, "PROGRAM LIST MATCH q*"), "[]");
    assert!(
        bench.text(client, "PROGRAM GET p").starts_with("{name:p version:3 owner:default program:{\"desc")
    );
    assert_eq!(bench.text(client, "PROGRAM RUN p"), "-ERR the parameter 'a' is missing");
    assert_eq!(bench.text(client, "PROGRAM RUN p x y"), "-ERR the parameter 'b' is of the type int; met 'y'");
    assert_eq!(bench.text(client, "PROGRAM RUN p x 1 2"), "-ERR the program takes 2 arguments at most");
    assert_eq!(bench.text(client, "PROGRAM RUN p x"), "nil");
    let stats = bench.text(client, "PROGRAM STATS p");
    assert!(stats.starts_with("[{name:p runs:1 failures:0 p50-us:"), "{stats}");
    assert_eq!(bench.text(client, "PROGRAM DEL p q"), "1");
    assert_eq!(bench.text(client, "PROGRAM RUN p x"), "-NOPROGRAM no program 'p' is stored");
    assert_eq!(bench.text(client, "PROGRAM GET p"), "nil");
    let wrong = words(&mut bench, client, &["PROGRAM", "SET", "p", r#"{"steps":[["GET"]]}"#]);
    assert_eq!(wrong, "-ERR program /steps/0: wrong number of arguments for 'get' command");
    assert!(words(&mut bench, client, &["PROGRAM", "SET", "a b", program]).contains("a name has 1 to 128"));
    let longest = "n".repeat(128);
    assert_eq!(words(&mut bench, client, &["PROGRAM", "SET", &longest, program]), "4");
    assert!(
        words(&mut bench, client, &["PROGRAM", "SET", &format!("{longest}n"), program]).starts_with("-ERR")
    );
}

#[test]
fn a_dry_run_shows_what_would_change_and_changes_nothing() {
    let (mut bench, client) = bench();
    bench.text(client, "RPUSH l a b");
    let before = digest(&mut bench, client);
    let program = r#"{"params":[{"name":"n"}],"steps":[["SET","k","${n}"],["LPOP","l"],["ZADD","z",1.5,"m"],["PUBLISH","c","m"],{"return":"${n}"}]}"#;
    assert_eq!(
        words(&mut bench, client, &["PROGRAM", "DRYRUN", program, "5"]),
        "{result:5 effects:[[set 0 k 5 nil] [list-pop 0 l front 1] [new 0 z nil] [sorted-set-add 0 z m 1.5]]}"
    );
    let failing = r#"{"steps":[["SET","k","1"],["INCR","l"]]}"#;
    let answer = words(&mut bench, client, &["PROGRAM", "DRYRUN", failing]);
    assert!(
        answer.starts_with("{error:WRONGTYPE /steps/1 INCR: ")
            && answer.ends_with("effects:[[set 0 k 1 nil]]}"),
        "{answer}"
    );
    assert_eq!(digest(&mut bench, client), before);
    assert_eq!(bench.engine.keyspace.wanted() & wants::VALUES, 0);
}

#[test]
fn in_a_transaction_a_program_that_fails_takes_back_its_own() {
    let (mut bench, client) = bench();
    let run = |bench: &mut Bench, steps: &str| {
        assert_eq!(eval(bench, client, steps), "QUEUED");
    };
    bench.text(client, "MULTI");
    bench.text(client, "SET a 1");
    run(&mut bench, r#"["INCR","a"],["SET","b","1"],{"fail":"NO","message":"no"}"#);
    run(&mut bench, r#"["INCR","a"],{"do":["GET","a"],"as":"x"},{"return":"${x}"}"#);
    assert_eq!(bench.text(client, "EXEC"), "[OK -NO no 2]");
    assert_eq!(bench.text(client, "MGET a b"), "[2 nil]");
}

#[test]
fn one_time_one_database_and_no_memory_beyond_what_there_is() {
    let (mut bench, client) = bench();
    let answer = eval(
        &mut bench,
        client,
        r#"["SELECT",1],["SET","here","1"],{"let":{"a":{"now":"ms"}}},["PING"],{"return":{"==":[{"now":"ms"},"${a}"]}}"#,
    );
    assert_eq!(answer, "true");
    assert_eq!(bench.text(client, "DBSIZE"), "0");
    bench.text(client, "SELECT 1");
    assert_eq!(bench.text(client, "DBSIZE"), "1");
    bench.text(client, "SET there 1");
    bench.text(client, "CONFIG SET maxmemory 1");
    bench.text(client, "CONFIG SET maxmemory-policy noeviction");
    let answer = eval(&mut bench, client, r#"["DEL","here"],["SET","k","1"]"#);
    assert_eq!(answer, "-OOM /steps/1 SET: command not allowed when used memory > 'maxmemory'.");
    assert_eq!(bench.text(client, "GET here"), "1");
}

#[test]
fn values_come_and_go_as_what_they_are_over_every_protocol() {
    for (protocol, expected) in [
        (Protocol::Resp2, "[1 nil 1.5 1 text [a [1 2]]]"),
        (Protocol::Resp3, "[1 nil 1.5 true text {a:[1 2]}]"),
        (Protocol::Respb, "[1 nil 1.5 true text {a:[1 2]}]"),
    ] {
        let (mut bench, client) = Bench::with(protocol);
        let answer = eval(
            &mut bench,
            client,
            r#"{"return":[1,null,1.5,true,"text",{"object":{"a":[1,{"+":["1",1]}]}}]}"#,
        );
        assert_eq!(answer, expected, "{protocol:?}");
        let bytes = bench.run_args(
            client,
            &[b"PROGRAM", b"EVAL", br#"{"params":[{"name":"x"}],"steps":[["SET","k","${x}"],{"do":["GET","k"],"as":"y"},{"return":"${y}"}]}"#, b"\xff\0\r\n"],
        );
        assert!(matches!(&bytes[..], [Reply::Bulk(text)] if text == b"\xff\0\r\n"), "{bytes:?}");
    }
}

#[test]
fn hostile_programs_end_with_an_error_or_a_value_and_nothing_stays() {
    let (mut bench, client) = bench();
    let before = digest(&mut bench, client);
    let nested = format!("{}1{}", "{\"not\":[".repeat(60), "]}".repeat(60));
    for (steps, wanted) in [
        (r#"{"return":{"+":[9223372036854775807,1]}}"#, "-ERR /steps/0: the result does not fit in 64 bits"),
        (
            r#"{"return":{"div":[-9223372036854775808,-1]}}"#,
            "-ERR /steps/0: the result does not fit in 64 bits",
        ),
        (r#"{"return":{"mod":[-9223372036854775808,-1]}}"#, "0"),
        (r#"{"return":{"abs":-9223372036854775808}}"#, "-ERR /steps/0: the result does not fit in 64 bits"),
        (r#"{"return":{"/":[1,0]}}"#, "-ERR /steps/0: "),
        (r#"{"return":{"mod":[1,0]}}"#, "-ERR /steps/0: "),
        (r#"{"for":"i","range":[1,100000000000],"do":[["SET","k","1"]]}"#, "-ERR /steps/0"),
        (r#"{"for":"i","range":[1,5,0],"do":[["SET","k","1"]]}"#, "-ERR /steps/0: a loop in steps of 0"),
        (r#"{"for":"i","range":[9223372036854775800,9223372036854775807,5],"do":[["PING"]]}"#, "nil"),
        (r#"{"return":{"range":[0,1000000000]}}"#, "-ERR /steps/0: "),
        (r#"{"return":{"pad":["x",4000000000,"-"]}}"#, "-ERR /steps/0: "),
        (r#"{"return":{"substring":["abc",-9223372036854775808,9223372036854775807]}}"#, ""),
        (r#"{"return":{"slice":[[1,2],9223372036854775807,-5]}}"#, ""),
        (r#"{"return":{"date":[9223372036854775807,"%Y"]}}"#, ""),
        (r#"["SET","k","1"],["BLPOP","nothing",0],["INCR","k"],{"fail":"END"}"#, "-END "),
        (r#"["SET","k","1"],["XREAD","BLOCK",0,"STREAMS","s","0"],{"fail":"END"}"#, "-END "),
    ] {
        let answer = words(
            &mut bench,
            client,
            &["PROGRAM", "EVAL", &format!(r#"{{"limits":{{"time-ms":60000}},"steps":[{steps}]}}"#)],
        );
        assert!(answer.starts_with(wanted), "{steps}: {answer}");
        assert_eq!(digest(&mut bench, client), before, "{steps}");
    }
    assert_eq!(eval(&mut bench, client, &format!("{{\"return\":{nested}}}")), "true");
    // Commands that are not for programs.
    for name in ["MULTI", "SHUTDOWN", "CONFIG", "ACL", "DEBUG", "EVAL", "PROGRAM", "SUBSCRIBE", "MONITOR"] {
        let answer = eval(&mut bench, client, &format!(r#"["{name}","X","1","2"]"#));
        assert!(answer.starts_with("-ERR program /steps/0/0: "), "{name}: {answer}");
    }
}

#[test]
fn a_program_that_deletes_its_own_parameters_key_goes_on_with_the_value() {
    let (mut bench, client) = bench();
    bench.text(client, "SET doc a");
    let program = r#"{"params":[{"name":"key"}],"steps":[{"do":["GETDEL","${key}"],"as":"old"},["SET","${key}","${old}b"],
        ["DEL","${key}"],{"do":["GET","${key}"],"as":"now"},["SET","${key}","${old}c"],{"return":["${old}","${now}"]}]}"#;
    assert_eq!(words(&mut bench, client, &["PROGRAM", "EVAL", program, "doc"]), "[a nil]");
    assert_eq!(bench.text(client, "GET doc"), "ac");
}

#[test]
fn keys_that_let_gives_from_parameters_are_found() {
    let (mut bench, client) = bench();
    let explain = |bench: &mut Bench, steps: &str| {
        let program = format!(r#"{{"params":[{{"name":"id"}}],"steps":[{steps}]}}"#);
        let reply = words(bench, client, &["PROGRAM", "EXPLAIN", &program, "7"]);
        let keys =
            reply.split("keys:").nth(1).and_then(|rest| rest.split(" params:").next()).map(str::to_owned);
        (reply.contains("locks:keys found"), keys.unwrap_or_default())
    };
    let found = |keys: &str| (true, keys.to_owned());
    let of_let = r#"{"let":{"base":"user:${id}","cart":"${base}:cart"}},["GET","${base}"],["GET","${cart}"]"#;
    assert_eq!(explain(&mut bench, of_let), found("[user:7 user:7:cart]"));
    let computed =
        r#"{"let":{"k":{"join":[["a",{"upper":"${id}x"}],":"]}}},{"if":true,"then":[["INCR","${k}"]]}"#;
    assert_eq!(explain(&mut bench, computed), found("[a:7X]"));
    // What is read, or changed on the way, is not known before.
    for other in [
        r#"{"do":["GET","a"],"as":"k"},["GET","${k}"]"#,
        r#"{"let":{"k":"a"}},{"let":{"k":"b"}},["GET","${k}"]"#,
        r#"{"for":"k","in":["a"],"do":[["GET","${k}"]]}"#,
    ] {
        assert!(!explain(&mut bench, other).0, "{other}");
    }
}

/// The last write of a program is not kept to be taken back, since a command that fails has changed nothing: that every
/// command keeps to this, with keys of every type and arguments that may make no sense.
#[test]
fn whatever_command_fails_as_the_last_one_nothing_has_changed() {
    let seed = std::env::var("WEFT_PROGRAMS_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut dice: u64 = seed.unwrap_or(0x9E37_79B9_7F4A_7C15);
    println!("WEFT_PROGRAMS_SEED={dice}");
    let mut below = |bound: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice >> 11) as usize % bound
    };
    let (mut bench, client) = bench();
    for command in [
        "SET text abc",
        "SET int 9223372036854775807",
        "RPUSH list a 1",
        "HSET hash f 9223372036854775807 g x",
        "SADD set a 1",
        "ZADD zset 1 a 2 1",
        "XADD stream 5-1 f v",
        "SET expiring 5 EX 1000",
    ] {
        bench.text(client, command);
    }
    let keys = ["text", "int", "list", "hash", "set", "zset", "stream", "expiring", "missing"];
    let words =
        ["a", "1", "-1", "f", "g", "x y", "9223372036854775807", "1.5", "nan", "5-0", "*", "NX", "GT", "100"];
    let mut before = digest(&mut bench, client);
    let (mut failures, mut commands) = (0, 0);
    for spec in weft_protocol::table::COMMANDS.iter().filter(|spec| spec.flags & flag::WRITE != 0) {
        let one_key = spec.keys == (1, 1, 1) && spec.container.is_none();
        let quick = spec.flags & flag::FAST != 0 || spec.policy & policy::QUICK != 0;
        if !one_key || !quick || spec.flags & flag::NOSCRIPT != 0 {
            continue;
        }
        commands += 1;
        for _ in 0..60 {
            let least = usize::from(spec.arity.unsigned_abs());
            let len = if spec.arity < 0 { least + below(3) } else { least };
            let mut step = vec![spec.name, keys[below(keys.len())]];
            step.resize_with(len.max(2), || words[below(words.len())]);
            let step = serde_json::json!(step).to_string();
            let other = if below(2) == 0 { r#"["SET","other","x"],"# } else { "" };
            let answer = eval(&mut bench, client, &format!("{other}{step},{{\"return\":null}}"));
            let now = digest(&mut bench, client);
            if answer.starts_with('-') {
                assert_eq!(now, before, "{other}{step}: {answer}");
                failures += 1;
            }
            before = now;
        }
    }
    assert!(commands > 40 && failures > 400, "{commands} commands, {failures} failures");
}

#[test]
fn programs_of_a_pipeline_answer_count_and_fail_each_by_itself() {
    let (mut bench, client) = bench();
    let count = r#"{"params":[{"name":"k"},{"name":"by","type":"int"}],
        "steps":[["SET","last","${k}"],{"do":["INCRBY","${k}","${by}"],"as":"n"},{"return":"${n}"}]}"#;
    words(&mut bench, client, &["PROGRAM", "SET", "count", count]);
    words(
        &mut bench,
        client,
        &["PROGRAM", "SET", "look", r#"{"steps":[{"do":["GET","n"],"as":"n"},{"return":"${n}"}]}"#],
    );
    bench.text(client, "SET wrong abc");
    let lines = [
        "PROGRAM RUN count n 5",
        "PROGRAM RUN look",
        "GET n",
        "PROGRAM RUN count wrong 1",
        "GET last",
        "PROGRAM RUN count n x",
        "PROGRAM RUN none",
        "PROGRAM RUN count n 2",
        "PROGRAM RUN look",
    ];
    let lines = lines.map(str::to_owned).to_vec();
    let replies: Vec<String> = bench.run_batch(&[(client, lines)])[0].iter().map(show).collect();
    assert_eq!(
        replies,
        [
            "5",
            "5",
            "5",
            "-ERR /steps/1 INCRBY: value is not an integer or out of range",
            "n",
            "-ERR the parameter 'by' is of the type int; met 'x'",
            "-NOPROGRAM no program 'none' is stored",
            "7",
            "7",
        ]
    );
    let stats = bench.text(client, "PROGRAM STATS");
    assert!(stats.contains("{name:count runs:3 failures:1 p50-us:"), "{stats}");
    assert!(stats.contains("{name:look runs:2 failures:0 p50-us:"), "{stats}");
    let calls = bench.text(client, "INFO commandstats");
    let run = calls.lines().find(|line| line.starts_with("cmdstat_program|run:")).unwrap_or_default();
    assert!(run.contains("calls=7,") && run.contains("failed_calls=3"), "{run}");
}

/// What runs in a shorter form, and SETs that wait for the end of their program, beside the full way, which is taken
/// where there is a trigger.
#[test]
fn shorter_forms_do_what_the_full_way_does() {
    let ((mut short, one), (mut full, other)) = (bench(), bench());
    full.text(other, r#"TRIGGER SET t {"key":"elsewhere:*","publish":"c"}"#);
    let mut dice: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut below = |bound: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice >> 11) as usize % bound
    };
    let keys = ["a", "b", "n", "list", "${p}", "${p}x", "${l}"];
    let values =
        [r#""v""#, "7", r#""05""#, r#""${p}""#, r#""${x}""#, r#""x${y}-""#, "null", r#""${l}""#, "1.5"];
    let (mut failures, mut changed) = (0, 0);
    for round in 0..1500 {
        if round % 50 == 0 {
            for (bench, client) in [(&mut short, one), (&mut full, other)] {
                for line in ["FLUSHALL", "RPUSH list 1", "SET n 9223372036854775000", "SET b 5 EX 1000"] {
                    bench.text(client, line);
                }
            }
        }
        let mut steps = vec![r#"{"let":{"l":["n"],"x":null,"y":1,"p":"a"}}"#.to_owned()];
        for _ in 0..1 + below(9) {
            let (key, value) = (keys[below(keys.len())], values[below(values.len())]);
            steps.push(match below(10) {
                0 | 1 => format!(r#"{{"do":["GET","{key}"],"as":"x"}}"#),
                2 => format!(r#"["GET","{key}"]"#),
                3 => format!(r#"{{"do":["INCR","{key}"],"as":"y"}}"#),
                4 => format!(r#"{{"do":["SET","{key}",{value}],"as":"x"}}"#),
                5 => format!(r#"["APPEND","{key}",{value}]"#),
                6 => {
                    r#"{"if":{"<":["${y}",6]},"then":[["SET","b","${y}"]],"else":[["INCR","a"]]}"#.to_owned()
                }
                _ => format!(r#"["SET","{key}",{value}]"#),
            });
        }
        if below(4) == 0 {
            steps.push(r#"{"assert":{"<":["${y}",9]}}"#.to_owned());
        }
        steps.push(r#"{"return":["${x}","${y}"]}"#.to_owned());
        let steps = steps.join(",");
        let answer = eval(&mut short, one, &steps);
        assert_eq!(answer, eval(&mut full, other, &steps), "{steps}");
        failures += usize::from(answer.starts_with('-'));
        for key in ["a", "b", "n", "ax"] {
            for command in ["GET", "TTL", "OBJECT ENCODING"] {
                let line = format!("{command} {key}");
                assert_eq!(short.text(one, &line), full.text(other, &line), "{line} behind {steps}");
            }
        }
        changed += usize::from(short.text(one, "GET ax") != "(nil)");
    }
    assert!((200..1300).contains(&failures) && changed > 100, "{failures} failed, {changed} changed");
}
