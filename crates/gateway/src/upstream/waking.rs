//! Owns: tests of ending a request that blocks over a connection of its own, whatever comes first at the server: that
//! request, or the one that is to wake its client. Does not own: what a server says to whom it wakes.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use weft_engine::blocking::End;
use weft_engine::forward::{BlockTime, Forward, Kind};

use crate::lending::WAKES_MAX;
use crate::testing::{Bench, CLOSES, Peer, client, transaction_of};

const WAKES: &str = "CLIENT UNBLOCK 7 ERROR";
const WOKEN: &str = "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n";

struct Behind {
    bench: Bench,
    peer: Peer,
    /// How often the server was asked to block, the try among them. What is not answered it does not note.
    blocked: Arc<AtomicUsize>,
}

/// Before a server that has nobody to wake the first `deaf` times. It blocks until somebody is woken, or until the test
/// says what it has.
fn before(deaf: usize) -> (Behind, Sender<String>) {
    before_client(deaf, 0)
}

/// The same, of a client whose requests were tried so often.
fn before_client(deaf: usize, tried: usize) -> (Behind, Sender<String>) {
    let (says, said) = channel();
    let (wakes, said) = (says.clone(), Mutex::new(said));
    let (blocked, asked) = (Arc::new(AtomicUsize::new(tried)), AtomicUsize::new(0));
    let count = Arc::clone(&blocked);
    let peer = Peer::start(move |request| {
        Some(match request {
            // It finds nothing when it is tried.
            "BLPOP l 0" if count.fetch_add(1, SeqCst) == 0 => "+QUEUED\r\n".into(),
            "BLPOP l 0" => said.lock().ok()?.recv().unwrap_or_else(|_| CLOSES.into()),
            "EXEC" => "*1\r\n*-1\r\n".into(),
            WAKES if asked.fetch_add(1, SeqCst) < deaf => ":0\r\n".into(),
            WAKES => {
                wakes.send(WOKEN.into()).ok()?;
                ":1\r\n".into()
            }
            "INCR n" => "+QUEUED\r\n".into(),
            _ => "+OK\r\n".into(),
        })
    });
    let bench = Bench::new(peer.options(&[("upstream-timeout", "3600000"), ("leases", "1")]));
    (Behind { bench, peer, blocked }, says)
}

impl Behind {
    /// A client blocks, and is to be woken.
    fn blocks_and_is_woken(&mut self) {
        let Self { bench, blocked, .. } = self;
        bench.ask(1, Kind::Blocks(BlockTime::default()), 0, &["BLPOP", "l", "0"]);
        bench.until("it is asked", |_| blocked.load(SeqCst) == 2);
        bench.upstream.unblock(client(1), End::Error, &mut bench.delivered);
    }
    /// Look after look, until something holds.
    fn looks(&mut self, holds: impl Fn(&Bench) -> bool) {
        let bench = &mut self.bench;
        let mut turns = 0;
        while !holds(bench) {
            (bench.now_ms, turns) = (bench.now_ms + 100, turns + 1);
            bench.turn();
            // The server is a thread of its own.
            thread::sleep(Duration::from_millis(1));
            assert!(turns < 30_000, "it does not come about: {:?}", bench.delivered);
        }
    }
    fn until_it_is_told(&mut self) -> String {
        self.looks(|bench| !bench.delivered.0.is_empty());
        self.bench.answer()
    }
    fn until_the_connection_is_free(&mut self) {
        self.looks(|bench| bench.upstream.leases.free.len() == 1);
    }
    fn wakes(&self) -> usize {
        self.peer.asked().iter().filter(|asked| *asked == WAKES).count()
    }
}

#[test]
fn who_is_not_there_yet_is_woken_once_more() {
    for deaf in 0..4 {
        let (mut behind, _says) = before(deaf);
        behind.blocks_and_is_woken();
        let told = behind.until_it_is_told();
        assert!(told.starts_with("Error"), "{deaf}: {told}");
        behind.until_the_connection_is_free();
        assert_eq!(behind.wakes(), deaf + 1);
    }
}

#[test]
fn who_has_got_something_by_then_keeps_it_and_nobody_else_is_woken() {
    let (mut behind, says) = before(1);
    behind.blocks_and_is_woken();
    behind.bench.turn();
    behind.peer.wait_for(WAKES, 1);
    says.send("*2\r\n$1\r\nl\r\n$1\r\nv\r\n".into()).expect("it waits");
    assert_eq!(behind.bench.answer(), "*2\r\n$1\r\nl\r\n$1\r\nv");
    behind.until_the_connection_is_free();
    assert_eq!(behind.wakes(), 1);
}

#[test]
fn whom_a_server_never_finds_is_let_go_all_the_same() {
    let (mut behind, _says) = before(usize::MAX);
    behind.blocks_and_is_woken();
    let told = behind.until_it_is_told();
    assert!(told.starts_with("Error"), "{told}");
    assert_eq!(behind.bench.upstream.leases.count, 0, "its connection has ended, as when it leaves");
    assert_eq!(behind.wakes(), usize::from(WAKES_MAX));
}

/// What is asked over a connection that is lost is asked over the next one.
#[test]
fn who_was_to_be_woken_over_a_connection_that_was_lost_is_woken_over_another() {
    let (mut behind, _says) = before(0);
    behind.blocks_and_is_woken();
    let bench = &mut behind.bench;
    let shared = (0..).find(|at| bench.upstream.link(*at).is_some_and(|link| !link.is_lease));
    bench.upstream.end(shared.expect("there is one"), "the test says so", &mut bench.delivered);
    let told = behind.until_it_is_told();
    assert!(told.starts_with("Error"), "{told}");
    behind.until_the_connection_is_free();
}

/// He blocks over the connection that he watches keys over, which stays his.
#[test]
fn who_watches_is_woken_as_often_as_he_blocks_and_keeps_what_he_watches() {
    let (mut behind, _says) = before_client(0, 1);
    behind.bench.ask_so(Forward::of(client(1), Kind::Watch), &["WATCH", "k"]);
    assert_eq!(behind.bench.answer(), "+OK");
    for time in 1..=usize::from(WAKES_MAX) + 2 {
        let Behind { bench, blocked, .. } = &mut behind;
        let blocks = Forward::of(client(1), Kind::Blocks(BlockTime::default()));
        bench.ask_so(Forward { watches: 1, ..blocks }, &["BLPOP", "l", "0"]);
        bench.until("it is asked", |_| blocked.load(SeqCst) == 1 + time);
        bench.upstream.unblock(client(1), End::Error, &mut bench.delivered);
        let told = behind.until_it_is_told();
        assert!(told.starts_with("Error"), "{time}: {told}");
    }
    let exec = Forward { watches: 1, ..Forward::of(client(1), Kind::Exec(1)) };
    behind.bench.submit([(exec, transaction_of(&["INCR", "n"]))]);
    assert_eq!(behind.bench.answer(), "*1\r\n*-1");
}
