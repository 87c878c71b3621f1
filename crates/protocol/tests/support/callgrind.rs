//! Owns: counting an example's instructions for each command with callgrind, and judging the counts. Does not own: what
//! the examples do, the tables of counts.
//!
//! A count may be at most a tenth above its baseline and never above its ceiling. Instructions do not depend on the
//! machine's load, as time does; they do depend on the compiler, which `rust-toolchain.toml` pins. When code gets
//! faster, the baseline is lowered in the same commit.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// What a count may be above its baseline.
const GROWTH_MAX: f64 = 1.10;
/// Repeats of the two runs whose difference is counted: what comes before and after decoding is the same in both.
const REPEATS: [u64; 2] = [1, 3];

/// Says what is wrong with a count, if something is.
pub(crate) fn judge(workload: &str, count: f64, baseline: f64, ceiling: f64) -> Option<String> {
    if count > ceiling {
        return Some(format!("{workload}: {count:.1} instructions per command, the ceiling is {ceiling}"));
    }
    let most = baseline * GROWTH_MAX;
    (count > most).then(|| {
        format!("{workload}: {count:.1} instructions per command, more than {most:.1}, the baseline and 10 %")
    })
}

/// An example, built by the test so that it cannot be stale; for release, whatever the test is built for. Chosen among
/// all packages: of one package alone, what it depends on would have other features, and be built once more.
pub(crate) fn build(example: &str) -> PathBuf {
    let build = ["build", "--quiet", "--locked", "--release", "--workspace", "--example", example];
    let status = Command::new(env!("CARGO")).args(build).status().expect("cargo runs");
    assert!(status.success(), "the example {example} does not build");
    // This test is target/debug/deps/instructions-… or target/release/deps/….
    let me = std::env::current_exe().expect("a test has a path");
    let target = me.ancestors().nth(3).expect("a test is three folders deep");
    target.join("release/examples").join(example)
}

/// Runs an example under callgrind; gives what it printed and what callgrind said.
fn callgrind(options: &[&str], example: &Path, args: &[&str]) -> (String, String) {
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .args(options)
        .arg(example)
        .args(args)
        .output()
        .expect("valgrind counts the instructions and is not installed: apt-get install valgrind, or make tools-needed");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "valgrind failed on {}, {args:?}:\n{stderr}", example.display());
    (stdout, stderr)
}

/// Instructions of the parts of one run: of what is inside the functions that `counted` names, up to each call of one
/// that `ends` names; and a line that the example printed for each. Both names are patterns of callgrind's.
pub(crate) fn parts(example: &Path, program: &str, counted: &str, ends: &str) -> Vec<(String, u64)> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("parts-{}", std::process::id()));
    let options = [
        format!("--callgrind-out-file={}", file.display()),
        "--combine-dumps=yes".to_owned(),
        format!("--toggle-collect={counted}"),
        format!("--dump-before={ends}"),
    ];
    let (stdout, _) = callgrind(&options.each_ref().map(String::as_str), example, &[program]);
    let profile = std::fs::read_to_string(&file).expect("callgrind has written its counts");
    std::fs::remove_file(&file).expect("it is ours");
    let mut totals: Vec<u64> = profile
        .lines()
        .filter_map(|line| line.strip_prefix("totals: "))
        .map(|total| total.trim().parse().expect("a number"))
        .collect();
    // What comes behind the last call.
    totals.pop();
    assert_eq!(totals.len(), stdout.lines().count(), "a line for each part:\n{stdout}");
    stdout.lines().map(str::to_owned).zip(totals).collect()
}

/// Instructions of one run, commands that it took.
fn run(example: &Path, program: Option<&str>, workload: &str, repeats: u64) -> (u64, u64) {
    let repeats = repeats.to_string();
    let args: Vec<&str> = program.into_iter().chain([workload, &repeats]).collect();
    let (stdout, stderr) = callgrind(&["--callgrind-out-file=/dev/null"], example, &args);
    let commands = stdout.split(' ').next().and_then(|text| text.parse().ok());
    let collected = stderr.lines().find_map(|line| line.split_once("Collected : "));
    let instructions = collected.and_then(|(_, text)| text.trim().parse().ok());
    match (instructions, commands) {
        (Some(instructions), Some(commands)) => (instructions, commands),
        _ => panic!("cannot read what {workload} printed:\n{stdout}\n{stderr}"),
    }
}

/// Instructions per command.
fn count(example: &Path, program: Option<&str>, workload: &str) -> f64 {
    let [few, many] = REPEATS.map(|repeats| run(example, program, workload, repeats));
    (many.0 - few.0) as f64 / (many.1 - few.1) as f64
}

/// Counts every workload of a table, by an example or by one of the programs in it, and says which costs too much.
///
/// # Panics
/// When one does, or valgrind or the example cannot be run.
pub(crate) fn check(example: &str, program: Option<&str>, table: &str) {
    let table: Value = serde_json::from_str(table).expect("the table is JSON");
    let example = build(example);
    let mut wrong = Vec::new();
    for (workload, row) in table.as_object().expect("the table is an object") {
        let number = |name: &str| row[name].as_f64().expect("baseline and ceiling are numbers");
        let (baseline, ceiling) = (number("baseline"), number("ceiling"));
        let count = count(&example, program, workload);
        println!(
            "{workload:<12} {count:>7.1} instructions per command, baseline {baseline}, ceiling {ceiling}"
        );
        wrong.extend(judge(workload, count, baseline, ceiling));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
