//! Where something was measured. Owns reading it from the system.

use serde::{Deserialize, Serialize};

/// Where it was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name.
    pub cpu: String,
    /// How many of them this process may use.
    pub cores: usize,
    /// The version of Linux.
    pub kernel: String,
    /// `x86_64`, `aarch64` …
    pub architecture: String,
    /// `release` or `debug`.
    pub build: String,
}

impl Machine {
    /// This one.
    pub fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo").lines().find_map(|line| {
            line.strip_prefix("model name").map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_string())
        });
        Machine {
            cpu: cpu.unwrap_or_else(|| "unknown".to_string()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_string(),
            architecture: std::env::consts::ARCH.to_string(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_string(),
        }
    }
}

/// When something was measured, and of which state of the repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// `2026-11-24`, in UTC.
    pub date: String,
    /// Shortened, and whether files under `crates` were changed since; nothing outside of a repository.
    pub commit: String,
    /// Where.
    pub machine: Machine,
}

impl Origin {
    /// Here and now.
    pub fn now() -> Origin {
        let git = |arguments: &[&str]| {
            let output = std::process::Command::new("git").args(arguments).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
        };
        let changed = git(&["status", "--porcelain", "--", ":/crates"]).is_some_and(|text| !text.is_empty());
        let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Origin {
            date: date(since.as_secs() / 86_400),
            commit: commit + if changed { " with changes" } else { "" },
            machine: Machine::this(),
        }
    }
}

/// The date so many days after 1970-01-01, by the proleptic Gregorian calendar: the years are counted from March, so
/// that the leap day is a year's last.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_leap_days() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_781, "2026-11-24"),
        ] {
            assert_eq!(date(days), expected);
        }
    }
}
