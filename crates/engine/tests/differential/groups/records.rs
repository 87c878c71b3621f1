//! Records: hashes around the bounds up to which long fields stay in one buffer, 32 fields and 2 KiB, and those of the
//! settings. Fields are mostly named in their order, from some field on, forwards or backwards.

use super::Group;
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "records", templates: TEMPLATES, redis: false, places };

/// Keys that no other group has, so that records live for long; the longer ones leave less room in their entries. Of a
/// string beside a key of 104 bytes and more Valkey says `embstr` or `raw` as its allocator's size has room.
const RECORDS: [&str; 4] = [
    "r",
    "s",
    "a-record-whose-name-has-forty-eight-bytes-in-all",
    "a-record-with-a-name-of-ninety-bytes-which-takes-much-of-the-room-that-there-is-in-entries",
];
/// So many fields are named, for a while.
const FIELDS: [usize; 4] = [6, 20, 30, 60];
/// Kinds of values: which long ones they may be.
const VALUES: usize = 4;

const SCRIPTS: [&str; 4] = [
    "redis.call('HSET',KEYS[1],unpack(ARGV)) return redis.call('INCR',KEYS[1])",
    "redis.call('HDEL',KEYS[1],ARGV[1]) redis.call('HSET',KEYS[1],unpack(ARGV)) error('mine')",
    "redis.call('HSET',KEYS[1],unpack(ARGV)) return redis.call('HMGET',KEYS[1],ARGV[3] or 'f1',ARGV[1],ARGV[1])",
    "for i = 1, #ARGV, 2 do redis.call('HSET',KEYS[1],ARGV[i],ARGV[i+1]) redis.pcall('LPUSH',KEYS[1],'x') end \
     return redis.call('HLEN',KEYS[1])",
];

fn field(dice: &mut Dice) -> Vec<u8> {
    if dice.one_in(100) {
        dice.notes.style = dice.below(FIELDS.len() * VALUES);
    }
    let kinds = FIELDS[dice.notes.style % FIELDS.len()];
    let at = dice.notes.field;
    let step = if dice.notes.back { kinds - 1 } else { 1 };
    dice.notes.field = match dice.below(24) {
        0 => {
            dice.notes.back ^= true;
            at
        }
        // The same once more.
        1 => at,
        2 => dice.below(kinds),
        _ => at + step,
    } % kinds;
    let mut name = format!("f{}", dice.notes.field).into_bytes();
    match dice.below(100) {
        0 | 1 => name.resize(63 + dice.below(4), b'y'),
        2 => name = [b"\0\xff\r\n", &name[..]].concat(),
        3 => name.clear(),
        4 if dice.one_in(3) => name.resize([1000, 1900][dice.below(2)], b'z'),
        _ => {}
    }
    name
}

fn value(dice: &mut Dice) -> Vec<u8> {
    let style = dice.notes.style / FIELDS.len() % VALUES;
    match dice.below(24) {
        0..=5 => (dice.below(2001) as i64 - 1000).to_string().into(),
        6..=8 => vec![b'v'; 63 + dice.below(4)],
        9 => Vec::new(),
        10 => (0..1 + dice.below(140)).map(|_| dice.below(256) as u8).collect(),
        11 if style == 1 => vec![b'm'; 1000 + dice.below(101)],
        11 if style == 2 => vec![b'l'; 1900 + dice.below(201)],
        11..=18 if style != 3 => vec![b'w'; 60 + dice.below(70)],
        _ => vec![b's'; dice.below(30)],
    }
}

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    Some(match name {
        "key" if !dice.one_in(12) => dice.pick(&RECORDS).into(),
        "field" => field(dice),
        "value" => value(dice),
        "script" => dice.pick(&SCRIPTS).into(),
        _ => return None,
    })
}

const TEMPLATES: &[&str] = &[
    "first 4 HSET {key} ( {field} {value} )*",
    "9 HSET {key} ( {field} {value} )*",
    "7 HSET {key} ( {field} {value} )+",
    "HMSET {key} ( {field} {value} )*",
    "3 HSETNX {key} {field} {value}",
    "10 HMGET {key} {field}*",
    "2 HGET {key} {field}",
    "4 HDEL {key} {field}+",
    "HDEL {key} {field}*",
    "2 HINCRBY {key} {field} ( 1 | -1 | 1000000000000000 | 9223372036854775807 )",
    "2 HINCRBYFLOAT {key} {field} ( 1.5 | -0.25 | 1e3 | 3 )",
    "2 HGETDEL {key} FIELDS {field}#*",
    "2 HSETEX {key} < [ ( FNX | FXX ) ] [ ( EXAT {later} | KEEPTTL ) ] > FIELDS ( {field} {value} )#*",
    "2 HGETEX {key} [ ( PERSIST | EXAT {later} ) ] FIELDS {field}#*",
    "HPEXPIREAT {key} {unix-ms} [ ( NX | XX | GT | LT ) ] FIELDS {field}#",
    "HPERSIST {key} FIELDS {field}#",
    "shape: HPEXPIRETIME {key} FIELDS {field}#",
    "2 pairs: HGETALL {key}",
    "unordered: HKEYS {key}",
    "unordered: HVALS {key}",
    "shape: HRANDFIELD {key} ( -7 | 3 | -1 | 0 | 1 | 5000 ) [ WITHVALUES ]",
    "scan-pairs: HSCAN {key} 0 COUNT 1000",
    "HSTRLEN {key} {field}",
    "HEXISTS {key} {field}",
    "HLEN {key}",
    "8 COPY {key} {key} REPLACE",
    "COPY {key} {key}",
    "2 RENAME {key} {key}",
    "EXPIREAT {key} {later}",
    "PERSIST {key}",
    "2 DEL {key}",
    "10 OBJECT ENCODING {key}",
    "CONFIG SET hash-max-listpack-entries ( 512 | 512 | 512 | 0 | 5 | 20 | 31 | 32 | 33 | 40 | 1000 | 3000 )",
    "CONFIG SET hash-max-listpack-value ( 64 | 64 | 64 | 0 | 10 | 31 | 32 | 33 | 65 | 1000 | 3000 )",
    "MULTI",
    "6 EXEC",
    "WATCH {key}",
    "INCR {key}",
    "2 EVAL {script} 1 {key} ( {field} {value} )+",
];
