//! Where a stream of commands comes from: standard input, a file, the files that the manifest of an append-only file
//! lists, or those of a log of Weft.
//!
//! Owns the manifest of an append-only file. Knows nothing of what is in the files, but that those of a log of Weft are
//! blocks of requests.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use weft_persist::block::{FILE_HEAD_BYTES, FileHead};
use weft_persist::disk::{Disk as _, Folder};
use weft_persist::manifest::{Manifest, base_of};
use weft_persist::reader::Requests;
use weft_protocol::request::{Arg, ArgList};
use weft_protocol::{Limits, Outcome, resp};

/// One stream to convert.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The file; none for standard input.
    path: Option<PathBuf>,
    /// How messages call it.
    pub(crate) name: String,
    /// Bytes, where that is known.
    pub(crate) len: Option<u64>,
    /// It is a segment or a snapshot of Weft's own: its requests are RESPB, their channels databases.
    pub(crate) is_log: bool,
}

impl Piece {
    fn file(path: PathBuf) -> Result<Piece> {
        let metadata = fs::metadata(&path).with_context(|| path.display().to_string())?;
        let len = metadata.is_file().then_some(metadata.len());
        let is_log = len.is_some() && is_log(&path)?;
        Ok(Piece { name: path.display().to_string(), path: Some(path), len, is_log })
    }

    /// The stream from its start.
    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send>> {
        Ok(match &self.path {
            None => Box::new(io::stdin()),
            Some(path) if self.is_log => {
                let file = weft_persist::disk::open(path)?;
                Box::new(Requests::open(file).with_context(|| path.display().to_string())?)
            }
            Some(path) => Box::new(File::open(path).with_context(|| path.display().to_string())?),
        })
    }

    /// Whether it is this file.
    pub(crate) fn is(&self, path: &Path) -> bool {
        let canonical = |path: &Path| fs::canonicalize(path).ok();
        self.path.as_deref().and_then(canonical).is_some_and(|own| Some(own) == canonical(path))
    }
}

/// The streams behind the argument FILE, in order, and what people should be told about files that are passed over.
pub(crate) fn pieces(file: Option<&Path>) -> Result<(Vec<Piece>, Vec<String>)> {
    let Some(path) = file.filter(|path| *path != Path::new("-")) else {
        let piece = Piece { path: None, name: "standard input".into(), len: None, is_log: false };
        return Ok((vec![piece], Vec::new()));
    };
    if let Some(pieces) = of_log(path)? {
        return Ok((pieces, Vec::new()));
    }
    if path.is_dir() {
        return from_manifest(&manifest_in(path)?);
    }
    if path.extension().is_some_and(|extension| extension == "manifest") {
        return from_manifest(path);
    }
    Ok((vec![Piece::file(path.to_path_buf())?], Vec::new()))
}

/// Whether a file is a segment or a snapshot of Weft's own.
pub(crate) fn is_log(path: &Path) -> Result<bool> {
    let mut head = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    file.take(FILE_HEAD_BYTES as u64).read_to_end(&mut head).with_context(|| path.display().to_string())?;
    Ok(FileHead::begins(&head))
}

/// The files of a log of Weft, if the path is its folder or its manifest.
fn of_log(path: &Path) -> Result<Option<Vec<Piece>>> {
    let (folder, mut bases) = if path.is_dir() {
        let names = Folder::unlocked(path).names()?;
        (path, names.iter().filter_map(|name| base_of(name)).map(String::from).collect::<Vec<_>>())
    } else {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        (path.parent().unwrap_or(Path::new("")), base_of(name).map(String::from).into_iter().collect())
    };
    let Some(base) = bases.pop() else { return Ok(None) };
    ensure!(bases.is_empty(), "{}: several logs; name the manifest of one", path.display());
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Some(manifest) = Manifest::read(&Folder::unlocked(folder), &base)? else { return Ok(None) };
    manifest.names().map(|name| Piece::file(folder.join(name))).collect::<Result<_>>().map(Some)
}

fn manifest_in(directory: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "manifest") {
            found.push(path);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!("{}: a directory without a .manifest file", directory.display()),
        _ => bail!("{}: several .manifest files; name one of them", directory.display()),
    }
}

fn from_manifest(path: &Path) -> Result<(Vec<Piece>, Vec<String>)> {
    let text = fs::read(path).with_context(|| path.display().to_string())?;
    let listed = parse(&text).with_context(|| path.display().to_string())?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let (mut pieces, mut notes) = (Vec::new(), Vec::new());
    for entry in listed {
        let path = directory.join(&entry.name);
        if entry.kind == Kind::History {
            notes.push(format!("{}: history, which a later base replaces; passed over", path.display()));
            continue;
        }
        pieces.push(Piece::file(path)?);
    }
    Ok((pieces, notes))
}

/// What a file of the manifest is; in the order in which a server loads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    History,
    Base,
    Incremental,
}

#[derive(Debug, PartialEq, Eq)]
struct Listed {
    kind: Kind,
    sequence: u64,
    name: String,
}

/// The files of a manifest, base first, then the increments by number. A line is pairs of a key and a value, quoted as
/// an inline command is: `file appendonly.aof.1.incr.aof seq 1 type i`.
fn parse(text: &[u8]) -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for (index, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if line.starts_with(b"#") || line.trim_ascii().is_empty() {
            continue;
        }
        listed.push(parse_line(line).with_context(|| format!("line {} of the manifest", index + 1))?);
    }
    listed.sort_by_key(|entry: &Listed| (entry.kind, entry.sequence));
    let bases = listed.iter().filter(|entry| entry.kind == Kind::Base).count();
    ensure!(bases <= 1, "the manifest lists {bases} base files");
    Ok(listed)
}

fn parse_line(line: &[u8]) -> Result<Listed> {
    let mut words = ArgList::new();
    let line = [line.trim_ascii_end(), b"\n"].concat();
    let outcome = resp::RequestDecoder::new(Limits::DEFAULT).decode(&line, &mut words);
    ensure!(matches!(outcome, Outcome::Complete(_)), "unbalanced quotes");
    let words: Vec<String> = words
        .iter(&line)
        .map(|word| match word {
            Arg::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        })
        .collect();
    let value = |key: &str| {
        let at = words.iter().step_by(2).position(|word| word == key)?;
        words.get(2 * at + 1)
    };
    let name = value("file").context("expected `file` and a name")?;
    ensure!(!name.is_empty() && !name.contains('/'), "a file name with a path in it: {name}");
    let sequence = value("seq").and_then(|text| text.parse().ok()).context("expected `seq` and a number")?;
    let kind = match value("type").map(String::as_str) {
        Some("b") => Kind::Base,
        Some("i") => Kind::Incremental,
        Some("h") => Kind::History,
        _ => bail!("expected `type` and one of b, h, i"),
    };
    Ok(Listed { kind, sequence, name: name.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_put_in_order() {
        let text = b"# made by hand\nfile a.2.incr.aof seq 2 type i startoffset 0\r\nfile \"a b.base.rdb\" seq 1 type b\n\
                     file a.1.incr.aof seq 1 type i\nfile old seq 1 type h\n";
        let names: Vec<String> = parse(text).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["old", "a b.base.rdb", "a.1.incr.aof", "a.2.incr.aof"]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, said) in [
            ("file a seq 1 type b\nfile b seq 1", "line 2 of the manifest: expected `type`"),
            ("seq 1 type b", "expected `file`"),
            ("file a seq x type b", "expected `seq`"),
            ("file ../a seq 1 type b", "a path in it"),
            ("file \"a seq 1 type b", "unbalanced quotes"),
            ("file a seq 1 type b\nfile b seq 2 type b", "lists 2 base files"),
        ] {
            let error = format!("{:#}", parse(text.as_bytes()).unwrap_err());
            assert!(error.contains(said), "{error}");
        }
    }
}
