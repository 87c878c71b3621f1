//! Sorted sets, and waiting for them.

use super::Group;
use crate::dice::Dice;

pub(crate) const GROUP: Group = Group { name: "sorted-sets", templates: TEMPLATES, redis: false, places };

const TEMPLATES: &[&str] = &[
    "8 ZADD {key} < [ ( NX | XX ) ] [ ( GT | LT ) ] [ CH ] > ( {score} {element} )+",
    "ZADD {key} ( 0 {element} )+",
    "4 ZADD {same} ( 0 {name} )+",
    "ZREM {same} {name}",
    "ZADD {key} {score} {value}",
    "2 ZADD {key} [ ( NX | XX | GT | LT ) ] INCR {score} {element}",
    "3 ZINCRBY {key} {double} {element}",
    "3 ZREM {key} {element}+",
    "ZCARD {key}",
    "2 ZSCORE {key} {element}",
    "ZMSCORE {key} {element}+",
    "2 ZRANK {key} {element} [ WITHSCORE ]",
    "2 ZREVRANK {key} {element} [ WITHSCORE ]",
    "2 ZRANGE {key} {index} {index} < [ REV ] [ WITHSCORES ] >",
    "3 ZRANGE {key} {bound} {bound} BYSCORE < [ REV ] [ WITHSCORES ] [ LIMIT {offset} {index} ] >",
    "2 ZRANGE {same} {lex} {lex} BYLEX < [ REV ] [ LIMIT {offset} {index} ] >",
    "ZRANGE {same} {index} {index} < [ LIMIT 0 1 ] [ BYLEX ] [ BYSCORE ] [ WITHSCORES ] >",
    "2 ZRANGESTORE {key} {key} {index} {index} [ REV ]",
    "2 ZRANGESTORE {key} {key} {bound} {bound} BYSCORE < [ REV ] [ LIMIT {offset} {index} ] >",
    "ZRANGESTORE {key} {same} {lex} {lex} BYLEX [ WITHSCORES ]",
    "ZREVRANGE {key} {index} {index} [ WITHSCORES ]",
    "2 ZRANGEBYSCORE {key} {bound} {bound} < [ WITHSCORES ] [ LIMIT {offset} {index} ] >",
    "ZREVRANGEBYSCORE {key} {bound} {bound} < [ WITHSCORES ] [ LIMIT {offset} {index} ] >",
    "2 ZRANGEBYLEX {same} {lex} {lex} [ LIMIT {offset} {index} ]",
    "ZREVRANGEBYLEX {same} {lex} {lex} [ LIMIT {offset} {index} ]",
    "2 ZCOUNT {key} {bound} {bound}",
    "ZLEXCOUNT {same} {lex} {lex}",
    "ZREMRANGEBYRANK {key} {index} {index}",
    "ZREMRANGEBYSCORE {key} {bound} {bound}",
    "ZREMRANGEBYLEX {same} {lex} {lex}",
    "2 ZPOPMIN {key} [ {count} ]",
    "2 ZPOPMAX {key} [ {count} ]",
    "2 ZMPOP {key}# ( MIN | MAX ) [ COUNT {count} ]",
    "ZMPOP {int} {key}+ ( MIN | MAX | MID ) [ COUNT {int} ]",
    "3 ZADD {wait} {score} {element}",
    "ZUNIONSTORE {wait} {key}#",
    "ZPOPMIN {wait} {count}",
    "BZPOPMIN {wait}+ ( 0 | -1 | x | 100000 )",
    "BZPOPMAX {wait}+ 0",
    "BZMPOP ( 0 | -1 | x ) {wait}# ( MIN | MAX ) [ COUNT {count} ]",
    "2 ZUNION {key}# < [ WEIGHTS {double} {double} ] [ AGGREGATE ( SUM | MIN | MAX | AVG ) ] [ WITHSCORES ] >",
    "2 ZINTER {key}# < [ WEIGHTS {double} ] [ AGGREGATE ( SUM | MIN | MAX ) ] [ WITHSCORES ] >",
    "2 ZDIFF {key}# [ WITHSCORES ]",
    "2 ZUNIONSTORE {key} {key}# < [ WEIGHTS {double} {double} ] [ AGGREGATE ( SUM | MIN | MAX ) ] >",
    "2 ZINTERSTORE {key} {key}# < [ WEIGHTS {double} ] [ AGGREGATE ( SUM | MIN | MAX ) ] >",
    "2 ZDIFFSTORE {key} {key}#",
    "ZINTERCARD {key}# [ LIMIT {count} ]",
    "ZINTERCARD {int} {key}+ [ LIMIT {int} ]",
    "ZUNION {int} {key}+",
    "SADD {key} {element}+",
    "shape: ZRANDMEMBER {key}",
    "shape: ZRANDMEMBER {key} {count} [ WITHSCORES ]",
    "shape: ZRANDMEMBER {key} ( -3 | -9223372036854775807 | -9223372036854775808 | x ) WITHSCORES",
    "2 scan-pairs: ZSCAN {key} 0 COUNT 1000 [ MATCH {pattern} ]",
    "scan: ZSCAN {key} 0 COUNT 1000 NOSCORES",
    "scan-pairs: ZSCAN {key} 0 COUNT 1000 ( NOVALUES | COUNT 0 | WHAT )",
    "2 OBJECT ENCODING {key}",
    "CONFIG SET zset-max-listpack-entries ( 0 | 2 | 4 | 128 )",
    "CONFIG SET zset-max-listpack-value ( 0 | 3 | 64 )",
];

const SCORES: [&str; 16] = [
    "0", "0", "1", "1", "2", "-1", "1.5", "-0", "inf", "-inf", "1e300", "3.0", "100000", "0.1", "5e-324",
    "17.25",
];
const BOUNDS: [&str; 16] =
    ["-inf", "+inf", "0", "(0", "1", "(1", "2", "(2", "1.5", "-1", "(-1", "inf", "(inf", "x", "(x", "17.25"];
const LEXES: [&str; 14] =
    ["-", "+", "[x", "(x", "[a", "(z", "[10", "(X", "[", "(", "x", "[hello", "++", "[3.5"];

fn places(dice: &mut Dice, name: &str) -> Option<Vec<u8>> {
    Some(match name {
        "score" if dice.one_in(20) => dice.place("double")?,
        "score" => dice.pick(&SCORES).into(),
        "bound" => dice.pick(&BOUNDS).into(),
        // What a lexical range means while scores differ is not said anywhere: these keys have one score, and names
        // that are none.
        "same" => dice.pick(&["l", "m"]).into(),
        // Never of another type: Valkey 9.1 serves nobody when such a key is overwritten with a sorted set.
        "wait" => dice.pick(&["v", "w"]).into(),
        "name" => dice.pick(&["x", "y", "z", "X", "hello", "ab", "a", ""]).into(),
        "lex" => dice.pick(&LEXES).into(),
        "offset" => dice.pick(&["0", "0", "1", "2", "100", "x"]).into(),
        _ => return None,
    })
}
