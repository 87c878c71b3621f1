//! Owns: one reply made of those of several nodes. Does not own: which nodes are asked.

use std::collections::{BTreeSet, VecDeque};

use weft_client::Address;
use weft_engine::error::{Error, ErrorCode};
use weft_engine::forward::Merge;
use weft_protocol::Outcome;
use weft_protocol::resp::ReplyDecoder;

use crate::answer::{Answer, Arrived, Front, deliver};
use crate::orders::{Order, State};
use crate::partly::partly;
use crate::parts::writes;
use crate::reply::{LIMITS, Passed};
use crate::scripts::{Scripts, forgets_scripts, words};

const ODD: &str = "a node has sent a reply that its command does not have";

/// Some replies, each with the places that it is about.
type Replies<'r> = [(&'r [u8], &'r [u32])];

/// One reply of several. An error among them is the reply, but for those that had nothing to end. `known`: places that
/// are 1 whatever the nodes say.
///
/// # Errors
/// A reply is not what such a command has.
pub(crate) fn merge(how: Merge, parts: &Replies<'_>, known: &[bool]) -> Result<Vec<u8>, &'static str> {
    let is_error = |reply: &[u8]| reply.first() == Some(&b'-');
    let first = parts.first().ok_or(ODD)?.0;
    match (how, parts.iter().find(|(reply, _)| is_error(reply))) {
        (Merge::Killed, _) => {
            // Whoever has ended something says more than whoever would not, and both more than who had nothing to end.
            let weight = |reply: &[u8]| u8::from(is_error(reply)) + u8::from(reply.starts_with(b"-NOTBUSY"));
            let said = parts.iter().map(|(reply, _)| *reply).min_by_key(|reply| weight(reply));
            Ok(said.unwrap_or(first).to_vec())
        }
        (_, Some((error, _))) => Ok(error.to_vec()),
        (Merge::Same, None) => Ok(first.to_vec()),
        (Merge::Any, None) => {
            let is_null = |reply: &[u8]| matches!(reply, b"_\r\n" | b"$-1\r\n" | b"*-1\r\n");
            let some = parts.iter().find(|(reply, _)| !is_null(reply));
            Ok(some.map_or(first, |(reply, _)| reply).to_vec())
        }
        (Merge::Sum, None) => {
            let mut numbers = parts.iter().map(|(reply, _)| number(reply));
            let sum = numbers.try_fold(0_i64, |sum, number| sum.checked_add(number?));
            Ok(format!(":{}\r\n", sum.ok_or(ODD)?).into_bytes())
        }
        (Merge::Joined, None) => Ok(array(&lists(parts)?.concat())),
        (Merge::Union, None) => {
            let all: BTreeSet<&[u8]> = lists(parts)?.into_iter().flatten().collect();
            Ok(array(&all.into_iter().collect::<Vec<_>>()))
        }
        (Merge::Counts, None) => counts(first, parts),
        (Merge::Least, None) => least(parts, known),
        (Merge::Places, None) => {
            let count = parts.iter().map(|(_, places)| places.len()).sum();
            let mut all: Vec<&[u8]> = vec![b"_\r\n"; count];
            for (elements, (_, places)) in lists(parts)?.into_iter().zip(parts) {
                if elements.len() != places.len() {
                    return Err(ODD);
                }
                for (element, place) in elements.into_iter().zip(*places) {
                    *all.get_mut(*place as usize).ok_or(ODD)? = element;
                }
            }
            Ok(array(&all))
        }
    }
}

/// The elements of each.
fn lists<'r>(parts: &Replies<'r>) -> Result<Vec<Vec<&'r [u8]>>, &'static str> {
    parts.iter().map(|(reply, _)| elements(reply).ok_or(ODD)).collect()
}

/// Names with their counts, added up.
fn counts(first: &[u8], parts: &Replies<'_>) -> Result<Vec<u8>, &'static str> {
    let names: Vec<&[u8]> = elements(first).ok_or(ODD)?.into_iter().step_by(2).collect();
    let mut sums = vec![0_i64; names.len()];
    for own in lists(parts)? {
        if own.len() != 2 * names.len() {
            return Err(ODD);
        }
        for (sum, count) in sums.iter_mut().zip(own.into_iter().skip(1).step_by(2)) {
            *sum = number(count).and_then(|count| sum.checked_add(count)).ok_or(ODD)?;
        }
    }
    let sums: Vec<String> = sums.iter().map(|sum| format!(":{sum}\r\n")).collect();
    let pairs = names.into_iter().zip(&sums).flat_map(|(name, sum)| [name, sum.as_bytes()]);
    Ok(array(&pairs.collect::<Vec<_>>()))
}

/// The least number of each place.
fn least(parts: &Replies<'_>, known: &[bool]) -> Result<Vec<u8>, &'static str> {
    let mut least: Vec<i64> = Vec::new();
    for list in lists(parts)? {
        let numbers: Vec<i64> = list.into_iter().map(number).collect::<Option<_>>().ok_or(ODD)?;
        match least.len() {
            0 => least = numbers,
            len if len == numbers.len() => {
                least.iter_mut().zip(numbers).for_each(|(least, number)| *least = number.min(*least));
            }
            _ => return Err(ODD),
        }
    }
    for (least, known) in least.iter_mut().zip(known) {
        *least = (*least).max(i64::from(*known));
    }
    let texts: Vec<String> = least.iter().map(|number| format!(":{number}\r\n")).collect();
    Ok(array(&texts.iter().map(String::as_bytes).collect::<Vec<_>>()))
}

/// One answer of several, which are all there.
pub(crate) fn merged(
    how: Merge,
    parts: &VecDeque<Order>,
    (scripts, addresses): (&Scripts, &[Address]),
    front: &mut impl Front,
) {
    let Some(Order { to, silent, resp2, bytes, reads, .. }) = parts.front() else { return };
    // A script that one node has the others are given when they are asked for it.
    let known = match how {
        Merge::Least => known(bytes, scripts),
        _ => Vec::new(),
    };
    if forgets_scripts(bytes) {
        scripts.clear();
    }
    if let Some(error) = partly(parts, addresses).filter(|_| writes(how, *reads)) {
        return deliver(front, *to, *silent, Answer::Error(error));
    }
    let mut replies = Vec::with_capacity(parts.len());
    for part in parts {
        match &part.state {
            State::Done(Arrived::Reply(bytes, _)) => replies.push((bytes.as_slice(), part.places.as_slice())),
            State::Done(Arrived::Error(error) | Arrived::Doubt(error)) => {
                return deliver(front, *to, *silent, Answer::Error(error.clone()));
            }
            _ => return deliver(front, *to, *silent, Answer::Nothing),
        }
    }
    match merge(how, &replies, &known) {
        Ok(bytes) => deliver(front, *to, *silent, Answer::Reply { bytes: &bytes, resp2: *resp2 }),
        Err(why) => deliver(front, *to, *silent, Answer::Error(Error::new(ErrorCode::Upstream, why))),
    }
}

/// Which scripts of SCRIPT EXISTS are kept.
fn known(bytes: &[u8], scripts: &Scripts) -> Vec<bool> {
    words(bytes).skip(2).map(|digest| scripts.has(digest)).collect()
}

/// SCAN's reply with another cursor. `None`: it is none.
pub(crate) fn with_cursor(reply: &[u8], change: impl FnOnce(u64) -> Option<u64>) -> Option<Vec<u8>> {
    let elements = elements(reply)?;
    let [cursor, found] = elements.as_slice() else { return None };
    let text = cursor.strip_prefix(b"$")?;
    let at = text.iter().position(|byte| *byte == b'\n')?;
    let cursor = change(std::str::from_utf8(&text[at + 1..]).ok()?.trim_end().parse().ok()?)?.to_string();
    Some([format!("*2\r\n${}\r\n{cursor}\r\n", cursor.len()).as_bytes(), found].concat())
}

fn number(reply: &[u8]) -> Option<i64> {
    std::str::from_utf8(reply.strip_prefix(b":")?).ok()?.trim_end().parse().ok()
}

fn array(elements: &[&[u8]]) -> Vec<u8> {
    [format!("*{}\r\n", elements.len()).as_bytes(), &elements.concat()].concat()
}

/// The elements of an array.
fn elements(reply: &[u8]) -> Option<Vec<&[u8]>> {
    let head = reply.iter().position(|byte| *byte == b'\n')? + 1;
    let count: usize =
        std::str::from_utf8(reply[..head].strip_prefix(b"*")?).ok()?.trim_end().parse().ok()?;
    let mut rest = &reply[head..];
    let mut elements = Vec::new();
    for _ in 0..count {
        let Outcome::Complete(frame) = ReplyDecoder::new(LIMITS).decode(rest, &mut Passed) else {
            return None;
        };
        let (element, behind) = rest.split_at(frame.len);
        elements.push(element);
        rest = behind;
    }
    Some(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(how: Merge, parts: &[(&str, &[u32])]) -> Result<String, &'static str> {
        let parts: Vec<(&[u8], &[u32])> = parts.iter().map(|(reply, at)| (reply.as_bytes(), *at)).collect();
        merge(how, &parts, &[false, true]).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn one_reply_of_several() {
        let is = |how, parts: &[(&str, &[u32])], reply: &str| assert_eq!(merged(how, parts).unwrap(), reply);
        is(Merge::Sum, &[(":2\r\n", &[]), (":3\r\n", &[])], ":5\r\n");
        is(Merge::Same, &[("+OK\r\n", &[]), ("+OK\r\n", &[])], "+OK\r\n");
        is(Merge::Same, &[("+OK\r\n", &[]), ("-ERR no\r\n", &[])], "-ERR no\r\n");
        is(Merge::Any, &[("$-1\r\n", &[]), ("$1\r\na\r\n", &[])], "$1\r\na\r\n");
        is(Merge::Any, &[("_\r\n", &[])], "_\r\n");
        is(Merge::Joined, &[("*1\r\n$1\r\na\r\n", &[]), ("*0\r\n", &[])], "*1\r\n$1\r\na\r\n");
        is(Merge::Least, &[("*2\r\n:1\r\n:1\r\n", &[]), ("*2\r\n:0\r\n:1\r\n", &[])], "*2\r\n:0\r\n:1\r\n");
        is(Merge::Least, &[("*2\r\n:0\r\n:0\r\n", &[])], "*2\r\n:0\r\n:1\r\n");
        is(
            Merge::Union,
            &[("*1\r\n$1\r\nb\r\n", &[]), ("*2\r\n$1\r\na\r\n$1\r\nb\r\n", &[])],
            "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        );
        let counts = ("*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:0\r\n", &[][..]);
        is(Merge::Counts, &[counts, counts], "*4\r\n$1\r\na\r\n:2\r\n$1\r\nb\r\n:0\r\n");
        let places: &[(&str, &[u32])] = &[("*2\r\n$1\r\na\r\n$1\r\nc\r\n", &[0, 2]), ("*1\r\n$-1\r\n", &[1])];
        is(Merge::Places, places, "*3\r\n$1\r\na\r\n$-1\r\n$1\r\nc\r\n");
    }

    #[test]
    fn what_one_has_ended_is_ended() {
        let is = |parts: [&str; 2], reply: &str| {
            assert_eq!(merged(Merge::Killed, &parts.map(|part| (part, &[][..]))).unwrap(), reply);
        };
        is(["-NOTBUSY no\r\n", "+OK\r\n"], "+OK\r\n");
        is(["-NOTBUSY no\r\n", "-UNKILLABLE no\r\n"], "-UNKILLABLE no\r\n");
        is(["-NOTBUSY no\r\n", "-NOTBUSY no\r\n"], "-NOTBUSY no\r\n");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (how, reply) in [
            (Merge::Sum, "+OK\r\n"),
            (Merge::Joined, ":1\r\n"),
            (Merge::Joined, "*2\r\n:1\r\n"),
            (Merge::Least, "*1\r\n+a\r\n"),
            (Merge::Union, ":1\r\n"),
            (Merge::Counts, "*2\r\n$1\r\na\r\n$1\r\na\r\n"),
            (Merge::Places, "*2\r\n:1\r\n:1\r\n"),
        ] {
            assert!(merged(how, &[(reply, &[0])]).is_err(), "{how:?} {reply}");
        }
        let most = format!(":{}\r\n", i64::MAX);
        assert!(merged(Merge::Sum, &[(&most, &[]), (":1\r\n", &[])]).is_err());
        let counts = format!("*2\r\n$1\r\na\r\n{most}");
        assert!(merged(Merge::Counts, &[(&counts, &[]), (&counts, &[])]).is_err());
        assert!(merged(Merge::Places, &[("*1\r\n:1\r\n", &[7])]).is_err());
    }

    #[test]
    fn a_cursor_is_changed() {
        let changed = with_cursor(b"*2\r\n$1\r\n5\r\n*1\r\n$1\r\nk\r\n", |cursor| Some(cursor << 14 | 3));
        assert_eq!(changed.unwrap(), b"*2\r\n$5\r\n81923\r\n*1\r\n$1\r\nk\r\n");
        assert_eq!(with_cursor(b"*2\r\n$1\r\nx\r\n*0\r\n", Some), None);
        assert_eq!(with_cursor(b"-ERR no\r\n", Some), None);
    }
}
