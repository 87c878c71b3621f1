//! Guards the cost of decoding: instructions per command, counted by callgrind, against `instructions.json`.

#[allow(dead_code)]
#[path = "support/callgrind.rs"]
mod callgrind;

use callgrind::judge;

#[test]
#[cfg_attr(debug_assertions, ignore = "counts a release build: make test-instructions")]
fn decoding_costs_no_more_than_it_did() {
    callgrind::check("decode_cost", None, include_str!("instructions.json"));
}

/// The pages that tell these figures tell the ones that are guarded.
#[test]
fn pages_tell_the_baselines() {
    let counts: serde_json::Value =
        serde_json::from_str(include_str!("instructions.json")).expect("it is JSON");
    let of = |command: &str| {
        let count =
            |protocol| counts[format!("{protocol}-{command}")]["baseline"].as_f64().expect("a number");
        (count("respb").round(), count("resp").round())
    };
    let (get, set, mget) = (of("get"), of("set"), of("mget"));
    let sentences = [
        format!("{} instructions as RESPB and {} as RESP", get.0, get.1),
        format!("a SET of 50 bytes {} and {}, an MGET of ten keys {} and {}", set.0, set.1, mget.0, mget.1),
    ];
    for (name, page) in [
        ("README.md", include_str!("../../../README.md")),
        ("spec/for-maintainers.md", include_str!("../../../spec/for-maintainers.md")),
    ] {
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        for sentence in &sentences {
            assert!(words.contains(sentence), "{name} does not say: {sentence}");
        }
    }
}

#[test]
fn growth_and_ceilings_are_seen() {
    assert_eq!(judge("x", 110.0, 100.0, 120.0), None);
    assert!(judge("x", 110.1, 100.0, 120.0).is_some_and(|text| text.contains("baseline")));
    assert!(judge("x", 120.1, 119.0, 120.0).is_some_and(|text| text.contains("ceiling")));
}
