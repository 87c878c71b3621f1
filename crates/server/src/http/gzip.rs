//! Owns: compressing answers: whole ones, and those that are sent in chunks as they come. Does not own: which are
//! (`super::ledger`), their heads (`super::answer`).
//!
//! Each chunk is compressed by itself, ends at a byte, and is followed by others: together they are one stream of
//! deflate, of which a connection keeps only the checksum meanwhile.

use std::io::Write;

use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};

use super::answer::{About, Pen};

/// Bodies of fewer bytes are not compressed, since they would hardly shrink; larger ones than the other, and larger
/// chunks, not either, since the worker's other clients would wait for it.
const BYTES_MIN: usize = 1 << 10;
const BYTES_MAX: usize = 1 << 20;

/// Bytes of a block that is stored as it is.
const STORED_BYTES_MAX: usize = 0xFFFF;

/// No name, no time, any system (RFC 1952, section 2.3).
const HEADER: [u8; 10] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF];
/// A last block without anything, by the fixed codes.
const END: [u8; 2] = [3, 0];

/// A body compressed, if that is wanted and worth it, and the worker has not compressed much in this tick.
pub(super) fn whole(body: &[u8], about: &About, pen: &mut Pen) -> Option<Vec<u8>> {
    let is_worth_it = about.gzip && (BYTES_MIN..=BYTES_MAX).contains(&body.len());
    if is_worth_it && pen.may_compress(body.len()) { compressed(body) } else { None }
}

/// A body compressed, if that makes it shorter.
pub(super) fn compressed(body: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().filter(|zipped| zipped.len() < body.len())
}

/// A body that is compressed as it comes.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    crc: Crc,
    begun: bool,
}

impl Stream {
    /// The next piece of the body, compressed.
    pub(super) fn piece(&mut self, piece: &[u8], is_last: bool, pen: &mut Pen) -> Vec<u8> {
        let mut zipped = Vec::with_capacity(piece.len() / 4 + 32);
        if !std::mem::replace(&mut self.begun, true) {
            zipped.extend_from_slice(&HEADER);
        }
        self.crc.update(piece);
        if piece.len() <= BYTES_MAX && pen.may_compress(piece.len()) {
            let mut encoder = DeflateEncoder::new(zipped, Compression::fast());
            // A Vec takes all that is written. Dropped without being finished: no last block is written.
            let _ = encoder.write_all(piece);
            let _ = encoder.flush();
            zipped = std::mem::take(encoder.get_mut());
        } else {
            for block in piece.chunks(STORED_BYTES_MAX) {
                let len = block.len() as u16;
                zipped.push(0);
                zipped.extend_from_slice(&len.to_le_bytes());
                zipped.extend_from_slice(&(!len).to_le_bytes());
                zipped.extend_from_slice(block);
            }
        }
        if is_last {
            zipped.extend_from_slice(&END);
            zipped.extend_from_slice(&self.crc.sum().to_le_bytes());
            zipped.extend_from_slice(&self.crc.amount().to_le_bytes());
        }
        zipped
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::limits::ZIPPED_PER_TICK_BYTES_MAX;

    #[test]
    fn only_what_is_neither_small_nor_large_is_compressed() {
        let about = About { gzip: true, ..About::default() };
        let zipped = |len: usize| whole(&vec![b'x'; len], &about, &mut Pen::new()).is_some();
        assert!(!zipped(BYTES_MIN - 1) && zipped(BYTES_MIN));
        assert!(zipped(BYTES_MAX) && !zipped(BYTES_MAX + 1));
        assert!(whole(&[b'x'; 2000], &About::default(), &mut Pen::new()).is_none());
    }

    #[test]
    fn a_tick_compresses_no_more_than_a_limit() {
        let about = About { gzip: true, ..About::default() };
        let body = vec![b'x'; ZIPPED_PER_TICK_BYTES_MAX / 2];
        let mut pen = Pen::new();
        for now_ms in [1, 2] {
            pen.set_time(now_ms);
            let zipped: Vec<bool> = (0..3).map(|_| whole(&body, &about, &mut pen).is_some()).collect();
            assert_eq!(zipped, [true, true, false]);
            let piece = Stream::default().piece(&body, true, &mut pen);
            assert!(piece.len() > body.len(), "a stream goes on with what is not compressed");
        }
    }

    #[test]
    fn pieces_are_one_stream() {
        let text: Vec<u8> = (0..40_000_u32).flat_map(|at| (at % 977).to_le_bytes()).collect();
        for lens in
            [&[5_usize][..], &[0], &[1, 0, 2], &[100, 60_000, 7, 0], &[BYTES_MAX + 1, 3], &[3, 2 * BYTES_MAX]]
        {
            let mut stream = Stream::default();
            let (mut zipped, mut body) = (Vec::new(), Vec::new());
            for (at, &len) in lens.iter().enumerate() {
                let piece: Vec<u8> = text.iter().copied().cycle().skip(at).take(len).collect();
                zipped.extend(stream.piece(&piece, at + 1 == lens.len(), &mut Pen::new()));
                body.extend(piece);
            }
            let mut unzipped = Vec::new();
            let mut decoder = GzDecoder::new(&zipped[..]);
            decoder.read_to_end(&mut unzipped).expect("it is gzip");
            assert!(unzipped == body, "{lens:?}");
            assert!(decoder.into_inner().is_empty(), "nothing is behind it");
        }
    }
}
