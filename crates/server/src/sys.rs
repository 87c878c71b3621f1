//! Owns: the only `unsafe` code of this crate: memory that is shared with the kernel, sockets that another process has
//! opened. Does not own: what they are for.

pub(crate) mod inherited;
pub(crate) mod ring;
