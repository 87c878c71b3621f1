//! Owns: comparing what a round has left: every key's type, encoding, expiry and value. Does not own: the replies of
//! the round.

use weft_protocol::Reply;

use crate::compare::Rule;
use crate::pair::{Difference, Pair};

/// Databases that rounds use.
const DATABASES: [&[u8]; 4] = [b"0", b"1", b"2", b"3"];

/// Reads everything back on both sides.
pub(crate) fn compare(pair: &mut Pair) -> Result<(), Difference> {
    for db in DATABASES {
        pair.look(Rule::Exact, &[b"SELECT", db])?;
        let keys = pair.look(Rule::Unordered, &[b"KEYS", b"*"])?;
        let Some(Reply::Array(keys)) = keys else { return Err(Difference::other("KEYS gives no array")) };
        for key in &keys {
            let Reply::Bulk(key) = key else { continue };
            pair.tally.keys += 1;
            compare_key(pair, key)?;
        }
    }
    if pair.is_twin() {
        pair.look(Rule::Exact, &[b"DEBUG", b"DIGEST"])?;
    }
    Ok(())
}

fn compare_key(pair: &mut Pair, key: &[u8]) -> Result<(), Difference> {
    let Some(Reply::Simple(kind)) = pair.look(Rule::Exact, &[b"TYPE", key])? else {
        return Ok(());
    };
    pair.look(Rule::Exact, &[b"OBJECT", b"ENCODING", key])?;
    pair.look(Rule::Near, &[b"PEXPIRETIME", key])?;
    let looks: &[(Rule, &[&[u8]])] = match &kind[..] {
        b"string" => &[(Rule::Exact, &[b"GET", key])],
        b"list" => &[(Rule::Exact, &[b"LRANGE", key, b"0", b"-1"])],
        b"set" => &[(Rule::Unordered, &[b"SMEMBERS", key])],
        b"hash" => &[(Rule::Pairs, &[b"HGETALL", key])],
        b"zset" => &[(Rule::Exact, &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"])],
        b"stream" => &[
            (Rule::Exact, &[b"XRANGE", key, b"-", b"+"]),
            (Rule::Clock, &[b"XINFO", b"STREAM", key, b"FULL", b"COUNT", b"0"]),
        ],
        _ => &[],
    };
    for (rule, words) in looks {
        pair.look(*rule, words)?;
    }
    Ok(())
}
