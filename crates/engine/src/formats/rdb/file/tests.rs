//! Owns: tests of files: parts written by hand, cut, changed; what is written is read.

use super::super::FOOTER_BYTES;
use super::*;

/// A file that gives its bytes a few at a time.
struct Slow {
    bytes: Vec<u8>,
    there: usize,
    used: usize,
}

impl Source for Slow {
    fn fill_to(&mut self, count: usize) -> io::Result<bool> {
        self.there = (self.used + count).max(self.there).min(self.bytes.len());
        Ok(self.there >= self.used + count)
    }
    fn bytes(&self) -> &[u8] {
        &self.bytes[self.used..self.there]
    }
    fn consume(&mut self, count: usize) {
        self.used += count;
        assert!(self.used <= self.there);
    }
    fn offset(&self) -> u64 {
        self.used as u64
    }
}

/// What a file holds, told in words; and the bytes behind it.
fn read_all(bytes: &[u8], checks: bool) -> (std::result::Result<Vec<String>, FileError>, Vec<u8>) {
    let mut source = Slow { bytes: bytes.to_vec(), there: 0, used: 0 };
    let parts = parts_of(&mut source, checks);
    (parts, source.bytes[source.used..].to_vec())
}

fn parts_of(source: &mut Slow, checks: bool) -> Result<Vec<String>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut reader = Reader::new(source)?;
    if !checks {
        reader.trust();
    }
    let mut parts = Vec::new();
    loop {
        parts.push(match reader.part()? {
            Part::End => return Ok(parts),
            Part::Fact(name, value) => format!("fact {}={}", text(&name), text(&value)),
            Part::Database(number) => format!("database {number}"),
            Part::Sizes(keys, expiring) => format!("sizes {keys} {expiring}"),
            Part::Library(code) => format!("library {}", text(&code)),
            Part::EarlyFunction => "early function".into(),
            Part::Module(name, key) => format!("module {name} {:?}", key.map(|key| text(&key))),
            Part::Slot => "slot".into(),
            Part::Key(key) => {
                let payload = key.payload();
                let (value, sum) = payload.split_at(payload.len() - 8);
                assert_eq!(sum, CRC.checksum(value).to_le_bytes());
                let (expire, idle, frequency) = (key.expire_ms, key.idle_s, key.frequency);
                format!("key {} kind {} {expire:?} {idle:?} {frequency:?}", text(&key.key), key.kind)
            }
        });
    }
}

fn rdb(magic: &str, entries: &[&[u8]]) -> Vec<u8> {
    let mut bytes = magic.as_bytes().to_vec();
    entries.iter().for_each(|entry| bytes.extend_from_slice(entry));
    bytes.push(0xff);
    let sum = CRC.checksum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Each entry is a key `k` of one kind, written from the formats' descriptions.
const COMMON: &[&[u8]] = &[
    b"\xfa\x01a\x01b\xfe\x00\xfb\x02\x00",
    b"\xfc12345678\x00\x01k\x02ab",
    b"\xfd1234\x00\x01k\xc0\x05",
    b"\xf8\x05\xf9\x07\x00\x01k\xc1\x05\x06",
    b"\x00\x01k\xc2abcd",
    b"\x00\x01k\xc3\x03\x40\x80xyz",
    b"\x00\x01k\x40\x03abc",
    b"\x00\x01k\x80\x00\x00\x00\x03abc",
    b"\x00\x01k\x81\x00\x00\x00\x00\x00\x00\x00\x03abc",
    b"\x01\x01k\x02\x01a\x01b",
    b"\x02\x01k\x01\x01a",
    b"\x03\x01k\x02\x01a\x031.5\x01b\xfe",
    b"\x04\x01k\x01\x01a\x01b",
    b"\x05\x01k\x01\x01a12345678",
    b"\x07\x01k\x81abcdefgh\x02\x05\x01\x05\x03abcd\x04abcdefgh\x05\x02xy\x00",
    b"\x0a\x01k\x02zz",
    b"\x0e\x01k\x01\x02zz",
    b"\x12\x01k\x01\x02\x02lp",
    b"\xf7\x05\x02\x01\x05\x01x\x00",
    b"\xf5\x03lib",
    b"\xf4\x01\x02\x03",
];

#[test]
fn every_common_part_is_told() {
    let mut bytes = rdb("REDIS0012", COMMON);
    bytes.extend_from_slice(b"*1\r\n");
    let (parts, rest) = read_all(&bytes, true);
    let parts = parts.expect("the file is good");
    assert_eq!(rest, b"*1\r\n");
    assert_eq!(
        parts.iter().filter(|part| part.starts_with("key ") || part.starts_with("module ")).count(),
        18
    );
    let time = u64::from_le_bytes(*b"12345678");
    let seconds = u64::from(u32::from_le_bytes(*b"1234")) * 1000;
    for expected in [
        "fact a=b".to_owned(),
        "database 0".into(),
        "sizes 2 0".into(),
        format!("key k kind 0 Some({time}) None None"),
        format!("key k kind 0 Some({seconds}) None None"),
        "key k kind 0 None Some(5) Some(7)".into(),
        "module YWJjZGVmZ Some(\"k\")".into(),
        "library lib".into(),
        "slot".into(),
    ] {
        assert!(parts.contains(&expected), "{expected} in {parts:?}");
    }
    assert_eq!(read_all(b"REDIS0004\xfe\x00\xff*1", true).1, b"*1", "no checksum before version 5");
}

#[test]
fn kinds_of_each_maker_are_its_own() {
    let valkey: &[u8] = b"\x16\x01k\x01\x01f\x01v12345678";
    let redis: &[u8] = b"\x18\x01k12345678\x01\x00\x01f\x01v";
    let packed: &[u8] = b"\x19\x01k12345678\x02lp";
    let import: &[u8] = b"\xf3\x03job\x02\x01\x02\x03\x04";
    assert_eq!(read_all(&rdb("VALKEY080", &[valkey, import]), true).0.expect("good").len(), 2);
    assert_eq!(read_all(&rdb("REDIS0012", &[redis, packed]), true).0.expect("good").len(), 2);
    for (magic, entry, said) in [
        ("VALKEY080", redis, "byte 9: unknown type 24 in an RDB of Valkey"),
        ("REDIS0012", import, "byte 9: unknown type 243 in an RDB of Redis"),
        ("REDIS0099", redis, "byte 0: an RDB of version 99"),
        ("REDIS00x2", redis, "byte 0: expected REDIS or VALKEY"),
    ] {
        let error = read_all(&rdb(magic, &[entry]), true).0.unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn a_cut_names_its_place() {
    let bytes = rdb("REDIS0011", COMMON);
    for cut in 0..bytes.len() {
        let error = read_all(&bytes[..cut], true).0.unwrap_err().to_string();
        assert!(error.contains(&format!("byte {cut}: the RDB ends here")), "{cut}: {error}");
    }
}

#[test]
fn a_bit_that_is_turned_is_found() {
    let bytes = rdb("REDIS0011", COMMON);
    for at in MAGIC_BYTES..bytes.len() {
        let mut turned = bytes.clone();
        turned[at] ^= 1;
        assert!(read_all(&turned, true).0.is_err(), "byte {at}");
    }
    let mut unchecked = bytes;
    let at = unchecked.len() - 1;
    unchecked[at] ^= 1;
    assert!(read_all(&unchecked, false).0.is_ok(), "trusted");
}

#[test]
fn a_huge_length_allocates_nothing() {
    let mut bytes = b"REDIS0011\x00\x01k\x81\x7f\xff\xff\xff\xff\xff\xff\xff".to_vec();
    let error = read_all(&bytes, true).0.unwrap_err().to_string();
    assert!(error.contains("the RDB ends here"), "{error}");
    bytes.truncate(MAGIC_BYTES);
    bytes.extend_from_slice(b"\x01\x01k\x81\x7f\xff\xff\xff\xff\xff\xff\xff");
    assert!(read_all(&bytes, true).0.is_err());
}

#[test]
fn what_is_written_is_read() {
    use super::super::Writer as Payload;
    let mut hash = Payload::expiring_hash(1);
    hash.expiring_pair(b"f", b"v", Some(7));
    let hash = hash.finish();
    let mut list = Payload::list(2);
    list.element(b"a");
    list.element(b"17");
    let list = list.finish();
    for (with_hash, magic) in [(false, "REDIS0010"), (true, "VALKEY080")] {
        let mut writer = Writer::new(io::Cursor::new(Vec::new()), &[("redis-ver", "7.0.0")]).expect("memory");
        writer.database(3).expect("memory");
        writer.key(b"l", None, &list).expect("a payload");
        writer.key(b"t", Some(1_700_000_000_123), &Payload::text(b"12")).expect("a payload");
        if with_hash {
            writer.key(b"h", None, &hash).expect("a payload");
        }
        let mut foreign = hash.clone();
        let at = foreign.len() - FOOTER_BYTES;
        foreign[at] = 12;
        let refused = writer.key(b"h", None, &foreign).is_err();
        assert_eq!(refused, with_hash, "Redis's and Valkey's kinds do not stand in one file");
        if !with_hash {
            continue;
        }
        let (file, version) = writer.finish().expect("memory");
        assert!(file.get_ref().starts_with(magic.as_bytes()), "{magic} {version}");
        let parts = read_all(file.get_ref(), true).0.expect("good");
        let expected = [
            "fact redis-ver=7.0.0",
            "database 3",
            "key l kind 1 None None None",
            "key t kind 0 Some(1700000000123) None None",
            "key h kind 22 None None None",
        ];
        assert_eq!(parts, expected);
    }
    let mut writer = Writer::new(io::Cursor::new(Vec::new()), &[]).expect("memory");
    writer.key(b"l", None, &list).expect("a payload");
    assert!(writer.finish().expect("memory").0.get_ref().starts_with(b"REDIS0010"));
}
