//! What the engine promises whatever the command: order, transactions, blocking, subscriptions, on every wire.

mod support;

use support::{ALL, Bench, show};
use weft_engine::blocking::End;
use weft_engine::reply::Protocol;

#[test]
fn set_and_get() {
    for protocol in ALL {
        let (mut bench, a) = Bench::with(protocol);
        assert_eq!(bench.text(a, "GET k"), "nil");
        assert_eq!(bench.text(a, "SET k v"), "OK");
        assert_eq!(bench.text(a, "get k"), "v");
        assert_eq!(bench.text(a, "GET"), "-ERR wrong number of arguments for 'get' command");
        assert_eq!(
            bench.text(a, "NOPE a b"),
            "-ERR unknown command 'NOPE', with args beginning with: 'a' 'b' "
        );
        assert_eq!(bench.text(a, "SELECT 1"), "OK");
        assert_eq!(bench.text(a, "GET k"), "nil");
    }
}

#[test]
fn a_transaction_runs_as_one() {
    for protocol in ALL {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        assert_eq!(bench.text(a, "WATCH k"), "OK");
        assert_eq!(bench.text(a, "MULTI"), "OK");
        assert_eq!(bench.text(a, "SET k 1"), "QUEUED");
        assert_eq!(bench.text(a, "LPUSH k 1"), "QUEUED");
        assert_eq!(bench.text(a, "GET k"), "QUEUED");
        assert_eq!(
            bench.text(a, "EXEC"),
            "[OK -WRONGTYPE Operation against a key holding the wrong kind of value 1]"
        );
        bench.text(a, "WATCH k");
        assert_eq!(bench.text(b, "SET k 2"), "OK");
        bench.text(a, "MULTI");
        bench.text(a, "SET k 3");
        assert_eq!(bench.text(a, "EXEC"), "nil");
        bench.text(a, "MULTI");
        assert_eq!(bench.text(a, "SET k"), "-ERR wrong number of arguments for 'set' command");
        assert_eq!(bench.text(a, "EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
        assert_eq!(bench.text(a, "EXEC"), "-ERR EXEC without MULTI");
        assert_eq!(bench.text(b, "GET k"), "2");
        bench.text(a, "MULTI");
        assert_eq!(bench.text(a, "DISCARD"), "OK");
        assert_eq!(bench.text(a, "DISCARD"), "-ERR DISCARD without MULTI");
    }
}

#[test]
fn blocked_clients_are_served_in_order() {
    for protocol in ALL {
        let mut bench = Bench::new();
        let clients: Vec<u32> = (0..3).map(|_| bench.connect(protocol)).collect();
        let writer = bench.connect(protocol);
        assert!(bench.run(clients[0], "BLPOP other list 0").is_empty());
        assert!(bench.run(clients[1], "BLPOP list 0").is_empty());
        assert!(bench.run(clients[2], "BRPOP list 0").is_empty());
        assert_eq!(bench.text(writer, "RPUSH list a b c d"), "4");
        let got: Vec<String> = clients.iter().map(|&client| show(&bench.take(client)[0])).collect();
        assert_eq!(got, ["[list a]", "[list b]", "[list d]"], "{protocol:?}");
        assert_eq!(bench.text(writer, "LLEN list"), "1");
        assert!(clients.iter().all(|&client| !bench.is_waiting(client)));
        // A transaction hands over once, when it is over.
        assert!(bench.run(clients[0], "BLPOP t 0").is_empty());
        bench.run(writer, "MULTI");
        bench.run(writer, "RPUSH t 1");
        bench.run(writer, "LPUSH t 0");
        assert_eq!(bench.text(writer, "EXEC"), "[1 2]");
        assert_eq!(show(&bench.take(clients[0])[0]), "[t 0]");
    }
}

#[test]
fn a_wait_ends_once() {
    for protocol in ALL {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        assert!(bench.run(a, "BLPOP k 1").is_empty());
        assert_eq!(show(&bench.end_wait(a, End::Timeout)[0]), "nil");
        assert_eq!(bench.text(b, "LPUSH k 1"), "1");
        assert!(bench.take(a).is_empty());
        assert_eq!(bench.text(a, "BLPOP k 1"), "[k 1]");
        assert!(bench.run(a, "BLPOP k 1").is_empty());
        assert!(show(&bench.end_wait(a, End::Cancel)[0]).starts_with("-CANCELLED"));
        assert!(bench.run(a, "BLPOP k 1").is_empty());
        bench.disconnect(a);
        assert_eq!(bench.text(b, "LPUSH k 1"), "1");
        assert_eq!(bench.text(b, "LLEN k"), "1");
        assert!(bench.engine.waits.is_empty());
    }
}

/// Of those who wait for one key each gets what it is for, in the order in which they came, whatever others wait for.
#[test]
fn who_waits_for_a_list_is_not_in_the_way_of_who_waits_for_a_sorted_set() {
    let mut bench = Bench::new();
    let clients: Vec<u32> = (0..5).map(|_| bench.connect(Protocol::Resp3)).collect();
    let writer = bench.connect(Protocol::Resp3);
    for (&client, command) in clients.iter().zip([
        "BLPOP k 0",
        "BZPOPMIN k 0",
        "BRPOP k 0",
        "BZPOPMAX k 0",
        "XREAD BLOCK 0 STREAMS k $",
    ]) {
        assert!(bench.run(client, command).is_empty());
    }
    assert_eq!(bench.text(writer, "ZADD k 1 a 2 b 3 c"), "3");
    assert!(show(&bench.take(clients[1])[0]).starts_with("[k a "));
    assert!(show(&bench.take(clients[3])[0]).starts_with("[k c "));
    bench.text(writer, "DEL k");
    assert_eq!(bench.text(writer, "RPUSH k x y z"), "3");
    assert_eq!(show(&bench.take(clients[0])[0]), "[k x]");
    assert_eq!(show(&bench.take(clients[2])[0]), "[k z]");
    bench.text(writer, "DEL k");
    assert!(bench.is_waiting(clients[4]));
    bench.text(writer, "XADD k 1-1 f v");
    assert!(show(&bench.take(clients[4])[0]).contains("1-1"));
    assert!(bench.engine.waits.is_empty());
}

/// Somebody has ended the wait of a client, which goes away before it hears of that.
#[test]
fn who_goes_away_unblocked_leaves_no_wait() {
    let (mut bench, [waiter, other]) = Bench::with_clients([Protocol::Resp3; 2]);
    let id = bench.session(waiter).id();
    assert!(bench.run(waiter, "BLPOP k 0").is_empty());
    bench.execute(other, &[b"CLIENT", b"UNBLOCK", id.to_string().as_bytes()]);
    bench.disconnect(waiter);
    assert!(bench.engine.waits.is_empty());
    let mut worker = bench.engine.keyspace.worker().expect("a place for one more");
    let key = bench.engine.keyspace.key(b"k");
    assert!(worker.enter().lock(&key).waiters().is_empty());
}

#[test]
fn subscribers_get_messages_behind_their_replies() {
    for protocol in ALL {
        let (mut bench, [a, b]) = Bench::with_clients([protocol; 2]);
        let replies = bench.run(a, "SUBSCRIBE x y");
        let shown: Vec<String> = replies.iter().map(show).collect();
        match protocol {
            Protocol::Resp2 => assert_eq!(shown, ["[subscribe x 1]", "[subscribe y 2]"]),
            Protocol::Resp3 => assert_eq!(shown, [">[subscribe x 1]", ">[subscribe y 2]"]),
            Protocol::Respb | Protocol::Json(_) | Protocol::Captured => {
                assert_eq!(shown, ["[[subscribe x 1] [subscribe y 2]]"]);
            }
        }
        bench.run(a, "PSUBSCRIBE x*");
        assert_eq!(bench.text(b, "PUBLISH x hello"), "2");
        let got: Vec<String> =
            bench.take(a).iter().map(|reply| show(reply).trim_start_matches('>').to_string()).collect();
        assert_eq!(got, ["[message x hello]", "[pmessage x* x hello]"]);
        assert_eq!(bench.text(b, "PUBSUB NUMSUB x z"), "[x 1 z 0]");
        let refused = bench.run(a, "GET k");
        assert_eq!(show(&refused[0]).starts_with("-ERR Can't execute 'get'"), protocol == Protocol::Resp2);
        bench.run(a, "UNSUBSCRIBE");
        bench.run(a, "PUNSUBSCRIBE x*");
        assert_eq!(bench.text(b, "PUBLISH x hello"), "0");
        assert_eq!(bench.text(a, "GET k"), "nil");
    }
}
