//! Whoever read our output has seen enough (`weft … | head`): that is no error of ours, and ends the program quietly.
//!
//! Owns both ways in which it shows: an error that a command returns, and the panic with which `println!` and
//! `eprintln!` meet it. Does not touch SIGPIPE, which would also end a server whose client is gone.

use std::io::{Error, ErrorKind};

/// What the panic of `println!` says of standard output, with the error behind it.
const PRINTING: &str = "failed printing to stdout: ";
/// The same of `eprintln!` and the standard error.
const TELLING: &str = "failed printing to stderr: ";
/// The status where something was wrong that nobody reads.
const UNHEARD: i32 = 1;

/// Whether an error is that of a reader who is gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe))
}

/// From here on a `println!` that nobody reads ends the program with status 0, and an `eprintln!` with 1: something was
/// wrong, and cannot be said. All other panics are as they were.
pub(crate) fn end_with_the_reader() {
    let others = std::panic::take_hook();
    let broken = Error::from_raw_os_error(nix::libc::EPIPE);
    let statuses = [(format!("{PRINTING}{broken}"), 0), (format!("{TELLING}{broken}"), UNHEARD)];
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload_as_str();
        if let Some((_, status)) = statuses.iter().find(|(broken, _)| text == Some(broken)) {
            std::process::exit(*status);
        }
        others(panic);
    }));
}
