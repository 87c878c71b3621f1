//! Owns: the sockets that systemd has opened for this process (sd_listen_fds(3)). Does not own: what is served on them.

use rustix::fd::{FromRawFd, OwnedFd, RawFd};
use rustix::io::{FdFlags, fcntl_setfd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The first of them; the others follow.
const FIRST: RawFd = 3;
/// Sockets that are taken at most.
const SOCKETS_MAX: RawFd = 64;

/// They are taken once.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Each socket with its name; none where they are meant for another process, and none a second time.
pub(crate) fn sockets() -> Vec<(OwnedFd, String)> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<RawFd>().ok());
    if number("LISTEN_PID") != Some(std::process::id().cast_signed()) || TAKEN.swap(true, SeqCst) {
        return Vec::new();
    }
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':').map(str::to_string);
    let count = number("LISTEN_FDS").unwrap_or(0).clamp(0, SOCKETS_MAX);
    let sockets = (FIRST..FIRST + count).map(|fd| {
        // SAFETY: systemd has opened these for this process, and says so by its id; nobody else has taken them, since
        // `TAKEN` lets one caller through, at the start and before this process has opened anything by itself.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        (fd, names.next().unwrap_or_default())
    });
    sockets
        .inspect(|(fd, _)| {
            // Programs that this one starts have no use for them.
            let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
        })
        .collect()
}
