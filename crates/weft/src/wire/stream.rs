//! A workload ready to be measured: the same commands on each wire, and what decoding them must give.
//!
//! Owns loading and refusing files, the flat argument form that every contestant is compared with byte by byte, and
//! the sums.

use anyhow::{Context as _, Result, bail, ensure};
use weft_protocol::request::{ArgList, Texts};
use weft_protocol::{Arg, Limits, Outcome, resp, respb, table};

use super::fold::Fold;
use crate::workload::Pair;
use crate::workload::kind::Kind;

/// How a stream is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wire {
    Resp,
    Respb,
    /// RESPB with nothing but ARGV frames: binary lengths, and names as text.
    Argv,
}

impl Wire {
    pub(super) const ALL: [Wire; 3] = [Wire::Resp, Wire::Respb, Wire::Argv];

    pub(super) fn name(self) -> &'static str {
        match self {
            Wire::Resp => "RESP",
            Wire::Respb => "RESPB",
            Wire::Argv => "RESPB ARGV",
        }
    }

    pub(super) fn id(self) -> &'static str {
        match self {
            Wire::Resp => "resp",
            Wire::Respb => "respb",
            Wire::Argv => "argv",
        }
    }
}

/// A stream on one wire.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    /// What must be added to the sum of what this wire carries to have the sum of the argument form.
    pub(super) correction: u64,
}

/// A workload on all wires.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) commands: u64,
    pub(super) arguments: u64,
    /// Commands that have a typed frame.
    pub(super) typed: u64,
    encoded: [Encoded; 3],
    /// For each command `[u32 arguments]`, for each argument `[u32 len][bytes]`, little endian: what is in it, name
    /// first.
    pub(super) flat: Vec<u8>,
    /// The fold of the argument form.
    pub(super) checksum: u64,
    /// The sum of the numbers that the table gives the commands, see [`table_number`].
    pub(super) ids: u64,
}

/// What a command that was looked up adds to the sum of a contestant: its place in the table, or 0xFFFF where it has
/// none.
#[inline(always)]
pub(super) fn table_number(id: Option<table::CommandId>) -> u64 {
    id.map_or(0xFFFF, |id| u64::from(id.0))
}

/// What a frame's header adds: an opcode, or the place in the table of a module's command.
#[inline(always)]
pub(super) fn header_number(frame: &respb::Frame<'_>) -> u64 {
    match *frame {
        respb::Frame::Core(opcode) => u64::from(opcode),
        respb::Frame::Module(id) => u64::from(id.0),
        _ => 0,
    }
}

impl Stream {
    pub(super) fn on(&self, wire: Wire) -> &Encoded {
        &self.encoded[wire as usize]
    }

    /// The commands of a workload, `bytes` bytes of them in RESP.
    pub(super) fn generate(kind: Kind, bytes: usize, key_length: usize, seed: u64) -> Result<Stream> {
        Stream::of(&crate::workload::generate(kind, bytes, key_length, seed))
    }

    /// The commands of a file in RESP or RESPB; the first byte tells which.
    pub(super) fn parse(bytes: &[u8]) -> Result<Stream> {
        let commands = match bytes.first() {
            None => bail!("byte 0: the file is empty"),
            Some(b'*') => read_resp(bytes)?,
            Some(0x00..=0x07 | 0xF0..=0xFF) => read_respb(bytes)?,
            Some(other) => bail!("byte 0: 0x{other:02x} begins neither RESP nor RESPB"),
        };
        Stream::of(&commands)
    }

    pub(super) fn of(commands: &[Vec<Vec<u8>>]) -> Result<Stream> {
        let mut stream = Stream { commands: commands.len() as u64, ..Stream::default() };
        let mut fold = Fold::default();
        for argv in commands {
            ensure!(!argv.is_empty(), "a command without a name");
            stream.arguments += argv.len() as u64;
            stream.flat.extend_from_slice(&(argv.len() as u32).to_le_bytes());
            for argument in argv {
                fold.argument(argument);
                flat(argument, &mut stream.flat);
            }
            stream.ids = stream.ids.wrapping_add(table_number(table::by_name(&argv[0])));
        }
        stream.checksum = fold.0;
        let pair = Pair::encode(commands);
        stream.typed = pair.typed;
        let mut argv_frames = Vec::new();
        for argv in commands {
            respb::RequestWriter::new(&mut argv_frames, 0).argv(&Texts(argv));
        }
        stream.encoded[Wire::Resp as usize].bytes = pair.resp;
        stream.encoded[Wire::Argv as usize].bytes = argv_frames;
        stream.encoded[Wire::Respb as usize] =
            Encoded { correction: correction(&pair.respb)?, bytes: pair.respb };
        stream.encoded[Wire::Argv as usize].correction = 0;
        Ok(stream)
    }
}

/// Appends an argument to the flat form.
pub(super) fn flat(argument: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(argument.len() as u32).to_le_bytes());
    out.extend_from_slice(argument);
}

/// What the texts of names and numbers fold to, less what their binary forms fold to.
fn correction(bytes: &[u8]) -> Result<u64> {
    let mut correction = 0u64;
    each_frame(bytes, |frame, list, input| {
        if let Some(id) = frame.command() {
            correction = correction.wrapping_add(fold_of(id.spec().name.as_bytes()));
        }
        correction = correction.wrapping_sub(header_number(frame));
        for arg in list.iter(input) {
            let value = match arg {
                Arg::Int(value) => value as u64,
                Arg::Double(value) => value.to_bits(),
                Arg::Bytes(_) | Arg::Keyword(_) => continue,
            };
            correction = correction.wrapping_add(fold_of(&text(&arg))).wrapping_sub(value);
        }
    })?;
    Ok(correction)
}

fn fold_of(text: &[u8]) -> u64 {
    let mut fold = Fold::default();
    fold.argument(text);
    fold.0
}

pub(super) fn text(arg: &Arg<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    arg.push_text(&mut text);
    text
}

fn read_resp(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>> {
    let (mut decoder, mut list) = (resp::RequestDecoder::new(Limits::DEFAULT), ArgList::new());
    let (mut rest, mut commands) = (bytes, Vec::new());
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        list.clear();
        ensure!(rest[0] == b'*', "byte {at}: a command does not begin with '*'");
        let frame = whole(decoder.decode(rest, &mut list), at)?;
        if frame.arguments > 0 {
            commands.push(list.iter(rest).map(|arg| text(&arg)).collect());
        }
        rest = frame.rest;
    }
    Ok(commands)
}

fn read_respb(bytes: &[u8]) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut commands = Vec::new();
    each_frame(bytes, |frame, list, input| {
        let name = frame.command().map(|id| id.spec().name.as_bytes().to_vec());
        let mut argv: Vec<Vec<u8>> = name.into_iter().collect();
        argv.extend(list.iter(input).map(|arg| text(&arg)));
        if !argv.is_empty() {
            commands.push(argv);
        }
    })?;
    Ok(commands)
}

/// Calls `each` with every frame, its arguments and the bytes from its first one on.
fn each_frame(bytes: &[u8], mut each: impl FnMut(&respb::Frame<'_>, &ArgList, &[u8])) -> Result<()> {
    let (mut decoder, mut list) = (respb::RequestDecoder::new(Limits::DEFAULT), ArgList::new());
    let mut rest = bytes;
    while !rest.is_empty() {
        list.clear();
        let frame = whole(decoder.decode(rest, &mut list), bytes.len() - rest.len())?;
        each(&frame.frame, &list, rest);
        rest = frame.rest;
    }
    Ok(())
}

/// The frame at byte `at` of a file, or what is wrong with it.
fn whole<T>(outcome: Outcome<T>, at: usize) -> Result<T> {
    match outcome {
        Outcome::Complete(frame) => Ok(frame),
        Outcome::Incomplete { .. } => {
            bail!("byte {at}: the command that begins here is cut off by the end of the file")
        }
        Outcome::Invalid(error) => bail!("byte {}: {}", at + error.offset, error.kind.text()),
    }
}

/// Reads a workload file.
pub(super) fn load(path: &std::path::Path) -> Result<Stream> {
    let bytes = std::fs::read(path).with_context(|| format!("{}", path.display()))?;
    Stream::parse(&bytes).with_context(|| format!("{}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: &[u8]) -> String {
        Stream::parse(bytes).unwrap_err().to_string()
    }

    #[test]
    fn a_cut_or_corrupt_file_is_refused_with_its_offset() {
        let stream = Stream::generate(Kind::Mixed, 10_000, 6, 1).unwrap();
        for wire in Wire::ALL {
            let bytes = &stream.on(wire).bytes;
            let cut = error(&bytes[..bytes.len() - 1]);
            assert!(cut.starts_with("byte ") && cut.contains("cut off"), "{}: {cut}", wire.name());
        }
        let mut corrupt = stream.on(Wire::Resp).bytes.clone();
        corrupt[0] = b'*';
        corrupt[4] = b'%';
        assert!(error(&corrupt).starts_with("byte 4: "), "{}", error(&corrupt));
        let mut corrupt = stream.on(Wire::Respb).bytes.clone();
        corrupt[0] = 0x07;
        assert_eq!(error(&corrupt), "byte 0: Protocol error: unknown opcode");
        assert!(error(b"").contains("empty"));
        assert!(error(b"GET k\r\n").starts_with("byte 0: 0x47"));
    }

    #[test]
    fn a_file_of_either_wire_gives_the_same_stream() {
        let stream = Stream::generate(Kind::Mixed, 10_000, 20, 1).unwrap();
        for wire in Wire::ALL {
            let again = Stream::parse(&stream.on(wire).bytes).unwrap();
            assert!(again.flat == stream.flat && again.checksum == stream.checksum, "{}", wire.name());
        }
    }
}
