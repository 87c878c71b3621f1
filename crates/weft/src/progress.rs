//! The progress bar: share, rate and time left, on a terminal's standard error and nowhere else.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::text::size;

/// Between two drawings.
const INTERVAL: Duration = Duration::from_millis(100);

const BAR_CELLS: usize = 24;

/// A line that is drawn over and over.
pub(crate) struct Progress {
    /// None: nobody looks.
    started: Option<Instant>,
    drawn: Instant,
    total: Option<u64>,
    any: bool,
}

impl Progress {
    /// A bar for so many bytes; without a total it shows the rate only.
    pub(crate) fn new(total: Option<u64>) -> Progress {
        let now = Instant::now();
        Progress { started: io::stderr().is_terminal().then_some(now), drawn: now, total, any: false }
    }

    /// `done` bytes of the input have been read.
    pub(crate) fn show(&mut self, done: u64) {
        let Some(started) = self.started.filter(|_| self.drawn.elapsed() >= INTERVAL) else { return };
        self.drawn = Instant::now();
        self.any = true;
        // A terminal that is gone is no reason to stop.
        drop(write!(io::stderr(), "\r{}\x1b[K", line(done, self.total, started.elapsed())));
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.any) {
            drop(write!(io::stderr(), "\r\x1b[K"));
        }
    }
}

fn line(done: u64, total: Option<u64>, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    let Some(total) = total.filter(|&total| total > 0) else {
        return format!("{}  {}/s", size(done as f64), size(rate));
    };
    let share = (done as f64 / total as f64).min(1.0);
    let full = (share * BAR_CELLS as f64) as usize;
    let left = (total.saturating_sub(done)) as f64 / rate.max(1.0);
    format!(
        "[{}{}] {:5.1}%  {} of {}  {}/s  {} left",
        "#".repeat(full),
        "-".repeat(BAR_CELLS - full),
        share * 100.0,
        size(done as f64),
        size(total as f64),
        size(rate),
        duration(left),
    )
}

fn duration(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_share_rate_and_time_left() {
        let text = line(250_000_000, Some(1_000_000_000), Duration::from_secs(1));
        assert_eq!(text, "[######------------------]  25.0%  250.0 MB of 1.0 GB  250.0 MB/s  3 s left");
        assert_eq!(line(5_000, None, Duration::from_secs(1)), "5.0 kB  5.0 kB/s");
        assert_eq!((duration(61.0), duration(7260.0)), ("1:01 min".into(), "2:01 h".into()));
    }
}
