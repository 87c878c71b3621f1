//! Which profile of the specification (section 1.4) a vector of RESPB belongs to: whoever implements a profile passes
//! the vectors in its folder and, with those of *Channels*, needs no others.
//!
//! It owns the rule. A vector belongs to the profile of its frame's opcode; one of *Channels* whose other form is
//! typed, or which asks an encoder to fold, belongs to *Typed*; a frame in the wrong direction belongs to *Channels*,
//! whatever it is.

use super::vector::{File, Outcome, Uses, Vector};

/// The profiles, and passthrough, which is a capability of its own; the names of their folders.
pub const PROFILES: [&str; 5] = ["channels", "typed", "flow", "cancel", "passthrough"];

fn of_wire(wire: &[u8]) -> &'static str {
    match wire.first_chunk().map_or(0xFF00, |opcode| u16::from_be_bytes(*opcode)) {
        0x0000..=0x07FF | 0xF000 => "typed",
        0xFF02 => "cancel",
        0xFF03 | 0xFF10 => "flow",
        0xFFFF => "passthrough",
        _ => "channels",
    }
}

/// The profile of a vector.
#[must_use]
pub fn of(vector: &Vector) -> &'static str {
    let profile = of_wire(&vector.wire.expand());
    let other = match &vector.outcome {
        // Who has no profile but *Channels* refuses what goes the other way, too.
        Outcome::Invalid { error: "wrong-direction", .. } => return "channels",
        Outcome::Valid { uses: Uses::Folded, .. } => "typed",
        Outcome::Valid { canonical_wire: Some(wire), .. } => of_wire(&wire.expand()),
        _ => profile,
    };
    if profile == "channels" { other } else { profile }
}

/// One file of RESPB as a file for each profile: `respb/valid/x.json` becomes `respb/PROFILE/valid/x.json`.
#[must_use]
pub fn split(file: File) -> Vec<File> {
    let Some(rest) = file.path.strip_prefix("respb/") else { return vec![file] };
    let mut files: Vec<File> = PROFILES
        .iter()
        .map(|profile| File::new(format!("respb/{profile}/{rest}"), file.comment.clone(), Vec::new()))
        .collect();
    for vector in file.vectors {
        let at = PROFILES.iter().position(|profile| *profile == of(&vector)).unwrap_or(0);
        files[at].vectors.push(vector);
    }
    files
}
