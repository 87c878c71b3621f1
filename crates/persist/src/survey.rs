//! Owns: looking at a log or a file of one whatever is wrong with it, and writing a new log from what proves. Does not
//! own: reading one that is to be served (`crate::kept`), which never passes over anything. Nothing here changes what
//! it looks at.

use std::io;
use std::sync::Arc;

use crate::block::{BlockHead, FILE_HEAD_BYTES, FileHead, FileKind, HEAD_BYTES};
use crate::disk::{Disk, File};
use crate::kept::Place;
use crate::manifest::{Manifest, Piece, kind_of, number_of};
use crate::problem::Problem;
use crate::reader::{Blocks, Extent, Fault};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Files, in the order in which they are replayed.
    pub files: Vec<Surveyed>,
    /// What keeps it from being served, in order.
    pub problems: Vec<Problem>,
    /// The manifest could not be read: the files were found by their names.
    pub is_guessed: bool,
}

/// A file of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surveyed {
    /// Its name.
    pub name: String,
    /// Blocks that prove.
    pub blocks: u64,
    /// Their requests.
    pub requests: u64,
    /// The last epoch.
    pub epoch: u64,
    /// Bytes that prove, its head included.
    pub bytes: u64,
    /// Bytes that were on the disk and are damaged.
    pub lost_bytes: u64,
    /// Bytes at its end that were never safe: a start cuts them off.
    pub torn_bytes: u64,
}

/// Takes blocks that prove; says whether it wants more.
pub type Look<'l> = dyn FnMut(Place<'_>, &[u8]) -> bool + 'l;

/// Looks at all files of a log. `look` is given each block that proves, behind damage too.
///
/// # Errors
/// When the folder cannot be read.
pub fn survey_log(disk: &dyn Disk, base: &str, look: &mut Look<'_>) -> Result<Survey, Problem> {
    let mut survey = Survey::default();
    let manifest = match Manifest::read(disk, base) {
        Ok(Some(manifest)) => manifest,
        read => {
            survey.is_guessed = true;
            let manifest = guess(disk, base).map_err(|error| Problem::io(disk.shown("."), &error))?;
            if read.is_err() || !manifest.segments.is_empty() {
                let missing = Problem::NoManifest { file: disk.shown(&crate::manifest::manifest_name(base)) };
                survey.problems.push(read.err().unwrap_or(missing));
            }
            manifest
        }
    };
    // A snapshot stands for all that became true up to its epoch.
    let mut behind = 0;
    for (piece, kind) in pieces(&manifest) {
        let mut goes_on = true;
        survey_piece(disk, piece, kind, &mut survey, &mut |place, requests| {
            goes_on = kind == FileKind::Segment && place.head.epoch <= behind || look(place, requests);
            goes_on
        });
        if survey.is_guessed && kind == FileKind::Snapshot {
            behind = survey.files.last().map_or(0, |file| file.epoch);
        }
        if !goes_on {
            break;
        }
    }
    Ok(survey)
}

/// Looks at one file, whatever it belongs to.
pub fn survey_file(disk: &dyn Disk, name: &str, look: &mut Look<'_>) -> Survey {
    let mut survey = Survey::default();
    let kind = kind_of(name);
    let read_kind = || {
        let mut head = [0; FILE_HEAD_BYTES];
        let read = disk.open(name).and_then(|file| file.read(0, &mut head)).ok()?;
        FileHead::read(&head[..read]).ok().map(|head| head.kind)
    };
    let kind = read_kind().or(kind).unwrap_or(FileKind::Segment);
    survey_piece(disk, &Piece { name: name.into(), bytes: None }, kind, &mut survey, look);
    survey
}

/// The files of a log in their order.
fn pieces(manifest: &Manifest) -> impl Iterator<Item = (&Piece, FileKind)> {
    let snapshot = manifest.snapshot.iter().map(|piece| (piece, FileKind::Snapshot));
    snapshot.chain(manifest.segments.iter().map(|piece| (piece, FileKind::Segment)))
}

/// Which files a log would have, by their names: the last snapshot and all segments.
fn guess(disk: &dyn Disk, base: &str) -> io::Result<Manifest> {
    let mut found: Vec<(u64, FileKind, String)> = Vec::new();
    for name in disk.names()? {
        if let (Some(number), Some(kind)) = (number_of(base, &name), kind_of(&name)) {
            found.push((number, kind, name));
        }
    }
    found.sort_by_key(|(number, ..)| *number);
    let mut manifest = Manifest::default();
    for (_, kind, name) in found {
        let piece = Piece { name, bytes: None };
        match kind {
            FileKind::Snapshot => manifest.snapshot = Some(piece),
            FileKind::Segment => manifest.segments.push(piece),
        }
    }
    Ok(manifest)
}

fn survey_piece(disk: &dyn Disk, piece: &Piece, kind: FileKind, survey: &mut Survey, look: &mut Look<'_>) {
    let shown = disk.shown(&piece.name);
    let mut found = Surveyed { name: piece.name.clone(), ..Surveyed::default() };
    let result = disk.open(&piece.name).map_err(Fault::Io).and_then(|file| {
        let len = file.bytes()?;
        let extent = match (piece.bytes, kind) {
            (Some(bytes), _) if bytes > len => {
                let lost = Problem::Damage { file: shown.clone(), at: len, next: None, end: bytes };
                survey.problems.push(lost);
                found.lost_bytes = bytes - len;
                // What there is of it can still prove.
                Extent::Open
            }
            (Some(bytes), _) => Extent::Whole(bytes),
            (None, FileKind::Snapshot) => Extent::Whole(len),
            (None, FileKind::Segment) => Extent::Open,
        };
        survey_blocks(file, (kind, extent), (&shown, &mut found), &mut survey.problems, look)
    });
    if let Err(fault) = result {
        survey.problems.push(Problem::of(shown, fault));
    }
    survey.files.push(found);
}

fn survey_blocks(
    file: Arc<dyn File>,
    (kind, extent): (FileKind, Extent),
    (shown, found): (&str, &mut Surveyed),
    problems: &mut Vec<Problem>,
    look: &mut Look<'_>,
) -> Result<(), Fault> {
    let mut blocks = Blocks::open(file, extent)?;
    found.bytes = FILE_HEAD_BYTES as u64;
    let all = blocks.progress().1;
    let mut is_ended = false;
    loop {
        match blocks.next_block() {
            Ok(Some(block)) => {
                let place = Place {
                    file: &found.name,
                    is_snapshot: kind == FileKind::Snapshot,
                    at: block.at,
                    head: block.head,
                    progress: (block.at, all),
                    file_bytes: all,
                };
                is_ended = block.head.count == 0;
                found.blocks += 1;
                found.requests += u64::from(block.head.count);
                found.epoch = found.epoch.max(block.head.epoch);
                found.bytes += (HEAD_BYTES + block.head.len as usize) as u64;
                if !is_ended && !look(place, block.requests) {
                    return Ok(());
                }
            }
            Ok(None) => break,
            Err(Fault::Damage { at, next, end }) => {
                problems.push(Problem::Damage { file: shown.into(), at, next, end });
                found.lost_bytes += next.unwrap_or(end) - at;
                match next {
                    Some(next) => blocks.skip_to(next),
                    None => return Ok(()),
                }
            }
            Err(fault) => return Err(fault),
        }
    }
    let end = blocks.end();
    found.torn_bytes = end.map_or(0, |end| end.torn);
    if kind == FileKind::Snapshot && !is_ended {
        let at = end.map_or(0, |end| end.at);
        problems.push(Problem::Damage { file: shown.into(), at, next: None, end: at });
    }
    Ok(())
}

/// What a repair has written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// What was found.
    pub survey: Survey,
    /// Requests that the new log has.
    pub requests: u64,
}

/// Writes a log into a folder in which there is none, from what proves of another one: all up to the first damage,
/// which is as it was at one moment; or, with `keeps_rest`, what is behind it too, which may be as it never was.
///
/// # Errors
/// When there is no state to be had without what is lost, or one of the disks fails.
pub fn repair(from: &dyn Disk, to: &Arc<dyn Disk>, base: &str, keeps_rest: bool) -> io::Result<Repaired> {
    let look = survey_log(from, base, &mut |_, _| true).map_err(io::Error::other)?;
    let is_snapshot = |file: &&Surveyed| kind_of(&file.name) == Some(FileKind::Snapshot);
    let of_snapshot = look.files.iter().find(is_snapshot).map(|file| from.shown(&file.name));
    let damaged = look.problems.iter().find(|problem| problem.file() == of_snapshot.as_deref());
    if let (Some(problem), false) = (damaged, keeps_rest) {
        return Err(io::Error::other(format!(
            "{problem}. The snapshot is what all behind it is built on: restore it from a backup, or take what there is of \
             it with --keep-rest"
        )));
    }
    let mut copy = Copy { to, base, manifest: Manifest::default(), file: None, requests: 0, failed: Ok(()) };
    // Where the first damage is: nothing behind it is taken.
    let first = look.problems.iter().find_map(|problem| match problem {
        Problem::Damage { file, at, .. } | Problem::Strange { file, at, .. } => Some((file.clone(), *at)),
        Problem::Missing { file } | Problem::Foreign { file, .. } | Problem::Io { file, .. } => {
            Some((file.clone(), 0))
        }
        Problem::Manifest { .. } | Problem::NoManifest { .. } => None,
    });
    let order: Vec<String> = look.files.iter().map(|file| from.shown(&file.name)).collect();
    let place_of = |name: &str| order.iter().position(|other| other == name);
    let until = first.filter(|_| !keeps_rest).map(|(file, at)| (place_of(&file), at));
    survey_log(from, base, &mut |place, requests| {
        let here = (place_of(&from.shown(place.file)), place.at);
        if until.is_some_and(|until| here >= until) {
            return false;
        }
        copy.failed = copy.block(place, requests);
        copy.failed.is_ok()
    })
    .map_err(io::Error::other)?;
    let requests = copy.finish()?;
    Ok(Repaired { survey: look, requests })
}

/// A file that is written.
struct Target {
    piece: Piece,
    kind: FileKind,
    salt: [u8; 8],
    file: Arc<dyn File>,
    at: u64,
    epoch: u64,
}

/// A log that is written block by block.
struct Copy<'c> {
    to: &'c Arc<dyn Disk>,
    base: &'c str,
    manifest: Manifest,
    file: Option<Target>,
    requests: u64,
    failed: io::Result<()>,
}

impl Copy<'_> {
    fn block(&mut self, place: Place<'_>, requests: &[u8]) -> io::Result<()> {
        if self.file.as_ref().is_none_or(|target| target.piece.name != place.file) {
            self.end_file()?;
            let kind = if place.is_snapshot { FileKind::Snapshot } else { FileKind::Segment };
            let head = FileHead::fresh(kind, number_of(self.base, place.file).unwrap_or(0))?;
            let file = self.to.create(place.file)?;
            file.write(0, &head.bytes())?;
            let piece = Piece { name: place.file.into(), bytes: None };
            let at = FILE_HEAD_BYTES as u64;
            self.file = Some(Target { piece, kind, salt: head.salt, file, at, epoch: 0 });
        }
        self.requests += u64::from(place.head.count);
        self.file.as_mut().map_or(Ok(()), |target| target.write(place.head.epoch, place.head.count, requests))
    }
    fn end_file(&mut self) -> io::Result<()> {
        let Some(mut target) = self.file.take() else { return Ok(()) };
        target.write(target.epoch, 0, &[])?;
        target.file.sync()?;
        target.piece.bytes = Some(target.at);
        match target.kind {
            FileKind::Snapshot => self.manifest.snapshot = Some(target.piece),
            FileKind::Segment => self.manifest.segments.push(target.piece),
        }
        Ok(())
    }
    fn finish(mut self) -> io::Result<u64> {
        std::mem::replace(&mut self.failed, Ok(()))?;
        self.end_file()?;
        self.to.sync_names()?;
        self.manifest.write(self.to, self.base)?;
        Ok(self.requests)
    }
}

impl Target {
    fn write(&mut self, epoch: u64, count: u32, requests: &[u8]) -> io::Result<()> {
        let mut block = vec![0; HEAD_BYTES];
        block.extend_from_slice(requests);
        BlockHead::seal(&mut block, &self.salt, (epoch, count, 0));
        self.file.write(self.at, &block)?;
        self.at += block.len() as u64;
        self.epoch = epoch;
        Ok(())
    }
}
