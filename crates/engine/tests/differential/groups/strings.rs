//! Strings, whole, as numbers and in parts.

use super::{Group, no_places};

pub(crate) const GROUP: Group =
    Group { name: "strings", templates: TEMPLATES, redis: true, places: no_places };

const TEMPLATES: &[&str] = &[
    "4 SET {key} {value}",
    "6 SET {key} {value} < [ ( NX | XX | IFEQ {value} ) ] [ GET ] [ ( EX {seconds} | PX {milliseconds} | EXAT {unix} | PXAT {unix-ms} | KEEPTTL ) ] >",
    "SET {key} {value} < [ NX ] [ XX ] [ GET ] [ KEEPTTL ] [ EX {seconds} ] >",
    "4 GET {key}",
    "3 GETEX {key} [ ( EX {seconds} | PX {milliseconds} | EXAT {unix} | PXAT {unix-ms} | PERSIST ) ]",
    "GETEX {key} EX {seconds} PERSIST",
    "GETDEL {key}",
    "GETSET {key} {value}",
    "2 DELIFEQ {key} {value}",
    "SETNX {key} {value}",
    "SETEX {key} {seconds} {value}",
    "PSETEX {key} {milliseconds} {value}",
    "2 MGET {key}+",
    "2 MSET ( {key} {value} )+",
    "MSETNX ( {key} {value} )+",
    "3 MSETEX ( {key} {value} )# < [ ( NX | XX ) ] [ ( EX {seconds} | EXAT {later} | KEEPTTL ) ] >",
    "MSETEX {count} {key} {value}",
    "STRLEN {key}",
    "3 INCR {key}",
    "DECR {key}",
    "3 INCRBY {key} {int}",
    "2 DECRBY {key} {int}",
    "4 INCRBYFLOAT {key} {double}",
    "3 APPEND {key} {value}",
    "2 SETRANGE {key} {index} {value}",
    "SETRANGE {key} {int} {value}",
    "3 GETRANGE {key} {index} {index}",
    "SUBSTR {key} {index} {int}",
    "2 LCS {key} {key} < [ ( LEN | IDX ) ] [ WITHMATCHLEN ] [ MINMATCHLEN {count} ] >",
    "LCS {key} {key} LEN IDX",
    "OBJECT ENCODING {key}",
];
