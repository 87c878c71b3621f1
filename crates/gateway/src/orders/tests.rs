//! Owns the tests of what waits, what goes again, and in which order replies are handed out.

use super::*;
use crate::answer::Whose;
use crate::testing::{Delivered, client};
use weft_engine::forward::BlockTime;

const TO: Recipient = client(7);

fn order(slot: u16, key: u64) -> Order {
    let keys = Keys { slot: Some(slot), only: Some(key) };
    let forward = Forward { resp2: true, keys, ..Forward::of(TO, Kind::Plain) };
    Order::new(&forward, b"*1\r\n$4\r\nPING\r\n", 0)
}

/// One client's requests, sent to these nodes.
fn sent(all: &[(u16, u64, usize)]) -> Orders {
    let mut orders = Orders::new(Arc::default(), 1_000);
    orders.addresses = (0..3).map(|node| Address::Tcp(format!("node{node}"), 1)).collect();
    let mut client = Client::default();
    for ((slot, key, node), stamp) in all.iter().zip(1..) {
        client.orders.push_back(order(*slot, *key));
        if let Some(order) = client.orders.back_mut() {
            order.send(*node, stamp, 0);
        }
    }
    orders.clients.insert(TO.client, client);
    orders
}
fn reply(orders: &mut Orders, node: usize, bytes: &str, delivered: &mut Delivered) {
    // A node answers in the order of sending.
    let of_node = orders.clients[&TO.client].orders.iter().filter(|order| order.is_sent_to(node));
    let stamp = of_node.map(|order| order.stamp).min().expect("something is there");
    let answer = Answer::Reply { bytes: bytes.as_bytes(), resp2: true };
    orders.heard(node, Whose { to: TO, stamp }, answer, delivered);
}

#[test]
fn replies_of_several_nodes_come_in_order() {
    let (mut orders, mut delivered) = (sent(&[(1, 1, 0), (2, 2, 1), (1, 3, 0)]), Delivered::default());
    reply(&mut orders, 1, "+second\r\n", &mut delivered);
    assert!(delivered.0.is_empty());
    reply(&mut orders, 0, "+first\r\n", &mut delivered);
    reply(&mut orders, 0, "+third\r\n", &mut delivered);
    assert_eq!(delivered.0, ["+first", "+second", "+third"]);
    assert!(orders.clients.is_empty());
}

/// A node's replies may be large, and another node silent.
#[test]
fn a_reply_that_waits_counts_and_is_given_up_where_there_is_no_room() {
    for (max, second) in [(11, "$5\r\nhello"), (10, "not kept")] {
        let (mut orders, mut delivered) = (sent(&[(1, 1, 0), (2, 2, 1)]), Delivered::default());
        orders.kept_bytes_max = max;
        reply(&mut orders, 1, "$5\r\nhello\r\n", &mut delivered);
        let held = if max == 11 { 11 } else { 0 };
        assert_eq!((orders.kept.bytes(), orders.clients[&TO.client].held_bytes), (held, held));
        assert_eq!(delivered.1, held);
        reply(&mut orders, 0, "+first, which waits for none\r\n", &mut delivered);
        assert_eq!(delivered.0[0], "+first, which waits for none");
        assert!(delivered.0[1].contains(second), "{:?}", delivered.0);
        assert_eq!((orders.kept.bytes(), delivered.1), (0, 0));
    }
}

/// How long it blocked elsewhere is no time in which it was refused.
#[test]
fn what_has_blocked_is_not_given_up_when_it_is_moved() {
    for (sent_ms, is_over) in [(0, false), (59_500, true)] {
        let (mut orders, mut delivered) = (sent(&[(1, 1, 0)]), Delivered::default());
        orders.now_ms = 60_000;
        let client = orders.clients.get_mut(&TO.client).expect("it has a request");
        (client.orders[0].what, client.orders[0].sent_ms) = (What::Blocks(BlockTime::default()), sent_ms);
        reply(&mut orders, 0, "-MOVED 1 :9\r\n", &mut delivered);
        assert_eq!(delivered.0.len(), usize::from(is_over), "{:?}", delivered.0);
    }
}

/// As Redis has it; Valkey says where the slot is. Whoever else ends a wait is passed on.
#[test]
fn what_blocks_at_a_node_that_becomes_a_copy_goes_again() {
    let forced =
        "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";
    for (says, what, goes_again) in [
        (forced, What::Blocks(BlockTime::default()), true),
        ("-UNBLOCKED client unblocked via CLIENT UNBLOCK", What::Blocks(BlockTime::default()), false),
        (forced, What::Plain, false),
    ] {
        let (mut orders, mut delivered) = (sent(&[(1, 1, 0)]), Delivered::default());
        orders.clients.get_mut(&TO.client).expect("it has a request").orders[0].what = what;
        reply(&mut orders, 0, &format!("{says}\r\n"), &mut delivered);
        assert_eq!(delivered.0.is_empty(), goes_again, "{says}: {:?}", delivered.0);
        assert_eq!(orders.wants_map, goes_again);
    }
}

/// However long it would block: without a node, or with one that is not reached, it has not begun.
#[test]
fn what_no_node_takes_is_given_up_though_it_blocks() {
    for was_sent in [false, true] {
        let (mut orders, mut delivered) = (sent(&[(1, 1, 0)]), Delivered::default());
        orders.now_ms = 60_000;
        let client = orders.clients.get_mut(&TO.client).expect("it has a request");
        client.orders[0].what = What::Blocks(BlockTime::default());
        if !was_sent {
            client.orders[0].state = State::Waiting;
        }
        let reason = Arrived::Error(unreachable("nobody is there"));
        orders.again(TO.client, 0, Redirect::Later, reason, &mut delivered);
        assert_eq!(delivered.0.len(), 1, "{was_sent}");
    }
}

#[test]
fn an_answer_that_nothing_waits_for_is_nobodys() {
    let (mut orders, mut delivered) = (sent(&[(1, 1, 0)]), Delivered::default());
    let answer = Answer::Reply { bytes: b"+another\r\n", resp2: true };
    orders.heard(0, Whose { to: TO, stamp: 99 }, answer, &mut delivered);
    assert!(delivered.0.is_empty());
    reply(&mut orders, 0, "+its own\r\n", &mut delivered);
    assert_eq!(delivered.0, ["+its own"]);
}

/// What is held back may be about keys that have changed meanwhile.
#[test]
fn who_keeps_what_he_reads_is_told_when_he_has_it() {
    let (mut orders, mut delivered) = (sent(&[(1, 1, 0), (2, 2, 1)]), Delivered::default());
    if let Some(client) = orders.clients.get_mut(&TO.client) {
        client.orders[1].tracks = Some([b"k"[..].into()].into());
    }
    reply(&mut orders, 1, "+second\r\n", &mut delivered);
    assert!(delivered.0.is_empty());
    reply(&mut orders, 0, "+first\r\n", &mut delivered);
    assert_eq!(delivered.0, ["+first", "+second", "held 1"]);
}

#[test]
fn what_is_sent_on_waits_for_those_behind_it() {
    let (mut orders, mut delivered) = (sent(&[(1, 1, 0), (1, 1, 0), (1, 2, 0)]), Delivered::default());
    reply(&mut orders, 0, "-MOVED 1 :9\r\n", &mut delivered);
    let client = &orders.clients[&TO.client];
    assert_eq!(client.orders[0].next, Some((Address::Tcp("node0".into(), 9), false)));
    assert!(!client.may_go(0, 1), "the second is about the same key, and under way");
    reply(&mut orders, 0, "-ASK 1 node1:1\r\n", &mut delivered);
    let client = &orders.clients[&TO.client];
    assert_eq!(client.orders[1].next, Some((Address::Tcp("node1".into(), 1), true)));
    assert!(client.may_go(0, 1), "the third is about another key");
    assert!(!client.may_go(1, 1), "the first has not gone");
    assert!(delivered.0.is_empty());
}

#[test]
fn what_was_overtaken_does_not_go_again() {
    let (mut orders, mut delivered) = (sent(&[(1, 1, 0), (1, 1, 0)]), Delivered::default());
    reply(&mut orders, 0, "-CLUSTERDOWN no\r\n", &mut delivered);
    reply(&mut orders, 0, ":1\r\n", &mut delivered);
    assert_eq!(delivered.0, ["-CLUSTERDOWN no", ":1"]);
}

#[test]
fn nothing_goes_again_for_ever() {
    let (mut orders, mut delivered) = (sent(&[(1, 1, 0)]), Delivered::default());
    orders.now_ms = 1_000;
    reply(&mut orders, 0, "-TRYAGAIN no\r\n", &mut delivered);
    assert_eq!(delivered.0, ["-TRYAGAIN no"]);
}

/// It may say what a node says, and has run.
#[test]
fn what_a_script_says_is_no_nodes_word() {
    for word in ["MOVED 1 :9", "ASK 1 :9", "TRYAGAIN", "LOADING", "NOSCRIPT", "OOM", "NOPERM"] {
        for watches in [false, true] {
            let (mut orders, mut delivered) = (sent(&[(1, 1, 0)]), Delivered::default());
            let order = orders.clients.get_mut(&TO.client).map(|client| &mut client.orders[0]).unwrap();
            order.bytes = b"*3\r\n$4\r\nEVAL\r\n$1\r\nx\r\n$1\r\n0\r\n".as_slice().into();
            let array = if watches { "" } else { "*1\r\n" };
            if !watches {
                order.wrap(&Scripts::default());
            }
            reply(&mut orders, 0, &format!("{array}-{word}\r\n"), &mut delivered);
            assert_eq!(delivered.0, [format!("-{word}")]);
        }
    }
}

#[test]
fn a_script_goes_again_where_the_node_has_not_run_it() {
    for word in ["-MOVED 1 :9\r\n", "-EXECABORT Transaction discarded because of: OOM no\r\n"] {
        let (mut orders, mut delivered) = (sent(&[(1, 1, 0)]), Delivered::default());
        let order = orders.clients.get_mut(&TO.client).map(|client| &mut client.orders[0]).unwrap();
        let eval = b"*3\r\n$4\r\nEVAL\r\n$1\r\nx\r\n$1\r\n0\r\n".as_slice();
        order.bytes = eval.into();
        order.wrap(&Scripts::default());
        reply(&mut orders, 0, word, &mut delivered);
        let order = &orders.clients[&TO.client].orders[0];
        assert!(order.is_waiting() && delivered.0.is_empty(), "{word}");
        assert_eq!(*order.bytes == *eval, word.contains("OOM"), "without memory nothing is queued");
    }
}

/// Clients that know clusters would go to the node themselves.
#[test]
fn nobody_is_told_where_a_slot_has_moved_to() {
    for late in [true, false] {
        let (mut orders, mut delivered) = (sent(&[(1, 1, 0), (1, 1, 0)]), Delivered::default());
        orders.now_ms = if late { 1_000 } else { 0 };
        reply(&mut orders, 0, "-MOVED 1 127.0.0.1:9\r\n", &mut delivered);
        // The second one has run: the first must not run behind it.
        reply(&mut orders, 0, ":1\r\n", &mut delivered);
        assert!(delivered.0[0].contains("cannot be reached"), "{:?}", delivered.0);
        assert_eq!(delivered.0[1], ":1");
    }
}

/// It is told so where it would go again: elsewhere, since its slot has moved or its node is not to be had.
#[test]
fn what_was_ended_while_it_was_at_a_node_does_not_go_again() {
    let not_run = || Answer::NotRun(unreachable("it is gone"));
    let moved = || Answer::Reply { bytes: b"-MOVED 1 node1:1\r\n", resp2: true };
    for (answer, is_ended) in [(moved(), true), (not_run(), true), (moved(), false), (not_run(), false)] {
        let (mut orders, mut delivered) = (sent(&[]), Delivered::default());
        let kind = Kind::Blocks(BlockTime { argument: 2, ms: 0, in_seconds: true });
        let mut order = Order::new(&Forward { resp2: true, ..Forward::of(TO, kind) }, b"", 0);
        order.send(0, 1, 0);
        orders.clients.entry(TO.client).or_default().orders.push_back(order);
        if is_ended {
            orders.unblock(TO, End::Cancel, &mut delivered);
        }
        assert!(delivered.0.is_empty(), "its node may serve it yet");
        orders.heard(0, Whose { to: TO, stamp: 1 }, answer, &mut delivered);
        assert_eq!((orders.ready.is_empty(), delivered.0.len()), (is_ended, usize::from(is_ended)));
    }
}
