//! Owns: matching Lua's patterns, step by step: each is counted, since a pattern can take time that is exponential in
//! its
//! length. Does not own: what is done with a match (`super::strings`).

use crate::frame::{Frame, Raise};

/// Captures of one pattern.
const CAPTURES_MAX: usize = 32;
/// Matches that run one inside the other: what repeats, captures and alternatives nest.
const DEPTH_MAX: usize = 200;
/// Steps between two times that they are told to the frame.
const STEPS: usize = 256;

/// What a capture holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Capture {
    /// It is open.
    Unfinished(usize),
    /// `()`: a place, from 0.
    Position(usize),
    /// From and to.
    Span(usize, usize),
}

/// A text that a pattern is matched with.
pub(super) struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    pub(super) captures: Vec<Capture>,
    depth: usize,
    steps: usize,
}

type Matched = Result<Option<usize>, Raise>;

impl<'a> Matcher<'a> {
    pub(super) const fn new(text: &'a [u8], pattern: &'a [u8]) -> Self {
        Self { text, pattern, captures: Vec::new(), depth: 0, steps: 0 }
    }

    /// Where a match from this place on ends.
    pub(super) fn run(&mut self, frame: &mut Frame<'_>, from: usize) -> Matched {
        self.captures.clear();
        self.depth = 0;
        self.go(frame, from, 0)
    }

    fn step(&mut self, frame: &mut Frame<'_>) -> Result<(), Raise> {
        self.steps += 1;
        if self.steps < STEPS {
            return Ok(());
        }
        self.steps = 0;
        frame.step(STEPS)
    }

    /// Matches the text from `at` with the pattern from `part`.
    fn go(&mut self, frame: &mut Frame<'_>, at: usize, part: usize) -> Matched {
        if self.depth == DEPTH_MAX {
            return Err(frame.error("pattern too complex"));
        }
        self.depth += 1;
        let matched = self.sequence(frame, at, part);
        self.depth -= 1;
        matched
    }

    fn sequence(&mut self, frame: &mut Frame<'_>, mut at: usize, mut part: usize) -> Matched {
        loop {
            self.step(frame)?;
            let Some(&byte) = self.pattern.get(part) else { return Ok(Some(at)) };
            match (byte, self.pattern.get(part + 1).copied()) {
                (b'(', Some(b')')) => return self.open(frame, at, part + 2, Capture::Position(at)),
                (b'(', _) => return self.open(frame, at, part + 1, Capture::Unfinished(at)),
                (b')', _) => return self.close(frame, at, part + 1),
                (b'%', Some(b'b')) => match self.balance(frame, at, part + 2)? {
                    Some(end) => (at, part) = (end, part + 4),
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => {
                    part += 2;
                    if self.pattern.get(part) != Some(&b'[') {
                        return Err(frame.error("missing '[' after '%f' in pattern"));
                    }
                    let end = self.class_end(frame, part)?;
                    let before = if at == 0 { 0 } else { self.text[at - 1] };
                    let here = self.text.get(at).copied().unwrap_or(0);
                    if self.in_set(before, part, end - 1) || !self.in_set(here, part, end - 1) {
                        return Ok(None);
                    }
                    part = end;
                }
                (b'%', Some(digit)) if digit.is_ascii_digit() => match self.again(frame, at, digit)? {
                    Some(end) => (at, part) = (end, part + 2),
                    None => return Ok(None),
                },
                (b'$', None) => return Ok((at == self.text.len()).then_some(at)),
                _ => {
                    let end = self.class_end(frame, part)?;
                    let here = at < self.text.len() && self.single(at, part, end);
                    match self.pattern.get(end) {
                        Some(b'?') => {
                            if here && let Some(matched) = self.go(frame, at + 1, end + 1)? {
                                return Ok(Some(matched));
                            }
                            part = end + 1;
                        }
                        Some(b'*') => return self.most(frame, at, part, end),
                        Some(b'+') => {
                            return if here { self.most(frame, at + 1, part, end) } else { Ok(None) };
                        }
                        Some(b'-') => return self.least(frame, at, part, end),
                        _ if here => (at, part) = (at + 1, end),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    /// Where a class ends: a byte, `%a`, `[…]`.
    fn class_end(&self, frame: &mut Frame<'_>, part: usize) -> Result<usize, Raise> {
        let mut at = part + 1;
        match self.pattern[part] {
            b'%' if at >= self.pattern.len() => Err(frame.error("malformed pattern (ends with '%')")),
            b'%' => Ok(at + 1),
            b'[' => {
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                loop {
                    let Some(&byte) = self.pattern.get(at) else {
                        return Err(frame.error("malformed pattern (missing ']')"));
                    };
                    at += 1;
                    if byte == b'%' && at < self.pattern.len() {
                        at += 1;
                    }
                    if self.pattern.get(at) == Some(&b']') {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(at),
        }
    }
    fn single(&self, at: usize, part: usize, end: usize) -> bool {
        let byte = self.text[at];
        match self.pattern[part] {
            b'.' => true,
            b'%' => in_class(byte, self.pattern[part + 1]),
            b'[' => self.in_set(byte, part, end - 1),
            other => other == byte,
        }
    }
    /// Whether a byte is in the set between `[` at `part` and `]` at `last`.
    fn in_set(&self, byte: u8, part: usize, last: usize) -> bool {
        let (mut at, mut wanted) = (part + 1, true);
        if self.pattern[at] == b'^' {
            (at, wanted) = (at + 1, false);
        }
        while at < last {
            if self.pattern[at] == b'%' {
                if in_class(byte, self.pattern[at + 1]) {
                    return wanted;
                }
                at += 2;
            } else if self.pattern[at + 1] == b'-' && at + 2 < last {
                if (self.pattern[at]..=self.pattern[at + 2]).contains(&byte) {
                    return wanted;
                }
                at += 3;
            } else {
                if self.pattern[at] == byte {
                    return wanted;
                }
                at += 1;
            }
        }
        !wanted
    }

    fn balance(&mut self, frame: &mut Frame<'_>, at: usize, part: usize) -> Matched {
        let (Some(&open), Some(&close)) = (self.pattern.get(part), self.pattern.get(part + 1)) else {
            return Err(frame.error("unbalanced pattern"));
        };
        if self.text.get(at) != Some(&open) {
            return Ok(None);
        }
        let mut nested = 1;
        for end in at + 1..self.text.len() {
            self.step(frame)?;
            let byte = self.text[end];
            if byte == close {
                nested -= 1;
                if nested == 0 {
                    return Ok(Some(end + 1));
                }
            } else if byte == open {
                nested += 1;
            }
        }
        Ok(None)
    }
    fn most(&mut self, frame: &mut Frame<'_>, at: usize, part: usize, end: usize) -> Matched {
        let mut count = 0;
        while at + count < self.text.len() && self.single(at + count, part, end) {
            self.step(frame)?;
            count += 1;
        }
        loop {
            if let Some(matched) = self.go(frame, at + count, end + 1)? {
                return Ok(Some(matched));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }
    fn least(&mut self, frame: &mut Frame<'_>, mut at: usize, part: usize, end: usize) -> Matched {
        loop {
            if let Some(matched) = self.go(frame, at, end + 1)? {
                return Ok(Some(matched));
            }
            if at >= self.text.len() || !self.single(at, part, end) {
                return Ok(None);
            }
            at += 1;
        }
    }

    fn open(&mut self, frame: &mut Frame<'_>, at: usize, part: usize, capture: Capture) -> Matched {
        if self.captures.len() == CAPTURES_MAX {
            return Err(frame.error("too many captures"));
        }
        self.captures.push(capture);
        let matched = self.go(frame, at, part)?;
        if matched.is_none() {
            self.captures.pop();
        }
        Ok(matched)
    }
    fn close(&mut self, frame: &mut Frame<'_>, at: usize, part: usize) -> Matched {
        let open = self.captures.iter().rposition(|capture| matches!(capture, Capture::Unfinished(_)));
        let Some((index, Capture::Unfinished(from))) = open.map(|index| (index, self.captures[index])) else {
            return Err(frame.error("invalid pattern capture"));
        };
        self.captures[index] = Capture::Span(from, at);
        let matched = self.go(frame, at, part)?;
        if matched.is_none() {
            self.captures[index] = Capture::Unfinished(from);
        }
        Ok(matched)
    }
    /// The text of an earlier capture once more.
    fn again(&mut self, frame: &mut Frame<'_>, at: usize, digit: u8) -> Matched {
        let capture = usize::from(digit).checked_sub(usize::from(b'1')).and_then(|at| self.captures.get(at));
        match capture {
            Some(&Capture::Span(from, to)) => {
                let text = &self.text[from..to];
                Ok(self.text[at..].starts_with(text).then_some(at + text.len()))
            }
            // A place has no text: as Lua has it, nothing is as long.
            Some(Capture::Position(_)) => Ok(None),
            _ => Err(frame.error("invalid capture index")),
        }
    }
}

fn in_class(byte: u8, class: u8) -> bool {
    let found = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0B,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    found == class.is_ascii_lowercase()
}
