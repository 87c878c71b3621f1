//! Owns: programs by name, as they were stored, and what has come of their runs; programs that came as texts, for a
//! while. Does not own: the catalogue, where their texts are (`weft_store::catalogue`), the commands.
//!
//! ```text
//!  0         8        10
//! +---------+--------+----------+------------------+
//! | version | length | owner    | the program      |
//! +---------+--------+----------+------------------+
//!   u64       u16
//! ```

use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use super::parse::Problem;
use super::steps::Program;
use crate::catalogue::Named;
use crate::error::{Error, ErrorCode, Result};
use crate::histogram::{Counts, Histogram, bucket_of};

/// Programs that may be stored.
pub const PROGRAMS_MAX: usize = 10_000;
/// Bytes of a program's name.
pub const NAME_BYTES_MAX: usize = 128;
/// Texts of EVAL that are kept in the form that they run in, and their bytes.
const EVALS_MAX: usize = 256;
const EVAL_BYTES_MAX: usize = 16 << 10;
/// Bytes of those in the form that they run in.
const EVALS_BYTES_MAX: usize = 16 << 20;
/// Bytes of all that are stored, in the form that they run in, with their texts.
const PROGRAMS_BYTES_MAX: usize = 256 << 20;
/// The part of `maxmemory` that they may take.
const PROGRAMS_PART: usize = 4;

/// A stored program.
#[derive(Debug)]
pub struct Stored {
    /// How often a program of this name was stored, since there is one.
    pub version: u64,
    /// Who has stored it.
    pub owner: Box<str>,
    /// Its text.
    pub text: Arc<[u8]>,
    /// What runs.
    pub program: Program,
    /// What has come of it.
    pub figures: Figures,
    /// Bytes of memory that it takes.
    bytes: usize,
}

/// What has come of a program's runs.
#[derive(Debug, Default)]
pub struct Figures {
    /// Runs.
    pub runs: AtomicU64,
    /// Those of them that failed.
    pub failures: AtomicU64,
    /// How long they took.
    pub times: Mutex<Box<Histogram>>,
}

impl Figures {
    /// So many runs have ended, so many of them failed, and each took this long.
    pub(crate) fn count_runs(&self, (runs, failures): (u64, u64), took: Duration) {
        self.runs.fetch_add(runs, Relaxed);
        self.failures.fetch_add(failures, Relaxed);
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.times.lock().add(bucket_of(ns), runs);
    }
    /// Microseconds that so many of a hundred runs do not exceed.
    #[must_use]
    pub fn percentiles_us(&self, percents: &[f64]) -> Vec<f64> {
        let mut counts = Counts::default();
        counts.add(&self.times.lock());
        percents.iter().map(|&percent| counts.percentile(percent) as f64 / 1000.0).collect()
    }
}

/// All programs.
#[derive(Debug, Default)]
pub struct Programs {
    stored: Named<Stored>,
    /// Bytes of memory that they take.
    bytes: AtomicUsize,
    evals: Mutex<Evals>,
}

/// Programs that came as texts, and bytes of memory that they take.
#[derive(Debug, Default)]
struct Evals {
    by_text: HashMap<Box<[u8]>, Arc<Program>>,
    bytes: usize,
}

impl Deref for Programs {
    type Target = Named<Stored>;

    fn deref(&self) -> &Named<Stored> {
        &self.stored
    }
}

impl Programs {
    /// Puts several in the place of what has their names, or takes that away. Gives what went, which takes its time to
    /// be freed.
    pub(crate) fn put(
        &self,
        programs: impl IntoIterator<Item = (Box<[u8]>, Option<Stored>)>,
    ) -> Vec<Arc<Stored>> {
        let mut gone = Vec::new();
        for (freed, taken) in self.stored.put(programs) {
            let bytes = |of: Option<&Arc<Stored>>| of.map_or(0, |stored| stored.bytes);
            self.count_bytes((bytes(freed.as_ref()), bytes(taken.as_ref())));
            gone.extend(freed);
        }
        gone
    }
    /// Bytes of memory that they take, and triggers with them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
    /// Whether there is room for one in the place of what has its name. `limit`: `maxmemory`, 0 for none.
    pub(crate) fn check_room(&self, name: &[u8], new: &Stored, limit: usize) -> Result {
        self.check_bytes((self.get(name).map_or(0, |stored| stored.bytes), new.bytes), limit)
    }
    /// The same of so many bytes in the place of others.
    pub(crate) fn check_bytes(&self, (freed, taken): (usize, usize), limit: usize) -> Result {
        let max = if limit == 0 { PROGRAMS_BYTES_MAX } else { PROGRAMS_BYTES_MAX.min(limit / PROGRAMS_PART) };
        if self.bytes() - freed + taken <= max {
            return Ok(());
        }
        let text = format!(
            "programs and triggers may take {max} bytes together in the form that they run in, this one takes {taken}: \
             delete some first"
        );
        Err(Error::new(ErrorCode::Limit, text))
    }
    /// Bytes have come and gone: of programs, or of triggers, which count as these do.
    pub(crate) fn count_bytes(&self, (freed, taken): (usize, usize)) {
        self.bytes.fetch_add(taken, Relaxed);
        self.bytes.fetch_sub(freed, Relaxed);
    }
    /// The program of a text, read once while it is used.
    pub(crate) fn of_text(&self, text: &[u8]) -> Result<Arc<Program>, Problem> {
        if let Some(program) = self.evals.lock().by_text.get(text) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(Program::parse(text)?);
        if text.len() <= EVAL_BYTES_MAX {
            let bytes = program.weight() + text.len();
            let mut evals = self.evals.lock();
            if evals.by_text.len() == EVALS_MAX || evals.bytes + bytes > EVALS_BYTES_MAX {
                *evals = Evals::default();
            }
            evals.bytes += bytes;
            evals.by_text.insert(text.into(), Arc::clone(&program));
        }
        Ok(program)
    }
}

impl Stored {
    /// A program of this version and owner.
    pub fn new(version: u64, owner: &str, text: &[u8]) -> Result<Self, Problem> {
        Ok(Self::of((version, owner), text, Program::parse(text)?))
    }
    /// The same of a text that was read.
    pub(crate) fn of((version, owner): (u64, &str), text: &[u8], program: Program) -> Self {
        // The text stands here and in the catalogue.
        let bytes = size_of::<Self>() + size_of::<Histogram>() + program.weight() + 2 * text.len();
        Self { version, owner: owner.into(), text: text.into(), program, figures: Figures::default(), bytes }
    }
    /// As it stands in the catalogue.
    #[must_use]
    pub fn entry(&self) -> Vec<u8> {
        let mut entry = self.version.to_be_bytes().to_vec();
        entry.extend_from_slice(&(self.owner.len() as u16).to_be_bytes());
        entry.extend_from_slice(self.owner.as_bytes());
        entry.extend_from_slice(&self.text);
        entry
    }
    /// From there.
    pub fn of_entry(entry: &[u8]) -> Result<Self, String> {
        let cut = || "the entry is cut off".to_owned();
        let (version, rest) = entry.split_first_chunk().ok_or_else(cut)?;
        let (len, rest) = rest.split_first_chunk().ok_or_else(cut)?;
        let (owner, text) = rest.split_at_checked(u16::from_be_bytes(*len).into()).ok_or_else(cut)?;
        let owner = std::str::from_utf8(owner).map_err(|_| "the owner is no text".to_owned())?;
        Self::new(u64::from_be_bytes(*version), owner, text).map_err(|problem| problem.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written_and_cut_ones_refused() {
        let stored = Stored::new(7, "anna", br#"{"steps":[["PING"]]}"#).unwrap();
        let entry = stored.entry();
        let read = Stored::of_entry(&entry).unwrap();
        assert_eq!((read.version, &*read.owner, &*read.text), (7, "anna", &*stored.text));
        for len in 0..entry.len() {
            assert!(Stored::of_entry(&entry[..len]).is_err(), "{len} bytes");
        }
    }
}
