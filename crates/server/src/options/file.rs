//! Owns: reading configuration files line by line: comments, `include`, the directives that only files have. Does not
//! own: the words of a line (`weft_engine::words`), what a directive means.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use weft_engine::config::Values;
use weft_engine::config::table;
use weft_engine::glob;
use weft_engine::words::split;

use super::{OptionsError, Own};

/// Files inside files.
const DEPTH_MAX: usize = 16;
/// A file with everything that it includes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What has been read so far.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) values: Values,
    pub(super) users: Vec<(String, Vec<Vec<u8>>)>,
    pub(super) own: Vec<Own>,
    pub(super) warnings: Vec<String>,
    /// The names of those.
    names: &'static [&'static str],
    /// Values that were refused, by their place in the table. What is set once more, by the file or a flag, has no
    /// longer been refused.
    refused: BTreeMap<usize, OptionsError>,
    depth: usize,
}

impl Reader {
    /// One that takes settings of somebody else's too, by these names.
    pub(super) fn beside(names: &'static [&'static str]) -> Self {
        Self { names, ..Self::default() }
    }

    /// Takes a setting, if it is one of those. Says whether it is.
    pub(super) fn own(&mut self, place: &str, name: &[u8], words: &[&[u8]]) -> Result<bool, OptionsError> {
        let is_it = |own: &&&str| own.as_bytes().eq_ignore_ascii_case(name);
        let Some(name) = self.names.iter().find(is_it).copied() else { return Ok(false) };
        let value = match words {
            [word] => std::str::from_utf8(word).ok(),
            _ => None,
        };
        let value = value.ok_or_else(|| OptionsError::new(place, format!("{name} takes one value")))?;
        self.own.push(Own { place: place.into(), name, value: value.into() });
        Ok(true)
    }

    /// Reads a file; `-` is standard input.
    pub(super) fn file(&mut self, path: &Path) -> Result<(), OptionsError> {
        let name = path.display().to_string();
        if self.depth >= DEPTH_MAX {
            return Err(OptionsError::new(
                name,
                format!("files include each other more than {DEPTH_MAX} deep"),
            ));
        }
        let mut text = Vec::new();
        let read = if name == "-" {
            std::io::stdin().take(FILE_BYTES_MAX + 1).read_to_end(&mut text)
        } else {
            std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text))
        };
        read.map_err(|error| OptionsError::new(&name, format!("cannot be read: {error}")))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(OptionsError::new(name, "a file of settings has 16 MiB at most"));
        }
        self.depth += 1;
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            let place = format!("{name}:{}", number + 1);
            let words = split(line).ok_or_else(|| {
                OptionsError::new(&place, "a quote is not closed, or something follows it at once")
            })?;
            if let [first, rest @ ..] = words.as_slice() {
                let rest: Vec<&[u8]> = rest.iter().map(Vec::as_slice).collect();
                self.line(&place, first, &rest)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// A directive with its words, or one of those that are more than a value.
    pub(super) fn line(&mut self, place: &str, name: &[u8], words: &[&[u8]]) -> Result<(), OptionsError> {
        let refuse = |text: &str| Err(OptionsError::new(place, text));
        match name.to_ascii_lowercase().as_slice() {
            b"include" => match words {
                [path] => self.include(place, &String::from_utf8_lossy(path)),
                _ => refuse("include takes the name of one file"),
            },
            b"user" if !words.is_empty() => {
                self.users.push((place.to_string(), words.iter().map(|word| word.to_vec()).collect()));
                Ok(())
            }
            b"user" => refuse("user takes a name and rules"),
            b"loadmodule" => refuse("Weft has no modules; take the line out"),
            b"rename-command" => refuse("commands keep their names; forbid them by ACL rules instead"),
            b"sentinel" => refuse("Weft is no sentinel; take the line out"),
            // What Valkey reads for old files' sake and does nothing with.
            b"list-max-ziplist-entries" | b"list-max-ziplist-value" | b"lua-replicate-commands" => Ok(()),
            _ if self.own(place, name, words)? => Ok(()),
            _ => self.directive(place, name, words),
        }
    }

    /// A directive of the table.
    pub(super) fn directive(
        &mut self,
        place: &str,
        name: &[u8],
        words: &[&[u8]],
    ) -> Result<(), OptionsError> {
        let shown = String::from_utf8_lossy(name).into_owned();
        let Some(at) = table::find(name) else {
            let like = match table::suggest(&shown) {
                Some(like) => format!("; is '{like}' meant?"),
                None => "; docs/configuration.md lists those there are".to_string(),
            };
            return Err(OptionsError::new(place, format!("there is no directive '{shown}'{like}")));
        };
        let parts: Vec<&[u8]>;
        let words = match words {
            // `bind "a b"` is two addresses.
            [word] if table::DIRECTIVES[at].kind.takes_many() && !word.is_empty() => {
                parts = word.split(u8::is_ascii_whitespace).filter(|part| !part.is_empty()).collect();
                &parts
            }
            words => words,
        };
        let set = self.values.set(name, words).map_err(|why| {
            let value = words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ");
            let value = if table::DIRECTIVES[at].secret { "(hidden)" } else { &value };
            OptionsError::new(place, format!("{shown} {value}: {why}"))
        });
        match set {
            Ok(()) => self.refused.remove(&at),
            Err(error) => self.refused.insert(at, error),
        };
        Ok(())
    }

    /// What nobody has set to another value.
    pub(super) fn finish(&mut self) -> Result<(), OptionsError> {
        if self.values.get("daemonize").is_on() {
            let text = "daemonize yes: Weft stays in the foreground, for a service manager or a '&'; 'no' says so too";
            self.warnings.push(text.to_string());
        }
        self.refused.pop_first().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// `include`: one file, or all that a pattern in the last part of the path matches, by name; none is fine then.
    fn include(&mut self, place: &str, path: &str) -> Result<(), OptionsError> {
        if !path.contains(['*', '?', '[']) {
            return self.file(Path::new(path)).map_err(|error| inside(place, error));
        }
        let path = PathBuf::from(path);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let pattern = path.file_name().unwrap_or_default().as_encoded_bytes();
        let matching = |entry: &std::fs::DirEntry| {
            let name = entry.file_name();
            let name = name.as_encoded_bytes();
            !name.starts_with(b".") && glob::matches(pattern, name)
        };
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
        let mut files: Vec<PathBuf> = entries.flatten().filter(matching).map(|entry| entry.path()).collect();
        files.sort();
        files.iter().try_for_each(|file| self.file(file)).map_err(|error| inside(place, error))
    }
}

/// An error in an included file names the line that included it, if the file itself cannot be read.
fn inside(place: &str, error: OptionsError) -> OptionsError {
    if error.place.contains(':') { error } else { OptionsError::new(place, format!("{error}")) }
}
