//! What frames that carry their length would save a proxy: the loop that takes request frames apart and passes each on
//! by its channel, over bare typed frames, over the same frames inside a BATCH, and over ARGV. ADR 0023 has the
//! figures.
//!
//! `proxy_cost` prints nanoseconds per command, medians of interleaved rounds: the loop in memory, and with one receive
//! and one send for 16 frames, as a proxy has them. `proxy_cost MANNER-WORKLOAD-FRAMES REPEATS` runs one loop, for
//! callgrind. BATCH is not a part of RESPB/1: this file is all there is of it.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use weft_protocol::reply::Passed;
use weft_protocol::request::Texts;
use weft_protocol::{ArgVisitor, Limits, Outcome, respb};

/// Bytes of a stream.
const STREAM_BYTES: usize = 1 << 20;
/// Logical clients whose frames alternate in it.
const CHANNELS: u16 = 64;
/// Servers behind the proxy.
const BACKENDS: usize = 4;
/// An output that is this long counts as sent.
const OUTPUT_BYTES: usize = 64 << 10;
/// Rounds that count in nanoseconds.
const ROUNDS: usize = 31;

const WORKLOADS: [&str; 4] = ["get", "set", "mget", "mixed"];
const FRAMES: [usize; 3] = [1, 16, 100];

/// `[F002][0000][len u32]`, then `[n u16][request frame of n bytes]`…
const BATCH_OPCODE: u16 = 0xF002;
const BATCH_HEADER_LEN: usize = 8;

/// What commands of each workload look like; a mixed stream takes them in turn.
fn argv(workload: &str, number: u64) -> Vec<Vec<u8>> {
    let key = |i: u64| format!("key:{:016}", number * 10 + i);
    let line = match (workload, number % 12) {
        ("get", _) | ("mixed", 0 | 1) => format!("GET {}", key(0)),
        ("set", _) | ("mixed", 2) => format!("SET {} {}", key(0), "v".repeat(50)),
        ("mixed", 3) => format!("SET {} {} EX 60", key(0), "v".repeat(50)),
        ("mixed", 4) => format!("HSET {} name Ada town London", key(0)),
        ("mixed", 5) => format!("HGET {} name", key(0)),
        ("mixed", 6) => format!("ZADD {} GT 12 member", key(0)),
        ("mixed", 7) => format!("EXPIRE {} 300 NX", key(0)),
        ("mixed", 8) => format!("LPUSH {} one two three", key(0)),
        ("mixed", 9) => format!("XADD {} * temperature 21 place cellar", key(0)),
        ("mixed", 10) => format!("LMOVE {} {} LEFT RIGHT", key(0), key(1)),
        _ => (0..10).fold("MGET".to_owned(), |line, i| line + " " + &key(i)),
    };
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// Frames to pass on, bare and in batches of so many.
struct Stream {
    bytes: Vec<u8>,
    commands: u64,
}

fn stream(manner: &str, workload: &str, frames: usize, bytes_min: usize) -> Stream {
    let mut stream = Stream { bytes: Vec::new(), commands: 0 };
    while stream.bytes.len() < bytes_min {
        let batch_at = stream.bytes.len();
        let batched = manner.contains("batch");
        if batched {
            stream.bytes.extend_from_slice(&BATCH_OPCODE.to_be_bytes());
            stream.bytes.extend_from_slice(&[0; 6]);
        }
        for _ in 0..frames {
            let (argv, channel) = (argv(workload, stream.commands), stream.commands as u16 % CHANNELS);
            let mut frame = Vec::new();
            let mut writer = respb::RequestWriter::new(&mut frame, channel);
            if manner == "argv" {
                writer.argv(&Texts(&argv));
            } else {
                writer.command(&argv, respb::Mode::Exact);
            }
            if batched {
                stream.bytes.extend_from_slice(&(frame.len() as u16).to_be_bytes());
            }
            stream.bytes.extend_from_slice(&frame);
            stream.commands += 1;
        }
        if batched {
            let len = (stream.bytes.len() - batch_at - BATCH_HEADER_LEN) as u32;
            stream.bytes[batch_at + 4..batch_at + BATCH_HEADER_LEN].copy_from_slice(&len.to_be_bytes());
        }
    }
    stream
}

/// Where the frames of each channel go: a backend, and the number that the channel has there.
struct Proxy {
    routes: Vec<(u8, u16)>,
    outputs: [Vec<u8>; BACKENDS],
    passed: u64,
}

impl Proxy {
    fn new() -> Proxy {
        let routes = (0..=u16::MAX).map(|channel| (channel as u8 % BACKENDS as u8, channel / 4)).collect();
        Proxy { routes, outputs: std::array::from_fn(|_| Vec::with_capacity(2 * OUTPUT_BYTES)), passed: 0 }
    }

    /// Appends a frame to the output of its channel's backend.
    #[inline(always)]
    fn pass_on(&mut self, frame: &[u8], entry: bool) {
        let [o1, o0, c1, c0, ..] = *frame else { return };
        let (backend, channel) = self.routes[usize::from(u16::from_be_bytes([c1, c0]))];
        let output = &mut self.outputs[usize::from(backend) % BACKENDS];
        if output.len() >= OUTPUT_BYTES {
            self.passed += output.len() as u64;
            output.clear();
        }
        let [n1, n0] = channel.to_be_bytes();
        if entry {
            // The batch's own header is corrected when it is sent, once.
            let [l1, l0] = (frame.len() as u16).to_be_bytes();
            output.extend_from_slice(&[l1, l0, o1, o0, n1, n0]);
        } else {
            output.extend_from_slice(&[o1, o0, n1, n0]);
        }
        output.extend_from_slice(&frame[4..]);
    }

    #[inline(never)]
    fn bare(&mut self, input: &[u8]) -> u64 {
        let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
        let (mut rest, mut commands) = (input, 0);
        while !rest.is_empty() {
            let frame = match decoder.decode_whole(rest, &mut Passed) {
                Some(frame) => frame,
                None => match decoder.decode(rest, &mut Passed) {
                    Outcome::Complete(frame) => frame,
                    _ => return commands,
                },
            };
            self.pass_on(&rest[..frame.len], false);
            (rest, commands) = (frame.rest, commands + 1);
        }
        commands
    }

    /// Frames that carry their length: no table.
    #[inline(never)]
    fn carried(&mut self, mut rest: &[u8]) -> u64 {
        let mut commands = 0;
        while let Some(&[o1, _, _, _, a, b, c, d]) = rest.first_chunk() {
            let end = BATCH_HEADER_LEN + u32::from_be_bytes([a, b, c, d]) as usize;
            let Some((frame, behind)) = rest.split_at_checked(end).filter(|_| o1 == 0xF0) else { break };
            self.pass_on(frame, false);
            (rest, commands) = (behind, commands + 1);
        }
        commands
    }

    #[inline(never)]
    fn batches(&mut self, mut rest: &[u8], entry: bool) -> u64 {
        let mut commands = 0;
        while let Some(&[o1, o0, _, _, a, b, c, d]) = rest.first_chunk() {
            let end = BATCH_HEADER_LEN + u32::from_be_bytes([a, b, c, d]) as usize;
            let Some((batch, behind)) =
                rest.split_at_checked(end).filter(|_| u16::from_be_bytes([o1, o0]) == BATCH_OPCODE)
            else {
                break;
            };
            let mut entries = &batch[BATCH_HEADER_LEN..];
            while let Some((len, body)) = entries.split_first_chunk::<2>() {
                let len = usize::from(u16::from_be_bytes(*len));
                let Some((frame, next)) = body.split_at_checked(len).filter(|_| len >= 4) else { break };
                self.pass_on(frame, entry);
                (entries, commands) = (next, commands + 1);
            }
            rest = behind;
        }
        commands
    }

    fn run(&mut self, manner: &str, input: &[u8]) -> u64 {
        match manner {
            "bare" => self.bare(input),
            "argv" => self.carried(input),
            "batch" => self.batches(input, false),
            "batchbatch" => self.batches(input, true),
            "decode" => decode(input),
            "decodebatch" => decode_batches(input),
            _ => panic!("bare, argv, batch, batchbatch, decode or decodebatch"),
        }
    }
}

/// What a server does: every frame is decoded.
#[inline(never)]
fn decode(input: &[u8]) -> u64 {
    let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
    let (mut rest, mut commands, mut fold) = (input, 0, Fold(0));
    while !rest.is_empty() {
        let frame = match decoder.decode_whole(rest, &mut fold) {
            Some(frame) => frame,
            None => match decoder.decode(rest, &mut fold) {
                Outcome::Complete(frame) => frame,
                _ => break,
            },
        };
        (rest, commands) = (frame.rest, commands + 1);
    }
    black_box(fold.0);
    commands
}

/// What a server does with batches: every entry is decoded within its length.
#[inline(never)]
fn decode_batches(mut rest: &[u8]) -> u64 {
    let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
    let (mut commands, mut fold) = (0, Fold(0));
    while let Some(&[_, _, _, _, a, b, c, d]) = rest.first_chunk() {
        let end = BATCH_HEADER_LEN + u32::from_be_bytes([a, b, c, d]) as usize;
        let Some((batch, behind)) = rest.split_at_checked(end) else { break };
        let mut entries = &batch[BATCH_HEADER_LEN..];
        while let Some((len, body)) = entries.split_first_chunk::<2>() {
            let len = usize::from(u16::from_be_bytes(*len));
            let Some((entry, next)) = body.split_at_checked(len) else { break };
            let frame = match decoder.decode_whole(entry, &mut fold) {
                Some(frame) => frame,
                None => match decoder.decode(entry, &mut fold) {
                    Outcome::Complete(frame) => frame,
                    _ => return commands,
                },
            };
            if frame.len != len {
                return commands;
            }
            (entries, commands) = (next, commands + 1);
        }
        rest = behind;
    }
    black_box(fold.0);
    commands
}

/// Folds lengths, numbers and the first byte of what it is handed.
struct Fold(u64);

impl ArgVisitor for Fold {
    #[inline]
    fn bytes(&mut self, _offset: usize, bytes: &[u8]) {
        self.0 = self.0.wrapping_add(bytes.len() as u64 + bytes.first().map_or(0, |byte| u64::from(*byte)));
    }
    #[inline]
    fn int(&mut self, value: i64) {
        self.0 = self.0.wrapping_add(value as u64);
    }
    #[inline]
    fn double(&mut self, value: f64) {
        self.0 = self.0.wrapping_add(value.to_bits());
    }
    #[inline]
    fn keyword(&mut self, word: &'static str) {
        self.0 = self.0.wrapping_add(word.len() as u64);
    }
    #[inline]
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.bytes(offset, raw);
    }
}

fn nanoseconds(workload: &str) {
    let columns: Vec<(String, &str, Stream)> = [("bare", 1), ("argv", 1)]
        .into_iter()
        .chain(FRAMES.iter().flat_map(|&n| [("batch", n), ("batchbatch", n)]))
        .chain([("decode", 1)])
        .chain(FRAMES.iter().map(|&n| ("decodebatch", n)))
        .map(|(manner, n)| (format!("{manner} {n}"), manner, stream(manner, workload, n, STREAM_BYTES)))
        .collect();
    let mut rounds = vec![Vec::new(); columns.len()];
    let mut proxy = Proxy::new();
    for _ in 0..ROUNDS {
        for ((_, manner, stream), rounds) in columns.iter().zip(&mut rounds) {
            let begun = Instant::now();
            let commands = proxy.run(manner, black_box(&stream.bytes));
            let elapsed = begun.elapsed();
            assert_eq!(commands, stream.commands, "{manner}: not everything was passed on");
            rounds.push(elapsed.as_nanos() as f64 / commands as f64);
        }
    }
    for ((name, ..), rounds) in columns.iter().zip(&mut rounds) {
        rounds.sort_by(f64::total_cmp);
        println!("{workload:<6} {name:<16} {:>6.1} ns", rounds[ROUNDS / 2]);
    }
    black_box(proxy.passed);
}

/// Two ends of a connection on this machine.
fn connection() -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    near.set_nodelay(true)?;
    Ok((near, listener.accept()?.0))
}

/// A proxy's whole turn: it receives 16 frames, passes them on to one backend and sends them. Only its part is timed.
fn with_sockets(workload: &str) -> std::io::Result<()> {
    const TURNS: usize = 20_000;
    const FRAMES: usize = 16;
    let manners = ["bare", "argv", "batch"].map(|manner| (manner, stream(manner, workload, FRAMES, 1)));
    let (mut client, mut front) = connection()?;
    let (mut back, mut backend) = connection()?;
    let mut proxy = Proxy::new();
    proxy.routes.iter_mut().for_each(|route| route.0 = 0);
    let mut room = vec![0; OUTPUT_BYTES];
    let mut spent = [Duration::ZERO; 3];
    for turn in 0..TURNS * manners.len() {
        let (manner, stream) = &manners[turn % manners.len()];
        client.write_all(&stream.bytes[..])?;
        let (begun, mut received, mut passed) = (Instant::now(), 0, 0);
        while received < stream.bytes.len() {
            received += front.read(&mut room[received..])?;
        }
        passed += proxy.run(manner, &room[..received]);
        back.write_all(&proxy.outputs[0])?;
        spent[turn % manners.len()] += begun.elapsed();
        assert_eq!(passed, stream.commands, "{manner}: not everything was passed on");
        backend.read_exact(&mut room[..proxy.outputs[0].len()])?;
        proxy.outputs[0].clear();
    }
    for ((manner, stream), spent) in manners.iter().zip(spent) {
        let ns = spent.as_nanos() as f64 / (TURNS as u64 * stream.commands) as f64;
        println!("{workload:<6} {manner:<16} {ns:>6.1} ns, with one receive and one send for {FRAMES}");
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [loop_of, repeats] = arguments.as_slice() else {
        for workload in WORKLOADS {
            nanoseconds(workload);
            with_sockets(workload).expect("this machine has sockets");
        }
        return;
    };
    let mut parts = loop_of.split('-');
    let mut part = || parts.next().expect("MANNER-WORKLOAD-FRAMES");
    let (manner, workload, frames) = (part(), part(), part().parse().expect("FRAMES is a number"));
    let repeats: u64 = repeats.parse().expect("REPEATS is a number");
    let (stream, mut proxy) = (stream(manner, workload, frames, STREAM_BYTES), Proxy::new());
    for _ in 0..repeats {
        let commands = proxy.run(manner, &stream.bytes);
        assert_eq!(commands, stream.commands, "not everything was passed on");
    }
    println!("{} {}", repeats * stream.commands, black_box(proxy.passed));
}
