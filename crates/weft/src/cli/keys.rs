//! Owns the tools that walk over all keys: `--scan`, `--bigkeys`, `--memkeys`, `--hotkeys`. Does not own the walk's
//! promise, which is SCAN's: a key that is there all the time is seen at least once.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use weft_client::{Connection, Reply};

use super::flags::Options;
use super::output::{Style, repr};
use super::{format, words};

/// Keys with the highest counters that `--hotkeys` lists.
const HOT_KEYS_MAX: usize = 16;
/// Steps of SCAN after which `-i` pauses.
const STEPS_BETWEEN_PAUSES: u64 = 100;

/// All keys, step by step.
struct Walk<'a> {
    connection: &'a mut Connection,
    cursor: Option<String>,
    arguments: Vec<Vec<u8>>,
    interval: Option<Duration>,
    steps: u64,
}

impl<'a> Walk<'a> {
    fn new(options: &Options, connection: &'a mut Connection) -> Result<Walk<'a>> {
        let mut arguments = Vec::new();
        if let Some(pattern) = pattern(options)? {
            arguments.extend([b"MATCH".to_vec(), pattern]);
        }
        if options.count != 10 {
            arguments.extend([b"COUNT".to_vec(), options.count.to_string().into_bytes()]);
        }
        if let Some(key_type) = &options.key_type {
            arguments.extend([b"TYPE".to_vec(), key_type.clone().into_bytes()]);
        }
        let interval = options.interval.map(Duration::from_secs_f64);
        Ok(Walk { connection, cursor: Some("0".into()), arguments, interval, steps: 0 })
    }

    /// The keys of the next step; none at the end.
    fn next(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        let Some(cursor) = self.cursor.take() else { return Ok(None) };
        if let Some(interval) = self.interval
            && self.steps > 0
            && self.steps.is_multiple_of(STEPS_BETWEEN_PAUSES)
        {
            std::thread::sleep(interval);
        }
        self.steps += 1;
        let mut args = vec![b"SCAN".to_vec(), cursor.into_bytes()];
        args.extend(self.arguments.iter().cloned());
        let (cursor, keys): (String, Vec<Vec<u8>>) = self.connection.query(&args)?;
        self.cursor = (cursor != "0").then_some(cursor);
        Ok(Some(keys))
    }

    /// One command for each key, answered in order.
    fn ask(&mut self, commands: &[Vec<&[u8]>]) -> Result<Vec<Reply>> {
        let mut pipeline = self.connection.pipeline();
        for command in commands {
            pipeline.add(command)?;
        }
        Ok(pipeline.execute()?)
    }
}

fn pattern(options: &Options) -> Result<Option<Vec<u8>>> {
    match (&options.pattern, &options.quoted_pattern) {
        (Some(pattern), _) => Ok(Some(pattern.clone().into_bytes())),
        (None, Some(quoted)) => match words::arguments(quoted).as_deref() {
            Some([pattern]) => Ok(Some(pattern.clone())),
            _ => bail!("Invalid quoted string specified for --quoted-pattern"),
        },
        (None, None) => Ok(None),
    }
}

/// `--scan`
pub(super) fn scan(options: &Options, connection: &mut Connection) -> Result<ExitCode> {
    let quoted = format(options).style == Style::Standard;
    let mut walk = Walk::new(options, connection)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    while let Some(keys) = walk.next()? {
        for key in keys {
            if quoted {
                writeln!(out, "{}", repr(&key))?;
            } else {
                out.write_all(&key)?;
                out.write_all(b"\n")?;
            }
        }
        // Who waits for keys gets them as they come.
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is counted of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Elements,
    Memory(u32),
    Heat,
}

/// A type of value, how its elements are counted, and what they are called.
struct Kind {
    name: String,
    size_command: Option<&'static str>,
    unit: &'static str,
    keys: u64,
    total: u64,
    biggest: Option<(u64, Vec<u8>)>,
}

impl Kind {
    fn new(name: &str) -> Kind {
        let (size_command, unit) = match name {
            "list" => (Some("LLEN"), "items"),
            "hash" => (Some("HLEN"), "fields"),
            "string" => (Some("STRLEN"), "bytes"),
            "stream" => (Some("XLEN"), "entries"),
            "set" => (Some("SCARD"), "members"),
            "zset" => (Some("ZCARD"), "members"),
            // A module's: it is counted, and has no size.
            _ => (None, "?"),
        };
        Kind { name: name.to_string(), size_command, unit, keys: 0, total: 0, biggest: None }
    }
}

/// What was found so far.
struct Found {
    measure: Measure,
    kinds: Vec<Kind>,
    keys: u64,
    key_bytes: u64,
    keys_in_db: u64,
    /// How much had been looked at before this step.
    percent: f64,
    /// Counter and key, highest first.
    hot: Vec<(u64, Vec<u8>)>,
}

/// `--bigkeys`, `--memkeys`, `--hotkeys`
pub(super) fn find(options: &Options, connection: &mut Connection) -> Result<ExitCode> {
    let measure = match (options.memkeys, options.hotkeys) {
        (true, _) => Measure::Memory(options.memkeys_samples),
        (_, true) => Measure::Heat,
        _ => Measure::Elements,
    };
    let what = if measure == Measure::Heat { "hot keys" } else { "biggest keys" };
    println!("\n# Scanning the entire keyspace to find {what} as well as");
    println!("# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec");
    println!("# per 100 SCAN commands (not usually needed).\n");
    let keys_in_db = connection.query(&["DBSIZE"])?;
    let kinds = ["list", "hash", "string", "stream", "set", "zset"].map(Kind::new).into();
    let mut found =
        Found { measure, kinds, keys: 0, key_bytes: 0, keys_in_db, percent: 0.0, hot: Vec::new() };
    let mut walk = Walk::new(options, connection)?;
    while let Some(keys) = walk.next()? {
        found.percent = 100.0 * found.keys as f64 / (found.keys_in_db as f64).max(1.0);
        let sampled = match measure {
            Measure::Heat => found.heat(&mut walk, keys),
            _ => found.sizes(&mut walk, keys),
        };
        if let Err(error) = sampled {
            eprintln!("Error: {error:#}");
            return Ok(ExitCode::FAILURE);
        }
    }
    found.summary();
    Ok(ExitCode::SUCCESS)
}

impl Found {
    fn heat(&mut self, walk: &mut Walk<'_>, keys: Vec<Vec<u8>>) -> Result<()> {
        let commands: Vec<_> = keys.iter().map(|key| vec![&b"OBJECT"[..], b"FREQ", key]).collect();
        for (key, reply) in keys.iter().zip(walk.ask(&commands)?) {
            let counter = match reply {
                Reply::Int(counter) => counter as u64,
                // Deleted since the step.
                Reply::Null | Reply::NullArray => continue,
                Reply::Error(text) => bail!("{}", String::from_utf8_lossy(&text)),
                _ => continue,
            };
            let percent = self.percent;
            self.keys += 1;
            self.key_bytes += key.len() as u64;
            let place = self.hot.partition_point(|(other, _)| *other >= counter);
            if place < HOT_KEYS_MAX && counter > 0 {
                println!("[{percent:05.2}%] Hot key '{}' found so far with counter {counter}", repr(key));
                self.hot.insert(place, (counter, key.clone()));
                self.hot.truncate(HOT_KEYS_MAX);
            }
        }
        Ok(())
    }

    fn sizes(&mut self, walk: &mut Walk<'_>, keys: Vec<Vec<u8>>) -> Result<()> {
        let types: Vec<_> = keys.iter().map(|key| vec![&b"TYPE"[..], key]).collect();
        let mut of_kind = Vec::with_capacity(keys.len());
        let types = walk.ask(&types)?;
        for (key, reply) in keys.into_iter().zip(types) {
            match reply {
                Reply::Simple(name) if name != b"none" => {
                    of_kind.push((self.kind(&String::from_utf8_lossy(&name)), key));
                }
                Reply::Error(text) => bail!("{}", String::from_utf8_lossy(&text)),
                // Deleted since the step.
                _ => {}
            }
        }
        let samples = match self.measure {
            Measure::Memory(samples) => samples.to_string().into_bytes(),
            _ => Vec::new(),
        };
        let commands: Vec<Vec<&[u8]>> = of_kind
            .iter()
            .map(|(kind, key)| match (self.measure, self.kinds[*kind].size_command) {
                (Measure::Memory(_), _) => vec![&b"MEMORY"[..], b"USAGE", key, b"SAMPLES", &samples],
                (_, Some(command)) => vec![command.as_bytes(), key],
                (_, None) => vec![&b"EXISTS"[..], key],
            })
            .collect();
        let sizes = walk.ask(&commands)?;
        for ((kind, key), reply) in of_kind.into_iter().zip(sizes) {
            let size = match reply {
                Reply::Int(size) => u64::try_from(size).unwrap_or(0),
                Reply::Error(text) if matches!(self.measure, Measure::Memory(_)) => {
                    bail!("{}", String::from_utf8_lossy(&text))
                }
                // Of another type since it was asked for, or gone.
                _ => continue,
            };
            self.add(kind, key, size);
        }
        Ok(())
    }

    fn kind(&mut self, name: &str) -> usize {
        self.kinds.iter().position(|kind| kind.name == name).unwrap_or_else(|| {
            self.kinds.push(Kind::new(name));
            self.kinds.len() - 1
        })
    }

    fn unit(&self, kind: usize) -> &'static str {
        if matches!(self.measure, Measure::Memory(_)) { "bytes" } else { self.kinds[kind].unit }
    }

    fn add(&mut self, kind: usize, key: Vec<u8>, size: u64) {
        let (percent, unit) = (self.percent, self.unit(kind));
        self.keys += 1;
        self.key_bytes += key.len() as u64;
        let kind = &mut self.kinds[kind];
        kind.keys += 1;
        kind.total += size;
        if kind.biggest.as_ref().is_none_or(|(biggest, _)| size > *biggest) {
            println!(
                "[{percent:05.2}%] Biggest {:<6} found so far '{}' with {size} {unit}",
                kind.name,
                repr(&key)
            );
            kind.biggest = Some((size, key));
        }
    }

    fn summary(&self) {
        let average = if self.keys == 0 { 0.0 } else { self.key_bytes as f64 / self.keys as f64 };
        println!("\n-------- summary -------\n");
        println!("Sampled {} keys in the keyspace!", self.keys);
        if self.measure == Measure::Heat {
            for (counter, key) in &self.hot {
                println!("hot key found with counter: {counter}\tkeyname: {}", repr(key));
            }
            return;
        }
        println!("Total key length in bytes is {} (avg len {average:.2})\n", self.key_bytes);
        for (index, kind) in self.kinds.iter().enumerate() {
            if let Some((size, key)) = &kind.biggest {
                println!("Biggest {:>6} found '{}' has {size} {}", kind.name, repr(key), self.unit(index));
            }
        }
        println!();
        for (index, kind) in self.kinds.iter().enumerate() {
            let share = if self.keys == 0 { 0.0 } else { 100.0 * kind.keys as f64 / self.keys as f64 };
            let average = if kind.keys == 0 { 0.0 } else { kind.total as f64 / kind.keys as f64 };
            let (keys, name, total, unit) = (kind.keys, &kind.name, kind.total, self.unit(index));
            println!("{keys} {name}s with {total} {unit} ({share:05.2}% of keys, avg size {average:.2})");
        }
    }
}

/// The keys that begin with a prefix, as many as are found with a few steps: for completion.
pub(super) fn with_prefix(
    connection: &mut Connection,
    prefix: &[u8],
    keys_max: usize,
) -> Result<Vec<Vec<u8>>> {
    const STEPS_MAX: usize = 8;
    let mut glob = Vec::new();
    for &byte in prefix {
        if b"*?[]\\".contains(&byte) {
            glob.push(b'\\');
        }
        glob.push(byte);
    }
    glob.push(b'*');
    let (mut keys, mut cursor) = (Vec::new(), "0".to_string());
    for _ in 0..STEPS_MAX {
        let args = [b"SCAN", cursor.as_bytes(), b"MATCH", &glob, b"COUNT", b"1000"];
        let (next, found): (String, Vec<Vec<u8>>) = connection.query(&args).context("SCAN")?;
        keys.extend(found);
        cursor = next;
        if cursor == "0" || keys.len() >= keys_max {
            break;
        }
    }
    keys.sort();
    keys.dedup();
    keys.truncate(keys_max);
    Ok(keys)
}
