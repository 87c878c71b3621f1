//! Owns: where a reply ends that cannot be read, so that those behind it are another one's still: scripts may answer
//! what nests deeper, or is longer, than any decoder here takes. Does not own: replies that can be read
//! (`crate::reply`).

/// The longest line that says how much comes behind it.
const HEAD_BYTES_MAX: usize = 32;

/// A reply that is passed over, piece by piece.
#[derive(Debug)]
pub(crate) struct Skip {
    /// Values that are still to come.
    left: u64,
    /// Bytes of a text that are still to come, its line end among them.
    text: u64,
    /// In the midst of a line.
    in_line: bool,
}

impl Skip {
    pub(crate) const fn new() -> Self {
        Self { left: 1, text: 0, in_line: false }
    }
    /// Whether it is over.
    pub(crate) const fn is_over(&self) -> bool {
        self.left == 0 && self.text == 0 && !self.in_line
    }
    /// So many bytes of these are its own. Nothing where it is no reply at all.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while !self.is_over() && at < bytes.len() {
            let rest = &bytes[at..];
            if self.text > 0 {
                let len = self.text.min(rest.len() as u64);
                self.text -= len;
                at += len as usize;
                continue;
            }
            let end = rest.iter().position(|byte| *byte == b'\n');
            if self.in_line || matches!(rest[0], b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(') {
                self.left -= u64::from(!self.in_line);
                self.in_line = end.is_none();
                at += end.map_or(rest.len(), |end| end + 1);
                continue;
            }
            let Some(end) = end else {
                return (rest.len() < HEAD_BYTES_MAX).then_some(at);
            };
            let count: i64 = std::str::from_utf8(&rest[1..end]).ok()?.trim_end().parse().ok()?;
            // Less than none is null.
            let count = u64::try_from(count).ok();
            let values = match (rest[0], count) {
                (b'$' | b'!' | b'=', Some(len)) => {
                    self.text = len.checked_add(2)?;
                    0
                }
                (b'*' | b'~' | b'>', Some(count)) => count,
                (b'%', Some(count)) => count.checked_mul(2)?,
                // It stands before a value, and is none.
                (b'|', Some(count)) => count.checked_mul(2)?.checked_add(1)?,
                (b'$' | b'*', None) => 0,
                _ => return None,
            };
            self.left = (self.left - 1).checked_add(values)?;
            at += end + 1;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes are passed over when so many come at once.
    fn passed(bytes: &[u8], step: usize) -> Option<usize> {
        let (mut skip, mut at, mut end) = (Skip::new(), 0, 0);
        while !skip.is_over() {
            end += step;
            at += skip.pass(&bytes[at..end.min(bytes.len())])?;
            assert!(end < bytes.len() + step || skip.is_over(), "it does not end");
        }
        Some(at)
    }

    #[test]
    fn a_reply_ends_where_it_ends() {
        let deep = [b"*1\r\n".repeat(1_000), b":1\r\n".to_vec()].concat();
        let long = [b"-".to_vec(), b"x".repeat(100_000), b"\r\n".to_vec()].concat();
        let all: [&[u8]; 9] = [
            &deep,
            &long,
            b"(abc\r\n",
            b"(\r\n",
            b"*2\r\n$-1\r\n*-1\r\n",
            b"%1\r\n+k\r\n~2\r\n#t\r\n,nan\r\n",
            b"|1\r\n+k\r\n:1\r\n*0\r\n",
            b"=9\r\ntxt:\r\n+OK\r\n",
            b">2\r\n+a\r\n_\r\n",
        ];
        for reply in all {
            let bytes = [reply, b"+next\r\n"].concat();
            for step in [1, 7, 64 << 10] {
                assert_eq!(
                    passed(&bytes, step),
                    Some(reply.len()),
                    "{:?}",
                    String::from_utf8_lossy(&reply[..9.min(reply.len())])
                );
            }
        }
    }

    #[test]
    fn what_is_none_is_not_passed_over() {
        for bytes in [
            b"what".as_slice(),
            b"$x\r\n",
            b"*?\r\n",
            b"*99999999999999999999999999999999999",
            b"*2\r\n%9223372036854775807\r\n%9223372036854775807\r\n",
        ] {
            let mut skip = Skip::new();
            let first = skip.pass(bytes);
            assert!(
                first.is_none() || first != Some(bytes.len()) && skip.pass(&b"x".repeat(99)).is_none(),
                "{bytes:?}"
            );
        }
    }
}
