//! What clients are told that they have subscribed to.

use std::io::Write;

use super::{Alone, received, sends};

/// Published before and told behind the confirmation it would be taken for another reply.
#[test]
fn nobody_hears_what_he_has_left() {
    for (join, leave, publish, kind) in [
        ("SUBSCRIBE a b", "UNSUBSCRIBE a", "PUBLISH", "\r\nmessage\r\n$1\r\na\r\n"),
        ("SSUBSCRIBE a b", "SUNSUBSCRIBE a", "SPUBLISH", "\r\nsmessage\r\n$1\r\na\r\n"),
        ("PSUBSCRIBE a* b*", "PUNSUBSCRIBE a*", "PUBLISH", "\r\npmessage\r\n$2\r\na*\r\n"),
        ("SUBSCRIBE a b", "RESET", "PUBLISH", "\r\nmessage\r\n"),
    ] {
        let (mut alone, [mut says, mut hears]) = Alone::with_clients();
        sends(&mut alone, &mut hears, format!("{join}\r\n").as_bytes());
        // Who has sent nothing yet is read from behind the others.
        sends(&mut alone, &mut says, b"PING\r\n");
        // One batch, and what is published comes first.
        says.write_all(format!("{publish} a 1\r\n{publish} b 2\r\n").as_bytes()).expect("it is sent");
        sends(&mut alone, &mut hears, format!("{leave}\r\n").as_bytes());
        assert_eq!(received(&mut says), b"+PONG\r\n:1\r\n:1\r\n", "{publish} ran before {leave}");
        let heard = String::from_utf8(received(&mut hears)).expect("it is text");
        assert!(!heard.contains(kind), "{leave}: {heard}");
        assert_eq!(heard.contains("\r\n2\r\n"), leave != "RESET", "{leave}: {heard}");
    }
}
