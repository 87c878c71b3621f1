//! Owns `--pipe`: mass insertion of commands in RESP or RESPB over any protocol, with progress and a count of errors.
//! Does not own the encodings.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use weft_client::{Connection, Error, Event, Reply};
use weft_protocol::request::{ArgList, Decoded};
use weft_protocol::{Limits, Outcome, resp, respb};

use super::flags::Options;
use crate::text::grouped;
use crate::window::Window;

/// Requests that are under way at a time.
const UNANSWERED_MAX: u64 = 100_000;
/// Requests between two looks at what has been answered.
const BATCH: u64 = 256;
/// Errors that are printed; the others are counted.
const ERRORS_SHOWN_MAX: u64 = 20;

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

impl Input {
    /// The next command as arguments; none at the end.
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

/// What has been sent and answered.
struct Progress {
    sent: u64,
    replies: u64,
    errors: u64,
    shown_at: Option<Instant>,
}

/// Sends everything and waits for all replies. Status 1 when there was an error.
pub(super) fn run(options: &Options, connection: &mut Connection) -> Result<ExitCode> {
    let silence = (options.pipe_timeout > 0).then(|| Duration::from_secs(options.pipe_timeout));
    let window = Window::new(Box::new(std::io::stdin()));
    let mut input = Input { window, wire: None, args: ArgList::new() };
    let show = std::io::stderr().is_terminal();
    let mut progress = Progress { sent: 0, replies: 0, errors: 0, shown_at: show.then(Instant::now) };
    let outcome = transfer(&mut input, connection, &mut progress, silence);
    if show {
        eprint!("\r\x1b[2K");
    }
    // What was sent before the input broke is still answered.
    let rest = match outcome {
        Ok(()) => {
            eprintln!("All data transferred. Waiting for the last reply...");
            progress.receive_all(connection, 0, silence)
        }
        Err(error) => {
            eprintln!("Error: {error:#}");
            progress.errors += 1;
            match error.downcast_ref::<Error>() {
                Some(_) => Ok(()),
                None => progress.receive_all(connection, 0, silence),
            }
        }
    };
    match rest {
        Ok(()) if progress.replies == progress.sent => eprintln!("Last reply received from server."),
        Ok(()) => {}
        Err(error) => {
            eprintln!("Error: {error:#}");
            progress.errors += 1;
        }
    }
    println!("errors: {}, replies: {}", progress.errors, progress.replies);
    if progress.replies < progress.sent {
        println!("{} commands were sent and not answered", grouped(progress.sent - progress.replies));
    }
    Ok(if progress.errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn transfer(
    input: &mut Input,
    connection: &mut Connection,
    progress: &mut Progress,
    silence: Option<Duration>,
) -> Result<()> {
    while let Some(args) = input.next()? {
        match connection.send(&args) {
            Ok(_) => progress.sent += 1,
            // A command that this client does not send: the rest goes on.
            Err(error @ Error::Config(_)) => progress.error(&error.to_string()),
            Err(error) => return Err(error.into()),
        }
        if progress.sent.is_multiple_of(BATCH) {
            progress.receive_what_came(connection)?;
            progress.show();
        }
        if progress.sent - progress.replies >= UNANSWERED_MAX {
            progress.receive_all(connection, UNANSWERED_MAX / 2, silence)?;
        }
    }
    Ok(())
}

impl Progress {
    fn reply(&mut self, reply: &Reply) {
        self.replies += 1;
        if let Reply::Error(text) = reply {
            self.error(&String::from_utf8_lossy(text));
        }
    }

    fn error(&mut self, text: &str) {
        self.errors += 1;
        if self.errors <= ERRORS_SHOWN_MAX {
            eprintln!("{text}");
        }
        if self.errors == ERRORS_SHOWN_MAX {
            eprintln!("(more errors are counted, and not shown)");
        }
    }

    fn receive_what_came(&mut self, connection: &mut Connection) -> Result<()> {
        while let Some(event) = connection.next_event(Some(Duration::ZERO))? {
            if let Event::Reply(reply) = event {
                self.reply(&reply);
            }
        }
        Ok(())
    }

    /// Receives until no more than so many replies are due.
    fn receive_all(
        &mut self,
        connection: &mut Connection,
        due_max: u64,
        silence: Option<Duration>,
    ) -> Result<()> {
        while self.sent - self.replies > due_max {
            match connection.next_event(silence)? {
                Some(Event::Reply(reply)) => self.reply(&reply),
                Some(Event::Push(_)) => {}
                None => {
                    let seconds = silence.unwrap_or_default().as_secs();
                    return Err(anyhow::anyhow!("No replies for {seconds} seconds: exiting."))
                        .context("the server does not answer");
                }
            }
            self.show();
        }
        Ok(())
    }

    /// A line of progress, ten times a second.
    fn show(&mut self) {
        let Some(at) = &mut self.shown_at else { return };
        if at.elapsed() < Duration::from_millis(100) {
            return;
        }
        *at = Instant::now();
        let (sent, replies, errors) = (grouped(self.sent), grouped(self.replies), grouped(self.errors));
        eprint!("\r\x1b[2Ksent: {sent}, replies: {replies}, errors: {errors}");
    }
}
