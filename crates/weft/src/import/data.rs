//! Owns: the data of others as commands: a file of RDB, an append-only file with or without one at its start, or the
//! files that a manifest lists. Does not own: the formats (`weft_engine::rdb`, `weft_protocol`), running the commands.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use weft_engine::rdb::file::{self, KeyPart, Part, Reader};
use weft_protocol::request::{Arg, ArgList};
use weft_protocol::{Limits, Outcome, resp};

use crate::insert::Commands;
use crate::source::Piece;
use crate::text::quoted;
use crate::window::Window;

/// Longest annotation between the commands of an append-only file (Redis: 1024).
const ANNOTATION_BYTES_MAX: usize = 1024;
/// Bytes of a key that a message shows.
const KEY_SHOWN_BYTES_MAX: usize = 60;

/// What is done where there is a choice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choices {
    /// Values of modules are left out; else they end the import.
    pub(crate) skip_modules: bool,
    /// Keys and libraries that are there already are replaced; else each is an error.
    pub(crate) replace: bool,
    /// Values are looked at here, since nobody runs the commands.
    pub(crate) checks: bool,
}

/// What the data held.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) keys: u64,
    pub(crate) libraries: u64,
    pub(crate) commands: u64,
    /// Values that were left out, by the name of the module.
    pub(crate) modules: BTreeMap<String, u64>,
    /// Bytes at the end that are no whole command.
    pub(crate) cut_bytes: u64,
    /// The last transaction has no end, and was left out.
    pub(crate) cut_transaction: bool,
    /// Values that no server would take, and what is to be said of those since somebody has taken it from here.
    pub(crate) refused: u64,
    pub(crate) faults: Vec<String>,
    /// Which server wrote it.
    pub(crate) written_by: Option<String>,
}

/// Data that are read.
pub(crate) struct Data {
    pieces: VecDeque<Piece>,
    stage: Option<(Arc<str>, Stage)>,
    /// The byte of its file where the last command begins.
    at: u64,
    choices: Choices,
    /// Bytes of pieces that are done.
    done: u64,
    /// Inside of MULTI.
    in_transaction: bool,
    pub(crate) counts: Counts,
}

enum Stage {
    /// It is not known yet what it is.
    Start(Window),
    Rdb(Box<Reader<Window>>),
    Commands(Window, Box<resp::RequestDecoder>, ArgList),
}

type Command = Vec<Vec<u8>>;

impl Data {
    pub(crate) fn new(pieces: Vec<Piece>, choices: Choices) -> Data {
        let counts = Counts::default();
        Data { pieces: pieces.into(), stage: None, at: 0, choices, done: 0, in_transaction: false, counts }
    }

    /// The next command of the stage; none at its end, which leads to the next stage.
    fn step(&mut self, stage: Stage) -> Result<(Option<Command>, Option<Stage>)> {
        match stage {
            Stage::Start(mut window) => {
                window.fill_to(file::MAGIC_BYTES)?;
                if file::is_rdb(window.bytes()) {
                    return Ok((None, Some(Stage::Rdb(Box::new(Reader::new(window)?)))));
                }
                Ok((None, Some(commands(window))))
            }
            Stage::Rdb(mut reader) => match reader.part()? {
                Part::End => Ok((None, Some(commands(reader.into_source())))),
                part => {
                    if let Part::Key(key) = &part {
                        self.at = key.offset;
                    }
                    let command = part_as_command(&part, self.choices, &mut self.counts)?;
                    Ok((command, Some(Stage::Rdb(reader))))
                }
            },
            Stage::Commands(mut window, mut decoder, mut list) => {
                let command = self.command(&mut window, &mut decoder, &mut list)?;
                let offset = window.offset();
                let stage = command.is_some().then_some(Stage::Commands(window, decoder, list));
                if stage.is_none() {
                    self.done += offset;
                }
                Ok((command, stage))
            }
        }
    }

    /// The next command of an append-only file; none at its end.
    fn command(
        &mut self,
        window: &mut Window,
        decoder: &mut resp::RequestDecoder,
        list: &mut ArgList,
    ) -> Result<Option<Command>> {
        list.clear();
        loop {
            if window.bytes().is_empty() && !window.fill()? {
                return Ok(None);
            }
            if window.bytes().first() == Some(&b'#') {
                pass_over_annotation(window)?;
                continue;
            }
            ensure!(
                window.bytes().first() == Some(&b'*'),
                "byte {}: expected '*' and a number of arguments, found {}",
                window.offset(),
                quoted(&window.bytes()[..1], 1),
            );
            match decoder.decode(window.bytes(), list) {
                Outcome::Complete(frame) => {
                    let bytes = window.bytes();
                    let args = list.iter(bytes).map(|arg| match arg {
                        Arg::Bytes(bytes) => bytes.to_vec(),
                        _ => Vec::new(),
                    });
                    let args: Command = args.collect();
                    self.at = window.offset();
                    window.consume(frame.len);
                    list.clear();
                    let Some(name) = args.first() else { continue };
                    match name.to_ascii_uppercase().as_slice() {
                        b"MULTI" => self.in_transaction = true,
                        b"EXEC" | b"DISCARD" => self.in_transaction = false,
                        _ => {}
                    }
                    self.counts.commands += 1;
                    return Ok(Some(args));
                }
                Outcome::Incomplete { .. } => {
                    if window.fill()? {
                        continue;
                    }
                    let left = window.bytes().len();
                    ensure!(
                        self.pieces.is_empty(),
                        "byte {}: the file ends inside a command, and another follows it",
                        window.offset()
                    );
                    // What a server leaves that was ended while it wrote.
                    self.counts.cut_bytes = left as u64;
                    window.consume(left);
                    return Ok(None);
                }
                Outcome::Invalid(error) => {
                    bail!("byte {}: the command here is malformed: {error}", window.offset())
                }
            }
        }
    }
}

impl Commands for Data {
    fn next(&mut self) -> Result<Option<Command>> {
        loop {
            let Some((name, stage)) = self.stage.take() else {
                let Some(piece) = self.pieces.pop_front() else {
                    if std::mem::take(&mut self.in_transaction) {
                        self.counts.cut_transaction = true;
                        return Ok(Some(vec![b"DISCARD".to_vec()]));
                    }
                    return Ok(None);
                };
                let window = Window::new(piece.open()?);
                self.stage = Some((piece.name.as_str().into(), Stage::Start(window)));
                continue;
            };
            let (command, next) = self.step(stage).with_context(|| name.to_string())?;
            self.stage = next.map(|stage| (name, stage));
            if command.is_some() {
                return Ok(command);
            }
        }
    }

    fn offset(&self) -> u64 {
        let here = match self.stage.as_ref().map(|(_, stage)| stage) {
            None => 0,
            Some(Stage::Start(window) | Stage::Commands(window, ..)) => window.offset(),
            Some(Stage::Rdb(reader)) => file::Source::offset(reader.source()),
        };
        self.done + here
    }

    fn place(&self) -> Option<(Arc<str>, u64)> {
        self.stage.as_ref().map(|(name, _)| (Arc::clone(name), self.at))
    }
}

fn commands(window: Window) -> Stage {
    Stage::Commands(window, Box::new(resp::RequestDecoder::new(Limits::DEFAULT)), ArgList::new())
}

fn pass_over_annotation(window: &mut Window) -> Result<()> {
    window.fill_to(ANNOTATION_BYTES_MAX)?;
    let bytes = window.bytes();
    let line = &bytes[..bytes.len().min(ANNOTATION_BYTES_MAX)];
    let end = line.iter().position(|&byte| byte == b'\n');
    let end = end.with_context(|| {
        format!("byte {}: an annotation of more than {ANNOTATION_BYTES_MAX} bytes", window.offset())
    })?;
    window.consume(end + 1);
    Ok(())
}

fn words(words: &[&str]) -> Command {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn part_as_command(part: &Part<'_>, choices: Choices, counts: &mut Counts) -> Result<Option<Command>> {
    Ok(match part {
        Part::Database(number) => Some(words(&["SELECT", &number.to_string()])),
        Part::Library(code) => {
            counts.libraries += 1;
            let mut command = words(&["FUNCTION", "LOAD"]);
            if choices.replace {
                command.push(b"REPLACE".to_vec());
            }
            command.push(code.to_vec());
            Some(command)
        }
        Part::EarlyFunction => bail!(
            "functions as a release candidate of Redis 7.0 wrote them, which nothing reads any more: delete them there \
             and save again"
        ),
        Part::Module(name, key) => {
            let what = key.as_ref().map_or_else(
                || "data of its own".to_owned(),
                |key| format!("the key {}", quoted(key, KEY_SHOWN_BYTES_MAX)),
            );
            ensure!(
                choices.skip_modules,
                "the module type {name} has {what} here, and there are no modules: --skip-modules leaves such out, and \
                 counts them"
            );
            *counts.modules.entry(name.clone()).or_default() += 1;
            None
        }
        Part::Key(key) => {
            counts.keys += 1;
            if choices.checks && !key.is_sound() {
                counts.refused += 1;
                let key_shown = quoted(&key.key, KEY_SHOWN_BYTES_MAX);
                counts
                    .faults
                    .push(format!("byte {}: the value of the key {key_shown} cannot be read", key.offset));
            }
            Some(restore(key, choices))
        }
        Part::Fact(name, value) if name.ends_with(b"-ver") => {
            let name = String::from_utf8_lossy(&name[..name.len() - 4]);
            counts.written_by = Some(format!("{name} {}", String::from_utf8_lossy(value)));
            None
        }
        Part::Fact(..) | Part::Sizes(..) | Part::Slot | Part::End => None,
    })
}

fn restore(part: &KeyPart<'_>, choices: Choices) -> Command {
    // A time of 0 would be none.
    let expire_ms = part.expire_ms.map_or(0, |time| time.max(1));
    let mut command = vec![b"RESTORE".to_vec(), part.key.to_vec(), expire_ms.to_string().into_bytes()];
    command.push(part.payload());
    command.push(b"ABSTTL".to_vec());
    if choices.replace {
        command.push(b"REPLACE".to_vec());
    }
    let use_of_it = match (part.idle_s, part.frequency) {
        (Some(idle_s), _) => Some(("IDLETIME", idle_s)),
        (None, Some(frequency)) => Some(("FREQ", u64::from(frequency))),
        (None, None) => None,
    };
    if let Some((name, value)) = use_of_it {
        command.extend(words(&[name, &value.to_string()]));
    }
    command
}
