//! Owns: the bodies of the fuzz targets of HTTP: what must hold for any bytes. Does not own: the targets of the codecs
//! (`../src`) and of the engine (`../engine`).

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;
use serde_json::value::RawValue;
use weft_server::alone::{Alone, command_of_target, commands_of_body};

/// Commands whose replies follow from what was asked before.
const COMMANDS: &str = "+get +set +del +incr +append +strlen +echo +ping +mget +mset +hset +hgetall +lpush +lrange \
                        +multi +exec +discard +select +flushall";
/// More ticks would bring nothing.
const TICKS: usize = 6;

/// A worker that is told everything at once, and one that is told in pieces.
struct Pair {
    whole: Alone,
    pieces: Alone,
}

thread_local! {
    /// An engine is never taken down, so that one serves all inputs.
    static PAIR: RefCell<Pair> = RefCell::new(Pair { whole: ready(), pieces: ready() });
}

fn ready() -> Alone {
    let mut alone = Alone::new();
    let rules = format!("ACL SETUSER default reset on nopass ~* {COMMANDS}\r\n");
    assert_eq!(say(&mut alone, &[rules.as_bytes()]), b"+OK\r\n");
    alone
}

/// What a new connection answers to these pieces, one tick after each.
fn say(alone: &mut Alone, pieces: &[&[u8]]) -> Vec<u8> {
    let mut client = alone.connect();
    let mut answers = Vec::new();
    for piece in pieces {
        let sent = client.write_all(piece);
        alone.tick();
        take(&mut client, &mut answers);
        // Whoever has said why he listens no more has ended the connection.
        if sent.is_err() {
            break;
        }
    }
    for _ in 0..TICKS {
        alone.tick();
        take(&mut client, &mut answers);
    }
    answers
}

fn take(client: &mut UnixStream, answers: &mut Vec<u8>) {
    client.set_nonblocking(true).expect("it can be set");
    match client.read_to_end(answers) {
        Ok(_) => {}
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset), "{error}")
        }
    }
    client.set_nonblocking(false).expect("it can be set");
}

/// Answers without the time that they were given at, and without asking for bodies that have not come.
fn timeless(answers: &[u8]) -> String {
    let text = String::from_utf8_lossy(answers).replace("HTTP/1.1 100 Continue\r\n\r\n", "");
    text.split_inclusive('\n').filter(|line| !line.starts_with("Date: ")).collect()
}

/// The first byte says into how large pieces the others are cut: the answers must be the same.
pub fn http_request(data: &[u8]) {
    let Some((&first, request)) = data.split_first() else { return };
    let size = usize::from(first).max(1);
    same_answers(request, &request.chunks(size).collect::<Vec<_>>());
}

/// Whether a request in pieces is answered as the whole one.
pub fn same_answers(request: &[u8], pieces: &[&[u8]]) {
    // A head that comes in pieces is looked at when it ends, one that is wrong too.
    let end = &b"\r\n\r\n"[..];
    let (request, pieces) = ([request, end].concat(), [pieces, &[end]].concat());
    PAIR.with_borrow_mut(|pair| {
        let Pair { whole, pieces: cut } = pair;
        for alone in [&mut *whole, &mut *cut] {
            assert_eq!(say(alone, &[b"FLUSHALL\r\n"]), b"+OK\r\n");
        }
        let (one, other) = (say(whole, &[&request[..]]), say(cut, &pieces));
        // Whoever sends nothing more is not answered either, and HTTP is known by the first line.
        if one.starts_with(b"HTTP/") || other.starts_with(b"HTTP/") {
            assert_same(&timeless(&other), &timeless(&one));
        }
        for alone in [whole, cut] {
            assert_eq!(say(alone, &[b"PING\r\n"]), b"+PONG\r\n", "others are served");
        }
    });
}

/// A request that is refused by its head ends the connection where its body has not come: nothing is read behind it.
fn assert_same(pieces: &str, whole: &str) {
    const END: &str = "Connection: close\r\n";
    let ends = pieces.contains(END) && whole.replace(END, "").starts_with(&pieces.replace(END, ""));
    assert!(pieces == whole || ends, "in pieces {pieces:?}, whole {whole:?}");
}

/// A body of commands is what a document of JSON says it is, and no beginning of it is one.
pub fn http_json(data: &[u8]) {
    let read = commands_of_body(data, true);
    assert_eq!(commands_of_body(data, false), read, "wherever it lies");
    let model: Result<Vec<Vec<&RawValue>>, _> = serde_json::from_slice(data);
    let Ok(commands) = read else {
        // What JSON takes is refused for one of these reasons alone.
        let is_argument = |value: &&RawValue| {
            !value.get().starts_with(['[', '{', 'n'])
                && (!value.get().starts_with('"') || serde_json::from_str::<String>(value.get()).is_ok())
        };
        let is_command = |words: &Vec<&RawValue>| !words.is_empty() && words.iter().all(is_argument);
        assert!(!model.is_ok_and(|model| model.iter().all(is_command)), "it is one");
        return;
    };
    let model = model.expect("what is taken is JSON");
    assert_eq!(commands.len(), model.len());
    for (words, model) in commands.iter().zip(&model) {
        assert_eq!(words.len(), model.len());
        for (word, value) in words.iter().zip(model) {
            match serde_json::from_str(value.get()) {
                Ok(Value::String(text)) => assert_eq!(*word, text.into_bytes()),
                _ => assert_eq!(*word, value.get().as_bytes(), "digits and words are what was sent"),
            }
        }
    }
    let end = data.trim_ascii_end().len();
    (0..end).for_each(|end| assert!(commands_of_body(&data[..end], true).is_err(), "cut at {end}"));
}

/// A target is its segments, then the names and values of its query, each with its escapes undone.
pub fn http_target(data: &[u8]) {
    let Some(read) = command_of_target(data).filter(|_| data.starts_with(b"/")) else { return };
    let (path, query) = match data.iter().position(|&byte| byte == b'?') {
        Some(mark) => (&data[1..mark], &data[mark + 1..]),
        None => (&data[1..], &b""[..]),
    };
    let mut model: Vec<Option<Vec<u8>>> =
        path.split(|&byte| byte == b'/').map(|part| undone(part, false)).collect();
    for parameter in query.split(|&byte| byte == b'&').filter(|parameter| !parameter.is_empty()) {
        let mut parts = parameter.splitn(2, |&byte| byte == b'=');
        let name = parts.next().unwrap_or_default();
        if name != b"_token" {
            model.push(undone(name, true));
            model.extend(parts.next().map(|value| undone(value, true)));
        }
    }
    let model: Option<Vec<Vec<u8>>> = model.into_iter().collect();
    assert_eq!(read.ok(), model);
}

fn undone(part: &[u8], plus_is_blank: bool) -> Option<Vec<u8>> {
    let text: Vec<u8> =
        part.iter().map(|&byte| if plus_is_blank && byte == b'+' { b' ' } else { byte }).collect();
    let mut pieces = text.split(|&byte| byte == b'%');
    let mut out = pieces.next().unwrap_or_default().to_vec();
    for piece in pieces {
        let digits = std::str::from_utf8(piece.get(..2)?).ok()?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        out.push(u8::from_str_radix(digits, 16).ok()?);
        out.extend_from_slice(&piece[2..]);
    }
    Some(out)
}
