//! Owns the choice of the encoding, and what a client makes of a server's frames: replies and pushes with their
//! channels, slices put together. Does not own the encodings themselves, nor sockets: an event loop of one's own can
//! stand on these two types.

use std::collections::HashMap;
use std::sync::Arc;

use weft_protocol::outcome::{Malformed, Outcome, WireError};
use weft_protocol::reply::ReplyBuilder;
use weft_protocol::request::{Arguments, Texts};
use weft_protocol::respb::reply::ReplyKind;
use weft_protocol::respb::{Control, Mode, RequestWriter};
use weft_protocol::{Limits, Reply, resp, respb, table};

use crate::config::{CAPABILITY_FRAGMENT, Config, Protocol};
use crate::error::{Error, Result};
use crate::handshake::RespbInfo;
use crate::http::{self, Lines};

/// Writes requests.
#[derive(Clone, Debug)]
pub struct Encoder {
    protocol: Protocol,
    /// The server's command table has every opcode that ours has.
    typed: bool,
    frame_bytes_max: u32,
    /// What each request of HTTP says.
    lines: Option<Arc<Lines>>,
}

impl Encoder {
    /// An encoder for a server of which nothing is known, or that has our table. One for HTTP has nobody's login.
    pub fn new(protocol: Protocol, limits: &Limits) -> Self {
        Encoder::of(&Config { protocol, limits: *limits, ..Config::default() })
    }
    /// The same for the server and the login of a configuration.
    pub(crate) fn of(config: &Config) -> Self {
        let lines = (config.protocol == Protocol::Http).then(|| Arc::new(Lines::new(config)));
        Encoder {
            protocol: config.protocol,
            typed: true,
            frame_bytes_max: config.limits.frame_bytes_max,
            lines,
        }
    }
    /// The same, over HTTP with replies in JSON.
    pub(crate) fn in_json(mut self) -> Self {
        self.lines = self.lines.map(|lines| Arc::new(Lines::clone(&lines).in_json()));
        self
    }

    /// What the server announced. Without the profile *Typed*, or with a table that lacks something of ours, all goes
    /// as ARGV (section 13.2).
    pub fn set_server(&mut self, respb: &RespbInfo) {
        let table = &respb.table;
        self.typed = respb.has("typed")
            && table::is_shared(table.name.as_bytes(), table.version, table.hash.as_bytes());
    }

    /// Appends a command, its name first; `channel` counts over RESPB only. Nothing is appended on an error.
    pub fn encode<T: AsRef<[u8]>>(&self, channel: u16, args: &[T], out: &mut Vec<u8>) -> Result<()> {
        if args.is_empty() {
            return Err(Error::Config("a command needs a name".into()));
        }
        // Each argument costs at most 14 bytes besides its own, in whichever protocol.
        let bytes = args.iter().map(|arg| arg.as_ref().len() + 14).sum::<usize>();
        if bytes > self.frame_bytes_max as usize {
            return Err(Error::Config(format!("the command is over {} bytes", self.frame_bytes_max)));
        }
        self.arguments(channel, &Texts(args), out);
        Ok(())
    }

    /// The same from arguments of any kind, of which there is at least one; their size is the caller's to bound.
    pub fn arguments(&self, channel: u16, args: &(impl Arguments + ?Sized), out: &mut Vec<u8>) {
        match self.protocol {
            Protocol::Resp2 | Protocol::Resp3 => resp::encode::request(None, args, out),
            Protocol::Respb if self.typed => {
                RequestWriter::new(out, channel).arguments(args, Mode::Fold);
            }
            Protocol::Respb => RequestWriter::new(out, channel).argv(args),
            Protocol::Http => self.lines.iter().for_each(|lines| lines.command(args, out)),
        }
    }

    /// HTTP: appends the request for a body of commands, `[["GET","k"],…]`.
    pub fn pipeline(&self, body: &[u8], out: &mut Vec<u8>) {
        self.lines.iter().for_each(|lines| lines.pipeline(body, out));
    }
    /// HTTP: appends a command as it stands in such a body.
    pub fn pipeline_part<T: AsRef<[u8]>>(args: &[T], out: &mut Vec<u8>) {
        http::array(args, out);
    }
}

/// What a server sent, as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// The answer to a request. `wire_bytes` is what it took from the credit of its channel.
    Reply {
        /// Its channel; 0 over RESP.
        channel: u16,
        /// The answer.
        reply: Reply,
        /// Its length on the wire.
        wire_bytes: usize,
    },
    /// Something that answers nothing: RESP3's and RESPB's pushes.
    Push {
        /// Its channel; 0 over RESP.
        channel: u16,
        /// A [`Reply::Push`].
        reply: Reply,
        /// Its length on the wire.
        wire_bytes: usize,
    },
    /// RESPB: a slice that is not the last of its frame. What it took on the wire is not part of the frame's own
    /// `wire_bytes`.
    Slice {
        /// Its channel.
        channel: u16,
        /// Its length on the wire.
        wire_bytes: usize,
    },
    /// RESPB: the channel ends.
    Close {
        /// Which.
        channel: u16,
        /// Why, as a number.
        code: u16,
        /// Why, in words.
        reason: String,
    },
    /// RESPB: the connection ends. Replies may still come; what has none at its clean end did not run (section 8.5).
    GoAway {
        /// Why, as a number.
        code: u16,
        /// Why, in words.
        reason: String,
    },
}

/// Reads what a server sends, one frame after the other.
#[derive(Debug)]
pub struct Decoder {
    frames: Frames,
    builder: ReplyBuilder,
    limits: Limits,
    /// Whether FRAGMENT was announced: without it a slice is of the wrong direction (section 3.2).
    has_slices: bool,
}

#[derive(Debug)]
enum Frames {
    Resp(Box<resp::ReplyDecoder>),
    Respb(Box<respb::ReplyDecoder>, Slices),
    Http,
}

/// Slices that have come of a frame, for each channel with one under way. Each is at most `frame_bytes_max`.
type Slices = HashMap<u16, Vec<u8>>;

impl Decoder {
    /// A decoder at the start of a frame. `capabilities` are those that HELLO announces.
    pub fn new(protocol: Protocol, limits: Limits, capabilities: u32) -> Self {
        let frames = match protocol {
            Protocol::Resp2 | Protocol::Resp3 => Frames::Resp(Box::new(resp::ReplyDecoder::new(limits))),
            Protocol::Respb => Frames::Respb(Box::new(respb::ReplyDecoder::new(limits)), HashMap::new()),
            Protocol::Http => Frames::Http,
        };
        let has_slices = capabilities & CAPABILITY_FRAGMENT != 0;
        Decoder { frames, builder: ReplyBuilder::new(), limits, has_slices }
    }

    /// Reads the frame at the start of `input`: how many bytes are used up, and what came of them; nothing for a frame
    /// that is to be ignored. `None` when the frame is not whole: then the same
    /// bytes are given again, with more behind them.
    pub fn decode(&mut self, input: &[u8]) -> Result<Option<(usize, Option<Incoming>)>, WireError> {
        if input.is_empty() {
            return Ok(None);
        }
        match &mut self.frames {
            Frames::Resp(decoder) => match decoder.decode(input, &mut self.builder) {
                Outcome::Incomplete { .. } => Ok(None),
                Outcome::Invalid(error) => Err(error),
                Outcome::Complete(frame) => {
                    Ok(Some((frame.len, take(&mut self.builder, 0, frame.len, frame.push))))
                }
            },
            Frames::Http => {
                let Some(answer) = http::answer(input, self.limits.frame_bytes_max as usize)? else {
                    return Ok(None);
                };
                let reply = if answer.is_resp2 {
                    whole(&answer.body, self.limits)?
                } else {
                    Reply::Error(http::error_text(&answer.body))
                };
                let incoming = Incoming::Reply { channel: 0, reply, wire_bytes: answer.len };
                Ok(Some((answer.len, Some(incoming))))
            }
            Frames::Respb(decoder, slices) => match decoder.decode(input, &mut self.builder) {
                Outcome::Incomplete { .. } => Ok(None),
                Outcome::Invalid(error) => Err(error),
                Outcome::Complete(frame) => {
                    let (channel, len) = (frame.channel, frame.len);
                    let incoming = match frame.kind {
                        ReplyKind::Reply | ReplyKind::Push if slices.contains_key(&channel) => {
                            return Err(BAD_SLICES);
                        }
                        ReplyKind::Reply => take(&mut self.builder, channel, len, false),
                        ReplyKind::Push => take(&mut self.builder, channel, len, true),
                        ReplyKind::Control(Control::Close { code, reason }) => {
                            slices.remove(&channel);
                            let reason = String::from_utf8_lossy(reason).into_owned();
                            Some(Incoming::Close { channel, code, reason })
                        }
                        ReplyKind::Control(Control::Goaway { code, reason }) => {
                            let reason = String::from_utf8_lossy(reason).into_owned();
                            Some(Incoming::GoAway { code, reason })
                        }
                        ReplyKind::Control(Control::Fragment { .. }) if !self.has_slices => {
                            return Err(NOT_ANNOUNCED);
                        }
                        ReplyKind::Control(Control::Fragment { last, slice }) => {
                            add_slice(slices, channel, slice, &self.limits)?;
                            if last {
                                assemble(slices, channel, len, self.limits)?
                            } else {
                                Some(Incoming::Slice { channel, wire_bytes: len })
                            }
                        }
                        ReplyKind::Control(_) | ReplyKind::Unknown { .. } => None,
                    };
                    Ok(Some((len, incoming)))
                }
            },
        }
    }
}

impl Decoder {
    /// Whether the stream may end here, behind what has been decoded: in the midst of slices it is no clean end.
    pub(crate) fn is_between_frames(&self) -> bool {
        match &self.frames {
            Frames::Resp(_) | Frames::Http => true,
            Frames::Respb(_, slices) => slices.is_empty(),
        }
    }
}

/// A slice for who has not announced that he puts them together (section 3.2).
const NOT_ANNOUNCED: WireError = WireError { kind: Malformed::WrongDirection, offset: 0 };

/// The reply in RESP2 that a body is.
fn whole(body: &[u8], limits: Limits) -> Result<Reply, WireError> {
    let mut builder = ReplyBuilder::new();
    match resp::ReplyDecoder::new(limits).decode(body, &mut builder) {
        Outcome::Complete(frame) if frame.len == body.len() && !frame.push => builder.take().ok_or(NO_REPLY),
        Outcome::Invalid(error) => Err(error),
        _ => Err(NO_REPLY),
    }
}

/// A body that is more or less than a reply.
const NO_REPLY: WireError = WireError { kind: Malformed::UnknownType, offset: 0 };

/// Slices that do not make one whole frame of their channel (section 9.1).
const BAD_SLICES: WireError = WireError { kind: Malformed::BadControl, offset: 8 };

fn take(builder: &mut ReplyBuilder, channel: u16, wire_bytes: usize, push: bool) -> Option<Incoming> {
    let reply = builder.take()?;
    Some(if push {
        Incoming::Push { channel, reply, wire_bytes }
    } else {
        Incoming::Reply { channel, reply, wire_bytes }
    })
}

fn add_slice(slices: &mut Slices, channel: u16, bytes: &[u8], limits: &Limits) -> Result<(), WireError> {
    let frame = slices.entry(channel).or_default();
    if bytes.len() > (limits.frame_bytes_max as usize).saturating_sub(frame.len()) {
        return Err(BAD_SLICES);
    }
    frame.extend_from_slice(bytes);
    Ok(())
}

fn assemble(
    slices: &mut Slices,
    channel: u16,
    wire_bytes: usize,
    limits: Limits,
) -> Result<Option<Incoming>, WireError> {
    let Some(slices) = slices.remove(&channel) else { return Err(BAD_SLICES) };
    let mut builder = ReplyBuilder::new();
    let push = match respb::ReplyDecoder::new(limits).decode(&slices, &mut builder) {
        Outcome::Complete(frame) if frame.len == slices.len() && frame.channel == channel => {
            match frame.kind {
                ReplyKind::Reply => false,
                ReplyKind::Push => true,
                ReplyKind::Control(_) | ReplyKind::Unknown { .. } => return Err(BAD_SLICES),
            }
        }
        _ => return Err(BAD_SLICES),
    };
    Ok(take(&mut builder, channel, wire_bytes, push))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::TableInfo;

    fn reply(channel: u16, value: &Reply) -> Vec<u8> {
        let mut out = Vec::new();
        value.visit(&mut respb::ReplyWriter::new(&mut out, channel));
        out
    }

    fn fragment(channel: u16, last: bool, slice: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Control::Fragment { last, slice }.encode(channel, &mut out);
        out
    }

    fn decode_all(input: &[u8], limits: Limits) -> Result<Vec<Incoming>, WireError> {
        let mut decoder = Decoder::new(Protocol::Respb, limits, CAPABILITY_FRAGMENT);
        let (mut all, mut at, mut end) = (Vec::new(), 0, 0);
        while end < input.len() {
            end += 1;
            while let Some((len, incoming)) = decoder.decode(&input[at..end])? {
                at += len;
                all.extend(incoming);
            }
        }
        assert_eq!(at, end, "bytes are left over");
        Ok(all)
    }

    #[test]
    fn slices_of_two_channels_come_together() {
        let one = Reply::Bulk(vec![b'x'; 1000]);
        let two = Reply::Array(vec![Reply::Int(1), Reply::Bulk(vec![b'y'; 500])]);
        let (a, b) = (reply(1, &one), reply(2, &two));
        let mut wire = Vec::new();
        wire.extend(fragment(1, false, &a[..300]));
        wire.extend(fragment(2, false, &b[..1]));
        wire.extend(reply(3, &Reply::Null));
        wire.extend(fragment(1, false, &[]));
        wire.extend(fragment(2, true, &b[1..]));
        wire.extend(fragment(1, true, &a[300..]));
        let all = decode_all(&wire, Limits::DEFAULT).unwrap();
        assert_eq!(
            all,
            [
                Incoming::Slice { channel: 1, wire_bytes: 309 },
                Incoming::Slice { channel: 2, wire_bytes: 10 },
                Incoming::Reply { channel: 3, reply: Reply::Null, wire_bytes: 4 },
                Incoming::Slice { channel: 1, wire_bytes: 9 },
                Incoming::Reply { channel: 2, reply: two, wire_bytes: b.len() - 1 + 9 },
                Incoming::Reply { channel: 1, reply: one, wire_bytes: a.len() - 300 + 9 },
            ]
        );
    }

    #[test]
    fn slices_that_make_no_frame_are_wire_errors() {
        let whole = reply(1, &Reply::Bulk(vec![b'x'; 300]));
        let mut close = Vec::new();
        Control::Close { code: 0, reason: &[] }.encode(1, &mut close);
        for wire in [
            fragment(1, true, &whole[..50]),
            fragment(2, true, &whole),
            [fragment(1, false, &whole), fragment(1, true, b"more")].concat(),
            [fragment(1, false, &whole[..50]), whole.clone()].concat(),
            fragment(1, true, &close),
        ] {
            assert_eq!(decode_all(&wire, Limits::DEFAULT), Err(BAD_SLICES));
        }
        let small = Limits { frame_bytes_max: 307, ..Limits::DEFAULT };
        let sliced = [fragment(1, false, &whole[..200]), fragment(1, true, &whole[200..])].concat();
        assert_eq!(decode_all(&sliced, small), Err(BAD_SLICES));
        let enough = Limits { frame_bytes_max: 308, ..Limits::DEFAULT };
        assert_eq!(decode_all(&sliced, enough).unwrap().len(), 2);
    }

    #[test]
    fn close_voids_slices() {
        let mut wire = fragment(1, false, b"\x80");
        Control::Close { code: 1, reason: b"full" }.encode(1, &mut wire);
        wire.extend(reply(1, &Reply::Int(5)));
        let all = decode_all(&wire, Limits::DEFAULT).unwrap();
        assert_eq!(all[1], Incoming::Close { channel: 1, code: 1, reason: "full".into() });
        assert!(matches!(all[2], Incoming::Reply { reply: Reply::Int(5), .. }));
    }

    #[test]
    fn what_is_too_large_or_empty_is_not_encoded() {
        let limits = Limits { frame_bytes_max: 100, ..Limits::DEFAULT };
        for protocol in [Protocol::Resp2, Protocol::Resp3, Protocol::Respb] {
            let (encoder, mut out) = (Encoder::new(protocol, &limits), Vec::new());
            assert!(encoder.encode::<&str>(0, &[], &mut out).is_err());
            assert!(encoder.encode(0, &["GET", &"k".repeat(70)], &mut out).is_err());
            assert!(out.is_empty());
            encoder.encode(0, &["GET", &"k".repeat(69)], &mut out).unwrap();
            assert!(out.len() <= 100);
        }
    }

    #[test]
    fn a_server_with_another_table_is_sent_arguments() {
        let ours = TableInfo {
            name: table::TABLE_NAME.into(),
            version: table::TABLE_VERSION.into(),
            hash: table::TABLE_HASH.into(),
        };
        let typed = vec!["channels".to_owned(), "typed".to_owned()];
        let info = |profiles: &[String], table: TableInfo| RespbInfo {
            profiles: profiles.to_vec(),
            table,
            ..RespbInfo::default()
        };
        let later = TableInfo { version: ours.version + 1, hash: "later".into(), ..ours.clone() };
        let cases = [
            (info(&typed, ours.clone()), true),
            (info(&typed, later), true),
            (info(&typed, TableInfo { hash: "0".into(), ..ours.clone() }), false),
            (info(&typed, TableInfo { name: "fork".into(), ..ours.clone() }), false),
            (info(&typed, TableInfo { version: ours.version - 1, ..ours.clone() }), false),
            (info(&typed[..1], ours), false),
        ];
        for (server, is_typed) in cases {
            let mut encoder = Encoder::new(Protocol::Respb, &Limits::DEFAULT);
            encoder.set_server(&server);
            let mut out = Vec::new();
            encoder.encode(3, &["get", "k"], &mut out).unwrap();
            let argv: &[u8] = b"\xf0\x01\0\x03\0\0\0\x0c\0\0\0\x03get\0\0\0\x01k";
            assert_eq!(out, if is_typed { b"\0\0\0\x03\0\x01k" } else { argv }, "{server:?}");
        }
    }
}
