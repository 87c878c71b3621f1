//! Weft's own contestants, in steps: what each step of taking a request in costs, on each wire.
//!
//! Owns the loops that are timed. Each decodes a whole stream and gives the sum of what it saw. They are written
//! alike: the loop over [`decode_whole`](weft_protocol::respb::RequestDecoder::decode_whole), which keeps its state
//! in registers, and behind it the resuming decoder for what the straight code leaves.

use std::hint::black_box;

use weft_protocol::reply::Passed;
use weft_protocol::{ArgVisitor, Limits, Outcome, resp, respb, table};

use super::fold::Fold;
use super::stream::{Wire, header_number, table_number};

/// How much is done with each command. Each step includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// Where frames end; nothing in them is looked at that need not be for that.
    Bytes,
    /// Every field decoded and checked, and folded.
    Fields,
    /// The command's entry in the table found: by its name, or by its opcode.
    Lookup,
    /// The arguments copied into a command that outlives the buffer, in one allocation.
    Owned,
    /// The same with an allocation for each argument, as Valkey's objects are.
    Objects,
}

impl Step {
    pub(super) const ALL: [Step; 5] = [Step::Bytes, Step::Fields, Step::Lookup, Step::Owned, Step::Objects];

    pub(super) fn name(self) -> &'static str {
        match self {
            Step::Bytes => "bytes only",
            Step::Fields => "+ every field decoded and checked",
            Step::Lookup => "+ command looked up",
            Step::Owned => "+ arguments copied, one allocation",
            Step::Objects => "+ arguments copied, one allocation each",
        }
    }

    pub(super) fn id(self) -> &'static str {
        match self {
            Step::Bytes => "bytes",
            Step::Fields => "fields",
            Step::Lookup => "lookup",
            Step::Owned => "owned",
            Step::Objects => "objects",
        }
    }
}

/// What a pass over a stream saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) commands: u64,
    /// The fold of what the wire carries; 0 in the first step.
    pub(super) fold: u64,
    /// The sum of [`table_number`]s; 0 before the third step.
    pub(super) ids: u64,
}

/// Decodes all of `input`.
pub(super) fn pass(wire: Wire, step: Step, input: &[u8]) -> Seen {
    match (wire, step) {
        (Wire::Resp, Step::Bytes) => resp_bytes(input),
        (Wire::Resp, Step::Fields) => resp_fields(input),
        (Wire::Resp, Step::Lookup) => resp_lookup(input),
        (Wire::Resp, Step::Owned) => resp_owned(input),
        (Wire::Resp, Step::Objects) => resp_objects(input),
        (_, Step::Bytes) => respb_bytes(input),
        (_, Step::Fields) => respb_fields(input),
        (_, Step::Lookup) => respb_lookup(input),
        (_, Step::Owned) => respb_owned(input),
        (_, Step::Objects) => respb_objects(input),
    }
}

/// A visitor that is told when a command is whole.
trait Command: ArgVisitor + Default {
    /// The command is whole. `frame` has what the wire says of it beside its arguments, `input` begins with its first
    /// byte.
    fn done(&mut self, frame: &impl Whole, input: &[u8], seen: &mut Seen);
}

/// What the two decoders' frames have in common for a contestant.
trait Whole {
    /// What the header adds to the fold.
    fn number(&self) -> u64;
    /// The command, where the wire names it by a number.
    fn command(&self) -> Option<table::CommandId>;
    /// Whether the first argument is the command's name.
    fn is_named(&self) -> bool;
}

impl Whole for resp::RequestFrame<'_> {
    #[inline(always)]
    fn number(&self) -> u64 {
        0
    }
    #[inline(always)]
    fn command(&self) -> Option<table::CommandId> {
        None
    }
    #[inline(always)]
    fn is_named(&self) -> bool {
        true
    }
}

impl Whole for respb::RequestFrame<'_> {
    #[inline(always)]
    fn number(&self) -> u64 {
        header_number(&self.frame) + u64::from(self.channel)
    }
    #[inline(always)]
    fn command(&self) -> Option<table::CommandId> {
        self.frame.command()
    }
    #[inline(always)]
    fn is_named(&self) -> bool {
        matches!(self.frame, respb::Frame::Argv | respb::Frame::Passthrough)
    }
}

macro_rules! pass {
    ($name:ident, $decoder:path, $visitor:ty, $long:expr) => {
        #[inline(never)]
        fn $name(input: &[u8]) -> Seen {
            let mut decoder = <$decoder>::new(Limits::DEFAULT);
            let (mut rest, mut seen, mut visitor) = (input, Seen::default(), <$visitor>::default());
            loop {
                while let Some(frame) = decoder.decode_whole(rest, &mut visitor) {
                    visitor.done(&frame, rest, &mut seen);
                    rest = frame.rest;
                }
                if let Some(frame) = $long(&mut decoder, rest, &mut visitor) {
                    visitor.done(&frame, rest, &mut seen);
                    rest = frame.rest;
                    continue;
                }
                // What the straight code leaves. The visitor is moved out and back, so that no call has its address
                // and the loop above can keep it in registers.
                let mut moved = visitor;
                let outcome = decoder.decode(rest, &mut moved);
                visitor = moved;
                let Outcome::Complete(frame) = outcome else { break };
                visitor.done(&frame, rest, &mut seen);
                rest = frame.rest;
            }
            assert!(rest.is_empty(), "the stream was not decoded to its end");
            seen
        }
    };
}

/// RESP has but one form of request.
#[inline(always)]
fn no_long<'a>(
    _: &mut resp::RequestDecoder,
    _: &'a [u8],
    _: &mut impl ArgVisitor,
) -> Option<resp::RequestFrame<'a>> {
    None
}

pass!(resp_bytes, resp::RequestDecoder, Passed, no_long);
pass!(resp_fields, resp::RequestDecoder, Fold, no_long);
pass!(resp_lookup, resp::RequestDecoder, Named, no_long);
pass!(resp_owned, resp::RequestDecoder, Keep<Owned>, no_long);
pass!(resp_objects, resp::RequestDecoder, Keep<Objects>, no_long);
pass!(respb_bytes, respb::RequestDecoder, Passed, respb::RequestDecoder::decode_long);
pass!(respb_fields, respb::RequestDecoder, Fold, respb::RequestDecoder::decode_long);
pass!(respb_lookup, respb::RequestDecoder, Named, respb::RequestDecoder::decode_long);
pass!(respb_owned, respb::RequestDecoder, Keep<Owned>, respb::RequestDecoder::decode_long);
pass!(respb_objects, respb::RequestDecoder, Keep<Objects>, respb::RequestDecoder::decode_long);

impl Command for Passed {
    #[inline(always)]
    fn done(&mut self, _frame: &impl Whole, _input: &[u8], seen: &mut Seen) {
        seen.commands += 1;
    }
}

impl Command for Fold {
    #[inline(always)]
    fn done(&mut self, frame: &impl Whole, _input: &[u8], seen: &mut Seen) {
        self.add(frame.number());
        seen.fold = self.0;
        seen.commands += 1;
    }
}

/// Folds, and keeps where the first argument of each command is: where the wire carries names, that is the name.
#[derive(Clone, Copy, Default)]
struct Named {
    fold: Fold,
    /// Offset in the frame and length; offset 0 before there is one.
    name: (usize, usize),
}

impl ArgVisitor for Named {
    #[inline(always)]
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.fold.bytes(offset, bytes);
        if self.name.0 == 0 {
            self.name = (offset, bytes.len());
        }
    }
    #[inline(always)]
    fn int(&mut self, value: i64) {
        self.fold.int(value);
    }
    #[inline(always)]
    fn double(&mut self, value: f64) {
        self.fold.double(value);
    }
    #[inline(always)]
    fn keyword(&mut self, word: &'static str) {
        self.fold.keyword(word);
    }
    #[inline(always)]
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.fold.quoted(offset, raw);
    }
}

impl Command for Named {
    #[inline(always)]
    fn done(&mut self, frame: &impl Whole, input: &[u8], seen: &mut Seen) {
        let (at, len) = std::mem::take(&mut self.name);
        let id = if frame.is_named() { table::by_name(&input[at..at + len]) } else { frame.command() };
        seen.ids = seen.ids.wrapping_add(table_number(id));
        self.fold.done(frame, input, seen);
    }
}

/// An argument where it stands: bytes of the frame, or a number or keyword.
#[derive(Clone, Copy)]
enum Slot {
    Span(u32, u32),
    Number(u64),
    Word(&'static str),
}

/// How a command is kept that outlives the buffer.
trait KeptForm: Sized {
    fn keep(id: Option<table::CommandId>, slots: &[Slot], input: &[u8]) -> Self;
}

/// Commands that wait together, as a server's do between decoding and running them.
const BATCH: usize = 64;

/// Folds, looks the command up, and keeps a copy of it until its batch is full.
struct Keep<K> {
    named: Named,
    slots: Vec<Slot>,
    batch: Vec<K>,
}

impl<K> Default for Keep<K> {
    fn default() -> Self {
        Keep { named: Named::default(), slots: Vec::new(), batch: Vec::with_capacity(BATCH) }
    }
}

impl<K> ArgVisitor for Keep<K> {
    #[inline(always)]
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.named.bytes(offset, bytes);
        self.slots.push(Slot::Span(offset as u32, bytes.len() as u32));
    }
    #[inline(always)]
    fn int(&mut self, value: i64) {
        self.named.int(value);
        self.slots.push(Slot::Number(value as u64));
    }
    #[inline(always)]
    fn double(&mut self, value: f64) {
        self.named.double(value);
        self.slots.push(Slot::Number(value.to_bits()));
    }
    #[inline(always)]
    fn keyword(&mut self, word: &'static str) {
        self.named.keyword(word);
        self.slots.push(Slot::Word(word));
    }
    #[inline(always)]
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.bytes(offset, raw);
    }
}

impl<K: KeptForm> Command for Keep<K> {
    #[inline(always)]
    fn done(&mut self, frame: &impl Whole, input: &[u8], seen: &mut Seen) {
        let before = seen.ids;
        self.named.done(frame, input, seen);
        let id = table::CommandId(seen.ids.wrapping_sub(before) as u16);
        // A name that the table has not takes no argument away; one that it has is kept as its number.
        let slots = if frame.is_named() && id.0 != u16::MAX { &self.slots[1..] } else { &self.slots[..] };
        if self.batch.len() == BATCH {
            black_box(&mut self.batch).clear();
        }
        self.batch.push(K::keep(Some(id), slots, input));
        self.slots.clear();
    }
}

/// A command in one allocation: where each argument ends, then their bytes.
struct Owned {
    _id: Option<table::CommandId>,
    _bytes: Vec<u8>,
}

impl KeptForm for Owned {
    #[inline(always)]
    fn keep(id: Option<table::CommandId>, slots: &[Slot], input: &[u8]) -> Self {
        let len = |slot: &Slot| match *slot {
            Slot::Span(_, len) => len as usize,
            Slot::Number(_) => size_of::<u64>(),
            Slot::Word(word) => word.len(),
        };
        let mut bytes = Vec::with_capacity(slots.iter().map(|slot| size_of::<u32>() + len(slot)).sum());
        for slot in slots {
            bytes.extend_from_slice(&(len(slot) as u32).to_ne_bytes());
            match *slot {
                Slot::Span(offset, len) => bytes.extend_from_slice(&input[offset as usize..][..len as usize]),
                Slot::Number(number) => bytes.extend_from_slice(&number.to_ne_bytes()),
                Slot::Word(word) => bytes.extend_from_slice(word.as_bytes()),
            }
        }
        Owned { _id: id, _bytes: bytes }
    }
}

/// A command whose arguments are objects of their own.
struct Objects {
    _id: Option<table::CommandId>,
    _argv: Vec<Object>,
}

/// An argument as an object.
enum Object {
    Bytes(#[allow(dead_code, reason = "kept, as a server keeps it, and never read")] Box<[u8]>),
    Number(#[allow(dead_code, reason = "kept, as a server keeps it, and never read")] u64),
}

impl KeptForm for Objects {
    #[inline(always)]
    fn keep(id: Option<table::CommandId>, slots: &[Slot], input: &[u8]) -> Self {
        let object = |slot: &Slot| match *slot {
            Slot::Span(offset, len) => Object::Bytes(input[offset as usize..][..len as usize].into()),
            Slot::Number(number) => Object::Number(number),
            Slot::Word(word) => Object::Bytes(word.as_bytes().into()),
        };
        Objects { _id: id, _argv: slots.iter().map(object).collect() }
    }
}
