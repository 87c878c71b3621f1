//! Owns: scripts and functions of users, as all workers share them: the sources that the server has been given, which
//! of them run now, what they may take. Does not own: Lua (`weft_lua`), one worker's state of it ([`space`]), running a
//! script and the commands (`crate::logic`).
//!
//! A source is kept once, each worker compiles it when it first runs it. What a worker has compiled stays good until
//! the source is gone ([`Script::is_gone`]) or all are ([`Scripts::flushes`]).
//!
//! EVAL's sources come and go with each caller that writes its arguments into them: of those [`CACHED_MAX`] are kept,
//! those that have run last. What SCRIPT LOAD has brought stays.

pub(crate) mod shelf;
pub mod space;

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
pub use weft_lua::sha1_hex;
use weft_lua::{Budget, shebang};
use weft_store::Keyspace;

use crate::error::{Error, ErrorCode, Result};
use crate::reply::Captured;
use crate::special::{self, Special};

/// A source's name: its SHA-1 in lower-case digits.
pub type Sha = [u8; 40];

/// A name in lower case, if it may be that of a source.
pub(crate) fn sha_of(name: &[u8]) -> Option<Sha> {
    let mut sha: Sha = name.try_into().ok()?;
    sha.make_ascii_lowercase();
    Some(sha)
}

/// Sources that only EVAL has brought.
pub const CACHED_MAX: usize = 500;
/// Sources that SCRIPT LOAD has brought.
pub const LOADED_MAX: usize = 1 << 20;
/// Bytes of one source, of a script or a library: compiling it holds up everybody, for as long as it is.
pub const SOURCE_BYTES_MAX: usize = 4 << 20;
/// Bytes of all sources together, with what each takes beside them. EVAL's give way; SCRIPT LOAD's do not.
const SOURCES_BYTES_MAX: usize = 256 << 20;
/// Scripts that are known to touch keys which they do not declare; beyond it they are found out each time.
const STRAYING_MAX: usize = 10_000;

/// A script that the server has.
#[derive(Debug)]
pub struct Script {
    /// Its name.
    pub sha: Sha,
    /// Its source, the first line included.
    pub body: Box<[u8]>,
    /// Bits of [`shebang::flag`].
    pub flags: u32,
    /// Bytes of the first line.
    source_at: usize,
    /// When it ran last, by the count of scripts that have come.
    used: AtomicU64,
    /// It was removed: whoever has compiled it forgets it.
    gone: AtomicBool,
}

impl Script {
    /// What is compiled.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        &self.body[self.source_at..]
    }
    /// What it takes.
    fn bytes(&self) -> usize {
        self.body.len() + size_of::<Self>()
    }
    /// Whether it was removed.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }
}

/// What runs on a worker.
#[derive(Clone, Debug)]
pub struct Running {
    /// The script's SHA-1, or the function's name.
    pub name: Box<[u8]>,
    /// The request.
    pub command: Vec<Box<[u8]>>,
    /// Whether it is a script, and not a function.
    pub is_eval: bool,
    /// Since when.
    pub since: Instant,
}

/// The place of a worker's script, in memory that no other worker writes to.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Place {
    /// What runs, once it has run for a while.
    running: Mutex<Option<Running>>,
    /// It is to end.
    killed: AtomicBool,
    /// That is so since the server stops, and nothing of it is kept.
    stopped: AtomicBool,
    /// It has written.
    wrote: AtomicBool,
    /// What it has written is taken back if it is killed: so it was set when it began to write.
    takes_back: AtomicBool,
}

/// Told of a call of a command inside a script, and what it answered; of one that was refused, the error's line.
pub type Trace = Box<dyn Fn(&[&[u8]], Result<&Captured, &str>) + Send + Sync>;

/// Who looks at scripts while they run: nobody in a server.
#[derive(Default)]
pub struct Tracer(OnceLock<Trace>);

impl Tracer {
    /// From now on this one is told, if nobody was before.
    pub fn set(&self, trace: Trace) {
        let _ = self.0.set(trace);
    }
    #[inline]
    pub(crate) fn trace(&self, call: &[&[u8]], answer: Result<&Captured, &str>) {
        if let Some(trace) = self.0.get() {
            trace(call, answer);
        }
    }
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("is_set", &self.0.get().is_some()).finish()
    }
}

/// The scripts that there are.
#[derive(Debug, Default)]
struct Cache {
    all: HashMap<Sha, Arc<Script>>,
    /// Those that only EVAL has brought, by when they ran last as far as that has been looked at.
    passing: BTreeSet<(u64, Sha)>,
}

/// Scripts and functions.
#[derive(Debug)]
pub struct Scripts {
    cache: Mutex<Cache>,
    /// What the sources take; changed under the cache's lock.
    bytes: AtomicUsize,
    /// SCRIPT FLUSH: states of Lua are made anew.
    flushes: AtomicU64,
    /// Scripts that have come.
    clock: AtomicU64,
    /// Scripts that touch keys which they do not declare: they have the keyspace to themselves.
    straying: Mutex<HashSet<Sha>>,
    has_straying: AtomicBool,
    /// Who is told of each call.
    pub tracer: Tracer,
    /// Memory of all states.
    pub budget: Arc<Budget>,
    /// Runs that came to keys which they had not declared, beside others, and had their locks at once.
    pub undeclared: AtomicU64,
    /// Scripts that were run again with the keyspace to themselves.
    pub reruns: AtomicU64,
    /// Scripts of EVAL that gave way to others.
    pub evicted: AtomicU64,
    /// What is known of the functions of stored libraries.
    pub(crate) shelf: shelf::Shelf,
    /// Libraries that workers have compared with what they have, since some had changed: what it costs to notice.
    pub compared: AtomicU64,
    /// Functions and libraries, as a worker has counted them last.
    pub function_counts: [AtomicU64; 2],
    /// Workers on which something takes its time.
    busy: Mutex<u32>,
    places: Box<[Place]>,
}

/// `script-memory-limit` as long as nobody has set it.
pub const MEMORY_BYTES: usize = 256 << 20;

impl Scripts {
    pub(crate) fn new(workers: u16) -> Self {
        Self {
            cache: Mutex::default(),
            bytes: AtomicUsize::new(0),
            flushes: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            straying: Mutex::default(),
            has_straying: AtomicBool::new(false),
            tracer: Tracer::default(),
            budget: Arc::new(Budget::new(MEMORY_BYTES)),
            undeclared: AtomicU64::new(0),
            reruns: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            shelf: shelf::Shelf::default(),
            compared: AtomicU64::new(0),
            function_counts: Default::default(),
            busy: Mutex::new(0),
            places: (0..workers.max(1)).map(|_| Place::default()).collect(),
        }
    }

    /// The script of a name.
    #[must_use]
    pub fn get(&self, sha: &Sha) -> Option<Arc<Script>> {
        self.cache.lock().all.get(sha).cloned()
    }
    /// A script that is about to be kept: its first line is read.
    pub fn parse(body: &[u8]) -> Result<Script> {
        if body.len() > SOURCE_BYTES_MAX {
            let text = format!("the script is longer than {SOURCE_BYTES_MAX} bytes");
            return Err(Error::new(ErrorCode::Limit, text));
        }
        let script = shebang::script(body).map_err(Error::err)?;
        Ok(Script {
            sha: sha1_hex(body),
            body: body.into(),
            flags: script.flags,
            source_at: body.len() - script.source.len(),
            used: AtomicU64::new(0),
            gone: AtomicBool::new(false),
        })
    }
    /// Keeps a script, for as long as EVAL's are kept or, `loaded`, until SCRIPT FLUSH.
    pub fn keep(&self, script: Script, loaded: bool) -> Result<Arc<Script>> {
        let cache = &mut *self.cache.lock();
        let now = self.clock.fetch_add(1, Relaxed);
        if !cache.all.contains_key(&script.sha) {
            let bytes = script.bytes();
            self.make_room(cache, bytes, if loaded { usize::MAX } else { CACHED_MAX });
            if cache.all.len() >= LOADED_MAX + CACHED_MAX
                || self.bytes.load(Relaxed) + bytes > SOURCES_BYTES_MAX
            {
                if !loaded {
                    // To run once it need not be kept.
                    script.gone.store(true, Relaxed);
                    return Ok(Arc::new(script));
                }
                return Err(Error::new(ErrorCode::Limit, "too many scripts: SCRIPT FLUSH forgets them"));
            }
            self.bytes.fetch_add(bytes, Relaxed);
            if !loaded {
                cache.passing.insert((now, script.sha));
            }
        } else if loaded {
            cache.passing.retain(|(_, sha)| *sha != script.sha);
        }
        let script = cache.all.entry(script.sha).or_insert_with(|| Arc::new(script));
        script.used.store(now, Relaxed);
        Ok(Arc::clone(script))
    }
    /// A script runs.
    pub(crate) fn touch(&self, script: &Script) {
        let now = self.clock.load(Relaxed);
        // Workers that run the same script share its memory as long as nobody writes there.
        if script.used.load(Relaxed) != now {
            script.used.store(now, Relaxed);
        }
    }
    /// Forgets EVAL's scripts that have not run for longest, until fewer than so many are left, and room for so many
    /// bytes: as far as that goes.
    fn make_room(&self, cache: &mut Cache, bytes: usize, count_max: usize) {
        let has_room =
            |left: usize| left < count_max && self.bytes.load(Relaxed) + bytes <= SOURCES_BYTES_MAX;
        while !has_room(cache.passing.len()) {
            let Some((noted, sha)) = cache.passing.pop_first() else { return };
            let used = cache.all.get(&sha).map_or(0, |script| script.used.load(Relaxed));
            if used > noted {
                cache.passing.insert((used, sha));
                continue;
            }
            if let Some(script) = cache.all.remove(&sha) {
                self.bytes.fetch_sub(script.bytes(), Relaxed);
                script.gone.store(true, Relaxed);
                self.evicted.fetch_add(1, Relaxed);
            }
        }
    }
    /// Forgets all scripts.
    pub fn flush(&self) {
        let mut cache = self.cache.lock();
        cache.all.drain().for_each(|(_, script)| script.gone.store(true, Relaxed));
        cache.passing.clear();
        self.bytes.store(0, Relaxed);
        drop(cache);
        self.forget_straying();
        self.flushes.fetch_add(1, Relaxed);
    }
    /// How often all were forgotten.
    #[must_use]
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Relaxed)
    }
    /// Scripts that are kept, and bytes of their sources.
    #[must_use]
    pub fn kept(&self) -> (usize, usize) {
        let cache = self.cache.lock();
        (cache.all.len(), self.bytes.load(Relaxed))
    }

    /// Whether a script is known to touch keys that it does not declare.
    pub(crate) fn strays(&self, sha: impl FnOnce() -> Sha) -> bool {
        self.has_straying.load(Relaxed) && self.straying.lock().contains(&sha())
    }
    /// A script has touched a key that it does not declare, and runs again.
    pub(crate) fn strayed(&self, sha: Sha) {
        self.reruns.fetch_add(1, Relaxed);
        let mut straying = self.straying.lock();
        if straying.len() == STRAYING_MAX {
            // Those that still run come again.
            straying.clear();
        }
        straying.insert(sha);
        self.has_straying.store(true, Relaxed);
    }

    /// Scripts or functions have become others: what these touch is to be seen.
    pub(crate) fn forget_straying(&self) {
        self.straying.lock().clear();
        self.has_straying.store(false, Relaxed);
    }

    pub(crate) fn place(&self, worker: u16) -> &Place {
        &self.places[usize::from(worker)]
    }
    /// What runs for long, if anything does.
    #[must_use]
    pub fn running(&self) -> Option<Running> {
        let running = self.places.iter().filter_map(|place| place.running.lock().clone());
        running.min_by_key(|running| running.since)
    }
    /// SCRIPT KILL, FUNCTION KILL.
    pub fn kill(&self, is_eval: bool) -> Result {
        let mut refused = None;
        // What has run for longest is meant.
        let since = |place: &Place| place.running.lock().as_ref().map(|running| running.since);
        let mut places: Vec<(Instant, &Place)> =
            self.places.iter().filter_map(|place| Some((since(place)?, place))).collect();
        places.sort_by_key(|(since, _)| *since);
        for (_, place) in places {
            let running = place.running.lock();
            let Some(running) = &*running else { continue };
            if place.wrote.load(Relaxed) && !place.takes_back.load(Relaxed) {
                refused = Some(Error::with_prefix("UNKILLABLE", UNKILLABLE));
            } else if running.is_eval != is_eval {
                refused = Some(busy(running.is_eval));
            } else {
                place.killed.store(true, Relaxed);
                return Ok(());
            }
        }
        Err(refused.unwrap_or_else(|| Error::with_prefix("NOTBUSY", "No scripts in execution right now.")))
    }
}

const UNKILLABLE: &str = "Sorry the script already executed write commands against the dataset. You can either wait the \
                          script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.";

impl Scripts {
    /// Something takes its time on a worker, or that is over: everybody is told so, and who waits for what it has
    /// locked. Says whether anything does.
    pub(crate) fn set_busy(&self, is_busy: bool, special: &Special, keyspace: &Keyspace) -> bool {
        let mut busy = self.busy.lock();
        *busy = if is_busy { *busy + 1 } else { busy.saturating_sub(1) };
        special.set(special::BUSY, *busy > 0);
        keyspace.set_kept(*busy > 0);
        *busy > 0
    }
    /// What everybody is told meanwhile.
    pub(crate) fn busy_error(&self) -> Error {
        busy(self.running().is_none_or(|running| running.is_eval))
    }
}

/// What everybody is answered while something runs for too long.
pub(crate) fn busy(is_eval: bool) -> Error {
    Error::new(
        ErrorCode::Busy,
        if is_eval {
            "Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
        } else {
            "Valkey is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
        },
    )
}

impl Place {
    /// Something has run for a while: others may see it, and end it.
    pub(crate) fn show(&self, running: impl FnOnce() -> Running) {
        self.running.lock().get_or_insert_with(running);
    }
    /// For how long what is shown has run.
    pub(crate) fn has_run_for(&self) -> Duration {
        self.running.lock().as_ref().map_or(Duration::ZERO, |running| running.since.elapsed())
    }
    /// It is over.
    pub(crate) fn clear(&self) {
        // Who ends it does so under the same lock.
        let mut running = self.running.lock();
        *running = None;
        self.killed.store(false, Relaxed);
        self.wrote.store(false, Relaxed);
    }
    /// Whoever takes the place begins with nothing of who had it.
    pub(crate) fn renew(&self) {
        self.clear();
        self.stopped.store(false, Relaxed);
    }
    /// It is to end, whatever it has done, and all that would run behind it: the server stops.
    pub(crate) fn end(&self) {
        self.stopped.store(true, Relaxed);
    }
    /// It is to end unless it has written: the server stops, and waits for what has.
    pub(crate) fn end_unwritten(&self) {
        let _running = self.running.lock();
        if !self.wrote.load(Relaxed) {
            self.killed.store(true, Relaxed);
        }
    }
    /// Whether that is since the server stops at once.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Relaxed) || self.is_stopped()
    }
    /// It is about to write. Not if it has been ended, unless that takes back what it writes.
    pub(crate) fn writes(&self, undo: bool) -> bool {
        // Who ends it asks under the same lock whether it has written.
        let _running = self.running.lock();
        let may = undo || !self.is_killed();
        self.wrote.store(may, Relaxed);
        self.takes_back.store(undo, Relaxed);
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise who sets it in the middle could have half of a script stay.
    #[test]
    fn whether_a_kill_takes_back_is_as_it_was_when_writing_began() {
        let scripts = Scripts::new(1);
        let place = scripts.place(0);
        let running =
            || Running { name: (*b"x").into(), command: Vec::new(), is_eval: true, since: Instant::now() };
        for undo in [false, true] {
            place.show(running);
            assert!(place.writes(undo) && !place.is_killed());
            assert_eq!((scripts.kill(true).is_ok(), place.is_killed()), (undo, undo));
            place.clear();
        }
    }

    #[test]
    fn sources_have_a_limit_together_and_those_of_eval_give_way() {
        let scripts = Scripts::new(1);
        let script = |number: u8| Script {
            sha: [number; 40],
            // Nobody writes to it: it takes no memory.
            body: vec![0; SOURCE_BYTES_MAX - size_of::<Script>()].into(),
            flags: 0,
            source_at: 0,
            used: AtomicU64::new(0),
            gone: AtomicBool::new(false),
        };
        const { assert!(SOURCES_BYTES_MAX == 64 * SOURCE_BYTES_MAX) };
        for number in 0..66 {
            scripts.keep(script(number), false).expect("another one gives way");
        }
        assert_eq!((scripts.kept(), scripts.evicted.load(Relaxed)), ((64, SOURCES_BYTES_MAX), 2));
        assert!(scripts.get(&[1; 40]).is_none() && scripts.get(&[2; 40]).is_some());
        for number in 100..164 {
            scripts.keep(script(number), true).expect("EVAL's give way");
        }
        assert!(scripts.keep(script(164), true).is_err());
        let once = scripts.keep(script(165), false).expect("to run it need not be kept");
        assert!(once.is_gone() && scripts.get(&[165; 40]).is_none());
        scripts.keep(script(100), true).expect("it is there");
        assert_eq!(scripts.kept(), (64, SOURCES_BYTES_MAX));
        scripts.flush();
        assert_eq!(scripts.kept(), (0, 0));
        scripts.keep(script(164), true).expect("there is room");
    }
}
