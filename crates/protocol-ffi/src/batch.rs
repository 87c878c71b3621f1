//! Where decoded values go: the arrays of a `respb_batch`, through the visitors of the protocol crate.
//!
//! Owns the filling, and what happens to the values of a frame that is not yet whole. Knows no encoding.

use core::mem::MaybeUninit;

use weft_protocol::{Aggregate, ArgVisitor, ReplyVisitor, Text};

use crate::memory;
use crate::types::{Batch, EINVAL, Frame, NO_OFFSET, Payload, Status, VALUES_MIN, Value, kind};

/// The arrays of a batch while a decoder fills them.
pub(crate) struct Sink<'a> {
    pub(crate) values: &'a mut [MaybeUninit<Value>],
    pub(crate) len: usize,
    /// Option bits of the frame that is being decoded.
    pub(crate) options: u16,
    /// The frame that is being decoded: a text that is not in it is a constant.
    pub(crate) base: *const u8,
}

impl Sink<'_> {
    #[inline(always)]
    fn push(&mut self, value: Value) {
        // The decoder asks for room before each step: this is never out of bounds.
        if let Some(place) = self.values.get_mut(self.len) {
            place.write(value);
            self.len += 1;
        }
    }

    /// Whether one more step of a decoder fits.
    #[inline(always)]
    pub(crate) fn roomy(&self) -> bool {
        self.values.len() - self.len >= VALUES_MIN
    }
}

impl ArgVisitor for Sink<'_> {
    #[inline(always)]
    fn bytes(&mut self, offset: usize, bytes: &[u8]) {
        self.push(Value::bytes(kind::BYTES, offset as u32, bytes));
    }
    #[inline(always)]
    fn int(&mut self, value: i64) {
        self.push(Value::number(kind::INTEGER, Payload { integer: value }));
    }
    #[inline(always)]
    fn double(&mut self, value: f64) {
        self.push(Value::number(kind::DOUBLE, Payload { number: value }));
    }
    fn keyword(&mut self, word: &'static str) {
        self.push(Value::bytes(kind::KEYWORD, NO_OFFSET, word.as_bytes()));
    }
    fn options(&mut self, bits: u16) {
        self.options = bits;
    }
    fn quoted(&mut self, offset: usize, raw: &[u8]) {
        self.push(Value::bytes(kind::QUOTED, offset as u32, raw));
    }
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.roomy()
    }
}

/// The number of an aggregate.
fn aggregate(kind: Aggregate) -> u8 {
    match kind {
        Aggregate::Array => kind::ARRAY,
        Aggregate::Map => kind::MAP,
        Aggregate::Set => kind::SET,
        Aggregate::Push => kind::PUSH,
        Aggregate::Attribute => kind::ATTRIBUTE,
    }
}

impl ReplyVisitor for Sink<'_> {
    #[inline]
    fn text(&mut self, text: Text, offset: usize, bytes: &[u8]) {
        let (kind, format) = match text {
            Text::Bulk => (kind::BYTES, [0; 3]),
            Text::Simple => (kind::SIMPLE, [0; 3]),
            Text::Error => (kind::ERROR, [0; 3]),
            Text::BigNumber => (kind::BIG_NUMBER, [0; 3]),
            Text::Verbatim(format) => (kind::VERBATIM, format),
        };
        let in_frame = bytes.as_ptr() == self.base.wrapping_add(offset);
        let offset = if in_frame { offset as u32 } else { NO_OFFSET };
        self.push(Value { format, ..Value::bytes(kind, offset, bytes) });
    }
    fn int(&mut self, value: i64) {
        self.push(Value::number(kind::INTEGER, Payload { integer: value }));
    }
    fn double(&mut self, value: f64) {
        self.push(Value::number(kind::DOUBLE, Payload { number: value }));
    }
    fn boolean(&mut self, value: bool) {
        self.push(Value::number(kind::BOOLEAN, Payload { integer: i64::from(value) }));
    }
    fn null(&mut self, array: bool) {
        let kind = if array { kind::NULL_ARRAY } else { kind::NULL };
        self.push(Value::number(kind, Payload { integer: 0 }));
    }
    fn open(&mut self, kind: Aggregate, len: Option<u32>) {
        self.push(Value::number(aggregate(kind), Payload { integer: len.map_or(-1, i64::from) }));
    }
    fn close(&mut self) {
        self.push(Value::number(kind::CLOSE, Payload { integer: 0 }));
    }
    fn open_text(&mut self) {
        self.push(Value::number(kind::TEXT, Payload { integer: 0 }));
    }
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.roomy()
    }
}

/// The two arrays of a batch.
pub(crate) type Arrays<'a> = (&'a mut [MaybeUninit<Frame>], &'a mut [MaybeUninit<Value>]);

impl Batch {
    /// Checks the fields and gives the arrays.
    ///
    /// # Safety
    /// The arrays must be what the header says they are.
    pub(crate) unsafe fn arrays<'a>(&self) -> Option<Arrays<'a>> {
        let sound = self.frames_capacity > 0
            && self.values_capacity >= VALUES_MIN
            // Indices of values are u32.
            && self.values_capacity < NO_OFFSET as usize
            && self.values_len <= self.values_capacity
            && self.partial <= self.values_len;
        if !sound {
            return None;
        }
        // SAFETY: the caller's promise, handed on.
        unsafe {
            Some((
                memory::places(self.frames, self.frames_capacity)?,
                memory::places(self.values, self.values_capacity)?,
            ))
        }
    }

    /// Begins the next batch: drops whole frames, moves the values of the one that is not whole to the front.
    pub(crate) fn begin(&mut self, values: &mut [MaybeUninit<Value>]) {
        let kept = self.values_len - self.partial;
        if self.partial > 0 {
            values.copy_within(self.partial..self.values_len, 0);
        }
        (self.values_len, self.partial, self.frames_len, self.consumed, self.need) = (kept, 0, 0, 0, 0);
        (self.error, self.error_offset, self.error_channel) = (0, 0, 0);
    }
}

/// Points the first `count` values, which were found when the frame stood elsewhere, at the frame as it stands now.
///
/// # Safety
/// The first `count` values must have been written.
pub(crate) unsafe fn rebase(values: &mut [MaybeUninit<Value>], count: usize, frame: &[u8]) {
    for place in values.iter_mut().take(count) {
        // SAFETY: written, as the caller promises.
        let value = unsafe { place.assume_init_mut() };
        let is_bytes = matches!(value.kind, kind::BYTES | kind::QUOTED | kind::SIMPLE..=kind::VERBATIM);
        if is_bytes
            && value.offset != NO_OFFSET
            && let Some(bytes) = frame.get(value.offset as usize..)
        {
            value.value.data = bytes.as_ptr().cast();
        }
    }
}

/// Lets go of the values of a frame that is not whole.
///
/// # Safety
/// `batch` must be null or a batch that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn respb_batch_take(batch: *mut Batch) -> usize {
    // SAFETY: the caller's promise, handed on.
    let Some(batch) = (unsafe { memory::object(batch) }) else { return 0 };
    let Some(taken) = batch.values_len.checked_sub(batch.partial) else { return 0 };
    batch.taken = batch.taken.saturating_add(taken);
    batch.values_len = batch.partial;
    taken
}

/// What a wrong argument is answered with.
pub(crate) const WRONG: Status = EINVAL;
