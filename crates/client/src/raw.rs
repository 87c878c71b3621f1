//! Owns a connection as mere bytes, after its handshake: for what is no request and reply, as a server's stream to its
//! replicas. Does not own what the bytes mean.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::input::Input;
use crate::stream::Stream;

/// A connection that was logged in and is read and written as bytes, under TLS where it was made so; see
/// [`Connection::into_raw`](crate::Connection::into_raw).
#[derive(Debug)]
pub struct Raw {
    stream: Stream,
    /// What arrived before it was taken as bytes.
    input: Input,
}

impl Raw {
    pub(crate) fn new(stream: Stream, input: Input) -> Raw {
        Raw { stream, input }
    }

    /// The longest wait of a read; [`io::ErrorKind::WouldBlock`] when it is over.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(limit)
    }
}

impl Read for Raw {
    /// What there is, at least a byte; 0 is the end.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let there = self.input.filled();
        if there.is_empty() {
            return self.stream.read(into);
        }
        let len = there.len().min(into.len());
        into[..len].copy_from_slice(&there[..len]);
        self.input.consume(len);
        Ok(len)
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl AsFd for Raw {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
