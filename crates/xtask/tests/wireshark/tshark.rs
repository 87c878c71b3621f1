//! Running tshark with the dissector and reading what it prints.
//!
//! Owns the command line and the checks that hold for every run: tshark is there, succeeds, and no Lua error appears.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::capture::Capture;

/// Separates the values of a field that a packet has several times. No test has it in a value.
const BETWEEN: char = '\x01';

fn script() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../spec/wireshark/respb.lua")
}

/// Runs tshark, with two passes so that a request knows its reply, and gives its standard output.
pub(crate) fn run(capture: &Capture, arguments: &[&str]) -> String {
    run_with(capture, true, arguments)
}

/// The same without the dissector.
pub(crate) fn run_plain(capture: &Capture, arguments: &[&str]) -> String {
    run_with(capture, false, arguments)
}

/// Numbers the runs, each of which has a folder of its own.
static RUNS: AtomicUsize = AtomicUsize::new(0);

fn run_with(capture: &Capture, with_script: bool, arguments: &[&str]) -> String {
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let settings =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tshark-{}-{run}", std::process::id()));
    fs::create_dir_all(&settings).unwrap();
    let file = settings.join("capture.pcap");
    fs::write(&file, capture.bytes()).unwrap();
    let mut command = Command::new("tshark");
    if with_script {
        command.arg("-X").arg(format!("lua_script:{}", script().display()));
    }
    // An own place for settings, so that those of the user change nothing. The time zone and language neither.
    command.env("XDG_CONFIG_HOME", &settings).env("HOME", &settings);
    command.env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
    command.args(["-2", "-n", "-r"]).arg(&file).args(arguments).stdin(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("tshark cannot be run ({error}): install the Debian package tshark"),
    };
    fs::remove_dir_all(&settings).unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let complaints: Vec<&str> = stderr.lines().filter(|line| !line.starts_with("Running as user")).collect();
    assert!(output.status.success(), "tshark failed: {stderr}");
    assert!(complaints.is_empty(), "tshark complained: {complaints:#?}");
    for sign in ["Lua Error", "_ws.lua.error", "dissector-defect"] {
        let line = stdout.lines().find(|line| line.contains(sign));
        assert!(line.is_none(), "tshark printed: {line:?}");
    }
    stdout.into_owned()
}

/// The values of one packet's fields, in the order in which they were asked for.
pub(crate) type Row = Vec<Vec<String>>;

/// The fields of each packet. An empty value cannot be told from an absent one.
pub(crate) fn fields(capture: &Capture, names: &[&str], arguments: &[&str]) -> Vec<Row> {
    let aggregator = format!("aggregator={BETWEEN}");
    let mut all = vec!["-T", "fields", "-E", &aggregator, "-e", "_ws.lua.error"];
    all.extend(names.iter().flat_map(|name| ["-e", *name]));
    all.extend(arguments);
    let output = run(capture, &all);
    let mut rows = Vec::new();
    for line in output.lines() {
        let mut columns = line.split('\t');
        if columns.next() != Some("") {
            explain(capture, rows.len() + 1, arguments);
        }
        let split = |cell: &str| {
            cell.split(BETWEEN).filter(|value| !value.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        rows.push(columns.map(split).collect());
    }
    rows
}

/// Fails with the text of the Lua error in a packet.
fn explain(capture: &Capture, number: usize, arguments: &[&str]) -> ! {
    let filter = format!("frame.number == {number}");
    let mut all = vec!["-V", "-Y", &filter];
    all.extend(arguments);
    panic!("a Lua error in packet {number}: {}", run(capture, &all));
}

/// Column Info of each packet that the dissector took part in.
pub(crate) fn infos(capture: &Capture, arguments: &[&str]) -> Vec<String> {
    let mut all = vec!["-T", "fields", "-e", "_ws.col.Info", "-Y", "respb"];
    all.extend(arguments);
    run(capture, &all).lines().map(str::to_owned).collect()
}
