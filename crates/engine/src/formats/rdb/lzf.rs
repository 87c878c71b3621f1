//! Owns: taking apart what was compressed with LZF. Does not own: compressing: what Weft writes is not compressed.
//!
//! ```text
//! 000lllll  l + 1 bytes as they are
//! lllooooo oooooooo            l + 2 bytes from o + 1 bytes back, for l of 1 to 6
//! 111ooooo llllllll oooooooo   l + 9 bytes from o + 1 bytes back
//! ```

use super::Malformed;

/// The most bytes that one compressed byte can stand for: 264 for 3.
pub(super) const EXPANSION_MAX: u64 = 88;

/// The bytes, of which there must be `length`.
pub(super) fn decompress(compressed: &[u8], length: u64) -> Result<Vec<u8>, Malformed> {
    if length > compressed.len() as u64 * EXPANSION_MAX {
        return Err(Malformed);
    }
    let length = length as usize;
    let mut out = Vec::with_capacity(length);
    let mut rest = compressed.iter().as_slice();
    let next = |rest: &mut &[u8]| {
        let (&byte, after) = rest.split_first().ok_or(Malformed)?;
        *rest = after;
        Ok(usize::from(byte))
    };
    while !rest.is_empty() {
        let control = next(&mut rest)?;
        if control < 32 {
            let (bytes, after) = rest.split_at_checked(control + 1).ok_or(Malformed)?;
            rest = after;
            out.extend_from_slice(bytes);
        } else {
            let mut count = control >> 5;
            if count == 7 {
                count += next(&mut rest)?;
            }
            let back = ((control & 31) << 8) + next(&mut rest)? + 1;
            copy_back(&mut out, back, count + 2)?;
        }
        if out.len() > length {
            return Err(Malformed);
        }
    }
    if out.len() == length { Ok(out) } else { Err(Malformed) }
}

/// Repeats bytes from `back` before the end. They may overlap what they make.
fn copy_back(out: &mut Vec<u8>, back: usize, count: usize) -> Result<(), Malformed> {
    let start = out.len().checked_sub(back).ok_or(Malformed)?;
    // What is there from `start` on repeats itself: each piece is as long as all of them before.
    let end = out.len() + count;
    while out.len() < end {
        let piece = (out.len() - start).min(end - out.len());
        out.extend_from_within(start..start + piece);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_and_refuses() {
        assert_eq!(decompress(b"\x02abc\x20\x02", 6).unwrap(), b"abcabc");
        assert_eq!(decompress(b"\x00a\xe0\xff\x00", 265).unwrap(), vec![b'a'; 265]);
        assert_eq!(decompress(b"", 0).unwrap(), b"");
        let bad: &[(&[u8], u64)] = &[
            (b"\x02ab", 3),
            (b"\x00a", 2),
            (b"\x01ab", 1),
            (b"\x00a\x20\x01", 4),
            (b"\x00a\x20", 4),
            (b"\x00a\xe0\xff", 265),
            (b"\x00a", 1 << 40),
        ];
        for (compressed, length) in bad {
            assert_eq!(decompress(compressed, *length), Err(Malformed), "{compressed:?}");
        }
    }
}
