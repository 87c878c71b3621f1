//! Owns the bytes that have arrived and are not yet decoded. Does not own what they mean.

/// Room for a read; a buffer has it when it is new.
const READ_BYTES: usize = 16 << 10;
/// An empty buffer above this gives its memory back.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// A buffer whose front is consumed and whose back is read into. It doubles when it is full of bytes that arrived,
/// never because of a length that was announced.
#[derive(Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Input({} of {} bytes)", self.end - self.start, self.bytes.len())
    }
}

impl Input {
    /// What has arrived.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Forgets the first `len` bytes of [`filled`](Self::filled).
    pub(crate) fn consume(&mut self, len: usize) {
        self.start += len;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > KEPT_BYTES_MAX {
                self.bytes = Vec::new();
            }
        }
    }

    /// Room for what comes next; [`add`](Self::add) says how much came.
    pub(crate) fn spare(&mut self) -> &mut [u8] {
        if self.end == self.bytes.len() {
            if self.start > self.bytes.len() / 2 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                self.bytes.resize((self.bytes.len() * 2).max(READ_BYTES), 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    /// So many bytes were read into [`spare`](Self::spare).
    pub(crate) fn add(&mut self, len: usize) {
        self.end += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in_and_memory_goes_back() {
        let mut input = Input::default();
        let (mut next_in, mut next_out) = (0u8, 0u8);
        for round in 0..2_000 {
            let spare = input.spare();
            let len = spare.len().min(1 + round % 700);
            for byte in &mut spare[..len] {
                *byte = next_in;
                next_in = next_in.wrapping_add(1);
            }
            input.add(len);
            let taken = input.filled().len().min(round % 600);
            for &byte in &input.filled()[..taken] {
                assert_eq!(byte, next_out);
                next_out = next_out.wrapping_add(1);
            }
            input.consume(taken);
        }
        while input.bytes.len() <= KEPT_BYTES_MAX {
            let len = input.spare().len();
            input.add(len);
        }
        input.consume(input.filled().len());
        assert!(input.bytes.is_empty());
    }
}
