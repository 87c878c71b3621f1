//! The part of TOML that a workload is written in: `[table]`, `[[list of tables]]`, `name = value` with texts, numbers,
//! `true`, `false` and lists of them. Owns the grammar and where in the file something stands. What TOML has beyond it
//! (dates, nested and inline tables, dotted names, literal texts) is refused by its line.

use anyhow::{Result, bail};

/// Bytes of a file at most.
pub(in crate::bench) const FILE_BYTES_MAX: usize = 64 << 10;

/// A value and the line where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::bench) struct Item {
    pub(in crate::bench) line: usize,
    pub(in crate::bench) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::bench) enum Value {
    Text(String),
    Integer(u64),
    Float(f64),
    Bool(bool),
    List(Vec<Item>),
}

impl Value {
    /// What it is, for an error.
    pub(in crate::bench) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Integer(_) => "a number",
            Value::Float(_) => "a number with a fraction",
            Value::Bool(_) => "true or false",
            Value::List(_) => "a list",
        }
    }
}

/// A table: the entries before the first head have no name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::bench) struct Table {
    pub(in crate::bench) name: String,
    pub(in crate::bench) line: usize,
    /// Whether there may be several of the name.
    pub(in crate::bench) listed: bool,
    pub(in crate::bench) entries: Vec<(String, Item)>,
}

/// The tables of a file in order, the nameless one first.
pub(in crate::bench) fn parse(text: &str) -> Result<Vec<Table>> {
    if text.len() > FILE_BYTES_MAX {
        bail!("{} bytes: a workload has at most {FILE_BYTES_MAX}", text.len());
    }
    let mut reader = Reader { rest: text, line: 1 };
    let mut tables = vec![Table { line: 1, ..Table::default() }];
    while reader.skip_blank() {
        if reader.rest.starts_with('[') {
            tables.push(reader.head(&tables)?);
        } else if let Some(table) = tables.last_mut() {
            let (name, item) = reader.entry()?;
            if table.entries.iter().any(|(known, _)| *known == name) {
                bail!("line {}: {name} stands here a second time", item.line);
            }
            table.entries.push((name, item));
        }
        reader.end_of_line()?;
    }
    Ok(tables)
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
}

impl Reader<'_> {
    /// Passes over blanks, line ends and comments; whether something follows.
    fn skip_blank(&mut self) -> bool {
        loop {
            match self.rest.as_bytes().first() {
                Some(b' ' | b'\t' | b'\r') => self.rest = &self.rest[1..],
                Some(b'\n') => {
                    self.line += 1;
                    self.rest = &self.rest[1..];
                }
                Some(b'#') => self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]),
                Some(_) => return true,
                None => return false,
            }
        }
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// What stands here, for an error.
    fn found(&self) -> String {
        let word: String = self.rest.chars().take_while(|c| !c.is_whitespace()).take(20).collect();
        if word.is_empty() { "the line's end".to_string() } else { format!("{word:?}") }
    }

    fn take(&mut self, expected: &str) -> Result<()> {
        match self.rest.strip_prefix(expected) {
            Some(rest) => self.rest = rest,
            None => bail!("line {}: {expected:?} is expected, not {}", self.line, self.found()),
        }
        Ok(())
    }

    fn end_of_line(&mut self) -> Result<()> {
        self.skip_spaces();
        match self.rest.as_bytes().first() {
            None | Some(b'\n' | b'\r' | b'#') => Ok(()),
            Some(_) => bail!("line {}: the line's end is expected, not {}", self.line, self.found()),
        }
    }

    fn name(&mut self) -> Result<String> {
        self.skip_spaces();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        if end == 0 {
            bail!("line {}: a name is expected, not {}", self.line, self.found());
        }
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.skip_spaces();
        Ok(name.to_string())
    }

    /// `[name]` or `[[name]]`
    fn head(&mut self, before: &[Table]) -> Result<Table> {
        let (line, listed) = (self.line, self.rest.starts_with("[["));
        self.take(if listed { "[[" } else { "[" })?;
        let name = self.name()?;
        self.take(if listed { "]]" } else { "]" })?;
        if before.iter().any(|table| table.name == name && !(listed && table.listed)) {
            bail!("line {line}: there is a [{name}] before");
        }
        Ok(Table { name, line, listed, entries: Vec::new() })
    }

    fn entry(&mut self) -> Result<(String, Item)> {
        let name = self.name()?;
        self.take("=")?;
        self.skip_spaces();
        Ok((name, self.item()?))
    }

    fn item(&mut self) -> Result<Item> {
        let line = self.line;
        let value = match self.rest.as_bytes().first() {
            Some(b'"') => Value::Text(self.text()?),
            Some(b'[') => Value::List(self.list()?),
            _ => self.word()?,
        };
        Ok(Item { line, value })
    }

    fn list(&mut self) -> Result<Vec<Item>> {
        let begins = self.line;
        self.take("[")?;
        let mut items = Vec::new();
        loop {
            if !self.skip_blank() {
                bail!("line {begins}: a list that begins here has no end");
            }
            if self.rest.starts_with(']') {
                break;
            }
            items.push(self.item()?);
            self.skip_blank();
            if !self.rest.starts_with(']') {
                self.take(",")?;
            }
        }
        self.take("]")?;
        Ok(items)
    }

    fn word(&mut self) -> Result<Value> {
        let end = self.rest.find([' ', '\t', '\r', '\n', ',', ']', '#']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let digits = word.replace('_', "");
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => match (digits.parse::<u64>(), digits.parse::<f64>()) {
                (Ok(number), _) => Value::Integer(number),
                (_, Ok(number)) if number.is_finite() => Value::Float(number),
                _ => bail!(
                    "line {}: a text in double quotes, a number, true, false or a list is expected, not {}",
                    self.line,
                    self.found()
                ),
            },
        };
        self.rest = rest;
        Ok(value)
    }

    /// `"…"`, or `"""…"""` over several lines, of which the first is left out when it is empty.
    fn text(&mut self) -> Result<String> {
        let begins = self.line;
        let long = self.rest.starts_with("\"\"\"");
        let end = if long { "\"\"\"" } else { "\"" };
        self.take(end)?;
        if long && let Some(rest) = self.rest.strip_prefix('\n') {
            self.rest = rest;
            self.line += 1;
        }
        let mut text = String::new();
        loop {
            if let Some(rest) = self.rest.strip_prefix(end) {
                self.rest = rest;
                return Ok(text);
            }
            let mut chars = self.rest.chars();
            match chars.next() {
                None => bail!("line {begins}: a text that begins here has no end"),
                Some('\n') if !long => bail!("line {begins}: a text that begins here has no end on its line"),
                Some('\\') => text.push(match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(same @ ('"' | '\\')) => same,
                    _ => bail!("line {}: behind a backslash in a text stands n, t, \" or \\", self.line),
                }),
                Some(c) => {
                    self.line += usize::from(c == '\n');
                    text.push(c);
                }
            }
            self.rest = chars.as_str();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_read() {
        let text = "# a comment\na = \"x\\\"y\" # behind\nb = 1_000\nc = [1, 0.5, true,\n  \"z\", # in a list\n]\n\
                    [t]\nd = \"\"\"\ntwo\nlines\"\"\"\n[[u]]\n[[u]]\ne = false\n";
        let tables = parse(text).unwrap();
        let names: Vec<&str> = tables.iter().map(|table| &*table.name).collect();
        assert_eq!(names, ["", "t", "u", "u"]);
        let entry = |table: usize, index: usize| tables[table].entries[index].1.clone();
        assert_eq!(entry(0, 0), Item { line: 2, value: Value::Text("x\"y".into()) });
        assert_eq!(entry(0, 1).value, Value::Integer(1000));
        let Value::List(items) = entry(0, 2).value else { panic!() };
        assert_eq!(items.iter().map(|item| item.line).collect::<Vec<_>>(), [4, 4, 4, 5]);
        assert_eq!(entry(1, 0).value, Value::Text("two\nlines".into()));
        assert_eq!(tables[3].entries[0].1, Item { line: 13, value: Value::Bool(false) });
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        for (text, expected) in [
            ("\na 1", "line 2: \"=\" is expected, not \"1\""),
            (
                "a = x",
                "line 1: a text in double quotes, a number, true, false or a list is expected, not \"x\"",
            ),
            ("a = 1 2", "line 1: the line's end is expected, not \"2\""),
            ("a = \"x\nb = 1", "line 1: a text that begins here has no end on its line"),
            ("\n\na = \"\"\"x\n", "line 3: a text that begins here has no end"),
            ("a = [1 2]", "line 1: \",\" is expected, not \"2]\""),
            ("a = [1,", "line 1: a list that begins here has no end"),
            ("a = 1\na = 2", "line 2: a stands here a second time"),
            ("[t]\n[t]", "line 2: there is a [t] before"),
            ("[t", "line 1: \"]\" is expected, not the line's end"),
            ("= 1", "line 1: a name is expected, not \"=\""),
            ("a = \"\\x\"", "line 1: behind a backslash"),
            ("a = 1e999", "line 1: a text in double quotes"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
        let long = format!("# {}", "x".repeat(FILE_BYTES_MAX));
        assert!(parse(&long).unwrap_err().to_string().contains("at most 65536"));
    }
}
