//! stub
pub(super) fn text() -> String { String::new() }
pub(super) fn json() -> anyhow::Result<String> { Ok(String::new()) }
