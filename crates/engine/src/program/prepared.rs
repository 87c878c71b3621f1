//! Owns: the program of a request and what it is given, from asking for its locks to running it. Does not own: the
//! programs (`super::stored`), the locks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::keys::{Before, Keys};
use super::stored::{Programs, Stored};
use super::value::Value;
use super::{Problem, Program};
use crate::args::{Args, OwnedArgs};
use crate::config::Settings;
use crate::error::{Error, ErrorCode, Result};
use crate::excerpt::shown;
use crate::keys::Needs;

/// A stored program, or one that came as a text.
#[derive(Clone, Debug)]
pub(crate) enum Which {
    Stored(Arc<Stored>),
    Text(Arc<Program>),
}

impl Which {
    pub(crate) fn program(&self) -> &Program {
        match self {
            Self::Stored(stored) => &stored.program,
            Self::Text(program) => program,
        }
    }
    fn of(programs: &Programs, by: By, named: &[u8]) -> Result<Self> {
        match by {
            By::Text => Ok(Self::Text(programs.of_text(named)?)),
            By::Either if named.trim_ascii_start().starts_with(b"{") => Self::of(programs, By::Text, named),
            By::Name | By::Either => programs.get(named).map(Self::Stored).ok_or_else(|| unknown(named)),
        }
    }
}

/// What a request says its program by: no name begins as JSON does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Name,
    Text,
    Either,
}

impl Waiting {
    fn is_of(&self, programs: &Programs, by: By, args: &Args<'_>) -> bool {
        let own = self.args.args();
        (self.by, self.version, own.len()) == (by, programs.version(), args.len())
            && (0..args.len()).all(|at| own.bytes(at) == args.bytes(at))
    }
}

impl Together {
    fn count_runs(&mut self, stored: Arc<Stored>, (more, failed): (u64, u64)) {
        self.runs += more;
        match self.programs.last_mut() {
            Some((last, runs, failures)) if Arc::ptr_eq(last, &stored) => {
                *runs += more;
                *failures += failed;
            }
            _ => self.programs.push((stored, more, failed)),
        }
    }
    fn share_time(self) {
        let share = self.began.elapsed() / u32::try_from(self.runs.max(1)).unwrap_or(u32::MAX);
        for (stored, runs, failures) in self.programs {
            stored.figures.count_runs((runs, failures), share);
        }
    }
}

/// The error about a program that is not stored.
pub(crate) fn unknown(name: &[u8]) -> Error {
    Error::new(ErrorCode::NoProgram, format!("no program '{}' is stored", shown(name)))
}

/// A program with its parameters.
type Given = (Which, Vec<Value>);

/// A stored program that was looked up.
#[derive(Debug)]
struct Last {
    /// At which version of all.
    version: u64,
    name: Box<[u8]>,
    stored: Arc<Stored>,
}

impl Last {
    #[inline]
    fn is(&self, version: u64, name: &[u8]) -> bool {
        self.version == version && *self.name == *name
    }
}

/// Quick programs that have run among neighbours, whose time is that of all of them in equal parts.
#[derive(Debug)]
struct Together {
    /// Since the first of them.
    began: Instant,
    runs: u64,
    /// Each with how often it has run and has failed.
    programs: Vec<(Arc<Stored>, u64, u64)>,
}

/// What was looked up for a run that waits.
#[derive(Debug)]
struct Waiting {
    given: Given,
    /// At which version of all programs.
    version: u64,
    by: By,
    /// Of which request.
    args: OwnedArgs,
}

/// A program that was read.
#[derive(Debug)]
pub(crate) struct Read {
    text: Box<[u8]>,
    program: Result<Arc<Program>, Problem>,
}

impl Read {
    fn of(text: &[u8]) -> Self {
        Self { text: text.into(), program: Program::parse(text).map(Arc::new) }
    }
    /// The same, or one that is kept of those that come as texts.
    pub(crate) fn kept(programs: &Programs, text: &[u8]) -> Self {
        Self { text: text.into(), program: programs.of_text(text) }
    }
    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.program.as_ref().map_or(0, |program| program.weight())
    }
}

/// What a worker has looked up.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The one that runs now is among [`Self::quick`].
    among: bool,
    quick: Option<Together>,
    /// The last stored one.
    last: Option<Last>,
    /// For the run that follows.
    next: Option<Given>,
    /// For one that waits until it has the keyspace to itself, which other requests may come before.
    waits: Option<Box<Waiting>>,
    /// The program that is to be stored, read before everything is locked.
    read: Option<Read>,
    /// Memory for the values of the next one, empty.
    room: Vec<Value>,
    /// Those that are used no more, to be freed when nothing is locked.
    gone: Vec<Which>,
}

/// Values for which memory is kept.
const ROOM_MAX: usize = 64;

impl Prepared {
    /// These are to be freed when nothing is locked.
    pub(crate) fn free_later(&mut self, gone: Vec<Arc<Stored>>) {
        self.gone.extend(gone.into_iter().map(Which::Stored));
    }
    /// So is one that came as a text, if nobody else has it.
    pub(crate) fn free_text_later(&mut self, which: Which) {
        if matches!(&which, Which::Text(program) if Arc::strong_count(program) == 1) {
            self.gone.push(which);
        }
    }
    /// Nothing is locked.
    #[inline]
    pub(crate) fn free(&mut self) {
        if !self.gone.is_empty() {
            self.free_all();
        }
    }
    #[cold]
    fn free_all(&mut self) {
        self.gone = Vec::new();
    }
    /// The program that an argument says.
    pub(crate) fn find(&mut self, programs: &Programs, by: By, named: &[u8]) -> Result<Which> {
        let version = programs.version();
        if by != By::Text
            && let Some(last) = self.last.as_ref().filter(|last| last.is(version, named))
        {
            return Ok(Which::Stored(Arc::clone(&last.stored)));
        }
        if by != By::Name
            && let Some(read) = self.read.take_if(|read| *read.text == *named)
        {
            return Ok(Which::Text(read.program?));
        }
        let which = Which::of(programs, by, named)?;
        if let Which::Stored(stored) = &which {
            self.last = Some(Last { version, name: named.into(), stored: Arc::clone(stored) });
        }
        Ok(which)
    }
    /// What a run needs: its locks are taken next, under which it [takes](Self::take) what was found. Where everything
    /// is `open` no shard is named. A mistake in the request is told by the run. What needs everything is read here
    /// too, while others go on.
    pub(crate) fn needs(&mut self, before: Before<'_>, by: By, args: &Args<'_>, open: bool) -> Needs {
        (self.next, self.waits) = (None, None);
        let Ok((which, params)) = self.look_up(before, by, args) else { return Needs::Shards(Vec::new()) };
        let (needs, params) = match &which.program().keys {
            Keys::World(..) => {
                let (version, args) = (before.programs.version(), args.to_owned_args());
                self.waits = Some(Box::new(Waiting { given: (which, params), version, by, args }));
                return Needs::World;
            }
            _ if open => (Needs::Shards(Vec::new()), params),
            _ => which.program().needs(before, params),
        };
        self.next = Some((which, params));
        needs
    }
    /// The program of a request with its parameters.
    pub(crate) fn take(&mut self, before: Before<'_>, by: By, args: &Args<'_>) -> Result<Given> {
        if let Some(next) = self.next.take() {
            return Ok(next);
        }
        let waited = self.waits.take().filter(|waits| waits.is_of(before.programs, by, args));
        waited.map_or_else(|| self.look_up(before, by, args), |waits| Ok(waits.given))
    }
    /// Reads the program that is to be stored: everything is locked next, under which it is [taken](Self::take_read).
    pub(crate) fn read(&mut self, text: &[u8]) -> Needs {
        self.read = Some(Read::of(text));
        Needs::World
    }
    /// The program of the command that runs next was read before.
    pub(crate) fn has_read(&mut self, read: Read) {
        self.read = Some(read);
    }
    /// The program of a text that is stored now.
    pub(crate) fn take_read(&mut self, text: &[u8]) -> Result<Program, Problem> {
        let read = self.read.take().filter(|read| *read.text == *text);
        // One that others have too, as it came as a text before, is read for itself.
        match read.map(|read| read.program.map(Arc::into_inner)) {
            Some(Ok(Some(program))) => Ok(program),
            Some(Err(problem)) => Err(problem),
            Some(Ok(None)) | None => Program::parse(text),
        }
    }
    /// Whether a request runs a stored program that always takes about the same short time: if so it is about to, among
    /// its neighbours.
    pub(crate) fn begins_quick(&mut self, programs: &Programs, args: &Args<'_>) -> bool {
        let (name, version) = (args.bytes(2), programs.version());
        let is_quick = |last: &Last| last.is(version, name).then_some(last.stored.program.quick);
        self.among = match self.last.as_ref().and_then(is_quick) {
            Some(quick) => quick,
            None => self.find(programs, By::Name, name).is_ok_and(|which| which.program().quick),
        };
        if self.among && self.quick.is_none() {
            self.quick = Some(Together { began: Instant::now(), runs: 0, programs: Vec::new() });
        }
        self.among
    }
    /// The stored program that was found last.
    pub(crate) fn found(&self) -> Option<Arc<Stored>> {
        self.last.as_ref().map(|last| Arc::clone(&last.stored))
    }
    /// It has run, or needs more than was locked.
    pub(crate) const fn has_run(&mut self) {
        self.among = false;
    }
    /// A run of a program has ended. `began`: it was timed by itself.
    pub(crate) fn count_run(&mut self, stored: Arc<Stored>, began: Option<Instant>, failed: bool) {
        let Some(quick) = self.quick.as_mut().filter(|_| self.among) else {
            let took = began.map_or(Duration::ZERO, |began| began.elapsed());
            return stored.figures.count_runs((1, failed.into()), took);
        };
        quick.count_runs(stored, (1, failed.into()));
    }
    /// Runs of a program among neighbours have ended.
    pub(crate) fn count_runs(&mut self, stored: Arc<Stored>, runs: u64, failures: u64) {
        if let Some(quick) = &mut self.quick
            && runs > 0
        {
            quick.count_runs(stored, (runs, failures));
        }
    }
    /// Neighbours have run: those that are programs share the time.
    #[inline]
    pub(crate) fn share_time(&mut self) {
        if let Some(quick) = self.quick.take() {
            quick.share_time();
        }
    }
    fn look_up(&mut self, before: Before<'_>, by: By, args: &Args<'_>) -> Result<Given> {
        let which = self.find(before.programs, by, args.bytes(2))?;
        let params = self.params(before.settings, which.program(), args)?;
        Ok((which, params))
    }
    /// What a request gives a program.
    pub(crate) fn params(
        &mut self,
        settings: &Settings,
        program: &Program,
        args: &Args<'_>,
    ) -> Result<Vec<Value>> {
        program.params_in((std::mem::take(&mut self.room), settings), args.rest(3))
    }
    /// A run needs the memory of its values no more.
    #[inline]
    pub(crate) fn keep_room(&mut self, mut values: Vec<Value>) {
        values.clear();
        if values.capacity() <= ROOM_MAX {
            self.room = values;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Setup;
    use crate::args::{Composed, find};
    use crate::engine::Engine;
    use weft_store::{Config, Keyspace, SystemClock};

    fn engine() -> Engine {
        let keyspace = Keyspace::new(Config::default());
        Engine::new(Setup { keyspace, clock: Box::new(SystemClock), workers: 1 })
    }

    /// A program that needs the keyspace to itself, too large to be kept when it came as a text.
    fn program(key: &str) -> String {
        let much = "x".repeat(64 << 10);
        format!(r#"{{"description":"{much}","steps":[{{"for":"k","keys":"{key}","limit":1,"do":[]}}]}}"#)
    }

    #[test]
    fn what_needs_everything_is_read_before_everything_is_locked() {
        let (engine, mut prepared) = (engine(), Prepared::default());
        let words = |text: &str| {
            let mut args = Composed::default();
            [&b"PROGRAM"[..], b"EVAL", text.as_bytes()].iter().for_each(|word| args.push(word));
            args
        };
        let spec = find(b"PROGRAM", Some(b"EVAL")).unwrap().spec();
        let (one, other) = (words(&program("a*")), words(&program("b*")));
        let (one, other) = (one.args(spec), other.args(spec));
        assert_eq!(prepared.needs(engine.before_programs(), By::Text, &one, false), Needs::World);
        let read = prepared.waits.as_ref().and_then(|waits| match &waits.given.0 {
            Which::Text(program) => Some(Arc::clone(program)),
            Which::Stored(_) => None,
        });
        let Ok((Which::Text(taken), _)) = prepared.take(engine.before_programs(), By::Text, &one) else {
            panic!("a text")
        };
        assert!(Arc::ptr_eq(&read.unwrap(), &taken), "it is read once");
        // Another request comes before, or programs have changed.
        assert_eq!(prepared.needs(engine.before_programs(), By::Text, &one, false), Needs::World);
        assert!(prepared.take(engine.before_programs(), By::Text, &other).is_ok_and(|(which, _)| {
            let Keys::World(at, _) = &which.program().keys else { return false };
            **at == *"/steps/0"
        }));
        assert!(prepared.waits.is_none());
        assert_eq!(prepared.needs(engine.before_programs(), By::Text, &one, false), Needs::World);
        engine.programs.put([]);
        assert!(!prepared.waits.as_ref().unwrap().is_of(&engine.programs, By::Text, &one));
    }

    #[test]
    fn what_is_stored_is_read_before_everything_is_locked() {
        let mut prepared = Prepared::default();
        let text = program("a*");
        assert_eq!(prepared.read(text.as_bytes()), Needs::World);
        // What is taken is what was read, and not read again.
        let mark = Problem { at: "/mark".into(), text: String::new() };
        prepared.read.as_mut().unwrap().program = Err(mark.clone());
        assert_eq!(prepared.take_read(text.as_bytes()).unwrap_err(), mark);
        assert!(prepared.take_read(text.as_bytes()).is_ok());
        assert_eq!(prepared.read(text.as_bytes()), Needs::World);
        assert!(prepared.take_read(br#"{"steps":[]}"#).is_ok_and(|program| program.steps.is_empty()));
    }
}
