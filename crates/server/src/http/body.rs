//! Owns: where the body of a request ends, and putting the chunks of one together. Does not own: what it says
//! (`super::json`, `super::routes`), when more of it is received.

use std::sync::atomic::Ordering::Relaxed;

use weft_engine::config::Settings;

use super::answer::Refusal;
use crate::limits::UNAUTHENTICATED_FRAME_BYTES_MAX;

/// Bytes of one chunk's line: its length, and extensions, which are passed over.
const CHUNK_LINE_BYTES_MAX: usize = 256;
/// Digits of a chunk's length.
const CHUNK_DIGITS_MAX: usize = 8;
/// Bytes of the lines behind the last chunk.
const TRAILER_BYTES_MAX: usize = 4 << 10;
/// What the lines of chunks may take: so much, and so many times what they bring.
const OVERHEAD_BYTES: usize = 16 << 10;
const OVERHEAD_FACTOR: usize = 8;

/// How long a body may be, and what is answered to a longer one.
pub(super) fn limit(is_authenticated: bool, settings: &Settings) -> (usize, Refusal) {
    let bytes_max = settings.http_body_bytes_max.load(Relaxed);
    let unauthenticated_max = UNAUTHENTICATED_FRAME_BYTES_MAX as usize;
    if is_authenticated || bytes_max < unauthenticated_max {
        (bytes_max, Refusal::BODY)
    } else {
        (unauthenticated_max, Refusal::UNAUTHENTICATED_BODY)
    }
}

/// A body that comes in chunks, as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// What they hold.
    pub(crate) bytes: Vec<u8>,
    /// How far the request has been read, behind its head.
    at: usize,
    part: Part,
    trailer_bytes: usize,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Line,
    /// So many bytes.
    Bytes(usize),
    /// The line end behind them.
    End,
    /// Lines up to an empty one.
    Trailer,
    Over,
}

impl Chunks {
    /// Reads on in `body`, which begins where the first chunk does. Gives the bytes of the whole body on the wire when
    /// it is whole.
    pub(crate) fn read(&mut self, body: &[u8], bytes_max: usize) -> Result<Option<usize>, Refusal> {
        loop {
            let rest = &body[self.at..];
            match self.part {
                Part::Line => {
                    let Some(line) = line(rest, CHUNK_LINE_BYTES_MAX)? else { return Ok(None) };
                    let size = size(line)?;
                    if size > bytes_max.saturating_sub(self.bytes.len()) {
                        return Err(Refusal::BODY);
                    }
                    self.at += line.len() + 2;
                    if self.at > OVERHEAD_BYTES + OVERHEAD_FACTOR * (self.bytes.len() + size) {
                        return Err(Refusal::CHUNKS);
                    }
                    self.part = if size == 0 { Part::Trailer } else { Part::Bytes(size) };
                }
                Part::Bytes(left) => {
                    let come = left.min(rest.len());
                    self.bytes.extend_from_slice(&rest[..come]);
                    self.at += come;
                    if come < left {
                        self.part = Part::Bytes(left - come);
                        return Ok(None);
                    }
                    self.part = Part::End;
                }
                Part::End => match rest {
                    [] | [b'\r'] => return Ok(None),
                    [b'\r', b'\n', ..] => {
                        self.at += 2;
                        self.part = Part::Line;
                    }
                    _ => return Err(Refusal::CHUNK),
                },
                Part::Trailer => {
                    let Some(line) = line(rest, TRAILER_BYTES_MAX - self.trailer_bytes)? else {
                        return Ok(None);
                    };
                    self.trailer_bytes += line.len() + 2;
                    self.at += line.len() + 2;
                    if self.trailer_bytes >= TRAILER_BYTES_MAX {
                        return Err(Refusal::CHUNKS);
                    }
                    if line.is_empty() {
                        self.part = Part::Over;
                    } else if !is_field(line) {
                        return Err(Refusal::CHUNK);
                    }
                }
                Part::Over => return Ok(Some(self.at)),
            }
        }
    }
}

/// Whether a line is a field: a name of the marks that names have, and a colon.
fn is_field(line: &[u8]) -> bool {
    let is_mark = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let colon = line.iter().position(|&byte| byte == b':');
    colon.is_some_and(|colon| colon > 0 && line[..colon].iter().all(is_mark))
}

/// A line without its end, if it is there; it must end with CRLF and hold no other control byte than a tab.
fn line(bytes: &[u8], bytes_max: usize) -> Result<Option<&[u8]>, Refusal> {
    let end = bytes.iter().take(bytes_max).position(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7F);
    match end {
        None if bytes.len() >= bytes_max => Err(Refusal::CHUNKS),
        None => Ok(None),
        Some(end) => match &bytes[end..] {
            [b'\r', b'\n', ..] => Ok(Some(&bytes[..end])),
            [b'\r'] => Ok(None),
            _ => Err(Refusal::CHUNK),
        },
    }
}

/// The length that a chunk's line says: hexadecimal digits and nothing else before an extension.
fn size(line: &[u8]) -> Result<usize, Refusal> {
    let digits = line.iter().position(|&byte| byte == b';').map_or(line, |end| &line[..end]);
    if !(1..=CHUNK_DIGITS_MAX).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Refusal::CHUNK);
    }
    let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0) as usize;
    Ok(digits.iter().fold(0, |size, byte| size << 4 | digit(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &[u8]) -> Result<Option<(usize, Vec<u8>)>, Refusal> {
        let mut chunks = Chunks::default();
        Ok(chunks.read(body, 1000)?.map(|len| (len, chunks.bytes)))
    }

    #[test]
    fn chunks_are_put_together_however_they_are_cut() {
        let body = b"4\r\nabcd\r\nA;name=\"v\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
        let whole = Some((body.len(), b"abcd0123456789".to_vec()));
        assert_eq!(read(body), Ok(whole.clone()));
        assert_eq!(read(&[body, &b"GET /"[..]].concat()), Ok(whole), "what is behind it is left alone");
        for step in 1..7 {
            let mut chunks = Chunks::default();
            let mut end = 0;
            while end < body.len() {
                end = (end + step).min(body.len());
                let read = chunks.read(&body[..end], 1000).expect("it is well-formed");
                assert_eq!(read.is_some(), end == body.len(), "after {end} bytes");
            }
            assert_eq!(chunks.bytes, b"abcd0123456789");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for bad in [
            &b"4\nabcd\r\n0\r\n\r\n"[..],
            b"4 \r\nabcd\r\n0\r\n\r\n",
            b" 4\r\nabcd\r\n0\r\n\r\n",
            b"+4\r\nabcd\r\n0\r\n\r\n",
            b"0x4\r\nabcd\r\n0\r\n\r\n",
            b"-1\r\n\r\n",
            b"\r\nabcd\r\n",
            b"4\r\nabcde\r\n",
            b"4\r\nabcd\n0\r\n\r\n",
            b"4\r\nabcd0\r\n\r\n",
            b"4;a=\x00\r\nabcd\r\n0\r\n\r\n",
            b"000000004\r\nabcd\r\n",
            b"FFFFFFFFFFFFFFFF4\r\n",
            b"0\r\nno colon\r\n\r\n",
            b"0\r\n: no name\r\n\r\n",
            b"0\r\nA : b\r\n\r\n",
            b"0\r\nA: b\n\r\n",
            b"0\r\nA: b\r\n folded: c\r\n\r\n",
        ] {
            assert!(read(bad).is_err(), "{:?}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn chunks_have_limits() {
        let one =
            |size: usize| [format!("{size:x}\r\n").as_bytes(), &vec![b'x'; size], b"\r\n0\r\n\r\n"].concat();
        assert!(read(&one(1000)).is_ok_and(|body| body.is_some()));
        assert_eq!(read(&one(1001)), Err(Refusal::BODY));
        assert!(
            read(b"00000001\r\nx\r\n0\r\n\r\n").is_ok_and(|body| body.is_some()),
            "as many digits as may be"
        );
        assert_eq!(read(b"000000001\r\nx\r\n0\r\n\r\n"), Err(Refusal::CHUNK));
        let extended = |len: usize| [b"1;", "e".repeat(len).as_bytes(), b"\r\nx\r\n0\r\n\r\n"].concat();
        assert!(read(&extended(CHUNK_LINE_BYTES_MAX - 3)).is_ok_and(|body| body.is_some()));
        assert_eq!(read(&extended(CHUNK_LINE_BYTES_MAX - 2)), Err(Refusal::CHUNKS));
        let trailer = |len: usize| [b"0\r\nA:", "e".repeat(len).as_bytes(), b"\r\n\r\n"].concat();
        assert!(read(&trailer(TRAILER_BYTES_MAX - 7)).is_ok_and(|body| body.is_some()));
        assert_eq!(read(&trailer(TRAILER_BYTES_MAX - 1)), Err(Refusal::CHUNKS));
        let small = |count: usize| "1;123456789012345\r\nx\r\n".repeat(count);
        assert!(read(small(900).as_bytes()).is_ok());
        let mut chunks = Chunks::default();
        assert_eq!(chunks.read(small(2000).as_bytes(), 1 << 20), Err(Refusal::CHUNKS));
    }
}
