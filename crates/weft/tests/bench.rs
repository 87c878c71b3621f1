//! `weft bench` from outside: its counts against the server's own, its formats, and every kind of trouble.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use common::servers::Server;
use common::skipped::skipped;
use common::{Folder, good, run, stderr, weft};
use serde_json::Value;
use weft_client::Protocol;
use weft_client::fleet::stub::{Stub, Trouble};

/// A stub on a thread of its own.
struct Peer {
    port: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Peer {
    fn start(trouble: Trouble) -> Peer {
        let stub = Stub::bind("127.0.0.1:0", 16, trouble).unwrap();
        let port = stub.address().unwrap().port().to_string();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || stub.serve(&flag).unwrap()));
        Peer { port, stop, thread }
    }

    /// The commands that it was sent.
    fn end(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn json(args: &[&str]) -> Value {
    serde_json::from_slice(&good(args, b"")).unwrap()
}

#[test]
fn the_server_has_counted_as_many() {
    let Some(redis) = Server::redis(&[]) else { return };
    let s = redis.socket.as_str();
    let shape = ["-c", "7", "-P", "9", "--threads", "2", "-r", "100", "-d", "5-40"];
    let args = [&["bench", "-s", s, "-t", "set,get,mset,lpush", "-n", "1003", "--csv"], &shape[..]].concat();
    let output = String::from_utf8(good(&args, b"")).unwrap();
    assert_eq!(output.lines().count(), 5, "{output}");
    for command in ["set", "get", "mset", "lpush"] {
        assert_eq!(redis.calls(command), 1003, "{command}");
    }
    // A mix keeps its ratio over each round of its ring, and a preload stores every key once.
    redis.connect(Protocol::Resp2).command(&["CONFIG", "RESETSTAT"]).unwrap();
    redis.connect(Protocol::Resp2).command(&["FLUSHALL"]).unwrap();
    let args =
        ["bench", "-s", s, "-3", "--mix", "get=3,incr=1", "-n", "4096", "-r", "500", "--preload", "--json"];
    let value = json(&args);
    assert_eq!(redis.calls("set"), 500);
    assert_eq!((redis.calls("get"), redis.calls("incr")), (3072, 1024));
    assert_eq!(value["tests"][0]["commands"][0]["replies"], 3072);
    assert_eq!((&value["tests"][0]["misses"], &value["tests"][0]["errors"]), (&0.into(), &0.into()));
    assert_eq!(value["tests"][0]["protocol"], "RESP3");
}

/// But for the list that LRANGE reads, which is made unmeasured here, and XADD, which redis-benchmark 7.0 has not.
#[test]
fn rows_without_a_choice_are_those_of_redis_benchmark() {
    let Some(redis) = Server::redis(&[]) else { return };
    let args = ["-s", &redis.socket, "-n", "10", "-c", "1", "--csv"];
    let Ok(theirs) = Command::new("redis-benchmark").args(args).output() else {
        return skipped("there is no redis-benchmark");
    };
    let ours = good(&[&["bench"][..], &args].concat(), b"");
    let rows = |text: &[u8], but_for: &str| -> Vec<String> {
        let text = String::from_utf8_lossy(text);
        let names = text.lines().filter_map(|line| line.strip_prefix('"')?.split('"').next());
        names.filter(|name| !name.starts_with(but_for)).map(str::to_string).collect()
    };
    let names = rows(&ours, "XADD");
    assert_eq!(names, rows(&theirs.stdout, "LPUSH (needed"));
    assert_eq!(names.len(), 20, "a head and 19 tests: {names:?}");
}

#[test]
fn every_default_test_runs() {
    let Some(redis) = Server::redis(&[]) else { return };
    let args = ["bench", "-s", &redis.socket, "-n", "500", "-P", "5", "-r", "50", "-d", "16", "-q"];
    let output = String::from_utf8(good(&args, b"")).unwrap();
    assert_eq!(output.lines().count(), 20, "{output}");
    assert!(output.lines().all(|line| line.contains("requests per second, p50=")), "{output}");
    let args = [
        "bench",
        "-s",
        &redis.socket,
        "-n",
        "500",
        "-t",
        "mget,hgetall_50,zrange_100,smembers_100,setex",
        "-q",
    ];
    good(&args, b"");
    // Options of one's own commands are not ours.
    let args = ["bench", "-s", &redis.socket, "-n", "10", "-q", "SET", "k", "v", "EX", "60", "-x"];
    assert_eq!(run(&args, b"").status.code(), Some(1));
    let args = ["bench", "-s", &redis.socket, "-n", "10", "-q", "-x", "SET", "k"];
    good(&args, b"from standard input");
    assert_eq!(redis.connect(Protocol::Resp2).query::<String>(&["GET", "k"]).unwrap(), "from standard input");
}

#[test]
fn csv_and_json_have_their_columns() {
    let peer = Peer::start(Trouble::None);
    let args = ["bench", "-p", &peer.port, "-t", "get", "-n", "100", "--csv", "--precision", "1"];
    let text = String::from_utf8(good(&args, b"")).unwrap();
    let (head, row) = text.trim_end().split_once('\n').unwrap();
    assert_eq!(
        head,
        "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
         \"p99_latency_ms\",\"max_latency_ms\",\"protocol\",\"requests\",\"errors\",\"misses\",\
         \"server_cpu_us\",\"client_cpu_us\""
    );
    let cells: Vec<&str> = row.split(',').collect();
    assert_eq!(cells.len(), head.split(',').count(), "{row}");
    assert_eq!((cells[0], cells[8], cells[9], cells[10]), ("\"GET\"", "\"RESP2\"", "\"100\"", "\"0\""));
    assert!(cells[2].trim_matches('"').split_once('.').unwrap().1.len() == 1, "{row}");

    let folder = Folder::new();
    let (hdr, svg) = (folder.path("hdr"), folder.path("p.svg"));
    let args = [
        "bench", "-p", &peer.port, "-4", "--mux", "20", "-c", "3", "-t", "get,set", "-n", "600", "--json",
        "--hdr", &hdr, "--svg", &svg, "--rps", "20000",
    ];
    let value = json(&args);
    let members: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["version", "machine", "connections", "channels", "pipeline", "threads", "keys", "rate", "tests"]
    );
    let test = &value["tests"][1];
    assert_eq!((&test["test"], &test["protocol"]), (&"SET".into(), &"RESPB".into()));
    assert_eq!(
        (&test["requests"], &test["replies"], &test["ended"]),
        (&600.into(), &600.into(), &"done".into())
    );
    for name in ["rps", "latency_ms", "since_sent_ms", "client_cpu_us", "server_cpu_us", "sends", "receives"]
    {
        assert!(!test[name].is_null(), "{name}");
    }
    assert!(test["latency_ms"]["p99.9"].as_f64() >= test["since_sent_ms"]["p50"].as_f64());
    let files = std::fs::read_dir(&hdr).unwrap().count();
    let plot = std::fs::read_to_string(&svg).unwrap();
    assert!(files == 2 && plot.contains("SET RESPB") && plot.ends_with("</svg>\n"), "{files} {plot}");
    let greetings = peer.end() - 100 - 1200;
    assert!(greetings < 100, "{greetings} commands too many");
}

#[test]
fn values_are_compared() {
    let Some(redis) = Server::redis(&[]) else { return };
    let base = ["bench", "-s", &redis.socket, "-r", "100", "-d", "20", "-c", "2", "-P", "10", "--verify"];
    let get = [&base[..], &["-t", "get,mget", "-n", "1000", "--json"]].concat();
    // Nothing is there: then nothing is wrong, and nothing right.
    let output = run(&get, b"");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts =
        |at: usize| ["checked", "absent"].map(|name| value["tests"][at][format!("values_{name}")].clone());
    assert_eq!([counts(0), counts(1)], [[0, 1000], [0, 10_000]].map(|pair| pair.map(Value::from)));
    let said = stderr(&output);
    assert!(
        said.contains("GET: --verify has compared nothing: none of 1,000 values was there; --preload"),
        "{said}"
    );
    let value = json(&[&get[..], &["--preload"]].concat());
    assert_eq!(
        (&value["tests"][0]["values_checked"], &value["tests"][0]["values_wrong"]),
        (&1000.into(), &0.into())
    );
    assert_eq!(value["tests"][1]["values_checked"], 10_000);
    redis.connect(Protocol::Resp2).command(&["SETRANGE", "key:000000000050", "19", "#"]).unwrap();
    let output = run(&get, b"");
    assert_eq!(output.status.code(), Some(1));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let wrong = value["tests"][0]["values_wrong"].as_u64().unwrap();
    assert!((1..100).contains(&wrong), "{wrong}");
    let said = stderr(&output);
    assert!(said.contains("wrong replies or values") && said.contains("--preload"), "{said}");
    assert!(said.contains("key:000000000050 held 20 bytes"), "{said}");
    assert_eq!(value["tests"][0]["first_wrong_key"], "key:000000000050");
}

#[test]
fn a_url_and_a_page() {
    let server = common::servers::Server::weft(&["--requirepass", "secret"]);
    let folder = Folder::new();
    let page = folder.path("page.html");
    let url = format!("unix://:secret@{}?db=3", server.socket);
    let output = run(&["bench", "-u", &url, "-t", "set", "-n", "100", "-e", "-q", "--html", &page], b"");
    assert!(output.status.success() && output.stdout.starts_with(b"SET: "), "{}", stderr(&output));
    let mut by_variable = weft();
    by_variable
        .args(["bench", "-s", &server.socket, "-t", "get", "-n", "10", "-q"])
        .env("WEFTCLI_AUTH", "secret");
    assert!(by_variable.output().unwrap().status.success());
    let keys = good(&["cli", "-u", &url, "DBSIZE"], b"");
    assert_eq!(keys, b"1\n", "in database 3");
    let text = std::fs::read_to_string(page).unwrap();
    for part in ["<!doctype html>", "<table>", "<td>SET</td>", "<svg", "</html>"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (url, said) in [
        ("rediss://127.0.0.1:1", "cannot connect to 127.0.0.1:1"),
        ("redis://u@127.0.0.1:1", "a user needs a password"),
        ("x", "scheme"),
    ] {
        let output = run(&["bench", "-u", url, "-t", "get"], b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
}

#[test]
fn ping_inline_is_words_on_a_line() {
    for server in Server::all() {
        let bench =
            |flags: &[&str]| run(&[&["bench", "-s", &server.socket, "-n", "100"], flags].concat(), b"");
        for protocol in ["-2", "-3"] {
            let output = bench(&[protocol, "-t", "ping", "-q", "-P", "7"]);
            let text = String::from_utf8(output.stdout.clone()).unwrap();
            assert_eq!(output.status.code(), Some(0), "{text} {}", stderr(&output));
            assert!(text.starts_with("PING_INLINE: ") && text.contains("\nPING_MBULK: "), "{text}");
        }
        if server.respb {
            let output = bench(&["-4", "-t", "ping", "-q"]);
            assert!(output.status.success() && output.stdout.starts_with(b"PING_MBULK: "));
            let output = bench(&["-4", "-t", "ping_inline"]);
            assert_eq!(output.status.code(), Some(1));
            assert!(stderr(&output).contains("no words on a line"), "{}", stderr(&output));
        }
        // All tests that run without -t.
        let output = bench(&["--csv", "-c", "2"]);
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success(), "{text} {}", stderr(&output));
        assert_eq!(text.lines().nth(1).map(|line| line.starts_with("\"PING_INLINE\"")), Some(true), "{text}");
        // Errors that differ in their arguments alone are one.
        let output = bench(&["-r", "1000", "NOSUCH", "key:__rand_int__"]);
        let said = stderr(&output);
        assert!(said.contains("\"ERR unknown command 'NOSUCH'\" (100)"), "{said}");
    }
}

#[test]
fn errors_are_counted_and_told() {
    let Some(redis) = Server::redis(&[]) else { return };
    let args = ["bench", "-s", &redis.socket, "-n", "200", "-q", "LPUSH", "key", "x"];
    redis.connect(Protocol::Resp2).command(&["SET", "key", "string"]).unwrap();
    let output = run(&args, b"");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("200 errors: \"WRONGTYPE Operation against") && text.contains("(200)"), "{text}");

    let output = run(&["bench", "-s", &redis.socket, "-4", "-n", "10"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).to_lowercase().contains("respb"), "{}", stderr(&output));
    let output = run(&["bench", "-s", "/nowhere/s", "-n", "10"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("/nowhere/s"), "{}", stderr(&output));
}

#[test]
fn trouble_ends_with_counts_and_status_1() {
    for (trouble, word) in [
        (Trouble::Dies(300), "closed"),
        (Trouble::FallsSilent(300), "stopped answering"),
        (Trouble::StopsReading(300), "stopped answering"),
        (Trouble::Garbage(300), "what is no reply"),
        (Trouble::Twice(300), "what is no reply"),
        (Trouble::Errors(300), "errors: \"ERR trouble\""),
    ] {
        // Short only where waiting is what is tested.
        let silent = matches!(trouble, Trouble::FallsSilent(_) | Trouble::StopsReading(_));
        for protocol in ["-2", "-4"] {
            let peer = Peer::start(trouble);
            let args = [
                "bench",
                "-p",
                &peer.port,
                protocol,
                "-t",
                "get",
                "-n",
                "2000",
                "-c",
                "5",
                "--timeout",
                if silent { "0.5" } else { "240" },
            ];
            let mut output = run(&args, b"");
            // Where the patience is short, a stalled machine may take longer to say hello.
            while silent && output.stdout.is_empty() && stderr(&output).contains("in time") {
                output = run(&args, b"");
            }
            let told = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{trouble:?} {protocol} {told}");
            assert!(told.contains(word), "{trouble:?} {protocol}: {told}");
            // What was measured until then is shown.
            assert!(String::from_utf8_lossy(&output.stdout).contains("GET"), "{trouble:?} {protocol}");
        }
    }
}

#[test]
fn an_interrupt_shows_the_results_so_far() {
    let Some(redis) = Server::redis(&[]) else { return };
    let child = weft()
        .args(["bench", "-s", &redis.socket, "-t", "set,get", "--duration", "600", "--csv"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while redis.calls("set") == 0 {
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.lines().last().unwrap().starts_with("\"SET\","), "{text}");
}

#[test]
fn targets_are_compared_in_rounds() {
    let (first, second) = (Peer::start(Trouble::None), Peer::start(Trouble::None));
    let versus = format!("127.0.0.1:{},respb,mux=10", second.port);
    let args =
        ["bench", "-p", &first.port, "-t", "get", "-n", "500", "-c", "10", "--vs", &versus, "--rounds", "3"];
    let text = String::from_utf8(good(&args, b"")).unwrap();
    assert!(text.contains("medians of 3 rounds") && text.contains("RESPB x10"), "{text}");
    let value = json(&[&args[..], &["--json"]].concat());
    let targets = value["tests"][0]["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 2);
    assert_eq!(targets[1]["rounds"].as_array().unwrap().len(), 3);
    assert_eq!((&targets[1]["connections"], &targets[1]["channels"]), (&1.into(), &10.into()));
    let ratio = &targets[1]["rps_ratio"];
    assert!(ratio["low"].as_f64() <= ratio["value"].as_f64(), "{ratio}");
    for bad in
        ["nohost", "127.0.0.1:x", "127.0.0.1:1,resp9", "127.0.0.1:1,resp3,mux=3", "127.0.0.1:1,http,mux=5"]
    {
        let output = run(&["bench", "-p", &first.port, "-n", "10", "-c", "10", "--vs", bad], b"");
        assert_eq!(output.status.code(), Some(1), "{bad}");
        assert!(stderr(&output).contains("--vs"), "{bad}: {}", stderr(&output));
    }
}

#[test]
fn a_delay_is_added_to_every_round_trip() {
    let peer = Peer::start(Trouble::None);
    let args =
        ["bench", "-p", &peer.port, "-t", "ping_mbulk", "-n", "20", "-c", "2", "--delay", "10", "--json"];
    let value = json(&args);
    let p50 = value["tests"][0]["latency_ms"]["p50"].as_f64().unwrap();
    // A stalled machine adds to it; ten seconds it would be if the delay were taken for seconds.
    assert!((10.0..10_000.0).contains(&p50), "{p50}");
}

#[test]
fn presets_show_both_protocols() {
    let peer = Peer::start(Trouble::None);
    let base = ["bench", "-p", &peer.port, "--rounds", "1", "--duration", "0.05", "-r", "100"];
    for (preset, words) in [
        ("seed-throughput", ["SET", "2.3M → 1.9M"]),
        ("seed-pipeline", ["P=200", "4.57M"]),
        ("network", ["20 ms", "RESPB CPU"]),
        ("types", ["LRANGE_100", "RESPB/s"]),
    ] {
        let output = run(&[&base[..], &["--preset", preset]].concat(), b"");
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let said = stderr(&output);
        assert!(output.status.success() && said.contains(" runs, 0.05 seconds each: about "), "{said}");
        assert!(words.iter().all(|word| text.contains(word)), "{preset}: {text}");
    }
    // -n is the number of requests of each run.
    let args = [
        "bench", "-p", &peer.port, "--rounds", "1", "-r", "100", "-n", "200", "--preset", "network", "--json",
    ];
    let output = run(&args, b"");
    let said = stderr(&output);
    assert!(said.contains("4 round trips, 2 protocols, 1 rounds: 8 runs, 200 requests each"), "{said}");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tables = value["tables"].to_string();
    assert!(tables.contains("\"replies\":200") && !tables.contains("\"replies\":201"), "{tables}");
    let folder = Folder::new();
    let svg = folder.path("mux.svg");
    let data = folder.path("mux.json");
    let text = good(&[&base[..], &["--preset", "mux", "--svg", &svg, "--save", &data]].concat(), b"");
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("10,000") && text.contains("channels"), "{text}");
    assert!(std::fs::read_to_string(&svg).unwrap().contains(">10000</text>"));
    let value: Value = serde_json::from_slice(&common::read(&data)).unwrap();
    assert_eq!(value["tables"].as_array().unwrap().len(), 8);
}

#[test]
fn a_wrong_command_line_says_what_is_wrong() {
    for (args, word) in [
        (&["--http", "--mux", "4"][..], "-4"),
        (&["-4", "--mux", "4", "-k", "0"], "-k 0"),
        (&["--preload"], "-r"),
        (&["-t", "nix"], "nix"),
        (&["-d", "x"], "size"),
        (&["--keys", "gauss"], "uniform"),
        (&["--mix-file", "/nowhere"], "/nowhere"),
    ] {
        let output = run(&[&["bench", "-p", "1"], args].concat(), b"");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(word), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(run(&["bench", "-n", "0"], b"").status.code(), Some(2));
    assert_eq!(run(&["bench", "-3", "-4"], b"").status.code(), Some(2));
}

/// The value of a field of each test in a run's JSON.
fn each<'a>(report: &'a Value, field: &str) -> Vec<&'a Value> {
    report["tests"].as_array().unwrap().iter().map(|test| &test[field]).collect()
}

#[test]
fn all_masters_of_a_cluster_are_driven_and_keys_are_found_where_they_are() {
    for binary in common::cluster::binaries() {
        let nodes: Vec<_> = (0..3).map(|_| common::cluster::Node::of_cluster(&binary)).collect();
        let all: Vec<String> = nodes.iter().map(common::cluster::Node::address).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        good(&[&["cli", "--cluster", "create"][..], &all, &["--cluster-yes"]].concat(), b"");
        let port = nodes[1].port.to_string();
        // Until the nodes serve, they say that the cluster is down.
        let began = std::time::Instant::now();
        while String::from_utf8_lossy(&good(&["cli", "--cluster", "call", all[0], "CLUSTER", "INFO"], b""))
            .matches("cluster_state:ok")
            .count()
            < nodes.len()
        {
            assert!(began.elapsed() < common::servers::LONG);
        }
        let bench = ["bench", "--cluster", "-p", &port, "-c", "7", "--json", "-n", "3000"];
        let run = |more: &[&str]| -> Value {
            serde_json::from_slice(&good(&[&bench[..], more].concat(), b"")).unwrap()
        };
        let sizes = || -> Vec<i64> {
            nodes
                .iter()
                .map(|node| {
                    let size = good(&["cli", "-p", &node.port.to_string(), "DBSIZE"], b"");
                    String::from_utf8(size).unwrap().trim().parse().unwrap()
                })
                .collect()
        };
        let report = run(&["-t", "get", "-r", "1000", "--preload", "--verify", "-d", "40"]);
        assert_eq!(each(&report, "misses"), [0], "{report}");
        assert_eq!(each(&report, "values_wrong"), [0], "{report}");
        let stored = sizes();
        assert_eq!(stored.iter().sum::<i64>(), 1000, "{stored:?}");
        assert!(stored.iter().all(|count| (333..=334).contains(count)), "{stored:?}");
        // Every test has its keys where it asks for them, several in one slot too.
        let names = "ping,set,incr,lpush,lpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset,xadd,mget,del,hget,zrange_100";
        let report = run(&["-t", names, "-r", "1000", "-P", "5", "--threads", "4", "-3"]);
        assert!(each(&report, "errors").iter().all(|errors| **errors == 0), "{report}");
        // A command of one's own names its tag; without one the nodes send it elsewhere, and that is shown.
        let report = run(&["-r", "50", "SET", "own:{tag}:__rand_int__", "v"]);
        assert_eq!(each(&report, "errors"), [0], "{report}");
        let output = common::run(&[&bench[..], &["SET", "nowhere", "v"]].concat(), b"");
        assert!(
            !output.status.success() && stderr(&output).contains("MOVED to 127.0.0.1:"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_cluster_that_is_none_is_refused() {
    let server = common::servers::Server::weft(&["--bind", "127.0.0.1"]);
    let Some(binary) = common::cluster::binaries().into_iter().next() else { return };
    let alone = common::cluster::Node::start(&binary, "");
    let port = alone.port.to_string();
    let output = common::run(&["bench", "--cluster", "-p", &port, "-t", "get"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is no node of a cluster"), "{}", stderr(&output));
    for (line, said) in [
        (&["--cluster", "-4"][..], "cannot be used with"),
        (&["--enable-tracking"], "add -3 or -4"),
        (&["--enable-tracking", "-3", "-k", "0"], "exclude each other"),
    ] {
        let output = common::run(&[&["bench", "-p", &port, "-t", "get"][..], line].concat(), b"");
        assert!(!output.status.success() && stderr(&output).contains(said), "{line:?}: {}", stderr(&output));
    }
    drop(server);
}

#[test]
fn clients_that_track_are_told_of_what_others_change() {
    for server in Server::all() {
        for protocol in server.flags().iter().filter(|flag| **flag != "-2") {
            let line =
                ["bench", "-s", &server.socket, protocol, "-c", "4", "-r", "5", "-n", "2000", "--json"];
            let run = |more: &[&str]| -> Value {
                serde_json::from_slice(&good(&[&line[..], &["--mix", "get=1,set=1"], more].concat(), b""))
                    .unwrap()
            };
            assert_eq!(each(&run(&[]), "pushes"), [0]);
            let report = run(&["--enable-tracking"]);
            assert!(each(&report, "pushes")[0].as_u64().unwrap() > 100, "{protocol}: {report}");
        }
    }
}

/// A server of RESPB that names a table of its own, reads only ARGV, and answers OK to each; it counts them.
fn stranger() -> (u16, JoinHandle<u64>) {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let (stream, _) = listener.accept().unwrap();
        // Whoever else comes, to ask what was run, is refused.
        drop(listener);
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        // HELLO 3 PROTO respb, in RESP: a line with the count, two for each argument.
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        for _ in 0..2 * line[1..].trim().parse::<usize>().unwrap() {
            reader.read_line(&mut line).unwrap();
        }
        let hello = "%2\r\n$6\r\nserver\r\n$5\r\nother\r\n$5\r\nrespb\r\n%3\r\n\
                     $7\r\nversion\r\n:1\r\n$8\r\nprofiles\r\n*2\r\n$8\r\nchannels\r\n$5\r\ntyped\r\n$5\r\ntable\r\n\
                     %3\r\n$4\r\nname\r\n$4\r\nfork\r\n$7\r\nversion\r\n:1\r\n$4\r\nhash\r\n$4\r\nbeef\r\n";
        writer.write_all(hello.as_bytes()).unwrap();
        let (mut count, mut head) = (0, [0; 8]);
        while reader.read_exact(&mut head).is_ok() {
            assert_eq!(head[..2], [0xF0, 0x01], "a frame that the server does not know");
            let mut rest = vec![0; u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize];
            reader.read_exact(&mut rest).unwrap();
            writer.write_all(&[0x80, 0x00, head[2], head[3]]).unwrap();
            count += 1;
        }
        count
    };
    (port, std::thread::spawn(serve))
}

#[test]
fn a_server_with_another_table_is_sent_arguments() {
    let (port, server) = stranger();
    let port = port.to_string();
    let line =
        ["bench", "-4", "-p", &port, "-c", "1", "--mux", "3", "-n", "90", "-P", "3", "--json", "-r", "9"];
    let report: Value = serde_json::from_slice(&good(&[&line[..], &["-t", "set"]].concat(), b"")).unwrap();
    assert_eq!(each(&report, "replies"), [90]);
    assert_eq!(each(&report, "errors"), [0]);
    assert_eq!(server.join().unwrap(), 90);
}
