//! Owns: which pages and names may use the server over HTTP, as the settings say. Does not own: HTTP.

use parking_lot::RwLock;

/// Whom browsers may ask for.
#[derive(Debug, Default)]
pub struct Web {
    /// `http-cors-origins`.
    origins: RwLock<Vec<Box<[u8]>>>,
    /// `http-hosts`.
    hosts: RwLock<Vec<Box<[u8]>>>,
}

impl Web {
    /// `http-cors-origins`: origins with blanks between, or `*`.
    pub(crate) fn set_origins(&self, text: &[u8]) {
        *self.origins.write() = words(text);
    }
    /// `http-hosts`: names with blanks between, or `*`.
    pub(crate) fn set_hosts(&self, text: &[u8]) {
        *self.hosts.write() = words(text);
    }
    /// Whether pages of an origin may read answers.
    #[must_use]
    pub fn allows_origin(&self, origin: &[u8]) -> bool {
        is_among(&self.origins.read(), origin)
    }
    /// Whether the server is asked for by this name, without a port.
    #[must_use]
    pub fn allows_host(&self, name: &[u8]) -> bool {
        is_among(&self.hosts.read(), name)
    }
}

fn words(text: &[u8]) -> Vec<Box<[u8]>> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).map(Into::into).collect()
}

fn is_among(list: &[Box<[u8]>], name: &[u8]) -> bool {
    list.iter().any(|word| &**word == b"*" || word.eq_ignore_ascii_case(name))
}
