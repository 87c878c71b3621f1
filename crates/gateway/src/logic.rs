//! Owns: a script's or function's request in front of a cluster, which goes as a transaction of it alone: what is sent,
//! and whose word a reply is. Does not own: when it goes (`crate::orders`), what a node's word means (`crate::answer`).
//!
//! A script may answer whatever it likes, a node's `MOVED` to the letter; only what a node itself has said means that
//! nothing ran. In a transaction the two have different places: the node refuses what is queued, or EXEC, and what the
//! script says stands in EXEC's array. Whether EVALSHA found its script is asked in the same transaction, where it can
//! be mended.

use std::sync::Arc;

use weft_engine::error::ErrorCode;
use weft_protocol::request::Texts;
use weft_protocol::resp::encode::request;

use crate::answer::{Answer, aborted_by};
use crate::scripts::{Scripts, named_by, requests};
use crate::upstream::{EXEC, MULTI};

const NOSCRIPT: &[u8] = b"-NOSCRIPT";
/// What a node says to what it would run outside of a transaction: without memory it queues nothing, and whoever may
/// run scripts may not be allowed the words around them.
const NOT_QUEUED: [&[u8]; 2] = [b"-OOM", b"-NOPERM"];

/// The request as a transaction, and how many requests that queues.
pub(crate) fn wrapped(bytes: &[u8], scripts: &Scripts) -> (Arc<[u8]>, u32) {
    let mut asks = Vec::new();
    if let Some(digest) = named_by(bytes).filter(|digest| scripts.has(digest))
        && let Ok(digest) = std::str::from_utf8(digest)
    {
        request(None, &Texts(&["SCRIPT", "EXISTS", digest]), &mut asks);
    }
    let queued = if asks.is_empty() { 1 } else { 2 };
    ([MULTI, &asks, bytes, EXEC].concat().into(), queued)
}

/// The request of a transaction.
pub(crate) fn unwrapped(bytes: &[u8], queued: u32) -> Arc<[u8]> {
    requests(bytes).nth(queued as usize).unwrap_or_default().into()
}

/// Whether a node has refused a request because it was in a transaction.
pub(crate) fn is_not_queued(reply: &[u8]) -> bool {
    NOT_QUEUED.iter().any(|word| reply.starts_with(word))
}

/// Whether a node says that it does not have the script.
pub(crate) fn is_no_script(reply: &[u8]) -> bool {
    reply.starts_with(NOSCRIPT)
}

/// What the answer to such a transaction says of the request in it, and whether that is the node's own word: nothing
/// ran. `room`: for its bytes, where they are others.
pub(crate) fn said<'a>(
    answer: Answer<'a>,
    queued: u32,
    over_resp2: bool,
    room: &'a mut Vec<u8>,
) -> (Answer<'a>, bool) {
    match answer {
        Answer::Reply { bytes, resp2 } if bytes.first() == Some(&b'-') => {
            match std::str::from_utf8(bytes).ok().and_then(aborted_by) {
                Some(reason) => {
                    room.extend_from_slice(format!("-{reason}").as_bytes());
                    (Answer::Reply { bytes: room, resp2 }, true)
                }
                None => (answer, true),
            }
        }
        Answer::Reply { bytes, resp2 } => {
            let (found, bytes) = within(bytes, queued).unwrap_or((true, bytes));
            (Answer::Reply { bytes, resp2 }, !found && is_no_script(bytes))
        }
        Answer::Error(error) if error.code == ErrorCode::ExecAbort => {
            let line = format!("-{}\r\n", error.line());
            let line = aborted_by(&line).map_or(line.clone(), |reason| format!("-{reason}"));
            room.extend_from_slice(line.as_bytes());
            (Answer::Reply { bytes: room, resp2: over_resp2 }, true)
        }
        answer => (answer, true),
    }
}

/// The last reply of EXEC's array, and whether the one before it, if there is one, says that the script is there.
fn within(bytes: &[u8], queued: u32) -> Option<(bool, &[u8])> {
    if queued == 1 {
        return Some((true, bytes.strip_prefix(b"*1\r\n")?));
    }
    let rest = bytes.strip_prefix(b"*2\r\n")?;
    let first = requests(rest).next()?;
    Some((first != b"*1\r\n:0\r\n", &rest[first.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::request_of;
    use weft_engine::error::Error;
    use weft_engine::script::sha1_hex;

    fn heard(answer: Answer<'_>, queued: u32) -> (String, bool) {
        let mut room = Vec::new();
        match said(answer, queued, true, &mut room) {
            (Answer::Reply { bytes, .. }, is_nodes) => {
                (String::from_utf8_lossy(bytes).trim_end().into(), is_nodes)
            }
            (other, is_nodes) => (format!("{other:?}"), is_nodes),
        }
    }

    #[test]
    fn a_request_is_put_in_a_transaction_and_taken_out() {
        let scripts = Scripts::default();
        let digest = String::from_utf8(sha1_hex(b"return 1").to_vec()).unwrap();
        let named = request_of(&["EVALSHA", &digest, "0"]);
        let wraps = |scripts: &Scripts| wrapped(&named, scripts);
        assert_eq!(wraps(&scripts), ([MULTI, &named, EXEC].concat().into(), 1));
        // It can be mended where the text is known, and only there it is asked for.
        scripts.learn(&request_of(&["EVAL", "return 1", "0"]));
        let exists = request_of(&["SCRIPT", "EXISTS", &digest]);
        assert_eq!(wraps(&scripts), ([MULTI, &exists, &named, EXEC].concat().into(), 2));
        assert_eq!(*unwrapped(&wraps(&scripts).0, 2), *named);
    }

    #[test]
    fn whose_word_it_is() {
        let script = |word: &str| (word.to_string(), false);
        let node = |word: &str| (word.to_string(), true);
        for (reply, queued, is) in [
            ("*1\r\n:1\r\n", 1, script(":1")),
            ("*1\r\n-MOVED 1 a:1\r\n", 1, script("-MOVED 1 a:1")),
            ("-MOVED 1 a:1\r\n", 1, node("-MOVED 1 a:1")),
            ("-EXECABORT Transaction discarded because of: OOM no\r\n", 1, node("-OOM no")),
            ("*2\r\n*1\r\n:0\r\n-NOSCRIPT no\r\n", 2, node("-NOSCRIPT no")),
            ("*2\r\n*1\r\n:1\r\n-NOSCRIPT no\r\n", 2, script("-NOSCRIPT no")),
            ("*2\r\n-NOPERM no\r\n-NOSCRIPT no\r\n", 2, script("-NOSCRIPT no")),
            ("*2\r\n*1\r\n:0\r\n:1\r\n", 2, script(":1")),
        ] {
            let answer = Answer::Reply { bytes: reply.as_bytes(), resp2: true };
            assert_eq!(heard(answer, queued), is, "{reply:?}");
        }
        let error = Error::new(ErrorCode::ExecAbort, "Transaction discarded because of: BUSY no");
        assert_eq!(heard(Answer::Error(error), 1), node("-BUSY no"));
    }
}
