//! Large arguments, however they come: in pieces of any length, among small requests, over RESP and RESPB. What is
//! stored is what was sent, whether it is kept in the buffer in which it came or copied, and what changes it afterwards
//! changes nothing else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use common::client::expect;
use common::resp;
use common::servers::Server;
use weft_protocol::respb::{Mode, RequestWriter};
use weft_store::{Rng as _, XorShift};

const KEYS: u32 = 12;
const REQUESTS: usize = 300;

/// What is sent, what is answered over RESP, and what is there then.
#[derive(Default)]
struct Plan {
    requests: Vec<Vec<Vec<u8>>>,
    replies: Vec<u8>,
    values: HashMap<String, Vec<u8>>,
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

impl Plan {
    fn add(&mut self, words: &[&[u8]], reply: &[u8]) {
        self.requests.push(words.iter().map(|word| word.to_vec()).collect());
        self.replies.extend_from_slice(reply);
    }
    /// Over RESPB without long replies, for which a channel's reader would have to ask.
    fn new(rng: &mut XorShift, reads: bool) -> Self {
        let mut plan = Self::default();
        for number in 0..REQUESTS {
            let key = format!("key:{}", rng.below(KEYS));
            let len = match rng.below(8) {
                0 => rng.below(200),
                1 => 16_000 + rng.below(2_000),
                2 => 64_000 + rng.below(4_000),
                3 => rng.below(700_000),
                _ => 20_000 + rng.below(60_000),
            };
            // Digits of its own, so that a value that is another's, or moved, is not the same.
            let text: Vec<u8> =
                format!("{number}:").into_bytes().into_iter().cycle().take(len as usize).collect();
            let there = plan.values.get(&key).cloned();
            let name = key.as_bytes();
            match rng.below(if reads { 12 } else { 8 }) {
                0..=2 => plan.add(&[b"SET", name, &text], b"+OK\r\n"),
                3 => plan.add(&[b"SET", name, &text, b"EX", b"1000"], b"+OK\r\n"),
                4 => plan.add(&[b"SETEX", name, b"1000", &text], b"+OK\r\n"),
                5 => plan.add(&[b"MSET", name, &text], b"+OK\r\n"),
                8 => {
                    let reply = there.as_deref().map_or_else(|| b"$-1\r\n".to_vec(), bulk);
                    plan.add(&[b"GETSET", name, &text], &reply);
                }
                6 if let Some(mut there) = there => {
                    let at = rng.below(there.len() as u32 + 1) as usize;
                    let text = &text[..text.len().min(1000)];
                    let len = there.len().max(at + text.len());
                    plan.add(
                        &[b"SETRANGE", name, at.to_string().as_bytes(), text],
                        format!(":{}\r\n", if text.is_empty() { there.len() } else { len }).as_bytes(),
                    );
                    if !text.is_empty() {
                        there.resize(len, 0);
                        there[at..at + text.len()].copy_from_slice(text);
                    }
                    plan.values.insert(key, there);
                    continue;
                }
                7 if let Some(mut there) = there => {
                    there.extend_from_slice(&text);
                    plan.add(&[b"APPEND", name, &text], format!(":{}\r\n", there.len()).as_bytes());
                    plan.values.insert(key, there);
                    continue;
                }
                6 | 7 => continue,
                _ => {
                    let reply = there.as_deref().map_or_else(|| b"$-1\r\n".to_vec(), bulk);
                    for _ in 0..1 + rng.below(3) {
                        plan.add(&[b"GET", name], &reply);
                    }
                    continue;
                }
            }
            plan.values.insert(key, text);
        }
        plan
    }
}

/// Writes bytes in pieces, each of which the server has seen before the next one comes.
fn write_in_pieces(stream: &mut UnixStream, other: &mut UnixStream, mut bytes: &[u8], rng: &mut XorShift) {
    while !bytes.is_empty() {
        let len = match rng.below(4) {
            0 => 1 + rng.below(40),
            1 => 1 + rng.below(20_000),
            _ => 1 + rng.below(150_000),
        };
        let (piece, behind) = bytes.split_at(bytes.len().min(len as usize));
        stream.write_all(piece).unwrap();
        other.write_all(&resp(&["PING"])).unwrap();
        expect(other, b"+PONG\r\n");
        bytes = behind;
    }
}

fn used_memory(stream: &mut UnixStream) -> i64 {
    stream.write_all(&resp(&["FLUSHALL", "SYNC"])).unwrap();
    expect(stream, b"+OK\r\n");
    stream.write_all(&resp(&["MEMORY", "STATS"])).unwrap();
    let mut bytes = vec![0; 1 << 16];
    let len = stream.read(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes[..len]);
    let mut lines = text.lines().skip_while(|line| *line != "total.allocated").skip(1);
    lines.next().and_then(|line| line.strip_prefix(':')).and_then(|number| number.parse().ok()).unwrap()
}

#[test]
fn large_arguments_are_stored_as_they_were_sent() {
    let seed = std::env::var("WEFT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_261_129);
    println!("seed {seed} (WEFT_SEED)");
    let mut rng = XorShift::new(seed);
    let server = Server::weft(&["--threads", "1"]);
    let mut other = server.stream();
    let before = used_memory(&mut other);
    for respb in [false, true, false, true] {
        let plan = Plan::new(&mut rng, !respb);
        let mut bytes = Vec::new();
        for words in &plan.requests {
            if respb {
                assert!(RequestWriter::new(&mut bytes, 0).command(words, Mode::Fold));
            } else {
                bytes.extend_from_slice(&resp(words));
            }
        }
        let mut stream = server.stream();
        let mut reads = stream.try_clone().unwrap();
        let reader = std::thread::spawn(move || {
            let mut replies = Vec::new();
            reads.read_to_end(&mut replies).map(|_| replies)
        });
        write_in_pieces(&mut stream, &mut other, &bytes, &mut rng);
        stream.shutdown(Shutdown::Write).unwrap();
        let replies = reader.join().unwrap().unwrap();
        if !respb {
            assert!(replies == plan.replies, "the replies are others");
        }
        for (key, value) in &plan.values {
            other.write_all(&resp(&["GET", key])).unwrap();
            expect(&mut other, &bulk(value));
        }
        // What the connection had to send goes with it.
        drop(stream);
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let after = used_memory(&mut other);
            if (after - before).abs() < 1 << 17 {
                break;
            }
            assert!(Instant::now() < deadline, "{before} bytes were used, and now {after}");
        }
    }
}
