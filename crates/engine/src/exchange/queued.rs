//! Owns: the commands that a transaction keeps, one behind the other in the same memory. Does not own: what it takes to
//! queue one, EXEC.

use weft_protocol::table::CommandSpec;

use crate::args::{Args, Slot};

/// What cleared commands keep of their memory, of each kind.
const KEPT_BYTES_MAX: usize = 8 << 10;

/// Where a command begins.
#[derive(Clone, Copy, Debug)]
struct Begin {
    spec: &'static CommandSpec,
    bytes: usize,
    slots: usize,
}

/// See the module's comment.
#[derive(Debug, Default)]
pub struct Queued {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    each: Vec<Begin>,
}

impl Queued {
    /// Copies a command. Says what it takes of the memory that all lie in, which may be twice as large.
    pub fn push(&mut self, args: &Args<'_>) -> usize {
        let (bytes, slots) = (self.bytes.len(), self.slots.len());
        self.each.push(Begin { spec: args.spec, bytes, slots });
        for argument in args.rest(0) {
            let (offset, len) = ((self.bytes.len() - bytes) as u32, argument.len() as u32);
            self.slots.push(Slot::Frame { offset, len });
            self.bytes.extend_from_slice(argument);
        }
        size_of::<Begin>() + self.bytes.len() - bytes + (self.slots.len() - slots) * size_of::<Slot>()
    }
    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.each.len()
    }
    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.each.is_empty()
    }
    /// They, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Args<'_>> + Clone {
        let ends = self.each.iter().skip(1).map(|next| (next.bytes, next.slots));
        let ends = ends.chain([(self.bytes.len(), self.slots.len())]);
        self.each.iter().zip(ends).map(|(begin, (bytes, slots))| {
            Args::of_bytes(begin.spec, &self.slots[begin.slots..slots], &self.bytes[begin.bytes..bytes])
        })
    }
    /// Forgets them and keeps the memory, but for what few commands take.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
        self.each.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.slots.shrink_to(KEPT_BYTES_MAX / size_of::<Slot>());
        self.each.shrink_to(KEPT_BYTES_MAX / size_of::<Begin>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{OwnedArgs, Texts};
    use weft_protocol::table;

    #[test]
    fn commands_read_as_they_were_queued() {
        let spec = |name: &str| table::by_name(name.as_bytes()).unwrap().spec();
        let own = |words: &[&str]| OwnedArgs::new(spec(words[0]), words.iter().map(|word| word.as_bytes()));
        let (incr, large) = (own(&["INCR", "k"]), own(&["SET", "long", &"x".repeat(100 << 10)]));
        // A typed one: its name is not there, and a number is none of the bytes.
        let (texts, slots) = (Texts::default(), [Slot::Frame { offset: 1, len: 1 }, Slot::Int(60)]);
        let typed = Args::new(spec("EXPIRE"), (&slots, false, 0), (b"?k", b"", &texts));
        let mut queued = Queued::default();
        for _ in 0..2 {
            queued.push(&incr.args());
            let bytes = queued.push(&typed);
            assert_eq!(bytes, size_of::<Begin>() + 9 + 3 * size_of::<Slot>(), "EXPIRE, k, 60");
            queued.push(&large.args());
            let words = |args: Args<'_>| args.rest(0).map(<[u8]>::to_vec).collect::<Vec<_>>();
            let read: Vec<_> = queued.iter().map(words).collect();
            assert_eq!(read[0], [&b"INCR"[..], b"k"]);
            assert_eq!(read[1], [&b"EXPIRE"[..], b"k", b"60"]);
            assert_eq!(read[2], words(large.args()));
            assert_eq!((read.len(), queued.len()), (3, 3));
            queued.clear();
            assert!(queued.is_empty() && queued.iter().next().is_none());
            assert!(queued.bytes.capacity() <= KEPT_BYTES_MAX);
        }
    }
}
