//! Owns: honest clients: what they ask, the one right answer to each request, how long it took. Does not own: the
//! server, who attacks it.
//!
//! Each has keys of its own and a model of them in memory, so that every reply is known before it comes. Where a
//! server may evict keys, or a key has a time to live, what is not there any more is known, and how it must be then.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use hdrhistogram::Histogram;
use weft_client::{Channel, Config, Connection, Mux, Protocol, Reply, Timeouts, TlsConfig};

use crate::hostile::{is_busy, is_full};
use crate::latency;
use crate::rng::Rng;
use crate::server::Server;
use crate::watch;
use crate::web::Web;

/// Their user, who may use keys that begin with `h:`.
pub(crate) const USER: (&str, &str) = ("honest", "an-honest-secret");
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
/// Times to live, in milliseconds: some are soon over.
const LIVING_MS: [usize; 4] = [1, 20, 200, 20_000];
/// How much sooner than by a client's clock a key may be gone: a server looks at its clock now and then, and may stall.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);
/// A list is not longer.
const LIST_MAX: usize = 64;

/// What the clients of one wire have seen.
pub(crate) struct Seen {
    pub(crate) wire: String,
    pub(crate) replies: AtomicU64,
    /// Those of them that said that nothing was done, since a script takes its time or memory is full.
    pub(crate) refused: AtomicU64,
    /// Microseconds from one request to its answer, since the last look.
    latencies: Mutex<Histogram<u64>>,
    /// The longest time from sending to the last answer: of one request, or of a few that were sent together.
    longest_us: AtomicU64,
}

impl Seen {
    fn new(wire: &str) -> Arc<Self> {
        let latencies = Mutex::new(latency::histogram());
        Arc::new(Self {
            wire: wire.into(),
            replies: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            latencies,
            longest_us: AtomicU64::new(0),
        })
    }
    /// The latencies since the last look.
    pub(crate) fn take_latencies(&self) -> Histogram<u64> {
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = latencies.clone();
        latencies.reset();
        taken
    }
    /// The longest that one of them has waited for its answers.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_micros(self.longest_us.load(Relaxed))
    }
    fn note(&self, took: Duration) {
        latency::note(&mut self.latencies.lock().unwrap_or_else(PoisonError::into_inner), took);
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

/// Which keys a server may lose, beside those whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    None,
    Volatile,
    Any,
}

impl Loss {
    /// By the policy among its flags.
    pub(crate) fn of(flags: &[(String, String)]) -> Self {
        let policy = flags.iter().rev().find(|(name, _)| name == "--maxmemory-policy");
        match policy.map_or("", |(_, value)| value).split('-').next() {
            Some("allkeys") => Self::Any,
            Some("volatile") => Self::Volatile,
            _ => Self::None,
        }
    }
}

/// What can be asked of a model's keys.
#[derive(Clone, Debug)]
enum Ask {
    Set(usize, Vec<u8>),
    /// With a time to live, in milliseconds.
    SetFor(usize, Vec<u8>, usize),
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
    loss: Loss,
    strings: HashMap<usize, Vec<u8>>,
    /// Strings with a time to live, and until when they are there in any case.
    times: HashMap<usize, Instant>,
    fields: HashMap<usize, Vec<u8>>,
    list: VecDeque<Vec<u8>>,
    sum: i64,
    /// It may be told that what it asked is not known to have run.
    doubts: bool,
    /// It was, and its keys are of no use to it any more.
    in_doubt: bool,
}

impl Model {
    fn new(name: &str, rng: Rng, is_web: bool, (loss, doubts): (Loss, bool)) -> Self {
        let (strings, times, fields, list) = Default::default();
        let prefix = format!("h:{name}:");
        Self { prefix, rng, is_web, loss, strings, times, fields, list, sum: 0, doubts, in_doubt: false }
    }

    /// Goes on with keys that nobody has used.
    fn renew(&mut self) {
        let (rng, loss) = (Rng::new(self.rng.next()), (self.loss, self.doubts));
        let name = self.prefix.trim_start_matches("h:").trim_end_matches(':').to_string();
        *self = Self::new(&format!("{name}+"), rng, self.is_web, loss);
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
            0 => Ask::Set(at, self.value()),
            1 => Ask::SetFor(at, self.value(), *self.rng.pick(&LIVING_MS)),
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
            Ask::SetFor(at, value, ms) => request(&[b"SET", &string(at), value, b"PX", &number(ms)]),
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
    fn expected(&mut self, ask: Ask, sent: Instant) -> Reply {
        let bulk = |value: Option<Vec<u8>>| value.map_or(Reply::Null, Reply::Bulk);
        match ask {
            Ask::Set(at, value) => {
                self.times.remove(&at);
                self.strings.insert(at, value);
                ok()
            }
            Ask::SetFor(at, value, ms) => {
                let living = Duration::from_millis(ms as u64);
                self.times.insert(at, sent + living.saturating_sub(CLOCKS_DIFFER));
                self.strings.insert(at, value);
                ok()
            }
            Ask::Get(at) => bulk(self.strings.get(&at).cloned()),
            Ask::Del(at) => {
                self.times.remove(&at);
                Reply::Int(self.strings.remove(&at).is_some().into())
            }
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

    /// Whether what it is about may be gone.
    fn may_be_gone(&self, ask: &Ask) -> bool {
        let volatile = match ask {
            Ask::Get(at) | Ask::Del(at) => self.times.get(at),
            _ => None,
        };
        self.loss == Loss::Any
            || volatile.is_some_and(|until| self.loss == Loss::Volatile || Instant::now() > *until)
    }

    /// It is gone. Of a hash the one field: another may have been set since.
    fn lose(&mut self, ask: &Ask) {
        match ask {
            Ask::Set(..) | Ask::SetFor(..) => {}
            Ask::Get(at) | Ask::Del(at) => {
                self.times.remove(at);
                self.strings.remove(at);
            }
            Ask::IncrBy(_) => self.sum = 0,
            Ask::HSet(at, _) | Ask::HGet(at) => {
                self.fields.remove(at);
            }
            Ask::RPush(_) | Ask::LPop => self.list.clear(),
        }
    }

    /// Asks one thing, some at once, or some in a transaction, and checks the answers.
    fn step(&mut self, client: &mut impl Client, seen: &Seen) -> Result<()> {
        let began = Instant::now();
        match self.rng.below(10) {
            0 => self.pipeline(client, seen, PIPELINE)?,
            1 if !self.is_web => self.transaction(client, seen)?,
            _ => {
                self.pipeline(client, seen, 1)?;
                seen.note(began.elapsed());
            }
        }
        seen.longest_us.fetch_max(began.elapsed().as_micros() as u64, Relaxed);
        if self.in_doubt {
            self.renew();
        }
        Ok(())
    }

    fn pipeline(&mut self, client: &mut impl Client, seen: &Seen, count: usize) -> Result<()> {
        let asked: Vec<Ask> = (0..count).map(|_| self.next()).collect();
        let sent = Instant::now();
        for ask in &asked {
            client.send(&self.request(ask))?;
        }
        for ask in asked {
            let got = client.receive().with_context(|| self.waited(&ask, sent))?;
            self.answered(ask, sent, got, seen)?;
        }
        Ok(())
    }

    /// What was waited for in vain.
    fn waited(&self, ask: &Ask, sent: Instant) -> String {
        format!("{} has no answer {:.1?} after it was sent", shown(&self.request(ask)), sent.elapsed())
    }

    /// An answer is the right one, or says that nothing was done.
    fn answered(&mut self, ask: Ask, sent: Instant, got: Reply, seen: &Seen) -> Result<()> {
        seen.replies.fetch_add(1, Relaxed);
        if is_busy(&got) || is_full(&got) {
            seen.refused.fetch_add(1, Relaxed);
            return Ok(());
        }
        if self.doubts && is_of_doubt(&got) {
            self.in_doubt = true;
            return Ok(());
        }
        if self.in_doubt {
            // What it must be is not known, but its kind is.
            let wanted = self.expected(ask, sent);
            let may_be = got == Reply::Null || wanted == Reply::Null && matches!(got, Reply::Bulk(_));
            let is_alike = std::mem::discriminant(&got) == std::mem::discriminant(&wanted)
                && (got == wanted || !matches!(got, Reply::Simple(_)));
            ensure!(
                may_be || is_alike,
                "{}: in doubt came {}, not {}",
                seen.wire,
                brief(&got),
                brief(&wanted)
            );
            return Ok(());
        }
        let (shown, may_be_gone) = (shown(&self.request(&ask)), self.may_be_gone(&ask));
        let wanted = self.expected(ask.clone(), sent);
        if got != wanted && may_be_gone {
            self.lose(&ask);
            let after_loss = self.expected(ask, sent);
            ensure!(got == after_loss, "{}: {shown} answered {}, and was lost", seen.wire, brief(&got));
            return Ok(());
        }
        ensure!(got == wanted, "{}: {shown} answered {}, not {}", seen.wire, brief(&got), brief(&wanted));
        Ok(())
    }

    /// MULTI to EXEC. What is refused is not part of it, and leaves nothing of it.
    fn transaction(&mut self, client: &mut impl Client, seen: &Seen) -> Result<()> {
        let asked: Vec<Ask> = (0..PIPELINE).map(|_| self.next()).collect();
        let sent = Instant::now();
        client.send(&request(&[b"MULTI"]))?;
        for ask in &asked {
            client.send(&self.request(ask))?;
        }
        client.send(&request(&[b"EXEC"]))?;
        let begun = client.receive().context("MULTI has no answer")?;
        ensure!(begun == ok() || is_busy(&begun), "{}: MULTI answered {}", seen.wire, brief(&begun));
        if begun != ok() {
            for ask in asked {
                self.answered(ask, sent, client.receive()?, seen)?;
            }
            let end = client.receive()?;
            ensure!(matches!(end, Reply::Error(_)), "{}: EXEC alone answered {}", seen.wire, brief(&end));
            return Ok(());
        }
        let mut was_refused = false;
        for _ in &asked {
            let got = client.receive().context("what MULTI queues has no answer")?;
            was_refused |= is_busy(&got) || is_full(&got);
            let queued = Reply::Simple(b"QUEUED".to_vec());
            ensure!(got == queued || was_refused, "{}: in MULTI came {}", seen.wire, brief(&got));
        }
        match client.receive().context("EXEC has no answer")? {
            Reply::Array(replies) if !was_refused && replies.len() == asked.len() => {
                asked.into_iter().zip(replies).try_for_each(|(ask, got)| self.answered(ask, sent, got, seen))
            }
            got if self.doubts && is_of_doubt(&got) => {
                self.in_doubt = true;
                Ok(())
            }
            Reply::Error(text) if was_refused || tells_of_refusal(&text) => {
                seen.refused.fetch_add(1, Relaxed);
                Ok(())
            }
            got => bail!("{}: EXEC answered {}", seen.wire, brief(&got)),
        }
    }
}

fn ok() -> Reply {
    Reply::Simple(b"OK".to_vec())
}

/// The gateway has lost the connection behind, and says what it knows.
fn is_of_doubt(reply: &Reply) -> bool {
    let words = ["has run is not known", "the request was not sent", "cannot be reached"];
    matches!(reply, Reply::Error(text) if words.iter().any(|word| String::from_utf8_lossy(text).contains(word)))
}

fn tells_of_refusal(text: &[u8]) -> bool {
    [&b"BUSY "[..], b"OOM "].iter().any(|word| text.windows(word.len()).any(|part| part == *word))
}

fn shown(request: &[Vec<u8>]) -> String {
    request.iter().map(|word| word.escape_ascii().to_string()).take(3).collect::<Vec<_>>().join(" ")
}

fn brief(reply: &Reply) -> String {
    let text = match reply {
        Reply::Error(text) => format!("error {}", text.escape_ascii()),
        other => format!("{other:?}"),
    };
    text.chars().take(200).collect()
}

/// Clients that talk to each other on channels of one connection: messages, and values handed over to who waits.
struct Talk {
    models: Vec<Model>,
    channels: Vec<Channel>,
    listener: Channel,
    waiter: Channel,
    turn: u64,
}

impl Talk {
    fn new(config: &Config, models: Vec<Model>) -> Result<Self> {
        let mux = Mux::connect(config)?;
        let channels = models.iter().map(|_| mux.channel()).collect::<Result<_, _>>()?;
        let (mut listener, waiter) = (mux.channel()?, mux.channel()?);
        listener.subscribe(&["h:news"])?;
        Ok(Self { models, channels, listener, waiter, turn: 0 })
    }

    fn step(&mut self, seen: &Seen) -> Result<()> {
        self.turn += 1;
        let at = self.turn as usize % self.channels.len();
        let (channel, model) = (&mut self.channels[at], &mut self.models[at]);
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
            // What waits to be taken might be evicted.
            10 if model.loss != Loss::Any => {
                let wait = request(&[b"BLPOP", b"h:handed", b"0"]);
                Client::send(&mut self.waiter, &wait)?;
                self.waiter.flush()?;
                let pushed = insist(channel, &[b"RPUSH", b"h:handed", &text])?;
                ensure!(matches!(pushed, Reply::Int(0 | 1)), "{}: RPUSH told {pushed:?}", seen.wire);
                let words = [&b"h:handed"[..], &text].map(|word| Reply::Bulk(word.to_vec()));
                let mut got = Client::receive(&mut self.waiter).context("BLPOP has no answer")?;
                while is_busy(&got) {
                    Client::send(&mut self.waiter, &wait)?;
                    got = Client::receive(&mut self.waiter).context("BLPOP has no answer")?;
                }
                ensure!(got == Reply::Array(words.to_vec()), "{}: BLPOP got {}", seen.wire, brief(&got));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Asks until no script is in the way and there is memory.
fn insist(client: &mut impl Client, words: &[&[u8]]) -> Result<Reply> {
    loop {
        client.send(&request(words))?;
        let reply = client.receive().with_context(|| format!("{} has no answer", words[0].escape_ascii()))?;
        if !is_busy(&reply) && !is_full(&reply) {
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
    /// Who takes a step reads it.
    place: Arc<RwLock<Place>>,
}

/// Where the server is.
#[derive(Clone, Copy)]
struct Place {
    port: u16,
    /// How often it was started again.
    restarts: u32,
}

/// All of them stand still.
pub(crate) struct Held<'c>(RwLockWriteGuard<'c, Place>);

impl Held<'_> {
    /// They go on, with new connections.
    pub(crate) fn go_on_at(mut self, port: u16) {
        *self.0 = Place { port, restarts: self.0.restarts + 1 };
    }
}

impl Crowd {
    /// Connects them; they begin at once.
    pub(crate) fn start(server: &Server, loss: Loss, doubts: bool, rng: &mut Rng) -> Result<Self> {
        let mut crowd = Self {
            seen: Vec::new(),
            threads: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            failures: Arc::new(Mutex::new(Vec::new())),
            place: Arc::new(RwLock::new(Place { port: server.port, restarts: 0 })),
        };
        let mut model = |name: &str, is_web| Model::new(name, Rng::new(rng.next()), is_web, (loss, doubts));
        for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
            for tls in [false, true] {
                let wire = format!("{protocol}{}", if tls { " over TLS" } else { "" });
                let connect = move |port| Ok(Connection::connect(&config(port, protocol, tls))?);
                crowd.spawn_one(&wire, model(&wire.replace(' ', "-"), false), connect)?;
            }
        }
        crowd.spawn_one("HTTP", model("HTTP", true), |port| Web::connect(port, USER, REPLY_MAX))?;
        if doubts {
            // What is handed over would be lost with a reply.
            return Ok(crowd);
        }
        let models = (0..CHANNELS).map(|at| model(&format!("mux{at}"), false)).collect();
        let over = |port| config(port, Protocol::Respb, false);
        let mut talk = Talk::new(&over(server.port), models)?;
        crowd.spawn("RESPB, channels", move |seen, moved| {
            if let Some(port) = moved {
                talk = Talk::new(&over(port), std::mem::take(&mut talk.models))?;
            }
            talk.step(seen)
        });
        Ok(crowd)
    }

    /// One with a connection.
    fn spawn_one<C: Client + Send + 'static>(
        &mut self,
        wire: &str,
        mut model: Model,
        connect: impl Fn(u16) -> Result<C> + Send + 'static,
    ) -> Result<()> {
        let port = self.place.read().unwrap_or_else(PoisonError::into_inner).port;
        let mut client = connect(port)?;
        self.spawn(wire, move |seen, moved| {
            if let Some(port) = moved {
                client = connect(port)?;
            }
            model.step(&mut client, seen)
        });
        Ok(())
    }

    /// A thread that takes steps, and is told where the server is when it is somewhere else.
    fn spawn(&mut self, wire: &str, mut step: impl FnMut(&Seen, Option<u16>) -> Result<()> + Send + 'static) {
        let seen = Seen::new(wire);
        self.seen.push(Arc::clone(&seen));
        let (stop, failures) = (Arc::clone(&self.stop), Arc::clone(&self.failures));
        let place = Arc::clone(&self.place);
        self.threads.push(std::thread::spawn(move || {
            let mut restarts = 0;
            while !stop.load(Relaxed) {
                let here = place.read().unwrap_or_else(PoisonError::into_inner);
                let moved = (here.restarts != restarts).then_some(here.port);
                restarts = here.restarts;
                let _step = watch::step(format!("{}: a step of an honest client", seen.wire));
                if let Err(error) = step(&seen, moved) {
                    let text = format!("{}: {error:#}", seen.wire);
                    return failures.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                }
                drop(here);
                // They are there to notice, not to keep the server busy.
                std::thread::sleep(THINKING);
            }
        }));
    }

    /// Waits until all stand still, every answer checked.
    pub(crate) fn hold(&self) -> Held<'_> {
        Held(self.place.write().unwrap_or_else(PoisonError::into_inner))
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

fn config(port: u16, protocol: Protocol, tls: bool) -> Config {
    let config = Config::new("127.0.0.1", port)
        .with_protocol(protocol)
        .with_auth(Some(USER.0), USER.1)
        .with_name("honest")
        .with_timeouts(Timeouts::all(Some(REPLY_MAX)));
    let insecure = TlsConfig { insecure: true, ..TlsConfig::default() };
    Config { tls: tls.then_some(insecure), ..config }
}
