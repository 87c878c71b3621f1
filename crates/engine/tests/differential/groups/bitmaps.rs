//! Bits and fields of bits in strings.

use super::Group;
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "bitmaps", templates: TEMPLATES, redis: false, places };

/// Places of bits, also from the end, and what is out of range.
const OFFSETS: [&str; 12] =
    ["0", "1", "7", "8", "63", "64", "-1", "-8", "-9", "4294967296", "#1", "9223372036854775807"];
const VALUES: [&str; 10] = [
    "0",
    "1",
    "-1",
    "127",
    "128",
    "255",
    "-128",
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
];

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    Some(match name {
        "bit" if dice.one_in(8) => dice.pick(&OFFSETS).into(),
        "bit" => dice.below(100).to_string().into(),
        "place" if dice.one_in(3) => dice.pick(&OFFSETS[..9]).into(),
        "place" => (dice.below(40) as i64 - 15).to_string().into(),
        "field" if dice.one_in(4) => format!("#{}", dice.below(9)).into(),
        "field" => dice.below(90).to_string().into(),
        "width" if dice.one_in(20) => dice.pick(&["u64", "i65", "i0", "x8", "u", "u08"]).into(),
        "width" => {
            let sign = dice.pick(&["u", "i"]);
            format!("{sign}{}", [1, 2, 5, 7, 8, 12, 31, 32, 33, 62, 63][dice.below(11)]).into()
        }
        "number" if dice.one_in(2) => dice.pick(&VALUES).into(),
        "number" => (dice.below(600) as i64 - 300).to_string().into(),
        _ => return None,
    })
}

const TEMPLATES: &[&str] = &[
    "6 SETBIT {key} {bit} ( 0 | 1 | 1 )",
    "SETBIT {key} {bit} {int}",
    "3 GETBIT {key} {bit}",
    "3 BITCOUNT {key} [ {place} ]",
    "3 BITCOUNT {key} {place} {place} [ ( BIT | BYTE ) ]",
    "2 BITPOS {key} ( 0 | 1 ) [ {place} ]",
    "4 BITPOS {key} ( 0 | 1 ) {place} {place} [ ( BIT | BYTE ) ]",
    "4 BITOP ( AND | OR | XOR ) {key} {key}+",
    "BITOP NOT {key} {key}",
    "6 BITFIELD {key} ( GET {width} {field} | SET {width} {field} {number} | INCRBY {width} {field} {number} )+",
    "4 BITFIELD {key} OVERFLOW ( WRAP | SAT | FAIL ) ( SET {width} {field} {number} | INCRBY {width} {field} {number} )+",
    "2 BITFIELD_RO {key} ( GET {width} {field} )+",
    "BITFIELD_RO {key} SET {width} {field} {number}",
    "3 SET {key} {value}",
    "GET {key}",
    "RPUSH {key} {element}",
];
