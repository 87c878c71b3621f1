//! Inline commands: a line of words, quoted as in Redis.
//!
//! Owns the splitting. A word without quotes is handed out as it stands; one with quotes is handed out raw, checked to
//! be well-formed, and resolved by [`crate::request::unquote`].

use super::request::RequestFrame;
use crate::limits::Limits;
use crate::outcome::{Malformed, Step, Stop};
use crate::request::ArgVisitor;

/// Decodes the line at the start of `input`. `searched` is how far an earlier attempt has looked for the line's end;
/// nothing is handed out before it is there. `at` and `count` say where to go on when the visitor had no room for all
/// words.
#[cold]
pub(super) fn decode<'a>(
    input: &'a [u8],
    searched: &mut usize,
    limits: &Limits,
    at: &mut usize,
    count: &mut u32,
    args: &mut impl ArgVisitor,
) -> Step<RequestFrame<'a>> {
    let limit = limits.inline_bytes_max as usize;
    let visible = &input[..input.len().min(limit.saturating_add(2))];
    let from = (*searched).min(visible.len());
    let Some(end) = visible[from..].iter().position(|&byte| byte == b'\n').map(|at| from + at) else {
        *searched = visible.len();
        // One byte more than the limit may be the CR of a line that just fits.
        let fits = visible.len() == limit + 1 && visible.last() == Some(&b'\r');
        return Err(if visible.len() > limit && !fits {
            Stop::bad(Malformed::InlineTooLong, limit)
        } else {
            Stop::Need(input.len() + 1)
        });
    };
    *searched = end;
    let line = match &visible[..end] {
        [line @ .., b'\r'] => line,
        line => line,
    };
    if line.len() > limit {
        return Err(Stop::bad(Malformed::InlineTooLong, limit));
    }
    words(line, limits, at, count, args)?;
    Ok(RequestFrame { len: end + 1, rest: &input[end + 1..], arguments: *count })
}

fn words(
    line: &[u8],
    limits: &Limits,
    place: &mut usize,
    count: &mut u32,
    args: &mut impl ArgVisitor,
) -> Step<()> {
    let mut at = *place;
    loop {
        while at < line.len() && is_blank(line[at]) {
            at += 1;
        }
        // A NUL ends the line, as it does for Redis, which handles it as a C string.
        if at >= line.len() || line[at] == 0 {
            return Ok(());
        }
        if !args.has_room() {
            return Err(Stop::FULL);
        }
        let word = scan(line, at)?;
        if *count >= limits.arguments_max {
            return Err(Stop::bad(Malformed::TooManyArguments, at));
        }
        if word.end - at > limits.argument_bytes_max as usize {
            return Err(Stop::bad(Malformed::ArgumentTooLong, at));
        }
        match word.quoted {
            false => args.bytes(at, &line[at..word.end]),
            true => args.quoted(at, &line[at..word.end]),
        }
        *count += 1;
        at = word.end;
        *place = at;
    }
}

struct Word {
    end: usize,
    quoted: bool,
}

/// Finds the end of the word at `start`.
fn scan(line: &[u8], start: usize) -> Step<Word> {
    let unbalanced = Err(Stop::bad(Malformed::UnbalancedQuotes, start));
    let (mut at, mut quoted) = (start, false);
    while at < line.len() && !is_blank(line[at]) && line[at] != 0 {
        let quote = line[at];
        at += 1;
        if quote != b'"' && quote != b'\'' {
            continue;
        }
        quoted = true;
        loop {
            match line.get(at) {
                None | Some(0) => return unbalanced,
                Some(b'\\') if quote == b'"' && at + 1 < line.len() => at += 2,
                Some(b'\\') if quote == b'\'' && line.get(at + 1) == Some(&b'\'') => at += 2,
                Some(&byte) if byte == quote => break,
                Some(_) => at += 1,
            }
        }
        at += 1;
        // A closing quote must end the word.
        if at < line.len() && !is_blank(line[at]) && line[at] != 0 {
            return unbalanced;
        }
    }
    Ok(Word { end: at, quoted })
}

/// C's `isspace`.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
}
