//! `weft inspect`: RESP and RESPB, frame by frame and field by field.
//!
//! Owns the options, the choice of the protocol and what happens after a bad frame. [`request`], [`resp_request`] and
//! [`reply`] draw a [`picture`] of a frame, [`render`] prints it; [`follow`] does it live between a client and a
//! server.

mod digits;
mod follow;
mod picture;
mod render;
mod reply;
mod request;
mod resp_request;

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use weft_persist::Place;
use weft_persist::block::{BlockHead, HEAD_BYTES};
use weft_persist::disk::Folder;
use weft_protocol::{Limits, Malformed, WireError};

use self::picture::Picture;
use self::render::Paint;
use crate::lacks::{self, expected};
use crate::source;
use crate::text::{grouped, hex};
use crate::window::Window;

const EXAMPLES: &str = "\
Examples:
  weft inspect --hex 0000000000056d796b6579
  weft inspect --replies --hex '80 04 00 00 00 00 00 02 41 05'
  weft inspect capture.respb | less -R
  weft inspect appendonlydir/appendonly.aof.1.log
  weft inspect --json requests.resp | jq -r .command_line
  weft inspect --follow 127.0.0.1:6379 --listen 127.0.0.1:7379

Guide: docs/debugging.md";

/// Show RESP or RESPB frame by frame and field by field
///
/// Each field is a line: offset, bytes, name, type, value, meaning. A bad frame is named with its offset and what was
/// expected; where the frame carries its length the next one is shown, and the status is 1 in the end.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The bytes themselves, as hexadecimal digits; blanks, colons, commas, line ends and 0x are passed over
    #[arg(long, value_name = "HEX", conflicts_with_all = ["file", "follow"])]
    hex: Option<String>,

    /// The bytes are replies, pushes and control frames from a server
    #[arg(long)]
    replies: bool,

    /// The bytes are RESP, whatever the first one is
    #[arg(long, conflicts_with = "respb")]
    resp: bool,

    /// The bytes are RESPB, whatever the first one is
    #[arg(long)]
    respb: bool,

    /// Print a JSON object for each frame, one to a line
    #[arg(long)]
    json: bool,

    /// Whether to use colours
    #[arg(long, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,

    /// Stand between clients and the server at this address, and show both directions live
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["file", "replies", "resp", "respb"])]
    follow: Option<String>,

    /// Where to wait for the clients with `--follow`; port 0 takes a free one, which is printed
    #[arg(long, value_name = "ADDR:PORT", requires = "follow", default_value = "127.0.0.1:0")]
    listen: String,

    /// A file, or `-` for standard input
    file: Option<PathBuf>,
}

/// Whether to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// All of it is there, so many bytes.
    Whole(usize),
    /// It is well-formed so far; so many bytes are needed to read on.
    Cut { need: usize },
    /// It can never be a frame.
    Wrong(WireError),
}

/// How bytes are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    binary: bool,
    replies: bool,
}

impl Way {
    fn draw(self, bytes: &[u8], limits: Limits) -> (Picture, Seen) {
        match (self.binary, self.replies) {
            (true, false) => request::draw(bytes, limits),
            (true, true) => reply::draw_respb(bytes, limits),
            (false, false) => resp_request::draw(bytes, limits),
            (false, true) => reply::draw_resp(bytes, limits),
        }
    }

    fn protocol(self) -> &'static str {
        if self.binary { "respb" } else { "resp" }
    }
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let paint = Paint(match options.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    });
    if let Some(server) = &options.follow {
        return follow::run(server, &options.listen, options.json, paint);
    }
    let mut shown = Shown { out: io::stdout().lock(), json: options.json, paint, way: None };
    let log = options.file.as_deref().filter(|path| path.is_file());
    let good = match log {
        Some(path) if source::is_log(path)? => shown.blocks(path, options)?,
        _ => shown.all(&mut Window::new(input(options)?), options)?,
    };
    shown.out.flush()?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn input(options: &Options) -> Result<Box<dyn Read + Send>> {
    if let Some(text) = &options.hex {
        return Ok(Box::new(io::Cursor::new(digits::parse(text)?)));
    }
    match options.file.as_deref().filter(|path| *path != Path::new("-")) {
        None => Ok(Box::new(io::stdin())),
        Some(path) => Ok(Box::new(File::open(path).with_context(|| path.display().to_string())?)),
    }
}

/// Which protocol bytes are that begin so; none when they are neither.
fn is_respb(first: u8, replies: bool) -> Option<bool> {
    match first {
        0x80..=0x8F | 0x00..=0x07 | 0xF0.. => Some(true),
        b'*' => Some(false),
        byte if replies && b"+-:$_#,(!=%~>|".contains(&byte) => Some(false),
        byte if !replies && (byte.is_ascii_alphabetic() || byte.is_ascii_whitespace()) => Some(false),
        _ => None,
    }
}

struct Shown<W> {
    out: W,
    json: bool,
    paint: Paint,
    way: Option<Way>,
}

impl<W: io::Write> Shown<W> {
    /// Shows the blocks of a segment or a snapshot with their frames; returns whether all proved.
    fn blocks(&mut self, path: &Path, options: &Options) -> Result<bool> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().and_then(|name| name.to_str()).context("a name that is no text")?;
        self.way = Some(Way { binary: true, replies: false });
        let mut result: Result<bool> = Ok(true);
        let survey = weft_persist::survey_file(&Folder::unlocked(folder), name, &mut |place, requests| {
            result = self.block(place, requests, options);
            matches!(result, Ok(true))
        });
        for problem in &survey.problems {
            self.note(&problem.to_string())?;
        }
        Ok(result? && survey.problems.is_empty())
    }
    fn block(&mut self, place: Place<'_>, requests: &[u8], options: &Options) -> Result<bool> {
        let BlockHead { epoch, count, behind, .. } = place.head;
        match self.json {
            true => writeln!(
                self.out,
                "{}",
                serde_json::json!({ "block": place.at, "epoch": epoch, "requests": count, "bytes": requests.len(),
                    "unsynced_before": behind })
            )?,
            false => writeln!(
                self.out,
                "block at {}: epoch {epoch}, {count} requests, {} bytes; {behind} bytes before it were not synced",
                place.at,
                requests.len()
            )?,
        }
        let bytes = Box::new(io::Cursor::new(requests.to_vec()));
        self.all(&mut Window::at(bytes, place.at + HEAD_BYTES as u64), options)
    }

    /// Shows all frames; returns whether all were good.
    fn all(&mut self, window: &mut Window, options: &Options) -> Result<bool> {
        let mut good = true;
        let mut ended = false;
        let mut first = true;
        loop {
            let bytes = window.bytes();
            if bytes.is_empty() {
                if ended || !window.fill()? {
                    return Ok(good);
                }
                continue;
            }
            let way = self.way(bytes[0], options)?;
            let (picture, seen) = way.draw(bytes, Limits::DEFAULT);
            if matches!(seen, Seen::Cut { need } if !ended && window.bytes().len() < need) {
                let Seen::Cut { need } = seen else { continue };
                // The whole frame is drawn at once, so that it is read again from its start with at least twice the
                // bytes.
                let goal = need.max(2 * window.bytes().len());
                ended = !window.fill_to(goal)?;
                continue;
            }
            if !std::mem::take(&mut first) && !self.json {
                writeln!(self.out)?;
            }
            let Some(used) = self.frame(window, way, &picture, seen)? else { return Ok(false) };
            good &= matches!(seen, Seen::Whole(_));
            if !window.pass_over(used as u64)? {
                self.note("the input ends inside the frame that was passed over")?;
                return Ok(false);
            }
        }
    }

    fn way(&mut self, first: u8, options: &Options) -> Result<Way> {
        if let Some(way) = self.way {
            return Ok(way);
        }
        let binary = match (options.resp, options.respb) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => is_respb(first, options.replies),
        };
        let Some(binary) = binary else {
            bail!(
                "byte 0: {first:02x} begins neither RESP nor RESPB {}{}; --resp or --respb takes it for one of them",
                if options.replies { "replies" } else { "requests" },
                if options.replies { "" } else { " (replies are read with --replies)" },
            );
        };
        let way = Way { binary, replies: options.replies };
        self.way = Some(way);
        Ok(way)
    }

    /// Shows one frame; returns its bytes, or none where it cannot go on.
    fn frame(&mut self, window: &Window, way: Way, picture: &Picture, seen: Seen) -> Result<Option<usize>> {
        let (bytes, offset) = (window.bytes(), window.offset());
        let len = if let Seen::Whole(len) = seen { len } else { bytes.len() };
        let known = match seen {
            Seen::Whole(_) => None,
            Seen::Cut { .. } => None,
            Seen::Wrong(_) => request::skip(bytes).filter(|_| way.binary),
        };
        let shown = &bytes[..known.unwrap_or(len).min(bytes.len())];
        match self.json {
            true => writeln!(self.out, "{}", render::json(picture, shown, offset, way.protocol()))?,
            false => write!(self.out, "{}", render::text(picture, shown, offset, self.paint))?,
        }
        let (at, name, what) = match seen {
            Seen::Whole(len) => return Ok(Some(len)),
            Seen::Cut { need } => (bytes.len(), "incomplete", cut_text(bytes, need, way)),
            Seen::Wrong(error) => (error.offset, error.kind.name(), wrong_text(bytes, error, way)),
        };
        let goes_on = known.map(|len| offset + len as u64);
        match self.json {
            true => writeln!(self.out, "{}", render::bad_json(offset + at as u64, &what, name, goes_on))?,
            false if name == "incomplete" => {
                self.note(&format!("incomplete at offset {}: {what}", grouped(offset + at as u64)))?;
            }
            false => {
                write!(
                    self.out,
                    "{}",
                    render::bad_text(offset + at as u64, &what, name, goes_on, self.paint)
                )?;
            }
        }
        Ok(known)
    }

    fn note(&mut self, text: &str) -> Result<()> {
        if !self.json {
            writeln!(self.out, "  {} {text}", self.paint.red("error:"))?;
        }
        Ok(())
    }
}

fn cut_text(bytes: &[u8], need: usize, way: Way) -> String {
    let lacks = match (way.binary, way.replies) {
        (true, false) => lacks::respb(bytes, Limits::DEFAULT),
        (false, false) if bytes[0] == b'*' => lacks::resp(bytes).text(),
        _ => {
            let more = need.saturating_sub(bytes.len()).max(1);
            format!("at least {more} more {}", if more == 1 { "byte" } else { "bytes" })
        }
    };
    format!("the input ends inside the frame: expected {lacks}")
}

fn wrong_text(bytes: &[u8], error: WireError, way: Way) -> String {
    let found = bytes.get(error.offset..).unwrap_or_default();
    let found = hex(&found[..found.len().min(8)], 8);
    let within = match (way.binary, way.replies) {
        (true, false) => lacks::within(bytes, Limits::DEFAULT),
        (false, false) if bytes[0] == b'*' => lacks::resp(bytes).argument_text(),
        _ => String::new(),
    };
    let hint = match (error.kind, way.replies) {
        (Malformed::WrongDirection, false) => " (replies are read with --replies)",
        (Malformed::WrongDirection, true) => " (requests are read without --replies)",
        _ => "",
    };
    format!("expected {}{within}, found {found}{hint}", expected(error.kind))
}
