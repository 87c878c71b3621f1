//! Owns: TLS on a connection: bytes of the socket to plaintext and back, handshakes, the client's certificate. Does not
//! own: sockets, what the plaintext says, what TLS is served with (`setup`).
//!
//! A handshake's steps are done by other threads (`helpers`): a connection that has received a part of one lends its
//! state and is neither read from nor written to until it comes back.

mod der;
mod helpers;
mod setup;

use std::io::{self, IoSlice, Read, Write};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::io::Errno;
use rustls::server::ServerConnection;
use weft_engine::Engine;
use weft_engine::config::Values;

pub(crate) use helpers::{Helpers, Step, Stepped};
pub(crate) use setup::Setup;
use setup::UserFrom;

use crate::{notice, warning};

/// The byte that a connection begins with under TLS: the record of a handshake.
pub(crate) const FIRST_BYTE: u8 = 0x16;
/// Plaintext that is encrypted before it is sent.
const SEAL_BYTES: usize = 64 << 10;

/// A certificate that expires in less is worth a warning: 30 days.
const EXPIRES_SOON_S: i64 = 30 * 86_400;

/// TLS of a server: what new connections begin with, which may be replaced, and who helps with handshakes.
#[derive(Default)]
pub(crate) struct Service {
    current: RwLock<Option<Arc<Setup>>>,
    pub(crate) helpers: Helpers,
}

impl Service {
    /// What a connection that begins now begins with; nothing where TLS is not served.
    pub(crate) fn current(&self) -> Option<Arc<Setup>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Reads what the directives name: new connections begin with that, those that there are go on as they are. Where
    /// something is wrong, all stays as it was.
    pub(crate) fn follow(&self, engine: &Engine, values: &Values) -> Result<(), String> {
        let setup = Setup::of(values)?;
        if let Some(setup) = &setup {
            let days = setup.left_s() / 86_400;
            match setup.left_s() {
                ..=0 => warning!("the certificate of TLS has expired"),
                1..EXPIRES_SOON_S => warning!("the certificate of TLS expires in {days} days"),
                _ => notice!("TLS: the certificate expires in {days} days"),
            }
        }
        *engine.facts.tls_expires_s.write() = setup.as_ref().map(|setup| setup.expires_s);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = setup.map(Arc::new);
        Ok(())
    }
}

/// How bytes go over a connection's socket.
pub(crate) enum Transport {
    /// As they are.
    Plain,
    /// Encrypted.
    Tls(Box<Tls>),
}

/// TLS of one connection.
pub(crate) struct Tls {
    /// Nothing while a helper has it.
    state: Option<Box<ServerConnection>>,
    setup: Arc<Setup>,
    /// Ciphertext that was received and not taken yet: rustls had no room for it.
    ahead: Vec<u8>,
    /// What rustls was given of a handshake that is not over: it may keep all of it.
    handshake_bytes: usize,
    /// Plaintext that is encrypted and not sent, its records' heads not counted.
    sealed: usize,
    /// A part of a handshake has come.
    wants_step: bool,
    established: bool,
    failed: bool,
    /// It has been said that nothing more follows.
    ended: bool,
}

/// What a receive has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Bytes of plaintext.
    pub(crate) len: usize,
    /// Nothing more is there: the next event tells of more.
    pub(crate) drained: bool,
    /// The client will send no more.
    pub(crate) ended: bool,
}

impl Tls {
    pub(crate) fn new(setup: Arc<Setup>) -> Option<Box<Self>> {
        let state = ServerConnection::new(Arc::clone(&setup.config)).ok()?;
        Some(Box::new(Self {
            state: Some(Box::new(state)),
            setup,
            ahead: Vec::new(),
            handshake_bytes: 0,
            sealed: 0,
            wants_step: false,
            established: false,
            failed: false,
            ended: false,
        }))
    }

    /// Whether a helper has its state: nothing can be read or written.
    pub(crate) const fn is_away(&self) -> bool {
        self.state.is_none()
    }
    pub(crate) const fn is_established(&self) -> bool {
        self.established
    }
    /// Its state, if a step of the handshake is to be done.
    pub(crate) fn lend(&mut self) -> Option<Box<ServerConnection>> {
        if std::mem::take(&mut self.wants_step) { self.state.take() } else { None }
    }
    /// Its state comes back. Says whether the handshake is over by this step.
    pub(crate) fn take_back(&mut self, stepped: Stepped) -> Result<bool, rustls::Error> {
        let is_over = !stepped.tls.is_handshaking();
        self.state = Some(stepped.tls);
        self.note_sealed();
        if let Err(error) = stepped.result {
            self.failed = true;
            return Err(error);
        }
        let is_new = is_over && !self.established;
        self.established |= is_over;
        if is_over {
            self.handshake_bytes = 0;
        }
        Ok(is_new)
    }
    /// Whether a session was resumed.
    pub(crate) fn is_resumed(&self) -> bool {
        let kind = self.state.as_ref().and_then(|state| state.handshake_kind());
        kind == Some(rustls::HandshakeKind::Resumed)
    }
    /// Names of users that the client's certificate has, as `tls-auth-clients-user` says; the first that exists is it.
    pub(crate) fn user_names(&self) -> Vec<Vec<u8>> {
        let certificates = self.state.as_ref().and_then(|state| state.peer_certificates());
        let Some(certificate) =
            certificates.and_then(|all| all.first()).and_then(|der| der::Certificate::read(der))
        else {
            return Vec::new();
        };
        match self.setup.user_from {
            UserFrom::Nothing => Vec::new(),
            UserFrom::CommonName => certificate.common_name().into_iter().map(<[u8]>::to_vec).collect(),
            UserFrom::Uri => certificate.uris().into_iter().map(<[u8]>::to_vec).collect(),
        }
    }

    /// Takes ciphertext that was received before TLS was known to begin.
    pub(crate) fn begin(&mut self, bytes: &[u8]) {
        self.ahead.extend_from_slice(bytes);
        self.take_ahead();
    }

    /// Bytes that it keeps of what was received.
    pub(crate) fn input_bytes(&self) -> usize {
        self.ahead.capacity() + self.handshake_bytes
    }
    /// Plaintext that was taken to be sent and is not.
    pub(crate) const fn unsent(&self) -> usize {
        self.sealed
    }

    /// Fills `into` with plaintext. `receive` brings ciphertext; `scratch` is where it goes.
    pub(crate) fn open(
        &mut self,
        into: &mut [u8],
        scratch: &mut [u8],
        mut receive: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>,
    ) -> rustix::io::Result<Opened> {
        let mut opened = Opened { len: 0, drained: false, ended: false };
        loop {
            if self.failed {
                return Err(Errno::PROTO);
            }
            let Some(state) = &mut self.state else { return Err(Errno::WOULDBLOCK) };
            match state.reader().read(&mut into[opened.len..]) {
                Ok(0) if opened.len < into.len() => opened.ended = true,
                Ok(len) => opened.len += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The stream ends without saying so. Requests say themselves whether they are whole.
                Err(_) => opened.ended = true,
            }
            if opened.ended || opened.len == into.len() {
                // No event tells of plaintext that had no room: whoever is full must come again.
                opened.drained &= opened.len < into.len();
                return Ok(opened);
            }
            if !self.ahead.is_empty() {
                let before = self.ahead.len();
                self.take_ahead();
                // All plaintext has been read, so that there is room: what is not taken now never is.
                self.failed |= self.ahead.len() == before && !self.wants_step;
            } else if opened.drained {
                return Ok(opened);
            } else {
                let room = scratch.len().min((into.len() - opened.len).max(SCRATCH_MIN));
                match receive(&mut scratch[..room]) {
                    Ok(0) => {
                        // Whoever reads is told of the end when all is read.
                        let _ = state.read_tls(&mut io::empty());
                        if opened.len == 0 {
                            opened.ended = true;
                            return Ok(opened);
                        }
                        opened.drained = false;
                        return Ok(opened);
                    }
                    Ok(len) => {
                        opened.drained = len < room;
                        self.take(&scratch[..len]);
                    }
                    Err(Errno::WOULDBLOCK) => opened.drained = true,
                    Err(error) => return Err(error),
                }
            }
            if self.wants_step {
                return if opened.len > 0 { Ok(opened) } else { Err(Errno::WOULDBLOCK) };
            }
        }
    }

    fn take_ahead(&mut self) {
        let ahead = std::mem::take(&mut self.ahead);
        self.take(&ahead);
    }

    /// Gives ciphertext to rustls, as much as it has room for; the rest stays.
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.failed {
            let Some(state) = &mut self.state else { break };
            match state.read_tls(&mut bytes) {
                Ok(0) => break,
                Ok(len) if state.is_handshaking() => {
                    self.handshake_bytes += len;
                    self.wants_step = true;
                }
                Ok(_) => match state.process_new_packets() {
                    Ok(_) => self.note_sealed(),
                    Err(_) => {
                        self.failed = true;
                        self.note_sealed();
                    }
                },
                // A handshake must fit; plaintext is to be read first.
                Err(_) if state.is_handshaking() && !self.wants_step => self.failed = true,
                Err(_) => break,
            }
        }
        self.ahead.extend_from_slice(bytes);
    }

    /// rustls may have something of its own to send: a part of a handshake, an alert.
    fn note_sealed(&mut self) {
        if self.sealed == 0 && self.state.as_ref().is_some_and(|state| state.wants_write()) {
            self.sealed = 1;
        }
    }

    /// Encrypts some plaintext and sends what is encrypted; how much of the plaintext was taken. `WOULDBLOCK` when
    /// nothing could be taken or sent.
    pub(crate) fn seal(&mut self, slices: &[IoSlice<'_>], socket: &mut impl Write) -> io::Result<usize> {
        let (mut taken, mut sent) = (0, 0);
        let Some(state) = &mut self.state else { return Err(io::ErrorKind::WouldBlock.into()) };
        for slice in slices {
            // Before the handshake is over rustls would keep it; it has a limit of its own for what is not sent.
            if !self.established || taken >= SEAL_BYTES {
                break;
            }
            let len = state.writer().write(slice)?;
            taken += len;
            if len < slice.len() {
                break;
            }
        }
        self.sealed += taken;
        while state.wants_write() {
            match state.write_tls(socket) {
                Ok(len) => sent += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return if taken > 0 { Ok(taken) } else { Err(error) };
                }
                Err(error) => return Err(error),
            }
        }
        self.sealed = 0;
        if taken + sent > 0 { Ok(taken) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    /// Says that nothing more follows, once.
    pub(crate) fn end(&mut self) {
        if let Some(state) = self.state.as_mut().filter(|_| !self.ended) {
            state.send_close_notify();
            self.ended = true;
            self.note_sealed();
        }
    }
}

/// Ciphertext that is received at least, however little room there is for plaintext: a whole record.
const SCRATCH_MIN: usize = 17 << 10;
