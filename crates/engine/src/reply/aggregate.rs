//! Owns: aggregates, those whose length is known late, and taking back what was begun. Does not own: what stands in
//! them.

use super::captured::Aggregate;
use super::protocol::Shape;
use super::{Protocol, ReplySink};

/// More elements than anybody writes.
const DEFERRED: u64 = u64::MAX;

/// An aggregate that is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    /// Elements to come, of a deferred one as many as a number can say.
    pub(super) left: u64,
    /// Where it begins; of a deferred one, where its length belongs.
    at: usize,
    /// How many pins were before it, as far as it is deferred.
    pins: usize,
    /// In JSON, what it ends with.
    pub(super) closer: u8,
}

/// A place to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    bytes: usize,
    pins: usize,
    open: usize,
    top: Option<Open>,
}

/// Kinds of aggregates, as RESPB and RESP3 have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Array,
    Map,
    Set,
    Push,
}

impl Kind {
    const fn resp3(self) -> u8 {
        match self {
            Self::Array => b'*',
            Self::Map => b'%',
            Self::Set => b'~',
            Self::Push => b'>',
        }
    }
}

impl ReplySink<'_> {
    /// Whether the next value stands at the top: RESPB gives it a header instead of a tag, JSON an object around it.
    #[inline]
    pub(super) fn at_top(&self) -> bool {
        self.out.open.is_empty()
    }
    /// A value is complete.
    #[inline]
    pub(super) fn end(&mut self) {
        if let Some(top) = self.out.open.last_mut() {
            top.left -= 1;
            if top.left == 0 {
                self.end_of_top();
            }
        }
    }
    fn end_of_top(&mut self) {
        if let Some(top) = self.out.open.pop() {
            self.whole(top);
        }
        self.end();
    }
    /// All elements of an aggregate are there, and it is no longer open.
    #[inline]
    fn whole(&mut self, Open { at, closer, .. }: Open) {
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 | Protocol::Respb | Protocol::Captured => {}
            Protocol::Json(form) => self.json_close(form, at, closer),
        }
    }

    /// An array of `len` elements, which follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.aggregate(Kind::Array, len, len);
    }
    /// A set of `len` members.
    pub fn set(&mut self, len: usize) {
        self.aggregate(Kind::Set, len, len);
    }
    /// A map of `len` pairs: twice as many values follow.
    pub fn map(&mut self, len: usize) {
        self.aggregate(Kind::Map, len, 2 * len);
    }
    /// A push of `len` elements. Not inside anything.
    pub fn push(&mut self, len: usize) {
        self.aggregate(Kind::Push, len, len);
    }
    /// A push as somebody has written it on this wire, in RESP3 for both versions of RESP and for any channel of RESPB:
    /// only what tells these apart is written anew.
    pub(crate) fn written_push(&mut self, written: &[u8]) {
        let at = self.out.bytes.len();
        self.out.bytes.extend_from_slice(written);
        match self.wire.protocol {
            Protocol::Resp2 => self.out.bytes[at] = b'*',
            Protocol::Respb => self.respb_readdress(at),
            Protocol::Resp3 | Protocol::Captured | Protocol::Json(_) => {}
        }
    }
    /// `len` pairs, flat in RESP2; [`pair`](Self::pair) goes before each.
    pub fn pairs(&mut self, len: usize) {
        match self.wire.protocol.shape() {
            Shape::Flat => self.array(2 * len),
            Shape::Paired => self.array(len),
            Shape::AsWritten => self.capture_aggregate(Aggregate::Pairs, len, 2 * len),
        }
    }
    /// The next of [`pairs`](Self::pairs): two values follow.
    pub fn pair(&mut self) {
        match self.wire.protocol.shape() {
            Shape::Flat | Shape::AsWritten => {}
            Shape::Paired => self.array(2),
        }
    }
    /// `len` keys with arrays, an array of pairs in RESP2; [`entry`](Self::entry) goes before each.
    pub fn map_of_arrays(&mut self, len: usize) {
        match self.wire.protocol.shape() {
            Shape::Flat => self.array(len),
            Shape::Paired => self.map(len),
            Shape::AsWritten => self.capture_aggregate(Aggregate::MapOfArrays, len, 2 * len),
        }
    }
    /// The next of [`map_of_arrays`](Self::map_of_arrays): a key and a value follow.
    pub fn entry(&mut self) {
        match self.wire.protocol.shape() {
            Shape::Flat => self.array(2),
            Shape::Paired | Shape::AsWritten => {}
        }
    }
    /// `len` answers to one request, each begun by [`answer`](Self::answer). RESP sends them one by one.
    pub fn answers(&mut self, len: usize) {
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => {}
            Protocol::Respb | Protocol::Json(_) => self.array(len),
            Protocol::Captured => self.capture_aggregate(Aggregate::Answers, len, len),
        }
    }
    /// One of [`answers`](Self::answers), of `len` elements.
    pub fn answer(&mut self, len: usize) {
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => self.push(len),
            Protocol::Respb | Protocol::Json(_) => self.array(len),
            Protocol::Captured => self.capture_aggregate(Aggregate::Answer, len, len),
        }
    }

    pub(super) fn aggregate(&mut self, kind: Kind, len: usize, elements: usize) {
        let (at, closer) = self.head_of(kind, len, elements);
        self.opened(Open { left: elements as u64, at, pins: 0, closer });
    }
    /// The head of an aggregate is written: its elements follow, if it has any.
    pub(super) fn opened(&mut self, open: Open) {
        if open.left == 0 {
            self.whole(open);
            return self.end();
        }
        self.out.open.push(open);
    }

    /// The head of an aggregate; in JSON, where it begins and what it ends with.
    pub(super) fn head_of(&mut self, kind: Kind, len: usize, elements: usize) -> (usize, u8) {
        match self.wire.protocol {
            Protocol::Resp2 => self.resp_int(b'*', elements as i64),
            Protocol::Resp3 => self.resp_int(kind.resp3(), len as i64),
            Protocol::Respb => self.respb_aggregate(kind, len),
            Protocol::Captured => self.capture_head(kind.into(), len),
            Protocol::Json(form) => return self.json_head(form, kind),
        }
        (0, 0)
    }
    fn capture_aggregate(&mut self, aggregate: Aggregate, len: usize, elements: usize) {
        self.capture_head(aggregate, len);
        self.opened(Open { left: elements as u64, at: 0, pins: 0, closer: 0 });
    }

    /// An array whose length is known when it is [closed](Self::close). In RESP there is room for one digit of it; what
    /// stands behind it is moved once where there are more.
    pub fn deferred(&mut self) {
        let pins = self.out.pins.len();
        let (at, closer) = match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => {
                self.out.bytes.extend_from_slice(b"*0\r\n");
                (self.out.bytes.len() - 3, 0)
            }
            Protocol::Respb | Protocol::Captured => {
                self.head_of(Kind::Array, 0, 0);
                (self.out.bytes.len() - 4, 0)
            }
            Protocol::Json(_) => self.head_of(Kind::Array, 0, 0),
        };
        self.out.open.push(Open { left: DEFERRED, at, pins, closer });
    }
    /// Ends a deferred array. It must be the innermost open one.
    pub fn close(&mut self) {
        let Some(open @ Open { left, at, pins, .. }) = self.out.open.pop() else {
            debug_assert!(false, "close needs a deferred array");
            return;
        };
        let elements = DEFERRED - left;
        debug_assert!(elements < u64::from(u32::MAX), "close needs a deferred array");
        match self.wire.protocol {
            Protocol::Resp2 | Protocol::Resp3 => {
                self.out.bytes[at] = b'0' + (elements % 10) as u8;
                if elements > 9 {
                    self.out.insert(at, pins, itoa::Buffer::new().format(elements / 10).as_bytes());
                }
            }
            Protocol::Respb | Protocol::Captured => {
                self.out.bytes[at..at + 4].copy_from_slice(&(elements as u32).to_be_bytes());
            }
            Protocol::Json(_) => self.whole(open),
        }
        self.end();
    }

    /// A place to go back to, before a value.
    #[must_use]
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark {
            bytes: self.out.bytes.len(),
            pins: self.out.pins.len(),
            open: self.out.open.len(),
            top: self.out.open.last().copied(),
        }
    }
    /// The same where a reply begins: no aggregate is open.
    #[must_use]
    #[inline]
    pub fn reply_mark(&self) -> Mark {
        debug_assert!(self.out.is_whole(), "one reply ends before the next begins");
        Mark { bytes: self.out.bytes.len(), pins: self.out.pins.len(), open: 0, top: None }
    }
    /// Takes back everything since the mark. The value begun there must not have been completed.
    pub fn rollback(&mut self, mark: Mark) {
        self.out.truncate(mark.bytes, mark.pins);
        self.out.open.truncate(mark.open);
        if let (Some(top), Some(before)) = (self.out.open.last_mut(), mark.top) {
            *top = before;
        }
    }
}
