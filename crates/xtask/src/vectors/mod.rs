//! The conformance vectors: `conformance/vectors`, generated from the layouts of `spec/commands`.
//!
//! It owns the list of files. The bytes are built naively and without `crates/protocol`, so that the codec and the
//! vectors check each other: [`layout`], [`argument`] and [`tree`] are the encoders, the other modules the cases.

pub mod argument;
pub mod bytes;
pub mod folded;
pub mod frames;
pub mod layout;
pub mod limits;
pub mod limits_more;
pub mod numbers;
pub mod options;
pub mod precedence;
pub mod profile;
pub mod replies;
pub mod requests;
pub mod resp_replies;
pub mod resp_requests;
pub mod tree;
pub mod vector;
pub mod wrong_frames;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::model::Command;
use crate::respb::Layout;
use vector::{File, Vector};

/// The folder of the vectors, from the root of the repository.
pub const VECTORS_DIR: &str = "conformance/vectors";

/// All files, in the order of their paths.
///
/// # Errors
/// When two vectors have the same identifier.
pub fn generate(commands: &[Command]) -> Result<Vec<File>> {
    let mut files = typed_files(commands);
    files.extend(respb_files(commands));
    files = files.into_iter().flat_map(profile::split).collect();
    files.extend(resp_requests::files());
    files.extend(resp_replies::files());
    files.retain(|file| !file.vectors.is_empty());
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut ids = BTreeSet::new();
    for vector in files.iter().flat_map(|file| &file.vectors) {
        ensure!(ids.insert(vector.id.as_str()), "two vectors are called {}", vector.id);
    }
    Ok(files)
}

/// One file for each group of commands, valid and invalid.
fn typed_files(commands: &[Command]) -> Vec<File> {
    let mut groups: BTreeMap<&str, (Vec<Vector>, Vec<Vector>)> = BTreeMap::new();
    for command in commands {
        let (valid, invalid) = match command.respb.as_ref().and_then(|respb| respb.layout()) {
            Some(Layout::Typed(fields)) => requests::typed(command, fields),
            Some(Layout::Args) => requests::args_layout(command),
            Some(Layout::Via(_)) | None => continue,
        };
        let group = groups.entry(command.group.as_str()).or_default();
        group.0.extend(valid);
        group.1.extend(invalid);
    }
    let files = groups.into_iter().flat_map(|(group, (valid, invalid))| {
        [
            File::new(
                format!("respb/valid/request-{group}.json"),
                format!("Requests of the group {group}, each in the layout of its command."),
                valid,
            ),
            File::new(
                format!("respb/invalid/request-{group}.json"),
                format!("Requests of the group {group} with a field that is wrong."),
                invalid,
            ),
        ]
    });
    files.collect()
}

fn respb_files(commands: &[Command]) -> Vec<File> {
    let file = |path: &str, comment: &str, vectors| File::new(format!("respb/{path}.json"), comment, vectors);
    let (request_limits, reply_limits) = (limits::requests(commands), limits::replies());
    let more_limits = limits_more::pairs(commands);
    let controls = [frames::controls("request"), frames::controls("reply")].concat();
    let lists = [frames::look_alikes(commands), frames::mixed_lengths(commands)].concat();
    vec![
        file(
            "valid/numbers",
            "Numbers as text: the one spelling that is typed, and others, which go as ARGV.",
            numbers::vectors(commands),
        ),
        file(
            "valid/folded",
            "Arguments that a client's encoder folds into typed frames, and those that it leaves alone.",
            folded::vectors(commands),
        ),
        file(
            "valid/argv",
            "ARGV frames: what a typed layout cannot say, and what it could.",
            frames::argvs(commands),
        ),
        file(
            "valid/passthrough",
            "Passthrough frames: one RESP command each.",
            frames::passthroughs(commands),
        ),
        file("valid/control", "Control frames and frames of later versions, in both directions.", controls),
        file(
            "valid/channels",
            "Every kind of request on channels around the sizes of the field.",
            frames::channels(commands),
        ),
        file("valid/request-lists", "Lists of many items, and texts that look like options.", lists),
        file("valid/request-limits", "Requests that need all of a limit.", request_limits.valid),
        file("invalid/request-limits", "Requests one past a limit.", request_limits.invalid),
        file(
            "valid/limits",
            "Attributes, counts and control frames that need all of a limit, and what a limit does not bound.",
            more_limits.valid,
        ),
        file("invalid/limits", "The same one past the limit.", more_limits.invalid),
        file("valid/reply", "Replies: every value, at the top and as an element.", replies::values()),
        file(
            "valid/reply-aggregates",
            "Replies: aggregates, nesting, attributes, pushes.",
            replies::aggregates(),
        ),
        file(
            "valid/reply-longer",
            "Replies in forms that are longer than they need be.",
            replies::longer_forms(),
        ),
        file("valid/reply-encode", "Replies that an encoder sends as another value.", replies::encode_only()),
        file("valid/reply-limits", "Replies that need all of a limit.", reply_limits.valid),
        file("invalid/reply-limits", "Replies one past a limit.", reply_limits.invalid),
        file(
            "invalid/request",
            "Request frames that are wrong apart from any layout.",
            wrong_frames::requests(commands),
        ),
        file("invalid/reply", "Reply frames that are wrong.", wrong_frames::replies()),
        file(
            "invalid/precedence",
            "Frames that are wrong in two ways at one place.",
            [precedence::requests(commands), precedence::replies()].concat(),
        ),
    ]
}

/// Writes the files that are not up to date and removes those that are no longer generated. Returns the paths touched.
///
/// # Errors
/// When a file cannot be written, or two vectors have the same identifier.
pub fn write(root: &Path, commands: &[Command]) -> Result<Vec<PathBuf>> {
    let stale = stale(root, commands)?;
    for (path, text) in &stale {
        let target = root.join(path);
        if let Some(text) = text {
            if let Some(dir) = target.parent() {
                fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
            }
            fs::write(&target, text).with_context(|| format!("cannot write {}", path.display()))?;
        } else {
            fs::remove_file(&target).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(stale.into_iter().map(|(path, _)| path).collect())
}

/// A path from the root, and the text that should stand there; none where nothing should.
pub type Stale = (PathBuf, Option<String>);

/// The files that differ from what would be generated now.
///
/// # Errors
/// When two vectors have the same identifier.
pub fn stale(root: &Path, commands: &[Command]) -> Result<Vec<Stale>> {
    let dir = Path::new(VECTORS_DIR);
    let mut expected: BTreeMap<PathBuf, Option<String>> =
        existing(root)?.into_iter().map(|path| (path, None)).collect();
    for file in generate(commands)? {
        expected.insert(dir.join(&file.path), Some(file.text()));
    }
    expected.retain(|path, text| fs::read_to_string(root.join(path)).ok() != *text);
    Ok(expected.into_iter().collect())
}

/// The vector files that are there.
fn existing(root: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let respb = profile::PROFILES.iter().map(|profile| format!("respb/{profile}"));
    for folder in ["resp2".to_owned(), "resp3".to_owned()].into_iter().chain(respb) {
        for kind in ["valid", "invalid"] {
            let dir = Path::new(VECTORS_DIR).join(&folder).join(kind);
            let Ok(entries) = fs::read_dir(root.join(&dir)) else { continue };
            for entry in entries {
                paths.push(dir.join(entry?.file_name()));
            }
        }
    }
    Ok(paths)
}

/// How many vectors each folder has.
///
/// # Errors
/// When two vectors have the same identifier.
pub fn counts(commands: &[Command]) -> Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    for file in generate(commands)? {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder).to_string();
        *counts.entry(folder).or_default() += file.vectors.len();
    }
    Ok(counts)
}
