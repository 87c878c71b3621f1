//! Owns the prompt: what a line does, what the prompt says, the history. Does not own the editing of lines nor the
//! connection.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{ColorMode, CompletionType, Editor};
use weft_client::{Config, Error, Protocol, Reply};

use super::editor::Assistant;
use super::flags::Options;
use super::line::{self, Line, Setting};
use super::link::{Interrupts, Link, Outcome};
use super::once::shown_parts;
use super::output::{Format, Style};
use super::words::{self, Word};
use super::{CLEAR, colors, could_not_connect, help, pager, peek, target, without_reply};

/// Lines that the history keeps.
const HISTORY_MAX: usize = 10_000;
/// Rows of a terminal that does not say how many it has.
const USUAL_ROWS: usize = 24;

/// What a prompt has.
struct Repl {
    link: Link,
    format: Format,
    /// What is shown longer than the screen with.
    pager: Option<String>,
    editor: Editor<Assistant, DefaultHistory>,
    history: Option<PathBuf>,
}

/// Whether the prompt goes on.
enum Then {
    Go,
    Leave,
}

/// The prompt, until it is left.
pub(super) fn run(options: &Options, config: Config, format: Format) -> Result<ExitCode> {
    let settings = rustyline::Config::builder()
        .max_history_size(HISTORY_MAX)?
        .history_ignore_dups(true)?
        .completion_type(CompletionType::List)
        .color_mode(if colors() { ColorMode::Enabled } else { ColorMode::Disabled })
        .build();
    let mut editor = Editor::with_config(settings)?;
    editor.set_helper(Some(Assistant::new(colors())));
    let history = history_file();
    if let Some(path) = &history {
        // There is none at first, and one that cannot be read is not worth an error.
        let _ = editor.load_history(path);
    }
    let link = Link::new(config, Some(Interrupts::new()?), options.cluster);
    let pager = options.pager.clone().or_else(|| std::env::var("WEFTCLI_PAGER").ok());
    let pager = pager.filter(|program| !program.is_empty());
    let mut repl = Repl { link, format, pager, editor, history };
    if let Err(error) = repl.link.ready() {
        eprintln!("{}", could_not_connect(repl.link.config(), &error));
        // A protocol that the server does not have will not come by waiting.
        if matches!(error, Error::NoProtocol { .. } | Error::Config(_)) {
            return Ok(ExitCode::FAILURE);
        }
    }
    while let Then::Go = repl.turn()? {}
    Ok(ExitCode::SUCCESS)
}

/// `~/.weftcli_history`, or what WEFTCLI_HISTFILE says; `/dev/null` or nothing there for none.
fn history_file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("WEFTCLI_HISTFILE") {
        return Some(PathBuf::from(path))
            .filter(|path| !path.as_os_str().is_empty() && *path != *"/dev/null");
    }
    std::env::home_dir().map(|home| home.join(".weftcli_history"))
}

impl Repl {
    /// What is typed before Enter: one line, or several that were pasted. Each is a command of its own; none is joined
    /// to another.
    fn turn(&mut self) -> Result<Then> {
        let mut ready = self.link.ready().map(drop);
        if let Err(error @ Error::TransactionLost(_)) = ready {
            self.report(&error);
            ready = self.link.ready().map(drop);
        }
        let connected = ready.is_ok();
        if connected {
            let format = self.format.clone();
            self.link.pushes(&mut |push| show(&format, push));
        }
        let prompt = self.prompt(connected);
        let server = connected.then(|| self.link.session().restored(self.link.config()));
        if let Some(assistant) = self.editor.helper() {
            assistant.set_server(server);
        }
        let line = match self.editor.readline(&prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => return Ok(Then::Go),
            Err(ReadlineError::Eof) => return Ok(Then::Leave),
            Err(error) => return Err(error.into()),
        };
        self.link.forget_interrupts();
        for line in line.split(['\n', '\r']) {
            if let Then::Leave = self.line(line)? {
                return Ok(Then::Leave);
            }
        }
        Ok(Then::Go)
    }

    fn line(&mut self, line: &str) -> Result<Then> {
        let words = words::split(line);
        if words.is_empty() {
            return Ok(Then::Go);
        }
        self.remember(line, &words);
        if words.iter().any(|word| word.broken) {
            println!("Invalid argument(s)");
            return Ok(Then::Go);
        }
        let (line, program) = pager::split(line, &words);
        let words = words::split(line);
        if words.is_empty() {
            return Ok(Then::Go);
        }
        let third = words.get(2).map_or(line.len(), |word| word.start);
        let words: Vec<Vec<u8>> = words.into_iter().map(|word| word.text).collect();
        match line::parse(&words) {
            Line::Quit => return Ok(Then::Leave),
            Line::Clear => print!("{CLEAR}"),
            Line::Help(of) => self.put(help::text(of).as_bytes(), program),
            Line::Wrong(why) => println!("{why}"),
            Line::Connect(address) => {
                self.link.connect(address);
                if let Err(error) = self.link.ready() {
                    self.report(&error);
                }
            }
            Line::Peek(key) => match peek::text(&mut self.link, key) {
                Ok(text) => self.put(&text, program),
                Err(error) => self.report(&error),
            },
            Line::Set(Setting::Pager(true)) => {
                // As it was typed: the quotes are for the shell.
                self.pager = Some(line[third..].trim().to_string());
            }
            Line::Set(Setting::Pager(false)) => self.pager = None,
            Line::Set(Setting::Hints(on)) => {
                if let Some(assistant) = self.editor.helper_mut() {
                    assistant.hints = on;
                }
            }
            Line::Command(times, args) => {
                for _ in 0..times {
                    if !self.once(args, program) {
                        break;
                    }
                }
            }
        }
        Ok(Then::Go)
    }

    /// `127.0.0.1:6379#7[2](TX)> `: the server, the channel, the database, an open transaction.
    fn prompt(&self, connected: bool) -> String {
        if !connected {
            return "not connected> ".into();
        }
        let (config, session) = (self.link.config(), self.link.session());
        let mut prompt = target::name(config);
        if session.protocol() == Protocol::Respb && config.channel != 0 {
            prompt.push_str(&format!("#{}", config.channel));
        }
        if session.db() != 0 {
            prompt.push_str(&format!("[{}]", session.db()));
        }
        if session.in_transaction() {
            prompt.push_str("(TX)");
        }
        if session.subscriptions() > 0 {
            prompt.push_str("(subscribed mode)");
        }
        prompt + "> "
    }

    /// Keeps a line for later, unless it has a password in it or begins with a blank.
    fn remember(&mut self, line: &str, words: &[Word]) {
        if line.starts_with(' ') || has_secret(words) {
            return;
        }
        // A history that cannot be written does not stop anybody.
        let _ = self.editor.add_history_entry(line);
        if let Some(path) = &self.history {
            let _ = self.editor.append_history(path);
        }
    }

    /// Runs a command and shows what comes of it; false when a repetition makes no sense.
    fn once(&mut self, args: &[Vec<u8>], program: Option<&str>) -> bool {
        let format = self.format.clone();
        let reply = match self.link.run(args, &mut |push| show(&format, push)) {
            Ok(Outcome::Reply(reply)) => reply,
            // The next prompt says that nobody is there.
            Ok(Outcome::Ended) => return false,
            Ok(Outcome::Interrupted) => {
                println!("(interrupted; the connection is made again)");
                return false;
            }
            Err(error) => {
                self.report(&error);
                return false;
            }
        };
        // What a program reads are the values, unless a format was asked for.
        let style = match (program, self.format.style) {
            (Some(_), Style::Standard) => Style::Raw,
            (_, style) => style,
        };
        let format = Format { style, ..self.format.clone() }.of_command(args);
        let parts = shown_parts(args, &reply).into_iter();
        let bytes: Vec<u8> = parts.flat_map(|part| format.reply(part)).collect();
        self.put(&bytes, program);
        if self.link.session().is_monitoring() || self.link.session().subscriptions() > 0 {
            self.listen();
        }
        true
    }

    /// Shows messages, or lines of MONITOR, until Ctrl-C.
    fn listen(&mut self) {
        if !self.link.session().is_monitoring() {
            println!("Reading messages... (press Ctrl-C to quit)");
        }
        let format = self.format.clone();
        let ended = self.link.listen(&mut |push| show(&format, push));
        println!();
        if let Err(error) = ended.and_then(|()| self.link.stop_listening()) {
            self.report(&error);
        }
    }

    fn put(&mut self, bytes: &[u8], program: Option<&str>) {
        let result = match program {
            Some(program) => pager::through(program, bytes),
            None => {
                let rows = self.editor.dimensions().map_or(USUAL_ROWS, |(_, rows)| usize::from(rows));
                pager::print(self.pager.as_deref(), rows, bytes)
            }
        };
        if let Err(error) = result {
            eprintln!("Error: {error}");
        }
    }

    fn report(&self, error: &Error) {
        println!("{}", without_reply(self.link.config(), error));
    }
}

fn show(format: &Format, push: &Reply) {
    // A terminal that is gone ends the prompt at the next line.
    let _ = pager::print(None, 0, &format.push(push));
}

/// Lines that redis-cli, too, keeps out of its history.
fn has_secret(words: &[Word]) -> bool {
    let is = |index: usize, word: &str| words.get(index).is_some_and(|typed| typed.is(word));
    let any = |word: &str| words.iter().any(|typed| typed.is(word));
    is(0, "AUTH")
        || (is(0, "ACL") && is(1, "SETUSER"))
        || (is(0, "HELLO") && any("AUTH"))
        || (is(0, "MIGRATE") && (any("AUTH") || any("AUTH2")))
        || (is(0, "CONFIG")
            && is(1, "SET")
            && words.iter().any(|word| {
                let name = word.text.to_ascii_lowercase();
                [&b"requirepass"[..], b"masterauth", b"masteruser", b"primaryauth"].contains(&&name[..])
                    || name.ends_with(b"key-file-pass")
            }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_passwords_are_not_kept() {
        let secret = |line| has_secret(&words::split(line));
        for line in [
            "auth secret",
            "HELLO 3 AUTH u p",
            "acl setuser alice >x",
            "config set requirepass x",
            "CONFIG SET tls-key-file-pass x",
            "MIGRATE h 1 k 0 1 AUTH x",
        ] {
            assert!(secret(line), "{line}");
        }
        for line in ["get auth", "HELLO 3", "acl list", "config set save x", "config get requirepass"] {
            assert!(!secret(line), "{line}");
        }
    }
}
