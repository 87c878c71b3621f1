//! Fleets against a server that answers everything, and against one that makes trouble.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weft_client::fleet::relay::Relay;
use weft_client::fleet::stub::{Stub, Trouble};
use weft_client::fleet::{Batch, Counts, Done, Ended, Fleet, Kind, Load, Pace, Until};
use weft_client::{Config, Error, Protocol, Timeouts};
use weft_protocol::respb::{Mode, RequestWriter};
use weft_protocol::{Arg, resp};

/// A stub on a thread of its own.
struct Peer {
    port: u16,
    /// How long the next reply may take.
    patience: Duration,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

/// Longer than a busy machine keeps a thread waiting: only what hangs takes so long.
const HANGS: Duration = Duration::from_secs(240);

impl Peer {
    fn start(trouble: Trouble) -> Peer {
        let stub = Stub::bind("127.0.0.1:0", 5, trouble).unwrap();
        let port = stub.address().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || stub.serve(&flag).unwrap()));
        // Short only where waiting is what is tested.
        let silent = matches!(trouble, Trouble::FallsSilent(_) | Trouble::StopsReading(_));
        let patience = if silent { Duration::from_millis(300) } else { HANGS };
        Peer { port, patience, stop, thread }
    }

    fn config(&self, protocol: Protocol) -> Config {
        let timeouts = Timeouts { reply: Some(self.patience), ..Timeouts::all(Some(HANGS)) };
        Config { timeouts, ..config(self.port, protocol) }
    }

    /// The commands that it was sent.
    fn end(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn config(port: u16, protocol: Protocol) -> Config {
    Config { protocol, ..Config::new("127.0.0.1", port) }
}

/// Answers of which [`Same`] keeps when they were due.
const DUE_MAX: usize = 1000;

/// The same batch again and again.
struct Same {
    bytes: Vec<u8>,
    frames: Vec<u32>,
    batches: u64,
    answered: u64,
    values: u64,
    kinds: u64,
    slowest_ns: u64,
    /// When each of the first answers was due.
    due: Vec<Instant>,
    order: Vec<u32>,
}

impl Same {
    fn new(protocol: Protocol, argv: &[&str], pipeline: usize, batches: u64) -> Same {
        Same::of(protocol, &vec![argv; pipeline], batches)
    }
    fn of(protocol: Protocol, batch: &[&[&str]], batches: u64) -> Same {
        let (mut bytes, mut frames) = (Vec::new(), Vec::new());
        for &argv in batch {
            frames.push(bytes.len() as u32);
            if protocol == Protocol::Respb {
                RequestWriter::new(&mut bytes, 0).command(argv, Mode::Exact);
            } else {
                let args: Vec<Arg<'_>> = argv.iter().map(|arg| Arg::Bytes(arg.as_bytes())).collect();
                resp::encode::request(None, args.as_slice(), &mut bytes);
            }
        }
        Same {
            bytes,
            frames,
            batches,
            answered: 0,
            values: 0,
            kinds: 0,
            slowest_ns: 0,
            due: Vec::new(),
            order: Vec::new(),
        }
    }
}

impl Load for Same {
    fn next(&mut self, client: u32) -> Option<Batch<'_>> {
        self.batches = self.batches.checked_sub(1)?;
        self.order.push(client);
        Some(Batch { bytes: &mut self.bytes, frames: &self.frames, tag: 7 })
    }
    fn done(&mut self, done: Done) {
        assert_eq!(done.tag, 7);
        assert!(done.first + done.count <= self.frames.len() as u32);
        self.answered += u64::from(done.count);
        self.slowest_ns = self.slowest_ns.max(done.since_due_ns);
        if self.due.len() < DUE_MAX {
            self.due.push(Instant::now() - Duration::from_nanos(done.since_due_ns));
        }
    }
    fn wants_values(&self) -> bool {
        true
    }
    fn wants_kinds(&self) -> bool {
        true
    }
    fn kind(&mut self, _client: u32, request: u32, kind: Kind) {
        assert!(request < self.frames.len() as u32);
        self.kinds += u64::from(kind == Kind::Text);
    }
    fn value(&mut self, _client: u32, request: u32, part: u32, bytes: Option<&[u8]>) {
        assert!(request < self.frames.len() as u32);
        assert_eq!((part, bytes), (0, Some(&b"xxxxx"[..])));
        self.values += 1;
    }
}

fn run(peer: &Peer, protocol: Protocol, shape: (u32, u32), load: &mut Same, until: Until) -> Counts {
    let mut fleet = loop {
        match Fleet::connect(&peer.config(protocol), shape.0, shape.1) {
            Ok(fleet) => break fleet,
            // Where the patience is short, a stalled machine may take longer to say hello.
            Err(Error::Timeout(..)) if peer.patience < HANGS => {}
            Err(error) => panic!("{error}"),
        }
    };
    fleet.run(load, Pace::Closed, until, &AtomicBool::new(false)).unwrap()
}

#[test]
fn every_request_is_answered_on_every_protocol() {
    for (protocol, shape) in [
        (Protocol::Resp2, (3, 1)),
        (Protocol::Resp3, (3, 1)),
        (Protocol::Respb, (3, 1)),
        (Protocol::Respb, (2, 300)),
        (Protocol::Resp3, (2, 300)),
    ] {
        for pipeline in [1, 100] {
            let peer = Peer::start(Trouble::None);
            let mut load = Same::new(protocol, &["GET", "key:000000000001"], pipeline, 700);
            let counts = run(&peer, protocol, shape, &mut load, Until::Exhausted);
            assert_eq!(counts.replies, 700 * pipeline as u64);
            assert_eq!((load.answered, load.values), (counts.replies, counts.replies));
            assert!(counts.is_clean(), "{counts:?}");
            assert_eq!(load.kinds, counts.replies, "each reply is a text");
            let greetings = if protocol == Protocol::Resp2 { 3 } else { 0 };
            assert_eq!(peer.end(), counts.requests + greetings, "{protocol} {shape:?}");
        }
    }
}

/// More of them than the stub knows at once, each beside others that begin as it does and are longer.
#[test]
fn requests_of_many_lengths_are_told_apart() {
    let keys: Vec<String> =
        (0..40).map(|len| "$2\r\n".chars().cycle().take(len * 7 % 40).collect()).collect();
    let batch: Vec<[&str; 2]> = keys.iter().map(|key| ["GET", key.as_str()]).collect();
    let batch: Vec<&[&str]> = batch.iter().map(<[&str; 2]>::as_slice).collect();
    for protocol in [Protocol::Resp3, Protocol::Respb] {
        let peer = Peer::start(Trouble::None);
        let mut load = Same::of(protocol, &batch, 50);
        let counts = run(&peer, protocol, (2, 1), &mut load, Until::Exhausted);
        assert_eq!((counts.replies, load.values), (2000, 2000), "{counts:?}");
        assert!(counts.is_clean(), "{counts:?}");
        assert_eq!(peer.end(), 2000, "{protocol}");
    }
}

/// What is published goes to each who has subscribed, whichever wire he and who publishes speak.
#[test]
fn who_subscribes_to_the_stub_hears_all() {
    for (hears, shape) in [(Protocol::Resp3, (3, 1)), (Protocol::Respb, (2, 3))] {
        for says in [Protocol::Resp2, Protocol::Respb] {
            let peer = Peer::start(Trouble::None);
            let mut fleet = Fleet::connect(&peer.config(hears), shape.0, shape.1).unwrap();
            fleet.subscribe(&["SUBSCRIBE", "news"]).unwrap();
            let (stop, heard) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
            let (stopped, hears_so_far) = (Arc::clone(&stop), Arc::clone(&heard));
            let thread = std::thread::spawn(move || fleet.listen(&stopped, &hears_so_far).unwrap());
            let mut load = Same::new(says, &["PUBLISH", "news", "0123456789"], 8, 100);
            let counts = run(&peer, says, (2, 1), &mut load, Until::Exhausted);
            assert!(counts.is_clean() && counts.replies == 800, "{counts:?}");
            let (due, begun) = (800 * u64::from(shape.0 * shape.1), Instant::now());
            while heard.load(Ordering::Relaxed) < due && begun.elapsed() < HANGS {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
            let counts = thread.join().unwrap();
            assert_eq!((counts.pushes, counts.errors), (due, 0), "{hears} {says} {counts:?}");
        }
    }
}

#[test]
fn a_channel_is_a_client_of_its_own_and_a_tick_is_one_send() {
    let peer = Peer::start(Trouble::None);
    let mut load = Same::new(Protocol::Respb, &["GET", "key:000000000001"], 1, 64 * 50);
    let counts = run(&peer, Protocol::Respb, (1, 64), &mut load, Until::Exhausted);
    assert_eq!(counts.replies, 64 * 50);
    let first: Vec<u32> = (0..64).collect();
    assert_eq!(load.order[..64], first);
    // The stub answers each piece with one piece, so that all channels go round together.
    assert!(counts.sends <= 64 * 50 / 16, "{counts:?}");
}

#[test]
fn clients_that_share_a_connection_pipeline_by_themselves() {
    let peer = Peer::start(Trouble::None);
    let mut load = Same::new(Protocol::Resp3, &["GET", "key:000000000001"], 1, 64 * 50);
    let counts = run(&peer, Protocol::Resp3, (1, 64), &mut load, Until::Exhausted);
    assert_eq!((counts.replies, load.kinds), (64 * 50, 64 * 50));
    assert!(counts.is_clean() && counts.sends <= 64 * 50 / 16, "{counts:?}");
    // Each has an answer before it asks again, whoever shares its connection.
    let mut asked = [0u32; 64];
    load.order.iter().for_each(|&client| asked[client as usize] += 1);
    assert_eq!(asked, [50; 64]);
}

#[test]
fn trouble_is_counted_and_nothing_hangs() {
    for protocol in [Protocol::Resp2, Protocol::Respb] {
        for trouble in [
            Trouble::Dies(500),
            Trouble::FallsSilent(500),
            Trouble::StopsReading(500),
            Trouble::Garbage(500),
            Trouble::Errors(500),
            Trouble::Twice(500),
        ] {
            let peer = Peer::start(trouble);
            let mut load = Same::new(protocol, &["GET", "key:000000000001"], 10, 200);
            let counts = run(&peer, protocol, (4, 1), &mut load, Until::Exhausted);
            let at = format!("{protocol} {trouble:?} {counts:?}");
            assert!(!counts.is_clean(), "{at}");
            assert_eq!(counts.requests, counts.replies + counts.lost, "{at}");
            match trouble {
                Trouble::Dies(_) => assert!(counts.closed == 4 && counts.ended == Ended::Lost, "{at}"),
                Trouble::FallsSilent(_) | Trouble::StopsReading(_) => {
                    assert!(counts.lost > 0 && counts.ended == Ended::Stalled, "{at}");
                }
                Trouble::Garbage(_) | Trouble::Twice(_) => {
                    assert!(counts.malformed == 4 && counts.ended == Ended::Lost, "{at}");
                }
                _ => {
                    assert_eq!(counts.ended, Ended::Done, "{at}");
                    assert!(counts.errors >= 1000 && counts.replies == 2000, "{at}");
                    assert_eq!(counts.error_texts, [("ERR trouble".to_string(), counts.errors)]);
                }
            }
        }
    }
}

#[test]
fn a_server_without_respb_is_named_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"-ERR Syntax error in HELLO option 'PROTO'\r\n").unwrap();
    });
    let config = |port| config(port, Protocol::Respb);
    let error = Fleet::connect(&config(port), 1, 1).unwrap_err();
    assert!(matches!(&error, Error::NoProtocol { .. }), "{error}");
    thread.join().unwrap();
    assert!(matches!(Fleet::connect(&config(1), 1, 1).unwrap_err(), Error::Connect { .. }));
    assert!(matches!(Fleet::connect(&config(port), 1, 65_537).unwrap_err(), Error::Config(_)));
}

#[test]
fn a_stop_ends_a_run_at_once() {
    let peer = Peer::start(Trouble::FallsSilent(100));
    let mut fleet = Fleet::connect(&config(peer.port, Protocol::Resp2), 2, 1).unwrap();
    let mut load = Same::new(Protocol::Resp2, &["GET", "key"], 1, u64::MAX);
    let counts = fleet.run(&mut load, Pace::Closed, Until::Exhausted, &AtomicBool::new(true)).unwrap();
    assert!(counts.ended == Ended::Done || counts.ended == Ended::Stopped, "{counts:?}");
    assert!(counts.requests >= 2);
}

#[test]
fn a_fixed_rate_is_kept_and_a_late_answer_counts_from_when_it_was_due() {
    let peer = Peer::start(Trouble::None);
    let mut fleet = Fleet::connect(&peer.config(Protocol::Respb), 1, 8).unwrap();
    let mut load = Same::new(Protocol::Respb, &["GET", "key"], 1, 1000);
    let pace = Pace::Fixed { batches_per_second: 2000.0 };
    let began = Instant::now();
    let counts = fleet.run(&mut load, pace, Until::Exhausted, &AtomicBool::new(false)).unwrap();
    let taken = began.elapsed();
    assert_eq!(counts.replies, 1000, "{counts:?}");
    // Each batch was due half a millisecond after the one before. A machine that stalls adds to when an answer comes
    // and never to when it was due; between two looks at the clock it may stall too, but not each time.
    load.due.sort();
    let due = |at: usize| Duration::from_micros(500 * at as u64);
    let ahead = (0..1000).find(|&at| load.due[at].duration_since(began) < due(at));
    assert_eq!(ahead, None, "a batch before its time");
    let latest = Duration::from_millis(100);
    assert!((500..1000).any(|at| load.due[at].duration_since(began) < due(at) + latest), "{taken:?}");

    // One client against a round trip of 20 ms cannot do 1000 a second: what is due waits, and its time runs. The last
    // of twenty, due after 19 ms, is sent after 380 ms at the earliest and answered 20 ms later.
    let relay = Relay::start(&format!("127.0.0.1:{}", peer.port), Duration::from_millis(10)).unwrap();
    let mut fleet = Fleet::connect(&config(relay.address().port(), Protocol::Resp2), 1, 1).unwrap();
    let mut load = Same::new(Protocol::Resp2, &["GET", "key"], 1, 20);
    let pace = Pace::Fixed { batches_per_second: 1000.0 };
    let counts = fleet.run(&mut load, pace, Until::Exhausted, &AtomicBool::new(false)).unwrap();
    assert_eq!(counts.replies, 20, "{counts:?}");
    assert!(load.slowest_ns > 370_000_000, "{} ns", load.slowest_ns);
}

#[test]
fn a_run_ends_when_its_time_is_over() {
    let peer = Peer::start(Trouble::None);
    let mut fleet = Fleet::connect(&peer.config(Protocol::Respb), 1, 8).unwrap();
    let mut load = Same::new(Protocol::Respb, &["GET", "key"], 1, u64::MAX);
    let (began, time) = (Instant::now(), Duration::from_millis(100));
    let counts = fleet.run(&mut load, Pace::Closed, Until::Elapsed(time), &AtomicBool::new(false)).unwrap();
    assert!(counts.ended == Ended::Done && counts.replies > 0 && began.elapsed() >= time, "{counts:?}");
}

#[test]
fn replies_longer_than_the_buffer_arrive_in_pieces() {
    let stub = Stub::bind("127.0.0.1:0", 3 << 20, Trouble::None).unwrap();
    let port = stub.address().unwrap().port();
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let thread = std::thread::spawn(move || stub.serve(&flag).unwrap());
    /// Counts bytes.
    struct Long(Same, [u32; 2]);
    impl Load for Long {
        fn next(&mut self, client: u32) -> Option<Batch<'_>> {
            self.0.next(client)
        }
        fn done(&mut self, done: Done) {
            self.0.done(done);
        }
        fn wants_values(&self) -> bool {
            true
        }
        fn value(&mut self, client: u32, _request: u32, part: u32, bytes: Option<&[u8]>) {
            let seen = &mut self.1[client as usize];
            assert_eq!((part, bytes.unwrap().len()), (*seen % 2, 3 << 20));
            *seen += 1;
        }
    }
    for protocol in [Protocol::Resp3, Protocol::Respb] {
        let mut fleet = Fleet::connect(&config(port, protocol), 2, 1).unwrap();
        let mut load = Long(Same::new(protocol, &["MGET", "a", "b"], 1, 4), [0; 2]);
        let counts = fleet.run(&mut load, Pace::Closed, Until::Exhausted, &AtomicBool::new(false)).unwrap();
        assert!(counts.is_clean() && counts.replies == 4 && load.1[0] + load.1[1] == 8, "{counts:?}");
    }
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}

#[test]
fn the_end_behind_the_last_replies_is_seen_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 14];
        std::io::Read::read_exact(&mut stream, &mut request).unwrap();
        std::io::Write::write_all(&mut stream, b"+PONG\r\n").unwrap();
        std::io::Read::read_exact(&mut stream, &mut [0; 28]).unwrap();
        // One reply of two, and the end in the same moment.
        std::io::Write::write_all(&mut stream, b"$5\r\nxxxxx\r\n").unwrap();
    });
    let mut fleet = Fleet::connect(&config(port, Protocol::Resp2), 1, 1).unwrap();
    let mut load = Same::new(Protocol::Resp2, &["PING"], 2, 1);
    let counts = fleet.run(&mut load, Pace::Closed, Until::Exhausted, &AtomicBool::new(false)).unwrap();
    assert_eq!((counts.replies, counts.lost, counts.closed), (1, 1, 1), "{counts:?}");
    assert_eq!(counts.ended, Ended::Lost);
    thread.join().unwrap();
}
