//! librespb: the C face of [`weft_protocol`], declared in `include/respb.h`.
//!
//! Owns the pointers: what comes from C is checked here and becomes slices and references, and nothing below knows of
//! it. It owns no rule of a protocol. Nothing here allocates, keeps global state or panics on what a caller or the
//! network can give it; a panic would end the process and not cross into C.
//!
//! [`types`] mirrors the header, [`batch`] is where decoded values go, [`decode`] and [`encode`] are the two
//! directions, [`writer`] encodes replies, [`table`] and [`errors`] are constants, [`memory`] checks pointers.

pub mod batch;
pub mod decode;
pub mod detect;
pub mod encode;
pub mod errors;
mod memory;
pub mod table;
pub mod types;
pub mod value;
pub mod writer;

use core::ffi::c_char;

/// The version of this package, ended by a zero byte.
static VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn respb_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// The name of the command table, ended by a zero byte.
static TABLE_NAME: [u8; weft_protocol::table::TABLE_NAME.len() + 1] = ended(weft_protocol::table::TABLE_NAME);
/// Its hash.
static TABLE_HASH: [u8; weft_protocol::table::TABLE_HASH.len() + 1] = ended(weft_protocol::table::TABLE_HASH);

/// A text with a zero byte behind it.
const fn ended<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    let mut at = 0;
    while at < text.len() {
        out[at] = text.as_bytes()[at];
        at += 1;
    }
    out
}

/// The name of the command table.
#[unsafe(no_mangle)]
pub extern "C" fn respb_table_name() -> *const c_char {
    TABLE_NAME.as_ptr().cast()
}

/// The hash of the command table.
#[unsafe(no_mangle)]
pub extern "C" fn respb_table_hash() -> *const c_char {
    TABLE_HASH.as_ptr().cast()
}

/// The version of the interface.
#[unsafe(no_mangle)]
pub extern "C" fn respb_abi_version() -> u32 {
    types::ABI_VERSION
}
