//! Owns the tests of payloads: what is written reads back, payloads of real servers are read, and nothing of what
//! bytes can be breaks anything.

use super::*;
use std::collections::BTreeMap;
use weft_store::stream::{Group, StreamLimit};
use weft_store::{Rng, Stream, StreamId, StreamMut, XorShift};

/// What was read, in order where there is one.
#[derive(Default, Debug)]
struct Read {
    text: Option<Vec<u8>>,
    list: Vec<Vec<u8>>,
    set: BTreeMap<Vec<u8>, ()>,
    hash: BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>,
    zset: BTreeMap<Vec<u8>, f64>,
    stream: Option<Stream>,
}

impl Collect for Read {
    fn string(&mut self, bytes: &[u8]) {
        self.text = Some(bytes.to_vec());
    }
    fn list_element(&mut self, bytes: &[u8]) {
        self.list.push(bytes.to_vec());
    }
    fn set_member(&mut self, bytes: &[u8]) -> bool {
        self.set.insert(bytes.to_vec(), ()).is_none()
    }
    fn hash_field(&mut self, name: &[u8], value: &[u8], expire_ms: Option<u64>) -> bool {
        self.hash.insert(name.to_vec(), (value.to_vec(), expire_ms)).is_none()
    }
    fn zset_member(&mut self, member: &[u8], score: f64) -> bool {
        self.zset.insert(member.to_vec(), score).is_none()
    }
    fn stream(&mut self, stream: Stream) {
        self.stream = Some(stream);
    }
}

fn read(payload: &[u8]) -> Result<Read, PayloadError> {
    let mut into = Read::default();
    let payload = Payload::open(payload, Trust::default())?;
    payload.read(&mut into)?;
    payload.unpacked(0).expect("what can be read can be weighed");
    Ok(into)
}

fn texts() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = ["", "a", "-1", "127", "128", "-32769", "2147483648", "007", "-0"]
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
    texts.extend([63, 64, 16_383, 16_384].map(|len| vec![b'y'; len]));
    texts
}

#[test]
fn what_is_written_reads_back() {
    for text in texts() {
        assert_eq!(read(&Writer::text(&text)).unwrap().text, Some(text));
    }
    let mut writer = Writer::list(texts().len());
    texts().iter().for_each(|text| writer.element(text));
    assert_eq!(read(&writer.finish()).unwrap().list, texts());
    let mut writer = Writer::set(texts().len());
    texts().iter().for_each(|text| writer.element(text));
    assert_eq!(read(&writer.finish()).unwrap().set.len(), texts().len());
    let mut writer = Writer::expiring_hash(2);
    writer.expiring_pair(b"a", b"1", None);
    writer.expiring_pair(b"b", b"x", Some(5));
    let hash = read(&writer.finish()).unwrap().hash;
    assert_eq!((&hash[&b"a"[..]], &hash[&b"b"[..]]), (&(b"1".to_vec(), None), &(b"x".to_vec(), Some(5))));
    let mut writer = Writer::zset(3);
    for (member, score) in [("a", f64::INFINITY), ("b", 0.1), ("c", -1e300)] {
        writer.scored(member.as_bytes(), score);
    }
    assert_eq!(read(&writer.finish()).unwrap().zset[&b"b"[..]], 0.1);
}

fn stream() -> Stream {
    let mut stream = Stream::default();
    for number in 1..=250_u64 {
        let value = (number * 999).to_string();
        let pairs = [(&b"item"[..], value.as_bytes()), (b"what", b"text")];
        let count = if number % 10 == 0 { 1 } else { 2 };
        let id = StreamId::new(number / 3, number);
        StreamMut::new(&mut stream)
            .append(id, pairs[..count].iter().copied(), StreamLimit::default())
            .unwrap();
    }
    assert!(StreamMut::new(&mut stream).delete(StreamId::new(40, 120)));
    let mut change = StreamMut::new(&mut stream);
    assert!(change.create_group(b"g", Group::new(StreamId::MIN, None)));
    let (log, mut group) = change.group_mut(b"g").unwrap();
    for name in [&b"c1"[..], b"c2"] {
        let (consumer, _) = group.find_or_create_consumer(name, 7);
        group.deliver(log, Some(consumer), 20, 9, |_| {});
    }
    drop(group);
    stream
}

fn dump(stream: &Stream) -> String {
    let mut text = String::new();
    for entry in stream.log().range(StreamId::MIN, StreamId::MAX) {
        text.push_str(&format!("{} {:?}\n", entry.id, entry.fields.iter().collect::<Vec<_>>()));
    }
    let log = stream.log();
    text.push_str(&format!("{} {} {}\n", log.last_id(), log.entries_added(), log.max_deleted_id()));
    for (name, group) in stream.groups() {
        let pending: Vec<_> = group.pending_from(StreamId::MIN).collect();
        text.push_str(&format!("{name:?} {} {:?} {pending:?}\n", group.last_id(), group.entries_read()));
        for consumer in group.consumers() {
            text.push_str(&format!("{:?} {} {:?}\n", consumer.name(), consumer.seen_ms, consumer.active_ms));
        }
    }
    text
}

#[test]
fn a_stream_reads_back() {
    let stream = stream();
    let again = read(&write_stream(&stream)).unwrap().stream.unwrap();
    assert_eq!(dump(&again), dump(&stream));
    assert_eq!(again.log().block_count(), stream.log().block_count());
}

/// Times of activity need the form of Redis 7.2; where they say nothing more, Redis 7.0 reads it.
#[test]
fn a_stream_has_the_oldest_form_that_has_all_of_it() {
    let set = |actives: [Option<u64>; 2]| {
        let mut group = Group::new(StreamId::MIN, None);
        for (name, active_ms) in [&b"c1"[..], b"c2"].into_iter().zip(actives) {
            let (consumer, _) = group.find_or_create_consumer(name, 7);
            group.consumer_mut(consumer).active_ms = active_ms;
        }
        let mut stream = stream();
        assert!(StreamMut::new(&mut stream).create_group(b"h", group));
        assert!(StreamMut::new(&mut stream).remove_group(b"g").is_some());
        let payload = write_stream(&stream);
        assert_eq!(dump(&read(&payload).unwrap().stream.unwrap()), dump(&stream));
        (payload[0], payload[payload.len() - FOOTER_BYTES])
    };
    assert_eq!(set([Some(7), Some(7)]), (kind::STREAM_2, VERSION as u8));
    assert_eq!(set([Some(7), Some(6)]), (kind::STREAM_3, VERSION_7_2 as u8));
    assert_eq!(set([None, Some(7)]), (kind::STREAM_3, VERSION_7_2 as u8));
}

/// See the first line of that file for where they are from.
#[test]
fn payloads_of_real_servers_are_read() {
    for line in include_str!("payloads.txt").lines().filter(|line| !line.starts_with('#')) {
        let (name, hex) = line.split_once(' ').unwrap();
        let payload: Vec<u8> =
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
        let got = read(&payload).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let shown = match name.rsplit_once('-').unwrap().1 {
            "string" => got.text.unwrap() == "s".repeat(100).into_bytes(),
            "int" => got.text.unwrap() == b"-123456",
            "list" => got.list.len() == 200 && got.list[150] == b"150" && got.list[7] == b"element-7",
            "small_list" => got.list == [&b"a"[..], b"-5", b"70000"],
            "set" => got.set.len() == 200 && got.set.contains_key(&b"element-7"[..]),
            "small_set" => got.set.keys().eq([&b"-5"[..], b"70000", b"a"]),
            "ints" => got.set.keys().eq([&b"-5"[..], b"3", b"70000"]),
            "hash" => got.hash.len() == 200 && got.hash[&b"element-7"[..]] == (b"7".to_vec(), None),
            "small_hash" => got.hash[&b"a"[..]] == (b"1".to_vec(), None) && got.hash.len() == 2,
            "expiring" => got.hash[&b"a"[..]].1 == Some(4_102_444_800_000) && got.hash[&b"b"[..]].1.is_none(),
            "zset" => got.zset.len() == 200 && got.zset[&b"element-7"[..]] == 7.5,
            "small_zset" => got.zset[&b"a"[..]] == 1.5 && got.zset[&b"b"[..]] == f64::NEG_INFINITY,
            // Before kind 19 there were no counters.
            "old_stream" => {
                let stream = got.stream.unwrap();
                let group = stream.group(b"g").unwrap();
                (stream.log().len(), stream.log().entries_added()) == (119, 119) && group.pending_len() == 10
            }
            "stream" => {
                let stream = got.stream.unwrap();
                let group = stream.group(b"g").unwrap();
                let first = stream.log().range(StreamId::MIN, StreamId::MAX).next().unwrap();
                let (last_id, deleted) = (stream.log().last_id(), stream.log().max_deleted_id());
                stream.log().len() == 119
                    && (last_id, deleted) == (StreamId::new(120, 1), StreamId::new(5, 1))
                    && first.fields.iter().eq([(&b"item"[..], &b"1"[..]), (b"text", b"x")])
                    && (group.pending_len(), group.consumers().len()) == (10, 1)
            }
            other => panic!("{other} is not known"),
        };
        assert!(shown, "{name}");
    }
}

/// Changes real payloads by chance and mends their checksum: what comes out is a value or an error.
#[test]
fn changed_payloads_are_refused_or_read() {
    let mut seeds: Vec<Vec<u8>> = include_str!("payloads.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(name, _)| !name.starts_with('#'))
        .map(|(_, hex)| {
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
        })
        .collect();
    seeds.push(write_stream(&stream()));
    let mut rng = XorShift::new(7);
    println!("seed 7");
    let (mut good, mut bad) = (0, 0);
    for round in 0..200 {
        for seed in &seeds {
            let body = seed.len() - FOOTER_BYTES;
            let version = u16::from_le_bytes([seed[body], seed[body + 1]]);
            let mut value = seed[..body].to_vec();
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(value.len().min(200) as u32) as usize;
                match rng.below(4) {
                    0 => value[at] = rng.below(256) as u8,
                    1 => value[at] ^= 1 << rng.below(8),
                    2 => value.truncate(at.max(1)),
                    _ => value.insert(at, [0, 0x80, 0x81, 0xff][round % 4]),
                }
            }
            match read(&seal(value, version)) {
                Ok(_) => good += 1,
                Err(error) => {
                    assert_eq!(error, PayloadError::Malformed);
                    bad += 1;
                }
            }
        }
    }
    println!("{good} read, {bad} refused");
    assert!(good > 100 && bad > 1000);
}

/// So many times 264 bytes and one more, compressed.
fn compressed(times: usize) -> Vec<u8> {
    let body = [b"\x00a", &b"\xe0\xff\x00".repeat(times)[..]].concat();
    let lengths = [body.len() as u32, 1 + 264 * times as u32].map(u32::to_be_bytes);
    [b"\xc3\x80", &lengths[0][..], b"\x80", &lengths[1], &body].concat()
}

#[test]
fn what_would_be_unpacked_is_weighed_before() {
    let (one, two) = (compressed(100), compressed(300));
    let (one_bytes, two_bytes) = (26_401, 79_201);
    type Value<'v> = (&'v [u8], &'v [&'v [u8]], u64, u64);
    let values: [Value<'_>; 6] = [
        (b"\x00", &[&two], two_bytes, two_bytes),
        (b"\x01\x03", &[&two, b"\x03bar", &one], one_bytes + two_bytes, two_bytes),
        (b"\x04\x01", &[&one, &two], one_bytes + two_bytes, two_bytes),
        (b"\x05\x02", &[&one, &[0; 8], &two, &[0; 8]], one_bytes + two_bytes, two_bytes),
        (b"\x12\x02", &[b"\x01", &two, b"\x01", &two], 2 * two_bytes, two_bytes),
        (b"\x01\x02", &[b"\x03bar", b"\xc0\x07"], 0, 0),
    ];
    for (head, parts, bytes, longest) in values {
        let payload = seal([head, &parts.concat()].concat(), VERSION);
        let payload = Payload::open(&payload, Trust::default()).unwrap();
        assert_eq!(payload.unpacked(0), Ok(Unpacked { bytes, longest }), "{head:?}");
        payload.read(&mut Read::default()).unwrap();
        assert_eq!(payload.unpacked(1 << 20).unwrap(), Unpacked::default(), "too short to be asked");
    }
    let payload = seal(b"\x01\x02\x03bar".to_vec(), VERSION);
    let cut = Payload::open(&payload, Trust::default()).unwrap().unpacked(0);
    assert_eq!(cut, Err(PayloadError::Malformed));
    // Libraries are asked for their bytes in sum.
    let library = [b"\xf5", &two[..]].concat();
    let two_libraries = seal(library.repeat(2), VERSION);
    assert_eq!(read_libraries(&two_libraries, 2 * two_bytes).unwrap()[1], vec![b'a'; two_bytes as usize]);
    let refused = read_libraries(&two_libraries, 2 * two_bytes - 1).unwrap_err();
    assert_eq!(refused, "the libraries of the payload have more than 158401 bytes");
}

#[test]
fn footers_are_checked() {
    let good = Writer::text(b"hello");
    assert!(read(&good).is_ok());
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert_eq!(read(&changed).unwrap_err(), PayloadError::VersionOrChecksum);
        assert_eq!(read(&good[..at]).unwrap_err(), PayloadError::VersionOrChecksum);
    }
    assert_eq!(read(&seal(vec![0, 0], 81)).unwrap_err(), PayloadError::VersionOrChecksum);
    assert_eq!(read(&seal(vec![0, 0], 0)).unwrap_err(), PayloadError::VersionOrChecksum);
    assert!(read(&seal(vec![0, 0], 80)).is_ok());
    assert_eq!(read(&seal(vec![0, 0, 0], 10)).unwrap_err(), PayloadError::Malformed);
    assert_eq!(read(&seal(vec![2, 0], 10)).unwrap_err(), PayloadError::Malformed);
}

#[test]
fn a_small_payload_cannot_ask_for_much() {
    let asks: &[&[u8]] = &[
        b"\x00\x81\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"\x00\xc3\x02\x81\x00\x00\x00\xff\xff\xff\xff\xff\x00a",
        b"\x04\x81\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x0b\x08\x08\0\0\0\xff\xff\xff\xff",
        b"\x10\x08\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x13\x81\xff\xff\xff\xff\xff\xff\xff\xff",
    ];
    for ask in asks {
        assert_eq!(read(&seal(ask.to_vec(), 10)).unwrap_err(), PayloadError::Malformed, "{ask:?}");
    }
}
