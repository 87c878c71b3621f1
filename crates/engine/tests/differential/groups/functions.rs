//! Libraries of functions: loading, replacing and removing them, calling what they register, by what they say of
//! themselves. What the functions run is that of the group `scripts`. A library keeps nothing in variables of its own:
//! these live once for each worker. Not for Redis 7.0: its error texts are others.

use super::scripts::body;
use super::{Group, no_places};
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "functions", templates: TEMPLATES, redis: false, places };

const LIBRARIES: [&str; 4] = ["one", "two", "One", "no name"];
/// What libraries register. Two names in one library that differ in case alone end Valkey 9.1.2 by an assertion
/// (`functions.c:323`).
const REGISTERED: [&str; 4] = ["f", "g", "grow_1", "no-name"];
const CALLED: [&str; 5] = ["f", "F", "g", "Grow_1", "no-name"];
/// First lines that are none, or nearly.
const HEADS: [&str; 10] = [
    "#!lua",
    "#!lua name=",
    "#!lua name=one name=two",
    "#!lua name=one flags=no-writes",
    "#!lua nam=one",
    "#!python name=one",
    "#!LUA name=one",
    "#! lua name=one",
    "lua name=one",
    "",
];
/// What a library must not do while it is loaded, or does in vain.
const MISTAKES: [&str; 14] = [
    "redis.call('GET', 'a')",
    "return redis.pcall('GET', 'a')",
    "x = 1",
    "error('mine')",
    "error({err = 'MINE said'})",
    "redis.register_function('f')",
    "redis.register_function('f', 1)",
    "redis.register_function(1, function() end)",
    "redis.register_function{function_name = 'f'}",
    "redis.register_function{callback = function() end}",
    "redis.register_function{function_name = 'f', callback = function() end, flags = {'nothing'}}",
    "redis.register_function{function_name = 'f', callback = function() end, other = 1}",
    "local function (",
    "server.register_function('f', function() return 'of server' end)",
];

/// What registers one function.
fn register(dice: &mut Dice) -> String {
    let name = dice.pick(&REGISTERED);
    let body = body(dice).replace("KEYS", "keys").replace("ARGV", "args");
    if dice.one_in(2) {
        return format!("redis.register_function('{name}', function(keys, args) {body} end)\n");
    }
    let flags = dice.pick(&["", "'no-writes'", "'allow-oom','no-writes'", "'allow-stale','no-cluster'"]);
    let description = dice.pick(&["", ", description = 'what it is for'"]);
    format!(
        "redis.register_function{{function_name = '{name}', callback = function(keys, args) {body} end, \
         flags = {{{flags}}}{description}}}\n"
    )
}

fn library(dice: &mut Dice) -> Vec<u8> {
    let mut text = match dice.below(12) {
        0 => dice.pick(&HEADS).to_owned(),
        _ => format!("#!lua name={}", dice.pick(&LIBRARIES)),
    };
    text.push('\n');
    if dice.one_in(8) {
        text += dice.pick(&MISTAKES);
        text.push('\n');
    }
    for _ in 0..[1, 1, 2, 3, 0][dice.below(5)] {
        text += &register(dice);
    }
    text.into()
}

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    Some(match name {
        "library" => library(dice),
        "library-name" => dice.pick(&LIBRARIES).into(),
        "function" => dice.pick(&CALLED).into(),
        _ => return no_places(dice, name),
    })
}

const TEMPLATES: &[&str] = &[
    "5 FUNCTION LOAD REPLACE {library}",
    "3 FUNCTION LOAD {library}",
    "10 FCALL {function} 2 {key} {key} {value} {element}",
    "3 FCALL {function} 2 {key} {key} {int} {value}",
    "3 FCALL_RO {function} 2 {key} {key} {value} {element}",
    "FCALL {function} {count} {key} {value}",
    "FUNCTION DELETE {library-name}",
    "2 deep: FUNCTION LIST [ LIBRARYNAME ( {library-name} | o* | ?ne ) ] [ WITHCODE ]",
    "FUNCTION STATS",
    "shape: FUNCTION DUMP",
    "FUNCTION RESTORE {value} ( APPEND | REPLACE | FLUSH | LATER )",
    "FUNCTION FLUSH [ ( SYNC | ASYNC | LATER ) ]",
    "FUNCTION KILL",
    "MULTI",
    "EXEC",
    "2 SET {key} {value}",
    "RPUSH {key} {element}",
    "HSET {key} f {value}",
];
