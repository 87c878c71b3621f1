//! Owns: INFO. Does not own: its text (`crate::info`).
//!
//! | locks | commands |
//! |---|---|
//! | none | all |

use crate::args::Args;
use crate::context::Context;
use crate::error::Error;
use crate::handler::{Entry, Scope};
use crate::info;
use crate::reply::ReplySink;

pub(super) const LIST: &[Entry] = &[("INFO", Scope::None, server_info)];

fn server_info(
    context: &mut Context<'_, '_>,
    args: &Args<'_>,
    sink: &mut ReplySink<'_>,
) -> Result<(), Error> {
    let text = info::info(context.engine, args.rest(1), context.now_ms);
    sink.verbatim(*b"txt", text.as_bytes());
    Ok(())
}
