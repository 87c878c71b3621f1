//! A window that slides over a stream: the bytes that have been read and not yet used.
//!
//! Owns the buffer and the position in the stream. Memory is the size of the window, or of the largest frame when that
//! is larger; it grows by what has arrived, never by what a length announces.

use std::io::{self, ErrorKind, Read};

use weft_engine::rdb::file::Source;

/// Bytes of the window at first, and of a read at most while frames are small.
const WINDOW_BYTES: usize = 1 << 20;

/// A reader with the unused bytes of it in one slice.
pub(crate) struct Window {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The unused bytes are `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Offset in the stream of the first unused byte.
    offset: u64,
    at_end: bool,
}

impl Window {
    pub(crate) fn new(reader: Box<dyn Read + Send>) -> Window {
        Window { reader, buffer: vec![0; WINDOW_BYTES], start: 0, end: 0, offset: 0, at_end: false }
    }

    /// One whose first byte stands at this offset.
    pub(crate) fn at(reader: Box<dyn Read + Send>, offset: u64) -> Window {
        Window { offset, ..Window::new(reader) }
    }

    /// The unused bytes that are there.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Offset in the stream of the first unused byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// `count` bytes have been used. At most as many as there are.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Reads on. Returns whether there are more bytes than before; false is the end of the stream.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            // A window that a huge frame has stretched shrinks again.
            if self.buffer.len() > 8 * WINDOW_BYTES && self.end < WINDOW_BYTES {
                self.buffer.truncate(WINDOW_BYTES);
                self.buffer.shrink_to_fit();
            }
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads on until `count` unused bytes are there; false when the stream ends before.
    pub(crate) fn fill_to(&mut self, count: usize) -> io::Result<bool> {
        while self.end - self.start < count {
            if !self.fill()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Passes over `count` bytes; false when the stream ends before.
    pub(crate) fn pass_over(&mut self, mut count: u64) -> io::Result<bool> {
        loop {
            let there = (self.end - self.start) as u64;
            let now = count.min(there);
            self.consume(now as usize);
            count -= now;
            if count == 0 {
                return Ok(true);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }
}

impl Source for Window {
    fn fill_to(&mut self, count: usize) -> io::Result<bool> {
        Window::fill_to(self, count)
    }
    fn bytes(&self) -> &[u8] {
        Window::bytes(self)
    }
    fn consume(&mut self, count: usize) {
        Window::consume(self, count);
    }
    fn offset(&self) -> u64 {
        Window::offset(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slides_grows_and_shrinks() {
        let stream: Vec<u8> = (0..40 * WINDOW_BYTES).map(|i| (i % 251) as u8).collect();
        let mut window = Window::new(Box::new(io::Cursor::new(stream.clone())));
        assert!(window.fill_to(3).unwrap());
        window.consume(3);
        assert!(window.fill_to(20 * WINDOW_BYTES).unwrap());
        assert_eq!(window.bytes()[..20 * WINDOW_BYTES], stream[3..3 + 20 * WINDOW_BYTES]);
        assert!(window.pass_over(39 * WINDOW_BYTES as u64).unwrap());
        assert!(window.fill_to(100).unwrap());
        assert_eq!(window.bytes()[..100], stream[3 + 39 * WINDOW_BYTES..][..100]);
        assert_eq!(window.offset(), 3 + 39 * WINDOW_BYTES as u64);
        assert!(!window.pass_over(2 * WINDOW_BYTES as u64).unwrap());
        assert_eq!(window.offset(), stream.len() as u64);
        assert!(!window.fill().unwrap());
    }
}
