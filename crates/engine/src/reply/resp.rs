//! Owns: how values are written in RESP2 and RESP3. Does not own: which of the two (`super`).

use super::ReplySink;
use super::bulks::append;

impl ReplySink<'_> {
    /// `:12\r\n`, `$12\r\n`, `*12\r\n`.
    #[inline(always)]
    pub(super) fn resp_int(&mut self, kind: u8, value: i64) {
        let out = &mut self.out.bytes;
        if let 0..=9 = value {
            return out.extend_from_slice(&[kind, b'0' + value as u8, b'\r', b'\n']);
        }
        if let 10..=99 = value {
            let value = value as u8;
            return out.extend_from_slice(&[kind, b'0' + value / 10, b'0' + value % 10, b'\r', b'\n']);
        }
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(value).as_bytes();
        out.reserve(digits.len() + 3);
        out.push(kind);
        out.extend_from_slice(digits);
        out.extend_from_slice(b"\r\n");
    }

    #[inline(always)]
    pub(super) fn resp_bulk(&mut self, bytes: &[u8]) {
        self.out.bytes.reserve(bytes.len() + 16);
        self.resp_int(b'$', bytes.len() as i64);
        append(&mut self.out.bytes, bytes);
        self.out.bytes.extend_from_slice(b"\r\n");
    }

    pub(super) fn resp_line(&mut self, kind: u8, text: &[u8]) {
        let out = &mut self.out.bytes;
        out.push(kind);
        out.extend_from_slice(text);
        out.extend_from_slice(b"\r\n");
    }

    pub(super) fn resp_verbatim(&mut self, format: [u8; 3], bytes: &[u8]) {
        self.resp_int(b'=', bytes.len() as i64 + 4);
        self.out.bytes.extend_from_slice(&format);
        self.out.bytes.push(b':');
        self.out.bytes.extend_from_slice(bytes);
        self.out.bytes.extend_from_slice(b"\r\n");
    }
}
