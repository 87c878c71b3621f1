//! Runs batches of one kind of request and prints how many.
//!
//! `engine_costs requests WIRE-COMMAND REPEATS` decodes and runs REPEATS × 16 batches of 64 requests for one client, as
//! a worker does with what one receive has brought. The cost of a request is the difference between two values of
//! REPEATS, divided by the requests in between. What takes elements out of a collection finds the same number of them
//! there, whatever REPEATS is: enough for [`REPEATS_MAX`].

use crate::worker::{Worker, encode, engine};
use weft_engine::reply::Protocol;
use weft_engine::requests::BATCH_MAX;

/// Keys in use.
const KEYS: usize = 1024;
/// Batches of one repeat.
const BATCHES: usize = 16;
/// More repeats would take more elements than are there.
const REPEATS_MAX: usize = 64;
/// Elements of a collection that elements are taken out of.
const ELEMENTS: usize = (REPEATS_MAX + 2) * BATCHES * BATCH_MAX;

/// What `program` runs, and `commands` sends as three commands of their own: an operation is three of those requests.
const PROGRAM: &str = r#"{"params":[{"name":"id"},{"name":"max","type":"int"},{"name":"to","type":"int"}],"steps":[
    {"do":["GET","level:${id}"],"as":"level"},
    {"if":{"<":["${level}","${max}"]},"then":[["SET","level:${id}","${to}"]]},
    {"do":["INCR","runs:${id}"],"as":"runs"},
    {"return":{">":["${runs}",0]}}]}"#;
const SCRIPT_GET: &str = "return redis.call('GET', KEYS[1])";
const SCRIPT_LIMITER: &str = "local n = redis.call('INCR', KEYS[1])
redis.call('EXPIRE', KEYS[1], ARGV[1])
if n > tonumber(ARGV[2]) then return 0 end
return 1";
const FUNCTION: &str = "#!lua name=f\nredis.register_function('f', function(keys, args) end)";
/// Of these scripts: of none, and in this order.
const SHA_EMPTY: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
const SHA_GET: &str = "d3c21d0c2b9ca22f82737626a27bcaf5d288f99f";
const SHA_LIMITER: &str = "d383b6d2a36b014a42b4c5cda1c81d72c2f3f4f3";

const USAGE: &str = "usage: engine_costs requests WIRE-COMMAND REPEATS, such as resp-get 3";

pub(crate) fn run(args: &[String]) {
    let [workload, repeats] = args else { panic!("{USAGE}") };
    let repeats: usize = repeats.parse().expect(USAGE);
    assert!(repeats <= REPEATS_MAX, "at most {REPEATS_MAX} repeats");
    let (wire, command) = workload.split_once('-').expect(USAGE);
    let protocol = if wire == "respb" { Protocol::Respb } else { Protocol::Resp2 };

    let mut worker = Worker::of(engine(1), 0, protocol, 2);
    // Every key is there before.
    for first in (0..KEYS).step_by(BATCH_MAX) {
        worker.run(&[batch("set", first, protocol)]);
    }
    prepare(&mut worker, command, protocol);
    if matches!(command, "rpop" | "spop" | "zpopmin" | "zrevrange") {
        let fill = format!("{command}-fill");
        for first in (0..ELEMENTS).step_by(BATCH_MAX) {
            worker.run(&[batch(&fill, first, protocol)]);
        }
    }
    let batches: Vec<[Vec<u8>; 1]> =
        (0..2 * KEYS).step_by(BATCH_MAX).map(|first| [batch(command, first, protocol)]).collect();
    batches.iter().for_each(|batch| {
        worker.run(batch);
    });
    let expected = worker.run(&batches[0]);
    let (mut replies, is_heard) = (0, command == "publish");
    for at in 0..repeats * BATCHES {
        replies = worker.run(&batches[at % batches.len()]);
        if is_heard {
            worker.take_mail();
        }
    }
    // But for numbers of some digits more.
    assert!(replies.abs_diff(expected) <= 4 * BATCH_MAX, "every batch is answered alike");
    println!("{} requests, {replies} bytes of replies to each batch", repeats * BATCHES * BATCH_MAX);
}

/// What a workload needs to be there: programs and scripts and the keys that they come to, or who listens.
fn prepare(worker: &mut Worker, command: &str, protocol: Protocol) {
    if command == "publish" {
        let mut bytes = Vec::new();
        encode(&["SUBSCRIBE", "news"].map(Into::into), protocol, &mut bytes);
        worker.run(&[Vec::new(), bytes]);
        return;
    }
    let (name, texts): (_, &[&str]) = match command {
        "program" => ("PROGRAM", &["SET", "p", PROGRAM]),
        "evalsha" => ("SCRIPT", &["LOAD", ""]),
        "evalsha-get" => ("SCRIPT", &["LOAD", SCRIPT_GET]),
        "evalsha-limiter" => ("SCRIPT", &["LOAD", SCRIPT_LIMITER]),
        "fcall" => ("FUNCTION", &["LOAD", FUNCTION]),
        "commands" => ("PING", &[]),
        _ => return,
    };
    let mut bytes = Vec::new();
    let words = std::iter::once(name).chain(texts.iter().copied());
    encode(&words.map(Into::into).collect::<Vec<_>>(), protocol, &mut bytes);
    worker.run(&[bytes]);
    for at in 0..KEYS {
        let mut bytes = Vec::new();
        encode(&[b"SET".to_vec(), format!("level:{at}").into(), b"5".to_vec()], protocol, &mut bytes);
        encode(&[b"SET".to_vec(), format!("runs:{at}").into(), b"1000".to_vec()], protocol, &mut bytes);
        worker.run(&[bytes]);
    }
}

/// The bytes of a batch.
fn batch(command: &str, first: usize, protocol: Protocol) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in first..first + BATCH_MAX {
        let key = |more: usize| format!("key:{:012}", (at + more) % KEYS).into_bytes();
        let member = || format!("element:{at:012}").into_bytes();
        // In no order.
        let score = || format!("{:08}", at.wrapping_mul(0x9E37_79B1) % 100_000_000).into_bytes();
        let mut words: Vec<Vec<u8>> = vec![command.to_ascii_uppercase().into_bytes()];
        match command {
            "ping" => {}
            "get" => words.push(key(0)),
            "set" => words.extend([key(0), vec![b'v'; 16]]),
            "incr" => words.push([b"number:".to_vec(), key(0)].concat()),
            "sadd" => words.extend([b"set".to_vec(), key(0)]),
            "hset" => words.extend([b"hash".to_vec(), key(0), vec![b'v'; 16]]),
            "zadd" => words.extend([b"zset".to_vec(), score(), key(0)]),
            "xadd" => words.extend([b"stream".to_vec(), b"*".to_vec(), b"field".to_vec(), vec![b'v'; 16]]),
            "lpush" => words.extend([b"list".to_vec(), vec![b'v'; 16]]),
            "rpop" => words.push(b"list".to_vec()),
            "spop" => words.push(b"set".to_vec()),
            "zpopmin" => words.push(b"zset".to_vec()),
            "rpop-fill" => words = vec![b"RPUSH".to_vec(), b"list".to_vec(), vec![b'v'; 16]],
            "spop-fill" => words = vec![b"SADD".to_vec(), b"set".to_vec(), member()],
            "zpopmin-fill" | "zrevrange-fill" => {
                words = vec![b"ZADD".to_vec(), b"zset".to_vec(), score(), member()];
            }
            "program" => {
                let id = (at % KEYS).to_string();
                words = ["PROGRAM", "RUN", "p", &id, "9", "5"].map(Into::into).into();
            }
            // In turns.
            "commands" => {
                let id = at / 3 % KEYS;
                words = match at % 3 {
                    0 => vec![b"GET".to_vec(), format!("level:{id}").into()],
                    1 => vec![b"SET".to_vec(), format!("level:{id}").into(), b"5".to_vec()],
                    _ => vec![b"INCR".to_vec(), format!("runs:{id}").into()],
                };
            }
            "evalsha" => words.extend([SHA_EMPTY, "0"].map(Into::into)),
            "evalsha-get" => {
                words = ["EVALSHA", SHA_GET, "1"].map(Into::into).into();
                words.push(key(0));
            }
            "evalsha-limiter" => {
                words = ["EVALSHA", SHA_LIMITER, "1"].map(Into::into).into();
                words.push([b"number:".to_vec(), key(0)].concat());
                words.extend(["1000", "1000000000"].map(Into::into));
            }
            "fcall" => words.extend(["f", "0"].map(Into::into)),
            "zrevrange" => words.extend(["zset", "0", "9"].map(Into::into)),
            "publish" => words.extend([b"news".to_vec(), vec![b'v'; 100]]),
            "mget" => words.extend((0..10).map(key)),
            "mset" => words.extend((0..10).flat_map(|more| [key(more), vec![b'v'; 16]])),
            _ => panic!("no workload {command}"),
        }
        encode(&words, protocol, &mut bytes);
    }
    bytes
}
