//! The examples of docs/programs.md and of the pages beside it, run as they are written: a block
//! `json program=NAME`, and behind it `text cases=NAME` with commands behind `> ` and what they answer over RESP3;
//! `run` is `PROGRAM RUN NAME`.

use weft_engine::reply::Protocol;

use crate::support::{Bench, show};

/// The bodies of the blocks of a page that begin with a mark, with what is behind the mark.
fn blocks<'p>(page: &'p str, mark: &str) -> Vec<(&'p str, &'p str)> {
    let fence = format!("```{mark}=");
    let body = |rest: &'p str| rest.split_once("\n```").expect("a block ends").0;
    page.split(&fence[..])
        .skip(1)
        .map(|rest| body(rest).split_once('\n').expect("a name and a body"))
        .collect()
}

fn page(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the page is there")
}

/// Runs all examples of a page; says how many programs and commands there are.
fn run(name: &str) -> (usize, usize) {
    let page = page(name);
    let (programs, cases) = (blocks(&page, "json program"), blocks(&page, "text cases"));
    let (mut bench, mut commands) = (Bench::new(), 0);
    let client = bench.connect(Protocol::Resp3);
    // A machine may stall for longer than any program is given.
    bench.text(client, "CONFIG SET program-time-ms-max 60000");
    for (program, text) in &programs {
        let text = match text.contains("\"limits\"") {
            true => (*text).to_owned(),
            false => text.replacen('{', r#"{"limits":{"time-ms":60000},"#, 1),
        };
        let stored = bench.run_args(client, &[b"PROGRAM", b"SET", program.as_bytes(), text.as_bytes()]);
        assert_eq!(stored.iter().map(show).collect::<Vec<_>>(), ["1"], "{name}: {program}");
        let of: Vec<_> = cases.iter().filter(|(other, _)| other == program).collect();
        assert!(!of.is_empty(), "{name}: {program} has cases");
        for (_, lines) in of {
            bench.text(client, "FLUSHALL");
            let mut lines = lines.lines();
            while let Some(command) = lines.next() {
                let command = command.strip_prefix("> ").unwrap_or_else(|| panic!("{program}: {command}"));
                let expected = lines.next().unwrap_or_else(|| panic!("{program}: {command} answers"));
                let command = match command.strip_prefix("run") {
                    Some(args) => format!("PROGRAM RUN {program}{args}"),
                    None => command.to_owned(),
                };
                assert_eq!(bench.text(client, &command), expected, "{name}, {program}: {command}");
                commands += 1;
            }
        }
    }
    (programs.len(), commands)
}

#[test]
fn the_page_about_programs_runs() {
    let (programs, commands) = run("programs.md");
    println!("{programs} programs, {commands} commands");
    assert!(programs > 20, "{programs} programs");
}

#[test]
fn the_page_about_triggers_runs() {
    assert!(run("triggers.md").0 >= 2);
}

#[test]
fn the_vocabulary_of_json_caches_runs() {
    assert!(run("json-cache-vocabulary.md").0 >= 5);
}
