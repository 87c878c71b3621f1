//! The four decoders behind one face: feed bytes, get an outcome, compare what was handed out with a vector's value.
//!
//! Owns the comparison with the JSON. How the bytes are fed stands in the tests.

use serde_json::Value as Json;
use weft_protocol::reply::ReplyBuilder;
use weft_protocol::respb::reply::ReplyKind;
use weft_protocol::respb::{Control, Frame};
use weft_protocol::{Aggregate, Arg, ArgList, Limits, Outcome, Reply, ReplyVisitor, Text, resp, respb};

use super::{Protocol, content, elements};

/// What one call of a decoder gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The frame has so many bytes.
    Complete(usize),
    /// Bytes that must be there.
    Incomplete(usize),
    /// Name and offset of the error.
    Invalid(&'static str, usize),
}

/// A decoder with its visitor.
pub(crate) enum Subject {
    /// RESP requests.
    RespRequest(resp::RequestDecoder, ArgList),
    /// RESPB requests.
    RespbRequest(Box<respb::RequestDecoder>, ArgList, Head),
    /// RESP replies.
    RespReply(Box<resp::ReplyDecoder>, Tree, Head),
    /// RESPB replies.
    RespbReply(Box<respb::ReplyDecoder>, Tree, Head),
}

/// What a frame says apart from its arguments or values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Head {
    channel: Option<u16>,
    frame: &'static str,
    command: Option<String>,
    number: Option<(&'static str, u64)>,
    bytes: Option<(&'static str, Vec<u8>)>,
    flag: Option<(&'static str, bool)>,
    opcode: Option<u16>,
}

impl Subject {
    /// The decoder for vectors of a folder and direction.
    pub(crate) fn new(protocol: Protocol, request: bool, limits: Limits) -> Self {
        match (protocol, request) {
            (Protocol::Respb, true) => Subject::RespbRequest(
                Box::new(respb::RequestDecoder::new(limits)),
                ArgList::new(),
                Head::default(),
            ),
            (Protocol::Respb, false) => Subject::RespbReply(
                Box::new(respb::ReplyDecoder::new(limits)),
                Tree::default(),
                Head::default(),
            ),
            (_, true) => Subject::RespRequest(resp::RequestDecoder::new(limits), ArgList::new()),
            (_, false) => Subject::RespReply(
                Box::new(resp::ReplyDecoder::new(limits)),
                Tree::default(),
                Head::default(),
            ),
        }
    }

    /// Forgets what was handed out; the decoder stays.
    pub(crate) fn clear(&mut self) {
        match self {
            Subject::RespRequest(_, args) | Subject::RespbRequest(_, args, _) => args.clear(),
            Subject::RespReply(_, tree, _) | Subject::RespbReply(_, tree, _) => *tree = Tree::default(),
        }
    }

    /// One call of the decoder.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Step {
        match self {
            Subject::RespRequest(decoder, args) => step(decoder.decode(input, args), |frame| frame.len),
            Subject::RespbRequest(decoder, args, head) => step(decoder.decode(input, args), |frame| {
                *head = request_head(frame.channel, frame.frame);
                frame.len
            }),
            Subject::RespReply(decoder, tree, head) => step(decoder.decode(input, tree), |frame| {
                head.frame = if frame.push { "push" } else { "reply" };
                frame.len
            }),
            Subject::RespbReply(decoder, tree, head) => step(decoder.decode(input, tree), |frame| {
                *head = reply_head(frame.channel, frame.kind);
                frame.len
            }),
        }
    }

    /// The arguments.
    pub(crate) fn args(&self) -> &ArgList {
        match self {
            Subject::RespRequest(_, args) | Subject::RespbRequest(_, args, _) => args,
            _ => panic!("a reply has no arguments"),
        }
    }

    /// The command of a typed frame.
    pub(crate) fn command(&self) -> Option<&str> {
        match self {
            Subject::RespbRequest(_, _, head) => head.command.as_deref(),
            _ => None,
        }
    }

    /// Everything that was handed out, as bytes to compare with another run's.
    pub(crate) fn fingerprint(&self, frame: &[u8]) -> (Head, Vec<u8>) {
        let args = |args: &ArgList| {
            let mut out = args.options().to_be_bytes().to_vec();
            for arg in args.iter(frame) {
                match arg {
                    Arg::Bytes(bytes) => put(&mut out, 0, 0, bytes),
                    Arg::Int(value) => put(&mut out, 1, 0, &value.to_be_bytes()),
                    Arg::Double(value) => put(&mut out, 2, 0, &value.to_be_bytes()),
                    Arg::Keyword(word) => put(&mut out, 3, 0, word.as_bytes()),
                }
            }
            out
        };
        match self {
            Subject::RespRequest(_, list) => (Head::default(), args(list)),
            Subject::RespbRequest(_, list, head) => (head.clone(), args(list)),
            Subject::RespReply(_, tree, head) | Subject::RespbReply(_, tree, head) => {
                (head.clone(), tree.calls.clone())
            }
        }
    }

    /// Compares what was handed out with a vector's value. Gives the difference.
    pub(crate) fn compare(&mut self, frame: &[u8], value: &Json) -> Result<Option<Reply>, String> {
        match self {
            Subject::RespRequest(_, args) => same_args(args, frame, value).map(|()| None),
            Subject::RespbRequest(_, args, head) => {
                head.compare(value)?;
                let bits = value.get("options").map_or(0, hex16);
                if args.options() != bits {
                    return Err(format!("options {:#06x}", args.options()));
                }
                match value.get("args") {
                    Some(_) => same_args(args, frame, value)?,
                    None if !args.is_empty() => return Err("arguments where there are none".into()),
                    None => {}
                }
                Ok(None)
            }
            Subject::RespReply(_, tree, head) | Subject::RespbReply(_, tree, head) => {
                head.compare(value)?;
                tree.compare(frame, value)
            }
        }
    }
}

fn step<T>(outcome: Outcome<T>, mut complete: impl FnMut(T) -> usize) -> Step {
    match outcome {
        Outcome::Complete(frame) => Step::Complete(complete(frame)),
        Outcome::Incomplete { need } => Step::Incomplete(need),
        Outcome::Invalid(error) => Step::Invalid(error.kind.name(), error.offset),
    }
}

fn request_head(channel: u16, frame: Frame<'_>) -> Head {
    let mut head = match frame {
        Frame::Core(_) => Head { frame: "core", ..Head::default() },
        Frame::Module(_) => Head { frame: "module", ..Head::default() },
        Frame::Argv => Head { frame: "argv", ..Head::default() },
        Frame::Passthrough => Head { frame: "passthrough", ..Head::default() },
        Frame::Control(control) => control_head(control),
        Frame::Unknown { opcode } => unknown_head(opcode, false),
    };
    head.channel = Some(channel);
    head.command = frame.command().map(|id| id.spec().name.to_string());
    head
}

fn reply_head(channel: u16, kind: ReplyKind<'_>) -> Head {
    let mut head = match kind {
        ReplyKind::Reply => Head { frame: "reply", ..Head::default() },
        ReplyKind::Push => Head { frame: "push", ..Head::default() },
        ReplyKind::Control(control) => control_head(control),
        ReplyKind::Unknown { opcode } => unknown_head(opcode, false),
    };
    head.channel = Some(channel);
    head
}

fn unknown_head(opcode: u16, ignorable: bool) -> Head {
    Head { frame: "unknown", opcode: Some(opcode), flag: Some(("ignorable", ignorable)), ..Head::default() }
}

fn control_head(control: Control<'_>) -> Head {
    let head = Head::default();
    match control {
        Control::Close { code, reason } => Head {
            frame: "close",
            number: Some(("code", code.into())),
            bytes: Some(("reason", reason.to_vec())),
            ..head
        },
        Control::Goaway { code, reason } => Head {
            frame: "goaway",
            number: Some(("code", code.into())),
            bytes: Some(("reason", reason.to_vec())),
            ..head
        },
        Control::Cancel { sequence } => {
            Head { frame: "cancel", number: Some(("sequence", sequence.into())), ..head }
        }
        Control::Window { more } => Head { frame: "window", number: Some(("more", more.into())), ..head },
        Control::Fragment { last, slice } => Head {
            frame: "fragment",
            flag: Some(("last", last)),
            bytes: Some(("slice", slice.to_vec())),
            ..head
        },
        Control::Unknown { opcode } => unknown_head(opcode, true),
    }
}

impl Head {
    fn compare(&self, value: &Json) -> Result<(), String> {
        let channel = value.get("channel").map(|channel| channel.as_u64().unwrap() as u16);
        let same = self.channel == channel
            && value["frame"].as_str() == Some(self.frame)
            && value.get("command").map(|command| command.as_str().unwrap()) == self.command.as_deref()
            && self.opcode == value.get("opcode").map(hex16)
            && self.number.is_none_or(|(name, number)| value[name].as_str() == Some(&number.to_string()))
            && self.flag.is_none_or(|(name, flag)| value[name].as_bool() == Some(flag))
            && self.bytes.as_ref().is_none_or(|(name, bytes)| content(&value[name]) == *bytes);
        if same { Ok(()) } else { Err(format!("{self:?}")) }
    }
}

fn hex16(json: &Json) -> u16 {
    u16::from_str_radix(json.as_str().unwrap().strip_prefix("0x").unwrap(), 16).unwrap()
}

fn same_args(args: &ArgList, frame: &[u8], value: &Json) -> Result<(), String> {
    let expected = elements(&value["args"]);
    if expected.len() != args.len() {
        return Err(format!("{} arguments", args.len()));
    }
    for (index, (arg, json)) in args.iter(frame).zip(expected).enumerate() {
        if !same_arg(arg, json) {
            return Err(format!("argument {index}: {arg:?}"));
        }
    }
    Ok(())
}

fn same_arg(arg: Arg<'_>, json: &Json) -> bool {
    match arg {
        Arg::Bytes(bytes) => match json.get("text") {
            Some(text) => text.as_str().unwrap().as_bytes() == bytes,
            None => json.get("bytes").is_some() && content(json) == bytes,
        },
        Arg::Int(value) => json.get("int").is_some_and(|text| text.as_str() == Some(&value.to_string())),
        Arg::Double(value) => json.get("double").is_some() && same_double(value, json),
        Arg::Keyword(word) => json.get("keyword").is_some_and(|text| text.as_str() == Some(word)),
    }
}

/// Bits and canonical text.
fn same_double(value: f64, json: &Json) -> bool {
    let mut text = Vec::new();
    weft_protocol::number::push_double(&mut text, value);
    json["bits"].as_str() == Some(&format!("{:016x}", value.to_bits()))
        && json["double"].as_str().map(str::as_bytes) == Some(&text)
}

/// Builds a reply and keeps the offset of each text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    builder: ReplyBuilder,
    texts: Vec<(usize, Vec<u8>)>,
    calls: Vec<u8>,
}

fn put(out: &mut Vec<u8>, kind: u8, offset: usize, bytes: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(offset as u32).to_be_bytes());
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

impl Tree {
    fn compare(&mut self, frame: &[u8], value: &Json) -> Result<Option<Reply>, String> {
        let reply = self.builder.take();
        for (offset, text) in &self.texts {
            // OK is a type of its own on RESPB: its two letters are not in the frame.
            if frame.get(*offset..offset + text.len()) != Some(text) && text != b"OK" {
                return Err(format!("a text that is not at {offset}"));
            }
        }
        match (value.get("reply"), &reply) {
            (None, None) => Ok(None),
            (Some(json), Some(tree)) if same_reply(tree, json) => Ok(reply),
            (_, got) => Err(format!("{got:?}").chars().take(200).collect()),
        }
    }
}

fn same_reply(reply: &Reply, json: &Json) -> bool {
    let member = |name: &str| json.get(name);
    let text = |name: &str, bytes: &[u8]| member(name).is_some_and(|json| content(json) == bytes);
    let all = |name: &str, replies: &[Reply]| {
        member(name).map(elements).is_some_and(|jsons| {
            jsons.len() == replies.len()
                && replies.iter().zip(jsons).all(|(reply, json)| same_reply(reply, json))
        })
    };
    let pairs = |name: &str, pairs: &[(Reply, Reply)]| {
        member(name).map(elements).is_some_and(|jsons| {
            jsons.len() == pairs.len()
                && pairs
                    .iter()
                    .zip(jsons)
                    .all(|((key, value), json)| same_reply(key, &json[0]) && same_reply(value, &json[1]))
        })
    };
    if let (Some(kind), Some(depth)) = (member("nest"), member("depth").and_then(Json::as_u64)) {
        return same_nest(reply, kind.as_str().unwrap(), depth, &json["value"]);
    }
    match reply {
        Reply::Simple(bytes) => text("simple", bytes),
        Reply::Error(bytes) => text("error", bytes),
        Reply::Bulk(bytes) => text("bulk", bytes),
        Reply::BigNumber(bytes) => text("big", bytes),
        Reply::Verbatim(format, bytes) => member("verbatim").is_some_and(|json| {
            json[0].as_str().map(str::as_bytes) == Some(format) && content(&json[1]) == *bytes
        }),
        Reply::Int(value) => member("int").is_some_and(|json| json.as_str() == Some(&value.to_string())),
        Reply::Double(value) => member("double").is_some() && same_double(*value, json),
        Reply::Bool(value) => member("bool").and_then(Json::as_bool) == Some(*value),
        Reply::Null => member("null").is_some(),
        Reply::NullArray => member("null_array").is_some(),
        Reply::Array(replies) => all("array", replies),
        Reply::Set(replies) => all("set", replies),
        Reply::Push(replies) => all("push", replies),
        Reply::Map(members) => pairs("map", members),
        Reply::Attributed(members, value) => {
            pairs("attribute", members) && member("value").is_some_and(|json| same_reply(value, json))
        }
        _ => false,
    }
}

/// The reply that the JSON says: of the kinds that vectors with `encode_only` have.
pub(crate) fn reply_of(json: &Json) -> Reply {
    let (kind, inner) = json.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "simple" => Reply::Simple(content(inner)),
        "bulk" => Reply::Bulk(content(inner)),
        "error" => Reply::Error(content(inner)),
        "int" => Reply::Int(inner.as_str().unwrap().parse().unwrap()),
        "array" => Reply::Array(elements(inner).into_iter().map(reply_of).collect()),
        "map" => Reply::Map(
            elements(inner).into_iter().map(|pair| (reply_of(&pair[0]), reply_of(&pair[1]))).collect(),
        ),
        other => panic!("no reply: {other}"),
    }
}

/// A value `depth` levels down.
fn same_nest(mut reply: &Reply, kind: &str, depth: u64, inner: &Json) -> bool {
    for _ in 0..depth {
        reply = match (kind, reply) {
            ("array", Reply::Array(elements)) | ("set", Reply::Set(elements)) if elements.len() == 1 => {
                &elements[0]
            }
            ("map_value", Reply::Map(pairs))
                if pairs.len() == 1 && pairs[0].0 == Reply::Bulk(b"k".to_vec()) =>
            {
                &pairs[0].1
            }
            ("map_key", Reply::Map(pairs)) if pairs.len() == 1 && pairs[0].1 == Reply::Null => &pairs[0].0,
            _ => return false,
        };
    }
    same_reply(reply, inner)
}

impl ReplyVisitor for Tree {
    fn text(&mut self, kind: Text, offset: usize, bytes: &[u8]) {
        let code = match kind {
            Text::Simple => 0,
            Text::Error => 1,
            Text::Bulk => 2,
            Text::BigNumber => 3,
            Text::Verbatim(format) => 4 + format[0],
        };
        put(&mut self.calls, code, offset, bytes);
        self.texts.push((offset, bytes.to_vec()));
        self.builder.text(kind, offset, bytes);
    }
    fn int(&mut self, value: i64) {
        put(&mut self.calls, 0xF0, 0, &value.to_be_bytes());
        self.builder.int(value);
    }
    fn double(&mut self, value: f64) {
        put(&mut self.calls, 0xF1, 0, &value.to_be_bytes());
        self.builder.double(value);
    }
    fn boolean(&mut self, value: bool) {
        put(&mut self.calls, 0xF2, usize::from(value), &[]);
        self.builder.boolean(value);
    }
    fn null(&mut self, array: bool) {
        put(&mut self.calls, 0xF3, usize::from(array), &[]);
        self.builder.null(array);
    }
    fn open(&mut self, kind: Aggregate, len: Option<u32>) {
        put(&mut self.calls, 0xF4 + kind as u8, len.map_or(usize::MAX, |len| len as usize), &[]);
        self.builder.open(kind, len);
    }
    fn close(&mut self) {
        put(&mut self.calls, 0xFA, 0, &[]);
        self.builder.close();
    }
    fn open_text(&mut self) {
        put(&mut self.calls, 0xFB, 0, &[]);
        self.builder.open_text();
    }
}
