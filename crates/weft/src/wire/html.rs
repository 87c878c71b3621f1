//! stub
use super::results::Results;
pub(super) fn report(_: &Results) -> String { String::new() }
