//! Owns the tools that make a load of their own: `--intrinsic-latency`, which needs no server, and `--lru-test`. They
//! are redis-cli's, and run until Ctrl-C or as long as was asked for.

use std::hint::black_box;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use weft_client::{Connection, Reply};

use super::flags::Options;
use weft_measure::Random;

/// Rounds of the work whose time is taken: some microseconds of it.
const WORK_ROUNDS: u64 = 1000;
/// Keys that are asked for together.
const CYCLE: usize = 250;
/// The exponent at which four fifths of the requests go to a fifth of the keys.
const SKEW: f64 = 6.2;

/// How long the longest of many runs of a short piece of work took: what is beyond the usual is the system's.
pub(super) fn intrinsic_latency(seconds: f64) -> Result<ExitCode> {
    let (began, wanted) = (Instant::now(), Duration::from_secs_f64(seconds));
    let (mut runs, mut worst) = (0_u64, Duration::ZERO);
    let (mut last, mut value) = (began, 1_u64);
    while last.duration_since(began) < wanted {
        for round in 0..WORK_ROUNDS {
            value = black_box(value.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round);
        }
        let now = Instant::now();
        let took = now.duration_since(last);
        runs += 1;
        if took > worst {
            worst = took;
            println!("Max latency so far: {} microseconds.", worst.as_micros());
            std::io::stdout().flush()?;
        }
        last = now;
    }
    let average_us = last.duration_since(began).as_secs_f64() * 1e6 / runs.max(1) as f64;
    println!(
        "\n{runs} total runs (avg latency: {average_us:.4} microseconds / {:.2} nanoseconds per run).",
        average_us * 1000.0
    );
    println!(
        "Worst run took {:.0}x longer than the average latency.",
        worst.as_secs_f64() * 1e6 / average_us.max(1e-9)
    );
    Ok(ExitCode::SUCCESS)
}

/// Asks for keys as a program with a cache does, and stores those that were not there. With `-r N` so many lines.
pub(super) fn lru_test(options: &Options, keys: u64, connection: &mut Connection) -> Result<ExitCode> {
    let lines_max = options.lines_max();
    let pause = Duration::from_secs_f64(options.interval.unwrap_or(1.0));
    let mut random = Random::new(u64::from(std::process::id()));
    for _ in 0..lines_max {
        let (began, mut hits, mut misses) = (Instant::now(), 0_u64, 0_u64);
        while began.elapsed() < pause {
            let wanted: Vec<String> =
                (0..CYCLE).map(|_| format!("lru:{}", skewed(keys, &mut random))).collect();
            let mut gets = connection.pipeline();
            for key in &wanted {
                gets.add(&["GET", key])?;
            }
            let replies = gets.execute()?;
            let mut sets = connection.pipeline();
            for (key, reply) in wanted.iter().zip(&replies) {
                match reply {
                    Reply::Null | Reply::NullArray => sets.add(&["SET", key, "val:val:val:val"]).map(drop)?,
                    Reply::Error(text) => anyhow::bail!("GET {key}: {}", String::from_utf8_lossy(text)),
                    _ => hits += 1,
                }
            }
            misses += sets.len() as u64;
            if let Some(Reply::Error(text)) =
                sets.execute()?.iter().find(|reply| matches!(reply, Reply::Error(_)))
            {
                anyhow::bail!("SET: {}", String::from_utf8_lossy(text));
            }
        }
        let all = (hits + misses).max(1) as f64;
        println!(
            "{:.0} Gets/sec | Hits: {hits} ({:.2}%) | Misses: {misses} ({:.2}%)",
            all / began.elapsed().as_secs_f64(),
            hits as f64 * 100.0 / all,
            misses as f64 * 100.0 / all
        );
        std::io::stdout().flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A number below `keys`, small ones far more often: the inverse of a density that falls as (1 − x)^SKEW.
fn skewed(keys: u64, random: &mut Random) -> u64 {
    let uniform = random.below(1 << 53) as f64 / (1_u64 << 53) as f64;
    let place = 1.0 - (1.0 - uniform).powf(1.0 / (SKEW + 1.0));
    ((place * keys as f64) as u64).min(keys - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fifths_go_to_a_fifth() {
        let mut random = Random::new(1);
        let low = (0..100_000).filter(|_| skewed(1000, &mut random) < 200).count();
        assert!((78_000..82_000).contains(&low), "{low}");
        assert_eq!(skewed(1, &mut random), 0);
    }
}
