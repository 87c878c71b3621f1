//! Owns: the program of a request and what it is given, from asking for its locks to running it. Does not own: the
//! programs (`super::stored`), the locks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Program;
use super::keys::Keys;
use super::stored::{Programs, Stored};
use super::value::Value;
use crate::args::Args;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode};
use crate::handler::Needs;

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
    fn of(programs: &Programs, by: By, named: &[u8]) -> Result<Self, Error> {
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

impl Quick {
    fn ran(&mut self, stored: Arc<Stored>, (more, failed): (u64, u64)) {
        self.runs += more;
        match self.programs.last_mut() {
            Some((last, runs, failures)) if Arc::ptr_eq(last, &stored) => {
                *runs += more;
                *failures += failed;
            }
            _ => self.programs.push((stored, more, failed)),
        }
    }
    fn tell(self) {
        let share = self.began.elapsed() / u32::try_from(self.runs.max(1)).unwrap_or(u32::MAX);
        for (stored, runs, failures) in self.programs {
            stored.figures.ran((runs, failures), share);
        }
    }
}

/// The error about a program that is not stored.
pub(crate) fn unknown(name: &[u8]) -> Error {
    Error::new(ErrorCode::NoProgram, format!("no program '{}' is stored", String::from_utf8_lossy(name)))
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
struct Quick {
    /// Since the first of them.
    began: Instant,
    runs: u64,
    /// Each with how often it has run and has failed.
    programs: Vec<(Arc<Stored>, u64, u64)>,
}

/// What a worker has looked up.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// The one that runs now is among [`Self::quick`].
    among: bool,
    quick: Option<Quick>,
    /// The last stored one.
    last: Option<Last>,
    /// For the run that follows.
    next: Option<Given>,
    /// Memory for the values of the next one, empty.
    room: Vec<Value>,
}

/// Values for which memory is kept.
const ROOM_MAX: usize = 64;

impl Prepared {
    /// The program that an argument says.
    pub(crate) fn find(&mut self, programs: &Programs, by: By, named: &[u8]) -> Result<Which, Error> {
        let version = programs.version();
        if by != By::Text
            && let Some(last) = self.last.as_ref().filter(|last| last.is(version, named))
        {
            return Ok(Which::Stored(Arc::clone(&last.stored)));
        }
        let which = Which::of(programs, by, named)?;
        if let Which::Stored(stored) = &which {
            self.last = Some(Last { version, name: named.into(), stored: Arc::clone(stored) });
        }
        Ok(which)
    }
    /// What a run needs: its locks are taken next, under which it [takes](Self::take) what was found. Where everything
    /// is `open` no shard is named. A mistake in the request is told by the run.
    pub(crate) fn needs(&mut self, engine: &Engine, by: By, args: &Args<'_>, open: bool) -> Needs {
        self.next = None;
        let Ok((which, params)) = self.look_up(engine, by, args) else { return Needs::Shards(Vec::new()) };
        let (needs, params) = match &which.program().keys {
            Keys::World(..) => return Needs::World,
            _ if open => (Needs::Shards(Vec::new()), params),
            _ => which.program().needs(engine, params),
        };
        self.next = Some((which, params));
        needs
    }
    /// The program of a request with its parameters.
    pub(crate) fn take(&mut self, engine: &Engine, by: By, args: &Args<'_>) -> Result<Given, Error> {
        self.next.take().map_or_else(|| self.look_up(engine, by, args), Ok)
    }
    /// Whether a request runs a stored program that always takes about the same short time: if so it is about to, among
    /// its neighbours.
    pub(crate) fn begins_quick(&mut self, engine: &Engine, args: &Args<'_>) -> bool {
        let (name, version) = (args.bytes(2), engine.programs.version());
        let is_quick = |last: &Last| last.is(version, name).then_some(last.stored.program.quick);
        self.among = match self.last.as_ref().and_then(is_quick) {
            Some(quick) => quick,
            None => self.find(&engine.programs, By::Name, name).is_ok_and(|which| which.program().quick),
        };
        if self.among && self.quick.is_none() {
            self.quick = Some(Quick { began: Instant::now(), runs: 0, programs: Vec::new() });
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
    pub(crate) fn ran(&mut self, stored: Arc<Stored>, began: Option<Instant>, failed: bool) {
        let Some(quick) = self.quick.as_mut().filter(|_| self.among) else {
            let took = began.map_or(Duration::ZERO, |began| began.elapsed());
            return stored.figures.ran((1, failed.into()), took);
        };
        quick.ran(stored, (1, failed.into()));
    }
    /// Runs of a program among neighbours have ended.
    pub(crate) fn ran_together(&mut self, stored: Arc<Stored>, runs: u64, failures: u64) {
        if let Some(quick) = &mut self.quick
            && runs > 0
        {
            quick.ran(stored, (runs, failures));
        }
    }
    /// Neighbours have run: those that are programs share the time.
    #[inline]
    pub(crate) fn tell_times(&mut self) {
        if let Some(quick) = self.quick.take() {
            quick.tell();
        }
    }
    fn look_up(&mut self, engine: &Engine, by: By, args: &Args<'_>) -> Result<Given, Error> {
        let which = self.find(&engine.programs, by, args.bytes(2))?;
        let params = self.params(engine, which.program(), args)?;
        Ok((which, params))
    }
    /// What a request gives a program.
    pub(crate) fn params(
        &mut self,
        engine: &Engine,
        program: &Program,
        args: &Args<'_>,
    ) -> Result<Vec<Value>, Error> {
        program.params_in((std::mem::take(&mut self.room), &engine.settings), args.rest(3))
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
