//! Owns: scripts that clients have loaded, for nodes of a cluster that do not have them; the words of a request that
//! names one. Does not own: when one is asked for (`crate::orders`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of scripts that are kept.
const SCRIPTS_BYTES_MAX: usize = 16 << 20;

/// Texts of scripts by their digests.
#[derive(Debug, Default)]
pub(crate) struct Scripts(Mutex<Texts>);

#[derive(Debug, Default)]
struct Texts {
    loads: HashMap<Vec<u8>, Arc<[u8]>>,
    bytes: usize,
}

impl Scripts {
    /// Keeps the request that loads a script, unless too many are kept.
    pub(crate) fn keep(&self, digest: &[u8], load: &Arc<[u8]>) {
        let mut scripts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if scripts.bytes + load.len() <= SCRIPTS_BYTES_MAX
            && scripts.loads.insert(digest.to_ascii_lowercase(), Arc::clone(load)).is_none()
        {
            scripts.bytes += load.len();
        }
    }
    pub(crate) fn find(&self, digest: &[u8]) -> Option<Arc<[u8]>> {
        let scripts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        scripts.loads.get(&digest.to_ascii_lowercase()).cloned()
    }
}

/// The words of one request.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes.iter().position(|byte| *byte == b'\n').map_or(&b""[..], |at| &bytes[at + 1..]);
    std::iter::from_fn(move || {
        let head = rest.iter().position(|byte| *byte == b'\n')? + 1;
        let len: usize =
            std::str::from_utf8(rest[..head].strip_prefix(b"$")?).ok()?.trim_end().parse().ok()?;
        let word = rest.get(head..head + len)?;
        rest = rest.get(head + len + 2..)?;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_request() {
        let all: Vec<&[u8]> = words(b"*2\r\n$4\r\nLOAD\r\n$0\r\n\r\n").collect();
        assert_eq!(all, [&b"LOAD"[..], b""]);
        assert_eq!(words(b"*1\r\n$99\r\nshort\r\n").count(), 0);
        assert_eq!(words(b"").count(), 0);
    }
}
