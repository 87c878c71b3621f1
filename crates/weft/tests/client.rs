//! The client's channels against the server: what the scripted peer of `crates/client` stands in for, for real.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::servers::{LONG, Server};
use weft_client::{Connection, Error, Mux, Pool, PoolConfig, Protocol, Reconnecting, Reply};

fn bulk(text: impl AsRef<[u8]>) -> Reply {
    Reply::Bulk(text.as_ref().to_vec())
}

const ALL: [Protocol; 3] = [Protocol::Resp2, Protocol::Resp3, Protocol::Respb];

#[test]
fn the_handshake_tells_of_the_server() {
    let server = Server::weft(&["--requirepass", "secret"]);
    let config = server.config(Protocol::Respb).with_auth(None, "secret").with_db(3).with_name("me");
    let mut connection = Connection::connect(&config).unwrap();
    let respb = connection.server().respb.clone().unwrap();
    assert_eq!((respb.version, respb.capabilities), (1, 1));
    assert!(respb.limit("channels").unwrap() > 1);
    let line: String = connection.query(&["CLIENT", "INFO"]).unwrap();
    assert!(line.contains(" db=3 ") && line.contains(" name=me "), "{line}");
    let wrong = Connection::connect(&config.with_auth(None, "wrong"));
    assert!(matches!(wrong, Err(Error::Handshake { .. })), "{wrong:?}");
    // A channel has the user of channel 0, and the connection's database and name.
    let mux = Mux::connect(&server.config(Protocol::Respb).with_auth(None, "secret").with_db(2)).unwrap();
    let line: String = mux.channel().unwrap().query(&["CLIENT", "INFO"]).unwrap();
    assert!(line.contains(" db=2 ") && line.contains(" user=default "), "{line}");
}

#[test]
fn pipelines_and_transactions_over_every_protocol() {
    let server = Server::weft(&[]);
    for protocol in ALL {
        let mut connection = server.connect(protocol);
        connection.command(&["FLUSHALL"]).unwrap();
        let value = "v".repeat(1000);
        let mut pipeline = connection.pipeline();
        for n in 0..10_000 {
            pipeline.add(&["SET", &format!("k{n}"), &value]).unwrap();
            pipeline.add(&["GET", &format!("k{n}")]).unwrap();
        }
        let replies = pipeline.execute().unwrap();
        assert!(replies.chunks(2).all(|pair| pair[1] == bulk(&value)), "{protocol}");
        connection.command(&["WATCH", "n"]).unwrap();
        let mut pipeline = connection.pipeline();
        pipeline.add(&["INCR", "n"]).unwrap().add(&["INCR", "n"]).unwrap();
        let replies = pipeline.execute_transaction().unwrap();
        assert_eq!(replies, Some(vec![Reply::Int(1), Reply::Int(2)]));
        connection.command(&["WATCH", "n"]).unwrap();
        server.connect(protocol).command(&["SET", "n", "9"]).unwrap();
        let mut pipeline = connection.pipeline();
        pipeline.add(&["INCR", "n"]).unwrap();
        assert_eq!(pipeline.execute_transaction().unwrap(), None, "{protocol}");
    }
}

#[test]
fn subscriptions_are_the_same_over_every_protocol() {
    let server = Server::weft(&[]);
    for protocol in ALL {
        let (mut connection, mut publisher) = (server.connect(protocol), server.connect(protocol));
        let reply = connection.command(&["SUBSCRIBE", "a", "b"]).unwrap();
        let one = |name: &str, count| Reply::Array(vec![bulk("subscribe"), bulk(name), Reply::Int(count)]);
        assert_eq!(reply, Reply::Array(vec![one("a", 1), one("b", 2)]), "{protocol}");
        connection.psubscribe(&["p*"]).unwrap();
        for channel in ["a", "pq"] {
            publisher.command(&["PUBLISH", channel, "m"]).unwrap();
        }
        let mut next = || connection.receive_push(Some(LONG)).unwrap().unwrap();
        assert_eq!(next(), Reply::Push(vec![bulk("message"), bulk("a"), bulk("m")]));
        assert_eq!(next(), Reply::Push(vec![bulk("pmessage"), bulk("p*"), bulk("pq"), bulk("m")]));
        connection.unsubscribe::<&str>(&[]).unwrap();
        connection.punsubscribe::<&str>(&[]).unwrap();
        assert_eq!(connection.session().subscriptions(), 0);
        connection.command(&["SET", "k", "v"]).unwrap();
    }
}

#[test]
fn channels_are_clients_of_their_own() {
    let server = Server::weft(&[]);
    let mux = Mux::connect(&server.config(Protocol::Respb)).unwrap();
    let (mut one, mut two) = (mux.channel().unwrap(), mux.channel().unwrap());
    one.command(&["SELECT", "1"]).unwrap();
    one.command(&["MULTI"]).unwrap();
    assert_eq!(one.command(&["SET", "k", "v"]).unwrap(), Reply::Simple(b"QUEUED".to_vec()));
    assert_eq!(two.query::<Option<String>>(&["GET", "k"]).unwrap(), None);
    one.command(&["EXEC"]).unwrap();
    assert_eq!(two.query::<Option<String>>(&["GET", "k"]).unwrap(), None, "another database");
    // One that blocks holds up nobody, and can be cancelled.
    let sequence = one.send(&["BLPOP", "none", "0"]).unwrap();
    one.flush().unwrap();
    two.command(&["SET", "k", "two"]).unwrap();
    one.cancel(sequence).unwrap();
    match one.receive().unwrap() {
        Reply::Error(text) => assert!(text.starts_with(b"CANCELLED"), "{}", String::from_utf8_lossy(&text)),
        other => panic!("{other:?}"),
    }
    // One that blocks without a limit is waited for, whatever a reply may take otherwise.
    one.command(&["SELECT", "0"]).unwrap();
    one.set_reply_timeout(Some(Duration::from_millis(1)));
    one.send(&["BLPOP", "none", "0"]).unwrap();
    one.flush().unwrap();
    while !two.query::<String>(&["CLIENT", "LIST"]).unwrap().contains("cmd=blpop") {}
    let pushed = std::thread::scope(|scope| {
        let one = scope.spawn(|| one.receive());
        two.command(&["RPUSH", "none", "x"]).unwrap();
        one.join().unwrap()
    });
    assert_eq!(pushed.unwrap(), Reply::Array(vec![bulk("none"), bulk("x")]));
    one.set_reply_timeout(Some(LONG));
    // Killed by its id.
    let id: i64 = one.query(&["CLIENT", "ID"]).unwrap();
    two.command(&["CLIENT", "KILL", "ID", &id.to_string()]).unwrap();
    match one.receive_push(Some(LONG)) {
        Err(Error::ChannelClosed { code: 4, .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(two.query::<String>(&["GET", "k"]).unwrap(), "two");
    // QUIT ends a channel alone.
    let mut three = mux.channel().unwrap();
    three.command(&["QUIT"]).unwrap();
    assert!(matches!(three.receive_push(Some(LONG)), Err(Error::ChannelClosed { code: 0, .. })));
    two.command(&["PING"]).unwrap();
}

#[test]
fn a_number_is_used_again_with_nothing_of_the_old_channel() {
    let server = Server::weft(&[]);
    let mux = Mux::connect(&server.config(Protocol::Respb)).unwrap();
    for _ in 0..500 {
        let mut channel = mux.channel().unwrap();
        let line: String = channel.query(&["CLIENT", "INFO"]).unwrap();
        assert!(line.contains(" db=0 ") && line.contains(" name= ") && line.contains(" multi=-1 "), "{line}");
        channel.command(&["SELECT", "5"]).unwrap();
        channel.command(&["CLIENT", "SETNAME", "old"]).unwrap();
        channel.command(&["MULTI"]).unwrap();
        channel.send(&["PING"]).unwrap();
    }
    assert!(mux.channels() < 500);
}

#[test]
fn a_large_reply_comes_in_slices_within_its_credit() {
    const LEN: usize = 16 << 20;
    let server = Server::weft(&[]);
    for window in [None, Some(100_000)] {
        let mut config = server.config(Protocol::Respb);
        config.window_bytes = window;
        let mux = Mux::connect(&config).unwrap();
        let (mut large, mut small) = (mux.channel().unwrap(), mux.channel().unwrap());
        let value: Vec<u8> = (0..LEN).map(|n| (n / 251) as u8).collect();
        large.command(&[&b"SET"[..], b"large", &value]).unwrap();
        large.send(&["GET", "large"]).unwrap();
        large.flush().unwrap();
        for _ in 0..50 {
            small.command(&["PING"]).unwrap();
        }
        assert_eq!(large.receive().unwrap(), Reply::Bulk(value));
        assert_eq!(large.query::<String>(&["PING"]).unwrap(), "PONG");
    }
}

#[test]
fn many_threads_share_a_connection() {
    const THREADS: usize = 50;
    const REQUESTS: usize = 100;
    let server = Server::weft(&[]);
    let mux = Mux::connect(&server.config(Protocol::Respb)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let mux = &mux;
            scope.spawn(move || {
                let mut channel = mux.channel().unwrap();
                for request in 0..REQUESTS {
                    let word = format!("{thread}-{request}");
                    channel.send(&["ECHO", &word]).unwrap();
                    channel.send(&["INCR", "n"]).unwrap();
                    assert_eq!(channel.receive().unwrap(), bulk(&word));
                    assert!(matches!(channel.receive().unwrap(), Reply::Int(_)));
                }
            });
        }
    });
    let total: usize = mux.channel().unwrap().query(&["GET", "n"]).unwrap();
    assert_eq!(total, THREADS * REQUESTS);
}

#[test]
fn a_lost_connection_comes_back_on_its_channel() {
    let server = Server::weft(&[]);
    let mut config = server.config(Protocol::Respb);
    config.channel = 9;
    let mut connection = Reconnecting::connect(&config).unwrap();
    connection.command(&["SELECT", "4"]).unwrap();
    connection.command(&["CLIENT", "SETNAME", "me"]).unwrap();
    let mut killer = server.connect(Protocol::Respb);
    killer.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).unwrap();
    let line: String = loop {
        // The loss may be noticed only after the command, which is not sent again: CLIENT INFO changes nothing, and
        // the table does not say so.
        match connection.query(&["CLIENT", "INFO"]) {
            Ok(line) => break line,
            Err(Error::OutcomeUnknown(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    };
    assert!(line.contains(" db=4 ") && line.contains(" name=me ") && line.contains("channel=9"), "{line}");
    assert_eq!(connection.losses(), 1);
}

#[test]
fn a_pool_lends_over_every_protocol() {
    let server = Server::weft(&[]);
    for protocol in ALL {
        let pool = Pool::new(server.config(protocol), PoolConfig { size_max: 3, ..PoolConfig::default() });
        pool.get().unwrap().command(&["DEL", "n"]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..9 {
                scope.spawn(|| {
                    (0..20).for_each(|_| drop(pool.get().unwrap().command(&["INCR", "n"]).unwrap()))
                });
            }
        });
        assert_eq!(pool.get().unwrap().query::<i64>(&["GET", "n"]).unwrap(), 180, "{protocol}");
    }
}
