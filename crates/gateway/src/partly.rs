//! Owns: what a client is told of a request that writes at several nodes when a part of it has not run, or may not
//! have: of which keys, or nodes, what is known. Does not own: one reply of several that have run (`crate::merge`).

use std::collections::VecDeque;

use weft_client::Address;
use weft_engine::error::Error;

use crate::answer::Arrived;
use crate::orders::{Order, State};
use crate::scripts::words;

/// Names of each kind that such an error has, and bytes of one.
const SHOWN_MAX: usize = 8;
const SHOWN_BYTES_MAX: usize = 64;

/// What has become of a part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ran,
    /// Neither its node nor the gateway has run it.
    Refused,
    /// Its connection was lost, or its answer is late.
    Doubt,
}

fn fate(part: &Order) -> Fate {
    match &part.state {
        State::Done(Arrived::Reply(bytes, _)) if bytes.first() == Some(&b'-') => Fate::Refused,
        State::Done(Arrived::Error(_)) => Fate::Refused,
        State::Done(Arrived::Doubt(_)) => Fate::Doubt,
        _ => Fate::Ran,
    }
}

/// Why a part has not run, or may not have.
fn reason(part: &Order) -> Option<Error> {
    match &part.state {
        State::Done(Arrived::Reply(bytes, _)) => {
            let line = String::from_utf8_lossy(bytes.strip_prefix(b"-")?).trim_end().to_string();
            let (prefix, text) = line.split_once(' ').unwrap_or((&line, ""));
            Some(Error::with_prefix(prefix, text.to_string()))
        }
        State::Done(Arrived::Error(error) | Arrived::Doubt(error)) => Some(error.clone()),
        _ => None,
    }
}

/// The answer to a request of which parts have different fates: the first reason, and what is known of which part.
/// `None` where all have run, or what the first says holds for all.
pub(crate) fn partly(parts: &VecDeque<Order>, addresses: &[Address]) -> Option<Error> {
    let first = fate(parts.front()?);
    if parts.iter().all(|part| fate(part) == first) {
        return None;
    }
    let reason = parts.iter().find_map(reason)?;
    // A part is about some keys, or about a node.
    let is_nodes = parts.front()?.pinned.is_some();
    let names = |part: &Order| match part.pinned {
        Some(node) => vec![addresses.get(node).map_or_else(String::new, ToString::to_string)],
        None => words(&part.bytes).skip(1).map(shown).collect(),
    };
    let (mut all, mut texts) = (0, Vec::new());
    for (which, verb) in [(Fate::Ran, "has"), (Fate::Refused, "has not"), (Fate::Doubt, "may have")] {
        let of: Vec<String> = parts.iter().filter(|part| fate(part) == which).flat_map(names).collect();
        all += of.len();
        if !of.is_empty() {
            let more = if of.len() > SHOWN_MAX { ", …" } else { "" };
            let shown = of.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
            let place = if is_nodes { "at" } else { "for" };
            texts.push(format!("it {verb} {place} {} ({shown}{more})", of.len()));
        }
    }
    let head = match parts.iter().any(|part| fate(part) == Fate::Refused) {
        true => "a part of the request has not run",
        false => "whether all of the request has run is not known",
    };
    let what = if is_nodes { "nodes" } else { "keys" };
    let text = format!("{head}: of {all} {what} {}: {}", texts.join(", "), reason.text);
    Some(Error { text: text.into(), ..reason })
}

/// A key as an error shows it.
fn shown(key: &[u8]) -> String {
    let more = if key.len() > SHOWN_BYTES_MAX { "…" } else { "" };
    format!("'{}{more}'", key[..key.len().min(SHOWN_BYTES_MAX)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use weft_engine::error::ErrorCode;
    use weft_engine::forward::{Forward, Kind};

    use super::*;
    use crate::answer::{lost, unreachable};
    use crate::testing::{client, request_of};

    fn part(words: &[&str], pinned: Option<usize>, arrived: Arrived) -> Order {
        let mut order = Order::new(&Forward::of(client(1), Kind::Plain), &request_of(words), 0);
        (order.pinned, order.state) = (pinned, State::Done(arrived));
        order
    }
    fn part_that_ran(words: &[&str], pinned: Option<usize>) -> Order {
        part(words, pinned, Arrived::Reply(b":1\r\n".to_vec(), true))
    }
    fn text_of(parts: Vec<Order>) -> Option<String> {
        let addresses = [1, 2, 3].map(|port| Address::Tcp("h".into(), port));
        partly(&parts.into(), &addresses).map(|error| error.line())
    }

    #[test]
    fn which_part_has_run_is_said() {
        let gone = || Arrived::Error(unreachable("no"));
        let doubt = || Arrived::Doubt(lost("cut", true));
        let told_of = text_of(vec![
            part_that_ran(&["DEL", "a", "b"], None),
            part(&["DEL", "c\n"], None, gone()),
            part(&["DEL", "d"], None, doubt()),
        ]);
        let text = "ERR a part of the request has not run: of 4 keys it has for 2 ('a', 'b'), it has not for 1 \
                    ('c\\n'), it may have for 1 ('d'): the server behind the gateway cannot be reached: no";
        assert_eq!(told_of.as_deref(), Some(text));
        let refused = Arrived::Reply(b"-MISCONF no disk\r\n".to_vec(), true);
        let all = [part_that_ran(&["FLUSHALL"], Some(0)), part(&["FLUSHALL"], Some(2), refused)];
        let text = "MISCONF a part of the request has not run: of 2 nodes it has at 1 (h:1), it has not at 1 (h:3): \
                    no disk";
        assert_eq!(text_of(all.into()).as_deref(), Some(text));
        let text = text_of(vec![part_that_ran(&["DEL", "a"], None), part(&["DEL", "b"], None, doubt())]);
        assert!(
            text.is_some_and(|text| text.starts_with("ERR whether all of the request has run is not known"))
        );
    }

    #[test]
    fn what_holds_for_all_is_said_once() {
        let none = |arrived: fn() -> Arrived| text_of(vec![part(&["DEL", "a"], None, arrived()); 2]);
        assert_eq!(none(|| Arrived::Error(ErrorCode::Busy.into())), None);
        assert_eq!(none(|| Arrived::Doubt(lost("cut", true))), None);
        assert_eq!(
            text_of(vec![part_that_ran(&["DEL", "a"], None), part_that_ran(&["DEL", "b"], None)]),
            None
        );
    }

    #[test]
    fn an_error_is_of_bounded_length() {
        let long = "k".repeat(10_000);
        let many: Vec<&str> = std::iter::once("DEL").chain([long.as_str(); 1_000]).collect();
        let parts = vec![part_that_ran(&many, None), part(&many, None, Arrived::Error(unreachable("no")))];
        assert!(
            text_of(parts).is_some_and(|text| text.len() < 2_000 && text.contains("it has for 1000 ('kkk"))
        );
    }
}
