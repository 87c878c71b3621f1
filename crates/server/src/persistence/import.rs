//! Owns: running the commands that a server is to begin with (`weft serve --import`), before any client runs one. Does
//! not own: where they come from (whoever gives them), what follows for the log (`super`).

use std::io;
use std::time::Instant;

use weft_engine::args::OwnedArgs;
use weft_engine::mailbox::Address;
use weft_engine::reply::Output;
use weft_engine::requests::What;
use weft_engine::{Engine, Executor, Postponed, inner};

use super::load::Progress;
use crate::notice;

/// Bytes of a command that an error shows.
const SHOWN_BYTES_MAX: usize = 80;

/// What a server begins with: commands of another server's data.
pub struct Import {
    /// What it is, for people.
    pub name: String,
    /// Bytes of it, where that is known.
    pub bytes: Option<u64>,
    /// The next command, and how many bytes were read so far; nothing at the end. An error names its file.
    #[allow(clippy::type_complexity, reason = "one place")]
    pub next: Box<dyn FnMut() -> Result<Option<(Vec<Vec<u8>>, u64)>, String> + Send>,
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
        let (words, offset) = match (import.next)() {
            Ok(Some(next)) => next,
            Ok(None) => break Ok(()),
            Err(why) => break Err(why),
        };
        progress.tell(engine, (offset, import.bytes.unwrap_or(offset)));
        count += 1;
        let first = words.get(1).map(Vec::as_slice);
        let Some(id) = words.first().and_then(|name| inner::find(name, first)) else {
            break Err(format!("{}: there is no command {}", import.name, shown(&words)));
        };
        session.hold_back();
        let args = OwnedArgs::new(id.spec(), words.iter().map(Vec::as_slice));
        let postponed = Postponed { what: What::Command(id), args, until_ms: 0, turn: false };
        executor.run_owned(&postponed, &mut session, &mut output);
        if output.bytes.first() == Some(&b'-') {
            let error = String::from_utf8_lossy(&output.bytes).trim_end().to_owned();
            break Err(format!("{}: {} answers {error}", import.name, shown(&words)));
        }
        output.clear();
    };
    executor.disconnect(session);
    result.map_err(io::Error::other)?;
    notice!("{count} commands of {} were run in {:.1} s", import.name, started.elapsed().as_secs_f64());
    Ok(())
}

fn shown(words: &[Vec<u8>]) -> String {
    let text = words.join(&b" "[..]);
    let cut = if text.len() > SHOWN_BYTES_MAX { "…" } else { "" };
    format!("'{}{cut}'", String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES_MAX)]).escape_debug())
}
