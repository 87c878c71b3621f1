//! What a contestant can be asked to do, and the contestants that run inside this program.
//!
//! Owns the interface that Weft's decoders, Valkey's parser and the C library are measured through, and CPU time. The
//! contestants that are programs of their own are in [`super::driver`].

use std::io::{BufRead as _, Read as _, Write as _};
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use weft_protocol::request::ArgList;
use weft_protocol::{Limits, Outcome, resp, respb};

use super::ladder::{self, Seen, Step};
use super::stream::{Wire, flat, text};
use crate::heap::{self, Heap};

/// What passes over a stream gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// Commands of all passes.
    pub(super) commands: u64,
    /// The fold of what the wire carries, of one pass; nothing for the step that folds nothing.
    pub(super) fold: Option<u64>,
    /// The sum of the commands' numbers in the table, of one pass, where they were looked up and can be compared.
    pub(super) ids: Option<u64>,
    /// User and system time of all passes.
    pub(super) cpu_ns: u64,
}

/// A contestant.
pub(super) trait Runner {
    /// Takes the stream that all later calls are about.
    fn load(&mut self, bytes: &Rc<Vec<u8>>) -> Result<()>;
    /// Decodes the stream `repeats` times.
    fn pass(&mut self, repeats: u64) -> Result<Passed>;
    /// Decodes it once and counts what that allocates; nothing where that cannot be counted.
    fn heap(&mut self) -> Result<Option<Heap>>;
    /// Decodes `samples` batches of so many commands, and gives the nanoseconds that each took by the clock.
    fn latency(&mut self, batch: usize, samples: usize) -> Result<Vec<u64>>;
    /// Every argument of every command, in the flat form of [`super::stream::Stream`].
    fn dump(&mut self) -> Result<Vec<u8>>;
}

/// CPU time of this process so far, user and system.
pub(super) fn cpu_ns() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("RUSAGE_SELF is always there");
    (usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds()).unsigned_abs()
}

/// A step of the ladder on a wire.
pub(super) struct Local {
    wire: Wire,
    step: Step,
    bytes: Rc<Vec<u8>>,
    /// The offset behind each command, for batches; found when first asked for.
    ends: Vec<usize>,
}

impl Local {
    pub(super) fn new(wire: Wire, step: Step) -> Self {
        Local { wire, step, bytes: Rc::new(Vec::new()), ends: Vec::new() }
    }

    fn passed(&self, seen: Seen, commands: u64, cpu_ns: u64) -> Passed {
        let looked_up = !matches!(self.step, Step::Bytes | Step::Fields);
        Passed {
            commands,
            fold: (self.step != Step::Bytes).then_some(seen.fold),
            ids: looked_up.then_some(seen.ids),
            cpu_ns,
        }
    }
}

impl Runner for Local {
    fn load(&mut self, bytes: &Rc<Vec<u8>>) -> Result<()> {
        (self.bytes, self.ends) = (Rc::clone(bytes), Vec::new());
        Ok(())
    }

    fn pass(&mut self, repeats: u64) -> Result<Passed> {
        let (mut seen, mut commands, before) = (Seen::default(), 0, cpu_ns());
        for _ in 0..repeats {
            seen = ladder::pass(self.wire, self.step, std::hint::black_box(&self.bytes));
            commands += seen.commands;
        }
        Ok(self.passed(seen, commands, cpu_ns() - before))
    }

    fn heap(&mut self) -> Result<Option<Heap>> {
        let (_, heap) = heap::count(|| ladder::pass(self.wire, self.step, &self.bytes));
        Ok(Some(heap))
    }

    fn latency(&mut self, batch: usize, samples: usize) -> Result<Vec<u64>> {
        if self.ends.is_empty() {
            self.ends = ends(self.wire, &self.bytes)?;
        }
        let batches = self.ends.len() / batch;
        ensure!(batches > 0, "the stream has no batch of {batch} commands");
        let mut times = Vec::with_capacity(samples);
        for sample in 0..samples {
            let first = sample % batches * batch;
            let from = if first == 0 { 0 } else { self.ends[first - 1] };
            let slice = &self.bytes[from..self.ends[first + batch - 1]];
            let before = Instant::now();
            std::hint::black_box(ladder::pass(self.wire, self.step, std::hint::black_box(slice)));
            times.push(before.elapsed().as_nanos() as u64);
        }
        Ok(times)
    }

    fn dump(&mut self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        each_command(self.wire, &self.bytes, |name, list, input, _| {
            out.extend_from_slice(&((list.len() + usize::from(name.is_some())) as u32).to_le_bytes());
            if let Some(name) = name {
                flat(name.as_bytes(), &mut out);
            }
            list.iter(input).for_each(|arg| flat(&text(&arg), &mut out));
        })?;
        Ok(out)
    }
}

fn ends(wire: Wire, bytes: &[u8]) -> Result<Vec<usize>> {
    let mut ends = Vec::new();
    each_command(wire, bytes, |_, _, _, end| ends.push(end))?;
    Ok(ends)
}

/// Calls `each` with the name that an opcode stands for, the arguments, the bytes from the frame's first one on and
/// the offset behind the frame. It goes through the decoders' `decode`, as the timed loops do.
fn each_command(
    wire: Wire,
    bytes: &[u8],
    mut each: impl FnMut(Option<&'static str>, &ArgList, &[u8], usize),
) -> Result<()> {
    let (mut list, mut rest) = (ArgList::new(), bytes);
    let mut resp = resp::RequestDecoder::new(Limits::DEFAULT);
    let mut respb = respb::RequestDecoder::new(Limits::DEFAULT);
    while !rest.is_empty() {
        list.clear();
        let (name, behind) = match wire {
            Wire::Resp => match resp.decode(rest, &mut list) {
                Outcome::Complete(frame) => (None, frame.rest),
                other => bail!("{other:?}"),
            },
            Wire::Respb | Wire::Argv => match respb.decode(rest, &mut list) {
                Outcome::Complete(frame) => (frame.frame.command().map(|id| id.spec().name), frame.rest),
                other => bail!("{other:?}"),
            },
        };
        each(name, &list, rest, bytes.len() - behind.len());
        rest = behind;
    }
    Ok(())
}

/// Serves one contestant over stdin and stdout, so that it can run under valgrind: the protocol of
/// `bench/drivers/driver.c`, as far as that needs.
pub(super) fn serve(runner: &mut dyn Runner) -> Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    writeln!(output, "ready weft")?;
    output.flush()?;
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["load", len] => {
                let mut bytes = vec![0; len.parse().context("load LEN")?];
                input.read_exact(&mut bytes)?;
                runner.load(&Rc::new(bytes))?;
                writeln!(output, "ok 0")?;
            }
            ["pass", _, repeats] => {
                let passed = runner.pass(repeats.parse().context("pass MODE REPEATS")?)?;
                writeln!(output, "pass {} {} {}", passed.commands, passed.fold.unwrap_or(0), passed.cpu_ns)?;
            }
            _ => writeln!(output, "error no such request")?,
        }
        output.flush()?;
        line.clear();
    }
    Ok(())
}
