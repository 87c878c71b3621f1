//! Owns `--rdb`, `--functions-rdb` and `--replica`: a server's data, and what it changes from then on, asked for as a
//! replica asks for them, by SYNC. Does not own what an RDB holds.
//!
//! ```text
//! us      REPLCONF capa eof       the end of the data may be a mark instead of a length known before
//! us      REPLCONF rdb-only 1     nothing behind the data is wanted
//! us      SYNC
//! server  LF …                    while it prepares
//! server  $LENGTH CR LF           data
//! or      $EOF:MARK CR LF         data MARK, 40 bytes that the data has nowhere
//! server  commands as RESP …      what changes
//! ```

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use weft_client::{Connection, Raw, Reply};
use weft_protocol::request::{ArgList, Decoded};
use weft_protocol::{Limits, Outcome, resp};

use super::output::{Format, Style};

/// Bytes of the mark that ends the data.
const MARK_BYTES: usize = 40;
/// Bytes of the line that the data begins with.
const LINE_BYTES_MAX: u64 = 1024;
/// How often a replica says that it is there. A server that sent its data with a mark begins with its changes when it
/// hears so.
const ACK_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of a command that is shown.
const COMMAND_BYTES_MAX: usize = 1 << 30;

/// What is wanted of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// The data, then its changes.
    Stream,
    /// The data.
    Data,
    /// The functions.
    Functions,
}

/// How the data ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Payload {
    Length(u64),
    Mark([u8; MARK_BYTES]),
}

/// `--rdb FILE`, `--functions-rdb FILE`; `-` is the standard output.
pub(super) fn save(file: &Path, functions: bool, connection: Connection) -> Result<ExitCode> {
    let wanted = if functions { Wanted::Functions } else { Wanted::Data };
    let (mut stream, payload) = begin(connection, wanted, true)?;
    let name = file.display();
    match payload {
        Payload::Length(length) => eprintln!("SYNC sent to master, writing {length} bytes to '{name}'"),
        Payload::Mark(_) => {
            eprintln!("SYNC sent to master, writing bytes of bulk transfer until EOF marker to '{name}'");
        }
    }
    let bytes = write(&mut stream, payload, file)?;
    match payload {
        Payload::Length(_) => eprintln!("Transfer finished with success."),
        Payload::Mark(_) => eprintln!("Transfer finished with success after {bytes} bytes"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the data of a server into a file, without a word; for who has several servers.
pub(super) fn save_quietly(file: &Path, connection: Connection) -> Result<u64> {
    let (mut stream, payload) = begin(connection, Wanted::Data, false)?;
    write(&mut stream, payload, file)
}

/// `--replica`: passes over the data and shows what comes behind it, as CSV, until the server ends.
pub(super) fn follow(connection: Connection) -> Result<ExitCode> {
    let (mut stream, payload) = begin(connection, Wanted::Stream, true)?;
    match payload {
        Payload::Length(length) => {
            eprintln!("SYNC with master, discarding {length} bytes of bulk transfer...");
        }
        Payload::Mark(_) => {
            eprintln!("SYNC with master, discarding bytes of bulk transfer until EOF marker...");
        }
    }
    let bytes = copy(&mut stream, payload, &mut io::sink())?;
    eprintln!("SYNC done after {bytes} bytes. Logging commands from master.");
    commands(&mut stream)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks for the data: the stream in front of it, and how it ends.
fn begin(mut connection: Connection, wanted: Wanted, show: bool) -> Result<(BufReader<Raw>, Payload)> {
    // Servers before 2.8.18 know none of these and send a length and everything.
    replconf(&mut connection, "capa", "eof", show)?;
    match wanted {
        Wanted::Stream => {}
        Wanted::Data => drop(replconf(&mut connection, "rdb-only", "1", show)?),
        Wanted::Functions => {
            replconf(&mut connection, "rdb-only", "1", show)?;
            if let Some(error) = replconf(&mut connection, "rdb-filter-only", "functions", show)? {
                bail!(
                    "the server does not send its functions alone ({error}). FUNCTION DUMP gives them as one value"
                );
            }
        }
    }
    let mut stream = BufReader::new(connection.into_raw()?);
    stream.get_mut().write_all(b"SYNC\r\n").context("SYNC")?;
    stream.get_mut().flush().context("SYNC")?;
    let payload = payload(&mut stream)?;
    Ok((stream, payload))
}

/// Says something of this replica; the error that the server answers.
fn replconf(connection: &mut Connection, name: &str, value: &str, show: bool) -> Result<Option<String>> {
    if show {
        eprintln!("sending REPLCONF {name} {value}");
    }
    Ok(match connection.exchange(&["REPLCONF", name, value])? {
        Reply::Error(text) => Some(String::from_utf8_lossy(&text).into_owned()),
        _ => None,
    })
}

/// The line before the data; empty ones say that the server is at it.
fn payload(stream: &mut impl io::BufRead) -> Result<Payload> {
    loop {
        let mut line = Vec::new();
        stream.take(LINE_BYTES_MAX).read_until(b'\n', &mut line).context("waiting for the data")?;
        ensure!(line.last() == Some(&b'\n'), "the server ended the connection before it sent its data");
        let line = line.trim_ascii_end();
        match line {
            [] => {}
            [b'$', b'E', b'O', b'F', b':', mark @ ..] => {
                let mark = mark.try_into().ok().context("the server's mark has not 40 bytes")?;
                return Ok(Payload::Mark(mark));
            }
            [b'$', digits @ ..] => {
                let length = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                return Ok(Payload::Length(length.context("the server's length is no number")?));
            }
            [b'-', error @ ..] => bail!(
                "SYNC with master failed: {}\nWithout replication: weft export rdb FILE writes the data of any server",
                String::from_utf8_lossy(error)
            ),
            other => bail!("the server answered SYNC with {}", crate::text::quoted(other, 64)),
        }
    }
}

/// Writes the data beside the file and puts it into its place when it is whole, so that a transfer that fails leaves
/// the copy of yesterday.
fn write(stream: &mut BufReader<Raw>, payload: Payload, file: &Path) -> Result<u64> {
    if file.as_os_str() == "-" {
        let mut out = io::stdout().lock();
        let bytes = copy(stream, payload, &mut out)?;
        out.flush()?;
        return Ok(bytes);
    }
    let partial = Partial::create(file)?;
    let bytes = copy(stream, payload, &mut &partial.file)?;
    partial.finish()?;
    Ok(bytes)
}

/// A file that is not whole, and goes away unless it becomes so.
struct Partial {
    file: File,
    path: PathBuf,
    /// Its name when it is whole; none when it is something that cannot be replaced.
    target: Option<PathBuf>,
}

impl Partial {
    fn create(target: &Path) -> Result<Partial> {
        let name = |path: &Path| path.display().to_string();
        // A pipe or a device is written to as it stands.
        if fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(target).with_context(|| name(target))?;
            return Ok(Partial { file, path: target.into(), target: None });
        }
        let mut path = target.as_os_str().to_owned();
        path.push(format!(".part{}", std::process::id()));
        let path = PathBuf::from(path);
        let file = File::create(&path).with_context(|| name(&path))?;
        Ok(Partial { file, path, target: Some(target.into()) })
    }

    fn finish(mut self) -> Result<()> {
        let Some(target) = self.target.take() else { return Ok(()) };
        let done = self.file.sync_all().and_then(|()| fs::rename(&self.path, &target));
        if done.is_err() {
            self.target = Some(target.clone());
        }
        done.with_context(|| target.display().to_string())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if self.target.is_some() {
            // What cannot be removed has its name to tell what it is.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Copies the data, and reads to its end: how many bytes it has.
fn copy(stream: &mut impl io::BufRead, payload: Payload, out: &mut impl Write) -> Result<u64> {
    match payload {
        Payload::Length(length) => {
            let bytes = io::copy(&mut stream.take(length), out)?;
            ensure!(bytes == length, "the server ended the connection after {bytes} of {length} bytes");
            Ok(bytes)
        }
        Payload::Mark(mark) => copy_to_mark(stream, &mark, out),
    }
}

/// The mark can be cut anywhere by what arrives together, so the last bytes are kept until more have come.
fn copy_to_mark(stream: &mut impl io::BufRead, mark: &[u8; MARK_BYTES], out: &mut impl Write) -> Result<u64> {
    let mut kept: Vec<u8> = Vec::new();
    let mut bytes = 0;
    loop {
        let before = kept.len();
        let arrived = stream.fill_buf()?;
        ensure!(!arrived.is_empty(), "the server ended the connection after {bytes} bytes, before its mark");
        kept.extend_from_slice(arrived);
        let arrived = arrived.len();
        if let Some(at) = find(&kept, mark) {
            out.write_all(&kept[..at])?;
            stream.consume(at + MARK_BYTES - before);
            return Ok(bytes + at as u64);
        }
        stream.consume(arrived);
        let whole = kept.len().saturating_sub(MARK_BYTES - 1);
        out.write_all(&kept[..whole])?;
        kept.drain(..whole);
        bytes += whole as u64;
    }
}

fn find(bytes: &[u8], mark: &[u8; MARK_BYTES]) -> Option<usize> {
    bytes.windows(MARK_BYTES).position(|window| window[0] == mark[0] && window == mark)
}

/// Shows the commands that come, until the server ends.
fn commands(stream: &mut BufReader<Raw>) -> Result<()> {
    stream.get_ref().set_read_timeout(Some(ACK_INTERVAL))?;
    let format = Format::of(Style::Csv);
    let mut decoder = resp::RequestDecoder::new(Limits::DEFAULT);
    let (mut pending, mut args) = (Vec::new(), ArgList::new());
    let mut acknowledged: Option<Instant> = None;
    loop {
        if acknowledged.is_none_or(|at| at.elapsed() >= ACK_INTERVAL) {
            match acknowledge(stream.get_mut()) {
                Err(error) if is_end(&error) => return Ok(()),
                done => done?,
            }
            acknowledged = Some(Instant::now());
        }
        match stream.fill_buf() {
            Ok([]) => return Ok(()),
            Err(error) if is_end(&error) => return Ok(()),
            Ok(arrived) => pending.extend_from_slice(arrived),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) => return Err(error.into()),
        }
        let arrived = stream.buffer().len();
        stream.consume(arrived);
        let mut used = 0;
        loop {
            match decoder.decode(&pending[used..], &mut args) {
                Outcome::Complete(frame) => {
                    let command = &pending[used..used + frame.len];
                    show(&format, &Decoded { list: &args, frame: command })?;
                    used += frame.len;
                    args.clear();
                }
                Outcome::Incomplete { .. } => break,
                Outcome::Invalid(error) => bail!("what the server sends is no command: {error}"),
            }
        }
        pending.drain(..used);
        ensure!(pending.len() <= COMMAND_BYTES_MAX, "a command of more than {COMMAND_BYTES_MAX} bytes");
    }
}

fn acknowledge(stream: &mut Raw) -> io::Result<()> {
    stream.write_all(b"*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n0\r\n")?;
    stream.flush()
}

/// How the end of a server shows that was killed: TLS without a farewell, or a reset where an acknowledgement was not
/// read.
fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

fn show(format: &Format, command: &Decoded<'_>) -> Result<()> {
    let words = command.list.iter(command.frame).map(|arg| {
        let mut text = Vec::new();
        arg.push_text(&mut text);
        Reply::Bulk(text)
    });
    let words: Vec<Reply> = words.collect();
    if words.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(&format.reply(&Reply::Array(words)))?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that gives so many bytes at a time.
    fn pieces(bytes: &[u8], size: usize) -> BufReader<&[u8]> {
        BufReader::with_capacity(size, bytes)
    }

    #[test]
    fn data_ends_with_its_mark_wherever_it_is_cut() {
        let mark: [u8; MARK_BYTES] = std::array::from_fn(|index| b'a' + (index % 26) as u8);
        // The start of a mark within the data is none.
        let data = [&b"REDIS0010"[..], &mark[..39], b"x", &mark[..20]].concat();
        let stream = [&data[..], &mark, b"*1\r\n"].concat();
        for size in 1..stream.len() {
            let mut stream = pieces(&stream, size);
            let mut out = Vec::new();
            assert_eq!(copy(&mut stream, Payload::Mark(mark), &mut out).unwrap(), data.len() as u64);
            assert_eq!(out, data, "{size} bytes at a time");
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            assert_eq!(rest, b"*1\r\n");
        }
        let cut = &stream[..stream.len() - 10];
        let error = copy(&mut pieces(cut, 16), Payload::Mark(mark), &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("before its mark"), "{error}");
    }

    #[test]
    fn the_line_before_the_data_is_read() {
        let read = |text: &[u8]| payload(&mut &text[..]);
        assert_eq!(read(b"\n\n$189\r\n").unwrap(), Payload::Length(189));
        let mark = [b'm'; MARK_BYTES];
        assert_eq!(read(&[b"$EOF:", &mark[..], b"\r\n"].concat()).unwrap(), Payload::Mark(mark));
        for (text, said) in [
            (&b"-ERR no\r\n"[..], "SYNC with master failed: ERR no"),
            (b"$x\r\n", "no number"),
            (b"$EOF:short\r\n", "40 bytes"),
            (b"+OK\r\n", "answered SYNC with"),
            (b"\n", "ended the connection"),
            (&[b'$'; 2000], "ended the connection"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let short = copy(&mut &b"REDIS"[..], Payload::Length(9), &mut io::sink()).unwrap_err();
        assert!(short.to_string().contains("after 5 of 9 bytes"), "{short}");
    }

    #[test]
    fn a_transfer_that_fails_leaves_what_was_there() {
        let folder = std::env::temp_dir().join(format!("weft-partial-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("x.rdb");
        fs::write(&path, b"yesterday").unwrap();
        drop(Partial::create(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"yesterday");
        let partial = Partial::create(&path).unwrap();
        (&partial.file).write_all(b"today").unwrap();
        partial.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"today");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
