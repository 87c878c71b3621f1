//! Owns: values in bytes that others know: DUMP, RDB and libraries of functions, HyperLogLog. Does not own: keys,
//! commands.

pub mod hyperloglog;
pub mod rdb;
