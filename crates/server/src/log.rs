//! Owns: the server's log: levels, formats, the file. Does not own: what is told.
//!
//! Lines are written one `write` each, so that lines of several threads do not mix; the log is for what happens rarely,
//! and nothing on the way of a command writes to it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use weft_engine::calendar;
use weft_engine::config::Values;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// For those who look for a fault in the server.
    Debug,
    /// What happens often.
    Verbose,
    /// What an operator wants to see.
    #[default]
    Notice,
    /// What an operator must see.
    Warning,
    /// More than any line: the log is off.
    Nothing,
}

/// What a line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// As Redis and Valkey write them: `1:M 01 Jan 2026 00:00:00.000 * text`.
    #[default]
    Legacy,
    /// `pid=1 role=primary timestamp="…" level=notice message="…"`.
    Logfmt,
    /// The same as a JSON object.
    Json,
}

/// What a time looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Timestamp {
    /// `01 Jan 2026 00:00:00.000`, in UTC.
    #[default]
    Legacy,
    /// `2026-01-01T00:00:00.000Z`.
    Iso8601,
    /// Milliseconds since 1970.
    Milliseconds,
}

/// How the log begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// `loglevel`.
    pub level: Level,
    /// `log-format`.
    pub format: Format,
    /// `log-timestamp-format`.
    pub timestamp: Timestamp,
    /// `logfile`; nothing is standard output.
    pub file: Option<PathBuf>,
}

const LEVELS: [(Level, &str, char); 5] = [
    (Level::Debug, "debug", '.'),
    (Level::Verbose, "verbose", '-'),
    (Level::Notice, "notice", '*'),
    (Level::Warning, "warning", '#'),
    (Level::Nothing, "nothing", ' '),
];

impl LogOptions {
    /// From the directives.
    #[must_use]
    pub fn new(values: &Values) -> Self {
        let text = |name: &str| values.get(name).str().into_owned();
        let file = text("logfile");
        Self {
            level: level(&text("loglevel")),
            format: format(&text("log-format")),
            timestamp: timestamp(&text("log-timestamp-format")),
            file: (!file.is_empty()).then(|| PathBuf::from(file)),
        }
    }
}

fn level(name: &str) -> Level {
    LEVELS.iter().find(|(_, other, _)| *other == name).map_or(Level::Notice, |(level, ..)| *level)
}
fn format(name: &str) -> Format {
    match name {
        "logfmt" => Format::Logfmt,
        "json" => Format::Json,
        _ => Format::Legacy,
    }
}
fn timestamp(name: &str) -> Timestamp {
    match name {
        "iso8601" => Timestamp::Iso8601,
        "milliseconds" => Timestamp::Milliseconds,
        _ => Timestamp::Legacy,
    }
}

/// A log.
#[derive(Debug)]
pub struct Log {
    level: AtomicU8,
    format: AtomicU8,
    timestamp: AtomicU8,
    /// Nothing is standard output.
    file: Option<LogFile>,
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    open: Mutex<File>,
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

impl Log {
    /// A log that writes to where the options say.
    ///
    /// # Errors
    /// When the file cannot be opened for appending.
    pub fn open(options: &LogOptions) -> io::Result<Self> {
        let file =
            |path: &PathBuf| open(path).map(|file| LogFile { path: path.clone(), open: Mutex::new(file) });
        Ok(Self {
            level: AtomicU8::new(options.level as u8),
            format: AtomicU8::new(options.format as u8),
            timestamp: AtomicU8::new(options.timestamp as u8),
            file: options.file.as_ref().map(file).transpose()?,
        })
    }
    /// Opens its file again, since somebody may have moved it away.
    ///
    /// # Errors
    /// When it cannot be opened: lines go to where they went.
    pub fn open_again(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let new = open(&file.path)?;
        *file.open.lock().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }
    /// CONFIG SET of a directive of the log; others are none of its business.
    pub fn set(&self, name: &str, value: &str) {
        match name {
            "loglevel" => self.level.store(level(value) as u8, Relaxed),
            "log-format" => self.format.store(format(value) as u8, Relaxed),
            "log-timestamp-format" => self.timestamp.store(timestamp(value) as u8, Relaxed),
            _ => {}
        }
    }
    /// Whether lines of this level are written.
    #[must_use]
    pub fn writes(&self, level: Level) -> bool {
        level as u8 >= self.level.load(Relaxed)
    }
    /// Writes a line.
    pub fn line(&self, level: Level, message: fmt::Arguments<'_>) {
        if !self.writes(level) || level == Level::Nothing {
            return;
        }
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as u64);
        let format =
            [Format::Legacy, Format::Logfmt, Format::Json][usize::from(self.format.load(Relaxed)) % 3];
        let timestamp = [Timestamp::Legacy, Timestamp::Iso8601, Timestamp::Milliseconds]
            [usize::from(self.timestamp.load(Relaxed)) % 3];
        let line = written(format, timestamp, level, now_ms, &message.to_string());
        // A log that cannot be written has nobody to tell.
        let _ = match &self.file {
            Some(file) => file.open.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes()),
            None => io::stdout().lock().write_all(line.as_bytes()),
        };
    }
}

static LOG: OnceLock<Log> = OnceLock::new();

/// Makes a log the one that the macros below write to. The first one stays.
pub fn install(log: Log) -> &'static Log {
    LOG.get_or_init(|| log)
}
/// The log, if one is installed.
#[must_use]
pub fn current() -> Option<&'static Log> {
    LOG.get()
}
/// Whether the installed log writes lines of this level.
#[must_use]
pub fn writes(level: Level) -> bool {
    LOG.get().is_some_and(|log| log.writes(level))
}
/// Writes a line to the installed log; without one it goes to standard output as it is.
pub fn line(level: Level, message: fmt::Arguments<'_>) {
    match LOG.get() {
        Some(log) => log.line(level, message),
        None => println!("{message}"),
    }
}

/// Tells an operator something.
#[macro_export]
macro_rules! notice {
    ($($arguments:tt)*) => { $crate::log::line($crate::log::Level::Notice, format_args!($($arguments)*)) };
}
/// Tells an operator something that needs a look.
#[macro_export]
macro_rules! warning {
    ($($arguments:tt)*) => { $crate::log::line($crate::log::Level::Warning, format_args!($($arguments)*)) };
}
/// Tells what happens often.
#[macro_export]
macro_rules! verbose {
    ($($arguments:tt)*) => { $crate::log::line($crate::log::Level::Verbose, format_args!($($arguments)*)) };
}

/// A line with its end.
fn written(format: Format, timestamp: Timestamp, level: Level, now_ms: u64, message: &str) -> String {
    let pid = std::process::id();
    let (_, name, sign) = LEVELS[level as usize];
    let time = shown(timestamp, now_ms);
    match format {
        Format::Legacy => {
            // A message of several lines stays several lines, as in Redis.
            format!("{pid}:M {time} {sign} {}\n", harmless(message))
        }
        Format::Logfmt => format!(
            "pid={pid} role=primary timestamp=\"{time}\" level={name} message=\"{}\"\n",
            escaped(message)
        ),
        Format::Json => format!(
            "{{\"pid\":{pid},\"role\":\"primary\",\"timestamp\":\"{time}\",\"level\":\"{name}\",\"message\":\"{}\"}}\n",
            escaped(message)
        ),
    }
}

/// Whether a letter does something to a terminal, or ends a line for some readers: C0, C1, and the separators of
/// Unicode.
const fn is_harmful(letter: char) -> bool {
    matches!(letter, '\0'..='\x1F' | '\x7F'..='\u{9F}' | '\u{2028}' | '\u{2029}')
}

/// Text that a client may have chosen, as a log may show it; the ends of lines and tabs stay.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let is_bad = |letter: char| is_harmful(letter) && letter != '\n' && letter != '\t';
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_bad(letter) {
            let _ = write!(safe, "\\u{:04x}", letter as u32);
        } else {
            safe.push(letter);
        }
    }
    Cow::Owned(safe)
}

/// Text between quotes, as JSON has it; logfmt reads the same.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            letter if is_harmful(letter) => {
                let _ = write!(escaped, "\\u{:04x}", letter as u32);
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

fn shown(timestamp: Timestamp, now_ms: u64) -> String {
    if timestamp == Timestamp::Milliseconds {
        return now_ms.to_string();
    }
    let (year, month, day) = calendar::date((now_ms / 86_400_000) as i64);
    let (s, ms) = (now_ms / 1000 % 86_400, now_ms % 1000);
    let (hour, minute, s) = (s / 3600, s / 60 % 60, s % 60);
    if timestamp == Timestamp::Iso8601 {
        return format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{s:02}.{ms:03}Z");
    }
    let name = calendar::MONTHS[month as usize - 1];
    format!("{day:02} {name} {year} {hour:02}:{minute:02}:{s:02}.{ms:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(shown(Timestamp::Iso8601, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(shown(Timestamp::Iso8601, 951_782_400_123), "2000-02-29T00:00:00.123Z");
        assert_eq!(shown(Timestamp::Legacy, 1_767_225_599_000), "31 Dec 2025 23:59:59.000");
        assert_eq!(shown(Timestamp::Milliseconds, 5), "5");
    }

    #[test]
    fn lines() {
        let line = |format| written(format, Timestamp::Milliseconds, Level::Warning, 7, "a \"b\"\n");
        let pid = std::process::id();
        assert_eq!(line(Format::Legacy), format!("{pid}:M 7 # a \"b\"\n\n"));
        assert_eq!(
            line(Format::Logfmt),
            format!("pid={pid} role=primary timestamp=\"7\" level=warning message=\"a \\\"b\\\"\\n\"\n")
        );
        assert_eq!(
            line(Format::Json),
            format!(
                "{{\"pid\":{pid},\"role\":\"primary\",\"timestamp\":\"7\",\"level\":\"warning\",\
                 \"message\":\"a \\\"b\\\"\\n\"}}\n"
            )
        );
    }

    #[test]
    fn what_clients_chose_does_nothing_to_a_terminal_and_ends_no_line() {
        let line = |format| {
            written(format, Timestamp::Milliseconds, Level::Warning, 7, "a\u{9b}31m\u{85}\x1b\u{2028}é")
        };
        let shown = "a\\u009b31m\\u0085\\u001b\\u2028é";
        for format in [Format::Legacy, Format::Logfmt, Format::Json] {
            assert!(line(format).contains(shown), "{}", line(format));
        }
    }

    #[test]
    fn levels_change_while_it_runs() {
        let log = Log::open(&LogOptions::default()).unwrap();
        assert!(log.writes(Level::Notice) && !log.writes(Level::Verbose));
        log.set("loglevel", "warning");
        assert!(!log.writes(Level::Notice) && log.writes(Level::Warning));
        log.set("loglevel", "nothing");
        assert!(!log.writes(Level::Warning));
    }
}
