//! `weft program`: what is wrong with a program, and its cases.

mod common;

use common::{Folder, run};

const SELL: &str = r#"{
  "params": [{"name": "id"}, {"name": "count", "type": "int"}],
  "steps": [
    {"do": ["DECRBY", "stock:${id}", "${count}"], "as": "left"},
    {"assert": {">=": ["${left}", 0]}, "code": "OUTOFSTOCK"},
    {"return": {"object": {"left": "${left}"}}}
  ],
  "cases": [
    {"name": "enough", "given": [["SET", "stock:7", 5]], "run": ["7", 3], "returns": {"left": 2}},
    {"name": "too little", "given": [["SET", "stock:7", 1]], "run": ["7", 3], "fails": "OUTOFSTOCK",
     "then": [[["GET", "stock:7"], "1"]]}
  ]
}"#;

fn check(folder: &Folder, action: &str, text: &str) -> (Option<i32>, String) {
    let path = folder.file("p.json", text.as_bytes());
    let output = run(&["program", action, &path], b"");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.code(), said.replace(&format!("{path}: "), ""))
}

#[test]
fn a_program_is_checked_and_its_cases_run() {
    let folder = Folder::new();
    assert_eq!(check(&folder, "check", SELL), (Some(0), "fine\n".into()));
    assert_eq!(check(&folder, "test", SELL), (Some(0), "enough: fine\ntoo little: fine\n".into()));
    let (code, said) = check(&folder, "check", &SELL.replace("DECRBY", "DECRYB"));
    assert_eq!((code, &said[..]), (Some(1), "/steps/0/do/0: unknown command \"DECRYB\"\n"));
    let (code, said) = check(&folder, "test", &SELL.replace("{\"left\": 2}}", "{\"left\": 3}}"));
    assert_eq!(code, Some(1));
    assert!(
        said.contains("enough: returns {\"left\":2}, and not {\"left\":3}")
            && said.contains("too little: fine")
    );
    let (code, said) = check(&folder, "test", &SELL.replace("\"1\"]]", "\"2\"]]"));
    assert!(
        code == Some(1) && said.contains("then [\"GET\",\"stock:7\"] answers \"1\", and not \"2\""),
        "{said}"
    );
    let (code, said) = check(&folder, "test", "{\"steps\": []}");
    assert!(code == Some(1) && said.contains("no cases"), "{said}");
}
