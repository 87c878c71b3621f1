//! Owns: what clients hold beside requests and replies, counted for each connection and bounded: names of what they
//! watch and listen to, requests that wait. Does not own: what has not run or was not sent: that has other limits.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::error::{Error, ErrorCode, Result};
use crate::session::ConnectionInfo;

/// Bytes that all clients of one connection hold at most: without a limit one of them could fill the memory with names
/// of channels, beside `maxmemory`.
const CHARGED_BYTES_MAX: usize = 256 << 20;
/// Bytes that those of all connections hold, above which only a connection that holds no more than its share may hold
/// more: who opens many cannot fill the memory, and keeps nobody from what few names take.
const CHARGED_TOGETHER_BYTES_MAX: usize = 1 << 30;
const CHARGED_SHARE_BYTES: usize = 64 << 10;
/// What a name takes beside its bytes, about.
const NAME_BYTES: usize = 64;

/// What a name counts.
pub(crate) const fn of_name(name: &[u8]) -> usize {
    NAME_BYTES + name.len()
}

impl ConnectionInfo {
    /// Whether its clients may hold so much more.
    pub(crate) fn check_room(&self, bytes: usize) -> Result {
        let own = self.charged_bytes.load(Relaxed).saturating_add(bytes);
        let together =
            self.charged_together.get().map_or(0, |together| together.load(Relaxed)).saturating_add(bytes);
        let (whose, limit) = match () {
            () if own > CHARGED_BYTES_MAX => ("of this connection", CHARGED_BYTES_MAX),
            () if together > CHARGED_TOGETHER_BYTES_MAX && own > CHARGED_SHARE_BYTES => {
                ("of all connections", CHARGED_TOGETHER_BYTES_MAX)
            }
            () => return Ok(()),
        };
        let text = format!(
            "all that the clients {whose} watch, listen to and wait for takes more than {limit} bytes"
        );
        Err(Error::new(ErrorCode::Limit, text))
    }
}

/// What somebody holds, counted with a connection until it is let go of or dropped.
#[derive(Debug, Default)]
pub struct Charge {
    connection: Option<Arc<ConnectionInfo>>,
    bytes: usize,
}

impl Charge {
    /// So much of a connection.
    pub(crate) fn new(connection: &Arc<ConnectionInfo>, bytes: usize) -> Self {
        let mut charge = Self::default();
        charge.add(connection, bytes);
        charge
    }
    /// So much more.
    pub(crate) fn add(&mut self, connection: &Arc<ConnectionInfo>, bytes: usize) {
        let connection = self.connection.get_or_insert_with(|| Arc::clone(connection));
        connection.charged_bytes.fetch_add(bytes, Relaxed);
        if let Some(together) = connection.charged_together.get() {
            together.fetch_add(bytes, Relaxed);
        }
        self.bytes += bytes;
    }
    /// So much less.
    pub(crate) fn remove(&mut self, bytes: usize) {
        if let Some(connection) = &self.connection {
            connection.charged_bytes.fetch_sub(bytes, Relaxed);
            if let Some(together) = connection.charged_together.get() {
                together.fetch_sub(bytes, Relaxed);
            }
            self.bytes -= bytes;
        }
    }
    /// All of it is let go of.
    pub(crate) fn clear(&mut self) {
        self.remove(self.bytes);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.clear();
    }
}
