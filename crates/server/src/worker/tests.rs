//! A worker by itself, on one end of a socket pair: what each of its ticks does.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use weft_engine::session::ConnectionInfo;
use weft_engine::{Engine, Setup};
use weft_protocol::respb::Control;

use super::Worker;
use crate::limits::{CONTROLS_PER_TICK_MAX, LEAVING_PER_TICK_MAX};
use crate::listener::Inbox;
use crate::pace::Cycles;
use crate::poll::{Backend, Way};

/// An engine and its only worker.
struct Alone {
    engine: &'static Engine,
    worker: Worker<'static>,
    inbox: Arc<Inbox>,
}

impl Alone {
    fn new() -> Self {
        let config = weft_store::Config { shards: 16, workers: 1, ..weft_store::Config::default() };
        let keyspace = weft_store::Keyspace::new(config);
        let clock = Box::new(weft_store::SystemClock);
        let engine: &Engine = Box::leak(Box::new(Engine::new(Setup { keyspace, clock, workers: 1 })));
        let inbox = Arc::<Inbox>::default();
        let poll = Backend::new(Way::Epoll, 0).expect("there is epoll");
        let worker = Worker::new(engine, 0, Arc::clone(&inbox), poll, Instant::now());
        Self { engine, worker: worker.expect("there is a place for it"), inbox }
    }
    /// A client's end of a connection.
    fn connect(&mut self) -> UnixStream {
        let (client, server) = UnixStream::pair().expect("a pair of sockets");
        server.set_nonblocking(true).expect("it can be set");
        self.inbox.put(server.into(), ConnectionInfo::default());
        self.tick();
        client
    }
    fn tick(&mut self) {
        self.worker.look(0).expect("sockets can be looked at");
        let (now_ms, now_us) = (self.engine.clock.now_ms(), self.worker.clock_us());
        self.worker.tick(now_ms, now_us, &mut Cycles::default());
    }
    fn clients(&self) -> usize {
        self.engine.clients.len()
    }
    /// Ticks until there are so many clients; gives the most that came or went in one of them.
    fn ticks_until(&mut self, clients: usize) -> usize {
        let mut most = 0;
        while self.clients() != clients {
            let before = self.clients();
            self.tick();
            most = most.max(before.abs_diff(self.clients()));
        }
        most
    }
}

const CHANNELS: u16 = 5000;

fn open_all() -> Vec<u8> {
    // PING: a header and nothing else.
    (0..CHANNELS).flat_map(|channel| [[3, 0], channel.to_be_bytes()].concat()).collect()
}

#[test]
fn thousands_of_channels_open_and_close_in_steps() {
    let mut alone = Alone::new();
    let mut client = alone.connect();
    client.write_all(&open_all()).expect("it fits into the socket");
    let opened = alone.ticks_until(usize::from(CHANNELS));
    assert!(opened <= CONTROLS_PER_TICK_MAX as usize, "{opened} channels were opened in a tick");
    let mut closes = Vec::new();
    (1..CHANNELS).for_each(|channel| Control::Close { code: 0, reason: b"" }.encode(channel, &mut closes));
    client.write_all(&closes).expect("it fits into the socket");
    let closed = alone.ticks_until(1);
    assert!(closed <= CONTROLS_PER_TICK_MAX as usize, "{closed} channels were closed in a tick");
    // Each PING and each CLOSE has its answer.
    let mut answers = vec![0; usize::from(CHANNELS) * 8 + usize::from(CHANNELS - 1) * 8];
    alone.tick();
    client.read_exact(&mut answers).expect("everything is answered");
    drop(client);
    alone.ticks_until(0);
}

#[test]
fn a_connection_with_thousands_of_channels_ends_in_steps() {
    let mut alone = Alone::new();
    let mut client = alone.connect();
    client.write_all(&open_all()).expect("it fits into the socket");
    alone.ticks_until(usize::from(CHANNELS));
    drop(client);
    let gone = alone.ticks_until(0);
    assert!(gone < LEAVING_PER_TICK_MAX + 256, "{gone} channels were closed in a tick");
    // Its place is free for another one, whom nothing of it concerns.
    let mut other = alone.connect();
    other.write_all(b"PING\r\n").expect("it fits into the socket");
    alone.tick();
    alone.tick();
    let mut answer = [0; 7];
    other.read_exact(&mut answer).expect("it is answered");
    assert_eq!(&answer, b"+PONG\r\n");
}
