//! How much is gone over to find out what keys fire: for one key, and for all keys of a command.

mod support;

use support::Bench;
use support::stored::{bench, digest, of_event, store};

/// Triggers that neither the beginning of a key tells apart nor its end, of the program `count`.
fn alike(bench: &mut Bench, client: u32) {
    store(bench, client, "PROGRAM", "count", &of_event(r#"["INCR","count"]"#));
    for number in 0..500 {
        let text = format!(r#"{{"key":"a*x{number}x*","inside":"count"}}"#);
        store(bench, client, "TRIGGER", &format!("t{number}"), &text);
    }
}

/// A name that all of them are compared with, and no pattern matches.
fn long(len: usize) -> String {
    "a".to_owned() + &"b".repeat(len)
}

/// Patterns that nothing tells apart are compared with a key one by one. With how much of them is bounded.
#[test]
fn a_key_that_would_be_compared_with_too_much_is_refused() {
    let (mut bench, client) = bench();
    alike(&mut bench, client);
    for (key, counted) in
        [("ax7x".to_owned(), "1"), (long(4000), "1"), (long(4000) + "x8x", "2"), ("z".repeat(10_000), "2")]
    {
        assert_eq!(bench.text(client, &format!("SET {key} 1")), "OK");
        assert_eq!(bench.text(client, "GET count"), counted);
    }
    let before = digest(&mut bench, client);
    let key = long(10_000);
    for command in [format!("SET {key} 1"), format!("MSET {key} 1 b 2"), format!("RENAME ax7x {key}")] {
        let refused = bench.text(client, &command);
        assert!(refused.contains("too many triggers begin like this key"), "{refused}");
    }
    assert!(digest(&mut bench, client) == before, "nothing of them stays");
}

/// Each key of these may be compared with all of them; 600 MiB for one command is more than there is time for.
#[test]
fn keys_of_one_command_are_compared_within_its_time() {
    let (mut bench, client) = bench();
    let keys: Vec<String> = (0..200).map(|number| format!("{}:{number}", long(6000))).collect();
    let pairs = |value: &str| keys.iter().map(|key| format!("{key} {value}")).collect::<Vec<_>>().join(" ");
    assert_eq!(bench.text(client, &format!("MSET {}", pairs("1"))), "OK");
    alike(&mut bench, client);
    for key in &keys[..2] {
        assert_eq!(bench.text(client, &format!("SET {key} 2")), "OK");
    }
    let before = digest(&mut bench, client);
    let many = [format!("MSET {}", pairs("3")), format!("DEL {}", keys.join(" "))];
    for command in &many {
        let refused = bench.text(client, command);
        assert!(refused.contains("all that a command fires has the time of one program"), "{refused:.200}");
    }
    for line in ["MULTI", &many[0], "EXEC"] {
        let refused = bench.text(client, line);
        assert!(line != "EXEC" || refused.contains("has the time of one program"), "{refused:.200}");
    }
    assert!(digest(&mut bench, client) == before, "nothing of them stays");
}
