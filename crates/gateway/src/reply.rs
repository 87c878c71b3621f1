//! Owns: a reply that came as RESP, on any wire. Does not own: the wires.

use weft_engine::error::{Error, ErrorCode};
use weft_engine::reply::{Protocol, ReplySink};
pub(crate) use weft_protocol::reply::Passed;
use weft_protocol::reply::{Aggregate, Reply, ReplyBuilder, ReplyVisitor, Text};
use weft_protocol::resp::ReplyDecoder;
use weft_protocol::{Limits, Outcome};

/// What is refused of a server's reply.
pub(crate) const LIMITS: Limits = Limits::OF_REPLIES;

/// Writes one whole reply. `resp2`: it came over RESP2.
pub fn write(bytes: &[u8], resp2: bool, sink: &mut ReplySink<'_>) {
    match sink.wire().protocol {
        Protocol::Resp2 if resp2 => return sink.whole_reply(bytes),
        Protocol::Resp3 if !resp2 => return sink.whole_reply(bytes),
        _ => {}
    }
    let mark = sink.mark();
    let mut passing = Passing { sink, is_odd: false };
    let outcome = ReplyDecoder::new(LIMITS).decode(bytes, &mut passing);
    let is_odd = passing.is_odd;
    if is_odd && matches!(outcome, Outcome::Complete(_)) {
        sink.rollback(mark);
        let mut builder = ReplyBuilder::new();
        // It is whole, as has just been seen.
        let _ = ReplyDecoder::new(LIMITS).decode(bytes, &mut builder);
        write_tree(&builder.take().unwrap_or(Reply::Null), sink);
    }
}

/// An error from its line: with its kind, where there is one of that prefix.
#[must_use]
pub fn error(line: &[u8]) -> Error {
    let line = String::from_utf8_lossy(line).into_owned();
    let (prefix, text) = line.split_once(' ').unwrap_or((&line, ""));
    match ErrorCode::ALL.iter().find(|code| code.prefix() == prefix) {
        Some(code) => Error::new(*code, text.to_string()),
        None => Error::with_prefix(prefix, text.to_string()),
    }
}

/// Keys that a push says have changed, or all of them; nothing if it is another push.
pub(crate) fn changed(push: &[u8]) -> Option<Changed> {
    let mut builder = ReplyBuilder::new();
    let outcome = ReplyDecoder::new(LIMITS).decode(push, &mut builder);
    let (Outcome::Complete(_), Some(Reply::Push(parts))) = (outcome, builder.take()) else { return None };
    match parts.as_slice() {
        [Reply::Bulk(kind), Reply::Array(names)] if kind == b"invalidate" => {
            let names = names.iter().filter_map(|name| match name {
                Reply::Bulk(name) => Some(name.as_slice().into()),
                _ => None,
            });
            Some(Changed::Keys(names.collect()))
        }
        [Reply::Bulk(kind), _] if kind == b"invalidate" => Some(Changed::All),
        _ => None,
    }
}

/// What has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Keys(Vec<Box<[u8]>>),
    All,
}

/// Writes values as they come. What a sink has no call for is *odd*: streams, and attributes.
struct Passing<'s, 'o> {
    sink: &'s mut ReplySink<'o>,
    is_odd: bool,
}

impl ReplyVisitor for Passing<'_, '_> {
    fn text(&mut self, kind: Text, _: usize, bytes: &[u8]) {
        if !self.is_odd {
            write_text(kind, bytes, self.sink);
        }
    }
    fn int(&mut self, value: i64) {
        if !self.is_odd {
            self.sink.int(value);
        }
    }
    fn double(&mut self, value: f64) {
        if !self.is_odd {
            self.sink.double(value);
        }
    }
    fn boolean(&mut self, value: bool) {
        if !self.is_odd {
            self.sink.bool(value);
        }
    }
    fn null(&mut self, array: bool) {
        if !self.is_odd {
            write_null(array, self.sink);
        }
    }
    fn open(&mut self, kind: Aggregate, len: Option<u32>) {
        match (kind, len) {
            (Aggregate::Attribute, _) | (_, None) => self.is_odd = true,
            (kind, Some(len)) if !self.is_odd => open(kind, len as usize, self.sink),
            _ => {}
        }
    }
    fn close(&mut self) {}
    fn open_text(&mut self) {
        self.is_odd = true;
    }
}

fn write_text(kind: Text, bytes: &[u8], sink: &mut ReplySink<'_>) {
    match kind {
        Text::Bulk => sink.bulk(bytes),
        Text::Simple => sink.simple(&String::from_utf8_lossy(bytes)),
        Text::Error => sink.error(&error(bytes)),
        Text::BigNumber => sink.big_number(&String::from_utf8_lossy(bytes)),
        Text::Verbatim(format) => sink.verbatim(format, bytes),
    }
}

fn write_null(array: bool, sink: &mut ReplySink<'_>) {
    if array { sink.null_array() } else { sink.null() }
}

fn open(kind: Aggregate, len: usize, sink: &mut ReplySink<'_>) {
    match kind {
        Aggregate::Map => sink.map(len),
        Aggregate::Set => sink.set(len),
        // A reply is no push.
        Aggregate::Array | Aggregate::Push | Aggregate::Attribute => sink.array(len),
    }
}

/// Deep as the limits allow.
fn write_tree(reply: &Reply, sink: &mut ReplySink<'_>) {
    match reply {
        Reply::Simple(text) => write_text(Text::Simple, text, sink),
        Reply::Error(text) => write_text(Text::Error, text, sink),
        Reply::Bulk(text) => write_text(Text::Bulk, text, sink),
        Reply::BigNumber(text) => write_text(Text::BigNumber, text, sink),
        Reply::Verbatim(format, text) => write_text(Text::Verbatim(*format), text, sink),
        Reply::Int(value) => sink.int(*value),
        Reply::Double(value) => sink.double(*value),
        Reply::Bool(value) => sink.bool(*value),
        Reply::NullArray => write_null(true, sink),
        Reply::Array(list) | Reply::Push(list) => write_list(Aggregate::Array, list, sink),
        Reply::Set(list) => write_list(Aggregate::Set, list, sink),
        Reply::Map(pairs) => {
            sink.map(pairs.len());
            for (key, value) in pairs {
                write_tree(key, sink);
                write_tree(value, sink);
            }
        }
        Reply::Attributed(_, value) => write_tree(value, sink),
        // The list of kinds may grow.
        _ => write_null(false, sink),
    }
}

fn write_list(kind: Aggregate, list: &[Reply], sink: &mut ReplySink<'_>) {
    open(kind, list.len(), sink);
    list.iter().for_each(|value| write_tree(value, sink));
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_engine::reply::{JsonForm, Output, Wire};

    fn written(bytes: &[u8], resp2: bool, protocol: Protocol) -> Vec<u8> {
        let mut output = Output::default();
        write(bytes, resp2, &mut ReplySink::new(&mut output, Wire { protocol, channel: 0 }));
        output.bytes
    }

    #[test]
    fn a_reply_for_its_own_wire_is_passed_on_as_it_is() {
        for bytes in [&b"%1\r\n+a\r\n,0.10000000000000001\r\n"[..], b"_\r\n", b"|1\r\n+k\r\n+v\r\n:1\r\n"] {
            assert_eq!(written(bytes, false, Protocol::Resp3), bytes);
        }
        assert_eq!(written(b"*-1\r\n", true, Protocol::Resp2), b"*-1\r\n");
    }

    #[test]
    fn respb_has_what_resp3_has() {
        let as_respb = |write: &dyn Fn(&mut ReplySink<'_>)| {
            let mut output = Output::default();
            write(&mut ReplySink::new(&mut output, Wire { protocol: Protocol::Respb, channel: 0 }));
            output.bytes
        };
        let map = as_respb(&|sink| {
            sink.map(1);
            sink.bulk(b"a");
            sink.double(1.5);
        });
        assert_eq!(written(b"%1\r\n$1\r\na\r\n,1.5\r\n", false, Protocol::Respb), map);
        // What the sink has no call for says the same without it.
        assert_eq!(written(b"|1\r\n+k\r\n+v\r\n%1\r\n$1\r\na\r\n,1.5\r\n", false, Protocol::Respb), map);
        assert_eq!(written(b"%?\r\n$1\r\na\r\n,1.5\r\n.\r\n", false, Protocol::Respb), map);
        let error = as_respb(&|sink| sink.error(&Error::with_prefix("ODD", "text")));
        assert_eq!(written(b"-ODD text\r\n", false, Protocol::Respb), error);
    }

    #[test]
    fn what_has_changed_is_read() {
        let keys = changed(b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n").unwrap();
        assert_eq!(keys, Changed::Keys(vec![b"a"[..].into(), b"b"[..].into()]));
        assert_eq!(changed(b">2\r\n$10\r\ninvalidate\r\n_\r\n"), Some(Changed::All));
        assert_eq!(changed(b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"), None);
    }

    #[test]
    fn an_error_has_its_kind() {
        assert_eq!(error(b"WRONGTYPE no").code, ErrorCode::WrongType);
        assert_eq!(error(b"ODD text").line(), "ODD text");
        assert_eq!(error(b"ERR text").line(), "ERR text");
        let json = Protocol::Json(JsonForm::Upstash);
        assert!(!written(b"-ERR no\r\n", true, json).is_empty());
    }
}
