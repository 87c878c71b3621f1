//! What Weft keeps on disk: the log of effects, snapshots, and which files they are.
//!
//! Owns: the forms of files, writing them, reading them back and proving them. Does not own: threads, when something is
//! written and synced, what the effects do (`weft_store` replays them), commands.
//!
//! # Map
//!
//! | module | owns |
//! |---|---|
//! | [`frames`] | which RESPB request says which effect |
//! | [`block`] | blocks and heads of files |
//! | [`log`] | writing a log |
//! | [`snapshot`] | writing a snapshot |
//! | [`kept`] | reading both back |
//! | [`reader`] | the blocks of one file; torn or damaged |
//! | [`survey`] | what of a damaged log proves, and a new one from that |
//! | [`manifest`] | which files a log consists of |
//! | `sums` | the CRC of any piece of a file, for searches |
//! | [`problem`] | what keeps them from being read, in words |
//! | [`disk`] | files of a folder, and a disk that loses power |

#![forbid(unsafe_code)]

pub mod block;
pub mod disk;
pub mod frames;
pub mod kept;
pub mod log;
pub mod manifest;
pub mod problem;
pub mod reader;
pub mod snapshot;
mod sums;
pub mod survey;

pub use disk::{Disk, Folder};
pub use frames::{Decoder, Mark, ROW_MAX, Strange};
pub use kept::{FoundLog, Place, Summary, read_snapshot};
pub use log::{Log, LogOptions, SEGMENT_BYTES};
pub use problem::Problem;
pub use snapshot::{Snapshot, SnapshotWriter, clear_unfinished};
pub use survey::{Survey, repair, survey_file, survey_log};
