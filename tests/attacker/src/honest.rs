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

use crate::rng::Rng;
use crate::server::Server;

/// Their user, who may use keys that begin with `h:`.
pub(crate) const USER: (&str, &str) = ("honest", "an honest secret");
/// A reply that takes longer has been lost.
const REPLY_MAX: Duration = Duration::from_secs(120);
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
    /// Microseconds from one request to its answer, since the last look.
    latencies: Mutex<Histogram<u64>>,
}

impl Seen {
    fn new(wire: &str) -> Result<Arc<Self>> {
        let latencies = Mutex::new(Histogram::new(3)?);
        Ok(Arc::new(Self { wire: wire.into(), replies: AtomicU64::new(0), latencies }))
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
    fn send(&mut self, request: &[Vec<u8>]) -> weft_client::Result<()>;
    fn receive(&mut self) -> weft_client::Result<Reply>;
}

impl Client for Connection {
    fn send(&mut self, request: &[Vec<u8>]) -> weft_client::Result<()> {
        Connection::send(self, request).map(|_| ())
    }
    fn receive(&mut self) -> weft_client::Result<Reply> {
        Connection::receive(self)
    }
}

impl Client for Channel {
    fn send(&mut self, request: &[Vec<u8>]) -> weft_client::Result<()> {
        Channel::send(self, request).map(|_| ())
    }
    fn receive(&mut self) -> weft_client::Result<Reply> {
        Channel::receive(self)
    }
}

fn request(words: &[&[u8]]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.to_vec()).collect()
}

/// What a client has stored.
struct Model {
    prefix: String,
    rng: Rng,
    strings: HashMap<usize, Vec<u8>>,
    fields: HashMap<usize, Vec<u8>>,
    list: VecDeque<Vec<u8>>,
    sum: i64,
}

impl Model {
    fn new(name: &str, rng: Rng) -> Self {
        let prefix = format!("h:{name}:");
        Self { prefix, rng, strings: HashMap::new(), fields: HashMap::new(), list: VecDeque::new(), sum: 0 }
    }

    fn key(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.prefix).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let large = if self.rng.one_in(50) { 64 << 10 } else { 0 };
        let len = self.rng.below(SMALL_BYTES) + large;
        self.rng.bytes(len)
    }

    /// A request and its answer.
    fn next(&mut self) -> (Vec<Vec<u8>>, Reply) {
        let at = self.rng.below(KEYS);
        let (string, field) = (self.key(&format!("s:{at}")), at.to_string().into_bytes());
        let (hash, list, sum) = (self.key("hash"), self.key("list"), self.key("sum"));
        let bulk = |value: Option<&Vec<u8>>| value.map_or(Reply::Null, |value| Reply::Bulk(value.clone()));
        match self.rng.below(10) {
            0 | 1 => {
                let value = self.value();
                self.strings.insert(at, value.clone());
                (request(&[b"SET", &string, &value]), Reply::Simple(b"OK".to_vec()))
            }
            2 | 3 => (request(&[b"GET", &string]), bulk(self.strings.get(&at))),
            4 => {
                let had = self.strings.remove(&at).is_some();
                (request(&[b"DEL", &string]), Reply::Int(had.into()))
            }
            5 => {
                self.sum += at as i64;
                (request(&[b"INCRBY", &sum, &field]), Reply::Int(self.sum))
            }
            6 => {
                let value = self.value();
                let is_new = self.fields.insert(at, value.clone()).is_none();
                (request(&[b"HSET", &hash, &field, &value]), Reply::Int(is_new.into()))
            }
            7 => (request(&[b"HGET", &hash, &field]), bulk(self.fields.get(&at))),
            8 if self.list.len() < LIST_MAX => {
                let value = self.value();
                self.list.push_back(value.clone());
                (request(&[b"RPUSH", &list, &value]), Reply::Int(self.list.len() as i64))
            }
            _ => (request(&[b"LPOP", &list]), bulk(self.list.pop_front().as_ref())),
        }
    }

    /// Some requests at once, with their answers: one, a pipeline, or a transaction.
    fn some(&mut self) -> (Vec<Vec<Vec<u8>>>, Vec<Reply>) {
        let kind = self.rng.below(10);
        if kind > 1 {
            return (vec![self.next()]).into_iter().unzip();
        }
        let (mut requests, mut replies): (Vec<_>, Vec<_>) = (0..PIPELINE).map(|_| self.next()).unzip();
        if kind == 1 {
            requests.insert(0, request(&[b"MULTI"]));
            requests.push(request(&[b"EXEC"]));
            let queued = std::iter::repeat_n(Reply::Simple(b"QUEUED".to_vec()), PIPELINE);
            let first = std::iter::once(Reply::Simple(b"OK".to_vec()));
            replies = first.chain(queued).chain([Reply::Array(replies)]).collect();
        }
        (requests, replies)
    }

    /// Asks, and checks the answers.
    fn step(&mut self, client: &mut impl Client, seen: &Seen) -> Result<()> {
        let (requests, wanted) = self.some();
        let began = Instant::now();
        for request in &requests {
            client.send(request)?;
        }
        for (request, wanted) in requests.iter().zip(&wanted) {
            let got = client.receive()?;
            if got != *wanted {
                bail!("{}: {} answered {}, not {}", seen.wire, shown(request), brief(&got), brief(wanted));
            }
        }
        if requests.len() == 1 {
            seen.note(began.elapsed());
        }
        seen.replies.fetch_add(requests.len() as u64, Relaxed);
        Ok(())
    }
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
            .map(|at| Ok((mux.channel()?, Model::new(&format!("mux{at}"), Rng::new(rng.next())))))
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
                let told = channel.command(&[&b"PUBLISH"[..], b"h:news", &text])?;
                ensure!(told == Reply::Int(1), "{}: PUBLISH reached {told:?}", seen.wire);
                let push = self.listener.receive_push(Some(REPLY_MAX))?;
                let words = [&b"message"[..], b"h:news", &text].map(|word| Reply::Bulk(word.to_vec()));
                ensure!(push == Some(Reply::Push(words.to_vec())), "{}: pushed {push:?}", seen.wire);
            }
            10 => {
                Client::send(&mut self.waiter, &request(&[b"BLPOP", b"h:handed", b"0"]))?;
                self.waiter.flush()?;
                let pushed = channel.command(&[&b"RPUSH"[..], b"h:handed", &text])?;
                ensure!(matches!(pushed, Reply::Int(0 | 1)), "{}: RPUSH told {pushed:?}", seen.wire);
                let words = [&b"h:handed"[..], &text].map(|word| Reply::Bulk(word.to_vec()));
                let got = self.waiter.receive()?;
                ensure!(got == Reply::Array(words.to_vec()), "{}: BLPOP got {}", seen.wire, brief(&got));
            }
            _ => {}
        }
        Ok(())
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
                let mut model = Model::new(&name, Rng::new(rng.next()));
                crowd.spawn(&wire, move |seen| model.step(&mut client, seen))?;
            }
        }
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
