//! Owns: one worker's state of Lua: what of the scripts and libraries it has compiled. Does not own: the sources
//! (`super`, the catalogue).
//!
//! Each worker has a state of its own, made when its first script runs. Names that a library keeps for itself live in
//! each of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use weft_lua::{Called, Chunk, Frame, Host, Identity, Level, Registered, Verdict, Vm, shebang};
use weft_store::catalogue::{Catalogue, Named};
use weft_store::hash::KeyHasher;
use weft_store::{Keyspace, Section};

use super::shelf::Known;
use super::{Script, Scripts, Sha};
use crate::error::{Error, Result};
use crate::observe::facts::Facts;

/// Scripts that a worker compiles before it looks which of those that it has are gone, whose sources it holds: so many,
/// or an eighth of what it has, or so many bytes.
const GONE_MAX: usize = 64;
const GONE_BYTES_MAX: usize = 1 << 20;

/// A worker's state.
#[derive(Debug)]
pub struct Space {
    /// The state.
    pub vm: Vm,
    scripts: HashMap<Sha, Arc<Compiled>, KeyHasher>,
    /// How many it has, and what was compiled in bytes, when it looks again which are gone.
    look_at: usize,
    look_bytes: usize,
    /// The flush that it was made behind.
    flushes: u64,
    /// The catalogue as it was when the libraries were loaded.
    version: Option<u64>,
    /// By name in lower case.
    functions: HashMap<Box<[u8]>, Function, KeyHasher>,
    libraries: BTreeMap<Box<[u8]>, Library>,
    /// Those that do not load here.
    failed: BTreeSet<Box<[u8]>>,
}

/// A script that can run here.
#[derive(Debug)]
pub struct Compiled {
    /// What the server has of it.
    pub script: Arc<Script>,
    /// Itself.
    pub chunk: Chunk,
}

/// A function of a library.
#[derive(Debug)]
pub struct Function {
    /// Its name as it was registered.
    pub name: Box<[u8]>,
    /// Whose it is.
    pub library: Box<[u8]>,
    /// What it is for.
    pub description: Option<Arc<[u8]>>,
    /// Bits of [`shebang::flag`].
    pub flags: u32,
    /// Itself, once its library has been loaded here.
    chunk: Option<Chunk>,
}

/// A library.
#[derive(Debug)]
pub struct Library {
    /// Its source.
    pub code: Arc<[u8]>,
    /// Its functions, in lower case.
    pub functions: Vec<Box<[u8]>>,
    /// Why it has none, if it does not load here.
    pub failed: Option<Arc<str>>,
}

/// What scripts are told of the server.
const fn identity(insecure: bool) -> Identity {
    Identity {
        redis_version: crate::REDIS_VERSION,
        valkey_version: crate::VALKEY_VERSION,
        server_name: "weft",
        insecure,
    }
}

/// Libraries that a worker has and that are gone, and those that it has not, or not so.
#[derive(Default)]
struct Changes {
    gone: Vec<Box<[u8]>>,
    new: Vec<Named>,
}

impl Space {
    /// A state without scripts.
    pub fn new(scripts: &Scripts, insecure: bool) -> Result<Box<Self>> {
        let vm = Vm::new(Arc::clone(&scripts.budget), &identity(insecure));
        let vm = vm.ok_or_else(|| Error::err("there is no memory for scripts"))?;
        let hasher = KeyHasher::from_entropy();
        Ok(Box::new(Self {
            vm,
            scripts: HashMap::with_hasher(hasher.clone()),
            look_at: super::CACHED_MAX + GONE_MAX,
            look_bytes: 0,
            flushes: scripts.flushes(),
            version: None,
            functions: HashMap::with_hasher(hasher),
            libraries: BTreeMap::new(),
            failed: BTreeSet::new(),
        }))
    }
    /// A worker's state, or a new one where it has none of the time behind the last flush; who has used it puts it
    /// back.
    pub(crate) fn taken(
        slot: &mut Option<Box<Self>>,
        scripts: &Scripts,
        insecure: bool,
    ) -> Result<Box<Self>> {
        match slot.take().filter(|space| !space.is_old(scripts)) {
            Some(space) => Ok(space),
            None => Self::new(scripts, insecure),
        }
    }
    /// Whether it is of the time before the last flush.
    #[must_use]
    pub fn is_old(&self, scripts: &Scripts) -> bool {
        self.flushes != scripts.flushes()
    }

    /// Compiles a script that it has not, to see whether it can be.
    pub fn compile(&mut self, script: &Script) -> Result<Chunk> {
        let text = |error| Error::err(format!("Error compiling script (new function): {error}"));
        self.vm.compile(script.source()).map_err(text)
    }
    /// Has a script.
    pub fn keep(&mut self, script: Arc<Script>, chunk: Chunk) -> Arc<Compiled> {
        self.look_bytes += script.body.len();
        if self.scripts.len() > self.look_at || self.look_bytes > GONE_BYTES_MAX {
            self.forget_gone();
            self.look_at = self.scripts.len() + GONE_MAX.max(self.scripts.len() / 8);
            self.look_bytes = 0;
        }
        let compiled = Arc::new(Compiled { script, chunk });
        if let Some(before) = self.scripts.insert(compiled.script.sha, Arc::clone(&compiled)) {
            self.vm.release(&before.chunk);
        }
        compiled
    }
    fn forget_gone(&mut self) {
        let gone: Vec<Sha> =
            self.scripts.iter().filter(|(_, one)| one.script.is_gone()).map(|(sha, _)| *sha).collect();
        for sha in gone {
            if let Some(compiled) = self.scripts.remove(&sha) {
                self.vm.release(&compiled.chunk);
            }
        }
    }
    /// The script of a name, if it has it and the server still does.
    #[must_use]
    pub fn has(&self, sha: &Sha) -> Option<&Arc<Compiled>> {
        self.scripts.get(sha).filter(|compiled| !compiled.script.is_gone())
    }

    /// Looks at the libraries of the catalogue that have changed. Of those it is known what they have, since somebody
    /// has loaded them before: they are loaded here when a function of theirs is called. One that nobody has loaded is
    /// loaded now; where that was ended in the middle it goes on from there the next time.
    pub(crate) fn look(
        &mut self,
        scripts: &Scripts,
        keyspace: &Keyspace,
        loading: &mut Loading<'_>,
    ) -> Result<(), Killed> {
        if self.is_current(keyspace) {
            return Ok(());
        }
        let catalogue = keyspace.catalogue();
        let version = catalogue.version(Section::Functions);
        let seen = self.version.take();
        scripts.forget_straying();
        // What stays keeps what it has in variables of its own, and the next library costs no more than the first.
        let changed = seen.and_then(|seen| catalogue.changed_behind(Section::Functions, seen));
        let Changes { gone, new } = match changed {
            Some(names) => self.changes_of(names, scripts, catalogue),
            None => catalogue.with(Section::Functions, |entries| self.changes(scripts, entries)),
        };
        gone.iter().for_each(|name| self.unload(name));
        for (name, code) in new {
            self.unload(&name);
            match scripts.shelf.loaded(&name, &code) {
                Some(Ok(known)) => {
                    let functions = known.iter().map(|known| (known.clone(), None)).collect();
                    self.have(name, code, functions, None);
                }
                Some(Err(why)) => self.have(name, code, Vec::new(), Some(why)),
                None => self.take(scripts, loading, name, code)?,
            }
        }
        self.version = Some(version);
        let counts = [self.functions.len(), self.libraries.len()];
        for (to, count) in scripts.function_counts.iter().zip(counts) {
            to.store(count as u64, Relaxed);
        }
        Ok(())
    }
    /// What differs between these libraries here and those of the catalogue.
    fn changes_of(&self, names: Vec<Box<[u8]>>, scripts: &Scripts, catalogue: &Catalogue) -> Changes {
        scripts.compared.fetch_add(names.len() as u64, Relaxed);
        let mut changes = Changes::default();
        for name in names {
            let (here, code) = (self.libraries.get(&name), catalogue.get(Section::Functions, &name));
            scripts.shelf.keep(&name, code.as_ref());
            match code {
                Some(code) if here.is_some_and(|library| Arc::ptr_eq(&library.code, &code)) => {}
                Some(code) => changes.new.push((name, code)),
                None => changes.gone.push(name),
            }
        }
        changes
    }
    /// What differs between all libraries here and those of the catalogue. Both are in the order of their names.
    fn changes(&self, scripts: &Scripts, entries: &BTreeMap<Box<[u8]>, Arc<[u8]>>) -> Changes {
        scripts.compared.fetch_add(self.libraries.len().max(entries.len()) as u64, Relaxed);
        scripts.shelf.keep_all(entries);
        let mut changes = Changes::default();
        let mut here = self.libraries.iter().peekable();
        for (name, code) in entries {
            while let Some((gone, _)) = here.next_if(|(other, _)| *other < name) {
                changes.gone.push(gone.clone());
            }
            let same = here.next_if(|(other, _)| *other == name);
            if same.is_none_or(|(_, library)| !Arc::ptr_eq(&library.code, code)) {
                changes.new.push((name.clone(), Arc::clone(code)));
            }
        }
        changes.gone.extend(here.map(|(name, _)| name.clone()));
        changes
    }
    /// Has a library of the catalogue. What does not load any more, by other limits than those it was stored by, has no
    /// functions, and says why.
    fn take(
        &mut self,
        scripts: &Scripts,
        loading: &mut Loading<'_>,
        name_of: Box<[u8]>,
        code: Arc<[u8]>,
    ) -> Result<(), Killed> {
        loading.next();
        let loaded = self.load(&code, loading);
        if loading.is_killed {
            return Err(Killed);
        }
        self.unload(&name_of);
        match loaded {
            Ok(functions) => {
                scripts.shelf.put(&name_of, &code, Ok(functions.iter().map(Known::of).collect()));
                let own = |one: Registered| (Known::of(&one), Some(one.chunk));
                self.have(name_of, code, functions.into_iter().map(own).collect(), None);
            }
            Err(why) => {
                let name = String::from_utf8_lossy(&name_of);
                let text = format!("the library {name} does not load: {why}");
                loading.facts.script_log(Level::Warning, text.as_bytes());
                let why: Arc<str> = why.into();
                scripts.shelf.put(&name_of, &code, Err(Arc::clone(&why)));
                self.have(name_of, code, Vec::new(), Some(why));
            }
        }
        Ok(())
    }
    /// Has a library with these functions.
    fn have(
        &mut self,
        library: Box<[u8]>,
        code: Arc<[u8]>,
        functions: Vec<(Known, Option<Chunk>)>,
        failed: Option<Arc<str>>,
    ) {
        let mut names = Vec::new();
        for (Known { name, description, flags }, chunk) in functions {
            let lower: Box<[u8]> = name.to_ascii_lowercase().into();
            names.push(lower.clone());
            let function = Function { name, library: library.clone(), description, flags, chunk };
            if let Some(chunk) = self.functions.insert(lower, function).and_then(|twice| twice.chunk) {
                self.vm.release(&chunk);
            }
        }
        if failed.is_some() {
            self.failed.insert(library.clone());
        }
        self.libraries.insert(library, Library { code, functions: names, failed });
    }
    fn unload(&mut self, name: &[u8]) {
        let Some(library) = self.libraries.remove(name) else { return };
        self.failed.remove(name);
        for function in library.functions {
            if self.functions.get(&function).is_some_and(|known| *known.library == *name)
                && let Some(chunk) = self.functions.remove(&function).and_then(|function| function.chunk)
            {
                self.vm.release(&chunk);
            }
        }
    }
    /// Runs a library's source, and gives what it registers.
    pub(crate) fn load(&mut self, code: &[u8], host: &mut Loading<'_>) -> Result<Vec<Registered>, String> {
        self.vm.load_library(shebang::library(code)?.source, host)
    }
    /// Gives functions back.
    pub fn release(&mut self, functions: Vec<Registered>) {
        functions.into_iter().for_each(|function| self.vm.release(&function.chunk));
    }
    /// A function by its name, in any case.
    #[must_use]
    pub fn function(&self, name: &[u8]) -> Option<&Function> {
        by_name(&self.functions, name)
    }
    /// Whether it knows all libraries as they are stored now.
    #[inline]
    pub(crate) fn is_current(&self, keyspace: &Keyspace) -> bool {
        self.version == Some(keyspace.catalogue().version(Section::Functions))
    }
    /// Loads the library of a function, if that has not been done here.
    pub(crate) fn make_ready(
        &mut self,
        scripts: &Scripts,
        name: &[u8],
        loading: &mut Loading<'_>,
    ) -> Result<(), Killed> {
        let Some(function) = self.function(name).filter(|function| function.chunk.is_none()) else {
            return Ok(());
        };
        let name = function.library.clone();
        let Some(code) = self.libraries.get(&name).map(|library| Arc::clone(&library.code)) else {
            return Ok(());
        };
        self.take(scripts, loading, name, code)
    }
    /// A function that is ready, with the state that it runs in.
    pub fn function_to_run(&mut self, name: &[u8]) -> Option<(&Function, &Chunk, &mut Vm)> {
        let function = by_name(&self.functions, name)?;
        Some((function, function.chunk.as_ref()?, &mut self.vm))
    }
    /// What a library that does not load says, with its name: the first one.
    #[must_use]
    pub fn failed(&self) -> Option<(&[u8], &str)> {
        let name = self.failed.first()?;
        Some((name, self.libraries.get(name)?.failed.as_deref()?))
    }
    /// The libraries, by name.
    #[must_use]
    pub const fn libraries(&self) -> &BTreeMap<Box<[u8]>, Library> {
        &self.libraries
    }
}

fn by_name<'f>(functions: &'f HashMap<Box<[u8]>, Function, KeyHasher>, name: &[u8]) -> Option<&'f Function> {
    if name.iter().any(u8::is_ascii_uppercase) {
        return functions.get(&*name.to_ascii_lowercase());
    }
    functions.get(name)
}

/// What libraries find while they are loaded: nothing that they could call.
pub(crate) struct Loading<'e> {
    facts: &'e Facts,
    started: Instant,
    most: Duration,
    /// Looks at how long all takes, and lets others be served meanwhile; says whether it is to end.
    looks: Option<&'e mut dyn FnMut() -> bool>,
    is_killed: bool,
}

/// Loading was ended by somebody who has not waited for it.
#[derive(Debug)]
pub(crate) struct Killed;

/// How long loading the libraries that a command brings may take.
const LOAD_MAX: Duration = Duration::from_millis(500);
/// How long one may take that has been loaded before, by another worker or another start: slower ones too have it.
const AGAIN_MAX: Duration = LOAD_MAX.saturating_mul(20);

impl<'e> Loading<'e> {
    /// Libraries that a command brings.
    pub(crate) fn new(facts: &'e Facts) -> Self {
        Self { facts, started: Instant::now(), most: LOAD_MAX, looks: None, is_killed: false }
    }
    /// Those that are stored, each for itself.
    pub(crate) fn again(facts: &'e Facts, looks: Option<&'e mut dyn FnMut() -> bool>) -> Self {
        Self { facts, started: Instant::now(), most: AGAIN_MAX, looks, is_killed: false }
    }
    /// The next one begins.
    fn next(&mut self) {
        self.started = Instant::now();
        self.is_killed = self.looks.as_mut().is_some_and(|looks| looks());
    }
}

impl Host for Loading<'_> {
    fn call(&mut self, _: &[&[u8]], reply: &mut Frame<'_>) -> Called {
        reply.push_error("ERR commands cannot be called while a library is loaded");
        Called::Error
    }
    fn tick(&mut self) -> Verdict {
        self.is_killed |= self.looks.as_mut().is_some_and(|looks| looks());
        if self.is_killed {
            return Verdict::End("ERR Script killed by user with FUNCTION KILL.".into());
        }
        if self.started.elapsed() > self.most {
            return Verdict::End("ERR FUNCTION LOAD timeout".into());
        }
        Verdict::GoOn
    }
    fn log(&mut self, level: Level, text: &[u8]) {
        self.facts.script_log(level, text);
    }
    fn set_resp(&mut self, _: u8) {}
    fn may(&mut self, _: &[&[u8]]) -> Option<bool> {
        None
    }
}
