//! Scripts that run commands: some declare their keys, some make them up; some catch errors, some end by them; what
//! they return is built of replies. Not for Redis 7.0: its error texts are others.

use super::{Group, no_places};
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "scripts", templates: TEMPLATES, redis: false, places };

/// Commands with what stands for keys and arguments; none that answers in an order of its own, or by chance.
const COMMANDS: [&str; 48] = [
    "'GET',K",
    "'SET',K,V",
    "'SET',K,V,'NX'",
    "'SET',K,V,'GET'",
    "'SET',K,V,'EX',1000",
    "'INCR',K",
    "'INCRBY',K,V",
    "'INCRBYFLOAT',K,V",
    "'APPEND',K,V",
    "'STRLEN',K",
    "'GETRANGE',K,0,2",
    "'DEL',K",
    "'DEL',K,K",
    "'EXISTS',K,K",
    "'TYPE',K",
    "'PERSIST',K",
    "'RENAME',K,K",
    "'COPY',K,K",
    "'MGET',K,K",
    "'MSET',K,V,K,V",
    "'RPUSH',K,V,V",
    "'LPUSH',K,V",
    "'LPOP',K",
    "'LRANGE',K,0,-1",
    "'LLEN',K",
    "'BLPOP',K,0",
    "'HSET',K,'f',V",
    "'HGET',K,'f'",
    "'HGETALL',K",
    "'HINCRBY',K,'f',V",
    "'SADD',K,V",
    "'SISMEMBER',K,V",
    "'SCARD',K",
    "'ZADD',K,1,V",
    "'ZADD',K,V,'m'",
    "'ZSCORE',K,'m'",
    "'ZRANGE',K,0,-1,'WITHSCORES'",
    "'ZINCRBY',K,V,'m'",
    "'SETBIT',K,3,1",
    "'PING'",
    "'ECHO',V",
    "'SELECT',1",
    "'SELECT','x'",
    "'DBSIZE'",
    "'GET'",
    "'NOSUCH',K",
    "'MULTI'",
    "'XLEN',K",
];
const KEYS: [&str; 6] = ["KEYS[1]", "KEYS[1]", "KEYS[2]", "KEYS[2]", "'b'", "'made:'..KEYS[1]"];
const VALUES: [&str; 7] = ["ARGV[1]", "ARGV[2]", "1", "1.5", "'x'", "tostring(#KEYS)", "2^31"];

fn call(dice: &mut Dice) -> String {
    let words: Vec<&str> = dice
        .pick(&COMMANDS)
        .split(',')
        .map(|word| match word {
            "K" => dice.pick(&KEYS),
            // A table is no argument.
            "V" if dice.one_in(20) => "{}",
            "V" => dice.pick(&VALUES),
            word => word,
        })
        .collect();
    let how = dice.pick(&["call", "call", "pcall"]);
    format!("redis.{how}({})", words.join(","))
}

fn script(dice: &mut Dice) -> Vec<u8> {
    let mut text = String::new();
    if dice.one_in(12) {
        text += dice.pick(&[
            "#!lua\n",
            "#!lua flags=no-writes\n",
            "#!lua flags=allow-oom,allow-stale\n",
            "#!lua flags=x\n",
        ]);
    }
    text += &body(dice);
    text.into()
}

/// What a script or a function does.
pub(super) fn body(dice: &mut Dice) -> String {
    let mut text = String::new();
    if dice.one_in(4) {
        text += "redis.setresp(3) ";
    }
    for _ in 0..dice.below(4) {
        text += &match dice.below(5) {
            0 => format!("for i = 1, {} do {} end ", dice.below(4), call(dice)),
            1 => format!("if redis.call('EXISTS', KEYS[1]) == 1 then {} end ", call(dice)),
            2 => format!("pcall(function() {} error('mine') end) ", call(dice)),
            _ => format!("{} ", call(dice)),
        };
    }
    text += &match dice.below(8) {
        0 => format!("return {{{}, {}}}", call(dice), call(dice)),
        1 => format!("local r = {} return {{type(r), r}}", call(dice)),
        2 => format!("return cjson.encode({{{}}})", call(dice)),
        3 => "return redis.status_reply(ARGV[2])".to_owned(),
        4 => "return redis.error_reply(ARGV[2])".to_owned(),
        5 => "return {KEYS, ARGV, {ok = 'fine'}, 1.9, true, false}".to_owned(),
        _ => format!("return {}", call(dice)),
    };
    text
}

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    match name {
        "script" => Some(script(dice)),
        _ => no_places(dice, name),
    }
}

const TEMPLATES: &[&str] = &[
    "12 EVAL {script} 2 {key} {key} {value} {element}",
    "3 EVAL {script} 2 {key} {key} {int} {value}",
    "2 EVAL_RO {script} 2 {key} {key} {value} {element}",
    "EVAL {script} 1 {key} {value}",
    "EVAL {script} {count} {key} {value}",
    "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0",
    "MULTI",
    "EXEC",
    "2 SET {key} {value}",
    "RPUSH {key} {element}+",
    "HSET {key} f {value}",
];
