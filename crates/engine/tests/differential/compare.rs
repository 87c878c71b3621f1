//! Owns: whether two replies say the same, what of INFO and of pushes is compared, and how replies are shown. Does not
//! own: which differences are accepted.

use weft_protocol::Reply;

/// How the replies of a command are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// To the byte, and the type of reply too.
    Exact,
    /// The elements of an array in any order: sets, KEYS.
    Unordered,
    /// As `Unordered`, however deep in the reply: libraries and their functions.
    Deep,
    /// Pairs in any order, also where an array has them flat: hashes.
    Pairs,
    /// A cursor, and elements in any order.
    Scan,
    /// As `Scan`, with flat pairs.
    ScanPairs,
    /// Numbers may differ by what time passes between the two: TTL.
    Near,
    /// As `Exact`, but for what follows the clock or the insides of a structure, wherever in the reply it stands: idle
    /// and delivery times, the nodes of a tree.
    Clock,
    /// Only the type of reply, and how many elements: what is chosen by chance.
    Shape,
}

/// By how much [`Rule::Near`] lets numbers differ: milliseconds. A busy machine may hold the server up for seconds; a
/// time in a wrong unit differs by more.
const NEAR_MS: i64 = 60_000;

impl Rule {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "exact" => Self::Exact,
            "unordered" => Self::Unordered,
            "deep" => Self::Deep,
            "pairs" => Self::Pairs,
            "scan" => Self::Scan,
            "scan-pairs" => Self::ScanPairs,
            "near" => Self::Near,
            "clock" => Self::Clock,
            "shape" => Self::Shape,
            _ => return None,
        })
    }

    pub(crate) fn agree(self, one: &Reply, other: &Reply) -> bool {
        let same = show(one) == show(other);
        same || match (self, one, other) {
            (Self::Near, Reply::Int(one), Reply::Int(other)) => {
                // −1 and −2 are no times.
                *one >= 0 && *other >= 0 && one.abs_diff(*other) <= NEAR_MS as u64
            }
            (Self::Shape, one, other) => shape(one) == shape(other),
            (Self::Clock, one, other) => show(&masked(one)) == show(&masked(other)),
            _ => self.sorted(one) == self.sorted(other),
        }
    }

    /// The text of a reply with what has no order in order.
    fn sorted(self, reply: &Reply) -> String {
        match (self, reply) {
            (Self::Deep, _) => deep(reply),
            (Self::Unordered | Self::Pairs, Reply::Set(items)) => format!("set{}", lines(items, 1)),
            (Self::Unordered, Reply::Array(items)) => lines(items, 1),
            (Self::Pairs, Reply::Array(items)) => lines(items, 2),
            (Self::Pairs, Reply::Map(pairs)) => {
                let mut all: Vec<String> =
                    pairs.iter().map(|(key, value)| format!("{} {}", show(key), show(value))).collect();
                all.sort();
                format!("map{all:?}")
            }
            (Self::Scan | Self::ScanPairs, Reply::Array(items)) => match &items[..] {
                [cursor, Reply::Array(found)] => {
                    let width = if self == Self::Scan { 1 } else { 2 };
                    format!("{} {}", show(cursor), lines(found, width))
                }
                _ => show(reply),
            },
            _ => show(reply),
        }
    }
}

/// Figures of streams that differ by nature.
const CLOCKED: [&[u8]; 5] = [b"idle", b"inactive", b"seen-time", b"active-time", b"radix-tree-nodes"];

/// A reply without times: what follows a name of a figure that is one, and where it stands in a pending entry (id,
/// consumer, time, deliveries, or without the consumer). −1, for never, stays.
fn masked(reply: &Reply) -> Reply {
    let hide = |reply: &Reply| match reply {
        Reply::Int(0..) => Reply::Simple("time".into()),
        other => masked(other),
    };
    let is_clocked = |name: &Reply| matches!(name, Reply::Bulk(name) if CLOCKED.contains(&&name[..]));
    match reply {
        Reply::Array(items) => {
            let time_at = match &items[..] {
                [Reply::Bulk(_), Reply::Bulk(_), Reply::Int(_), Reply::Int(_)] => Some(2),
                [Reply::Bulk(_), Reply::Int(_), Reply::Int(_)] => Some(1),
                _ => None,
            };
            let item = |(at, item)| {
                let named = at > 0 && is_clocked(&items[at - 1]);
                if named || Some(at) == time_at { hide(item) } else { masked(item) }
            };
            Reply::Array(items.iter().enumerate().map(item).collect())
        }
        Reply::Map(pairs) => {
            let pair = |(name, value): &(Reply, Reply)| {
                (name.clone(), if is_clocked(name) { hide(value) } else { masked(value) })
            };
            Reply::Map(pairs.iter().map(pair).collect())
        }
        other => other.clone(),
    }
}

fn lines(items: &[Reply], width: usize) -> String {
    let mut all: Vec<String> = items.chunks(width).map(|chunk| chunk.iter().map(show).collect()).collect();
    all.sort();
    format!("{all:?}")
}

/// The text of a reply whose lists have no order.
fn deep(reply: &Reply) -> String {
    let list = |items: &[Reply]| {
        let mut all: Vec<String> = items.iter().map(deep).collect();
        all.sort();
        all.join(" ")
    };
    match reply {
        Reply::Array(items) => format!("[{}]", list(items)),
        Reply::Set(items) => format!("~[{}]", list(items)),
        Reply::Map(pairs) => {
            let mut all: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{}: {}", deep(name), deep(value))).collect();
            all.sort();
            format!("{{{}}}", all.join(", "))
        }
        other => show(other),
    }
}

fn shape(reply: &Reply) -> String {
    match reply {
        Reply::Error(_) | Reply::Null | Reply::NullArray => show(reply),
        Reply::Array(items) => format!("array {}", items.len()),
        Reply::Set(items) => format!("set {}", items.len()),
        Reply::Map(pairs) => format!("map {}", pairs.len()),
        other => format!("{:?}", std::mem::discriminant(other)),
    }
}

/// The line of INFO that counts the scripts which were taken back and ran again.
pub(crate) fn reruns(info: &Reply) -> Option<String> {
    let (Reply::Bulk(text) | Reply::Verbatim(_, text)) = info else { return None };
    let text = String::from_utf8_lossy(text);
    text.lines().find(|line| line.starts_with("script_undeclared_reruns")).map(str::to_owned)
}

/// The lines of INFO that count what happened, without times. Those of commands that only one side is given are left
/// out.
pub(crate) fn counts(info: &Reply) -> Vec<String> {
    let (Reply::Bulk(text) | Reply::Verbatim(_, text)) = info else { return vec![show(info)] };
    let text = String::from_utf8_lossy(text);
    let counted = [
        "cmdstat_",
        "errorstat_",
        "expired_keys",
        "expired_fields",
        "keyspace_hits",
        "keyspace_misses",
        "db",
    ];
    let own = ["cmdstat_client|", "cmdstat_config|", "cmdstat_info", "cmdstat_acl|", "cmdstat_psubscribe"];
    let lines = text.lines().filter(|line| {
        counted.iter().any(|head| line.starts_with(head)) && !own.iter().any(|head| line.starts_with(head))
    });
    lines
        .map(|line| {
            let (name, fields) = line.split_once(':').unwrap_or((line, ""));
            let fields = fields.split(',').filter(|field| !field.contains("usec") && !field.contains("ttl"));
            format!("{name}:{}", fields.collect::<Vec<_>>().join(","))
        })
        .collect()
}

/// Invalidations key by key: how many are told of together follows from the batches.
pub(crate) fn each_key(push: Reply) -> Vec<Reply> {
    match push {
        Reply::Push(mut words) if matches!(words.get(1), Some(Reply::Array(_))) => match words.remove(1) {
            Reply::Array(keys) => keys,
            other => vec![other],
        },
        other => vec![other],
    }
}

/// A reply on one line, its type included.
pub(crate) fn show(reply: &Reply) -> String {
    let list = |items: &[Reply]| items.iter().map(show).collect::<Vec<_>>().join(" ");
    match reply {
        Reply::Simple(bytes) => format!("+{}", bytes.escape_ascii()),
        Reply::Error(bytes) => format!("-{}", bytes.escape_ascii()),
        Reply::Bulk(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        Reply::Int(value) => format!(":{value}"),
        Reply::Double(value) => format!(",{value:?}"),
        Reply::Bool(value) => format!("#{value}"),
        Reply::BigNumber(digits) => format!("({}", digits.escape_ascii()),
        Reply::Verbatim(format, bytes) => format!("={}:{}", format.escape_ascii(), bytes.escape_ascii()),
        Reply::Null => "null".into(),
        Reply::NullArray => "null-array".into(),
        Reply::Array(items) => format!("[{}]", list(items)),
        Reply::Set(items) => format!("~[{}]", list(items)),
        Reply::Push(items) => format!(">[{}]", list(items)),
        Reply::Map(pairs) => {
            let pairs: Vec<_> =
                pairs.iter().map(|(key, value)| format!("{}: {}", show(key), show(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Reply::Attributed(_, reply) => show(reply),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_accept_what_they_name() {
        let bulk = |text: &str| Reply::Bulk(text.into());
        let array = |items: &[&str]| Reply::Array(items.iter().map(|item| bulk(item)).collect());
        assert!(!Rule::Exact.agree(&bulk("OK"), &Reply::Simple("OK".into())));
        assert!(!Rule::Exact.agree(&array(&["a", "b"]), &array(&["b", "a"])));
        assert!(Rule::Unordered.agree(&array(&["a", "b"]), &array(&["b", "a"])));
        assert!(!Rule::Unordered.agree(&array(&["a", "b"]), &array(&["b", "b"])));
        let nested = |items: &[&str]| Reply::Array(vec![bulk("x"), array(items)]);
        assert!(Rule::Deep.agree(&nested(&["a", "b"]), &nested(&["b", "a"])));
        assert!(!Rule::Deep.agree(&nested(&["a", "b"]), &nested(&["b", "b"])));
        assert!(!Rule::Unordered.agree(&nested(&["a", "b"]), &nested(&["b", "a"])));
        assert!(Rule::Pairs.agree(&array(&["a", "1", "b", "2"]), &array(&["b", "2", "a", "1"])));
        assert!(!Rule::Pairs.agree(&array(&["a", "1", "b", "2"]), &array(&["a", "2", "b", "1"])));
        assert!(Rule::Near.agree(&Reply::Int(100), &Reply::Int(99)));
        assert!(!Rule::Near.agree(&Reply::Int(0), &Reply::Int(-1)));
        assert!(Rule::Shape.agree(&array(&["a"]), &array(&["b"])));
        assert!(!Rule::Shape.agree(&array(&["a"]), &array(&[])));
    }
}
