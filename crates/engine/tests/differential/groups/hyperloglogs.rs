//! HyperLogLog: counts, and the bytes.

use super::Group;
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "hyperloglogs", templates: TEMPLATES, redis: false, places };

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    match name {
        "member" => Some(dice.below(2000).to_string().into()),
        _ => None,
    }
}

const TEMPLATES: &[&str] = &[
    "4 PFADD {key}",
    "8 PFADD {key} {member}+",
    "4 PFADD {key} {member} {member} {member} {member} {member} {member} {member} {member} {member}",
    "4 PFCOUNT {key}",
    "2 PFCOUNT {key}+",
    "2 PFMERGE {key} {key}+",
    "PFMERGE {key}",
    "2 PFDEBUG ENCODING {key}",
    "PFDEBUG DECODE {key}",
    "PFDEBUG TODENSE {key}",
    "PFDEBUG GETREG {key}",
    "GET {key}",
    "SET {key} {value}",
];
