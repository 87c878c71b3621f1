//! Sends one kind of request to a worker and prints how many.
//!
//! `server_costs http WIRE-WORKLOAD REPEATS` has [`CLIENTS`] connections send theirs, lets the worker do a tick and
//! takes the answers, REPEATS × [`ROUNDS`] times. The client's instructions are in the count: some for each call of the
//! system, alike on both wires. The cost of a command is the difference between two values of REPEATS, divided by the
//! commands in between.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use weft_server::alone::Alone;

/// Connections in use.
const CLIENTS: usize = 50;
/// Ticks of one repeat.
const ROUNDS: usize = 8;
/// Keys in use.
const KEYS: usize = 100;
/// Room for the answers to what one connection sends.
const ANSWERS_BYTES: usize = 64 << 10;

const USAGE: &str = "usage: server_costs http WIRE-WORKLOAD REPEATS, such as http-get-16 3";

pub(crate) fn run(args: &[String]) {
    let [workload, repeats] = args else { panic!("{USAGE}") };
    let repeats: usize = repeats.parse().expect(USAGE);
    let (wire, workload) = workload.split_once('-').expect(USAGE);
    let mut alone = Alone::new();
    let mut clients: Vec<UnixStream> = (0..CLIENTS).map(|_| alone.connect()).collect();
    for key in 0..KEYS {
        let mut answers = vec![0; ANSWERS_BYTES];
        exchange(&mut alone, &mut clients[..1], &[resp(&["SET", &name(key), VALUE])], &mut answers);
    }
    // What has spoken RESP goes on with it.
    let mut clients: Vec<UnixStream> = (0..CLIENTS).map(|_| alone.connect()).collect();
    let (commands, sent): (usize, Vec<Vec<u8>>) = load(wire, workload);
    let mut answers = vec![0; ANSWERS_BYTES];
    // Of connections that have brought nothing yet a tick takes some: each is served alone first.
    for at in 0..CLIENTS {
        exchange(&mut alone, &mut clients[at..=at], &sent[at..=at], &mut answers);
    }
    let expected = exchange(&mut alone, &mut clients, &sent, &mut answers);
    for _ in 0..repeats * ROUNDS {
        let bytes = exchange(&mut alone, &mut clients, &sent, &mut answers);
        assert_eq!(bytes, expected, "every round is answered alike");
    }
    println!("{} commands, {expected} bytes of answers in each round", repeats * ROUNDS * CLIENTS * commands);
}

/// Each client sends its bytes, the worker does what it does, and the answers are taken: how many bytes they are.
fn exchange(alone: &mut Alone, clients: &mut [UnixStream], sent: &[Vec<u8>], answers: &mut [u8]) -> usize {
    for (client, sent) in clients.iter_mut().zip(sent) {
        client.write_all(sent).expect("it fits into the socket");
    }
    alone.tick();
    let mut bytes = 0;
    for client in clients {
        bytes += client.read(answers).expect("it is answered within the tick");
        assert!(answers.starts_with(b"HTTP/1.1 200") || b"$+*".contains(&answers[0]), "it is answered well");
    }
    bytes
}

const VALUE: &str = "a value of 16 by";

fn name(key: usize) -> String {
    format!("key:{:012}", key % KEYS)
}

/// Commands that each connection sends in a round, and its bytes.
fn load(wire: &str, workload: &str) -> (usize, Vec<Vec<u8>>) {
    let (command, count) = workload.split_once('-').unwrap_or((workload, "1"));
    let count: usize = count.parse().expect(USAGE);
    let bytes = |client: usize| {
        let names = (0..count).map(|at| name(client * 7 + at));
        match (wire, command) {
            ("resp", "get") => names.flat_map(|name| resp(&["GET", &name])).collect(),
            ("resp", "set") => names.flat_map(|name| resp(&["SET", &name, VALUE])).collect(),
            ("http", "get") => names.flat_map(|name| request("GET", &format!("/get/{name}"), "")).collect(),
            ("http", "set") => {
                names.flat_map(|name| request("POST", &format!("/set/{name}"), VALUE)).collect()
            }
            ("http", "json") => {
                names.flat_map(|name| request("POST", "/", &format!(r#"["GET","{name}"]"#))).collect()
            }
            ("http", "pipeline") => {
                let commands: Vec<String> = names.map(|name| format!(r#"["GET","{name}"]"#)).collect();
                request("POST", "/pipeline", &format!("[{}]", commands.join(",")))
            }
            _ => panic!("{USAGE}"),
        }
    };
    (count, (0..CLIENTS).map(bytes).collect())
}

fn resp(words: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| text.push_str(&format!("${}\r\n{word}\r\n", word.len())));
    text.into_bytes()
}

fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:6379\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n\
         {length}\r\n{body}"
    )
    .into_bytes()
}
