//! Owns: Weft's engine on its full way, to compare the fast ways with: every request is a batch of its own, and the
//! latency monitor is on, which has each command timed and so keeps it out of whatever is faster. No threshold is ever
//! reached, so that nothing else follows from it.

use std::collections::{BTreeMap, VecDeque};

use weft_engine::reply::Protocol;
use weft_protocol::Reply;

use crate::ours::SHARDS;
use crate::peer::Peer;
use crate::support::Bench;

/// So that no command is late: 11 days.
const FULL_WAY: &str = "CONFIG SET latency-monitor-threshold 1000000000";

/// A client: its number on the bench, what it was answered and pushed.
struct Client {
    number: u32,
    replies: VecDeque<Reply>,
    pushes: Vec<Reply>,
}

/// A second engine.
pub(crate) struct Twin {
    bench: Bench,
    admin: u32,
    clients: BTreeMap<usize, Client>,
}

impl Twin {
    pub(crate) fn new() -> Self {
        let mut bench = Bench::team_of_shards(SHARDS, 1).remove(0);
        bench.allow_debug();
        let admin = bench.connect(Protocol::Resp2);
        assert_eq!(bench.text(admin, FULL_WAY), "OK");
        Self { bench, admin, clients: BTreeMap::new() }
    }

    /// Everybody's replies and pushes, in their order.
    fn collect(&mut self) {
        for client in self.clients.values_mut() {
            for reply in self.bench.take(client.number) {
                match reply {
                    Reply::Push(_) => client.pushes.push(reply),
                    _ => client.replies.push_back(reply),
                }
            }
        }
    }
}

impl Peer for Twin {
    fn kind(&self) -> &'static str {
        "weft"
    }
    fn has(&mut self, _: &str) -> bool {
        true
    }
    fn admin(&mut self, words: &[&[u8]]) -> Reply {
        self.bench.run_args(self.admin, words).remove(0)
    }
    fn now_ms(&self) -> Option<u64> {
        None
    }
    fn pass(&mut self, ms: u64) {
        self.bench.pass(ms);
    }
    fn connect(&mut self, client: usize, protocol: Protocol) {
        let number = self.bench.connect(protocol);
        self.clients.insert(client, Client { number, replies: VecDeque::new(), pushes: Vec::new() });
    }
    fn greet(&mut self, client: usize, words: &[&[u8]]) {
        let number = self.clients[&client].number;
        self.bench.run_args(number, words);
    }
    fn send(&mut self, client: usize, commands: &[Vec<Vec<u8>>]) {
        let number = self.clients[&client].number;
        for words in commands {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            self.bench.feed(number, &words);
            self.bench.run_fed();
        }
        self.collect();
    }
    fn answer(&mut self, client: usize) -> Option<Reply> {
        self.clients.get_mut(&client).expect("it has connected").replies.pop_front()
    }
    fn answer_now(&mut self, client: usize) -> Option<Reply> {
        self.answer(client)
    }
    fn is_waiting(&mut self, client: usize) -> bool {
        self.bench.is_waiting(self.clients[&client].number)
    }
    fn heard(&mut self, client: usize) -> Vec<Reply> {
        self.clients.get_mut(&client).map_or(Vec::new(), |client| {
            // Over RESP2 what was published comes as an array.
            client.pushes.drain(..).chain(client.replies.drain(..)).collect()
        })
    }
    fn end(&mut self) {
        for client in std::mem::take(&mut self.clients).into_values() {
            self.bench.disconnect(client.number);
        }
        self.bench.maintain();
    }
}
