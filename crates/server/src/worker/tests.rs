//! A worker by itself, on one end of a socket pair: what each of its ticks does.

mod crowds;
mod ends;
mod http;
mod http_console;
mod http_edges;
mod http_events;
mod http_hostile;
mod http_metrics;
mod http_resources;
mod http_stored;
mod http_streams;
mod http_traces;
mod pushes;
mod tls;
mod turns;
mod withheld;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use weft_protocol::respb::Control;

use crate::alone::Alone;
use crate::channels::close;
use crate::connection::Life;
use crate::limits::{
    ARRIVALS_PER_TICK_MAX, BURIED_PER_TICK_MAX, CONTROLS_PER_TICK_MAX, CROWD_PER_TICK_MAX,
    LEAVING_PER_TICK_MAX, PASSING_PER_TICK_MAX, RECEIVE_BYTES, REFUSED_CHANNELS_MAX, WAITING_INPUT_BYTES_MAX,
};
use crate::shared::Shared;

impl Alone {
    /// With its first clients.
    fn with_clients<const N: usize>() -> (Self, [UnixStream; N]) {
        let mut alone = Self::new();
        let clients = [(); N].map(|()| alone.connect());
        (alone, clients)
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

#[test]
fn hundreds_of_arrivals_are_taken_in_steps() {
    let mut alone = Alone::new();
    let count = ARRIVALS_PER_TICK_MAX * 3 + 1;
    let clients: Vec<UnixStream> = (0..count).map(|_| alone.arrive()).collect();
    assert_eq!(alone.ticks_until(count), ARRIVALS_PER_TICK_MAX);
    assert!(clients.len() == count && alone.worker.timeout_ms() > 0, "none is left");
    let more: Vec<UnixStream> = (0..=ARRIVALS_PER_TICK_MAX).map(|_| alone.arrive()).collect();
    alone.tick();
    assert_eq!(alone.clients(), count + more.len() - 1);
    assert_eq!(alone.worker.timeout_ms(), 0, "the next tick does not wait for an event");
}

#[test]
fn hundreds_that_begin_or_end_are_seen_to_in_steps() {
    const PING: &[u8] = b"PING\r\n";
    const PONG: &[u8] = b"+PONG\r\n";
    let mut alone = Alone::new();
    let count = PASSING_PER_TICK_MAX * 3 + 1;
    let mut clients: Vec<UnixStream> = (0..count).map(|_| alone.connect()).collect();
    let mut old = alone.connect();
    sends(&mut alone, &mut old, PING);
    assert_eq!(received(&mut old), PONG);
    for client in clients.iter_mut().chain([&mut old]) {
        client.write_all(PING).expect("it fits into the socket");
    }
    for ticks in 1..=4 {
        alone.tick();
        let answered =
            clients.iter_mut().filter_map(|client| (received(client) == PONG).then_some(())).count();
        assert_eq!(answered, if ticks < 4 { PASSING_PER_TICK_MAX } else { 1 }, "in tick {ticks}");
        assert_eq!(received(&mut old) == PONG, ticks == 1, "who has a session does not wait for them");
        assert_eq!(alone.worker.timeout_ms() == 0, ticks < 4, "the next tick does not wait for an event");
    }
    drop(clients);
    old.write_all(PING).expect("it fits into the socket");
    alone.tick();
    assert_eq!(received(&mut old), PONG);
    assert_eq!(alone.clients(), count + 1 - PASSING_PER_TICK_MAX);
    assert_eq!(alone.ticks_until(1), PASSING_PER_TICK_MAX);
    assert!(alone.worker.timeout_ms() > 0, "nothing is left");
}

/// What a tick does for all kinds of them is bounded too, and none of them waits for the others.
#[test]
fn those_who_come_begin_and_end_at_once_share_a_tick() {
    const EACH: usize = 3 * ARRIVALS_PER_TICK_MAX;
    let mut alone = Alone::new();
    let mut beginning: Vec<UnixStream> = (0..EACH).map(|_| alone.connect()).collect();
    let ending: Vec<UnixStream> = (0..EACH).map(|_| alone.connect()).collect();
    for client in &mut beginning {
        client.write_all(b"PING\r\n").expect("it fits into the socket");
    }
    let coming: Vec<UnixStream> = (0..EACH).map(|_| alone.arrive()).collect();
    (EACH as u32..2 * EACH as u32).for_each(|index| alone.worker.io.kill(index));
    let (mut all, mut ticks) = (0, 0);
    while all < 3 * EACH {
        let (dead, places) = (alone.worker.io.dead.len(), alone.clients());
        alone.tick();
        let answered = beginning.iter_mut().filter_map(|client| (!received(client).is_empty()).then_some(()));
        let (buried, began) = (dead - alone.worker.io.dead.len(), answered.count());
        let came = alone.clients() + buried - places;
        assert!(came + began + buried <= CROWD_PER_TICK_MAX, "{came} + {began} + {buried}");
        if ticks == 0 {
            assert!([came, began, buried].iter().all(|&some| some >= 8), "{came}, {began}, {buried}");
        }
        (all, ticks) = (all + came + began + buried, ticks + 1);
        assert!(ticks < 100, "{all} of {}", 3 * EACH);
    }
    assert!(coming.len() == ending.len() && alone.clients() == 2 * EACH, "{}", alone.clients());
}

#[test]
fn a_place_in_the_list_of_those_who_end_is_not_that_of_who_comes_after() {
    let mut alone = Alone::new();
    let ending: Vec<UnixStream> = (0..=PASSING_PER_TICK_MAX).map(|_| alone.connect()).collect();
    drop(ending);
    alone.tick();
    assert_eq!(alone.clients(), 1, "the last one is still in the list");
    let last = alone.worker.io.slots.iter().position(Option::is_some).expect("it is there") as u32;
    alone.worker.io.kill(last);
    alone.worker.io.passing.push_back(last);
    alone.worker.bury();
    let mut next = alone.connect();
    assert!(alone.worker.io.slots[last as usize].is_some(), "its place has a new owner");
    sends(&mut alone, &mut next, b"PING\r\n");
    assert_eq!(received(&mut next), b"+PONG\r\n");
    assert!(alone.worker.io.passing.is_empty());
}

#[test]
fn hundreds_that_are_killed_are_taken_away_in_steps() {
    let mut alone = Alone::new();
    let count = BURIED_PER_TICK_MAX * 3 + 1;
    let clients: Vec<UnixStream> = (0..count).map(|_| alone.connect()).collect();
    (0..count as u32).for_each(|index| alone.worker.io.kill(index));
    assert_eq!(alone.worker.timeout_ms(), 0, "the next tick does not wait for an event");
    assert_eq!(alone.ticks_until(0), BURIED_PER_TICK_MAX);
    assert!(alone.worker.timeout_ms() > 0 && clients.len() == count, "nothing is left");
}

/// Requests that block, one behind the other, and how often what stands behind them may be moved: each byte once on
/// average, for all halvings of them.
const WAITS: usize = 2000;
const MOVES_MAX: usize = 16;

#[test]
fn input_behind_waits_is_not_moved_for_each() {
    let (mut alone, [mut waiting, mut other]) = Alone::with_clients();
    waiting.write_all(&b"BLPOP q 0\r\n".repeat(WAITS)).expect("it is sent");
    for _ in 0..4 {
        alone.tick();
    }
    let (mut moves, mut left, mut reply) = (0, 0, [0; 20]);
    for _ in 0..WAITS {
        other.write_all(b"RPUSH q v\r\n").expect("it is sent");
        waiting.set_nonblocking(true).expect("it can be set");
        while waiting.read(&mut reply).is_err() {
            alone.tick();
        }
        let connection = alone.worker.io.get(0).expect("it is there");
        // Of several requests that are held, only the last one's end lets more be decoded.
        let kept = connection.kept().len();
        moves += usize::from(kept > 0 && kept != left && connection.pending_at == 0);
        left = kept;
    }
    assert!(moves <= MOVES_MAX, "{moves} moves");
}

const CHANNELS: u16 = 5000;

fn open_all() -> Vec<u8> {
    // PING: a header and nothing else.
    (0..CHANNELS).flat_map(|channel| [[3, 0], channel.to_be_bytes()].concat()).collect()
}

#[test]
fn thousands_of_channels_open_and_close_in_steps() {
    let (mut alone, [mut client]) = Alone::with_clients();
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
    let (mut alone, [mut client]) = Alone::with_clients();
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

/// What a connection keeps of `sent`, which is not whole; nothing when the server has closed it.
fn kept_of(alone: &mut Alone, client: &mut UnixStream, sent: &[u8]) -> Option<usize> {
    client.write_all(sent).expect("it fits into the socket");
    alone.tick();
    alone.worker.io.slots.iter().flatten().map(|connection| connection.input_bytes()).max()
}

#[test]
fn before_authentication_what_is_passed_over_is_not_kept() {
    let mut alone = Alone::new();
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    let unknown = |opcode: u16, len: u32| [&opcode.to_be_bytes()[..], &[0, 0], &len.to_be_bytes()].concat();
    let len_max = crate::limits::UNAUTHENTICATED_FRAME_BYTES_MAX - 8;
    for opcode in [0xF777, 0xFF77, 0xFF01] {
        let mut client = alone.connect();
        // At the limit it is passed over as it comes, and what is behind it is read.
        let head = unknown(opcode, len_max);
        assert!(kept_of(&mut alone, &mut client, &head).is_some_and(|kept| kept <= 64), "{opcode:x}");
        for _ in 0..len_max / 8 {
            assert!(kept_of(&mut alone, &mut client, &[7; 8]).is_some_and(|kept| kept <= 64), "{opcode:x}");
        }
        drop(client);
        alone.ticks_until(0);
        // One past it is refused by its head.
        let mut client = alone.connect();
        client.write_all(&unknown(opcode, len_max + 1)).expect("it fits into the socket");
        alone.ticks_until(0);
    }
}

#[test]
fn all_that_have_not_authenticated_keep_no_more_than_a_limit() {
    const EACH: usize = 10_000;
    const CLIENTS: usize = 5;
    let mut alone = Alone::with(Shared::with_unauthenticated_max(CLIENTS * EACH));
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    let request = [format!("*2\r\n$4\r\nAUTH\r\n${EACH}\r\n").into_bytes(), vec![b'x'; EACH]].concat();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| alone.connect()).collect();
    for client in &mut clients {
        client.write_all(&request[..EACH - 1000]).expect("it fits into the socket");
        alone.tick();
    }
    assert_eq!(alone.clients(), CLIENTS, "all of them are within the limit");
    let mut last = alone.connect();
    last.write_all(&request[..EACH - 1000]).expect("it fits into the socket");
    alone.ticks_until(CLIENTS);
    let mut answer = String::new();
    last.read_to_string(&mut answer).expect("it is told why");
    assert!(answer.starts_with("-ERR connections that have not authenticated"), "{answer}");
    // What one of them gives back, another one may have.
    drop(clients.pop());
    alone.ticks_until(CLIENTS - 1);
    let mut next = alone.connect();
    next.write_all(&request[..EACH - 1000]).expect("it fits into the socket");
    alone.tick();
    // Who authenticates counts no more.
    clients[0]
        .write_all(&[&request[EACH - 1000..], b"\r\n*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"].concat())
        .expect("it fits");
    alone.tick();
    let mut another = alone.connect();
    another.write_all(&request[..EACH - 1000]).expect("it fits into the socket");
    alone.tick();
    assert_eq!(alone.clients(), CLIENTS + 1);
}

/// A first line has the limit of every request, though it may yet be one of HTTP.
#[test]
fn before_authentication_a_first_line_has_a_limit() {
    let limit = crate::limits::UNAUTHENTICATED_FRAME_BYTES_MAX as usize;
    let mut alone = Alone::new();
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    let mut client = alone.connect();
    assert_eq!(kept_of(&mut alone, &mut client, &vec![b'G'; limit - 1]), Some(limit - 1));
    client.write_all(b"GG").expect("it fits into the socket");
    alone.ticks_until(0);
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("it is told why");
    assert!(answer.contains("too big inline request"), "{answer}");
}

/// As from Valkey: words of a line may stand in quotes, the first one of a connection too.
#[test]
fn a_first_line_may_begin_with_a_quote() {
    let mut alone = Alone::new();
    for (line, answer) in [("\"PING\" 'a b'\r\n", "$3\r\na b\r\n"), ("'PING'\n", "+PONG\r\n")] {
        let mut client = alone.connect();
        client.write_all(line.as_bytes()).expect("it fits into the socket");
        client.shutdown(std::net::Shutdown::Write).expect("it is connected");
        alone.ticks_until(0);
        let mut got = String::new();
        client.read_to_string(&mut got).expect("it is answered");
        assert_eq!(got, answer, "{line}");
    }
}

/// Errors cost a client nothing to cause: who leaves them unread before it has authenticated is cut off.
#[test]
fn before_authentication_little_may_be_left_unread() {
    let mut alone = Alone::new();
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    let mut client = alone.connect();
    let (mut sent, mut owed) = (0, 0);
    while alone.clients() > 0 {
        // It may have been cut off in the middle.
        sent += client.write(&b"GET k\r\n".repeat(8)).unwrap_or(1);
        assert!(sent < 4 << 20, "it is there after {sent} bytes");
        alone.tick();
        owed = owed.max(alone.worker.io.slots.iter().flatten().map(|open| open.unsent()).max().unwrap_or(0));
    }
    assert!(owed < 2 * crate::limits::UNAUTHENTICATED_OUTPUT_BYTES_MAX, "{owed} bytes were kept for it");
}

#[test]
fn what_comes_behind_a_wait_is_kept_up_to_a_limit_and_then_left_in_the_socket() {
    const REQUESTS: usize = 10_000;
    const TICKS_MAX: usize = 1_000_000;
    let (mut alone, [mut waiting, mut other]) = Alone::with_clients();
    sends(&mut alone, &mut waiting, b"BLPOP q 0\r\n");
    // Padded: more than the limit and what sockets hold.
    let flood = format!("INCR n{}\r\n", " ".repeat(500)).into_bytes().repeat(REQUESTS);
    waiting.set_nonblocking(true).expect("it can be set");
    let (mut sent, mut replies) = (0, Vec::new());
    let kept = |alone: &mut Alone| alone.worker.io.get(0).expect("it is there").kept().len();
    // Sends what goes; a tick follows.
    let mut send = |alone: &mut Alone| {
        let len = waiting.write(&flood[sent..]).unwrap_or(0);
        sent += len;
        alone.tick();
        // Until there is nothing for the moment, which is an error.
        let _ = waiting.read_to_end(&mut replies);
        (len, replies.iter().filter(|&&byte| byte == b':').count())
    };
    let mut full = 0;
    for _ in 0..TICKS_MAX {
        let (len, _) = send(&mut alone);
        full = kept(&mut alone);
        if len == 0 && full > WAITING_INPUT_BYTES_MAX {
            break;
        }
    }
    assert!(
        (WAITING_INPUT_BYTES_MAX + 1..=WAITING_INPUT_BYTES_MAX * 3 / 2 + RECEIVE_BYTES).contains(&full),
        "{full}"
    );
    (0..64).for_each(|_| alone.tick());
    assert_eq!(kept(&mut alone), full, "it is not read from");
    // The wait ends, and all is run.
    other.write_all(b"RPUSH q v\r\n").expect("it is sent");
    let ran = (0..TICKS_MAX).map(|_| send(&mut alone).1).find(|&ran| ran == REQUESTS);
    assert_eq!(ran, Some(REQUESTS));
    assert!(replies.ends_with(format!("\r\n:{REQUESTS}\r\n").as_bytes()), "in their order");
}

#[test]
fn who_opens_channels_that_are_refused_goes_away_in_the_end() {
    let mut alone = Alone::new();
    alone.engine.set_config(&[(b"requirepass", b"secret")], false).expect("it can be set");
    let mut client = alone.connect();
    let mut refused = 0;
    for channel in 1.. {
        sends(&mut alone, &mut client, &argv(channel, &[b"PING"]));
        refused += usize::from(received(&mut client).starts_with(&[0xFF, 0x01]));
        if alone.worker.io.get(0).is_none_or(|connection| connection.life != Life::Open) {
            break;
        }
        assert!(refused <= REFUSED_CHANNELS_MAX, "one more than may be refused, and it may stay");
    }
    assert_eq!(refused, REFUSED_CHANNELS_MAX + 1);
}

/// A command as an ARGV frame.
fn argv(channel: u16, words: &[&[u8]]) -> Vec<u8> {
    let payload: Vec<u8> =
        words.iter().flat_map(|word| [&(word.len() as u32).to_be_bytes()[..], word].concat()).collect();
    let head = [&0xF001_u16.to_be_bytes()[..], &channel.to_be_bytes(), &(payload.len() as u32).to_be_bytes()];
    [&head.concat()[..], &payload].concat()
}

/// The channels of the only connection.
fn channels(alone: &mut Alone) -> &mut crate::channels::Channels {
    alone.worker.io.channels(0).expect("there is a RESPB connection").0
}

fn sends(alone: &mut Alone, client: &mut UnixStream, bytes: &[u8]) {
    client.write_all(bytes).expect("it fits into the socket");
    (0..4).for_each(|_| alone.tick());
}

/// What has come, as far as it is there.
fn received(client: &mut UnixStream) -> Vec<u8> {
    client.set_nonblocking(true).expect("it can be set");
    let mut bytes = Vec::new();
    // It ends with an error: there is no more.
    let _ = client.read_to_end(&mut bytes);
    client.set_nonblocking(false).expect("it can be set");
    bytes
}

const LIMIT_BYTES: usize = 100_000;

#[test]
fn channels_together_queue_no_more_than_a_limit() {
    let mut alone = Alone::new();
    let limit = LIMIT_BYTES.to_string();
    alone
        .engine
        .set_config(&[(b"respb-connection-queue-bytes", limit.as_bytes())], false)
        .expect("it is one");
    let mut client = alone.connect();
    let set = |channel| argv(channel, &[b"SET", b"k", &[b'v'; 10_000]]);
    for channel in 1..=20 {
        sends(&mut alone, &mut client, &argv(channel, &[b"BLPOP", b"nothing", b"0"]));
    }
    let mut queued = 0;
    for channel in 1..=20 {
        assert!(received(&mut client).is_empty(), "channel {channel} came after {queued} bytes");
        sends(&mut alone, &mut client, &set(channel));
        let now = channels(&mut alone).held_bytes();
        if now <= queued {
            break;
        }
        queued = now;
        assert!(queued <= LIMIT_BYTES);
    }
    // The one that went past it is closed, with the reason, and what it had is gone; the others stay.
    assert!(queued > LIMIT_BYTES - 11_000, "{queued}");
    let close = received(&mut client);
    assert_eq!(close[..4], [0xFF, 0x01, 0, (queued / 10_000) as u8 + 1]);
    assert_eq!(close[8..10], [0, 1]);
    assert!(close.ends_with(b"(connection_queue_bytes)"), "{}", String::from_utf8_lossy(&close[10..]));
    assert_eq!(alone.clients(), 20);
}

/// Requests that stand behind the one which was too much come in the same piece: none of them may run.
#[test]
fn a_channel_that_was_too_much_twice_stays_closed() {
    let mut alone = Alone::new();
    let limit = LIMIT_BYTES.to_string();
    let name: &[u8] = b"respb-queue-bytes";
    alone.engine.set_config(&[(name, limit.as_bytes())], false).expect("it is one");
    let mut client = alone.connect();
    let set = |at: usize| argv(1, &[b"SET", format!("q{at}").as_bytes(), &[b'v'; 9_000]]);
    let flood: Vec<u8> =
        [argv(1, &[b"BLPOP", b"nothing", b"0"])].into_iter().chain((0..40).map(set)).flatten().collect();
    let mut sender = client.try_clone().expect("a second handle");
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || sender.write_all(&flood).expect("it is read"));
        while !writing.is_finished() {
            alone.tick();
            std::thread::yield_now();
        }
    });
    (0..8).for_each(|_| alone.tick());
    let close = received(&mut client);
    assert_eq!(close[..4], [0xFF, 0x01, 0, 1], "CLOSE of channel 1");
    let len = 8 + u32::from_be_bytes([close[4], close[5], close[6], close[7]]) as usize;
    assert_eq!(close.len(), len, "nothing has run behind it");
    sends(&mut alone, &mut client, &argv(1, &[b"PING"]));
    assert!(received(&mut client).is_empty(), "it is closed until the client's CLOSE");
}

#[test]
fn what_a_pause_holds_holds_the_connection_back_and_closes_nothing() {
    let mut alone = Alone::new();
    let limit = LIMIT_BYTES.to_string();
    alone
        .engine
        .set_config(&[(b"respb-connection-queue-bytes", limit.as_bytes())], false)
        .expect("it is one");
    let (mut client, mut other) = (alone.connect(), alone.connect());
    sends(&mut alone, &mut other, b"CLIENT PAUSE 60000 WRITE\r\n");
    for channel in 0..30 {
        sends(&mut alone, &mut client, &argv(channel, &[b"SET", b"k", &[b'v'; 10_000]]));
    }
    let held = channels(&mut alone).held_bytes();
    assert!(channels(&mut alone).is_held_back() && held < LIMIT_BYTES + 11_000, "{held}");
    assert!(received(&mut client).is_empty());
    assert_eq!(received(&mut other), b"+OK\r\n");
    sends(&mut alone, &mut other, b"CLIENT UNPAUSE\r\n");
    (0..8).for_each(|_| alone.tick());
    let answers: Vec<u8> = (0..30).flat_map(|channel| [0x80, 0, 0, channel]).collect();
    assert_eq!(received(&mut client), answers);
    assert_eq!(channels(&mut alone).held_bytes(), 0);
}

#[test]
fn what_a_pause_has_held_and_then_blocks_closes_its_channel_and_no_other() {
    for (setting, code_text) in [
        (&b"respb-queue-bytes"[..], close::QUEUE.text),
        (&b"respb-connection-queue-bytes"[..], close::CONNECTION_QUEUE.text),
    ] {
        let mut alone = Alone::new();
        alone.engine.set_config(&[(setting, b"10000")], false).expect("it is one");
        let (mut client, mut other) = (alone.connect(), alone.connect());
        sends(&mut alone, &mut other, b"CLIENT PAUSE 60000 WRITE\r\n");
        let set = argv(1, &[b"SET", b"k", &[b'v'; 1000]]);
        sends(&mut alone, &mut client, &[argv(1, &[b"BLPOP", b"q", b"0"]), set.repeat(12)].concat());
        assert!(channels(&mut alone).is_held_back());
        sends(&mut alone, &mut client, &argv(2, &[b"PING"]));
        assert!(received(&mut client).is_empty(), "nothing more is decoded");
        sends(&mut alone, &mut other, b"CLIENT UNPAUSE\r\n");
        (0..8).for_each(|_| alone.tick());
        let len = 2 + code_text.len() as u8;
        let closed = [&[0xFF, 1, 0, 1, 0, 0, 0, len, 0, 1][..], code_text.as_bytes()].concat();
        assert_eq!(received(&mut client), [&closed[..], &[0x83, 4, 0, 2], b"PONG"].concat());
        assert!(!channels(&mut alone).is_held_back() && channels(&mut alone).held_bytes() == 0);
    }
}

#[test]
fn channels_together_owe_no_more_than_a_limit() {
    let mut alone = Alone::new();
    let limit = LIMIT_BYTES.to_string();
    alone
        .engine
        .set_config(&[(b"respb-connection-output-bytes", limit.as_bytes())], false)
        .expect("it is one");
    let mut client = alone.connect();
    sends(&mut alone, &mut client, &argv(0, &[b"SET", b"k", &[b'v'; 9_000]]));
    assert_eq!(received(&mut client), [0x80, 0, 0, 0]);
    // A credit that the SET has used up lets nothing through: what follows waits.
    for channel in 1..=20 {
        sends(&mut alone, &mut client, &[0xFF, 3, 0, channel, 0, 0, 0, 4, 0, 0, 0, 0]);
    }
    let mut owed = 0;
    for channel in 1..=20 {
        assert!(received(&mut client).is_empty(), "channel {channel} came after {owed} bytes");
        sends(&mut alone, &mut client, &argv(channel, &[b"GET", b"k"]));
        let now = channels(&mut alone).queued_bytes();
        if now <= owed {
            break;
        }
        owed = now;
        assert!(owed <= LIMIT_BYTES);
    }
    assert!(owed > LIMIT_BYTES - 10_000, "{owed}");
    // It is answered, and then closed.
    let close = received(&mut client).split_off(8 + 9_000);
    assert_eq!((close[..2].to_vec(), close[8..10].to_vec()), (vec![0xFF, 1], vec![0, 2]));
    assert_eq!(channels(&mut alone).queued_bytes(), owed, "what it owed is sent");
    // Small frames count with what they take: where one begins a piece that is more than its four bytes.
    let mut took = Vec::new();
    for _ in 0..2 {
        let before = channels(&mut alone).queued_bytes();
        sends(&mut alone, &mut client, &argv(20, &[b"PING"]));
        took.push(channels(&mut alone).queued_bytes() - before);
    }
    assert!(took[0] > size_of::<weft_engine::reply::Output>() && took[1] > 4, "{took:?}");
}

#[test]
fn a_channel_that_is_subscribed_has_the_limit_of_its_class() {
    let mut alone = Alone::new();
    let limits = b"pubsub 50000 0 0";
    alone.engine.set_config(&[(b"client-output-buffer-limit", limits)], false).expect("they are limits");
    let (mut client, mut other) = (alone.connect(), alone.connect());
    sends(&mut alone, &mut client, &argv(1, &[b"SUBSCRIBE", b"news"]));
    received(&mut client);
    sends(&mut alone, &mut client, &[0xFF, 3, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0]);
    let publish = [b"*3\r\n$7\r\nPUBLISH\r\n$4\r\nnews\r\n$9000\r\n", &[b'm'; 9000][..], b"\r\n"].concat();
    for _ in 0..5 {
        sends(&mut alone, &mut other, &publish);
    }
    assert!(received(&mut client).is_empty());
    sends(&mut alone, &mut other, &publish);
    let all = received(&mut client);
    let message =
        [&[0x80, 0x0A, 0, 1, 0, 0, 0, 3, 0x87][..], b"message", &[0x84], b"news", &[3, 0, 0, 0x23, 0x28]]
            .concat();
    let messages = 6 * (message.len() + 9_000);
    assert!(all.starts_with(&message) && all.len() > messages, "what it has been told is sent");
    let close = all[messages..].to_vec();
    assert_eq!((close[..4].to_vec(), close[8..10].to_vec()), (vec![0xFF, 1, 0, 1], vec![0, 2]));
}
