//! That a program which runs out its time is over in twice that time, taking back included, whatever it has written: so
//! long others wait for it.
//!
//! What is measured is the CPU time of this thread, which other processes do not lengthen; of some runs the shortest
//! counts, since what the machine does to one it does not do to all.

use weft_engine::reply::Protocol;

use crate::support::{Bench, show};
use crate::sweep::{collections, cpu_ms};

/// The limit that programs have where nothing is said.
const LIMIT_MS: f64 = 5.0;
/// How many times longer taking back may be than twice that, in code that is built for tests.
const SLOWNESS: f64 = if cfg!(debug_assertions) { 2.0 } else { 1.0 };
const RUNS: usize = 3;
/// Elements of the collections: as many as a program changes in its time, and more.
const ELEMENTS: usize = 20_000;

/// Steps of a loop over `i`.
const BODIES: &[&str] = &[
    r#"["SET","new:${i}","a value"]"#,
    r#"["SET","new:${i}","${large}"]"#,
    r#"["SET","one","${large}"]"#,
    r#"["SET","full:${i}","other"]"#,
    r#"["APPEND","text","${large}"]"#,
    r#"["INCR","n"]"#,
    r#"["INCR","new:${i}"]"#,
    r#"["DEL","full:${i}"]"#,
    r#"["EXPIRE","full:${i}",100]"#,
    r#"["RENAME","full:${i}","other:${i}"]"#,
    r#"["COPY","full:${i}","other:${i}"]"#,
    r#"["HSET","h","new:${i}","v"]"#,
    r#"["HSET","new:${i}","f","v"]"#,
    r#"["HDEL","h","m:${i}"]"#,
    r#"["SADD","s","new:${i}"]"#,
    r#"["SADD","new:${i}","${i}"]"#,
    r#"["SREM","s","m:${i}"]"#,
    r#"["SPOP","s"]"#,
    r#"["ZADD","z","${i}","new:${i}"]"#,
    r#"["ZADD","z","-${i}","m:${i}"]"#,
    r#"["ZADD","new:${i}","1","m"]"#,
    r#"["ZREM","z","m:${i}"]"#,
    r#"["ZPOPMIN","z"]"#,
    r#"["RPUSH","l","${i}"]"#,
    r#"["LPUSH","l","${i}"]"#,
    r#"["LPOP","l"]"#,
    r#"["RPUSH","new:${i}","${i}"]"#,
    r#"["XADD","x","*","f","v"]"#,
    r#"["PFADD","p","${i}"]"#,
    r#"["SETBIT","bits","${i}",1]"#,
    r#"["PUBLISH","c","${large}"]"#,
    r#"{"let":{"x":"${large}${i}"}}"#,
];

#[test]
fn a_program_that_runs_out_its_time_is_over_in_twice_that() {
    let (mut bench, client) = Bench::with(Protocol::Resp3);
    // It lets programs have as many steps, keys and bytes as they say.
    collections(&mut bench, client, ELEMENTS);
    let fill = r#"{"limits":{"steps":1000000,"keys":1000000,"bytes":100000000,"time-ms":60000},
        "steps":[{"for":"i","range":[0,50000],"do":[["SET","full:${i}","a value"]]}]}"#;
    bench.text(client, "CONFIG SET program-memory-max 100gb");
    assert_eq!(show(&bench.run_args(client, &[b"PROGRAM", b"EVAL", fill.as_bytes()])[0]), "nil");
    // Whoever listens is told behind the program, and belongs to its time.
    let listener = bench.connect(Protocol::Resp3);
    let patterns: Vec<String> = (0..300).map(|at| format!("[c{at}]")).collect();
    bench.run(listener, &format!("PSUBSCRIBE {}", patterns.join(" ")));
    let large = "v".repeat(1000);
    let mut wrong = Vec::new();
    for body in BODIES {
        let program = format!(
            r#"{{"limits":{{"steps":1000000000,"keys":1000000000,"bytes":100000000000,"memory":100000000000,
                "time-ms":{LIMIT_MS}}},"params":[{{"name":"large"}}],
                "steps":[{{"for":"i","range":[0,1000000000],"do":[{body}]}}]}}"#
        );
        let arguments = [b"PROGRAM".as_slice(), b"EVAL", program.as_bytes(), large.as_bytes()];
        let mut shortest = f64::INFINITY;
        for _ in 0..RUNS {
            let began = cpu_ms();
            let reply = bench.run_args(client, &arguments).iter().map(show).collect::<String>();
            shortest = shortest.min(cpu_ms() - began);
            assert!(reply.contains("too much time"), "{body}: {reply}");
        }
        println!("{shortest:8.2} ms {body}");
        if shortest > 2.0 * LIMIT_MS * SLOWNESS {
            wrong.push(format!("{body}: {shortest:.1} ms"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
