//! Sets.

use super::{Group, no_places};

pub(crate) const GROUP: Group = Group { name: "sets", templates: TEMPLATES, redis: false, places: no_places };

const TEMPLATES: &[&str] = &[
    "6 SADD {key} {element}+",
    "5 SADD {key} {int}+",
    "2 SADD {key} {value}",
    "SADD {key} ( 1 | 70000 | -5000000000 )+",
    "4 SREM {key} {element}+",
    "SREM {key} {int}+",
    "2 SMOVE {key} {key} {element}",
    "SISMEMBER {key} {element}",
    "SMISMEMBER {key} {element}+",
    "SCARD {key}",
    "2 unordered: SMEMBERS {key}",
    "unordered: SPOP {key} 100000",
    "SPOP {key} ( -1 | x | 0 )",
    "shape: SRANDMEMBER {key}",
    "shape: SRANDMEMBER {key} {count}",
    "shape: SRANDMEMBER {key} ( -3 | -9223372036854775808 | x )",
    "2 unordered: SINTER {key}+",
    "2 unordered: SUNION {key}+",
    "2 unordered: SDIFF {key}+",
    "2 SINTERSTORE {key} {key}+",
    "2 SUNIONSTORE {key} {key}+",
    "2 SDIFFSTORE {key} {key}+",
    "SINTERCARD {key}# [ LIMIT {count} ]",
    "SINTERCARD {int} {key}+ [ LIMIT {int} ]",
    "2 scan: SSCAN {key} 0 COUNT 1000 [ MATCH {pattern} ]",
    "scan: SSCAN {key} 0 COUNT 1000 ( NOVALUES | COUNT 0 | MATCH | WHAT )",
    "2 OBJECT ENCODING {key}",
    "CONFIG SET set-max-intset-entries ( 0 | 2 | 512 )",
    "CONFIG SET set-max-listpack-entries ( 0 | 2 | 4 | 128 )",
    "CONFIG SET set-max-listpack-value ( 0 | 3 | 64 )",
];
