//! `weft workload trace`: a workload from what a server has really seen.
//!
//! Owns the choice of the source and the spelling: names and options that the table has are put into their canonical
//! form, as a client that speaks RESPB sends them, and both files say exactly that. Reading the sources:
//! [`super::monitor`], [`super::pcap`]; an append-only file is a stream of RESP with annotations in it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};
use weft_protocol::request::{ArgList, Decoded};
use weft_protocol::{Limits, Outcome, resp, respb, table};

use super::{Pair, monitor, pcap, write_pair};

/// Make a workload from a MONITOR capture, an append-only file or a pcap of RESP connections
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The capture
    input: PathBuf,
    /// Directory for the files workload_NAME_resp.bin and workload_NAME_respb.bin
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// What the capture is; without it, its first bytes tell
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Port of the server in a pcap
    #[arg(long, value_name = "PORT", default_value_t = 6379)]
    port: u16,
    /// Name of the workload
    #[arg(long, value_name = "NAME", default_value = "trace")]
    name: String,
    /// Keep the case of names and options; what is not upper-case then goes as ARGV
    #[arg(long)]
    exact: bool,
}

/// Where a trace comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// What redis-cli MONITOR prints
    Monitor,
    /// An append-only file, without an RDB before it
    Aof,
    /// A capture file of tcpdump (classic pcap)
    Pcap,
}

/// The arguments of a command, its name first.
pub(super) type Command = Vec<Vec<u8>>;

pub(super) fn run(options: &Options) -> Result<ExitCode> {
    let path = options.input.display();
    let bytes = std::fs::read(&options.input).with_context(|| format!("{path}"))?;
    let commands = match options.format.map_or_else(|| detect(&bytes), Ok)? {
        Format::Monitor => monitor::commands(&bytes),
        Format::Aof => aof(&bytes),
        Format::Pcap => pcap::commands(&bytes, options.port),
    }
    .with_context(|| format!("{path}"))?;
    ensure!(!commands.is_empty(), "{path}: no command in it");
    let mut pair = Pair::default();
    for argv in &commands {
        match options.exact {
            true => pair.push(argv),
            false => pair.push(&canonical(argv)),
        }
    }
    write_pair(&options.output, &options.name, &pair)?;
    Ok(ExitCode::SUCCESS)
}

fn detect(bytes: &[u8]) -> Result<Format> {
    Ok(match bytes {
        [b'*' | b'#', ..] => Format::Aof,
        [b'+' | b'0'..=b'9', ..] => Format::Monitor,
        _ if pcap::is_pcap(bytes) => Format::Pcap,
        [b'R', b'E', b'D', b'I', b'S', ..] | [b'V', b'A', b'L', b'K', b'E', b'Y', ..] => {
            bail!("byte 0: an RDB; the commands are in the .incr.aof file beside it")
        }
        _ => bail!(
            "byte 0: neither a MONITOR capture nor an append-only file nor a pcap; say which with --format"
        ),
    })
}

/// The commands of an append-only file. Lines that begin with `#` are annotations.
fn aof(bytes: &[u8]) -> Result<Vec<Command>> {
    let (mut at, mut commands) = (0, Vec::new());
    while at < bytes.len() {
        if bytes[at] == b'#' {
            let end = bytes[at..].iter().position(|&byte| byte == b'\n');
            at += end.with_context(|| format!("byte {at}: the file ends inside an annotation"))? + 1;
            continue;
        }
        at += next_command(&bytes[at..], at as u64, &mut commands)?;
    }
    Ok(commands)
}

/// Takes one RESP command from the start of `bytes`, which is byte `at` of its source; gives its length.
pub(super) fn next_command(bytes: &[u8], at: u64, commands: &mut Vec<Command>) -> Result<usize> {
    let mut list = ArgList::new();
    match resp::RequestDecoder::new(Limits::DEFAULT).decode(bytes, &mut list) {
        Outcome::Complete(frame) => {
            if frame.arguments > 0 {
                commands.push(texts(&list, bytes));
            }
            Ok(frame.len)
        }
        Outcome::Incomplete { .. } => bail!("byte {at}: the command that begins here is cut off"),
        Outcome::Invalid(error) => bail!("byte {}: {}", at + error.offset as u64, error.kind.text()),
    }
}

fn texts(list: &ArgList, frame: &[u8]) -> Command {
    let text = |arg: weft_protocol::Arg<'_>| {
        let mut out = Vec::new();
        arg.push_text(&mut out);
        out
    };
    list.iter(frame).map(text).collect()
}

/// The same command with its name and options as the table spells them, where it has them.
fn canonical(argv: &[Vec<u8>]) -> Command {
    let mut frame = Vec::new();
    if !respb::RequestWriter::new(&mut frame, 0).command(argv, respb::Mode::Fold) {
        return argv.to_vec();
    }
    let mut list = ArgList::new();
    let Outcome::Complete(decoded) = respb::RequestDecoder::new(Limits::DEFAULT).decode(&frame, &mut list)
    else {
        return argv.to_vec();
    };
    let name = decoded.frame.command().map_or("", |id: table::CommandId| id.spec().name);
    let mut out = vec![name.as_bytes().to_vec()];
    out.extend(texts(Decoded { list: &list, frame: &frame }.list, &frame));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_only_file_gives_its_commands() {
        let file =
            b"#TS:1700000000\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\nb\r\n";
        let commands = aof(file).unwrap();
        assert_eq!(commands.len(), 2);
        assert_eq!(canonical(&commands[1]), [b"SET".to_vec(), b"a".to_vec(), b"b".to_vec()]);
    }

    #[test]
    fn a_cut_or_corrupt_file_is_refused_with_its_offset() {
        let cut = aof(b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI").unwrap_err().to_string();
        assert!(cut.contains("byte 14") && cut.contains("cut off"), "{cut}");
        let corrupt = aof(b"*1\r\n$4\r\nPING\r\n*1\r\n%4\r\nPING\r\n").unwrap_err().to_string();
        assert!(corrupt.contains("byte 18"), "{corrupt}");
    }

    #[test]
    fn the_first_bytes_tell_the_format() {
        assert_eq!(detect(b"*1\r\n").unwrap(), Format::Aof);
        assert!(detect(b"OK\n").unwrap_err().to_string().contains("--format"));
        assert_eq!(detect(b"1339518083.1 [0 x] \"keys\"").unwrap(), Format::Monitor);
        assert_eq!(detect(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0]).unwrap(), Format::Pcap);
        assert!(detect(b"REDIS0011").unwrap_err().to_string().contains("RDB"));
    }
}
