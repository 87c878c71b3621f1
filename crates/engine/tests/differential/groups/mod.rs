//! Owns: the groups of commands. One file for each; `template` says how they are written.

mod bitmaps;
mod consumers;
mod functions;
mod generic;
mod hashes;
mod hyperloglogs;
mod libraries;
mod lists;
mod positions;
mod records;
mod scripts;
mod sets;
mod sorted_sets;
mod sorting;
mod streams;
mod strings;
mod transactions;

use crate::template::Places;

/// Commands that belong together.
pub(crate) struct Group {
    /// Its name, for `WEFT_DIFF_GROUPS`.
    pub(crate) name: &'static str,
    /// Its commands.
    pub(crate) templates: &'static [&'static str],
    /// Whether `accepted.txt` has what differs in Redis 7.0: only then the group runs where there is no Valkey.
    pub(crate) redis: bool,
    /// The places that only it knows; `no_places` if there are none.
    pub(crate) places: Places,
}

/// All groups. The first is mixed into every round at a low rate: what removes, renames and expires keys.
pub(crate) const GROUPS: &[&Group] = &[
    &generic::GROUP,
    &strings::GROUP,
    &lists::GROUP,
    &hashes::GROUP,
    &records::GROUP,
    &sets::GROUP,
    &sorted_sets::GROUP,
    &positions::GROUP,
    &bitmaps::GROUP,
    &hyperloglogs::GROUP,
    &sorting::GROUP,
    &streams::GROUP,
    &consumers::GROUP,
    &transactions::GROUP,
    &scripts::GROUP,
    &functions::GROUP,
    &libraries::GROUP,
];

/// For a group that needs only the places of `Dice::place`.
pub(crate) fn no_places(_: &mut crate::dice::Dice, _: &str) -> Option<Vec<u8>> {
    None
}
