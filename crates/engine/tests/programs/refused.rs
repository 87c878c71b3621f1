//! What is wrong with a program is said when it is stored: where, and what was expected.

use crate::sweep::cpu_ms;
use weft_engine::program::Program;
use weft_engine::program::functions::FUNCTIONS;
use weft_engine::program::parse::{
    BLOCKS_MAX, DECLARED_KEYS_MAX, EXPRESSIONS_MAX, NAMES_MAX, PARAMS_MAX, PROGRAM_BYTES_MAX,
};
use weft_engine::trigger::definition::Trigger;

/// The pointer and the text of what is wrong.
fn refused(text: &str) -> (String, String) {
    let problem = Program::parse(text.as_bytes()).expect_err(text);
    (problem.at, problem.text)
}

/// A program of these steps.
fn steps(steps: &str) -> String {
    format!("{{\"params\":[{{\"name\":\"p\"}}],\"steps\":[{steps}]}}")
}

#[test]
fn every_malformed_program_is_refused_with_a_pointer_and_what_was_expected() {
    for (text, at, part) in [
        ("", "", "EOF"),
        ("{", "", "EOF"),
        ("[]", "", "expected an object"),
        ("{}", "", "\"steps\""),
        ("{\"steps\":{}}", "/steps", "expected an array of steps, met an object"),
        ("{\"steps\":[],\"stepz\":1}", "/stepz", "unknown member"),
        ("{\"steps\":[],\"steps\":[]}", "", "stands twice"),
        ("{\"params\":{},\"steps\":[]}", "/params", "expected an array"),
        ("{\"params\":[{\"name\":\"1\"}],\"steps\":[]}", "/params/0", "expected a name"),
        ("{\"params\":[{\"name\":\"a\"},{\"name\":\"a\"}],\"steps\":[]}", "/params/1", "stands twice"),
        (
            "{\"params\":[{\"name\":\"a\",\"type\":\"str\"}],\"steps\":[]}",
            "/params/0/type",
            "expected one of text",
        ),
        (
            "{\"params\":[{\"name\":\"a\",\"type\":\"int\",\"default\":\"1\"}],\"steps\":[]}",
            "/params/0/default",
            "a default of the type int",
        ),
        (
            "{\"params\":[{\"name\":\"a\",\"default\":\"\"},{\"name\":\"b\"}],\"steps\":[]}",
            "/params/1",
            "without a default",
        ),
        ("{\"limits\":{\"steps\":0},\"steps\":[]}", "/limits/steps", "positive"),
        ("{\"limits\":{\"time\":1},\"steps\":[]}", "/limits/time", "time-ms"),
        ("{\"as\":\"root\",\"steps\":[]}", "/as", "\"owner\""),
        ("{\"keys\":[\"${x}\"],\"steps\":[]}", "/keys/0", "no name \"x\""),
        (&steps("1"), "/steps/0", "expected a step"),
        (&steps("[]"), "/steps/0", "a command's name"),
        (&steps("[1]"), "/steps/0/0", "expected a command's name, met an integer"),
        (&steps("[\"NOPE\"]"), "/steps/0/0", "unknown command"),
        (&steps("[\"GET\"]"), "/steps/0", "wrong number of arguments"),
        (&steps("[\"GET\",\"a\",\"b\"]"), "/steps/0", "wrong number of arguments"),
        (&steps("[\"MULTI\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"SHUTDOWN\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"CONFIG\",\"SET\",\"a\",\"b\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"PROGRAM\",\"RUN\",\"x\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"PROGRAM\",\"SET\",\"x\",\"{}\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"EVAL\",\"return 1\",\"0\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"FCALL_RO\",\"f\",\"0\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"FUNCTION\",\"FLUSH\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"SCRIPT\",\"LOAD\",\"return 1\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"TRIGGER\",\"TEST\",\"x\",\"{}\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("[\"OBJECT\",\"NOPE\",\"x\"]"), "/steps/0/0", "cannot run in a program"),
        (&steps("{}"), "/steps/0", "one of the members"),
        (&steps("{\"do\":[\"GET\",\"a\"],\"az\":\"x\"}"), "/steps/0/az", "unknown member"),
        (&steps("{\"do\":[\"GET\",\"a\"],\"as\":\"p\"}"), "/steps/0/as", "cannot be changed"),
        (&steps("{\"do\":[\"GET\",\"a\"],\"as\":\"a-b\"}"), "/steps/0/as", "expected a name"),
        (&steps("{\"let\":{\"p\":1}}"), "/steps/0/let/p", "cannot be changed"),
        (&steps("{\"let\":{\"x\":\"${x}\"}}"), "/steps/0/let/x", "no name \"x\""),
        (&steps("{\"if\":true}"), "/steps/0", "\"then\""),
        (&steps("{\"if\":true,\"then\":[],\"otherwise\":[]}"), "/steps/0/otherwise", "unknown member"),
        (
            &steps("{\"if\":true,\"then\":[{\"let\":{\"x\":1}}]},{\"return\":\"${x}\"}"),
            "/steps/1/return",
            "no name",
        ),
        (&steps("{\"switch\":1}"), "/steps/0", "\"cases\""),
        (&steps("{\"switch\":1,\"cases\":[{\"is\":1}]}"), "/steps/0/cases/0", "is and then"),
        (&steps("{\"break\":true}"), "/steps/0/break", "no loop"),
        (&steps("{\"for\":\"x\",\"do\":[]}"), "/steps/0", "one of the members in, range and keys"),
        (&steps("{\"for\":\"x\",\"in\":[],\"range\":[1,2],\"do\":[]}"), "/steps/0", "one of the members"),
        (&steps("{\"for\":\"x\",\"in\":[]}"), "/steps/0", "\"do\""),
        (&steps("{\"for\":\"x\",\"keys\":\"*\",\"do\":[]}"), "/steps/0", "\"limit\""),
        (
            &steps("{\"for\":\"x\",\"in\":[],\"limit\":1,\"do\":[]}"),
            "/steps/0/limit",
            "belongs to a loop over keys",
        ),
        (&steps("{\"for\":\"x\",\"range\":[1],\"do\":[]}"), "/steps/0/range", "from, to, step"),
        (
            &steps("{\"for\":\"x\",\"in\":[],\"do\":[{\"let\":{\"x\":1}}]}"),
            "/steps/0/do/0/let/x",
            "cannot be changed",
        ),
        (&steps("{\"fail\":\"not a code\"}"), "/steps/0/fail", "expected a code"),
        (&steps("{\"return\":{}}"), "/steps/0/return", "one member"),
        (&steps("{\"return\":{\"+\":[1,2],\"-\":[1]}}"), "/steps/0/return", "one member"),
        (&steps("{\"return\":{\"plus\":[1,2]}}"), "/steps/0/return/plus", "unknown function"),
        (&steps("{\"return\":{\"+\":[1]}}"), "/steps/0/return/+", "takes 2 to 1024 arguments"),
        (&steps("{\"return\":{\"/\":[1,2,3]}}"), "/steps/0/return/~1", "takes 2 arguments"),
        (&steps("{\"return\":{\"if\":[1,2]}}"), "/steps/0/return/if", "two values"),
        (&steps("{\"return\":{\"map\":{\"in\":[]}}}"), "/steps/0/return/map", "in, as and give"),
        (&steps("{\"return\":{\"now\":\"us\"}}"), "/steps/0/return/now", "\"ms\" or \"s\""),
        (&steps("{\"return\":{\"base64\":\"?\"}}"), "/steps/0/return/base64", "base64"),
        (&steps("{\"return\":\"${\"}"), "/steps/0/return", "${name}"),
        (&steps("{\"return\":\"$x\"}"), "/steps/0/return", "${name} or $$"),
        (&steps("{\"return\":\"${}\"}"), "/steps/0/return", "no name"),
        (&steps("{\"return\":\"${p.}\"}"), "/steps/0/return", "between two dots"),
        (&steps("{\"return\":9223372036854775808}"), "", "beyond 64 bits"),
        (&steps("[\"SET\",\"k\",{\"nope\":1}]"), "/steps/0/2/nope", "unknown function"),
    ] {
        let (met_at, met) = refused(text);
        assert_eq!(met_at, at, "{text}: {met}");
        assert!(met.contains(part), "{text}: {met}");
    }
}

#[test]
fn limits_hold_at_them_and_not_one_past_them() {
    let fits = |text: &str| Program::parse(text.as_bytes()).err();
    let blocks = |depth: usize| {
        let open = "[{\"block\":".repeat(depth - 1);
        format!("{{\"steps\":{open}[]{}}}", "}]".repeat(depth - 1))
    };
    assert_eq!(fits(&blocks(BLOCKS_MAX)), None);
    assert!(fits(&blocks(BLOCKS_MAX + 1)).is_some_and(|problem| problem.text.contains("24 deep")));

    let expressions =
        |depth: usize| steps(&format!("{{\"return\":{}1{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1)));
    assert_eq!(fits(&expressions(EXPRESSIONS_MAX)), None);
    assert!(fits(&expressions(EXPRESSIONS_MAX + 1)).is_some_and(|problem| problem.text.contains("64 deep")));
    // JSON itself is no deeper than 128: the way to a thousand ends before any of its own.
    assert!(fits(&expressions(1000)).is_some_and(|problem| problem.text.contains("recursion")));

    let list = |count: usize, one: fn(usize) -> String| (0..count).map(one).collect::<Vec<_>>().join(",");
    let params = |count| {
        format!("{{\"params\":[{}],\"steps\":[]}}", list(count, |at| format!("{{\"name\":\"p{at}\"}}")))
    };
    assert_eq!(fits(&params(PARAMS_MAX)), None);
    assert!(fits(&params(PARAMS_MAX + 1)).is_some());

    let keys = |count| format!("{{\"keys\":[{}],\"steps\":[]}}", list(count, |at| format!("\"k{at}\"")));
    assert_eq!(fits(&keys(DECLARED_KEYS_MAX)), None);
    assert!(fits(&keys(DECLARED_KEYS_MAX + 1)).is_some());

    let names =
        |count| format!("{{\"steps\":[{{\"let\":{{{}}}}}]}}", list(count, |at| format!("\"n{at}\":1")));
    assert_eq!(fits(&names(NAMES_MAX)), None);
    assert!(fits(&names(NAMES_MAX + 1)).is_some());

    let bytes = |count: usize| format!("{{\"steps\":[]}}{}", " ".repeat(count - 12));
    assert_eq!(fits(&bytes(PROGRAM_BYTES_MAX)), None);
    assert!(
        fits(&bytes(PROGRAM_BYTES_MAX + 1)).is_some_and(|problem| problem.text.contains("bytes at most"))
    );
}

#[test]
fn a_random_change_of_a_program_never_panics() {
    let text = include_str!("../../../../docs/programs.md");
    let programs: Vec<&str> = text
        .split("```json program=")
        .skip(1)
        .filter_map(|rest| rest.split_once('\n')?.1.split("\n```").next())
        .collect();
    let mut state = 7_u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let pieces =
        ["{", "}", "[", "]", "\"", ",", ":", "${", "}", "null", "1e9", "-", "\\", "\"do\"", "\"for\"", "é"];
    let mut read = 0;
    for _ in 0..20_000 {
        let mut bytes = programs[next(programs.len())].as_bytes().to_vec();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            match next(3) {
                0 => drop(bytes.remove(at)),
                1 => drop(bytes.splice(at..at, pieces[next(pieces.len())].bytes())),
                _ => bytes[at] = next(256) as u8,
            }
        }
        read += usize::from(Program::parse(&bytes).is_ok());
    }
    println!("{read} of 20000 were programs still");
    assert!(read > 100);
}

/// The schemas refuse the same (`crates/xtask/tests/program_schema.rs`).
#[test]
fn what_the_schemas_refuse_is_refused_at_the_same_place() {
    let malformed = include_str!("../../../../conformance/programs/malformed.json");
    let malformed: serde_json::Value = serde_json::from_str(malformed).expect("JSON");
    for of in ["programs", "triggers"] {
        for one in malformed[of].as_array().expect("a list") {
            let text = one["text"].to_string();
            let problem = match of {
                "programs" => Program::parse(text.as_bytes()).err(),
                _ => Trigger::parse(b"t", text.as_bytes(), (1, true, "u")).err(),
            };
            let problem = problem.unwrap_or_else(|| panic!("{}: {text} is taken", one["wrong"]));
            assert_eq!(problem.at, one["at"].as_str().expect("a pointer"), "{}: {problem}", one["wrong"]);
        }
    }
    // The functions that the schema knows are those that there are.
    let schema = include_str!("../../../../spec/schema/program.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).expect("JSON");
    let known = schema["$defs"]["call"]["properties"].as_object().expect("functions");
    for (name, ..) in FUNCTIONS {
        assert!(known.contains_key(*name), "the schema lacks {name}");
    }
    let forms = [
        "and", "or", "if", "coalesce", "map", "filter", "any", "all", "now", "object", "literal", "base64",
        "var",
    ];
    assert_eq!(known.len(), FUNCTIONS.len() + forms.len());
    assert!(forms.iter().all(|form| known.contains_key(*form)));
}

#[test]
fn how_long_a_program_takes_to_be_read_follows_from_its_bytes() {
    let names: Vec<String> = (0..1000).map(|at| format!("\"name{at:04}\":1")).collect();
    let program = |steps: String| format!(r#"{{"steps":[{{"let":{{{}}}}},{steps}]}}"#, names.join(","));
    let many = |count: usize, part: &str| vec![part; count].join(",");
    let reading =
        |name: &str| program(format!(r#"{{"return":[{}]}}"#, many(60_000, &format!("\"${{{name}}}\""))));
    let deep = |depth: usize| {
        let steps = format!("[{}]", many(60_000, r#"["PING"]"#));
        let blocks = (0..depth).fold(steps, |inside, _| format!(r#"[{{"block":{inside}}}]"#));
        format!(r#"{{"steps":{blocks}}}"#)
    };
    let members =
        |kind: &str| program(format!(r#"{{"return":[{}]}}"#, many(60_000, &format!(r#"{{"{kind}":1}}"#))));
    let took = |text: &str| {
        let times = (0..3).map(|_| {
            let began = cpu_ms();
            Program::parse(text.as_bytes()).expect("it is one");
            cpu_ms() - began
        });
        times.fold(f64::INFINITY, f64::min)
    };
    for (what, quick, slow) in [
        ("names", reading("name0999"), reading("name0000")),
        ("blocks", deep(1), deep(22)),
        ("functions", members("abs"), members("to_json")),
    ] {
        let (quick, slow) = (took(&quick), took(&slow));
        println!("{what}: {quick:.1} and {slow:.1} ms");
        assert!(slow < quick * 3.0 + 1.0, "{what}: {quick:.1} ms, and {slow:.1} ms");
    }
}
