//! Owns: the only `unsafe` code of this crate: memory that is shared with the kernel. Does not own: what it is for.

pub(crate) mod ring;
