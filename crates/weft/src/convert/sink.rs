//! Where the output goes: one stream, a file for each channel, or nowhere.
//!
//! Owns the output buffers. Writes are large; what is in a buffer when the conversion stops is written before the
//! command ends, so that everything before an error is there.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// Bytes of output that are gathered before a write.
pub(super) const WRITE_BYTES: usize = 256 << 10;

/// Bytes that all channels together may gather when the output is split.
const SPLIT_BYTES_MAX: usize = 32 << 20;

/// The output.
pub(super) struct Sink {
    /// What the converter appends to.
    pub(super) buffer: Vec<u8>,
    target: Target,
}

enum Target {
    Nowhere,
    Stream(Box<dyn Write>, String),
    Split(Split),
}

impl Sink {
    fn to(target: Target) -> Sink {
        Sink { buffer: Vec::with_capacity(2 * WRITE_BYTES), target }
    }

    pub(super) fn nowhere() -> Sink {
        Sink::to(Target::Nowhere)
    }

    /// Standard output without the line buffer that the library puts before it.
    pub(super) fn stdout() -> Result<Sink> {
        let name = "standard output";
        let file = File::from(io::stdout().as_fd().try_clone_to_owned().context(name)?);
        Ok(Sink::to(Target::Stream(Box::new(file), name.into())))
    }

    pub(super) fn file(path: &Path) -> Result<Sink> {
        let name = path.display().to_string();
        let file = File::create(path).with_context(|| name.clone())?;
        Ok(Sink::to(Target::Stream(Box::new(file), name)))
    }

    /// A file for each channel in `directory`, which must not have any yet.
    pub(super) fn split(directory: &Path) -> Result<Sink> {
        let name = || directory.display().to_string();
        fs::create_dir_all(directory).with_context(name)?;
        for entry in fs::read_dir(directory).with_context(name)? {
            let file = entry?.file_name();
            let file = file.to_string_lossy();
            ensure!(!is_channel_file(&file), "{}: there is a {file} already", directory.display());
        }
        let split = Split { directory: directory.to_path_buf(), channels: BTreeMap::new(), bytes: 0 };
        Ok(Sink::to(Target::Split(split)))
    }

    pub(super) fn is_split(&self) -> bool {
        matches!(self.target, Target::Split(_))
    }

    /// What was appended since the buffer had `from` bytes belongs to this channel. Only when the output is split.
    pub(super) fn assign(&mut self, channel: u16, from: usize) {
        if let Target::Split(split) = &mut self.target {
            let bytes = &self.buffer[from..];
            split.bytes += bytes.len();
            split.channels.entry(channel).or_default().buffer.extend_from_slice(bytes);
            self.buffer.truncate(from);
        }
    }

    /// Writes what has been gathered, if that is much or `all` is asked for.
    pub(super) fn flush(&mut self, all: bool) -> Result<()> {
        match &mut self.target {
            Target::Nowhere => {}
            Target::Stream(..) if self.buffer.len() < WRITE_BYTES && !all => return Ok(()),
            Target::Stream(stream, name) => {
                stream.write_all(&self.buffer).and_then(|()| stream.flush()).with_context(|| name.clone())?;
            }
            Target::Split(split) if split.bytes < SPLIT_BYTES_MAX && !all => return Ok(()),
            Target::Split(split) => split.flush()?,
        }
        self.buffer.clear();
        // A huge command has stretched it.
        self.buffer.shrink_to(8 * WRITE_BYTES);
        Ok(())
    }

    /// The channels that have a file.
    pub(super) fn channels(&self) -> usize {
        if let Target::Split(split) = &self.target { split.channels.len() } else { 0 }
    }
}

/// A file for each channel. There may be 65,536, so none stays open between writes.
struct Split {
    directory: PathBuf,
    channels: BTreeMap<u16, Part>,
    /// Bytes in all buffers.
    bytes: usize,
}

#[derive(Default)]
struct Part {
    buffer: Vec<u8>,
    begun: bool,
}

impl Split {
    fn flush(&mut self) -> Result<()> {
        for (channel, part) in
            self.channels.iter_mut().filter(|(_, part)| !part.buffer.is_empty() || !part.begun)
        {
            let path = self.directory.join(file_name(*channel));
            let file = OpenOptions::new().create(true).append(true).open(&path);
            file.and_then(|mut file| file.write_all(&part.buffer))
                .with_context(|| path.display().to_string())?;
            part.begun = true;
            part.buffer = Vec::new();
        }
        self.bytes = 0;
        Ok(())
    }
}

fn file_name(channel: u16) -> String {
    format!("channel-{channel:05}.resp")
}

fn is_channel_file(name: &str) -> bool {
    name.starts_with("channel-") && name.ends_with(".resp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_sort_as_the_channels_do() {
        assert_eq!(file_name(7), "channel-00007.resp");
        assert!(is_channel_file(&file_name(65535)) && !is_channel_file("notes.txt"));
    }
}
