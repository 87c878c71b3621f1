//! Runs batches of one kind of request and prints how many: the program whose instructions `tests/instructions.rs`
//! counts under callgrind.
//!
//! `request_cost WIRE-COMMAND REPEATS` decodes and runs REPEATS × 16 batches of 64 requests for one client, as a worker
//! does with what one receive has brought. The cost of a request is the difference between two values of REPEATS,
//! divided by the requests in between. What takes elements out of a collection finds the same number of them there,
//! whatever REPEATS is: enough for [`REPEATS_MAX`].

use std::sync::Arc;

use weft_engine::mailbox::Address;
use weft_engine::reply::{Output, Protocol, Wire};
use weft_engine::requests::{BATCH_MAX, Origin};
use weft_engine::session::{ConnectionInfo, Session};
use weft_engine::{Engine, Executor, Host, Lent, Postponed, Requests, Setup};
use weft_protocol::{Limits, Outcome, request::Texts, resp, respb};
use weft_store::{Config, Keyspace, SystemClock};

/// Keys in use.
const KEYS: usize = 1024;
/// Batches of one repeat.
const BATCHES: usize = 16;
/// More repeats would take more elements than are there.
const REPEATS_MAX: usize = 64;
/// Elements of a collection that elements are taken out of.
const ELEMENTS: usize = (REPEATS_MAX + 2) * BATCHES * BATCH_MAX;

/// One client.
struct Client {
    session: Session,
    output: Output,
    bytes: Vec<u8>,
}

impl Host for Client {
    fn lend(&mut self, _: u32, _: u16) -> Option<Lent<'_>> {
        Some(Lent {
            session: &mut self.session,
            output: &mut self.output,
            bytes: &self.bytes,
            shared_bytes: usize::MAX,
        })
    }
    fn outgrew(&mut self, _: u32, _: u16, _: weft_engine::reply::OutputPlace) {}
    fn postpone(&mut self, _: u32, _: u16, request: Postponed) {
        panic!("nothing is to wait: {request:?}")
    }
    fn ran(&mut self, _: u32, _: u16) {}
}

fn main() {
    let usage = "usage: request_cost WIRE-COMMAND REPEATS, such as resp-get 3";
    let mut args = std::env::args().skip(1);
    let (workload, repeats) = (args.next().expect(usage), args.next().expect(usage));
    let repeats: usize = repeats.parse().expect(usage);
    assert!(repeats <= REPEATS_MAX, "at most {REPEATS_MAX} repeats");
    let (wire, command) = workload.split_once('-').expect(usage);
    let protocol = if wire == "respb" { Protocol::Respb } else { Protocol::Resp2 };

    // The same key for every run, so that runs count the same.
    let hasher = weft_store::KeyHasher::with_seed(7);
    let keyspace = Keyspace::new(Config { shards: 256, hasher, ..Config::default() });
    let setup = Setup { keyspace, clock: Box::new(SystemClock), workers: 1 };
    let engine: &Engine = Box::leak(Box::new(Engine::new(setup)));
    let address = Address { worker: 0, channel: 0, connection: 0 };
    let session =
        engine.connect(address, Wire { protocol, channel: 0 }, Arc::new(ConnectionInfo::default()), None);
    let mut worker = Worker {
        executor: Executor::new(engine, 0, 7).expect("the keyspace has places"),
        client: Client { session, output: Output::default(), bytes: Vec::new() },
        requests: Requests::default(),
        protocol,
    };
    // Every key is there before.
    for first in (0..KEYS).step_by(BATCH_MAX) {
        worker.run(&batch("set", first, protocol));
    }
    if matches!(command, "rpop" | "spop" | "zpopmin") {
        let fill = format!("{command}-fill");
        for first in (0..ELEMENTS).step_by(BATCH_MAX) {
            worker.run(&batch(&fill, first, protocol));
        }
    }
    let batches: Vec<Vec<u8>> =
        (0..2 * KEYS).step_by(BATCH_MAX).map(|first| batch(command, first, protocol)).collect();
    batches.iter().for_each(|batch| {
        worker.run(batch);
    });
    let expected = worker.run(&batches[0]);
    let mut replies = 0;
    for at in 0..repeats * BATCHES {
        replies = worker.run(&batches[at % batches.len()]);
    }
    // But for numbers of some digits more.
    assert!(replies.abs_diff(expected) <= 4 * BATCH_MAX, "every batch is answered alike");
    println!("{} requests, {replies} bytes of replies to each batch", repeats * BATCHES * BATCH_MAX);
}

/// The bytes of a batch.
fn batch(command: &str, first: usize, protocol: Protocol) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in first..first + BATCH_MAX {
        let key = |more: usize| format!("key:{:012}", (at + more) % KEYS).into_bytes();
        let member = || format!("element:{at:012}").into_bytes();
        // In no order.
        let score = || format!("{:08}", at.wrapping_mul(0x9E37_79B1) % 100_000_000).into_bytes();
        let mut words: Vec<Vec<u8>> = vec![command.to_ascii_uppercase().into_bytes()];
        match command {
            "ping" => {}
            "get" => words.push(key(0)),
            "set" => words.extend([key(0), vec![b'v'; 16]]),
            "incr" => words.push([b"number:".to_vec(), key(0)].concat()),
            "sadd" => words.extend([b"set".to_vec(), key(0)]),
            "hset" => words.extend([b"hash".to_vec(), key(0), vec![b'v'; 16]]),
            "zadd" => words.extend([b"zset".to_vec(), score(), key(0)]),
            "xadd" => words.extend([b"stream".to_vec(), b"*".to_vec(), b"field".to_vec(), vec![b'v'; 16]]),
            "lpush" => words.extend([b"list".to_vec(), vec![b'v'; 16]]),
            "rpop" => words.push(b"list".to_vec()),
            "spop" => words.push(b"set".to_vec()),
            "zpopmin" => words.push(b"zset".to_vec()),
            "rpop-fill" => words = vec![b"RPUSH".to_vec(), b"list".to_vec(), vec![b'v'; 16]],
            "spop-fill" => words = vec![b"SADD".to_vec(), b"set".to_vec(), member()],
            "zpopmin-fill" => words = vec![b"ZADD".to_vec(), b"zset".to_vec(), score(), member()],
            "mget" => words.extend((0..10).map(key)),
            "mset" => words.extend((0..10).flat_map(|more| [key(more), vec![b'v'; 16]])),
            _ => panic!("no workload {command}"),
        }
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        if protocol == Protocol::Respb {
            respb::encode::RequestWriter::new(&mut bytes, 0).command(&words, respb::encode::Mode::Exact);
        } else {
            resp::encode::request(None, &Texts(&words), &mut bytes);
        }
    }
    bytes
}

/// A worker with one client.
struct Worker {
    executor: Executor<'static>,
    client: Client,
    requests: Requests,
    protocol: Protocol,
}

impl Worker {
    /// Decodes and runs a batch; gives the length of the replies.
    fn run(&mut self, batch: &[u8]) -> usize {
        let (requests, keyspace) = (&mut self.requests, &self.executor.engine().keyspace);
        let origin = Origin { connection: 0, channel: 0, db: 0 };
        let mut at = 0;
        if self.protocol == Protocol::Respb {
            let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
            loop {
                at = requests.repeat_respb(keyspace, origin, (batch, at), &decoder);
                let Outcome::Complete(frame) = decoder.decode(&batch[at..], requests.visitor()) else {
                    break;
                };
                requests.end_respb(keyspace, origin, frame.frame, (batch, at));
                at += frame.len;
            }
        } else {
            let mut decoder = resp::RequestDecoder::new(Limits::DEFAULT);
            loop {
                at = requests.repeat_resp(keyspace, origin, (batch, at));
                let Outcome::Complete(frame) = decoder.decode(&batch[at..], requests.visitor()) else {
                    break;
                };
                requests.end_resp(keyspace, origin, (batch, at));
                at += frame.len;
            }
        }
        assert_eq!(at, batch.len(), "every request is whole");
        self.client.bytes.clear();
        self.client.bytes.extend_from_slice(batch);
        self.executor.run(requests, &mut self.client);
        requests.clear();
        let replies = self.client.output.len();
        self.client.output.clear();
        replies
    }
}
