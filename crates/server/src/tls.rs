//! Owns: TLS on a connection: bytes of the socket to plaintext and back, handshakes, the client's certificate. Does not
//! own: sockets, what the plaintext says, what TLS is served with (`setup`).
//!
//! A handshake's steps are done by other threads (`helpers`): a connection that has received a part of one lends its
//! state and is neither read from nor written to until it comes back.

mod der;
mod helpers;
mod setup;

use std::io::{self, IoSlice, Read, Write};
use std::sync::{Arc, PoisonError, RwLock, Weak};

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

/// Plaintext of a record at most, and what its head and its seal take at most: five bytes before it, a nonce of eight
/// (TLS 1.2), sixteen behind it.
const RECORD_PLAINTEXT_BYTES_MAX: usize = 16 << 10;
const RECORD_BYTES: usize = 29;
/// The head of a record: what it is, a version, a length.
const RECORD_HEAD_BYTES: usize = 5;

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
            match expiry(setup.left_s()) {
                (true, text) => warning!("{text}"),
                (false, text) => notice!("{text}"),
            }
        }
        *engine.facts.tls_expires_s.write() = setup.as_ref().map(|setup| setup.expires_s);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = setup.map(Arc::new);
        Ok(())
    }
}

/// What the log says of a certificate that is good for so many seconds, and whether somebody has to see to it.
fn expiry(left_s: i64) -> (bool, String) {
    let days = left_s / 86_400;
    match left_s {
        ..=0 => (true, "the certificate of TLS has expired".into()),
        1..EXPIRES_SOON_S => (true, format!("the certificate of TLS expires in {days} days")),
        _ => (false, format!("TLS: the certificate expires in {days} days")),
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
    /// The record of which a part has come: rustls keeps that.
    record: Record,
    /// Bytes that rustls has to send, its records' heads and seals counted, at least 1 if there are any.
    sealed: usize,
    /// A part of a handshake has come.
    wants_step: bool,
    established: bool,
    failed: bool,
    /// It has been said that nothing more follows.
    ended: bool,
    /// Gone with the connection: what is still to be done for it need not be.
    alive: Arc<()>,
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
            record: Record::default(),
            sealed: 0,
            wants_step: false,
            established: false,
            failed: false,
            ended: false,
            alive: Arc::new(()),
        }))
    }
    /// Whereby others see whether it is there.
    pub(crate) fn sign_of_life(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }
    /// Its state before anything has come.
    #[cfg(test)]
    pub(crate) fn state_of_new(&mut self) -> Box<ServerConnection> {
        self.state.take().expect("it is there")
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
        self.ahead.capacity() + self.handshake_bytes.max(self.record.come)
    }
    /// Bytes that were encrypted to be sent and are not.
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
            let before = bytes;
            let taken = state.read_tls(&mut bytes);
            self.record.pass(&before[..before.len() - bytes.len()]);
            match taken {
                Ok(0) => break,
                Ok(len) if state.is_handshaking() => {
                    self.handshake_bytes += len;
                    self.wants_step = true;
                }
                Ok(_) => {
                    self.failed |= state.process_new_packets().is_err();
                    self.note_sealed();
                }
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
            self.sealed = if self.established { RECORD_BYTES } else { self.setup.flight_bytes };
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
            self.sealed += len + len.div_ceil(RECORD_PLAINTEXT_BYTES_MAX) * RECORD_BYTES;
            if len < slice.len() {
                break;
            }
        }
        while state.wants_write() {
            match state.write_tls(socket) {
                Ok(len) => {
                    sent += len;
                    self.sealed = self.sealed.saturating_sub(len).max(1);
                }
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

/// The record at the end of what rustls was given, if it is not whole.
#[derive(Default)]
struct Record {
    /// Bytes of it that have come.
    come: usize,
    /// Its length, as far as its head says it.
    len: usize,
}

impl Record {
    /// More ciphertext goes to rustls.
    fn pass(&mut self, mut bytes: &[u8]) {
        while let Some(&first) = bytes.first() {
            if self.come < RECORD_HEAD_BYTES {
                // The length stands at the end of the head, its high byte first.
                self.len = self.len << 8 & 0xFFFF | usize::from(first);
                self.come += 1;
                bytes = &bytes[1..];
            }
            if self.come >= RECORD_HEAD_BYTES {
                let part = bytes.len().min(RECORD_HEAD_BYTES + self.len - self.come);
                self.come += part;
                bytes = &bytes[part..];
                if self.come == RECORD_HEAD_BYTES + self.len {
                    *self = Self::default();
                }
            }
        }
    }
}

/// Ciphertext that is received at least, however little room there is for plaintext: a whole record.
const SCRATCH_MIN: usize = 17 << 10;

#[cfg(test)]
mod tests {
    use rustls::ClientConnection;

    use super::*;

    /// Takes nothing.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Both ends of a session that stands.
    fn session() -> (Box<Tls>, ClientConnection) {
        let mut values = Values::default();
        values.set(b"tls-self-signed", &[b"yes"]).expect("it is a directive");
        let setup = Setup::of(&values).expect("it can be had").expect("there is a certificate");
        let mut server = Tls::new(Arc::new(setup)).expect("it can begin");
        let insecure = weft_client::TlsConfig { insecure: true, ..weft_client::TlsConfig::default() };
        let config = Arc::new(weft_client::tls_client_config(&insecure).expect("it can be had"));
        let name = "localhost".try_into().expect("it is a name");
        let mut client = ClientConnection::new(config, name).expect("it can begin");
        let mut said = Vec::new();
        while !server.is_established() {
            client.write_tls(&mut said).expect("memory takes it");
            server.begin(&std::mem::take(&mut said));
            if let Some(mut tls) = server.lend() {
                let result = tls.process_new_packets().map(|_| ());
                server.take_back(Stepped { tls, index: 0, client: 0, result }).expect("it goes on");
            }
            let before = server.unsent();
            let mut heard = Vec::new();
            let _ = server.seal(&[], &mut heard);
            assert!(heard.len() <= before, "{} bytes count as {before}", heard.len());
            client.read_tls(&mut &heard[..]).expect("memory has it");
            client.process_new_packets().expect("the server speaks TLS");
        }
        (server, client)
    }

    #[test]
    fn a_certificate_that_expires_soon_is_worth_a_warning() {
        let days = |count: i64| count * 86_400;
        for (left_s, warns, said) in [
            (days(-1), true, "has expired"),
            (0, true, "has expired"),
            (1, true, "expires in 0 days"),
            (days(30) - 1, true, "expires in 29 days"),
            (days(30), false, "expires in 30 days"),
        ] {
            let (is_warning, text) = expiry(left_s);
            assert!(is_warning == warns && text.ends_with(said), "{left_s}: {text}");
        }
    }

    #[test]
    fn what_is_sealed_counts_with_its_heads_and_seals() {
        let (mut server, mut client) = session();
        let pieces =
            [vec![1; 10], vec![2; RECORD_PLAINTEXT_BYTES_MAX], vec![3; RECORD_PLAINTEXT_BYTES_MAX + 1]];
        let plain: usize = pieces.iter().map(Vec::len).sum();
        let slices = pieces.each_ref().map(|piece| IoSlice::new(piece));
        assert_eq!(server.seal(&slices, &mut Full).expect("rustls takes it"), plain);
        let counted = server.unsent();
        assert_eq!(counted, plain + 4 * RECORD_BYTES, "four records");
        let mut heard = Vec::new();
        server.seal(&[], &mut heard).expect("memory takes it");
        assert!((plain + 1..=counted).contains(&heard.len()), "{} bytes count as {counted}", heard.len());
        assert_eq!(server.unsent(), 0);
        client.read_tls(&mut &heard[..]).expect("memory has it");
        client.process_new_packets().expect("it is whole");
    }

    #[test]
    fn a_record_counts_until_it_is_whole() {
        let (mut server, mut client) = session();
        client.writer().write_all(&[b'x'; 5000]).expect("rustls takes it");
        let mut said = Vec::new();
        client.write_tls(&mut said).expect("memory takes it");
        let (mut room, mut scratch) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        for at in 1..said.len() {
            let byte = said[at - 1];
            let opened = server.open(&mut room, &mut scratch, |into| {
                into[0] = byte;
                Ok(1)
            });
            assert_eq!((opened.expect("it goes on").len, server.input_bytes()), (0, at));
        }
        let last = said[said.len() - 1];
        let opened = server.open(&mut room, &mut scratch, |into| {
            into[0] = last;
            Ok(1)
        });
        assert_eq!((opened.expect("it goes on").len, server.input_bytes()), (5000, 0));
    }
}
