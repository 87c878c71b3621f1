//! `weft convert`: request streams and append-only files from RESP to RESPB and back.
//!
//! Owns the options and the loop over the input. [`crate::source`] finds the input, [`rdb`] passes over snapshots,
//! [`to_respb`] and [`to_resp`] convert what is in the window, [`sink`] writes, [`stats`] counts,
//! [`crate::progress`] draws.

mod rdb;
mod sink;
mod stats;
mod to_resp;
mod to_respb;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use weft_protocol::Limits;

use self::sink::Sink;
use self::stats::Stats;
use crate::progress::Progress;
use crate::source::{self, Piece};
use crate::text::grouped;
use crate::window::Window;

const EXAMPLES: &str = "\
Examples:
  weft convert --to respb appendonly.aof > appendonly.respb
  weft convert --to respb --stats -o out.respb /var/lib/valkey/appendonlydir
  weft convert --to resp --channel 3 capture.respb | redis-cli --pipe
  weft convert --to resp --split by-channel capture.respb
  weft convert --to resp /var/lib/weft/appendonlydir
  weft convert --to respb --stats --json --dry-run requests.resp

RESP to RESPB to RESP gives back every byte of every command. Guide: docs/convert.md";

/// Convert request streams and append-only files between RESP and RESPB
///
/// The input is a stream of requests, an append-only file, the directory or manifest of one in several files, or with
/// `--to resp` a log or snapshot of Weft. A snapshot (RDB) in an append-only file is passed over.
/// A file that is cut or corrupt gives the offset and what was expected there, and
/// status 1; everything before that has been written.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// What to write
    #[arg(long, value_enum)]
    to: Format,

    /// The channel: of the frames to write with `--to respb` (0 if not given); of the frames to take with `--to resp`
    #[arg(long, value_name = "N")]
    channel: Option<u16>,

    /// Write each channel's commands to a file of its own in DIR, channel-00000.resp and so on (`--to resp`)
    #[arg(long, value_name = "DIR", conflicts_with_all = ["channel", "output", "dry_run"])]
    split: Option<PathBuf>,

    /// Print a table by command: count, bytes before and after, share saved
    ///
    /// On standard error when the output goes to standard output.
    #[arg(long)]
    stats: bool,

    /// Print the table as JSON
    #[arg(long)]
    json: bool,

    /// Write to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write nothing: for `--stats` and to check a file
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,

    /// Read inline commands too, as people type them (`--to respb`)
    ///
    /// Without it a line that is no RESP array is an error, which is what finds a corrupt file.
    #[arg(long)]
    inline: bool,

    /// The largest request to accept, in bytes: the bound on the memory
    #[arg(long, value_name = "BYTES", default_value_t = Limits::DEFAULT.frame_bytes_max,
          value_parser = clap::value_parser!(u32).range(64..=i64::from(Limits::DEFAULT.frame_bytes_max)))]
    frame_bytes_max: u32,

    /// A file, `-` for standard input, or the directory or manifest of an append-only file in several parts
    file: Option<PathBuf>,
}

/// What to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// RESPB from RESP
    Respb,
    /// RESP from RESPB
    Resp,
}

/// One direction of the conversion.
trait Converter {
    /// Converts what is at the start of `input`; returns how many bytes of it are done with, and why it stopped.
    fn feed(&mut self, input: &[u8], sink: &mut Sink) -> (usize, Stop);

    /// What is missing, when the stream ends with these bytes of a command that is not whole.
    fn missing(&self, rest: &[u8]) -> String;

    /// The counts so far.
    fn stats(&mut self) -> &mut Stats;

    /// The last check at the end of all input.
    fn finish(&self) -> Result<()>;
}

/// Why a converter stopped.
enum Stop {
    /// All that is whole is converted.
    Incomplete,
    /// The output wants to be written.
    Full,
    /// The input is wrong.
    Wrong(Wrong),
}

/// What is wrong with the input, behind the bytes that are done with.
struct Wrong {
    /// Offset of what is wrong from the start of the command.
    at: usize,
    /// What was expected and what is there.
    what: String,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let (pieces, notes) = source::pieces(options.file.as_deref())?;
    notes.iter().for_each(|note| eprintln!("weft convert: {note}"));
    let limits = Limits { frame_bytes_max: options.frame_bytes_max, ..Limits::DEFAULT };
    let is_log = pieces.iter().any(|piece| piece.is_log);
    let mut converter: Box<dyn Converter> = match options.to {
        Format::Respb if is_log => {
            bail!(
                "this is a log of Weft, whose requests are RESPB already: --to resp, or weft log dump to read it"
            )
        }
        Format::Respb if options.split.is_some() => bail!("--split is for --to resp"),
        Format::Respb => {
            Box::new(to_respb::ToRespb::new(options.channel.unwrap_or(0), options.inline, limits))
        }
        Format::Resp if options.inline => bail!("--inline is for --to respb"),
        Format::Resp => Box::new(to_resp::ToResp::new(options.channel, is_log, limits)),
    };
    let mut sink = open_sink(options, &pieces)?;
    let mut progress = Progress::new(pieces.iter().map(|piece| piece.len).sum());
    let converted = convert(&pieces, options.to, converter.as_mut(), &mut sink, &mut progress);
    progress.clear();
    // What was converted before an error is written, whatever the error.
    let flushed = sink.flush(true);
    if sink.is_split() {
        eprintln!("weft convert: {} channels written", grouped(sink.channels() as u64));
    }
    if options.stats || options.json {
        print_stats(options, converter.stats());
    }
    flushed?;
    converted.and_then(|()| converter.finish())?;
    Ok(ExitCode::SUCCESS)
}

fn open_sink(options: &Options, pieces: &[Piece]) -> Result<Sink> {
    if options.dry_run {
        return Ok(Sink::nowhere());
    }
    if let Some(directory) = &options.split {
        return Sink::split(directory);
    }
    match &options.output {
        None => Sink::stdout(),
        Some(path) if pieces.iter().any(|piece| piece.is(path)) => {
            bail!("{}: is the input too, and would be overwritten before it is read", path.display())
        }
        Some(path) => Sink::file(path),
    }
}

/// On standard output, unless the converted commands go there.
fn print_stats(options: &Options, stats: &Stats) {
    use std::io::Write as _;
    let text = if options.json { format!("{}\n", stats.json()) } else { stats.table() };
    let to_stdout = options.output.is_some() || options.split.is_some() || options.dry_run;
    // Whoever closed the stream does not want the table.
    drop(match to_stdout {
        true => std::io::stdout().write_all(text.as_bytes()),
        false => std::io::stderr().write_all(text.as_bytes()),
    });
}

fn convert(
    pieces: &[Piece],
    to: Format,
    converter: &mut dyn Converter,
    sink: &mut Sink,
    progress: &mut Progress,
) -> Result<()> {
    let mut done = 0;
    for piece in pieces {
        let mut window = Window::new(piece.open()?);
        if to == Format::Respb {
            pass_over_rdb(piece, &mut window, converter.stats())?;
        }
        stream(&mut window, converter, sink, |read| progress.show(done + read))
            .with_context(|| piece.name.clone())?;
        done += window.offset();
    }
    Ok(())
}

/// A snapshot at the start of an append-only file: the base file of one in several parts, or the preamble of one in
/// one.
fn pass_over_rdb(piece: &Piece, window: &mut Window, stats: &mut Stats) -> Result<()> {
    window.fill_to(6).with_context(|| piece.name.clone())?;
    if !rdb::is_rdb(window.bytes()) {
        return Ok(());
    }
    let skipped = rdb::skip(window).with_context(|| piece.name.clone())?;
    stats.passed_over.rdb_bytes += skipped.bytes;
    eprintln!(
        "weft convert: {}: passed over an RDB of {} bytes with {} keys and {} function libraries: it holds data, not commands",
        piece.name,
        grouped(skipped.bytes),
        grouped(skipped.keys),
        grouped(skipped.functions),
    );
    Ok(())
}

/// Converts one stream to its end.
fn stream(
    window: &mut Window,
    converter: &mut dyn Converter,
    sink: &mut Sink,
    mut show: impl FnMut(u64),
) -> Result<()> {
    loop {
        let (used, stop) = converter.feed(window.bytes(), sink);
        window.consume(used);
        sink.flush(false)?;
        match stop {
            Stop::Full => show(window.offset()),
            Stop::Wrong(wrong) => {
                let at = window.offset() + wrong.at as u64;
                return Err(failure(at, window.offset(), &wrong.what));
            }
            Stop::Incomplete => {
                show(window.offset());
                if window.fill()? {
                    continue;
                }
                let rest = window.bytes();
                if rest.is_empty() {
                    return Ok(());
                }
                let at = window.offset() + rest.len() as u64;
                let what = format!("the input ends here: expected {}", converter.missing(rest));
                return Err(failure(at, window.offset(), &what));
            }
        }
    }
}

fn failure(at: u64, command: u64, what: &str) -> anyhow::Error {
    if at == command {
        return anyhow!("byte {at}: {what}");
    }
    anyhow!("byte {at}: {what}; the command begins at byte {command}")
}
