//! RESP to RESPB: the typed layout where it gives back these very bytes, ARGV otherwise.
//!
//! Owns what may stand between commands: annotations, empty requests and, where allowed, inline commands.

use anyhow::Result;
use weft_protocol::request::{ArgList, Arguments as _, Decoded};
use weft_protocol::resp::RequestDecoder;
use weft_protocol::respb::{Mode, RequestWriter};
use weft_protocol::table::{self, CommandId, Layout, Opcode, Shape};
use weft_protocol::{Arg, Limits, Outcome};

use super::sink::{Sink, WRITE_BYTES};
use super::stats::{Form, Stats};
use super::{Converter, Stop, Wrong};
use crate::lacks;
use crate::text::quoted;

/// Longest annotation (Redis: 1024).
const ANNOTATION_BYTES_MAX: usize = 1024;

/// Bytes that are shown of what was found.
const FOUND_BYTES: usize = 16;

pub(super) struct ToRespb {
    decoder: RequestDecoder,
    args: ArgList,
    /// Inside a command whose first arguments are in `args` already.
    begun: bool,
    channel: u16,
    inline: bool,
    names: Names,
    stats: Stats,
}

impl ToRespb {
    pub(super) fn new(channel: u16, inline: bool, limits: Limits) -> ToRespb {
        ToRespb {
            decoder: RequestDecoder::new(limits),
            args: ArgList::new(),
            begun: false,
            channel,
            inline,
            names: Names([None; NAMES]),
            stats: Stats::new(),
        }
    }

    /// What does not begin with `*`: how many bytes of it to pass over; none when it is an inline command.
    #[cold]
    fn between(&mut self, rest: &[u8]) -> Result<Option<usize>, Stop> {
        match rest[0] {
            b'#' => {
                let visible = &rest[..rest.len().min(ANNOTATION_BYTES_MAX)];
                let Some(end) = visible.iter().position(|&byte| byte == b'\n') else {
                    return Err(match visible.len() {
                        ANNOTATION_BYTES_MAX => {
                            wrong(0, "expected an annotation of at most 1024 bytes".into())
                        }
                        _ => Stop::Incomplete,
                    });
                };
                self.stats.passed_over.annotations += 1;
                Ok(Some(end + 1))
            }
            _ if self.inline => Ok(None),
            found => {
                let hint = match found {
                    0x00..=0x07 | 0xF0.. => ": RESPB begins so (--to resp)",
                    byte if byte.is_ascii_alphabetic() => ": inline commands are read with --inline",
                    _ => "",
                };
                Err(wrong(
                    0,
                    format!("expected '*' and a number of arguments, found {}{hint}", found_at(rest, 0)),
                ))
            }
        }
    }

    fn encode(&mut self, frame: &[u8], len: usize, out: &mut Vec<u8>) {
        if let Some(id) = self.names.exact(bytes_of(&self.args, frame, 0)) {
            let before = out.len();
            if straight(id, &self.args, frame, self.channel, out) {
                return self.stats.known(id, Form::Typed, len, out.len() - before);
            }
        }
        let argv = Decoded { list: &self.args, frame };
        let before = out.len();
        let typed = RequestWriter::new(out, self.channel).arguments(&argv, Mode::Exact);
        let form = if typed { Form::Typed } else { Form::Argv };
        if let Arg::Bytes(name) = argv.arg(0) {
            self.stats.named(name, form, len, out.len() - before);
        }
    }
}

/// An argument of a RESP command: always bytes.
#[inline]
fn bytes_of<'a>(args: &'a ArgList, frame: &'a [u8], index: usize) -> &'a [u8] {
    if let Arg::Bytes(bytes) = args.get(frame, index) { bytes } else { &[] }
}

/// Writes the frame if the layout is one of the commonest, without a search for what fits where. The vectors and the
/// round trips of the whole table hold it to what [`RequestWriter`] writes.
fn straight(id: CommandId, args: &ArgList, frame: &[u8], channel: u16, out: &mut Vec<u8>) -> bool {
    let spec = id.spec();
    let (Opcode::Core(opcode), Layout::Fields { shape, .. }) = (spec.opcode, spec.layout) else {
        return false;
    };
    let fits = match shape {
        Shape::S => args.len() == 2,
        Shape::SB | Shape::SBO => args.len() == 3,
        _ => false,
    };
    let key = if fits { bytes_of(args, frame, 1) } else { return false };
    let Ok(key_len) = u16::try_from(key.len()) else { return false };
    let [o1, o0] = opcode.to_be_bytes();
    let [c1, c0] = channel.to_be_bytes();
    let [k1, k0] = key_len.to_be_bytes();
    out.extend_from_slice(&[o1, o0, c1, c0, k1, k0]);
    out.extend_from_slice(key);
    if shape != Shape::S {
        let value = bytes_of(args, frame, 2);
        // It fits: an argument is at most 512 MiB.
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        out.extend_from_slice(value);
    }
    if shape == Shape::SBO {
        out.push(0);
    }
    true
}

/// The command names that came last, by a hash that costs less than the table's.
struct Names([Option<CommandId>; NAMES]);

/// A power of two.
const NAMES: usize = 64;

impl Names {
    /// The command that is spelled exactly so.
    #[inline]
    fn exact(&mut self, name: &[u8]) -> Option<CommandId> {
        let (first, last) = (*name.first()?, *name.last()?);
        let slot = (usize::from(first) * 5 + usize::from(last) * 3 + name.len() * 17) % NAMES;
        let spelled_so = |id: &CommandId| id.spec().name.as_bytes() == name;
        if let Some(id) = self.0[slot].filter(spelled_so) {
            return Some(id);
        }
        let id = table::by_name(name).filter(spelled_so)?;
        self.0[slot] = Some(id);
        Some(id)
    }
}

/// What stands at an offset, for a message.
fn found_at(bytes: &[u8], at: usize) -> String {
    match bytes.get(at..) {
        Some(found) if !found.is_empty() => quoted(&found[..found.len().min(FOUND_BYTES)], FOUND_BYTES),
        _ => "nothing".into(),
    }
}

fn wrong(at: usize, what: String) -> Stop {
    Stop::Wrong(Wrong { at, what })
}

impl Converter for ToRespb {
    fn feed(&mut self, input: &[u8], sink: &mut Sink) -> (usize, Stop) {
        let mut rest = input;
        let stop = loop {
            if sink.buffer.len() >= WRITE_BYTES {
                break Stop::Full;
            }
            let Some(&first) = rest.first() else { break Stop::Incomplete };
            if !self.begun {
                self.args.clear();
                if first != b'*' {
                    match self.between(rest) {
                        Ok(Some(passed)) => {
                            rest = &rest[passed..];
                            continue;
                        }
                        Ok(None) => {}
                        Err(stop) => break stop,
                    }
                }
            }
            match self.decoder.decode(rest, &mut self.args) {
                Outcome::Complete(frame) => {
                    if frame.arguments > 0 {
                        self.encode(rest, frame.len, &mut sink.buffer);
                    } else {
                        self.stats.passed_over.empty_requests += 1;
                    }
                    self.begun = false;
                    rest = frame.rest;
                }
                Outcome::Incomplete { .. } => {
                    self.begun = true;
                    break Stop::Incomplete;
                }
                Outcome::Invalid(error) => {
                    let expected = lacks::expected(error.kind);
                    let which = lacks::resp(rest).argument_text();
                    let found = found_at(rest, error.offset);
                    let name = error.kind.name();
                    break wrong(error.offset, format!("expected {expected}{which}, found {found} ({name})"));
                }
            }
        };
        (input.len() - rest.len(), stop)
    }

    fn missing(&self, rest: &[u8]) -> String {
        if rest[0] == b'#' {
            return "the end of the annotation's line".into();
        }
        if rest[0] != b'*' {
            return "the end of the inline command's line".into();
        }
        lacks::resp(rest).text()
    }

    fn stats(&mut self) -> &mut Stats {
        &mut self.stats
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }
}
