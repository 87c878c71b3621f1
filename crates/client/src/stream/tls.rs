//! Owns TLS over a socket, read and written from two threads. Does not own the socket, nor whose certificates are
//! trusted ([`trust`]).
//!
//! The session is locked only while bytes are encrypted or decrypted, never while a socket is waited for; so a writer
//! whose peer takes nothing does not keep the reader from reading.

use std::io::{self, Read as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection};

use super::{Socket, said, trust};
use crate::config::TlsConfig;
use crate::error::{Error, Result, Waiting};

/// Plaintext that is encrypted at a time: one record.
const RECORD_BYTES: usize = 16 << 10;

/// A session that stands.
#[derive(Debug)]
pub(super) struct Tls {
    session: Mutex<Session>,
    /// Encrypted and not yet written. Who writes holds this lock; it is taken before that of the session.
    out: Mutex<Vec<u8>>,
}

#[derive(Debug)]
struct Session {
    tls: ClientConnection,
    /// Read from the socket and not yet decrypted; at most one read.
    pending: Vec<u8>,
}

fn bad(error: &rustls::Error) -> Error {
    Error::Tls(said::said(error))
}

/// What an error of a socket says of TLS, if it is one: a server of TLS 1.3 refuses a client's certificate, or the lack
/// of one, after the handshake.
pub(crate) fn of_socket(error: &io::Error) -> Option<Error> {
    error.get_ref()?.downcast_ref().map(bad)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tls {
    /// The handshake. The socket has its times set.
    pub(super) fn connect(
        socket: &Socket,
        settings: &TlsConfig,
        host: &str,
        limit: Option<Duration>,
    ) -> Result<Tls> {
        let name = settings.server_name.as_deref().unwrap_or(host).to_string();
        let name = ServerName::try_from(name)
            .map_err(|_| Error::Tls("the host is no name that a certificate can have".into()))?;
        let mut tls =
            ClientConnection::new(Arc::new(client_config(settings)?), name).map_err(|error| bad(&error))?;
        while tls.is_handshaking() {
            if let Err(error) = tls.complete_io(&mut Blocking(socket)) {
                return Err(match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        Error::Timeout(Waiting::Connect, limit.unwrap_or_default())
                    }
                    io::ErrorKind::UnexpectedEof => {
                        Error::Tls("the server ended the handshake; does it offer TLS on this port?".into())
                    }
                    _ => match error.downcast::<rustls::Error>() {
                        Ok(error) => bad(&error),
                        Err(error) => Error::Tls(error.to_string()),
                    },
                });
            }
        }
        Ok(Tls { session: Mutex::new(Session { tls, pending: Vec::new() }), out: Mutex::new(Vec::new()) })
    }

    /// What goes on without locks and without waiting.
    pub(super) fn into_session(self) -> crate::fleet::Session {
        let Session { tls, pending } = self.session.into_inner().unwrap_or_else(PoisonError::into_inner);
        crate::fleet::Session::new(tls, pending)
    }

    pub(super) fn read(&self, socket: &Socket, into: &mut [u8]) -> io::Result<usize> {
        let mut raw = [0; RECORD_BYTES];
        loop {
            if let Some(len) = self.decrypted(socket, into)? {
                return Ok(len);
            }
            let len = socket.read(&mut raw)?;
            if len == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            lock(&self.session).pending.extend_from_slice(&raw[..len]);
        }
    }

    /// Plaintext from what has been read; 0 where the server ended the session.
    fn decrypted(&self, socket: &Socket, into: &mut [u8]) -> io::Result<Option<usize>> {
        let mut session = lock(&self.session);
        let Session { tls, pending } = &mut *session;
        loop {
            match tls.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result.map(Some),
            }
            if pending.is_empty() {
                break;
            }
            let mut rest = &pending[..];
            let len = tls.read_tls(&mut rest)?;
            pending.drain(..len);
            tls.process_new_packets().map_err(io::Error::other)?;
        }
        // An answer of the session itself, to a change of keys for instance. When somebody writes, they take it along.
        let answers = tls.wants_write();
        drop(session);
        if answers && let Ok(mut out) = self.out.try_lock() {
            self.encrypt(&[], &mut out)?;
            match drain(&mut out, socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => result?,
            }
        }
        Ok(None)
    }

    pub(super) fn write(&self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let mut out = lock(&self.out);
        drain(&mut out, socket)?;
        let len = self.encrypt(&bytes[..bytes.len().min(RECORD_BYTES)], &mut out)?;
        match drain(&mut out, socket) {
            // The bytes are taken; the rest of them goes with the next call.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(len),
            result => result.map(|()| len),
        }
    }

    pub(super) fn flush(&self, socket: &Socket) -> io::Result<()> {
        drain(&mut lock(&self.out), socket)
    }

    fn encrypt(&self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<usize> {
        let mut session = lock(&self.session);
        let len = session.tls.writer().write(bytes)?;
        while session.tls.wants_write() {
            session.tls.write_tls(out)?;
        }
        Ok(len)
    }
}

/// Writes what it can of `out`, all of it unless the socket stops.
fn drain(out: &mut Vec<u8>, socket: &Socket) -> io::Result<()> {
    let mut at = 0;
    let result = loop {
        if at == out.len() {
            break Ok(());
        }
        match socket.write(&out[at..]) {
            Ok(len) => at += len,
            Err(error) => break Err(error),
        }
    };
    out.drain(..at);
    result
}

/// The socket as `complete_io` wants it.
struct Blocking<'a>(&'a Socket);

impl io::Read for Blocking<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl io::Write for Blocking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a session of rustls begins with, as the settings say: for an event loop of one's own.
pub fn client_config(settings: &TlsConfig) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(&error))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(trust::verifier(settings, provider)?);
    match (&settings.cert_file, &settings.key_file) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(cert), Some(key)) => {
            let chain = trust::certificates(cert)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| Error::Tls(format!("{}: {error}", key.display())))?;
            builder.with_client_auth_cert(chain, key).map_err(|error| bad(&error))
        }
        _ => Err(Error::Tls("a client certificate needs its key, and the key its certificate".into())),
    }
}
