//! `weft cli` without a terminal: what it prints in each format, standard input, the tools, and trouble.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use common::servers::Server;
use common::{Folder, good, run, stderr};
use weft_client::{Encoder, Limits, Protocol};

fn cli(server: &Server, flags: &[&str], input: &[u8]) -> String {
    let args = [&["cli", "-s", &server.socket], flags].concat();
    String::from_utf8(good(&args, input)).unwrap()
}

/// Commands whose replies have every type that a server without modules gives.
const PREPARATION: &str = "\
FLUSHALL
SET s 'a\"b'
SET bytes \"\\x00\\xff\\n\"
RPUSH l a b
HSET h f v
ZADD z 1.5 m
";

/// A command, and what it prints with `--no-raw`, `--raw`, `--csv`, `--json`; over RESP2 where that differs.
const GOLDEN: &[(&str, [&str; 4])] = &[
    ("GET s", ["\"a\\\"b\"\n", "a\"b\n", "\"a\\\"b\"\n", "\"a\\\"b\"\n"]),
    ("GET none", ["(nil)\n", "\n", "NULL\n", "null\n"]),
    ("SET k v", ["OK\n", "OK\n", "\"OK\"\n", "\"OK\"\n"]),
    ("STRLEN s", ["(integer) 3\n", "3\n", "3\n", "3\n"]),
    ("LRANGE l 0 -1", ["1) \"a\"\n2) \"b\"\n", "a\nb\n", "\"a\",\"b\"\n", "[\"a\",\"b\"]\n"]),
    ("LRANGE none 0 -1", ["(empty array)\n", "\n", "\n", "[]\n"]),
    (
        "LPUSH s x",
        [
            "(error) WRONGTYPE Operation against a key holding the wrong kind of value\n",
            "WRONGTYPE Operation against a key holding the wrong kind of value\n\n",
            "ERROR,\"WRONGTYPE Operation against a key holding the wrong kind of value\"\n",
            "error:\"WRONGTYPE Operation against a key holding the wrong kind of value\"\n",
        ],
    ),
];

/// The same for replies that RESP2 has no type for: over RESP3 and RESPB.
const GOLDEN_TYPED: &[(&str, [&str; 4])] = &[
    ("HGETALL h", ["1# \"f\" => \"v\"\n", "f v\n", "\"f\",\"v\"\n", "{\"f\":\"v\"}\n"]),
    ("HGETALL none", ["(empty hash)\n", "\n", "\n", "{}\n"]),
    ("ZSCORE z m", ["(double) 1.5\n", "1.5\n", "1.5\n", "1.5\n"]),
];

#[test]
fn replies_are_shown_in_every_format_over_every_protocol() {
    for server in Server::all() {
        for protocol in server.flags() {
            cli(&server, &[protocol], PREPARATION.as_bytes());
            let typed = if *protocol == "-2" { &[] } else { GOLDEN_TYPED };
            for (command, expected) in GOLDEN.iter().chain(typed) {
                for (format, expected) in ["--no-raw", "--raw", "--csv", "--json"].iter().zip(expected) {
                    let flags: Vec<&str> =
                        [*protocol, *format].into_iter().chain(command.split(' ')).collect();
                    assert_eq!(cli(&server, &flags, b""), *expected, "{flags:?}");
                }
            }
            assert_eq!(cli(&server, &[protocol, "--no-raw", "GET", "bytes"], b""), "\"\\x00\\xff\\n\"\n");
            let json = cli(&server, &[protocol, "--quoted-json", "GET", "bytes"], b"");
            assert_eq!(json, "\"\\\\x00\\\\xff\\\\n\"\n");
        }
    }
}

/// The same as in `cli_beside.rs`, where there is no redis-cli to compare with.
#[test]
fn pages_of_text_are_shown_as_they_stand_in_every_format() {
    for server in Server::all() {
        for protocol in server.flags() {
            for format in ["--no-raw", "--raw", "--csv", "--json", "--quoted-json"] {
                let page = |command: &[&str]| cli(&server, &[&[*protocol, format], command].concat(), b"");
                let info = page(&["info", "server"]);
                assert!(info.starts_with("# Server\r\n"), "{protocol} {format}: {info}");
                assert!(info.ends_with("\r\n") && !info.ends_with("\r\n\n"), "{protocol} {format}: {info:?}");
                let clients = page(&["CLIENT", "LIST"]);
                assert!(clients.starts_with("id=") && clients.ends_with('\n'), "{clients}");
            }
        }
    }
}

#[test]
fn an_error_reply_with_e_goes_to_the_standard_error() {
    let server = Server::weft(&[]);
    for protocol in server.flags() {
        let output = run(&["cli", "-s", &server.socket, protocol, "-e", "-r", "3", "NOSUCH"], b"");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        let said = stderr(&output);
        assert!(said.starts_with("ERR unknown command 'NOSUCH'"), "{said}");
        assert_eq!(said.lines().count(), 1, "the first error ends it: {said}");
    }
}

#[test]
fn lines_of_standard_input_are_commands() {
    for server in Server::all() {
        for protocol in server.flags() {
            let lines = b"set k 'two words'\n\nget k\nget \"open\nnosuch\nselect 1\nget k\nquit\nget k\n";
            let output = cli(&server, &[protocol], lines);
            let mut lines = output.lines();
            assert_eq!(lines.next(), Some("OK"));
            assert_eq!(lines.next(), Some("two words"));
            assert_eq!(lines.next(), Some("Invalid argument(s)"));
            assert!(lines.next().unwrap().starts_with("ERR unknown command 'nosuch'"), "{output}");
            assert_eq!(lines.collect::<Vec<_>>(), ["", "OK", ""]);
        }
        let output = run(&["cli", "-s", &server.socket, "-e"], b"nosuch\nping\n");
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.ends_with(b"PONG\n"), "the rest is run");
    }
}

#[test]
fn arguments_come_from_standard_input() {
    let server = Server::weft(&[]);
    cli(&server, &["-x", "SET", "k"], b"line\n\x00end");
    assert_eq!(cli(&server, &["GET", "k"], b""), "line\n\0end\n");
    cli(&server, &["-X", "TAG", "SET", "TAG", "v"], b"key");
    assert_eq!(cli(&server, &["GET", "key"], b""), "v\n");
    assert_eq!(cli(&server, &["-r", "3", "INCR", "n"], b""), "1\n2\n3\n");
    assert_eq!(cli(&server, &["-n", "3", "--name", "me", "CLIENT", "GETNAME"], b""), "me\n");
    assert_eq!(cli(&server, &["-d", ",", "-D", ";", "MGET", "key", "n"], b""), "v,3;");
    assert_eq!(cli(&server, &["--quoted-input", "ECHO", "\"\\x41\""], b""), "A\n");
    assert_eq!(good(&["cli", "-u", &format!("unix://{}?db=2", server.socket), "GET", "k"], b""), b"\n");
    assert_eq!(cli(&server, &["-4", "--mux", "9", "ECHO", "-1"], b""), "-1\n");
}

#[test]
fn all_commands_of_standard_input_at_once() {
    const COMMANDS: usize = 20_000;
    let mut wires = Vec::new();
    for protocol in [Protocol::Resp2, Protocol::Respb] {
        let (encoder, mut wire) = (Encoder::new(protocol, &Limits::DEFAULT), Vec::new());
        for n in 0..COMMANDS {
            encoder.encode(0, &["SET", &format!("key:{n}"), "some value"], &mut wire).unwrap();
        }
        encoder.encode(0, &["LPUSH", "key:0", "x"], &mut wire).unwrap();
        encoder.encode(0, &["NOSUCH", "x"], &mut wire).unwrap();
        wires.push(wire);
    }
    wires.push((0..10).flat_map(|n| format!("SET key:{n} 'in line'\r\n").into_bytes()).collect());
    for server in Server::all() {
        for protocol in server.flags() {
            for (wire, (errors, replies)) in wires.iter().zip([(2, COMMANDS + 2), (2, COMMANDS + 2), (0, 10)])
            {
                cli(&server, &["FLUSHALL"], b"");
                let output = run(&["cli", "-s", &server.socket, protocol, "--pipe"], wire);
                let (said, shown) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
                let expected = format!(
                    "All data transferred. Waiting for the last reply...\nLast reply received from server.\n\
                     errors: {errors}, replies: {replies}\n"
                );
                assert_eq!(said, expected, "{protocol}: {shown}");
                assert_eq!(output.status.code(), Some(i32::from(errors > 0)));
                assert_eq!(shown.contains("WRONGTYPE"), errors > 0, "{shown}");
                let keys = replies - errors;
                assert_eq!(cli(&server, &["DBSIZE"], b""), format!("{keys}\n"));
            }
        }
        // Input that ends in the midst of a command, or is none.
        let broken = &b"Last reply received from server.\nerrors: 1, replies: 1\n"[..];
        let output = run(&["cli", "-s", &server.socket, "--pipe"], b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI");
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), broken));
        assert!(stderr(&output).contains("the input ends inside a command"));
        let output = run(&["cli", "-s", &server.socket, "--pipe"], b"*1\r\n$4\r\nPING\r\n*x\r\n");
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), broken));
        assert!(stderr(&output).contains("byte 14"), "{}", stderr(&output));
    }
}

#[test]
fn keys_are_walked() {
    for server in Server::all() {
        for protocol in server.flags() {
            let lines = "FLUSHALL\nMSET a 1 user:1 22 user:2 333\nRPUSH list 1 2 3\nHSET hash f v\n";
            cli(&server, &[protocol], lines.as_bytes());
            let sorted = |flags: &[&str]| {
                let output = cli(&server, &[&[*protocol, "--scan"], flags].concat(), b"");
                let mut keys: Vec<String> = output.lines().map(String::from).collect();
                keys.sort();
                keys
            };
            assert_eq!(sorted(&[]), ["a", "hash", "list", "user:1", "user:2"]);
            assert_eq!(sorted(&["--pattern", "user:*"]), ["user:1", "user:2"]);
            assert_eq!(sorted(&["--type", "list", "--count", "100"]), ["list"]);
            let found = cli(&server, &[protocol, "--bigkeys"], b"");
            for line in [
                "Sampled 5 keys in the keyspace!",
                "Total key length in bytes is 21 (avg len 4.20)",
                "Biggest   list found '\"list\"' has 3 items",
                "Biggest string found '\"user:2\"' has 3 bytes",
                "3 strings with 6 bytes (60.00% of keys, avg size 2.00)",
                "0 sets with 0 members (00.00% of keys, avg size 0.00)",
            ] {
                assert!(found.contains(line), "{line}\n{found}");
            }
            assert!(
                cli(&server, &[protocol, "--memkeys"], b"").contains("Biggest   hash found '\"hash\"' has ")
            );
            let output = run(&["cli", "-s", &server.socket, protocol, "--hotkeys"], b"");
            assert_eq!(output.status.code(), Some(1), "not under an LFU policy");
            cli(&server, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lfu"], b"");
            // Keys from before have no counter.
            cli(&server, &["MSET", "a", "1", "b", "2"], b"");
            let hot = cli(&server, &[protocol, "--hotkeys"], b"");
            assert!(hot.contains("hot key found with counter: "), "{hot}");
            cli(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"], b"");
        }
    }
}

#[test]
fn the_server_is_watched() {
    for server in Server::all() {
        for protocol in server.flags() {
            let lines = cli(&server, &[protocol, "--stat", "-r", "2", "-i", "0.01"], b"");
            assert_eq!(lines.lines().count(), 4, "{lines}");
            let line = cli(&server, &[protocol, "--stat", "-r", "1"], b"");
            assert_eq!(line.lines().count(), 3, "{line}");
            let line = cli(&server, &[protocol, "--latency", "-i", "0.05"], b"");
            assert_eq!(line.split_whitespace().count(), 4, "{line}");
        }
    }
}

#[test]
fn scripts_are_run() {
    let Some(server) = Server::redis(&[]) else { return };
    let folder = Folder::new();
    let script = folder.file("s.lua", b"return {KEYS, ARGV}");
    let output = cli(&server, &["--json", "--eval", &script, "k1", "k2", ",", "a"], b"");
    assert_eq!(output, "[[\"k1\",\"k2\"],[\"a\"]]\n");
    assert_eq!(cli(&server, &["--json", "--eval", &script], b""), "[[],[]]\n");
    let output = run(&["cli", "-s", &server.socket, "--eval", "/none.lua"], b"");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn scripts_are_run_over_each_protocol() {
    let server = Server::weft(&[]);
    let folder = Folder::new();
    let script = folder.file("s.lua", b"return {KEYS[1], ARGV[1]}");
    for protocol in ["-2", "-3", "-4"] {
        let line = ["cli", protocol, "-s", &server.socket, "--json", "--eval", &script, "k", ",", "a"];
        let output = run(&line, b"");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(output.stdout, b"[\"k\",\"a\"]\n", "{protocol}");
    }
}

#[test]
fn a_server_without_scripts_is_told_of() {
    let Some(server) = Server::redis(&["--rename-command", "EVAL", ""]) else { return };
    let folder = Folder::new();
    let script = folder.file("s.lua", b"return 1");
    let output = run(&["cli", "-s", &server.socket, "--eval", &script], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("The server has no command EVAL: "), "{}", stderr(&output));
}

#[test]
fn trouble_is_told_with_status_1() {
    if let Some(server) = Server::redis(&["--requirepass", "secret"]) {
        let output = run(&["cli", "-s", &server.socket, "-4", "-a", "secret", "PING"], b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("does not speak RESPB"), "{}", stderr(&output));
        assert!(stderr(&output).contains("Using a password with '-a'"));
        let flags = ["-a", "secret", "--no-auth-warning", "PING"];
        let output = run(&[&["cli", "-s", &server.socket][..], &flags].concat(), b"");
        assert_eq!(
            (output.status.code(), &output.stdout[..], stderr(&output)),
            (Some(0), &b"PONG\n"[..], String::new())
        );
        assert!(cli(&server, &["PING"], b"").starts_with("NOAUTH"));
        for tool in [
            &["cli", "--scan"][..],
            &["cli", "--stat", "-r", "1"],
            &["cli", "--bigkeys"],
            &["bench", "-n", "1"],
        ] {
            let output = run(&[tool, &["-s", &server.socket]].concat(), b"");
            assert_eq!(output.status.code(), Some(1), "{tool:?}");
            let said = stderr(&output);
            let hint = "To log in at the start: --askpass, the variable WEFTCLI_AUTH, or -a.\n";
            assert!(said.ends_with(&format!("NOAUTH Authentication required.\n{hint}")), "{tool:?}: {said}");
        }
        let output = run(&["cli", "-s", &server.socket, "-e", "PING"], b"");
        assert_eq!(output.status.code(), Some(1));
        let output = common::weft()
            .args(["cli", "-s", &server.socket, "PING"])
            .env("REDISCLI_AUTH", "secret")
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"PONG\n");
        let output = run(&["cli", "-3", "-s", &server.socket, "-a", "wrong", "PING"], b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("WRONGPASS"), "{}", stderr(&output));
    }
    let folder = Folder::new();
    let path = folder.path("nobody");
    for flags in [&["PING"][..], &["--pipe"], &["--scan"], &["--stat"]] {
        let output = run(&[&["cli", "-s", &path], flags].concat(), b"");
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        assert!(stderr(&output).contains("Could not connect to the server at"), "{}", stderr(&output));
    }
    assert_eq!(run(&["cli", "--mux", "7", "PING"], b"").status.code(), Some(2), "--mux needs -4");
}

#[test]
fn lines_look_into_keys_and_set_what_nobody_sees() {
    for server in Server::all() {
        for protocol in server.flags() {
            cli(&server, &["FLUSHALL"], b"");
            let lines = b"RPUSH l a b\n:set nohints\n:set pager less\nPEEK l\npeek nosuch\n:set colours\n";
            let said = cli(&server, &[protocol], lines);
            let (list, rest) = said.strip_prefix("2\n").unwrap().split_once('\n').unwrap();
            assert!(list.starts_with("\"l\": list, 2 elements"), "{list}");
            let settings = "(:set hints, :set nohints, :set pager PROGRAM, :set nopager)\n";
            assert_eq!(
                rest,
                format!("1) \"a\"\n2) \"b\"\n\"nosuch\": no such key\n{settings}"),
                "{protocol}"
            );
            let alone = cli(&server, &[protocol, "peek", "l"], b"");
            assert_eq!(alone.lines().next(), Some(list));
            cli(&server, &[protocol], b"SET one 1\nXADD entry * f v\n");
            for (key, size) in [("one", "string, 1 byte, "), ("entry", "stream, 1 entry, ")] {
                let said = cli(&server, &[protocol, "peek", key], b"");
                assert!(said.starts_with(&format!("\"{key}\": {size}")), "{said}");
            }
        }
    }
}

#[test]
fn an_address_of_ipv6_may_stand_in_brackets() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return println!("left out: this machine has no IPv6");
    };
    let port = listener.local_addr().unwrap().port().to_string();
    let thread = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut socket, _) = listener.accept().unwrap();
            let mut bytes = [0; 64];
            assert!(socket.read(&mut bytes).unwrap() > 0);
            socket.write_all(b"+PONG\r\n").unwrap();
        }
    });
    for host in ["::1", "[::1]"] {
        assert_eq!(good(&["cli", "-h", host, "-p", &port, "PING"], b""), b"PONG\n");
    }
    thread.join().unwrap();
}

/// Redis and Valkey end a connection on which HTTP comes, without a word.
#[test]
fn a_server_without_http_is_suspected_to_be_one() {
    let folder = Folder::new();
    let path = folder.path("s");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let mut bytes = [0; 4096];
            assert!(socket.read(&mut bytes).is_ok());
        }
    });
    for words in [
        &["cli", "--http", "-s", &path, "GET", "k"][..],
        &["cli", "--http", "-s", &path, "SET", "k", "v"],
        &["cli", "--http", "-s", &path, "--scan"],
        &["bench", "--http", "-s", &path, "-t", "get", "-n", "10", "-c", "1"],
    ] {
        let output = run(words, b"");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(
            stderr(&output).contains("(does it speak HTTP? Redis and Valkey do not)"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn loads_of_its_own() {
    let output = String::from_utf8(good(&["cli", "--intrinsic-latency", "0.05"], b"")).unwrap();
    assert!(
        output.starts_with("Max latency so far: ") && output.contains(" total runs (avg latency: "),
        "{output}"
    );
    assert!(output.trim_end().ends_with("x longer than the average latency."), "{output}");
    for server in Server::all() {
        for protocol in server.flags() {
            cli(&server, &["FLUSHALL"], b"");
            let output = cli(&server, &[protocol, "--lru-test", "100", "-r", "2", "-i", "0.05"], b"");
            let lines: Vec<&str> = output.lines().collect();
            assert!(lines.len() == 2 && lines[0].contains(" Gets/sec | Hits: "), "{output}");
            let keys: u32 = cli(&server, &["DBSIZE"], b"").trim().parse().unwrap();
            assert!((10..=100).contains(&keys), "{keys}");
        }
        let output = run(&["cli", "-s", &server.socket, "--verbose", "-3", "-n", "2", "PING"], b"");
        let said = stderr(&output);
        assert_eq!(output.stdout, b"PONG\n");
        let name = if server.respb { concat!("weft ", env!("CARGO_PKG_VERSION"), "\n") } else { "redis " };
        let expected = format!("Connected to {} over RESP3, database 2: {name}", server.socket);
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[test]
fn lines_can_log_in_over_every_protocol() {
    let server = Server::weft(&["--requirepass", "secret"]);
    for protocol in server.flags() {
        let lines = b"ping\nauth secret\nping\nclient info\n";
        let output = run(&["cli", "-s", &server.socket, protocol], lines);
        let said = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(said.starts_with("NOAUTH Authentication required.\n\nOK\nPONG\nid="), "{protocol}: {said}");
        assert_eq!(
            stderr(&output).contains("Until AUTH has succeeded"),
            *protocol != "-2",
            "{}",
            stderr(&output)
        );
        let output = run(&["cli", "-s", &server.socket, protocol, "--scan"], b"");
        assert_eq!(output.status.code(), Some(1));
        if *protocol != "-2" {
            assert!(stderr(&output).contains("--askpass"), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_password_that_nobody_wants_is_no_hindrance() {
    for server in Server::all() {
        for flags in [&["PING"][..], &["-3", "PING"], &["--scan"], &["--verbose", "PING"]] {
            let output = common::weft()
                .args([&["cli", "-s", &server.socket], flags].concat())
                .env("REDISCLI_AUTH", "secret")
                .output()
                .unwrap();
            assert!(output.status.success(), "{flags:?}: {}", stderr(&output));
            let pong = if flags.contains(&"PING") { "PONG\n" } else { "" };
            assert_eq!(String::from_utf8_lossy(&output.stdout), pong);
            // Over RESP3 the default user's password is told with its name, which a user without one takes.
            let said = stderr(&output).matches("AUTH failed: ERR AUTH <password> called without").count();
            assert_eq!(said, usize::from(flags[0] != "-3"), "{flags:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_server_is_shut_down_without_a_word() {
    for flags in [&["-2"][..], &["-3"], &["-4"], &["-4", "--mux", "7"], &["--http"]] {
        for by_line in [false, true] {
            let mut server = Server::weft(&[]);
            let shutdown: &[&str] = if by_line { &[] } else { &["SHUTDOWN", "NOSAVE"] };
            let output =
                run(&[&["cli", "-s", &server.socket], flags, shutdown].concat(), b"SHUTDOWN NOSAVE\n");
            assert_eq!(
                (output.status.code(), &output.stdout[..], stderr(&output)),
                (Some(0), &b""[..], String::new()),
                "{flags:?}, by a line {by_line}"
            );
            assert!(server.exit().success());
        }
    }
}

#[test]
fn a_user_without_a_password_is_not_somebody_else() {
    let server = Server::weft(&[]);
    let url = format!("unix://alice@{}", server.socket);
    for flags in [
        &["-u", &url][..],
        &["-u", "redis://alice@127.0.0.1:1/2"],
        &["-s", &server.socket, "--user", "alice"],
    ] {
        let output = run(&[&["cli"], flags, &["PING"]].concat(), b"");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{flags:?}");
        let said = stderr(&output);
        assert!(said.contains("--askpass") && said.contains("redis://:password@host"), "{said}");
    }
    cli(&server, &["ACL", "SETUSER", "alice", "on", ">secret", "+@all"], b"");
    let output = common::weft()
        .args(["cli", "-u", &url, "ACL", "WHOAMI"])
        .env("WEFTCLI_AUTH", "secret")
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"alice\n", "{}", stderr(&output));
    let url = format!("unix://alice:secret@{}", server.socket);
    assert_eq!(good(&["cli", "-u", &url, "ACL", "WHOAMI"], b""), b"alice\n");
}

#[test]
fn one_place_to_connect_to_is_named() {
    let server = Server::weft(&[]);
    let url = format!("unix://{}", server.socket);
    for tool in ["cli", "bench"] {
        for other in [&["-h", "127.0.0.1"][..], &["-p", "1"], &["-s", &server.socket]] {
            let output = run(&[&[tool, "-u", &url], other].concat(), b"");
            assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{tool} {other:?}");
            assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_server_that_dies_or_talks_nonsense_ends_it() {
    for answer in [&b""[..], b"+OK\r\n:x\r\n", b"?\r\n"] {
        let folder = Folder::new();
        let path = folder.path("s");
        let listener = UnixListener::bind(&path).unwrap();
        let thread = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut bytes = [0; 64];
            assert!(socket.read(&mut bytes).unwrap() > 0);
            socket.write_all(answer).unwrap();
        });
        let wire = b"*1\r\n$4\r\nPING\r\n".repeat(3);
        let output = run(&["cli", "-s", &path, "--pipe", "--pipe-timeout", "20"], &wire);
        assert_eq!(output.status.code(), Some(1), "{answer:?}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("were sent and not answered"), "{said}");
        thread.join().unwrap();
    }
}
