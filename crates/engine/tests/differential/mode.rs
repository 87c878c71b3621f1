//! Owns: what else is so while the commands of a round run. Most of it is common in use and must change no reply; some
//! of it decides which way through Weft's executor a command takes. Does not own: running them.

use weft_engine::args::OwnedArgs;
use weft_engine::keys;
use weft_engine::requests::What;
use weft_protocol::table::{KeyBegin, KeyFind, KeySpec};

use crate::pair::{LISTENER, RUNNERS, Step, TEAM, TRACKER};

/// One thing that may be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Keyspace events are on, and compared.
    Events,
    /// Commands come in batches, as pipelines of several clients make them.
    Batches,
    /// Over RESPB the clients of a thread are channels of one connection, whose frames come mixed.
    Channels,
    /// Two threads are active: half of the clients belong to each, and have their own databases.
    Threads,
    /// `maxmemory` is far away, with `allkeys-lru`.
    Lru,
    /// The same with `volatile-ttl`.
    Volatile,
    /// Clients are a user with `~app:* +@all -@dangerous`, and all keys begin so.
    User,
    /// CLIENT PAUSE holds commands now and then.
    Pause,
    /// Most keys have a time to live that is far away.
    Ttl,
    /// Somebody else reads keys and tracks them.
    Tracked,
}

const PARTS: [(Part, &str); 10] = [
    (Part::Events, "events"),
    (Part::Batches, "batches"),
    (Part::Channels, "channels"),
    (Part::Threads, "threads"),
    (Part::Lru, "lru"),
    (Part::Volatile, "volatile"),
    (Part::User, "user"),
    (Part::Pause, "pause"),
    (Part::Ttl, "ttl"),
    (Part::Tracked, "tracked"),
];

/// The name of the mode in which nothing is so.
const NOTHING: &str = "single";

/// What the user's keys begin with.
const PREFIX: &[u8] = b"app:";

/// What is so in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode(u16);

impl Mode {
    /// From names with `+` between them.
    ///
    /// # Panics
    /// When there is no such part.
    pub(crate) fn parse(text: &str) -> Self {
        let part = |name: &str| {
            let known = || PARTS.map(|(_, name)| name).join(", ");
            let found = PARTS.iter().find(|(_, other)| *other == name);
            found.unwrap_or_else(|| panic!("no part of a mode is called {name:?}; there are {}", known())).0
        };
        let names = text.split('+').map(str::trim).filter(|name| !name.is_empty() && *name != NOTHING);
        names.map(part).fold(Self::default(), |mode, part| Self(mode.0 | 1 << part as u16))
    }

    pub(crate) const fn has(self, part: Part) -> bool {
        self.0 & 1 << part as u16 != 0
    }

    pub(crate) fn name(self) -> String {
        let names: Vec<&str> =
            PARTS.iter().filter(|(part, _)| self.has(*part)).map(|(_, name)| *name).collect();
        if names.is_empty() { NOTHING.into() } else { names.join("+") }
    }

    /// How many threads run clients.
    pub(crate) const fn teams(self) -> usize {
        if self.has(Part::Threads) { 2 } else { 1 }
    }

    /// What is set up on both sides.
    pub(crate) fn settings(self) -> Vec<String> {
        // Those of missed keys (`m`) too where `WEFT_DIFF_EVENTS` says so: which look-up of a command counts as one is
        // the same for strings, lists, hashes, sets, sorted sets and keys, not yet for all others.
        let events = std::env::var("WEFT_DIFF_EVENTS").unwrap_or("AKEn".into());
        let events = if self.has(Part::Events) { events } else { String::new() };
        let mut settings = vec![format!("CONFIG SET notify-keyspace-events {events}")];
        if self.has(Part::User) {
            settings.push("ACL SETUSER app on nopass ~app:* &* +@all -@dangerous".into());
        }
        settings
    }

    /// What is set up for Weft alone.
    pub(crate) fn own_settings(self) -> Vec<String> {
        let policy = match () {
            () if self.has(Part::Lru) => "allkeys-lru",
            () if self.has(Part::Volatile) => "volatile-ttl",
            () => return vec!["CONFIG SET maxmemory 0 maxmemory-policy noeviction".into()],
        };
        vec![format!("CONFIG SET maxmemory 100gb maxmemory-policy {policy}")]
    }

    /// What a client says first.
    pub(crate) fn greeting(self, client: usize) -> Vec<&'static str> {
        let mut greeting = Vec::new();
        if client < RUNNERS && self.has(Part::User) {
            greeting.push("AUTH app x");
        }
        match client {
            _ if (TEAM..RUNNERS).contains(&client) => greeting.push("SELECT 2"),
            LISTENER => greeting.push("PSUBSCRIBE __key*__:*"),
            TRACKER => greeting.push("CLIENT TRACKING ON"),
            _ => {}
        }
        greeting
    }

    /// Whether a command has no place in the mode. What `cjson` is told holds on one worker of Weft, and in all of
    /// Valkey. Where a user's keys are counted, Valkey reads the first digits of `1.0` and finds keys that the user may
    /// not have; Weft finds that it is no number.
    pub(crate) fn leaves_out(self, words: &[Vec<u8>]) -> bool {
        if self.has(Part::Threads) && words.iter().any(|word| sets_cjson(word)) {
            return true;
        }
        let What::Command(id) = What::of(&words[0], words.get(1).map(Vec::as_slice)) else { return false };
        let is_no_number = |spec: &KeySpec| {
            let (KeyBegin::Index(begin), KeyFind::Count { at, .. }) = (spec.begin, spec.find) else {
                return false;
            };
            let count = words.get(usize::try_from(i32::from(begin) + i32::from(at)).unwrap_or(usize::MAX));
            let text = count.and_then(|count| std::str::from_utf8(count).ok()).unwrap_or_default();
            text.parse::<i64>().map_or(true, |number| number.to_string() != text)
        };
        self.has(Part::User) && id.spec().key_specs.iter().any(is_no_number)
    }

    /// The words that are sent for a step.
    pub(crate) fn sent(self, step: &Step) -> Vec<Vec<u8>> {
        let mut words = step.words.clone();
        let is_runner = step.client < RUNNERS || step.client == TRACKER;
        if !self.has(Part::User) || !is_runner {
            return words;
        }
        let What::Command(id) = What::of(&words[0], words.get(1).map(Vec::as_slice)) else { return words };
        let owned = OwnedArgs::new(id.spec(), step.words.iter().map(Vec::as_slice));
        keys::each(&owned.args(), |at| words[at].splice(..0, PREFIX.iter().copied()).for_each(drop));
        words
    }
}

/// Whether a script may tell `cjson` something that holds for the next ones too.
fn sets_cjson(word: &[u8]) -> bool {
    let setters = ["cjson.encode_", "cjson.decode_"];
    setters.iter().any(|setter| word.windows(setter.len()).any(|part| part == setter.as_bytes()))
}

/// Puts a step of the second team into databases of its own, and leaves out what is about all of them. The first team
/// has 0 and 1, the second 2 and 3.
pub(crate) fn keep_apart(team: usize, words: &mut [Vec<u8>]) -> bool {
    let is = |at: usize, name: &str| {
        words.get(at).is_some_and(|word: &Vec<u8>| word.eq_ignore_ascii_case(name.as_bytes()))
    };
    let places = match () {
        () if is(0, "CONFIG") => return false,
        // Libraries are everybody's.
        () if is(0, "FUNCTION") || is(0, "FCALL") || is(0, "FCALL_RO") => return team == 0,
        () if is(0, "EVAL") || is(0, "EVAL_RO") => {
            if team == 1
                && let Some(source) = words.get_mut(1)
            {
                let own = String::from_utf8_lossy(source).replace("'SELECT',1", "'SELECT',3");
                *source = own.replace("'SELECT',0", "'SELECT',2").into_bytes();
            }
            return true;
        }
        () if is(0, "FLUSHALL") => {
            words[0] = b"FLUSHDB".to_vec();
            return true;
        }
        () if is(0, "SELECT") => vec![1],
        () if is(0, "MOVE") => vec![2],
        () if is(0, "SWAPDB") => vec![1, 2],
        () if is(0, "COPY") => (4..words.len()).filter(|&at| is(at - 1, "DB")).collect(),
        () => vec![],
    };
    for at in places {
        let Some(word) = words.get_mut(at) else { continue };
        match word.as_slice() {
            b"0" if team == 1 => *word = b"2".to_vec(),
            b"1" if team == 1 => *word = b"3".to_vec(),
            // Words that were swapped, or stand where they do not belong: those of the other team, or nobody's.
            b"2" | b"3" | b"5" | b"10" => *word = b"x".to_vec(),
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Rule;

    #[test]
    fn modes_are_named_as_they_are_written() {
        for text in ["single", "events", "batches+lru", "batches+channels+threads+user+pause+ttl+tracked"] {
            assert_eq!(Mode::parse(text).name(), text);
        }
    }

    #[test]
    fn no_script_sets_cjson_where_each_thread_has_its_own() {
        let leaves_out = |mode: &str, script: &str| {
            let words = ["EVAL", script, "0"].map(|word| word.as_bytes().to_vec());
            Mode::parse(mode).leaves_out(&words)
        };
        for script in ["cjson.decode_invalid_numbers(false)", "return {cjson.encode_sparse_array(nil,1)}"] {
            assert!(leaves_out("batches+threads", script) && !leaves_out("single", script), "{script}");
        }
        assert!(!leaves_out("threads", "return cjson.encode(cjson.decode(ARGV[1]))"));
    }

    #[test]
    fn the_users_keys_begin_as_he_may() {
        let sent = |client: usize, command: &str| {
            let words = command.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let step = Step { client, ..Step::new(Rule::Exact, words) };
            let sent = Mode::parse("user").sent(&step);
            sent.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(sent(0, "mset a 1 b a"), "mset app:a 1 app:b a");
        assert_eq!(sent(1, "OBJECT ENCODING a"), "OBJECT ENCODING app:a");
        assert_eq!(sent(0, "NOSUCH a"), "NOSUCH a");
        assert_eq!(sent(RUNNERS, "GET a"), "GET a", "who compares is nobody's user");
    }

    #[test]
    fn a_user_counts_his_keys() {
        let left_out = |mode: &str, command: &str| {
            let words: Vec<Vec<u8>> = command.split(' ').map(|word| word.into()).collect();
            Mode::parse(mode).leaves_out(&words)
        };
        assert!(left_out("user", "ZUNION 1.0 a a") && left_out("user", "blmpop 0 01 a LEFT"));
        assert!(!left_out("user", "ZUNION 1 a a") && !left_out("lru", "ZUNION 1.0 a a"));
        assert!(!left_out("user", "GET 1.0"));
    }

    #[test]
    fn teams_have_their_own_databases() {
        let apart = |team: usize, command: &str| {
            let mut words: Vec<Vec<u8>> = command.split(' ').map(|word| word.into()).collect();
            let stays = keep_apart(team, &mut words);
            stays
                .then(|| words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(apart(1, "select 1").as_deref(), Some("select 3"));
        assert_eq!(apart(0, "select 1").as_deref(), Some("select 1"));
        assert_eq!(apart(1, "COPY 0 1 REPLACE DB 0").as_deref(), Some("COPY 0 1 REPLACE DB 2"));
        assert_eq!(apart(0, "MOVE a 3").as_deref(), Some("MOVE a x"), "that is the others'");
        assert_eq!(apart(0, "FLUSHALL ASYNC").as_deref(), Some("FLUSHDB ASYNC"));
        assert_eq!(apart(0, "CONFIG SET a b"), None);
        let script = "EVAL redis.call('SELECT',1);redis.pcall('SELECT',0) 0";
        let own = "EVAL redis.call('SELECT',3);redis.pcall('SELECT',2) 0";
        assert_eq!((apart(0, script).as_deref(), apart(1, script).as_deref()), (Some(script), Some(own)));
        assert_eq!(apart(0, "FUNCTION FLUSH").as_deref(), Some("FUNCTION FLUSH"));
        assert_eq!((apart(1, "FUNCTION FLUSH"), apart(1, "fcall f 0")), (None, None));
    }
}
