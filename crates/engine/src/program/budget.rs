//! Owns: what a program may do, and what is left of it. Does not own: where the limits are set (`crate::config`), what
//! is done when one is met: all is taken back.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::ends::Ends;
use super::expr::Fault;
use super::value::{Extent, Value};
use crate::config::Settings;

/// The time that a step stands for where what will be done is counted before.
pub(crate) const STEP_NS: u64 = 500;
/// Elements, arguments and parts of texts that expressions may look at for one step.
pub(super) const ELEMENTS_PER_STEP: usize = 16;
/// Bytes that are copied in the time of a step.
const BYTES_PER_STEP: usize = 1024;
/// Bytes that are put together in the time of a step, where they were charged when their values were made.
pub(super) const JOINED_PER_STEP: usize = 8192;
/// Bytes that matching a pattern goes over in the time of a step, and those that no step is taken for.
pub(crate) const WORK_PER_STEP: u64 = 256;
pub(crate) const LITTLE_WORK: u64 = WORK_PER_STEP;
/// Steps between two looks at the clock.
const STEPS_PER_LOOK: u64 = 32;
/// Steps that a quick program takes at most, with those for its expressions (`super::quick`).
const QUICK_STEPS_MAX: u64 = 64;
/// More than an answer that is a number or a status takes.
const LITTLE_ANSWER: u64 = 256;
/// Levels of lists and objects that a value may have: what goes through one calls itself as often.
const VALUE_DEPTH_MAX: u32 = 128;
/// Texts of fewer bytes are compared without asking.
pub(super) const LITTLE_BYTES: usize = 4096;

/// What a program may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Steps, rounds of loops, keys looked at by loops, elements.
    pub steps: u64,
    /// Keys that its commands name, each as often as they do.
    pub keys: u64,
    /// Bytes that its write commands bring.
    pub bytes: u64,
    /// Bytes of the values that it makes.
    pub memory: u64,
    /// Milliseconds.
    pub time_ms: u64,
}

impl Limits {
    /// What a program may do that says nothing else.
    pub const DEFAULT: Self =
        Self { steps: 10_000, keys: 1_000, bytes: 16 << 20, memory: 64 << 20, time_ms: 5 };
    /// What programs may do by the settings, whatever they say themselves.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        Self {
            steps: settings.program_steps_max.load(Relaxed),
            keys: settings.program_keys_max.load(Relaxed),
            bytes: settings.program_bytes_max.load(Relaxed),
            memory: settings.program_memory_max.load(Relaxed),
            time_ms: settings.program_time_ms_max.load(Relaxed),
        }
    }
    /// All of them by their names.
    #[must_use]
    pub const fn named(self) -> [(&'static str, u64); 5] {
        let Self { steps, keys, bytes, memory, time_ms } = self;
        [("steps", steps), ("keys", keys), ("bytes", bytes), ("memory", memory), ("time-ms", time_ms)]
    }
    /// The lesser of both, one by one.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        Self {
            steps: self.steps.min(other.steps),
            keys: self.keys.min(other.keys),
            bytes: self.bytes.min(other.bytes),
            memory: self.memory.min(other.memory),
            time_ms: self.time_ms.min(other.time_ms),
        }
    }
}

/// What is left.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    left: Limits,
    /// Steps until the clock is looked at.
    next_look: u64,
    /// Elements that were looked at, and are not a step yet.
    elements: usize,
    /// Bytes that were put together, and are not a step yet.
    joined: usize,
    /// When its time is over, once that runs: from the first command that may take long on, or the first look.
    ends: Option<Ends>,
}

pub(super) fn exceeded(limit: &str, name: &str, max: u64) -> Fault {
    format!("{limit}: the program may use {max} (\"limits\": {{\"{name}\"}}, program-{name}-max)").into()
}

impl Budget {
    /// All of it. Its time runs as soon as something may take any: most programs never look at the clock.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits, left: limits, next_look: STEPS_PER_LOOK, elements: 0, joined: 0, ends: None }
    }
    /// Something that may take long begins.
    pub fn begin(&mut self) {
        if self.ends.is_none() {
            let limit = Duration::from_millis(self.limits.time_ms);
            self.ends = Some(Ends::behind(Instant::now(), limit));
        }
    }
    /// It has the time of what has set it going, of which there may be less: its own begins now. Gives when that is
    /// over.
    pub(crate) fn begin_within(&mut self, around: Option<Ends>) -> Option<Ends> {
        self.begin();
        self.ends = [self.ends, around].into_iter().flatten().reduce(Ends::min);
        self.ends
    }
    /// A step.
    #[inline]
    pub fn take_step(&mut self) -> Result<(), Fault> {
        self.take_steps(1)
    }
    /// So many.
    #[inline]
    pub fn take_steps(&mut self, steps: u64) -> Result<(), Fault> {
        match self.left.steps.checked_sub(steps) {
            Some(left) => self.left.steps = left,
            None => return Err(exceeded("too many steps", "steps", self.limits.steps)),
        }
        self.next_look = self.next_look.saturating_sub(steps);
        if self.next_look == 0 { self.look() } else { Ok(()) }
    }
    /// So many steps that a command is about to take at once: nothing is begun for which the time does not suffice.
    pub fn take_work(&mut self, steps: u64) -> Result<(), Fault> {
        self.take_steps(steps)?;
        self.begin();
        if self.ends.is_some_and(|ends| ends.is_over_in(steps.saturating_mul(STEP_NS))) {
            let what = "too much time in milliseconds for what the command goes through";
            return Err(exceeded(what, "time-ms", self.limits.time_ms));
        }
        Ok(())
    }
    /// Bytes of an answer that are about to be copied.
    #[inline]
    pub fn take_answer(&mut self, bytes: usize) -> Result<(), Fault> {
        self.take_memory(bytes)?;
        if bytes < BYTES_PER_STEP {
            return Ok(());
        }
        self.take_work((bytes / BYTES_PER_STEP) as u64)
    }
    /// A name is about to be matched, which takes so much [work](crate::glob::work).
    #[inline]
    pub fn take_match(&mut self, work: u64) -> Result<(), Fault> {
        if work < LITTLE_WORK { Ok(()) } else { self.take_work(work / WORK_PER_STEP) }
    }
    /// A value whose text is about to be put behind so many bytes.
    #[inline]
    pub fn take_joined(&mut self, value: &Value, before: usize) -> Result<(), Fault> {
        match value {
            Value::Text(text) => self.take_joined_bytes(text.len(), before),
            _ => Ok(()),
        }
    }
    /// Bytes that are put behind others, of which there are so many. What comes of all is charged when it is made, or
    /// not at all if a command is given it: which is too late to refuse it. Few make no step, but are not forgotten.
    #[inline]
    pub fn take_joined_bytes(&mut self, bytes: usize, before: usize) -> Result<(), Fault> {
        self.joined += bytes;
        if self.joined < JOINED_PER_STEP { Ok(()) } else { self.take_all_joined(before + bytes) }
    }
    #[inline(never)]
    fn take_all_joined(&mut self, together: usize) -> Result<(), Fault> {
        if together as u64 > self.left.memory {
            return Err(exceeded("too many bytes of values", "memory", self.limits.memory));
        }
        let steps = self.joined / JOINED_PER_STEP;
        self.joined %= JOINED_PER_STEP;
        self.take_steps(steps as u64)
    }
    /// Elements, arguments or parts of texts that are looked at. Few make no step, but are not forgotten.
    #[inline]
    pub fn take_elements(&mut self, elements: usize) -> Result<(), Fault> {
        self.elements += elements;
        if self.elements < ELEMENTS_PER_STEP { Ok(()) } else { self.take_all_elements() }
    }
    #[inline(never)]
    fn take_all_elements(&mut self) -> Result<(), Fault> {
        let elements = std::mem::take(&mut self.elements);
        self.elements = elements % ELEMENTS_PER_STEP;
        self.take_steps((elements / ELEMENTS_PER_STEP) as u64)
    }
    /// So many bytes of two texts are about to be compared.
    #[cold]
    pub fn take_compared(&mut self, bytes: usize) -> Result<(), Fault> {
        self.take_work((bytes / JOINED_PER_STEP) as u64)
    }
    /// A list or an object that was made. What it shares with others counts: whoever goes through it, or answers it,
    /// meets it each time.
    pub fn check_extent(&self, extent: Extent) -> Result<(), Fault> {
        if extent.depth > VALUE_DEPTH_MAX {
            return Err(format!("a value has {VALUE_DEPTH_MAX} levels of lists and objects at most").into());
        }
        let bytes = extent.values.saturating_mul(size_of::<Value>() as u64).saturating_add(extent.bytes);
        if bytes > self.limits.memory {
            return Err(exceeded("too many bytes of values", "memory", self.limits.memory));
        }
        Ok(())
    }
    /// All of a value, or of several, is about to be gone through.
    pub fn take_walk(&mut self, extent: Extent) -> Result<(), Fault> {
        let steps = extent.values / ELEMENTS_PER_STEP as u64 + extent.bytes / JOINED_PER_STEP as u64;
        if steps == 0 { Ok(()) } else { self.take_work(steps) }
    }
    /// Whether no step, key or answer of a quick program can be too many.
    #[inline]
    #[must_use]
    pub const fn suffices_for_quick(&self) -> bool {
        let Limits { steps, keys, memory, .. } = self.left;
        steps > QUICK_STEPS_MAX && keys > STEPS_PER_LOOK && memory > LITTLE_ANSWER * STEPS_PER_LOOK
    }
    /// Whether what a quick program still does cannot be too much: if so the next look at the clock is put off, since
    /// what is left takes fewer steps. One that is due is taken now.
    #[inline]
    pub fn settle(&mut self) -> Result<bool, Fault> {
        if self.ends.is_some() {
            self.look()?;
        }
        self.next_look = QUICK_STEPS_MAX;
        Ok(self.left.steps >= QUICK_STEPS_MAX && self.left.memory >= LITTLE_ANSWER)
    }
    /// Looks at the clock.
    #[cold]
    pub fn look(&mut self) -> Result<(), Fault> {
        self.next_look = STEPS_PER_LOOK;
        self.begin();
        if self.ends.is_some_and(|ends| ends.is_over()) {
            return Err(exceeded("too much time in milliseconds", "time-ms", self.limits.time_ms));
        }
        Ok(())
    }
    /// Keys of a command.
    #[inline]
    pub fn take_keys(&mut self, keys: u64) -> Result<(), Fault> {
        match self.left.keys.checked_sub(keys) {
            Some(left) => self.left.keys = left,
            None => return Err(exceeded("too many keys", "keys", self.limits.keys)),
        }
        Ok(())
    }
    /// Bytes that a write brings.
    #[inline]
    pub fn take_bytes(&mut self, bytes: u64) -> Result<(), Fault> {
        match self.left.bytes.checked_sub(bytes) {
            Some(left) => self.left.bytes = left,
            None => return Err(exceeded("too many bytes written", "bytes", self.limits.bytes)),
        }
        Ok(())
    }
    /// Bytes of a value that was made.
    #[inline]
    pub fn take_memory(&mut self, bytes: usize) -> Result<(), Fault> {
        match self.left.memory.checked_sub(bytes as u64) {
            Some(left) => self.left.memory = left,
            None => return Err(exceeded("too many bytes of values", "memory", self.limits.memory)),
        }
        Ok(())
    }
    /// What was used: steps, keys, bytes written.
    #[must_use]
    pub const fn used(&self) -> (u64, u64, u64) {
        (
            self.limits.steps - self.left.steps,
            self.limits.keys - self.left.keys,
            self.limits.bytes - self.left.bytes,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that does not run, as one that the system has stopped, uses up none of its time.
    #[test]
    fn time_is_that_of_the_thread_on_a_cpu() {
        let limit_ms = 50;
        let mut budget = Budget::new(Limits { time_ms: limit_ms, ..Limits::DEFAULT });
        let began = crate::program::ends::cpu_ns();
        budget.begin();
        std::thread::sleep(Duration::from_millis(4 * limit_ms));
        assert!(budget.look().is_ok() && budget.take_work(1).is_ok());
        assert!(budget.take_work(limit_ms * 1_000_000 / STEP_NS).is_err(), "as much again is too much");
        while budget.look().is_ok() {}
        let used_ms = (crate::program::ends::cpu_ns() - began) / 1_000_000;
        assert!((limit_ms..2 * limit_ms).contains(&used_ms), "{used_ms} ms");
    }

    #[test]
    fn each_limit_holds_at_it_and_not_one_past_it() {
        let limits = Limits { steps: 3, keys: 2, bytes: 10, memory: 5, time_ms: 60_000 };
        let mut budget = Budget::new(limits);
        assert!((0..3).all(|_| budget.take_step().is_ok()));
        assert!(budget.take_step().unwrap_err().contains("program-steps-max"));
        assert!(budget.take_keys(2).is_ok() && budget.take_keys(1).unwrap_err().contains("program-keys-max"));
        assert!(budget.take_bytes(10).is_ok() && budget.take_bytes(1).unwrap_err().contains("bytes"));
        assert!(budget.take_memory(5).is_ok() && budget.take_memory(1).unwrap_err().contains("memory"));
        assert_eq!(budget.used(), (3, 2, 10));
        let mut joining = Budget::new(Limits { steps: 1, memory: 10_000, ..limits });
        assert!(joining.take_joined_bytes(JOINED_PER_STEP - 1, 20_000).is_ok(), "little is not asked about");
        assert!(joining.clone().take_joined_bytes(1, 10_000).unwrap_err().contains("program-memory-max"));
        assert!(joining.take_joined_bytes(1, 9_999).is_ok(), "a step");
        assert!((1..JOINED_PER_STEP).all(|at| joining.take_joined_bytes(1, at).is_ok()), "nor are many");
        assert!(joining.take_joined_bytes(1, 0).unwrap_err().contains("program-steps-max"));
        let mut late = Budget::new(Limits { time_ms: 0, ..Limits::DEFAULT });
        assert!(late.look().unwrap_err().contains("program-time-ms-max"));
    }
}
