//! RESP to RESPB: the typed layout where it gives back these very bytes, ARGV otherwise.
//!
//! Owns what may stand between commands: annotations, empty requests and, where allowed, inline commands.

use anyhow::Result;
use weft_protocol::request::{ArgList, Arguments as _, Decoded};
use weft_protocol::resp::RequestDecoder;
use weft_protocol::respb::{Mode, RequestWriter};
use weft_protocol::{Arg, Limits, Outcome};

use super::sink::{Sink, WRITE_BYTES};
use super::stats::{Form, Stats};
use super::{Converter, Stop, Wrong, lacks};
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
                        ANNOTATION_BYTES_MAX => wrong(0, "expected an annotation of at most 1024 bytes".into()),
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
                Err(wrong(0, format!("expected '*' and a number of arguments, found {}{hint}", found_at(rest, 0))))
            }
        }
    }

    fn encode(&mut self, frame: &[u8], len: usize, out: &mut Vec<u8>) {
        let argv = Decoded { list: &self.args, frame };
        let before = out.len();
        let typed = RequestWriter::new(out, self.channel).arguments(&argv, Mode::Exact);
        let form = if typed { Form::Typed } else { Form::Argv };
        if let Arg::Bytes(name) = argv.arg(0) {
            self.stats.named(name, form, len, out.len() - before);
        }
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
