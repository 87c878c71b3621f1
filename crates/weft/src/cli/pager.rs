//! Owns where the output of a command at the prompt goes: the terminal, a program behind `|`, or a pager. Does not own
//! what is in it.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

use super::words::Word;

/// A line before and behind `|`, if that stands alone and is followed by something.
pub(super) fn split<'a>(line: &'a str, words: &[Word]) -> (&'a str, Option<&'a str>) {
    let pipe = words.iter().find(|word| !word.quoted && word.text == b"|");
    match pipe.map(|pipe| (&line[..pipe.start], line[pipe.end..].trim())) {
        Some((before, program)) if !program.is_empty() => (before, Some(program)),
        _ => (line, None),
    }
}

/// Gives bytes to a program of the shell, whose output goes to the terminal.
pub(super) fn through(program: &str, bytes: &[u8]) -> io::Result<()> {
    let mut child = Command::new("sh").args(["-c", program]).stdin(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        match input.write_all(bytes) {
            // The program has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            result => result?,
        }
    }
    let status = child.wait()?;
    match status.code() {
        Some(0) | None => {}
        Some(code) => eprintln!("({program}: status {code})"),
    }
    Ok(())
}

/// Prints bytes, with a pager if there is one and they are longer than so many rows.
pub(super) fn print(pager: Option<&str>, rows: usize, bytes: &[u8]) -> io::Result<()> {
    let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
    match pager {
        Some(program) if lines >= rows => through(program, bytes),
        _ => {
            let mut out = io::stdout().lock();
            out.write_all(bytes)?;
            out.flush()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words;
    use super::*;

    #[test]
    fn a_pipe_stands_alone() {
        let split = |line| split(line, &words::split(line));
        assert_eq!(split("GET k | jq ."), ("GET k ", Some("jq .")));
        assert_eq!(split("GET k | sort | uniq"), ("GET k ", Some("sort | uniq")));
        for line in ["SET k a|b", "SET k '|' x", "SET k \"|\" x", "SET k |"] {
            assert_eq!(split(line), (line, None));
        }
    }
}
