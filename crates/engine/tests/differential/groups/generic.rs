//! Commands for keys of any type.

use super::{Group, no_places};

pub(crate) const GROUP: Group =
    Group { name: "generic", templates: TEMPLATES, redis: true, places: no_places };

const TEMPLATES: &[&str] = &[
    "2 DEL {key}+",
    "UNLINK {key}+",
    "EXISTS {key}+",
    "2 TYPE {key}",
    "TOUCH {key}+",
    "2 RENAME {key} {key}",
    "RENAMENX {key} {key}",
    "2 COPY {key} {key} < [ REPLACE ] [ DB {db} ] >",
    "MOVE {key} {db}",
    "EXPIRE {key} {seconds} [ ( NX | XX | GT | LT ) ]",
    "PEXPIRE {key} {milliseconds} [ ( NX | XX | GT | LT ) ]",
    "3 EXPIREAT {key} {unix} [ ( NX | XX | GT | LT ) ] [ ( NX | XX | GT | LT ) ]",
    "3 PEXPIREAT {key} {unix-ms} [ ( NX | XX | GT | LT ) ] [ ( GT | XX | WHAT ) ]",
    "near: TTL {key}",
    "near: PTTL {key}",
    "near: EXPIRETIME {key}",
    "near: PEXPIRETIME {key}",
    "2 PERSIST {key}",
    "unordered: KEYS {pattern}",
    "scan: SCAN 0 COUNT 1000 < [ MATCH {pattern} ] [ TYPE ( string | LIST | zset | nope ) ] >",
    "shape: SCAN {odd} [ COUNT {int} ]",
    "shape: RANDOMKEY",
    "DBSIZE",
    "SELECT {db}",
    "SWAPDB {db} {db}",
    "FLUSHDB [ ( SYNC | ASYNC | NOW ) ]",
    "FLUSHALL [ ( SYNC | ASYNC | NOW ) ]",
    "2 OBJECT ENCODING {key}",
    "OBJECT REFCOUNT {key}",
    "shape: OBJECT IDLETIME {key}",
    "OBJECT FREQ {key}",
    "OBJECT HELP",
    "OBJECT WHAT {key}",
    "WAIT ( 0 | -1 | x ) ( 0 | 10 | -1 | x )",
    "WAITAOF ( 0 | 1 | 2 ) ( 0 | -1 ) ( 0 | -1 | 5 )",
    "NOSUCH {key}",
];
