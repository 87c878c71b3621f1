//! Owns: the only `unsafe` code of this crate: sockets that another process has
//! opened. Does not own: what they are for.

pub(crate) mod inherited;
