//! Owns: when a snapshot is due without being asked for: save points, a log that has become long. Does not own: making
//! it (`super`).

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use weft_engine::Engine;
use weft_store::Counter;

/// How long one that failed is left alone, in milliseconds.
const TRIED_MS: u64 = 5000;
/// A log that is long is left as it is for a while, since a snapshot that was to take its place could not be made: it
/// is written whole, and may fill a disk.
#[derive(Default)]
pub(super) struct Rest(Option<Instant>);

impl Rest {
    pub(super) fn begin(&mut self, now: Instant) {
        self.0 = Some(now);
    }
    pub(super) fn is_over(&self, engine: &Engine, now: Instant) -> bool {
        let rest = Duration::from_millis(engine.settings.rewrite_rest_ms.load(Relaxed));
        self.0.is_none_or(|began| now.saturating_duration_since(began) >= rest)
    }
}

/// Whether a save point is reached.
pub(super) fn is_save_due(engine: &Engine) -> bool {
    let (saves, now_ms) = (&engine.durable.saves, engine.clock.now_ms());
    // One that failed is tried again after a while. A clock that is set back, by however much, makes that no longer.
    if saves.has_failed.load(Relaxed) && now_ms.abs_diff(saves.started_ms.load(Relaxed)) <= TRIED_MS {
        return false;
    }
    let writes = engine.keyspace.total(Counter::Writes) - saves.writes.load(Relaxed);
    let since_ms = match saves.last_ms.load(Relaxed) {
        0 => engine.stats.started_ms,
        at_ms => at_ms,
    };
    let passed_s = now_ms.abs_diff(since_ms) / 1000;
    is_reached(&String::from_utf8_lossy(&engine.config.text("save")), passed_s, writes)
}

/// Whether one of these save points is, after so many seconds and writes.
fn is_reached(points: &str, passed_s: u64, writes: i64) -> bool {
    let numbers: Vec<i64> = points.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let is_one = |point: &[i64]| passed_s as i64 >= point[0] && writes >= point[1].max(1);
    passed_s > 0 && numbers.chunks_exact(2).any(is_one)
}

/// Whether the log has grown by `auto-aof-rewrite-percentage`.
pub(super) fn is_log_long(engine: &Engine) -> bool {
    let number = |name: &str| String::from_utf8_lossy(&engine.config.text(name)).parse::<u64>().unwrap_or(0);
    let log = &engine.durable.log;
    let (bytes, base) = (log.bytes.load(Relaxed), log.base_bytes.load(Relaxed));
    is_long((bytes, base), number("auto-aof-rewrite-percentage"), number("auto-aof-rewrite-min-size"))
}

/// The same of a log of so many bytes, beside those that it began with.
fn is_long((bytes, base): (u64, u64), percent: u64, min: u64) -> bool {
    // What a log is without anything in it does not count.
    percent > 0
        && bytes >= min.max(1)
        && bytes.saturating_sub(base) >= base.max(1).saturating_mul(percent) / 100
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weft_engine::Setup;
    use weft_engine::config::Values;
    use weft_store::{Clock, Config, Keyspace, ManualClock};

    #[test]
    fn a_save_point_is_reached_with_its_seconds_and_its_writes() {
        let points = "3600 1 300 100";
        for (passed_s, writes, reached) in [
            (3599, 1, false),
            (3600, 1, true),
            (3600, 0, false),
            (300, 99, false),
            (300, 100, true),
            (299, 1000, false),
        ] {
            assert_eq!(is_reached(points, passed_s, writes), reached, "{passed_s} s, {writes} writes");
        }
        assert!(!is_reached("", 1 << 30, 1 << 30));
        // Not without end, though every second will do.
        assert!(!is_reached("0 0", 0, 5) && !is_reached("0 0", 5, 0) && is_reached("0 0", 1, 1));
    }

    /// A clock that the test turns.
    struct Turned(Arc<ManualClock>);

    impl Clock for Turned {
        fn now_ms(&self) -> u64 {
            self.0.now_ms()
        }
    }

    /// An engine with a save point of ten seconds that has been written to, and its clock.
    fn written() -> (Engine, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(START_MS));
        let keyspace = Keyspace::new(Config::default());
        let engine = Engine::new(Setup { keyspace, clock: Box::new(Turned(Arc::clone(&clock))), workers: 1 });
        let mut values = Values::default();
        values.set(b"save", &[b"10", b"1"]).expect("it is one");
        engine.configure(values);
        engine.durable.saves.writes.store(-1, Relaxed);
        (engine, clock)
    }
    const START_MS: u64 = 1_700_000_000_000;

    #[test]
    fn a_snapshot_that_failed_is_left_alone_for_five_seconds() {
        let (engine, clock) = written();
        clock.set(START_MS + 10_000);
        assert!(is_save_due(&engine));
        engine.durable.saves.has_failed.store(true, Relaxed);
        engine.durable.saves.started_ms.store(START_MS + 10_000, Relaxed);
        for (passed_ms, due) in [(0, false), (5000, false), (5001, true)] {
            clock.set(START_MS + 10_000 + passed_ms);
            assert_eq!(is_save_due(&engine), due, "{passed_ms} ms");
        }
    }

    /// Neither a clock that is set back nor one that is set forth keeps a snapshot from being made for long.
    #[test]
    fn a_clock_that_jumps_keeps_no_snapshot_from_being_made() {
        const YEAR_MS: u64 = 365 * 24 * 3600 * 1000;
        for jumped_ms in [START_MS - YEAR_MS, START_MS + YEAR_MS] {
            let (engine, clock) = written();
            clock.set(jumped_ms);
            assert!(is_save_due(&engine), "a save point");
            let saves = &engine.durable.saves;
            saves.has_failed.store(true, Relaxed);
            saves.started_ms.store(START_MS, Relaxed);
            assert!(is_save_due(&engine), "one that failed");
            // Made, it counts from the clock as it is now.
            saves.last_ms.store(jumped_ms, Relaxed);
            saves.has_failed.store(false, Relaxed);
            clock.set(jumped_ms + 9_999);
            assert!(!is_save_due(&engine));
        }
    }

    #[test]
    fn a_rewrite_that_failed_is_left_alone_for_half_a_minute() {
        let (mut rest, now) = (Rest::default(), Instant::now());
        let (engine, _) = written();
        assert!(rest.is_over(&engine, now));
        rest.begin(now);
        for (passed_ms, is_over) in [(0, false), (29_999, false), (30_000, true)] {
            assert_eq!(
                rest.is_over(&engine, now + Duration::from_millis(passed_ms)),
                is_over,
                "{passed_ms} ms"
            );
        }
    }

    #[test]
    fn a_log_is_long_beside_what_it_began_with() {
        for (bytes, base, percent, min, long) in [
            (199, 100, 100, 0, false),
            (200, 100, 100, 0, true),
            (200, 100, 100, 201, false),
            (1000, 100, 0, 0, false),
            (64, 0, 100, 64, true),
            (63, 0, 100, 64, false),
            (u64::MAX, u64::MAX, 100, 0, false),
        ] {
            assert_eq!(
                is_long((bytes, base), percent, min),
                long,
                "{bytes} beside {base}, {percent} %, {min}"
            );
        }
    }
}
