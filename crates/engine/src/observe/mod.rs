//! Owns: what is counted, measured and kept to be looked at, and who looks. Does not own: when it is counted
//! (`crate::executor`), telling them (`crate::notices`), INFO and Prometheus, which show it (`crate::info`,
//! `crate::metrics`).

pub mod behind;
pub mod command_log;
pub(crate) mod facts;
pub mod feed;
pub mod histogram;
pub mod history;
pub mod hot;
pub mod latency;
pub mod monitor;
pub(crate) mod process;
pub mod stats;
