//! A socket of a fleet that waits for nothing, plain or under TLS. Owns what TLS has to be told and tells. Does not own
//! the handshakes, nor what is sent.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

#[cfg(feature = "tls")]
pub(crate) use self::tls::Session;

/// There is none in this build.
#[cfg(not(feature = "tls"))]
#[derive(Debug)]
pub(crate) enum Session {}

/// A connected socket that waits for nothing.
#[derive(Debug)]
pub struct Wire {
    socket: OwnedFd,
    session: Option<Box<Session>>,
}

impl Wire {
    pub(super) fn new(socket: OwnedFd, session: Option<Box<Session>>) -> Wire {
        Wire { socket, session }
    }

    /// Receives what there is; 0 is the end. A call that does not fill `into` has taken all.
    #[inline]
    pub fn receive(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match &mut self.session {
            None => recv(&self.socket, into, RecvFlags::DONTWAIT).map(|(len, _)| len),
            #[cfg(feature = "tls")]
            Some(session) => session.receive(&self.socket, into),
            #[cfg(not(feature = "tls"))]
            Some(session) => match **session {},
        }
    }

    /// Sends; how much was taken, of which TLS may keep some: see [`keeps_some`](Self::keeps_some).
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        match &mut self.session {
            None => send(&self.socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT),
            #[cfg(feature = "tls")]
            Some(session) => session.send(&self.socket, bytes),
            #[cfg(not(feature = "tls"))]
            Some(session) => match **session {},
        }
    }

    /// Whether something that was taken has not been sent: [`send`](Self::send) goes on with it, also without bytes.
    #[inline]
    pub fn keeps_some(&self) -> bool {
        match &self.session {
            None => false,
            #[cfg(feature = "tls")]
            Some(session) => session.keeps_some(),
            #[cfg(not(feature = "tls"))]
            Some(session) => match **session {},
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(feature = "tls")]
mod tls {
    use std::io::{self, Read as _, Write as _};

    use rustls::ClientConnection;

    use super::*;

    /// Ciphertext that is received at once: some records.
    const RECORDS_BYTES: usize = 64 << 10;

    /// A session that stands.
    #[derive(Debug)]
    pub(crate) struct Session {
        tls: ClientConnection,
        /// Received and not taken: rustls had no room for it.
        ahead: Vec<u8>,
    }

    impl Session {
        pub(crate) fn new(tls: ClientConnection, ahead: Vec<u8>) -> Session {
            Session { tls, ahead }
        }

        pub(super) fn receive(&mut self, socket: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
            let (mut len, mut drained) = (0, false);
            let mut ciphertext = [0; RECORDS_BYTES];
            loop {
                match self.tls.reader().read(&mut into[len..]) {
                    // The end that the server has said.
                    Ok(0) if len < into.len() => return Ok(len),
                    Ok(more) => len += more,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return Ok(len),
                }
                if len == into.len() {
                    return Ok(len);
                }
                if self.ahead.is_empty() {
                    if drained {
                        return if len > 0 { Ok(len) } else { Err(Errno::AGAIN) };
                    }
                    match recv(socket, &mut ciphertext, RecvFlags::DONTWAIT) {
                        // The end is told of when all is read.
                        Ok((0, _)) => return Ok(len),
                        Ok((count, _)) => {
                            drained = count < ciphertext.len();
                            self.ahead.extend_from_slice(&ciphertext[..count]);
                        }
                        Err(Errno::AGAIN) => {
                            drained = true;
                            continue;
                        }
                        Err(error) => return if len > 0 { Ok(len) } else { Err(error) },
                    }
                }
                self.decrypt().map_err(|_| Errno::PROTO)?;
            }
        }

        fn decrypt(&mut self) -> Result<(), rustls::Error> {
            let mut rest = &self.ahead[..];
            // Reading nothing would be the end to rustls.
            while !rest.is_empty() && self.tls.read_tls(&mut rest).is_ok() {
                self.tls.process_new_packets()?;
            }
            let taken = self.ahead.len() - rest.len();
            self.ahead.drain(..taken);
            Ok(())
        }

        pub(super) fn send(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
            self.push_out(socket)?;
            let mut taken = 0;
            // rustls takes some records at a time. Who waits to be told that a socket takes bytes is told only when it
            // did not: as much is sent as it takes.
            while taken < bytes.len() && !self.keeps_some() {
                match self.tls.writer().write(&bytes[taken..]) {
                    Ok(0) => break,
                    Ok(count) => taken += count,
                    Err(_) => return Err(Errno::PROTO),
                }
                self.push_out(socket)?;
            }
            if taken == 0 && !bytes.is_empty() { Err(Errno::AGAIN) } else { Ok(taken) }
        }

        fn push_out(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
            while self.keeps_some() {
                match self.tls.write_tls(&mut Out(socket)) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::PIPE)),
                }
            }
            Ok(())
        }

        pub(super) fn keeps_some(&self) -> bool {
            self.tls.wants_write()
        }
    }

    /// The socket as rustls writes to it: all slices with one call.
    struct Out<'s>(&'s OwnedFd);

    impl io::Write for Out<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(send(self.0, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
        }
        fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
            Ok(rustix::io::writev(self.0, slices)?)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
