//! What a process on this machine costs: CPU time and memory, from /proc. Owns the reading, and finding the process
//! that listens on a port.

use std::fs;
use std::path::Path;

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// CPU time of all its threads.
    pub(crate) cpu_ns: u64,
    /// User time and system time, in the coarser steps that the system counts them in.
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// Resident memory.
    pub(crate) resident_bytes: u64,
    /// Memory that the kernel holds for TCP sockets, of all processes.
    pub(crate) socket_bytes: u64,
    /// Threads.
    pub(crate) threads: u64,
}

/// Bytes of a page, in which sockstat counts.
const PAGE_BYTES: u64 = 4096;
/// Ticks of /proc/PID/stat in a second: USER_HZ, which is 100 on every architecture that Linux has now.
const TICK_NS: u64 = 10_000_000;

impl Usage {
    /// What a process has used; nothing when it is not there or not to be seen.
    pub(crate) fn of(pid: u32) -> Option<Usage> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may have blanks and brackets; what follows its last bracket begins with the state, field 3.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let (user_ns, system_ns) = (ticks(14)? * TICK_NS, ticks(15)? * TICK_NS);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Some(Usage {
            cpu_ns: scheduled_ns(pid).unwrap_or(user_ns + system_ns),
            user_ns,
            system_ns,
            resident_bytes: kilobytes(&status, "VmRSS:"),
            socket_bytes: socket_bytes(),
            threads: kilobytes(&status, "Threads:") / 1024,
        })
    }
}

impl std::ops::Add for Usage {
    type Output = Usage;

    /// What two processes have used.
    fn add(self, other: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            resident_bytes: self.resident_bytes + other.resident_bytes,
            // That of the whole machine already.
            socket_bytes: self.socket_bytes.max(other.socket_bytes),
            threads: self.threads + other.threads,
        }
    }
}

/// Time on a CPU of all threads, to the nanosecond. Threads that have ended are not in it.
fn scheduled_ns(pid: u32) -> Option<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        sum += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    // A kernel without the statistics has the file, and zeros in it.
    Some(sum).filter(|&sum| sum > 0)
}

fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn socket_bytes() -> u64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let pages = line.and_then(|rest| {
        let mut words = rest.split_whitespace();
        words.find(|word| *word == "mem")?;
        words.next()?.parse::<u64>().ok()
    });
    pages.unwrap_or(0) * PAGE_BYTES
}

/// The process of this machine that listens on a TCP port, if it is to be seen.
pub(crate) fn listening_on(port: u16) -> Option<u32> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .flat_map(|path| listeners(Path::new(path), port))
        .collect();
    let holds = |pid: u32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let mut links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        links.find(|link| inodes.iter().any(|inode| link.to_string_lossy() == format!("socket:[{inode}]")))
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    if inodes.is_empty() { None } else { pids.find(|&pid| holds(pid).is_some()) }
}

/// Sockets of a table of the kernel that listen on a port.
fn listeners(path: &Path, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let text = fs::read_to_string(path).unwrap_or_default();
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local = fields.get(1)?.rsplit_once(':')?.1;
        let is_it = u16::from_str_radix(local, 16) == Ok(port) && fields.get(3) == Some(&LISTEN);
        fields.get(9).filter(|_| is_it).map(|inode| inode.to_string())
    };
    text.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_something() {
        let usage = Usage::of(std::process::id()).unwrap();
        assert!(usage.resident_bytes > 100_000 && usage.threads >= 1, "{usage:?}");
        let mut sum = 0u64;
        while Usage::of(std::process::id()).unwrap().cpu_ns < usage.cpu_ns + 5_000_000 {
            sum = sum.wrapping_add((0..100_000u64).map(std::hint::black_box).sum());
        }
        assert_eq!(Usage::of(u32::MAX), None);
    }

    #[test]
    fn listeners_are_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 20731 1\n\
             1: 0100007F:18EB 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 20732 1\n";
        let path = std::env::temp_dir().join(format!("weft-listeners-{}", std::process::id()));
        fs::write(&path, table).unwrap();
        assert_eq!(listeners(&path, 0x18EB), ["20731"]);
        assert!(listeners(&path, 80).is_empty());
        fs::remove_file(path).unwrap();
    }
}
