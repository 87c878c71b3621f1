//! Owns: what is wrong with an option, and where it stands.

use std::fmt;

/// An option that cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionsError {
    /// Where: `weft.conf:12`, `--port`, `WEFT_PORT`.
    pub place: String,
    /// What is wrong, and what to do.
    pub text: String,
}

impl OptionsError {
    pub(super) fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self { place: place.into(), text: text.into() }
    }
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

impl std::error::Error for OptionsError {}
