//! Owns: asking the server to stop, by signal or by SHUTDOWN, and to read its files anew. Does not own: how it does so.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

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

/// SIGTERM and SIGINT ask it from now on; a second one ends the process at once. SIGHUP calls `reload`.
pub(crate) fn install(waker: Waker, reload: impl Fn() + Send + 'static) -> std::io::Result<()> {
    let _ = WAKER.set(waker);
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    std::thread::Builder::new().name("weft-signals".into()).spawn(move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                reload();
                continue;
            }
            if is_stop_requested() {
                std::process::exit(1);
            }
            request_stop();
        }
    })?;
    Ok(())
}
