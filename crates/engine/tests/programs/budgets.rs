//! What counts against a program's limits: everything that an expression goes through, also where it is one step; and
//! that a limit which is met behind the last write takes that write back too.

use weft_engine::reply::Protocol;

use crate::running::bench;
use crate::support::Bench;
use crate::support::stored::words;
use crate::sweep::cpu_ms;

/// Runs a program that has the limits of whoever says nothing, but for the time.
fn run(bench: &mut Bench, client: u32, program: &str, args: &[&str]) -> String {
    let program = format!(r#"{{"limits":{{"time-ms":60000}},{program}}}"#);
    words(bench, client, &[&["PROGRAM", "EVAL", &program], args].concat())
}

fn list(elements: usize) -> String {
    format!("[{}]", vec!["1"; elements].join(","))
}

#[test]
fn a_limit_that_is_met_behind_the_last_write_takes_it_back() {
    let (mut bench, client) = bench();
    let steps = r#"[{"let":{"n":{"sum":"${l}"}}},["INCR","k"],{"return":"${n}"}]"#;
    let program = |limit: usize| {
        format!(
            r#"{{"limits":{{"steps":{limit},"time-ms":60000}},"params":[{{"name":"l","type":"list"}}],"steps":{steps}}}"#
        )
    };
    let (mut ran, mut failed) = (0, 0);
    for elements in (0..1600).step_by(8) {
        let reply = words(&mut bench, client, &["PROGRAM", "EVAL", &program(70), &list(elements)]);
        match reply.contains("too many steps") {
            true => failed += 1,
            false => ran += 1,
        }
        let count = words(&mut bench, client, &["GET", "k"]);
        assert_eq!(count, ran.to_string(), "{elements} elements: {reply}");
    }
    assert!(ran > 0 && failed > 0, "{ran} ran, {failed} failed");
    // What is gone through behind the write: the list that is answered, and one that is compared.
    for behind in [
        r#"{"return":"${l}"}"#,
        r#"{"return":{"==":["${l}","${m}"]}}"#,
        r#"{"if":{"<":["${l}","${m}"]},"then":[],"else":[{"return":1}]}"#,
        r#"{"let":{"x":{"coalesce":[null,{"!=":["${l}","${m}"]}]}}}"#,
    ] {
        let program = format!(
            r#""params":[{{"name":"l","type":"list"}},{{"name":"m","type":"list"}}],"steps":[["INCR","n"],{behind}]"#
        );
        let large = list(200_000);
        let reply = run(&mut bench, client, &program, &[&large, &large]);
        assert!(reply.contains("too many steps"), "{behind}: {reply}");
        assert_eq!(words(&mut bench, client, &["GET", "n"]), "nil", "{behind}");
    }
    // And texts.
    let program =
        r#""params":[{"name":"a"},{"name":"b"}],"steps":[["INCR","n"],{"return":{"==":["${a}","${b}"]}}]"#;
    let large = "x".repeat(1 << 20);
    let limited = format!(r#"{{"limits":{{"steps":100,"time-ms":60000}},{program}}}"#);
    let reply = words(&mut bench, client, &["PROGRAM", "EVAL", &limited, &large, &large]);
    assert!(reply.contains("too many steps"), "{reply}");
    assert_eq!(words(&mut bench, client, &["GET", "n"]), "nil");
    assert_eq!(run(&mut bench, client, program, &[&large, &large]), "true");
}

#[test]
fn what_one_step_goes_through_is_counted_however_it_is_written() {
    let (mut bench, client) = bench();
    let many = |part: &str| vec![part; 1000].join(",");
    let nested =
        |depth: usize, open: &str, close: &str| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    let expressions = [
        format!("[{}]", many("1")),
        format!(r#"{{"and":[{}]}}"#, many("1")),
        format!(r#"{{"or":[{}]}}"#, many("0")),
        format!(r#"{{"coalesce":[{}]}}"#, many("null")),
        format!(r#"{{"+":[{}]}}"#, many("1")),
        format!("\"{}\"", "${i}-".repeat(500)),
        format!("[{}]", vec![nested(60, r#"{"not":"#, "}"); 16].join(",")),
        format!("[{}]", vec![nested(40, r#"{"if":[true,"#, ",1]}"); 16].join(",")),
        format!("[{}]", vec![nested(40, r#"{"==":[{"not":0},"#, "]}"); 16].join(",")),
        format!(
            r#"{{"object":{{{}}}}}"#,
            (0..250).map(|at| format!("\"m{at}\":1")).collect::<Vec<_>>().join(",")
        ),
        r#"{"range":[0,1000]}"#.to_owned(),
        r#"{"length":{"range":[1000,0,-1]}}"#.to_owned(),
    ];
    for expression in expressions {
        let steps =
            format!(r#""steps":[{{"for":"i","range":[0,1000],"do":[{{"let":{{"x":{expression}}}}}]}}]"#);
        let reply = run(&mut bench, client, &steps, &[]);
        assert!(reply.contains("too many steps"), "{}: {reply}", &expression[..expression.len().min(40)]);
    }
    let cases = many(r#"{"is":1,"then":[]}"#);
    let steps =
        format!(r#""steps":[{{"for":"i","range":[2,1000],"do":[{{"switch":"${{i}}","cases":[{cases}]}}]}}]"#);
    assert!(run(&mut bench, client, &steps, &[]).contains("too many steps"));
    // Two lists that differ at their end alone, as the values of a switch.
    let cases = many(r#"{"is":"${l}","then":[]}"#);
    let steps = format!(
        r#""params":[{{"name":"l","type":"list"}}],"steps":[{{"switch":{{"append":["${{l}}",1]}},"cases":[{cases}]}}]"#
    );
    assert!(run(&mut bench, client, &steps, &[&list(1000)]).contains("too many steps"));
}

#[test]
fn ranges_and_long_texts_count_before_they_are_made() {
    let (mut bench, client) = bench();
    for (steps, part) in [
        (r#"{"for":"i","range":[0,10000000],"do":[]}"#, "too many steps"),
        (r#"{"for":"i","range":[0,9223372036854775807],"do":[]}"#, "too many steps"),
        (r#"{"for":"i","in":{"range":[0,10000000]},"do":[]}"#, "100000 integers at most"),
        (r#"{"let":{"x":[{"range":[0,100000]},{"range":[0,100000]}]}}"#, "too many steps"),
        (
            r#"{"return":{"length":{"range":[-9223372036854775808,9223372036854775807,9223372036854775807]}}}"#,
            "3",
        ),
    ] {
        let reply = run(&mut bench, client, &format!(r#""steps":[{steps}]"#), &[]);
        assert!(reply.contains(part), "{steps}: {reply}");
    }
    let small = |limits: &str, steps: &str, arg: &str| {
        format!(
            r#"{{"limits":{{{limits},"time-ms":60000}},"params":[{{"name":"p"{arg}}}],"steps":[{steps}]}}"#
        )
    };
    let reply = words(
        &mut bench,
        client,
        &["PROGRAM", "EVAL", &small(r#""memory":100000"#, r#"{"let":{"x":{"range":[0,50000]}}}"#, ""), "p"],
    );
    assert!(reply.contains("too many bytes of values"), "{reply}");
    let large = "x".repeat(1 << 20);
    for (expression, steps) in [
        (r#"{"text":["${p}","${p}"]}"#, 256),
        (r#"{"join":[["${p}","${p}"],""]}"#, 256),
        (r#"{"join":[[1,2,3],"${p}"]}"#, 256),
        (r#"{"==":["${p}",{"text":["${p}"]}]}"#, 256),
    ] {
        let program =
            small(&format!(r#""steps":{steps}"#), &format!(r#"{{"let":{{"x":{expression}}}}}"#), "");
        let reply = words(&mut bench, client, &["PROGRAM", "EVAL", &program, &large]);
        assert!(reply.contains("too many steps"), "{expression}: {reply}");
    }
}

#[test]
fn a_loop_over_names_that_ends_at_once_does_not_gather_them_all() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    bench.text(client, "CONFIG SET program-time-ms-max 600000");
    let names: Vec<String> = (0..20_000).map(|at| format!("\"name{at}\":1")).collect();
    let object = format!("{{{}}}", names.join(","));
    let mut took = |rounds: usize| {
        let program = format!(
            r#"{{"limits":{{"time-ms":600000}},"params":[{{"name":"o","type":"object"}}],"steps":[
            {{"for":"i","range":[0,{rounds}],"do":[{{"for":"name","in":"${{o}}","do":[{{"break":true}}]}}]}}]}}"#
        );
        let began = cpu_ms();
        let reply = words(&mut bench, client, &["PROGRAM", "EVAL", &program, &object]);
        // Rounds of both loops, and the steps inside of them.
        assert_eq!(reply.contains("too many steps"), rounds > 1, "{reply}");
        cpu_ms() - began
    };
    let (one, many) = (took(1), took(3_000));
    // Reading the object is in both; gathering its names in each round would take a thousand times as long.
    assert!(many < 20.0 * one, "{one:.0} ms, {many:.0} ms of this thread");
}

#[test]
fn a_part_of_a_string_costs_its_bytes() {
    let (mut bench, client) = bench();
    words(&mut bench, client, &["SET", "big", &"x".repeat(1 << 20)]);
    for command in ["GETRANGE", "SUBSTR"] {
        let of = |rounds: usize, end: i64| {
            format!(r#""steps":[{{"for":"i","range":[0,{rounds}],"do":[["{command}","big",0,{end}]]}}]"#)
        };
        let reply = run(&mut bench, client, &of(100, -1), &[]);
        assert!(reply.contains("too many steps"), "{command}: {reply}");
        assert_eq!(run(&mut bench, client, &of(5, -1), &[]), "nil", "{command}");
        assert_eq!(run(&mut bench, client, &of(1000, 9), &[]), "nil", "{command}: what is answered counts");
    }
}

#[test]
fn json_in_arguments_is_read_within_the_limits() {
    let (mut bench, client) = bench();
    for kind in ["list", "any"] {
        let program = |limits: &str| {
            format!(
                r#"{{"limits":{{{limits}}},"params":[{{"name":"l","type":"{kind}"}}],"steps":[{{"return":1}}]}}"#
            )
        };
        let mut asked = |limits: &str, json: &str| {
            words(&mut bench, client, &["PROGRAM", "EVAL", &program(limits), json])
        };
        assert_eq!(asked(r#""time-ms":5"#, &list(5_000)), "1", "{kind}");
        for json in [list(50_000), "[".repeat(2_000_000), format!("\"{}\"", "x".repeat(2_000_000))] {
            let reply = asked(r#""time-ms":5"#, &json);
            assert!(
                reply.contains("too much JSON in arguments") && reply.contains("time-ms"),
                "{kind}: {reply}"
            );
        }
        assert_eq!(asked(r#""time-ms":60000"#, &list(200_000)), "1", "{kind}");
        let reply = asked(r#""time-ms":60000,"memory":1000000"#, &list(200_000));
        assert!(reply.contains("too much JSON in arguments") && reply.contains("memory"), "{kind}: {reply}");
    }
}

/// As in arguments: a list is two bytes of a text, and an allocation.
#[test]
fn json_in_a_text_counts_what_it_makes_before_it_is_read() {
    let (mut bench, client) = bench();
    let many = |count: usize, element: &str| format!("[{}]", vec![element; count].join(","));
    let read = r#""params":[{"name":"j"}],"steps":[{"return":{"length":{"from_json":"${j}"}}}]"#;
    for element in ["[]", "{}", "1", r#"{"a":{}}"#, "[[[[[[[[]]]]]]]]"] {
        assert_eq!(run(&mut bench, client, read, &[&many(500, element)]), "500", "{element}");
        let reply = run(&mut bench, client, read, &[&many(30_000, element)]);
        assert!(reply.contains("too many steps"), "{element}: {reply}");
    }
    let reply = run(&mut bench, client, read, &[&"x".repeat(4_000_000)]);
    assert!(reply.contains("too many steps"), "its bytes: {reply}");
    let little = r#""params":[{"name":"j"}],"steps":[{"for":"i","range":[0,1000],"do":[{"let":{"x":{"from_json":"${j}"}}}]}]"#;
    let reply = run(&mut bench, client, little, &[&many(100, "[]")]);
    assert!(reply.contains("too many steps"), "little, often: {reply}");
    let limited = format!(r#"{{"limits":{{"memory":100000,"time-ms":60000}},{read}}}"#);
    let reply = words(&mut bench, client, &["PROGRAM", "EVAL", &limited, &many(1000, "[]")]);
    assert!(reply.contains("too many bytes of values"), "{reply}");
}

#[test]
fn finding_the_keys_of_a_program_takes_no_longer_than_it_may_run() {
    let (mut bench, client) = bench();
    let cases = |from: usize, count: usize, then: fn(usize) -> String| -> Vec<String> {
        (from..from + count).map(|at| format!(r#"{{"is":{at},"then":[{}]}}"#, then(at))).collect()
    };
    let mut took = |none: usize, some: usize| {
        let some = cases(none, some, |at| format!(r#"{{"let":{{"n{at}":1}}}}"#));
        let none = cases(0, none, |_| String::new());
        let text = format!(
            r#"{{"limits":{{"time-ms":60000}},"steps":[{{"switch":0,"cases":[{},{}]}},["SET","k","v"]]}}"#,
            none.join(","),
            some.join(",")
        );
        assert!(!words(&mut bench, client, &["PROGRAM", "SET", "many", &text]).starts_with('-'));
        let runs = (0..10).map(|_| {
            let began = cpu_ms();
            assert_eq!(words(&mut bench, client, &["PROGRAM", "RUN", "many"]), "nil");
            cpu_ms() - began
        });
        runs.fold(f64::INFINITY, f64::min)
    };
    let (few, many) = (took(7_500, 250), took(30_000, 1_000));
    println!("{few:.3} ms, {many:.3} ms a run");
    // Four times as many of both: 16 times as long if each is looked at for each of the others.
    assert!(many < 9.0 * few, "{few:.3} ms, {many:.3} ms a run");
}

/// What is read with everything locked holds up everybody: what a transaction brings is read when it is queued.
#[test]
fn programs_and_triggers_of_a_transaction_are_read_when_they_are_queued() {
    let (mut bench, client) = bench();
    let large = |name: &str| {
        let steps = vec![r#"["SET","k",1]"#; 3_000].join(",");
        format!(r#"{{"description":"{name}","limits":{{"steps":100000,"time-ms":60000}},"steps":[{steps}]}}"#)
    };
    bench.text(
        client,
        "CONFIG SET program-time-ms-max 60000 program-steps-max 100000 program-keys-max 100000",
    );
    let trigger = format!(r#"{{"key":"t","when":[{}],"publish":"c"}}"#, vec!["1"; 20_000].join(","));
    let (one, other) = (large("one"), large("other"));
    let queued: [&[&str]; 6] = [
        &["PROGRAM", "SET", "one", &one],
        &["PROGRAM", "EXPLAIN", &other],
        &["TRIGGER", "SET", "t", &trigger],
        &["PROGRAM", "SET", "cut", &one[..one.len() - 1]],
        &["PROGRAM", "SET", "two", &other, "VERSION", "0"],
        &["PROGRAM", "SET", "one", &one, "VERSION", "7"],
    ];
    let mut rounds = Vec::new();
    for _ in 0..3 {
        bench.text(client, "PROGRAM DEL one two cut");
        bench.text(client, "TRIGGER DEL t");
        bench.text(client, "MULTI");
        let began = cpu_ms();
        for words in queued {
            assert_eq!(self::words(&mut bench, client, words), "QUEUED");
        }
        let queuing = cpu_ms() - began;
        let began = cpu_ms();
        let reply = bench.text(client, "EXEC");
        rounds.push((queuing, cpu_ms() - began));
        assert!(reply.contains("locks:everything"), "{reply}");
        assert!(reply.contains("-ERR program "), "what is wrong is told when it runs: {reply}");
        assert!(reply.contains("-WRONGVERSION"), "{reply}");
        assert_eq!(bench.text(client, "EXISTS k"), "0");
    }
    println!("{rounds:.1?} ms: queuing, EXEC");
    assert!(rounds.iter().any(|(queuing, exec)| *exec < queuing / 3.0), "{rounds:.1?} ms: queuing, EXEC");
    // What was read is that of its own command, and counts against what a connection may queue.
    for name in ["one", "two"] {
        let stored = words(&mut bench, client, &["PROGRAM", "GET", name]);
        assert!(
            stored.contains(&format!("\"description\":\"{}\"", if name == "one" { "one" } else { "other" }))
        );
    }
    bench.text(client, &format!("CONFIG SET client-query-buffer-limit {}", 2 << 20));
    bench.text(client, "MULTI");
    let much = large("much");
    let refused = (0..100).map(|_| words(&mut bench, client, &["PROGRAM", "SET", "much", &much]));
    let refused: Vec<String> = refused.take_while(|reply| reply == "QUEUED").collect();
    assert!(refused.len() * much.len() < 1 << 20, "{} of {} bytes", refused.len(), much.len());
}

#[test]
fn texts_that_are_put_together_of_little_ones_count() {
    let (mut bench, client) = bench();
    let many = "${x}".repeat(60_000);
    let literal = "y".repeat(100_000);
    for (steps, arg) in [
        (format!(r#"{{"let":{{"y":"{many}"}}}}"#), 4_000),
        (format!(r#"["ECHO","{many}"]"#), 4_000),
        (format!(r#"["SET","k","{many}"]"#), 4_000),
        (format!(r#"{{"fail":"NO","message":"{many}"}}"#), 4_000),
        (format!(r#"{{"fail":"{many}"}}"#), 4_000),
        (format!(r#"{{"assert":false,"message":"{many}"}}"#), 4_000),
        (
            r#"{"for":"i","range":[0,9000],"do":[["ECHO",LITERAL]]}"#
                .replace("LITERAL", &format!("\"{literal}\"")),
            1,
        ),
    ] {
        let began = cpu_ms();
        let program = format!(r#""params":[{{"name":"x"}}],"steps":[{steps}]"#);
        let reply = run(&mut bench, client, &program, &[&"x".repeat(arg)]);
        let (took, shown) = (cpu_ms() - began, &steps[..steps.len().min(40)]);
        println!("{took:8.1} ms {shown}: {}", &reply[..reply.len().min(80)]);
        assert!(
            reply.contains("too many steps") || reply.contains("too many bytes of values"),
            "{shown}: {}",
            &reply[..reply.len().min(200)]
        );
        assert!(took < 2_000.0, "{shown}: {took:.0} ms of this thread");
    }
}

#[test]
fn a_long_message_is_cut() {
    let (mut bench, client) = bench();
    let program = r#""params":[{"name":"x"}],"steps":[{"fail":"NO","message":"${x}"}]"#;
    for (given, bytes) in [(100, 100), (16 << 10, 16 << 10), (1 << 20, 16 << 10)] {
        let reply = run(&mut bench, client, program, &[&"x".repeat(given)]);
        assert_eq!(reply.len(), "-NO ".len() + bytes, "{given}");
    }
}

#[test]
fn matching_names_counts_and_takes_no_product_of_lengths() {
    let (mut bench, client) = bench();
    let (letters, classes) = (format!("*{}b*", "a".repeat(60_000)), format!("*{}b*", "[a]".repeat(20_000)));
    for at in 0..10 {
        words(&mut bench, client, &["SET", &format!("{}{at}", "a".repeat(200_000)), "v"]);
        words(&mut bench, client, &["HSET", "h", &format!("{}{at}", "a".repeat(200_000)), "v"]);
    }
    let keys = r#"{"for":"k","keys":"${p}","limit":10,"do":[]}"#;
    for (steps, pattern, counts) in [
        (keys, &classes, true),
        (r#"["KEYS","${p}"]"#, &classes, true),
        (r#"["SCAN","0","MATCH","${p}"]"#, &classes, true),
        (r#"["HSCAN","h","0","COUNT","100","MATCH","${p}"]"#, &classes, true),
        (keys, &letters, true),
        (r#"["KEYS","${p}"]"#, &letters, true),
        (r#"["KEYS","${p}"]"#, &"user:*[ab]*".to_owned(), false),
        (keys, &"user:*".to_owned(), false),
    ] {
        let began = cpu_ms();
        let program = format!(
            r#"{{"limits":{{"steps":1000,"time-ms":60000}},"params":[{{"name":"p"}}],"steps":[{steps}]}}"#
        );
        let reply = words(&mut bench, client, &["PROGRAM", "EVAL", &program, pattern]);
        let took = cpu_ms() - began;
        println!("{took:8.1} ms {steps}: {}", &reply[..reply.len().min(80)]);
        assert_eq!(reply.contains("too many steps"), counts, "{steps} {}: {reply}", &pattern[..8]);
        assert!(took < 2_000.0, "{steps}: {took:.0} ms of this thread");
    }
}

#[test]
fn stored_programs_count_in_the_form_that_they_run_in() {
    let (mut bench, client) = bench();
    let used = |bench: &mut Bench, field: &str| {
        let info = bench.text(client, "INFO memory");
        let value = info
            .split_whitespace()
            .find_map(|line| line.strip_prefix(&format!("{field}:")).map(str::to_owned));
        value.and_then(|value| value.parse::<usize>().ok()).expect("a number")
    };
    let text = format!(r#"{{"steps":[{}]}}"#, vec![r#"["SET","k1",1]"#; 60_000].join(","));
    let before = used(&mut bench, "used_memory");
    let mut stored = 0;
    let refused = loop {
        let reply = words(&mut bench, client, &["PROGRAM", "SET", &format!("p{stored}"), &text]);
        if reply != "1" {
            break reply;
        }
        stored += 1;
    };
    assert!(
        refused.contains("programs and triggers may take 268435456 bytes together")
            && refused.contains("delete some first"),
        "{refused}"
    );
    let (each, limit) = ((used(&mut bench, "used_memory") - before) / stored, 256 << 20);
    println!("{stored} of {each} bytes, their text having {}", text.len());
    assert!(
        each > 10 * text.len() && each * stored <= limit && each * (stored + 1) > limit,
        "{stored} of {each}"
    );
    assert!(used(&mut bench, "used_memory_overhead") >= each * stored);
    // One may be replaced, and what is gone counts no more.
    assert_eq!(words(&mut bench, client, &["PROGRAM", "SET", "p0", &text]), "2");
    for at in 0..stored {
        assert_eq!(words(&mut bench, client, &["PROGRAM", "DEL", &format!("p{at}")]), "1");
    }
    assert_eq!(used(&mut bench, "used_memory"), before);
    // They are a part of what may be used, and no large one.
    bench.text(client, "CONFIG SET maxmemory-policy noeviction");
    bench.text(client, &format!("CONFIG SET maxmemory {}", 3 * each));
    let refused = words(&mut bench, client, &["PROGRAM", "SET", "p", &text]);
    assert!(
        refused.contains("programs and triggers may take ") && refused.contains("delete some first"),
        "{refused}"
    );
    bench.text(client, &format!("CONFIG SET maxmemory {}", 5 * each));
    assert!(!words(&mut bench, client, &["PROGRAM", "SET", "p", &text]).starts_with('-'));
    let value = "v".repeat(1 << 20);
    let all = (0..10 * each / value.len())
        .take_while(|at| words(&mut bench, client, &["SET", &format!("k{at}"), &value]) == "OK")
        .count();
    let most = 5 * each / value.len();
    assert!(all < most * 17 / 20 && all > most / 2, "{all} of {most}");
}
