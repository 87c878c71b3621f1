//! Owns: which files a log consists of, as a file of its own that is replaced as a whole. Does not own: those files.
//!
//! ```text
//! weft-log 1
//! snapshot 73728 appendonly.aof.3.snapshot
//! segment 67108112 appendonly.aof.4.log
//! segment open appendonly.aof.5.log
//! crc 1f2e3d4c
//! ```
//! What is in the snapshot is not in the segments; these are replayed behind it, in their order. Of all but the last
//! one the length is known. The last line is the CRC-32C of those before it.

use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

use crate::block::{FileKind, crc};
use crate::disk::Disk;
use crate::problem::Problem;

/// Lines of a manifest at most: a log without a snapshot for so long is 4 TiB.
pub const FILES_MAX: usize = 1 << 16;
const FIRST_LINE: &str = "weft-log 1";

/// A file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its name.
    pub name: String,
    /// Its bytes; unknown while it is written to.
    pub bytes: Option<u64>,
}

/// The files of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// All keys at the moment before the first segment; nothing for none.
    pub snapshot: Option<Piece>,
    /// What was written since.
    pub segments: Vec<Piece>,
}

/// The manifest's name.
#[must_use]
pub fn manifest_name(base: &str) -> String {
    format!("{base}.weft")
}
/// The name of a segment.
pub(crate) fn segment_name(base: &str, number: u64) -> String {
    format!("{base}.{number}.log")
}
/// The name of a log's snapshot.
pub(crate) fn snapshot_name(base: &str, number: u64) -> String {
    format!("{base}.{number}.snapshot")
}
/// What a file is by its name, if it is whole.
#[must_use]
pub fn kind_of(name: &str) -> Option<FileKind> {
    match name.rsplit('.').next() {
        Some("log") => Some(FileKind::Segment),
        Some("snapshot") => Some(FileKind::Snapshot),
        _ => None,
    }
}
/// The base of a log whose manifest has this name.
#[must_use]
pub fn base_of(name: &str) -> Option<&str> {
    name.strip_suffix(".weft").filter(|base| !base.is_empty())
}
/// The number of a file of this log, if it is one.
pub(crate) fn number_of(base: &str, name: &str) -> Option<u64> {
    let rest = name.strip_prefix(base)?.strip_prefix('.')?;
    let rest = rest.strip_suffix(UNFINISHED).unwrap_or(rest);
    rest.strip_suffix(".log").or_else(|| rest.strip_suffix(".snapshot"))?.parse().ok()
}
/// What the name of a file ends with that is being written.
pub(crate) const UNFINISHED: &str = ".tmp";

impl Manifest {
    /// Reads it; nothing if there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is not what was written.
    pub fn read(disk: &dyn Disk, base: &str) -> Result<Option<Self>, Problem> {
        let name = manifest_name(base);
        let io = |error| Problem::io(disk.shown(&name), &error);
        let file = match disk.open(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        let len = usize::try_from(file.bytes().map_err(io)?).unwrap_or(usize::MAX);
        let wrong = |why: &'static str| Problem::Manifest { file: disk.shown(&name), why };
        if len > FILES_MAX * 256 {
            return Err(wrong("it is longer than any manifest"));
        }
        let mut bytes = vec![0; len];
        let read = file.read(0, &mut bytes).map_err(io)?;
        bytes.truncate(read);
        Self::parse(&bytes).map(Some).map_err(wrong)
    }

    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is damaged")?;
        let at = text.rfind("crc ").ok_or("its last line is not there")?;
        let last = text[at..].strip_prefix("crc ").and_then(|line| line.strip_suffix('\n'));
        if last != Some(&format!("{:08x}", crc(&[&bytes[..at]]))) {
            return Err("it is damaged");
        }
        let mut lines = text[..at].lines();
        if lines.next() != Some(FIRST_LINE) {
            return Err("it was written by a later version of Weft");
        }
        let mut manifest = Self::default();
        for line in lines {
            let words: Vec<&str> = line.splitn(3, ' ').collect();
            let &[kind, bytes, name] = words.as_slice() else { return Err("it has a line of too few words") };
            let bytes =
                if bytes == "open" { None } else { Some(bytes.parse().map_err(|_| "it has no length")?) };
            if name.contains('/') {
                return Err("it names a file of another folder");
            }
            let piece = Piece { name: name.into(), bytes };
            match kind {
                "snapshot" => manifest.snapshot = Some(piece),
                "segment" => manifest.segments.push(piece),
                _ => return Err("it has a line of a kind that this version does not know"),
            }
        }
        if manifest.segments.len() > FILES_MAX {
            return Err("it names too many files");
        }
        // Only the last one may end anywhere.
        if manifest.segments.iter().rev().skip(1).any(|segment| segment.bytes.is_none()) {
            return Err("it has a file of no length before the last one");
        }
        Ok(manifest)
    }

    fn text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        let pieces = self.snapshot.iter().map(|piece| ("snapshot", piece));
        for (kind, Piece { name, bytes }) in
            pieces.chain(self.segments.iter().map(|piece| ("segment", piece)))
        {
            let bytes = bytes.map_or_else(|| "open".into(), |bytes| bytes.to_string());
            // Writing to a string does not fail.
            let _ = writeln!(text, "{kind} {bytes} {name}");
        }
        let crc = crc(&[text.as_bytes()]);
        let _ = writeln!(text, "crc {crc:08x}");
        text
    }

    /// Makes an empty one if there is none, before any file that one may name: without one there are none.
    ///
    /// # Errors
    /// When the disk fails.
    pub(crate) fn ensure(disk: &Arc<dyn Disk>, base: &str) -> io::Result<()> {
        match disk.open(&manifest_name(base)) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::default().write(disk, base),
            Err(error) => Err(error),
        }
    }

    /// Takes the place of the one that there is, which it is on the disk when this returns.
    ///
    /// # Errors
    /// When the disk fails: which of the two is there is unknown then.
    pub fn write(&self, disk: &Arc<dyn Disk>, base: &str) -> io::Result<()> {
        let name = manifest_name(base);
        let unfinished = format!("{name}{UNFINISHED}");
        let file = disk.create(&unfinished)?;
        file.write(0, self.text().as_bytes())?;
        file.sync()?;
        disk.rename(&unfinished, &name)?;
        disk.sync_names()
    }

    /// All files that it names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.snapshot.iter().chain(&self.segments).map(|piece| &piece.name[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_comes_back_and_every_flipped_bit_is_seen() {
        let piece = |name: &str, bytes| Piece { name: name.into(), bytes };
        let manifest = Manifest {
            snapshot: Some(piece("a b.3.snapshot", Some(77))),
            segments: vec![piece("a b.4.log", Some(1 << 40)), piece("a b.5.log", None)],
        };
        let text = manifest.text().into_bytes();
        assert_eq!(Manifest::parse(&text), Ok(manifest));
        for bit in 0..text.len() * 8 {
            let mut text = text.clone();
            text[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::parse(&text).is_err(), "bit {bit}: {}", String::from_utf8_lossy(&text));
        }
        for len in 0..text.len() {
            assert!(Manifest::parse(&text[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn files_elsewhere_are_not_taken() {
        for name in ["../a.aof.1.log", "/a.aof.1.log", "b/a.aof.1.log"] {
            let segments = vec![Piece { name: name.into(), bytes: None }];
            let text = Manifest { snapshot: None, segments }.text();
            assert_eq!(Manifest::parse(text.as_bytes()), Err("it names a file of another folder"), "{name}");
        }
    }

    #[test]
    fn only_the_last_segment_may_be_open() {
        let piece = |number, bytes| Piece { name: segment_name("a.aof", number), bytes };
        for (first, last, is_taken) in
            [(Some(7), None, true), (Some(7), Some(8), true), (None, None, false), (None, Some(7), false)]
        {
            let segments = vec![piece(1, first), piece(2, last)];
            let text = Manifest { snapshot: None, segments }.text();
            assert_eq!(Manifest::parse(text.as_bytes()).is_ok(), is_taken, "{text}");
        }
    }

    #[test]
    fn files_of_a_log_are_known_by_their_names() {
        assert_eq!(number_of("a.aof", &segment_name("a.aof", 12)), Some(12));
        assert_eq!(number_of("a.aof", &snapshot_name("a.aof", 3)), Some(3));
        assert_eq!(number_of("a.aof", "a.aof.7.snapshot.tmp"), Some(7));
        for other in ["a.aof.1.base.rdb", "a.aof.1.incr.aof", "a.aof.manifest", "b.aof.1.log", "a.aof.x.log"]
        {
            assert_eq!(number_of("a.aof", other), None, "{other}");
        }
    }
}
