//! Owns the tests of what comes before and behind a cluster's map: what counts, what waits, the numbers of nodes.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::atlas::SLOTS;
use crate::figures::BoardNodes;
use crate::options::Options;
use crate::testing::{Delivered, Peer, client, engine, request_of};
use crate::upstream::{EXEC, MULTI};
use weft_engine::behind::Nodes;
use weft_engine::script::sha1_hex;

/// The longest that a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn cluster() -> Cluster {
    let options = Arc::new(Options::to("cluster://127.0.0.1:1").expect("it is a URL"));
    let hub = Hub::start(Arc::clone(&options), engine()).expect("there are threads");
    let (checks, scripts, board) = (Arc::default(), Arc::default(), Arc::default());
    let common = Common { options, hub, checks, scripts, board, replicas: None };
    Cluster { nodes_max: 5, ..Cluster::new(common, Atlas::unasked(Vec::new()), 1, Arc::new(|| ())) }
}
fn address(port: u16) -> Address {
    Address::Tcp("127.0.0.1".into(), port)
}
fn map(ports: &[u16]) -> Arc<Map> {
    Arc::new(Map {
        primaries: ports.iter().map(|port| address(*port)).collect(),
        replicas: vec![Vec::new(); ports.len()],
        lowest: (0..ports.len() as u16).collect(),
        owners: (0..SLOTS).map(|slot| (slot % ports.len()) as u16).collect(),
        nodes: Vec::new(),
    })
}

/// One that is kept twice and takes more than half leaves no room for another such, until it is answered.
#[test]
fn a_large_request_goes_by_itself() {
    let (mut cluster, mut delivered) = (cluster(), Delivered::default());
    cluster.orders.kept_bytes_max = 100;
    cluster.adopt(map(&[1_000]));
    let ask = |cluster: &mut Cluster, number: u64, delivered: &mut Delivered| {
        let forward = Forward::of(client(number), Kind::Plain);
        cluster.accept((forward, 0), &[b'x'; 30], delivered);
        (cluster.orders.kept.bytes(), delivered.0.len())
    };
    assert_eq!(ask(&mut cluster, 1, &mut delivered), (60, 0));
    assert_eq!(ask(&mut cluster, 2, &mut delivered), (60, 1));
    assert!(delivered.0[0].contains("keeps too much"), "{:?}", delivered.0);
    cluster.orders.done(client(1).client, 0, Arrived::Null, &mut delivered);
    assert_eq!(ask(&mut cluster, 3, &mut delivered), (60, 2));
}

/// What has come before the map counts once, and is as old as it is when there is one.
#[test]
fn what_waits_for_a_map_goes_when_there_is_one() {
    let (mut cluster, mut delivered) = (cluster(), Delivered::default());
    cluster.orders.kept_bytes_max = 100;
    cluster.accept((Forward::of(client(1), Kind::Plain), 7), &[b'x'; 30], &mut delivered);
    assert_eq!(cluster.orders.kept.bytes(), 60);
    cluster.adopt(map(&[1_000]));
    cluster.orders.now_ms = 900;
    cluster.take_early(&mut delivered);
    assert!(delivered.0.is_empty(), "{:?}", delivered.0);
    assert_eq!(cluster.orders.kept.bytes(), 60);
    assert_eq!(cluster.orders.clients[&client(1).client].orders[0].begun_ms, 7);
}

/// The texts of the scripts that a transaction runs count with it.
#[test]
fn scripts_that_go_before_a_request_count() {
    let (mut cluster, mut delivered) = (cluster(), Delivered::default());
    cluster.adopt(map(&[1_000]));
    let text = format!("return '{}'", "x".repeat(1_000));
    cluster.common.scripts.learn_one(&request_of(&["EVAL", &text, "0"]));
    let digest = sha1_hex(text.as_bytes());
    let digest = std::str::from_utf8(&digest).expect("letters and digits");
    let bytes = [MULTI, &request_of(&["EVALSHA", digest, "0"]), EXEC].concat();
    cluster.accept((Forward::of(client(1), Kind::Exec(1)), 0), &bytes, &mut delivered);
    assert!(cluster.orders.kept.bytes() > 2 * (text.len() + bytes.len()));
}

/// Looks at all again and again, until so many are answered.
fn until_answered(cluster: &mut Cluster, count: usize, delivered: &mut Delivered) {
    let begun = Instant::now();
    while delivered.0.len() < count {
        assert!(begun.elapsed() < PATIENCE, "it is not answered: {:?}", delivered.0);
        cluster.begin_tick(begun.elapsed().as_millis() as u64, delivered);
        let places: Vec<u64> = cluster.sockets().map(|(_, place)| place).collect();
        places.into_iter().for_each(|place| cluster.event(place as u32, false, delivered));
        thread::yield_now();
    }
}

/// A script without keys, or TIME, is any node's: one that is gone is not waited for until it is told of.
#[test]
fn what_names_no_key_is_served_by_a_node_that_is_there() {
    let peer = Peer::start(|_| Some("+served\r\n".into()));
    // Whoever listened there has gone.
    let gone = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let (mut cluster, mut delivered) = (cluster(), Delivered::default());
    cluster.adopt(map(&[gone.expect("there is a port").port(), peer.port]));
    for number in 0..2 {
        cluster.accept(
            (Forward::of(client(number), Kind::Plain), 0),
            b"*1\r\n$4\r\nTIME\r\n",
            &mut delivered,
        );
    }
    until_answered(&mut cluster, 2, &mut delivered);
    assert_eq!(delivered.0, ["+served"; 2]);
}

/// What a client has given up at a node is given up before it has something else there.
#[test]
fn a_watch_that_is_sent_to_the_same_node_again_is_answered() {
    let is_sent_on = AtomicBool::new(false);
    let peer = Peer::start(move |asked| {
        let is_first = asked.starts_with("WATCH") && !is_sent_on.swap(true, Relaxed);
        Some(if is_first { format!("-MOVED 1 :{}\r\n", asked.rsplit(' ').next()?) } else { "+OK\r\n".into() })
    });
    let (mut cluster, mut delivered) = (cluster(), Delivered::default());
    cluster.adopt(map(&[peer.port]));
    // Its key says where it is.
    let bytes = request_of(&["WATCH", &peer.port.to_string()]);
    let keys = Keys { slot: Some(1), only: Some(1) };
    cluster.accept((Forward { keys, ..Forward::of(client(1), Kind::Watch) }, 0), &bytes, &mut delivered);
    until_answered(&mut cluster, 1, &mut delivered);
    assert_eq!(delivered.0, ["+OK"]);
    assert_eq!(cluster.nodes[cluster.primaries[0]].leases.count, 1);
}

/// Addresses of nodes change, and there are not as many numbers as addresses.
#[test]
fn each_node_has_a_number_of_its_own() {
    let mut cluster = cluster();
    let mut leased = None;
    for turn in 1..20 {
        // One stays, two are others.
        let ports = [2 * turn, 1_000, 2 * turn + 1];
        cluster.adopt(map(&ports));
        assert!(cluster.map.is_some(), "there is room for all");
        for (slot, port) in ports.iter().enumerate() {
            let node = cluster.owner(0, Some(slot as u16)).expect("it has an owner");
            assert_eq!(cluster.orders.addresses[node], address(*port), "turn {turn}");
            assert_eq!(cluster.nodes[node].options.to.address, address(*port), "turn {turn}");
        }
        assert!(cluster.common.board.len() <= 5, "what is gone is not shown");
        // A client has a connection to one.
        if turn == 3 {
            let node = cluster.primaries[0];
            let owner = Client { leased: Some((node, None)), ..Client::default() };
            cluster.orders.clients.insert(client(7).client, owner);
            leased = Some((node, address(2 * turn)));
        }
        if let Some((node, address)) = &leased {
            assert_eq!(cluster.orders.addresses[*node], *address, "it is another one in turn {turn}");
        }
        if turn == 6 {
            cluster.orders.clients.clear();
            leased = None;
        }
    }
}

/// What has changed its address is another node, and is not shown beside the new one for ever.
#[test]
fn nodes_that_are_gone_are_forgotten() {
    let mut cluster = Cluster { nodes_max: SERVERS_MAX, ..cluster() };
    for turn in 1..20 {
        let ports = [2 * turn, 1_000, 2 * turn + 1];
        let nodes = [&ports[..], &[2_000]].concat().iter().map(|port| address(*port)).collect();
        cluster.adopt(Arc::new(Map { nodes, ..(*map(&ports)).clone() }));
        // A replica that nothing is asked of is one of the nodes.
        let replica = cluster.node(&address(2_000), true).expect("there is room");
        assert_eq!(cluster.orders.addresses[replica], address(2_000));
        assert!(turn > 1 || replica == cluster.nodes.len() - 1);
        assert!(cluster.common.board.len() <= 5, "{} are shown in turn {turn}", cluster.common.board.len());
    }
    assert_eq!(cluster.known(&address(2_000), true), Some(4));
}

/// The first seed keeps its number, since subscriptions go by it; whether it is shown is another matter.
#[test]
fn a_seed_that_is_no_node_is_not_shown() {
    let (mut cluster, mut delivered) = (cluster(), Delivered::default());
    let shown = |cluster: &Cluster| -> Vec<String> {
        let nodes = BoardNodes(Arc::clone(&cluster.common.board)).nodes();
        nodes.into_iter().map(|node| node.address).collect()
    };
    assert_eq!(shown(&cluster), [address(1).to_string()], "it is all that there is");
    for (turn, ports) in [(1, [1_000, 1_001]), (2, [1_000, 1]), (3, [1_001, 1_002])] {
        cluster.adopt(map(&ports));
        cluster.begin_tick(turn * SLOW_LOOK_MS, &mut delivered);
        let mut all = shown(&cluster);
        all.sort();
        let mut ports = ports.map(|port| address(port).to_string());
        ports.sort();
        assert_eq!(all, ports);
        assert_eq!(cluster.orders.addresses[0], address(1));
    }
}

/// It is there, and nobody has anything to do with it.
#[test]
fn a_node_that_has_left_the_cluster_is_left() {
    let peer = Peer::start(|_| Some("+served\r\n".into()));
    let (mut cluster, mut delivered) = (cluster(), Delivered::default());
    cluster.adopt(map(&[peer.port]));
    cluster.accept((Forward::of(client(1), Kind::Plain), 0), b"*1\r\n$4\r\nTIME\r\n", &mut delivered);
    until_answered(&mut cluster, 1, &mut delivered);
    let begun_ms = 5_000;
    cluster.begin_tick(begun_ms, &mut delivered);
    cluster.adopt(map(&[1_000]));
    // Meanwhile it is asked whether it is there, and answers.
    for (passed_ms, is_connected) in [(STRANGE_MS - 1, true), (STRANGE_MS + SLOW_LOOK_MS, false)] {
        let served = Instant::now();
        loop {
            cluster.begin_tick(begun_ms + passed_ms, &mut delivered);
            let places: Vec<u64> = cluster.sockets().map(|(_, place)| place).collect();
            places.iter().for_each(|place| cluster.event(*place as u32, false, &mut delivered));
            if places.is_empty() != is_connected || served.elapsed() > PATIENCE {
                break;
            }
            cluster.looked_ms = 0;
        }
        assert_eq!(cluster.sockets().count() > 0, is_connected, "{passed_ms}");
        assert_eq!(cluster.common.board.len(), 1 + usize::from(is_connected));
    }
}
