//! Owns: what the server tells of itself: what it is called, where it listens, and where a line for its log goes. Does
//! not own: INFO (`crate::info`), the log (the server's).

use parking_lot::{Mutex, RwLock};
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _};
use weft_lua::Level;

/// What the server tells of itself.
#[derive(Debug)]
pub struct Facts {
    /// Forty hexadecimal digits, drawn at the start.
    pub run_id: String,
    /// The same for replication; DEBUG CHANGE-REPL-ID draws it anew.
    pub replication_id: Mutex<String>,
    /// The port that clients connect to; 0 for none. Told by the server when it listens.
    pub port: RwLock<u16>,
    /// One line for each socket that is listened on, as `name=tcp,bind=127.0.0.1,port=6379`.
    pub listeners: RwLock<Vec<String>>,
    /// When the certificate of TLS expires, in seconds since 1970; nothing without TLS.
    pub tls_expires_s: RwLock<Option<u64>>,
    /// Where a line for the log goes.
    pub logger: std::sync::OnceLock<fn(&str)>,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            run_id: random_id(),
            replication_id: Mutex::new(random_id()),
            port: RwLock::new(0),
            listeners: RwLock::default(),
            tls_expires_s: RwLock::default(),
            logger: std::sync::OnceLock::new(),
        }
    }
}

impl Facts {
    /// Tells the operator something, if there is a log.
    pub fn log(&self, line: &str) {
        if let Some(logger) = self.logger.get() {
            logger(line);
        }
    }
    /// A line of a script's own.
    pub(crate) fn script_log(&self, level: Level, text: &[u8]) {
        let level = match level {
            Level::Debug => "debug",
            Level::Verbose => "verbose",
            Level::Notice => "notice",
            Level::Warning => "warning",
        };
        let text = String::from_utf8_lossy(text).replace('\r', "\\r").replace('\n', "\\n");
        self.log(&format!("script, {level}: {text}"));
    }
}

/// Forty hexadecimal digits that no other start draws.
#[must_use]
pub fn random_id() -> String {
    let mut id = String::with_capacity(48);
    for _ in 0..3 {
        let drawn = std::collections::hash_map::RandomState::new().build_hasher().finish();
        let _ = write!(id, "{drawn:016x}");
    }
    id.truncate(40);
    id
}
