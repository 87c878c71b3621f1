//! Values at their limits, and the rights that a program is tried with.

use weft_engine::reply::Protocol;
use weft_protocol::Reply;

use crate::running::{bench, eval};
use crate::support::stored::words;
use crate::support::{ALL, Bench, show};

/// Lists of lists, ever deeper, and such as share what they hold, so that who goes through them meets it 2^n times.
#[test]
fn values_are_as_deep_and_as_large_as_somebody_may_go_through() {
    let (mut bench, client) = bench();
    let mut grown = |rounds: u32, element: &str, last: &str| {
        let each = format!(r#"{{"for":"i","range":[1,{rounds}],"do":[{{"let":{{"x":{element}}}}}]}}"#);
        eval(&mut bench, client, &format!(r#"{{"let":{{"x":0}}}},{each},{{"return":{last}}}"#))
    };
    let (deeper, wider) = (r#"["${x}"]"#, r#"["${x}","${x}"]"#);
    let ways = [
        r#""${x}""#,
        r#"{"==":["${x}",["${x}"]]}"#,
        r#"{"length":{"to_json":"${x}"}}"#,
        r#"{"type":{"from_json":{"to_json":"${x}"}}}"#,
        r#"{"in":["${x}",["${x}"]]}"#,
        r#"{"max":["${x}","${x}"]}"#,
        r#"{"length":{"unique":[["${x}","${x}"]]}}"#,
    ];
    assert_eq!(grown(120, deeper, r#"{"length":"${x}"}"#), "1");
    for element in
        [deeper, r#"{"object":{"m":"${x}"}}"#, r#"{"append":[[],"${x}"]}"#, r#"{"with":[null,"m","${x}"]}"#]
    {
        let answer = grown(200, element, "1");
        assert!(answer.contains("128 levels of lists and objects"), "{element}: {answer}");
    }
    for way in ways {
        assert!(!grown(4, wider, way).starts_with('-'), "{way}");
        // A million of numbers is 24 MB as it is told, and takes longer than a program may.
        let answer = grown(20, wider, way);
        assert!(answer.contains("time-ms") || answer.contains("steps"), "{way}: {answer}");
        let answer = grown(100, wider, way);
        assert!(answer.contains("too many bytes of values"), "{way}: {answer}");
    }
}

#[test]
fn a_dry_run_has_the_rights_that_a_run_has() {
    let (mut bench, admin) = bench();
    bench.text(admin, "SET secret 42");
    let owned = r#"{"as":"owner","steps":[{"do":["INCR","secret"],"as":"x"},{"return":"${x}"}]}"#;
    assert_eq!(words(&mut bench, admin, &["PROGRAM", "SET", "owned", owned]), "1");
    bench.text(admin, "ACL SETUSER u on nopass ~own:* +program|dryrun");
    let user = bench.connect(Protocol::Resp3);
    bench.text(user, "AUTH u x");
    // Who may not run it is not shown what its owner may see.
    let refused = bench.text(user, "PROGRAM DRYRUN owned");
    assert!(refused.starts_with("-NOPERM User u has no permissions to run the 'program|run'"), "{refused}");
    bench.text(admin, "ACL SETUSER u +program|run|owned");
    let tried = bench.text(user, "PROGRAM DRYRUN owned");
    assert!(tried.starts_with("{result:43 effects:[["), "{tried}");
    for protocol in [Protocol::Resp2, Protocol::Respb] {
        let other = bench.connect(protocol);
        bench.text(other, "AUTH u x");
        let tried = bench.text(other, "PROGRAM DRYRUN owned");
        assert!(tried.contains("43") && !tried.contains("NOPERM"), "{protocol:?}: {tried}");
    }
    assert_eq!(bench.text(admin, "GET secret"), "42");
    assert!(tried.ends_with("effects:[[set 0 secret]]}"), "{tried}");
    // A text that is not stored has no owner.
    let text = words(&mut bench, user, &["PROGRAM", "DRYRUN", owned]);
    assert!(text.starts_with("{error:NOPERM /steps/0 INCR: "), "{text}");
    // And the other way round: who may do everything sees what its owner may not.
    bench.text(admin, "ACL SETUSER u ~secret +program|set +incr");
    assert_eq!(words(&mut bench, user, &["PROGRAM", "SET", "owned", owned]), "2");
    bench.text(admin, "ACL SETUSER u -incr");
    let tried = bench.text(admin, "PROGRAM DRYRUN owned");
    assert!(tried.starts_with("{error:NOPERM /steps/0 INCR: User u "), "{tried}");
    bench.text(admin, "ACL DELUSER u");
    assert!(bench.text(admin, "PROGRAM DRYRUN owned").contains("owner 'u' is no user any more"));
}

#[test]
fn what_a_key_held_is_shown_to_who_may_read_it() {
    let (mut bench, admin) = bench();
    bench.text(admin, "ZADD w:z 1 hidden");
    bench.text(admin, "RPUSH w:l hidden");
    bench.text(admin, "SADD w:s hidden");
    let event = r#"{"params":[{"name":"event","type":"object"}],"steps":[["ZREMRANGEBYRANK","w:z",0,0]]}"#;
    assert_eq!(words(&mut bench, admin, &["PROGRAM", "SET", "p", event]), "1");
    assert_eq!(words(&mut bench, admin, &["TRIGGER", "SET", "t", r#"{"key":"w:*","after":"p"}"#]), "1");
    bench.text(admin, "ACL SETUSER writer on nopass %W~w:* +@write +program|dryrun +trigger|test");
    let writer = bench.connect(Protocol::Resp3);
    bench.text(writer, "AUTH writer x");
    for (step, effect) in [
        (r#"["ZREMRANGEBYRANK","w:z",0,0]"#, "sorted-set-remove 0 w:z"),
        (r#"["ZREMRANGEBYSCORE","w:z",0,9]"#, "sorted-set-remove 0 w:z"),
        (r#"["ZREMRANGEBYLEX","w:z","-","+"]"#, "sorted-set-remove 0 w:z"),
    ] {
        let program = format!(r#"{{"steps":[{step}]}}"#);
        let asked = ["PROGRAM", "DRYRUN", &program];
        let shown = words(&mut bench, writer, &asked);
        assert!(shown.contains(&format!("[{effect}]")) && !shown.contains("hidden"), "{step}: {shown}");
        assert!(words(&mut bench, admin, &asked).contains(&format!("[{effect} hidden]")), "{step}");
    }
    let asked = ["TRIGGER", "TEST", "t", r#"{"key":"w:1"}"#];
    let shown = words(&mut bench, writer, &asked);
    assert!(shown.contains("[sorted-set-remove 0 w:z]"), "{shown}");
    assert!(words(&mut bench, admin, &asked).contains("[sorted-set-remove 0 w:z hidden]"));
}

#[test]
fn a_name_that_is_not_stored_is_shown_short() {
    let (mut bench, admin) = bench();
    let name = "n".repeat(100_000);
    for asked in
        [&["PROGRAM", "RUN", &name][..], &["PROGRAM", "STATS", &name], &["TRIGGER", "TEST", &name, "{}"]]
    {
        let reply = words(&mut bench, admin, asked);
        assert!(reply.contains(" is stored") && reply.len() < 200, "{} bytes", reply.len());
    }
}

/// What a program is given, answers, writes to a key and reads again, over each protocol.
#[test]
fn doubles_go_to_json_and_to_keys_and_back() {
    let program = r#"{"params":[{"name":"x","type":"number"},{"name":"any","type":"any"}],"steps":[
        {"let":{"y":{"from_json":{"to_json":[["${x}"]]}}}},
        ["SET","k","${x}"],{"do":["GET","k"],"as":"kept"},
        {"return":["${x}","${y.0}","${any}","${kept}",{"to_json":"${y.0}"},{"to_json":{"number":"${kept}"}},
            {"and":[{"==":["${x}","${y.0}"]},{"==":["${x}","${any}"]},{"==":["${x}","${kept}"]}]},
            {"type":"${y.0}"}]}]}"#;
    for protocol in ALL {
        let (mut bench, client) = Bench::with(protocol);
        for (number, text, kind) in [
            ("1e308", "1e+308", "float"),
            ("-1E308", "-1e+308", "float"),
            ("1.7976931348623157e308", "1.7976931348623157e+308", "float"),
            ("9.223372036854775808e18", "9223372036854776000", "float"),
            ("9223372036854775807", "9223372036854775807", "int"),
            ("-1e19", "-1e+19", "float"),
            ("1.2345678901234567e20", "123456789012345670000", "float"),
            ("7.778054979013687e18", "7778054979013687296", "int"),
            ("4.5e22", "4.5e+22", "float"),
            ("-0.0", "-0", "float"),
            ("5e-324", "5e-324", "float"),
            ("0.1", "0.1", "float"),
            ("2.5e-7", "2.5e-7", "float"),
        ] {
            let line = ["PROGRAM", "EVAL", program, number, text].map(str::as_bytes);
            let answers = bench.run_args(client, &line);
            let [Reply::Array(values)] = &answers[..] else { panic!("{protocol:?} {number}: {answers:?}") };
            let exact: f64 = number.parse().unwrap();
            for value in &values[..3] {
                let told = match value {
                    Reply::Double(value) => *value,
                    Reply::Int(value) => *value as f64,
                    Reply::Bulk(text) => String::from_utf8_lossy(text).parse().unwrap(),
                    other => panic!("{other:?}"),
                };
                assert_eq!(told.to_bits(), exact.to_bits(), "{protocol:?} {number}");
            }
            let rest: Vec<String> = values[3..].iter().map(show).collect();
            let same = if protocol == Protocol::Resp2 { "1" } else { "true" };
            assert_eq!(rest, [text, text, text, same, kind], "{protocol:?} {number}");
        }
    }
    // One that would lose digits is none.
    let (mut bench, client) = bench();
    let lost = eval(&mut bench, client, r#"{"return":{"from_json":"9223372036854775809"}}"#);
    assert_eq!(lost, "nil");
    assert_eq!(eval(&mut bench, client, r#"{"return":{"+":[1e308,-1e308,2.5]}}"#), "2.5");
    assert!(eval(&mut bench, client, r#"{"return":9223372036854775809}"#).contains("beyond 64 bits"));
}

/// Who compares and sets means what he has seen, and not something else that came to have its number.
#[test]
fn versions_of_what_was_deleted_do_not_come_again() {
    let (mut bench, client) = bench();
    let program = r#"{"steps":[["GET","k"]]}"#;
    let trigger = r#"{"key":"none","inside":"p"}"#;
    for (kind, text) in [("PROGRAM", program), ("TRIGGER", trigger)] {
        let set = |bench: &mut Bench, name: &str, version: Option<&str>| {
            let mut all = vec![kind, "SET", name, text];
            all.extend(version.into_iter().flat_map(|version| ["VERSION", version]));
            words(bench, client, &all)
        };
        assert_eq!(set(&mut bench, "p", None), "1", "{kind}");
        assert_eq!(set(&mut bench, "p", Some("1")), "2", "{kind}");
        assert_eq!(set(&mut bench, "other", None), "1", "{kind}: nothing was deleted yet");
        assert_eq!(bench.text(client, &format!("{kind} DEL p other")), "2");
        assert_eq!(bench.text(client, &format!("{kind} LIST")), "[]");
        // Also behind a start.
        assert!(bench.engine.load_catalogue().is_empty(), "{kind}");
        assert_eq!(set(&mut bench, "p", Some("0")), "3", "{kind}");
        for before in ["1", "2"] {
            let refused = set(&mut bench, "p", Some(before));
            assert_eq!(
                refused,
                format!("-WRONGVERSION the version of the {} is 3, 0 being none", kind.to_lowercase())
            );
        }
        assert_eq!(bench.text(client, &format!("{kind} DEL p")), "1");
        assert_eq!(words(&mut bench, client, &[kind, "DEL", ""]), "0", "{kind}: nothing has this name");
        assert_eq!(set(&mut bench, "p", None), "4", "{kind}");
    }
}

#[test]
fn a_loop_over_keys_is_about_the_database_that_select_has_chosen() {
    let (mut bench, admin) = bench();
    bench.text(admin, "SET in0 a");
    bench.text(admin, "SELECT 1");
    bench.text(admin, "SET in1 a");
    bench.text(admin, "SELECT 0");
    let names = |first: &str| {
        format!(
            r#"{{"steps":[{first}{{"let":{{"x":[]}}}},{{"for":"k","keys":"*","limit":9,"do":[{{"let":{{"x":{{"append":["${{x}}","${{k}}"]}}}}}}]}},{{"return":"${{x}}"}}]}}"#
        )
    };
    let (here, there) = (names(""), names(r#"["SELECT",1],"#));
    assert_eq!(words(&mut bench, admin, &["PROGRAM", "EVAL", &there]), "[in1]");
    assert_eq!(words(&mut bench, admin, &["PROGRAM", "EVAL", &here]), "[in0]");
    bench.text(admin, "ACL SETUSER u on nopass +@all ~* resetdbs db=1");
    let user = bench.connect(Protocol::Resp3);
    bench.text(user, "AUTH u x");
    assert!(words(&mut bench, user, &["PROGRAM", "EVAL", &here]).starts_with("-NOPERM"));
}

/// What is made is asked about before it is made: by the steps that it takes, and by its bytes.
/// A value that is a list is several arguments, which is seen when the program runs.
#[test]
fn what_was_written_with_a_list_of_arguments_is_taken_back() {
    let (mut bench, client) = bench();
    for (command, list) in [
        (r#""SADD","k""#, r#"["a","b"]"#),
        (r#""SET","k""#, r#"["v","EX",100]"#),
        (r#""HSET","k""#, r#"{"f":1,"g":2}"#),
        (r#""INCRBY","k""#, "[5]"),
    ] {
        for ends in [r#"{"fail":"MADE"}"#, r#"["LPUSH","text","x"]"#, r#"{"return":{"+":["x",1]}}"#] {
            bench.text(client, "SET text v");
            let steps = format!(r#"[[{command},"${{l}}"],{ends}]"#);
            let text = format!(r#"{{"params":[{{"name":"l","type":"any"}}],"steps":{steps}}}"#);
            let reply = words(&mut bench, client, &["PROGRAM", "EVAL", &text, list]);
            assert!(reply.starts_with('-'), "{text} {list}: {reply}");
            assert_eq!(bench.text(client, "EXISTS k"), "0", "{text} {list}");
        }
    }
}

#[test]
fn functions_do_not_begin_what_takes_too_long() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    let text = |bytes: usize, of: &str| of.repeat(bytes / of.len());
    let program = |expr: &str| {
        format!(
            r#"{{"params":[{{"name":"x"}}],"steps":[{{"return":{{"length":{{"text":[{{"type":{expr}}}]}}}}}}]}}"#
        )
    };
    for (expr, x) in [
        (r#"{"pad":["",16777216,"0"]}"#, String::new()),
        (r#"{"split":["${x}","a"]}"#, text(400_000, "a")),
        (r#"{"split":["${x}","b"]}"#, text(4_000_000, "a")),
        (r#"{"replace":["${x}","a","bc"]}"#, text(3_000_000, "a")),
        (r#"{"in":["ab","${x}"]}"#, text(4_000_000, "a")),
        (r#"{"date":[0,"${x}"]}"#, text(400_000, "%u")),
    ] {
        let answer = words(&mut bench, client, &["PROGRAM", "EVAL", &program(expr), &x]);
        assert!(answer.contains("too many steps") || answer.contains("too much time"), "{expr}: {answer}");
    }
    // What is far from it goes on.
    bench.text(client, "CONFIG SET program-time-ms-max 60000");
    for (expr, x, len) in [
        (r#"{"pad":["",100000,"0"]}"#, String::new(), "4"),
        (r#"{"split":["${x}","a"]}"#, text(5_000, "a"), "4"),
        (r#"{"replace":["${x}","a","bc"]}"#, text(50_000, "a"), "4"),
        (r#"{"date":[0,"${x}"]}"#, text(2_000, "%u"), "4"),
    ] {
        let program = program(expr).replacen('{', r#"{"limits":{"time-ms":60000},"#, 1);
        assert_eq!(words(&mut bench, client, &["PROGRAM", "EVAL", &program, &x]), len, "{expr}");
    }
}
