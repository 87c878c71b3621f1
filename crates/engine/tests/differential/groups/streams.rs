//! Streams, their groups, and waiting for entries. Ids are given: `*` alone would take the time of each side.

use super::Group;
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "streams", templates: TEMPLATES, redis: false, places };

/// Ids that are no small ones: ends, short forms, and what is none.
const IDS: [&str; 16] = [
    "0",
    "0-0",
    "0-1",
    "-",
    "+",
    "$",
    ">",
    "(5",
    "(0-0",
    "5-",
    "007-1",
    "5--0",
    "x",
    "18446744073709551615",
    "18446744073709551615-18446744073709551615",
    "1-18446744073709551615",
];

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    Some(match name {
        "id" if dice.one_in(4) => dice.pick(&IDS).into(),
        "id" if dice.one_in(2) => dice.below(40).to_string().into(),
        "id" => format!("{}-{}", dice.below(40), dice.below(4)).into(),
        // Small numbers more often, so that the next one is still above.
        "new" => {
            let most = [5, 10, 20, 40][dice.below(4)];
            format!("{}-*", dice.below(most)).into()
        }
        "group" => dice.pick(&["g", "h", "STREAMS"]).into(),
        "consumer" => dice.pick(&["c", "d", "STREAMS", "10"]).into(),
        // A time that does not pass during a round.
        "idle" => dice.pick(&["0", "0", "0", "100000000", "-1", "x"]).into(),
        "small" => dice.below(4).to_string().into(),
        _ => return None,
    })
}

const TEMPLATES: &[&str] = &[
    "8 XADD {key} {new} ( {element} {value} )+",
    "3 XADD {key} {new} name {int} age {value}",
    "2 XADD {key} [ NOMKSTREAM ] {id} {element} {value}",
    "2 XADD {key} ( MAXLEN | MINID ) [ ( ~ | = ) ] {small} [ LIMIT {count} ] {new} {element} {value}",
    "2 XTRIM {key} MAXLEN [ ( ~ | = ) ] {count} [ LIMIT {count} ]",
    "XTRIM {key} MINID [ ( ~ | = ) ] {id}",
    "2 XDEL {key} {id} {id}",
    "XLEN {key}",
    "2 XRANGE {key} {id} {id} [ COUNT {count} ]",
    "XRANGE {key} - + [ COUNT {count} ]",
    "2 XREVRANGE {key} {id} {id} [ COUNT {count} ]",
    "XSETID {key} {id} < [ ENTRIESADDED {count} ] [ MAXDELETEDID {id} ] >",
    "3 XREAD [ COUNT {count} ] STREAMS {key} {id}",
    "XREAD [ COUNT {count} ] STREAMS {key} {key} {id} {id}",
    "2 XREAD [ COUNT {count} ] BLOCK 0 STREAMS {key} ( $ | {id} )",
    "XREAD BLOCK 0 STREAMS {key} {key} $ $",
    "4 XGROUP CREATE {key} {group} ( 0 | $ | {id} ) [ MKSTREAM ] [ ENTRIESREAD {count} ]",
    "XGROUP SETID {key} {group} ( 0 | $ | {id} ) [ ENTRIESREAD {count} ]",
    "XGROUP DESTROY {key} {group}",
    "XGROUP CREATECONSUMER {key} {group} {consumer}",
    "XGROUP DELCONSUMER {key} {group} {consumer}",
    "XGROUP HELP",
    "6 XREADGROUP GROUP {group} {consumer} < [ COUNT {count} ] [ NOACK ] > STREAMS {key} >",
    "2 XREADGROUP GROUP {group} {consumer} [ COUNT {count} ] STREAMS {key} {id}",
    "2 XREADGROUP GROUP {group} {consumer} [ COUNT {count} ] BLOCK 0 STREAMS {key} >",
    "XREADGROUP NOACK GROUP {group} {consumer} STREAMS {key} {key} > ( > | 0 )",
    "2 XACK {key} {group} {id}+",
    "clock: XPENDING {key} {group}",
    "2 clock: XPENDING {key} {group} [ IDLE {idle} ] ( - | {id} ) ( + | {id} ) {count} [ {consumer} ]",
    "3 XCLAIM {key} {group} {consumer} {idle} {id}+ < [ FORCE ] [ JUSTID ] [ RETRYCOUNT {count} ] [ LASTID {id} ] >",
    "XCLAIM {key} {group} {consumer} {idle} {id} ( IDLE | TIME ) {count}",
    "3 XAUTOCLAIM {key} {group} {consumer} {idle} {id} [ COUNT {count} ] [ JUSTID ]",
    "2 clock: XINFO STREAM {key}",
    "2 clock: XINFO STREAM {key} FULL [ COUNT {count} ]",
    "2 clock: XINFO GROUPS {key}",
    "clock: XINFO CONSUMERS {key} {group}",
    "XINFO HELP",
    "SET {key} {value}",
];
