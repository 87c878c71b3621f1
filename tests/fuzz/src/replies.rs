//! Targets for the decoders of replies: the first byte chooses the limits, the rest is a stream.

use weft_protocol::reply::ReplyBuilder;
use weft_protocol::{Aggregate, Limits, Outcome, Reply, ReplyVisitor, Text, resp, respb};

use super::pieces::{Recording, Subject, limits, read_all_ways};

/// One call of a visitor.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// `text`, with its offset.
    Text(Text, usize, Vec<u8>),
    /// `int`
    Int(i64),
    /// `double`, as its bits.
    Double(u64),
    /// `boolean`
    Bool(bool),
    /// `null`
    Null(bool),
    /// `open`
    Open(Aggregate, Option<u32>),
    /// `close`
    Close,
    /// `open_text`
    OpenText,
}

/// The calls of one reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calls(Vec<Call>);

impl Recording for Calls {
    fn len(&self) -> usize {
        self.0.len()
    }
    fn starts_with(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl ReplyVisitor for Calls {
    fn text(&mut self, kind: Text, offset: usize, bytes: &[u8]) {
        self.0.push(Call::Text(kind, offset, bytes.to_vec()));
    }
    fn int(&mut self, value: i64) {
        self.0.push(Call::Int(value));
    }
    fn double(&mut self, value: f64) {
        self.0.push(Call::Double(value.to_bits()));
    }
    fn boolean(&mut self, value: bool) {
        self.0.push(Call::Bool(value));
    }
    fn null(&mut self, array: bool) {
        self.0.push(Call::Null(array));
    }
    fn open(&mut self, kind: Aggregate, len: Option<u32>) {
        self.0.push(Call::Open(kind, len));
    }
    fn close(&mut self) {
        self.0.push(Call::Close);
    }
    fn open_text(&mut self) {
        self.0.push(Call::OpenText);
    }
}

impl Calls {
    /// Makes the calls again.
    fn replay(&self, visitor: &mut impl ReplyVisitor) {
        for call in &self.0 {
            match call {
                Call::Text(kind, offset, bytes) => visitor.text(*kind, *offset, bytes),
                Call::Int(value) => visitor.int(*value),
                Call::Double(bits) => visitor.double(f64::from_bits(*bits)),
                Call::Bool(value) => visitor.boolean(*value),
                Call::Null(array) => visitor.null(*array),
                Call::Open(kind, len) => visitor.open(*kind, *len),
                Call::Close => visitor.close(),
                Call::OpenText => visitor.open_text(),
            }
        }
    }

    /// Whether lengths come late. Writers leave room for them, which need not be the shortest form.
    fn streamed(&self) -> bool {
        self.0.iter().any(|call| matches!(call, Call::Open(_, None) | Call::OpenText))
    }

    /// The reply as a tree.
    fn tree(&self) -> Reply {
        let mut builder = ReplyBuilder::new();
        self.replay(&mut builder);
        builder.take().expect("the decoder said that the reply is whole")
    }

    /// Texts must stand in the frame where their offsets say; `OK` may have no bytes of its own.
    fn assert_in(&self, frame: &[u8]) {
        for call in &self.0 {
            if let Call::Text(kind, at, bytes) = call
                && !(*kind == Text::Simple && bytes == b"OK")
            {
                assert_eq!(frame.get(*at..at + bytes.len()), Some(&bytes[..]), "offset {at}");
            }
        }
    }
}

struct Resp(resp::ReplyDecoder);

impl Subject for Resp {
    type Recording = Calls;
    type Frame = bool;

    fn decode(&mut self, input: &[u8], into: &mut Calls) -> Outcome<(usize, bool)> {
        match self.0.decode(input, into) {
            Outcome::Complete(frame) => Outcome::Complete((frame.len, frame.push)),
            Outcome::Incomplete { need } => Outcome::Incomplete { need },
            Outcome::Invalid(error) => Outcome::Invalid(error),
        }
    }
}

struct Respb(respb::ReplyDecoder);

impl Subject for Respb {
    type Recording = Calls;
    type Frame = (u16, String);

    fn decode(&mut self, input: &[u8], into: &mut Calls) -> Outcome<(usize, (u16, String))> {
        match self.0.decode(input, into) {
            Outcome::Complete(frame) => {
                Outcome::Complete((frame.len, (frame.channel, format!("{:?}", frame.kind))))
            }
            Outcome::Incomplete { need } => Outcome::Incomplete { need },
            Outcome::Invalid(error) => Outcome::Invalid(error),
        }
    }
}

/// RESP replies: cut anywhere they are the same, and other encodings of what was read give it back.
pub fn resp_reply(data: &[u8]) {
    let Some((choice, input)) = data.split_first() else { return };
    let limits = limits(*choice);
    let read = read_all_ways(|| Resp(resp::ReplyDecoder::new(limits)), input);
    let mut at = 0;
    for (len, _, calls) in &read.frames {
        calls.assert_in(&input[at..at + len]);
        at += len;
        assert_encodings(calls);
    }
}

/// RESPB replies: the same.
pub fn respb_reply(data: &[u8]) {
    let Some((choice, input)) = data.split_first() else { return };
    let limits = limits(*choice);
    let read = read_all_ways(|| Respb(respb::ReplyDecoder::new(limits)), input);
    let mut at = 0;
    for (len, _, calls) in &read.frames {
        calls.assert_in(&input[at..at + len]);
        at += len;
        // Control frames and unknown ones hand out nothing.
        if !calls.0.is_empty() {
            assert_encodings(calls);
        }
    }
}

/// What was handed out, written by each encoder, reads as the same tree; as calls and as a tree it gives the same
/// bytes.
fn assert_encodings(calls: &Calls) {
    let tree = calls.tree();
    // RESP can put attributes before a push, which RESPB cannot say: there a frame is a reply or a push.
    let mut value = &tree;
    while let Reply::Attributed(_, inner) = value {
        value = inner;
    }
    if !matches!((&tree, value), (Reply::Attributed(..), Reply::Push(_))) {
        assert_respb(calls, &tree);
    }
    assert_resp(calls, &tree);
}

fn assert_respb(calls: &Calls, tree: &Reply) {
    let mut bytes = (Vec::new(), Vec::new());
    calls.replay(&mut respb::ReplyWriter::new(&mut bytes.0, 7));
    tree.visit(&mut respb::ReplyWriter::new(&mut bytes.1, 7));
    assert!(bytes.0 == bytes.1 || calls.streamed(), "{:02x?} and {:02x?} of {tree:?}", bytes.0, bytes.1);
    let mut again = Calls::default();
    let outcome = Respb(respb::ReplyDecoder::new(Limits::DEFAULT)).decode(&bytes.0, &mut again);
    assert!(
        matches!(outcome, Outcome::Complete((len, _)) if len == bytes.0.len()),
        "{outcome:?} of {tree:?}"
    );
    assert_eq!(comparable(again.tree(), false), comparable(tree.clone(), false));
}

fn assert_resp(calls: &Calls, tree: &Reply) {
    for version in [resp::Version::Resp2, resp::Version::Resp3] {
        let mut bytes = (Vec::new(), Vec::new());
        calls.replay(&mut resp::ReplyWriter::new(&mut bytes.0, version));
        tree.visit(&mut resp::ReplyWriter::new(&mut bytes.1, version));
        assert_eq!(bytes.0, bytes.1, "{version:?} of the calls, and of {tree:?}");
        let mut again = Calls::default();
        let outcome = Resp(resp::ReplyDecoder::new(Limits::DEFAULT)).decode(&bytes.0, &mut again);
        assert!(
            matches!(outcome, Outcome::Complete((len, _)) if len == bytes.0.len()),
            "{outcome:?} of {tree:?}"
        );
        if version == resp::Version::Resp3 {
            assert_eq!(comparable(again.tree(), true), comparable(tree.clone(), true));
        }
    }
}

/// A tree with what an encoding cannot tell apart made the same: the two nulls, all NaNs, and for RESP3 statuses with a
/// line end, which go as bulks.
fn comparable(reply: Reply, lines: bool) -> String {
    fn fold(reply: Reply, lines: bool) -> Reply {
        let pairs = |pairs: Vec<(Reply, Reply)>| {
            pairs.into_iter().map(|(key, value)| (fold(key, lines), fold(value, lines))).collect()
        };
        let all = |replies: Vec<Reply>| replies.into_iter().map(|reply| fold(reply, lines)).collect();
        match reply {
            Reply::NullArray => Reply::Null,
            Reply::Double(value) if value.is_nan() => Reply::Double(f64::NAN),
            Reply::Simple(text) if lines && text.iter().any(|byte| matches!(byte, b'\r' | b'\n')) => {
                Reply::Bulk(text)
            }
            Reply::Array(replies) => Reply::Array(all(replies)),
            Reply::Set(replies) => Reply::Set(all(replies)),
            Reply::Push(replies) => Reply::Push(all(replies)),
            Reply::Map(map) => Reply::Map(pairs(map)),
            Reply::Attributed(map, value) => Reply::Attributed(pairs(map), Box::new(fold(*value, lines))),
            other => other,
        }
    }
    format!("{:?}", fold(reply, lines))
}
