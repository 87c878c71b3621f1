//! Pictures as text with columns and colours, or as one JSON object for each line.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::picture::{Picture, Row};
use crate::text::{grouped, hex, saved};

/// Bytes that the hexadecimal column shows of a row.
const HEX_BYTES: usize = 16;

/// Bytes that the value column shows.
const VALUE_BYTES: usize = 40;

/// Rows that are shown of a frame: of more, the first and the last ones.
const ROWS_MAX: usize = 200;

/// Escape sequences, or nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(pub(crate) bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }
    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }
    pub(crate) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }
    pub(crate) fn red(self, text: &str) -> String {
        self.with("1;31", text)
    }
    pub(crate) fn green(self, text: &str) -> String {
        self.with("32", text)
    }
    pub(crate) fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }
    pub(crate) fn cyan(self, text: &str) -> String {
        self.with("36", text)
    }
}

/// A frame as text. `offset` is where it begins in the input.
pub(super) fn text(picture: &Picture, frame: &[u8], offset: u64, paint: Paint) -> String {
    let mut out = title(picture, frame.len(), offset, paint);
    let rows = &picture.rows;
    let hidden = rows.len().saturating_sub(ROWS_MAX);
    let head = if hidden > 0 { ROWS_MAX * 3 / 4 } else { rows.len() };
    let shown = || rows.iter().enumerate().filter(|(index, _)| *index < head || *index >= head + hidden);
    let width = |cell: &dyn Fn(&Row) -> usize| shown().map(|(_, row)| cell(row)).max().unwrap_or(0);
    let widths = [
        (offset + rows.last().map_or(0, |row| row.span.start) as u64).to_string().len().max(4),
        width(&|row| hex_text(row, frame).chars().count()),
        width(&|row| 2 * row.depth + row.name.chars().count()),
        width(&|row| row.kind.chars().count()),
        width(&|row| row.value.text(frame, VALUE_BYTES).chars().count()),
    ];
    for (index, row) in shown() {
        if hidden > 0 && index == head + hidden {
            let _ = writeln!(out, "  {}", paint.dim(&format!("… {} more rows", grouped(hidden as u64))));
        }
        line(&mut out, row, frame, offset, &widths, paint);
    }
    foot(&mut out, picture, frame.len(), paint);
    out
}

fn title(picture: &Picture, len: usize, offset: u64, paint: Paint) -> String {
    let name = if picture.name.is_empty() { picture.role } else { &picture.name };
    let mut about = Vec::new();
    if name != picture.role {
        about.push(match picture.form {
            "" => picture.role.to_string(),
            form => format!("{form} {}", picture.role),
        });
    }
    if let Some(channel) = picture.channel {
        about.push(format!("channel {channel}"));
    }
    about.push(format!("{} at offset {}", super::request::bytes_text(len), grouped(offset)));
    format!("{}  {}\n", paint.bold(name), paint.dim(&about.join(", ")))
}

fn hex_text(row: &Row, frame: &[u8]) -> String {
    hex(frame.get(row.span.clone()).unwrap_or_default(), HEX_BYTES)
}

fn line(out: &mut String, row: &Row, frame: &[u8], offset: u64, widths: &[usize; 5], paint: Paint) {
    let [at_width, hex_width, name_width, kind_width, value_width] = *widths;
    let at = offset + row.span.start as u64;
    let digits = hex_text(row, frame);
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.chars().count()));
    // Two digits and a blank for each byte of type or length, which stand out less than the value.
    let split = (3 * row.prefix).min(digits.len());
    let digits_painted = match digits.split_at_checked(split) {
        Some((length, value)) => format!("{}{}", paint.dim(length), paint.cyan(value)),
        None => digits.clone(),
    };
    let name = format!("{}{}", "  ".repeat(row.depth), row.name);
    let value = row.value.text(frame, VALUE_BYTES);
    let text = format!(
        "  {}  {digits_painted}{}  {}{}  {}{}  {}{}  {}",
        paint.dim(&format!("{at:>at_width$}")),
        pad(&digits, hex_width),
        name,
        pad(&name, name_width),
        paint.dim(&row.kind),
        pad(&row.kind, kind_width),
        paint.green(&value),
        pad(&value, value_width),
        row.meaning,
    );
    out.push_str(text.trim_end());
    out.push('\n');
}

fn foot(out: &mut String, picture: &Picture, len: usize, paint: Paint) {
    if let Some(command) = &picture.command_line {
        let _ = write!(out, "  = {}", paint.bold(command));
        if let Some(resp) = picture.resp_len {
            let text = format!("  ({} bytes in RESP: {})", grouped(resp as u64), saved(resp, len));
            out.push_str(&paint.dim(&text));
        }
        out.push('\n');
    }
    if let Some(note) = &picture.note {
        let _ = writeln!(out, "  {}", paint.dim(&format!("note: {note}")));
    }
}

/// A frame as a JSON object.
pub(super) fn json(picture: &Picture, frame: &[u8], offset: u64, protocol: &str) -> Value {
    let fields: Vec<Value> = picture
        .rows
        .iter()
        .map(|row| {
            let bytes = frame.get(row.span.clone()).unwrap_or_default();
            json!({
                "offset": offset + row.span.start as u64,
                "hex": hex(bytes, usize::MAX).replace(' ', ""),
                "depth": row.depth,
                "name": row.name,
                "type": row.kind,
                "value": row.value.json(frame),
                "text": row.value.text(frame, VALUE_BYTES),
                "meaning": row.meaning,
            })
        })
        .collect();
    json!({
        "offset": offset,
        "length": frame.len(),
        "protocol": protocol,
        "role": picture.role,
        "form": Some(picture.form).filter(|form| !form.is_empty()),
        "name": picture.name,
        "channel": picture.channel,
        "command_line": picture.command_line,
        "resp_length": picture.resp_len,
        "note": picture.note,
        "fields": fields,
    })
}

/// Why a frame is bad and where it goes on, as text.
pub(super) fn bad_text(at: u64, what: &str, name: &str, goes_on: Option<u64>, paint: Paint) -> String {
    let goes_on = match goes_on {
        Some(next) => format!("the frame carries its length: going on at offset {}", grouped(next)),
        None => "cannot go on: the length of this frame is not known, so the next one cannot be found".into(),
    };
    format!("  {} {name} at offset {}: {what}\n  {goes_on}\n", paint.red("error:"), grouped(at))
}

/// The same as a JSON object.
pub(super) fn bad_json(at: u64, what: &str, name: &str, goes_on: Option<u64>) -> Value {
    json!({ "error": name, "offset": at, "message": what, "goes_on_at": goes_on })
}
