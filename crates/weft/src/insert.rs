//! Owns: sending very many commands over one connection, with progress and a count of errors. Does not own where they
//! come from.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use weft_client::{Connection, Error, Event, Reply};

use crate::progress::Progress;
use crate::text::{grouped, quoted};

/// Requests that are under way at a time.
const UNANSWERED_MAX: u64 = 100_000;
/// Requests between two looks at what has been answered.
const BATCH: u64 = 256;
/// Errors that are printed; the others are counted.
pub(crate) const ERRORS_SHOWN_MAX: u64 = 20;
/// Bytes of a command that an error shows.
const COMMAND_SHOWN_BYTES_MAX: usize = 60;

/// Commands, one after the other.
pub(crate) trait Commands {
    /// The next command as arguments; none at the end.
    fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>>;
    /// Bytes of the input that have been used.
    fn offset(&self) -> u64;
    /// The file and the byte in it where the command that came last begins: an error is told with them and with the
    /// command that it answers. Else the server's text stands alone.
    fn place(&self) -> Option<(Arc<str>, u64)> {
        None
    }
}

/// What became of the commands.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) sent: u64,
    pub(crate) replies: u64,
    pub(crate) errors: u64,
    /// Commands that are not answered yet, the oldest first, where errors name them.
    unanswered: VecDeque<(Arc<str>, u64, Box<[u8]>)>,
}

/// Sends everything and waits for all replies, with errors and progress on standard error. Nothing for so long ends it.
/// Where no total is known this is `--pipe`, which says on the standard output how far it is, as redis-cli's does.
pub(crate) fn send_all(
    commands: &mut dyn Commands,
    connection: &mut Connection,
    silence: Option<Duration>,
    total: Option<u64>,
) -> Sent {
    let mut sent = Sent::default();
    let mut progress = Progress::new(total);
    let outcome = sent.transfer(commands, connection, &mut progress, silence);
    progress.clear();
    // What was sent before the input broke is still answered.
    let rest = match outcome {
        Ok(()) => {
            match total {
                None => println!("All data transferred. Waiting for the last reply..."),
                Some(_) if std::io::stderr().is_terminal() => {
                    eprintln!("All data transferred. Waiting for the last reply...");
                }
                Some(_) => {}
            }
            sent.receive_all(connection, 0, silence)
        }
        Err(error) => {
            eprintln!("Error: {error:#}");
            sent.errors += 1;
            match error.downcast_ref::<Error>() {
                Some(_) => Ok(()),
                None => sent.receive_all(connection, 0, silence),
            }
        }
    };
    match rest {
        Ok(()) if sent.replies == sent.sent && total.is_none() => {
            println!("Last reply received from server.");
        }
        Ok(()) => {}
        Err(error) => {
            eprintln!("Error: {error:#}");
            sent.errors += 1;
        }
    }
    if sent.replies < sent.sent {
        println!("{} commands were sent and not answered", grouped(sent.sent - sent.replies));
    }
    sent
}

impl Sent {
    /// Status 1 when there was an error.
    pub(crate) fn status(&self) -> ExitCode {
        if self.errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn transfer(
        &mut self,
        commands: &mut dyn Commands,
        connection: &mut Connection,
        progress: &mut Progress,
        silence: Option<Duration>,
    ) -> Result<()> {
        while let Some(args) = commands.next()? {
            match connection.send(&args) {
                Ok(_) => {
                    self.sent += 1;
                    if let Some((file, at)) = commands.place() {
                        self.unanswered.push_back((file, at, shown(&args)));
                    }
                }
                // A command that this client does not send: the rest goes on.
                Err(error @ Error::Config(_)) => self.error(&error.to_string()),
                Err(error) => return Err(error.into()),
            }
            if self.sent.is_multiple_of(BATCH) {
                self.receive_what_came(connection)?;
                progress.show(commands.offset());
            }
            if self.sent - self.replies >= UNANSWERED_MAX {
                self.receive_all(connection, UNANSWERED_MAX / 2, silence)?;
            }
        }
        Ok(())
    }

    fn reply(&mut self, reply: &Reply) {
        self.replies += 1;
        let command = self.unanswered.pop_front();
        if let Reply::Error(text) = reply {
            let text = String::from_utf8_lossy(text);
            match command {
                Some((file, at, command)) => {
                    let command = String::from_utf8_lossy(&command);
                    self.error(&format!("{file}: byte {at}: {command}: {text}"));
                }
                None => self.error(&text),
            }
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
        }
        Ok(())
    }
}

/// The name and the first argument of a command.
fn shown(args: &[Vec<u8>]) -> Box<[u8]> {
    let mut text = String::from_utf8_lossy(args.first().map_or(&[][..], |name| name)).into_owned();
    if let Some(first) = args.get(1) {
        text.push(' ');
        text.push_str(&quoted(first, COMMAND_SHOWN_BYTES_MAX));
    }
    text.into_bytes().into()
}
