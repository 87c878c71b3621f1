//! Owns: the packed forms of small collections: listpack, ziplist, intset, zipmap, as iterators that never leave their
//! bytes; and writing a listpack, which dumps of streams need. Does not own: what the elements mean.

use super::Malformed;
use super::cursor::Cursor;
use weft_store::value::{Digits, parse_int};

/// An element: an integer or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Int(i64),
    Bytes(&'a [u8]),
}

impl<'a> Piece<'a> {
    /// Its bytes; an integer's digits stand in `digits`.
    pub(super) fn bytes<'s>(self, digits: &'s mut Digits) -> &'s [u8]
    where
        'a: 's,
    {
        match self {
            Self::Int(value) => digits.write(value),
            Self::Bytes(bytes) => bytes,
        }
    }
    /// The integer that it must be.
    pub(super) fn int(self) -> Result<i64, Malformed> {
        match self {
            Self::Int(value) => Ok(value),
            Self::Bytes(bytes) => parse_int(bytes).ok_or(Malformed),
        }
    }
    /// The score that it must be.
    pub(super) fn score(self) -> Result<f64, Malformed> {
        match self {
            Self::Int(value) => Ok(value as f64),
            Self::Bytes(bytes) => {
                super::cursor::parse_score(std::str::from_utf8(bytes).map_err(|_| Malformed)?)
            }
        }
    }
}

fn i24(low: [u8; 3]) -> i64 {
    i64::from(i32::from_le_bytes([0, low[0], low[1], low[2]]) >> 8)
}

fn bytes<'a>(cursor: &mut Cursor<'a>, len: usize) -> Result<Piece<'a>, Malformed> {
    cursor.take(len).map(Piece::Bytes)
}

/// The elements of a listpack.
///
/// ```text
/// +-----------------+----------------------+---------------------------------------+------+
/// | all bytes, u32  | elements, u16 (65535 | encoding, data, size of both backwards | 0xff |
/// |                 | when not known)      |                                       |      |
/// +-----------------+----------------------+---------------------------------------+------+
/// ```
pub(super) struct Listpack<'a> {
    cursor: Cursor<'a>,
}

/// Bytes of a listpack's header.
const LISTPACK_HEADER_BYTES: usize = 6;
const LISTPACK_END: u8 = 0xff;
/// An announced number of elements that is not one.
const COUNT_UNKNOWN: u16 = u16::MAX;

impl<'a> Listpack<'a> {
    /// Checks header and end. Elements are checked when they are read.
    pub(super) fn new(packed: &'a [u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(packed);
        let bytes = u32::from_le_bytes(cursor.array()?) as usize;
        cursor.array::<2>()?;
        match packed.split_last() {
            Some((&LISTPACK_END, body)) if bytes == packed.len() && body.len() >= LISTPACK_HEADER_BYTES => {
                Ok(Self { cursor: Cursor::new(&body[LISTPACK_HEADER_BYTES..]) })
            }
            _ => Err(Malformed),
        }
    }
    /// The element that must come now.
    pub(super) fn expect(&mut self) -> Result<Piece<'a>, Malformed> {
        self.next().ok_or(Malformed)?
    }
    pub(super) const fn is_at_end(&self) -> bool {
        self.cursor.is_empty()
    }

    fn element(&mut self) -> Result<Piece<'a>, Malformed> {
        let cursor = &mut self.cursor;
        let before = *cursor;
        let first = cursor.byte()?;
        let low = usize::from(first);
        let piece = match first {
            0..0x80 => Piece::Int(i64::from(first)),
            0x80..0xc0 => bytes(cursor, low & 0x3f)?,
            0xc0..0xe0 => {
                let value = (low & 0x1f) << 8 | usize::from(cursor.byte()?);
                // 13 bits with a sign.
                Piece::Int(if value < 4096 { value as i64 } else { value as i64 - 8192 })
            }
            0xe0..0xf0 => {
                let len = (low & 15) << 8 | usize::from(cursor.byte()?);
                bytes(cursor, len)?
            }
            0xf0 => {
                let len = u32::from_le_bytes(cursor.array()?) as usize;
                bytes(cursor, len)?
            }
            0xf1 => Piece::Int(i16::from_le_bytes(cursor.array()?).into()),
            0xf2 => Piece::Int(i24(cursor.array()?)),
            0xf3 => Piece::Int(i32::from_le_bytes(cursor.array()?).into()),
            0xf4 => Piece::Int(cursor.i64_le()?),
            _ => return Err(Malformed),
        };
        let size = before.remaining() - cursor.remaining();
        let back = cursor.take(back_bytes(size))?;
        let written = back.iter().fold(0, |value, byte| value << 7 | usize::from(byte & 127));
        if written == size { Ok(piece) } else { Err(Malformed) }
    }
}

impl<'a> Iterator for Listpack<'a> {
    type Item = Result<Piece<'a>, Malformed>;
    fn next(&mut self) -> Option<Self::Item> {
        (!self.cursor.is_empty()).then(|| self.element())
    }
}

/// Bytes that an element's size takes behind it.
const fn back_bytes(size: usize) -> usize {
    match size {
        0..128 => 1,
        128..16_384 => 2,
        16_384..2_097_152 => 3,
        2_097_152..268_435_456 => 4,
        _ => 5,
    }
}

/// A listpack being written.
#[derive(Debug)]
pub(super) struct ListpackWriter {
    buf: Vec<u8>,
    count: usize,
}

impl Default for ListpackWriter {
    fn default() -> Self {
        Self { buf: vec![0; LISTPACK_HEADER_BYTES], count: 0 }
    }
}

impl ListpackWriter {
    /// An element; integers are written as such.
    pub(super) fn push(&mut self, element: &[u8]) {
        if let Some(value) = parse_int(element) {
            return self.push_int(value);
        }
        let start = self.buf.len();
        let len = element.len();
        match len {
            0..64 => self.buf.push(0x80 | len as u8),
            64..4096 => self.buf.extend([0xe0 | (len >> 8) as u8, len as u8]),
            _ => {
                self.buf.push(0xf0);
                self.buf.extend((len as u32).to_le_bytes());
            }
        }
        self.buf.extend_from_slice(element);
        self.close(start);
    }
    pub(super) fn push_int(&mut self, value: i64) {
        let start = self.buf.len();
        let low = value.to_le_bytes();
        match value {
            0..=127 => self.buf.push(low[0]),
            -4096..=4095 => self.buf.extend([0xc0 | (low[1] & 0x1f), low[0]]),
            -32_768..=32_767 => self.buf.extend([0xf1, low[0], low[1]]),
            -8_388_608..=8_388_607 => self.buf.extend([0xf2, low[0], low[1], low[2]]),
            -2_147_483_648..=2_147_483_647 => self.buf.extend([0xf3, low[0], low[1], low[2], low[3]]),
            _ => {
                self.buf.push(0xf4);
                self.buf.extend(low);
            }
        }
        self.close(start);
    }
    /// Writes the size of what was written since `start`.
    fn close(&mut self, start: usize) {
        let size = self.buf.len() - start;
        let bytes = back_bytes(size);
        for at in (0..bytes).rev() {
            let more = if at == bytes - 1 { 0 } else { 128 };
            self.buf.push((size >> (7 * at)) as u8 & 127 | more);
        }
        self.count += 1;
    }
    /// The whole listpack.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.buf.push(LISTPACK_END);
        let bytes = self.buf.len() as u32;
        self.buf[..4].copy_from_slice(&bytes.to_le_bytes());
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        self.buf[4..LISTPACK_HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
        self.buf
    }
}

/// The elements of a ziplist, which versions before 7.0 wrote.
///
/// ```text
/// +----------------+-----------+----------+---------------------------------------------+------+
/// | all bytes, u32 | tail, u32 | count,   | size of the one before (1 byte, or 0xfe and | 0xff |
/// |                |           | u16      | u32), encoding, data                        |      |
/// +----------------+-----------+----------+---------------------------------------------+------+
/// ```
pub(super) struct Ziplist<'a> {
    cursor: Cursor<'a>,
}

const ZIPLIST_HEADER_BYTES: usize = 10;

impl<'a> Ziplist<'a> {
    pub(super) fn new(packed: &'a [u8]) -> Result<Self, Malformed> {
        let bytes = u32::from_le_bytes(Cursor::new(packed).array()?) as usize;
        match packed.split_last() {
            Some((&LISTPACK_END, body)) if bytes == packed.len() && body.len() >= ZIPLIST_HEADER_BYTES => {
                Ok(Self { cursor: Cursor::new(&body[ZIPLIST_HEADER_BYTES..]) })
            }
            _ => Err(Malformed),
        }
    }

    fn element(&mut self) -> Result<Piece<'a>, Malformed> {
        let cursor = &mut self.cursor;
        if cursor.byte()? == 0xfe {
            cursor.array::<4>()?;
        }
        let first = cursor.byte()?;
        Ok(match first {
            0..0x40 => bytes(cursor, usize::from(first))?,
            0x40..0x80 => {
                let len = usize::from(first & 0x3f) << 8 | usize::from(cursor.byte()?);
                bytes(cursor, len)?
            }
            0x80 => {
                let len = u32::from_be_bytes(cursor.array()?) as usize;
                bytes(cursor, len)?
            }
            0xc0 => Piece::Int(i16::from_le_bytes(cursor.array()?).into()),
            0xd0 => Piece::Int(i32::from_le_bytes(cursor.array()?).into()),
            0xe0 => Piece::Int(cursor.i64_le()?),
            0xf0 => Piece::Int(i24(cursor.array()?)),
            0xfe => Piece::Int((cursor.byte()? as i8).into()),
            0xf1..=0xfd => Piece::Int(i64::from(first & 15) - 1),
            _ => return Err(Malformed),
        })
    }
}

impl<'a> Iterator for Ziplist<'a> {
    type Item = Result<Piece<'a>, Malformed>;
    fn next(&mut self) -> Option<Self::Item> {
        (!self.cursor.is_empty()).then(|| self.element())
    }
}

/// The numbers of an intset: width, count, and so many numbers of this width, ascending.
pub(super) fn intset(packed: &[u8]) -> Result<impl Iterator<Item = i64>, Malformed> {
    let mut cursor = Cursor::new(packed);
    let width = u32::from_le_bytes(cursor.array()?) as usize;
    let count = u32::from_le_bytes(cursor.array()?) as usize;
    if !matches!(width, 2 | 4 | 8) || width.checked_mul(count) != Some(cursor.remaining()) {
        return Err(Malformed);
    }
    let numbers = cursor.take(cursor.remaining())?;
    Ok(numbers.chunks_exact(width).map(move |low| {
        let sign = if low[width - 1] >= 128 { 255 } else { 0 };
        let mut all = [sign; 8];
        all[..width].copy_from_slice(low);
        i64::from_le_bytes(all)
    }))
}

/// The pairs of a zipmap, which hashes were before version 2.6: count, then length and name, length, spare, value and
/// the spare bytes. A length is a byte, or 254 and 4 bytes where it is that large: another is refused, as in Valkey. So
/// is a wrong count; 254 stands for one that was not kept.
pub(super) fn zipmap<'a>(
    packed: &'a [u8],
    mut pair: impl FnMut(&'a [u8], &'a [u8]) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    const LARGE: u8 = 254;
    let (&count, body) = packed.split_first().ok_or(Malformed)?;
    let (&LISTPACK_END, body) = body.split_last().ok_or(Malformed)? else { return Err(Malformed) };
    let mut cursor = Cursor::new(body);
    let length = |cursor: &mut Cursor<'a>| match cursor.byte()? {
        255 => Err(Malformed),
        LARGE => {
            let length = u32::from_le_bytes(cursor.array()?);
            if length < u32::from(LARGE) { Err(Malformed) } else { Ok(length as usize) }
        }
        length => Ok(usize::from(length)),
    };
    let mut pairs = 0_usize;
    while !cursor.is_empty() {
        let len = length(&mut cursor)?;
        let name = cursor.take(len)?;
        let len = length(&mut cursor)?;
        let spare = cursor.byte()?;
        let value = cursor.take(len)?;
        cursor.take(spare.into())?;
        pair(name, value)?;
        pairs += 1;
    }
    if count == LARGE || usize::from(count) == pairs { Ok(()) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listpack_reads_back() {
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for shift in 0..63 {
            for value in [1_i64 << shift, (1 << shift) - 1, -(1 << shift), -(1 << shift) - 1] {
                texts.push(value.to_string().into_bytes());
            }
        }
        for len in [0, 1, 63, 64, 125, 126, 127, 4095, 4096, 16_380, 16_384] {
            texts.push(vec![b'x'; len]);
        }
        let mut writer = ListpackWriter::default();
        texts.iter().for_each(|text| writer.push(text));
        let packed = writer.finish();
        let read = Listpack::new(&packed)
            .unwrap()
            .map(|piece| piece.unwrap().bytes(&mut Digits::default()).to_vec());
        assert!(read.eq(texts));
        for cut in 0..packed.len().min(2000) {
            assert!(Listpack::new(&packed[..cut]).is_err());
        }
    }

    #[test]
    fn a_zipmap_has_one_form() {
        let read = |packed: &[u8]| {
            let mut pairs = Vec::new();
            let read = zipmap(packed, |name, value| {
                pairs.push([name, value].map(<[u8]>::to_vec));
                Ok(())
            });
            read.map(|()| pairs)
        };
        let abc = [b"abc".to_vec(), b"def".to_vec()];
        assert_eq!(read(b"\x01\x03abc\x03\x01def!\xff").unwrap(), std::slice::from_ref(&abc));
        assert_eq!(read(b"\xfe\x03abc\x03\0def\xff").unwrap(), [abc]);
        // A count that is wrong, a name and a value whose lengths are longer than they need be.
        assert!(read(b"\x02\x03abc\x03\0def\xff").is_err());
        assert!(read(b"\x01\xfe\x03\0\0\0abc\x03\0def\xff").is_err());
        assert!(read(b"\x01\x03abc\xfe\x03\0\0\0\0def\xff").is_err());
        let large = [&b"\x01\xfe\xfe\0\0\0"[..], &[b'x'; 254], b"\0\0\xff"].concat();
        assert_eq!(read(&large).unwrap()[0][0].len(), 254);
    }

    #[test]
    fn integers_of_an_intset_keep_their_sign() {
        let packed = b"\x02\0\0\0\x02\0\0\0\xfe\xff\x05\0";
        assert_eq!(intset(packed).unwrap().collect::<Vec<_>>(), [-2, 5]);
        assert!(intset(&packed[..11]).is_err() && intset(b"\x03\0\0\0\0\0\0\0").is_err());
        assert!(intset(b"\x08\0\0\0\xff\xff\xff\xff").is_err());
    }

    #[test]
    fn a_ziplist_has_its_own_numbers() {
        let body = b"\x00\xf1\x02\xfd\x02\xfe\xff\x03\x01a\x03\xc0\xff\x7f\x04\xf0\xff\xff\xff";
        let mut packed = vec![body.len() as u8 + 11, 0, 0, 0, 0, 0, 0, 0, 6, 0];
        packed.extend_from_slice(body);
        packed.push(0xff);
        let read: Result<Vec<_>, _> = Ziplist::new(&packed).unwrap().collect();
        let ints = [Piece::Int(0), Piece::Int(12), Piece::Int(-1)];
        let rest = [Piece::Bytes(b"a"), Piece::Int(32_767), Piece::Int(-1)];
        assert_eq!(read.unwrap(), [ints, rest].concat());
    }
}
