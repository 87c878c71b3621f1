//! Owns: lengths as LEB128: 7 bits a byte, the lowest first, the top bit saying that more follow. Does not own: what
//! has the length. (`crate::list` also reads them backwards, which is its own.)

/// The longest: 5 bytes say 2^35 − 1, far above the longest argument that a protocol lets in.
const BYTES_MAX: usize = 5;

/// The length at the head of `bytes`, and the bytes it takes.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> (usize, usize) {
    match bytes.first() {
        Some(&byte) if byte < 128 => (byte as usize, 1),
        _ => read_long(bytes),
    }
}

fn read_long(bytes: &[u8]) -> (usize, usize) {
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate().take(BYTES_MAX) {
        value |= ((byte & 127) as usize) << (7 * at);
        if byte < 128 {
            return (value, at + 1);
        }
    }
    (value, BYTES_MAX)
}

/// Bytes that a length takes.
#[inline]
pub(crate) const fn size(value: usize) -> usize {
    let mut bytes = 1;
    let mut left = value >> 7;
    while left > 0 {
        bytes += 1;
        left >>= 7;
    }
    bytes
}

/// Writes a length over `out`, which has exactly its size.
#[inline]
pub(crate) fn write(out: &mut [u8], mut value: usize) {
    let last = out.len() - 1;
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = (value & 127) as u8 | if at < last { 128 } else { 0 };
        value >>= 7;
    }
}

/// Writes a length at the end of `out`.
pub(crate) fn push(out: &mut Vec<u8>, value: usize) {
    let at = out.len();
    out.resize(at + size(value), 0);
    write(&mut out[at..], value);
}
