//! Owns: recognising requests that begin as another did: `*3\r\n$3\r\nSET\r\n`. Does not own: everything else that a
//! request may be (`super::request`): what is taken here is taken there too, with the same arguments.

use super::request::short_bulk;
use crate::request::ArgVisitor;

/// What is compared of a beginning: two words.
const HEAD_BYTES_MAX: usize = 16;
/// The longest beginning: of its last bytes, the line end of a name, up to two are compared by themselves.
const BEGINNING_BYTES_MAX: usize = HEAD_BYTES_MAX + 2;
/// Arguments at most, the name included: what is longer gains nothing by this.
const ARGUMENTS_MAX: usize = 16;

/// The number of arguments and the name of a request, as the bytes that its frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    head: u128,
    mask: u128,
    head_len: u8,
    /// Where the name stands.
    name: (u8, u8),
    arguments: u8,
}

impl Shape {
    /// The shape of a whole frame of so many arguments, if it is an array whose beginning is short.
    #[must_use]
    pub fn of(frame: &[u8], arguments: usize) -> Option<Self> {
        if frame.first() != Some(&b'*') || !(1..=ARGUMENTS_MAX).contains(&arguments) {
            return None;
        }
        let at = frame.iter().take(HEAD_BYTES_MAX).position(|&byte| byte == b'\n')? + 1;
        let (name, behind) = short_bulk(frame.get(at..)?)?;
        let head_len = frame.len() - behind.len();
        if head_len > BEGINNING_BYTES_MAX {
            return None;
        }
        let mut head = [0; HEAD_BYTES_MAX];
        let compared = head_len.min(HEAD_BYTES_MAX);
        head[..compared].copy_from_slice(&frame[..compared]);
        let mask = if compared == HEAD_BYTES_MAX { u128::MAX } else { (1 << (8 * compared)) - 1 };
        Some(Self {
            head: u128::from_le_bytes(head),
            mask,
            head_len: head_len as u8,
            name: ((head_len - 2 - name.len()) as u8, name.len() as u8),
            arguments: arguments as u8,
        })
    }

    /// Whether a request that begins so has this shape, if it is whole.
    #[must_use]
    #[inline(always)]
    pub const fn fits(&self, head: &[u8; HEAD_BYTES_MAX]) -> bool {
        (u128::from_le_bytes(*head) ^ self.head) & self.mask == 0
    }

    /// Arguments, the name included.
    #[must_use]
    #[inline]
    pub const fn arguments(&self) -> usize {
        self.arguments as usize
    }

    /// The request at the start of `input` if it has this shape and is whole; its length. Otherwise nothing, and what
    /// the visitor has of it is void. Needs 16 bytes of input, so that the last request of a buffer may be left to the
    /// decoder.
    #[inline(always)]
    pub fn decode(&self, input: &[u8], args: &mut impl ArgVisitor) -> Option<usize> {
        if !self.fits(input.first_chunk()?) {
            return None;
        }
        let head_len = usize::from(self.head_len);
        if head_len > HEAD_BYTES_MAX && !b"\r\n".ends_with(input.get(HEAD_BYTES_MAX..head_len)?) {
            return None;
        }
        let (name, name_len) = (usize::from(self.name.0), usize::from(self.name.1));
        args.bytes(name, input.get(name..name + name_len)?);
        let mut rest = input.get(head_len..)?;
        for _ in 1..self.arguments {
            let (bytes, behind) = short_bulk(rest)?;
            args.bytes(input.len() - behind.len() - 2 - bytes.len(), bytes);
            rest = behind;
        }
        Some(input.len() - rest.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arg;
    use crate::request::ArgList;
    use alloc::format;
    use alloc::vec;
    use alloc::vec::Vec;

    /// The arguments that a shape, learnt from one request, finds in another.
    fn found(learnt: &[u8], arguments: usize, input: &[u8]) -> Option<(usize, Vec<Vec<u8>>)> {
        let mut args = ArgList::default();
        let len = Shape::of(learnt, arguments)?.decode(input, &mut args)?;
        let bytes = |arg: Arg<'_>| if let Arg::Bytes(bytes) = arg { bytes.to_vec() } else { Vec::new() };
        Some((len, args.iter(input).map(bytes).collect()))
    }

    #[test]
    fn names_of_up_to_eight_bytes_have_a_shape() {
        for name in ["GET", "ZSCORE", "ZPOPMIN", "ZREVRANK"] {
            let request = |key: &str| format!("*2\r\n${}\r\n{name}\r\n$3\r\n{key}\r\n", name.len());
            let (learnt, other) = (request("one"), request("two") + "*1\r\n");
            let (len, list) = found(learnt.as_bytes(), 2, other.as_bytes()).expect("it has a shape");
            assert_eq!((len, list), (learnt.len(), vec![name.as_bytes().to_vec(), b"two".to_vec()]));
            // The line end behind the name is a part of it.
            for (from, to) in [("\r\n$3", "\rx$3"), ("\r\n$3", "x\n$3")] {
                let broken = other.replacen(from, to, 1);
                assert_eq!(found(learnt.as_bytes(), 2, broken.as_bytes()), None, "{broken:?}");
            }
        }
        assert!(Shape::of(b"*2\r\n$9\r\nRPOPLPUSH\r\n$3\r\none\r\n", 2).is_none());
    }
}
