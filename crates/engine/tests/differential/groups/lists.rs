//! Lists, and waiting for them.

use super::Group;
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "lists", templates: TEMPLATES, redis: true, places };

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    match name {
        // Without the ends of 64 bits, with which Valkey's LSET overflows and changes some other element.
        "near-index" => Some(dice.pick(&["0", "1", "-1", "2", "-2", "5", "-9", "100", "x"]).into()),
        _ => None,
    }
}

const TEMPLATES: &[&str] = &[
    "4 LPUSH {key} {element}+",
    "4 RPUSH {key} {element}+",
    "RPUSH {key} {value}",
    "LPUSHX {key} {element}+",
    "RPUSHX {key} {element}+",
    "2 LPOP {key} [ {count} ]",
    "2 RPOP {key} [ {count} ]",
    "LLEN {key}",
    "3 LRANGE {key} {index} {index}",
    "2 LINDEX {key} {index}",
    "2 LSET {key} {near-index} {value}",
    "3 LINSERT {key} ( BEFORE | AFTER | HERE ) {element} {element}",
    "2 LREM {key} {index} {element}",
    "LTRIM {key} {index} {index}",
    "4 LPOS {key} {element} < [ RANK {index} ] [ COUNT {count} ] [ MAXLEN {count} ] >",
    "2 LMOVE {key} {key} ( LEFT | RIGHT ) ( LEFT | RIGHT )",
    "RPOPLPUSH {key} {key}",
    "2 LMPOP {key}# ( LEFT | RIGHT ) [ COUNT {count} ]",
    "LMPOP {count} {key} ( LEFT | MIDDLE ) [ COUNT {count} ]",
    "2 BLPOP {key}+ ( 0 | 100 | -1 | x )",
    "2 BRPOP {key}+ ( 0 | 100 | inf )",
    "2 BLMOVE {key} {key} ( LEFT | RIGHT ) ( LEFT | RIGHT ) 0",
    "BRPOPLPUSH {key} {key} 0",
    "2 BLMPOP 0 {key}# ( LEFT | RIGHT ) [ COUNT {count} ]",
    "OBJECT ENCODING {key}",
    "SET {key} {value}",
];
