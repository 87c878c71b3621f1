//! Owns: random requests, right ones and almost right ones, as bytes of each wire. Does not own: connections.

use weft_protocol::request::Texts;
use weft_protocol::respb::{Mode, RequestWriter};
use weft_protocol::table::{Argument, ArgumentKind, COMMANDS, CommandId};
use weft_protocol::{resp, respb};

use crate::hostile::KEYS;
use crate::rng::Rng;

/// Arguments of a request.
const ARGUMENTS_MAX: usize = 24;
/// Commands behind which others of the connection mean less: they are rarer.
const LAST_WORDS: [&str; 6] = ["QUIT", "RESET", "HELLO", "AUTH", "SUBSCRIBE", "MULTI"];
/// Numbers at which something changes.
const NUMBERS: [i64; 20] = [
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    16,
    100,
    255,
    256,
    1000,
    4095,
    65_535,
    65_536,
    100_000,
    i32::MAX as i64,
    i32::MIN as i64,
    i64::MAX,
    i64::MIN,
];
const DOUBLES: [&str; 10] = ["0", "1.5", "-1e300", "inf", "-inf", "nan", "1e-320", "(3", "[a", "0.1"];

pub(crate) fn key(rng: &mut Rng) -> Vec<u8> {
    format!("a:{}", rng.below(KEYS)).into_bytes()
}

fn text(rng: &mut Rng) -> Vec<u8> {
    let len = match rng.below(40) {
        0 => rng.below(20_000),
        1..=5 => rng.below(300),
        _ => rng.below(12),
    };
    if rng.one_in(3) { rng.bytes(len) } else { vec![b'a' + (len % 26) as u8; len] }
}

/// Words for an argument of the table.
fn argument(rng: &mut Rng, argument: &Argument, words: &mut Vec<Vec<u8>>, depth: usize) {
    if argument.optional && !rng.one_in(3) || words.len() > ARGUMENTS_MAX || depth > 4 {
        return;
    }
    let times = if argument.multiple { rng.between(1, 3) } else { 1 };
    for time in 0..times {
        if let Some(token) = argument.token
            && (time == 0 || rng.one_in(2))
        {
            words.extend(
                token.split(' ').filter(|word| !word.is_empty()).map(|word| word.as_bytes().to_vec()),
            );
        }
        match argument.kind {
            ArgumentKind::Key => words.push(key(rng)),
            ArgumentKind::String | ArgumentKind::Pattern => {
                let word = if rng.one_in(2) { key(rng) } else { text(rng) };
                words.push(word);
            }
            ArgumentKind::Integer | ArgumentKind::UnixTime => {
                words.push(rng.pick(&NUMBERS).to_string().into_bytes());
            }
            ArgumentKind::Double => words.push(rng.pick(&DOUBLES).as_bytes().to_vec()),
            ArgumentKind::PureToken => {}
            ArgumentKind::Oneof => {
                if !argument.arguments.is_empty() {
                    let one = rng.pick(argument.arguments);
                    self::argument(rng, one, words, depth + 1);
                }
            }
            ArgumentKind::Block => {
                for one in argument.arguments {
                    self::argument(rng, one, words, depth + 1);
                }
            }
        }
    }
}

/// A request of a command of the table, with arguments that often are right.
pub(crate) fn request(rng: &mut Rng) -> Vec<Vec<u8>> {
    let mut id = CommandId(rng.below(COMMANDS.len()) as u16);
    if LAST_WORDS.contains(&id.spec().name) && !rng.one_in(10) {
        id = CommandId(rng.below(COMMANDS.len()) as u16);
    }
    let mut words = Vec::new();
    if let Some(container) = id.spec().container {
        words.push(container.spec().name.as_bytes().to_vec());
    }
    words.push(id.spec().name.as_bytes().to_vec());
    for one in id.arguments() {
        argument(rng, one, &mut words, 0);
    }
    if rng.one_in(8) {
        words.push(text(rng));
    }
    if rng.one_in(8) && words.len() > 1 {
        let at = rng.below(words.len());
        words.remove(at);
    }
    words
}

/// What it is on RESP.
pub(crate) fn as_resp<T: AsRef<[u8]>>(words: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    resp::encode::request(None, &Texts(words), &mut out);
    out
}

/// What it is on RESPB, in one of the ways to say it.
pub(crate) fn as_respb<T: AsRef<[u8]>>(rng: &mut Rng, channel: u16, words: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = RequestWriter::new(&mut out, channel);
    match rng.below(6) {
        0 => writer.argv(&Texts(words)),
        1 => writer.passthrough(&Texts(words)),
        _ => {
            writer.command(words, Mode::Exact);
        }
    }
    out
}

/// A typed frame, where there is one.
pub(crate) fn frame<T: AsRef<[u8]>>(channel: u16, words: &[T]) -> Vec<u8> {
    let mut out = Vec::new();
    RequestWriter::new(&mut out, channel).command(words, Mode::Exact);
    out
}

/// A frame with a length in its head.
pub(crate) fn long_frame(opcode: u16, channel: u16, announced: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(respb::frame::LONG_HEADER_LEN + payload.len());
    out.extend_from_slice(&opcode.to_be_bytes());
    out.extend_from_slice(&channel.to_be_bytes());
    out.extend_from_slice(&announced.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// Random control frames and other frames with a length: known, unknown, right and wrong.
pub(crate) fn control(rng: &mut Rng, channels: u16) -> Vec<u8> {
    let opcode = match rng.below(8) {
        0 => respb::frame::CLOSE,
        1 | 2 => respb::frame::CANCEL,
        3 => respb::frame::WINDOW,
        4 => respb::frame::FRAGMENT,
        5 => 0xF002 + rng.below(0xEFE) as u16,
        6 => 0xFF00 + rng.below(0xFF) as u16,
        _ => respb::frame::GOAWAY,
    };
    let channel = rng.below(usize::from(channels)) as u16;
    let len = if rng.one_in(20) { rng.below(2000) } else { *rng.pick(&[0, 2, 4, 4, 4, 4]) };
    let payload = if rng.one_in(2) {
        let number = rng.below(64) as u32;
        number.to_be_bytes().into_iter().cycle().take(len).collect()
    } else {
        rng.bytes(len)
    };
    long_frame(opcode, channel, payload.len() as u32, &payload)
}

/// Changes some of the bytes: what a broken or a cunning client would send.
pub(crate) fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.between(1, 6) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.below(bytes.len());
        match rng.below(7) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = rng.next() as u8,
            2 => bytes[at] = *rng.pick(&[0x00, 0x7F, 0x80, 0xFF, b'\r', b'\n', b'*', b'$', b'-', b'9']),
            3 => bytes.truncate(at),
            4 => {
                let end = (at + rng.between(1, 16)).min(bytes.len());
                bytes.drain(at..end);
            }
            5 => {
                let len = rng.between(1, 16);
                let inserted = rng.bytes(len);
                bytes.splice(at..at, inserted);
            }
            _ => {
                let end = (at + rng.between(1, 64)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
}
