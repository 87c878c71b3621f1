//! Hashes, and the expiry of their fields.

use super::{Group, no_places};

pub(crate) const GROUP: Group =
    Group { name: "hashes", templates: TEMPLATES, redis: false, places: no_places };

const TEMPLATES: &[&str] = &[
    "8 HSET {key} ( {element} {value} )+",
    "2 HSET {key} {value} {value}",
    "HMSET {key} ( {element} {value} )+",
    "HSETNX {key} {element} {value}",
    "2 HGET {key} {element}",
    "2 HMGET {key} {element}+",
    "3 HDEL {key} {element}+",
    "2 HGETDEL {key} FIELDS {element}#",
    "HLEN {key}",
    "HSTRLEN {key} {element}",
    "HEXISTS {key} {element}",
    "2 pairs: HGETALL {key}",
    "unordered: HKEYS {key}",
    "unordered: HVALS {key}",
    "3 HINCRBY {key} {element} {int}",
    "3 HINCRBYFLOAT {key} {element} {double}",
    "shape: HRANDFIELD {key}",
    "shape: HRANDFIELD {key} {count} [ WITHVALUES ]",
    "shape: HRANDFIELD {key} ( -1 | -3 | 3 | -9223372036854775807 | -9223372036854775808 ) WITHVALUES",
    "2 scan-pairs: HSCAN {key} 0 COUNT 1000 [ MATCH {pattern} ]",
    "scan: HSCAN {key} 0 COUNT 1000 < NOVALUES [ MATCH {pattern} ] >",
    "scan-pairs: HSCAN {key} 0 COUNT 1000 ( NOSCORES | COUNT 0 | COUNT x | MATCH | WHAT )",
    "HSCAN {key} ( x | -1 | 1.0 ) COUNT 1000",
    "3 HEXPIRE {key} {seconds} [ ( NX | XX | GT | LT ) ] FIELDS {element}#",
    "2 HPEXPIRE {key} {milliseconds} [ ( NX | XX | GT | LT ) ] FIELDS {element}#",
    "3 HEXPIREAT {key} {unix} [ ( NX | XX | GT | LT ) ] [ ( NX | GT | WHAT ) ] FIELDS {element}#",
    "3 HPEXPIREAT {key} {unix-ms} [ ( NX | XX | GT | LT ) ] FIELDS {element}#",
    "2 HPERSIST {key} FIELDS {element}#",
    "2 shape: HTTL {key} FIELDS {element}#",
    "shape: HPTTL {key} FIELDS {element}#",
    "shape: HEXPIRETIME {key} FIELDS {element}#",
    "shape: HPEXPIRETIME {key} FIELDS {element}#",
    "HTTL {key} FIELDS {int} {element}+",
    "HEXPIRE {key} 1000 FIELDS {int} {element}+",
    "HPERSIST {key} {odd} {int} {element}",
    "4 HSETEX {key} < [ ( NX | XX ) ] [ ( FNX | FXX ) ] [ ( EX {seconds} | PX {milliseconds} | EXAT {unix} | \
     PXAT {unix-ms} | KEEPTTL | PERSIST ) ] > FIELDS ( {element} {value} )#",
    "3 HGETEX {key} [ ( EX {seconds} | PX {milliseconds} | EXAT {unix} | PXAT {unix-ms} | PERSIST | KEEPTTL ) ] \
     FIELDS {element}#",
    "HGETEX {key} EX 1000 PX 5 FIELDS 1 {element}",
    "2 OBJECT ENCODING {key}",
    "CONFIG SET hash-max-listpack-entries ( 0 | 2 | 4 | 512 )",
    "CONFIG SET hash-max-listpack-value ( 0 | 3 | 64 )",
];
