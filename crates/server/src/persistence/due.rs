//! Owns: when a snapshot is due without being asked for: save points, a log that has become long. Does not own: making
//! it (`super`).

use std::sync::atomic::Ordering::Relaxed;

use weft_engine::Engine;
use weft_store::Counter;

/// How long one that failed is left alone, in milliseconds.
const TRIED_MS: u64 = 5000;

/// Whether a save point is reached.
pub(super) fn is_save_due(engine: &Engine) -> bool {
    let (saves, now_ms) = (&engine.durable.saves, engine.clock.now_ms());
    // One that failed is tried again after a while.
    if saves.has_failed.load(Relaxed) && now_ms <= saves.started_ms.load(Relaxed) + TRIED_MS {
        return false;
    }
    let writes = engine.keyspace.total(Counter::Writes) - saves.writes.load(Relaxed);
    let since_ms = match saves.last_ms.load(Relaxed) {
        0 => engine.stats.started_ms,
        at_ms => at_ms,
    };
    let passed_s = now_ms.saturating_sub(since_ms) / 1000;
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
