//! Owns the tools that watch a server: `--stat`, `--latency` and its two other forms. They run until Ctrl-C, or print
//! one line where the output is no terminal.

use std::collections::HashMap;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use weft_client::Connection;

use super::flags::Options;

/// Between two PINGs.
const PING_PAUSE: Duration = Duration::from_millis(10);
/// Lines of `--stat` below each heading.
const LINES_BELOW_HEADING: u64 = 20;

/// `--stat`; with `-r N` so many lines.
pub(super) fn stat(options: &Options, connection: &mut Connection) -> Result<ExitCode> {
    let pause = Duration::from_secs_f64(options.interval.unwrap_or(1.0));
    let lines_max = options.lines_max();
    let mut commands_before = None;
    for line in 0..lines_max {
        if line > 0 {
            std::thread::sleep(pause);
        }
        let info: String = connection.query(&["INFO"])?;
        let info: HashMap<&str, &str> = info.lines().filter_map(|line| line.split_once(':')).collect();
        if line.is_multiple_of(LINES_BELOW_HEADING) {
            println!("------- data ------ --------------------- load -------------------- - child -");
            println!("keys       mem      clients blocked requests            connections          ");
        }
        let number = |name: &str| info.get(name).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        let keys: i64 = info.iter().filter(|(name, _)| is_db(name)).map(|(_, text)| keys_of(text)).sum();
        let commands = number("total_commands_processed");
        let requests = match commands_before.replace(commands) {
            Some(before) => format!("{commands} (+{})", commands - before),
            None => format!("{commands} (+0)"),
        };
        let child = match (number("rdb_bgsave_in_progress"), number("aof_rewrite_in_progress")) {
            (1, _) => "SAVE",
            (_, 1) => "AOF",
            _ => "",
        };
        println!(
            "{keys:<10} {:<8} {:<7} {:<7} {requests:<19} {:<21}{child}",
            bytes(number("used_memory") as u64),
            number("connected_clients"),
            number("blocked_clients"),
            number("total_connections_received"),
        );
        std::io::stdout().flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `db0`, `db15`
fn is_db(name: &str) -> bool {
    name.strip_prefix("db").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// `keys=5,expires=0,avg_ttl=0`
fn keys_of(text: &str) -> i64 {
    text.split(',').find_map(|part| part.strip_prefix("keys=")?.parse().ok()).unwrap_or(0)
}

fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match UNITS.iter().find(|(size, _)| count >= *size) {
        Some((size, unit)) => format!("{:.2}{unit}", count as f64 / *size as f64),
        None => format!("{count}B"),
    }
}

/// Times of PING, in microseconds.
#[derive(Default)]
struct Times {
    min: u64,
    max: u64,
    sum: u64,
    count: u64,
    /// How many took at most so long; for the spectrum.
    buckets: [u64; BUCKETS_US.len() + 1],
}

/// Upper bounds of the spectrum.
const BUCKETS_US: [u64; 18] = [
    10, 50, 100, 200, 300, 400, 500, 750, 1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 50_000, 100_000,
    500_000, 1_000_000,
];

impl Times {
    fn add(&mut self, us: u64) {
        self.min = if self.count == 0 { us } else { self.min.min(us) };
        self.max = self.max.max(us);
        self.sum += us;
        self.count += 1;
        self.buckets[BUCKETS_US.partition_point(|&bound| bound < us)] += 1;
    }

    fn average_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 / 1000.0 }
    }

    /// Milliseconds, in whole ones but for the average, as redis-cli has it.
    fn people(&self) -> String {
        let (min, max) = (self.min / 1000, self.max / 1000);
        format!("min: {min}, max: {max}, avg: {:.2} ({} samples)", self.average_ms(), self.count)
    }

    fn raw(&self) -> String {
        format!("{} {} {:.2} {}", self.min / 1000, self.max / 1000, self.average_ms(), self.count)
    }

    fn csv(&self) -> String {
        format!("{},{},{:.2},{}", self.min / 1000, self.max / 1000, self.average_ms(), self.count)
    }
}

/// `--latency`, `--latency-history`, `--latency-dist`
pub(super) fn latency(options: &Options, connection: &mut Connection) -> Result<ExitCode> {
    let terminal = std::io::stdout().is_terminal() && !options.raw && !options.csv;
    let usual = if options.latency_history { 15.0 } else { 1.0 };
    let interval = Duration::from_secs_f64(options.interval.unwrap_or(usual));
    if options.latency_dist {
        legend();
    }
    let (mut times, mut since) = (Times::default(), Instant::now());
    loop {
        let started = Instant::now();
        connection.command(&["PING"])?;
        times.add(started.elapsed().as_micros() as u64);
        let elapsed = since.elapsed();
        let over = elapsed >= interval;
        if options.latency_dist {
            if over {
                spectrum(&times);
                (times, since) = (Times::default(), Instant::now());
            }
        } else if terminal {
            print!("\x1b[0G\x1b[2K{}", times.people());
            if over && options.latency_history {
                println!(" -- {:.2} seconds range", elapsed.as_secs_f64());
                (times, since) = (Times::default(), Instant::now());
            }
        } else if over {
            println!("{}", if options.csv { times.csv() } else { times.raw() });
            if !options.latency_history {
                return Ok(ExitCode::SUCCESS);
            }
            (times, since) = (Times::default(), Instant::now());
        }
        std::io::stdout().flush()?;
        std::thread::sleep(PING_PAUSE);
    }
}

/// Colours of the spectrum, from nothing to most, among the 256 of terminals.
const COLORS: [u8; 19] =
    [0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196];
/// The same as marks, for an output without colours.
const MARKS: &[u8; 10] = b" .:-=+*#%@";

fn legend() {
    println!("---------------------------------------------");
    println!("Each line is an interval; from left to right the columns are, up to:");
    let bounds: Vec<String> = BUCKETS_US.iter().map(|us| format!("{}", *us as f64 / 1000.0)).collect();
    println!("{} ms, and more", bounds.join(" "));
    println!("The brighter or denser a column, the more of the interval's PINGs took so long.");
    println!("---------------------------------------------");
}

fn spectrum(times: &Times) {
    let most = times.buckets.iter().copied().max().unwrap_or(0).max(1);
    let colors = super::colors();
    let mut line = String::new();
    for &count in &times.buckets {
        if colors {
            let step = (count * (COLORS.len() as u64 - 1)).div_ceil(most) as usize;
            line.push_str(&format!("\x1b[48;5;{}m  ", COLORS[step]));
        } else {
            let step = (count * (MARKS.len() as u64 - 1)).div_ceil(most) as usize;
            line.push(char::from(MARKS[step]));
        }
    }
    let end = if colors { "\x1b[0m" } else { "" };
    println!("{line}{end} {}", times.people());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up() {
        let mut times = Times::default();
        for us in [1500, 500, 4000] {
            times.add(us);
        }
        assert_eq!(times.people(), "min: 0, max: 4, avg: 2.00 (3 samples)");
        assert_eq!(times.raw(), "0 4 2.00 3");
        assert_eq!(times.buckets.iter().sum::<u64>(), 3);
        times.add(5_000_000);
        assert_eq!(times.buckets[BUCKETS_US.len()], 1);
    }

    #[test]
    fn fields_of_info_are_read() {
        assert!(is_db("db12") && !is_db("db") && !is_db("dbsize"));
        assert_eq!(keys_of("keys=12,expires=1"), 12);
        assert_eq!(
            (bytes(512), bytes(1536), bytes(3 << 30)),
            ("512B".into(), "1.50K".into(), "3.00G".into())
        );
    }
}
