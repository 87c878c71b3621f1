//! tbd
use anyhow::Result;
#[derive(Debug, clap::Args)]
pub(crate) struct Options {}
pub(crate) fn run(_: &Options) -> Result<std::process::ExitCode> { anyhow::bail!("no") }
