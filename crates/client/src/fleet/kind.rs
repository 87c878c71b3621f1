//! What a reply is, by its first bytes. Owns the two lists.

use super::Kind;
use crate::Protocol;

impl Kind {
    /// That of a whole reply, an attribute in front of it left out of account.
    #[inline]
    pub(super) fn of(protocol: Protocol, reply: &[u8]) -> Kind {
        match protocol {
            Protocol::Respb => of_respb(reply),
            _ => of_resp(reply),
        }
    }
}

fn of_resp(reply: &[u8]) -> Kind {
    match *reply {
        [b'+', ..] => Kind::Simple,
        [b':', ..] => Kind::Integer,
        [b'-' | b'!', ..] => Kind::Error,
        [b'_', ..] | [b'$' | b'*', b'-', ..] => Kind::Null,
        [b'$' | b'=', ..] => Kind::Text,
        [b',' | b'#' | b'(', ..] => Kind::Scalar,
        _ => Kind::Aggregate,
    }
}

/// By opcode: section 6 of the specification.
fn of_respb(reply: &[u8]) -> Kind {
    match *reply {
        [0x80, 0x00 | 0x0b, ..] | [0x83, ..] => Kind::Simple,
        [0x80, 0x01 | 0x0f, ..] => Kind::Error,
        [0x80, 0x02 | 0x10, ..] | [0x81, ..] => Kind::Integer,
        [0x80, 0x03 | 0x0d, ..] | [0x82, ..] => Kind::Text,
        [0x80, 0x05, ..] => Kind::Null,
        [0x80, 0x06 | 0x07 | 0x0c, ..] => Kind::Scalar,
        _ => Kind::Aggregate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind, and replies of it over RESP and over RESPB.
    type Row = (Kind, &'static [&'static [u8]], &'static [&'static [u8]]);

    #[test]
    fn every_reply_has_its_kind_on_every_wire() {
        let rows: [Row; 7] = [
            (Kind::Simple, &[b"+OK\r\n"], &[&[0x80, 0], &[0x80, 0x0b], &[0x83, 6]]),
            (Kind::Integer, &[b":-1\r\n"], &[&[0x80, 2], &[0x80, 0x10], &[0x81, 255]]),
            (Kind::Scalar, &[b",1.5\r\n", b"#t\r\n", b"(1\r\n"], &[&[0x80, 6], &[0x80, 7], &[0x80, 0x0c]]),
            (Kind::Text, &[b"$1\r\na\r\n", b"=5\r\ntxt:a\r\n"], &[&[0x80, 3], &[0x80, 0x0d], &[0x82, 0]]),
            (Kind::Null, &[b"_\r\n", b"$-1\r\n", b"*-1\r\n"], &[&[0x80, 5]]),
            (Kind::Aggregate, &[b"*0\r\n", b"%0\r\n", b"~0\r\n"], &[&[0x80, 4], &[0x80, 8], &[0x80, 9]]),
            (Kind::Error, &[b"-ERR\r\n", b"!3\r\nERR\r\n"], &[&[0x80, 1], &[0x80, 0x0f]]),
        ];
        for (kind, resp, respb) in rows {
            for reply in resp {
                assert_eq!(Kind::of(Protocol::Resp3, reply), kind, "{reply:?}");
            }
            for reply in respb {
                assert_eq!(Kind::of(Protocol::Respb, reply), kind, "{reply:?}");
            }
        }
    }
}
