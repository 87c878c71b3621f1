//! Owns: `struct`: values as the bytes of C's structures and back. Does not own: anything of a script.

use crate::frame::{Answer, Frame, Raise, c_function};
use crate::libs::set_functions;

/// Bytes of the widest integer.
const INTEGER_BYTES_MAX: usize = 32;
/// The alignment that `!` alone means.
const ALIGN: usize = 8;

pub(super) fn open(frame: &mut Frame<'_>) {
    frame.push_table(0, 3);
    let functions =
        [("pack", c_function!(pack)), ("unpack", c_function!(unpack)), ("size", c_function!(size))];
    set_functions(frame, &functions);
}

/// A format as it is read.
struct Format<'f> {
    rest: &'f [u8],
    big: bool,
    align: usize,
}

/// One option, how large it is, and how many bytes are left out before it.
struct Part {
    option: u8,
    size: usize,
    gap: usize,
}

impl<'f> Format<'f> {
    fn new(format: &'f [u8]) -> Self {
        // C's text ends with a zero.
        let rest = format.split(|byte| *byte == 0).next().unwrap_or_default();
        Self { rest, big: cfg!(target_endian = "big"), align: 1 }
    }
    fn number(&mut self, frame: &mut Frame<'_>, default: usize) -> Result<usize, Raise> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return Ok(default);
        }
        let mut value = 0_i32;
        while let Some(digit) = self.rest.first().filter(|byte| byte.is_ascii_digit()) {
            let next = value.checked_mul(10).and_then(|value| value.checked_add(i32::from(digit - b'0')));
            match next {
                Some(next) => value = next,
                None => return Err(frame.error("integral size overflow")),
            }
            self.rest = &self.rest[1..];
        }
        Ok(value as usize)
    }
    /// The next option, when so many bytes stand before it.
    fn next(&mut self, frame: &mut Frame<'_>, before: usize) -> Result<Option<Part>, Raise> {
        frame.step(1)?;
        let Some((&option, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(frame, 1)?,
            b'i' | b'I' => {
                let size = self.number(frame, 4)?;
                if size > INTEGER_BYTES_MAX {
                    let text = format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(frame.error(&text));
                }
                size
            }
            _ => 0,
        };
        let gap = if size == 0 || option == b'c' {
            0
        } else {
            let align = size.min(self.align);
            align.wrapping_sub(before & (align.wrapping_sub(1))) & (align.wrapping_sub(1))
        };
        Ok(Some(Part { option, size, gap }))
    }
    fn control(&mut self, frame: &mut Frame<'_>, option: u8) -> Result<(), Raise> {
        match option {
            b' ' => {}
            b'>' => self.big = true,
            b'<' => self.big = false,
            b'!' => {
                let align = self.number(frame, ALIGN)?;
                if !align.is_power_of_two() {
                    return Err(frame.error(format!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            other => {
                return Err(frame.arg_error(1, [b"invalid format option '", &[other][..], b"'"].concat()));
            }
        }
        Ok(())
    }
}

fn pack(frame: &mut Frame<'_>) -> Answer {
    let mut format = Format::new(frame.arg_bytes(1)?);
    // An argument that is missing is told as nil, as Valkey's is.
    frame.push_nil();
    let (mut out, mut arg, mut total) = (Vec::new(), 2, 0_usize);
    while let Some(Part { option, mut size, gap }) = format.next(frame, total)? {
        total = total.wrapping_add(gap);
        out.resize(out.len() + gap, 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = frame.arg_number(arg)?;
                arg += 1;
                push_integer(&mut out, number, size, format.big);
            }
            b'x' => out.push(0),
            b'f' => {
                let number = frame.arg_number(arg)? as f32;
                arg += 1;
                out.extend_from_slice(&if format.big { number.to_be_bytes() } else { number.to_le_bytes() });
            }
            b'd' => {
                let number = frame.arg_number(arg)?;
                arg += 1;
                out.extend_from_slice(&if format.big { number.to_be_bytes() } else { number.to_le_bytes() });
            }
            b'c' | b's' => {
                let text = frame.arg_bytes(arg)?;
                arg += 1;
                if size == 0 {
                    size = text.len();
                }
                if text.len() < size {
                    return Err(frame.arg_error(arg, "string too short"));
                }
                frame.fits(out.len() + size)?;
                frame.step_bytes(size)?;
                out.extend_from_slice(&text[..size]);
                if option == b's' {
                    out.push(0);
                    size += 1;
                }
            }
            other => format.control(frame, other)?,
        }
        total = total.wrapping_add(size);
    }
    frame.push_bytes(&out);
    Ok(1)
}

/// Bytes beyond 64 bits are zeros.
fn push_integer(out: &mut Vec<u8>, number: f64, size: usize, big: bool) {
    let value = wide(number);
    let byte = |place: usize| if place < 8 { (value >> (8 * place)) as u8 } else { 0 };
    if big {
        out.extend((0..size).rev().map(byte));
    } else {
        out.extend((0..size).map(byte));
    }
}
/// As C casts: a negative number by way of the signed type; of what is too large, or no number, what is left there.
fn wide(number: f64) -> u64 {
    match number {
        _ if number < 0.0 => (number as i64).cast_unsigned(),
        _ if number.is_nan() => 1 << 63,
        _ if number >= 18_446_744_073_709_551_616.0 => 0,
        _ => number as u64,
    }
}

fn unpack(frame: &mut Frame<'_>) -> Answer {
    let mut format = Format::new(frame.arg_bytes(1)?);
    let data = frame.arg_bytes(2)?;
    // One below 0 is far behind the data.
    let from = frame.arg_integer_or(3, 1)?.cast_unsigned() as usize;
    let Some(mut at) = from.checked_sub(1) else {
        return Err(frame.arg_error(3, "offset must be 1 or greater"));
    };
    let mut count = 0;
    while let Some(Part { option, mut size, gap }) = format.next(frame, at)? {
        at = at.wrapping_add(gap);
        check_room(frame, data, at, size)?;
        if frame.reserve(2).is_err() {
            return Err(frame.error("stack overflow (too many results)"));
        }
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let number = integer(&data[at..at + size], option.is_ascii_lowercase(), format.big);
                frame.push_number(number);
                count += 1;
            }
            b'x' => {}
            b'f' => {
                let bytes: [u8; 4] = data[at..at + 4].try_into().unwrap_or_default();
                let number = if format.big { f32::from_be_bytes(bytes) } else { f32::from_le_bytes(bytes) };
                frame.push_number(f64::from(number));
                count += 1;
            }
            b'd' => {
                let bytes: [u8; 8] = data[at..at + 8].try_into().unwrap_or_default();
                let number = if format.big { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) };
                frame.push_number(number);
                count += 1;
            }
            b'c' => {
                if size == 0 {
                    let before = if count > 0 { frame.number(-1) } else { None };
                    let Some(len) = before else {
                        return Err(frame.error("format 'c0' needs a previous size"));
                    };
                    size = wide(len) as usize;
                    frame.pop(1);
                    count -= 1;
                    check_room(frame, data, at, size)?;
                }
                frame.step_bytes(size)?;
                frame.push_bytes(&data[at..at + size]);
                count += 1;
            }
            b's' => {
                let rest = data.get(at..).unwrap_or_default();
                let Some(len) = rest.iter().position(|byte| *byte == 0) else {
                    return Err(frame.error("unfinished string in data"));
                };
                frame.step_bytes(2 * len)?;
                frame.push_bytes(&rest[..len]);
                size = len + 1;
                count += 1;
            }
            other => format.control(frame, other)?,
        }
        at = at.wrapping_add(size);
    }
    frame.push_number((at.wrapping_add(1) as u64).cast_signed() as f64);
    Ok(count + 1)
}

fn check_room(frame: &mut Frame<'_>, data: &[u8], at: usize, size: usize) -> Result<(), Raise> {
    if size <= data.len() && at <= data.len() - size {
        return Ok(());
    }
    Err(frame.arg_error(2, "data string too short"))
}

fn integer(bytes: &[u8], signed: bool, big: bool) -> f64 {
    let size = bytes.len();
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = if big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) };
    if !signed {
        return value as f64;
    }
    // A mask shifted by as many bits as a processor takes of the number.
    let mask = u64::MAX << ((size.wrapping_mul(8).wrapping_sub(1)) & 63);
    let value = if value & mask != 0 { value | mask } else { value };
    value.cast_signed() as f64
}

fn size(frame: &mut Frame<'_>) -> Answer {
    let mut format = Format::new(frame.arg_bytes(1)?);
    let mut at = 0_usize;
    while let Some(Part { option, size, gap }) = format.next(frame, at)? {
        at = at.wrapping_add(gap);
        match option {
            b's' => return Err(frame.arg_error(1, "option 's' has no fixed size")),
            b'c' if size == 0 => return Err(frame.arg_error(1, "option 'c0' has no fixed size")),
            other if !other.is_ascii_alphanumeric() => format.control(frame, other)?,
            _ => {}
        }
        at = at.wrapping_add(size);
    }
    frame.push_number(at as f64);
    Ok(1)
}
