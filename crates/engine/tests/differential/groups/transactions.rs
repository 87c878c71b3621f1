//! MULTI, EXEC and WATCH around commands of other groups. Not for Redis 7.0: there MULTI and WATCH inside MULTI are run
//! and fail, in Valkey 9.1 they are refused, so that EXEC aborts.

use super::{Group, no_places};

pub(crate) const GROUP: Group =
    Group { name: "transactions", templates: TEMPLATES, redis: false, places: no_places };

const TEMPLATES: &[&str] = &[
    "3 MULTI",
    "4 EXEC",
    "DISCARD",
    "3 WATCH {key}+",
    "UNWATCH",
    "2 SET {key} {value}",
    "INCR {key}",
    "RPUSH {key} {element}",
    "BLPOP {key} 0",
    "LRANGE {key} 0 -1",
];
