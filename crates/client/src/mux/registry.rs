//! Owns which channels are open and which numbers are free. Does not own what a channel has received.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex};

use weft_protocol::respb::Control;

use super::inbox::Inbox;
use super::lock;
use crate::error::{Error, Result};

/// Channels that a connection can have at all.
const CHANNELS_MAX: i64 = 65_536;

/// The state of a channel (section 8.1).
#[derive(Clone, Debug, Default)]
pub(super) enum Slot {
    #[default]
    Idle,
    Open(Arc<Inbox>),
    /// CLOSE was sent and is not answered.
    Closing,
}

/// All channels of a connection. Channel 0 is always open; `zero_taken` says whether somebody uses it.
#[derive(Debug)]
pub(super) struct Registry {
    /// As long as the highest number that was ever used.
    slots: Vec<Slot>,
    /// Numbers that were used and are free again; some may have been taken by their number since.
    free: BinaryHeap<Reverse<u16>>,
    in_use: usize,
    zero_taken: bool,
    channels_max: u32,
    death: Option<Arc<Error>>,
}

impl Registry {
    pub(super) fn new(limit: Option<i64>, zero: Inbox) -> Self {
        zero.lock().is_open = true;
        Registry {
            slots: vec![Slot::Open(Arc::new(zero))],
            free: BinaryHeap::new(),
            in_use: 0,
            zero_taken: false,
            channels_max: limit.unwrap_or(CHANNELS_MAX).clamp(1, CHANNELS_MAX) as u32,
            death: None,
        }
    }

    pub(super) fn slot(&self, id: u16) -> &Slot {
        self.slots.get(usize::from(id)).unwrap_or(&Slot::Idle)
    }

    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Opens the lowest free number above 0.
    pub(super) fn take_free(&mut self) -> Result<(u16, Arc<Inbox>)> {
        self.alive()?;
        let mut id = None;
        while let Some(Reverse(free)) = self.free.pop() {
            if matches!(self.slot(free), Slot::Idle) {
                id = Some(free);
                break;
            }
        }
        // Without one, the number behind the last; numbers that were skipped by `take` are in `free`.
        let id = id.or_else(|| u16::try_from(self.slots.len()).ok());
        let id = id.ok_or(Error::TooManyChannels(self.channels_max))?;
        match self.take(id) {
            Ok(inbox) => Ok((id, inbox)),
            Err(error) => {
                if usize::from(id) < self.slots.len() {
                    self.free.push(Reverse(id));
                }
                Err(error)
            }
        }
    }

    /// Opens a number.
    pub(super) fn take(&mut self, id: u16) -> Result<Arc<Inbox>> {
        self.alive()?;
        let index = usize::from(id);
        if id == 0 {
            let Slot::Open(inbox) = &self.slots[0] else { return Err(Error::ChannelInUse(0)) };
            if std::mem::replace(&mut self.zero_taken, true) {
                return Err(Error::ChannelInUse(0));
            }
            return Ok(inbox.clone());
        }
        if !matches!(self.slot(id), Slot::Idle) {
            return Err(Error::ChannelInUse(id));
        }
        // Channel 0 counts.
        if self.in_use + 1 >= self.channels_max as usize {
            return Err(Error::TooManyChannels(self.channels_max));
        }
        while self.slots.len() <= index {
            // Below u16::MAX + 1, by the type of `id`.
            self.free.push(Reverse(self.slots.len() as u16));
            self.slots.push(Slot::Idle);
        }
        let inbox = Arc::new(Inbox::new(0));
        self.slots[index] = Slot::Open(inbox.clone());
        self.in_use += 1;
        Ok(inbox)
    }

    /// Closes a channel from this side; nothing if it is closed already.
    pub(super) fn close(&mut self, id: u16, error: Error, code: u16, reason: &str, queue: &Mutex<Vec<u8>>) {
        let Slot::Open(inbox) = self.slot(id).clone() else { return };
        if id == 0 {
            self.zero_taken = false;
            inbox.abandon();
            return;
        }
        let close = Control::Close { code, reason: reason.as_bytes() };
        let mut is_idle = false;
        let was_open = inbox.end(error, |state| {
            is_idle = !state.is_open;
            if state.is_open {
                close.encode(id, &mut *lock(queue));
            }
        });
        match was_open {
            true if is_idle => self.set_idle(id),
            true => self.slots[usize::from(id)] = Slot::Closing,
            false => {}
        }
    }

    /// The server sent CLOSE: its answer to ours, or one to be answered. An idle channel's is ignored.
    pub(super) fn closed_by_server(&mut self, id: u16, error: Error, queue: &Mutex<Vec<u8>>) {
        match self.slot(id).clone() {
            Slot::Idle => {}
            Slot::Closing => self.set_idle(id),
            // Taken, and idle on the wire yet.
            Slot::Open(inbox) if !inbox.lock().is_open => {}
            Slot::Open(inbox) => {
                let answer = Control::Close { code: 0, reason: &[] };
                inbox.end(error, |_| answer.encode(id, &mut *lock(queue)));
                if id == 0 {
                    // It starts anew (section 8.1), with request 0.
                    let zero = Inbox::new(0);
                    zero.lock().is_open = true;
                    self.slots[0] = Slot::Open(Arc::new(zero));
                    self.zero_taken = false;
                } else {
                    self.set_idle(id);
                }
            }
        }
    }

    fn set_idle(&mut self, id: u16) {
        self.slots[usize::from(id)] = Slot::Idle;
        self.free.push(Reverse(id));
        self.in_use -= 1;
    }

    /// Ends all channels.
    pub(super) fn die(&mut self, error: &Arc<Error>) {
        self.death = Some(error.clone());
        let open = || {
            self.slots.iter().filter_map(|slot| if let Slot::Open(inbox) = slot { Some(inbox) } else { None })
        };
        // Whoever hears of it on one channel must not send on another any more.
        open().for_each(|inbox| {
            inbox.mark(Error::Lost(error.clone()), |_| {});
        });
        open().for_each(|inbox| inbox.wake());
    }

    fn alive(&self) -> Result<()> {
        self.death.as_ref().map_or(Ok(()), |error| Err(Error::Lost(error.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_lowest_first() {
        let queue = Mutex::new(Vec::new());
        let mut registry = Registry::new(Some(5), Inbox::new(0));
        assert_eq!(registry.take_free().unwrap().0, 1);
        registry.take(3).unwrap();
        assert!(matches!(registry.take(3), Err(Error::ChannelInUse(3))));
        assert_eq!(registry.take_free().unwrap().0, 2);
        assert_eq!(registry.take_free().unwrap().0, 4);
        for _ in 0..2 {
            assert!(matches!(registry.take_free(), Err(Error::TooManyChannels(5))));
            assert!(matches!(registry.take(9), Err(Error::TooManyChannels(5))));
        }
        for id in [1, 2, 4] {
            let Slot::Open(inbox) = registry.slot(id) else { panic!() };
            inbox.lock().is_open = true;
        }
        for id in [4, 2] {
            registry.close(id, Error::Finished, 0, "", &queue);
            // The answer is due: until then the number is taken.
            assert!(matches!(registry.take(id), Err(Error::ChannelInUse(_))));
            registry.closed_by_server(id, Error::Finished, &queue);
        }
        assert_eq!(queue.into_inner().unwrap().len(), 16);
        assert_eq!(registry.in_use(), 2);
        registry.take(2).unwrap();
        assert_eq!(registry.take_free().unwrap().0, 4);
    }

    #[test]
    fn all_there_are_can_be_taken() {
        let mut registry = Registry::new(None, Inbox::new(0));
        for id in 1..=u16::MAX {
            assert_eq!(registry.take_free().unwrap().0, id);
        }
        assert!(matches!(registry.take_free(), Err(Error::TooManyChannels(65_536))));
        registry.take(0).unwrap();
        assert!(matches!(registry.take(0), Err(Error::ChannelInUse(0))));
        registry.die(&Arc::new(Error::Closed));
        assert!(matches!(registry.take_free(), Err(Error::Lost(_))));
    }
}
