//! TLS of a worker by itself: what handshakes take, keep and hold up.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustls::ClientConnection;
use weft_engine::reply::{PIN_BYTES_MIN, ReplySink, Wire};

use super::Alone;
use crate::limits::{HANDSHAKE_STEPS_PER_TICK_MAX, PASSING_PER_TICK_MAX};
use crate::shared::Shared;

impl Alone {
    /// TLS too, with a certificate for a try.
    fn serve_tls(&self) {
        let mut values = weft_engine::config::Values::default();
        values.set(b"tls-self-signed", &[b"yes"]).expect("it is a directive");
        self.inbox.shared().tls.follow(self.engine, &values).expect("a certificate can be made");
    }
}

/// A client under TLS that trusts anybody.
struct Client {
    session: ClientConnection,
    socket: UnixStream,
    /// Plaintext that has come and was not asked for.
    plain: Vec<u8>,
}

impl Client {
    fn new(socket: UnixStream) -> Self {
        socket.set_nonblocking(true).expect("it can be set");
        let insecure = weft_client::TlsConfig { insecure: true, ..weft_client::TlsConfig::default() };
        let config = Arc::new(weft_client::tls_client_config(&insecure).expect("it can be had"));
        let name = "localhost".try_into().expect("it is a name");
        let session = ClientConnection::new(config, name).expect("it can begin");
        Self { session, socket, plain: Vec::new() }
    }
    fn say(&mut self) {
        while self.session.wants_write() {
            self.session.write_tls(&mut self.socket).expect("it fits into the socket");
        }
    }
    fn hear(&mut self) {
        loop {
            match self.session.read_tls(&mut self.socket) {
                Ok(0) => return,
                Ok(_) => {
                    self.session.process_new_packets().expect("the server speaks TLS");
                    // There is nothing more to read when it would block.
                    let _ = self.session.reader().read_to_end(&mut self.plain);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }
    /// Plaintext that has come.
    fn come(&mut self) -> Vec<u8> {
        self.hear();
        std::mem::take(&mut self.plain)
    }
    /// Until both are done with the handshake. Its steps are other threads': nothing tells here when one is over.
    fn shake_hands(&mut self, alone: &mut Alone) {
        let before = alone.handshakes();
        while self.session.is_handshaking() || alone.handshakes() == before {
            self.say();
            alone.tick();
            self.hear();
            std::thread::yield_now();
        }
    }
}

impl Alone {
    fn handshakes(&self) -> u64 {
        self.engine.stats.tls_handshakes.load(std::sync::atomic::Ordering::Relaxed)
    }
    /// Connections of which a helper has the state.
    fn away(&self) -> usize {
        self.worker.io.slots.iter().flatten().filter(|connection| connection.is_away()).count()
    }
}

#[test]
fn a_handshake_that_is_not_over_in_its_time_ends() {
    let mut alone = Alone::with(Shared::default());
    alone.serve_tls();
    let timeout_ms = 7000;
    alone.engine.set_config(&[(b"tls-handshake-timeout", b"7")], false).expect("it can be set");
    let mut silent = alone.connect();
    // The head of a handshake's record: the rest of it never comes.
    silent.write_all(&[0x16, 3, 1, 2, 0]).expect("it fits into the socket");
    let plain = alone.connect();
    alone.tick();
    assert_eq!(alone.clients(), 2);
    let (now_ms, now_us) = (alone.engine.clock.now_ms(), alone.worker.clock_us());
    alone.worker.tick(now_ms + timeout_ms - 1000, now_us);
    assert_eq!(alone.clients(), 2);
    alone.worker.tick(now_ms + timeout_ms, now_us);
    assert_eq!(alone.clients(), 1, "one that speaks no TLS has all the time it wants");
    drop(plain);
}

#[test]
fn handshakes_count_before_authentication() {
    const RECORD_BYTES: usize = 5 + (16 << 10);
    let mut alone = Alone::with(Shared::with_unauthenticated_max(3 * RECORD_BYTES));
    alone.serve_tls();
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    // The head of a record of 16 KiB, and all of it but a byte: rustls keeps it.
    let part = [&[0x16, 3, 1, 0x40, 0][..], &[1; (16 << 10) - 1]].concat();
    let mut clients: Vec<UnixStream> = (0..3).map(|_| alone.connect()).collect();
    for client in &mut clients {
        client.write_all(&part).expect("it is sent");
        alone.tick();
    }
    assert_eq!(alone.clients(), 3);
    let mut more = alone.connect();
    more.write_all(&part).expect("it is sent");
    alone.tick();
    assert_eq!(alone.clients(), 3, "one more is too much");
    clients.clear();
    alone.ticks_until(0);
    // What they had counted for is free again.
    let mut again = alone.connect();
    again.write_all(&part).expect("it is sent");
    alone.tick();
    assert_eq!(alone.clients(), 1);
}

#[test]
fn without_a_certificate_tls_is_an_unknown_protocol() {
    let (mut alone, [mut client]) = Alone::with_clients();
    client.write_all(&[0x16, 3, 1, 2, 0]).expect("it fits into the socket");
    alone.ticks_until(0);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it is told");
    assert!(answer.starts_with("-ERR Protocol error"), "{answer}");
}

#[test]
fn a_part_of_a_record_counts_behind_the_handshake() {
    const PART_BYTES: usize = 10_000;
    // Two of them, and what two handshakes keep while they last.
    let mut alone = Alone::with(Shared::with_unauthenticated_max(2 * PART_BYTES));
    alone.serve_tls();
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    // The head of a record of application data, and a part of it.
    let part = [&[0x17, 3, 3, 0x40, 0][..], &[1; PART_BYTES - 5]].concat();
    let mut clients: Vec<Client> = (0..3)
        .map(|_| {
            let mut client = Client::new(alone.connect());
            client.shake_hands(&mut alone);
            client
        })
        .collect();
    for (at, client) in clients.iter_mut().enumerate() {
        client.socket.write_all(&part).expect("it is sent");
        (0..2).for_each(|_| alone.tick());
        assert_eq!(alone.clients(), if at < 2 { 3 } else { 2 }, "the third is too much");
    }
    let connection = alone.worker.io.get(0).expect("it is there");
    assert_eq!(connection.input_bytes(), PART_BYTES);
}

#[test]
fn what_must_be_safe_first_is_not_sent_under_tls_either() {
    let mut alone = Alone::new();
    alone.serve_tls();
    let mut client = Client::new(alone.connect());
    client.shake_hands(&mut alone);
    alone.engine.set_safe(4);
    // Longer than what is copied into the output: it is sent from where it lies.
    let value = vec![b'x'; PIN_BYTES_MIN];
    client.session.writer().write_all(&set(&value)).expect("rustls takes it");
    client.say();
    while client.come().is_empty() {
        alone.tick();
    }
    let output = &mut alone.worker.io.get(0).expect("it is there").output;
    for number in 1..=2 {
        ReplySink::new(output, Wire::default()).int(number);
        // What is behind it waits.
        output.withhold(output.end(), 4 + number as u64);
    }
    client.session.writer().write_all(b"GET k\r\n").expect("rustls takes it");
    client.say();
    (0..3).for_each(|_| alone.tick());
    assert_eq!(client.come(), b":1\r\n");
    assert!(
        alone.worker.io.get(0).expect("it is there").unsent() > PIN_BYTES_MIN,
        "nothing is encrypted ahead"
    );
    alone.engine.set_safe(5);
    alone.tick();
    assert_eq!(client.come(), b":2\r\n");
    (0..3).for_each(|_| alone.tick());
    assert!(client.come().is_empty());
    alone.engine.set_safe(6);
    alone.tick();
    let got = client.come();
    assert_eq!(got, [format!("${PIN_BYTES_MIN}\r\n").as_bytes(), &value, b"\r\n"].concat());
}

/// SET of one key.
fn set(value: &[u8]) -> Vec<u8> {
    let head = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len());
    [head.as_bytes(), value, b"\r\n"].concat()
}

/// Without it nobody knows an end from a stream that somebody has cut off.
#[test]
fn who_sends_no_more_is_told_that_all_has_been_answered() {
    let mut alone = Alone::new();
    alone.serve_tls();
    for is_answered_before in [true, false] {
        let mut client = Client::new(alone.connect());
        client.shake_hands(&mut alone);
        client.session.writer().write_all(b"PING\r\n").expect("rustls takes it");
        client.say();
        if is_answered_before {
            alone.tick();
        }
        client.session.send_close_notify();
        client.say();
        client.socket.shutdown(std::net::Shutdown::Write).expect("it can be");
        alone.ticks_until(0);
        assert_eq!(client.come(), b"+PONG\r\n");
        let state = client.session.process_new_packets().expect("the server speaks TLS");
        assert!(state.peer_has_closed(), "answered before: {is_answered_before}");
    }
}

#[test]
fn steps_of_handshakes_are_taken_back_in_steps() {
    let mut alone = Alone::new();
    alone.serve_tls();
    let count = HANDSHAKE_STEPS_PER_TICK_MAX + 1;
    let mut clients: Vec<Client> = (0..count).map(|_| Client::new(alone.connect())).collect();
    clients.iter_mut().for_each(Client::say);
    alone.tick();
    assert_eq!(alone.away(), PASSING_PER_TICK_MAX, "they are handed over in steps");
    alone.worker.see_to_passing();
    assert_eq!(alone.away(), count);
    while alone.inbox.stepped() < count {
        std::thread::yield_now();
    }
    alone.tick();
    assert_eq!(alone.away(), 1, "one more than a tick takes back");
    assert_eq!(alone.worker.timeout_ms(), 0, "the next tick does not wait for an event");
    alone.tick();
    assert_eq!(alone.away(), 0);
}

#[test]
fn who_is_idle_for_too_long_is_told_that_it_is_the_end() {
    let mut alone = Alone::new();
    alone.serve_tls();
    let mut client = Client::new(alone.connect());
    client.shake_hands(&mut alone);
    alone.engine.set_config(&[(b"timeout", b"30")], false).expect("it can be set");
    let (now_ms, now_us) = (alone.engine.clock.now_ms(), alone.worker.clock_us());
    (1..4).for_each(|round| {
        alone.worker.tick(now_ms + 40_000 * round, now_us + 40_000_000 * round);
    });
    assert_eq!(alone.clients(), 0);
    client.hear();
    let state = client.session.process_new_packets().expect("the server speaks TLS");
    assert!(state.peer_has_closed(), "it was meant");
}
