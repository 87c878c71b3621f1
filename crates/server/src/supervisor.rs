//! Owns: what systemd and the server tell each other: that it is ready, reads its files anew, stops. Does not own: when
//! that is so. Where nobody asks to be told (NOTIFY_SOCKET), nothing is.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use rustix::time::{ClockId, clock_gettime};

use crate::warning;

/// How the server fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Reloading,
    Stopping,
}

/// Tells systemd.
pub(crate) fn notify(state: State) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let text = match state {
        State::Ready => "READY=1\nSTATUS=Ready to accept connections".to_string(),
        State::Reloading => {
            let now = clock_gettime(ClockId::Monotonic);
            format!("RELOADING=1\nMONOTONIC_USEC={}", now.tv_sec * 1_000_000 + now.tv_nsec / 1000)
        }
        State::Stopping => "STOPPING=1\nSTATUS=Sending what is owed".to_string(),
    };
    if let Err(error) = send(&socket, text.as_bytes()) {
        warning!("systemd cannot be told ({}): {error}", socket.display());
    }
}

/// A path, or a name behind `@` that is none.
fn send(socket: &OsStr, text: &[u8]) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(text, &address)?;
    Ok(())
}
