//! Owns: asking the server to stop, by signal or by SHUTDOWN. Does not own: how it stops.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::poll::Waker;

static STOP: AtomicBool = AtomicBool::new(false);
static WAKER: OnceLock<Waker> = OnceLock::new();

/// Asks the server of this process to stop.
pub(crate) fn request_stop() {
    STOP.store(true, SeqCst);
    if let Some(waker) = WAKER.get() {
        waker.wake();
    }
}

/// Whether it was asked to.
pub(crate) fn is_stop_requested() -> bool {
    STOP.load(SeqCst)
}

/// SIGTERM and SIGINT ask it from now on; a second one ends the process at once.
pub(crate) fn install(waker: Waker) -> std::io::Result<()> {
    let _ = WAKER.set(waker);
    let mut signals =
        signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT])?;
    std::thread::Builder::new().name("weft-signals".into()).spawn(move || {
        for _ in signals.forever() {
            if is_stop_requested() {
                std::process::exit(1);
            }
            request_stop();
        }
    })?;
    Ok(())
}
