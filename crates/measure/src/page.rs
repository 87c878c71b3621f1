//! A page with what belongs to it, as files. Owns their names.

use std::path::Path;
use std::{fs, io};

use crate::Claim;

/// Writes a page, its plot into `plots` beside it, and its claims, in JSON, beside it as `NAME.claims.json`.
///
/// # Errors
/// When a file cannot be written; the error names it.
pub fn write_page(path: &Path, page: &str, plot: &str, claims: &[Claim]) -> io::Result<()> {
    let claims = serde_json::to_string_pretty(claims)? + "\n";
    let folder = path.parent().unwrap_or(Path::new("")).join("plots");
    fs::create_dir_all(&folder).map_err(|error| named(&folder, error))?;
    let plots = folder.join(path.with_extension("svg").file_name().unwrap_or_default());
    let index = path.with_extension("claims.json");
    let files: [(&Path, &str); 3] = [(path, page), (&plots, plot), (&index, &claims)];
    files.into_iter().try_for_each(|(path, text)| fs::write(path, text).map_err(|error| named(path, error)))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
