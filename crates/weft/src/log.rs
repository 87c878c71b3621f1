//! `weft log`: a log or snapshot that no server has open: what is wrong with it, a new one from what is whole, what it
//! says. Owns the command line and the words. Does not own: the forms of files (`weft_persist`). Nothing here writes to
//! what it reads.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use weft_persist::disk::{Disk, Folder};
use weft_persist::manifest::base_of;
use weft_persist::survey::Surveyed;
use weft_persist::{Place, Survey, repair, survey_file, survey_log};
use weft_protocol::request::{Arguments as _, Decoded};
use weft_protocol::respb::RequestDecoder;
use weft_protocol::{Arg, Limits, Outcome, request::ArgList};
use weft_store::effect::KeyedEffect;

use crate::text::{grouped, quoted};

/// Bytes of an argument that are shown without `--whole`.
const SHOWN_BYTES_MAX: usize = 80;
/// What `databases` of a server is where nothing else was set.
const DATABASES: u8 = 16;

const EXAMPLES: &str = "\
Examples:
  weft log check /var/lib/weft/appendonlydir          is it whole, and if not: where, and what is lost
  weft log repair /var/lib/weft/appendonlydir --to /var/lib/weft/repaired
  weft log dump /var/lib/weft/appendonlydir | less    what each group has done
  weft log dump --from 4096 appendonlydir/appendonly.aof.7.log

PATH is the folder of a log, its manifest (NAME.weft), a segment or a snapshot. A server may have it open: what it is
writing then is the torn end.
Guide: docs/persistence.md";

/// Check a log or snapshot, write a new one from what is whole, show what it says
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Options {
    Check(Check),
    Dump(Dump),
    Repair(Repair),
}

/// Say of each file whether it is whole; status 1 if a server would not start with it
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A folder, a manifest, a segment or a snapshot
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The setting of the server that is to start with it
    #[arg(long, value_name = "N", default_value_t = DATABASES)]
    databases: u8,
}

/// Print every request: where it stands, its epoch, its database, its words
#[derive(Debug, Args)]
pub(crate) struct Dump {
    /// A folder, a manifest, a segment or a snapshot
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Begin with the block at this byte or behind it
    #[arg(long, value_name = "BYTE", default_value_t = 0)]
    from: u64,
    /// Print words in full, however long
    #[arg(long)]
    whole: bool,
}

/// Write a new log from what proves: all up to the first damage, as it was at one moment
#[derive(Debug, Args)]
pub(crate) struct Repair {
    /// The folder of a log, or its manifest: it stays as it is
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The new log's folder, which must not be there or be empty
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Take what is behind the damage too: all that can be had, which may be as it never was at any moment
    #[arg(long)]
    keep_rest: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    match options {
        Options::Check(check) => check.run(),
        Options::Dump(dump) => dump.run(),
        Options::Repair(repair) => repair.run(),
    }
}

/// What a path names.
struct Target {
    disk: Folder,
    what: Named,
}

enum Named {
    Log(String),
    File(String),
}

impl Target {
    fn find(path: &Path) -> Result<Self> {
        if path.is_dir() {
            let disk = Folder::unlocked(path);
            let names = disk.names()?;
            let mut bases: Vec<String> =
                names.iter().filter_map(|name| base_of(name)).map(Into::into).collect();
            if bases.is_empty() {
                // Its manifest may be what is missing.
                bases.extend(names.iter().filter_map(|name| numbered(name)));
                bases.sort();
                bases.dedup();
            }
            ensure!(
                bases.len() < 2,
                "{}: several logs ({}); name the manifest of one",
                path.display(),
                bases.join(", ")
            );
            let Some(base) = bases.pop() else { bail!("{}: there is no log of Weft", path.display()) };
            return Ok(Self { disk, what: Named::Log(base) });
        }
        ensure!(path.is_file(), "{}: there is no such file", path.display());
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = path.file_name().and_then(|name| name.to_str()).context("a name that is no text")?;
        let what = base_of(name).map_or_else(|| Named::File(name.into()), |base| Named::Log(base.into()));
        Ok(Self { disk: Folder::unlocked(folder), what })
    }
    fn survey(&self, look: &mut dyn FnMut(Place<'_>, &[u8]) -> bool) -> Result<Survey> {
        match &self.what {
            Named::Log(base) => Ok(survey_log(&self.disk, base, look)?),
            Named::File(name) => Ok(survey_file(&self.disk, name, look)),
        }
    }
}

/// What the name of a log's file begins with.
fn numbered(name: &str) -> Option<String> {
    let rest = name.strip_suffix(".log").or_else(|| name.strip_suffix(".snapshot"))?;
    let (base, number) = rest.rsplit_once('.')?;
    number.parse::<u64>().ok().map(|_| base.into())
}

fn said(survey: &Survey) -> String {
    let mut text = String::new();
    for Surveyed { name, blocks, requests, epoch, bytes, lost_bytes, torn_bytes } in &survey.files {
        text += &format!(
            "{name}: {} requests in {} blocks up to epoch {epoch}, {} bytes are whole",
            grouped(*requests),
            grouped(*blocks),
            grouped(*bytes)
        );
        if *lost_bytes > 0 {
            text += &format!(", {} bytes are lost", grouped(*lost_bytes));
        }
        if *torn_bytes > 0 {
            text += &format!(
                ", {} bytes at its end were never safe: a start cuts them off",
                grouped(*torn_bytes)
            );
        }
        text.push('\n');
    }
    if survey.is_guessed {
        text += "the manifest could not be read: the files were found by their names\n";
    }
    for problem in &survey.problems {
        text += &format!("problem: {problem}\n");
    }
    text
}

impl Check {
    fn run(&self) -> Result<ExitCode> {
        let mut wrong = Vec::new();
        let mut last_db = 0;
        let survey = Target::find(&self.path)?.survey(&mut |place, requests| {
            // A block that proves was written so: what it says is looked at too.
            let look = |_, told: &[KeyedEffect<'_>]| {
                last_db = told.iter().map(KeyedEffect::last_db).fold(last_db, u8::max);
            };
            if let Err(strange) = weft_persist::Decoder::default().each(requests, look) {
                let at = place.at + strange.offset as u64;
                wrong.push(format!(
                    "{} says at block {at} what this version does not know: {}",
                    place.file, strange.why
                ));
            }
            true
        })?;
        print!("{}", said(&survey));
        if last_db >= self.databases {
            let wants = u16::from(last_db) + 1;
            wrong.push(format!("it wants {wants} databases: 'databases' is to be raised to what it was"));
        }
        wrong.iter().for_each(|wrong| println!("problem: {wrong}"));
        let is_whole = survey.problems.is_empty() && wrong.is_empty();
        println!("{}", if is_whole { "whole" } else { "a server does not start with it" });
        Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Repair {
    fn run(&self) -> Result<ExitCode> {
        let Target { disk, what: Named::Log(base) } = Target::find(&self.path)? else {
            bail!("{}: a part of a log; name its folder or its manifest", self.path.display());
        };
        let to = Folder::lock(&self.to).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => anyhow!("{}: a server keeps its log there", self.to.display()),
            _ => error.into(),
        })?;
        let there = to.names()?.into_iter().find(|name| name != weft_persist::disk::LOCK);
        ensure!(there.is_none(), "{}: is not empty, and nothing is written over", self.to.display());
        let to: Arc<dyn Disk> = Arc::new(to);
        let repaired = repair(&disk, &to, &base, self.keep_rest)?;
        print!("{}", said(&repaired.survey));
        println!(
            "{}: a new log of {} requests; start with --appenddirname naming it, or put it in the other one's place",
            self.to.display(),
            grouped(repaired.requests)
        );
        Ok(ExitCode::SUCCESS)
    }
}

impl Dump {
    fn run(&self) -> Result<ExitCode> {
        let target = Target::find(&self.path)?;
        let mut out = io::BufWriter::new(io::stdout().lock());
        let mut failed: Result<()> = Ok(());
        let survey = target.survey(&mut |place, requests| {
            if place.at >= self.from {
                failed = self.block(&mut out, place, requests);
            }
            failed.is_ok()
        })?;
        failed?;
        out.flush()?;
        survey.problems.iter().for_each(|problem| eprintln!("weft log: {problem}"));
        Ok(if survey.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn block(&self, out: &mut impl io::Write, place: Place<'_>, requests: &[u8]) -> Result<()> {
        let head = place.head;
        writeln!(
            out,
            "{} at {}: epoch {}, {} requests, {} bytes; {} bytes before it were not synced",
            place.file,
            place.at,
            head.epoch,
            head.count,
            requests.len(),
            head.behind
        )?;
        let mut rest = requests;
        let mut words = ArgList::new();
        while !rest.is_empty() {
            words.clear();
            let at = place.at as usize + weft_persist::block::HEAD_BYTES + requests.len() - rest.len();
            let Outcome::Complete(frame) = RequestDecoder::new(Limits::DEFAULT).decode(rest, &mut words)
            else {
                bail!("{} at {at}: what stands there is no request of RESPB", place.file);
            };
            write!(out, "  {at} db {}:", frame.channel)?;
            if let Some(id) = frame.frame.command() {
                write!(out, " {}", id.spec().name)?;
            }
            let words = Decoded { list: &words, frame: rest };
            for at in 0..words.len() {
                write!(out, " {}", self.word(&words.arg(at)))?;
            }
            writeln!(out)?;
            rest = frame.rest;
        }
        Ok(())
    }

    fn word(&self, word: &Arg<'_>) -> String {
        let max = if self.whole { usize::MAX } else { SHOWN_BYTES_MAX };
        match word {
            Arg::Bytes(bytes) => quoted(bytes, max),
            Arg::Int(number) => number.to_string(),
            Arg::Double(number) => number.to_string(),
            Arg::Keyword(word) => (*word).to_string(),
        }
    }
}
