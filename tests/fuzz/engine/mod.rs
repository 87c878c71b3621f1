//! Owns: the bodies of the fuzz targets of the engine: what must hold for any bytes. Does not own: the targets of the
//! codecs (`../src`), which need no engine.

use std::io;

use weft_engine::hyperloglog as hll;
use weft_engine::program::{Problem, Program};
use weft_engine::rdb::file::{Part, Reader, Source};
use weft_engine::rdb::{Collect, Payload, PayloadError, Trust, seal, write_stream};
use weft_engine::trigger::definition::Trigger;
use weft_store::{Stream, StreamId};

/// Versions that mean different kinds.
const VERSIONS: [u16; 4] = [10, 9, 12, 80];
/// What a payload may hand out for each of its bytes: compressed bytes stand for at most 88, and each element has an
/// ending.
const OUT_PER_BYTE_MAX: usize = 100;

#[derive(Default)]
struct Counted {
    bytes: usize,
    stream: Option<Stream>,
}

impl Counted {
    fn count(&mut self, parts: &[&[u8]]) {
        self.bytes += parts.iter().map(|part| part.len()).sum::<usize>();
    }
}

impl Collect for Counted {
    fn string(&mut self, bytes: &[u8]) {
        self.count(&[bytes]);
    }
    fn list_element(&mut self, bytes: &[u8]) {
        self.count(&[bytes]);
    }
    fn set_member(&mut self, bytes: &[u8]) -> bool {
        self.count(&[bytes]);
        true
    }
    fn hash_field(&mut self, name: &[u8], value: &[u8], _: Option<u64>) -> bool {
        self.count(&[name, value]);
        true
    }
    fn zset_member(&mut self, member: &[u8], score: f64) -> bool {
        assert!(!score.is_nan(), "a score is a number");
        self.count(&[member]);
        true
    }
    fn stream(&mut self, stream: Stream) {
        self.stream = Some(stream);
    }
}

/// Reads a payload; one that is read can also be weighed.
fn read_payload(payload: &[u8], counted: &mut Counted) -> Result<(), PayloadError> {
    let payload = Payload::open(payload, Trust::default())?;
    payload.read(counted)?;
    payload.unpacked(0).expect("what can be read can be weighed");
    Ok(())
}

/// The first byte chooses the version; the others are a value with its kind, under a checksum that is right.
pub fn dump(data: &[u8]) {
    let Some((&first, value)) = data.split_first() else { return };
    let version = VERSIONS[usize::from(first) % VERSIONS.len()];
    let mut counted = Counted::default();
    let outcome = read_payload(&seal(value.to_vec(), version), &mut counted);
    assert!(counted.bytes <= value.len() * OUT_PER_BYTE_MAX, "{} bytes", counted.bytes);
    let Some(stream) = counted.stream.filter(|_| outcome.is_ok()) else { return };
    assert!(stream.memory_bytes() <= 4096 + value.len() * OUT_PER_BYTE_MAX * 4, "{}", stream.memory_bytes());
    let mut again = Counted::default();
    read_payload(&write_stream(&stream), &mut again).expect("what is written can be read");
    let again = again.stream.expect("a stream stays one");
    let entries = |stream: &Stream| {
        let all = stream.log().range(StreamId::MIN, StreamId::MAX);
        all.map(|entry| (entry.id, entry.fields.len())).collect::<Vec<_>>()
    };
    assert_eq!(entries(&again), entries(&stream));
    assert_eq!(again.groups().len(), stream.groups().len());
    assert_eq!(again.log().last_id(), stream.log().last_id());
}

/// A file in memory, of which a reader sees a few bytes at a time.
struct Memory<'a> {
    bytes: &'a [u8],
    there: usize,
    used: usize,
}

impl Source for Memory<'_> {
    fn fill_to(&mut self, count: usize) -> io::Result<bool> {
        let wanted = self.used.saturating_add(count);
        self.there = wanted.max(self.there).min(self.bytes.len());
        Ok(self.there >= wanted)
    }
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.used..self.there]
    }
    fn consume(&mut self, count: usize) {
        self.used += count;
        assert!(self.used <= self.there, "no more is used than is there");
    }
    fn offset(&self) -> u64 {
        self.used as u64
    }
}

/// Any bytes may be called a file of RDB.
pub fn rdb_file(data: &[u8]) {
    let read = |bytes: &[u8]| -> (Vec<u8>, Option<u64>) {
        let mut told = Vec::new();
        let mut reader = match Reader::new(Memory { bytes, there: 0, used: 0 }) {
            Ok(reader) => reader,
            Err(error) => return (told, Some(error.offset)),
        };
        reader.trust();
        loop {
            match reader.part() {
                Ok(Part::End) => return (told, None),
                Ok(Part::Key(key)) => {
                    told.extend_from_slice(&key.key);
                    let payload = key.payload();
                    let mut counted = Counted::default();
                    // It may hold anything; that it is whole is what the reader has seen.
                    let _ = read_payload(&payload, &mut counted);
                    assert!(counted.bytes <= payload.len() * OUT_PER_BYTE_MAX, "{} bytes", counted.bytes);
                }
                Ok(_) => {}
                Err(error) => {
                    assert!(error.offset <= bytes.len() as u64, "{error}");
                    return (told, Some(error.offset));
                }
            }
        }
    };
    let (keys, stop) = read(data);
    // What is behind the end changes nothing, and what is cut off only where it stops.
    if stop.is_none() {
        assert_eq!(read(&[data, b"rest"].concat()), (keys.clone(), None));
    }
    let (fewer, _) = read(&data[..data.len() / 2]);
    assert!(keys.starts_with(&fewer));
}

/// Any string may be called a HyperLogLog by its header.
pub fn hyperloglog(data: &[u8]) {
    let Some((&element, rest)) = data.split_first() else { return };
    // Half of the inputs get the sparse header, so that their opcodes are looked at.
    let mut bytes = if element % 2 == 0 { hll::create()[..16].to_vec() } else { Vec::new() };
    bytes.extend_from_slice(rest);
    if !hll::is_valid(&bytes) {
        return;
    }
    let count = hll::count(&bytes);
    let dense = hll::to_dense(&bytes);
    assert_eq!(count.is_ok(), dense.is_ok(), "what can be counted can be converted");
    let words = hll::decode(&bytes);
    assert!(words.len() <= bytes.len() * 16);
    if let (Ok(count), Ok(dense)) = (count, &dense) {
        assert_eq!(hll::count(dense), Ok(count));
        assert_eq!(hll::registers(dense), hll::registers(&bytes));
    }
    let before = bytes.clone();
    let added = hll::add(&mut bytes, &[element], 3000);
    if let (Ok(added), Ok(mut dense)) = (added, dense) {
        assert_eq!(hll::dense_change(&dense, &[element]).is_some(), added);
        hll::add(&mut dense, &[element], 3000).expect("the dense form takes everything");
        assert_eq!(hll::registers(&bytes), Ok(dense_registers(&dense)));
        assert!(added || before == bytes);
    }
}

fn dense_registers(dense: &[u8]) -> Vec<u8> {
    hll::registers(dense).expect("the dense form is always whole")
}

/// A program, or a trigger, or what is wrong with it and where: a JSON pointer into what is a document.
pub fn program(data: &[u8]) {
    let check = |problem: Problem| {
        assert!(!problem.text.is_empty(), "{problem}");
        let Ok(document) = serde_json::from_slice::<serde_json::Value>(data) else { return };
        assert!(document.pointer(&problem.at).is_some(), "{problem}");
    };
    if let Err(problem) = Program::parse(data) {
        check(problem);
    }
    match Trigger::parse(b"t", data, (1, true, "u")) {
        Ok(trigger) => {
            let again = Trigger::of_entry(b"t", &trigger.entry()).expect("what was stored is read again");
            assert_eq!((again.on, &again.pattern), (trigger.on, &trigger.pattern));
        }
        Err(problem) => check(problem),
    }
}
