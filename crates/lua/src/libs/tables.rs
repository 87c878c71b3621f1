//! Owns: the functions of `table` that write to a table, loop for long or call back: `insert`, `remove`, `concat`,
//! `sort`, `maxn`, `foreach`, `foreachi`; and `unpack`. Does not own: the others, which are Lua's.

use super::base::writable;
use crate::frame::{Answer, Frame, Kind, Raise, c_function};
use crate::libs::{replace_functions, set_functions};

pub(super) fn open(frame: &mut Frame<'_>, names: i32) {
    let functions = [
        ("insert", c_function!(insert)),
        ("remove", c_function!(remove)),
        ("concat", c_function!(concat)),
        ("sort", c_function!(sort)),
        ("setn", c_function!(setn)),
        ("maxn", c_function!(maxn)),
        ("foreach", c_function!(foreach)),
        ("foreachi", c_function!(foreachi)),
    ];
    replace_functions(frame, names, "table", &functions);
    frame.push_copy(names);
    set_functions(frame, &[("unpack", c_function!(unpack))]);
    frame.pop_any(1);
}

/// Values that one call gives: what Lua has room for on a function's stack.
const UNPACKED_MAX: usize = 8000;

fn unpack(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    let len = frame.raw_len(1) as i32;
    let (first, last) = (frame.arg_int(2, Some(1))?, frame.arg_int(3, Some(len))?);
    if first > last {
        return Ok(0);
    }
    let count = usize::try_from(i64::from(last) - i64::from(first) + 1).unwrap_or(usize::MAX);
    if count > UNPACKED_MAX || frame.reserve(count).is_err() {
        return Err(frame.error("too many results to unpack"));
    }
    frame.step(count)?;
    for index in first..=last {
        frame.element(1, index);
    }
    Ok(count)
}

fn setn(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    Err(frame.error("'setn' is obsolete"))
}

fn maxn(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    let mut max = 0.0;
    frame.push_nil();
    while frame.next_unchanged(1) {
        frame.step(1)?;
        frame.pop(1);
        if frame.kind(-1) == Kind::Number {
            max = frame.number(-1).filter(|key| *key > max).unwrap_or(max);
        }
    }
    frame.push_number(max);
    Ok(1)
}

/// Calls the second argument with the two values on top, which are taken. Whether it gave something, which is on top.
fn visit(frame: &mut Frame<'_>) -> Result<bool, Raise> {
    frame.step(1)?;
    frame.push_copy(2);
    frame.insert(-3);
    frame.call(2, 1)?;
    let gave = frame.kind(-1) != Kind::Nil;
    if !gave {
        frame.pop(1);
    }
    Ok(gave)
}
fn foreach(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    frame.arg_function(2)?;
    frame.push_nil();
    loop {
        match frame.next(1) {
            Some(true) => {}
            Some(false) => return Ok(0),
            None => return Err(frame.plain_error("invalid key to 'next'")),
        }
        // The key stays for the next one.
        frame.push_copy(-2);
        frame.insert(-2);
        if visit(frame)? {
            return Ok(1);
        }
    }
}
fn foreachi(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    frame.arg_function(2)?;
    for index in 1..=frame.raw_len(1) {
        frame.push_number(index as f64);
        frame.raw_get_at(1, index);
        if visit(frame)? {
            return Ok(1);
        }
    }
    Ok(0)
}

fn move_element(frame: &mut Frame<'_>, from: i32, to: i32) {
    frame.element(1, from);
    frame.set_element(1, to);
}

fn insert(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    let end = (frame.raw_len(1) as i32).wrapping_add(1);
    match frame.args() {
        2 => {
            writable(frame, 1)?;
            frame.push_copy(2);
            frame.set_element(1, end);
        }
        3 => {
            let at = frame.arg_int(2, None)?;
            writable(frame, 1)?;
            let end = end.max(at);
            for index in (at.saturating_add(1)..=end).rev().take_while(|index| *index > at) {
                frame.step(1)?;
                move_element(frame, index - 1, index);
            }
            frame.push_copy(3);
            frame.set_element(1, at);
        }
        _ => return Err(frame.error("wrong number of arguments to 'insert'")),
    }
    Ok(0)
}

fn remove(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    let end = frame.raw_len(1) as i32;
    let at = frame.arg_int(2, Some(end))?;
    if !(1..=end).contains(&at) {
        return Ok(0);
    }
    writable(frame, 1)?;
    frame.element(1, at);
    for index in at..end {
        frame.step(1)?;
        move_element(frame, index + 1, index);
    }
    frame.push_nil();
    frame.set_element(1, end);
    Ok(1)
}

/// Bytes that a text grows by before it is asked again whether there is room for it.
const ASKED_BYTES: usize = 64 << 10;

fn concat(frame: &mut Frame<'_>) -> Answer {
    let between =
        if matches!(frame.kind(2), Kind::None | Kind::Nil) { &b""[..] } else { frame.arg_bytes(2)? };
    frame.arg_table(1)?;
    let len = frame.raw_len(1) as i32;
    let (first, last) = (frame.arg_int(3, Some(1))?, frame.arg_int(4, Some(len))?);
    let (mut text, mut asked) = (Vec::new(), ASKED_BYTES);
    let mut index = first;
    while index <= last {
        frame.step(1)?;
        frame.element(1, index);
        if !matches!(frame.kind(-1), Kind::String | Kind::Number) {
            let kind = frame.kind(-1).name();
            let message = format!("invalid value ({kind}) at index {index} in table for 'concat'");
            return Err(frame.error(&message));
        }
        let len = frame.bytes(-1).unwrap_or_default().len();
        let bytes = text.len() + len + between.len();
        if bytes >= asked {
            frame.step_bytes(bytes + ASKED_BYTES - asked)?;
            frame.fits(bytes)?;
            asked = bytes + ASKED_BYTES;
        }
        text.extend_from_slice(frame.bytes(-1).unwrap_or_default());
        frame.pop(1);
        if index < last {
            text.extend_from_slice(between);
        }
        let Some(next) = index.checked_add(1) else { break };
        index = next;
    }
    frame.fits(text.len())?;
    frame.push_bytes(&text);
    Ok(1)
}

fn sort(frame: &mut Frame<'_>) -> Answer {
    frame.arg_table(1)?;
    if !matches!(frame.kind(2), Kind::None | Kind::Nil | Kind::Function) {
        return Err(frame.type_error(2, "function"));
    }
    let end = frame.raw_len(1) as i32;
    if end > 1 {
        writable(frame, 1)?;
    }
    frame.reserve(40)?;
    Sort { by_function: frame.kind(2) == Kind::Function }.range(frame, 1, end, 0)?;
    Ok(0)
}

/// Lua's own order of comparisons: a quicksort with the median of three, the smaller half first by recursion.
struct Sort {
    by_function: bool,
}

/// Halves that are sorted one inside the other at most: each is at most half of the one around it.
const SORT_DEPTH_MAX: usize = 64;

impl Sort {
    /// Whether the value at one place of the stack comes before that at another.
    fn less(&self, frame: &mut Frame<'_>, one: i32, two: i32) -> Result<bool, Raise> {
        frame.step(1)?;
        let (one, two) = (frame.absolute(one), frame.absolute(two));
        if self.by_function {
            frame.push_copy(2);
            frame.push_copy(one);
            frame.push_copy(two);
            frame.call(2, 1)?;
            let less = frame.truth(-1);
            frame.pop(1);
            return Ok(less);
        }
        frame.less_than(one, two)
    }
    /// Two values from the top are set as two elements.
    fn set_two(frame: &mut Frame<'_>, top: i32, below: i32) {
        frame.set_element(1, top);
        frame.set_element(1, below);
    }

    fn range(&self, frame: &mut Frame<'_>, mut low: i32, mut high: i32, depth: usize) -> Result<(), Raise> {
        if depth > SORT_DEPTH_MAX {
            return Err(frame.error("invalid order function for sorting"));
        }
        while low < high {
            frame.element(1, low);
            frame.element(1, high);
            if self.less(frame, -1, -2)? {
                Self::set_two(frame, low, high)
            } else {
                frame.pop(2)
            }
            if high - low == 1 {
                break;
            }
            let middle = low + (high - low) / 2;
            frame.element(1, middle);
            frame.element(1, low);
            if self.less(frame, -2, -1)? {
                Self::set_two(frame, middle, low);
            } else {
                frame.pop(1);
                frame.element(1, high);
                if self.less(frame, -1, -2)? { Self::set_two(frame, middle, high) } else { frame.pop(2) }
            }
            if high - low == 2 {
                break;
            }
            let at = self.partition(frame, low, high, middle)?;
            let half = if at - low < high - at {
                let half = (low, at - 1);
                low = at + 1;
                half
            } else {
                let half = (at + 1, high);
                high = at - 1;
                half
            };
            self.range(frame, half.0, half.1, depth + 1)?;
        }
        Ok(())
    }

    /// Puts what is less than the middle before it, and says where it stands then.
    fn partition(&self, frame: &mut Frame<'_>, low: i32, high: i32, middle: i32) -> Result<i32, Raise> {
        frame.element(1, middle);
        frame.push_copy(-1);
        frame.element(1, high - 1);
        Self::set_two(frame, middle, high - 1);
        let (mut up, mut down) = (low, high - 1);
        loop {
            up += 1;
            frame.element(1, up);
            while self.less(frame, -1, -2)? {
                if up > high {
                    return Err(frame.error("invalid order function for sorting"));
                }
                frame.pop(1);
                up += 1;
                frame.element(1, up);
            }
            down -= 1;
            frame.element(1, down);
            while self.less(frame, -3, -1)? {
                if down < low {
                    return Err(frame.error("invalid order function for sorting"));
                }
                frame.pop(1);
                down -= 1;
                frame.element(1, down);
            }
            if down < up {
                frame.pop(3);
                break;
            }
            Self::set_two(frame, up, down);
        }
        frame.element(1, high - 1);
        frame.element(1, up);
        Self::set_two(frame, high - 1, up);
        Ok(up)
    }
}
