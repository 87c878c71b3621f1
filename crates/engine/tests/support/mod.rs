//! Owns: a host without sockets, so that tests can run commands for any number of clients over any protocol.
//!
//! Each test file uses a part of it.

#![allow(dead_code)]

pub(crate) mod replies;
pub(crate) mod stored;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustix::time::{ClockId, clock_gettime};
use weft_engine::blocking::End;
use weft_engine::mailbox::{Address, Kill, Message, Recipient};
use weft_engine::push::Push;
use weft_engine::reply::{Output, OutputPlace, Protocol, ReplySink, Wire};
use weft_engine::requests::Origin;
use weft_engine::session::{ConnectionInfo, Session};
use weft_engine::{Engine, Executor, Host, Lent, Postponed, Requests, Setup};
pub(crate) use weft_protocol::Reply;
use weft_protocol::{Limits, Outcome, resp, respb};
use weft_store::{Config, KeyHasher, Keyspace, Maintenance, ManualClock};

/// The protocols that a socket speaks beside HTTP.
pub(crate) const ALL: [Protocol; 3] = [Protocol::Resp2, Protocol::Resp3, Protocol::Respb];

/// The time at which tests begin.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// A clock that a test holds on to after the engine has taken it.
pub(crate) struct SharedClock(Arc<ManualClock>);

impl weft_store::Clock for SharedClock {
    fn now_ms(&self) -> u64 {
        weft_store::Clock::now_ms(&*self.0)
    }
}

/// An engine that lives as long as the test's process, with a keyspace of this kind and so many workers.
pub(crate) fn engine_of(config: Config, workers: u16) -> (&'static Engine, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START_MS));
    let keyspace = Keyspace::new(config);
    let setup = Setup { keyspace, clock: Box::new(SharedClock(Arc::clone(&clock))), workers };
    (Box::leak(Box::new(Engine::new(setup))), clock)
}

/// The keyspace of most tests.
fn usual() -> Config {
    Config { hasher: KeyHasher::with_seed(1), ..Config::default() }
}

/// An engine of one worker.
pub(crate) fn engine() -> (&'static Engine, Arc<ManualClock>) {
    engine_of(usual(), 1)
}

struct Client {
    session: Session,
    output: Output,
}

/// Where the channel stands in the number of a client, above its connection.
const CHANNEL_SHIFT: u32 = 24;

const fn number_of(connection: u32, channel: u16) -> u32 {
    connection | (channel as u32) << CHANNEL_SHIFT
}
const fn connection_of(client: u32) -> u32 {
    client & ((1 << CHANNEL_SHIFT) - 1)
}
const fn channel_of(client: u32) -> u16 {
    (client >> CHANNEL_SHIFT) as u16
}

struct Clients {
    list: HashMap<u32, Client>,
    /// What connections have received.
    bytes: HashMap<u32, Vec<u8>>,
    postponed: Vec<(u32, Postponed)>,
    /// Who is lent, and from where on he writes.
    lent: Option<(u32, OutputPlace)>,
    /// What RESPB clients may write by neighbouring requests.
    shared_bytes: usize,
}

/// A little, so that some are lent together and some alone.
const SHARED_BYTES: usize = 200;

impl Default for Clients {
    fn default() -> Self {
        Self {
            list: HashMap::new(),
            bytes: HashMap::new(),
            postponed: Vec::new(),
            lent: None,
            shared_bytes: SHARED_BYTES,
        }
    }
}

impl Clients {
    /// Sees to it that who was lent has written little, or one reply.
    fn settle(&mut self) {
        let Some((connection, from)) = self.lent.take() else { return };
        let Some(client) = self.list.get(&connection) else { return };
        if client.session.wire.protocol != Protocol::Respb
            || client.output.len() <= from.len + self.shared_bytes
        {
            return;
        }
        let written = client.output.to_vec().split_off(from.len);
        let (mut at, mut replies) = (0, 0);
        let mut builder = weft_protocol::reply::ReplyBuilder::new();
        while at < written.len() {
            let mut decoder = weft_protocol::respb::ReplyDecoder::new(Limits::DEFAULT);
            let Outcome::Complete(frame) = decoder.decode(&written[at..], &mut builder) else {
                panic!("a reply begins where it is said to")
            };
            replies += usize::from(!matches!(builder.take(), Some(Reply::Push(_))));
            at += frame.len;
        }
        assert_eq!(replies, 1, "{} bytes", written.len());
    }
}

impl Host for Clients {
    fn lend(&mut self, connection: u32, channel: u16) -> Option<Lent<'_>> {
        self.settle();
        let number = number_of(connection, channel);
        let client = self.list.get_mut(&number)?;
        let respb = client.session.wire.protocol == weft_engine::reply::Protocol::Respb;
        let shared_bytes = if respb { self.shared_bytes } else { usize::MAX };
        self.lent = Some((number, client.output.end()));
        Some(Lent {
            session: &mut client.session,
            output: &mut client.output,
            bytes: self.bytes.get(&connection).map_or(&[], Vec::as_slice),
            buffer: None,
            shared_bytes,
        })
    }
    fn outgrew(&mut self, connection: u32, channel: u16, from: OutputPlace) {
        let (lent, begun) = self.lent.take().expect("somebody is lent");
        assert_eq!(lent, number_of(connection, channel));
        assert!(from.len <= begun.len + self.shared_bytes, "what stands before is little");
        self.lent = Some((lent, from));
    }
    fn postpone(&mut self, connection: u32, channel: u16, request: Postponed) {
        self.postponed.push((number_of(connection, channel), request));
    }
    fn follow_up(&mut self, _connection: u32, _channel: u16) {}
}

/// Clients of one worker.
pub(crate) struct Bench {
    pub(crate) engine: &'static Engine,
    pub(crate) clock: Arc<ManualClock>,
    /// Clients that were to be closed by somebody else, and why.
    pub(crate) killed: Vec<(u32, Kill)>,
    /// Clients that waited and were answered, in that order.
    pub(crate) served: Vec<u32>,
    executor: Executor<'static>,
    clients: Clients,
    /// Clients so far: the next one's number.
    connected: u32,
    worker: u16,
    /// The batch that is being gathered.
    fed: Requests,
}

/// Runs commands on every protocol and compares the answers.
pub(crate) fn script(steps: &[(&str, &str)]) {
    for protocol in ALL {
        let (mut bench, client) = Bench::with(protocol);
        for (command, expected) in steps {
            assert_eq!(bench.text(client, command), *expected, "{command} over {protocol:?}");
        }
    }
}

/// Runs commands, each with the events that follow it: `set:k expire:k`.
pub(crate) fn events_are(steps: &[(&str, &str)]) {
    let (mut bench, [client, other]) = Bench::with_clients([Protocol::Resp2; 2]);
    let all = weft_engine::notify::parse("AKE").expect("flags");
    bench.engine.settings.notify_flags.store(all, Relaxed);
    bench.run(other, "PSUBSCRIBE __keyevent*");
    for (command, expected) in steps {
        bench.run(client, command);
        let event = |reply| {
            let line = show(reply);
            let words: Vec<&str> = line.trim_matches(['[', ']']).split(' ').collect();
            format!("{}:{}", words[2].split_once("__:").expect("an event").1, words[3])
        };
        let got: Vec<String> = bench.take(other).iter().map(event).collect();
        assert_eq!(got.join(" "), *expected, "{command}");
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::team(1).remove(0)
    }
    /// With its first client, which reads this protocol.
    pub(crate) fn with(protocol: Protocol) -> (Self, u32) {
        let (bench, [client]) = Self::with_clients([protocol]);
        (bench, client)
    }
    /// With a client for each of these protocols.
    pub(crate) fn with_clients<const N: usize>(protocols: [Protocol; N]) -> (Self, [u32; N]) {
        let mut bench = Self::new();
        let clients = protocols.map(|protocol| bench.connect(protocol));
        (bench, clients)
    }

    /// The workers of one engine, each for a thread of its own.
    pub(crate) fn team(workers: u16) -> Vec<Self> {
        Self::team_of(usual(), workers)
    }
    /// The same with a keyspace of so many shards: what looks at all of them has less to do where they are few.
    pub(crate) fn team_of_shards(shards: usize, workers: u16) -> Vec<Self> {
        Self::team_of(Config { shards, ..usual() }, workers)
    }
    fn team_of(config: Config, workers: u16) -> Vec<Self> {
        let (engine, clock) = engine_of(config, workers);
        (0..workers).map(|worker| Self::of((engine, Arc::clone(&clock)), worker)).collect()
    }

    /// The clients of one worker of an engine.
    pub(crate) fn of((engine, clock): (&'static Engine, Arc<ManualClock>), worker: u16) -> Self {
        let executor = Executor::new(engine, worker, 7).expect("the keyspace has places");
        Self {
            engine,
            clock,
            killed: Vec::new(),
            served: Vec::new(),
            executor,
            clients: Clients::default(),
            connected: 0,
            worker,
            fed: Requests::default(),
        }
    }

    /// A client that reads this protocol.
    pub(crate) fn connect(&mut self, protocol: Protocol) -> u32 {
        let connection = self.connected;
        self.connected += 1;
        self.open(connection, 0, protocol)
    }
    /// A client on a channel of its own of another's RESPB connection.
    pub(crate) fn connect_channel(&mut self, beside: u32, channel: u16) -> u32 {
        assert_eq!(channel_of(beside), 0, "the first client of its connection");
        self.open(beside, channel, Protocol::Respb)
    }
    fn open(&mut self, connection: u32, channel: u16, protocol: Protocol) -> u32 {
        let address = Address { worker: self.worker, channel, connection };
        let wire = Wire { protocol, channel };
        let peer = format!("10.0.0.{connection}:5000").into();
        let info = ConnectionInfo { peer, local: "10.0.0.99:6379".into(), ..ConnectionInfo::default() };
        // Channels stand on the connection of the first one.
        let first = self.clients.list.get(&number_of(connection, 0));
        let info = first.map_or_else(|| Arc::new(info), |first| Arc::clone(&first.session.info.connection));
        let session = self.engine.connect(address, wire, info, None);
        let number = number_of(connection, channel);
        self.clients.list.insert(number, Client { session, output: Output::default() });
        number
    }
    /// Where a client's requests come from.
    fn origin(&self, client: u32) -> Origin {
        let db = self.clients.list[&client].session.db;
        Origin { connection: connection_of(client), channel: channel_of(client), db }
    }

    /// Runs a command, given as words, and gives every reply and push that the client has got since.
    pub(crate) fn run(&mut self, client: u32, command: &str) -> Vec<Reply> {
        let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
        self.run_args(client, &words)
    }

    pub(crate) fn run_args(&mut self, client: u32, words: &[&[u8]]) -> Vec<Reply> {
        self.execute(client, words);
        self.take(client)
    }

    /// Runs a command and leaves the replies where they were written.
    pub(crate) fn execute(&mut self, client: u32, words: &[&[u8]]) {
        let (mut bytes, mut requests) = (Vec::new(), Requests::default());
        self.only(client, words, &mut bytes, &mut requests);
        self.clients.bytes.insert(connection_of(client), bytes);
        self.executor.run(&requests, &mut self.clients);
        self.clients.settle();
        self.deliver();
    }

    /// Runs a RESP command and gives what the clock says that running it took, and the bytes of its reply.
    pub(crate) fn cost(&mut self, client: u32, words: &[&[u8]], clock: fn() -> u64) -> (u64, Vec<u8>) {
        let (mut bytes, mut requests) = (Vec::new(), Requests::default());
        self.only(client, words, &mut bytes, &mut requests);
        self.clients.bytes.insert(connection_of(client), bytes);
        let begun = clock();
        self.executor.run(&requests, &mut self.clients);
        let took = clock() - begun;
        let output = &mut self.clients.list.get_mut(&client).expect("a client").output;
        let reply = output.to_vec();
        output.clear();
        (took, reply)
    }

    /// The only command of a batch, written and read.
    fn only(&self, client: u32, words: &[&[u8]], bytes: &mut Vec<u8>, requests: &mut Requests) {
        let wire = self.clients.list[&client].session.wire;
        write(wire, words, bytes);
        let origin = Origin { db: 0, ..self.origin(client) };
        read(wire, &self.engine.keyspace, origin, (bytes, 0), requests);
    }

    /// What RESPB clients may write by neighbouring requests from now on; fast functions want some hundred bytes.
    pub(crate) fn share(&mut self, bytes: usize) {
        self.clients.shared_bytes = bytes;
    }
    /// Runs commands of several clients as one batch, each client's behind the other's, and gives every client's
    /// replies. None of the commands is a barrier, and all fit into a batch.
    pub(crate) fn run_batch(&mut self, lists: &[(u32, Vec<String>)]) -> Vec<Vec<Reply>> {
        let mut requests = Requests::default();
        for (client, commands) in lists {
            let wire = self.clients.list[client].session.wire;
            let mut bytes = Vec::new();
            for command in commands {
                let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
                write(wire, &words, &mut bytes);
            }
            let (origin, keyspace) = (self.origin(*client), &self.engine.keyspace);
            let mut at = repeat(wire, keyspace, origin, (&bytes, 0), &mut requests);
            while at < bytes.len() {
                assert!(!requests.is_full(), "the commands fit into a batch");
                let (len, barrier) = read(wire, keyspace, origin, (&bytes, at), &mut requests);
                assert!(!barrier, "no barrier");
                at = repeat(wire, keyspace, origin, (&bytes, at + len), &mut requests);
            }
            self.clients.bytes.insert(connection_of(*client), bytes);
        }
        self.executor.run(&requests, &mut self.clients);
        self.clients.settle();
        self.deliver();
        lists.iter().map(|(client, _)| self.take(*client)).collect()
    }

    /// Puts a request behind those that [`Bench::run_fed`] will run as one batch. Says whether the batch must run
    /// before the next request is read, as a server's would: it is full, or this request is a barrier.
    pub(crate) fn feed(&mut self, client: u32, words: &[&[u8]]) -> bool {
        let origin = self.origin(client);
        let wire = self.clients.list[&client].session.wire;
        let bytes = self.clients.bytes.entry(origin.connection).or_default();
        let (requests, keyspace) = (&mut self.fed, &self.engine.keyspace);
        let at = bytes.len();
        write(wire, words, bytes);
        let repeats = repeat(wire, keyspace, origin, (bytes, at), requests) == bytes.len();
        let barrier = !repeats && read(wire, keyspace, origin, (bytes, at), requests).1;
        barrier || self.fed.is_full()
    }

    /// Runs what was fed. [`Bench::take`] gives what each client has got.
    pub(crate) fn run_fed(&mut self) {
        self.executor.run(&self.fed, &mut self.clients);
        self.fed.clear();
        self.clients.bytes.values_mut().for_each(Vec::clear);
        self.clients.settle();
        self.deliver();
    }

    /// How many requests of a client are postponed.
    pub(crate) fn postponed(&self, client: u32) -> usize {
        self.clients.postponed.iter().filter(|(whose, _)| *whose == client).count()
    }

    /// Runs the first postponed request of a client, if it may. Says whether it did.
    pub(crate) fn resume_one(&mut self, client: u32) -> bool {
        let Some(at) = self.clients.postponed.iter().position(|(whose, _)| *whose == client) else {
            return false;
        };
        let Client { session, output, .. } = self.clients.list.get_mut(&client).expect("a client");
        let ran =
            !session.is_waiting() && self.executor.run_owned(&self.clients.postponed[at].1, session, output);
        if ran {
            self.clients.postponed.remove(at);
        }
        self.deliver();
        ran
    }

    /// Runs a command and gives its one reply.
    pub(crate) fn one(&mut self, client: u32, command: &str) -> Reply {
        let mut replies = self.run(client, command);
        assert_eq!(replies.len(), 1, "{command}: {replies:?}");
        replies.remove(0)
    }

    /// Runs a command and gives its reply as text, in the way of redis-cli.
    pub(crate) fn text(&mut self, client: u32, command: &str) -> String {
        show(&self.one(client, command))
    }

    /// Runs the requests of a client that were postponed, in their order, until one cannot run yet.
    pub(crate) fn resume(&mut self, client: u32) -> Vec<Reply> {
        while self.resume_one(client) {}
        self.take(client)
    }

    /// Runs what can be taken back for a client.
    pub(crate) fn attempt(
        &mut self,
        client: u32,
        work: impl FnOnce(&mut weft_engine::executor::Attempt<'_, '_>) -> bool,
    ) {
        let Client { session, .. } = self.clients.list.get_mut(&client).expect("a client");
        self.executor.attempt(session, work);
        self.deliver();
    }

    /// Ends the wait of a client.
    pub(crate) fn end_wait(&mut self, client: u32, end: End) -> Vec<Reply> {
        self.give_up(client, end);
        self.take(client)
    }

    /// Ends the wait of a client and leaves the reply where it was written.
    pub(crate) fn give_up(&mut self, client: u32, end: End) {
        let Client { session, output, .. } = self.clients.list.get_mut(&client).expect("a client");
        self.executor.end_wait(session, output, end);
        self.deliver();
    }

    pub(crate) fn disconnect(&mut self, client: u32) {
        self.clients.postponed.retain(|(whose, _)| *whose != client);
        if channel_of(client) == 0 {
            self.clients.bytes.remove(&client);
        }
        let client = self.clients.list.remove(&client).expect("a client");
        self.executor.disconnect(client.session);
    }

    /// Goes on with the script that takes its time here. Says whether it has ended.
    pub(crate) fn go_on(&mut self) -> bool {
        let ended = self.executor.go_on(&mut self.clients).is_some();
        self.clients.settle();
        self.deliver();
        ended
    }
    /// What a server's tick does behind its batches.
    pub(crate) fn end_tick(&mut self) {
        self.executor.disconnect_ended(usize::MAX);
        self.executor.serve_some();
        self.executor.leave_places(usize::MAX);
        self.deliver();
    }

    /// What the server's background thread does while no command runs: what FLUSHALL left is freed.
    pub(crate) fn maintain(&self) {
        let mut worker = self.engine.keyspace.worker().expect("a place for one more");
        let mut maintenance = Maintenance::default();
        while !maintenance.step(&worker.enter()).idle {}
    }

    /// Time passes.
    pub(crate) fn pass(&self, ms: u64) {
        self.clock.advance(ms);
    }
    /// Somebody sets the clock, by an hour or a second, forward or back.
    #[allow(dead_code, reason = "not every test has a clock that jumps")]
    pub(crate) fn jump(&self, dice: u64) {
        let (now_ms, by_ms) = (self.clock_ms(), [1000, 3_600_000][(dice / 2 % 2) as usize]);
        self.clock.set(if dice.is_multiple_of(2) { now_ms + by_ms } else { now_ms.saturating_sub(by_ms) });
    }
    pub(crate) fn clock_ms(&self) -> u64 {
        weft_store::Clock::now_ms(&*self.clock)
    }
    /// `enable-debug-command yes`.
    pub(crate) fn allow_debug(&self) {
        self.engine.settings.debug_command.store(1, Relaxed);
    }
    /// Whether the client's SHUTDOWN was heard.
    pub(crate) fn is_shutting_down(&self, client: u32) -> bool {
        self.clients.list[&client].session.then == weft_engine::session::Then::Shutdown
    }

    pub(crate) fn is_waiting(&self, client: u32) -> bool {
        self.clients.list[&client].session.is_waiting()
    }

    /// The session of a client.
    pub(crate) fn session(&mut self, client: u32) -> &mut Session {
        &mut self.clients.list.get_mut(&client).expect("a client").session
    }

    /// Hands out what others have left for the clients.
    pub(crate) fn deliver(&mut self) {
        let of = |to: Recipient| number_of(to.address.connection, to.address.channel);
        let mut messages = Vec::new();
        self.engine.mailbox(self.worker).take_into(&mut messages);
        for message in messages {
            match message {
                Message::Push(to, push) => self.tell(of(to), &push),
                Message::PushAll(all, push) => all.iter().for_each(|&to| self.tell(of(to), &push)),
                Message::Served(to, output) => {
                    self.served.push(of(to));
                    if let Some(client) = self.clients.list.get_mut(&of(to)) {
                        self.executor.served(&mut client.session, &mut client.output, *output);
                    }
                }
                Message::Kill(to, why) => self.killed.push((of(to), why)),
                _ => {}
            }
        }
    }

    fn tell(&mut self, client: u32, push: &Push) {
        if let Some(client) = self.clients.list.get_mut(&client) {
            push.write(&mut ReplySink::new(&mut client.output, client.session.wire));
        }
    }

    /// What others have sent to this worker's clients, and what this one has got.
    pub(crate) fn hear(&mut self, client: u32) -> Vec<Reply> {
        self.deliver();
        self.take(client)
    }

    /// What the client has got.
    pub(crate) fn take(&mut self, client: u32) -> Vec<Reply> {
        let protocol = self.session(client).wire.protocol;
        replies::read(protocol, self.take_output(client))
    }
    /// The same as it was written.
    pub(crate) fn take_output(&mut self, client: u32) -> Output {
        std::mem::take(&mut self.clients.list.get_mut(&client).expect("a client").output)
    }
}

/// A command as a client of this wire writes it. Over RESPB it is typed where a layout says exactly these words:
/// folding would change the order of options, and so which of two mistakes is told.
fn write(wire: Wire, words: &[&[u8]], bytes: &mut Vec<u8>) {
    if wire.protocol == Protocol::Respb {
        respb::encode::RequestWriter::new(bytes, wire.channel).command(words, respb::encode::Mode::Exact);
    } else {
        resp::encode::request(None, &weft_protocol::request::Texts(words), bytes);
    }
}

/// Reads the request at this place: its length, and whether it is a barrier.
fn read(
    wire: Wire,
    keyspace: &Keyspace,
    origin: Origin,
    (bytes, at): (&[u8], usize),
    requests: &mut Requests,
) -> (usize, bool) {
    if wire.protocol == Protocol::Respb {
        let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
        let Outcome::Complete(frame) = decoder.decode(&bytes[at..], requests.visitor()) else {
            panic!("a whole frame")
        };
        (frame.len, requests.end_respb(keyspace, origin, frame.frame, (bytes, at)))
    } else {
        let mut decoder = resp::RequestDecoder::new(Limits::DEFAULT);
        let Outcome::Complete(frame) = decoder.decode(&bytes[at..], requests.visitor()) else {
            panic!("a whole request")
        };
        (frame.len, requests.end_resp(keyspace, origin, (bytes, at)))
    }
}

/// Reads the requests that repeat each other from this place on: where they end.
fn repeat(
    wire: Wire,
    keyspace: &Keyspace,
    origin: Origin,
    (bytes, at): (&[u8], usize),
    requests: &mut Requests,
) -> usize {
    if wire.protocol == Protocol::Respb {
        let decoder = respb::RequestDecoder::new(Limits::DEFAULT);
        requests.repeat_respb(keyspace, origin, (bytes, at), &decoder)
    } else {
        requests.repeat_resp(keyspace, origin, (bytes, at))
    }
}

/// A reply on one line.
pub(crate) fn show(reply: &Reply) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let list = |items: &[Reply]| items.iter().map(show).collect::<Vec<_>>().join(" ");
    match reply {
        Reply::Simple(bytes) | Reply::Bulk(bytes) | Reply::BigNumber(bytes) | Reply::Verbatim(_, bytes) => {
            text(bytes)
        }
        Reply::Error(bytes) => format!("-{}", text(bytes)),
        Reply::Int(value) => value.to_string(),
        Reply::Double(value) => value.to_string(),
        Reply::Bool(value) => value.to_string(),
        Reply::Null | Reply::NullArray => "nil".to_string(),
        Reply::Array(items) | Reply::Set(items) => format!("[{}]", list(items)),
        Reply::Push(items) => format!(">[{}]", list(items)),
        Reply::Map(pairs) => {
            let pairs: Vec<_> =
                pairs.iter().map(|(key, value)| format!("{}:{}", show(key), show(value))).collect();
            format!("{{{}}}", pairs.join(" "))
        }
        other => format!("{other:?}"),
    }
}

/// Nanoseconds that this thread has been on a CPU.
pub(crate) fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The same in milliseconds.
pub(crate) fn cpu_ms() -> f64 {
    cpu_ns() as f64 / 1e6
}
