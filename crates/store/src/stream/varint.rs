//! Owns: LEB128 numbers of up to 64 bits, readable from the front and, written in reverse, from the back. Does not own:
//! what they count.

/// Bytes of the longest number.
pub(super) const VARINT_BYTES_MAX: usize = 10;

/// Bytes that a number takes.
pub(super) const fn bytes(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Appends a number.
pub(super) fn push(out: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number so that [`read_back`] finds it from its end.
pub(super) fn push_back(out: &mut Vec<u8>, value: u64) {
    let start = out.len();
    push(out, value);
    out[start..].reverse();
}

/// The number at `at` and the place after it.
pub(super) fn read(buf: &[u8], at: usize) -> (u64, usize) {
    let first = buf[at];
    if first < 128 {
        return (u64::from(first), at + 1);
    }
    fold(buf[at..].iter(), at, |at, taken| at + taken)
}

/// The number that ends before `at`, and where it starts.
pub(super) fn read_back(buf: &[u8], at: usize) -> (u64, usize) {
    fold(buf[..at].iter().rev(), at, |at, taken| at - taken)
}

fn fold<'a>(
    bytes: impl Iterator<Item = &'a u8>,
    at: usize,
    moved: impl Fn(usize, usize) -> usize,
) -> (u64, usize) {
    let (mut value, mut taken) = (0, 0);
    for &byte in bytes.take(VARINT_BYTES_MAX) {
        value |= u64::from(byte & 127) << (7 * taken);
        taken += 1;
        if byte < 128 {
            break;
        }
    }
    (value, moved(at, taken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes_from_both_sides() {
        for shift in 0..64 {
            for value in [(1_u64 << shift) - 1, 1 << shift, u64::MAX >> shift] {
                let mut buf = vec![0xff];
                push(&mut buf, value);
                assert_eq!(buf.len() - 1, bytes(value), "{value}");
                assert_eq!(read(&buf, 1), (value, buf.len()));
                buf.truncate(1);
                push_back(&mut buf, value);
                assert_eq!(read_back(&buf, buf.len()), (value, 1));
            }
        }
    }
}
