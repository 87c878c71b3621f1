//! Owns: honest clients: what they ask, the one right answer to each request, how long it took. Does not own: the
//! server, who attacks it.
//!
//! Each has keys of its own and a model of them in memory, so that every reply is known before it comes.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use hdrhistogram::Histogram;
use weft_client::{Channel, Config, Connection, Mux, Protocol, Reply, Timeouts, TlsConfig};

use crate::hostile::is_busy;
use crate::rng::Rng;
use crate::server::Server;
use crate::web::Web;

/// Their user, who may use keys that begin with `h:`.
pub(crate) const USER: (&str, &str) = ("honest", "an-honest-secret");
/// A reply that takes longer has been lost.
const REPLY_MAX: Duration = Duration::from_secs(300);
/// Between two requests of a client.
const THINKING: Duration = Duration::from_millis(1);
/// Channels of the connection whose clients talk to each other.
const CHANNELS: usize = 8;
/// Different keys of a client.
const KEYS: usize = 32;
/// Requests of a pipeline.
const PIPELINE: usize = 16;
/// Values are as long as this, some 64 KiB more.
const SMALL_BYTES: usize = 100;
/// A list is not longer.
const LIST_MAX: usize = 64;

/// What the clients of one wire have seen.
pub(crate) struct Seen {
    pub(crate) wire: String,
    pub(crate) replies: AtomicU64,
    /// Those of them that said that a script takes its time.
    pub(crate) busy: AtomicU64,
    /// Microseconds from one request to its answer, since the last look.
    latencies: Mutex<Histogram<u64>>,
}

impl Seen {
    fn new(wire: &str) -> Result<Arc<Self>> {
        let latencies = Mutex::new(Histogram::new(3)?);
        Ok(Arc::new(Self {
            wire: wire.into(),
            replies: AtomicU64::new(0),
            busy: AtomicU64::new(0),
            latencies,
        }))
    }
    /// The latencies since the last look.
    pub(crate) fn take_latencies(&self) -> Histogram<u64> {
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = latencies.clone();
        latencies.reset();
        taken
    }
    fn note(&self, took: Duration) {
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        latencies.saturating_record(took.as_micros() as u64);
    }
}

/// One that can be asked: a connection, or a channel of one.
trait Client {
    fn send(&mut self, request: &[Vec<u8>]) -> Result<()>;
    fn receive(&mut self) -> Result<Reply>;
}

impl Client for Connection {
    fn send(&mut self, request: &[Vec<u8>]) -> Result<()> {
        Self::send(self, request)?;
        Ok(())
    }
    fn receive(&mut self) -> Result<Reply> {
        Ok(Self::receive(self)?)
    }
}

impl Client for Channel {
    fn send(&mut self, request: &[Vec<u8>]) -> Result<()> {
        Self::send(self, request)?;
        Ok(())
    }
    fn receive(&mut self) -> Result<Reply> {
        Ok(Self::receive(self)?)
    }
}

impl Client for Web {
    fn send(&mut self, request: &[Vec<u8>]) -> Result<()> {
        Self::send(self, request)
    }
    fn receive(&mut self) -> Result<Reply> {
        Self::receive(self)
    }
}

fn request(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

/// What can be asked of a model's keys.
#[derive(Clone, Debug)]
enum Ask {
    Set(usize, Vec<u8>),
    Get(usize),
    Del(usize),
    IncrBy(usize),
    HSet(usize, Vec<u8>),
    HGet(usize),
    RPush(Vec<u8>),
    LPop,
}

/// What a client has stored.
struct Model {
    prefix: String,
    rng: Rng,
    /// Over HTTP: values are text, and a transaction is no sequence of requests.
    is_web: bool,
    strings: HashMap<usize, Vec<u8>>,
    fields: HashMap<usize, Vec<u8>>,
    list: VecDeque<Vec<u8>>,
    sum: i64,
}

impl Model {
    fn new(name: &str, rng: Rng, is_web: bool) -> Self {
        let (strings, fields, list) = (HashMap::new(), HashMap::new(), VecDeque::new());
        Self { prefix: format!("h:{name}:"), rng, is_web, strings, fields, list, sum: 0 }
    }

    fn key(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.prefix).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let large = if self.rng.one_in(50) { 64 << 10 } else { 0 };
        let len = self.rng.below(SMALL_BYTES) + large;
        let bytes = self.rng.bytes(len);
        if self.is_web { bytes.into_iter().map(|byte| b'a' + byte % 26).collect() } else { bytes }
    }

    /// Something to ask.
    fn next(&mut self) -> Ask {
        let at = self.rng.below(KEYS);
        match self.rng.below(10) {
            0 | 1 => Ask::Set(at, self.value()),
            2 | 3 => Ask::Get(at),
            4 => Ask::Del(at),
            5 => Ask::IncrBy(at),
            6 => Ask::HSet(at, self.value()),
            7 => Ask::HGet(at),
            8 if self.list.len() < LIST_MAX => Ask::RPush(self.value()),
            _ => Ask::LPop,
        }
    }

    /// The request that asks it.
    fn request(&self, ask: &Ask) -> Vec<Vec<u8>> {
        let string = |at: &usize| self.key(&format!("s:{at}"));
        let number = |at: &usize| at.to_string().into_bytes();
        let (hash, list, sum) = (self.key("hash"), self.key("list"), self.key("sum"));
        match ask {
            Ask::Set(at, value) => request(&[b"SET", &string(at), value]),
            Ask::Get(at) => request(&[b"GET", &string(at)]),
            Ask::Del(at) => request(&[b"DEL", &string(at)]),
            Ask::IncrBy(by) => request(&[b"INCRBY", &sum, &number(by)]),
            Ask::HSet(at, value) => request(&[b"HSET", &hash, &number(at), value]),
            Ask::HGet(at) => request(&[b"HGET", &hash, &number(at)]),
            Ask::RPush(value) => request(&[b"RPUSH", &list, value]),
            Ask::LPop => request(&[b"LPOP", &list]),
        }
    }

    /// It has run: the answer that it must have had.
    fn ran(&mut self, ask: Ask) -> Reply {
        let bulk = |value: Option<Vec<u8>>| value.map_or(Reply::Null, Reply::Bulk);
        match ask {
            Ask::Set(at, value) => {
                self.strings.insert(at, value);
                ok()
            }
            Ask::Get(at) => bulk(self.strings.get(&at).cloned()),
            Ask::Del(at) => Reply::Int(self.strings.remove(&at).is_some().into()),
            Ask::IncrBy(by) => {
                self.sum += by as i64;
                Reply::Int(self.sum)
            }
            Ask::HSet(at, value) => Reply::Int(self.fields.insert(at, value).is_none().into()),
            Ask::HGet(at) => bulk(self.fields.get(&at).cloned()),
            Ask::RPush(value) => {
                self.list.push_back(value);
                Reply::Int(self.list.len() as i64)
            }
            Ask::LPop => bulk(self.list.pop_front()),
        }
    }

    /// Asks one thing, some at once, or some in a transaction, and checks the answers.
    fn step(&mut self, client: &mut impl Client, seen: &Seen) -> Result<()> {
        match self.rng.below(10) {
            0 => self.pipeline(client, seen, PIPELINE),
            1 if !self.is_web => self.transaction(client, seen),
            _ => {
                let began = Instant::now();
                self.pipeline(client, seen, 1)?;
                seen.note(began.elapsed());
                Ok(())
            }
        }
    }

    fn pipeline(&mut self, client: &mut impl Client, seen: &Seen, count: usize) -> Result<()> {
        let asked: Vec<Ask> = (0..count).map(|_| self.next()).collect();
        for ask in &asked {
            client.send(&self.request(ask))?;
        }
        for ask in asked {
            self.answered(ask, client.receive()?, seen)?;
        }
        Ok(())
    }

    /// An answer is the right one, or says that nothing was done.
    fn answered(&mut self, ask: Ask, got: Reply, seen: &Seen) -> Result<()> {
        seen.replies.fetch_add(1, Relaxed);
        if is_busy(&got) {
            seen.busy.fetch_add(1, Relaxed);
            return Ok(());
        }
        let shown = shown(&self.request(&ask));
        let wanted = self.ran(ask);
        ensure!(got == wanted, "{}: {shown} answered {}, not {}", seen.wire, brief(&got), brief(&wanted));
        Ok(())
    }

    /// MULTI to EXEC. What is told to be busy is not part of it, and leaves nothing of it.
    fn transaction(&mut self, client: &mut impl Client, seen: &Seen) -> Result<()> {
        let asked: Vec<Ask> = (0..PIPELINE).map(|_| self.next()).collect();
        client.send(&request(&[b"MULTI"]))?;
        for ask in &asked {
            client.send(&self.request(ask))?;
        }
        client.send(&request(&[b"EXEC"]))?;
        let begun = client.receive()?;
        ensure!(begun == ok() || is_busy(&begun), "{}: MULTI answered {}", seen.wire, brief(&begun));
        if begun != ok() {
            for ask in asked {
                self.answered(ask, client.receive()?, seen)?;
            }
            let end = client.receive()?;
            ensure!(matches!(end, Reply::Error(_)), "{}: EXEC alone answered {}", seen.wire, brief(&end));
            return Ok(());
        }
        let mut was_busy = false;
        for _ in &asked {
            let got = client.receive()?;
            was_busy |= is_busy(&got);
            let queued = Reply::Simple(b"QUEUED".to_vec());
            ensure!(got == queued || is_busy(&got), "{}: in MULTI came {}", seen.wire, brief(&got));
        }
        match client.receive()? {
            Reply::Array(replies) if !was_busy && replies.len() == asked.len() => {
                asked.into_iter().zip(replies).try_for_each(|(ask, got)| self.answered(ask, got, seen))
            }
            Reply::Error(text) if was_busy || contains_busy(&text) => {
                seen.busy.fetch_add(1, Relaxed);
                Ok(())
            }
            got => bail!("{}: EXEC answered {}", seen.wire, brief(&got)),
        }
    }
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

fn contains_busy(text: &[u8]) -> bool {
    text.windows(5).any(|word| word == b"BUSY ")
}

fn shown(request: &[Vec<u8>]) -> String {
    request.iter().map(|word| word.escape_ascii().to_string()).take(3).collect::<Vec<_>>().join(" ")
}

fn brief(reply: &Reply) -> String {
    let text = format!("{reply:?}");
    text.chars().take(200).collect()
}

/// Clients that talk to each other on channels of one connection: messages, and values handed over to who waits.
struct Talk {
    channels: Vec<(Channel, Model)>,
    listener: Channel,
    waiter: Channel,
    turn: u64,
}

impl Talk {
    fn new(config: &Config, rng: &mut Rng) -> Result<Self> {
        let mux = Mux::connect(config)?;
        let channels = (0..CHANNELS)
            .map(|at| Ok((mux.channel()?, Model::new(&format!("mux{at}"), Rng::new(rng.next()), false))))
            .collect::<Result<_>>()?;
        let (mut listener, waiter) = (mux.channel()?, mux.channel()?);
        listener.subscribe(&["h:news"])?;
        Ok(Self { channels, listener, waiter, turn: 0 })
    }

    fn step(&mut self, seen: &Seen) -> Result<()> {
        self.turn += 1;
        let at = self.turn as usize % self.channels.len();
        let (channel, model) = &mut self.channels[at];
        model.step(channel, seen)?;
        let text = format!("turn {}", self.turn).into_bytes();
        match self.turn % 20 {
            0 => {
                let told = insist(channel, &[b"PUBLISH", b"h:news", &text])?;
                ensure!(told == Reply::Int(1), "{}: PUBLISH reached {told:?}", seen.wire);
                let push = self.listener.receive_push(Some(REPLY_MAX))?;
                let words = [&b"message"[..], b"h:news", &text].map(|word| Reply::Bulk(word.to_vec()));
                ensure!(push == Some(Reply::Push(words.to_vec())), "{}: pushed {push:?}", seen.wire);
            }
            10 => {
                let wait = request(&[b"BLPOP", b"h:handed", b"0"]);
                Client::send(&mut self.waiter, &wait)?;
                self.waiter.flush()?;
                let pushed = insist(channel, &[b"RPUSH", b"h:handed", &text])?;
                ensure!(matches!(pushed, Reply::Int(0 | 1)), "{}: RPUSH told {pushed:?}", seen.wire);
                let words = [&b"h:handed"[..], &text].map(|word| Reply::Bulk(word.to_vec()));
                let mut got = Client::receive(&mut self.waiter)?;
                while is_busy(&got) {
                    Client::send(&mut self.waiter, &wait)?;
                    got = Client::receive(&mut self.waiter)?;
                }
                ensure!(got == Reply::Array(words.to_vec()), "{}: BLPOP got {}", seen.wire, brief(&got));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Asks until no script is in the way.
fn insist(client: &mut impl Client, words: &[&[u8]]) -> Result<Reply> {
    loop {
        client.send(&request(words))?;
        let reply = client.receive()?;
        if !is_busy(&reply) {
            return Ok(reply);
        }
    }
}

/// All of them, each on a thread.
pub(crate) struct Crowd {
    pub(crate) seen: Vec<Arc<Seen>>,
    threads: Vec<std::thread::JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    failures: Arc<Mutex<Vec<String>>>,
}

impl Crowd {
    /// Connects them; they begin at once.
    pub(crate) fn start(server: &Server, rng: &mut Rng) -> Result<Self> {
        let mut crowd = Self {
            seen: Vec::new(),
            threads: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            failures: Arc::new(Mutex::new(Vec::new())),
        };
        for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
            for tls in [false, true] {
                let wire = format!("{protocol}{}", if tls { " over TLS" } else { "" });
                let mut client = Connection::connect(&config(server, protocol, tls))?;
                let name = wire.replace(' ', "-");
                let mut model = Model::new(&name, Rng::new(rng.next()), false);
                crowd.spawn(&wire, move |seen| model.step(&mut client, seen))?;
            }
        }
        let mut web = Web::connect(server.port, USER, REPLY_MAX)?;
        let mut model = Model::new("HTTP", Rng::new(rng.next()), true);
        crowd.spawn("HTTP", move |seen| model.step(&mut web, seen))?;
        let mut talk = Talk::new(&config(server, Protocol::Respb, false), rng)?;
        crowd.spawn("RESPB, channels", move |seen| talk.step(seen))?;
        Ok(crowd)
    }

    fn spawn(
        &mut self,
        wire: &str,
        mut step: impl FnMut(&Seen) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let seen = Seen::new(wire)?;
        self.seen.push(Arc::clone(&seen));
        let (stop, failures) = (Arc::clone(&self.stop), Arc::clone(&self.failures));
        self.threads.push(std::thread::spawn(move || {
            while !stop.load(Relaxed) {
                if let Err(error) = step(&seen) {
                    let text = format!("{}: {error:#}", seen.wire);
                    return failures.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                }
                // They are there to notice, not to keep the server busy.
                std::thread::sleep(THINKING);
            }
        }));
        Ok(())
    }

    /// What went wrong so far.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends them, and says what went wrong.
    pub(crate) fn stop(&mut self) -> Vec<String> {
        self.stop.store(true, Relaxed);
        let mut failures = Vec::new();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                failures.push("an honest client has panicked".into());
            }
        }
        failures.extend(self.failures());
        failures
    }
}

fn config(server: &Server, protocol: Protocol, tls: bool) -> Config {
    let config = Config::new("127.0.0.1", server.port)
        .with_protocol(protocol)
        .with_auth(Some(USER.0), USER.1)
        .with_name("honest")
        .with_timeouts(Timeouts::all(Some(REPLY_MAX)));
    let insecure = TlsConfig { insecure: true, ..TlsConfig::default() };
    Config { tls: tls.then_some(insecure), ..config }
}
