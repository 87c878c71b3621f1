//! Owns: a disk that loses power, and fails when it is told to, for proofs. Does not own: when it does.
//!
//! What was synced stays. Of the rest each sector of 512 bytes has reached the disk or not, as chance has it, in any
//! order; names change in the order in which they were changed, up to some point. What a sync that fails was to write
//! is not written, nor is it by a later one: as Linux does, programs read it, and the system takes it for written.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, File};

/// What a disk writes as a whole.
pub const SECTOR_BYTES: usize = 512;

/// The number of a file, whatever its name.
type Inode = u64;

#[derive(Clone, Debug, Default)]
struct Content {
    /// As programs see it.
    now: Vec<u8>,
    /// As it is on the disk.
    synced: Vec<u8>,
    /// Sectors that are to be written.
    dirty: BTreeSet<usize>,
}

impl Content {
    /// They are.
    fn write(&mut self) {
        self.synced.resize(self.now.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let from = (sector * SECTOR_BYTES).min(self.now.len());
            let end = (from + SECTOR_BYTES).min(self.now.len());
            self.synced[from..end].copy_from_slice(&self.now[from..end]);
        }
    }
}

/// A change of names that is not on the disk yet.
#[derive(Clone, Debug)]
enum Naming {
    Made(String, Inode),
    Renamed(String, String),
    Removed(String),
}

/// What is to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Writing fails, with half of the bytes written.
    ShortWrite,
    /// Writing fails.
    Write,
    /// Syncing fails, and what was to be written is not.
    Sync,
    /// There is no room: files do not become longer.
    Full,
}

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<String, Inode>,
    synced_names: BTreeMap<String, Inode>,
    naming: Vec<Naming>,
    contents: BTreeMap<Inode, Content>,
    next: Inode,
    /// Operations that change something, so far.
    steps: u64,
    /// The power goes at this step.
    cut_at: Option<u64>,
    fault: Option<Fault>,
    bytes_max: Option<usize>,
}

/// The disk. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Simulated(Arc<Mutex<State>>);

#[derive(Debug)]
struct Open {
    disk: Simulated,
    inode: Inode,
}

fn gone() -> io::Error {
    io::Error::other("the power is gone")
}
fn failed() -> io::Error {
    io::Error::from_raw_os_error(5)
}
fn full() -> io::Error {
    io::Error::from_raw_os_error(28)
}

impl State {
    /// One more operation that changes something.
    fn step(&mut self) -> io::Result<()> {
        if self.cut_at.is_some_and(|at| self.steps >= at) {
            return Err(gone());
        }
        self.steps += 1;
        Ok(())
    }
    fn content(&mut self, inode: Inode) -> io::Result<&mut Content> {
        self.contents.get_mut(&inode).ok_or_else(failed)
    }
    fn bytes(&self) -> usize {
        self.contents.values().map(|content| content.now.len()).sum()
    }
    fn grow(&mut self, inode: Inode, len: usize) -> io::Result<()> {
        let all = self.bytes();
        let now = self.content(inode)?.now.len();
        let more = len.saturating_sub(now);
        if more > 0 && (self.fault == Some(Fault::Full) || self.bytes_max.is_some_and(|max| all + more > max))
        {
            return Err(full());
        }
        let content = self.content(inode)?;
        content.now.resize(now.max(len), 0);
        content.dirty.extend(now / SECTOR_BYTES..len.div_ceil(SECTOR_BYTES));
        Ok(())
    }
}

impl Simulated {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Operations that have changed something.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.state().steps
    }
    /// The power goes before the operation of this number; every later one fails.
    pub fn cut_at(&self, step: u64) {
        self.state().cut_at = Some(step);
    }
    /// From now on this goes wrong, or nothing.
    pub fn fail(&self, fault: Option<Fault>) {
        self.state().fault = fault;
    }
    /// Bytes that files take, those that were removed included.
    #[must_use]
    pub fn used(&self) -> usize {
        self.state().bytes()
    }
    /// Files take no more than so many bytes together.
    pub fn limit(&self, bytes: Option<usize>) {
        self.state().bytes_max = bytes;
    }
    /// What a cut leaves, as a disk that has power again. `dice` gives numbers below the one it is given.
    #[must_use]
    pub fn after_cut(&self, dice: &mut dyn FnMut(usize) -> usize) -> Self {
        let state = self.state();
        let mut names = state.synced_names.clone();
        for naming in &state.naming[..dice(state.naming.len() + 1)] {
            match naming {
                Naming::Made(name, inode) => drop(names.insert(name.clone(), *inode)),
                Naming::Renamed(from, to) => {
                    if let Some(inode) = names.remove(from) {
                        names.insert(to.clone(), inode);
                    }
                }
                Naming::Removed(name) => drop(names.remove(name)),
            }
        }
        let mut contents = BTreeMap::new();
        for (inode, content) in &state.contents {
            let mut left = content.synced.clone();
            // The length is a part of what is written late.
            let lens = [content.synced.len(), content.now.len()];
            left.resize(lens[dice(2)], 0);
            for &sector in &content.dirty {
                let from = sector * SECTOR_BYTES;
                let end = (from + SECTOR_BYTES).min(content.now.len()).min(left.len());
                if from < end && dice(2) == 0 {
                    left[from..end].copy_from_slice(&content.now[from..end]);
                }
            }
            contents.insert(*inode, Content { now: left.clone(), synced: left, dirty: BTreeSet::new() });
        }
        let next = state.next;
        let after = State { synced_names: names.clone(), names, contents, next, ..State::default() };
        Self(Arc::new(Mutex::new(after)))
    }
    /// What a file holds.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let state = self.state();
        let inode = state.names.get(name).unwrap_or_else(|| panic!("there is no file {name}"));
        state.contents[inode].now.clone()
    }
    /// Makes a file hold this, synced.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut state = self.state();
        let inode = *state.names.get(name).unwrap_or(&state.next);
        state.next = state.next.max(inode + 1);
        state.names.insert(name.into(), inode);
        state.synced_names.insert(name.into(), inode);
        let content = Content { now: bytes.into(), synced: bytes.into(), dirty: BTreeSet::new() };
        state.contents.insert(inode, content);
    }
    /// The same disk by itself: what happens to one does not happen to the other.
    #[must_use]
    pub fn copy(&self) -> Self {
        let state = self.state();
        let copy = State {
            names: state.names.clone(),
            synced_names: state.names.clone(),
            contents: state.contents.clone(),
            next: state.next,
            ..State::default()
        };
        Self(Arc::new(Mutex::new(copy)))
    }
}

impl Disk for Simulated {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        state.step()?;
        let inode = state.next;
        state.next += 1;
        state.contents.insert(inode, Content::default());
        state.names.insert(name.into(), inode);
        state.naming.push(Naming::Made(name.into(), inode));
        Ok(Arc::new(Open { disk: self.clone(), inode }))
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let inode = *self.state().names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(Open { disk: self.clone(), inode }))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.into(), inode);
        state.naming.push(Naming::Renamed(from.into(), to.into()));
        Ok(())
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.naming.push(Naming::Removed(name.into()));
        Ok(())
    }
    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        if state.fault == Some(Fault::Sync) {
            return Err(failed());
        }
        state.synced_names = state.names.clone();
        state.naming.clear();
        Ok(())
    }
    fn shown(&self, name: &str) -> String {
        name.into()
    }
    fn has(&self, name: &str, file: &dyn File) -> io::Result<bool> {
        let named = self.state().names.get(name).copied();
        Ok(named == Some(file.identity()?.1))
    }
}

impl File for Open {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.disk.state().content(self.inode)?.now.len() as u64)
    }
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.step()?;
        state.grow(self.inode, bytes as usize)
    }
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.state();
        state.step()?;
        let bytes = match state.fault {
            Some(Fault::Write) => return Err(failed()),
            Some(Fault::ShortWrite) => &bytes[..bytes.len() / 2],
            _ => bytes,
        };
        let (at, end) = (at as usize, at as usize + bytes.len());
        state.grow(self.inode, end)?;
        let content = state.content(self.inode)?;
        content.now[at..end].copy_from_slice(bytes);
        content.dirty.extend(at / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES));
        if state.fault == Some(Fault::ShortWrite) { Err(failed()) } else { Ok(()) }
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.disk.state();
        let rest = state.content(self.inode)?.now.get(at as usize..).unwrap_or_default();
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.step()?;
        state.grow(self.inode, bytes as usize)?;
        let content = state.content(self.inode)?;
        content.now.truncate(bytes as usize);
        content.dirty.extend(bytes as usize / SECTOR_BYTES..content.synced.len().div_ceil(SECTOR_BYTES));
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.step()?;
        let fails = state.fault == Some(Fault::Sync);
        let content = state.content(self.inode)?;
        if fails {
            content.dirty.clear();
            return Err(failed());
        }
        content.write();
        Ok(())
    }
    fn identity(&self) -> io::Result<(u64, u64)> {
        Ok((0, self.inode))
    }
}
