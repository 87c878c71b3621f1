//! RESP2 and RESP3 against a real server: commands, pipelines, transactions, subscriptions, losses, pools.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use support::Server;
use weft_client::{
    Config, Connection, Error, Event, Pool, PoolConfig, Protocol, ReconnectPolicy, Reconnecting, Reply,
    Timeouts, Waiting,
};

const BOTH: [Protocol; 2] = [Protocol::Resp2, Protocol::Resp3];
const LONG: Option<Duration> = Some(support::LONG);

fn config(server: &Server, protocol: Protocol) -> Config {
    Config::new("127.0.0.1", server.port).with_protocol(protocol).with_timeouts(Timeouts::all(LONG))
}

fn connect(server: &Server, protocol: Protocol) -> Connection {
    Connection::connect(&config(server, protocol)).unwrap()
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

#[test]
fn commands_and_types() {
    let Some(server) = Server::start(&[]) else { return };
    for protocol in BOTH {
        let mut connection = connect(&server, protocol);
        connection.command(&["FLUSHALL"]).unwrap();
        assert_eq!(connection.command(&["SET", "k", "1"]).unwrap(), Reply::Simple(b"OK".to_vec()));
        assert_eq!(connection.query::<i64>(&["INCR", "k"]).unwrap(), 2);
        assert_eq!(connection.query::<Option<String>>(&["GET", "none"]).unwrap(), None);
        connection.command(&["HSET", "h", "a", "1", "b", "2"]).unwrap();
        let map: BTreeMap<String, i64> = connection.query(&["HGETALL", "h"]).unwrap();
        assert_eq!(map, BTreeMap::from([("a".into(), 1), ("b".into(), 2)]));
        connection.command(&["ZADD", "z", "1.5", "m"]).unwrap();
        let scores: BTreeMap<String, f64> =
            connection.query(&["ZRANGE", "z", "0", "-1", "WITHSCORES"]).unwrap();
        assert_eq!(scores["m"], 1.5);
        match connection.command(&["LPUSH", "k", "x"]) {
            Err(Error::Server(error)) => assert_eq!(error.code(), "WRONGTYPE"),
            other => panic!("{other:?}"),
        }
        assert!(matches!(connection.exchange(&["NOSUCH"]), Ok(Reply::Error(_))));
        assert_eq!(connection.query::<String>(&["PING"]).unwrap(), "PONG");
        if protocol == Protocol::Resp3 {
            assert_eq!(
                (connection.server().server.as_str(), connection.server().mode.as_str()),
                ("redis", "standalone")
            );
            assert_eq!(connection.query::<i64>(&["CLIENT", "ID"]).unwrap(), connection.server().id);
        }
        let value = vec![0xA5; 3 << 20];
        connection.command(&[b"SET", &b"large"[..], &value]).unwrap();
        assert_eq!(connection.query::<Vec<u8>>(&["GET", "large"]).unwrap(), value);
    }
}

#[test]
fn a_unix_socket_and_a_handshake_with_everything() {
    let Some(server) = Server::start(&["--requirepass", "secret"]) else { return };
    for protocol in BOTH {
        let mut config = Config::unix(&server.socket).with_protocol(protocol);
        config = config.with_auth(None, "secret").with_db(3).with_name("me");
        let mut connection = Connection::connect(&config).unwrap();
        let line: String = connection.query(&["CLIENT", "INFO"]).unwrap();
        assert!(line.contains(" db=3 ") && line.contains(" name=me "), "{line}");
        let wrong = Connection::connect(&config.clone().with_auth(None, "wrong"));
        let Err(Error::Handshake { error, .. }) = wrong else { panic!("{wrong:?}") };
        assert_eq!(error.code(), "WRONGPASS");
        let out_of_range = Connection::connect(&config.clone().with_db(99));
        assert!(matches!(&out_of_range, Err(Error::Handshake { step, .. }) if step.starts_with("SELECT ")));
    }
}

#[test]
fn respb_is_refused_clearly() {
    let Some(server) = Server::start(&[]) else { return };
    let error = Connection::connect(&config(&server, Protocol::Respb)).unwrap_err();
    assert!(matches!(error, Error::NoProtocol { protocol: Protocol::Respb, .. }), "{error:?}");
    assert!(error.to_string().starts_with("the server does not speak RESPB; it answered: "), "{error}");
}

#[test]
fn pipelines_larger_than_every_buffer() {
    let Some(server) = Server::start(&[]) else { return };
    for protocol in BOTH {
        let mut connection = connect(&server, protocol);
        let value = "v".repeat(1000);
        connection.command(&["SET", "k", &value]).unwrap();
        // 40 MB there and back: without reading while it writes, both sides would stand still.
        let mut pipeline = connection.pipeline();
        for _ in 0..20_000 {
            pipeline.add(&["GETSET", "k", &value]).unwrap().add(&["ECHO", &value]).unwrap();
        }
        assert_eq!(pipeline.len(), 40_000);
        let replies = pipeline.execute().unwrap();
        assert_eq!(replies.len(), 40_000);
        assert!(replies.iter().all(|reply| *reply == bulk(&value)));
        for _ in 0..20_000 {
            connection.send(&["ECHO", &value]).unwrap();
        }
        for _ in 0..20_000 {
            assert_eq!(connection.receive().unwrap(), bulk(&value));
        }
        assert!(matches!(connection.receive(), Err(Error::Config(_))));
        connection.pipeline().add(&["SET", "k", "unsent"]).unwrap();
        assert_eq!(connection.query::<String>(&["GET", "k"]).unwrap(), value);
    }
}

#[test]
fn transactions() {
    let Some(server) = Server::start(&[]) else { return };
    for protocol in BOTH {
        let mut connection = connect(&server, protocol);
        let mut other = connect(&server, protocol);
        connection.command(&["SET", "k", "1"]).unwrap();
        let mut pipeline = connection.pipeline();
        pipeline.add(&["INCR", "k"]).unwrap().add(&["GET", "k"]).unwrap();
        assert_eq!(pipeline.execute_transaction().unwrap(), Some(vec![Reply::Int(2), bulk("2")]));
        connection.command(&["WATCH", "k"]).unwrap();
        assert!(connection.session().is_watching());
        other.command(&["SET", "k", "9"]).unwrap();
        let mut pipeline = connection.pipeline();
        pipeline.add(&["INCR", "k"]).unwrap();
        assert_eq!(pipeline.execute_transaction().unwrap(), None);
        let mut pipeline = connection.pipeline();
        pipeline.add(&["INCR"]).unwrap();
        let Err(Error::Server(error)) = pipeline.execute_transaction() else { panic!() };
        assert!(error.text().contains("wrong number of arguments"), "{error}");
        assert!(!connection.session().in_transaction());
        connection.command(&["MULTI"]).unwrap();
        connection.command(&["SELECT", "4"]).unwrap();
        assert_eq!(connection.session().db(), 0);
        connection.command(&["EXEC"]).unwrap();
        assert_eq!(connection.session().db(), 4);
    }
}

#[test]
fn subscriptions_are_the_same_over_both_protocols() {
    let Some(server) = Server::start(&[]) else { return };
    for protocol in BOTH {
        let mut connection = connect(&server, protocol);
        let mut publisher = connect(&server, protocol);
        let confirmations = connection.command(&["SUBSCRIBE", "a", "b"]).unwrap();
        let one = |name: &str, count| Reply::Array(vec![bulk("subscribe"), bulk(name), Reply::Int(count)]);
        assert_eq!(confirmations, Reply::Array(vec![one("a", 1), one("b", 2)]));
        connection.psubscribe(&["p*"]).unwrap();
        assert_eq!(connection.session().subscriptions(), 3);
        for (channel, text) in [("a", "1"), ("pq", "2"), ("b", "3")] {
            publisher.command(&["PUBLISH", channel, text]).unwrap();
        }
        let mut next = || connection.receive_push(LONG).unwrap().unwrap();
        assert_eq!(next(), Reply::Push(vec![bulk("message"), bulk("a"), bulk("1")]));
        assert_eq!(next(), Reply::Push(vec![bulk("pmessage"), bulk("p*"), bulk("pq"), bulk("2")]));
        assert_eq!(next(), Reply::Push(vec![bulk("message"), bulk("b"), bulk("3")]));
        // A message that stands between a request and its reply.
        publisher.command(&["PUBLISH", "a", "4"]).unwrap();
        connection.send(&["PING"]).unwrap();
        let pong = connection.receive().unwrap();
        let expected = match protocol {
            Protocol::Resp2 => Reply::Array(vec![bulk("pong"), bulk("")]),
            _ => Reply::Simple(b"PONG".to_vec()),
        };
        assert_eq!(pong, expected);
        assert_eq!(
            connection.next_event(Some(Duration::ZERO)).unwrap(),
            Some(Event::Push(Reply::Push(vec![bulk("message"), bulk("a"), bulk("4")])))
        );
        assert_eq!(connection.next_event(Some(Duration::ZERO)).unwrap(), None);
        // All at once: requests whose number of confirmations depends on those before them.
        connection.send(&["SUBSCRIBE", "c"]).unwrap();
        connection.send(&["UNSUBSCRIBE"]).unwrap();
        connection.send(&["UNSUBSCRIBE"]).unwrap();
        connection.send(&["PUNSUBSCRIBE"]).unwrap();
        connection.send(&["PING"]).unwrap();
        let lengths: Vec<usize> = (0..4)
            .map(|_| match connection.receive().unwrap() {
                Reply::Array(confirmations) => confirmations.len(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lengths, [1, 3, 1, 1]);
        assert_eq!(connection.receive().unwrap(), Reply::Simple(b"PONG".to_vec()));
        assert_eq!(connection.session().subscriptions(), 0);
        connection.command(&["RPUSH", "l", "message", "x", "y"]).unwrap();
        assert_eq!(connection.query::<Vec<String>>(&["LRANGE", "l", "0", "-1"]).unwrap()[0], "message");
        connection.command(&["DEL", "l"]).unwrap();
    }
}

#[test]
fn monitor_lines_are_pushes() {
    let Some(server) = Server::start(&[]) else { return };
    for protocol in BOTH {
        let mut connection = connect(&server, protocol);
        let mut other = connect(&server, protocol);
        connection.command(&["MONITOR"]).unwrap();
        other.command(&["SET", "k", "v"]).unwrap();
        let Some(Reply::Push(parts)) = connection.receive_push(LONG).unwrap() else { panic!() };
        let Reply::Bulk(line) = &parts[1] else { panic!() };
        assert_eq!(parts[0], bulk("monitor"));
        assert!(String::from_utf8_lossy(line).ends_with("\"SET\" \"k\" \"v\""));
    }
}

#[test]
fn times_are_kept() {
    let Some(mut server) = Server::start(&["--enable-debug-command", "yes"]) else { return };
    let short = Duration::from_millis(40);
    let mut connection = connect(&server, Protocol::Resp3);
    // A push that does not come is waited for as long as was said, and the connection goes on.
    assert_eq!(connection.receive_push(Some(short)).unwrap(), None);
    // A server that is stopped by a command, for longer than any machine takes to run this: the reply is late.
    connection.set_reply_timeout(Some(short));
    connection.send(&["DEBUG", "SLEEP", "3600"]).unwrap();
    let late = connection.receive();
    assert!(matches!(late, Err(Error::Timeout(Waiting::Reply, limit)) if limit == short), "{late:?}");
    assert!(matches!(connection.command(&["PING"]), Err(Error::Finished)));
    server.stop();
}

#[test]
fn a_blocking_command_has_its_own_time_besides_the_replys() {
    let Some(mut server) = Server::start(&["--enable-debug-command", "yes"]) else { return };
    // A reply that comes: the limit leaves room for a stalled machine, and the block alone is longer than it.
    let (limit, block) = (Duration::from_secs(2), Duration::from_millis(2500));
    let mut connection = connect(&server, Protocol::Resp3);
    let mut patient = connect(&server, Protocol::Resp3);
    connection.set_reply_timeout(Some(limit));
    let started = Instant::now();
    connection.send(&["BLPOP", "none", "2.5"]).unwrap();
    match connection.receive() {
        Ok(reply) => assert_eq!(reply, Reply::Null),
        // The machine has stalled for longer than the limit: at least the sum was waited for.
        Err(Error::Timeout(Waiting::Reply, both)) => assert_eq!(both, limit + block),
        other => panic!("{other:?}"),
    }
    assert!(started.elapsed() >= block);
    // One that does not come: the limit that ended the wait is the sum.
    let short = Duration::from_millis(40);
    let mut connection = connect(&server, Protocol::Resp3);
    connection.set_reply_timeout(Some(short));
    patient.send(&["DEBUG", "SLEEP", "3600"]).unwrap();
    patient.flush().unwrap();
    let started = Instant::now();
    connection.send(&["BLPOP", "none", "0.1"]).unwrap();
    let late = connection.receive();
    let sum = short + Duration::from_millis(100);
    assert!(matches!(late, Err(Error::Timeout(Waiting::Reply, limit)) if limit == sum), "{late:?}");
    assert!(started.elapsed() >= sum);
    server.stop();
}

#[test]
fn commands_that_break_the_order_of_replies_are_refused() {
    let Some(server) = Server::start(&[]) else { return };
    let mut connection = connect(&server, Protocol::Resp2);
    for line in ["CLIENT REPLY OFF", "client reply skip", "SYNC", "PSYNC ? -1", "HELLO 3 PROTO respb"] {
        let args: Vec<&str> = line.split(' ').collect();
        assert!(matches!(connection.command(&args), Err(Error::Config(_))), "{line}");
    }
    connection.command(&["HELLO", "3"]).unwrap();
    assert_eq!(connection.session().protocol(), Protocol::Resp3);
    connection.subscribe(&["a"]).unwrap();
    assert_eq!(connection.query::<String>(&["PING"]).unwrap(), "PONG");
}

#[test]
fn a_connection_comes_back_as_it_was() {
    let Some(mut server) = Server::start(&[]) else { return };
    for protocol in BOTH {
        let mut config = config(&server, protocol);
        config.reconnect = ReconnectPolicy { attempts_max: 40, ..ReconnectPolicy::default() };
        let mut connection = Reconnecting::connect(&config).unwrap();
        connection.command(&["SELECT", "2"]).unwrap();
        connection.command(&["CLIENT", "SETNAME", "me"]).unwrap();
        connection.command(&["SET", "k", "v"]).unwrap();
        let mut killer = connect(&server, protocol);
        let kill_all = |killer: &mut Connection| {
            killer.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).unwrap();
        };
        kill_all(&mut killer);
        assert_eq!(connection.query::<String>(&["GET", "k"]).unwrap(), "v");
        let line: String = connection.query(&["CLIENT", "INFO"]).unwrap();
        assert!(line.contains(" db=2 ") && line.contains(" name=me "), "{line}");
        assert_eq!(connection.losses(), 1);
        // A transaction does not come back.
        connection.command(&["MULTI"]).unwrap();
        kill_all(&mut killer);
        assert!(matches!(connection.command(&["INCR", "k"]), Err(Error::TransactionLost(_))));
        assert_eq!(connection.query::<String>(&["GET", "k"]).unwrap(), "v");
        // Subscriptions do.
        connection.ready().unwrap().subscribe(&["news"]).unwrap();
        killer.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
        assert_eq!(connection.receive_push(Some(Duration::ZERO)).unwrap(), None);
        killer.command(&["PUBLISH", "news", "1"]).unwrap();
        let push = connection.receive_push(LONG).unwrap();
        assert_eq!(push, Some(Reply::Push(vec![bulk("message"), bulk("news"), bulk("1")])));
    }
    // Nobody there any more.
    let mut config = config(&server, Protocol::Resp3);
    config.reconnect = ReconnectPolicy {
        attempts_max: 2,
        pause_first: Duration::from_millis(1),
        ..ReconnectPolicy::default()
    };
    let mut connection = Reconnecting::connect(&config).unwrap();
    server.stop();
    assert!(matches!(connection.command(&["GET", "k"]), Err(Error::Connect { .. })));
}

#[test]
fn a_pool_lends_what_is_in_order() {
    let Some(server) = Server::start(&[]) else { return };
    let bounds =
        PoolConfig { size_max: 2, idle_max: 2, wait: Duration::from_millis(30), ..PoolConfig::default() };
    let pool = Pool::new(config(&server, Protocol::Resp3), bounds);
    let id = {
        let mut lent = pool.get().unwrap();
        let id: i64 = lent.query(&["CLIENT", "ID"]).unwrap();
        let _other = pool.get().unwrap();
        assert!(matches!(pool.get(), Err(Error::Timeout(Waiting::Pool, _))));
        assert_eq!(pool.counts(), (2, 0));
        id
    };
    assert_eq!(pool.counts(), (0, 2));
    // The one given back last is lent first.
    assert_eq!(pool.get().unwrap().query::<i64>(&["CLIENT", "ID"]).unwrap(), id);
    for change in ["MULTI", "SELECT 1", "SUBSCRIBE a", "WATCH k", "CLIENT SETNAME x"] {
        let mut lent = pool.get().unwrap();
        let id: i64 = lent.query(&["CLIENT", "ID"]).unwrap();
        lent.command(&change.split(' ').collect::<Vec<_>>()).unwrap();
        drop(lent);
        assert_ne!(pool.get().unwrap().query::<i64>(&["CLIENT", "ID"]).unwrap(), id, "{change}");
    }
    // Those that the server ended are not lent.
    connect(&server, Protocol::Resp3).command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
    assert_eq!(pool.get().unwrap().query::<String>(&["PING"]).unwrap(), "PONG");
    // Those who wait get what is given back.
    let bounds = PoolConfig { size_max: 2, wait: support::LONG, ..PoolConfig::default() };
    let pool = Pool::new(config(&server, Protocol::Resp3), bounds);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    pool.get().unwrap().command(&["INCR", "n"]).unwrap();
                }
            });
        }
    });
    assert_eq!(pool.get().unwrap().query::<i64>(&["GET", "n"]).unwrap(), 400);
    let old = PoolConfig { idle_time_max: Duration::ZERO, ..bounds };
    let pool = Pool::new(config(&server, Protocol::Resp3), old);
    let id: i64 = pool.get().unwrap().query(&["CLIENT", "ID"]).unwrap();
    assert_ne!(pool.get().unwrap().query::<i64>(&["CLIENT", "ID"]).unwrap(), id);
}
