//! Owns: what the tests of this crate share: a front that notes what clients are told, and a server that answers as a
//! test says. Does not own: what is tested.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use weft_engine::forward::{Forward, Forwards, Kind};
use weft_engine::mailbox::{Address, Recipient};
use weft_engine::tracking::Names;
use weft_engine::{Engine, Setup};
use weft_protocol::request::Texts;
use weft_protocol::resp::encode::request;
use weft_store::{Config, Keyspace, SystemClock};

use crate::answer::{Answer, Front, Whose};
use crate::dial::Checks;
use crate::figures::Figures;
use crate::hub::Hub;
use crate::kept_bytes::KeptBytes;
use crate::options::Options;
use crate::scripts::{requests, words};
use crate::upstream::Upstream;
use crate::ways;

/// The longest that a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(120);

/// The bytes of a request.
pub(crate) fn request_of(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    request(None, &Texts(words), &mut bytes);
    bytes
}

/// Those of a transaction of one request.
pub(crate) fn transaction_of(words: &[&str]) -> Vec<u8> {
    [request_of(&["MULTI"]), request_of(words), request_of(&["EXEC"])].concat()
}

/// A client of tests, by its number.
pub(crate) const fn client(client: u64) -> Recipient {
    Recipient { address: Address { worker: 0, connection: client as u32, channel: 0 }, client }
}

/// What clients are told, in the order in which they are; and how much waits for others of whom that was told of last.
#[derive(Debug, Default)]
pub(crate) struct Delivered(pub(crate) Vec<String>, pub(crate) usize);

impl Front for Delivered {
    fn answer(&mut self, _: Whose, answer: Answer<'_>) {
        self.0.push(match answer {
            Answer::Reply { bytes, .. } => String::from_utf8_lossy(bytes).trim_end().into(),
            other => format!("{other:?}"),
        });
    }
    fn watch(&mut self, _: BorrowedFd<'_>, _: u32) -> bool {
        true
    }
    fn holds(&mut self, _: Recipient, bytes: usize) {
        self.1 = bytes;
    }
    fn track(&mut self, _: Recipient, _: &Names) {}
    fn track_late(&mut self, _: Recipient, names: &Names) {
        self.0.push(format!("held {}", names.len()));
    }
    fn changed(&mut self, _: Option<&[Box<[u8]>]>) {}
    fn may_wait(&mut self, _: Recipient) -> bool {
        true
    }
    fn warn(&mut self, text: &str) {
        self.0.push(format!("warned: {text}"));
    }
}

/// An engine without keys, which lives as long as the process.
pub(crate) fn engine() -> &'static Engine {
    let keyspace = Keyspace::new(Config::default());
    let setup = Setup { keyspace, clock: Box::new(SystemClock), workers: 1 };
    Box::leak(Box::new(Engine::forwarding(setup, ways::of, false)))
}

/// What a server of tests answers last, behind whatever stands before it: it closes the connection.
pub(crate) const CLOSES: &str = "(closes)";

/// What a server of tests answers to a request's words: of a new connection what it must, where this is nothing.
type Answers = dyn Fn(&str) -> Option<String> + Send + Sync;

/// A server: it notes what it is asked, and answers what it is told to answer.
pub(crate) struct Peer {
    pub(crate) port: u16,
    asked: Arc<(Mutex<Vec<String>>, Condvar)>,
}

impl Peer {
    pub(crate) fn start(answers: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = listener.local_addr().expect("it is bound").port();
        let asked = Arc::<(Mutex<Vec<String>>, Condvar)>::default();
        let (noted, answers): (_, Arc<Answers>) = (Arc::clone(&asked), Arc::new(answers));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (noted, answers) = (Arc::clone(&noted), Arc::clone(&answers));
                thread::spawn(move || serve(stream, &noted, &*answers));
            }
        });
        Self { port, asked }
    }

    /// Options of a gateway before it, with some more.
    pub(crate) fn options(&self, more: &[(&str, &str)]) -> Options {
        let mut options = Options::to(&format!("redis://127.0.0.1:{}", self.port)).expect("it is a URL");
        more.iter().for_each(|(name, value)| assert_eq!(options.set(name, value), Ok(true)));
        options
    }
    /// All that it was asked, but for what new connections are asked.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.0.lock().expect("nobody has panicked").clone()
    }
    /// Waits until something has been asked so often.
    pub(crate) fn wait_for(&self, request: &str, times: usize) {
        let asked = self.asked.0.lock().expect("nobody has panicked");
        let lacks = |all: &mut Vec<String>| all.iter().filter(|one| *one == request).count() < times;
        let (asked, wait) =
            self.asked.1.wait_timeout_while(asked, PATIENCE, lacks).expect("nobody has panicked");
        assert!(!wait.timed_out(), "{request} is not asked: {asked:?}");
    }
}

fn serve(mut stream: TcpStream, noted: &(Mutex<Vec<String>>, Condvar), answers: &Answers) {
    // What the gateway asks of each connection before it is used.
    let mut steps: VecDeque<(&str, &str)> = VecDeque::from([
        ("PING", "+PONG\r\n"),
        ("CLIENT ID", ":7\r\n"),
        ("MULTI", "+OK\r\n"),
        ("EXEC", "*0\r\n"),
    ]);
    let (mut input, mut piece) = (Vec::new(), [0; 64 << 10]);
    while let Ok(len @ 1..) = stream.read(&mut piece) {
        input.extend_from_slice(&piece[..len]);
        let all: Vec<Vec<u8>> = requests(&input).map(<[u8]>::to_vec).collect();
        input.drain(..all.iter().map(Vec::len).sum::<usize>());
        for one in all {
            let words: Vec<_> = words(&one).map(String::from_utf8_lossy).collect();
            let asked = words.join(" ");
            let answer = match asked.split(' ').next() {
                Some("HELLO") => Some("%1\r\n+proto\r\n:3\r\n".to_string()),
                _ if asked.starts_with("CLIENT SET") => Some("+OK\r\n".into()),
                _ if steps.front().is_some_and(|(step, _)| *step == asked) => {
                    steps.pop_front().map(|(_, answer)| answer.into())
                }
                _ => {
                    let answer = answers(&asked);
                    noted.0.lock().expect("nobody has panicked").push(asked);
                    noted.1.notify_all();
                    answer
                }
            };
            let answer = answer.unwrap_or_default();
            let said = answer.strip_suffix(CLOSES);
            if stream.write_all(said.unwrap_or(&answer).as_bytes()).is_err() || said.is_some() {
                return;
            }
        }
    }
}

/// One server behind, and one worker's connections to it. Time is the test's.
pub(crate) struct Bench {
    pub(crate) upstream: Upstream,
    pub(crate) delivered: Delivered,
    pub(crate) kept: KeptBytes,
    pub(crate) now_ms: u64,
}

impl Bench {
    pub(crate) fn new(options: Options) -> Self {
        let leases = options.leases;
        let options = Arc::new(options);
        let hub = Hub::start(Arc::clone(&options), engine()).expect("there are threads");
        let (checks, figures) = (Arc::<Checks>::default(), Arc::<Figures>::default());
        let kept = KeptBytes::default();
        let upstream = Upstream::new(options, leases, (hub, checks, figures), || ()).counting(kept.clone());
        let mut bench = Self { upstream, delivered: Delivered::default(), kept, now_ms: 1_000 };
        bench.turn();
        bench
    }

    /// A client asks for something.
    pub(crate) fn ask(&mut self, number: u64, kind: Kind, db: u8, words: &[&str]) {
        self.ask_so(Forward { db, ..Forward::of(client(number), kind) }, words);
    }
    /// The same of a request of which more is said.
    pub(crate) fn ask_so(&mut self, forward: Forward, words: &[&str]) {
        self.submit([(forward, request_of(words))]);
    }
    /// All of these come at once.
    pub(crate) fn submit(&mut self, all: impl IntoIterator<Item = (Forward, Vec<u8>)>) {
        let mut forwards = Forwards::default();
        for (forward, bytes) in all {
            forwards.bytes.extend_from_slice(&bytes);
            forwards.list.push(Forward { end: forwards.bytes.len(), ..forward });
        }
        self.upstream.submit(&mut forwards, &mut self.delivered);
    }
    /// What a client is told next.
    pub(crate) fn answer(&mut self) -> String {
        self.until("an answer", |bench| !bench.delivered.0.is_empty());
        self.delivered.0.remove(0)
    }
    pub(crate) fn turn(&mut self) {
        self.upstream.begin_tick(self.now_ms, &mut self.delivered);
        let places: Vec<u64> = self.upstream.sockets().map(|(_, place)| place).collect();
        places.into_iter().for_each(|place| self.upstream.event(place as u32, false, &mut self.delivered));
        self.upstream.flush(&mut self.delivered);
    }
    /// Turn by turn, until something holds.
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < end, "{what} does not come about: {:?}", self.delivered);
            self.turn();
            thread::yield_now();
        }
    }
}
