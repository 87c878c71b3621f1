//! Reading what MONITOR prints: `1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`, a line for each command.
//!
//! Owns that line's grammar. Lines without arguments (`OK`) are passed over; a line that breaks off is an error with
//! its place.

use anyhow::{Context as _, Result, bail};

use super::trace::Command;

pub(super) fn commands(bytes: &[u8]) -> Result<Vec<Command>> {
    let (mut at, mut commands) = (0, Vec::new());
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let trimmed = line.trim_ascii();
        if let Some(arguments) = after_client(trimmed) {
            let argv = arguments_of(arguments).with_context(|| format!("byte {at}"))?;
            if !argv.is_empty() {
                commands.push(argv);
            }
        } else if !trimmed.is_empty() && trimmed != b"OK" && trimmed != b"+OK" {
            bail!("byte {at}: not a line of MONITOR (time, [db client], quoted arguments)");
        }
        at += line.len();
    }
    Ok(commands)
}

/// What follows the time and `[db client]`. A client's address may hold brackets itself (IPv6); `] "` ends it.
fn after_client(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix(b"+").unwrap_or(line);
    let open = line.iter().position(|&byte| byte == b' ')?;
    let time = &line[..open];
    if !time.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') || line.get(open + 1) != Some(&b'[') {
        return None;
    }
    let close = line.windows(3).position(|window| window == b"] \"")?;
    Some(&line[close + 2..])
}

/// Quoted arguments with blanks between them.
fn arguments_of(mut rest: &[u8]) -> Result<Command> {
    let mut argv = Vec::new();
    while let [b'"', behind @ ..] = rest {
        let (argument, after) = quoted(behind)?;
        argv.push(argument);
        rest = after.trim_ascii_start();
    }
    if !rest.is_empty() {
        bail!("expected a quoted argument");
    }
    Ok(argv)
}

/// The argument up to its closing quote, escapes resolved, and what follows the quote.
fn quoted(mut rest: &[u8]) -> Result<(Vec<u8>, &[u8])> {
    let mut out = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Ok((out, after)),
            [b'\\', b'x', high, low, after @ ..] => {
                let digit =
                    |byte: u8| (byte as char).to_digit(16).context("\\x without two hexadecimal digits");
                out.push((digit(*high)? * 16 + digit(*low)?) as u8);
                rest = after;
            }
            [b'\\', byte, after @ ..] => {
                out.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    other => *other,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                out.push(*byte);
                rest = after;
            }
            [] => bail!("the line ends inside an argument"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_give_their_arguments() {
        let text = b"OK\n1339518083.107412 [0 127.0.0.1:60866] \"set\" \"a b\" \"\\x00\\\"\\n\"\n\
            1339518084.0 [3 [::1]:5] \"PING\"\r\n1339518085.5 [0 lua] \"get\" \"k\"\n";
        let commands = commands(text).unwrap();
        assert_eq!(commands.len(), 3);
        assert_eq!(commands[0], [b"set".to_vec(), b"a b".to_vec(), b"\0\"\n".to_vec()]);
        assert_eq!(commands[1], [b"PING".to_vec()]);
    }

    #[test]
    fn a_line_that_breaks_off_is_refused_with_its_offset() {
        let error = commands(b"OK\n1.0 [0 x] \"get\" \"k").unwrap_err();
        assert!(format!("{error:#}").starts_with("byte 3"), "{error:#}");
        let error = commands(b"1.0 [0 x] \"get\"\nhello\n").unwrap_err();
        assert!(format!("{error:#}").starts_with("byte 16"), "{error:#}");
    }
}
