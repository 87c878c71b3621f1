//! Requests made before a run, and what of them is written over for each sending. Owns the finding of those places.

use anyhow::{Result, ensure};
use weft_client::Encoder;

use super::cluster::TAG_BYTES;
use super::keys::Keys;
use super::sizes::{Filler, STAMP_BYTES, write_digits};

/// What stands for a random number in a command, as in redis-benchmark: twelve digits of it.
pub(super) const RANDOM: &str = "__rand_int__";
/// What stands for a tag in the keys of a cluster.
pub(super) const TAG: &str = "{tag}";
/// What stands for a value in a command.
pub(super) const DATA: &str = "__data__";

/// What stands for the random number before, once more: of the same command or, in a sequence, of one before it.
pub(super) const SAME: &str = "__same_int__";
/// What stands for a number that grows each time the sequential keys begin again: twelve digits of it.
pub(super) const PASS: &str = "__pass__";
/// What stands for a time to live, in seconds.
pub(super) const TTL: &str = "__ttl__";

/// What stands in a request for a number until one is written, and where that comes from. No other text of ours has
/// these digits.
const SENTINEL: u64 = 902_813_746_559;
const SENTINELS: [(u64, Number); 3] =
    [(SENTINEL, Number::New), (713_904_628_255, Number::Same), (648_192_057_733, Number::Pass)];

/// Which number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// The next key.
    New,
    /// The key before.
    Same,
    /// [`PASS`].
    Pass,
}

/// A place in a request that is written over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    at: u32,
    kind: SlotKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotKind {
    /// A number as twelve digits.
    Digits(Number),
    /// A number as an `i64`.
    Int(Number),
    /// A number as an `f64`.
    Double(Number),
    /// The last digits of the number before, at the start of a value: so many.
    Stamp(u8),
    /// The tag of the number that comes next.
    TagOfNext,
    /// The tag of key 0: that of keys without a number.
    TagOfFirst,
    /// The tag before, once more: the keys of a request are in one slot.
    TagAgain,
}

impl SlotKind {
    fn number(self) -> Option<Number> {
        match self {
            SlotKind::Digits(from) | SlotKind::Int(from) | SlotKind::Double(from) => Some(from),
            _ => None,
        }
    }

    /// Whether it draws a key.
    fn is_new(self) -> bool {
        self.number() == Some(Number::New)
    }
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

impl Request {
    /// Words on a line, as somebody types them over telnet.
    pub(super) fn inline(argv: &[String]) -> Request {
        Request { bytes: (argv.join(" ") + "\r\n").into_bytes(), slots: Vec::new() }
    }

    /// Encodes a command. Values get `value_bytes`; their keys' numbers are written into them when `stamped`, and tags
    /// of a cluster's slots into the keys when `tagged`.
    pub(super) fn new(
        form: Form<'_>,
        argv: &[String],
        filler: &Filler,
        value_bytes: usize,
        stamped: bool,
        tagged: bool,
    ) -> Result<Request> {
        let stamps = if stamped { value_bytes.min(STAMP_BYTES) } else { 0 };
        let plain = form.encode(&values(argv, filler, value_bytes, (stamps, None)))?;
        let mut slots = numbers(&plain);
        let marks =
            |arg: &String| [RANDOM, SAME, PASS].iter().map(|mark| arg.matches(mark).count()).sum::<usize>();
        let asked: usize = argv.iter().map(marks).sum();
        ensure!(slots.len() == asked, "{}: a place of a number was not found again", argv.join(" "));
        if tagged {
            slots.extend(tags(&plain));
        }
        if stamps > 0 {
            for index in (0..argv.len()).filter(|&index| argv[index].contains(DATA)) {
                let other = form.encode(&values(argv, filler, value_bytes, (stamps, Some(index))))?;
                let at = plain.iter().zip(&other).position(|(a, b)| a != b);
                slots.extend(at.map(|at| Slot { at: at as u32, kind: SlotKind::Stamp(stamps as u8) }));
            }
        }
        slots.sort_by_key(|slot| slot.at);
        Ok(Request { bytes: plain, slots })
    }
}

/// The arguments with a number and values in their places, each with so many digits of a stamp; those of value number
/// `marked` are others.
fn values(
    argv: &[String],
    filler: &Filler,
    value_bytes: usize,
    (stamps, marked): (usize, Option<usize>),
) -> Vec<Vec<u8>> {
    let argument = |(index, arg): (usize, &String)| {
        let [new, same, pass] = SENTINELS.map(|(digits, _)| digits.to_string());
        let arg = arg.replace(RANDOM, &new).replace(SAME, &same).replace(PASS, &pass);
        let Some((before, after)) = arg.split_once(DATA) else { return arg.into_bytes() };
        let mut value = filler.value(value_bytes);
        value[..stamps].fill(if marked == Some(index) { b'1' } else { b'0' });
        [before.as_bytes(), &value, after.as_bytes()].concat()
    };
    argv.iter().enumerate().map(argument).collect()
}

/// What a request is made into.
#[derive(Clone, Copy)]
pub(super) enum Form<'e> {
    /// As the server reads it.
    Whole(&'e Encoder),
    /// HTTP: an element of the body of `/pipeline`.
    Element,
}

impl Form<'_> {
    fn encode(self, argv: &[Vec<u8>]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            Self::Whole(encoder) => encoder.encode(0, argv, &mut bytes)?,
            Self::Element => Encoder::pipeline_part(argv, &mut bytes),
        }
        Ok(bytes)
    }
}

/// Where the number stands: as digits, or where the command's layout has a number, in binary.
fn numbers(bytes: &[u8]) -> Vec<Slot> {
    let forms: Vec<(Vec<u8>, SlotKind)> = SENTINELS
        .iter()
        .flat_map(|&(digits, from)| {
            [
                (digits.to_string().into_bytes(), SlotKind::Digits(from)),
                ((digits as i64).to_be_bytes().to_vec(), SlotKind::Int(from)),
                ((digits as f64).to_be_bytes().to_vec(), SlotKind::Double(from)),
            ]
        })
        .collect();
    let mut slots = Vec::new();
    // Values are long, and few of their bytes begin a number.
    let mut begins = [false; 256];
    forms.iter().for_each(|(form, _)| begins[usize::from(form[0])] = true);
    for at in (0..bytes.len()).filter(|&at| begins[usize::from(bytes[at])]) {
        let found = forms.iter().find(|(form, _)| bytes[at..].starts_with(form));
        slots.extend(found.map(|(_, kind)| Slot { at: at as u32, kind: *kind }));
    }
    slots
}

/// Where tags stand.
fn tags(bytes: &[u8]) -> Vec<Slot> {
    let with_number = format!("{TAG}:{SENTINEL}");
    let mut slots: Vec<Slot> = Vec::new();
    for at in (0..bytes.len()).filter(|&at| bytes[at..].starts_with(TAG.as_bytes())) {
        let kind = match bytes[at..].starts_with(with_number.as_bytes()) {
            _ if !slots.is_empty() => SlotKind::TagAgain,
            true => SlotKind::TagOfNext,
            false => SlotKind::TagOfFirst,
        };
        // Behind the brace.
        slots.push(Slot { at: at as u32 + 1, kind });
    }
    slots
}

/// Requests that are sent together.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    pub(super) bytes: Vec<u8>,
    pub(super) frames: Vec<u32>,
    /// Which command each request is.
    pub(super) kinds: Vec<u8>,
    slots: Vec<Slot>,
    /// Numbers that each request draws.
    numbers: Vec<u32>,
    /// They are sent as a whole: one request of HTTP, or sequences of commands that belong together.
    pub(super) is_whole: bool,
}

impl Requests {
    pub(super) fn push(&mut self, kind: u8, request: &Request) {
        let at = self.bytes.len() as u32;
        self.frames.push(at);
        self.kinds.push(kind);
        self.bytes.extend_from_slice(&request.bytes);
        self.slots.extend(request.slots.iter().map(|slot| Slot { at: slot.at + at, ..*slot }));
        let is_new = |slot: &&Slot| slot.kind.is_new();
        self.numbers.push(request.slots.iter().filter(is_new).count() as u32);
    }

    /// Makes one request of HTTP of those that are there, each an element of its body.
    pub(super) fn enclose(&mut self, encoder: &Encoder) {
        let mut body = b"[".to_vec();
        let mut moved = Vec::new();
        for (index, &from) in self.frames.iter().enumerate() {
            let end = self.frames.get(index + 1).map_or(self.bytes.len(), |&next| next as usize);
            moved.push(body.len() as u32 - from);
            body.extend_from_slice(&self.bytes[from as usize..end]);
            body.push(b',');
        }
        body.pop();
        body.push(b']');
        let mut bytes = Vec::new();
        encoder.pipeline(&body, &mut bytes);
        let head = (bytes.len() - body.len()) as u32;
        for slot in &mut self.slots {
            let element = self.frames.partition_point(|&from| from <= slot.at) - 1;
            slot.at += head + moved[element];
        }
        for (from, by) in self.frames.iter_mut().zip(moved) {
            *from += head + by;
        }
        (self.bytes, self.is_whole) = (bytes, true);
    }

    /// Numbers that request `index` draws.
    pub(super) fn numbers(&self, index: usize) -> u32 {
        self.numbers[index]
    }

    /// Where the first `count` requests end.
    pub(super) fn end(&self, count: usize) -> usize {
        let next = self.frames.get(count).filter(|_| !self.is_whole);
        next.map_or(self.bytes.len(), |&at| at as usize)
    }

    /// Writes new numbers into the first `end` bytes; `drawn` hears of each.
    #[inline]
    pub(super) fn draw(&mut self, keys: &mut Keys, end: usize, mut drawn: impl FnMut(u64)) {
        let (mut number, mut early, mut tag) = (0, None, [0; TAG_BYTES]);
        for slot in &self.slots {
            let at = slot.at as usize;
            if at >= end {
                break;
            }
            let mut value = number;
            match slot.kind.number() {
                Some(Number::New) => {
                    number = early.take().unwrap_or_else(|| keys.next());
                    drawn(number);
                    value = number;
                }
                Some(Number::Pass) => value = keys.pass(),
                Some(Number::Same) | None => {}
            }
            match slot.kind {
                SlotKind::TagOfNext => {
                    let next = keys.next();
                    (early, tag) = (Some(next), keys.tag(next));
                    self.bytes[at..at + TAG_BYTES].copy_from_slice(&tag);
                }
                SlotKind::TagOfFirst => {
                    tag = keys.tag(0);
                    self.bytes[at..at + TAG_BYTES].copy_from_slice(&tag);
                }
                SlotKind::TagAgain => self.bytes[at..at + TAG_BYTES].copy_from_slice(&tag),
                SlotKind::Digits(_) => {
                    if let Some(place) = self.bytes[at..].first_chunk_mut() {
                        write_digits(place, value);
                    }
                }
                SlotKind::Int(_) => self.bytes[at..at + 8].copy_from_slice(&(value as i64).to_be_bytes()),
                SlotKind::Double(_) => self.bytes[at..at + 8].copy_from_slice(&(value as f64).to_be_bytes()),
                SlotKind::Stamp(width) => {
                    let mut stamp = [0; STAMP_BYTES];
                    write_digits(&mut stamp, number);
                    let width = usize::from(width);
                    self.bytes[at..at + width].copy_from_slice(&stamp[STAMP_BYTES - width..]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_client::Protocol;
    use weft_protocol::request::ArgList;
    use weft_protocol::{Limits, Outcome, resp, respb};

    use super::super::keys::Distribution;
    use super::*;

    fn encoder(protocol: Protocol) -> Encoder {
        Encoder::new(protocol, &Limits::DEFAULT)
    }

    fn request(
        protocol: Protocol,
        text: &str,
        filler: &Filler,
        bytes: usize,
        flags: (bool, bool),
    ) -> Request {
        let encoder = encoder(protocol);
        Request::new(Form::Whole(&encoder), &argv(text), filler, bytes, flags.0, flags.1).unwrap()
    }

    fn argv(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_string).collect()
    }

    /// The arguments that a server would read, as text.
    fn read(protocol: Protocol, bytes: &[u8]) -> Vec<String> {
        let mut list = ArgList::new();
        let mut all = Vec::new();
        if protocol == Protocol::Respb {
            let Outcome::Complete(frame) =
                respb::RequestDecoder::new(Limits::DEFAULT).decode(bytes, &mut list)
            else {
                panic!("{bytes:?}")
            };
            all.extend(frame.frame.command().map(|id| id.spec().name.to_string()));
            assert_eq!(frame.len, bytes.len());
        } else {
            let Outcome::Complete(frame) =
                resp::RequestDecoder::new(Limits::DEFAULT).decode(bytes, &mut list)
            else {
                panic!("{bytes:?}")
            };
            assert_eq!(frame.len, bytes.len());
        }
        all.extend(list.iter(bytes).map(|arg| {
            let mut text = Vec::new();
            arg.push_text(&mut text);
            String::from_utf8(text).unwrap()
        }));
        all
    }

    #[test]
    fn numbers_and_stamps_are_written_on_every_wire() {
        let filler = Filler::new(20);
        for protocol in [Protocol::Resp2, Protocol::Respb] {
            let command = "MSET key:__rand_int__ __data__ key:__rand_int__ __data__";
            let request = request(protocol, command, &filler, 20, (true, false));
            let mut requests = Requests::default();
            requests.push(0, &request);
            let mut keys = Keys::new(Distribution::Sequential, 1000, 41, 1);
            let end = requests.end(1);
            let mut drawn = Vec::new();
            requests.draw(&mut keys, end, |key| drawn.push(key));
            assert_eq!(drawn, [41, 42]);
            let read = read(protocol, &requests.bytes);
            assert_eq!(read[1], "key:000000000041");
            assert_eq!(read[3], "key:000000000042");
            assert!(filler.is_value(read[2].as_bytes(), 41) && filler.is_value(read[4].as_bytes(), 42));
            assert_eq!((read[2].len(), requests.numbers(0)), (20, 2));
        }
    }

    #[test]
    fn numbers_in_binary_fields_are_written_in_binary() {
        let filler = Filler::new(3);
        for (text, expected) in [
            ("ZADD myzset __rand_int__ element:__rand_int__", ["5", "element:000000000006"]),
            ("LRANGE mylist __rand_int__ __rand_int__", ["5", "6"]),
        ] {
            let request = request(Protocol::Respb, text, &filler, 3, (false, false));
            let mut requests = Requests::default();
            requests.push(0, &request);
            let end = requests.end(1);
            requests.draw(&mut Keys::new(Distribution::Sequential, 10, 5, 1), end, |_| {});
            assert_eq!(read(Protocol::Respb, &requests.bytes)[2..], expected, "{text}");
        }
    }

    #[test]
    fn a_number_is_written_again_and_a_pass_grows() {
        let filler = Filler::new(3);
        for protocol in [Protocol::Resp2, Protocol::Respb] {
            let of = |text| request(protocol, text, &filler, 3, (true, false));
            let mut requests = Requests::default();
            let texts = ["SET key:__rand_int__ __data__", "GET key:__same_int__", "XADD s __pass__-1 f v"];
            let ends: Vec<usize> = texts
                .iter()
                .map(|text| {
                    requests.push(0, &of(text));
                    requests.bytes.len()
                })
                .collect();
            let mut keys = Keys::new(Distribution::Sequential, 2, 1, 1);
            let mut passes = Vec::new();
            for key in ["key:000000000001", "key:000000000000"] {
                let end = requests.end(3);
                let mut drawn = 0;
                requests.draw(&mut keys, end, |_| drawn += 1);
                assert_eq!(drawn, 1);
                assert_eq!(read(protocol, &requests.bytes[..ends[0]])[1], key);
                assert_eq!(read(protocol, &requests.bytes[ends[0]..ends[1]])[1], key);
                passes.push(read(protocol, &requests.bytes[ends[1]..])[2].clone());
            }
            let number = |text: &String| text.split('-').next().unwrap().parse::<u64>().unwrap();
            assert_eq!(number(&passes[1]), number(&passes[0]), "the keys began again before both of them");
        }
    }

    #[test]
    fn keys_of_a_cluster_have_the_tag_of_their_number() {
        let filler = Filler::new(3);
        let tags = std::sync::Arc::new(vec![*b"aaa", *b"bbb", *b"ccc"]);
        for (text, expected) in [
            ("GET key:{tag}:__rand_int__", vec!["key:{ccc}:000000000005"]),
            (
                "MGET key:{tag}:__rand_int__ key:{tag}:__rand_int__",
                vec!["key:{ccc}:000000000005", "key:{ccc}:000000000007"],
            ),
            ("HSET myhash:{tag} element:__rand_int__ v", vec!["myhash:{aaa}", "element:000000000005", "v"]),
        ] {
            let request = request(Protocol::Resp2, text, &filler, 3, (false, true));
            let mut requests = Requests::default();
            requests.push(0, &request);
            let end = requests.end(1);
            // Of 20 keys the odd ones are of this part; 5 is the third of them.
            let mut keys = Keys::new(Distribution::Sequential, 10, 2, 1).in_part(1, 2, &tags);
            let mut drawn = 0;
            requests.draw(&mut keys, end, |_| drawn += 1);
            assert_eq!(read(Protocol::Resp2, &requests.bytes)[1..], expected, "{text}");
            assert_eq!(drawn, requests.numbers(0));
        }
    }

    #[test]
    fn only_what_is_sent_is_drawn() {
        let filler = Filler::new(3);
        let get = request(Protocol::Resp2, "GET key:__rand_int__", &filler, 3, (false, false));
        let ping = request(Protocol::Resp2, "PING", &filler, 3, (false, false));
        let mut requests = Requests::default();
        requests.push(0, &get);
        requests.push(1, &ping);
        requests.push(0, &get);
        assert_eq!(requests.end(2), get.bytes.len() + ping.bytes.len());
        let (mut drawn, end) = (0, requests.end(2));
        requests.draw(&mut Keys::new(Distribution::Uniform, 10, 0, 1), end, |_| drawn += 1);
        assert_eq!(drawn, 1);
    }

    #[test]
    fn over_http_numbers_stand_in_paths_bodies_and_lists() {
        let filler = Filler::new(20);
        let mut keys = Keys::new(Distribution::Sequential, 1000, 41, 1);
        let mut requests = Requests::default();
        let set = "SET key:__rand_int__ __data__";
        requests.push(0, &request(Protocol::Http, set, &filler, 20, (true, false)));
        requests.push(0, &request(Protocol::Http, "GET key:__rand_int__", &filler, 20, (true, false)));
        let end = requests.end(2);
        requests.draw(&mut keys, end, |_| {});
        let text = String::from_utf8_lossy(&requests.bytes).into_owned();
        let value = text.split("\r\n\r\n").nth(1).expect("SET has a body");
        assert!(text.starts_with("POST /SET/key:000000000041 HTTP/1.1"), "{text}");
        assert!(filler.is_value(&value.as_bytes()[..20], 41), "{value}");
        assert!(value[20..].starts_with("GET /GET/key:000000000042 HTTP/1.1"), "{text}");

        let mut list = Requests::default();
        for text in [set, "GET key:__rand_int__"] {
            list.push(0, &Request::new(Form::Element, &argv(text), &filler, 20, true, false).unwrap());
        }
        list.enclose(&encoder(Protocol::Http));
        let end = list.end(1);
        assert_eq!(end, list.bytes.len(), "a body is sent as a whole");
        list.draw(&mut keys, end, |_| {});
        let text = String::from_utf8_lossy(&list.bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").expect("there is a head");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{text}");
        let commands: Vec<Vec<String>> = serde_json::from_str(body).expect("it is JSON");
        assert_eq!((&*commands[0][1], &*commands[1][1]), ("key:000000000043", "key:000000000044"));
        assert!(filler.is_value(commands[0][2].as_bytes(), 43), "{body}");
    }
}
