//! Decoding batches of frames, requests and replies, RESP and RESPB.
//!
//! Owns the loop over frames and what a decoder keeps between calls. The codecs are the protocol crate's; the arrays
//! are [`crate::batch`]'s.

use core::mem::MaybeUninit;

use weft_protocol::respb::Control;
use weft_protocol::respb::frame;
use weft_protocol::respb::reply::ReplyKind;
use weft_protocol::table::{self, Kind, Layout};
use weft_protocol::{Limits, Malformed, Outcome, WireError, resp, respb};

use crate::batch::{Sink, WRONG, rebase};
use crate::errors;
use crate::memory;
use crate::types::{
    Batch, FULL, Frame, INCOMPLETE, INVALID, LimitsC, NO_COMMAND, OK, Protocol, Status, Value, frame_kind,
    kind,
};

/// A codec of the protocol crate, one frame at a time.
trait Codec {
    /// A frame that is whole and of a common kind, in straight code.
    #[inline(always)]
    fn whole<'a>(&mut self, _input: &'a [u8], _sink: &mut Sink<'_>) -> Option<(Frame, &'a [u8])> {
        None
    }

    /// Any frame, and what follows it. The values are in the sink; `first`, `count` and `taken` are the caller's to
    /// fill in.
    fn decode<'a>(&mut self, input: &'a [u8], sink: &mut Sink<'_>) -> Outcome<(Frame, &'a [u8])>;

    /// The channel of the frame at the start of `input`.
    fn channel(_input: &[u8]) -> u16 {
        0
    }
}

/// A frame of which nothing is known but its bytes.
#[inline(always)]
fn plain(input: &[u8], len: usize, kind: u8) -> Frame {
    Frame {
        data: input.as_ptr().cast(),
        len: len as u32,
        first: 0,
        count: 0,
        taken: 0,
        number: 0,
        channel: 0,
        opcode: 0,
        command: NO_COMMAND,
        options: 0,
        kind,
        last: 0,
        reserved: [0; 2],
    }
}

impl Codec for resp::RequestDecoder {
    #[inline(always)]
    fn whole<'a>(&mut self, input: &'a [u8], sink: &mut Sink<'_>) -> Option<(Frame, &'a [u8])> {
        let frame = self.decode_whole(input, sink)?;
        Some((plain(input, frame.len, frame_kind::RESP), frame.rest))
    }

    fn decode<'a>(&mut self, input: &'a [u8], sink: &mut Sink<'_>) -> Outcome<(Frame, &'a [u8])> {
        map(resp::RequestDecoder::decode(self, input, sink), |frame| {
            (plain(input, frame.len, frame_kind::RESP), frame.rest)
        })
    }
}

impl Codec for respb::RequestDecoder {
    #[inline(always)]
    fn whole<'a>(&mut self, input: &'a [u8], sink: &mut Sink<'_>) -> Option<(Frame, &'a [u8])> {
        let found = self.decode_whole(input, sink)?;
        // The straight code knows core commands only.
        let respb::Frame::Core(opcode) = found.frame else { return None };
        let command = table::by_opcode(opcode).map_or(NO_COMMAND, |id| id.0);
        let frame = plain(input, found.len, frame_kind::CORE);
        Some((Frame { channel: found.channel, opcode, command, ..frame }, found.rest))
    }

    fn decode<'a>(&mut self, input: &'a [u8], sink: &mut Sink<'_>) -> Outcome<(Frame, &'a [u8])> {
        map(respb::RequestDecoder::decode(self, input, sink), |found| {
            let (kind, opcode) = match found.frame {
                respb::Frame::Core(opcode) => (frame_kind::CORE, opcode),
                respb::Frame::Module(_) => (frame_kind::MODULE, frame::MODULE),
                respb::Frame::Argv => (frame_kind::ARGV, frame::ARGV),
                respb::Frame::Passthrough => (frame_kind::PASSTHROUGH, frame::PASSTHROUGH),
                respb::Frame::Unknown { opcode } => (frame_kind::UNKNOWN, opcode),
                respb::Frame::Control(control) => {
                    return (control_frame(control, found.channel, input, found.len, sink), found.rest);
                }
            };
            let command = found.frame.command().map_or(NO_COMMAND, |id| id.0);
            let frame = plain(input, found.len, kind);
            (Frame { channel: found.channel, opcode, command, options: sink.options, ..frame }, found.rest)
        })
    }

    fn channel(input: &[u8]) -> u16 {
        channel_of(input)
    }
}

impl Codec for resp::ReplyDecoder {
    fn decode<'a>(&mut self, input: &'a [u8], sink: &mut Sink<'_>) -> Outcome<(Frame, &'a [u8])> {
        map(resp::ReplyDecoder::decode(self, input, sink), |frame| {
            let kind = if frame.push { frame_kind::PUSH } else { frame_kind::REPLY };
            (plain(input, frame.len, kind), &input[frame.len..])
        })
    }
}

impl Codec for respb::ReplyDecoder {
    fn decode<'a>(&mut self, input: &'a [u8], sink: &mut Sink<'_>) -> Outcome<(Frame, &'a [u8])> {
        map(respb::ReplyDecoder::decode(self, input, sink), |found| {
            let rest = &input[found.len..];
            let (kind, opcode) = match found.kind {
                ReplyKind::Reply => (frame_kind::REPLY, opcode_of(input)),
                ReplyKind::Push => (frame_kind::PUSH, opcode_of(input)),
                ReplyKind::Unknown { opcode } => (frame_kind::UNKNOWN, opcode),
                ReplyKind::Control(control) => {
                    return (control_frame(control, found.channel, input, found.len, sink), rest);
                }
            };
            (Frame { channel: found.channel, opcode, ..plain(input, found.len, kind) }, rest)
        })
    }

    fn channel(input: &[u8]) -> u16 {
        channel_of(input)
    }
}

#[inline(always)]
fn map<T, U>(outcome: Outcome<T>, complete: impl FnOnce(T) -> U) -> Outcome<U> {
    match outcome {
        Outcome::Complete(value) => Outcome::Complete(complete(value)),
        Outcome::Incomplete { need } => Outcome::Incomplete { need },
        Outcome::Invalid(error) => Outcome::Invalid(error),
    }
}

fn channel_of(input: &[u8]) -> u16 {
    input.get(2..4).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

fn opcode_of(input: &[u8]) -> u16 {
    input.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes))
}

/// A control frame. What it has of bytes stands at its end and becomes its one value.
fn control_frame(control: Control<'_>, channel: u16, input: &[u8], len: usize, sink: &mut Sink<'_>) -> Frame {
    let mut frame = Frame { channel, opcode: opcode_of(input), ..plain(input, len, frame_kind::IGNORED) };
    let mut bytes = |count: usize| {
        let at = len.saturating_sub(count);
        weft_protocol::ArgVisitor::bytes(sink, at, &input[at..len]);
    };
    match control {
        Control::Close { code, reason } => {
            bytes(reason.len());
            (frame.kind, frame.number) = (frame_kind::CLOSE, u32::from(code));
        }
        Control::Goaway { code, reason } => {
            bytes(reason.len());
            (frame.kind, frame.number) = (frame_kind::GOAWAY, u32::from(code));
        }
        Control::Cancel { sequence } => (frame.kind, frame.number) = (frame_kind::CANCEL, sequence),
        Control::Window { more } => (frame.kind, frame.number) = (frame_kind::WINDOW, more),
        Control::Fragment { last, slice } => {
            bytes(slice.len());
            (frame.kind, frame.last) = (frame_kind::FRAGMENT, u8::from(last));
        }
        Control::Unknown { .. } => {}
    }
    frame
}

/// What a decoder keeps between calls, apart from its codec.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    /// Bytes that were there of the frame that is not whole: no fewer may come. 0 between frames.
    held: usize,
    /// Option bits of that frame.
    options: u16,
    /// No frame was whole yet, and the first one is looked at for what zero bytes would give.
    first: bool,
    /// Number, offset and channel of the error that ended it.
    failed: Option<(u32, u32, u16)>,
}

/// How the loop over the frames ended.
enum End {
    /// There is nothing left.
    Empty,
    /// No room, before a frame or inside one.
    Full { inside: bool },
    /// More bytes are needed.
    Need(usize),
    /// The frame is wrong.
    Wrong(WireError),
}

/// Decodes frames as long as they are of a common kind and fit: a loop with no call in it, so that it keeps its state,
/// and a sink of its own, in registers. Gives what `rest`, `count` and `first` are then.
#[inline(always)]
fn straight<'a, C: Codec>(
    codec: &mut C,
    mut rest: &'a [u8],
    frames: &mut [MaybeUninit<Frame>],
    mut count: usize,
    sink: &mut Sink<'_>,
    mut first: usize,
) -> (&'a [u8], usize, usize) {
    let mut own = Sink { values: &mut *sink.values, len: sink.len, options: 0, base: rest.as_ptr() };
    while let Some(place) = frames.get_mut(count)
        && own.roomy()
        && let Some((frame, behind)) = codec.whole(rest, &mut own)
    {
        place.write(Frame { first: first as u32, count: (own.len - first) as u32, ..frame });
        (rest, first) = (behind, own.len);
        count += 1;
    }
    sink.len = own.len;
    (rest, count, first)
}

/// Decodes a batch.
///
/// # Safety
/// The arrays of `batch` must be what the header says.
unsafe fn run<C: Codec>(codec: &mut C, kept: &mut Kept, input: &[u8], batch: &mut Batch) -> Status {
    // SAFETY: the caller's promise, handed on.
    let Some((frames, values)) = (unsafe { batch.arrays() }) else { return WRONG };
    if input.len() < kept.held {
        return WRONG;
    }
    batch.begin(values);
    if let Some(failed) = kept.failed {
        (batch.error, batch.error_offset, batch.error_channel) = failed;
        return INVALID;
    }
    let resumed = batch.values_len;
    let mut sink = Sink { values, len: resumed, options: kept.options, base: input.as_ptr() };
    let (mut rest, mut count, mut first) = (input, 0, 0);
    let end = loop {
        (rest, count, first) = straight(codec, rest, frames, count, &mut sink, first);
        if count > 0 {
            sink.options = 0;
        }
        if rest.is_empty() {
            break End::Empty;
        }
        let Some(place) = frames.get_mut(count) else { break End::Full { inside: false } };
        if !sink.roomy() {
            break End::Full { inside: count == 0 && kept.held > 0 };
        }
        sink.base = rest.as_ptr();
        let (frame, behind) = match codec.decode(rest, &mut sink) {
            Outcome::Complete(found) => found,
            Outcome::Incomplete { need } if need <= rest.len() => break End::Full { inside: true },
            Outcome::Incomplete { need } => break End::Need(need),
            Outcome::Invalid(error) => break End::Wrong(error),
        };
        place.write(Frame { first: first as u32, count: (sink.len - first) as u32, ..frame });
        (rest, first, sink.options) = (behind, sink.len, 0);
        count += 1;
    };
    (batch.frames_len, batch.values_len, batch.partial) = (count, sink.len, first);
    batch.consumed = input.len() - rest.len();
    if resumed > 0 && (count > 0 || matches!(end, End::Full { .. })) {
        // SAFETY: the values up to the `values_len` of the call before were written by it.
        unsafe { rebase(sink.values, resumed, input) };
    }
    if count > 0
        && let Some(place) = frames.first_mut()
    {
        // SAFETY: `count` frames have been written.
        let frame = unsafe { place.assume_init_mut() };
        frame.taken = batch.taken as u32;
        batch.taken = 0;
        // SAFETY: the values of a whole frame have been written.
        if kept.first && unsafe { is_zero_stream(frame, sink.values) } {
            (batch.frames_len, batch.values_len, batch.partial, batch.consumed) = (0, 0, 0, 0);
            let error = WireError { kind: Malformed::ZeroStream, offset: frame::HEADER_LEN };
            return fail(kept, batch, error, 0);
        }
        kept.first = false;
    }
    (kept.held, kept.options) = match end {
        End::Need(_) | End::Full { inside: true } => (rest.len(), sink.options),
        _ => (0, 0),
    };
    match end {
        End::Empty => OK,
        End::Full { .. } => FULL,
        End::Need(need) => {
            batch.need = need;
            INCOMPLETE
        }
        End::Wrong(error) => {
            batch.values_len = batch.partial;
            fail(kept, batch, error, C::channel(rest))
        }
    }
}

#[cold]
fn fail(kept: &mut Kept, batch: &mut Batch, error: WireError, channel: u16) -> Status {
    let failed = (errors::number(error.kind), error.offset as u32, channel);
    (kept.held, kept.failed) = (0, Some(failed));
    (batch.error, batch.error_offset, batch.error_channel) = failed;
    INVALID
}

/// Whether a frame is one that a stream of zero bytes gives: a command on channel 0 whose first field is an empty key.
///
/// # Safety
/// The values of the frame must have been written.
unsafe fn is_zero_stream(frame: &Frame, values: &[MaybeUninit<Value>]) -> bool {
    if frame.kind != frame_kind::CORE || frame.channel != 0 {
        return false;
    }
    let Some(Layout::Fields { fields: [field, ..], .. }) =
        table::by_opcode(frame.opcode).map(|id| id.spec().layout)
    else {
        return false;
    };
    let Some(value) = values.get(frame.first as usize).filter(|_| frame.count > 0) else { return false };
    // SAFETY: written, as the caller promises.
    let value = unsafe { value.assume_init_ref() };
    field.key && matches!(field.kind, Kind::Str16) && value.kind == kind::BYTES && value.len == 0
}

/// The codec of a decoder of requests.
#[derive(Debug)]
enum RequestCodec {
    Resp(resp::RequestDecoder),
    Respb(respb::RequestDecoder),
}

/// `respb_request_decoder`
#[derive(Debug)]
pub struct RequestDecoder {
    codec: RequestCodec,
    kept: Kept,
}

/// The codec of a decoder of replies.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "both are large, and it stays where it is")]
enum ReplyCodec {
    Resp(resp::ReplyDecoder),
    Respb(respb::ReplyDecoder),
}

/// `respb_reply_decoder`
#[derive(Debug)]
pub struct ReplyDecoder {
    codec: ReplyCodec,
    kept: Kept,
}

/// 64-bit words that the header gives a decoder of requests.
pub const REQUEST_DECODER_WORDS: usize = 32;
/// 64-bit words that the header gives a decoder of replies.
pub const REPLY_DECODER_WORDS: usize = 160;
const _: () = assert!(size_of::<RequestDecoder>() <= REQUEST_DECODER_WORDS * 8);
const _: () = assert!(size_of::<ReplyDecoder>() <= REPLY_DECODER_WORDS * 8);
const _: () = assert!(align_of::<RequestDecoder>() <= align_of::<u64>());
const _: () = assert!(align_of::<ReplyDecoder>() <= align_of::<u64>());

/// The limits at `limits`, or the default; and whether the first frame is looked at.
///
/// # Safety
/// As the header says.
unsafe fn limits_of(limits: *const LimitsC) -> Option<(Limits, bool)> {
    if limits.is_null() {
        return Some((Limits::DEFAULT, false));
    }
    // SAFETY: not null, and readable as the caller promises.
    let limits = unsafe { memory::items(limits, 1) }?.first()?;
    Some((limits.to_limits(), limits.first_frame != 0))
}

/// Makes a decoder of requests.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_request_decoder_init(
    decoder: *mut RequestDecoder,
    size: usize,
    protocol: i32,
    limits: *const LimitsC,
) -> Status {
    // SAFETY: the caller's promise, handed on.
    let (Some((limits, first)), Some(protocol)) = (unsafe { limits_of(limits) }, Protocol::of(protocol))
    else {
        return WRONG;
    };
    let codec = match protocol {
        Protocol::Respb => RequestCodec::Respb(respb::RequestDecoder::new(limits)),
        Protocol::Resp2 | Protocol::Resp3 => RequestCodec::Resp(resp::RequestDecoder::new(limits)),
    };
    let first = first && protocol == Protocol::Respb;
    let value = RequestDecoder { codec, kept: Kept { first, ..Kept::default() } };
    // SAFETY: the caller's promise, handed on.
    if unsafe { memory::init(decoder, size, value) } { OK } else { WRONG }
}

/// Other limits from the next frame on.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_request_decoder_limits(
    decoder: *mut RequestDecoder,
    limits: *const LimitsC,
    batch: *mut Batch,
) -> Status {
    // SAFETY: the caller's promise, handed on.
    let (Some((limits, _)), Some(decoder)) =
        (unsafe { limits_of(limits) }, unsafe { memory::object(decoder) })
    else {
        return WRONG;
    };
    // SAFETY: the same; null is no batch.
    let batch = unsafe { memory::object(batch) };
    if batch.as_ref().is_some_and(|batch| batch.taken > 0 || batch.partial > batch.values_len) {
        return WRONG;
    }
    if let Some(batch) = batch {
        batch.values_len = batch.partial;
    }
    match &mut decoder.codec {
        RequestCodec::Resp(codec) => codec.set_limits(limits),
        RequestCodec::Respb(codec) => codec.set_limits(limits),
    }
    (decoder.kept.held, decoder.kept.options) = (0, 0);
    OK
}

/// Decodes a batch of requests.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_decode_requests(
    decoder: *mut RequestDecoder,
    data: *const u8,
    len: usize,
    batch: *mut Batch,
) -> Status {
    // SAFETY: the caller's promise, handed on.
    let (Some(decoder), Some(input), Some(batch)) =
        (unsafe { memory::object(decoder) }, unsafe { memory::bytes(data, len) }, unsafe {
            memory::object(batch)
        })
    else {
        return WRONG;
    };
    let kept = &mut decoder.kept;
    // SAFETY: the same.
    unsafe {
        match &mut decoder.codec {
            RequestCodec::Resp(codec) => run(codec, kept, input, batch),
            RequestCodec::Respb(codec) => run(codec, kept, input, batch),
        }
    }
}

/// Makes a decoder of replies.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_reply_decoder_init(
    decoder: *mut ReplyDecoder,
    size: usize,
    protocol: i32,
    limits: *const LimitsC,
) -> Status {
    // SAFETY: the caller's promise, handed on.
    let (Some((limits, _)), Some(protocol)) = (unsafe { limits_of(limits) }, Protocol::of(protocol)) else {
        return WRONG;
    };
    let codec = match protocol {
        Protocol::Respb => ReplyCodec::Respb(respb::ReplyDecoder::new(limits)),
        Protocol::Resp2 | Protocol::Resp3 => ReplyCodec::Resp(resp::ReplyDecoder::new(limits)),
    };
    // SAFETY: the caller's promise, handed on.
    if unsafe { memory::init(decoder, size, ReplyDecoder { codec, kept: Kept::default() }) } {
        OK
    } else {
        WRONG
    }
}

/// Decodes a batch of replies.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_decode_replies(
    decoder: *mut ReplyDecoder,
    data: *const u8,
    len: usize,
    batch: *mut Batch,
) -> Status {
    // SAFETY: the caller's promise, handed on.
    let (Some(decoder), Some(input), Some(batch)) =
        (unsafe { memory::object(decoder) }, unsafe { memory::bytes(data, len) }, unsafe {
            memory::object(batch)
        })
    else {
        return WRONG;
    };
    let kept = &mut decoder.kept;
    // SAFETY: the same.
    unsafe {
        match &mut decoder.codec {
            ReplyCodec::Resp(codec) => run(codec, kept, input, batch),
            ReplyCodec::Respb(codec) => run(codec, kept, input, batch),
        }
    }
}

/// The default limits.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_limits_default(limits: *mut LimitsC) {
    // SAFETY: the caller's promise, handed on.
    unsafe { memory::init(limits, size_of::<LimitsC>(), LimitsC::from(Limits::DEFAULT)) };
}

/// The limits before authentication.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_limits_unauthenticated(limits: *mut LimitsC) {
    // SAFETY: the caller's promise, handed on.
    unsafe { memory::init(limits, size_of::<LimitsC>(), LimitsC::from(Limits::UNAUTHENTICATED)) };
}
