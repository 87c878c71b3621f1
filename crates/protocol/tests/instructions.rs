//! Guards the cost of decoding: instructions per command, counted by callgrind, against `instructions.json`.

#[allow(dead_code)]
#[path = "support/callgrind.rs"]
mod callgrind;

use callgrind::judge;

#[test]
#[cfg_attr(debug_assertions, ignore = "counts a release build: make test-instructions")]
fn decoding_costs_no_more_than_it_did() {
    callgrind::check("weft-protocol", "decode_cost", include_str!("instructions.json"));
}

#[test]
fn growth_and_ceilings_are_seen() {
    assert_eq!(judge("x", 110.0, 100.0, 120.0), None);
    assert!(judge("x", 110.1, 100.0, 120.0).is_some_and(|text| text.contains("baseline")));
    assert!(judge("x", 120.1, 119.0, 120.0).is_some_and(|text| text.contains("ceiling")));
}
