//! SORT. Orders that are nobody's, a set's own and that of ties under ALPHA with BY, are left out.

use super::{Group, no_places};

pub(crate) const GROUP: Group =
    Group { name: "sorting", templates: TEMPLATES, redis: false, places: no_places };

const TEMPLATES: &[&str] = &[
    "4 RPUSH {key} {element}+",
    "4 RPUSH {key} {int}+",
    "2 SADD {key} {int}+",
    "2 ZADD {key} {index} {int}",
    "2 SET {key} {int}",
    "HSET {key} f {int}",
    "6 SORT {key} < [ ( ASC | DESC ) ] [ LIMIT {index} {count} ] >",
    "4 SORT {key} ALPHA < [ ( ASC | DESC ) ] [ LIMIT {index} {count} ] >",
    "3 SORT {key} < [ DESC ] [ LIMIT {index} {count} ] [ GET # ] [ GET * ] [ GET *->f ] >",
    "2 SORT {key} BY ( * | *->f ) [ DESC ]",
    "3 SORT {key} < [ DESC ] [ ALPHA ] [ GET * ] > STORE {key}",
    "2 SORT_RO {key} < [ ALPHA ] [ DESC ] [ LIMIT {index} {count} ] [ GET # ] >",
    "SORT_RO {key} STORE {key}",
    "LRANGE {key} 0 -1",
];
