//! A request that arrives byte by byte costs its bytes once: ten times the arguments take about ten times as long.
//!
//! Owns the measurement. It is CPU time of the thread, which stands still while a busy machine keeps the thread
//! waiting. Quadratic time would show as a hundredfold; the bound leaves room for caches that hold the tenth only.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use weft_protocol::{ArgVisitor, Limits, Outcome, ReplyVisitor, Text, resp, respb};

/// How much longer ten times as much may take.
const RATIO_MAX: f64 = 40.0;

/// Tries, of which the fastest counts.
const TRIES: usize = 5;

/// Measurements before the test fails.
const ATTEMPTS: usize = 5;

/// Counts what it is handed.
#[derive(Default)]
struct Count(usize);

impl ArgVisitor for Count {
    fn bytes(&mut self, _offset: usize, _bytes: &[u8]) {
        self.0 += 1;
    }
    fn int(&mut self, _value: i64) {
        self.0 += 1;
    }
    fn double(&mut self, _value: f64) {
        self.0 += 1;
    }
    fn keyword(&mut self, _word: &'static str) {
        self.0 += 1;
    }
    fn quoted(&mut self, _offset: usize, _raw: &[u8]) {
        self.0 += 1;
    }
}

impl ReplyVisitor for Count {
    fn text(&mut self, _kind: Text, _offset: usize, _bytes: &[u8]) {
        self.0 += 1;
    }
    fn int(&mut self, _value: i64) {
        self.0 += 1;
    }
    fn double(&mut self, _value: f64) {
        self.0 += 1;
    }
    fn boolean(&mut self, _value: bool) {
        self.0 += 1;
    }
    fn null(&mut self, _array: bool) {
        self.0 += 1;
    }
    fn open(&mut self, _kind: weft_protocol::Aggregate, _len: Option<u32>) {}
    fn close(&mut self) {}
    fn open_text(&mut self) {}
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Feeds `wire` one byte more at a time. `decode` gives the frame's length once it is whole.
fn by_bytes(
    wire: &[u8],
    expected: usize,
    mut decode: impl FnMut(&[u8], &mut Count) -> Option<usize>,
) -> Duration {
    let mut count = Count::default();
    let start = cpu_time();
    for end in 0..wire.len() {
        assert_eq!(decode(&wire[..end], &mut count), None, "after {end} of {} bytes", wire.len());
    }
    assert_eq!(decode(wire, &mut count), Some(wire.len()));
    let taken = cpu_time() - start;
    assert_eq!(count.0, expected, "each argument once");
    taken
}

fn whole<T>(outcome: Outcome<T>, len: impl FnOnce(T) -> usize) -> Option<usize> {
    match outcome {
        Outcome::Complete(frame) => Some(len(frame)),
        Outcome::Incomplete { .. } => None,
        Outcome::Invalid(error) => panic!("{error}"),
    }
}

fn resp_request(arguments: usize) -> Duration {
    let wire = [format!("*{arguments}\r\n").into_bytes(), b"$1\r\na\r\n".repeat(arguments)].concat();
    let mut decoder = resp::RequestDecoder::new(Limits::DEFAULT);
    by_bytes(&wire, arguments, |input, count| whole(decoder.decode(input, count), |frame| frame.len))
}

fn inline_request(blanks: usize) -> Duration {
    let wire = [&b" ".repeat(blanks)[..], b"PING\r\n"].concat();
    let mut decoder = resp::RequestDecoder::new(Limits::DEFAULT);
    by_bytes(&wire, 1, |input, count| whole(decoder.decode(input, count), |frame| frame.len))
}

fn argv_frame(arguments: usize) -> Duration {
    let head = [&[0xF0, 0x01, 0, 0][..], &((arguments * 5) as u32).to_be_bytes()].concat();
    let wire = [head, b"\0\0\0\x01a".repeat(arguments)].concat();
    let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
    by_bytes(&wire, arguments, |input, count| whole(decoder.decode(input, count), |frame| frame.len))
}

fn typed_list(name: &[u8], item: &[u8], items: usize, each: usize, extra: usize) -> Duration {
    let id = weft_protocol::table::by_name(name).expect("a command of the table");
    let weft_protocol::table::Opcode::Core(opcode) = id.spec().opcode else { panic!("a core command") };
    let mut wire = [opcode.to_be_bytes(), [0, 0]].concat();
    if extra > 0 {
        wire.extend_from_slice(b"\0\x03key");
    }
    wire.extend_from_slice(&(items as u16).to_be_bytes());
    wire.extend(item.repeat(items));
    let mut decoder = respb::RequestDecoder::new(Limits::DEFAULT);
    by_bytes(&wire, items * each + extra, |input, count| {
        whole(decoder.decode(input, count), |frame| frame.len)
    })
}

fn respb_reply(elements: usize) -> Duration {
    let head = [&[0x80, 0x04, 0, 0][..], &(elements as u32).to_be_bytes()].concat();
    let wire = [head, b"\x81a\x06\x01".repeat(elements / 2)].concat();
    let mut decoder = respb::ReplyDecoder::new(Limits::DEFAULT);
    by_bytes(&wire, elements, |input, count| whole(decoder.decode(input, count), |frame| frame.len))
}

fn resp_reply(elements: usize) -> Duration {
    let wire = [format!("*{elements}\r\n").into_bytes(), b"$1\r\na\r\n:12\r\n".repeat(elements / 2)].concat();
    let mut decoder = resp::ReplyDecoder::new(Limits::DEFAULT);
    by_bytes(&wire, elements, |input, count| whole(decoder.decode(input, count), |frame| frame.len))
}

/// A tenth and the whole, each the fastest of a few tries. A machine whose caches others use in just the wrong moments
/// gets another attempt; quadratic time fails them all.
fn check(name: &str, size: usize, run: impl Fn(usize) -> Duration) {
    let fastest = |size| (0..TRIES).map(|_| run(size)).min().unwrap_or_default();
    let mut ratios = Vec::new();
    for _ in 0..ATTEMPTS {
        let (tenth, all) = (fastest(size / 10), fastest(size));
        let ratio = all.as_secs_f64() / tenth.as_secs_f64();
        println!("{name}: {size} in {all:?}, a tenth in {tenth:?}, ratio {ratio:.1}");
        if ratio < RATIO_MAX {
            return;
        }
        ratios.push(ratio);
    }
    panic!("{name}: ten times as much took {ratios:.1?} times as long");
}

#[test]
fn bytes_are_paid_once() {
    check("RESP request", 1_000_000, resp_request);
    check("inline request", 65_000, inline_request);
    check("ARGV frame", 1_000_000, argv_frame);
    check("MGET", 65_535, |items| typed_list(b"MGET", b"\0\x02ab", items, 1, 0));
    check("SADD", 65_535, |items| typed_list(b"SADD", b"\0\x02ab", items, 1, 1));
    check("MSET", 65_535, |items| typed_list(b"MSET", b"\0\x01a\0\0\0\x01b", items, 2, 0));
    check("HSET", 65_535, |items| typed_list(b"HSET", b"\0\x01a\0\0\0\x01b", items, 2, 1));
    check("RESPB reply", 1_000_000, respb_reply);
    check("RESP reply", 1_000_000, resp_reply);
}
