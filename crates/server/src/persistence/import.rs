//! Owns: running the commands that a server is to begin with (`weft serve --import`), before any client runs one. Does
//! not own: where they come from (whoever gives them), what follows for the log (`super`).

use std::io;
use std::sync::Arc;
use std::time::Instant;

use weft_engine::args::{OwnedArgs, find};
use weft_engine::mailbox::Address;
use weft_engine::reply::Output;
use weft_engine::requests::What;
use weft_engine::{Engine, Executor, Postponed};

use super::load::Progress;
use crate::notice;

/// Bytes of a command's name, and of its first argument, that an error shows.
const SHOWN_BYTES_MAX: usize = 80;

/// What a server begins with: commands of another server's data.
pub struct Import {
    /// What it is, for people.
    pub name: String,
    /// Bytes of it, where that is known.
    pub bytes: Option<u64>,
    /// The next command; nothing at the end. An error names its file.
    pub next: Box<dyn FnMut() -> Result<Option<ImportCommand>, String> + Send>,
}

/// A command of it.
#[derive(Debug)]
pub struct ImportCommand {
    /// Its words.
    pub words: Vec<Vec<u8>>,
    /// Bytes that were read so far, of all files.
    pub read: u64,
    /// The file in which it stands.
    pub file: Arc<str>,
    /// The byte of that where it begins.
    pub at: u64,
}

impl std::fmt::Debug for Import {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Import").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs all of it. Whatever a command answers but an error is as it should be.
pub(super) fn import(engine: &'static Engine, mut import: Import) -> io::Result<()> {
    notice!("Importing {}", import.name);
    let started = Instant::now();
    let address = Address { worker: 0, connection: u32::MAX, channel: 0 };
    let mut session = engine.loading_session(address);
    let no_place = || io::Error::other("the engine has no place for the import");
    let mut executor = Executor::new(engine, 0, 1).ok_or_else(no_place)?;
    let (mut output, mut progress, mut count) = (Output::default(), Progress::new(), 0_u64);
    let result = loop {
        let ImportCommand { words, read, file, at } = match (import.next)() {
            Ok(Some(next)) => next,
            Ok(None) => break Ok(()),
            Err(why) => break Err(why),
        };
        progress.show(engine, (read, import.bytes.unwrap_or(read)));
        count += 1;
        let first = words.get(1).map(Vec::as_slice);
        let Some(id) = words.first().and_then(|name| find(name, first)) else {
            break Err(format!("{file}: byte {at}: there is no command {}", shown(&words)));
        };
        session.hold_back();
        let args = OwnedArgs::new(id.spec(), words.iter().map(Vec::as_slice));
        let postponed = Postponed { what: What::Command(id), args, until_ms: 0, turn: false };
        executor.run_owned(&postponed, &mut session, &mut output);
        if output.bytes.first() == Some(&b'-') {
            let error = output.bytes[1..].trim_ascii_end().escape_ascii();
            break Err(format!("{file}: byte {at}: {} answers {error}", shown(&words)));
        }
        output.clear();
    };
    executor.disconnect(session);
    result.map_err(io::Error::other)?;
    notice!("{count} commands of {} were run in {:.1} s", import.name, started.elapsed().as_secs_f64());
    Ok(())
}

/// The name and the first argument, whatever bytes they are.
fn shown(words: &[Vec<u8>]) -> String {
    let one = |word: &Vec<u8>| {
        let cut = if word.len() > SHOWN_BYTES_MAX { "…" } else { "" };
        format!("{}{cut}", word[..word.len().min(SHOWN_BYTES_MAX)].escape_ascii())
    };
    let shown: Vec<_> = words.iter().take(2).map(one).collect();
    format!("'{}{}'", shown.join(" "), if words.len() > 2 { " …" } else { "" })
}
