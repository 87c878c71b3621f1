//! `spec/errors.json` and [`Malformed`] say the same, in the same order.

use weft_protocol::Malformed;

#[test]
fn the_specification_has_the_same_errors() {
    let text = include_str!("../../../spec/errors.json");
    let file: serde_json::Value = serde_json::from_str(text).expect("spec/errors.json is JSON");
    let errors = file["errors"].as_array().expect("it has a list of errors");
    let given: Vec<(&str, &str)> = errors
        .iter()
        .map(|error| (error["name"].as_str().unwrap_or_default(), error["text"].as_str().unwrap_or_default()))
        .collect();
    let known: Vec<(&str, &str)> = Malformed::ALL.iter().map(|kind| (kind.name(), kind.text())).collect();
    assert_eq!(given, known);
}
