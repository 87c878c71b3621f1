//! `weft export`: the data of a server that runs as a file that Redis and Valkey load. Owns the command line,
//! walking over the keys, and putting the file in its place. Does not own the format (`weft_engine::rdb::file`).

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufWriter, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use weft_client::{Connection, Reply};
use weft_engine::rdb::file::{WriteError, Writer};

use crate::endpoint::Endpoint;
use crate::progress::Progress;
use crate::text::{grouped, quoted};

/// Keys that are asked for at a time, and read in one transaction.
const BATCH_KEYS: &str = "256";
/// Who may read the file: it holds all data.
const FILE_MODE: u32 = 0o600;
/// Bytes of a key that a message shows.
const KEY_SHOWN_BYTES_MAX: usize = 60;

const EXAMPLES: &str = "\
Examples:
  weft export rdb dump.rdb                    all databases of 127.0.0.1:6379
  weft export rdb -p 7000 -n 2 two.rdb        database 2 alone

The file has version 10, which Redis 7.0 and everything later loads, unless a value is of a kind that came later: a hash
whose fields expire makes it version 80, for Valkey 9. Each key is read with its time at one moment; keys that change
meanwhile are in it as they were before or after. It works with Redis and Valkey too.
Status: 0 all of it is in the file; 1 something failed, and there is no file.";

/// Write the data of a running server to a file that Redis and Valkey load
#[derive(Debug, Subcommand)]
pub(crate) enum Options {
    Rdb(Box<Rdb>),
}

/// A file of RDB
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rdb {
    /// The file; one that is there is replaced when the new one is whole
    #[arg(value_name = "FILE")]
    path: PathBuf,
    #[command(flatten)]
    endpoint: Endpoint,
    /// This database alone
    #[arg(short = 'n', value_name = "DB")]
    db: Option<u64>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Options::Rdb(options) = options;
    let mut connection = options.endpoint.connect()?;
    let partial = partial_name(&options.path)?;
    let written = write(options, &mut connection, &partial);
    let (keys, version, notes) = match written {
        Ok(written) => written,
        Err(error) => {
            // What is left of it is of no use; that it cannot be removed is not the fault to tell.
            drop(fs::remove_file(&partial));
            return Err(error);
        }
    };
    fs::rename(&partial, &options.path).with_context(|| options.path.display().to_string())?;
    sync_folder(&options.path)?;
    notes.iter().for_each(|note| eprintln!("weft export: {note}"));
    println!("{} keys in {}, RDB version {version}", grouped(keys), options.path.display());
    Ok(ExitCode::SUCCESS)
}

/// The name under which the file is written: beside it.
fn partial_name(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().with_context(|| format!("{} names no file", path.display()))?;
    let mut partial = name.to_os_string();
    partial.push(format!(".{}.part", std::process::id()));
    Ok(path.with_file_name(partial))
}

fn sync_folder(path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(|| folder.display().to_string())
}

/// A file behind a buffer, which is read again at the end.
struct Buffered(BufWriter<File>);

impl Write for Buffered {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
impl Seek for Buffered {
    fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}
impl Read for Buffered {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.flush()?;
        self.0.get_mut().read(into)
    }
}

fn write(options: &Rdb, connection: &mut Connection, partial: &Path) -> Result<(u64, u16, Vec<String>)> {
    let open = OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE).open(partial);
    let file = open.with_context(|| partial.display().to_string())?;
    let file = Buffered(BufWriter::with_capacity(1 << 18, file));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()).to_string();
    let facts = [("redis-ver", "7.0.0"), ("redis-bits", "64"), ("ctime", now.as_str()), ("aof-base", "0")];
    let mut writer = Writer::new(file, &facts)?;
    let mut notes = Vec::new();
    match connection.exchange(&["FUNCTION", "DUMP"])? {
        Reply::Bulk(payload) => writer.libraries(&payload).map_err(described)?,
        Reply::Error(text) => {
            notes.push(format!("no functions are in the file: {}", String::from_utf8_lossy(&text)));
        }
        _ => {}
    }
    let databases = match options.db {
        Some(db) => vec![(db, None)],
        None => databases(connection)?,
    };
    let mut progress = Progress::new(databases.iter().map(|(_, keys)| *keys).sum());
    let mut keys = 0;
    for (db, _) in databases {
        select(connection, db)?;
        writer.database(db)?;
        keys += database(connection, &mut writer, |count| progress.show(keys + count))
            .with_context(|| format!("database {db}"))?;
    }
    progress.clear();
    let (file, version) = writer.finish()?;
    file.0.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
    Ok((keys, version, notes))
}

fn described(error: WriteError) -> anyhow::Error {
    match error {
        WriteError::Io(error) => error.into(),
        WriteError::Payload(version) => {
            anyhow!("a value of RDB version {version} cannot stand in one file with the others")
        }
    }
}

fn fine(reply: Reply) -> Result<Reply> {
    match reply {
        Reply::Error(text) => bail!("the server answers: {}", String::from_utf8_lossy(&text)),
        reply => Ok(reply),
    }
}

/// What a reply of text says.
fn bytes(reply: &Reply) -> Option<&[u8]> {
    match reply {
        Reply::Bulk(bytes) | Reply::Simple(bytes) | Reply::Verbatim(_, bytes) => Some(bytes),
        _ => None,
    }
}

fn select(connection: &mut Connection, db: u64) -> Result<()> {
    fine(connection.exchange(&["SELECT", &db.to_string()])?).map(|_| ())
}

/// The databases that have keys, and how many.
fn databases(connection: &mut Connection) -> Result<Vec<(u64, Option<u64>)>> {
    let reply = fine(connection.exchange(&["INFO", "keyspace"])?)?;
    let text = String::from_utf8_lossy(bytes(&reply).context("INFO answers no text")?).into_owned();
    let mut databases = Vec::new();
    for line in text.lines() {
        let Some((db, facts)) = line.strip_prefix("db").and_then(|line| line.split_once(':')) else {
            continue;
        };
        let keys = facts.split(',').find_map(|fact| fact.strip_prefix("keys=")?.parse().ok());
        databases.push((db.parse().with_context(|| format!("INFO says {line}"))?, keys));
    }
    Ok(databases)
}

/// Writes the keys of the database that is selected.
fn database<W: Write>(
    connection: &mut Connection,
    writer: &mut Writer<W>,
    mut show: impl FnMut(u64),
) -> Result<u64> {
    // A key that SCAN tells twice must not stand in the file twice: servers refuse such a file.
    let hashes = [RandomState::new(), RandomState::new()];
    let mut seen = HashSet::new();
    let mut cursor = b"0".to_vec();
    let mut count = 0;
    loop {
        let reply = fine(connection.exchange(&[&b"SCAN"[..], &cursor, b"COUNT", BATCH_KEYS.as_bytes()])?)?;
        let Reply::Array(parts) = reply else { bail!("SCAN answers no array") };
        let [next, Reply::Array(keys)] = parts.as_slice() else { bail!("SCAN answers no cursor and keys") };
        let mut batch: Vec<&[u8]> = Vec::new();
        for key in keys {
            let key = bytes(key).context("SCAN answers a key that is no string")?;
            if seen.insert([hashes[0].hash_one(key), hashes[1].hash_one(key)]) {
                batch.push(key);
            }
        }
        count += write_keys(connection, writer, &batch)?;
        show(count);
        cursor = bytes(next).context("SCAN answers no cursor")?.to_vec();
        if cursor == b"0" {
            return Ok(count);
        }
    }
}

/// Writes these keys as they are at one moment.
fn write_keys<W: Write>(connection: &mut Connection, writer: &mut Writer<W>, keys: &[&[u8]]) -> Result<u64> {
    if keys.is_empty() {
        return Ok(0);
    }
    let mut pipeline = connection.pipeline();
    for key in keys {
        pipeline.add(&[&b"DUMP"[..], key])?;
        pipeline.add(&[&b"PEXPIRETIME"[..], key])?;
    }
    let replies = pipeline.execute_transaction()?.context("the transaction was refused")?;
    ensure!(replies.len() == 2 * keys.len(), "the transaction has {} replies", replies.len());
    let mut count = 0;
    for (key, replies) in keys.iter().zip(replies.chunks_exact(2)) {
        let name = || quoted(key, KEY_SHOWN_BYTES_MAX);
        let payload = match &replies[0] {
            Reply::Bulk(payload) => payload,
            Reply::Null => continue,
            Reply::Error(text) => bail!("DUMP {}: {}", name(), String::from_utf8_lossy(text)),
            other => bail!("DUMP {} answers {other:?}", name()),
        };
        let expire_ms = match &replies[1] {
            Reply::Int(time) => u64::try_from(*time).ok(),
            Reply::Error(text) => bail!(
                "PEXPIRETIME {}: {}; it is there since version 7.0 of Redis",
                name(),
                String::from_utf8_lossy(text)
            ),
            other => bail!("PEXPIRETIME {} answers {other:?}", name()),
        };
        writer.key(key, expire_ms, payload).map_err(described).with_context(name)?;
        count += 1;
    }
    Ok(count)
}
