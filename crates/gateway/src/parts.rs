//! Owns: the parts of one request that several slots or nodes answer: which is to go next, whose reply is next, whether
//! all are answered. Does not own: the parts themselves (`crate::orders`), their one reply (`crate::merge`).
//!
//! Parts have slots of their own, or nodes of their own, and nothing else of their client is under way
//! (`Session::joins`): none waits for another. There may be as many as slots, so no step looks at all of them.

use std::collections::{BTreeSet, HashMap};

use weft_engine::forward::Merge;

/// Parts of one client that are sent before others have their turn.
pub(crate) const PARTS_A_TURN: usize = 256;

/// Where the parts of a request are, by their numbers.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) how: Merge,
    /// Some may have gone. Those of a request that writes wait until all of their nodes are there.
    pub(crate) has_begun: bool,
    /// So many are not answered.
    left: usize,
    /// Those that are to be sent, and not before which time.
    waiting: BTreeSet<(u64, usize)>,
    /// Those that are at a node, by the numbers that they were given when they were sent.
    sent: HashMap<u64, usize>,
}

impl Parts {
    /// So many, which may go at once.
    pub(crate) fn new(how: Merge, reads: bool, count: usize, now_ms: u64) -> Self {
        let waiting = (0..count).map(|at| (now_ms, at)).collect();
        let has_begun = !writes(how, reads);
        Self { how, has_begun, left: count, waiting, sent: HashMap::new() }
    }
    /// Takes the next one that is to be sent.
    pub(crate) fn next(&mut self, now_ms: u64) -> Option<usize> {
        let first = *self.waiting.first().filter(|(at_ms, _)| *at_ms <= now_ms)?;
        self.waiting.remove(&first);
        Some(first.1)
    }
    /// It is to be sent, but not before this time.
    pub(crate) fn wait(&mut self, at: usize, at_ms: u64) {
        self.waiting.insert((at_ms, at));
    }
    pub(crate) fn send(&mut self, at: usize, stamp: u64) {
        self.sent.insert(stamp, at);
    }
    /// Takes the one that was sent with this number.
    pub(crate) fn stamped(&mut self, stamp: u64) -> Option<usize> {
        self.sent.remove(&stamp)
    }
    /// One is answered. Says whether all are.
    pub(crate) const fn done(&mut self) -> bool {
        self.left -= 1;
        self.left == 0
    }
}

/// Whether a request whose replies are merged so leaves something behind at the nodes that run it.
pub(crate) const fn writes(how: Merge, reads: bool) -> bool {
    !reads && matches!(how, Merge::Sum | Merge::Same)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustix::time::{ClockId, clock_gettime};
    use weft_client::Address;
    use weft_engine::forward::{Forward, Kind};
    use weft_engine::mailbox::Recipient;

    use super::*;
    use crate::answer::{Answer, Front, Whose};
    use crate::heard::Seen;
    use crate::orders::{Client, Order, Orders};
    use crate::testing::{Delivered, client};

    const TO: Recipient = client(7);
    const NODES: usize = 3;
    /// Of so many parts one is refused at first, in each of three ways.
    const REFUSED: usize = 8;
    const SIZES: [usize; 2] = [1_024, 16_384];
    /// How much longer sixteen times as many may take: room for caches that hold the fewer ones only. Were each looked
    /// at for each, it would be 256 times.
    const RATIO_MAX: f64 = 40.0;
    const TRIES: usize = 5;
    const ATTEMPTS: usize = 4;

    fn forward(how: Merge) -> Forward {
        Forward { reads: true, ..Forward::of(TO, Kind::Scatter(how, Vec::new())) }
    }

    /// An MGET of so many keys, each of a slot of its own.
    fn parted(count: usize) -> Orders {
        let mut orders = Orders::new(Arc::default(), 60_000);
        orders.addresses = (0..NODES).map(|node| Address::Tcp(format!("node{node}"), 1)).collect();
        let mut client = Client::default();
        // The last key's part is the first one.
        for at in 0..count {
            let place = (count - 1 - at) as u32;
            let bytes = b"*2\r\n$4\r\nMGET\r\n$1\r\nk\r\n";
            client.orders.push_back(Order::part(&forward(Merge::Places), bytes, at as u16, vec![place], 0));
        }
        client.parts = Some(Parts::new(Merge::Places, true, count, 0));
        orders.clients.insert(TO.client, client);
        orders
    }

    /// Sends parts and answers them in the order of sending, each with its own number, one in some after a refusal.
    fn answered(orders: &mut Orders, count: usize, delivered: &mut Delivered) {
        let mut refused = vec![false; count];
        while orders.clients.contains_key(&TO.client) {
            orders.now_ms += 300;
            let mut sent: Vec<Vec<(usize, u64)>> = vec![Vec::new(); NODES];
            while let Some(at) = orders.next_part(TO.client) {
                orders.stamp += 1;
                let node = at % NODES;
                let client = orders.clients.get_mut(&TO.client).expect("it is not answered");
                assert!(client.may_go(at, node));
                let _ = client.send(at, node, (orders.stamp, orders.now_ms));
                sent[node].push((at, orders.stamp));
            }
            assert!(sent.iter().any(|sent| !sent.is_empty()), "nothing goes on");
            for (node, all) in sent.into_iter().enumerate() {
                for (at, stamp) in all {
                    let says = match at % REFUSED {
                        _ if std::mem::replace(&mut refused[at], true) => None,
                        1 => Some(format!("-MOVED {at} node1:1\r\n")),
                        2 => Some(format!("-ASK {at} node1:1\r\n")),
                        3 => Some("-TRYAGAIN not now\r\n".into()),
                        _ => None,
                    };
                    let reply = says.unwrap_or_else(|| format!("*1\r\n:{at}\r\n"));
                    let answer = Answer::Reply { bytes: reply.as_bytes(), resp2: false };
                    let mut seen = Seen { orders: &mut *orders, node, front: &mut *delivered };
                    seen.answer(Whose { to: TO, stamp }, answer);
                }
            }
        }
    }

    #[test]
    fn each_part_has_its_own_reply() {
        let (mut orders, mut delivered) = (parted(100), Delivered::default());
        answered(&mut orders, 100, &mut delivered);
        let all: String = (0..100).rev().map(|at| format!(":{at}\r\n")).collect();
        assert_eq!(delivered.0, [format!("*100\r\n{all}").trim_end()]);
    }

    #[test]
    fn parts_are_told_apart_by_their_numbers() {
        let mut parts = Parts::new(Merge::Sum, true, 3, 5);
        assert_eq!(parts.next(4), None);
        for at in 0..3 {
            assert_eq!(parts.next(5), Some(at));
            parts.send(at, 10 + at as u64);
        }
        assert_eq!([12, 10, 12, 9].map(|stamp| parts.stamped(stamp)), [Some(2), Some(0), None, None]);
        parts.wait(2, 7);
        assert_eq!([parts.next(6), parts.next(7), parts.next(8)], [None, Some(2), None]);
        assert_eq!([parts.done(), parts.done(), parts.done()], [false, false, true]);
    }

    fn cost_ns(count: usize) -> u64 {
        let cpu_ns = || {
            let now = clock_gettime(ClockId::ThreadCPUTime);
            now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
        };
        let tries = (0..TRIES).map(|_| {
            let (mut orders, mut delivered) = (parted(count), Delivered::default());
            let begin = cpu_ns();
            answered(&mut orders, count, &mut delivered);
            let cost = cpu_ns() - begin;
            assert_eq!(delivered.0.len(), 1);
            assert!(orders.later.len() < 100, "{} wishes to go on", orders.later.len());
            cost
        });
        tries.min().expect("there is a try")
    }

    #[test]
    fn many_parts_cost_in_proportion() {
        let mut ratio = f64::MAX;
        for _ in 0..ATTEMPTS {
            let [few, many] = SIZES.map(cost_ns);
            ratio = ratio.min(many as f64 / few as f64);
            eprintln!("{} parts {few} ns, {} parts {many} ns", SIZES[0], SIZES[1]);
            if ratio <= RATIO_MAX {
                return;
            }
        }
        panic!("{} times as many parts cost {ratio:.0} times as much", SIZES[1] / SIZES[0]);
    }
}
