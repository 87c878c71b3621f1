//! Owns: recognising requests that begin as another did: `*3\r\n$3\r\nSET\r\n`. Does not own: everything else that a
//! request may be (`super::request`): what is taken here is taken there too, with the same arguments.

use super::request::short_bulk;
use crate::request::ArgVisitor;

/// The longest beginning: two words.
const HEAD_BYTES_MAX: usize = 16;
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
        if head_len > HEAD_BYTES_MAX {
            return None;
        }
        let mut head = [0; HEAD_BYTES_MAX];
        head[..head_len].copy_from_slice(&frame[..head_len]);
        let mask = if head_len == HEAD_BYTES_MAX { u128::MAX } else { (1 << (8 * head_len)) - 1 };
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
        let (name, name_len) = (usize::from(self.name.0), usize::from(self.name.1));
        args.bytes(name, input.get(name..name + name_len)?);
        let mut rest = input.get(usize::from(self.head_len)..)?;
        for _ in 1..self.arguments {
            let (bytes, behind) = short_bulk(rest)?;
            args.bytes(input.len() - behind.len() - 2 - bytes.len(), bytes);
            rest = behind;
        }
        Some(input.len() - rest.len())
    }
}
