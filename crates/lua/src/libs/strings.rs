//! Owns: the functions of `string` that can loop or grow, or go through all of a text: `find`, `match`, `gmatch`,
//! `gsub`, `rep`, `lower`, `upper`, `reverse`, `sub`, `byte`. Does not own: patterns (`super::pattern`), the others,
//! which are Lua's.

use super::pattern::{Capture, Matcher};
use crate::frame::{Answer, Frame, Kind, PIECE_BYTES, Raise, c_function};
use crate::libs::replace_functions;

pub(super) fn open(frame: &mut Frame<'_>, names: i32) {
    let functions = [
        ("find", c_function!(find)),
        ("match", c_function!(match_)),
        ("gmatch", c_function!(gmatch)),
        ("gfind", c_function!(gmatch)),
        ("gsub", c_function!(gsub)),
        ("rep", c_function!(rep)),
        ("lower", c_function!(lower)),
        ("upper", c_function!(upper)),
        ("reverse", c_function!(reverse)),
        ("sub", c_function!(sub)),
        ("byte", c_function!(byte)),
    ];
    replace_functions(frame, names, "string", &functions);
}

fn rep(frame: &mut Frame<'_>) -> Answer {
    let text = frame.arg_bytes(1)?;
    let times = usize::try_from(frame.arg_int(2, None)?).unwrap_or(0);
    let Some(bytes) = text.len().checked_mul(times).filter(|bytes| *bytes <= isize::MAX as usize) else {
        return Err(frame.error("resulting string too large"));
    };
    frame.fits(bytes.saturating_mul(2))?;
    let mut result = Vec::with_capacity(bytes);
    let at_once = (PIECE_BYTES / text.len().max(1)).max(1);
    let piece = text.repeat(at_once.min(times));
    while result.len() < bytes {
        let left = &piece[..piece.len().min(bytes - result.len())];
        frame.step_bytes(left.len())?;
        result.extend_from_slice(left);
    }
    frame.push_bytes(&result);
    Ok(1)
}

/// Pushes what becomes of the first argument piece by piece; `backwards`: the last piece first.
fn each_piece(frame: &mut Frame<'_>, backwards: bool, change: impl Fn(&mut [u8])) -> Answer {
    let text = frame.arg_bytes(1)?;
    frame.fits(text.len().saturating_mul(2))?;
    let mut result = Vec::with_capacity(text.len());
    let mut add = |frame: &mut Frame<'_>, piece: &[u8]| {
        frame.step_bytes(piece.len())?;
        let from = result.len();
        result.extend_from_slice(piece);
        change(&mut result[from..]);
        Ok(())
    };
    if backwards {
        text.rchunks(PIECE_BYTES).try_for_each(|piece| add(frame, piece))?;
    } else {
        text.chunks(PIECE_BYTES).try_for_each(|piece| add(frame, piece))?;
    }
    frame.push_bytes(&result);
    Ok(1)
}
fn lower(frame: &mut Frame<'_>) -> Answer {
    each_piece(frame, false, <[u8]>::make_ascii_lowercase)
}
fn upper(frame: &mut Frame<'_>) -> Answer {
    each_piece(frame, false, <[u8]>::make_ascii_uppercase)
}
fn reverse(frame: &mut Frame<'_>) -> Answer {
    each_piece(frame, true, <[u8]>::reverse)
}

/// The part of a text from one place to another, as Lua's `sub` and `byte` have it: from 1, or from −1 at the end.
fn part(text: &[u8], from: i64, to: i64) -> &[u8] {
    let len = text.len() as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(len + 1).max(0) } else { at };
    let (from, to) = (place(from).max(1), place(to).min(len));
    if from > to { b"" } else { &text[from as usize - 1..to as usize] }
}

fn sub(frame: &mut Frame<'_>) -> Answer {
    let text = frame.arg_bytes(1)?;
    let (from, to) = (frame.arg_integer(2)?, frame.arg_integer_or(3, -1)?);
    let part = part(text, from, to);
    frame.step_bytes(part.len())?;
    frame.push_bytes(part);
    Ok(1)
}

fn byte(frame: &mut Frame<'_>) -> Answer {
    let text = frame.arg_bytes(1)?;
    let from = frame.arg_integer_or(2, 1)?;
    // Where it is left out, it is the place that is meant and not how it was said.
    let first = if from < 0 { from.saturating_add(text.len() as i64 + 1).max(0) } else { from };
    let to = frame.arg_integer_or(3, first)?;
    let part = part(text, from, to);
    if part.len() > i32::MAX as usize {
        return Err(frame.error("string slice too long"));
    }
    if frame.reserve(part.len()).is_err() {
        return Err(frame.error("stack overflow (string slice too long)"));
    }
    frame.step(part.len())?;
    part.iter().for_each(|byte| frame.push_number(f64::from(*byte)));
    Ok(part.len())
}

/// The place where a search begins, from 0.
fn start(frame: &mut Frame<'_>, arg: usize, len: usize) -> Result<usize, Raise> {
    let at = frame.arg_integer_or(arg, 1)?;
    let at = if at < 0 { at.saturating_add(len as i64 + 1) } else { at };
    Ok(usize::try_from(at - 1).unwrap_or(0).min(len))
}

fn find(frame: &mut Frame<'_>) -> Answer {
    search(frame, true)
}
fn match_(frame: &mut Frame<'_>) -> Answer {
    search(frame, false)
}

fn search(frame: &mut Frame<'_>, places: bool) -> Answer {
    let (text, pattern) = (frame.arg_bytes(1)?, frame.arg_bytes(2)?);
    let from = start(frame, 3, text.len())?;
    let is_plain = |pattern: &[u8]| !pattern.iter().any(|byte| b"^$*+?.([%-".contains(byte));
    // A text is looked for with the zeros that it has, of a pattern the first one is the end.
    if places && (frame.truth(4) || is_plain(text_of_c(pattern))) {
        let Some(at) = position(frame, &text[from..], pattern)? else {
            frame.push_nil();
            return Ok(1);
        };
        frame.push_number((from + at + 1) as f64);
        frame.push_number((from + at + pattern.len()) as f64);
        return Ok(2);
    }
    let (anchored, pattern) = anchor(pattern);
    let mut matcher = Matcher::new(text, pattern);
    for at in from..=text.len() {
        if let Some(end) = matcher.run(frame, at)? {
            if !places {
                return captures(frame, &matcher, text, Some((at, end)));
            }
            frame.push_number((at + 1) as f64);
            frame.push_number(end as f64);
            return captures(frame, &matcher, text, None).map(|count| count + 2);
        }
        if anchored {
            break;
        }
    }
    frame.push_nil();
    Ok(1)
}

/// Where a text is found in another.
fn position(frame: &mut Frame<'_>, text: &[u8], wanted: &[u8]) -> Result<Option<usize>, Raise> {
    let Some(&first) = wanted.first() else { return Ok(Some(0)) };
    let mut at = 0;
    while at + wanted.len() <= text.len() {
        let last = text.len() - wanted.len();
        let piece = &text[at..=last.min(at + PIECE_BYTES)];
        let Some(next) = piece.iter().position(|byte| *byte == first) else {
            frame.step_bytes(piece.len())?;
            at += piece.len();
            continue;
        };
        frame.step_bytes(next)?;
        at += next;
        frame.step(1 + wanted.len() / 64)?;
        if text[at..].starts_with(wanted) {
            return Ok(Some(at));
        }
        at += 1;
    }
    Ok(None)
}

/// What C sees of a text: a zero ends it.
fn text_of_c(text: &[u8]) -> &[u8] {
    text.iter().position(|byte| *byte == 0).map_or(text, |end| &text[..end])
}

fn anchor(pattern: &[u8]) -> (bool, &[u8]) {
    let pattern = text_of_c(pattern);
    pattern.strip_prefix(b"^").map_or((false, pattern), |rest| (true, rest))
}

/// Pushes one capture.
fn push_capture(frame: &mut Frame<'_>, capture: Capture, text: &[u8]) -> Result<(), Raise> {
    match capture {
        Capture::Span(from, to) => frame.push_bytes(&text[from..to]),
        Capture::Position(at) => frame.push_number((at + 1) as f64),
        Capture::Unfinished(_) => return Err(frame.error("unfinished capture")),
    }
    Ok(())
}
/// Pushes all captures, or the whole match where there are none.
fn captures(
    frame: &mut Frame<'_>,
    matcher: &Matcher<'_>,
    text: &[u8],
    whole: Option<(usize, usize)>,
) -> Answer {
    frame.reserve(matcher.captures.len() + 1)?;
    if let (true, Some((from, to))) = (matcher.captures.is_empty(), whole) {
        frame.push_bytes(&text[from..to]);
        return Ok(1);
    }
    for capture in &matcher.captures {
        push_capture(frame, *capture, text)?;
    }
    Ok(matcher.captures.len())
}

fn gmatch(frame: &mut Frame<'_>) -> Answer {
    frame.arg_bytes(1)?;
    frame.arg_bytes(2)?;
    frame.push_copy(1);
    frame.push_copy(2);
    // Where to go on stands in a table: a function of C keeps values and cannot be told others.
    frame.push_table(1, 0);
    frame.push_number(0.0);
    frame.raw_set_at(-2, 1);
    frame.push_function(c_function!(gmatch_next), 3);
    Ok(1)
}

fn gmatch_next(frame: &mut Frame<'_>) -> Answer {
    let (text, pattern) = (frame.kept_bytes(1), frame.kept_bytes(2));
    frame.raw_get_at(Frame::kept(3), 1);
    let from = frame.number(-1).unwrap_or_default() as usize;
    frame.pop(1);
    let mut matcher = Matcher::new(text, text_of_c(pattern));
    for at in from..=text.len() {
        if let Some(end) = matcher.run(frame, at)? {
            let next = if end == at { end + 1 } else { end };
            frame.push_number(next as f64);
            frame.raw_set_at(Frame::kept(3), 1);
            return captures(frame, &matcher, text, Some((at, end)));
        }
    }
    frame.push_number((text.len() + 1) as f64);
    frame.raw_set_at(Frame::kept(3), 1);
    Ok(0)
}

fn gsub(frame: &mut Frame<'_>) -> Answer {
    let (text, pattern) = (frame.arg_bytes(1)?, frame.arg_bytes(2)?);
    let with = frame.kind(3);
    let most = match frame.kind(4) {
        Kind::None | Kind::Nil => text.len() + 1,
        _ => usize::try_from(frame.arg_int(4, None)?).unwrap_or(0),
    };
    if !matches!(with, Kind::Number | Kind::String | Kind::Table | Kind::Function) {
        return Err(frame.arg_error(3, "string/function/table expected"));
    }
    let template = if matches!(with, Kind::Number | Kind::String) { frame.arg_bytes(3)? } else { b"" };
    let (anchored, pattern) = anchor(pattern);
    let mut matcher = Matcher::new(text, pattern);
    let (mut result, mut at, mut count) = (Vec::new(), 0, 0);
    while count < most {
        let matched = matcher.run(frame, at)?;
        if let Some(end) = matched {
            count += 1;
            substitute(frame, &matcher, (text, at, end), (with, template), &mut result)?;
        }
        match matched {
            Some(end) if end > at => at = end,
            _ if at < text.len() => {
                result.push(text[at]);
                at += 1;
            }
            _ => break,
        }
        if anchored {
            break;
        }
    }
    result.extend_from_slice(&text[at.min(text.len())..]);
    frame.fits(result.len())?;
    frame.push_bytes(&result);
    frame.push_number(count as f64);
    Ok(2)
}

/// Appends what stands in the place of a match.
fn substitute(
    frame: &mut Frame<'_>,
    matcher: &Matcher<'_>,
    (text, from, to): (&[u8], usize, usize),
    (with, template): (Kind, &[u8]),
    result: &mut Vec<u8>,
) -> Result<(), Raise> {
    let before = frame.top();
    match with {
        Kind::Function => {
            frame.push_copy(3);
            let args = captures(frame, matcher, text, Some((from, to)))?;
            frame.call(args, 1)?;
        }
        Kind::Table => {
            match matcher.captures.first() {
                Some(capture) => push_capture(frame, *capture, text)?,
                None => frame.push_bytes(&text[from..to]),
            }
            frame.get_caught(3)?;
        }
        _ => {
            return expand(frame, matcher, (text, from, to), template, result);
        }
    }
    match frame.kind(-1) {
        Kind::Nil => result.extend_from_slice(&text[from..to]),
        Kind::Boolean if !frame.truth(-1) => result.extend_from_slice(&text[from..to]),
        Kind::String | Kind::Number => {
            let len = frame.bytes(-1).unwrap_or_default().len();
            if result.len() + len > GROWN_BYTES {
                frame.fits(result.len() + len)?;
            }
            result.extend_from_slice(frame.bytes(-1).unwrap_or_default());
        }
        kind => return Err(frame.error(format!("invalid replacement value (a {})", kind.name()))),
    }
    frame.pop(frame.top() - before);
    Ok(())
}

/// Bytes of a result from which on each further piece is asked for.
const GROWN_BYTES: usize = 64 << 10;

/// So many bytes more of a result are refused above the limit.
fn grows(frame: &mut Frame<'_>, result: &[u8], more: usize) -> Result<(), Raise> {
    let bytes = result.len().saturating_add(more);
    if bytes > GROWN_BYTES { frame.fits(bytes) } else { Ok(()) }
}
fn append(frame: &mut Frame<'_>, result: &mut Vec<u8>, piece: &[u8]) -> Result<(), Raise> {
    frame.step_bytes(piece.len())?;
    grows(frame, result, piece.len())?;
    result.extend_from_slice(piece);
    Ok(())
}

/// Appends a template with its `%0` to `%9`.
fn expand(
    frame: &mut Frame<'_>,
    matcher: &Matcher<'_>,
    (text, from, to): (&[u8], usize, usize),
    template: &[u8],
    result: &mut Vec<u8>,
) -> Result<(), Raise> {
    let mut bytes = template.iter();
    frame.step_bytes(template.len())?;
    grows(frame, result, template.len())?;
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            result.push(byte);
            continue;
        }
        match bytes.next().copied() {
            Some(b'0') => append(frame, result, &text[from..to])?,
            Some(digit) if digit.is_ascii_digit() => {
                let index = usize::from(digit - b'1');
                match matcher.captures.get(index) {
                    Some(&Capture::Span(from, to)) => append(frame, result, &text[from..to])?,
                    Some(&Capture::Position(at)) => result.extend_from_slice((at + 1).to_string().as_bytes()),
                    Some(Capture::Unfinished(_)) => return Err(frame.error("unfinished capture")),
                    None if index == 0 => append(frame, result, &text[from..to])?,
                    None => return Err(frame.error("invalid capture index")),
                }
            }
            Some(other) => result.push(other),
            None => result.push(0),
        }
    }
    Ok(())
}
