//! Owns: what the operating system says of this process. Does not own: what is done with it.

use std::fs;
use std::sync::LazyLock;

/// Ticks of the processor's clock a second, as Linux shows them to every process.
const TICKS: f64 = 100.0;
/// Bytes of a page of x86-64 and of most Arm machines.
const PAGE_BYTES: usize = 4096;

/// Seconds of processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// In the program.
    pub user_s: f64,
    /// In the system, for the program.
    pub system_s: f64,
}

/// Memory as the operating system sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// What is in memory.
    pub resident_bytes: usize,
}

impl Memory {
    /// As it is now; zero where the system does not say.
    #[must_use]
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: usize = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        Self { resident_bytes: pages * PAGE_BYTES }
    }
    /// Memory of the machine.
    #[must_use]
    pub fn total_bytes() -> usize {
        let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib = text.lines().next().and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse::<usize>().ok()).unwrap_or(0) * 1024
    }
}

impl Cpu {
    /// Of this process.
    #[must_use]
    pub fn own() -> Self {
        read("/proc/self/stat")
    }
    /// Of its first thread.
    #[must_use]
    pub fn main_thread() -> Self {
        read(&format!("/proc/self/task/{}/stat", std::process::id()))
    }
}

fn read(path: &str) -> Cpu {
    let text = fs::read_to_string(path).unwrap_or_default();
    // The name of the program may have blanks; behind its bracket the third field comes first.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
    Cpu { user_s: ticks(11) / TICKS, system_s: ticks(12) / TICKS }
}

/// Name and release of the operating system, and the machine's kind.
pub(crate) static OS: LazyLock<String> = LazyLock::new(|| {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        text.trim().to_string()
    };
    format!("{} {} {}", read("ostype"), read("osrelease"), std::env::consts::ARCH)
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_answers() {
        assert!(Memory::now().resident_bytes > 0 && Memory::total_bytes() > Memory::now().resident_bytes);
        assert!(OS.starts_with("Linux "), "{}", *OS);
        let cpu = Cpu::own();
        assert!(cpu.user_s >= 0.0 && cpu.system_s >= 0.0 && Cpu::main_thread().user_s <= cpu.user_s + 0.1);
    }
}
