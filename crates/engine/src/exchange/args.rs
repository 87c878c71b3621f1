//! Owns: the arguments of one request, wherever they lie, and how a handler reads them. Does not own: decoding
//! (`weft-protocol`), what an argument means.
//!
//! Places count as in RESP: 0 is the command's name, 1 its first argument, whatever wire it came from. A typed RESPB
//! frame does not carry the name; `Args` knows it from the table.

use std::cell::OnceCell;
use std::ops::RangeInclusive;
use std::sync::Arc;
use weft_protocol::request::{ArgVisitor, unquote};
use weft_protocol::table::{self, CommandId, CommandSpec};
use weft_protocol::{Arg, number};
use weft_store::{Key, Keyspace, NewValue, SharedBytes};

use crate::error::{Error, ErrorCode, Result};
use crate::requests::is_container;

/// What an argument takes more as RESP than in its own form, at most: the digits of a number or the letters of a
/// keyword, and the lines around them.
pub(super) const TYPED_BYTES_MAX: usize = 48;

/// Bytes of the side buffer that are kept from batch to batch.
const SIDE_BYTES_KEPT: usize = 64 << 10;

/// One argument as a decoder handed it out. 24 bytes.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// Bytes of the frame.
    Frame {
        /// From the frame's first byte.
        offset: u32,
        /// Bytes.
        len: u32,
    },
    /// Bytes of the side buffer: inline arguments with their quotes resolved.
    Side {
        /// From the side buffer's first byte.
        offset: u32,
        /// Bytes.
        len: u32,
    },
    /// A number that the wire carried in binary.
    Int(i64),
    /// A double that the wire carried in binary.
    Double(f64),
    /// A keyword of the command table.
    Keyword(&'static str),
}

/// Slots of many requests, one behind the other; a decoder's visitor. Reused from batch to batch it stops allocating.
#[derive(Debug, Default)]
pub struct Slots {
    /// The arguments.
    pub list: Vec<Slot>,
    /// What [`Slot::Side`] points into.
    pub side: Vec<u8>,
    /// The option bits of the request that was decoded last; 0 where its layout has none.
    pub options: u16,
}

impl Slots {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.list.clear();
        self.side.clear();
        if self.side.capacity() > SIDE_BYTES_KEPT {
            self.side = Vec::new();
        }
        self.options = 0;
    }
    /// Takes bytes that are in no frame, without a copy where they are the first; what is given is to be put among the
    /// arguments.
    #[must_use]
    pub fn adopt(&mut self, bytes: Vec<u8>) -> Slot {
        let (offset, len) = (self.side.len() as u32, bytes.len() as u32);
        if offset == 0 {
            self.side = bytes;
        } else {
            self.side.extend_from_slice(&bytes);
        }
        Slot::Side { offset, len }
    }
    /// Bytes that the frame does not have as they are: `write` puts them into the side buffer.
    pub fn aside(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let offset = self.side.len();
        write(&mut self.side);
        self.list.push(Slot::Side { offset: offset as u32, len: (self.side.len() - offset) as u32 });
    }
}

impl ArgVisitor for Slots {
    #[inline]
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        // Both fit: a frame is at most `Limits::frame_bytes_max`, a u32.
        self.list.push(Slot::Frame { offset: offset as u32, len: bytes.len() as u32 });
    }
    #[inline]
    fn int(&mut self, value: i64) {
        self.list.push(Slot::Int(value));
    }
    #[inline]
    fn double(&mut self, value: f64) {
        self.list.push(Slot::Double(value));
    }
    #[inline]
    fn keyword(&mut self, word: &'static str) {
        self.list.push(Slot::Keyword(word));
    }
    #[inline]
    fn options(&mut self, bits: u16) {
        self.options = bits;
    }
    fn quoted(&mut self, _offset: usize, raw: &[u8]) {
        self.aside(|side| unquote(raw, side));
    }
}

/// Texts of numbers that a handler wants as bytes after all: made when asked for, kept until the request is over.
#[derive(Debug, Default)]
pub struct Texts(OnceCell<Box<(Box<[u8]>, Texts)>>);

impl Texts {
    fn keep(&self, text: Box<[u8]>) -> &[u8] {
        let mut place = self;
        while let Some(taken) = place.0.get() {
            place = &taken.1;
        }
        &place.0.get_or_init(|| Box::new((text, Texts::default()))).0
    }
}

/// The arguments of one request.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// The command; of a container the subcommand, if it was found.
    pub spec: &'static CommandSpec,
    slots: &'a [Slot],
    frame: &'a [u8],
    side: &'a [u8],
    /// Nothing where there can be no number among the slots.
    texts: Option<&'a Texts>,
    /// 1 where the name is not among the slots.
    shift: usize,
    options: u16,
    /// Where the key stands whose hash is known; 0 for none.
    key_at: u16,
    key_hash: u64,
    /// The hashes of the keys behind it, as far as they are known.
    more_hashes: &'a [u64],
    /// There are no other keys.
    knows_all: bool,
    /// What the frame is the end of, if that can be kept.
    buffer: Option<&'a Arc<Vec<u8>>>,
}

impl<'a> Args<'a> {
    /// Arguments over their slots. `named`: the first slot is the command's name.
    #[inline]
    #[must_use]
    pub fn new(
        spec: &'static CommandSpec,
        (slots, named, options): (&'a [Slot], bool, u16),
        (frame, side, texts): (&'a [u8], &'a [u8], &'a Texts),
    ) -> Self {
        let texts = Some(texts);
        let shift = usize::from(!named);
        Self {
            spec,
            slots,
            frame,
            side,
            texts,
            shift,
            options,
            key_at: 0,
            key_hash: 0,
            more_hashes: &[],
            knows_all: false,
            buffer: None,
        }
    }
    /// Arguments all of which are bytes, the name first.
    pub(crate) const fn of_bytes(spec: &'static CommandSpec, slots: &'a [Slot], frame: &'a [u8]) -> Self {
        Self {
            spec,
            slots,
            frame,
            side: b"",
            texts: None,
            shift: 0,
            options: 0,
            key_at: 0,
            key_hash: 0,
            more_hashes: &[],
            knows_all: false,
            buffer: None,
        }
    }
    /// The same, with the hash of one key that has been computed before.
    #[inline]
    #[must_use]
    pub const fn with_key(mut self, key_at: u16, key_hash: u64) -> Self {
        self.set_key(key_at, key_hash);
        self
    }
    /// The hash of one key, which has been computed.
    #[inline]
    pub const fn set_key(&mut self, key_at: u16, key_hash: u64) {
        (self.key_at, self.key_hash) = (key_at, key_hash);
    }
    /// The same, with the hashes of further keys; of all there are, or not.
    #[inline]
    #[must_use]
    pub const fn with_more(mut self, more_hashes: &'a [u64], all: bool) -> Self {
        (self.more_hashes, self.knows_all) = (more_hashes, all);
        self
    }
    /// The same, where the frame lies in a buffer that can be kept: it reaches to the end of that.
    #[inline]
    #[must_use]
    pub fn with_buffer(mut self, buffer: Option<&'a Arc<Vec<u8>>>) -> Self {
        debug_assert!(buffer.is_none_or(|buffer| buffer.as_ptr_range().end == self.frame.as_ptr_range().end));
        self.buffer = buffer;
        self
    }
    /// An argument as a string to be stored. One that is nearly all of the buffer in which it came is kept there.
    #[inline]
    #[must_use]
    pub fn string(&self, index: usize) -> NewValue<'a> {
        match self.buffer.and_then(|buffer| self.part(buffer, index)) {
            Some(part) => NewValue::Shared(part),
            None => NewValue::string(self.bytes(index)),
        }
    }
    #[cold]
    fn part(&self, buffer: &Arc<Vec<u8>>, index: usize) -> Option<SharedBytes> {
        let Slot::Frame { offset, len } = self.slot(index)? else { return None };
        let frame_at = buffer.len().checked_sub(self.frame.len())?;
        SharedBytes::part(buffer, frame_at + offset as usize, len as usize)
    }
    /// The hashes of all its keys, if they are known.
    #[inline]
    pub(crate) fn all_hashes(&self) -> Option<impl Iterator<Item = u64> + '_> {
        let hashes = std::iter::once(self.key_hash).chain(self.more_hashes.iter().copied());
        (self.knows_all && self.key_at != 0).then_some(hashes)
    }
    /// Key number `at` of the command, counted from 0, which is argument `index`, with its hash.
    #[inline]
    #[must_use]
    pub fn nth_key(&self, keyspace: &Keyspace, at: usize, index: usize) -> Key<'a> {
        match at.checked_sub(1).and_then(|more| self.more_hashes.get(more)) {
            Some(&hash) => keyspace.key_with_hash(self.bytes(index), hash),
            None => self.key(keyspace, index),
        }
    }
    /// A key argument with its hash.
    #[inline]
    #[must_use]
    pub fn key(&self, keyspace: &Keyspace, index: usize) -> Key<'a> {
        // Nearly all are a piece of the frame, and were hashed to be prefetched.
        if index == usize::from(self.key_at)
            && let Some(&Slot::Frame { offset, len }) = self.slots.get(index.wrapping_sub(self.shift))
        {
            return keyspace.key_with_hash(&self.frame[offset as usize..][..len as usize], self.key_hash);
        }
        self.other_key(keyspace, index)
    }
    #[inline(never)]
    fn other_key(&self, keyspace: &Keyspace, index: usize) -> Key<'a> {
        let bytes = self.bytes(index);
        if index == usize::from(self.key_at) {
            return keyspace.key_with_hash(bytes, self.key_hash);
        }
        keyspace.key(bytes)
    }

    /// How many there are, the name included.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slots.len() + self.shift
    }
    /// Never: the name is always there.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The option bits of a typed RESPB layout (`CommandSpec::layout` names them); `None` when the command came as text
    /// and its options must be read from the arguments.
    #[inline]
    #[must_use]
    pub const fn options(&self) -> Option<u16> {
        if self.shift == 1 { Some(self.options) } else { None }
    }

    #[inline]
    fn slot(&self, index: usize) -> Option<Slot> {
        self.slots.get(index.wrapping_sub(self.shift)).copied()
    }

    /// Argument `index`; the name for 0, nothing past the end.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Arg<'a>> {
        let Some(slot) = self.slot(index) else {
            return (index == 0).then(|| Arg::Keyword(self.root_name()));
        };
        Some(match slot {
            Slot::Frame { offset, len } => Arg::Bytes(&self.frame[offset as usize..][..len as usize]),
            Slot::Side { offset, len } => Arg::Bytes(&self.side[offset as usize..][..len as usize]),
            Slot::Int(value) => Arg::Int(value),
            Slot::Double(value) => Arg::Double(value),
            Slot::Keyword(word) => Arg::Keyword(word),
        })
    }

    fn root_name(&self) -> &'static str {
        self.spec.container.map_or(self.spec.name, |container| container.spec().name)
    }

    /// Argument `index` as bytes; numbers become their canonical digits. Empty past the end: check `len` first.
    #[inline]
    #[must_use]
    pub fn bytes(&self, index: usize) -> &'a [u8] {
        // Nearly all are.
        if let Some(&Slot::Frame { offset, len }) = self.slots.get(index.wrapping_sub(self.shift)) {
            return &self.frame[offset as usize..][..len as usize];
        }
        self.bytes_elsewhere(index)
    }

    #[inline(never)]
    fn bytes_elsewhere(&self, index: usize) -> &'a [u8] {
        match self.get(index) {
            Some(Arg::Bytes(bytes)) => bytes,
            Some(Arg::Keyword(word)) => word.as_bytes(),
            Some(number) => self.digits(number),
            None => b"",
        }
    }

    #[cold]
    fn digits(&self, number: Arg<'_>) -> &'a [u8] {
        let mut text = Vec::with_capacity(number::DOUBLE_TEXT_MAX);
        number.push_text(&mut text);
        self.texts.map_or(b"", |texts| texts.keep(text.into()))
    }

    /// An integer argument, or `ERR value is not an integer or out of range`.
    #[inline]
    pub fn int(&self, index: usize) -> Result<i64> {
        self.int_or(index, ErrorCode::NotAnInteger)
    }

    /// An integer argument, or an error of the caller's choice.
    #[inline]
    pub fn int_or(&self, index: usize, code: ErrorCode) -> Result<i64> {
        match self.get(index) {
            Some(Arg::Int(value)) => Ok(value),
            Some(Arg::Bytes(bytes)) => weft_store::parse_int(bytes).ok_or(Error::from(code)),
            _ => Err(code.into()),
        }
    }

    /// An integer argument, or an error with this text.
    pub fn int_said(&self, index: usize, text: &'static str) -> Result<i64> {
        self.int(index).map_err(|_| Error::err(text))
    }

    /// An integer argument within bounds, or an error that names them.
    pub fn int_in(&self, index: usize, bounds: RangeInclusive<i64>) -> Result<i64> {
        let value = self.int(index)?;
        if bounds.contains(&value) {
            return Ok(value);
        }
        let (min, max) = bounds.into_inner();
        Err(Error::err(format!("value is out of range, value must between {min} and {max}")))
    }

    /// An integer argument within bounds, or an error with this text.
    pub fn int_in_said(&self, index: usize, bounds: RangeInclusive<i64>, text: &'static str) -> Result<i64> {
        self.int(index).ok().filter(|value| bounds.contains(value)).ok_or_else(|| Error::err(text))
    }

    /// A count: an integer argument that is not negative; anything else is
    /// `ERR value is out of range, must be positive`.
    pub fn count(&self, index: usize) -> Result<usize> {
        let value = self.int_in_said(index, 0..=i64::MAX, "value is out of range, must be positive")?;
        Ok(usize::try_from(value).unwrap_or(usize::MAX))
    }

    /// A double argument by the rules of Valkey's `getDoubleFromObject`: `inf`, `-inf`, exponents are fine,
    /// blanks, hexadecimal digits and NaN are not. Otherwise `ERR value is not a valid float`.
    pub fn double(&self, index: usize) -> Result<f64> {
        match self.get(index) {
            Some(Arg::Double(value)) => Ok(value),
            Some(Arg::Int(value)) => Ok(value as f64),
            Some(Arg::Bytes(bytes)) => crate::number::parse_double(bytes).ok_or(ErrorCode::NotAFloat.into()),
            _ => Err(ErrorCode::NotAFloat.into()),
        }
    }

    /// Whether argument `index` is this keyword, in any case. `word` is upper-case.
    #[inline]
    #[must_use]
    pub fn is(&self, index: usize, word: &str) -> bool {
        // Nearly all are.
        if let Some(&Slot::Frame { offset, len }) = self.slots.get(index.wrapping_sub(self.shift)) {
            return len as usize == word.len()
                && self.frame[offset as usize..][..word.len()].eq_ignore_ascii_case(word.as_bytes());
        }
        self.is_elsewhere(index, word)
    }

    #[inline(never)]
    fn is_elsewhere(&self, index: usize, word: &str) -> bool {
        match self.slots.get(index.wrapping_sub(self.shift)) {
            // Those of the table are upper-case, too.
            Some(&Slot::Keyword(other)) => other == word,
            Some(Slot::Int(_) | Slot::Double(_)) => false,
            Some(Slot::Frame { .. } | Slot::Side { .. }) | None => {
                self.get(index).is_some() && self.bytes(index).eq_ignore_ascii_case(word.as_bytes())
            }
        }
    }

    /// The arguments from `from` on, as bytes.
    pub fn rest(&self, from: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + '_ {
        (from..self.len().max(from)).map(|index| self.bytes(index))
    }

    /// Bytes that the request would have as RESP, or more: whatever lies behind it in the same buffer counts too, and
    /// typed arguments as if all were of the longest. Costs nothing.
    #[inline]
    #[must_use]
    pub(crate) const fn bytes_max(&self) -> usize {
        self.frame.len() + self.side.len() + self.len() * TYPED_BYTES_MAX
    }
    /// Bytes that the request has, or would have, as RESP.
    #[must_use]
    pub fn resp_bytes(&self) -> usize {
        let line = |number: usize| 3 + number.checked_ilog10().unwrap_or(0) as usize + 1;
        line(self.len())
            + self.rest(0).map(|argument| line(argument.len()) + argument.len() + 2).sum::<usize>()
    }
    /// The same arguments, owned.
    #[must_use]
    pub fn to_owned_args(&self) -> OwnedArgs {
        OwnedArgs::new(self.spec, self.rest(0))
    }
}

/// A request that outlives its frame: queued by MULTI, waiting behind a blocked channel, or blocked itself.
#[derive(Debug)]
pub struct OwnedArgs {
    spec: &'static CommandSpec,
    frame: Box<[u8]>,
    slots: Box<[Slot]>,
}

impl OwnedArgs {
    /// Copies arguments, the name first.
    pub fn new<'b>(spec: &'static CommandSpec, arguments: impl Iterator<Item = &'b [u8]>) -> Self {
        let mut frame = Vec::new();
        let slots = arguments
            .map(|argument| {
                let offset = frame.len() as u32;
                frame.extend_from_slice(argument);
                Slot::Frame { offset, len: argument.len() as u32 }
            })
            .collect();
        Self { spec, frame: frame.into(), slots }
    }
    /// To read them.
    #[must_use]
    pub fn args(&self) -> Args<'_> {
        Args::of_bytes(self.spec, &self.slots, &self.frame)
    }
    /// Memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.frame.len() + self.slots.len() * size_of::<Slot>()
    }
}

/// What cleared arguments keep of their memory.
const COMPOSED_BYTES_MAX: usize = 64 << 10;

/// Arguments that an operation puts together, one by one. Reused from command to command it stops allocating.
#[derive(Debug, Default)]
pub struct Composed {
    frame: Vec<u8>,
    slots: Vec<Slot>,
    texts: Texts,
}

impl Composed {
    /// Forgets all and keeps the memory, but for what few commands take.
    #[inline]
    pub fn clear(&mut self) {
        self.frame.clear();
        self.slots.clear();
        self.texts = Texts::default();
        if self.frame.capacity().max(self.slots.capacity() * size_of::<Slot>()) > COMPOSED_BYTES_MAX {
            self.shrink();
        }
    }
    #[cold]
    fn shrink(&mut self) {
        self.frame.shrink_to(COMPOSED_BYTES_MAX);
        self.slots.shrink_to(COMPOSED_BYTES_MAX / size_of::<Slot>());
    }
    /// Room for the text of arguments whose places their writer knows, behind what is written there already. What was
    /// composed must be [cleared](Self::clear) before.
    #[inline]
    pub(crate) const fn room(&mut self) -> &mut Vec<u8> {
        &mut self.frame
    }
    /// Bytes that they take so far.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.frame.len()
    }
    /// The next one.
    pub fn push(&mut self, bytes: &[u8]) {
        self.push_with(|frame| frame.extend_from_slice(bytes));
    }
    /// The next one, an integer.
    pub fn push_int(&mut self, value: i64) {
        self.slots.push(Slot::Int(value));
    }
    /// The next one: what is written behind those before it.
    pub fn push_with<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let offset = self.frame.len();
        let result = write(&mut self.frame);
        let len = self.frame.len() - offset;
        self.slots.push(Slot::Frame { offset: offset as u32, len: len as u32 });
        result
    }
    /// All arguments of a request, the name first; nothing must stand here before.
    #[inline]
    pub fn copy(&mut self, args: &Args<'_>) {
        // As they lie in their frame, which is shorter than what it takes to pick them out.
        if let Some(&Slot::Frame { offset, len }) = args.slots.last()
            && args.shift == 0
            && args.slots.iter().all(|slot| matches!(slot, Slot::Frame { .. }))
        {
            self.frame.extend_from_slice(&args.frame[..offset as usize + len as usize]);
            self.slots.extend_from_slice(args.slots);
            return;
        }
        args.rest(0).for_each(|word| self.push(word));
    }
    /// To read them: the first one is the command's name.
    #[must_use]
    pub fn args(&self, spec: &'static CommandSpec) -> Args<'_> {
        Args::new(spec, (&self.slots, true, 0), (&self.frame, b"", &self.texts))
    }
}

/// The id of the command that arguments are for.
pub(crate) fn command_id(args: &Args<'_>) -> CommandId {
    // `spec` points into the table, so its place there is its id.
    let offset = std::ptr::from_ref(args.spec).addr() - table::COMMANDS.as_ptr().addr();
    CommandId((offset / size_of::<CommandSpec>()) as u16)
}

/// A command of the table by its name and, of a container, its first argument. A container without one of its
/// subcommands is itself.
#[must_use]
pub fn find(name: &[u8], first: Option<&[u8]>) -> Option<CommandId> {
    let id = table::by_name(name)?;
    if !is_container(id) {
        return Some(id);
    }
    Some(first.and_then(|word| table::subcommand(id, word)).unwrap_or(id))
}

/// Whether a command may have so many arguments, the name included.
pub(crate) fn check_arity(spec: &'static CommandSpec, len: usize) -> Result {
    let wanted = usize::from(spec.arity.unsigned_abs());
    if if spec.arity < 0 { len >= wanted } else { len == wanted } { Ok(()) } else { Err(Error::arity(spec)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_protocol::table;

    #[test]
    fn what_is_composed_keeps_little_memory() {
        let mut composed = Composed::default();
        (0..100_000).for_each(|number| composed.push_int(number));
        composed.push(&[0; COMPOSED_BYTES_MAX + 1]);
        composed.clear();
        assert!(composed.frame.capacity() <= COMPOSED_BYTES_MAX);
        assert!(composed.slots.capacity() * size_of::<Slot>() <= COMPOSED_BYTES_MAX);
    }

    #[test]
    fn a_request_is_copied_as_it_reads() {
        let spec = table::by_name(b"EXPIRE").unwrap().spec();
        // As RESP has them, and with a number of its own.
        let frame = b"*3\r\n$6\r\nEXPIRE\r\n$3\r\nkey\r\n$2\r\n60\r\n*1\r\n";
        let [name, key, seconds] =
            [(8, 6), (20, 3), (29, 2)].map(|(offset, len)| Slot::Frame { offset, len });
        for slots in [[name, key, seconds], [name, key, Slot::Int(60)]] {
            let texts = Texts::default();
            let args = Args::new(spec, (&slots, true, 0), (frame, b"", &texts));
            let mut composed = Composed::default();
            for _ in 0..2 {
                composed.clear();
                composed.copy(&args);
                let copied = composed.args(spec);
                assert_eq!(copied.rest(0).collect::<Vec<_>>(), [&b"EXPIRE"[..], b"key", b"60"]);
                assert!(composed.bytes() < frame.len(), "what comes behind it is not its");
            }
        }
    }

    #[test]
    fn composed_arguments_read_like_those_of_a_request() {
        let spec = table::by_name(b"EXPIRE").unwrap().spec();
        let mut composed = Composed::default();
        for round in 0..2 {
            composed.clear();
            composed.push(b"EXPIRE");
            composed.push_with(|frame| frame.extend_from_slice(b"key:1"));
            composed.push_int(-70 - round);
            let args = composed.args(spec);
            assert_eq!((args.len(), args.bytes(0), args.bytes(1)), (3, &b"EXPIRE"[..], &b"key:1"[..]));
            assert_eq!((args.int(2).unwrap(), args.bytes(2).len(), args.options()), (-70 - round, 3, None));
        }
    }

    #[test]
    fn typed_and_text_arguments_read_alike() {
        let spec = table::by_name(b"EXPIRE").unwrap().spec();
        let texts = Texts::default();
        let typed = [Slot::Frame { offset: 6, len: 1 }, Slot::Int(-70), Slot::Keyword("NX")];
        let typed = Args::new(spec, (&typed, false, 1), (b"......k", b"", &texts));
        assert_eq!((typed.len(), typed.options()), (4, Some(1)));
        assert_eq!(
            (typed.bytes(0), typed.bytes(1), typed.bytes(2)),
            (&b"EXPIRE"[..], &b"k"[..], &b"-70"[..])
        );
        assert_eq!(typed.int(2).unwrap(), -70);
        assert!(typed.is(3, "NX") && !typed.is(4, "NX") && typed.bytes(9).is_empty());
        let owned = typed.to_owned_args();
        let text = owned.args();
        assert_eq!((text.len(), text.options()), (4, None));
        assert!((0..4).all(|index| text.bytes(index) == typed.bytes(index)));
        assert_eq!(text.int(2).unwrap(), -70);
        assert!(text.int(1).is_err() && text.double(1).is_err());
    }
}
