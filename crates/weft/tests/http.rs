//! HTTP from outside: the scenarios of commands over its socket, `weft cli --http`, `weft bench --http`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "../../engine/tests/support/scenarios.rs"]
mod files;

use std::io::Write as _;

use common::client::rest;
use common::servers::Server;
use common::{good, run, stderr};
use files::{has_streams, is_same, leaf, leaves, scenarios, words};
use serde_json::Value;
use weft_client::Protocol;
use weft_engine::base64;

/// The answer to a request that ends its connection.
fn ask(server: &Server, request: &str) -> String {
    let mut socket = server.stream();
    socket.write_all(request.as_bytes()).unwrap();
    rest(socket)
}

/// The body of the answer to commands that are one list.
fn pipeline(server: &Server, commands: &[Vec<String>]) -> Value {
    let body = serde_json::to_string(commands).unwrap();
    let answer = ask(
        server,
        &format!(
            "POST /pipeline HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nUpstash-Encoding: base64\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
    serde_json::from_str(&unchunked(head, body)).expect("the body is JSON")
}

fn unchunked(head: &str, body: &str) -> String {
    if !head.contains("Transfer-Encoding: chunked") {
        return body.to_owned();
    }
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((line, behind)) = rest.split_once("\r\n") {
        let len = usize::from_str_radix(line, 16).expect("a chunk has a length");
        whole.push_str(&behind[..len]);
        rest = &behind[len + 2..];
    }
    whole
}

/// The values of a reply in JSON with base64, in order.
fn json_leaves(value: &Value, at_top: bool, all: &mut Vec<String>) {
    match value {
        Value::Null => all.push("nil".into()),
        Value::String(text) if at_top && text == "OK" => all.push("OK".into()),
        Value::String(text) => all.push(leaf(&base64::decode(text.as_bytes()).expect("it is base64"))),
        Value::Array(items) => items.iter().for_each(|item| json_leaves(item, false, all)),
        other => all.push(other.to_string()),
    }
}

fn joined(all: &[String]) -> String {
    if all.is_empty() { "(nothing)".into() } else { all.join(" ") }
}

/// What differs, as text.
fn difference(name: &str, line: &str, got: &str, expected: &str) -> Option<String> {
    let same = is_same(got, expected);
    (!same).then(|| format!("{name}: {line}\n  got      {got}\n  expected {expected}"))
}

#[test]
fn scenarios_agree_as_one_list() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (name, steps) in scenarios().into_iter().filter(|(_, steps)| !has_streams(steps)) {
        let text = |word: Vec<u8>| String::from_utf8(word).ok();
        let commands = steps.iter().map(|(line, _)| words(line).into_iter().map(text).collect());
        // What is no text cannot be said in JSON: those have their own requests below.
        let Some(commands) = commands.collect::<Option<Vec<Vec<String>>>>() else { continue };
        let server = Server::weft(&[]);
        let answers = pipeline(&server, &commands);
        let answers = answers.as_array().expect("a list has a list of answers");
        assert_eq!(answers.len(), steps.len(), "{name}");
        for ((line, expected), answer) in steps.iter().zip(answers) {
            let mut all = Vec::new();
            match answer.get("error") {
                Some(error) => all.push(format!("-{}", error.as_str().unwrap())),
                None => json_leaves(&answer["result"], true, &mut all),
            }
            wrong.extend(difference(&name, line, &joined(&all), expected));
            count += 1;
        }
    }
    assert!(count > 600, "{count} commands");
    assert!(wrong.is_empty(), "{} replies differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn scenarios_agree_request_by_request() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (name, steps) in scenarios() {
        // Of those of sessions nothing would be left for the next request.
        if has_streams(&steps) || name == "connection" {
            continue;
        }
        let server = Server::weft(&[]);
        let mut connection = server.connect(Protocol::Http);
        for (line, expected) in &steps {
            let words = words(line);
            let reply = match connection.exchange(&words) {
                Ok(reply) => reply,
                Err(error) if error.to_string().contains("over HTTP each request is for itself") => continue,
                Err(error) => panic!("{name}: {line}: {error}"),
            };
            let mut all = Vec::new();
            leaves(&reply, &mut all);
            wrong.extend(difference(&name, line, &joined(&all), expected));
            count += 1;
        }
    }
    assert!(count > 600, "{count} commands");
    assert!(wrong.is_empty(), "{} replies differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn cli(server: &Server, words: &[&str], input: &[u8]) -> (bool, String, String) {
    let mut args = vec!["cli", "--http", "-s", &server.socket];
    args.extend(words);
    let output = run(&args, input);
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned(), stderr(&output))
}

#[test]
fn cli_speaks_http() {
    let server = Server::weft(&[]);
    let said = |words: &[&str]| {
        let (good, out, error) = cli(&server, words, b"");
        assert!(good && error.is_empty(), "{words:?}: {error}");
        out
    };
    assert_eq!(said(&["SET", "k", "a b\n"]), "OK\n");
    assert_eq!(said(&["--no-raw", "GET", "k"]), "\"a b\\n\"\n");
    assert_eq!(said(&["--no-raw", "GET", "none"]), "(nil)\n");
    assert_eq!(said(&["--no-raw", "HSET", "h", "f", "", "g/h?", "é"]), "(integer) 2\n");
    assert_eq!(said(&["--json", "HMGET", "h", "f", "g/h?", "x"]), "[\"\",\"é\",null]\n");
    assert_eq!(said(&["-r", "3", "INCR", "n"]), "1\n2\n3\n");
    assert_eq!(said(&["GET", "n", "too", "many"]), "ERR wrong number of arguments for 'get' command\n\n");
    assert_eq!(said(&["--scan", "--pattern", "?"]).lines().count(), 3);
    assert!(said(&["--bigkeys"]).contains("Biggest"), "the tools that look around work too");
    let binary: Vec<u8> = (0..=255).collect();
    assert_eq!(cli(&server, &["-x", "SET", "bytes"], &binary).1, "OK\n");
    let got = run(&["cli", "--http", "-s", &server.socket, "--raw", "GET", "bytes"], b"").stdout;
    assert_eq!(got, [&binary[..], b"\n"].concat());
    let piped = cli(&server, &["--pipe"], b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n");
    assert!(piped.0 && (piped.1 + &piped.2).contains("replies: 2"), "what is RESP goes over HTTP as well");
    let lines = cli(&server, &[], b"SET a 1\nINCRBY a 4\nNOSUCH\nGET a\n");
    assert_eq!(lines.1.lines().collect::<Vec<_>>()[..2], ["OK", "5"]);
    assert_eq!(lines.1.lines().last(), Some("5"), "{lines:?}");
    assert!(!cli(&server, &["-e", "INCR", "k"], b"").0, "an error is a status with -e");
}

#[test]
fn cli_refuses_by_name_what_http_has_not() {
    let server = Server::weft(&[]);
    for words in [
        &["MULTI"][..],
        &["EXEC"],
        &["WATCH", "k"],
        &["SELECT", "1"],
        &["AUTH", "x"],
        &["SUBSCRIBE", "c"],
        &["MONITOR"],
        &["RESET"],
        &["CLIENT", "SETNAME", "n"],
    ] {
        let (good, _, error) = cli(&server, words, b"");
        let says =
            error.contains(words[0]) && error.contains("over HTTP each request is for itself: use RESP");
        assert!(!good && says, "{words:?}: {error}");
    }
    for flags in [&["-n", "1"][..], &["--name", "x"]] {
        let (good, _, error) = cli(&server, &[flags, &["PING"]].concat(), b"");
        assert!(!good && error.contains("database 0 and no name"), "{flags:?}: {error}");
    }
}

#[test]
fn tokens_log_in_over_http() {
    let server = Server::weft(&["--requirepass", "open sesame"]);
    let (good, _, error) = cli(&server, &["PING"], b"");
    assert!(good || error.contains("NOAUTH"), "{error}");
    let said = |words: &[&str]| cli(&server, &[&["--no-auth-warning"], words].concat(), b"").1;
    assert_eq!(said(&["-a", "open sesame", "PING"]), "PONG\n");
    assert_eq!(said(&["--user", "default", "-a", "open sesame", "ACL", "WHOAMI"]), "default\n");
    assert_eq!(said(&["-a", "open sesame", "ACL", "SETUSER", "u", "on", ">secret", "~*", "+get"]), "OK\n");
    assert_eq!(said(&["-a", "u.secret", "GET", "k"]), "\n");
    assert!(said(&["-a", "u.secret", "SET", "k", "v"]).starts_with("NOPERM"));
    assert!(said(&["-a", "wrong", "PING"]).starts_with("WRONGPASS"));
}

fn bench(server: &Server, words: &[&str]) -> Value {
    let mut args = vec!["bench", "--http", "-s", &server.socket, "--json"];
    args.extend(words);
    serde_json::from_slice(&good(&args, b"")).expect("it prints JSON")
}

#[test]
fn bench_speaks_http_and_verifies() {
    let server = Server::weft(&[]);
    let flags = ["-r", "100", "-d", "16-200", "--verify", "-c", "7", "-n", "2000"];
    for (more, requests) in
        [(&["-P", "1"][..], 2000), (&["-P", "16"], 2000), (&["-P", "100", "--pipeline-body"], 2000)]
    {
        let before = (server.calls("set"), server.calls("get"));
        let value = bench(&server, &[&["-t", "set,get,mset,hset,lpush,ping"], &flags[..], more].concat());
        let tests = value["tests"].as_array().unwrap();
        let labels: Vec<_> = tests.iter().map(|test| test["test"].as_str().unwrap()).collect();
        assert!(labels.contains(&"PING_MBULK") && !labels.contains(&"PING_INLINE"), "{labels:?}");
        for test in tests {
            assert_eq!(test["protocol"], "HTTP", "{test}");
            assert_eq!((&test["errors"], &test["lost"]), (&0.into(), &0.into()), "{test}");
        }
        assert_eq!(server.calls("set") - before.0, requests, "{more:?}");
        assert_eq!(server.calls("get") - before.1, requests, "{more:?}");
    }
}

#[test]
fn bench_says_what_goes_wrong_over_http() {
    let server = Server::weft(&[]);
    let output = run(&["bench", "--http", "-s", &server.socket, "-n", "50", "-q", "LPUSH", "s", "x"], b"");
    assert!(output.status.success(), "{}", stderr(&output));
    let output = run(&["bench", "--http", "-s", &server.socket, "-n", "50", "-q", "INCR", "s"], b"");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(!output.status.success() && text.contains("WRONGTYPE"), "{text}");
    for (flags, why) in [
        (&["--http", "--mux", "2"][..], "HTTP has no clients on a connection"),
        (&["--pipeline-body"], "only HTTP has bodies"),
        (&["--http", "--preset", "mux"], "only RESPB has channels"),
        (&["--http", "-t", "ping_inline"], "HTTP has no words on a line"),
        (&["--http", "--dbnum", "2"], "database 0"),
    ] {
        let args = [&["bench", "-s", &server.socket], flags].concat();
        let output = run(&args, b"");
        assert!(!output.status.success() && stderr(&output).contains(why), "{flags:?}: {}", stderr(&output));
    }
}

#[test]
fn who_is_refused_is_told_in_http() {
    let server = Server::weft(&["--maxclients", "1"]);
    let mut first = server.connect(Protocol::Resp2);
    first.command(&["PING"]).unwrap();
    for request in ["GET /get/k HTTP/1.1\r\nHost: localhost\r\n\r\n", "POST / HTTP/1.0\r\n\r\n"] {
        let answer = ask(&server, request);
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\r\nRetry-After: 1\r\n"), "{answer}");
        assert!(answer.ends_with("{\"error\":\"ERR max number of clients reached\"}"), "{answer}");
    }
    assert_eq!(ask(&server, "PING\r\n"), "-ERR max number of clients reached\r\n");
    first.command(&["PING"]).unwrap();
}

/// A double that a program is given, writes to JSON and answers is the one that it was.
#[test]
fn programs_keep_doubles_over_http() {
    let server = Server::weft(&["--program-time-ms-max", "60000"]);
    let program = r#"{"limits":{"time-ms":60000},"params":[{"name":"all","type":"list"}],"steps":[
        {"return":["${all}",{"from_json":{"to_json":"${all}"}},{"to_json":"${all}"}]}]}"#;
    let (mut bits, mut doubles) = (7_u64, vec![1e308, -1e308, f64::MAX, -0.0, 5e-324, 9.3e18, 0.1, 1e17]);
    while doubles.len() < 1000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        doubles.extend(Some(f64::from_bits(bits ^ bits >> 29)).filter(|value| value.is_finite()));
    }
    let all = format!("[{}]", doubles.iter().map(|value| format!("{value:e}")).collect::<Vec<_>>().join(","));
    let body = format!(r#"{{"program":{program},"args":[{all}]}}"#);
    let answer = ask(
        &server,
        &format!(
            "POST /v1/programs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    );
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
    let answer = unchunked(head, body);
    // The texts of the numbers: another reader's rounding is not what is looked at.
    let (start, end) = (answer.find("[[").expect("two lists"), answer.find("],\"[").expect("a text behind"));
    // An integer beyond 2^53 is told as a text.
    let lists = answer[start + 2..end].replace("],[", ",").replace('"', "");
    let text = &answer[end + 4..answer.rfind("]\"").expect("the text ends")];
    let told: Vec<f64> = lists.split(',').chain(text.split(',')).map(|text| text.parse().unwrap()).collect();
    assert_eq!(told.len(), 3 * doubles.len());
    for (at, told) in told.iter().enumerate() {
        let value = doubles[at % doubles.len()];
        assert_eq!(told.to_bits(), value.to_bits(), "{value:e} at {at}");
    }
}
