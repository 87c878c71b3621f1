//! Owns: the two halves of MIGRATE around a target that is made up: what is sent, and what follows. Does not own: the
//! way there (`crates/weft/tests/migrate.rs`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::{Arc, Mutex};

use support::{ALL, Bench, show};
use weft_engine::carrier::{Arrival, Cargo};
use weft_engine::context::Local;
use weft_engine::reply::Protocol;

/// An engine whose cargoes stay where the test finds them.
struct Port {
    bench: Bench,
    cargoes: Arc<Mutex<Vec<Cargo>>>,
}

impl Port {
    fn new() -> Self {
        let (bench, cargoes) = (Bench::new(), Arc::<Mutex<Vec<Cargo>>>::default());
        let kept = Arc::clone(&cargoes);
        bench.engine.carrier.set(Box::new(move |cargo| {
            kept.lock().unwrap().push(*cargo);
            Ok(())
        }));
        Self { bench, cargoes }
    }
    fn cargo(&self) -> Cargo {
        self.cargoes.lock().unwrap().pop().expect("something was sent")
    }
    /// The target has answered.
    fn unload(&mut self, cargo: &Cargo, arrived: &[bool], error: Option<(&'static str, &str)>) {
        let mut worker = self.bench.engine.keyspace.worker().expect("a place");
        let arrival =
            Arrival { arrived: arrived.to_vec(), error: error.map(|(prefix, text)| (prefix, text.into())) };
        self.bench.engine.unload(cargo, arrival, &mut worker, &mut Local::of_thread(1));
    }
    fn taken(&mut self, client: u32) -> Vec<String> {
        let other = self.bench.connect(Protocol::Resp2);
        self.bench.text(other, "PING");
        self.bench.take(client).iter().map(show).collect()
    }
}

#[test]
fn what_has_arrived_is_taken_away() {
    for protocol in ALL {
        let mut port = Port::new();
        let (a, b) = (port.bench.connect(protocol), port.bench.connect(protocol));
        port.bench.text(b, "MSET x 1 y 2 z 3");
        port.bench.text(b, "PEXPIRE y 5000");
        assert!(
            port.bench.run_args(a, &words("MIGRATE h 7 '' 5 10 COPY AUTH2 u p KEYS x none y")).is_empty()
        );
        assert!(port.bench.is_waiting(a));
        let cargo = port.cargo();
        assert_eq!((cargo.host.as_str(), cargo.port, cargo.target_db), ("h", 7, 5));
        assert_eq!(cargo.credentials, [b"u".to_vec(), b"p".to_vec()]);
        assert!(cargo.copy && !cargo.replace);
        let names: Vec<&[u8]> = cargo.items.iter().map(|item| &item.key[..]).collect();
        assert_eq!(names, [b"x", b"y"]);
        assert!(cargo.items[0].expire_ms.is_none() && cargo.items[1].expire_ms.is_some());
        port.unload(&cargo, &[true, true], None);
        assert_eq!(port.taken(a), ["OK"]);
        assert_eq!(port.bench.text(b, "DBSIZE"), "3", "COPY");

        port.bench.run_args(a, &words("MIGRATE h 7 '' 0 10 REPLACE KEYS x y z"));
        let cargo = port.cargo();
        assert!(cargo.replace);
        port.unload(
            &cargo,
            &[true, false, true],
            Some(("ERR", "Target instance replied with error: BUSYKEY k")),
        );
        assert_eq!(port.taken(a), ["-ERR Target instance replied with error: BUSYKEY k"]);
        assert_eq!(port.bench.text(b, "EXISTS x z"), "0");
        assert_eq!(port.bench.text(b, "GET y"), "2");
        assert_eq!(port.bench.text(a, "PING"), "PONG", "it goes on");
    }
}

#[test]
fn what_was_changed_meanwhile_stays() {
    let mut port = Port::new();
    let (a, b) = (port.bench.connect(Protocol::Resp2), port.bench.connect(Protocol::Resp2));
    for (change, value) in [("APPEND k x", "vx"), ("PEXPIRE k 5000", "v"), ("SET k w", "w")] {
        port.bench.text(b, "SET k v");
        port.bench.run(a, "MIGRATE h 7 k 0 10");
        let cargo = port.cargo();
        port.bench.text(b, change);
        port.unload(&cargo, &[true], None);
        let replies = port.taken(a);
        assert!(replies.len() == 1 && replies[0].starts_with("-TRYAGAIN "), "{replies:?}");
        assert_eq!(port.bench.text(b, "GET k"), value, "{change}");
    }
}

#[test]
fn who_is_unblocked_keeps_the_key() {
    let mut port = Port::new();
    let (a, b) = (port.bench.connect(Protocol::Resp2), port.bench.connect(Protocol::Resp2));
    port.bench.text(b, "SET k v");
    port.bench.run(a, "MIGRATE h 7 k 0 10");
    let id = port.bench.session(a).id();
    assert_eq!(port.bench.text(b, &format!("CLIENT UNBLOCK {id} ERROR")), "1");
    assert!(port.taken(a)[0].starts_with("-UNBLOCKED"));
    let cargo = port.cargo();
    port.unload(&cargo, &[true], None);
    assert!(port.taken(a).is_empty());
    assert_eq!(port.bench.text(b, "GET k"), "v");
}

#[test]
fn in_a_program_it_is_refused_and_nothing_is_sent() {
    let mut port = Port::new();
    let a = port.bench.connect(Protocol::Resp3);
    port.bench.text(a, "SET k v");
    let run = |port: &mut Port, step: &str| {
        let program = format!(r#"{{"steps":[["SET","other","1"],{step},{{"return":"${{x}}"}}]}}"#);
        show(&port.bench.run_args(a, &[b"PROGRAM", b"EVAL", program.as_bytes()])[0])
    };
    let refused = run(&mut port, r#"{"do":["MIGRATE","h",7,"k",0,10],"as":"x"}"#);
    assert_eq!(
        refused,
        "-ERR /steps/1 MIGRATE: MIGRATE waits for another server: it cannot run inside a transaction"
    );
    assert!(port.cargoes.lock().unwrap().is_empty() && !port.bench.is_waiting(a));
    assert_eq!(port.bench.text(a, "MGET k other"), "[v nil]", "all is taken back, and the key stays");
    // Where there is nothing to send nobody is waited for.
    assert_eq!(run(&mut port, r#"{"do":["MIGRATE","h",7,"none",0,10],"as":"x"}"#), "NOKEY");
    assert_eq!(port.bench.text(a, "GET other"), "1");
}

#[test]
fn arguments_are_checked_before_anything_is_sent() {
    let mut port = Port::new();
    let a = port.bench.connect(Protocol::Resp2);
    port.bench.text(a, "SET k v");
    for (command, reply) in [
        ("MIGRATE h 7 none 0 10", "NOKEY"),
        ("MIGRATE h 7 '' 0 10 KEYS", "NOKEY"),
        ("MIGRATE h 7 k x 10", "-ERR value is not an integer or out of range"),
        ("MIGRATE h 7 k 0 x", "-ERR value is not an integer or out of range"),
        ("MIGRATE h 7 k 0 10 OTHER", "-ERR syntax error"),
        ("MIGRATE h 7 k 0 10 AUTH", "-ERR syntax error"),
        ("MIGRATE h 7 k 0 10 AUTH2 u", "-ERR syntax error"),
        (
            "MIGRATE h 7 k 0 10 KEYS a",
            "-ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
        ),
        ("MIGRATE h x k 0 10", "-IOERR error or timeout connecting to the client"),
    ] {
        assert_eq!(show(&port.bench.run_args(a, &words(command))[0]), reply, "{command}");
    }
    port.bench.text(a, "MULTI");
    port.bench.text(a, "MIGRATE h 7 k 0 10");
    assert!(port.bench.text(a, "EXEC").contains("cannot run inside a transaction"));
    let keys = port.bench.run_args(a, &words("COMMAND GETKEYS MIGRATE h 7 '' 0 10 KEYS k l"));
    assert_eq!(show(&keys[0]), "[k l]");
    assert!(port.cargoes.lock().unwrap().is_empty());
}

/// Words between blanks; `''` is an empty one.
fn words(command: &str) -> Vec<&[u8]> {
    command.split(' ').map(|word| if word == "''" { &b""[..] } else { word.as_bytes() }).collect()
}

#[test]
fn keys_that_the_table_finds_otherwise_end_nothing() {
    let mut port = Port::new();
    let (a, b) = (port.bench.connect(Protocol::Resp2), port.bench.connect(Protocol::Resp2));
    port.bench.run_args(b, &words("MSET a 1 keys 2 b 3 '' 4"));
    for (command, names) in [
        ("MIGRATE h 1 '' 0 1000 COPY", vec![""]),
        ("MIGRATE h 1 '' 0 1000 COPY KEYS a keys b", vec!["a", "keys", "b"]),
        ("MIGRATE h 1 '' 0 1000 COPY AUTH keys KEYS a keys b", vec!["a", "keys", "b"]),
    ] {
        // Without a neighbour in the batch, whose locks are enough for everything.
        assert!(port.bench.run_args(a, &words(command)).is_empty(), "{command}");
        let cargo = port.cargo();
        let found: Vec<&str> =
            cargo.items.iter().map(|item| std::str::from_utf8(&item.key).unwrap()).collect();
        assert_eq!(found, names, "{command}");
        port.unload(&cargo, &vec![true; names.len()], None);
        assert_eq!(port.taken(a), ["OK"], "{command}");
    }
}

#[test]
fn rights_are_asked_for_every_key_that_goes() {
    let mut port = Port::new();
    let a = port.bench.connect(Protocol::Resp2);
    port.bench.text(a, "MSET mine 1 other 2");
    port.bench.text(a, "ACL SETUSER u on nopass +@all ~mine ~keys");
    port.bench.text(a, "AUTH u x");
    for command in ["MIGRATE h 1 '' 0 1000 KEYS other keys mine", "MIGRATE h 1 '' 0 1000 KEYS mine other"] {
        let reply = port.bench.run_args(a, &words(command));
        assert_eq!(reply.iter().map(show).collect::<Vec<_>>(), ["-NOPERM No permissions to access a key"]);
    }
}

#[test]
fn what_is_on_its_way_is_bounded() {
    let mut port = Port::new();
    let client = port.bench.connect(Protocol::Resp2);
    let other = port.bench.connect(Protocol::Resp2);
    port.bench.engine.set_config(&[(b"migrate-bytes", b"1mb")], false).unwrap();
    // With the rest of a dump and what is counted for an item, two of them fit and three do not.
    let value = "v".repeat(400_000);
    for key in ["a", "b", "c"] {
        port.bench.run_args(other, &[b"SET", key.as_bytes(), value.as_bytes()]);
    }
    let refused = {
        let reply = port.bench.run_args(client, &words("MIGRATE h 7 '' 0 10 KEYS a b c"));
        reply.iter().map(show).collect::<String>()
    };
    assert!(refused.contains("migrate-bytes"), "{refused}");
    assert!(!port.bench.is_waiting(client));
    assert!(port.bench.run_args(client, &words("MIGRATE h 7 '' 0 10 KEYS a b")).is_empty());
    let refused = port.bench.text(other, "MIGRATE h 7 c 0 10");
    assert!(refused.contains("migrate-bytes"), "{refused}");
    // What has arrived makes room.
    let cargo = port.cargo();
    port.unload(&cargo, &[true, true], None);
    drop(cargo);
    assert!(port.bench.run_args(other, &words("MIGRATE h 7 c 0 10")).is_empty());
}
