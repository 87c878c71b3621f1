//! MIGRATE from one server to another, which may be Debian's redis-server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use weft_client::{Protocol, Reply};

use common::servers::{LONG, Server};

/// A port that leads to the socket of a server.
fn port_to(server: &Server) -> String {
    let (listener, socket) = (TcpListener::bind("127.0.0.1:0").unwrap(), server.socket.clone());
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for from in listener.incoming().map_while(Result::ok) {
            let to = UnixStream::connect(&socket).unwrap();
            let (mut from_reads, mut to_writes) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            thread::spawn(move || io::copy(&mut from_reads, &mut to_writes));
            thread::spawn(move || pass_back(to, from));
        }
    });
    port.to_string()
}

fn pass_back(mut to: UnixStream, mut from: TcpStream) {
    // Either may close first.
    let _ = io::copy(&mut to, &mut from);
}

fn ask(server: &Server, words: &[&str]) -> String {
    match server.connect(Protocol::Resp2).exchange(words).unwrap() {
        Reply::Simple(text) | Reply::Error(text) | Reply::Bulk(text) => String::from_utf8(text).unwrap(),
        Reply::Int(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// Waits until so many clients wait. Whoever has got an answer instead never will.
fn wait_for_blocked(server: &Server, count: usize) {
    let (began, line) = (Instant::now(), format!("blocked_clients:{count}\r\n"));
    while !ask(server, &["INFO", "clients"]).contains(&line) {
        assert!(began.elapsed() < LONG, "there are never {count} clients that wait");
    }
}

#[test]
fn keys_move_with_their_types_and_times() {
    let targets = Server::all();
    for target in targets {
        let (source, port) = (Server::weft(&[]), port_to(&target));
        for words in [
            &["SET", "text", "v"][..],
            &["SET", "passes", "v", "PX", "1000000"],
            &["RPUSH", "list", "a", "b"],
            &["ZADD", "zset", "1.5", "m"],
            &["XADD", "stream", "1-1", "f", "v"],
            &["SET", "stays", "v"],
        ] {
            ask(&source, words);
        }
        let reply = ask(&source, &["MIGRATE", "127.0.0.1", &port, "text", "2", "5000", "COPY"]);
        assert_eq!(reply, "OK");
        assert_eq!(ask(&source, &["GET", "text"]), "v");
        let moved = ["text", "passes", "list", "zset", "stream", "none"];
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "2", "5000", "REPLACE", "KEYS"];
        words.extend(moved);
        assert_eq!(ask(&source, &words), "OK");
        assert_eq!(ask(&source, &["DBSIZE"]), "1");
        let mut connection = target.connect(Protocol::Resp2);
        connection.exchange(&["SELECT", "2"]).unwrap();
        assert_eq!(connection.exchange(&["DBSIZE"]).unwrap(), Reply::Int(5));
        assert_eq!(connection.exchange(&["GET", "text"]).unwrap(), Reply::Bulk(b"v".to_vec()));
        assert_eq!(connection.exchange(&["ZSCORE", "zset", "m"]).unwrap(), Reply::Bulk(b"1.5".to_vec()));
        let Reply::Int(left) = connection.exchange(&["PTTL", "passes"]).unwrap() else { panic!("PTTL") };
        assert!((1..=1_000_000).contains(&left), "{left}");
        assert_eq!(connection.exchange(&["PTTL", "text"]).unwrap(), Reply::Int(-1));

        ask(&source, &["SET", "text", "other"]);
        let busy = ask(&source, &["MIGRATE", "127.0.0.1", &port, "text", "2", "5000"]);
        assert!(busy.starts_with("ERR Target instance replied with error: BUSYKEY"), "{busy}");
        assert_eq!(ask(&source, &["GET", "text"]), "other");
    }
}

#[test]
fn a_target_that_refuses_gets_nothing() {
    let (source, target) = (Server::weft(&[]), Server::weft(&["--requirepass", "secret"]));
    let port = port_to(&target);
    ask(&source, &["SET", "k", "v"]);
    let refused = ask(&source, &["MIGRATE", "127.0.0.1", &port, "k", "0", "5000"]);
    assert!(refused.starts_with("ERR Target instance replied with error: NOAUTH"), "{refused}");
    let wrong = ask(&source, &["MIGRATE", "127.0.0.1", &port, "k", "0", "5000", "AUTH", "wrong"]);
    assert!(wrong.starts_with("ERR Target instance replied with error: WRONGPASS"), "{wrong}");
    let no_db = ask(&source, &["MIGRATE", "127.0.0.1", &port, "k", "99", "5000", "AUTH", "secret"]);
    assert_eq!(no_db, "ERR Target instance replied with error: ERR DB index is out of range");
    assert_eq!(ask(&source, &["GET", "k"]), "v");
    let auth2 = ["MIGRATE", "127.0.0.1", &port, "k", "0", "5000", "AUTH2", "default", "secret"];
    assert_eq!(ask(&source, &auth2), "OK");
    assert_eq!(ask(&source, &["EXISTS", "k"]), "0");
}

#[test]
fn a_target_that_is_not_there_or_does_not_answer_is_told() {
    let source = Server::weft(&[]);
    ask(&source, &["SET", "k", "v"]);
    // It takes connections, and nobody reads them.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = deaf.local_addr().unwrap().port().to_string();
    let reply = ask(&source, &["MIGRATE", "127.0.0.1", &port, "k", "0", "1000"]);
    assert_eq!(reply, "IOERR error or timeout reading to target instance");
    // Nobody listens there, and nobody else gets the port meanwhile.
    let taken = TcpStream::connect(deaf.local_addr().unwrap()).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let reply = ask(&source, &["MIGRATE", "127.0.0.1", &port, "k", "0", "1000"]);
    assert_eq!(reply, "IOERR error or timeout connecting to the client");
    assert_eq!(ask(&source, &["GET", "k"]), "v");
}

/// A target that takes connections and does what it is told with each of them.
fn target(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    port.to_string()
}

/// Reads, and never answers.
fn silent(mut stream: TcpStream) {
    let _ = io::copy(&mut stream, &mut io::sink());
}

#[test]
fn a_slow_target_holds_up_only_its_own() {
    let (source, good) = (Server::weft(&[]), Server::weft(&[]));
    let (slow, quick) = (target(silent), port_to(&good));
    ask(&source, &["MSET", "slow", "v", "quick", "v"]);
    let (told, is_told) = std::sync::mpsc::channel();
    let socket = source.socket.clone();
    let waits = thread::spawn(move || {
        let mut stream = UnixStream::connect(socket).unwrap();
        let words = ["MIGRATE", "127.0.0.1", &slow, "slow", "0", "86400000"];
        stream.write_all(&common::resp(&words)).unwrap();
        told.send(stream.try_clone().unwrap()).unwrap();
        let mut reply = String::new();
        let _ = stream.read_to_string(&mut reply);
        reply
    });
    let stream = is_told.recv().unwrap();
    wait_for_blocked(&source, 1);
    assert_eq!(ask(&source, &["MIGRATE", "127.0.0.1", &quick, "quick", "0", "60000"]), "OK");
    assert_eq!(ask(&source, &["EXISTS", "quick", "slow"]), "1");
    stream.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(waits.join().unwrap(), "");
}

#[test]
fn the_time_is_for_all_of_it() {
    let source = Server::weft(&[]);
    // An answer of 5 s, in pieces that each come in time. Who waits for all of it is told that the key has arrived.
    let port = target(|mut stream| {
        for at in 0..=250 {
            let piece: &[u8] = if at == 250 { b"\r\n+OK\r\n" } else { b"+" };
            if stream.write_all(piece).is_err() {
                return;
            }
            thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    ask(&source, &["SET", "k", "v"]);
    let reply = ask(&source, &["MIGRATE", "127.0.0.1", &port, "k", "0", "300"]);
    assert_eq!(reply, "IOERR error or timeout reading to target instance");
    assert_eq!(ask(&source, &["GET", "k"]), "v");
}

#[test]
fn targets_are_those_that_are_allowed_and_so_many_at_once() {
    let good = Server::weft(&[]);
    let (free, named) = (port_to(&good), port_to(&good));
    let source = Server::weft(&["--migrate-allow", &format!("localhost 127.0.0.1:{named}")]);
    ask(&source, &["MSET", "a", "v", "b", "v"]);
    let refused = ask(&source, &["MIGRATE", "127.0.0.1", &free, "a", "0", "5000"]);
    assert!(refused.starts_with("ERR MIGRATE to this host is not allowed: migrate-allow"), "{refused}");
    assert_eq!(ask(&source, &["MIGRATE", "LocalHost", &free, "a", "0", "60000"]), "OK");
    assert_eq!(ask(&source, &["MIGRATE", "127.0.0.1", &named, "b", "0", "60000"]), "OK");
    assert!(ask(&source, &["CONFIG", "SET", "migrate-allow", ""]).starts_with("ERR"));

    let source = Server::weft(&[]);
    ask(&source, &["SET", "k", "v"]);
    let waiting: Vec<_> = (0..16)
        .map(|_| {
            let mut stream = UnixStream::connect(&source.socket).unwrap();
            let words = ["MIGRATE", "127.0.0.1", &target(silent), "k", "0", "86400000"];
            stream.write_all(&common::resp(&words)).unwrap();
            stream
        })
        .collect();
    wait_for_blocked(&source, 16);
    let refused = ask(&source, &["MIGRATE", "127.0.0.1", &target(silent), "k", "0", "1000"]);
    assert!(refused.contains("too many servers at once"), "{refused}");
    drop(waiting);
}
