//! Owns: reading back what was kept: a log with its snapshot, or a snapshot by itself, block by block, each proven.
//! Does not own: applying it (`crate::frames` decodes, the keyspace replays).

use std::sync::Arc;

use crate::block::{BlockHead, FileKind};
use crate::disk::Disk;
use crate::frames::Strange;
use crate::manifest::{Manifest, Piece, UNFINISHED, manifest_name, number_of};
use crate::problem::Problem;
use crate::reader::{Blocks, End, Extent, Fault};

/// A log as it was found.
#[derive(Debug)]
pub struct FoundLog {
    disk: Arc<dyn Disk>,
    manifest: Manifest,
    /// Up to where the last segment was on the disk, as its blocks say.
    safe: u64,
}

/// Where a block stands that is given.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The file.
    pub file: &'a str,
    /// Whether it is a snapshot.
    pub is_snapshot: bool,
    /// Where in it.
    pub at: u64,
    /// The block's head.
    pub head: BlockHead,
    /// Bytes of all files up to this block, and of all files.
    pub progress: (u64, u64),
    /// Bytes of this file.
    pub file_bytes: u64,
}

/// Who takes blocks.
type Give<'g> = dyn FnMut(Place<'_>, &[u8]) -> Result<(), Strange> + 'g;

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The last epoch.
    pub epoch: u64,
    /// Bytes of all blocks, with heads of files.
    pub bytes: u64,
    /// The file that ends in the middle of a block, where, and how many bytes were cut off.
    pub torn: Option<(String, u64, u64)>,
}

impl FoundLog {
    /// Finds the log of a folder; nothing if there is none.
    ///
    /// # Errors
    /// When its manifest cannot be read, or is not there and files of a log are.
    pub fn find(disk: Arc<dyn Disk>, base: &str) -> Result<Option<Self>, Problem> {
        let Some(manifest) = Manifest::read(&*disk, base)? else {
            let names = disk.names().map_err(|error| Problem::io(disk.shown("."), &error))?;
            let is_of_log = |name: &String| number_of(base, name).is_some() && !name.ends_with(UNFINISHED);
            if names.iter().any(is_of_log) {
                return Err(Problem::NoManifest { file: disk.shown(&manifest_name(base)) });
            }
            return Ok(None);
        };
        Ok(Some(Self { disk, manifest, safe: 0 }))
    }

    /// Gives all blocks in the order in which they are to be replayed. Where the last segment ends in the middle of a
    /// block it is cut off there.
    ///
    /// # Errors
    /// When something is damaged or missing, or says what is no effect.
    pub fn replay(
        &mut self,
        mut give: impl FnMut(Place<'_>, &[u8]) -> Result<(), Strange>,
    ) -> Result<Summary, Problem> {
        let mut summary = Summary::default();
        let mut all = 0_u64;
        for piece in self.manifest.snapshot.iter().chain(&self.manifest.segments) {
            // What a manifest says need not be so.
            let bytes = match piece.bytes {
                Some(bytes) => bytes,
                None => {
                    let len = self.disk.open(&piece.name).and_then(|file| file.bytes());
                    len.map_err(|error| Problem::of(self.disk.shown(&piece.name), Fault::Io(error)))?
                }
            };
            all = all.saturating_add(bytes);
        }
        let last = self.manifest.segments.len().saturating_sub(1);
        if let Some(piece) = &self.manifest.snapshot {
            self.piece(piece, FileKind::Snapshot, (&mut summary, all), &mut give)?;
        }
        for at in 0..self.manifest.segments.len() {
            let piece = &self.manifest.segments[at];
            let (end, safe) = self.piece(piece, FileKind::Segment, (&mut summary, all), &mut give)?;
            if at == last {
                self.safe = safe;
                self.manifest.segments[at].bytes = Some(end.at);
            }
        }
        Ok(summary)
    }

    fn piece(
        &self,
        piece: &Piece,
        kind: FileKind,
        (summary, all): (&mut Summary, u64),
        give: &mut Give<'_>,
    ) -> Result<(End, u64), Problem> {
        let extent = piece.bytes.map_or(Extent::Open, Extent::Whole);
        read_file(&*self.disk, &piece.name, (kind, extent), (summary, all), give)
    }

    /// The files, as they are to be named from now on, and up to where the last one was on the disk.
    pub(crate) fn into_parts(self) -> (Manifest, u64) {
        (self.manifest, self.safe)
    }
    /// Whether it names no file: it never counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.manifest.names().next().is_none()
    }
    /// The files.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

/// Gives all blocks of a snapshot that stands by itself.
///
/// # Errors
/// When it is damaged, or no snapshot.
pub fn read_snapshot(
    disk: &dyn Disk,
    name: &str,
    mut give: impl FnMut(Place<'_>, &[u8]) -> Result<(), Strange>,
) -> Result<Summary, Problem> {
    let len = disk.open(name).and_then(|file| file.bytes());
    let len = len.map_err(|error| Problem::of(disk.shown(name), Fault::Io(error)))?;
    let mut summary = Summary::default();
    read_file(disk, name, (FileKind::Snapshot, Extent::Whole(len)), (&mut summary, len), &mut give)?;
    Ok(summary)
}

/// Gives all blocks of a file; how it ended, and up to where it was on the disk, as they say.
fn read_file(
    disk: &dyn Disk,
    name: &str,
    (kind, extent): (FileKind, Extent),
    (summary, all): (&mut Summary, u64),
    give: &mut Give<'_>,
) -> Result<(End, u64), Problem> {
    let shown = disk.shown(name);
    let problem = |fault| Problem::of(shown.clone(), fault);
    let file = disk.open(name).map_err(|error| problem(Fault::Io(error)))?;
    let mut blocks = Blocks::open(file, extent).map_err(problem)?;
    if blocks.head().kind != kind {
        return Err(Problem::Foreign { file: shown, why: "it is of another kind than its place says" });
    }
    let (_, file_bytes) = blocks.progress();
    let (mut is_ended, mut safe) = (false, 0);
    while let Some(block) = blocks.next_block().map_err(problem)? {
        safe = safe.max(block.at.saturating_sub(u64::from(block.head.behind)));
        let place = Place {
            file: name,
            is_snapshot: kind == FileKind::Snapshot,
            at: block.at,
            head: block.head,
            progress: (summary.bytes + block.at, all),
            file_bytes,
        };
        is_ended = block.head.count == 0;
        summary.epoch = summary.epoch.max(block.head.epoch);
        if !is_ended {
            give(place, block.requests)
                .map_err(|strange| Problem::strange(shown.clone(), block.at, strange))?;
        }
    }
    let end = blocks.end().unwrap_or(End { at: 0, torn: 0 });
    if kind == FileKind::Snapshot && !is_ended {
        return Err(Problem::Damage { file: shown, at: end.at, next: None, end: end.at });
    }
    if end.torn > 0 {
        summary.torn = Some((shown, end.at, end.torn));
    }
    summary.bytes += end.at;
    Ok((end, safe))
}
