//! Owns `--pipe`: standard input's commands in RESP or RESPB, sent over any protocol. Does not own sending them
//! (`insert`), nor the encodings.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use weft_client::Connection;
use weft_protocol::request::{ArgList, Decoded};
use weft_protocol::{Limits, Outcome, resp, respb};

use super::flags::Options;
use crate::insert::{self, Commands};
use crate::window::Window;

/// The commands of standard input, in whichever protocol they are.
struct Input {
    window: Window,
    wire: Option<Wire>,
    args: ArgList,
}

enum Wire {
    Resp(resp::RequestDecoder),
    Respb(Box<respb::RequestDecoder>),
}

impl Commands for Input {
    fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        self.args.clear();
        loop {
            if self.window.bytes().is_empty() && !self.window.fill()? {
                return Ok(None);
            }
            match self.decode() {
                Outcome::Complete((len, name)) => {
                    let command = name.map(|name| name.as_bytes().to_vec()).into_iter();
                    let frame = &self.window.bytes()[..len];
                    let decoded = Decoded { list: &self.args, frame };
                    let args = decoded.list.iter(frame).map(|arg| {
                        let mut text = Vec::new();
                        arg.push_text(&mut text);
                        text
                    });
                    let args: Vec<_> = command.chain(args).collect();
                    self.window.consume(len);
                    self.args.clear();
                    // An empty line, or a control frame: nothing to send.
                    if !args.is_empty() {
                        return Ok(Some(args));
                    }
                }
                Outcome::Incomplete { .. } => {
                    if !self.window.fill()? {
                        let left = self.window.bytes().len();
                        bail!("the input ends inside a command, {left} bytes after its start");
                    }
                }
                Outcome::Invalid(error) => {
                    bail!("the input is malformed in the command at byte {}: {error}", self.window.offset())
                }
            }
        }
    }

    fn offset(&self) -> u64 {
        self.window.offset()
    }
}

impl Input {
    /// Reads the frame at the start of the window: its length, and its name if that is not among the arguments.
    fn decode(&mut self) -> Outcome<(usize, Option<&'static str>)> {
        let bytes = self.window.bytes();
        let wire = self.wire.get_or_insert_with(|| match bytes.first() {
            Some(0..=7 | 0xF0..=0xFF) => Wire::Respb(Box::new(respb::RequestDecoder::new(Limits::DEFAULT))),
            _ => Wire::Resp(resp::RequestDecoder::new(Limits::DEFAULT)),
        });
        match wire {
            Wire::Resp(decoder) => match decoder.decode(bytes, &mut self.args) {
                Outcome::Complete(frame) => Outcome::Complete((frame.len, None)),
                Outcome::Incomplete { need } => Outcome::Incomplete { need },
                Outcome::Invalid(error) => Outcome::Invalid(error),
            },
            Wire::Respb(decoder) => match decoder.decode(bytes, &mut self.args) {
                Outcome::Complete(request) => {
                    Outcome::Complete((request.len, request.frame.command().map(|id| id.spec().name)))
                }
                Outcome::Incomplete { need } => Outcome::Incomplete { need },
                Outcome::Invalid(error) => Outcome::Invalid(error),
            },
        }
    }
}

/// Sends everything and waits for all replies. Status 1 when there was an error.
pub(super) fn run(options: &Options, connection: &mut Connection) -> Result<ExitCode> {
    let silence = (options.pipe_timeout > 0).then(|| Duration::from_secs(options.pipe_timeout));
    let window = Window::new(Box::new(std::io::stdin()));
    let mut input = Input { window, wire: None, args: ArgList::new() };
    let sent = insert::send_all(&mut input, connection, silence, None);
    println!("errors: {}, replies: {}", sent.errors, sent.replies);
    Ok(sent.status())
}
