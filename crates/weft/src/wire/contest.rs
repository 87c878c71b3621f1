//! Who takes part, and the measuring: warm-up, interleaved rounds, sums compared, bytes compared.
//!
//! Owns the list of contestants and the order of work on one stream. A driver that is not there is left out and said
//! to be.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};

use super::counts;
use super::driver::Driver;
use super::ladder::Step;
use super::results::{Cell, HeapPer, Measured, Percentiles};
use super::runner::{Local, Runner, cpu_ns};
use super::stream::{Stream, Wire};
use weft_measure::Spread;

/// Commands of a batch whose latency is measured: what a server takes in between two looks at its sockets.
pub(super) const LATENCY_BATCH: usize = 64;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Rounds, after one more for warming up.
    pub(super) rounds: u64,
    /// Passes over the stream in each round.
    pub(super) passes: u64,
    /// Latencies of so many batches; 0 for none.
    pub(super) samples: usize,
    /// Instructions and misses, where valgrind is there.
    pub(super) counts: bool,
}

/// A contestant.
pub(super) struct Contestant {
    /// Its name in results: `valkey/parse`, `weft/respb/fields`.
    pub(super) id: String,
    pub(super) label: String,
    pub(super) wire: Wire,
    runner: Box<dyn Runner>,
    /// The program with its arguments, and the mode to ask it for.
    command: (Vec<std::ffi::OsString>, String),
}

/// Everyone who takes part, and a line for each who could not.
pub(super) struct Field {
    pub(super) contestants: Vec<Contestant>,
    pub(super) absent: Vec<String>,
}

/// Where the drivers are.
#[derive(Clone, Debug, Default)]
pub(super) struct Drivers {
    pub(super) valkey: Option<PathBuf>,
    pub(super) library: Option<PathBuf>,
}

impl Drivers {
    /// Where `scripts/valkey-driver` and `scripts/respb-driver` leave them.
    pub(super) fn find() -> Drivers {
        let cache = std::env::var_os("WEFT_CACHE").map(PathBuf::from).or_else(|| {
            let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            let base = base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
            Some(base.join("weft"))
        });
        let valkey = cache.map(|cache| cache.join(format!("valkey-{VALKEY}/bin/valkey-driver")));
        // The target directory, two or three levels above this program.
        let exe = std::env::current_exe().unwrap_or_default();
        let library =
            exe.ancestors().skip(1).take(3).map(|dir| dir.join("drivers/respb-driver")).find(|p| p.exists());
        Drivers { valkey: valkey.filter(|path| path.exists()), library }
    }
}

/// The version of Valkey whose parser is measured.
pub(super) const VALKEY: &str = "9.1.2";

impl Field {
    pub(super) fn gather(drivers: &Drivers) -> Result<Field> {
        let mut field = Field { contestants: Vec::new(), absent: Vec::new() };
        match &drivers.valkey {
            Some(path) => {
                field.valkey(path, "parse", "Valkey's parser, objects made and freed")?;
                field.valkey(path, "lookup", "the same + command looked up")?;
            }
            None => field.absent.push(format!("Valkey {VALKEY}'s parser: scripts/valkey-driver builds it")),
        }
        match &drivers.library {
            Some(path) => {
                for wire in [Wire::Resp, Wire::Respb] {
                    let mode = wire.name().to_lowercase();
                    let label = format!("Weft {} through the C library", wire.name());
                    field.program(format!("c/{mode}"), label, wire, path, &mode, None)?;
                }
            }
            None => field.absent.push("the C library: scripts/respb-driver builds it".to_string()),
        }
        let exe = std::env::current_exe().context("this program's own path")?;
        for wire in Wire::ALL {
            for step in Step::ALL {
                let id = format!("weft/{}/{}", wire.id(), step.id());
                let label = format!("Weft {}, {}", wire.name(), step.name());
                let runner = Box::new(Local::new(wire, step));
                let serve = ["wire".into(), "--serve".into(), id.clone().into()];
                let command =
                    (std::iter::once(exe.clone().into_os_string()).chain(serve).collect(), "-".to_string());
                field.contestants.push(Contestant { id, label, wire, runner, command });
            }
        }
        Ok(field)
    }

    fn valkey(&mut self, path: &Path, mode: &str, label: &str) -> Result<()> {
        let counting = path.with_file_name("valkey-driver-counting");
        self.program(format!("valkey/{mode}"), label.to_string(), Wire::Resp, path, mode, Some(counting))
    }

    fn program(
        &mut self,
        id: String,
        label: String,
        wire: Wire,
        path: &Path,
        mode: &str,
        counting: Option<PathBuf>,
    ) -> Result<()> {
        let command = vec![path.as_os_str().to_owned()];
        let mut driver = Driver::start(&command, mode)?;
        if let Some(counting) = counting {
            driver = driver.counted_by(counting);
        }
        let command = (command, mode.to_string());
        self.contestants.push(Contestant { id, label, wire, runner: Box::new(driver), command });
        Ok(())
    }

    /// Measures everyone on a stream.
    pub(super) fn run(&mut self, stream: &Stream, plan: &Plan) -> Result<Cell> {
        let shared = Wire::ALL.map(|wire| Rc::new(stream.on(wire).bytes.clone()));
        for contestant in &mut self.contestants {
            contestant.runner.load(&shared[contestant.wire as usize])?;
            contestant.check(stream)?;
        }
        let mut times = vec![Vec::new(); self.contestants.len()];
        for round in 0..=plan.rounds {
            for (contestant, times) in self.contestants.iter_mut().zip(&mut times) {
                // One pass that is not timed brings the stream into the cache that another contestant has just had.
                contestant.runner.pass(1).with_context(|| contestant.id.clone())?;
                let cost = contestant.timed(stream, plan.passes)?;
                // The first round warms up.
                if round > 0 {
                    times.push(cost);
                }
            }
        }
        let mut cell = Cell::of(stream);
        for wire in [Wire::Resp, Wire::Respb] {
            let bytes = &stream.on(wire).bytes;
            cell.reading.push(reading(bytes, stream.commands, plan));
        }
        for (contestant, times) in self.contestants.iter_mut().zip(times) {
            cell.contestants.push(contestant.rest(stream, times, plan)?);
        }
        Ok(cell)
    }
}

impl Contestant {
    /// Compares every byte of every argument, and the sums of one pass. Not timed.
    fn check(&mut self, stream: &Stream) -> Result<()> {
        let dump = self.runner.dump().with_context(|| self.id.clone())?;
        let differs = dump.iter().zip(&stream.flat).position(|(a, b)| a != b);
        ensure!(
            differs.is_none() && dump.len() == stream.flat.len(),
            "{}: its arguments differ from the workload's at byte {} of their list",
            self.id,
            differs.unwrap_or(dump.len().min(stream.flat.len()))
        );
        self.timed(stream, 1)?;
        Ok(())
    }

    /// Nanoseconds of CPU time for each command, the sums checked.
    fn timed(&mut self, stream: &Stream, passes: u64) -> Result<f64> {
        let passed = self.runner.pass(passes).with_context(|| self.id.clone())?;
        ensure!(passed.commands == stream.commands * passes, "{}: {} commands", self.id, passed.commands);
        if let Some(fold) = passed.fold {
            let sum = fold.wrapping_add(stream.on(self.wire).correction);
            ensure!(sum == stream.checksum, "{}: sum {sum:016x}, not {:016x}", self.id, stream.checksum);
        }
        if let Some(ids) = passed.ids {
            ensure!(ids == stream.ids, "{}: looked up other commands", self.id);
        }
        Ok(passed.cpu_ns as f64 / passed.commands as f64)
    }

    /// What is measured beside the time, put together with it.
    fn rest(&mut self, stream: &Stream, times: Vec<f64>, plan: &Plan) -> Result<Measured> {
        let per = |count: u64| count as f64 / stream.commands as f64;
        let heap = self.runner.heap().with_context(|| self.id.clone())?.map(|heap| HeapPer {
            allocations: per(heap.allocations),
            bytes: per(heap.bytes),
            peak_bytes: heap.peak_bytes,
        });
        let latency = match plan.samples {
            0 => None,
            samples => Some(Percentiles::of(self.runner.latency(LATENCY_BATCH, samples)?, clock_ns())),
        };
        let counts = if plan.counts {
            counts::of(&self.command.0, &self.command.1, &stream.on(self.wire).bytes)?
        } else {
            None
        };
        Ok(Measured {
            id: self.id.clone(),
            label: self.label.clone(),
            cpu_ns: Spread::of(times),
            heap,
            latency,
            counts,
        })
    }
}

/// What two readings of the clock cost, one right after the other: the median of many.
fn clock_ns() -> u64 {
    let mut times: Vec<u64> = (0..10_001)
        .map(|_| {
            let before = std::time::Instant::now();
            std::hint::black_box(before).elapsed().as_nanos() as u64
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// Nanoseconds for each command of only reading the bytes: what no decoder can be faster than by far, since it must
/// read lengths that lie scattered among them, but which a copy or a checksum pays.
fn reading(bytes: &[u8], commands: u64, plan: &Plan) -> f64 {
    let sum = |bytes: &[u8]| {
        let (words, _) = bytes.as_chunks::<8>();
        words.iter().fold(0u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
    };
    let mut costs: Vec<f64> = (0..=plan.rounds)
        .map(|_| {
            let before = cpu_ns();
            for _ in 0..plan.passes {
                std::hint::black_box(sum(std::hint::black_box(bytes)));
            }
            (cpu_ns() - before) as f64 / (plan.passes * commands) as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[costs.len() / 2]
}
