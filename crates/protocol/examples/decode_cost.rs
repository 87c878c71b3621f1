//! Decodes one stream of one workload and prints the checksum: the program whose instructions `tests/instructions.rs`
//! counts under callgrind.
//!
//! `decode_cost WORKLOAD REPEATS` decodes a stream of about 1 MB REPEATS times. Every length and number and the first and
//! last byte of each argument are folded into the checksum, so that nothing of the decoding can be left out. The cost per
//! command is the difference between two values of REPEATS, divided by the commands in between.

use weft_protocol::request::Texts;
use weft_protocol::{ArgVisitor, Limits, Outcome, resp, respb};

/// Folds what it is handed.
#[derive(Default)]
struct Fold(u64);

impl ArgVisitor for Fold {
    #[inline]
    fn bytes(&mut self, _offset: usize, bytes: &[u8]) {
        let ends = match bytes {
            [first, .., last] => u64::from(*first) << 8 | u64::from(*last),
            [only] => u64::from(*only),
            [] => 0,
        };
        self.0 = self.0.wrapping_add((bytes.len() as u64) << 16 ^ ends);
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

/// Bytes of a stream.
const STREAM_BYTES: usize = 1 << 20;

fn stream(workload: &str, binary: bool) -> (Vec<u8>, u64) {
    let (mut out, mut commands) = (Vec::new(), 0u64);
    while out.len() < STREAM_BYTES {
        let key = |i: u64| format!("key:{:016}", commands * 10 + i).into_bytes();
        let mut argv: Vec<Vec<u8>> = Vec::new();
        match workload {
            "get" => argv.extend([b"GET".to_vec(), key(0)]),
            "set" => argv.extend([b"SET".to_vec(), key(0), vec![b'v'; 50]]),
            _ => {
                argv.push(b"MGET".to_vec());
                argv.extend((0..10).map(key));
            }
        }
        if binary {
            respb::RequestWriter::new(&mut out, 0).command(&argv, respb::Mode::Exact);
        } else {
            resp::encode::request(None, &Texts(&argv), &mut out);
        }
        commands += 1;
    }
    (out, commands)
}

#[inline(never)]
fn decode_respb(input: &[u8], fold: &mut Fold) -> u64 {
    let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
    let (mut rest, mut commands) = (input, 0);
    while !rest.is_empty() {
        let Outcome::Complete(frame) = decoder.decode(rest, fold) else { break };
        fold.0 = fold.0.wrapping_add(u64::from(frame.channel));
        rest = &rest[frame.len..];
        commands += 1;
    }
    commands
}

#[inline(never)]
fn decode_resp(input: &[u8], fold: &mut Fold) -> u64 {
    let mut decoder = resp::RequestDecoder::new(Limits::DEFAULT);
    let (mut rest, mut commands) = (input, 0);
    while !rest.is_empty() {
        let Outcome::Complete(frame) = decoder.decode(rest, fold) else { break };
        rest = &rest[frame.len..];
        commands += 1;
    }
    commands
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workload, repeats] = arguments.as_slice() else {
        eprintln!("usage: decode_cost (resp|respb)-(get|set|mget) REPEATS");
        std::process::exit(2);
    };
    let repeats: u64 = repeats.parse().expect("REPEATS is a number");
    let binary = workload.starts_with("respb");
    let (input, commands) = stream(workload.split('-').next_back().unwrap_or_default(), binary);
    let (mut fold, mut decoded) = (Fold::default(), 0);
    for _ in 0..repeats {
        decoded += if binary { decode_respb(&input, &mut fold) } else { decode_resp(&input, &mut fold) };
    }
    assert_eq!(decoded, commands * repeats, "a command was not decoded");
    println!("{decoded} {commands} {:016x}", fold.0);
}
