//! `weft wire --sizes`: what every command of the table takes on each wire, request and typical reply.
//!
//! Owns the choice of a typical reply for each command. Sizes are computed by the encoders. The examples that the
//! founding documents print are checked in `spec/wire-sizes.md`, by a test of the protocol crate; what they got wrong
//! is repeated here.

use anyhow::Result;
use serde_json::json;
use weft_protocol::request::Texts;
use weft_protocol::table::CommandId;
use weft_protocol::{Reply, resp, respb};

use super::sample;
use weft_measure::Table;

/// A command's sizes in bytes.
struct Size {
    name: &'static str,
    frame: &'static str,
    request: [usize; 2],
    reply_kind: &'static str,
    /// RESP2, RESP3, RESPB.
    reply: [usize; 3],
}

/// Typical replies, and the commands that have them. A command that stands nowhere answers an array of two values.
const REPLIES: &[(&str, &str)] = &[
    (
        "OK",
        "ASKING AUTH BF.LOAD BF.RESERVE DISCARD FAILOVER FLUSHALL FLUSHDB FT.CREATE FT.DROPINDEX HMSET JSON.MSET \
         JSON.SET LSET LTRIM MIGRATE MONITOR MSET MULTI PFMERGE PSETEX QUIT READONLY READWRITE RENAME REPLCONF \
         REPLICAOF RESET RESTORE RESTORE-ASKING SAVE SELECT SET SETEX SHUTDOWN SLAVEOF SWAPDB UNWATCH WATCH \
         XSETID PSYNC SYNC BGREWRITEAOF BGSAVE",
    ),
    ("PONG", "PING"),
    (
        "integer 1",
        "BF.ADD BF.EXISTS COPY DEL DELIFEQ EXISTS EXPIRE EXPIREAT GETBIT HDEL HEXISTS HSET HSETEX HSETNX \
         JSON.CLEAR JSON.DEL JSON.FORGET MOVE MSETEX MSETNX PERSIST PEXPIRE PEXPIREAT PFADD PUBLISH RENAMENX SADD \
         SETBIT SETNX SISMEMBER SMOVE SPUBLISH SREM TOUCH UNLINK WAIT XACK XDEL ZADD ZREM LREM",
    ),
    (
        "integer 100",
        "APPEND BF.CARD BITCOUNT BITOP BITPOS DBSIZE DECR DECRBY GEOADD GEOSEARCHSTORE HINCRBY HLEN HSTRLEN INCR \
         INCRBY JSON.ARRAPPEND JSON.ARRINDEX JSON.ARRINSERT JSON.ARRLEN JSON.ARRTRIM JSON.OBJLEN JSON.STRAPPEND \
         JSON.STRLEN LINSERT LLEN LPOS LPUSH LPUSHX PFCOUNT RPUSH RPUSHX SCARD SDIFFSTORE SETRANGE SINTERCARD \
         SINTERSTORE STRLEN SUNIONSTORE TTL XLEN XTRIM ZCARD ZCOUNT ZDIFFSTORE ZINTERCARD ZINTERSTORE ZLEXCOUNT \
         ZRANGESTORE ZRANK ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANK ZUNIONSTORE",
    ),
    ("integer 1700000000000", "EXPIRETIME LASTSAVE PEXPIRETIME PTTL"),
    (
        "value of 16 bytes",
        "BLMOVE BRPOPLPUSH DUMP ECHO GET GETDEL GETEX GETRANGE GETSET HGET INCRBYFLOAT HINCRBYFLOAT JSON.ARRPOP \
         JSON.GET JSON.NUMINCRBY JSON.NUMMULTBY JSON.TOGGLE LINDEX LMOVE LPOP RANDOMKEY RPOP RPOPLPUSH SPOP \
         SRANDMEMBER SUBSTR XADD LCS HRANDFIELD ZRANDMEMBER EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO",
    ),
    ("value of 1,024 bytes", "INFO LOLWUT"),
    ("simple string of 6 bytes", "JSON.TYPE TYPE PFSELFTEST DEBUG PFDEBUG"),
    ("double 3.25", "GEODIST ZINCRBY ZSCORE"),
    ("map of 2 pairs", "HELLO HGETALL BF.INFO FT.INFO CONFIG"),
    ("set of 3 members", "SDIFF SINTER SMEMBERS SUNION"),
];

fn reply_of(name: &str) -> (&'static str, Reply) {
    let is_named = |names: &str| names.split_whitespace().any(|other| other == name);
    let kind =
        REPLIES.iter().find(|(_, names)| is_named(names)).map_or("array of 2 values", |(kind, _)| kind);
    let bulk = |len: usize| Reply::Bulk(vec![b'v'; len]);
    let reply = match kind {
        "OK" => Reply::Simple(b"OK".to_vec()),
        "PONG" => Reply::Simple(b"PONG".to_vec()),
        "integer 1" => Reply::Int(1),
        "integer 100" => Reply::Int(100),
        "integer 1700000000000" => Reply::Int(1_700_000_000_000),
        "value of 16 bytes" => bulk(16),
        "value of 1,024 bytes" => bulk(1024),
        "simple string of 6 bytes" => Reply::Simple(b"string".to_vec()),
        "double 3.25" => Reply::Double(3.25),
        "map of 2 pairs" => Reply::Map(vec![(bulk(4), bulk(8)), (bulk(5), bulk(8))]),
        "set of 3 members" => Reply::Set(vec![bulk(5), bulk(6), bulk(7)]),
        _ => Reply::Array(vec![bulk(16), bulk(16)]),
    };
    (kind, reply)
}

/// What the encoders make of a request: RESP, RESPB, and whether that is a typed frame.
fn request_sizes(argv: &[Vec<u8>]) -> ([usize; 2], bool) {
    let (mut resp, mut respb) = (Vec::new(), Vec::new());
    resp::encode::request(None, &Texts(argv), &mut resp);
    let typed = respb::RequestWriter::new(&mut respb, 0).command(argv, respb::Mode::Exact);
    ([resp.len(), respb.len()], typed)
}

fn reply_sizes(reply: &Reply) -> [usize; 3] {
    let (mut resp2, mut resp3, mut respb) = (Vec::new(), Vec::new(), Vec::new());
    reply.visit(&mut resp::ReplyWriter::new(&mut resp2, resp::Version::Resp2));
    reply.visit(&mut resp::ReplyWriter::new(&mut resp3, resp::Version::Resp3));
    reply.visit(&mut respb::ReplyWriter::new(&mut respb, 0));
    [resp2.len(), resp3.len(), respb.len()]
}

fn size(id: CommandId) -> Size {
    let name = id.spec().name;
    let (request, typed) = request_sizes(&sample::example(id));
    let (reply_kind, reply) = reply_of(name);
    Size {
        name,
        frame: if typed { "typed" } else { "ARGV" },
        request,
        reply_kind,
        reply: reply_sizes(&reply),
    }
}

fn saved(before: usize, after: usize) -> String {
    format!("{:.0} %", 100.0 - 100.0 * after as f64 / before as f64)
}

pub(super) fn text() -> String {
    let mut table = Table::new(
        "Bytes of the plainest request of each command (no option, lists as short as they may be) and of a \
         typical reply",
        &["command", "RESP", "RESPB", "saved", "frame", "RESP2", "RESP3", "RESPB", "saved of RESP3", "reply"],
    );
    let (mut request, mut reply, mut smaller, mut count) = ([0; 2], [0; 3], 0, 0);
    for size in sample::commands().map(size) {
        count += 1;
        smaller += usize::from(size.request[1] < size.request[0]);
        request.iter_mut().zip(size.request).for_each(|(sum, bytes)| *sum += bytes);
        reply.iter_mut().zip(size.reply).for_each(|(sum, bytes)| *sum += bytes);
        table.row(vec![
            size.name.to_string(),
            size.request[0].to_string(),
            size.request[1].to_string(),
            saved(size.request[0], size.request[1]),
            size.frame.to_string(),
            size.reply[0].to_string(),
            size.reply[1].to_string(),
            size.reply[2].to_string(),
            saved(size.reply[1], size.reply[2]),
            size.reply_kind.to_string(),
        ]);
    }
    format!(
        "{}\n{count} commands; {smaller} requests are smaller in RESPB; all requests together {} and {} bytes ({} \
         saved), all replies {} in RESP2, {} in RESP3, {} in RESPB\nThe sizes that the founding documents print \
         are checked in spec/wire-sizes.md: five of their eight examples are wrong.\n",
        table.text(),
        request[0],
        request[1],
        saved(request[0], request[1]),
        reply[0],
        reply[1],
        reply[2]
    )
}

pub(super) fn json() -> Result<String> {
    let rows: Vec<_> = sample::commands()
        .map(size)
        .map(|size| {
            json!({
                "command": size.name, "frame": size.frame,
                "request": { "resp": size.request[0], "respb": size.request[1] },
                "reply": {
                    "kind": size.reply_kind,
                    "resp2": size.reply[0], "resp3": size.reply[1], "respb": size.reply[2],
                },
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rows)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_protocol::table;

    #[test]
    fn every_command_of_the_table_has_a_size_and_every_name_is_one() {
        assert!(sample::commands().count() > 290);
        for id in sample::commands() {
            let size = size(id);
            assert!(size.request[0] > 0 && size.request[1] > 0 && size.reply[2] > 0);
        }
        for (_, names) in REPLIES {
            for name in names.split_whitespace() {
                let times =
                    REPLIES.iter().filter(|(_, names)| names.split_whitespace().any(|n| n == name)).count();
                assert!(table::by_name(name.as_bytes()).is_some() && times == 1, "{name}");
            }
        }
    }

    /// The rows that `spec/wire-sizes.md` prints for the same requests.
    #[test]
    fn sizes_are_those_of_the_annex() {
        let page = include_str!("../../../../spec/wire-sizes.md");
        for request in ["PING", "GET mykey", "HGETALL hash", "MGET k1 k2 k3", "BF.ADD filter item"] {
            let argv: Vec<Vec<u8>> = request.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let ([resp, respb], _) = request_sizes(&argv);
            let row = format!("| `{request}` | {resp} | {respb} |");
            assert!(page.contains(&row), "{row}");
        }
    }
}
