//! Consumer groups with many consumers, some of long names, over entries of which most are there: what is pending moves
//! between them.

use super::Group;
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "consumers", templates: TEMPLATES, redis: false, places };

/// Keys that no other group has, one of them twice as often.
const STREAMS: [&str; 3] = ["t", "t", "u"];
/// Entries that commands name lie at most so far behind the last.
const BEHIND: usize = 30;

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    let last = dice.notes.entry;
    Some(match name {
        "key" if !dice.one_in(12) => dice.pick(&STREAMS).into(),
        "new" => {
            dice.notes.entry += 1;
            format!("{}-0", last + 1).into()
        }
        "id" => format!("{}-0", last.saturating_sub(dice.below(BEHIND)).max(1)).into(),
        "group" => dice.pick(&["g", "g", "g", "h"]).into(),
        "consumer" => {
            let most = [4, 60][dice.below(2)];
            let mut name = format!("c{}", dice.below(most)).into_bytes();
            match dice.below(40) {
                0 => name.resize(12, b'n'),
                1 => name.resize(300, b'n'),
                _ => {}
            }
            name
        }
        "from" if dice.one_in(2) => "0".into(),
        "from" => return places(dice, "id"),
        _ => return None,
    })
}

const TEMPLATES: &[&str] = &[
    "first XGROUP CREATE t g 0 MKSTREAM",
    "first XGROUP CREATE t h 0",
    "first 8 XADD t {new} {element} {value}",
    "first 5 XREADGROUP GROUP {group} {consumer} COUNT ( 1 | 2 | 10 ) STREAMS t >",
    "28 XADD {key} {new} {element} {value}",
    "3 XADD {key} MAXLEN = ( 5 | 50 ) {new} {element} {value}",
    "8 XGROUP CREATE {key} {group} ( 0 | $ ) MKSTREAM",
    "4 XGROUP CREATECONSUMER {key} {group} {consumer}",
    "28 XREADGROUP GROUP {group} {consumer} COUNT ( 1 | 2 | 10 ) STREAMS {key} >",
    "3 XREADGROUP GROUP {group} {consumer} NOACK STREAMS {key} >",
    "4 XREADGROUP GROUP {group} {consumer} STREAMS {key} {from}",
    "6 XACK {key} {group} {id}+",
    "16 XCLAIM {key} {group} {consumer} 0 {id}+ [ ( FORCE | JUSTID | RETRYCOUNT 5 | FORCE JUSTID ) ]",
    "10 XAUTOCLAIM {key} {group} {consumer} 0 {from} COUNT ( 1 | 5 | 20 ) [ JUSTID ]",
    "6 XGROUP DELCONSUMER {key} {group} {consumer}",
    "XGROUP DESTROY {key} {group}",
    "3 XGROUP SETID {key} {group} ( 0 | $ | {id} )",
    "8 clock: XINFO CONSUMERS {key} {group}",
    "4 clock: XINFO GROUPS {key}",
    "XTRIM {key} MAXLEN = ( 3 | 20 | 40 )",
    "XTRIM {key} MINID = {id}",
    "2 XDEL {key} {id}+",
    "8 XPENDING {key} {group}",
    "4 clock: XPENDING {key} {group} - + 50 [ {consumer} ]",
    "2 COPY {key} {key} REPLACE",
    "RENAME {key} {key}",
    "DEL {key}",
    "2 XRANGE {key} - +",
    "2 MULTI",
    "10 EXEC",
];
