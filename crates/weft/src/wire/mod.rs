//! `weft wire` placeholder
use anyhow::Result;
#[derive(Debug, clap::Args)]
pub(crate) struct Options {}
pub(crate) fn run(_: &Options) -> Result<std::process::ExitCode> { let _ = crate::heap::count(|| 1); Ok(std::process::ExitCode::SUCCESS) }
