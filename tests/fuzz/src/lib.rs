//! The bodies of the fuzz targets: what must hold for any bytes.
//!
//! Each is a function of bytes that panics where something does not hold. `fuzz_targets/` feeds them from libFuzzer;
//! `crates/protocol/tests/fuzz_seeds.rs` includes this file and feeds them the committed seeds.

mod arguments;
mod differential;
mod pieces;
mod replies;
mod requests;

pub use differential::respb_differential;
pub use replies::{resp_reply, respb_reply};
pub use requests::{resp_request, respb_request};

/// What a target runs.
pub type Body = fn(&[u8]);

/// Every target by name, which is also the name of its folder of seeds.
pub const TARGETS: &[(&str, Body)] = &[
    ("resp_request", resp_request),
    ("resp_reply", resp_reply),
    ("respb_request", respb_request),
    ("respb_reply", respb_reply),
    ("respb_differential", respb_differential),
];
