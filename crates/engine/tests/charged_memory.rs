//! Owns: the comparison of what waits count with their connection and what they take of the process. In a program of
//! its own, since others would take memory meanwhile.

#![cfg(target_env = "gnu")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use support::Bench;
use weft_engine::info::Memory;
use weft_engine::reply::Protocol;

/// Places in queues.
const PLACES: usize = 120_000;
/// What the process takes for other things.
const OTHER_BYTES: usize = 2 << 20;

#[test]
fn what_waits_take_is_what_they_count() {
    // So many clients wait for so many keys each, of one command or another.
    for (command, clients, keys) in [
        ("BLPOP", PLACES / 1000, 1000),
        ("BLPOP", PLACES / 10, 10),
        ("BLPOP", PLACES / 4, 1),
        ("XREAD", PLACES / 1000, 1000),
        ("XREADGROUP", 1, PLACES / 8),
        ("XREADGROUP", PLACES / 8, 1),
    ] {
        let (mut bench, first) = Bench::with(Protocol::Resp3);
        let connection = Arc::clone(&bench.session(first).info.connection);
        if command == "XREADGROUP" {
            for at in 0..clients * keys {
                let key = if clients == 1 { format!("0:{at}") } else { format!("{at}:0") };
                bench.execute(first, &[b"XGROUP", b"CREATE", key.as_bytes(), b"group", b"$", b"MKSTREAM"]);
                // Consumers are of the key.
                bench.execute(first, &[b"XGROUP", b"CREATECONSUMER", key.as_bytes(), b"group", b"c"]);
                bench.take(first);
            }
        }
        let clients: Vec<u32> = (0..clients).map(|_| bench.connect(Protocol::Resp3)).collect();
        let before = Memory::now().resident_bytes;
        let mut counted = 0;
        for (number, &client) in clients.iter().enumerate() {
            let names: Vec<String> = (0..keys).map(|at| format!("{number}:{at}")).collect();
            let names = names.iter().map(String::as_bytes);
            let words: Vec<&[u8]> = match command {
                "BLPOP" => [&b"BLPOP"[..]].into_iter().chain(names).chain([&b"0"[..]]).collect(),
                "XREAD" => b"XREAD BLOCK 0 STREAMS"
                    .split(|&byte| byte == b' ')
                    .chain(names)
                    .chain(vec![&b"7-0"[..]; keys])
                    .collect(),
                _ => b"XREADGROUP GROUP group c BLOCK 0 STREAMS"
                    .split(|&byte| byte == b' ')
                    .chain(names)
                    .chain(vec![&b">"[..]; keys])
                    .collect(),
            };
            bench.execute(client, &words);
            assert!(bench.is_waiting(client));
            counted += bench.session(client).info.connection.charged_bytes.load(Relaxed);
        }
        let took = Memory::now().resident_bytes.saturating_sub(before);
        let places = clients.len() * keys;
        println!("{command} {keys} keys: {} bytes a place, {} counted", took / places, counted / places);
        assert!(
            took <= counted + OTHER_BYTES,
            "{command} of {keys} keys: {took} bytes taken, {counted} counted"
        );
        assert!(counted < 4 * took, "{command} of {keys} keys: {counted} counted, {took} taken");
        drop(connection);
    }
}
