//! Owns: texts of scripts that clients have brought, for nodes of a cluster that do not have them; the words of a
//! request that names one. Does not own: when one is asked for (`crate::orders`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_engine::forward::{Forward, Kind};
use weft_engine::requests::What;
use weft_engine::script::sha1_hex;
use weft_protocol::request::Arguments;
use weft_protocol::resp::ReplyDecoder;
use weft_protocol::resp::encode::request;
use weft_protocol::table::policy;
use weft_protocol::{Arg, Outcome};

use crate::reply::{LIMITS, Passed};

/// Bytes of scripts that are kept; of more the oldest are forgotten.
const SCRIPTS_BYTES_MAX: usize = 16 << 20;
/// Scripts that are kept.
const SCRIPTS_MAX: usize = 10_000;

type Digest = [u8; 40];

/// Texts of scripts by their digests.
#[derive(Debug, Default)]
pub(crate) struct Scripts(Mutex<Texts>);

#[derive(Debug, Default)]
struct Texts {
    by_digest: HashMap<Digest, Arc<[u8]>>,
    /// The same: a text that is known is not hashed again.
    known: HashSet<Arc<[u8]>>,
    /// As they came.
    order: VecDeque<Digest>,
    bytes: usize,
}

impl Scripts {
    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Keeps a script.
    fn keep(&self, text: &[u8]) {
        let mut texts = self.texts();
        if text.len() > SCRIPTS_BYTES_MAX || texts.known.contains(text) {
            return;
        }
        let (digest, text): (Digest, Arc<[u8]>) = (sha1_hex(text), text.into());
        texts.bytes += text.len();
        texts.known.insert(Arc::clone(&text));
        texts.by_digest.insert(digest, text);
        texts.order.push_back(digest);
        while texts.bytes > SCRIPTS_BYTES_MAX || texts.order.len() > SCRIPTS_MAX {
            let Some(oldest) = texts.order.pop_front() else { break };
            if let Some(text) = texts.by_digest.remove(&oldest) {
                texts.known.remove(&text);
                texts.bytes -= text.len();
            }
        }
    }
    /// Whether the script of a digest is kept.
    pub(crate) fn has(&self, digest: &[u8]) -> bool {
        digest_of(digest).is_some_and(|digest| self.find(&digest).is_some())
    }
    fn find(&self, digest: &Digest) -> Option<Arc<[u8]>> {
        self.texts().by_digest.get(digest).cloned()
    }
    /// SCRIPT FLUSH: whoever asks for one from here on is told that there is none.
    pub(crate) fn clear(&self) {
        *self.texts() = Texts::default();
    }

    /// What one request has brought that a node has run.
    pub(crate) fn learn_one(&self, bytes: &[u8]) {
        if let Some(text) = brought(bytes) {
            self.keep(text);
        }
    }
    /// What requests that a node has run have brought: a script's text by EVAL or SCRIPT LOAD.
    pub(crate) fn learn(&self, bytes: &[u8]) {
        requests(bytes).for_each(|one| self.learn_one(one));
    }
    /// What goes before a request: in a transaction, or over its client's own connection, nobody is asked again for a
    /// script that a node does not have.
    pub(crate) fn before(&self, forward: &Forward, bytes: &[u8]) -> Arc<[u8]> {
        let is_asked_once = forward.watches > 0 || matches!(forward.kind, Kind::Exec(_));
        if is_asked_once && !self.texts().order.is_empty() {
            self.loads(bytes).into()
        } else {
            Arc::default()
        }
    }
    /// What loads the scripts that requests name by their digests, as far as they are kept: each once.
    pub(crate) fn loads(&self, bytes: &[u8]) -> Vec<u8> {
        let mut named: HashSet<Digest> = HashSet::new();
        let mut loads = Vec::new();
        for digest in requests(bytes).filter_map(named_by).filter_map(digest_of) {
            // There may be as many as there are requests, and no more that are kept than may be.
            if let Some(text) = self.find(&digest)
                && named.insert(digest)
            {
                request(None, &Load(&text), &mut loads);
            }
        }
        loads
    }
}

/// A digest as it is kept.
fn digest_of(digest: &[u8]) -> Option<Digest> {
    let mut digest = Digest::try_from(digest).ok()?;
    digest.make_ascii_lowercase();
    Some(digest)
}

/// SCRIPT LOAD.
struct Load<'t>(&'t [u8]);

impl Arguments for Load<'_> {
    fn len(&self) -> usize {
        3
    }
    fn arg(&self, index: usize) -> Arg<'_> {
        Arg::Bytes([&b"SCRIPT"[..], b"LOAD", self.0].get(index).copied().unwrap_or_default())
    }
}

/// What the table says of a request's command, and its arguments.
fn policy_of(bytes: &[u8]) -> (u64, impl Iterator<Item = &[u8]>) {
    let mut all = words(bytes);
    let name = all.next().unwrap_or_default();
    let mut arguments = all.clone();
    let policy = match What::of(name, all.next()) {
        What::Command(id) => {
            // A subcommand's arguments stand behind it.
            if id.spec().container.is_some() {
                arguments.next();
            }
            id.spec().policy
        }
        _ => 0,
    };
    (policy, arguments)
}

/// The text that a request brings.
fn brought(bytes: &[u8]) -> Option<&[u8]> {
    let (policy, mut arguments) = policy_of(bytes);
    arguments.next().filter(|_| policy & (policy::RUNS_SCRIPT | policy::BRINGS_SCRIPT) != 0)
}

/// The digest by which a request names a script.
pub(crate) fn named_by(bytes: &[u8]) -> Option<&[u8]> {
    let (policy, mut arguments) = policy_of(bytes);
    arguments.next().filter(|_| policy & policy::RUNS_SHA != 0)
}

/// Whether a request runs a script or a program, which may answer whatever they like.
pub(crate) fn runs_logic(bytes: &[u8]) -> bool {
    const RUNS: u64 = policy::RUNS_SCRIPT | policy::RUNS_SHA | policy::RUNS_FUNCTION | policy::RUNS_STORED;
    policy_of(bytes).0 & RUNS != 0
}

/// Whether nodes have no scripts behind a request.
pub(crate) fn forgets_scripts(bytes: &[u8]) -> bool {
    policy_of(bytes).0 & policy::FORGETS_SCRIPTS != 0
}

/// Whether one of some requests is PUBLISH.
pub(crate) fn publishes(bytes: &[u8]) -> bool {
    requests(bytes).any(|one| policy_of(one).0 & policy::PUBLISHES != 0)
}

/// Requests that stand behind each other.
pub(crate) fn requests(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        // A request looks like a reply that is an array.
        let Outcome::Complete(frame) = ReplyDecoder::new(LIMITS).decode(rest, &mut Passed) else {
            return None;
        };
        let (one, behind) = rest.split_at(frame.len);
        rest = behind;
        Some(one)
    })
}

/// The words of one request.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
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
    use crate::testing::request_of;

    #[test]
    fn words_of_a_request() {
        let all: Vec<&[u8]> = words(b"*2\r\n$4\r\nLOAD\r\n$0\r\n\r\n").collect();
        assert_eq!(all, [&b"LOAD"[..], b""]);
        assert_eq!(words(b"*1\r\n$99\r\nshort\r\n").count(), 0);
        assert_eq!(words(b"").count(), 0);
    }

    #[test]
    fn the_table_says_what_a_request_does() {
        for words in
            [&["eval", "x", "0"][..], &["EVALSHA_RO", "x"], &["fcall", "f"], &["program", "Run", "p"]]
        {
            assert!(runs_logic(&request_of(words)), "{words:?}");
        }
        for words in [&["GET", "EVAL"][..], &["PROGRAM", "LIST"], &["SCRIPT", "LOAD", "x"], &["EVALS"], &[]] {
            assert!(!runs_logic(&request_of(words)), "{words:?}");
        }
        assert_eq!(brought(&request_of(&["script", "load", "x"])), Some(&b"x"[..]));
        assert_eq!(brought(&request_of(&["EVAL_RO", "x", "0"])), Some(&b"x"[..]));
        assert_eq!(brought(&request_of(&["SCRIPT", "EXISTS", "x"])), None);
        assert_eq!(named_by(&request_of(&["evalsha", "x", "0"])), Some(&b"x"[..]));
        assert!(forgets_scripts(&request_of(&["script", "Flush", "ASYNC"])));
        for words in
            [&["SCRIPT", "LOAD", "FLUSH"], &["FUNCTION", "FLUSH", "SYNC"], &["GET", "SCRIPT", "FLUSH"]]
        {
            assert!(!forgets_scripts(&request_of(words)), "{words:?}");
        }
        let both = [request_of(&["GET", "PUBLISH"]), request_of(&["publish", "c", "m"])];
        assert_eq!([publishes(&both[0]), publishes(&both.concat())], [false, true]);
    }

    #[test]
    fn what_was_brought_is_loaded_where_it_is_named() {
        let scripts = Scripts::default();
        let digest = String::from_utf8(sha1_hex(b"return 1").to_vec()).unwrap();
        let named = [
            request_of(&["MULTI"]),
            request_of(&["evalsha", &digest, "0"]),
            request_of(&["EVALSHA_RO", &digest, "0"]),
        ];
        assert!(scripts.loads(&named.concat()).is_empty());
        scripts.learn(&[request_of(&["GET", "k"]), request_of(&["eval", "return 1", "0"])].concat());
        assert_eq!(scripts.loads(&named.concat()), request_of(&["SCRIPT", "LOAD", "return 1"]));
        assert!(scripts.has(digest.to_uppercase().as_bytes()));
        scripts.clear();
        assert!(!scripts.has(digest.as_bytes()));
        scripts.learn(&request_of(&["SCRIPT", "LOAD", "return 1"]));
        assert!(scripts.has(digest.as_bytes()) && !scripts.has(b"short"));
    }

    /// A transaction names as many scripts as it likes, whether there are such or not.
    #[test]
    fn many_that_are_named_cost_in_proportion() {
        use rustix::time::{ClockId, clock_gettime};
        // Sixteen times as many may take so much longer: room for caches. Were all compared, it would be 256.
        const RATIO_MAX: f64 = 64.0;
        let scripts = Scripts::default();
        scripts.keep(b"return 1");
        let known = String::from_utf8(sha1_hex(b"return 1").to_vec()).unwrap();
        let cost_ns = |count: usize| {
            let mut bytes = request_of(&["EVALSHA", &known, "0"]);
            (0..count).for_each(|at| bytes.extend(request_of(&["EVALSHA", &format!("{at:040x}"), "0"])));
            let cpu_ns = || {
                let now = clock_gettime(ClockId::ThreadCPUTime);
                now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
            };
            let tries = (0..5).map(|_| {
                let begin = cpu_ns();
                assert_eq!(scripts.loads(&bytes), request_of(&["SCRIPT", "LOAD", "return 1"]));
                cpu_ns() - begin
            });
            tries.min().unwrap()
        };
        let ratio = (0..4).map(|_| cost_ns(32_000) as f64 / cost_ns(2_000) as f64).fold(f64::MAX, f64::min);
        assert!(ratio < RATIO_MAX, "sixteen times as many take {ratio:.0} times as long");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let scripts = Scripts::default();
        let large = |fill: u8| vec![fill; SCRIPTS_BYTES_MAX / 2];
        [1, 2, 1, 3].iter().for_each(|fill| scripts.keep(&large(*fill)));
        assert_eq!([1, 2, 3].map(|fill| scripts.has(&sha1_hex(&large(fill)))), [false, true, true]);
        scripts.keep(&vec![4; SCRIPTS_BYTES_MAX + 1]);
        assert!(scripts.has(&sha1_hex(&large(3))));
        (0..=SCRIPTS_MAX).for_each(|number| scripts.keep(number.to_string().as_bytes()));
        assert!(!scripts.has(&sha1_hex(b"0")) && scripts.has(&sha1_hex(SCRIPTS_MAX.to_string().as_bytes())));
    }
}
