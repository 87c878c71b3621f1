//! Decodes one stream of one workload and prints the checksum: the program whose instructions `tests/instructions.rs`
//! counts under callgrind.
//!
//! `decode_cost WORKLOAD REPEATS` decodes a stream of about 1 MB REPEATS times. Every length and number and the first
//! and last byte of each argument are folded into the checksum, so that nothing of the decoding can be left out. The
//! cost per command is the difference between two values of REPEATS, divided by the commands in between.

use weft_protocol::request::Texts;
use weft_protocol::{ArgVisitor, Limits, Outcome, resp, respb};

/// Folds what it is handed.
#[derive(Default)]
struct Fold(u64);

/// Keeps the fold of an empty argument out of the way of the others.
#[cold]
fn empty() {}

impl ArgVisitor for Fold {
    #[inline]
    fn bytes(&mut self, _offset: usize, bytes: &[u8]) {
        self.0 = self.0.wrapping_add(bytes.len() as u64);
        match bytes {
            [first, ..] => {
                let ends = u64::from(*first) + u64::from(bytes[bytes.len() - 1]);
                self.0 = self.0.wrapping_add(ends);
            }
            [] => empty(),
        }
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

/// Keeps what it is handed as text.
#[derive(Default)]
struct Said(Vec<Vec<u8>>);

impl ArgVisitor for Said {
    fn bytes(&mut self, _offset: usize, bytes: &[u8]) {
        self.0.push(bytes.to_vec());
    }
    fn int(&mut self, value: i64) {
        self.0.push(value.to_string().into_bytes());
    }
    fn double(&mut self, value: f64) {
        self.0.push(value.to_string().into_bytes());
    }
    fn keyword(&mut self, word: &'static str) {
        self.0.push(word.into());
    }
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.bytes(offset, raw);
    }
}

impl Fold {
    fn of(argv: &[Vec<u8>]) -> u64 {
        let mut fold = Fold::default();
        argv.iter().for_each(|argument| fold.bytes(0, argument));
        fold.0
    }
}

/// Commands of less common layouts, or with options.
const OTHERS: [(&str, &str); 5] = [
    ("setex", "SET KEY vvvvvvvvvvvvvvvv NX PX 30000"),
    ("brpop", "BRPOP KEY 5"),
    ("xadd", "XADD KEY MAXLEN ~ 10 1-1 payload vvvvvvvvvvvvvvvv"),
    ("xreadgroup", "XREADGROUP GROUP workers one COUNT 10 STREAMS KEY >"),
    ("xack", "XACK KEY workers 1-1"),
];

/// Bytes of a stream.
const STREAM_BYTES: usize = 1 << 20;

/// A stream to decode, and what decoding it must give.
pub(crate) struct Stream {
    /// The commands on the wire.
    pub(crate) bytes: Vec<u8>,
    /// How many there are.
    pub(crate) commands: u64,
    /// The fold of all of them.
    pub(crate) checksum: u64,
}

/// A stream of one command on one wire.
pub(crate) fn stream(workload: &str, binary: bool) -> Stream {
    let mut stream = Stream { bytes: Vec::new(), commands: 0, checksum: 0 };
    while stream.bytes.len() < STREAM_BYTES {
        let key = |i: u64| format!("key:{:016}", stream.commands * 10 + i).into_bytes();
        let mut argv: Vec<Vec<u8>> = Vec::new();
        match workload {
            "get" => argv.extend([b"GET".to_vec(), key(0)]),
            "set" => argv.extend([b"SET".to_vec(), key(0), vec![b'v'; 50]]),
            "mget" => {
                argv.push(b"MGET".to_vec());
                argv.extend((0..10).map(key));
            }
            words => {
                let words = OTHERS.iter().find(|(name, _)| *name == words).expect("a workload").1;
                let word = |word: &str| if word == "KEY" { key(0) } else { word.as_bytes().to_vec() };
                argv.extend(words.split(' ').map(word));
            }
        }
        if binary {
            let begin = stream.bytes.len();
            respb::RequestWriter::new(&mut stream.bytes, CHANNEL).command(&argv, respb::Mode::Exact);
            let frame = &stream.bytes[begin..];
            let mut said = Said::default();
            respb::RequestDecoder::new(Limits::DEFAULT).decode(frame, &mut said);
            // ARGV names the command; what has a typed layout does not.
            let named = usize::from(said.0.len() < argv.len());
            assert_eq!(said.0, argv[named..], "another command was decoded");
            // Of numbers and keywords the fold is not that of their texts.
            stream.checksum = stream.checksum.wrapping_add(decode_respb(frame));
        } else {
            resp::encode::request(None, &Texts(&argv), &mut stream.bytes);
            stream.checksum += Fold::of(&argv);
        }
        stream.commands += 1;
    }
    stream
}

const CHANNEL: u16 = 7;

/// The checksum of a RESPB stream.
#[inline(never)]
pub(crate) fn decode_respb(input: &[u8]) -> u64 {
    let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
    let (mut rest, mut fold) = (input, Fold::default());
    while let Some(frame) = decoder.decode_whole(rest, &mut fold) {
        fold.0 = fold.0.wrapping_add(u64::from(frame.channel));
        rest = frame.rest;
    }
    let mut tail = Fold::default();
    while let Outcome::Complete(frame) = decoder.decode(rest, &mut tail) {
        tail.0 = tail.0.wrapping_add(u64::from(frame.channel));
        rest = frame.rest;
    }
    assert!(rest.is_empty(), "the stream was not decoded to its end");
    fold.0.wrapping_add(tail.0)
}

/// The checksum of a RESP stream.
#[inline(never)]
pub(crate) fn decode_resp(input: &[u8]) -> u64 {
    let mut decoder = resp::RequestDecoder::new(Limits::DEFAULT);
    let (mut rest, mut fold) = (input, Fold::default());
    while let Some(frame) = decoder.decode_whole(rest, &mut fold) {
        rest = frame.rest;
    }
    let mut tail = Fold::default();
    while let Outcome::Complete(frame) = decoder.decode(rest, &mut tail) {
        rest = frame.rest;
    }
    assert!(rest.is_empty(), "the stream was not decoded to its end");
    fold.0.wrapping_add(tail.0)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workload, repeats] = arguments.as_slice() else {
        eprintln!("usage: decode_cost (resp|respb)-(get|set|mget|setex|brpop|xadd|xreadgroup|xack) REPEATS");
        std::process::exit(2);
    };
    let repeats: u64 = repeats.parse().expect("REPEATS is a number");
    let binary = workload.starts_with("respb");
    let stream = stream(workload.split('-').next_back().unwrap_or_default(), binary);
    for _ in 0..repeats {
        let checksum = if binary { decode_respb(&stream.bytes) } else { decode_resp(&stream.bytes) };
        assert_eq!(checksum, stream.checksum, "decoding gave other arguments");
    }
    println!("{} {} {:016x}", repeats * stream.commands, stream.commands, stream.checksum);
}
