//! Keys and values that look like those of a running service: compressible as JSON, text and hexadecimal tokens are,
//! never one byte repeated. Owns the vocabulary.

use weft_measure::Random;

/// The lengths of keys that `--key-length` takes: what the founding benchmark's sizes imply, and what its text says.
pub(crate) const KEY_LENGTHS: [usize; 2] = [6, 20];

/// Keys that a workload draws from, by the length of a key.
const KEYS_6: u64 = 36 * 36 * 36 * 36;
const KEYS_20: u64 = 10_000_000;

const NAMES: &[&str] = &[
    "Ada", "Grace", "Linus", "Barbara", "Edsger", "Donald", "Margaret", "Alan", "Frances", "Tony", "Radia",
    "Niklaus",
];
const CITIES: &[&str] =
    &["Oslo", "Lisbon", "Nairobi", "Quito", "Hanoi", "Lyon", "Austin", "Osaka", "Perth", "Accra"];
pub(crate) const WORDS: &[&str] = &[
    "order", "shipped", "cart", "session", "refresh", "invoice", "pending", "the", "of", "with", "user",
    "account", "region", "north", "discount", "batch", "queue", "latest", "review", "updated", "stock",
    "and", "for", "payment",
];

/// Appends `count` symbols of `digits`.
fn symbols(random: &mut Random, digits: &[u8], count: usize, out: &mut Vec<u8>) {
    for _ in 0..count {
        out.push(digits[random.below(digits.len() as u64) as usize]);
    }
}

const HEX: &[u8] = b"0123456789abcdef";
const BASE_36: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A key of 6 or 20 bytes: `u:7k2f`, `user:0012345:profile`.
pub(crate) fn key(random: &mut Random, length: usize) -> Vec<u8> {
    if length == KEY_LENGTHS[1] {
        return format!("user:{:07}:profile", random.below(KEYS_20)).into_bytes();
    }
    let mut id = random.below(KEYS_6);
    let mut key = b"u:0000".to_vec();
    for place in key[2..].iter_mut().rev() {
        *place = BASE_36[(id % 36) as usize];
        id /= 36;
    }
    key
}

/// Words up to exactly `len` bytes.
fn text(random: &mut Random, len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    while out.len() < end {
        out.extend_from_slice(random.pick(WORDS).as_bytes());
        out.push(b' ');
    }
    out.truncate(end);
}

/// A value of exactly `len` bytes: a JSON document, text or a hexadecimal token.
pub(crate) fn value(random: &mut Random, len: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 16);
    match random.below(4) {
        0 => symbols(random, HEX, len, &mut out),
        1 => text(random, len, &mut out),
        _ => record(random, len, &mut out),
    }
    out
}

/// A JSON object of exactly `len` bytes, its last field filled up; where that is too short for one, text.
fn record(random: &mut Random, len: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(
        format!("{{\"id\":{},\"name\":\"{}\",\"n\":\"", random.below(1_000_000), random.pick(NAMES))
            .as_bytes(),
    );
    let used = out.len() - start + 2;
    if used > len {
        out.truncate(start);
        return text(random, len, out);
    }
    text(random, len - used, out);
    out.extend_from_slice(b"\"}");
}

/// A small JSON document of 35 to 50 bytes.
pub(crate) fn document(random: &mut Random) -> Vec<u8> {
    let (name, city) = (random.pick(NAMES), random.pick(CITIES));
    format!("{{\"name\":\"{name}\",\"age\":{},\"city\":\"{city}\"}}", random.between(18, 90)).into_bytes()
}

/// A path into such a document.
pub(crate) fn path(random: &mut Random) -> Vec<u8> {
    random.pick(&["$", "$.name", "$.age", "$.city"]).as_bytes().to_vec()
}

/// What one puts into a Bloom filter: an address or a token.
pub(crate) fn item(random: &mut Random) -> Vec<u8> {
    if random.below(2) == 0 {
        let name = random.pick(NAMES).to_ascii_lowercase();
        return format!("{name}{}@example.org", random.below(1000)).into_bytes();
    }
    let mut token = Vec::new();
    symbols(random, HEX, 12, &mut token);
    token
}

/// A search over such documents.
pub(crate) fn query(random: &mut Random) -> Vec<u8> {
    match random.below(3) {
        0 => format!("@city:{{{}}}", random.pick(CITIES)),
        1 => format!("@name:{} @age:[{} {}]", random.pick(NAMES), 18, random.between(30, 60)),
        _ => format!("{} {}", random.pick(WORDS), random.pick(WORDS)),
    }
    .into_bytes()
}
