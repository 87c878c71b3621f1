//! A cache that is kept by invalidations is never left with an old value, however reads and writes of two workers meet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;

use weft_engine::mailbox::{Address, Message};
use weft_engine::push::Push;
use weft_engine::reply::{Output, Protocol, Wire};
use weft_engine::requests::Origin;
use weft_engine::session::{ConnectionInfo, Session};
use weft_engine::{Engine, Executor, Host, Lent, Postponed, Requests, Setup};
use weft_protocol::{Limits, Outcome, resp};
use weft_store::{Config, Keyspace, Rng, SystemClock, XorShift};

const KEYS: usize = 4;
const ROUNDS: usize = 300;
const WRITES: usize = 200;

/// A worker with one client.
struct Worker {
    executor: Executor<'static>,
    client: Client,
}

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
        panic!("{request:?}")
    }
    fn follow_up(&mut self, _: u32, _: u16) {}
}

impl Worker {
    fn new(engine: &'static Engine, worker: u16) -> Self {
        let address = Address { worker, channel: 0, connection: 0 };
        let wire = Wire { protocol: Protocol::Resp3, channel: 0 };
        let session = engine.connect(address, wire, Arc::new(ConnectionInfo::default()), None);
        let executor = Executor::new(engine, worker, 7).expect("the keyspace has places");
        Self { executor, client: Client { session, output: Output::default(), bytes: Vec::new() } }
    }

    fn run(&mut self, command: &str) -> String {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        let (mut bytes, mut requests) = (Vec::new(), Requests::default());
        resp::encode::request(None, &weft_protocol::request::Texts(&words), &mut bytes);
        let Outcome::Complete(_) =
            resp::RequestDecoder::new(Limits::DEFAULT).decode(&bytes, requests.visitor())
        else {
            panic!("a whole request")
        };
        requests.end_resp(
            &self.executor.engine().keyspace,
            Origin { connection: 0, channel: 0, db: 0 },
            (&bytes, 0),
        );
        self.client.bytes = bytes;
        self.executor.run(&requests, &mut self.client);
        let reply = String::from_utf8(self.client.output.to_vec()).expect("text");
        self.client.output.clear();
        reply
    }

    /// Says how many keys were told of.
    fn take_invalidations(&self, cache: &mut HashMap<usize, String>) -> usize {
        let mut told = 0;
        let mut messages = Vec::new();
        self.executor.engine().mailbox(0).take_into(&mut messages);
        for message in messages {
            let Message::Push(_, push) = message else { panic!("{message:?}") };
            let Push::Invalidate(Some(keys)) = &*push else { panic!("{push:?}") };
            for key in keys {
                let key = std::str::from_utf8(key).expect("text").trim_start_matches('k');
                cache.remove(&key.parse().expect("a number"));
                told += 1;
            }
        }
        told
    }
}

#[test]
fn a_cache_is_never_left_with_an_old_value() {
    let keyspace = Keyspace::new(Config::default());
    let setup = Setup { keyspace, clock: Box::new(SystemClock), workers: 2 };
    let engine: &'static Engine = Box::leak(Box::new(Engine::new(setup)));
    let (primed, written) = (Barrier::new(2), Barrier::new(2));
    let writing = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = Worker::new(engine, 1);
            let mut dice = XorShift::new(3);
            for round in 0..ROUNDS {
                writing.store(true, Relaxed);
                primed.wait();
                for value in 0..WRITES {
                    let key = dice.next_u64() as usize % KEYS;
                    assert_eq!(writer.run(&format!("SET k{key} {round}.{value}")), "+OK\r\n");
                }
                writing.store(false, Relaxed);
                written.wait();
            }
        });
        let mut reader = Worker::new(engine, 0);
        let mut dice = XorShift::new(5);
        let (mut told, mut stale) = (0, 0);
        for _ in 0..ROUNDS {
            let mut cache = HashMap::new();
            assert_eq!(reader.run("CLIENT TRACKING on"), "+OK\r\n");
            for key in 0..KEYS {
                cache.insert(key, reader.run(&format!("GET k{key}")));
            }
            primed.wait();
            while writing.load(Relaxed) {
                let key = dice.next_u64() as usize % KEYS;
                cache.entry(key).or_insert_with(|| reader.run(&format!("GET k{key}")));
                told += reader.take_invalidations(&mut cache);
            }
            written.wait();
            told += reader.take_invalidations(&mut cache);
            for (key, value) in cache {
                // Only noted: a panic here would leave the writer waiting.
                stale += usize::from(reader.run(&format!("GET k{key}")) != value);
            }
            assert_eq!(reader.run("CLIENT TRACKING off"), "+OK\r\n");
            reader.take_invalidations(&mut HashMap::new());
        }
        assert_eq!(stale, 0, "values that nobody was told of");
        assert!(told >= ROUNDS, "each round writes to keys that were read: {told}");
    });
}
