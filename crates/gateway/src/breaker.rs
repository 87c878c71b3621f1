//! Owns: when a server that cannot be reached is tried again. Does not own: trying.
//!
//! While a connection stands, or none was ever wanted, it is *closed*: requests wait for the connection. When one could
//! not be made, or was given up since nothing came, it is *open* for a pause, which doubles each time: requests are
//! refused at once. Behind the pause one connection is tried; until it stands requests are refused still.

/// The first pause, and the longest.
const PAUSE_MS: u64 = 100;
const PAUSE_MS_MAX: u64 = 5_000;

#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// 0 while it is closed.
    pause_ms: u64,
    until_ms: u64,
    why: String,
}

impl Breaker {
    /// It was tried in vain.
    pub(crate) fn fails(&mut self, now_ms: u64, why: &str) {
        self.pause_ms = (self.pause_ms * 2).clamp(PAUSE_MS, PAUSE_MS_MAX);
        self.until_ms = now_ms + self.pause_ms;
        why.clone_into(&mut self.why);
    }
    /// A connection stands.
    pub(crate) const fn works(&mut self) {
        self.pause_ms = 0;
    }
    pub(crate) const fn is_open(&self) -> bool {
        self.pause_ms > 0
    }
    /// Whether it is to be tried again.
    pub(crate) const fn is_over(&self, now_ms: u64) -> bool {
        self.is_open() && now_ms >= self.until_ms
    }
    pub(crate) fn why(&self) -> &str {
        &self.why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let mut breaker = Breaker::default();
        assert!(!breaker.is_open() && !breaker.is_over(u64::MAX));
        let mut now_ms = 1_000;
        for pause_ms in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            breaker.fails(now_ms, "no");
            assert!(breaker.is_open() && !breaker.is_over(now_ms + pause_ms - 1), "{pause_ms}");
            now_ms += pause_ms;
            assert!(breaker.is_over(now_ms), "{pause_ms}");
        }
        assert_eq!(breaker.why(), "no");
        breaker.works();
        assert!(!breaker.is_open());
        breaker.fails(0, "no");
        assert!(breaker.is_over(PAUSE_MS));
    }
}
