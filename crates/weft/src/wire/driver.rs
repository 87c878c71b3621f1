//! Contestants that are programs of their own: Valkey's parser, the C library, and anything under valgrind.
//!
//! Owns the client's side of the protocol that `bench/drivers/driver.c` describes. A program that ends or answers
//! otherwise is an error that names it.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use anyhow::{Context as _, Result, bail};

use super::runner::{Passed, Runner};
use crate::heap::Heap;

/// A program that holds one stream.
pub(super) struct Driver {
    child: Child,
    /// `None` once the program has been told to end.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    mode: String,
    /// Another build of the same program that counts allocations, started when it is needed.
    counting: Option<PathBuf>,
    loaded: Rc<Vec<u8>>,
    /// What it says it is.
    pub(super) name: String,
}

impl Driver {
    pub(super) fn start(command: &[OsString], mode: &str) -> Result<Driver> {
        let (program, arguments) = command.split_first().context("no program")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{}", program.display()))?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("no pipe")?);
        let mode = mode.to_string();
        let (loaded, name) = (Rc::default(), String::new());
        let mut driver = Driver { child, stdin, stdout, mode, counting: None, loaded, name };
        driver.name = driver.answer("ready ")?;
        Ok(driver)
    }

    /// Names the build that counts allocations.
    pub(super) fn counted_by(mut self, program: PathBuf) -> Driver {
        self.counting = Some(program);
        self
    }

    fn ask(&mut self, line: &str) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the program has ended")?;
        stdin.write_all(line.as_bytes())?;
        stdin.flush()?;
        Ok(())
    }

    /// The next line, which must begin with `word`; what follows it.
    fn answer(&mut self, word: &str) -> Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        match line.trim_end().strip_prefix(word) {
            Some(rest) => Ok(rest.to_string()),
            None => bail!("{}: expected {word:?}, got {line:?}", self.name),
        }
    }

    fn numbers<const N: usize>(&mut self, word: &str) -> Result<[u64; N]> {
        let answer = self.answer(word)?;
        let numbers: Option<Vec<u64>> = answer.split(' ').map(|number| number.parse().ok()).collect();
        numbers
            .and_then(|numbers| numbers.try_into().ok())
            .with_context(|| format!("{}: {answer:?}", self.name))
    }

    /// Lets the program end by itself and waits for it.
    pub(super) fn finish(mut self) -> Result<()> {
        self.stdin = None;
        let status = self.child.wait()?;
        if !status.success() {
            bail!("{}: {status}", self.name);
        }
        Ok(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Without stdin the program ends; it is waited for so that it leaves nothing behind.
        self.stdin = None;
        let _ = self.child.wait();
    }
}

impl Runner for Driver {
    fn load(&mut self, bytes: &Rc<Vec<u8>>) -> Result<()> {
        self.loaded = Rc::clone(bytes);
        self.ask(&format!("load {}\n", bytes.len()))?;
        let stdin = self.stdin.as_mut().context("the program has ended")?;
        stdin.write_all(bytes)?;
        stdin.flush()?;
        self.answer("ok ")?;
        Ok(())
    }

    fn pass(&mut self, repeats: u64) -> Result<Passed> {
        self.ask(&format!("pass {} {repeats}\n", self.mode))?;
        let [commands, fold, cpu_ns] = self.numbers("pass ")?;
        Ok(Passed { commands, fold: Some(fold), ids: None, cpu_ns })
    }

    fn heap(&mut self) -> Result<Option<Heap>> {
        let Some(program) = self.counting.clone() else { return Ok(None) };
        let mut counting = Driver::start(&[program.into_os_string()], &self.mode)?;
        counting.load(&self.loaded)?;
        counting.ask(&format!("heap {}\n", self.mode))?;
        let [allocations, bytes, peak_bytes] = counting.numbers("heap ")?;
        counting.finish()?;
        Ok(Some(Heap { allocations, bytes, peak_bytes }))
    }

    fn latency(&mut self, batch: usize, samples: usize) -> Result<Vec<u64>> {
        self.ask(&format!("latency {} {batch} {samples}\n", self.mode))?;
        let [count] = self.numbers("latency ")?;
        (0..count).map(|_| self.numbers::<1>("").map(|[time]| time)).collect()
    }

    fn dump(&mut self) -> Result<Vec<u8>> {
        self.ask("dump\n")?;
        let [len] = self.numbers("dump ")?;
        let mut bytes = Vec::new();
        (&mut self.stdout).take(len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
