//! Owns: the files of `conformance/scenarios`: reading them, and comparing replies with those that they have. Does not
//! own: who is asked.

use std::path::Path;

use weft_protocol::Reply;
use weft_protocol::table::{self, CommandId};

/// The words of a line: blanks separate, quotes hold together, `\xHH` is a byte.
pub(crate) fn words(line: &str) -> Vec<Vec<u8>> {
    let (mut all, mut at) = (Vec::new(), 0);
    let bytes = line.as_bytes();
    while at < bytes.len() {
        let mut word = Vec::new();
        match bytes[at] {
            b' ' => {
                at += 1;
                continue;
            }
            b'"' => {
                at += 1;
                while bytes[at] != b'"' {
                    if bytes[at] == b'\\' {
                        word.push(u8::from_str_radix(&line[at + 2..at + 4], 16).expect("two digits"));
                        at += 4;
                    } else {
                        word.push(bytes[at]);
                        at += 1;
                    }
                }
                at += 1;
            }
            _ => {
                let end = line[at..].find(' ').map_or(line.len(), |len| at + len);
                word.extend_from_slice(&bytes[at..end]);
                at = end;
            }
        }
        all.push(word);
    }
    all
}

pub(crate) fn leaf(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "\"\"".into();
    }
    let show = |byte: &u8| match byte {
        33..=126 if *byte != b'\\' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    bytes.iter().map(show).collect()
}

/// The values of a reply in order.
pub(crate) fn leaves(reply: &Reply, all: &mut Vec<String>) {
    match reply {
        Reply::Simple(bytes) | Reply::Bulk(bytes) | Reply::BigNumber(bytes) | Reply::Verbatim(_, bytes) => {
            all.push(leaf(bytes));
        }
        Reply::Error(bytes) => all.push(format!("-{}", String::from_utf8_lossy(bytes))),
        Reply::Int(value) => all.push(value.to_string()),
        Reply::Double(value) => {
            let mut buffer = [0; weft_protocol::number::DOUBLE_TEXT_MAX];
            all.push(leaf(weft_protocol::number::double_text(*value, &mut buffer)));
        }
        Reply::Bool(value) => all.push(u8::from(*value).to_string()),
        Reply::Null | Reply::NullArray => all.push("nil".into()),
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            items.iter().for_each(|item| leaves(item, all));
        }
        Reply::Map(pairs) => pairs.iter().for_each(|(key, value)| {
            leaves(key, all);
            leaves(value, all);
        }),
        other => all.push(format!("{other:?}")),
    }
}

/// Whether a reply is the one that is expected. Doubles have other digits in RESP2, but the same value.
pub(crate) fn is_same(got: &str, expected: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    let same = |(one, two): (&str, &str)| one == two || number(one).is_some() && number(one) == number(two);
    weft_engine::glob::matches(expected.as_bytes(), got.as_bytes())
        || got == expected
        || got.split(' ').count() == expected.split(' ').count()
            && got.split(' ').zip(expected.split(' ')).all(same)
}

/// Each scenario: its name, and its commands with their replies.
pub(crate) fn scenarios() -> Vec<(String, Vec<(String, String)>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/scenarios/commands");
    let mut all = Vec::new();
    for file in std::fs::read_dir(folder).expect("the folder is there") {
        let path = file.expect("readable").path();
        if path.extension().is_none_or(|end| end != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut steps: Vec<(String, String)> = Vec::new();
        for line in lines {
            match line.strip_prefix("    ") {
                Some(reply) => steps.last_mut().expect("a command comes before its reply").1 = reply.into(),
                None => steps.push((line.into(), String::new())),
            }
        }
        all.push((path.file_stem().expect("a name").to_string_lossy().into_owned(), steps));
    }
    all.sort();
    assert!(all.len() >= 10);
    all
}

/// Whether a scenario has commands whose replies are streams.
pub(crate) fn has_streams(steps: &[(String, String)]) -> bool {
    let streams = |line: &String| {
        command(&words(line)).is_some_and(|id| id.spec().policy & table::policy::STREAMS != 0)
    };
    steps.iter().any(|(line, _)| streams(line))
}

/// The command that words are for.
pub(crate) fn command(words: &[Vec<u8>]) -> Option<CommandId> {
    let id = table::by_name(&words[0])?;
    let sub = words.get(1).and_then(|name| {
        table::subcommands(id).find(|sub| name.eq_ignore_ascii_case(sub.spec().name.as_bytes()))
    });
    Some(sub.unwrap_or(id))
}
