//! Owns: asking the server to stop, by signal or by SHUTDOWN, and to read its files anew. Does not own: how it does so.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

use crate::poll::Waker;

static STOP: AtomicBool = AtomicBool::new(false);
static WAKER: Mutex<Option<Waker>> = Mutex::new(None);

/// Asks the server of this process to stop.
pub(crate) fn request_stop() {
    STOP.store(true, SeqCst);
    if let Some(waker) = WAKER.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
        waker.wake();
    }
}

/// Whether it was asked to.
pub(crate) fn is_stop_requested() -> bool {
    STOP.load(SeqCst)
}

/// Signals that no longer end the process by themselves: they wait until somebody follows them. They are taken before
/// anything is made that a server takes away at its end.
pub(crate) struct Signals(signal_hook::iterator::Signals);

impl Signals {
    pub(crate) fn take() -> std::io::Result<Self> {
        signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGXFSZ]).map(Self)
    }
    /// SIGTERM and SIGINT ask the server to stop, those too that have come since they were taken; a second one ends the
    /// process at once. SIGHUP calls `reload`. SIGXFSZ says nothing: the write beyond the limit of files fails.
    pub(crate) fn follow(self, waker: Waker, reload: impl Fn() + Send + 'static) -> std::io::Result<()> {
        *WAKER.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
        let Self(mut signals) = self;
        std::thread::Builder::new().name("weft-signals".into()).spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGHUP => {
                        reload();
                        continue;
                    }
                    SIGXFSZ => continue,
                    _ => {}
                }
                if is_stop_requested() {
                    std::process::exit(1);
                }
                request_stop();
            }
        })?;
        Ok(())
    }
}
