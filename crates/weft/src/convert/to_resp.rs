//! RESPB to RESP: the commands of one channel, or of each channel for itself; of a log of Weft, whose channels are
//! databases, all of them with SELECT between.
//!
//! Owns which channel's commands are written. A frame of a second channel that nobody asked for stops the writing; the
//! rest is read only to tell which channels there are.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use weft_protocol::request::{ArgList, Arguments as _, Decoded};
use weft_protocol::respb::frame::LONG_HEADER_LEN;
use weft_protocol::respb::{Frame, RequestDecoder, RequestFrame};
use weft_protocol::{Arg, Limits, Outcome, resp};

use super::sink::{Sink, WRITE_BYTES};
use super::stats::{Form, Stats};
use super::{Converter, Stop, Wrong};
use crate::lacks;
use crate::text::grouped;

/// Channels that an error lists.
const CHANNELS_LISTED_MAX: usize = 20;

pub(super) struct ToResp {
    decoder: RequestDecoder,
    limits: Limits,
    args: ArgList,
    /// Inside a frame whose first arguments are in `args` already.
    begun: bool,
    /// The channel that was asked for.
    wanted: Option<u16>,
    /// The channel of the first command.
    first: Option<u16>,
    /// Channels are databases: the one that was selected last.
    database: Option<u16>,
    /// Once there is a second channel: the commands of each.
    channels: BTreeMap<u16, u64>,
    /// Commands of the first channel before that.
    written: u64,
    stats: Stats,
}

impl ToResp {
    pub(super) fn new(wanted: Option<u16>, is_log: bool, limits: Limits) -> ToResp {
        ToResp {
            decoder: RequestDecoder::new(limits),
            limits,
            args: ArgList::new(),
            begun: false,
            wanted,
            first: None,
            database: is_log.then_some(0),
            channels: BTreeMap::new(),
            written: 0,
            stats: Stats::new(),
        }
    }

    fn frame(&mut self, bytes: &[u8], frame: &RequestFrame<'_>, sink: &mut Sink) {
        match frame.frame {
            Frame::Control(_) => self.stats.passed_over.control_frames += 1,
            Frame::Unknown { .. } => self.stats.passed_over.unknown_frames += 1,
            _ if !self.takes(frame.channel, sink.is_split()) => self.stats.passed_over.other_channels += 1,
            _ => {
                let before = sink.buffer.len();
                if self.database.is_some_and(|database| database != frame.channel) && !sink.is_split() {
                    self.database = Some(frame.channel);
                    let number = frame.channel.to_string();
                    let select = [Arg::Bytes(b"SELECT"), Arg::Bytes(number.as_bytes())];
                    resp::encode::request(None, &select[..], &mut sink.buffer);
                }
                self.command(bytes, frame, &mut sink.buffer);
                sink.assign(frame.channel, before);
            }
        }
    }

    /// Whether the commands of this channel are written.
    fn takes(&mut self, channel: u16, split: bool) -> bool {
        if let Some(wanted) = self.wanted {
            return channel == wanted;
        }
        if split || self.database.is_some() {
            return true;
        }
        let first = *self.first.get_or_insert(channel);
        if channel == first && self.channels.is_empty() {
            self.written += 1;
            return true;
        }
        self.channels.entry(first).or_insert(self.written);
        *self.channels.entry(channel).or_insert(0) += 1;
        false
    }

    fn command(&mut self, bytes: &[u8], frame: &RequestFrame<'_>, out: &mut Vec<u8>) {
        let argv = Decoded { list: &self.args, frame: bytes };
        let before = out.len();
        if let Some(id) = frame.frame.command() {
            resp::encode::request(Some(id.spec().name.as_bytes()), &argv, out);
            return self.stats.known(id, Form::Typed, frame.len, out.len() - before);
        }
        let form = if frame.frame == Frame::Passthrough {
            out.extend_from_slice(&bytes[LONG_HEADER_LEN..frame.len]);
            Form::Passthrough
        } else {
            resp::encode::request(None, &argv, out);
            Form::Argv
        };
        if let Arg::Bytes(name) = argv.arg(0) {
            self.stats.named(name, form, frame.len, out.len() - before);
        }
    }
}

impl Converter for ToResp {
    fn feed(&mut self, input: &[u8], sink: &mut Sink) -> (usize, Stop) {
        let mut rest = input;
        let stop = loop {
            if sink.buffer.len() >= WRITE_BYTES {
                break Stop::Full;
            }
            if !self.begun {
                self.args.clear();
            }
            match self.decoder.decode(rest, &mut self.args) {
                Outcome::Complete(frame) => {
                    self.frame(rest, &frame, sink);
                    self.begun = false;
                    rest = frame.rest;
                }
                Outcome::Incomplete { .. } => {
                    self.begun = true;
                    break Stop::Incomplete;
                }
                Outcome::Invalid(error) => {
                    let what = lacks::respb_wrong(rest, error, self.limits);
                    break Stop::Wrong(Wrong { at: error.offset, what });
                }
            }
        };
        (input.len() - rest.len(), stop)
    }

    fn missing(&self, rest: &[u8]) -> String {
        lacks::respb(rest, self.limits)
    }

    fn stats(&mut self) -> &mut Stats {
        &mut self.stats
    }

    fn finish(&self) -> Result<()> {
        if self.channels.is_empty() {
            return Ok(());
        }
        let listed: Vec<String> = self
            .channels
            .iter()
            .take(CHANNELS_LISTED_MAX)
            .map(|(channel, count)| format!("{channel} ({} commands)", grouped(*count)))
            .collect();
        let more = self.channels.len().saturating_sub(CHANNELS_LISTED_MAX);
        let more = if more > 0 { format!(" and {} more", grouped(more as u64)) } else { String::new() };
        bail!(
            "the stream has {} channels: {}{more}; choose one with --channel N, or write a file for each with --split DIR. \
             What stood before the first command of a second channel was written",
            grouped(self.channels.len() as u64),
            listed.join(", "),
        )
    }
}
