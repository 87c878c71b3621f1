//! Owns: whether what is to be sent to the server waits for what the next looks at the sockets bring. Does not own:
//! sending it (`crate::upstream`).
//!
//! A server pays for each write that it reads, whatever is in it: ADR 0075.

/// So many requests in a tick say that many clients ask at once.
const CROWD: usize = 16;
/// Ticks that a request waits at most.
const TICKS_MAX: u8 = 3;
/// At most one of so many clients waits: what it costs them is a part of what they wait for each other.
const SHARE: usize = 4;
/// What is as large as a server reads at once goes.
const BYTES_MAX: usize = 16 << 10;

/// What has been asked, and is not sent.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    asked: usize,
    /// So much of it in this tick.
    now: usize,
    /// Ticks that it has waited.
    ticks: u8,
    pub(crate) waits: bool,
}

impl Gather {
    pub(crate) fn begin_tick(&mut self) {
        self.now = 0;
        self.ticks += u8::from(self.waits);
    }
    pub(crate) fn asks(&mut self) {
        self.asked += 1;
        self.now += 1;
    }
    /// Whether it waits for the next tick; if not, it is sent. `clients`: as many as the worker has. `bytes`: what
    /// is to be sent, where that is most.
    pub(crate) fn goes_on(&mut self, clients: usize, bytes: usize) -> bool {
        let is_crowd = self.now >= CROWD && self.asked <= clients / SHARE;
        if is_crowd && self.ticks < TICKS_MAX && bytes < BYTES_MAX {
            self.waits = true;
        } else {
            *self = Self::default();
        }
        self.waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many ticks it goes, where each brings so many requests; so many ticks do.
    fn after(each: &[usize], clients: usize, bytes: usize) -> Vec<usize> {
        let (mut gather, mut waited, mut all) = (Gather::default(), 0, Vec::new());
        for asked in each {
            gather.begin_tick();
            (0..*asked).for_each(|_| gather.asks());
            if gather.goes_on(clients, bytes) {
                waited += 1;
            } else {
                all.push(std::mem::take(&mut waited));
            }
        }
        all
    }

    #[test]
    fn only_a_crowd_waits_and_never_for_long() {
        assert_eq!(after(&[20; 8], 2_000, 100), [3, 3], "three ticks");
        assert_eq!(after(&[200; 6], 2_000, 100), [2, 2], "a quarter of the clients");
        assert_eq!(after(&[20, 3, 20, 0], 2_000, 100), [1, 1], "until few come, or none");
        assert_eq!(after(&[15; 3], 2_000, 100), [0; 3], "few");
        assert_eq!(after(&[20; 3], 79, 100), [0; 3], "few clients");
        assert_eq!(after(&[20; 3], 2_000, BYTES_MAX), [0; 3], "much");
    }
}
