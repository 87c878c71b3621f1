//! Owns: the only `unsafe` code of this crate: sockets that another process has
//! opened, the C library's allocator. Does not own: what they are for.

pub(crate) mod heap;
pub(crate) mod inherited;
